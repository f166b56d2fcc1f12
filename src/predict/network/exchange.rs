//! Every rank with every other: which shard is where when, per byte of a shard.
//!
//! Each rank sends to one peer after another, to as many at once as it has copy engines. Rates
//! follow from [`super::share`] and are constant between two ends of transfers, so times are
//! proportional to the bytes of a shard and are worked out once, for one byte.
//!
//! A GEMM whose groups of tiles are sent as they finish paces the exchange: the transfer of offset i
//! begins no earlier than p·max(i, w), w the groups that one wave of tiles finishes together. A slow
//! pace keeps transfers apart, so that fan-out curves cost nothing; a fast one or a long wave piles
//! them up. [`Exchange::paced`] looks the last arrival up by p and w.

use super::Edge;
use super::share::{Flow, Sharing};
use super::table::{Axis, Table};
use crate::predict::form::greater;
use crate::topology::route::Router;

/// Beyond this many ranks the exchange is not worked out.
const MOST: usize = 64;

/// Range of paces tried, in units of a transfer alone. Faster ones pile up as the fastest does.
const PACES: (f64, f64) = (1.0 / 64.0, 4.0);
/// Beyond this many ranks fewer are tried: the exchange takes longer to work out.
const MANY: usize = 16;

/// All pairs at once, times per byte of a shard.
#[derive(Clone, Debug, Default)]
pub(in crate::predict) struct Exchange {
    /// (offset, transfers that come before it on its engine and itself, arrival on the slowest
    /// rank [s/byte]); only those that no earlier offset's arrival exceeds.
    arrivals: Vec<(f64, f64, f64)>,
    /// Transfers that a rank starts one after another on one engine.
    rounds: f64,
    /// Last arrival of all \[s/byte\].
    last: f64,
    /// Greatest latency of a way \[s\].
    latency: f64,
    /// By the groups that a wave finishes together, then by pace in units of the slowest transfer
    /// alone: from the GEMM's last group to the last arrival \[s/byte\].
    waves: Table,
    /// The slowest transfer alone \[s/byte\].
    alone: f64,
}

