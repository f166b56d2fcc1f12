//! `fusion-ring`: shards, or partial sums, go round the best ring while one GEMM kernel runs.
//!
//! A step of the ring is, with c chunks of x bytes, start-up s and the slowest edge's α_e, B_e,
//!
//! ```text
//! links       c · (lane + s + α_e + x/B_e)           copies follow one another in their lane
//! hand-off    flag + s + mean of (α_e + x/B_e)       a shard can go on when it has come
//!             + group + flag                         GEMM+RS: and when its tiles are added
//! host        c · (submission, waits and signals of a copy)
//! ```
//!
//! where `group` is a group's tiles, at least one wave. AG+GEMM has the last group after the last
//! arrival; GEMM+RS also one before the first copy; GEMM+AR goes round once more.

use super::fusion::{Frame, Kernel};
use crate::operator::Kind;
use crate::predict::form::{Pipeline, greater};
use crate::predict::model::{Model, Setting};
use crate::predict::network::{Course, Edge, Network};
use crate::predict::site::Site;

pub(super) fn form<P: Pipeline>(model: &Model<'_>, setting: Setting) -> Option<P> {
    Some(new(model.site, model.net, setting).form(&Kernel::new(model)))
}

/// The fusion in one setting.
pub(in crate::predict) fn new(site: &Site, net: &Network, setting: Setting) -> Rings {
    Rings::new(site, setting, &net.ring, &[])
}

/// A fusion on rings that run at once, of which the slowest counts, without its shape.
#[derive(Clone, Debug)]
pub(in crate::predict) struct Rings {
    frame: Frame,
    gathers: bool,
    everyone: bool,
    stages: bool,
    /// All pieces of a shard on a ring but one.
    others: f64,
    /// A rank's part of all tiles.
    part: f64,
    /// Copies that follow one another on a ring; those of them that count, see [`Frame::counted`].
    copies: f64,
    counted: f64,
    /// Before AG+GEMM's first copy; from a group to its copy, and from a copy to a group \[s\].
    first: f64,
    leaves: f64,
    flag: f64,
    /// From a copy to the next in its lane \[s\].
    lane: f64,
    travel: Travel,
    /// On the second ring, where there is one.
    other: Option<Travel>,
    /// Whole turns back and forth between two rings, and the steps left.
    turns: f64,
    rest: f64,
}

/// What travels on one ring; lines over the bytes of a whole shard.
#[derive(Clone, Debug)]
struct Travel {
    /// A chunk's part of all tiles, and with the other rings' chunks that come at the same time.
    group: f64,
    ending: f64,
    /// A chunk over each edge that may be the slowest, from the one before in its lane on.
    edges: [Edge; 2],
    more: Vec<Edge>,
    /// A chunk's way round, n − 1 hops with their flags.
    hops: Edge,
}

/// What a chunk takes on one ring at a shape: over the slowest edge, and round \[s\].
#[derive(Copy, Clone)]
struct Lap {
    slow: f64,
    hops: f64,
}

impl Travel {
    fn new(site: &Site, setting: Setting, course: &Course) -> Self {
        let c = &site.costs;
        let share = course.share * setting.part;
        let of_shard = |edge: &Edge, more: f64| Edge {
            latency: more + edge.latency,
            per_byte: edge.per_byte * share,
        };
        let lane = c.lane.get() + c.copy_start.get();
        let mut edges = course.slow_edges().map(|edge| of_shard(edge, lane));
        let none = Edge {
            latency: lane,
            per_byte: 0.0,
        };
        let first = edges.next().unwrap_or(none);
        let mut hop = c.stream_flag.get() + c.copy_start.get();
        if site.kind != Kind::AgGemm {
            hop += c.kernel_flag.get();
        }
        Self {
            group: share * site.part,
            ending: (share + 1.0 - course.share) * site.part,
            edges: [first, edges.next().unwrap_or(first)],
            more: edges.collect(),
            hops: of_shard(&course.around, (site.ranks - 1.0) * hop),
        }
    }

    /// A chunk over the slowest edge, from the one before in its lane on \[s\].
    #[inline(always)]
    fn slowest(&self, shard: f64) -> f64 {
        let [first, second] = &self.edges;
        let two = greater(first.at(shard), second.at(shard));
        if self.more.is_empty() {
            return two;
        }
        let more = self.more.iter().map(|edge| edge.at(shard));
        more.fold(two, greater)
    }
}

