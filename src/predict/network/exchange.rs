//! Every rank with every other: which shard is where when, per byte of a shard.
//!
//! Each rank sends to one peer after another, to as many at once as it has copy engines. Rates
//! follow from [`super::share`] and are constant between two ends of transfers, so times are
//! proportional to the bytes of a shard and are worked out once, for one byte.
//!
//! In c pieces of every shard, each peer has a lane of its own and its pieces take their turn at the
//! engines behind those of the others: all shards are on their way at once, and the last pieces of
//! all come at the end. A reader that takes up one shard after another waits for the last piece of the
//! first almost as long as for that of the last.
//!
//! A GEMM whose groups of tiles are sent as they finish paces the exchange: piece j of offset i
//! begins no earlier than p·max(i − 1 + (j + 1)/c, w), w the groups that one wave of tiles finishes
//! together. A slow pace keeps transfers apart, so that fan-out curves cost nothing; a fast one or a
//! long wave piles them up. [`Exchange::paced`] looks the last arrival up by p and w.

use super::Edge;
use super::share::{Flow, Sharing};
use super::table::{Axis, Table};
use super::timed::{Arrivals, Calls};
use crate::device::Costs;
use crate::predict::form::greater;
use crate::topology::route::Router;

/// Beyond this many ranks the exchange is not worked out.
const MOST: usize = 64;

/// Pieces of a shard that it is worked out for beside one: what comparisons try.
pub(super) const PIECES: u32 = 4;

/// Range of paces tried, in units of a transfer alone. Faster ones pile up as the fastest does.
const PACES: (f64, f64) = (1.0 / 64.0, 4.0);
/// Beyond this many ranks fewer are tried: the exchange takes longer to work out.
const MANY: usize = 16;

/// All pairs at once, times per byte of a shard.
#[derive(Clone, Debug, Default)]
pub(in crate::predict) struct Exchange {
    /// (shards before it in the reader's order, the own one included; transfers that come before it on
    /// its engine and itself; arrival on the slowest rank [s/byte]); only those that no earlier one's
    /// arrival exceeds.
    arrivals: Vec<(f64, f64, f64)>,
    /// Groups of a GEMM that leave: n − 1.
    groups: f64,
    /// Transfers that a rank starts one after another on one engine.
    rounds: f64,
    /// Whether they are of one lane, which hands over from one to the next.
    one_lane: bool,
    /// Part of a shard that a piece is.
    part: f64,
    /// Last arrival of all \[s/byte\].
    last: f64,
    /// Greatest latency of a way \[s\].
    latency: f64,
    /// By the groups that a wave finishes together, then by pace in units of the slowest transfer
    /// alone: from the GEMM's last group to the last arrival \[s/byte\].
    waves: Table,
    /// The slowest transfer alone \[s/byte\].
    alone: f64,
    /// Call by call, as streams and as a graph; not where a way has stops.
    timed: Option<[Arrivals; 2]>,
}

/// What is exchanged.
#[derive(Copy, Clone, Debug)]
pub(super) struct Of {
    /// A rank sends to those after it (scatter), else to those before it (gather).
    pub onward: bool,
    /// Whether a GEMM may pace it.
    pub paced: bool,
    /// Whether it is performed call by call, too.
    pub timed: bool,
    /// Pieces of a shard.
    pub pieces: u32,
}

