//! How often the measured time lies in the predicted interval, which should be 95 times in 100.

use super::{Entry, Group};
use crate::experiment::analysis::statistics::{mean, percentile};

/// Coverage of some cases.
#[derive(Clone, Debug, PartialEq)]
pub struct Coverage {
    /// `all`, or a strategy without its number of pieces.
    pub name: String,
    pub cases: usize,
    pub inside: usize,
    /// Mean half width over the predicted time.
    pub half_width: f64,
    /// By how much intervals would have to be wider for 95 of 100 to lie inside.
    pub widen: f64,
}

/// Of the headline, all and by strategy.
pub fn coverage(groups: &[Group<'_>]) -> Vec<Coverage> {
    let headline = groups.iter().filter(|group| group.is_headline());
    let entries: Vec<&Entry<'_>> = headline.flat_map(|group| &group.entries).collect();
    let mut names: Vec<&str> = Vec::new();
    for entry in &entries {
        if !names.contains(&entry.family.as_str()) {
            names.push(&entry.family);
        }
    }
    let mut all: Vec<Coverage> = of("all", &entries).into_iter().collect();
    for name in names {
        let part: Vec<&Entry<'_>> = (entries.iter().copied())
            .filter(|entry| entry.family == name)
            .collect();
        all.extend(of(name, &part));
    }
    all
}

fn of(name: &str, entries: &[&Entry<'_>]) -> Option<Coverage> {
    let cases: Vec<(f64, f64, [f64; 2])> = (entries.iter())
        .filter_map(|e| Some((e.seconds, e.simulated()?, e.prediction?.interval?)))
        .collect();
    let inside = |(t, _, [low, high]): &&(f64, f64, [f64; 2])| (*low..=*high).contains(t);
    let half = |[low, high]: &[f64; 2]| (high - low) / 2.0;
    let needed: Vec<f64> = (cases.iter())
        .map(|(t, p, interval)| (t - p).abs() / half(interval))
        .collect();
    Some(Coverage {
        name: name.to_owned(),
        cases: cases.len(),
        inside: cases.iter().filter(inside).count(),
        half_width: mean(cases.iter().map(|(_, p, interval)| half(interval) / p))?,
        widen: percentile(&needed, 0.95)?,
    })
}
