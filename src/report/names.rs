//! Words for what schedules and timelines contain.

use super::grid::clean;
use crate::schedule::{CollectiveKind, Compute, Lane, Schedule, TaskId, Work};
use crate::timeline::Bound;
use crate::topology::{LinkId, NodeId, Topology};
use crate::units::Bytes;

/// A link direction: `gpu0->nvswitch`.
pub fn link(topology: &Topology, link: LinkId) -> String {
    let name = |node: NodeId| clean(&topology.graph[node].name);
    match topology.graph.edge_endpoints(link) {
        Some((from, to)) => format!("{}->{}", name(from), name(to)),
        None => format!("link {}", link.index()),
    }
}

/// The name of GPU `gpu`.
pub fn gpu(topology: &Topology, gpu: u32) -> String {
    match topology.gpus.get(gpu as usize) {
        Some(&node) => clean(&topology.graph[node].name),
        None => format!("gpu{gpu}"),
    }
}

/// What bound a task: `compute`, `hbm gpu3`, `link gpu0->nvswitch`, `shared uplink`, …
pub fn bound(topology: &Topology, bound: Bound) -> String {
    match bound {
        Bound::Nothing => "nothing".to_owned(),
        Bound::Compute => "compute".to_owned(),
        Bound::Hbm(n) => format!("hbm {}", gpu(topology, n)),
        Bound::Link(id) => format!("link {}", link(topology, id)),
        Bound::Shared(n) => match topology.shared.get(n as usize) {
            Some(shared) => format!("shared {}", clean(&shared.name)),
            None => format!("shared {n}"),
        },
        Bound::Mover => "mover".to_owned(),
        Bound::Latency => "latency".to_owned(),
    }
}

/// The name of a lane.
pub fn lane(schedule: &Schedule, lane: Lane) -> String {
    match schedule.lanes.iter().find(|(known, _)| *known == lane) {
        Some((_, name)) => clean(name),
        None if lane.0 == 0 => "compute".to_owned(),
        None => format!("lane {}", lane.0),
    }
}

/// What kind of work a task is: `gemm`, `copy`, `all-gather`, `reduce`, `pointwise`.
pub fn kind(schedule: &Schedule, task: TaskId) -> &'static str {
    match schedule.task(task).work {
        Work::Transfer { .. } => "copy",
        Work::Compute(compute) => match schedule.computes[compute.index()] {
            Compute::Gemm { .. } => "gemm",
            Compute::Reduce { .. } => "reduce",
            Compute::Pointwise { .. } => "pointwise",
        },
        Work::Collective(id) => match schedule.collectives[id.index()].kind {
            CollectiveKind::AllGather => "all-gather",
            CollectiveKind::ReduceScatter => "reduce-scatter",
            CollectiveKind::AllReduce => "all-reduce",
            CollectiveKind::AllToAll => "all-to-all",
        },
    }
}

/// Bytes that a task copies from a slice onto another, or that a collective's member contributes.
pub fn bytes(schedule: &Schedule, task: TaskId) -> Option<u64> {
    match schedule.task(task).work {
        Work::Transfer { to, .. } => Some(schedule.bytes(&to)),
        Work::Collective(id) => schedule.collectives[id.index()]
            .members
            .iter()
            .find(|member| member.task == task)
            .map(|member| schedule.bytes(&member.input)),
        Work::Compute(_) => None,
    }
}

/// What a task does: `gemm 1024 × 6144 × 12288`, `copy 12 MiB gpu1->gpu0`, …
pub fn label(topology: &Topology, schedule: &Schedule, task: TaskId) -> String {
    let kind = kind(schedule, task);
    let size = bytes(schedule, task).map(|bytes| Bytes::new(bytes).to_string());
    match schedule.task(task).work {
        Work::Transfer { from, to, .. } => {
            let place = |slice| {
                let rank = schedule.rank_of(slice);
                gpu(topology, schedule.placement[usize::from(rank.0)])
            };
            let size = size.unwrap_or_default();
            format!("{kind} {size} {}->{}", place(&from), place(&to))
        }
        Work::Compute(compute) => match &schedule.computes[compute.index()] {
            Compute::Gemm { a, out, .. } => {
                let (m, n, k) = (out.rows.len, out.cols.len, a.cols.len);
                format!("{kind} {m} × {n} × {k}")
            }
            Compute::Reduce { inputs, out } => {
                let size = Bytes::new(schedule.bytes(out));
                format!("{kind} {} inputs of {size}", inputs.len())
            }
            Compute::Pointwise { bytes, .. } => format!("{kind} {}", Bytes::new(*bytes)),
        },
        Work::Collective(_) => format!("{kind} {}", size.unwrap_or_default()),
    }
}
