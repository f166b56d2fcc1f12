//! Overlap efficiency and effective communication time.
//!
//! ECT = T − T(unsplit GEMM): what communication costs on top of the GEMM; the efficiency is
//! 1 − ECT/ECT of the sequential reference: 1 hides all of it, 0 none. Both are medians of differences
//! within rounds. An efficiency is *claimed* with 60 rounds or more and a 95 % interval of at most 10
//! points; elsewhere T/T(unsplit GEMM) is judged instead.

use super::paired::{Paired, over_rounds, picked};
use super::{Entry, Group, paired};
use crate::calibrate::metrics::mean;
use crate::experiment::analysis::statistics::percentile;
use crate::validate::key::Reference;
use crate::validate::table::median;

/// Fewest rounds of a claimed efficiency.
pub const ROUNDS: u32 = 60;
/// Widest interval of one.
pub const WIDEST: f64 = 0.10;

/// One case.
struct One {
    ect: f64,
    efficiency: Paired,
    claimed: bool,
    predicted: Option<f64>,
    ratio: f64,
    predicted_ratio: Option<f64>,
}

/// A strategy, its number of pieces aside.
#[derive(Clone, Debug, PartialEq)]
pub struct Overlap {
    pub strategy: String,
    pub cases: usize,
    /// Median ECT over cases \[s\].
    pub ect: f64,
    /// Cases whose efficiency is claimed, and of those: its median, the predicted one's, and the mean
    /// absolute difference between the two.
    pub claimed: usize,
    pub efficiency: Option<f64>,
    pub predicted: Option<f64>,
    pub error: Option<f64>,
    /// T/T(unsplit GEMM) of all cases, median, measured and predicted.
    pub ratio: f64,
    pub predicted_ratio: Option<f64>,
}

/// By strategy, of groups whose ranks have a GPU each.
pub fn overlaps(groups: &[Group<'_>], seed: u64) -> Vec<Overlap> {
    let headline = groups.iter().filter(|group| group.is_headline());
    let cases = headline.flat_map(|group| group.entries.iter().map(move |entry| (group, entry)));
    let ones = cases.filter_map(|(group, entry)| Some((&*entry.family, one(group, entry, seed)?)));
    let families = by_family(ones).into_iter();
    families
        .filter_map(|(name, all)| sum_up(name, &all))
        .collect()
}

/// What belongs to each strategy, its number of pieces aside, in the order in which these are met.
pub(super) fn by_family<'a, T>(
    cases: impl Iterator<Item = (&'a str, T)>,
) -> Vec<(&'a str, Vec<T>)> {
    let mut families: Vec<(&str, Vec<T>)> = Vec::new();
    for (family, case) in cases {
        match families.iter_mut().find(|(name, _)| *name == family) {
            Some((_, all)) => all.push(case),
            None => families.push((family, vec![case])),
        }
    }
    families
}

/// Whether a case's efficiency is claimed.
pub(super) fn is_claimed(entry: &Entry<'_>, efficiency: &Paired) -> bool {
    let [low, high] = efficiency.interval;
    entry.row.rounds >= ROUNDS && high - low <= WIDEST
}

/// The efficiency that is simulated, against this product; `None` without one of the times, or where nothing
/// is to be hidden.
pub(super) fn predicted(group: &Group<'_>, entry: &Entry<'_>, product: Reference) -> Option<f64> {
    let of = |reference| group.reference(reference)?.simulated();
    let (t, product) = (entry.simulated()?, of(product)?);
    let whole = of(Reference::SequentialCopies)? - product;
    (whole > 0.0).then(|| 1.0 - (t - product) / whole)
}

fn one(group: &Group<'_>, entry: &Entry<'_>, seed: u64) -> Option<One> {
    let gemm = group.reference(Reference::Gemm)?;
    let sequential = group.reference(Reference::SequentialCopies)?;
    let rows = [entry, gemm, sequential].map(|entry| entry.row.samples.as_slice());
    let Hidden {
        ect, efficiency, ..
    } = hidden(rows, seed)?;
    Some(One {
        ect,
        claimed: is_claimed(entry, &efficiency),
        efficiency,
        predicted: predicted(group, entry, Reference::Gemm),
        ratio: paired::ratio(rows[0], rows[1])?,
        predicted_ratio: entry.simulated().zip(gemm.simulated()).map(|(t, g)| t / g),
    })
}

/// What communication costs on top of a product, from differences within rounds.
pub(super) struct Hidden {
    /// T − T(product) and T(sequential) − T(product), medians \[s\].
    pub ect: f64,
    pub whole: f64,
    /// 1 − the first by the second.
    pub efficiency: Paired,
}

/// Of the samples of a strategy, of the product and of the sequential reference; `None` where they are
/// not of the same rounds, or where nothing is to be hidden.
pub(super) fn hidden([t, g, s]: [&[f64]; 3], seed: u64) -> Option<Hidden> {
    if t.len() != g.len() || s.len() != g.len() {
        return None;
    }
    let less = |a: &[f64]| -> Vec<f64> { a.iter().zip(g).map(|(a, g)| a - g).collect() };
    let (ect, whole) = (less(t), less(s));
    let efficiency = over_rounds(t.len(), seed, |picks| {
        let whole = median(&picked(&whole, picks))?;
        (whole > 0.0).then(|| Some(1.0 - median(&picked(&ect, picks))? / whole))?
    })?;
    Some(Hidden {
        ect: median(&ect)?,
        whole: median(&whole)?,
        efficiency,
    })
}

fn sum_up(strategy: &str, all: &[One]) -> Option<Overlap> {
    let claimed: Vec<&One> = all.iter().filter(|one| one.claimed).collect();
    let middle = |values: Vec<f64>| percentile(&values, 0.5);
    let predicted: Option<Vec<f64>> = claimed.iter().map(|one| one.predicted).collect();
    let errors = claimed
        .iter()
        .filter_map(|one| Some((one.predicted? - one.efficiency.median).abs()));
    let ratios: Option<Vec<f64>> = all.iter().map(|one| one.predicted_ratio).collect();
    Some(Overlap {
        strategy: strategy.to_owned(),
        cases: all.len(),
        ect: middle(all.iter().map(|one| one.ect).collect())?,
        claimed: claimed.len(),
        efficiency: middle(claimed.iter().map(|one| one.efficiency.median).collect()),
        predicted: predicted.and_then(middle),
        error: mean(errors),
        ratio: middle(all.iter().map(|one| one.ratio).collect())?,
        predicted_ratio: ratios.and_then(middle),
    })
}
