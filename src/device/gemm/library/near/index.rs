//! The measurements within a distance, found without looking at each.
//!
//! A k-d tree for each kind: those of one alignment, form of cluster and split of k are a group; each group is halved at the median of the
//! feature that spreads most, down to [`LEAF`] measurements. A box of features is as far away as its nearest
//! corner or side, by the same operations in the same order as a measurement, so that rounding leaves out none
//! that a look at each would find, and those that are found come in the order of the list.

use super::{FEATURES, Features};

/// Measurements that are looked at one by one.
const LEAF: usize = 8;
/// Features, to a multiple of [`LANES`].
const WIDTH: usize = FEATURES.next_multiple_of(LANES);
/// Numbers that a processor works on at once.
const LANES: usize = 4;

type Row = [f32; WIDTH];

/// Features in the numbers that distances are worked out in.
pub(super) fn row(features: &Features) -> Row {
    let mut row = [0.0; WIDTH];
    for (to, from) in row.iter_mut().zip(features) {
        *to = *from as f32;
    }
    row
}

/// What measurements have in common that are told from others by more than features.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Kind {
    pub align: u32,
    pub cluster: (u32, u32),
    pub split: u32,
    /// Whether on fewer SMs than all.
    pub fewer: bool,
}

#[derive(Copy, Clone, Debug, PartialEq)]
pub(super) struct Sample {
    pub features: Row,
    /// Of k alone.
    pub align: u32,
    /// ln(measured / modelled).
    pub correction: f64,
}

/// Measurements by their kinds.
#[derive(Clone, Debug, Default, PartialEq)]
pub(in super::super) struct Index {
    groups: Vec<Group>,
    nodes: Vec<Node>,
    samples: Vec<Sample>,
}

#[derive(Copy, Clone, Debug, PartialEq)]
struct Group {
    kind: Kind,
    /// Its nodes, and its samples.
    nodes: (usize, usize),
    samples: (usize, usize),
}

/// A box of features; what is within follows it.
#[derive(Copy, Clone, Debug, PartialEq)]
struct Node {
    low: Row,
    high: Row,
    /// The next that is not within.
    after: usize,
    /// Samples, none where others are within.
    samples: (usize, usize),
}

/// The sum of squares of what `each` gives.
#[inline(always)]
fn squares(each: impl Fn(usize) -> f32) -> f32 {
    let mut sums = [0.0; LANES];
    for part in 0..WIDTH / LANES {
        for (lane, sum) in sums.iter_mut().enumerate() {
            let x = each(part * LANES + lane);
            *sum += x * x;
        }
    }
    (sums[0] + sums[1]) + (sums[2] + sums[3])
}

impl Sample {
    /// The squared distance.
    #[inline(always)]
    fn far(&self, here: &Row) -> f32 {
        squares(|at| self.features[at] - here[at])
    }
}

impl Node {
    /// No measurement within is nearer.
    #[inline(always)]
    fn far(&self, here: &Row) -> f32 {
        let greater = |a: f32, b: f32| if a < b { b } else { a };
        squares(|at| {
            let outside = greater(self.low[at] - here[at], here[at] - self.high[at]);
            greater(outside, 0.0)
        })
    }
}

impl Index {
    pub(super) fn new(mut all: Vec<(Kind, Sample)>) -> Self {
        all.sort_by_key(|(kind, _)| *kind);
        let mut index = Self::default();
        for group in all.chunk_by(|a, b| a.0 == b.0) {
            let mut samples: Vec<Sample> = group.iter().map(|(_, sample)| *sample).collect();
            let (node, first) = (index.nodes.len(), index.samples.len());
            index.halve(&mut samples);
            index.groups.push(Group {
                kind: group[0].0,
                nodes: (node, index.nodes.len()),
                samples: (first, index.samples.len()),
            });
        }
        index
    }

    /// Adds a node of these samples with what is within.
    fn halve(&mut self, samples: &mut [Sample]) {
        let of = |at: usize, pick: fn(f32, f32) -> f32, samples: &[Sample]| {
            let all = samples.iter().map(|sample| sample.features[at]);
            all.reduce(pick).unwrap_or(0.0)
        };
        let low: Row = std::array::from_fn(|at| of(at, f32::min, samples));
        let high: Row = std::array::from_fn(|at| of(at, f32::max, samples));
        let (node, first) = (self.nodes.len(), self.samples.len());
        self.nodes.push(Node {
            low,
            high,
            after: 0,
            samples: (first, first),
        });
        let spread = |at: &usize| high[*at] - low[*at];
        let widest = (0..WIDTH).max_by(|a, b| spread(a).total_cmp(&spread(b)));
        let widest = widest.filter(|at| samples.len() > LEAF && spread(at) > 0.0);
        if let Some(at) = widest {
            samples.sort_by(|a, b| a.features[at].total_cmp(&b.features[at]));
            let (one, two) = samples.split_at_mut(samples.len() / 2);
            self.halve(one);
            self.halve(two);
        } else {
            self.samples.extend_from_slice(samples);
            self.nodes[node].samples.1 = self.samples.len();
        }
        self.nodes[node].after = self.nodes.len();
    }

    /// Whether there are any of this alignment.
    pub(super) fn aligned(&self, align: u32) -> bool {
        self.groups.iter().any(|group| group.kind.align == align)
    }

    /// Calls `each` with the squared distance of every measurement that is no further than `most` says for its
    /// kind; kinds for which it says nothing are left out.
    #[inline]
    pub(super) fn within(
        &self,
        here: &Row,
        most: impl Fn(&Kind) -> Option<f32>,
        mut each: impl FnMut(f32, &Kind, &Sample),
    ) {
        for group in &self.groups {
            let Some(most) = most(&group.kind) else {
                continue;
            };
            let (mut at, end) = group.nodes;
            while at < end {
                let node = &self.nodes[at];
                if node.far(here) > most {
                    at = node.after;
                    continue;
                }
                for sample in &self.samples[node.samples.0..node.samples.1] {
                    let far = sample.far(here);
                    if far <= most {
                        each(far, &group.kind, sample);
                    }
                }
                at += 1;
            }
        }
    }

    /// As [`Self::within`], by a look at each measurement.
    #[cfg(test)]
    pub(super) fn within_by_all(
        &self,
        here: &Row,
        most: impl Fn(&Kind) -> Option<f32>,
        mut each: impl FnMut(f32, &Kind, &Sample),
    ) {
        for group in &self.groups {
            let Some(most) = most(&group.kind) else {
                continue;
            };
            for sample in &self.samples[group.samples.0..group.samples.1] {
                let far = sample.far(here);
                if far <= most {
                    each(far, &group.kind, sample);
                }
            }
        }
    }
}
