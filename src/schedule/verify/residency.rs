//! Whether kernels that wait on one another fit the SMs of the GPU they share.
//!
//! A kernel that waits while it holds SMs (a fused kernel with flags from outside, a member of a
//! collective) needs everything it waits for to run beside it. For each such kernel X on GPU g
//!
//! ```text
//! SMs(X) + Σ over the other lanes of g: max SMs of a kernel y in that lane where
//!          X waits for y after it began, or y itself waits and is in no order with X   ≤ SMs(g)
//! ```
//!
//! A waiting kernel that may use all free SMs is taken to hold all. This is sufficient for
//! progress; a schedule that breaks it may still run if its kernels happen to start in a good
//! order.

use super::clocks::Clocks;
use super::order::Order;
use super::{GpuSms, Stop, VerifyError};
use crate::schedule::{Compute, Mover, Schedule, TaskId, Via, Work};

/// Something that holds SMs from one node of the order to another.
struct Kernel {
    /// Its first task.
    task: TaskId,
    first: u32,
    last: u32,
    lane: u32,
    gpu: u32,
    sms: u32,
    waits: bool,
}

pub(super) fn check(
    schedule: &Schedule,
    order: &Order,
    clocks: &mut Clocks,
    sms: &dyn Fn(u32) -> GpuSms,
    budget: u64,
) -> Result<(), Stop> {
    let kernels = kernels(schedule, order, sms);
    let mut by_gpu: Vec<usize> = (0..kernels.len()).collect();
    by_gpu.sort_by_key(|&i| (kernels[i].gpu, kernels[i].lane, kernels[i].task));
    for group in by_gpu.chunk_by(|&i, &j| kernels[i].gpu == kernels[j].gpu) {
        let alone = kernels[group[0]].lane == kernels[group[group.len() - 1]].lane;
        for &x in group.iter().filter(|&&i| kernels[i].waits && !alone) {
            fits(schedule, order, clocks, sms, &kernels, group, x)?;
            if clocks.steps > budget {
                return Err(Stop::Budget);
            }
        }
    }
    Ok(())
}

/// Every kernel of the schedule in task order.
fn kernels(schedule: &Schedule, order: &Order, sms: &dyn Fn(u32) -> GpuSms) -> Vec<Kernel> {
    let mut kernels: Vec<Kernel> = Vec::new();
    let mut of_launch: Vec<Option<usize>> = vec![None; schedule.launches.len()];
    for (i, task) in schedule.tasks.iter().enumerate() {
        let id = TaskId(i as u32);
        let gpu = schedule.placement[task.rank.0 as usize];
        let flagged = schedule.deps(id).iter().any(|dep| {
            dep.via == Via::KernelFlag
                && (task.launch.is_none() || schedule.task(dep.task).launch != task.launch)
        });
        if let Some(launch) = task.launch {
            if let Some(k) = of_launch[launch.index()] {
                kernels[k].waits |= flagged;
                continue;
            }
            of_launch[launch.index()] = Some(kernels.len());
        }
        let stated = match (task.launch, task.work) {
            (Some(launch), _) => u32::from(schedule.launches[launch.index()].sms),
            (None, Work::Transfer { mover, .. }) => match mover {
                Mover::CopyEngine | Mover::Epilogue | Mover::Loader => continue,
                Mover::Sm { blocks } => u32::from(blocks),
            },
            (None, Work::Compute(c)) => match schedule.computes[c.index()] {
                Compute::Gemm { sms, .. } => u32::from(sms),
                _ => 1,
            },
            (None, Work::Collective(c)) => match schedule.collectives[c.index()].sms {
                0 => sms(gpu).collective,
                n => u32::from(n),
            },
        };
        let [first, last] = match task.launch {
            Some(launch) => [order.start(launch), order.end(launch)],
            None => [id.0; 2],
        };
        kernels.push(Kernel {
            task: id,
            first,
            last,
            lane: order.chain[first as usize],
            gpu,
            sms: stated,
            waits: flagged || matches!(task.work, Work::Collective(_)),
        });
    }
    let collective = |k: &Kernel| matches!(schedule.task(k.task).work, Work::Collective(_));
    for kernel in kernels.iter_mut().filter(|k| k.sms == 0 && !collective(k)) {
        kernel.sms = if kernel.waits {
            sms(kernel.gpu).total
        } else {
            1
        };
    }
    kernels
}

/// Checks the waiting kernel `x` against the others of its GPU.
fn fits(
    schedule: &Schedule,
    order: &Order,
    clocks: &mut Clocks,
    sms: &dyn Fn(u32) -> GpuSms,
    kernels: &[Kernel],
    group: &[usize],
    x: usize,
) -> Result<(), VerifyError> {
    let kernel = &kernels[x];
    let before = began_after(schedule, order, clocks, kernel);
    let during = clocks.closure(order, kernel.last);
    clocks.steps += (before.len() + group.len()) as u64;
    let mut needed = 0u64;
    let mut others: Vec<String> = Vec::new();
    for lane in group.chunk_by(|&i, &j| kernels[i].lane == kernels[j].lane) {
        if kernels[lane[0]].lane == kernel.lane {
            continue;
        }
        let mut most: Option<&Kernel> = None;
        for y in lane.iter().map(|&i| &kernels[i]) {
            let upto = |node: u32| order.position[node as usize];
            let awaited =
                upto(y.first) <= during[y.lane as usize] && upto(y.last) > before[y.lane as usize];
            let beside = y.waits
                && upto(y.last) > before[y.lane as usize]
                && !clocks.ordered(order, kernel.last, y.first);
            if (awaited || beside) && most.is_none_or(|m| y.sms > m.sms) {
                most = Some(y);
            }
        }
        if let Some(y) = most {
            needed += u64::from(y.sms);
            if others.len() < 3 {
                others.push(schedule.describe(y.task));
            }
        }
    }
    let total = sms(kernel.gpu).total;
    if u64::from(kernel.sms) + needed <= u64::from(total) || needed == 0 {
        return Ok(());
    }
    Err(VerifyError::CanDeadlock {
        kernel: schedule.describe(kernel.task),
        gpu: kernel.gpu,
        sms: total,
        held: kernel.sms,
        needed,
        others: others.join(", "),
    })
}

/// By lane: what has ended when the kernel takes its SMs, that is what its first task waits for
/// other than by kernel flags.
fn began_after(
    schedule: &Schedule,
    order: &Order,
    clocks: &mut Clocks,
    kernel: &Kernel,
) -> Vec<u32> {
    if let Some(launch) = schedule.task(kernel.task).launch {
        return clocks.closure(order, order.start(launch));
    }
    let collective = matches!(schedule.task(kernel.task).work, Work::Collective(_));
    let mut reached = vec![0; order.lanes as usize];
    let edges = order.edges(schedule, kernel.task);
    let starts = schedule
        .deps(kernel.task)
        .iter()
        .zip(edges)
        .filter(|(dep, _)| dep.via != Via::KernelFlag || collective)
        .map(|(_, (_, from))| from)
        .chain(order.lane_before(schedule, kernel.task));
    for from in starts {
        for (at, upto) in reached.iter_mut().zip(clocks.closure(order, from)) {
            *at = upto.max(*at);
        }
    }
    reached
}
