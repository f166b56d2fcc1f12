//! Chains that are linear in what a shape adds, for the fusions.
//!
//! All times of a fused kernel are sums and maxima of a few quantities: a shard's bytes, the kernel's
//! fixed time, its tiles, one wave of them, what the memory takes. A maximum within a chain is two
//! chains, the longer of which counts, so a fusion in one setting is a set of linear functions of those
//! quantities, worked out before there is a shape:
//!
//! ```text
//! T = max over chains of (before + work + after),   each Σ c_q · q
//! ```
//!
//! The selector keeps those chains only that can be the longest: one that is nowhere above another, or
//! above a mean of two others, is left out. Both follow from the coefficients, since no quantity is
//! negative, a wave takes no longer than all tiles, and those count with the memory's time if they take
//! longer.

use std::ops::{Add, AddAssign, Mul, Sub};

use super::form::{Pipeline, greater};

/// Quantities of a shape: one, and those named by the constants of [`Linear`].
const QUANTITIES: usize = 6;

/// What the shape adds, in the order of [`Linear`]'s coefficients.
pub(super) type Quantities = [f64; QUANTITIES];

/// A linear function of the quantities \[s\].
#[derive(Copy, Clone, Debug, PartialEq)]
pub(super) struct Linear([f64; QUANTITIES]);

impl Linear {
    pub const ZERO: Self = Self([0.0; QUANTITIES]);
    /// Bytes of a shard; the kernel's fixed time, all its tiles, one wave of them, and what the memory
    /// takes \[s\].
    pub const SHARD: Self = Self::of(1);
    pub const OVERHEAD: Self = Self::of(2);
    pub const TILES: Self = Self::of(3);
    pub const WAVE: Self = Self::of(4);
    pub const MEMORY: Self = Self::of(5);

    const fn of(quantity: usize) -> Self {
        let mut coefficients = [0.0; QUANTITIES];
        coefficients[quantity] = 1.0;
        Self(coefficients)
    }

    /// So many seconds whatever the shape.
    pub const fn seconds(seconds: f64) -> Self {
        let mut line = Self::ZERO;
        line.0[0] = seconds;
        line
    }

    /// At a shape \[s\].
    pub fn at(&self, shape: &Quantities) -> f64 {
        let terms = self.0.iter().zip(shape).map(|(c, q)| c * q);
        terms.sum()
    }

    /// What is added to the kernel's fixed time and the memory's, where this is their sum: a constant, and
    /// per byte of a shard.
    fn busy(&self) -> Option<[f64; 2]> {
        let Self([one, shard, others @ ..]) = *self;
        (others == [1.0, 0.0, 0.0, 1.0]).then_some([one, shard])
    }

    /// Coefficients of quantities none of which is negative: a wave, what all tiles take beyond it, and
    /// what the memory takes beyond them.
    fn proper(&self) -> [f64; QUANTITIES] {
        let mut all = self.0;
        all[3] += all[5];
        all[4] += all[3];
        all
    }
}

impl Add for Linear {
    type Output = Self;

    fn add(mut self, other: Self) -> Self {
        self += other;
        self
    }
}

impl AddAssign for Linear {
    fn add_assign(&mut self, other: Self) {
        for (sum, more) in self.0.iter_mut().zip(other.0) {
            *sum += more;
        }
    }
}

impl Sub for Linear {
    type Output = Self;

    fn sub(self, other: Self) -> Self {
        self + other * -1.0
    }
}

impl Mul<f64> for Linear {
    type Output = Self;

    fn mul(self, factor: f64) -> Self {
        Self(self.0.map(|c| c * factor))
    }
}

/// A way through one resource, as in [`super::Stage`].
#[derive(Copy, Clone, Debug)]
pub(super) struct Chain {
    pub resource: &'static str,
    pub before: Linear,
    /// All its stages, and their number.
    pub work: Linear,
    pub count: f64,
    pub after: Linear,
}

impl Chain {
    /// The whole.
    pub fn whole(&self) -> Linear {
        self.before + self.work + self.after
    }

    /// The form with this chain at a shape, `more` seconds later than it says.
    pub fn add_to<P: Pipeline>(&self, form: P, shape: &Quantities, more: f64) -> P {
        form.with(
            self.resource,
            self.before.at(shape),
            self.work.at(shape),
            self.count,
            self.after.at(shape) + more,
        )
    }
}

