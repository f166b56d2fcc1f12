//! GEMMs that copies slow: their speed is what the copies leave of it, by the rates of the moment.
//!
//! Rates are solved first, as if GEMMs were not slowed; what copies then take is the use of a resource
//! of each GPU, and its GEMMs' own bounds become 1 − use of what they were. A GEMM that is slowed frees
//! memory bandwidth, if any was short, so all is solved once more.
//!
//! ```text
//! T' = T / (1 − Σ rᵢ/Rᵢ)     a GEMM of T beside copies of constant rates rᵢ that outlast it
//! ```

use super::engine::Engine;
use super::fluid::FlowId;

/// Least speed of a GEMM, of its own.
const LEAST: f64 = 0.01;

/// A running GEMM.
#[derive(Copy, Clone, Debug)]
struct Running {
    flow: FlowId,
    gpu: u32,
    /// Its bound by itself, and as it is.
    own: f64,
    now: f64,
}

/// GEMMs that run, where copies slow any.
#[derive(Debug, Default)]
pub(super) struct Slowed {
    /// Whether copies slow GEMMs on this machine.
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
        if self.slowed.any && self.costs.gemm_shape(task).is_some() {
            self.slowed.running.push(Running {
                flow,
                gpu: self.costs.gpu(task),
                own: bound,
                now: bound,
            });
        }
    }

    /// Changes the own bound of a flow.
    pub fn rebound(&mut self, flow: FlowId, bound: f64) {
        let mut running = self.slowed.running.iter_mut();
        if let Some(running) = running.find(|running| running.flow == flow) {
            (running.own, running.now) = (bound, bound);
        }
        self.fluid.set_bound(flow, bound);
    }

    /// Gives GEMMs the bounds that copies leave them, whose rates are solved; says whether any is new.
    pub fn slow(&mut self) -> bool {
        let mut any = false;
        for running in &mut self.slowed.running {
            let taken = self.fluid.usage(self.costs.machine.beside(running.gpu));
            let bound = running.own * (1.0 - taken).max(LEAST);
            if bound != running.now {
                running.now = bound;
                self.fluid.set_bound(running.flow, bound);
                any = true;
            }
        }
        any
    }
}
