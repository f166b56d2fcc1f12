//! The few lines that `duet run` prints.

use crate::experiment::analysis::{Analysis, Family};
use crate::experiment::{milliseconds, percent};
use crate::report::figures::Drawn;
use crate::units::count;

/// What was found, in a few lines.
pub fn brief(analysis: &Analysis, drawn: &Drawn) -> String {
    let mut text = String::new();
    for winners in &analysis.winners {
        let families = winners.families.iter();
        let families: Vec<String> = families
            .map(|(family, n)| format!("{} {n}", family.name()))
            .collect();
        let speedup = winners.speedup.map_or_else(String::new, |x| {
            format!("; {x:.2}x over sequential, geometric mean")
        });
        text += &format!(
            "{}: {}{speedup}\n",
            winners.group.title(),
            families.join(", ")
        );
    }
    if let Some(choices) = analysis.choices(true) {
        text += &format!(
            "selector, unseen cases: {} of {} right within 1 % ({}), regret {} on average, {} at \
             most;\n  among everything simulated: {} of {}, regret {} on average, {} at most\n",
            choices.right,
            choices.cases,
            percent(choices.right as f64 / choices.cases as f64),
            percent(choices.mean_regret),
            percent(choices.most_regret),
            choices.any_right,
            choices.cases,
            percent(choices.any_mean),
            percent(choices.any_most)
        );
    }
    if !analysis.unsimulated.is_empty() {
        text += &format!(
            "selector, not judged: {} in which its choice was not simulated\n",
            count(analysis.unsimulated.len() as u64, "case")
        );
    }
    for family in super::models::FAMILIES {
        text += &errors(analysis, family);
    }
    for claim in &analysis.claims {
        text += &format!("{:<13} {}\n", claim.verdict.name(), claim.claim);
    }
    for (name, reason) in &drawn.left_out {
        text += &format!("figure {name} left out: {reason}\n");
    }
    if !text.is_empty() {
        text += "all against the simulator; nothing was measured\n";
    }
    text
}

fn errors(analysis: &Analysis, family: Family) -> String {
    let mae = |model| analysis.error(model, family).map(|errors| errors.mae);
    let (Some(without), Some(with), Some(extended)) = (
        mae("compass-without-overhead"),
        mae("compass"),
        mae("extended"),
    ) else {
        return String::new();
    };
    format!(
        "mean absolute error of {}: {} without overhead, {} with, {} with all terms\n",
        family.name(),
        milliseconds(without),
        milliseconds(with),
        milliseconds(extended)
    )
}
