//! What the solver keeps for each flow and each resource.

use std::sync::Arc;

/// What filling looks at: one cache line.
#[derive(Clone, Debug)]
#[repr(align(64))]
pub(super) struct Flow {
    /// Speed since `since`.
    pub(super) rate: f64,
    pub(super) weight: f64,
    pub(super) bound: f64,
    /// Work left at `since`.
    pub(super) remaining: f64,
    /// NaN until first solved.
    pub(super) since: f64,
    /// First of its usages in `Fluid::usages`.
    pub(super) first: u32,
    pub(super) len: u32,
    /// Twice the last solve that collected it, plus 1 once frozen in that solve.
    pub(super) mark: u32,
    pub(super) limit: u32,
}

const _: () = assert!(size_of::<Flow>() == 64);

/// What a flow is asked about once, at its end.
#[derive(Copy, Clone, Debug)]
pub(super) struct History {
    pub(super) work: f64,
    pub(super) tag: u32,
    /// Since when `Flow::limit` holds.
    pub(super) limit_since: f64,
    /// The longest stretch of time with one limit, and that limit.
    pub(super) longest: f64,
    pub(super) longest_limit: u32,
}

impl Flow {
    /// Books the work done at the old speed and goes on at `rate`.
    pub(super) fn set_rate(&mut self, rate: f64, limit: u32, now: f64, history: &mut History) {
        if limit != self.limit || self.since.is_nan() {
            history.leave(self.limit, now);
            self.limit = limit;
        }
        if self.since.is_nan() {
            self.since = now;
        } else if rate != self.rate {
            self.remaining = (self.remaining - self.rate * (now - self.since)).max(0.0);
            self.since = now;
        }
        self.rate = rate;
    }

    /// When it ends at its present speed.
    pub(super) fn end(&self) -> f64 {
        self.since + self.remaining / self.rate
    }

    /// Its usages' places in `Fluid::usages`.
    pub(super) const fn range(&self) -> std::ops::Range<usize> {
        self.first as usize..(self.first + self.len) as usize
    }
}

impl History {
    /// The limit that held until `now` gives way to another.
    pub(super) fn leave(&mut self, limit: u32, now: f64) {
        let stretch = now - self.limit_since;
        if stretch > self.longest {
            (self.longest, self.longest_limit) = (stretch, limit);
        }
        self.limit_since = now;
    }
}

/// A usage with its place in the resource's member list.
#[derive(Copy, Clone, Debug)]
pub(super) struct Use {
    pub(super) per_unit: f64,
    pub(super) resource: u32,
    pub(super) place: u32,
}

/// A flow in a resource's member list, and which of its usages this is.
#[derive(Copy, Clone, Debug)]
pub(super) struct Member {
    pub(super) flow: u32,
    pub(super) usage: u32,
}

#[derive(Clone, Debug)]
pub(super) struct Resource {
    pub(super) capacity: f64,
    /// Capacity factor by number of flows (index n − 1, last one repeats); empty: always 1.
    pub(super) curve: Arc<[f64]>,
    /// In `Fluid::dirty`.
    pub(super) dirty: bool,
    /// A flow came since the last solve.
    pub(super) grew: bool,
    /// The last solve that reached it.
    pub(super) seen: u32,
    /// While filling: capacity not yet given away, Σ a·w of the flows not yet frozen, their number,
    /// and the number when `weight` was last summed afresh.
    pub(super) left: f64,
    pub(super) weight: f64,
    pub(super) open: u32,
    pub(super) fresh: u32,
}

impl Resource {
    pub(super) fn capacity(&self, flows: usize) -> f64 {
        match self.curve.get(flows.min(self.curve.len()).wrapping_sub(1)) {
            Some(factor) => self.capacity * factor,
            None => self.capacity,
        }
    }
}
