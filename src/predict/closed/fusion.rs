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
//! A fusion in one setting is a set of [`Chain`]s, made of all that does not depend on the shape; a
//! [`Kernel`] is what the shape adds.

use crate::device::gemm::GemmTime;
use crate::predict::chains::{Chain, Envelope, Linear, Quantities};
use crate::predict::form::{Pipeline, greater};
use crate::predict::model::Model;
use crate::predict::network::{Arrivals, Edge, Exchange, HeldUp};
use crate::predict::site::Site;

/// A fused kernel and the shards that it meets.
#[derive(Copy, Clone, Debug)]
pub(in crate::predict) struct Kernel(Quantities);

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
        let (site, shard) = (model.site, model.shard);
        let memory = hbm_bytes * site.per_hbm + shard * site.moved;
        Self([1.0, shard, overhead, seconds - overhead, wave, memory])
    }

    /// The same for an [`Envelope`]: the memory at work as long as the tiles at least.
    #[inline]
    pub fn busy(self) -> Self {
        let Self([one, shard, overhead, tiles, wave, memory]) = self;
        Self([one, shard, overhead, tiles, wave, greater(memory, tiles)])
    }
}

/// A fusion in one setting, without its shape.
#[derive(Clone, Debug)]
pub(in crate::predict) struct Fusion {
    steps: f64,
    chains: Vec<Chain>,
    /// Chains that an exchange at the kernel's pace makes longer.
    paced: Option<(Paced, Vec<Chain>)>,
    /// What a gather holds up.
    gathered: Option<Gathered>,
}

/// A gather whose pieces a kernel takes up one after another.
#[derive(Clone, Debug)]
pub(super) struct Gathered {
    pub arrivals: Arrivals,
    /// From an arrival to the tiles that wait for it \[s\].
    pub flag: f64,
    /// A piece's part of all tiles.
    pub part: f64,
}

impl Gathered {
    /// What holds the kernel up most.
    #[inline]
    fn held_up(&self, Kernel([_, shard, _, tiles, wave, _]): &Kernel) -> HeldUp {
        let each = tiles * self.part;
        self.arrivals.held_up(*shard, each, greater(each, *wave))
    }

    #[inline]
    fn seconds(&self, kernel: &Kernel) -> f64 {
        self.held_up(kernel).seconds + self.flag
    }

    fn add_to<P: Pipeline>(&self, form: P, kernel: &Kernel) -> P {
        let held = self.held_up(kernel);
        let first = self.arrivals.first;
        let (work, after) = (held.arrival - first, held.seconds - held.arrival);
        form.with(
            "links",
            first,
            work,
            held.pieces as f64 + 1.0,
            self.flag + after,
        )
    }
}

/// An exchange that follows the kernel's groups.
#[derive(Clone, Debug)]
pub(super) struct Paced {
    pub exchange: Exchange,
    /// Starting a copy, and handing over to the next in a lane \[s\].
    pub start: f64,
    pub lane: f64,
    /// A rank's part of all tiles.
    pub part: f64,
}

impl Paced {
    /// From the last group but one to the last arrival \[s\].
    #[inline]
    fn seconds(&self, Kernel([_, shard, _, tiles, wave, _]): &Kernel) -> f64 {
        let group = tiles * self.part;
        let starts = (self.start, self.lane);
        self.exchange.paced(*shard, starts, group, *wave)
    }

    /// It takes no less, and what comes before it with it no less than the other without that.
    fn least(&self, steps: f64) -> [Linear; 2] {
        let least = self.exchange.least_paced(self.start, steps);
        let groups = Linear::TILES * (steps * self.part);
        let [alone, together] = least.map(|edge| line(&edge));
        [alone, together - groups]
    }
}

impl Fusion {
    pub(super) fn new(frame: &Frame, chains: Vec<Chain>) -> Self {
        Self {
            steps: frame.steps,
            chains,
            paced: None,
            gathered: None,
        }
    }

    #[must_use]
    pub(super) fn gathered(mut self, gathered: Gathered) -> Self {
        self.gathered = Some(gathered);
        self
    }

    #[must_use]
    pub(super) fn paced(mut self, paced: Paced, chains: Vec<Chain>) -> Self {
        self.paced = Some((paced, chains));
        self
    }