impl Exchange {
    /// Of the ranks on `gpus`.
    pub(super) fn new(
        sharing: &mut Sharing<'_>,
        router: &mut Router<'_>,
        gpus: &[u32],
        of: Of,
    ) -> Result<Self, String> {
        let n = gpus.len();
        let pieces = of.pieces as usize;
        if n * pieces > MOST {
            return Ok(Self::default());
        }
        let mut flows: Vec<Vec<Flow>> = Vec::with_capacity(n);
        for (rank, &from) in gpus.iter().enumerate() {
            let peer = |offset: usize| match of.onward {
                true => (rank + offset) % n,
                false => (rank + n - offset) % n,
            };
            let one = (1..n).map(|offset| sharing.flow(router, from, gpus[peer(offset)]));
            flows.push(one.collect::<Result<_, _>>()?);
        }
        let engines = gpus.iter().map(|gpu| sharing.engines(*gpu)).min();
        let engines = engines.unwrap_or(1).clamp(1, n as u32 - 1) as usize;
        let mut exchange = Self {
            groups: (n - 1) as f64,
            rounds: (((n - 1) * pieces) as f64 / engines as f64).ceil(),
            one_lane: engines == n - 1,
            part: 1.0 / pieces as f64,
            ..Self::default()
        };
        let (landed, latency) = perform(sharing, &flows, (engines, pieces), (0.0, 1.0));
        exchange.latency = latency;
        exchange.last = landed.iter().copied().fold(0.0, f64::max);
        let mut latest = 0.0;
        for (at, &time) in landed.iter().enumerate() {
            if time > latest * (1.0 + 1e-9) {
                latest = time;
                let (lane, piece) = (at / pieces, at % pieces);
                // Lanes take turns: before it come all lanes' earlier pieces and this round's.
                let before = match exchange.one_lane {
                    true => piece,
                    false => (piece * (n - 1) + lane) / engines,
                };
                let shards = 1.0 + at as f64 * exchange.part;
                exchange.arrivals.push((shards, (before + 1) as f64, time));
            }
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
        if of.timed && !flows.iter().flatten().any(Flow::stops) {
            let digits = if n > MANY { 0 } else { 2 };
            let mut timed = |calls: fn(&Costs) -> Calls| {
                let calls: Vec<Calls> = gpus.iter().map(|gpu| calls(sharing.costs(*gpu))).collect();
                let calls = (calls.as_slice(), digits);
                Arrivals::new(sharing, &flows, (engines, pieces), calls, &landed)
            };
            exchange.timed = Some([timed(Calls::of), timed(Calls::in_graph)]);
        }
        if !of.paced {
            return Ok(exchange);
        }
        let all = (n - 1) as f64;
        let (fine, coarse) = match (n > MANY, pieces) {
            (true, _) => (1, 0),
            (false, 1) => (3, 2),
            (false, _) => (2, 1),
        };
        let (waves, paces) = (
            Axis::new(coarse, (exchange.part, all)),
            Axis::new(fine, PACES),
        );
        exchange.waves = Table::new(waves, paces, |together, pace| {
            let pace = pace * slowest;
            let (landed, _) = perform(sharing, &flows, (engines, pieces), (pace, together));
            landed.into_iter().fold(0.0, f64::max) - all * pace
        });
        Ok(exchange)
    }

    /// Whether it was worked out.
    pub fn known(&self) -> bool {
        self.rounds > 0.0
    }

    /// Arrivals call by call, handed over one by one or as a graph.
    pub fn timed(&self, graph: bool) -> Option<&Arrivals> {
        self.timed.as_ref().map(|timed| &timed[usize::from(graph)])
    }

    /// When the last of shards of `bytes` is there, each in one piece, `start` being what starting a
    /// copy costs \[s\].
    pub fn last(&self, bytes: f64, start: f64) -> f64 {
        self.line(start, 0.0).at(bytes)
    }

    /// When the last piece is there over the bytes of a shard, starting a copy taking `start` and
    /// handing over in a lane `lane` \[s\].
    pub fn line(&self, start: f64, lane: f64) -> Edge {
        Edge {
            latency: self.starts(self.rounds, start, lane),
            per_byte: self.last,
        }
    }

    /// The slowest piece alone over the bytes of a shard.
    pub fn piece(&self, start: f64) -> Edge {
        Edge {
            latency: start + self.latency,
            per_byte: self.alone * self.part,
        }
    }

    /// Starting so many copies, the ways' latency included \[s\].
    fn starts(&self, rounds: f64, start: f64, lane: f64) -> f64 {
        let between = if self.one_lane { lane } else { 0.0 };
        rounds * (start + self.latency) + (rounds - 1.0) * between
    }

    /// Shards in the reader's order, those that are there later than all before: (shards before it, when
    /// it is there over its bytes).
    pub fn arrivals(&self, start: f64, lane: f64) -> impl Iterator<Item = (f64, Edge)> {
        let arrivals = self.arrivals.iter();
        arrivals.map(move |&(before, round, per_byte)| {
            let latency = self.starts(round, start, lane);
            (before, Edge { latency, per_byte })
        })
    }

    /// From the GEMM's n − 1st group to the last arrival, when a group takes `group` seconds, one
    /// wave of tiles `wave`, and every group is a shard of `bytes` that leaves for its owner \[s\].
    #[inline]
    pub fn paced(&self, bytes: f64, (start, lane): (f64, f64), group: f64, wave: f64) -> f64 {
        let rest = (self.waves).at(wave / group, group / (bytes * self.alone));
        // What starts add: a pile is worked off in rounds from the first release on, which comes that much
        // before the last; copies that are released apart hide all starts but the last.
        let released = greater(self.groups * group - greater(wave, group * self.part), 0.0);
        let flow = bytes * self.last;
        let (all, last) = (flow - released, flow / self.rounds);
        let starts = self.starts(self.rounds, start, lane);
        let started = greater(all + starts, last + start + self.latency);
        started - greater(all, last) + rest * bytes
    }

    /// It takes no less over the bytes of a shard: whatever the pace, and together with the groups before.
    pub fn least_paced(&self, start: f64, groups: f64) -> [Edge; 2] {
        let slowest = self.alone * groups;
        let least = [0.0, slowest].map(|of_pace| self.waves.least(of_pace));
        least.map(|per_byte| Edge {
            latency: start + self.latency,
            per_byte,
        })
    }
}

/// Lets every transfer of one byte run in `pieces` on `engines` of each rank, piece j of offset i
/// released at pace · max(i − 1 + (j + 1)/pieces, together): when the pieces of each offset are there
/// on the slowest rank \[s\], and the greatest latency \[s\].
fn perform(
    sharing: &mut Sharing<'_>,
    flows: &[Vec<Flow>],
    (engines, pieces): (usize, usize),
    (pace, together): (f64, f64),
) -> (Vec<f64>, f64) {
    let n = flows.len();
    let part = 1.0 / pieces as f64;
    // (rank, place, bytes left) of the running ones.
    let mut running: Vec<(usize, usize, f64)> = Vec::new();
    // By rank and offset: the next piece, and since when it could begin.
    let release = |place: usize| ((place + 1) as f64 * part).max(together) * pace;
    let first = |lane: usize| (0, release(lane * pieces));
    let mut lanes: Vec<Vec<(usize, f64)>> = vec![(0..n - 1).map(first).collect(); n];
    let mut busy = vec![0; n];
    let mut landed = vec![0f64; (n - 1) * pieces];
    let (mut now, mut latency) = (0.0, 0f64);
    loop {
        let mut soon = f64::INFINITY;
        for (rank, lanes) in lanes.iter_mut().enumerate() {
            while busy[rank] < engines {
                // Who could begin first, of equals the first.
                let open = lanes
                    .iter()
                    .enumerate()
                    .filter(|(_, (next, _))| *next < pieces);
                let Some((lane, &(next, at))) = open.min_by(|a, b| a.1.1.total_cmp(&b.1.1)) else {
                    break;
                };
                if at > now * (1.0 + 1e-12) {
                    soon = soon.min(at);
                    break;
                }
                running.push((rank, lane * pieces + next, part));
                busy[rank] += 1;
                // Until it has landed.
                lanes[lane].1 = f64::INFINITY;
            }
        }
        if running.is_empty() {
            if soon.is_infinite() {
                return (landed, latency);
            }
            now = soon;
            continue;
        }
        let active: Vec<&Flow> = (running.iter())
            .map(|&(rank, at, _)| &flows[rank][at / pieces])
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
            .fold(soon - now, f64::min);
        now += time;
        let mut place = 0;
        running.retain_mut(|(rank, at, left)| {
            let per_byte = edges[place].per_byte;
            place += 1;
            let over = *left * per_byte <= time * (1.0 + 1e-9);
            if over {
                landed[*at] = landed[*at].max(now);
                busy[*rank] -= 1;
                lanes[*rank][*at / pieces] = (*at % pieces + 1, now.max(release(*at + 1)));
            } else {
                *left -= time / per_byte;
            }
            !over
        });
    }
}
