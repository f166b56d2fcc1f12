//! What holds for every chart kind.

use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};

use super::*;
use crate::report::png;

/// With `DUET_SAMPLES=FOLDER` writes the samples there, to be looked at.
#[test]
fn samples_become_bitmaps() {
    let folder = std::env::var_os("DUET_SAMPLES").map(std::path::PathBuf::from);
    for (name, svg) in samples::all() {
        let png = png::render(&svg, 1.5).unwrap();
        assert!(png.len() > 5000, "{name} is nearly blank");
        assert_eq!(png, png::render(&svg, 1.5).unwrap());
        if let Some(folder) = &folder {
            std::fs::write(folder.join(format!("{name}.svg")), svg).unwrap();
            std::fs::write(folder.join(format!("{name}.png")), png).unwrap();
        }
    }
}

#[test]
fn no_two_texts_touch_and_none_leaves_the_page() {
    for (name, svg) in samples::all() {
        assert_eq!(inspect::faults(&svg), Vec::<String>::new(), "{name}");
    }
}

#[test]
fn the_same_data_give_the_same_bytes() {
    assert_eq!(samples::all(), samples::all());
}

#[test]
fn what_is_said_can_be_read() {
    let text = |svg: &str| {
        let words = inspect::words(svg).unwrap();
        words.into_iter().map(|word| word.text).collect::<Vec<_>>()
    };
    let bandwidth = text(&samples::bandwidth().draw());
    for expected in [
        "64 KiB",
        "1 GiB",
        "bus bandwidth (GB/s)",
        "double-ring",
        "one PCIe link",
        "a6000-pairs-8, 8 GPUs, against the simulator",
    ] {
        assert!(
            bandwidth.iter().any(|t| t == expected),
            "{expected}: {bandwidth:?}"
        );
    }
    let errors = text(&samples::errors().draw());
    for expected in ["mean absolute error (ms)", "5.43", "0.96", "fusion"] {
        assert!(
            errors.iter().any(|t| t == expected),
            "{expected}: {errors:?}"
        );
    }
    let confusion = text(&samples::confusion().draw());
    for expected in ["117", "96.7%", "of 121", "chosen by the closed forms →"] {
        assert!(
            confusion.iter().any(|t| t == expected),
            "{expected}: {confusion:?}"
        );
    }
}

#[test]
fn words_are_escaped() {
    let mut chart = samples::bandwidth();
    chart.caption.title = "a < b & \"c\" > 'd' \u{0} \u{1b} \u{ffff} é".to_owned();
    chart.panels[0].series[0].name = "</text><script>".to_owned();
    let words = inspect::words(&chart.draw()).unwrap();
    assert!(words.iter().any(|w| w.text == "</text><script>"));
    assert!(
        words[0].text.starts_with("a < b & \"c\" > 'd'"),
        "{words:?}"
    );
}

#[test]
fn tables_of_widths_agree_with_the_bundled_font() {
    let all: String = (' '..='~')
        .chain("°±²³µ·×÷αβλπ–—‘’“”…←→−≈≤≥★✓".chars())
        .collect();
    for bold in [false, true] {
        for c in all.chars().filter(|c| !c.is_whitespace()) {
            let weight = if bold { "bold" } else { "normal" };
            // H stands on both sides, so that the ink of the whole depends on the advance of c
            // alone; without kerning, as DejaVu Sans has some for pairs such as `H'`.
            let svg = |text: &str| {
                format!(
                    "<svg xmlns='http://www.w3.org/2000/svg' width='900' height='99'><text y='50' \
                     font-family='DejaVu Sans' font-size='100' font-weight='{weight}' \
                     style='font-kerning:none'>{text}</text></svg>"
                )
            };
            let ink = |text: &str| {
                let words = inspect::words(&svg(text)).unwrap();
                words[0].edges[2] - words[0].edges[0]
            };
            let escaped = c.to_string().replace('&', "&amp;").replace('<', "&lt;");
            let measured = ink(&format!("H{escaped}H")) - ink("HH");
            let table = text::width(&c.to_string(), 100.0, bold);
            assert!(
                (measured - table).abs() < 0.05,
                "{c} {bold}: {measured} {table}"
            );
        }
    }
}

