//! `report.md`: everything that the analysis found, every table saying what it is compared with.

use super::{decomposition, models, overview, sweeps};
use crate::experiment::analysis::Analysis;
use crate::report::figures::Drawn;

/// The report; `plots` is the path from it to the folder of the figures.
pub fn markdown(analysis: &Analysis, drawn: &Drawn, plots: &str) -> String {
    let mut text = String::new();
    text += &overview::head(analysis);
    text += &overview::beside(analysis);
    text += &overview::claims(analysis);
    text += &models::errors(analysis);
    text += &models::overheads(analysis);
    text += &models::selection(analysis);
    text += &overview::winners(analysis);
    text += &decomposition::penalties(analysis);
    text += &decomposition::gains(analysis);
    text += &sweeps::bandwidth(analysis);
    text += &sweeps::sweeps(analysis);
    text += &figures(drawn, plots);
    while text.ends_with("\n\n") {
        text.pop();
    }
    text
}

fn figures(drawn: &Drawn, plots: &str) -> String {
    let mut text = String::new();
    if !drawn.pictures.is_empty() {
        text += "## Figures\n\n";
    }
    for picture in &drawn.pictures {
        text += &format!("![{0}]({plots}/{0}.svg)\n\n", picture.stem);
    }
    if !drawn.left_out.is_empty() {
        text += "Figures left out:\n\n";
        for (name, reason) in &drawn.left_out {
            text += &format!("* `{name}`: {reason}\n");
        }
        text += "\n";
    }
    text
}