impl Rings {
    /// On one ring or two.
    pub(super) fn new(site: &Site, setting: Setting, first: &Course, others: &[Course]) -> Self {
        let (c, n) = (&site.costs, site.ranks);
        let (gathers, everyone) = (site.kind == Kind::AgGemm, site.kind == Kind::GemmAr);
        let rounds = if everyone { 2.0 } else { 1.0 };
        // Every copy signals; all but the first step's wait for what they pass on, and a sum in between
        // for its slot too.
        let per_step = setting.parts * (1 + others.len()) as f64;
        let syncs = match gathers {
            true => (2.0 * n - 3.0) * per_step,
            false => rounds * (2.0 * (n - 1.0) + greater(n - 3.0, 0.0)) * per_step,
        };
        let frame = Frame::new(site, rounds * (n - 1.0) * per_step, syncs);
        let copies = (n - 1.0) * setting.parts;
        let turns = ((n - 1.0) * (1.0 / 3.0) + 1e-9).floor();
        Self {
            gathers,
            everyone,
            stages: site.terms.stages,
            others: setting.parts - 1.0,
            part: site.part,
            copies,
            counted: copies * frame.counted,
            frame,
            first: c.submit_kernel.get() + c.submit_copy.get(),
            leaves: c.stream_flag.get(),
            flag: c.kernel_flag.get(),
            lane: c.lane.get(),
            travel: Travel::new(site, setting, first),
            other: others
                .first()
                .map(|course| Travel::new(site, setting, course)),
            turns,
            rest: n - 1.0 - 3.0 * turns,
        }
    }

    /// The form on the slowest of the rings.
    #[inline]
    pub fn form<P: Pipeline>(&self, kernel: &Kernel) -> P {
        let lap = |travel: &Travel| Lap {
            slow: travel.slowest(kernel.shard),
            hops: travel.hops.at(kernel.shard),
        };
        let first = lap(&self.travel);
        let Some(other) = &self.other else {
            let back = self.gather(first);
            let form = self.frame.begin::<P>(kernel, back);
            let (form, tail) = self.on(&self.travel, first, form, kernel, back);
            return self.end(form, first.slow, tail);
        };
        let second = lap(other);
        let back = greater(self.gather(first), self.gather(second));
        let form = self.frame.begin::<P>(kernel, back);
        let (form, one) = self.on(&self.travel, first, form, kernel, back);
        let (form, two) = self.on(other, second, form, kernel, back);
        let slow = greater(first.slow, second.slow);
        let form = match self.gathers || !self.stages {
            true => form,
            false => self.back_and_forth(form, kernel, slow - self.lane, back),
        };
        self.end(form, slow, greater(one, two))
    }

    /// The form with the host, after the slowest copy and the last tiles.
    #[inline(always)]
    fn end<P: Pipeline>(&self, form: P, slow: f64, tail: f64) -> P {
        let copy = slow - self.lane;
        let last = match self.everyone {
            true => copy,
            false => copy + self.flag + tail,
        };
        self.frame.with_host(form, last)
    }

    /// The form with the chains of one ring, with its last tiles.
    #[inline(always)]
    fn on<P: Pipeline>(
        &self,
        travel: &Travel,
        Lap { slow, hops }: Lap,
        form: P,
        kernel: &Kernel,
        back: f64,
    ) -> (P, f64) {
        let steps = self.frame.steps;
        let work = self.counted * slow;
        if !self.stages {
            // The textbook form: the last group after the last step.
            let after = kernel.tiles * self.part + back;
            return (form.with("links", kernel.start, work, steps, after), 0.0);
        }
        let (group, tail) = (kernel.group(travel.group), kernel.group(travel.ending));
        // The last of a step's chunks starts after the others.
        let wait = self.others * slow;
        let after = self.flag + tail + back;
        let form = match self.gathers {
            true => form.with("links", self.first, work, steps, after).with(
                "hand-off",
                self.first + wait,
                hops,
                steps,
                after,
            ),
            false => {
                // Its tiles come later, on this ring and the other, and copies on one ring queue.
                let later = greater(kernel.group(self.part) - group, wait);
                let before = kernel.start + group + self.leaves;
                form.with("links", before, work, steps, after).with(
                    "hand-off",
                    kernel.start + later,
                    hops + steps * group,
                    steps,
                    group + back,
                )
            }
        };
        (form, tail)
    }

    /// The way back and forth over the slowest edge: a sum that came on one ring, the next one's tiles
    /// on the same rank, its way back on the other ring, and again. Each turn takes three steps with
    /// two copies and, since the rings' groups alternate, four groups.
    #[inline]
    fn back_and_forth<P: Pipeline>(&self, form: P, kernel: &Kernel, copy: f64, back: f64) -> P {
        let copy = self.leaves + self.flag + copy;
        let group = kernel.tiles * self.part * 0.5;
        let rest = match self.rest {
            rest if rest >= 2.0 => copy + 2.0 * group,
            rest if rest >= 1.0 => copy + group,
            _ => 0.0,
        };
        let work = self.turns * (2.0 * copy + 4.0 * group) + rest;
        let before = kernel.start + 2.0 * group;
        form.with("hand-off", before, work, self.frame.steps, back)
    }

    /// The finished shards go round, where everyone gets them \[s\].
    #[inline(always)]
    fn gather(&self, Lap { slow, hops }: Lap) -> f64 {
        if !self.everyone {
            return 0.0;
        }
        // Nothing waits inside a kernel on this round.
        let hops = hops - self.frame.steps * self.flag;
        greater(self.copies * slow, self.others * slow + hops)
    }
}
