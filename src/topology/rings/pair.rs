//! The most that two rings move together.
//!
//! With t the first ring's share of the total rate X, resource r allows
//! X ≤ C_r / (a_r·t + b_r·(1 − t)), so 1/X is the least over t of the greatest of the lines
//! L_r(t) = (b_r + (a_r − b_r)·t) / C_r: a convex piecewise-linear function, minimised by
//! stepping between the lines that rule its two sides.

use super::SAME;
use super::edges::{Edges, Load};

/// A resource both rings may load.
#[derive(Copy, Clone, Debug)]
pub(super) struct Constraint {
    pub resource: u32,
    /// Bytes per byte of the first ring.
    pub a: f64,
    /// Bytes per byte of the second ring.
    pub b: f64,
    /// Capacity under the flows of both [bytes/s].
    pub capacity: f64,
}

impl Constraint {
    /// Seconds per byte of total when the first ring has the share `t`.
    fn at(&self, t: f64) -> f64 {
        (self.b + (self.a - self.b) * t) / self.capacity
    }

    fn slope(&self) -> f64 {
        (self.a - self.b) / self.capacity
    }
}

/// The best division of the bytes between two rings.
#[derive(Copy, Clone, Debug)]
pub(super) struct Total {
    /// Total rate [bytes/s].
    pub rate: f64,
    /// Share of the first ring.
    pub share: f64,
    /// A resource that limits the total.
    pub binding: u32,
}

impl Total {
    /// Of the two rings with these loads.
    pub fn of(edges: &Edges<'_>, first: &Load, second: &Load) -> Self {
        let mut constraints = Vec::new();
        Self::collect(edges, first, second, &mut constraints);
        Self::best(&constraints)
    }

    /// Lists the constraints of two rings.
    pub fn collect(
        edges: &Edges<'_>,
        first: &Load,
        second: &Load,
        constraints: &mut Vec<Constraint>,
    ) {
        constraints.clear();
        let both = second
            .touched
            .iter()
            .filter(|r| first.flows[**r as usize] == 0);
        for &resource in first.touched.iter().chain(both) {
            let at = resource as usize;
            constraints.push(Constraint {
                resource,
                a: first.load[at],
                b: second.load[at],
                capacity: edges.capacity(resource, first.flows[at] + second.flows[at]),
            });
        }
    }

    /// The best share under `constraints`; of shares equally good, the one nearest one half.
    pub fn best(constraints: &[Constraint]) -> Self {
        let Some(first) = constraints.first() else {
            return Self {
                rate: f64::INFINITY,
                share: 0.5,
                binding: 0,
            };
        };
        let ruling = |t: f64| {
            (constraints.iter()).fold(first, |best, c| if c.at(t) > best.at(t) { c } else { best })
        };
        let (mut low, mut high) = (ruling(0.0), ruling(1.0));
        let (mut share, mut binding) = if low.slope() >= 0.0 {
            (0.0, low)
        } else if high.slope() <= 0.0 {
            (1.0, high)
        } else {
            (f64::NAN, low)
        };
        while share.is_nan() {
            // The crossing of a falling and a rising line.
            let t = (high.at(0.0) - low.at(0.0)) / (low.slope() - high.slope());
            let top = ruling(t.clamp(0.0, 1.0));
            let done = std::ptr::eq(top, low) || std::ptr::eq(top, high);
            if done || top.at(t) <= low.at(t) * (1.0 + 1e-13) || top.slope() == 0.0 {
                (share, binding) = (t.clamp(0.0, 1.0), top);
            } else if top.slope() < 0.0 {
                low = top;
            } else {
                high = top;
            }
        }
        let least = binding.at(share);
        // All shares within the tolerance of the optimum; take the one nearest one half.
        let (mut from, mut to) = (0.0_f64, 1.0_f64);
        let allowed = least * (1.0 + SAME * 1e-3);
        for c in constraints {
            let meets = (allowed - c.at(0.0)) / c.slope();
            if c.slope() > 0.0 {
                to = to.min(meets);
            } else if c.slope() < 0.0 {
                from = from.max(meets);
            }
        }
        Self {
            rate: 1.0 / least,
            share: if from <= to {
                0.5_f64.clamp(from, to)
            } else {
                share
            },
            binding: binding.resource,
        }
    }
}
