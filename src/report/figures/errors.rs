//! Mean absolute error of the closed forms with and without the overhead term.

use super::{Figure, Picture, caption, one};
use crate::experiment::analysis::models::VARIANTS;
use crate::experiment::analysis::{Analysis, Family};
use crate::report::plot::{Axis, BarSeries, Bars, Look, Quantity, Shape};

pub(super) const FIGURE: Figure = Figure {
    name: "model-error",
    about: "mean absolute error of the closed forms on unseen cases, with and without overhead",
    draw,
};

fn draw(analysis: &Analysis) -> Result<Vec<Picture>, String> {
    let families = [Family::Decomposition, Family::Fusion];
    let families: Vec<Family> = families
        .into_iter()
        .filter(|family| {
            VARIANTS
                .iter()
                .any(|v| analysis.error(v, *family).is_some())
        })
        .collect();
    if families.is_empty() {
        return Err(
            "it needs fused operators, decomposed or fused, for the closed forms".to_owned(),
        );
    }
    let series = |(i, variant): (usize, &&str)| {
        let errors: Vec<_> = families
            .iter()
            .map(|f| analysis.error(variant, *f))
            .collect();
        let value = |e: &Option<&crate::experiment::analysis::models::Errors>| {
            e.map_or(f64::NAN, |e| e.mae)
        };
        BarSeries {
            name: variant.replace('-', " "),
            look: Look::nth(i),
            values: errors.iter().map(value).collect(),
            intervals: errors
                .iter()
                .map(|e| match e.and_then(|e| e.mae_interval) {
                    Some([low, high]) => (low, high),
                    None => (value(e), value(e)),
                })
                .collect(),
        }
    };
    let cases = analysis.train.iter().filter(|train| !**train).count();
    let bars = Bars {
        caption: caption(
            analysis,
            "Error of the closed forms, with and without the overhead term",
            format!(
                "Mean absolute error on {cases} cases that were not fitted on, with 95 % intervals; \
                 compass paper: a fusion's step as the paper prints it"
            ),
        ),
        groups: families
            .iter()
            .map(|family| family.name().to_owned())
            .collect(),
        series: VARIANTS.iter().enumerate().map(series).collect(),
        axis: Axis::from_zero("mean absolute error", Quantity::Seconds),
        reference: None,
        shape: Shape::Auto,
    };
    Ok(one("model-error", bars.draw()))
}
