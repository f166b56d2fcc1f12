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

use super::fusion::{Frame, Fusion, Greatest, Kernel, group};
use crate::operator::Kind;
use crate::predict::chains::{Chain, Linear, greatest};
use crate::predict::form::{Pipeline, greater};
use crate::predict::model::{Model, Setting};
use crate::predict::network::{Course, Network};
use crate::predict::site::Site;

pub(super) fn form<P: Pipeline>(model: &Model<'_>, setting: Setting) -> Option<P> {
    Some(new(model.site, model.net, setting).form(&Kernel::new(model)))
}

/// The fusion in one setting.
pub(in crate::predict) fn new(site: &Site, net: &Network, setting: Setting) -> Fusion {
    on(site, setting, &[&net.ring])
}

/// On rings that run at once, of which the slowest counts.
pub(super) fn on(site: &Site, setting: Setting, courses: &[&Course]) -> Fusion {
    let rings = Rings::new(site, setting, courses);
    let mut chains = Vec::new();
    for back in rings.gather() {
        rings.frame.begin(&mut chains, back);
        for travel in &rings.travels {
            rings.on(&mut chains, travel, back);
        }
        if rings.travels.len() > 1 && rings.stages && site.kind != Kind::AgGemm {
            rings.back_and_forth(&mut chains, back);
        }
    }
    for copy in rings.copies() {
        match site.kind {
            Kind::GemmAr => rings.frame.host(&mut chains, copy),
            _ => {
                for tail in rings.travels.iter().flat_map(|travel| travel.tail) {
                    let after = copy + Linear::seconds(rings.flag) + tail;
                    rings.frame.host(&mut chains, after);
                }
            }
        }
    }
    Fusion::new(&rings.frame, chains)
}

/// Rings that run at once.
struct Rings {
    frame: Frame,
    kind: Kind,
    stages: bool,
    /// All pieces of a shard on a ring but one.
    others: f64,
    /// A rank's part of all tiles.
    part: f64,
    /// Copies that follow one another on a ring.
    in_lane: f64,
    /// Before AG+GEMM's first copy; from a group to its copy, and from a copy to a group \[s\].
    first: f64,
    leaves: f64,
    flag: f64,
    /// From a copy to the next in its lane \[s\].
    lane: f64,
    travels: Vec<Travel>,
}

/// What travels on one ring.
struct Travel {
    /// A chunk's tiles, and those with the other rings' chunks that come at the same time.
    group: [Linear; 2],
    tail: [Linear; 2],
    /// A chunk over each edge that may be the slowest, from the one before in its lane on.
    slow: Greatest,
    /// A chunk's way round, n − 1 hops with their flags.
    hops: Linear,
}

impl Travel {
    fn new(site: &Site, setting: Setting, course: &Course) -> Self {
        let c = &site.costs;
        let share = course.share * setting.part;
        let lane = c.lane.get() + c.copy_start.get();
        let chunk = |latency: f64, per_byte: f64| {
            Linear::seconds(latency) + Linear::SHARD * (per_byte * share)
        };
        let edges = course.slow_edges();
        let mut slow: Greatest = edges
            .map(|edge| chunk(lane + edge.latency, edge.per_byte))
            .collect();
        if slow.is_empty() {
            slow.push(Linear::seconds(lane));
        }
        let mut hop = c.stream_flag.get() + c.copy_start.get();
        if site.kind != Kind::AgGemm {
            hop += c.kernel_flag.get();
        }
        let around = &course.around;
        Self {
            group: group(share * site.part),
            tail: group((share + 1.0 - course.share) * site.part),
            slow,
            hops: chunk((site.ranks - 1.0) * hop + around.latency, around.per_byte),
        }
    }
}

