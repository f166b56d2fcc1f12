//! What the fusions share: one GEMM kernel whose n groups of tiles meet n − 1 steps of communication.
//!
//! With g = Tc/n and t = Tm/(n − 1): `T = (n − 1)·max(g, t) + g + (n − 1)(α + β·m)`, that is
//!
//! ```text
//! compute: n · g          links: (n − 1) · t + g
//! ```
//!
//! A shard needs no communication on its own rank, so communication has n − 1 steps, not n; the
//! Compass paper prints Tm/n, kept as the term `compass-paper`.

use crate::device::gemm::GemmTime;
use crate::predict::form::{Pipeline, greater};
use crate::predict::model::Model;

/// A fused kernel.
#[derive(Copy, Clone, Debug)]
pub(super) struct Kernel {
    /// From the start of the operator to its first tile \[s\].
    pub start: f64,
    /// All its tiles \[s\].
    pub tiles: f64,
    /// The least that a group takes: a wave \[s\].
    pub wave: f64,
    /// Bytes that it moves in memory.
    pub bytes: f64,
}

impl Kernel {
    pub fn new(model: &Model<'_>) -> Self {
        let GemmTime {
            seconds,
            overhead,
            hbm_bytes,
            wave,
            ..
        } = model.whole;
        Self {
            start: model.costs.submit_kernel.get() + model.costs.kernel_start.get() + overhead,
            tiles: seconds - overhead,
            wave: if model.terms.stages { wave } else { 0.0 },
            bytes: hbm_bytes,
        }
    }

    /// A group that is the share `part` of all tiles \[s\].
    pub fn group(&self, part: f64) -> f64 {
        greater(self.tiles * part, self.wave)
    }
}

/// The form with its compute resource, and the memory where it counts: `moved` bytes go through
/// it beside the GEMM's.
pub(super) fn begin<P: Pipeline>(model: &Model<'_>, kernel: &Kernel, moved: f64, after: f64) -> P {
    let n = model.case.ranks();
    let form = P::new(n - 1.0).with("compute", kernel.start, kernel.tiles, n, after);
    if !model.terms.contention {
        return form.settled(after);
    }
    let memory = (kernel.bytes + moved) * model.gpu.per_hbm;
    form.with("memory", kernel.start, memory, 1.0, after)
        .settled(after)
}

/// The steps that take `total` together; the paper has Tm/n in each of the n − 1.
pub(super) fn steps(model: &Model<'_>, total: f64) -> f64 {
    match model.terms.compass_paper {
        true => total * (1.0 - model.case.part()),
        false => total,
    }
}

/// The form with the host that hands over `copies` copies with `syncs` waits and signals in all;
/// `after` is from the last one's hand-over to the end.
pub(super) fn with_host<P: Pipeline>(
    model: &Model<'_>,
    form: P,
    copies: f64,
    syncs: f64,
    after: f64,
) -> P {
    if !model.submits_calls() {
        return form;
    }
    let work = model.submits(copies, 0.0, syncs);
    form.with("host", model.submits(0.0, 1.0, 0.0), work, copies, after)
}
