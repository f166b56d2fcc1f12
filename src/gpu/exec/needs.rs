//! What the streams and GPUs of a run must be able to do.

use super::machine::Machine;
use crate::gpu::GpuError;
use crate::gpu::plan::{Plan, What};

/// By stream: whether it copies to the host, from it, and does other things than signal.
pub(super) fn does(plan: &Plan) -> Vec<[bool; 3]> {
    let mut all = vec![[false; 3]; plan.streams.len()];
    for step in &plan.steps {
        let does = &mut all[step.stream.index()];
        match step.what {
            What::ToHost { .. } => does[0] = true,
            What::FromHost { .. } => does[1] = true,
            What::Record(_) | What::Await(_) | What::WriteFlag(_) | What::AwaitFlag(_) => {}
            _ => does[2] = true,
        }
    }
    all
}

/// That every GPU reaches the memory of others that its steps touch.
pub(super) fn reachable(machine: &Machine<'_>, plan: &Plan, at: &[usize]) -> Result<(), GpuError> {
    for step in &plan.steps {
        let here = plan.streams[step.stream.index()].gpu;
        let touched = match &step.what {
            What::Copy { from, to } => vec![from.gpu, to.gpu],
            What::CopyKernel { from, to, sets, .. } => {
                let flag = sets.map(|flag| plan.flags[flag.index()].gpu);
                [from.gpu, to.gpu].into_iter().chain(flag).collect()
            }
            What::WriteFlag(flag) => vec![plan.flags[flag.index()].gpu],
            What::Gated { groups, loads, .. } => {
                let sets = groups.iter().filter_map(|group| group.sets);
                let flags = sets.map(|flag| plan.flags[flag.index()].gpu);
                let to = groups.iter().filter_map(|group| group.to.map(|to| to.gpu));
                let from = loads.iter().map(|load| load.from.gpu);
                flags.chain(to).chain(from).collect()
            }
            _ => continue,
        };
        for gpu in touched {
            machine.need_peer(at[here.index()], at[gpu.index()])?;
        }
    }
    Ok(())
}
