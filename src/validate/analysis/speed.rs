//! Speed-ups, measured and predicted, as geometric means over groups.

use super::{Entry, Group, choices};
use crate::experiment::analysis::statistics::geomean;
use crate::gpu::plan::{Library, Path, Products};
use crate::operator::Kind;
use crate::validate::key::{self, Reference};

/// Speed-ups over one baseline.
#[derive(Clone, Debug, PartialEq)]
pub struct Gain {
    pub operator: Kind,
    /// `chosen by the simulator`, `fastest measured`, the two of m ≥ 1024 alone, or a strategy without
    /// its number of pieces.
    pub of: String,
    /// `copy engine, then GEMM`, `NCCL, then GEMM` or `InterDecom`.
    pub over: &'static str,
    pub groups: usize,
    /// Groups in which it is faster.
    pub faster: usize,
    pub measured: f64,
    /// `None` where not all of them are predicted.
    pub predicted: Option<f64>,
}

/// The hybrid path against the better of the two single ones, of one operator and shape.
#[derive(Clone, Debug, PartialEq)]
pub struct Hybrid {
    /// The hybrid's group.
    pub group: String,
    /// The fastest over each path \[s\].
    pub hybrid: f64,
    pub p2p: f64,
    pub host: Option<f64>,
    /// min(p2p, host)/hybrid, measured and predicted.
    pub measured: f64,
    pub predicted: Option<f64>,
}

/// Everything about speed-ups.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Speed {
    pub gains: Vec<Gain>,
    /// The same by strategy, over copy engine, then GEMM: its fastest setting in each group.
    pub strategies: Vec<Gain>,
    pub hybrids: Vec<Hybrid>,
    /// Fusions by Duet's own products over InterDecom, whatever shares a GPU, by numbers of ranks.
    pub fusions: Vec<Gain>,
}

/// Rows from which on speed-ups have entries of their own.
const MANY: u64 = 1024;

/// One group's speed-up.
struct Pair {
    operator: Kind,
    of: String,
    over: &'static str,
    measured: f64,
    predicted: Option<f64>,
}

const COPIES: &str = "copy engine, then GEMM";
const NCCL: &str = "NCCL, then GEMM";
const INTERDECOM: &str = "InterDecom";

