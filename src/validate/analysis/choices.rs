//! How good choices are: the strategy that a model takes for the fastest, against the one that was.
//!
//! Regret = T(chosen)/T(fastest) − 1, both measured. A choice is right where the regret is at most
//! 1 %, or where the 95 % interval of the paired difference of the two over rounds includes zero; the
//! strict count takes the fastest alone.

use super::{Entry, Group, paired};
use crate::calibrate::metrics::{Decision, max_regret, mean_regret};

/// Two strategies this close are both right.
pub const LEVEL: f64 = 0.01;
/// Groups named as the worst.
const WORST: usize = 3;

/// One choice.
#[derive(Clone, Debug, PartialEq)]
pub struct Choice {
    pub group: String,
    pub chosen: String,
    pub best: String,
    pub decision: Decision,
    /// Nothing is faster; nothing by more than 1 %; no difference that the rounds can tell.
    pub strict: bool,
    pub level: bool,
    pub indistinct: bool,
}

impl Choice {
    /// By the rule.
    pub const fn right(&self) -> bool {
        self.level || self.indistinct
    }
}

/// All choices of one model.
#[derive(Clone, Debug, PartialEq)]
pub struct Summary {
    /// Who chooses.
    pub by: String,
    pub groups: usize,
    pub right: usize,
    pub strict: usize,
    pub mean_regret: f64,
    pub most_regret: f64,
    /// Those with the largest regret, largest first.
    pub worst: Vec<Choice>,
}

/// Who chooses, and the row of a group that it takes.
type Chooser<'g> = Box<dyn Fn(&Group<'g>) -> Option<usize>>;

/// Judges every chooser: the simulator (of all groups, then of those with shared GPUs), the
/// selector, the closed form, the data sheet's machine, and the one strategy that loses the least if
/// it is always taken.
pub fn summaries(groups: &[Group<'_>], seed: u64) -> Vec<Summary> {
    let (alone, shared): (Vec<&Group<'_>>, Vec<&Group<'_>>) =
        groups.iter().partition(|group| group.is_headline());
    let mut all = Vec::new();
    all.extend(summary(
        "simulator",
        &alone,
        seed,
        &by(|entry| entry.simulated()),
    ));
    let selector: Chooser<'_> = Box::new(|group| {
        let marked = |entry: &Entry<'_>| entry.prediction.is_some_and(|p| p.chosen.selector);
        group.entries.iter().position(marked)
    });
    all.extend(summary("selector", &alone, seed, &selector));
    let closed = by(|entry| entry.prediction?.closed);
    all.extend(summary("closed form", &alone, seed, &closed));
    let spec = by(|entry| entry.prediction?.spec);
    all.extend(summary("data sheet", &alone, seed, &spec));
    all.extend(always(&alone, seed));
    let by = by(|entry| entry.simulated());
    all.extend(summary("simulator, shared GPUs", &shared, seed, &by));
    all
}

/// Takes the strategy with the least predicted time; the first of equals.
fn by<'g>(time: fn(&Entry<'_>) -> Option<f64>) -> Chooser<'g> {
    Box::new(move |group| {
        let times = group.entries.iter().enumerate();
        let times = times.filter_map(|(at, entry)| Some((at, time(entry)?)));
        let least = times.reduce(|best, next| if next.1 < best.1 { next } else { best });
        least.map(|(at, _)| at)
    })
}

/// The best single strategy over all groups that have it, of those that most have.
fn always(groups: &[&Group<'_>], seed: u64) -> Option<Summary> {
    let mut strategies: Vec<&str> = Vec::new();
    for entry in groups.iter().flat_map(|group| &group.entries) {
        if !strategies.contains(&entry.strategy()) {
            strategies.push(entry.strategy());
        }
    }
    let one = |strategy: &&str| {
        let name = (*strategy).to_owned();
        let chooser: Chooser<'_> =
            Box::new(move |group| group.entries.iter().position(|e| e.strategy() == name));
        summary(&format!("always {strategy}"), groups, seed, &chooser)
    };
    let found = strategies.iter().filter_map(one);
    // A strategy that few groups have is no alternative to choosing.
    let common = found.filter(|summary| 2 * summary.groups > groups.len());
    common.reduce(|best, next| match next.mean_regret < best.mean_regret {
        true => next,
        false => best,
    })
}

fn summary<'g>(
    who: &str,
    groups: &[&Group<'g>],
    seed: u64,
    chooser: &Chooser<'g>,
) -> Option<Summary> {
    let choices: Vec<Choice> = groups
        .iter()
        .filter(|group| group.entries.len() > 1)
        .filter_map(|group| Some(judge(group, chooser(group)?, seed)))
        .collect();
    let decisions: Vec<Decision> = choices.iter().map(|choice| choice.decision).collect();
    let mut worst: Vec<Choice> = choices.iter().filter(|c| !c.strict).cloned().collect();
    worst.sort_by(|a, b| b.decision.regret().total_cmp(&a.decision.regret()));
    worst.truncate(WORST);
    Some(Summary {
        by: who.to_owned(),
        groups: choices.len(),
        right: choices.iter().filter(|choice| choice.right()).count(),
        strict: choices.iter().filter(|choice| choice.strict).count(),
        mean_regret: mean_regret(&decisions)?,
        most_regret: max_regret(&decisions)?.1,
        worst,
    })
}

/// The fastest of a group as measured; the first of equals.
pub fn fastest<'e, 'g>(group: &'e Group<'g>) -> Option<&'e Entry<'g>> {
    let entries = group.entries.iter();
    entries.reduce(|best, next| {
        if next.seconds < best.seconds {
            next
        } else {
            best
        }
    })
}

/// The one that the simulator takes for the fastest; the first of equals.
pub fn simulated_fastest<'e, 'g>(group: &'e Group<'g>) -> Option<&'e Entry<'g>> {
    by(|entry| entry.simulated())(group).map(|at| &group.entries[at])
}

fn judge(group: &Group<'_>, chosen: usize, seed: u64) -> Choice {
    let chosen = &group.entries[chosen];
    let best = fastest(group).unwrap_or(chosen);
    let decision = Decision::new(chosen.seconds, best.seconds);
    let difference = paired::difference(&chosen.row.samples, &best.row.samples, seed);
    Choice {
        group: group.key.to_string(),
        chosen: chosen.strategy().to_owned(),
        best: best.strategy().to_owned(),
        strict: decision.is_right(0.0),
        level: decision.is_right(LEVEL),
        indistinct: difference.is_some_and(|paired| paired.includes_zero()),
        decision,
    }
}
