//! A gather call by call: when each piece of every shard is there, starts and the host's calls counted.
//!
//! Where shards are small, copies begin as they are handed over and while others start, so that which of them
//! meet on a link depends on these times. The exchange is therefore performed for shards of many sizes: every
//! copy waits for its call, for the copy before it in its lane and for an engine, starts, and then shares its
//! links. Between sizes arrivals are linear; beyond the largest they grow as the bytes alone do.

use super::share::{Flow, Sharing};
use super::table::Axis;
use crate::device::Costs;

/// Sizes of shards that are performed \[bytes\].
const SIZES: (f64, f64) = (4096.0, 67_108_864.0);

/// What a rank's copies cost \[s\].
#[derive(Copy, Clone, Debug, Default, PartialEq)]
pub(super) struct Calls {
    /// Until the first call is handed over, and from one to the next.
    pub first: f64,
    pub each: f64,
    /// Starting a copy, and one behind another of its lane; from the one to the other.
    pub start: f64,
    pub next: f64,
    pub lane: f64,
}

impl Calls {
    /// After the call of a kernel; each copy signals.
    pub fn of(costs: &Costs) -> Self {
        let (copy, more) = (costs.submit_copy.get(), &costs.more);
        let signal = more.flag_write_copy.or(more.flag_write);
        Self {
            first: costs.submit_kernel.get() + copy,
            each: copy + costs.submit_sync.get(),
            start: costs.copy_start.get(),
            next: more.copy_next.unwrap_or(costs.copy_start).get(),
            lane: costs.lane.get() + signal.map_or(0.0, |signal| signal.get()),
        }
    }

    /// All handed over at once, edges in place of signals.
    pub fn in_graph(costs: &Costs) -> Self {
        let lane = costs.more.graph_lane.unwrap_or(costs.lane);
        Self {
            first: 0.0,
            each: 0.0,
            lane: lane.get(),
            ..Self::of(costs)
        }
    }
}

/// Arrivals by the bytes of a shard.
#[derive(Clone, Debug, Default)]
pub(in crate::predict) struct Arrivals {
    sizes: Axis,
    /// By size, then by piece in the reader's order \[s\].
    times: Vec<f64>,
    /// By piece, beyond the largest size \[s/byte\].
    per_byte: Vec<f64>,
    largest: f64,
    /// When the first copy is handed over \[s\].
    pub first: f64,
}

/// What holds a reader up most.
#[derive(Copy, Clone, Debug, PartialEq)]
pub(in crate::predict) struct HeldUp {
    /// When it has all, the last arrival and what it does then \[s\].
    pub seconds: f64,
    /// The pieces before the one that holds it up, and when that is there \[s\].
    pub pieces: usize,
    pub arrival: f64,
}

impl Arrivals {
    /// Of exchanges by `flows`, `digits` binary digits of a size beyond the first; `per_byte` is what they tend
    /// to.
    pub(super) fn new(
        sharing: &mut Sharing<'_>,
        flows: &[Vec<Flow>],
        engines_and_pieces: (usize, usize),
        (calls, digits): (&[Calls], u32),
        per_byte: &[f64],
    ) -> Self {
        let sizes = Axis::new(digits, SIZES);
        let (mut times, mut largest) = (Vec::new(), 0.0);
        for size in sizes.numbers() {
            times.extend(perform(sharing, flows, engines_and_pieces, calls, size));
            largest = size;
        }
        Self {
            sizes,
            times,
            per_byte: per_byte.to_vec(),
            largest,
            first: calls.iter().map(|calls| calls.first).fold(0.0, f64::max),
        }
    }

    /// A reader that takes up one piece after another, `each` seconds for one and `last` at least for the last.
    #[inline]
    pub fn held_up(&self, bytes: f64, each: f64, last: f64) -> HeldUp {
        let width = self.per_byte.len();
        let (row, share) = self.sizes.place(bytes);
        let begin = row * width;
        let low = &self.times[begin..begin + width];
        let high = match share > 0.0 {
            true => &self.times[begin + width..begin + 2 * width],
            false => low,
        };
        let beyond = (bytes - self.largest).max(0.0);
        let mut most = HeldUp {
            seconds: 0.0,
            pieces: 0,
            arrival: 0.0,
        };
        let (mut latest, mut left) = (0.0, width as f64 * each);
        for (piece, ((low, high), per_byte)) in low.iter().zip(high).zip(&self.per_byte).enumerate()
        {
            let arrival = low + (high - low) * share + beyond * per_byte;
            if arrival + left > most.seconds {
                most = HeldUp {
                    seconds: arrival + left,
                    pieces: piece,
                    arrival,
                };
            }
            latest = if arrival > latest { arrival } else { latest };
            left -= each;
        }
        if latest + last > most.seconds {
            most = HeldUp {
                seconds: latest + last,
                pieces: width.saturating_sub(1),
                arrival: latest,
            };
        }
        most
    }
}

