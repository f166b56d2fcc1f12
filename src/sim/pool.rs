//! Things that a task holds whole while it runs: copy engines and SMs, given out first come,
//! first served.

use std::collections::VecDeque;

/// A pool of equal units (copy engines of one kind, or the SMs of a GPU).
#[derive(Debug)]
pub(super) struct Pool<W> {
    free: u32,
    queue: VecDeque<Request<W>>,
}

/// Who wants how many units.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(super) struct Request<W> {
    pub who: W,
    pub want: u32,
    /// All of `want` or nothing; otherwise any number from 1 will do.
    pub fixed: bool,
}

impl<W: Copy> Pool<W> {
    /// A pool of `units`.
    pub fn new(units: u32) -> Self {
        Self {
            free: units,
            queue: VecDeque::new(),
        }
    }

    /// Units that nobody holds.
    pub fn free(&self) -> u32 {
        self.free
    }

    /// Takes up to `want` free units at once, beside the queue.
    pub fn take_free(&mut self, want: u32) -> u32 {
        let got = want.min(self.free);
        self.free -= got;
        got
    }

    /// Units granted now; `None`: queued.
    pub fn request(&mut self, request: Request<W>) -> Option<u32> {
        if self.queue.is_empty()
            && let Some(got) = self.grant(&request)
        {
            return Some(got);
        }
        self.queue.push_back(request);
        None
    }

    /// Takes a request back that has not been served.
    pub fn cancel(&mut self, who: W)
    where
        W: PartialEq,
    {
        self.queue.retain(|request| request.who != who);
    }

    /// Gives units back.
    pub fn release(&mut self, units: u32) {
        self.free += units;
    }

    /// The next in the queue if it can be served now, with its units.
    pub fn next(&mut self) -> Option<(W, u32)> {
        let request = *self.queue.front()?;
        let got = self.grant(&request)?;
        self.queue.pop_front();
        Some((request.who, got))
    }

    fn grant(&mut self, request: &Request<W>) -> Option<u32> {
        let least = if request.fixed { request.want } else { 1 };
        (self.free >= least).then(|| self.take_free(request.want))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn serves_in_order() {
        let mut pool = Pool::new(8);
        let request = |who, want, fixed| Request { who, want, fixed };
        assert_eq!(pool.request(request('a', 5, true)), Some(5));
        assert_eq!(pool.request(request('b', 4, true)), None);
        // Fits, but `b` came first.
        assert_eq!(pool.request(request('c', 1, false)), None);
        assert_eq!(pool.next(), None);
        pool.release(5);
        assert_eq!(pool.next(), Some(('b', 4)));
        assert_eq!(pool.next(), Some(('c', 1)));
        assert_eq!(pool.next(), None);
        assert_eq!(pool.free(), 3);
    }
}
