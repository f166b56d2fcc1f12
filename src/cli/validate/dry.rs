//! What would be measured.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::{ValidateArgs, Wanted, duration};
use crate::cli::error::Failure;
use crate::cli::output::Format;
use crate::report::grid::{Grid, clean};
use crate::report::list::List;
use crate::validate::measure::Estimate;

const GIB: f64 = (1_u64 << 30) as f64;

/// What the groups of a grid take together.
#[derive(Default)]
struct Sum {
    groups: usize,
    performed: usize,
    skipped: usize,
    memory: u64,
    seconds: f64,
}

impl Sum {
    fn add(&mut self, estimate: &Estimate) {
        self.groups += 1;
        self.performed += estimate.performed;
        self.skipped += estimate.skipped.len();
        self.memory = self.memory.max(estimate.memory);
        self.seconds += estimate.seconds;
    }

    fn cells(&self, name: &str) -> Vec<String> {
        vec![
            clean(name),
            self.groups.to_string(),
            self.performed.to_string(),
            self.skipped.to_string(),
            format!("{:.1} GiB", self.memory as f64 / GIB),
            format!("{:.0} s", self.seconds),
        ]
    }
}

pub fn run(args: &ValidateArgs, wanted: &Wanted) -> Result<(), Failure> {
    if let Some(budget) = args.seconds {
        ends_within(wanted, budget.as_secs_f64())?;
    }
    match args.output.format {
        Format::Table if wanted.chosen.is_empty() => {
            let count = wanted.groups.len();
            args.output.draw(&format!(
                "nothing to measure: none of {count} groups is left\n"
            ))?;
        }
        Format::Table => {
            let text = table(args, wanted) + &words(wanted);
            args.output.draw(&(text + &commands(args, wanted)))?;
        }
        _ => args.output.list(&list(wanted), &Grid::default())?,
    }
    wanted.fits()
}

/// Refuses groups that no command of `budget` seconds begins.
fn ends_within(wanted: &Wanted, budget: f64) -> Result<(), Failure> {
    let both = wanted.chosen.iter().zip(&wanted.estimates);
    let long: Vec<String> = (both.filter(|(_, estimate)| estimate.seconds > budget))
        .map(|(&index, estimate)| {
            let group = &wanted.groups[index].group;
            format!("\n  {group} takes about {:.0} s", estimate.seconds)
        })
        .collect();
    match long.is_empty() {
        true => Ok(()),
        false => Err(Failure::Input(format!(
            "error: {} of {} groups take longer than `--seconds {budget}`{}\n  help: give more seconds, or fewer `--rounds`",
            long.len(),
            wanted.chosen.len(),
            long.concat()
        ))),
    }
}

/// How often the command has to be given with `--seconds`: a group begins where it ends in time.
fn commands(args: &ValidateArgs, wanted: &Wanted) -> String {
    let Some(budget) = args.seconds else {
        return String::new();
    };
    let mut sums: Vec<Sum> = Vec::new();
    for estimate in &wanted.estimates {
        let begun = sums.last().map(|sum| sum.seconds);
        if begun.is_none_or(|begun| begun + estimate.seconds > budget.as_secs_f64()) {
            sums.push(Sum::default());
        }
        if let Some(sum) = sums.last_mut() {
            sum.add(estimate);
        }
    }
    let mut grid = columns("command");
    for (index, sum) in sums.iter().enumerate() {
        grid.row(sum.cells(&format!("{} of {}", index + 1, sums.len())));
    }
    format!(
        "\nthe same command, given {} × with `--seconds {:.0}` (each goes on where the one before stopped):\n\n{}",
        sums.len(),
        budget.as_secs_f64(),
        grid.draw(&args.output.look())
    )
}

/// The columns of [`Sum::cells`].
fn columns(name: &'static str) -> Grid {
    Grid::default()
        .left(name, 0)
        .right("groups", 0)
        .right("cases", 0)
        .right("skipped", 1)
        .right("memory of a GPU", 0)
        .right("time", 0)
}

/// By grid.
fn table(args: &ValidateArgs, wanted: &Wanted) -> String {
    let mut sums: BTreeMap<u32, Sum> = BTreeMap::new();
    let mut all = Sum::default();
    for (&index, estimate) in wanted.chosen.iter().zip(&wanted.estimates) {
        sums.entry(wanted.groups[index].grid)
            .or_default()
            .add(estimate);
        all.add(estimate);
    }
    let mut grid = columns("grid");
    for (index, sum) in &sums {
        grid.row(sum.cells(&wanted.experiment.grids[*index as usize].name));
    }
    grid.row(all.cells("all"));
    grid.draw(&args.output.look())
}

/// The largest group, the time, and why cases are skipped.
fn words(wanted: &Wanted) -> String {
    let measure = &wanted.experiment.measure;
    let both = wanted.chosen.iter().zip(&wanted.estimates);
    let largest = both.clone().max_by_key(|(_, estimate)| estimate.memory);
    let mut text = format!(
        "{} rounds, each measurement after a rest and {} ms of heating: about {} on {} GPUs\n",
        measure.rounds,
        measure.warm.as_secs_f64() * 1e3,
        duration(wanted.seconds()),
        wanted.gpus()
    );
    if let Some((&index, estimate)) = largest {
        text += &format!(
            "most memory: {:.1} GiB of a GPU for `{}`\n",
            estimate.memory as f64 / GIB,
            wanted.groups[index].group
        );
    }
    let mut reasons: BTreeMap<(&str, &str), usize> = BTreeMap::new();
    for (_, estimate) in both {
        for (subject, reason) in &estimate.skipped {
            *reasons.entry((subject, reason)).or_default() += 1;
        }
    }
    for ((subject, reason), count) in reasons {
        text += &format!("skipped {count} ×: {}: {}\n", clean(subject), clean(reason));
    }
    text
}

/// By group.
fn list(wanted: &Wanted) -> List {
    let mut list = List::new(&[
        "group",
        "grid",
        "cases",
        "skipped",
        "memory_bytes",
        "seconds",
    ]);
    for (&index, estimate) in wanted.chosen.iter().zip(&wanted.estimates) {
        let planned = &wanted.groups[index];
        let skipped = estimate.skipped.iter();
        let skipped: Vec<Value> = skipped
            .map(|(subject, reason)| json!(format!("{subject}: {reason}")))
            .collect();
        list.row(vec![
            json!(planned.group.to_string()),
            json!(wanted.experiment.grids[planned.grid as usize].name),
            json!(estimate.performed),
            json!(skipped),
            json!(estimate.memory),
            json!(estimate.seconds),
        ]);
    }
    list
}