/// A copy under way.
#[derive(Copy, Clone, Debug)]
struct Copying {
    rank: usize,
    lane: usize,
    piece: usize,
    /// When its first byte flows \[s\], and bytes left.
    flows_at: f64,
    left: f64,
}

/// When the pieces of shards of `bytes` are there on the slowest rank, by offset and piece \[s\].
fn perform(
    sharing: &mut Sharing<'_>,
    flows: &[Vec<Flow>],
    (engines, pieces): (usize, usize),
    calls: &[Calls],
    bytes: f64,
) -> Vec<f64> {
    let n = flows.len();
    let handed_over = |rank: usize, lane: usize, piece: usize| {
        let calls = &calls[rank];
        calls.first + (lane * pieces + piece) as f64 * calls.each
    };
    // By rank and lane: the next piece, and since when it could begin.
    let first = |rank| (0..n - 1).map(move |lane| (0, handed_over(rank, lane, 0)));
    let mut lanes: Vec<Vec<(usize, f64)>> = (0..n).map(|rank| first(rank).collect()).collect();
    let mut free = vec![engines; n];
    let mut running: Vec<Copying> = Vec::new();
    let mut landed = vec![0f64; (n - 1) * pieces];
    let mut now = 0.0;
    let tie = |at: f64| at * (1.0 + 1e-12);
    loop {
        let mut soon = f64::INFINITY;
        for (rank, lanes) in lanes.iter_mut().enumerate() {
            while free[rank] > 0 {
                let open = lanes
                    .iter()
                    .enumerate()
                    .filter(|(_, (next, _))| *next < pieces);
                // Who could begin first, of equals the first.
                let Some((lane, &(piece, at))) = open.min_by(|a, b| a.1.1.total_cmp(&b.1.1)) else {
                    break;
                };
                if at > tie(now) {
                    soon = soon.min(at);
                    break;
                }
                let calls = &calls[rank];
                let start = if piece > 0 { calls.next } else { calls.start };
                running.push(Copying {
                    rank,
                    lane,
                    piece,
                    flows_at: now + start + flows[rank][lane].latency(),
                    left: bytes / pieces as f64,
                });
                free[rank] -= 1;
                lanes[lane].1 = f64::INFINITY;
            }
        }
        if running.is_empty() {
            if soon.is_infinite() {
                return landed;
            }
            now = soon;
            continue;
        }
        let flowing = |copy: &Copying| copy.flows_at <= tie(now);
        let active: Vec<&Flow> = (running.iter().filter(|copy| flowing(copy)))
            .map(|copy| &flows[copy.rank][copy.lane])
            .collect();
        let mut rates = sharing.rates(&active).into_iter();
        let rates: Vec<Option<f64>> = (running.iter())
            .map(|copy| if flowing(copy) { rates.next() } else { None })
            .collect();
        let next = running.iter().zip(&rates).map(|(copy, rate)| match rate {
            Some(rate) => now + copy.left / rate,
            None => copy.flows_at,
        });
        let then = next.fold(soon, f64::min);
        let mut place = 0;
        running.retain_mut(|copy| {
            let rate = rates[place];
            place += 1;
            let Some(rate) = rate else {
                return true;
            };
            let over = now + copy.left / rate <= tie(then);
            if over {
                let at = copy.lane * pieces + copy.piece;
                landed[at] = landed[at].max(then);
                free[copy.rank] += 1;
                let next = copy.piece + 1;
                let handed = match next < pieces {
                    true => handed_over(copy.rank, copy.lane, next),
                    false => 0.0,
                };
                lanes[copy.rank][copy.lane] = (next, handed.max(then + calls[copy.rank].lane));
            } else {
                copy.left -= (then - now) * rate;
            }
            !over
        });
        now = then;
    }
}
