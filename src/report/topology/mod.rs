//! What `duet topology show` prints: bandwidth matrix, links, and pictures as text, DOT and SVG.

pub mod dot;
pub mod layout;
pub mod matrix;
pub mod picture;
pub mod svg;

use crate::topology::sketch::Bundle;

/// `52 GB/s`, or `2 × 52 GB/s` where a node has several.
fn rate(bundle: &Bundle) -> String {
    match bundle.at_from.max(bundle.at_to) {
        0 | 1 => bundle.bandwidth.to_string(),
        count if bundle.at_from == bundle.at_to => format!("{count} × {}", bundle.bandwidth),
        _ => bundle.bandwidth.to_string(),
    }
}