/// Numbers of every kind of trouble.
fn trouble() -> impl Strategy<Value = f64> {
    prop_oneof![
        4 => -10.0..10.0f64,
        2 => Just(1.0),
        1 => prop::sample::select(vec![
            f64::NAN, f64::INFINITY, f64::NEG_INFINITY, 0.0, -0.0, 1e308, -1e308, 1e100, 1e-308,
            f64::MIN_POSITIVE / 2.0, 1e16, 1e16 + 2.0, 1e-12, 1.0 + f64::EPSILON,
        ]),
        1 => (-90.0..90.0f64).prop_map(|e| 10f64.powf(e)),
        1 => (-90.0..90.0f64).prop_map(|e| -10f64.powf(e)),
    ]
}

fn words() -> impl Strategy<Value = String> {
    prop_oneof![
        3 => "[a-z]{1,12}( [a-z]{1,12}){0,3}",
        1 => Just(String::new()),
        1 => "[ -~]{0,160}",
        1 => Just("W".repeat(200)),
    ]
}

fn axis() -> impl Strategy<Value = Axis> {
    let quantity = prop::sample::select(vec![
        Quantity::Number,
        Quantity::Bytes,
        Quantity::Seconds,
        Quantity::Rate,
        Quantity::Share,
        Quantity::Factor,
    ]);
    let spacing = prop::sample::select(vec![Spacing::Linear, Spacing::Log, Spacing::Log2]);
    let spans = prop::collection::vec(trouble(), 0..2);
    (words(), quantity, spacing, spans).prop_map(|(label, quantity, spacing, spans)| Axis {
        label,
        quantity,
        spacing,
        spans,
    })
}

/// Numbers and words to fill charts with.
#[derive(Clone, Debug)]
struct Mess {
    axes: (Axis, Axis),
    numbers: Vec<Vec<f64>>,
    words: Vec<String>,
    flags: (usize, bool, u64),
}

fn mess() -> impl Strategy<Value = Mess> {
    let numbers = prop::collection::vec(prop::collection::vec(trouble(), 0..8), 0..8);
    let words = prop::collection::vec(words(), 8);
    let flags = (0..8usize, any::<bool>(), any::<u64>());
    ((axis(), axis()), numbers, words, flags).prop_map(|(axes, numbers, words, flags)| Mess {
        axes,
        numbers,
        words,
        flags,
    })
}

impl Mess {
    fn caption(&self) -> Caption {
        Caption {
            title: self.words[0].clone(),
            subtitle: self.words[1].clone(),
            source: self.words[2].clone(),
        }
    }

    fn word(&self, index: usize) -> String {
        self.words[index % 8].clone()
    }

    fn points(row: &[f64]) -> Vec<(f64, f64)> {
        row.windows(2).map(|w| (w[0], w[1])).collect()
    }

    fn rules(&self) -> Vec<(f64, String)> {
        let firsts = self.numbers.iter().filter_map(|row| row.first());
        firsts
            .enumerate()
            .map(|(i, v)| (*v, self.word(i)))
            .collect()
    }

