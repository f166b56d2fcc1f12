//! Who wins, by operator and machine.

use super::cases::{Case, Family, Group, groups};
use super::statistics::{geomean, largest, percentile};

/// Winners of the main cases of one group.
#[derive(Clone, Debug, PartialEq)]
pub struct Winners {
    pub group: Group,
    pub cases: usize,
    /// Cases won, by family.
    pub families: Vec<(Family, usize)>,
    /// Cases won, by strategy without parameters.
    pub classes: Vec<(&'static str, usize)>,
    /// Geometric mean of the fastest's speed-up over sequential, and the largest.
    pub speedup: Option<f64>,
    pub speedup_most: Option<f64>,
    /// T(best not fused)/T(best fused), per case with both, ascending.
    pub leads: Vec<f64>,
}

impl Winners {
    /// Cases won by a family.
    pub fn won(&self, family: Family) -> usize {
        let of = self.families.iter().find(|(other, _)| *other == family);
        of.map_or(0, |(_, count)| *count)
    }
}

/// Counts winners by group.
pub(super) fn winners(cases: &[Case], main: &[usize]) -> Vec<Winners> {
    let all = || main.iter().map(|&at| &cases[at]);
    groups(all())
        .into_iter()
        .map(|group| {
            let here: Vec<&Case> = all().filter(|case| Group::of(case) == group).collect();
            count(group, &here)
        })
        .collect()
}

fn count(group: Group, here: &[&Case]) -> Winners {
    let families = [
        Family::Fusion,
        Family::Decomposition,
        Family::Sequential,
        Family::Other,
    ];
    let won = |family| {
        here.iter()
            .filter(|case| case.best().family == family)
            .count()
    };
    let classes = crate::strategy::registry().iter().map(|s| s.name());
    let by_class = |class| {
        here.iter()
            .filter(|case| case.best().class() == class)
            .count()
    };
    let speedups: Vec<f64> = here
        .iter()
        .filter_map(|case| Some(case.sequential()? / case.best().seconds))
        .collect();
    let mut leads: Vec<f64> = here.iter().filter_map(|case| lead(case)).collect();
    leads.sort_by(f64::total_cmp);
    Winners {
        group,
        cases: here.len(),
        families: families
            .into_iter()
            .map(|family| (family, won(family)))
            .filter(|(_, count)| *count > 0)
            .collect(),
        classes: classes
            .map(|class| (class, by_class(class)))
            .filter(|(_, count)| *count > 0)
            .collect(),
        speedup: geomean(speedups.iter().copied()),
        speedup_most: largest(speedups).map(|(_, most)| most),
        leads,
    }
}

/// T(best not fused)/T(best fused).
fn lead(case: &Case) -> Option<f64> {
    let fused = case.best_of(Family::Fusion)?.seconds;
    let others = [Family::Sequential, Family::Decomposition];
    let others = others.into_iter().filter_map(|family| case.best_of(family));
    let best = others.map(|run| run.seconds).min_by(f64::total_cmp)?;
    Some(best / fused)
}

/// The middle `share` of the speed-ups of one strategy over sequential.
pub(super) fn speedups<'c>(
    cases: impl Iterator<Item = &'c Case>,
    class: &str,
    share: f64,
) -> Option<(f64, f64)> {
    let speedup = |case: &Case| Some(case.sequential()? / case.best_in(class)?.seconds);
    let all: Vec<f64> = cases.filter_map(speedup).collect();
    let outside = (1.0 - share) / 2.0;
    Some((percentile(&all, outside)?, percentile(&all, 1.0 - outside)?))
}
