//! Errors by strategy.

use super::{Figure, caption};
use crate::report::figures::{Picture, one};
use crate::report::plot::{Axis, BarSeries, Bars, Look, Quantity, Shape};
use crate::validate::analysis::Validation;
use crate::validate::analysis::errors::{Dimension, Errors};

pub(super) const FIGURE: Figure = Figure {
    name: "error-strategies",
    about: "mean relative error of simulated times by strategy, absolute and over the unsplit GEMM",
    draw,
};

fn draw(found: &Validation) -> Result<Vec<Picture>, String> {
    let of = |errors: &'_ [Errors]| -> Vec<Errors> {
        let errors = errors.iter();
        errors
            .filter(|e| e.dimension == Dimension::Strategy)
            .cloned()
            .collect()
    };
    let (absolute, relative) = (of(&found.absolute), of(&found.relative));
    if absolute.is_empty() {
        return Err("it needs strategies that are measured and simulated".to_owned());
    }
    let series = |name: &str, nth: usize, errors: &[Errors]| {
        let here: Vec<Option<&Errors>> = (absolute.iter())
            .map(|one| errors.iter().find(|errors| errors.name == one.name))
            .collect();
        let value = |errors: &Option<&Errors>| errors.map_or(f64::NAN, |errors| errors.mape);
        let interval = |errors: &Option<&Errors>| {
            let ends = errors.and_then(|errors| errors.mape_interval);
            ends.map_or((value(errors), value(errors)), |[low, high]| (low, high))
        };
        BarSeries {
            name: name.to_owned(),
            look: Look::nth(nth),
            values: here.iter().map(value).collect(),
            intervals: here.iter().map(interval).collect(),
        }
    };
    let bars = Bars {
        caption: caption(
            found,
            "Error of the simulator, by strategy",
            "Mean of |simulated − measured|/measured with 95 % intervals over groups; absolute, and of T over the unsplit GEMM",
        ),
        groups: absolute.iter().map(|errors| errors.name.clone()).collect(),
        series: vec![
            series("time", 0, &absolute),
            series("time over unsplit GEMM", 1, &relative),
        ],
        axis: Axis::from_zero("mean relative error", Quantity::Share),
        reference: None,
        shape: Shape::Rows,
    };
    Ok(one("error-strategies", bars.draw()))
}
