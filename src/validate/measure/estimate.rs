//! What measuring a group takes, foreseen without GPUs: memory by its plans, time by the simulator.

use std::time::Duration;

use super::variant::variants;
use crate::experiment::Measure;
use crate::gpu::compare::Checker;
use crate::gpu::exec::memory;
use crate::gpu::heat::rest_after;
use crate::sim::{self, Options};
use crate::topology::Topology;
use crate::validate::cases::Planned;

/// Seconds of a sample beside rest, heating and makespan: submission, barrier, polling.
pub const SAMPLE: f64 = 0.4e-3;
/// Seconds of a group beside its samples, and of one of its cases: building, taking memory, first
/// calls, checking.
pub const GROUP: f64 = 0.3;
const CASE: f64 = 0.15;
/// Seconds that no makespan is longer than.
const DAY: f64 = 86_400.0;
/// Bytes of a GPU that are taken by the driver, the libraries and the heating.
pub const BASE: u64 = 3 << 30;

/// What a group takes.
#[derive(Clone, Debug, PartialEq)]
pub struct Estimate {
    /// Cases that can be performed, references included.
    pub performed: usize,
    /// Those that cannot, and why.
    pub skipped: Vec<(String, String)>,
    /// Bytes of the GPU that needs most.
    pub memory: u64,
    /// Seconds.
    pub seconds: f64,
}

impl Estimate {
    /// Whether the memory of every GPU of the topology suffices.
    pub fn fits(&self, topology: &Topology) -> bool {
        let gpus = 0..topology.gpus.len() as u32;
        gpus.into_iter()
            .all(|gpu| self.memory <= topology.device(gpu).memory.get())
    }
}

/// Foresees a group on `topology`, whose path is the group's.
pub fn estimate(planned: &Planned, topology: &Topology, measure: &Measure) -> Estimate {
    let sms = topology.device(0).sms;
    let options = Options {
        launch: planned.group.launch,
        ..Options::default()
    };
    let gemm = sim::unsplit_gemm(
        &planned.group.operator,
        topology,
        &planned.group.placement,
        &options,
    )
    .ok();
    let mut found = Estimate {
        performed: 0,
        skipped: Vec::new(),
        memory: 0,
        seconds: GROUP,
    };
    let (mut needed, mut checking) = (vec![0_u64; topology.gpus.len()], 0);
    for variant in variants(planned, topology, sms, false) {
        let prepared = match variant.prepared {
            Ok(ref prepared) => prepared,
            Err(reason) => {
                let subject = variant.case.subject.to_string();
                found.skipped.push((subject, reason));
                continue;
            }
        };
        found.performed += 1;
        for (gpu, bytes) in prepared.plan.gpus.iter().zip(memory(&prepared.plan)) {
            if let Some(sum) = needed.get_mut(*gpu as usize) {
                *sum = sum.saturating_add(bytes);
            }
        }
        if variant.computes() {
            checking = checking.max(Checker::memory(&prepared.schedule).unwrap_or(0));
        }
        // A reference, and what the simulator cannot perform, counts as a GEMM.
        let makespan = match variant.computes() {
            true => sim::simulate(&prepared.schedule, topology, &options)
                .map(|timeline| timeline.makespan)
                .ok(),
            false => None,
        };
        let makespan = makespan.or(gemm).unwrap_or(0.0);
        let busy = measure.warm.as_secs_f64() + makespan;
        let rest = match measure.warm.is_zero() {
            true => 0.0,
            false => rest_after(Duration::from_secs_f64(busy.min(DAY))).as_secs_f64(),
        };
        let sample = rest + busy + SAMPLE;
        found.seconds += CASE + f64::from(measure.rounds + 3) * sample;
    }
    let most = needed.into_iter().max().unwrap_or(0);
    found.memory = most.saturating_add(checking).saturating_add(BASE);
    found
}
