//! GEMMs that copies slow, and collectives that GEMMs slow, by the rates of the moment.
//!
//! A GEMM's speed is what the copies leave of it; a collective's is the share that it keeps, while a GEMM
//! runs on the GPU of any of its members.
//!
//! Rates are solved first, as if nothing were slowed; what copies then take is the use of a resource
//! of each GPU, and its GEMMs' own bounds become 1 − use of what they were. A GEMM that is slowed frees
//! memory bandwidth, if any was short, and copies then take more, so this is repeated until no bound
//! changes. Then speeds do not depend on what was solved before.
//!
//! ```text
//! T' = T / (1 − Σ rᵢ/Rᵢ)     a GEMM of T beside copies of constant rates rᵢ that outlast it
//! T' = T / s                 a collective of T that keeps s beside a GEMM that outlasts it
//! ```

use smallvec::SmallVec;

use super::engine::Engine;
use super::fluid::{FlowId, TIE};
use crate::schedule::{Member, Work};

/// Most repetitions; each changes bounds by a few percent of what the one before did.
pub(super) const SWEEPS: usize = 8;
/// Least speed of a GEMM, of its own.
const LEAST: f64 = 0.01;

/// What is slowed.
#[derive(Clone, Debug)]
enum What {
    /// A GEMM on a GPU.
    Gemm(u32),
    /// A collective on GPUs, and its speed beside GEMMs.
    Collective(Vec<u32>, f64),
}

/// A running flow that is slowed at times.
#[derive(Clone, Debug)]
struct Running {
    flow: FlowId,
    what: What,
    /// Its bound by itself, and as it is.
    own: f64,
    now: f64,
}

/// What runs and is slowed at times, on machines where anything is.
#[derive(Debug, Default)]
pub(super) struct Slowed {
    /// Whether anything is slowed on this machine.
    any: bool,
    running: Vec<Running>,
}

impl Slowed {
    pub fn new(any: bool) -> Self {
        Self {
            any,
            running: Vec::new(),
        }
    }

    /// Whether nothing is slowed now.
    pub fn is_empty(&self) -> bool {
        self.running.is_empty()
    }

    /// A flow has left.
    pub fn leaves(&mut self, flow: FlowId) {
        if self.any {
            self.running.retain(|running| running.flow != flow);
        }
    }
}

impl Engine<'_> {
    /// The flow of a task begins with its own bound.
    pub fn slows(&mut self, task: u32, flow: FlowId, bound: f64) {
        if !self.slowed.any {
            return;
        }
        let what = match self.schedule.tasks[task as usize].work {
            Work::Compute(_) if self.costs.gemm_shape(task).is_some() => {
                What::Gemm(self.costs.gpu(task))
            }
            Work::Collective(id) if self.options.terms.contention => {
                let collective = &self.schedule.collectives[id.index()];
                let beside = &self.costs.device(self.costs.gpu(task)).beside;
                let Some(keeps) = beside.collectives[collective.kind as usize] else {
                    return;
                };
                let gpu = |member: &Member| self.schedule.placement[usize::from(member.rank.0)];
                let gpus = collective.members.iter().map(gpu).collect();
                let alone = self.alone(f64::INFINITY);
                What::Collective(gpus, alone * keeps)
            }
            _ => return,
        };
        self.slowed.running.push(Running {
            flow,
            what,
            own: bound,
            now: bound,
        });
    }

    /// Changes the own bound of a flow.
    pub fn rebound(&mut self, flow: FlowId, bound: f64) {
        let mut running = self.slowed.running.iter_mut();
        if let Some(running) = running.find(|running| running.flow == flow) {
            (running.own, running.now) = (bound, bound);
        }
        self.fluid.set_bound(flow, bound);
    }

    /// Gives what is slowed the bounds that the others leave it, whose rates are solved; says whether any
    /// is new.
    pub fn slow(&mut self) -> bool {
        let mut any = false;
        let gemms: SmallVec<[u32; 8]> = (self.slowed.running.iter())
            .filter_map(|running| match running.what {
                What::Gemm(gpu) => Some(gpu),
                What::Collective(..) => None,
            })
            .collect();
        for running in &mut self.slowed.running {
            let bound = match &running.what {
                What::Gemm(gpu) => {
                    let taken = self.fluid.usage(self.costs.machine.beside(*gpu));
                    running.own * (1.0 - taken).max(LEAST)
                }
                What::Collective(gpus, slow) if gpus.iter().any(|gpu| gemms.contains(gpu)) => {
                    running.own.min(*slow)
                }
                What::Collective(..) => running.own,
            };
            let change = (bound - running.now).abs();
            // Of a bound that is or was infinite any change counts.
            if change > TIE * bound.min(running.now) {
                running.now = bound;
                self.fluid.set_bound(running.flow, bound);
                any = true;
            }
        }
        any
    }
}
