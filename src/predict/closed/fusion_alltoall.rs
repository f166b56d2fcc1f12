//! `fusion-alltoall`: every pair of ranks exchanges directly while one GEMM kernel runs.
//!
//! Tm is the exchange's last arrival (all pairs, as many at once as there are copy engines, under
//! the fan-out curves of the links), in n − 1 steps; in pieces, the peers take turns. GEMM+RS has one group before the first copy,
//! and the owner's sum after the last arrival; GEMM+AR then sends the sums to everyone.

use super::fusion::{Frame, Kernel};
use crate::operator::Kind;
use crate::predict::form::{Pipeline, greater};
use crate::predict::model::{Model, Setting};
use crate::predict::network::{Edge, Exchange, Network};
use crate::predict::site::Site;

pub(super) fn form<P: Pipeline>(model: &Model<'_>, setting: Setting) -> Option<P> {
    Some(new(model.site, model.net, setting)?.form(&Kernel::new(model)))
}

/// The fusion in one setting, without its shape.
#[derive(Clone, Debug)]
pub(in crate::predict) struct AllToAll {
    frame: Frame,
    gathers: bool,
    stages: bool,
    /// Shards to everyone, or parts to their owners; its last arrival.
    exchange: Exchange,
    last: Edge,
    /// Starting a copy, and handing over to the next of one peer \[s\].
    start: f64,
    lane: f64,
    /// A rank's part of all tiles, and a chunk's.
    part: f64,
    chunk: f64,
    /// Before AG+GEMM's first copy; from a group to its copy, and from a copy to a group \[s\].
    first: f64,
    leaves: f64,
    flag: f64,
    /// The owner's sum and what follows, and the sums' way to everyone alone.
    after: Edge,
    back: Edge,
    /// Handing over the sum \[s\].
    sum: f64,
    /// Where everyone gets the sums: the host with their copies too, the last of which is on its way
    /// after all are handed over.
    host: Option<(Frame, Edge)>,
}

/// The fusion in one setting; `None` where the exchange of so many ranks and pieces is not known.
pub(in crate::predict) fn new(site: &Site, net: &Network, setting: Setting) -> Option<AllToAll> {
    let (gather, scatter) = net.exchanges(setting.chunks)?;
    let (c, n) = (&site.costs, site.ranks);
    let gathers = site.kind == Kind::AgGemm;
    let everyone = site.kind == Kind::GemmAr;
    let copies = (n - 1.0) * setting.parts;
    let (start, lane) = (c.copy_start.get(), c.lane.get());
    let exchange = if gathers { gather } else { scatter };
    let none = Edge {
        latency: 0.0,
        per_byte: 0.0,
    };
    let back = match everyone {
        true => {
            let gather = gather.line(start, lane);
            Edge {
                latency: c.stream_flag.get() + gather.latency,
                ..gather
            }
        }
        false => none,
    };
    let sum = site.sum_line();
    Some(AllToAll {
        frame: Frame::new(site, copies, if gathers { copies } else { 2.0 * copies }),
        gathers,
        stages: site.terms.stages,
        last: exchange.line(start, lane),
        exchange: exchange.clone(),
        start,
        lane,
        part: site.part,
        chunk: site.part * setting.part,
        first: c.submit_kernel.get() + c.submit_copy.get(),
        leaves: c.stream_flag.get(),
        flag: c.kernel_flag.get(),
        after: Edge {
            latency: sum.latency + back.latency,
            per_byte: sum.per_byte + back.per_byte,
        },
        back,
        sum: match site.submits_calls() {
            true => site.submits(0.0, 1.0, copies),
            false => 0.0,
        },
        // Scattered copies wait and signal, the sum waits for each and signals, copies of it wait.
        host: everyone.then(|| {
            let frame = Frame::new(site, 2.0 * copies, 4.0 * copies + 1.0);
            (frame, gather.piece(start))
        }),
    })
}

impl AllToAll {
    /// It takes no less \[s\]: AG+GEMM than the last arrival, GEMM+AR than the groups that leave and what
    /// follows the last copy.
    #[inline(always)]
    pub fn least(&self, kernel: &Kernel) -> f64 {
        let shard = kernel.shard;
        match (self.gathers, self.stages && self.host.is_some()) {
            (true, _) => self.first + self.last.at(shard) * self.frame.counted,
            (false, true) => {
                let groups = self.frame.steps * (kernel.tiles * self.part);
                kernel.start + groups + self.leaves + self.after.at(shard)
            }
            (false, false) => 0.0,
        }
    }

    #[inline]
    pub fn form<P: Pipeline>(&self, kernel: &Kernel) -> P {
        let (shard, steps) = (kernel.shard, self.frame.steps);
        let part = kernel.tiles * self.part;
        let all = self.last.at(shard);
        if !self.stages {
            let back = self.back.at(shard);
            let before = if self.gathers {
                self.first
            } else {
                kernel.start
            };
            let form = self.frame.begin::<P>(kernel, back);
            return form.with(
                "links",
                before,
                all * self.frame.counted,
                steps,
                part + back,
            );
        }
        if self.gathers {
            // The shard that holds the kernel up most with the groups from it on, or the last one with
            // a wave.
            let group = kernel.group(self.chunk);
            let (offset, arrival) = self.exchange.holds_up(shard, (self.start, self.lane), part);
            let rest = greater((self.frame.ranks - offset) * part, all + group - arrival);
            let form = self.frame.begin::<P>(kernel, 0.0);
            let form = form.with("links", self.first, arrival, offset, self.flag + rest);
            return (self.frame).with_host(form, self.start + self.flag + group);
        }
        let after = self.after.at(shard);
        // The groups leave one after another as they are computed; one wave may take longer than all.
        let wait = greater(kernel.wave - steps * part, 0.0);
        let before = kernel.start + wait + self.leaves;
        let rest = (self.exchange).paced(shard, self.start, part, kernel.wave);
        let form = self.frame.begin::<P>(kernel, after);
        let form = form.with(
            "links",
            before,
            steps * part,
            steps,
            rest + self.leaves + after,
        );
        // The sum is handed over after all copies and waits for each.
        let form = self.frame.with_host(form, self.sum + after);
        match &self.host {
            Some((frame, last)) => frame.with_host(form, last.at(shard)),
            None => form,
        }
    }
}
