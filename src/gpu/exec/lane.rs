//! Streams that runs take turns with, and how full their queues are.

use std::cell::Cell;

use crate::gpu::GpuError;
use crate::gpu::plan::What;
use crate::gpu::raw::{Event, Stream};

/// Commands of one stream after which its progress is marked. At most twice as many are ever
/// enqueued beyond a point that has passed: a driver queues about a thousand and then blocks the
/// caller, who could no longer watch over what is enqueued.
pub const HALF: usize = 256;

/// Commands that one launch of a graph counts as.
pub(super) const GRAPH: usize = 8;

/// About how many commands a step is.
pub(super) const fn commands(what: &What) -> usize {
    match what {
        // The library's own waits, kernel and records.
        What::Collective { .. } => 4,
        _ => 1,
    }
}

/// What is known of a queue.
#[derive(Debug, Default)]
struct Fill {
    /// Commands since the mark.
    since: Cell<usize>,
    marked: Cell<bool>,
}

/// What to do before more is enqueued.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(super) enum Before {
    Nothing,
    /// Mark the place.
    Mark,
    /// Wait until the mark has passed, then mark the place.
    Wait,
}

impl Fill {
    fn add(&self, commands: usize) -> Before {
        let since = self.since.get() + commands;
        if since <= HALF {
            self.since.set(since);
            return Before::Nothing;
        }
        self.since.set(commands);
        match self.marked.replace(true) {
            true => Before::Wait,
            false => Before::Mark,
        }
    }

    fn clear(&self) {
        self.since.set(0);
        self.marked.set(false);
    }
}

/// A stream with a mark.
#[derive(Debug)]
pub(super) struct Lane {
    pub stream: Stream,
    /// How far it has come, where its queue was nearly full.
    pub mark: Event,
    /// Where captures fork and join; never recorded outside of one, as a mark is never in one.
    pub captured: Event,
    fill: Fill,
}

impl Lane {
    pub fn new(stream: Stream) -> Result<Self, GpuError> {
        Ok(Self {
            mark: Event::new(stream.gpu(), false)?,
            captured: Event::new(stream.gpu(), false)?,
            stream,
            fill: Fill::default(),
        })
    }

    /// Counts commands that are about to be enqueued.
    pub fn add(&self, commands: usize) -> Before {
        self.fill.add(commands)
    }

    /// Everything enqueued has ended.
    pub fn clear(&self) {
        self.fill.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn never_more_than_two_halves_lie_beyond_a_point_that_has_passed() {
        let fill = Fill::default();
        let mut beyond = 0;
        let mut marks = 0;
        for _ in 0..10_000 {
            match fill.add(3) {
                Before::Nothing => {}
                Before::Mark => marks += 1,
                // All before the mark has ended now.
                Before::Wait => {
                    marks += 1;
                    beyond = HALF;
                }
            }
            beyond += 3;
            assert!(beyond <= 2 * HALF + 3);
        }
        assert_eq!(marks, 10_000 / (HALF / 3));
        fill.clear();
        assert_eq!(fill.add(HALF), Before::Nothing);
        assert_eq!(fill.add(1), Before::Mark);
        assert_eq!(fill.add(HALF), Before::Wait);
    }
}
