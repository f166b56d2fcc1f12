//! How much memory a run takes.

use crate::gpu::lt::WORKSPACE;
use crate::gpu::plan::Plan;

/// By stream: whether it multiplies.
pub(super) fn multiplies(plan: &Plan) -> Vec<bool> {
    let mut multiplies = vec![false; plan.streams.len()];
    for step in &plan.steps {
        multiplies[step.stream.index()] |= step.what.product().is_some();
    }
    multiplies
}

/// Bytes of memory that a run of `plan` takes, by GPU of the plan.
pub fn memory(plan: &Plan) -> Vec<u64> {
    let multiplies = multiplies(plan);
    let needed = |gpu: usize| needed(plan, gpu, &multiplies);
    (0..plan.gpus.len()).map(needed).collect()
}

/// Bytes of memory that a GPU of the plan needs.
fn needed(plan: &Plan, gpu: usize, multiplies: &[bool]) -> u64 {
    let spaces = plan
        .streams
        .iter()
        .zip(multiplies)
        .filter(|(stream, yes)| stream.gpu.index() == gpu && **yes)
        .count() as u64;
    let flags = plan.flags.iter().filter(|f| f.gpu.index() == gpu).count() as u64;
    plan.arenas[gpu]
        .half
        .saturating_mul(2)
        .saturating_add(spaces * WORKSPACE)
        .saturating_add(4 * flags)
}
