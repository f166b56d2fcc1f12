//! Errors by strategy.

use super::{Figure, caption, series_of};
use crate::report::figures::{Picture, one};
use crate::report::plot::{Axis, Bars, Quantity, Shape};
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
        let here = absolute
            .iter()
            .map(|one| errors.iter().find(|errors| errors.name == one.name))
            .map(|found| found.map(|errors| (errors.mape, errors.mape_interval)));
        series_of(name.to_owned(), nth, here)
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
