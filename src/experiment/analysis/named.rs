//! Figures by name: what `summary.json` lists and `published.yaml` points at.

use std::collections::BTreeMap;

use super::cases::{Family, Group};
use super::models::VARIANTS;
use super::statistics::largest;
use super::winners::speedups;
use super::{Analysis, Quantity};
use crate::operator::Kind;

/// What lies between 10 % from below and 10 % from above.
const MIDDLE: f64 = 0.8;

type Named = BTreeMap<String, Quantity>;

/// All figures that the data give.
pub(super) fn figures(analysis: &Analysis) -> Named {
    let mut named = Named::new();
    models(analysis, &mut named);
    selection(analysis, &mut named);
    decomposition(analysis, &mut named);
    winners(analysis, &mut named);
    bandwidth(analysis, &mut named);
    named
}

/// Names a figure; of two of one name the first stays, as that of the first grid.
fn put(named: &mut Named, name: impl Into<String>, value: Option<Quantity>) {
    if let Some(value) = value {
        named.entry(name.into()).or_insert(value);
    }
}

fn models(analysis: &Analysis, named: &mut Named) {
    for model in VARIANTS {
        for family in [Family::Sequential, Family::Decomposition, Family::Fusion] {
            let errors = analysis.error(model, family);
            let name = |metric: &str| format!("{metric}.{}.{model}", family.name());
            put(named, name("mae"), errors.map(|e| Quantity::Seconds(e.mae)));
            put(named, name("mape"), errors.map(|e| Quantity::Share(e.mape)));
            put(
                named,
                name("worst"),
                errors.map(|e| Quantity::Share(e.worst)),
            );
        }
    }
}

fn selection(analysis: &Analysis, named: &mut Named) {
    for (scope, unseen) in [("", true), (".all", false)] {
        let Some(choices) = analysis.choices(unseen) else {
            continue;
        };
        let of = |count: usize| Some(Quantity::Count(count as u64, choices.cases as u64));
        put(named, format!("selection{scope}.right"), of(choices.right));
        put(
            named,
            format!("selection{scope}.strict"),
            of(choices.strict),
        );
        put(
            named,
            format!("selection{scope}.family"),
            of(choices.family),
        );
        let mean = Some(Quantity::Share(choices.mean_regret));
        put(named, format!("selection{scope}.mean-regret"), mean);
        let most = Some(Quantity::Share(choices.most_regret));
        put(named, format!("selection{scope}.most-regret"), most);
        let name = |figure: &str| format!("selection{scope}.any-setting.{figure}");
        put(named, name("right"), of(choices.any_right));
        put(
            named,
            name("mean-regret"),
            Some(Quantity::Share(choices.any_mean)),
        );
        put(
            named,
            name("most-regret"),
            Some(Quantity::Share(choices.any_most)),
        );
    }
    // The slowest strategy with its best parameters against the fastest.
    let slowdowns = analysis.main_cases().filter_map(|case| {
        let classes = case.runs.iter().filter_map(|run| case.best_in(run.class()));
        let slowest = largest(classes.map(|run| run.seconds))?.1;
        Some(slowest / case.best().seconds)
    });
    let most = largest(slowdowns).map(|(_, most)| Quantity::Factor(most));
    put(named, "selection.wrong-strategy-most", most);
}

