//! What Duet's own kernels are asked for.

use crate::gpu::lt::Problem;
use crate::gpu::plan::{GemmShape, Joined, Plan, What};
use crate::gpu::tiles::Stage;

/// What a kernel is asked for.
#[derive(Clone, Debug)]
pub struct Asked<'a> {
    pub problem: Problem,
    /// How its rows come.
    pub stages: Vec<Stage>,
    /// The products that it is, where these are several.
    pub joined: Option<&'a Joined>,
}

/// What a kernel is asked for at a step with a product: the product, or all that are joined with it; `None` at
/// steps without one and at one that is joined with one before.
pub fn asked(plan: &Plan, at: usize) -> Option<Asked<'_>> {
    let what = &plan.steps[at].what;
    let problem = problem(plan, &what.gemm()?);
    let with = |joined: &&Joined| joined.steps.contains(&at);
    let Some(joined) = plan.joined.iter().find(with) else {
        return Some(Asked {
            problem,
            stages: stages([what]),
            joined: None,
        });
    };
    if joined.steps[0] != at {
        return None;
    }
    let products = || joined.steps.iter().map(|&step| &plan.steps[step].what);
    let aligned = products()
        .filter_map(What::gemm)
        .map(|shape| shape.alignment);
    let least = aligned.min().unwrap_or(1);
    Some(Asked {
        problem: Problem {
            m: joined.a.rows.into(),
            accumulate: joined.accumulate,
            align: [least; 3],
            ..problem
        },
        stages: stages(products()),
        joined: Some(joined),
    })
}

/// How the rows of products that are one launch come: those that wait for nothing together. Rows that
/// come in slabs begin with the first.
fn stages<'a>(products: impl IntoIterator<Item = &'a What>) -> Vec<Stage> {
    let mut stages: Vec<Stage> = Vec::new();
    for what in products {
        let What::Gated {
            a,
            groups,
            accumulate,
            ..
        } = what
        else {
            continue;
        };
        for group in groups.iter().filter(|group| group.depth.start == 0) {
            let rows = u64::from(group.rows.len);
            let waits = !group.flags.is_empty() && group.depth.len == a.cols;
            let adds = *accumulate && waits;
            let leaves = group.to.is_some();
            let stage = Stage {
                rows,
                waits,
                adds,
                leaves,
            };
            Stage::push(&mut stages, stage);
        }
    }
    stages
}

/// A product of the plan as the library is asked for it.
pub(super) fn problem(plan: &Plan, shape: &GemmShape) -> Problem {
    Problem {
        m: shape.m.into(),
        n: shape.n.into(),
        k: shape.k.into(),
        ld: shape.ld.map(u64::from),
        align: [shape.alignment; 3],
        dtype: plan.dtype,
        accumulate: shape.accumulate,
        sms: shape.sms.into(),
    }
}