/// Linear functions of which the greatest counts. The memory's time must be that of the tiles at least.
#[derive(Clone, Debug)]
pub(super) struct Envelope {
    /// What follows the kernel's fixed time and the memory's, which no other function knows: a constant,
    /// and per byte of a shard.
    busy: Vec<[f64; 2]>,
    /// The others, two side by side.
    pairs: Vec<[[f64; 2]; QUANTITIES - 1]>,
}

impl Envelope {
    /// Of those among `lines` that can be the greatest.
    pub fn new(lines: impl IntoIterator<Item = Linear>) -> Self {
        let mut kept = greatest(lines.into_iter().collect());
        let busy = kept.iter().filter_map(Linear::busy).collect();
        kept.retain(|line| line.busy().is_none());
        // Those first that are often the greatest.
        let all = kept.clone();
        kept.sort_by_cached_key(|line| {
            let greatest = |shape: &Quantities| {
                let own = line.at(shape);
                all.iter().all(|other| other.at(shape) <= own)
            };
            std::cmp::Reverse(usual().filter(greatest).count())
        });
        let pair = |two: &[Linear]| {
            let (one, other) = (two[0].0, two[two.len() - 1].0);
            debug_assert!(one[5] == 0.0 && other[5] == 0.0, "memory within a chain");
            std::array::from_fn(|q| [one[q], other[q]])
        };
        Self {
            busy,
            pairs: kept.chunks(2).map(pair).collect(),
        }
    }

    /// The greatest at a shape, 0 without any; something from `limit` on where it is that or more \[s\].
    #[inline(always)]
    pub fn at(&self, shape: &Quantities, limit: f64) -> f64 {
        let [_, shard, overhead, tiles, wave, memory] = *shape;
        let mut most = 0.0;
        for [one, s] in &self.busy {
            most = greater(most, one + s * shard + (overhead + memory));
        }
        for [one, s, o, t, w] in &self.pairs {
            if most >= limit {
                break;
            }
            let line = |lane: usize| {
                let own = one[lane] + s[lane] * shard + o[lane] * overhead;
                own + t[lane] * tiles + w[lane] * wave
            };
            most = greater(most, greater(line(0), line(1)));
        }
        most
    }
}

/// Shapes of usual sizes.
fn usual() -> impl Iterator<Item = Quantities> {
    let shards = (16..28).step_by(3).map(|power| f64::from(1u32 << power));
    shards.flat_map(|shard| {
        let times = [1e-5, 1e-4, 1e-3, 1e-2].into_iter();
        let waves = |tiles: f64| [1.0, 4.0, 32.0].map(move |waves| (tiles, tiles / waves));
        let all = times.flat_map(waves);
        all.map(move |(tiles, wave)| [1.0, shard, 5e-6, tiles, wave, tiles])
    })
}

/// The lines that can be the greatest somewhere, and perhaps others.
pub(super) fn greatest(lines: Vec<Linear>) -> Vec<Linear> {
    let mut kept: Vec<Linear> = Vec::new();
    let below = |one: &Linear, other: &Linear| {
        let (one, other) = (one.proper(), other.proper());
        one.iter().zip(other).all(|(a, b)| *a <= b)
    };
    for line in lines {
        if !kept.iter().any(|other| below(&line, other)) {
            kept.retain(|other| !below(other, &line));
            kept.push(line);
        }
    }
    let mut at = 0;
    while at < kept.len() {
        let line = kept.swap_remove(at);
        let pairs = (0..kept.len()).flat_map(|i| (0..i).map(move |j| (i, j)));
        if !{ pairs }.any(|(i, j)| below_a_mean(&line, &kept[i], &kept[j])) {
            kept.push(line);
            let last = kept.len() - 1;
            kept.swap(at, last);
            at += 1;
        }
    }
    kept
}

/// Whether some mean of two lines is nowhere below this one.
fn below_a_mean(line: &Linear, one: &Linear, other: &Linear) -> bool {
    let (line, one, other) = (line.proper(), one.proper(), other.proper());
    // The shares of `one` that do for every quantity.
    let (mut least, mut most) = (0f64, 1f64);
    for q in 0..QUANTITIES {
        let (rises, missing) = (one[q] - other[q], line[q] - other[q]);
        if rises > 0.0 {
            least = least.max(missing / rises);
        } else if rises < 0.0 {
            most = most.min(missing / rises);
        } else if missing > 0.0 {
            return false;
        }
    }
    least <= most
}

#[cfg(test)]
mod tests;
