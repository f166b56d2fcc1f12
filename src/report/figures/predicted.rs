//! Predicted against simulated times, per form.

use super::{Figure, Picture, caption};
use crate::experiment::analysis::models::Model;
use crate::experiment::analysis::{Analysis, Family};
use crate::experiment::percent;
use crate::report::plot::{Axis, Cloud, Look, Quantity, Scatter};

pub(super) const FIGURE: Figure = Figure {
    name: "predicted",
    about: "predicted against simulated times on unseen cases, one picture per closed form",
    draw,
};

/// The forms drawn: the paper's and the accurate one, both with overhead.
const DRAWN: [(&str, &str); 2] = [
    ("compass", "The paper's closed form against the simulator"),
    ("extended", "The extended closed form against the simulator"),
];
/// Width of the band.
const BAND: f64 = 0.05;

fn draw(analysis: &Analysis) -> Result<Vec<Picture>, String> {
    let pictures = DRAWN.iter().filter_map(|(name, title)| {
        let model = analysis.model(name)?;
        let svg = picture(analysis, model, title)?;
        Some(Picture {
            stem: format!("predicted-{name}"),
            svg,
        })
    });
    let pictures: Vec<Picture> = pictures.collect();
    match pictures.is_empty() {
        true => Err("it needs fused operators that the closed forms know".to_owned()),
        false => Ok(pictures),
    }
}

fn picture(analysis: &Analysis, model: &Model, title: &str) -> Option<String> {
    let mut clouds: Vec<Cloud> = Vec::new();
    for (i, case) in analysis.main_cases().enumerate() {
        for (run, predicted) in case.runs.iter().zip(&model.predictions[i]) {
            let Some(predicted) = predicted.filter(|_| !analysis.train[i] && run.is_usual()) else {
                continue;
            };
            let point = (run.seconds, predicted);
            match clouds.iter_mut().find(|cloud| cloud.name == run.class()) {
                Some(cloud) => cloud.points.push(point),
                None => clouds.push(Cloud {
                    name: run.class().to_owned(),
                    look: Look::of(run.class()),
                    points: vec![point],
                }),
            }
        }
    }
    if clouds.is_empty() {
        return None;
    }
    let errors = [Family::Decomposition, Family::Fusion].into_iter();
    let errors = errors.filter_map(|family| {
        let errors = analysis.error(model.name, family)?;
        Some(format!("{} {}", family.name(), percent(errors.mape)))
    });
    let errors: Vec<String> = errors.collect();
    let scatter = Scatter {
        caption: caption(
            analysis,
            title,
            format!(
                "Cases not fitted on, default parameters; mean relative error {}; band ±{:.0} %",
                errors.join(", "),
                100.0 * BAND
            ),
        ),
        x: Axis::log("simulated time", Quantity::Seconds),
        y: Axis::log("predicted time", Quantity::Seconds),
        clouds,
        diagonal: Some(BAND),
    };
    Some(scatter.draw())
}
