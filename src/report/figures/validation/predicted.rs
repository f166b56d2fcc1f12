//! Simulated against measured times.

use super::{Figure, caption, class};
use crate::experiment::percent;
use crate::report::figures::{Picture, one};
use crate::report::plot::{Axis, Cloud, Look, Quantity, Scatter};
use crate::validate::analysis::Validation;
use crate::validate::analysis::errors::Dimension;

pub(super) const FIGURE: Figure = Figure {
    name: "predicted-measured",
    about: "simulated against measured times, all strategies whose ranks have a GPU each",
    draw,
};

/// Width of the band.
const BAND: f64 = 0.05;

fn draw(found: &Validation) -> Result<Vec<Picture>, String> {
    let mut clouds: Vec<Cloud> = Vec::new();
    for point in &found.points {
        let Some(simulated) = point.simulated else {
            continue;
        };
        let name = class(&point.strategy);
        let at = (point.measured, simulated);
        match clouds.iter_mut().find(|cloud| cloud.name == name) {
            Some(cloud) => cloud.points.push(at),
            None => clouds.push(Cloud {
                name: name.to_owned(),
                look: Look::of(name),
                points: vec![at],
            }),
        }
    }
    if clouds.is_empty() {
        return Err("it needs strategies that are measured and simulated".to_owned());
    }
    let all = found
        .absolute
        .iter()
        .find(|errors| errors.dimension == Dimension::All);
    let errors = all.map_or_else(String::new, |errors| {
        format!(
            "{} cases, mean absolute relative error {}; ",
            errors.cases,
            percent(errors.mape)
        )
    });
    let scatter = Scatter {
        caption: caption(
            found,
            "The simulator against real GPUs",
            format!("{errors}band ±{:.0} %", 100.0 * BAND),
        ),
        x: Axis::log("measured time", Quantity::Seconds),
        y: Axis::log("simulated time", Quantity::Seconds),
        clouds,
        diagonal: Some(BAND),
    };
    Ok(one("predicted-measured", scatter.draw()))
}
