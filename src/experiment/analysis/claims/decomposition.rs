//! Claims about the number of pieces d.

use super::{Check, Finding, printed, reason};
use crate::experiment::analysis::cases::Case;
use crate::experiment::analysis::statistics::mean;
use crate::experiment::analysis::{Analysis, Group};

pub(super) const D4_MINORITY: Check = Check {
    name: "d4-is-a-minority",
    claim: "The usual d = 4 is the best decomposition in a minority of workloads.",
    rule: "in less than half of them",
    find: |analysis| {
        let all = analysis.penalty(None)?;
        let share = all.fixed_optimal as f64 / all.workloads as f64;
        let best: Vec<String> = all
            .best
            .iter()
            .map(|(d, count)| format!("d = {d}: {count}"))
            .collect();
        let holds = share < 0.5;
        Some(Finding {
            holds,
            numbers: format!(
                "{} of {}, {:.1} %{}; the best are {}",
                all.fixed_optimal,
                all.workloads,
                100.0 * share,
                printed(analysis, "decomposition.d4-optimal"),
                best.join(", ")
            ),
            why: reason(
                holds,
                "d* = √(C/A) grows with what can be hidden: no one d suits workloads of every size.",
            ),
        })
    },
};

/// Cases of equal arithmetic and of different λ: pairs (larger λ, smaller λ) with their best d.
fn pairs(analysis: &Analysis) -> Vec<(u32, u32)> {
    let flops = |case: &Case| {
        case.operator
            .mnk()
            .map(|(m, n, k)| m as f64 * n as f64 * k as f64)
    };
    let mut pairs = Vec::new();
    for (at, a) in analysis.workloads.iter().enumerate() {
        let of_a = &analysis.cases[a.case];
        for b in &analysis.workloads[at + 1..] {
            let of_b = &analysis.cases[b.case];
            let alike = Group::of(of_a) == Group::of(of_b) && flops(of_a) == flops(of_b);
            let Some((la, lb)) = of_a.lambda().zip(of_b.lambda()).filter(|_| alike) else {
                continue;
            };
            // The claim is about cases that computation bounds.
            if la.max(lb) >= 1.0 && la != lb {
                pairs.push(if la > lb {
                    (a.best, b.best)
                } else {
                    (b.best, a.best)
                });
            }
        }
    }
    pairs
}

pub(super) const COMPUTE_BOUND: Check = Check {
    name: "compute-bound-prefers-smaller-d",
    claim: "Compute-bound cases prefer a smaller d.",
    rule: "of two cases of equal arithmetic, one of them with λ = T_comp/T_comm ≥ 1, the one with \
           the larger λ has the smaller best d more often than the larger",
    find: |analysis| {
        let pairs = pairs(analysis);
        let smaller = pairs.iter().filter(|(bound, other)| bound < other).count();
        let larger = pairs.iter().filter(|(bound, other)| bound > other).count();
        let typical = |wanted: fn(f64) -> bool| {
            let best = analysis.workloads.iter().filter_map(|w| {
                let lambda = analysis.cases[w.case].lambda()?;
                wanted(lambda).then(|| f64::from(w.best).log2())
            });
            mean(best).map(f64::exp2)
        };
        let (bound, other) = (typical(|l| l >= 1.0), typical(|l| l < 1.0));
        let show = |d: Option<f64>| d.map_or_else(|| "none".to_owned(), |d| format!("{d:.1}"));
        let holds = smaller > larger;
        (!pairs.is_empty()).then(|| Finding {
            holds,
            numbers: format!(
                "{} pairs: smaller in {smaller}, equal in {}, larger in {larger}; geometric mean \
                 of the best d over all cases: {} where λ ≥ 1, {} where λ < 1",
                pairs.len(),
                pairs.len() - smaller - larger,
                show(bound),
                show(other)
            ),
            why: reason(
                holds,
                "With λ ≥ 1 only communication can be hidden, C = T_comm in d* = √(C/A): less of \
                 it, fewer pieces. At equal λ a larger case takes more pieces, which is why the \
                 mean over all cases need not show it.",
            ),
        })
    },
};

/// Paths whose values are costs of a call or a step.
fn is_overhead(path: &str) -> bool {
    ["gpu.library.step", "gpu.library.base", "gpu.costs."]
        .iter()
        .any(|prefix| path.starts_with(prefix))
}

pub(super) const OVERHEAD_LOWERS_D: Check = Check {
    name: "overhead-lowers-d",
    claim: "The higher the overhead, the lower d*.",
    rule: "over every sweep of a cost, the geometric mean of the best d never rises with the cost \
           and ends lower than it began",
    find: |analysis| {
        let mut holds = true;
        let mut numbers = Vec::new();
        let sweeps = analysis.sweeps.iter();
        for sweep in sweeps.filter(|sweep| is_overhead(&sweep.path)) {
            let pieces: Option<Vec<f64>> = sweep.steps.iter().map(|step| step.pieces).collect();
            let Some(pieces) = pieces.filter(|pieces| pieces.len() > 1) else {
                continue;
            };
            let falls = pieces
                .windows(2)
                .all(|two| two[1] <= two[0] * (1.0 + 1e-12));
            holds &= falls && pieces[pieces.len() - 1] < pieces[0];
            let steps = sweep.steps.iter().zip(&pieces);
            let steps: Vec<String> = steps
                .map(|(step, d)| format!("{} d = {d:.1}", step.value))
                .collect();
            numbers.push(format!("{}: {}", sweep.group.title(), steps.join(", ")));
        }
        let path = analysis
            .sweeps
            .iter()
            .find(|sweep| is_overhead(&sweep.path))?;
        (!numbers.is_empty()).then(|| Finding {
            holds,
            numbers: format!("{} at {}", path.path, numbers.join("; ")),
            why: reason(
                holds,
                "Each further piece pays the overhead once more: A grows, √(C/A) falls.",
            ),
        })
    },
};
