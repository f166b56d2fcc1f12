//! What `duet validate` says: the same sections as text, as Markdown and as JSON, each with the
//! definition of its figures.

mod errors;
mod json;
mod kernels;
mod models;
mod overview;
mod section;
mod speed;
mod terms;

pub use json::json;
pub use section::{Section, named, text};

use super::figures::Drawn;
use crate::validate::analysis::Validation;

/// Every section that a report may have, in its order.
pub const KEYS: [&str; 20] = [
    "overview",
    "errors",
    "relative",
    "choices",
    "speed-ups",
    "speed-ups-by-strategy",
    "fusions",
    "hybrid",
    "peers",
    "overlap",
    "kernel-overlap",
    "kernel-shapes",
    "residuals",
    "intervals",
    "closed-forms",
    "datasheet",
    "repeatability",
    "terms",
    "today",
    "excluded",
];

/// All sections that there are data for, in the order of reports.
pub fn sections(found: &Validation) -> Vec<Section> {
    let all = [
        overview::overview(found),
        errors::absolute(found),
        errors::relative(found),
        models::choices(found),
        speed::gains(found),
        speed::strategies(found),
        speed::fusions(found),
        speed::hybrids(found),
        speed::peers(found),
        speed::overlap(found),
        kernels::kernels(found),
        kernels::fastest(found),
        models::residuals(found),
        models::coverage(found),
        models::forms(found),
        errors::spec(found),
        models::repeat(found),
        terms::terms(found),
        errors::today(found),
        overview::excluded(found),
    ];
    // One without data may have no name.
    let named = |(section, key): (&Section, &str)| section.key.is_empty() || section.key == key;
    debug_assert!(all.iter().zip(KEYS).all(named));
    all.into_iter()
        .filter(|section| !section.is_empty())
        .collect()
}

/// The report; `plots` is the path from it to the folder of the figures.
pub fn markdown(found: &Validation, drawn: &Drawn, plots: &str) -> String {
    let mut text = format!("# Validation of `{}`\n\n", found.experiment);
    for section in sections(found) {
        text += &section.markdown();
    }
    for (at, picture) in drawn.pictures.iter().enumerate() {
        if at == 0 {
            text += "## Figures\n\n";
        }
        text += &format!("![{0}]({plots}/{0}.svg)\n\n", picture.stem);
    }
    while text.ends_with("\n\n") {
        text.pop();
    }
    text
}
