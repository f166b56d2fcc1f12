//! What Duet's own kernels hide: T_o is the product in one piece by the same kernel, G that of the library.
//!
//! ```text
//! kernel overlap efficiency = 1 − (T − T_o)/(T_s − T_o)      T   the strategy
//! ECT efficiency            = 1 − (T − G)/(T_s − G)          T_s the copy engine, then the kernel
//! ```
//!
//! The first leaves out how much slower or faster than the library's the kernel multiplies. Differences are
//! of the same rounds, medians of them, with a bootstrap interval over rounds. Neither is asked where the
//! denominator is less than [`LEAST`] of the product in one piece: there is nothing to hide.

use super::overlap::{Hidden, by_family, hidden, is_claimed, predicted};
use super::paired::{self, Paired};
use super::{Entry, Group};
use crate::calibrate::metrics::mean;
use crate::experiment::analysis::statistics::percentile;
use crate::gpu::plan::Products;
use crate::operator::Kind;
use crate::validate::key::Reference;

/// Least time that communication adds in sequence, of the product in one piece, for an efficiency to be
/// asked.
pub const LEAST: f64 = 0.05;

/// How long the fastest fusion may take, of the fastest product in one piece: what is asked of it.
pub const fn most(kind: Kind) -> f64 {
    match kind {
        Kind::AgGemm => 1.05,
        _ => 1.08,
    }
}

/// A strategy, its number of pieces aside.
#[derive(Clone, Debug, PartialEq)]
pub struct Kernel {
    pub strategy: String,
    /// Cases, and those whose efficiency is asked.
    pub cases: usize,
    pub asked: usize,
    /// Those asked in [`ROUNDS`](super::overlap::ROUNDS) rounds or more with an interval of at most
    /// [`WIDEST`](super::overlap::WIDEST).
    pub claimed: usize,
    /// Median over the cases asked, measured and predicted, and the mean absolute difference between the
    /// two.
    pub efficiency: f64,
    pub predicted: Option<f64>,
    pub error: Option<f64>,
}

/// A group with the fusion that was measured as its fastest; times in seconds.
#[derive(Clone, Debug, PartialEq)]
pub struct Fastest {
    pub group: String,
    pub operator: Kind,
    /// The product in one piece, by the library and by Duet's kernel.
    pub library: f64,
    pub own: Option<f64>,
    pub sequential: f64,
    pub strategy: String,
    pub seconds: f64,
    /// Kernel overlap efficiency, measured and predicted.
    pub kernel: Option<Paired>,
    pub predicted: Option<f64>,
    /// ECT efficiency against the library.
    pub ect: Option<Paired>,
    /// T over the faster of the two products in one piece, median of ratios within rounds.
    pub ratio: f64,
}

/// What Duet's own kernels hide.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Kernels {
    pub strategies: Vec<Kernel>,
    pub fastest: Vec<Fastest>,
}

