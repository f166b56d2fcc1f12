//! A collective by the library: its line, times the measured factor of the bytes that a member sends.

use super::network::Library;
use crate::device::CollectiveTable;

/// A collective of the library.
#[derive(Copy, Clone, Debug, PartialEq)]
pub(super) struct Collective {
    pub seconds: f64,
    /// Rate at which it moves bytes in a GPU's memory while it flows \[bytes/s\].
    pub memory: f64,
}

/// A collective's time over the bytes of its message.
#[derive(Clone, Debug)]
pub(super) struct Line {
    /// Seconds without bytes.
    fixed: f64,
    /// Per byte that a member sends: over links, and at least.
    per_byte: f64,
    least_per_byte: f64,
    /// Bytes that a member sends per byte of the message, and accesses to memory per byte sent.
    sent: f64,
    accesses: f64,
    /// Measured over the line's time by the logarithm of the bytes sent; with the least up to there.
    factors: Vec<(f64, f64, f64)>,
}

impl Line {
    /// `fixed`: without bytes \[s\]. `place`: among the kinds of `table`.
    pub fn new(
        fixed: f64,
        library: &Library,
        table: Option<&CollectiveTable>,
        place: usize,
    ) -> Self {
        let points = table.map_or(&[] as &[(f64, f64)], |table| &table.points[place]);
        let mut least = f64::INFINITY;
        let factors = points.iter().map(|(bytes, factor)| {
            least = least.min(*factor);
            (bytes.ln(), *factor, least)
        });
        Self {
            fixed,
            per_byte: library.links_per_byte,
            least_per_byte: library.least_per_byte,
            sent: library.sent,
            accesses: library.accesses,
            factors: factors.collect(),
        }
    }

    /// The factor where so many bytes are sent, and the least of it and all before.
    #[inline]
    fn factor(&self, sent: f64) -> (f64, f64) {
        let points = &self.factors;
        let (Some(first), Some(last)) = (points.first(), points.last()) else {
            return (1.0, 1.0);
        };
        let at = sent.ln();
        let above = points.partition_point(|(ln, ..)| *ln < at);
        match (above, points.get(above)) {
            (0, _) => (first.1, first.1),
            (_, None) => (last.1, last.2),
            (_, Some(&(next, factor, _))) => {
                let (before, lower, least) = points[above - 1];
                let found = lower + (factor - lower) * (at - before) / (next - before);
                (found, least.min(found))
            }
        }
    }

    /// Of `message` bytes (nccl-tests' size); `contention`: whether it takes memory bandwidth.
    #[inline]
    pub fn at(&self, message: f64, contention: bool) -> Collective {
        let sent = self.sent * message;
        let (factor, _) = self.factor(sent);
        let per_byte = self.least_per_byte.max(self.per_byte * factor);
        Collective {
            seconds: self.fixed * factor + per_byte * sent,
            memory: match contention {
                true => self.accesses / per_byte,
                false => 0.0,
            },
        }
    }

    /// Pieces of a message take no less: each, and all of them for their bytes \[s\].
    #[inline]
    pub fn least(&self, message: f64) -> [f64; 2] {
        let sent = self.sent * message;
        let (_, factor) = self.factor(sent);
        let per_byte = self.least_per_byte.max(self.per_byte * factor);
        [self.fixed * factor, per_byte * sent]
    }
}
