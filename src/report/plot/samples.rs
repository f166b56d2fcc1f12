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

/// Names of the strategies, fastest communication last.
const STRATEGIES: [&str; 5] = [
    "sequential",
    "interdecom",
    "fusion-alltoall",
    "fusion-ring",
    "fusion-double-ring",
];

/// A sequence of numbers in 0..1 that is always the same.
fn noise(seed: u64) -> impl FnMut() -> f64 {
    let mut random = fastrand::Rng::with_seed(seed);
    move || random.f64()
}

fn strategy_bars(groups: &[&str], values: &[[f64; 5]]) -> Vec<BarSeries> {
    STRATEGIES
        .iter()
        .enumerate()
        .map(|(i, name)| BarSeries {
            name: (*name).to_owned(),
            look: Look::of(name),
            values: values.iter().take(groups.len()).map(|row| row[i]).collect(),
            intervals: Vec::new(),
        })
        .collect()
}

/// Normalised time, few groups: upright bars.
pub(super) fn normalised() -> Bars {
    let groups = ["AG+GEMM TP 4", "AG+GEMM TP 8", "GEMM+RS TP 4"];
    let values = [
        [1.0, 0.72, 0.95, 0.66, 0.58],
        [1.0, 0.68, 1.31, 0.74, f64::NAN],
        [1.0, 0.81, 1.12, 0.79, 0.69],
    ];
    Bars {
        caption: caption(
            "Time of each strategy, relative to no overlap",
            "Geometric mean over 72 shapes, against the simulator; lower is better",
        ),
        series: strategy_bars(&groups, &values),
        groups: groups.map(str::to_owned).to_vec(),
        axis: Axis::from_zero("time relative to sequential", Quantity::Number),
        reference: Some((1.0, "sequential".to_owned())),
        shape: Shape::Auto,
    }
}

/// Speed-up by sequence length: too many values to stand upright.
pub(super) fn speedup() -> Bars {
    let groups = ["512", "1024", "2048", "4096", "8192", "16384"];
    let mut next = noise(3);
    let mut values = groups.map(|_| [1.0; 5].map(|one: f64| one + 0.8 * next()));
    for row in &mut values {
        row[0] = 1.0; // Sequential over itself.
    }
    Bars {
        caption: caption(
            "What overlap buys, by sequence length",
            "a6000-pairs-8, hidden size 8192, against the simulator",
        ),
        series: strategy_bars(&groups, &values),
        groups: groups.map(|g| format!("{g} tokens")).to_vec(),
        axis: Axis::from_zero("speed-up over sequential", Quantity::Factor),
        reference: Some((1.0, "sequential".to_owned())),
        shape: Shape::Auto,
    }
}

/// The same as dots.
pub(super) fn dots() -> Bars {
    Bars {
        shape: Shape::Dots,
        axis: Axis::linear("speed-up over sequential", Quantity::Factor),
        ..speedup()
    }
}

/// Errors with and without a term.
pub(super) fn errors() -> Bars {
    let series = |name: &str, look, values: [f64; 2]| BarSeries {
        name: name.to_owned(),
        look,
        values: values.to_vec(),
        intervals: values.iter().map(|v| (v * 0.86, v * 1.17)).collect(),
    };
    Bars {
        caption: caption(
            "The overhead term pays",
            "Mean absolute error of the closed forms against the simulator, with 95% intervals",
        ),
        groups: vec!["decomposition".to_owned(), "fusion".to_owned()],
        series: vec![
            series("without overhead", Look::NEUTRAL, [5.43e-3, 10.87e-3]),
            series("with overhead", Look::nth(0), [0.96e-3, 2.66e-3]),
        ],
        axis: Axis::from_zero("mean absolute error", Quantity::Seconds),
        reference: None,
        shape: Shape::Rows,
    }
}

/// Predicted against simulated.
pub(super) fn scatter() -> Scatter {
    let mut next = noise(7);
    let mut cloud = |name: &str, spread: f64| Cloud {
        name: name.to_owned(),
        look: Look::of(name),
        points: (0..72)
            .map(|_| {
                let time = 10f64.powf(-4.0 + 2.6 * next());
                (time, time * (1.0 + spread * (next() - 0.45)))
            })
            .collect(),
    };
    Scatter {
        caption: caption(
            "Closed forms follow the simulator",
            "288 cases on a6000-pairs-4 and -8; parameters fitted on a disjoint third",
        ),
        x: Axis::log("simulated time", Quantity::Seconds),
        y: Axis::log("predicted time", Quantity::Seconds),
        clouds: vec![
            cloud("sequential", 0.02),
            cloud("interdecom", 0.2),
            cloud("fusion-ring", 0.12),
            cloud("fusion-double-ring", 0.15),
        ],
        diagonal: Some(0.05),
    }
}

