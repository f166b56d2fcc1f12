//! Every rank with every other: which shard is where when, per byte of a shard.
//!
//! Each rank sends to one peer after another, to as many at once as it has copy engines. Rates
//! follow from [`super::share`], and between two ends of transfers they are constant, so times are
//! proportional to the bytes of a shard: they are worked out once for one byte.

use super::share::{Flow, Sharing};
use crate::topology::route::Router;

/// Beyond this many ranks the exchange is not worked out.
const MOST: usize = 64;

/// All pairs at once, times per byte of a shard.
#[derive(Clone, Debug)]
pub(in crate::predict) struct Exchange {
    /// `arrivals[i]`: when the shards of offset 1 to i + 1 are there, on the slowest rank \[s/byte\].
    pub arrivals: Vec<f64>,
    /// Transfers that a rank starts one after another on one engine.
    pub rounds: f64,
    /// Greatest latency of a way \[s\].
    pub latency: f64,
}

impl Exchange {
    /// Of the ranks on `gpus`; `onward`: the rank sends to those after it (scatter), else to those
    /// before it (gather).
    pub(super) fn new(
        sharing: &Sharing<'_>,
        router: &mut Router<'_>,
        gpus: &[u32],
        onward: bool,
    ) -> Result<Self, String> {
        let n = gpus.len();
        if n > MOST {
            return Ok(Self {
                arrivals: Vec::new(),
                rounds: 0.0,
                latency: 0.0,
            });
        }
        let peer = |rank: usize, offset: usize| {
            if onward {
                (rank + offset) % n
            } else {
                (rank + n - offset) % n
            }
        };
        let mut flows: Vec<Vec<Flow>> = Vec::with_capacity(n);
        for rank in 0..n {
            let one =
                (1..n).map(|offset| sharing.flow(router, gpus[rank], gpus[peer(rank, offset)]));
            flows.push(one.collect::<Result<_, _>>()?);
        }
        let engines = gpus
            .iter()
            .map(|gpu| sharing.engines(*gpu))
            .min()
            .unwrap_or(1);
        let engines = engines.clamp(1, n as u32) as usize;
        let mut exchange = Self::perform(sharing, &flows, engines, &peer);
        exchange.rounds = ((n - 1) as f64 / engines as f64).ceil();
        Ok(exchange)
    }

    /// Lets every transfer of one byte run.
    fn perform(
        sharing: &Sharing<'_>,
        flows: &[Vec<Flow>],
        engines: usize,
        peer: &dyn Fn(usize, usize) -> usize,
    ) -> Self {
        let n = flows.len();
        // (rank, offset − 1, bytes left) of the running ones.
        let mut running: Vec<(usize, usize, f64)> = Vec::new();
        let mut next = vec![0; n];
        let mut landed = vec![vec![0.0; n - 1]; n];
        let mut now = 0.0;
        let mut latency = 0f64;
        loop {
            for rank in 0..n {
                while next[rank] < n - 1 && running.iter().filter(|r| r.0 == rank).count() < engines
                {
                    running.push((rank, next[rank], 1.0));
                    next[rank] += 1;
                }
            }
            if running.is_empty() {
                break;
            }
            let active: Vec<&Flow> = running
                .iter()
                .map(|&(rank, at, _)| &flows[rank][at])
                .collect();
            let edges: Vec<_> = (active.iter().zip(sharing.rates(&active)))
                .map(|(flow, rate)| flow.at(rate))
                .collect();
            latency = edges
                .iter()
                .map(|edge| edge.latency)
                .fold(latency, f64::max);
            let time = (running.iter().zip(&edges))
                .map(|((.., left), edge)| left * edge.per_byte)
                .fold(f64::INFINITY, f64::min);
            now += time;
            let mut place = 0;
            running.retain_mut(|(rank, at, left)| {
                let per_byte = edges[place].per_byte;
                place += 1;
                let over = *left * per_byte <= time * (1.0 + 1e-9);
                *left -= if per_byte > 0.0 { time / per_byte } else { 1.0 };
                if over {
                    landed[*rank][*at] = now;
                }
                !over
            });
        }
        // By receiver: the offset that it counts is the sender's.
        let mut arrivals = vec![0f64; n - 1];
        for rank in 0..n {
            for (at, time) in landed[rank].iter().enumerate() {
                debug_assert!(peer(rank, at + 1) < n);
                arrivals[at] = arrivals[at].max(*time);
            }
        }
        for at in 1..n - 1 {
            arrivals[at] = arrivals[at].max(arrivals[at - 1]);
        }
        Self {
            arrivals,
            rounds: 0.0,
            latency,
        }
    }

    /// Whether it was worked out.
    pub fn known(&self) -> bool {
        !self.arrivals.is_empty()
    }

    /// When the last of shards of `bytes` is there, `start` being what starting a copy costs \[s\].
    pub fn last(&self, bytes: f64, start: f64) -> f64 {
        let last = self.arrivals.last().copied().unwrap_or(0.0);
        self.rounds * (start + self.latency) + last * bytes
    }
}
