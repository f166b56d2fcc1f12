//! Which strategy the selector chose where which was the fastest.

use super::{Figure, Picture, caption, one};
use crate::experiment::analysis::Analysis;
use crate::report::plot::Confusion;

pub(super) const FIGURE: Figure = Figure {
    name: "confusion",
    about: "strategies chosen against the fastest ones, on unseen cases",
    draw,
};

fn draw(analysis: &Analysis) -> Result<Vec<Picture>, String> {
    let Some(choices) = analysis.choices(true) else {
        return Err("it needs fused operators for which the selector can choose".to_owned());
    };
    let matrix = analysis.confusion(true);
    let rows = matrix.counts.iter();
    let share = |count: usize| 100.0 * count as f64 / choices.cases as f64;
    let confusion = Confusion {
        caption: caption(
            analysis,
            format!(
                "The selector chooses the fastest that it can, or one within 1 %, in {:.1} % of unseen \
                 cases",
                share(choices.right)
            ),
            format!(
                "{} of {} within 1 %, {} strictly fastest; regret {:.2} % on average, {:.1} % at most. \
                 Among everything simulated: {} within 1 %, regret {:.2} % on average, {:.1} % at most",
                choices.right,
                choices.cases,
                choices.strict,
                100.0 * choices.mean_regret,
                100.0 * choices.most_regret,
                choices.any_right,
                100.0 * choices.any_mean,
                100.0 * choices.any_most
            ),
        ),
        rows: "fastest in the simulator".to_owned(),
        columns: "chosen".to_owned(),
        names: matrix
            .classes
            .iter()
            .map(|class| (*class).to_owned())
            .collect(),
        counts: rows
            .map(|row| row.iter().map(|count| *count as u64).collect())
            .collect(),
    };
    Ok(one("confusion", confusion.draw()))
}