impl Exchange {
    /// Of the ranks on `gpus`; `onward`: a rank sends to those after it (scatter), else to those
    /// before it (gather); `paced`: whether a GEMM may pace it.
    pub(super) fn new(
        sharing: &mut Sharing<'_>,
        router: &mut Router<'_>,
        gpus: &[u32],
        onward: bool,
        paced: bool,
    ) -> Result<Self, String> {
        let n = gpus.len();
        if n > MOST {
            return Ok(Self::default());
        }
        let mut flows: Vec<Vec<Flow>> = Vec::with_capacity(n);
        for (rank, &from) in gpus.iter().enumerate() {
            let peer = |offset: usize| match onward {
                true => (rank + offset) % n,
                false => (rank + n - offset) % n,
            };
            let one = (1..n).map(|offset| sharing.flow(router, from, gpus[peer(offset)]));
            flows.push(one.collect::<Result<_, _>>()?);
        }
        let engines = gpus.iter().map(|gpu| sharing.engines(*gpu)).min();
        let engines = engines.unwrap_or(1).clamp(1, n as u32) as usize;
        let (landed, latency) = perform(sharing, &flows, engines, (0.0, 1.0));
        let last = landed.iter().copied().fold(0.0, f64::max);
        let mut exchange = Self {
            arrivals: Vec::new(),
            rounds: ((n - 1) as f64 / engines as f64).ceil(),
            last,
            latency,
            waves: Table::default(),
            alone: 0.0,
        };
        let mut latest = 0.0;
        for (at, &time) in landed.iter().enumerate() {
            if time > latest * (1.0 + 1e-9) {
                latest = time;
                let round = (at / engines + 1) as f64;
                exchange.arrivals.push(((at + 1) as f64, round, time));
            }
        }
        if !paced {
            return Ok(exchange);
        }
        let alone = |flow: &Flow, sharing: &mut Sharing<'_>| {
            let rates = sharing.rates(&[flow]);
            flow.at(rates[0]).per_byte
        };
        let mut slowest = 0f64;
        for flow in flows.iter().flatten() {
            slowest = slowest.max(alone(flow, sharing));
        }
        exchange.alone = slowest;
        let all = (n - 1) as f64;
        let (fine, coarse) = if n > MANY { (1, 0) } else { (3, 2) };
        let (waves, paces) = (Axis::new(coarse, (1.0, all)), Axis::new(fine, PACES));
        exchange.waves = Table::new(waves, paces, |together, pace| {
            let pace = pace * slowest;
            let (landed, _) = perform(sharing, &flows, engines, (pace, together));
            landed.into_iter().fold(0.0, f64::max) - all * pace
        });
        Ok(exchange)
    }

    /// Whether it was worked out.
    pub fn known(&self) -> bool {
        self.rounds > 0.0
    }

    /// When the last of shards of `bytes` is there, `start` being what starting a copy costs \[s\].
    pub fn last(&self, bytes: f64, start: f64) -> f64 {
        self.line(start).at(bytes)
    }

    /// The same as a line over the bytes of a shard.
    pub fn line(&self, start: f64) -> Edge {
        Edge {
            latency: self.rounds * (start + self.latency),
            per_byte: self.last,
        }
    }

    /// The arrival that delays a reader most who takes `group` seconds for every shard, in the order
    /// of the offsets: (offset, when it is there \[s\]).
    #[inline]
    pub fn holds_up(&self, bytes: f64, start: f64, group: f64) -> (f64, f64) {
        let one = start + self.latency;
        let mut worst = f64::NEG_INFINITY;
        let mut found = (0.0, 0.0);
        for &(offset, round, per_byte) in &self.arrivals {
            let time = round * one + per_byte * bytes;
            let late = time - offset * group;
            if late > worst {
                worst = late;
                found = (offset, time);
            }
        }
        found
    }

    /// From the GEMM's n − 1st group to the last arrival, when a group takes `group` seconds, one
    /// wave of tiles `wave`, and every group is a shard of `bytes` that leaves for its owner \[s\].
    #[inline]
    pub fn paced(&self, bytes: f64, start: f64, group: f64, wave: f64) -> f64 {
        let rest = (self.waves).at(wave / group, group / (bytes * self.alone));
        // Copies started while others flow are hidden; a pile of them is started in rounds.
        let one = start + self.latency;
        let rounds = greater(self.rounds * one - (self.rounds - 1.0) * group, one);
        rounds + rest * bytes
    }
}

/// Lets every transfer of one byte run, the one of offset i released at pace · max(i, together): when
/// the shards of each offset are there on the slowest rank \[s\], and the greatest latency \[s\].
fn perform(
    sharing: &mut Sharing<'_>,
    flows: &[Vec<Flow>],
    engines: usize,
    (pace, together): (f64, f64),
) -> (Vec<f64>, f64) {
    let n = flows.len();
    // (rank, offset − 1, bytes left) of the running ones.
    let mut running: Vec<(usize, usize, f64)> = Vec::new();
    let mut next = vec![0; n];
    let mut busy = vec![0; n];
    let mut landed = vec![0f64; n - 1];
    let (mut now, mut latency) = (0.0, 0f64);
    loop {
        let mut release = f64::INFINITY;
        for (rank, next) in next.iter_mut().enumerate() {
            while *next < n - 1 && busy[rank] < engines {
                let at = ((*next + 1) as f64).max(together) * pace;
                if at > now * (1.0 + 1e-12) {
                    release = release.min(at);
                    break;
                }
                running.push((rank, *next, 1.0));
                busy[rank] += 1;
                *next += 1;
            }
        }
        if running.is_empty() {
            if release.is_infinite() {
                return (landed, latency);
            }
            now = release;
            continue;
        }
        let active: Vec<&Flow> = (running.iter())
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
            .fold(release - now, f64::min);
        now += time;
        let mut place = 0;
        running.retain_mut(|(rank, at, left)| {
            let per_byte = edges[place].per_byte;
            place += 1;
            let over = *left * per_byte <= time * (1.0 + 1e-9);
            if over {
                landed[*at] = landed[*at].max(now);
                busy[*rank] -= 1;
            } else {
                *left -= time / per_byte;
            }
            !over
        });
    }
}
