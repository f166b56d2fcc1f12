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
//!
//! A fusion in one setting is a value of its own ([`Frame`] and what its file adds), made of all that
//! does not depend on the shape; a [`Kernel`] is what the shape adds.

use crate::device::gemm::GemmTime;
use crate::predict::form::{Pipeline, greater};
use crate::predict::model::Model;
use crate::predict::site::Site;

/// A fused kernel, and the shards that it meets.
#[derive(Copy, Clone, Debug)]
pub(in crate::predict) struct Kernel {
    /// From the start of the operator to its first tile \[s\].
    pub start: f64,
    /// All its tiles \[s\].
    pub tiles: f64,
    /// The least that a group takes: a wave \[s\].
    pub wave: f64,
    /// What the memory takes for its bytes and those of the shards; 0 where that does not count \[s\].
    pub memory: f64,
    /// Bytes of a shard.
    pub shard: f64,
}

impl Kernel {
    #[inline]
    pub fn new(model: &Model<'_>) -> Self {
        let GemmTime {
            seconds,
            overhead,
            hbm_bytes,
            wave,
            ..
        } = model.whole;
        let c = &model.site.costs;
        Self {
            start: c.submit_kernel.get() + c.kernel_start.get() + overhead,
            tiles: seconds - overhead,
            wave: if model.site.terms.stages { wave } else { 0.0 },
            memory: match model.site.terms.contention {
                true => hbm_bytes * model.site.per_hbm + model.shard * model.site.moved,
                false => 0.0,
            },
            shard: model.shard,
        }
    }

    /// A group that is the share `part` of all tiles \[s\].
    #[inline]
    pub fn group(&self, part: f64) -> f64 {
        greater(self.tiles * part, self.wave)
    }
}

/// The resources that all fusions have.
#[derive(Clone, Debug)]
pub(super) struct Frame {
    pub ranks: f64,
    /// n − 1.
    pub steps: f64,
    /// Of the steps' time, what counts: the paper has Tm/n in each of the n − 1.
    pub counted: f64,
    /// The host, where it hands copies over: the kernel's submission, all copies', and their number.
    host: Option<(f64, f64, f64)>,
}

impl Frame {
    /// `copies` copies with `syncs` waits and signals are handed over in all.
    pub fn new(site: &Site, copies: f64, syncs: f64) -> Self {
        Self {
            ranks: site.ranks,
            steps: site.ranks - 1.0,
            counted: match site.terms.compass_paper {
                true => 1.0 - site.part,
                false => 1.0,
            },
            host: (site.submits_calls() && site.terms.stages).then(|| {
                let kernel = site.submits(0.0, 1.0, 0.0);
                (kernel, site.submits(copies, 0.0, syncs), copies)
            }),
        }
    }

    /// The form with its compute resource, and the memory where it counts.
    #[inline]
    pub fn begin<P: Pipeline>(&self, kernel: &Kernel, after: f64) -> P {
        let form =
            P::new(self.steps).with("compute", kernel.start, kernel.tiles, self.ranks, after);
        let form = match kernel.memory > 0.0 {
            true => form.with("memory", kernel.start, kernel.memory, 1.0, after),
            false => form,
        };
        form.settled(after)
    }

    /// The form with the host; `after` is from the last copy's hand-over to the end.
    #[inline]
    pub fn with_host<P: Pipeline>(&self, form: P, after: f64) -> P {
        match self.host {
            Some((before, work, copies)) => form.with("host", before, work, copies, after),
            None => form,
        }
    }
}