fn decomposition(analysis: &Analysis, named: &mut Named) {
    let Some(all) = analysis.penalty(None) else {
        return;
    };
    let of = |count: usize| Some(Quantity::Count(count as u64, all.workloads as u64));
    put(named, "decomposition.d4-optimal", of(all.fixed_optimal));
    put(
        named,
        "decomposition.d4-optimal-of-divided",
        of(all.fixed_optimal_divided),
    );
    put(
        named,
        "decomposition.predicted-optimal",
        of(all.predicted_optimal),
    );
    for (name, value) in [
        ("d4-mean", all.fixed_mean),
        ("d4-most", all.fixed_most),
        ("wrong-mean", all.wrong_mean),
        ("wrong-most", all.wrong_most),
        ("wrong-mean-of-divided", all.divided_mean),
        ("wrong-most-of-divided", all.divided_most),
        ("worst-mean", all.worst_mean),
    ] {
        let value = Some(Quantity::Share(value));
        put(named, format!("decomposition.{name}"), value);
    }
    let factor = |value: Option<f64>| value.map(Quantity::Factor);
    put(
        named,
        "decomposition.predicted-speedup",
        factor(all.predicted_speedup),
    );
    put(
        named,
        "decomposition.predicted-speedup-most",
        factor(all.predicted_speedup_most),
    );
    put(
        named,
        "decomposition.best-speedup",
        factor(Some(all.best_speedup)),
    );
    put(
        named,
        "decomposition.best-speedup-most",
        factor(Some(all.best_speedup_most)),
    );
    let mut sizes: Vec<u32> = analysis.groups().iter().map(|group| group.tp).collect();
    sizes.sort_unstable();
    sizes.dedup();
    for tp in sizes {
        let groups = analysis.groups().into_iter().filter(|group| group.tp == tp);
        let here: Vec<_> = groups
            .filter_map(|group| analysis.penalty(Some(&group)))
            .collect();
        let most = here
            .iter()
            .filter_map(|penalty| penalty.predicted_speedup_most);
        let most = largest(most).map(|(_, most)| most);
        put(
            named,
            format!("decomposition.predicted-speedup-most-tp{tp}"),
            factor(most),
        );
    }
}

fn winners(analysis: &Analysis, named: &mut Named) {
    let mut kinds: Vec<Kind> = analysis.groups().iter().map(|group| group.kind).collect();
    kinds.dedup();
    for kind in kinds {
        let here = || analysis.winners.iter().filter(|w| w.group.kind == kind);
        let cases: usize = here().map(|w| w.cases).sum();
        for family in [Family::Fusion, Family::Decomposition, Family::Sequential] {
            let won: usize = here().map(|w| w.won(family)).sum();
            let count = Some(Quantity::Count(won as u64, cases as u64));
            put(named, format!("winners.{kind}.{}", family.name()), count);
        }
        for class in ["fusion-ring", "fusion-double-ring"] {
            let cases = analysis
                .main_cases()
                .filter(|case| case.operator.kind == kind);
            let range = speedups(cases, class, MIDDLE);
            let range = range.map(|(low, high)| Quantity::Range(low, high));
            put(named, format!("speedup.{class}.{kind}"), range);
        }
    }
    let most = largest(analysis.winners.iter().filter_map(|w| w.speedup_most));
    put(
        named,
        "speedup.best-most",
        most.map(|(_, most)| Quantity::Factor(most)),
    );
}

/// Ratios at the largest size, by number of ranks: of the first grid, collective and machine that
/// have them.
fn bandwidth(analysis: &Analysis, named: &mut Named) {
    let mut groups: Vec<&Group> = analysis.curves.iter().map(|curve| &curve.group).collect();
    groups.dedup();
    for group in groups {
        let peak = |strategy: &str| {
            let mut curves = analysis.curves.iter();
            let curve = curves.find(|c| c.group == *group && *c.strategy == *strategy)?;
            curve.peak()
        };
        let ratio = |a: &str, b: &str| Some(peak(a)? / peak(b)?);
        let factor = |a, b| ratio(a, b).map(Quantity::Factor);
        let tp = group.tp;
        put(
            named,
            format!("bandwidth.double-over-single.tp{tp}"),
            factor("double-ring", "ring"),
        );
        put(
            named,
            format!("bandwidth.double-over-direct.tp{tp}"),
            factor("double-ring", "direct"),
        );
        let share = ratio("direct", "library").map(Quantity::Share);
        put(
            named,
            format!("bandwidth.direct-over-library.tp{tp}"),
            share,
        );
    }
}