    /// All its resources at a shape.
    pub fn form<P: Pipeline>(&self, kernel: &Kernel) -> P {
        let Kernel(shape) = kernel;
        let chains = self.chains.iter();
        let mut form = chains.fold(P::new(self.steps), |form, chain| {
            chain.add_to(form, shape, 0.0)
        });
        if let Some(gathered) = &self.gathered {
            form = gathered.add_to(form, kernel);
        }
        let Some((paced, chains)) = &self.paced else {
            return form;
        };
        let more = paced.seconds(kernel);
        (chains.iter()).fold(form, |form, chain| chain.add_to(form, shape, more))
    }
}

/// A fusion in one setting, for its time alone.
#[derive(Clone, Debug)]
pub(in crate::predict) struct Quick {
    pub steps: f64,
    envelope: Envelope,
    paced: Option<(Paced, Envelope)>,
    gathered: Option<Gathered>,
}

impl Quick {
    pub fn new(fusion: &Fusion) -> Self {
        let whole = |chains: &[Chain]| chains.iter().map(Chain::whole).collect::<Vec<_>>();
        let mut lines = whole(&fusion.chains);
        let paced = fusion.paced.as_ref().map(|(paced, chains)| {
            let chains = whole(chains);
            for least in paced.least(fusion.steps) {
                lines.extend(chains.iter().map(|line| *line + least));
            }
            (paced.clone(), Envelope::new(chains))
        });
        Self {
            steps: fusion.steps,
            envelope: Envelope::new(lines),
            paced,
            gathered: fusion.gathered.clone(),
        }
    }

    /// The longest chain of a [`Kernel::busy`] one; something from `limit` on where it is that or longer
    /// \[s\].
    #[inline(always)]
    pub fn seconds(&self, kernel: &Kernel, limit: f64) -> f64 {
        let Kernel(shape) = kernel;
        let least = self.envelope.at(shape, limit);
        if least >= limit {
            return least;
        }
        match (&self.paced, &self.gathered) {
            (Some((paced, envelope)), _) => {
                let own = envelope.at(shape, f64::INFINITY);
                greater(least, own + paced.seconds(kernel))
            }
            (_, Some(gathered)) => greater(least, gathered.seconds(kernel)),
            _ => least,
        }
    }
}

/// The greater of some lines, wherever.
pub(super) type Greatest = Vec<Linear>;

/// A group that is the share `part` of all tiles: a wave at least.
pub(super) fn group(part: f64) -> [Linear; 2] {
    [Linear::TILES * part, Linear::WAVE]
}

/// A line over a shard's bytes.
pub(super) fn line(edge: &Edge) -> Linear {
    Linear::seconds(edge.latency) + Linear::SHARD * edge.per_byte
}

/// The resources that all fusions have.
#[derive(Clone, Debug)]
pub(super) struct Frame {
    pub ranks: f64,
    /// n − 1.
    pub steps: f64,
    /// Of the steps' time, what counts: the paper has Tm/n in each of the n − 1.
    pub counted: f64,
    /// From the start of the operator to the kernel's first tile.
    pub start: Linear,
    /// Whether the memory counts.
    memory: bool,
    /// The host, where it hands copies over: the kernel's submission, all copies', and their number.
    host: Option<(f64, f64, f64)>,
}

impl Frame {
    /// `copies` copies with `syncs` waits and signals are handed over in all.
    pub fn new(site: &Site, copies: f64, syncs: f64) -> Self {
        let c = &site.costs;
        Self {
            ranks: site.ranks,
            steps: site.ranks - 1.0,
            counted: match site.terms.compass_paper {
                true => 1.0 - site.part,
                false => 1.0,
            },
            start: Linear::seconds(c.submit_kernel.get() + c.kernel_start.get()) + Linear::OVERHEAD,
            memory: site.terms.contention,
            host: (site.submits_calls() && site.terms.stages).then(|| {
                let kernel = site.submits(0.0, 1.0, 0.0);
                (kernel, site.submits(copies, 0.0, syncs), copies)
            }),
        }
    }

    /// The compute resource, and the memory where it counts.
    pub fn begin(&self, chains: &mut Vec<Chain>, after: Linear) {
        let chain = |resource, work, count| Chain {
            resource,
            before: self.start,
            work,
            count,
            after,
        };
        chains.push(chain("compute", Linear::TILES, self.ranks));
        if self.memory {
            chains.push(chain("memory", Linear::MEMORY, 1.0));
        }
    }

    /// The host; `after` is from the last copy's hand-over to the end.
    pub fn host(&self, chains: &mut Vec<Chain>, after: Linear) {
        if let Some((before, work, count)) = self.host {
            chains.push(Chain {
                resource: "host",
                before: Linear::seconds(before),
                work: Linear::seconds(work),
                count,
                after,
            });
        }
    }
}