/// Of groups that Duet's own kernels multiply and whose ranks have a GPU each.
pub fn kernels(groups: &[Group<'_>], seed: u64) -> Kernels {
    let mut found = Kernels::default();
    let own = |group: &&Group<'_>| group.is_headline() && group.key.products == Products::Own;
    let mut wanted: Vec<&Group<'_>> = groups.iter().filter(own).collect();
    // Tables are in the order of measuring, which is random.
    wanted.sort_by_key(|group| {
        let operator = &group.key.operator;
        let (m, n, k) = operator.mnk().unwrap_or_default();
        (operator.kind.name(), n, k, m, group.key.to_string())
    });
    found.fastest = (wanted.iter())
        .filter_map(|group| fastest(group, seed))
        .collect();
    wanted.retain(|group| group.reference(Reference::GemmOwn).is_some());
    let cases =
        (wanted.iter()).flat_map(|group| group.entries.iter().map(move |entry| (group, entry)));
    let ones = cases.map(|(group, entry)| (&*entry.family, one(group, entry, seed)));
    let families = by_family(ones).into_iter();
    found.strategies = families
        .filter_map(|(name, all)| sum_up(name, &all))
        .collect();
    found
}

/// A case whose efficiency is asked.
struct One {
    efficiency: Paired,
    claimed: bool,
    predicted: Option<f64>,
}

fn one(group: &Group<'_>, entry: &Entry<'_>, seed: u64) -> Option<One> {
    let efficiency = asked(group, entry, Reference::GemmOwn, seed)?;
    Some(One {
        claimed: is_claimed(entry, &efficiency),
        efficiency,
        predicted: predicted(group, entry, Reference::GemmOwn),
    })
}

/// How much of what communication adds to a product in one piece is hidden, where that is asked.
fn asked(group: &Group<'_>, entry: &Entry<'_>, product: Reference, seed: u64) -> Option<Paired> {
    let product = group.reference(product)?;
    let sequential = group.reference(Reference::SequentialCopies)?;
    let rows = [entry, product, sequential].map(|entry| entry.row.samples.as_slice());
    let Hidden {
        whole, efficiency, ..
    } = hidden(rows, seed)?;
    (whole >= LEAST * product.seconds).then_some(efficiency)
}

fn sum_up(strategy: &str, all: &[Option<One>]) -> Option<Kernel> {
    let asked: Vec<&One> = all.iter().flatten().collect();
    let middle = |values: Vec<f64>| percentile(&values, 0.5);
    let predicted: Option<Vec<f64>> = asked.iter().map(|one| one.predicted).collect();
    let errors =
        (asked.iter()).filter_map(|one| Some((one.predicted? - one.efficiency.median).abs()));
    Some(Kernel {
        strategy: strategy.to_owned(),
        cases: all.len(),
        asked: asked.len(),
        claimed: asked.iter().filter(|one| one.claimed).count(),
        efficiency: middle(asked.iter().map(|one| one.efficiency.median).collect())?,
        predicted: predicted.and_then(middle),
        error: mean(errors),
    })
}

/// Whether communication happens inside the kernels that multiply.
fn is_fused(entry: &&Entry<'_>) -> bool {
    ["fusion", "flux"]
        .iter()
        .any(|name| entry.strategy().starts_with(name))
}

fn fastest(group: &Group<'_>, seed: u64) -> Option<Fastest> {
    let fused = group.entries.iter().filter(is_fused);
    let entry = fused.min_by(|a, b| a.seconds.total_cmp(&b.seconds))?;
    let library = group.reference(Reference::Gemm)?;
    let own = group.reference(Reference::GemmOwn);
    let best = own
        .filter(|own| own.seconds < library.seconds)
        .unwrap_or(library);
    let kernel = asked(group, entry, Reference::GemmOwn, seed);
    Some(Fastest {
        group: group.key.to_string(),
        operator: group.key.operator.kind,
        library: library.seconds,
        own: own.map(|own| own.seconds),
        sequential: group.reference(Reference::SequentialCopies)?.seconds,
        strategy: entry.strategy().to_owned(),
        seconds: entry.seconds,
        predicted: kernel.and_then(|_| predicted(group, entry, Reference::GemmOwn)),
        kernel,
        ect: asked(group, entry, Reference::Gemm, seed),
        ratio: paired::ratio(&entry.row.samples, &best.row.samples)?,
    })
}

#[cfg(test)]
mod tests {
    use super::super::join;
    use super::super::tests::{Subject3, tables};
    use super::*;
    use crate::validate::prediction::Predictions;
    use crate::validate::table::Row;

    const AG: &str = "ag-gemm/2048x4096x4096/bf16/2on2/p2p/stream:duet";
    const RS: &str = "gemm-rs/2048x4096x4096/bf16/2on2/p2p/stream:duet";

    fn found(groups: &[(&str, f64)], subjects: &[Subject3]) -> Kernels {
        let tables = tables(groups, subjects);
        kernels(&join(&tables.rows, &tables.predictions).groups, 7)
    }

    fn near(a: f64, b: f64) {
        assert!((a - b).abs() < 1e-9, "{a} is not {b}");
    }

    /// G = 80, T_o = 84, T_s = 124 and T = 86 of every round, in proportion: 1 − (86 − 84)/(124 − 84) = 0.95
    /// and 1 − (86 − 80)/(124 − 80) = 38/44; T by the faster product is 86/80. Predicted: T is 88 and T_o as
    /// measured, 1 − 4/40.
    #[test]
    fn efficiencies_follow_their_definitions() {
        let found = found(
            &[(AG, 1.0)],
            &[
                ("reference:gemm", 80.0, 1.0),
                ("reference:gemm-own", 84.0, 1.0),
                ("reference:sequential-copies", 124.0, 1.0),
                ("sequential", 124.0, 1.0),
                ("fusion-alltoall", 86.0, 88.0 / 86.0),
                ("fusion-alltoall:chunks=2", 90.0, 1.0),
                ("interdecom:d=2,comm=direct", 85.0, 1.0),
            ],
        );
        let [one] = &found.fastest[..] else {
            panic!("one group: {:?}", found.fastest);
        };
        assert_eq!(
            (one.group.as_str(), one.strategy.as_str()),
            (AG, "fusion-alltoall")
        );
        let kernel = one.kernel.unwrap();
        near(kernel.median, 0.95);
        // Rounds drift in proportion, which cancels up to resampled medians.
        assert!((kernel.interval[1] - kernel.interval[0]).abs() < 0.01);
        near(one.ect.unwrap().median, 38.0 / 44.0);
        near(one.predicted.unwrap(), 0.9);
        near(one.ratio, 86.0 / 80.0);
        // What is not fused has an efficiency, but is no fusion.
        let of = |name: &str| {
            found
                .strategies
                .iter()
                .find(|k| k.strategy == name)
                .unwrap()
        };
        near(of("sequential").efficiency, 0.0);
        near(of("interdecom:comm=direct").efficiency, 1.0 - 1.0 / 40.0);
        let fused = of("fusion-alltoall");
        assert_eq!((fused.cases, fused.asked, fused.claimed), (1, 1, 1));
        near(fused.error.unwrap(), 0.05);
    }

    /// Communication that adds 4 of 100 is below [`LEAST`]; against a library that takes 90, it adds 14.
    #[test]
    fn too_little_to_hide_is_not_asked() {
        let found = found(
            &[(RS, 1.0)],
            &[
                ("reference:gemm", 90.0, 1.0),
                ("reference:gemm-own", 100.0, 1.0),
                ("reference:sequential-copies", 104.0, 1.0),
                ("fusion-ring", 101.0, 1.0),
            ],
        );
        assert_eq!(found.strategies, []);
        let one = &found.fastest[0];
        assert_eq!((one.kernel, one.predicted), (None, None));
        near(one.ect.unwrap().median, 1.0 - 11.0 / 14.0);
        near(one.ratio, 101.0 / 90.0);
    }

    /// A kernel that is faster than the library is what T is held against; a table without the kernel's
    /// product in one piece has the library's, and no kernel efficiency; the library's groups have neither.
    #[test]
    fn the_faster_product_counts_and_old_tables_lack_one() {
        let subjects = [
            ("reference:gemm", 80.0, 1.0),
            ("reference:sequential-copies", 120.0, 1.0),
            ("fusion-ring", 84.0, 1.0),
            ("reference:gemm-own", 75.0, 1.0),
        ];
        near(found(&[(RS, 1.0)], &subjects).fastest[0].ratio, 84.0 / 75.0);
        let old = found(&[(RS, 1.0)], &subjects[..3]);
        let one = &old.fastest[0];
        assert_eq!((one.own, one.kernel), (None, None));
        near(one.ratio, 84.0 / 80.0);
        near(one.ect.unwrap().median, 0.9);
        assert_eq!(old.strategies, []);
        let library = found(&[(&RS[..RS.len() - ":duet".len()], 1.0)], &subjects[..3]);
        assert_eq!(library, Kernels::default());
        let shared = RS.replace("2on2", "4on2");
        assert_eq!(found(&[(&shared, 1.0)], &subjects), Kernels::default());
    }

    /// Whatever the times of rounds, a strategy as fast as the product in one piece hides everything, and
    /// one that takes as long as the sequence nothing.
    #[test]
    fn the_ends_are_one_and_zero() {
        let mut random = fastrand::Rng::with_seed(11);
        for _ in 0..20 {
            let (own, adds) = (50.0 + 500.0 * random.f64(), 0.1 + random.f64());
            let sequential = own * (1.0 + adds);
            for (time, efficiency) in [(own, 1.0), (sequential, 0.0)] {
                let tables = tables(
                    &[(AG, 1.0)],
                    &[
                        ("reference:gemm", 45.0, 1.0),
                        ("reference:gemm-own", own, 1.0),
                        ("reference:sequential-copies", sequential, 1.0),
                        ("fusion-alltoall", time, 1.0),
                    ],
                );
                // A drift that all rows of a round have in common.
                let mut rows: Vec<Row> = tables.rows.clone();
                for round in 0..rows[0].samples.len() {
                    let drift = 1.0 + 0.1 * random.f64();
                    rows.iter_mut().for_each(|row| row.samples[round] *= drift);
                }
                let none = Predictions::default();
                let groups = join(&rows, &none).groups;
                let kernel = kernels(&groups, 3).fastest[0].kernel.unwrap();
                assert!((kernel.median - efficiency).abs() < 1e-9, "{kernel:?}");
                assert_eq!(kernels(&groups, 3).fastest[0].predicted, None);
            }
        }
    }
}
