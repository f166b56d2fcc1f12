//! Speed-ups by strategy, measured and predicted.

use super::{Figure, caption};
use crate::experiment::analysis::operator_title;
use crate::operator::Kind;
use crate::report::figures::Picture;
use crate::report::plot::{Axis, BarSeries, Bars, Look, Quantity, Shape};
use crate::validate::analysis::Validation;
use crate::validate::analysis::speed::Gain;

pub(super) const FIGURE: Figure = Figure {
    name: "speed-up-measured",
    about: "speed-up of each strategy over the copy engine and then the same GEMM, measured and predicted, one picture per operator",
    draw,
};

fn draw(found: &Validation) -> Result<Vec<Picture>, String> {
    let gains = &found.speed.strategies;
    let picture = |kind: Kind| {
        let here: Vec<&Gain> = gains.iter().filter(|gain| gain.operator == kind).collect();
        let groups = here.iter().map(|gain| gain.groups).max()?;
        let series = |name: &str, nth: usize, value: fn(&Gain) -> f64| BarSeries {
            name: name.to_owned(),
            look: Look::nth(nth),
            values: here.iter().map(|gain| value(gain)).collect(),
            intervals: Vec::new(),
        };
        let bars = Bars {
            caption: caption(
                found,
                format!("Speed-up of {}", operator_title(kind)),
                format!(
                    "Over the copy engine and then the same GEMM, geometric mean over up to {groups} groups; the fastest setting of each strategy"
                ),
            ),
            groups: here.iter().map(|gain| gain.of.clone()).collect(),
            series: vec![
                series("measured", 0, |gain| gain.measured),
                series("predicted", 1, |gain| gain.predicted.unwrap_or(f64::NAN)),
            ],
            axis: Axis::linear("speed-up", Quantity::Factor),
            reference: Some((1.0, "copy engine, then GEMM".to_owned())),
            shape: Shape::Dots,
        };
        Some(Picture {
            stem: format!("speed-up-{kind}"),
            svg: bars.draw(),
        })
    };
    let pictures: Vec<Picture> = Kind::ALL.into_iter().filter_map(picture).collect();
    match pictures.is_empty() {
        true => Err("it needs the reference of the copy engine and then the same GEMM".to_owned()),
        false => Ok(pictures),
    }
}