/// Speed-ups of groups whose ranks have a GPU each.
pub fn speed(groups: &[Group<'_>]) -> Speed {
    let alone: Vec<&Group<'_>> = groups.iter().filter(|group| group.is_headline()).collect();
    let (mut pairs, mut by_strategy) = (Vec::new(), Vec::new());
    for group in &alone {
        for (over, baseline) in baselines(group) {
            let subjects = [
                ("chosen by the simulator", choices::simulated_fastest(group)),
                ("fastest measured", choices::fastest(group)),
            ];
            let many = (group.key.operator.mnk()).is_some_and(|(m, ..)| m >= MANY);
            for (of, entry) in subjects {
                let Some(entry) = entry else { continue };
                pairs.push(pair(group, of, over, baseline, entry));
                if many {
                    let of = format!("{of}, m ≥ {MANY}");
                    pairs.push(pair(group, &of, over, baseline, entry));
                }
            }
        }
        let Some(baseline) = group.reference(Reference::SequentialCopies) else {
            continue;
        };
        let mut families: Vec<&str> = Vec::new();
        for entry in &group.entries {
            if !families.contains(&entry.family.as_str()) {
                families.push(&entry.family);
            }
        }
        for family in families {
            let of = |entry: &&Entry<'_>| entry.family == family;
            let fastest = (group.entries.iter().filter(of)).reduce(|best, next| {
                if next.seconds < best.seconds {
                    next
                } else {
                    best
                }
            });
            by_strategy.extend(fastest.map(|e| pair(group, family, COPIES, baseline, e)));
        }
    }
    Speed {
        gains: gains(&pairs),
        strategies: gains(&by_strategy),
        hybrids: hybrids(&alone),
        fusions: gains(&fusions(groups)),
    }
}

/// Fusions over the setting of InterDecom that was measured as its fastest: their own fastest, and the one
/// that the simulator takes for it; both by Duet's own products.
fn fusions(groups: &[Group<'_>]) -> Vec<Pair> {
    let mut pairs = Vec::new();
    let own =
        |group: &&Group<'_>| group.key.path == Path::P2p && group.key.products == Products::Own;
    for group in groups.iter().filter(own) {
        let named = |name: &'static str| {
            (group.entries.iter()).filter(move |entry| entry.strategy().starts_with(name))
        };
        let least = |time: fn(&Entry<'_>) -> Option<f64>, name| {
            named(name).min_by(|a, b| {
                let key = |entry| time(entry).unwrap_or(f64::INFINITY);
                key(a).total_cmp(&key(b))
            })
        };
        let measured: fn(&Entry<'_>) -> Option<f64> = |entry| Some(entry.seconds);
        let Some(baseline) = least(measured, "interdecom") else {
            continue;
        };
        let ranks = format!("{} ranks on {}", group.key.operator.tp, group.key.gpus());
        let simulated: fn(&Entry<'_>) -> Option<f64> = |entry| entry.simulated();
        let chosen = least(simulated, "fusion").filter(|entry| entry.simulated().is_some());
        let of = [
            ("fastest measured", least(measured, "fusion")),
            ("chosen by the simulator", chosen),
        ];
        for (of, entry) in of {
            let of = format!("fusion, {of}, {ranks}");
            pairs.extend(entry.map(|entry| pair(group, &of, INTERDECOM, baseline, entry)));
        }
    }
    pairs
}

/// What speed-ups are held against, where it was measured.
fn baselines<'e, 'g>(group: &'e Group<'g>) -> impl Iterator<Item = (&'static str, &'e Entry<'g>)> {
    let copies = group.reference(Reference::SequentialCopies);
    let library = |entry: &&Entry<'_>| {
        entry.strategy() == "sequential" && entry.row.library != Library::Copies
    };
    let nccl = group.entries.iter().find(library);
    let nccl = nccl.filter(|_| group.key.path == Path::P2p);
    (copies.map(|entry| (COPIES, entry)).into_iter()).chain(nccl.map(|entry| (NCCL, entry)))
}

fn pair(
    group: &Group<'_>,
    of: &str,
    over: &'static str,
    baseline: &Entry<'_>,
    entry: &Entry<'_>,
) -> Pair {
    let predicted = baseline.simulated().zip(entry.simulated());
    Pair {
        operator: group.key.operator.kind,
        of: of.to_owned(),
        over,
        measured: baseline.seconds / entry.seconds,
        predicted: predicted.map(|(baseline, entry)| baseline / entry),
    }
}

/// Means by operator, subject and baseline, in the order of the first of each.
fn gains(pairs: &[Pair]) -> Vec<Gain> {
    let mut keys: Vec<(Kind, &str, &'static str)> = Vec::new();
    for pair in pairs {
        let key = (pair.operator, pair.of.as_str(), pair.over);
        if !keys.contains(&key) {
            keys.push(key);
        }
    }
    keys.sort_by_key(|(operator, ..)| *operator);
    let one = |(operator, of, over): (Kind, &str, &'static str)| {
        let here: Vec<&Pair> = (pairs.iter())
            .filter(|pair| (pair.operator, pair.of.as_str(), pair.over) == (operator, of, over))
            .collect();
        let predicted: Option<Vec<f64>> = here.iter().map(|pair| pair.predicted).collect();
        Some(Gain {
            operator,
            of: of.to_owned(),
            over,
            groups: here.len(),
            faster: here.iter().filter(|pair| pair.measured > 1.0).count(),
            measured: geomean(here.iter().map(|pair| pair.measured))?,
            predicted: predicted.and_then(geomean),
        })
    };
    keys.into_iter().filter_map(one).collect()
}

/// Every hybrid group with its fellows over one path.
fn hybrids(groups: &[&Group<'_>]) -> Vec<Hybrid> {
    let same = |a: &key::Group, b: &key::Group| {
        (a.operator, &a.placement, a.launch) == (b.operator, &b.placement, b.launch)
    };
    let fellow = |hybrid: &Group<'_>, wanted: fn(&Path) -> bool| {
        let fellows = groups
            .iter()
            .filter(|g| wanted(&g.key.path) && same(g.key, hybrid.key));
        let times: Vec<(f64, Option<f64>)> = fellows.filter_map(|group| best(group)).collect();
        times
            .into_iter()
            .reduce(|a, b| (a.0.min(b.0), a.1.zip(b.1).map(|(a, b)| a.min(b))))
    };
    let one = |group: &&Group<'_>| {
        let (hybrid, predicted) = best(group)?;
        let p2p = fellow(group, |path| *path == Path::P2p)?;
        let host = fellow(group, |path| matches!(path, Path::Host { .. }));
        let single = host.map_or(p2p.0, |host| host.0.min(p2p.0));
        let single_predicted = match host {
            Some(host) => p2p.1.zip(host.1).map(|(a, b)| a.min(b)),
            None => p2p.1,
        };
        Some(Hybrid {
            group: group.key.to_string(),
            hybrid,
            p2p: p2p.0,
            host: host.map(|host| host.0),
            measured: single / hybrid,
            predicted: single_predicted
                .zip(predicted)
                .map(|(single, own)| single / own),
        })
    };
    let hybrids = groups.iter();
    let hybrids = hybrids.filter(|group| matches!(group.key.path, Path::Hybrid { .. }));
    hybrids.filter_map(one).collect()
}

/// The least measured and the least simulated time of a group \[s\].
fn best(group: &Group<'_>) -> Option<(f64, Option<f64>)> {
    let measured = choices::fastest(group)?.seconds;
    Some((
        measured,
        choices::simulated_fastest(group).and_then(Entry::simulated),
    ))
}