/// Winner over sequence length and hidden size.
pub(super) fn winners() -> CategoryMap {
    let hidden = ["2048", "2560", "4096", "5120", "6144", "8192", "12288"];
    let seq = ["512", "1024", "2048", "4096", "8192", "16384"];
    let panel = |title: &str, turn: usize| MapPanel {
        title: title.to_owned(),
        cells: (0..hidden.len())
            .map(|row| {
                (0..seq.len())
                    .map(|column| {
                        let at = row + 2 * column + turn;
                        let category = [0, 1, 1, 3, 3, 4, 4, 4, 1, 1, 4, 2, 4, 1, 1, 4][at % 16];
                        let gain = 1.0 + at as f64 * 0.05;
                        (at != 9).then(|| Cell {
                            category,
                            text: format!("{gain:.1}×"),
                        })
                    })
                    .collect()
            })
            .collect(),
    };
    CategoryMap {
        caption: caption(
            "Which strategy is fastest where",
            "a6000-pairs-8, against the simulator",
        ),
        texts: "in each cell its speed-up over sequential".to_owned(),
        x_label: "sequence length (tokens)".to_owned(),
        y_label: "hidden size".to_owned(),
        x: seq.map(str::to_owned).to_vec(),
        y: hidden.map(str::to_owned).to_vec(),
        categories: STRATEGIES
            .map(|name| Category {
                name: name.to_owned(),
                look: Look::of(name),
            })
            .to_vec(),
        panels: vec![
            panel("AG+GEMM, TP 4", 0),
            panel("AG+GEMM, TP 8", 1),
            panel("GEMM+RS, TP 4", 2),
            panel("GEMM+RS, TP 8", 3),
        ],
        columns: 0,
    }
}

/// Chosen against fastest.
pub(super) fn confusion() -> Confusion {
    Confusion {
        caption: caption(
            "The selector picks the fastest strategy in 280 of 288 cases",
            "Share of each row; ties within 1% count as right. Against the simulator",
        ),
        rows: "fastest in the simulator".to_owned(),
        columns: "chosen by the closed forms".to_owned(),
        names: STRATEGIES.map(str::to_owned).to_vec(),
        counts: vec![
            vec![12, 0, 0, 0, 0],
            vec![1, 117, 0, 2, 1],
            vec![0, 0, 0, 0, 0],
            vec![0, 1, 0, 40, 1],
            vec![0, 2, 0, 0, 111],
        ],
    }
}

/// The price of fixed d = 4.
pub(super) fn penalty() -> Histogram {
    let mut next = noise(11);
    let values: Vec<f64> = (0..144).map(|_| (next() * next()).powi(2) * 1.9).collect();
    let mean = values.iter().sum::<f64>() / 144.0;
    let most = values.iter().copied().fold(0.0, f64::max);
    Histogram {
        caption: caption(
            "What always cutting into four pieces costs",
            "Time over that of the best d, 144 cases, against the simulator",
        ),
        axis: Axis::from_zero("penalty of d = 4", Quantity::Share),
        samples: vec![Sample {
            name: "d = 4".to_owned(),
            look: Look::of("interdecom"),
            values,
        }],
        form: Form::Bins(20),
        rules: vec![
            (mean, format!("mean {}", Quantity::Share.show(mean))),
            (most, format!("largest {}", Quantity::Share.show(most))),
        ],
    }
}

/// Regret of two choosers as cumulative shares.
pub(super) fn regret() -> Histogram {
    let mut next = noise(5);
    let mut sample = |name: &str, look, size: f64| Sample {
        name: name.to_owned(),
        look,
        values: (0..288).map(|_| (next() * next()).powi(3) * size).collect(),
    };
    Histogram {
        caption: caption(
            "Regret of the choice",
            "Time of the chosen strategy over the fastest, 288 cases, against the simulator",
        ),
        axis: Axis::from_zero("regret", Quantity::Share),
        samples: vec![
            sample("with overhead", Look::nth(0), 0.05),
            sample("without overhead", Look::nth(1), 0.6),
        ],
        form: Form::Cumulative,
        rules: vec![(0.05, "5%".to_owned())],
    }
}

/// Every sample as a file name and its SVG.
pub(super) fn all() -> Vec<(&'static str, String)> {
    vec![
        ("bandwidth", bandwidth().draw()),
        ("decomposition", decomposition().draw()),
        ("normalised", normalised().draw()),
        ("speedup", speedup().draw()),
        ("dots", dots().draw()),
        ("errors", errors().draw()),
        ("scatter", scatter().draw()),
        ("winners", winners().draw()),
        ("confusion", confusion().draw()),
        ("penalty", penalty().draw()),
        ("regret", regret().draw()),
    ]
}
