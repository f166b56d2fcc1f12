//! The event queue: events in order of time, those of equal time in order of insertion.
//!
//! Events pushed one after another for the very same instant share one bucket, so lockstep
//! schedules (every rank of a ring at once) pay for one heap entry instead of thousands.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use ordered_float::OrderedFloat;

/// Heap entry: time [s], insertion number, bucket.
type Entry = Reverse<(OrderedFloat<f64>, u64, u32)>;

/// A queue of events `E` by time [s].
#[derive(Debug)]
pub(super) struct Queue<E> {
    heap: BinaryHeap<Entry>,
    buckets: Vec<Vec<E>>,
    free: Vec<u32>,
    /// The bucket that was pushed to last and its time, while it is still in the heap.
    last: Option<(f64, u32)>,
    pushed: u64,
}

impl<E> Queue<E> {
    /// An empty queue.
    pub fn new() -> Self {
        Self {
            heap: BinaryHeap::new(),
            buckets: Vec::new(),
            free: Vec::new(),
            last: None,
            pushed: 0,
        }
    }

    /// Adds an event at `time`.
    pub fn push(&mut self, time: f64, event: E) {
        if let Some((last, bucket)) = self.last
            && last.to_bits() == time.to_bits()
        {
            self.buckets[bucket as usize].push(event);
            return;
        }
        let bucket = self.free.pop().unwrap_or_else(|| {
            self.buckets.push(Vec::new());
            self.buckets.len() as u32 - 1
        });
        self.buckets[bucket as usize].push(event);
        self.heap
            .push(Reverse((OrderedFloat(time), self.pushed, bucket)));
        self.pushed += 1;
        self.last = Some((time, bucket));
    }

    /// The time of the first event.
    pub fn next_time(&self) -> Option<f64> {
        self.heap.peek().map(|Reverse((time, ..))| time.0)
    }

    /// Moves the first bucket's events into `out` (emptied first).
    pub fn pop_into(&mut self, out: &mut Vec<E>) {
        out.clear();
        let Some(Reverse((_, _, bucket))) = self.heap.pop() else {
            return;
        };
        if self.last.is_some_and(|(_, last)| last == bucket) {
            self.last = None;
        }
        std::mem::swap(out, &mut self.buckets[bucket as usize]);
        self.free.push(bucket);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn orders_by_time_then_insertion() {
        let mut queue = Queue::new();
        for (time, event) in [(2.0, 'c'), (1.0, 'a'), (2.0, 'd'), (1.0, 'b'), (2.0, 'e')] {
            queue.push(time, event);
        }
        let (mut seen, mut out) = (Vec::new(), Vec::new());
        while let Some(time) = queue.next_time() {
            queue.pop_into(&mut out);
            seen.extend(out.iter().map(|event| (time, *event)));
        }
        assert_eq!(
            seen,
            [(1.0, 'a'), (1.0, 'b'), (2.0, 'c'), (2.0, 'd'), (2.0, 'e')]
        );
    }
}
