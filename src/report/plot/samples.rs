//! One figure of each kind with plausible numbers, for tests.

use super::*;

fn caption(title: &str, subtitle: &str) -> Caption {
    Caption {
        title: title.to_owned(),
        subtitle: subtitle.to_owned(),
        source: "Source: duet run experiments/compass/experiment.yaml".to_owned(),
    }
}

/// Bandwidth of collectives against message size.
pub(super) fn bandwidth() -> Lines {
    let curve = |peak: f64, alpha: f64| {
        (16..=30)
            .map(|e| {
                let bytes = 2f64.powi(e);
                (bytes, bytes / (alpha + bytes / peak))
            })
            .collect::<Vec<_>>()
    };
    Lines {
        caption: caption(
            "All-gather bandwidth over PCIe with NVLink pairs",
            "a6000-pairs-8, 8 GPUs, against the simulator",
        ),
        x: Axis::log("message size", Quantity::Bytes),
        y: Axis::from_zero("bus bandwidth", Quantity::Rate),
        panels: vec![Panel {
            series: vec![
                Series::of("library", curve(20.5e9, 60e-6)),
                Series::of("ring", curve(21.2e9, 35e-6)),
                Series::of("double-ring", curve(41.0e9, 40e-6)),
                Series::of("direct", curve(7.4e9, 12e-6)),
            ],
            ..Panel::default()
        }],
        columns: 0,
        own_y: false,
        rules: vec![(24e9, "one PCIe link".to_owned())],
    }
}

/// f(d) with its optimum, for four shapes.
pub(super) fn decomposition() -> Lines {
    let panel = |title: &str, a: f64, b: f64, c: f64| {
        let f = |d: f64| a * d + b + c / d;
        let ds = (0..=6).map(|e| 2f64.powi(e));
        let best = ds
            .clone()
            .min_by(|x, y| f(*x).total_cmp(&f(*y)))
            .unwrap_or(1.0);
        let points: Vec<_> = ds.map(|d| (d, f(d))).collect();
        Panel {
            title: title.to_owned(),
            series: vec![
                Series {
                    band: points
                        .iter()
                        .map(|(d, t)| (*d, t * 0.95, t * 1.05))
                        .collect(),
                    markers: false,
                    ..Series::new("closed form ± 5%", Look::nth(0), points.clone())
                },
                Series::new(
                    "simulator",
                    Look::nth(1),
                    points
                        .iter()
                        .map(|(d, t)| (*d, t * (1.0 + 0.02 * d.ln().sin())))
                        .collect(),
                ),
            ],
            marks: vec![Mark {
                x: best,
                y: f(best),
                label: format!("d* = {best}"),
                marker: Marker::Star,
                colour: Colour::VERMILLION,
            }],
        }
    };
    Lines {
        caption: caption(
            "How many pieces: time against d, and the predicted optimum",
            "AG+GEMM on a6000-pairs-8, TP 8; closed form against the simulator",
        ),
        x: Axis::log2("pieces d", Quantity::Number),
        y: Axis::from_zero("time", Quantity::Seconds),
        panels: vec![
            panel("seq 1024, hidden 4096", 40e-6, 1.1e-3, 0.9e-3),
            panel("seq 4096, hidden 4096", 60e-6, 3.9e-3, 3.1e-3),
            panel("seq 8192, hidden 8192", 90e-6, 14e-3, 9e-3),
            panel("seq 16384, hidden 8192", 110e-6, 28e-3, 19e-3),
        ],
        columns: 0,
        own_y: true,
        rules: Vec::new(),
    }
}

/// Every sample as a file name and its SVG.
pub(super) fn all() -> Vec<(&'static str, String)> {
    vec![
        ("bandwidth", bandwidth().draw()),
        ("decomposition", decomposition().draw()),
    ]
}
