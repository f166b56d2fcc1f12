//! Reading a row of measured times.

use std::collections::BTreeSet;

use super::super::cells::{Line, micros};
use super::super::key::Case;
use super::{Conditions, KEY, ROUNDING, Row, key_cells, median};
use crate::gpu::campaign::library_name;
use crate::gpu::plan::Library;
use crate::gpu::timing::Summary;
use crate::input::Diagnostics;

/// Reads the case and holds the other columns of the key against it.
pub(in crate::validate) fn read_case(line: &Line<'_, '_>, found: &mut Diagnostics) -> Option<Case> {
    let case: Case = line.explained("case", found)?;
    let written = key_cells(&case.group).into_iter().zip(KEY);
    for (expected, name) in written.chain([(case.subject.to_string(), "strategy")]) {
        if line.text(name) != expected {
            let text = line.text(name);
            let words = format!("`{text}` is not what the case says: write `{expected}`");
            line.wrong(name, &words, found);
            return None;
        }
    }
    Some(case)
}

impl Row {
    fn read(line: &Line<'_, '_>, found: &mut Diagnostics) -> Option<Self> {
        let case = read_case(line, found)?;
        const LIBRARIES: [Library; 4] = [
            Library::Nccl,
            Library::NcclRegistered,
            Library::NcclWindow,
            Library::Copies,
        ];
        let named = |library: &Library| library_name(*library) == line.text("library");
        let Some(library) = LIBRARIES.into_iter().find(named) else {
            let names = crate::input::list(LIBRARIES.map(library_name));
            let words = format!(
                "`{}` is no library: write one of {names}",
                line.text("library")
            );
            line.wrong("library", &words, found);
            return None;
        };
        let excluded = line.yes("excluded", found)?;
        let reason = line.text("reason").to_owned();
        if excluded == reason.is_empty() {
            let words = match excluded {
                true => "an excluded row without a reason: say why it must not be judged",
                false => "a reason in a row that is not excluded: clear it or exclude the row",
            };
            line.wrong("reason", words, found);
            return None;
        }
        let row = Self {
            case,
            library,
            rounds: line.parse("rounds", "a number of rounds", found)?,
            repeats: line.parse("repeats", "a number of repeats", found)?,
            gated: line.yes("gated", found)?,
            makespan: line.micros("makespan_us", found)?,
            p10: line.micros("p10_us", found)?,
            p90: line.micros("p90_us", found)?,
            samples: samples(line, found)?,
            skew: line.number("rank_skew_us", found)?.map(|skew| skew * 1e-6),
            checked: line.yes("checked", found)?,
            error: line.number("error", found)?,
            excluded: excluded.then_some(reason),
            conditions: Conditions {
                sm_clock_mhz: line.number("sm_clock_mhz", found)?,
                power_w: line.number("power_w", found)?,
                temperature_c: line.number("temperature_c", found)?,
                machine: line.text("machine").to_owned(),
                driver: line.text("driver").to_owned(),
                cuda: line.text("cuda").to_owned(),
                date: line.text("date").to_owned(),
                seed: line.parse("seed", "a seed", found)?,
            },
        };
        row.consistent(line, found).then_some(row)
    }

    /// Whether the times agree with one another, as far as the row is judged.
    fn consistent(&self, line: &Line<'_, '_>, found: &mut Diagnostics) -> bool {
        let mistake = match (self.makespan, median(&self.samples)) {
            _ if self.excluded.is_some() => return true,
            _ if self.samples.len() != self.rounds as usize => Some((
                "samples_us",
                format!("{} samples of {} rounds", self.samples.len(), self.rounds),
            )),
            (Some(written), Some(median)) if (written - median).abs() > ROUNDING => Some((
                "makespan_us",
                format!(
                    "not the median of the samples, which is {}",
                    micros(Some(median))
                ),
            )),
            (Some(_), Some(_)) => self.quantiles(),
            _ => Some((
                "makespan_us",
                "no time in a row that is not excluded".to_owned(),
            )),
        };
        if let Some((name, words)) = &mistake {
            line.wrong(name, words, found);
        }
        mistake.is_none()
    }

    /// What is wrong with the quantiles.
    fn quantiles(&self) -> Option<(&'static str, String)> {
        let of = Summary::of(&self.samples)?;
        let each = [
            ("p10_us", "10th", self.p10, of.p10),
            ("p90_us", "90th", self.p90, of.p90),
        ];
        let wrong = |&(_, _, written, right): &(_, _, Option<f64>, f64)| {
            written.is_none_or(|written| (written - right).abs() > ROUNDING)
        };
        each.into_iter().find(wrong).map(|(name, nth, _, right)| {
            let words = format!(
                "not the {nth} percentile of the samples, which is {}",
                micros(Some(right))
            );
            (name, words)
        })
    }
}

fn samples(line: &Line<'_, '_>, found: &mut Diagnostics) -> Option<Vec<f64>> {
    let text = line.text("samples_us");
    if text.is_empty() {
        return Some(Vec::new());
    }
    let one = |text: &str| {
        let value = text.parse::<f64>().ok();
        value
            .filter(|v| v.is_finite() && *v > 0.0)
            .map(|v| v * 1e-6)
            .ok_or(text.to_owned())
    };
    match text.split(';').map(one).collect() {
        Ok(samples) => Some(samples),
        Err(text) => {
            line.wrong(
                "samples_us",
                &format!("`{text}` is not a time above 0"),
                found,
            );
            None
        }
    }
}

#[derive(Default)]
pub(super) struct Rows {
    pub list: Vec<Row>,
    /// Cases that are there.
    seen: BTreeSet<String>,
}

impl Rows {
    pub fn push(&mut self, line: &Line<'_, '_>, found: &mut Diagnostics) {
        let Some(row) = Row::read(line, found) else {
            return;
        };
        if !self.seen.insert(row.case.to_string()) {
            line.wrong(
                "case",
                "this case is there twice: keep one of the rows",
                found,
            );
        }
        self.list.push(row);
    }
}
