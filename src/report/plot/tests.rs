//! What holds for every chart kind.

use super::{inspect, samples};
use crate::report::png;

/// Writes the samples as PNG into the folder that `DUET_SAMPLES` names.
#[test]
fn samples_become_bitmaps() {
    let folder = std::env::var_os("DUET_SAMPLES").map(std::path::PathBuf::from);
    for (name, svg) in samples::all() {
        let png = png::render(&svg, 1.5).unwrap();
        assert!(png.len() > 5000, "{name} is nearly blank");
        if let Some(folder) = &folder {
            std::fs::write(folder.join(format!("{name}.svg")), svg).unwrap();
            std::fs::write(folder.join(format!("{name}.png")), png).unwrap();
        }
    }
}

#[test]
fn no_two_texts_touch_and_none_leaves_the_page() {
    for (name, svg) in samples::all() {
        assert_eq!(inspect::faults(&svg), Vec::<String>::new(), "{name}");
    }
}

#[test]
fn the_same_data_give_the_same_bytes() {
    assert_eq!(samples::all(), samples::all());
}
