//! Bitmaps of figures.
//!
//! Text is set in DejaVu Sans, which is embedded: no font of the machine is looked at, so the same
//! SVG gives the same bytes everywhere.

use std::sync::{Arc, LazyLock};

use resvg::tiny_skia::{Pixmap, Transform};
use resvg::usvg::{Options, Tree, fontdb};

/// Why there is no bitmap.
#[derive(Debug, thiserror::Error)]
pub enum PngError {
    #[error("the drawing is no SVG that can be rendered: {0}")]
    Svg(String),
    #[error("a bitmap of {width} × {height} pixels cannot be made; choose a smaller scale")]
    Size { width: f64, height: f64 },
    #[error("the bitmap cannot be encoded: {0}")]
    Encode(String),
}

/// Beyond this many pixels a bitmap is refused rather than memory used up (256 MB at 4 bytes).
const MOST: f64 = 64e6;

static FONTS: LazyLock<Arc<fontdb::Database>> = LazyLock::new(|| {
    let mut fonts = fontdb::Database::new();
    fonts.load_font_data(dejavu::sans::regular().to_vec());
    fonts.load_font_data(dejavu::sans::bold().to_vec());
    fonts.set_sans_serif_family("DejaVu Sans");
    Arc::new(fonts)
});

/// Parses a figure with the bundled font.
pub(super) fn parse(svg: &str) -> Result<Tree, PngError> {
    let options = Options {
        fontdb: Arc::clone(&FONTS),
        font_family: "DejaVu Sans".to_owned(),
        ..Options::default()
    };
    Tree::from_str(svg, &options).map_err(|error| PngError::Svg(error.to_string()))
}

/// A figure as PNG, `scale` bitmap pixels for each of its own.
///
/// # Errors
/// [`PngError`] if the text is no SVG or the bitmap would be empty or larger than 64 M pixels.
///
/// ```
/// let svg = r#"<svg xmlns="http://www.w3.org/2000/svg" width="4" height="3"/>"#;
/// let png = duet::report::png::render(svg, 2.0)?;
/// assert!(png.starts_with(b"\x89PNG"));
/// assert!(duet::report::png::render(svg, 1e9).is_err());
/// # Ok::<(), duet::report::png::PngError>(())
/// ```
pub fn render(svg: &str, scale: f64) -> Result<Vec<u8>, PngError> {
    let tree = parse(svg)?;
    let size = tree.size();
    let width = (f64::from(size.width()) * scale).round();
    let height = (f64::from(size.height()) * scale).round();
    let refused = || PngError::Size { width, height };
    if !(width >= 1.0 && height >= 1.0 && width * height <= MOST) {
        return Err(refused());
    }
    let mut pixmap = Pixmap::new(width as u32, height as u32).ok_or_else(refused)?;
    let factor = scale as f32;
    resvg::render(
        &tree,
        Transform::from_scale(factor, factor),
        &mut pixmap.as_mut(),
    );
    pixmap
        .encode_png()
        .map_err(|error| PngError::Encode(error.to_string()))
}
