//! What `duet sensitivity` prints: what each capacity is worth.

use serde::Serialize;

use super::grid::{Grid, Look, Paint, bar, clean, paint, wrap};
use super::json::OperatorJson;
use super::table::{percent, time};
use super::{csv, json};
use crate::operator::Operator;

/// One capacity made larger.
#[derive(Clone, Debug, PartialEq)]
pub struct Gain {
    /// What grew, e.g. `nvlink bandwidth`.
    pub capacity: String,
    /// The overrides that double it, as `--set` takes them.
    pub sets: Vec<String>,
    /// Makespan with the capacity times `1 + step` \[s\].
    pub step: f64,
    /// `d ln(makespan) / d ln(capacity)` by that step: −0.4 says that 1 % more capacity saves
    /// 0.4 % of the time.
    pub elasticity: f64,
    /// Makespan of the same strategy with the capacity doubled \[s\].
    pub doubled: f64,
    /// Fastest strategy with the capacity doubled, and its makespan \[s\].
    pub best_doubled: (String, f64),
}

/// All capacities of one machine under one strategy.
#[derive(Clone, Debug, PartialEq)]
pub struct Sensitivity {
    pub topology: String,
    pub operator: Operator,
    pub launch: String,
    pub strategy: String,
    /// Makespan as the machine is \[s\].
    pub makespan: f64,
    /// Makespan of the fastest strategy as the machine is \[s\].
    pub fastest: f64,
    /// Relative growth of the small step.
    pub step: f64,
    /// The largest saving by doubling first.
    pub gains: Vec<Gain>,
}

#[derive(Serialize)]
struct GainJson<'a> {
    capacity: &'a str,
    set_doubled: &'a [String],
    makespan_step_s: f64,
    elasticity: f64,
    makespan_doubled_s: f64,
    saving_doubled: f64,
    best_doubled: &'a str,
    best_makespan_doubled_s: f64,
}

#[derive(Serialize)]
struct SensitivityJson<'a> {
    schema: &'static str,
    topology: &'a str,
    operator: OperatorJson,
    launch: &'a str,
    strategy: &'a str,
    makespan_s: f64,
    step: f64,
    capacities: Vec<GainJson<'a>>,
}

impl Sensitivity {
    fn saving(&self, doubled: f64) -> f64 {
        if self.makespan > 0.0 {
            1.0 - doubled / self.makespan
        } else {
            0.0
        }
    }

    /// Whether the table would print zeros: less than half of its last digit, and the fastest
    /// strategy no faster either.
    fn without_effect(&self, gain: &Gain) -> bool {
        let same = |makespan: f64, before: f64| (makespan - before).abs() < 5e-6 * before;
        same(gain.step, self.makespan)
            && same(gain.doubled, self.makespan)
            && same(gain.best_doubled.1, self.fastest)
    }
}

/// `duet sensitivity --format json`.
///
/// # Errors
/// As [`serde_json::to_string`].
pub fn json(sensitivity: &Sensitivity) -> Result<String, serde_json::Error> {
    json::pretty(&SensitivityJson {
        schema: "duet-sensitivity-1",
        topology: &sensitivity.topology,
        operator: (&sensitivity.operator).into(),
        launch: &sensitivity.launch,
        strategy: &sensitivity.strategy,
        makespan_s: sensitivity.makespan,
        step: sensitivity.step,
        capacities: sensitivity
            .gains
            .iter()
            .map(|gain| GainJson {
                capacity: &gain.capacity,
                set_doubled: &gain.sets,
                makespan_step_s: gain.step,
                elasticity: gain.elasticity,
                makespan_doubled_s: gain.doubled,
                saving_doubled: sensitivity.saving(gain.doubled),
                best_doubled: &gain.best_doubled.0,
                best_makespan_doubled_s: gain.best_doubled.1,
            })
            .collect(),
    })
}

/// `duet sensitivity --format csv`.
pub fn csv(sensitivity: &Sensitivity) -> String {
    let header = [
        "topology",
        "strategy",
        "capacity",
        "makespan_s",
        "makespan_step_s",
        "elasticity",
        "makespan_doubled_s",
        "saving_doubled",
        "best_doubled",
        "best_makespan_doubled_s",
    ];
    let rows = sensitivity.gains.iter().map(|gain| {
        [
            sensitivity.topology.clone(),
            sensitivity.strategy.clone(),
            gain.capacity.clone(),
            csv::number(sensitivity.makespan),
            csv::number(gain.step),
            csv::number(gain.elasticity),
            csv::number(gain.doubled),
            csv::number(sensitivity.saving(gain.doubled)),
            gain.best_doubled.0.clone(),
            csv::number(gain.best_doubled.1),
        ]
    });
    csv::write(header, rows)
}

/// `duet sensitivity` for people.
pub fn table(sensitivity: &Sensitivity, look: &Look) -> String {
    let title = format!(
        "{} of {} on {}: {}",
        paint(&clean(&sensitivity.strategy), Paint::Bold),
        sensitivity.operator,
        clean(&sensitivity.topology),
        paint(&time(sensitivity.makespan), Paint::Bold),
    );
    let mut out = wrap(&title, 0, 2, look.width);
    out.push('\n');
    let step = percent(sensitivity.step);
    let mut grid = Grid::default()
        .left("upgrade this first", 0)
        .right(format!("{step} more"), 1)
        .right("2x", 0)
        .right("saves", 0)
        .left("", 4)
        .left("fastest at 2x", 2)
        .right("", 2);
    let (still, moved): (Vec<&Gain>, Vec<&Gain>) = sensitivity
        .gains
        .iter()
        .partition(|gain| sensitivity.without_effect(gain));
    for gain in moved {
        let saving = sensitivity.saving(gain.doubled);
        let saves = percent(saving);
        let small = gain.step / sensitivity.makespan - 1.0;
        grid.row(vec![
            clean(&gain.capacity),
            match (small * 1e5).round() / 1e3 {
                0.0 => "–".to_owned(),
                percent => format!("{percent:+.3} %"),
            },
            time(gain.doubled),
            match saving {
                s if s > 5e-4 => paint(&saves, Paint::Good),
                s if s < -5e-4 => paint(&saves, Paint::Bad),
                _ => paint(&saves, Paint::Dim),
            },
            paint(&bar(saving, 12), Paint::Accent),
            clean(&gain.best_doubled.0),
            time(gain.best_doubled.1),
        ]);
    }
    out.push_str(&grid.draw(look));
    if !still.is_empty() {
        let names: Vec<String> = still.iter().map(|gain| clean(&gain.capacity)).collect();
        let text = format!("no effect: {}", names.join(", "));
        out.push('\n');
        out.push_str(&wrap(&text, 0, 2, look.width));
    }
    out
}
