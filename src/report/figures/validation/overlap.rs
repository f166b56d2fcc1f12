//! Overlap efficiency and effective communication time.

use super::{Figure, caption};
use crate::report::figures::Picture;
use crate::report::plot::{Axis, BarSeries, Bars, Look, Quantity, Shape};
use crate::validate::analysis::Validation;
use crate::validate::analysis::overlap::Overlap;

pub(super) const FIGURE: Figure = Figure {
    name: "overlap-measured",
    about: "overlap efficiency, measured and predicted, and effective communication time of each strategy",
    draw,
};

fn draw(found: &Validation) -> Result<Vec<Picture>, String> {
    if found.overlap.is_empty() {
        return Err(
            "it needs the unsplit GEMM and the sequential reference of the same rounds".to_owned(),
        );
    }
    let series = |all: &[&Overlap], name: &str, nth: usize, value: fn(&Overlap) -> f64| BarSeries {
        name: name.to_owned(),
        look: Look::nth(nth),
        values: all.iter().map(|overlap| value(overlap)).collect(),
        intervals: Vec::new(),
    };
    let names = |all: &[&Overlap]| all.iter().map(|overlap| overlap.strategy.clone()).collect();
    let claimed: Vec<&Overlap> = found.overlap.iter().filter(|o| o.claimed > 0).collect();
    let mut pictures = Vec::new();
    if !claimed.is_empty() {
        let bars = Bars {
            caption: caption(
                found,
                "How much of the communication is hidden",
                "Overlap efficiency, median over cases whose 95 % interval is at most 10 points wide; 100 % hides all of it",
            ),
            groups: names(&claimed),
            series: vec![
                series(&claimed, "measured", 0, |o| {
                    o.efficiency.unwrap_or(f64::NAN)
                }),
                series(&claimed, "predicted", 1, |o| {
                    o.predicted.unwrap_or(f64::NAN)
                }),
            ],
            axis: Axis::linear("overlap efficiency", Quantity::Share),
            reference: Some((0.0, "copy engine, then GEMM".to_owned())),
            shape: Shape::Dots,
        };
        pictures.push(Picture {
            stem: "overlap-efficiency".to_owned(),
            svg: bars.draw(),
        });
    }
    let all: Vec<&Overlap> = found.overlap.iter().collect();
    let bars = Bars {
        caption: caption(
            found,
            "What communication costs on top of the GEMM",
            "Effective communication time T − T(unsplit GEMM) of the same rounds, median over cases",
        ),
        groups: names(&all),
        series: vec![series(&all, "measured", 0, |overlap| overlap.ect)],
        axis: Axis::from_zero("effective communication time", Quantity::Seconds),
        reference: None,
        shape: Shape::Rows,
    };
    pictures.push(Picture {
        stem: "overlap-ect".to_owned(),
        svg: bars.draw(),
    });
    Ok(pictures)
}