impl Rings {
    fn new(site: &Site, setting: Setting, courses: &[&Course]) -> Self {
        let (c, n) = (&site.costs, site.ranks);
        let rounds = if site.kind == Kind::GemmAr { 2.0 } else { 1.0 };
        // Every copy signals; all but the first step's wait for what they pass on, and a sum in between
        // for its slot too.
        let per_step = setting.parts * courses.len() as f64;
        let syncs = match site.kind {
            Kind::AgGemm => (2.0 * n - 3.0) * per_step,
            _ => rounds * (2.0 * (n - 1.0) + greater(n - 3.0, 0.0)) * per_step,
        };
        let travel = |course: &&Course| Travel::new(site, setting, course);
        Self {
            frame: Frame::new(site, rounds * (n - 1.0) * per_step, syncs),
            kind: site.kind,
            stages: site.terms.stages,
            others: setting.parts - 1.0,
            part: site.part,
            in_lane: (n - 1.0) * setting.parts,
            first: c.submit_kernel.get() + c.submit_copy.get(),
            leaves: c.stream_flag.get(),
            flag: c.kernel_flag.get(),
            lane: c.lane.get(),
            travels: courses.iter().map(travel).collect(),
        }
    }

    /// A copy over each edge that may be the slowest of all rings.
    fn copies(&self) -> impl Iterator<Item = Linear> {
        let slow = self.travels.iter().flat_map(|travel| &travel.slow);
        slow.map(|slow| *slow - Linear::seconds(self.lane))
    }

    /// The chains of one ring.
    fn on(&self, chains: &mut Vec<Chain>, travel: &Travel, back: Linear) {
        let (frame, steps) = (&self.frame, self.frame.steps);
        let flag = Linear::seconds(self.flag);
        let work = |slow: Linear| slow * (self.in_lane * frame.counted);
        let mut add = |resource, before, work, after| {
            chains.push(Chain {
                resource,
                before,
                work,
                count: steps,
                after,
            });
        };
        if !self.stages {
            // The textbook form: the last group after the last step.
            let after = Linear::TILES * self.part + back;
            for slow in &travel.slow {
                add("links", frame.start, work(*slow), after);
            }
            return;
        }
        for slow in travel.slow.iter().copied() {
            // The last of a step's chunks starts after the others.
            let wait = slow * self.others;
            if self.kind == Kind::AgGemm {
                let first = Linear::seconds(self.first);
                for tail in travel.tail {
                    add("links", first, work(slow), flag + tail + back);
                    add("hand-off", first + wait, travel.hops, flag + tail + back);
                }
                continue;
            }
            for group in travel.group {
                let before = frame.start + group + Linear::seconds(self.leaves);
                for tail in travel.tail {
                    add("links", before, work(slow), flag + tail + back);
                }
                // Its tiles come later, on this ring and the other, and copies on one ring queue.
                let work = travel.hops + group * steps;
                add("hand-off", frame.start + wait, work, group + back);
            }
        }
        if self.kind != Kind::AgGemm {
            for own in travel.group {
                for all in group(self.part) {
                    let work = travel.hops + own * steps;
                    add("hand-off", frame.start + all - own, work, own + back);
                }
            }
        }
    }

    /// The way back and forth over the slowest edge: a sum that came on one ring, the next one's tiles
    /// on the same rank, its way back on the other ring, and again. Each turn takes three steps with
    /// two copies and, since the rings' groups alternate, four groups.
    fn back_and_forth(&self, chains: &mut Vec<Chain>, back: Linear) {
        let steps = self.frame.steps;
        // Whole turns, and the steps left.
        let turns = (steps * (1.0 / 3.0) + 1e-9).floor();
        let left = steps - 3.0 * turns;
        let group = Linear::TILES * (self.part * 0.5);
        for copy in self.copies() {
            let copy = Linear::seconds(self.leaves + self.flag) + copy;
            let rest = match left {
                left if left >= 2.0 => copy + group * 2.0,
                left if left >= 1.0 => copy + group,
                _ => Linear::ZERO,
            };
            chains.push(Chain {
                resource: "hand-off",
                before: self.frame.start + group * 2.0,
                work: (copy * 2.0 + group * 4.0) * turns + rest,
                count: steps,
                after: back,
            });
        }
    }

    /// The finished shards go round, where everyone gets them.
    fn gather(&self) -> Greatest {
        if self.kind != Kind::GemmAr {
            return vec![Linear::ZERO];
        }
        let of = |travel: &Travel| -> Greatest {
            // Nothing waits inside a kernel on this round.
            let hops = travel.hops - Linear::seconds(self.frame.steps * self.flag);
            let ways = |slow: &Linear| [*slow * self.in_lane, *slow * self.others + hops];
            travel.slow.iter().flat_map(ways).collect()
        };
        greatest(self.travels.iter().flat_map(of).collect())
    }
}
