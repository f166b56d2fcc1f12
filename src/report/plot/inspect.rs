//! Looks at the words of a finished figure, for tests.

use resvg::usvg::{Group, Node};

use super::canvas::Area;
use crate::report::png;

/// A text of a figure and the box that its letters fill \[px\].
#[derive(Clone, Debug)]
pub struct Words {
    pub text: String,
    /// Left, top, right and bottom.
    pub edges: [f64; 4],
    /// Size of the type \[px\].
    pub size: f64,
}

/// All texts of a figure, in drawing order, set in the bundled font.
///
/// # Errors
/// What the SVG parser says.
pub fn words(svg: &str) -> Result<Vec<Words>, String> {
    let tree = png::parse(svg).map_err(|error| error.to_string())?;
    let mut found = Vec::new();
    collect(tree.root(), &mut found);
    Ok(found)
}

fn collect(group: &Group, found: &mut Vec<Words>) {
    for node in group.children() {
        match node {
            Node::Group(inner) => collect(inner, found),
            Node::Text(text) => {
                let ink = text.flattened().abs_bounding_box();
                let spans = text.chunks().iter().flat_map(|chunk| chunk.spans());
                let size = spans
                    .map(|s| f64::from(s.font_size().get()))
                    .fold(0.0, f64::max);
                let words = text.chunks().iter().map(|chunk| chunk.text());
                found.push(Words {
                    text: words.collect::<Vec<_>>().join(" ").trim().to_owned(),
                    edges: [ink.left(), ink.top(), ink.right(), ink.bottom()].map(f64::from),
                    size: size * f64::from(text.abs_transform().sx),
                });
            }
            _ => {}
        }
    }
}

/// What is wrong with the texts of a figure: those that touch another, leave the page, or are
/// smaller than 11 px. Empty for a good figure.
#[must_use]
pub fn faults(svg: &str) -> Vec<String> {
    let (tree, words) = match (png::parse(svg), words(svg)) {
        (Ok(tree), Ok(words)) => (tree, words),
        (Err(error), _) => return vec![error.to_string()],
        (_, Err(error)) => return vec![error],
    };
    let page = Area {
        left: 0.0,
        top: 0.0,
        right: f64::from(tree.size().width()),
        bottom: f64::from(tree.size().height()),
    };
    let mut faults = Vec::new();
    let boxes: Vec<Area> = words
        .iter()
        .map(|w| {
            let [left, top, right, bottom] = w.edges;
            Area {
                left,
                top,
                right,
                bottom,
            }
        })
        .collect();
    for (i, (word, area)) in words.iter().zip(&boxes).enumerate() {
        if !page.contains(area) {
            faults.push(format!("`{}` leaves the page: {area:?}", word.text));
        }
        if word.size < 10.99 {
            faults.push(format!("`{}` is {} px small", word.text, word.size));
        }
        let apart = area.shrink(-1.0, -0.5, -1.0, -0.5);
        for (other, beside) in words.iter().zip(&boxes).skip(i + 1) {
            if apart.overlaps(beside) {
                faults.push(format!("`{}` touches `{}`", word.text, other.text));
            }
        }
    }
    faults
}
