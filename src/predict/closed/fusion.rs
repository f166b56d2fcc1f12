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
use crate::predict::form::Form;
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
        (self.tiles * part).max(self.wave)
    }
}

/// The form with its compute resource, and the memory where it counts: `moved` bytes go through
/// it beside the GEMM's.
pub(super) fn begin(model: &Model<'_>, kernel: &Kernel, moved: f64, after: f64) -> Form {
    let n = model.case.ranks();
    let form = Form::new(n - 1.0).with("compute", kernel.start, kernel.tiles / n, n, after);
    if !model.terms.contention {
        return form;
    }
    form.with(
        "memory",
        kernel.start,
        (kernel.bytes + moved) / model.gpu.hbm,
        1.0,
        after,
    )
}

/// The time of a step of n − 1 that take `total` together; the paper divides by n.
pub(super) fn step(model: &Model<'_>, total: f64) -> f64 {
    let n = model.case.ranks();
    total
        / if model.terms.compass_paper {
            n
        } else {
            n - 1.0
        }
}

/// The form with the host that hands over `copies` copies, each with so many waits and signals;
/// `after` is from the last one's hand-over to the end.
pub(super) fn with_host(
    model: &Model<'_>,
    form: Form,
    copies: f64,
    syncs: f64,
    after: f64,
) -> Form {
    if !model.terms.launch {
        return form;
    }
    let each = model.submits(1.0, 0.0, syncs);
    form.with("host", model.submits(0.0, 1.0, 0.0), each, copies, after)
}