    /// One figure of each kind.
    fn draw(&self) -> Vec<String> {
        let (columns, flag, number) = self.flags;
        let series = || {
            self.numbers.iter().enumerate().map(|(i, row)| Series {
                band: row.windows(3).map(|w| (w[0], w[1], w[2])).collect(),
                markers: flag,
                ..Series::new(&self.word(i + 3), Look::nth(i), Self::points(row))
            })
        };
        let marks = self.numbers.iter().flat_map(|row| Self::points(row));
        let marks = marks.map(|(x, y)| Mark {
            x,
            y,
            label: self.word(4),
            marker: Marker::Star,
            colour: Colour::GREEN,
        });
        let one = Panel {
            title: self.word(5),
            series: series().collect(),
            marks: marks.collect(),
        };
        let each = series().map(|s| Panel {
            title: s.name.clone(),
            series: vec![s],
            marks: Vec::new(),
        });
        let lines = |panels: Vec<Panel>| Lines {
            caption: self.caption(),
            x: self.axes.0.clone(),
            y: self.axes.1.clone(),
            panels,
            columns,
            own_y: flag,
            rules: self.rules(),
        };
        let bars = |shape| Bars {
            caption: self.caption(),
            groups: self.words[..columns].to_vec(),
            series: self
                .numbers
                .iter()
                .enumerate()
                .map(|(i, row)| BarSeries {
                    name: self.word(i),
                    look: Look::nth(i),
                    values: row.clone(),
                    intervals: Self::points(row),
                })
                .collect(),
            axis: self.axes.0.clone(),
            reference: flag.then(|| (1.0, self.word(6))),
            shape,
        };
        let scatter = Scatter {
            caption: self.caption(),
            x: self.axes.0.clone(),
            y: self.axes.1.clone(),
            clouds: series()
                .map(|s| Cloud {
                    name: s.name,
                    look: s.look,
                    points: s.points,
                })
                .collect(),
            diagonal: flag.then_some(0.05),
        };
        let map = CategoryMap {
            caption: self.caption(),
            texts: self.word(6),
            x_label: self.word(3),
            y_label: self.word(4),
            x: self.words[..columns].to_vec(),
            y: self.words[..(columns + 3) % 8].to_vec(),
            categories: vec![Category {
                name: self.word(5),
                look: Look::nth(0),
            }],
            panels: self
                .numbers
                .iter()
                .map(|row| MapPanel {
                    title: self.word(7),
                    cells: row
                        .iter()
                        .map(|v| {
                            vec![v.is_finite().then(|| Cell {
                                category: v.abs() as usize,
                                text: self.word(2),
                            })]
                        })
                        .collect(),
                })
                .collect(),
            columns,
        };
        let confusion = Confusion {
            caption: self.caption(),
            rows: self.word(3),
            columns: self.word(4),
            names: self.words[..columns].to_vec(),
            counts: self
                .numbers
                .iter()
                .map(|row| row.iter().map(|v| v.to_bits() ^ number).collect())
                .collect(),
        };
        let histogram = |form| Histogram {
            caption: self.caption(),
            axis: self.axes.0.clone(),
            samples: self
                .numbers
                .iter()
                .enumerate()
                .map(|(i, row)| Sample {
                    name: self.word(i),
                    look: Look::nth(i),
                    values: row.clone(),
                })
                .collect(),
            form,
            rules: self.rules(),
        };
        vec![
            lines(vec![one]).draw(),
            lines(each.collect()).draw(),
            bars(Shape::Auto).draw(),
            bars(Shape::Rows).draw(),
            bars(Shape::Dots).draw(),
            scatter.draw(),
            map.draw(),
            confusion.draw(),
            histogram(Form::Bins(number as usize % 300)).draw(),
            histogram(Form::Cumulative).draw(),
        ]
    }
}

#[test]
fn any_data_give_a_picture_whose_texts_stand_apart() {
    let config = Config {
        cases: std::env::var("DUET_CASES").map_or(40, |n| n.parse().unwrap()),
        max_shrink_iters: 400,
        failure_persistence: None,
        ..Config::default()
    };
    let result = TestRunner::new_with_rng(
        config,
        proptest::test_runner::TestRng::deterministic_rng(
            proptest::test_runner::RngAlgorithm::ChaCha,
        ),
    )
    .run(&mess(), |mess| {
        for (kind, svg) in mess.draw().iter().enumerate() {
            let faults = inspect::faults(svg);
            prop_assert!(faults.is_empty(), "kind {kind}: {faults:?}");
        }
        Ok(())
    });
    if let Err(error) = result {
        panic!("{error}");
    }
}
