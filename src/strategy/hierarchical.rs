//! `hierarchical`: inside groups of closest GPUs and across groups, so that every byte crosses
//! between groups once.
//!
//! Groups have g ranks; the ranks of equal place in their groups form a rail. All-gather: own
//! shares along the rails, then everything of a rail inside the groups. Reduce-scatter: the reverse.
//! All-reduce: both. All-to-all: inside the group to the place of the destination, then along the
//! rail, the blocks of a whole group in one message.

use super::layout::{Bare, COMM, COMPUTE, begin};
use super::params::{Param, Value, Values};
use super::ring::{MOVER, own_blocks};
use super::{Job, Skip, Strategy, affordable, groups, hand_over, opens};
use crate::operator::Kind;
use crate::schedule::{Builder, Compute, Dep, Lane, Mover, Rank, Schedule, Slice, TaskId, Via};

#[derive(Debug)]
pub(super) struct Hierarchical;

const PARAMS: &[Param] = &[
    Param {
        name: "group",
        values: Values::Count {
            least: 0,
            most: 65535,
        },
        default: Value::Count(0),
        about: "ranks in a group, consecutive; 0: the groups of closest GPUs on the link graph",
        shown: false,
    },
    MOVER,
];

impl Strategy for Hierarchical {
    fn name(&self) -> &'static str {
        "hierarchical"
    }

    fn summary(&self) -> &'static str {
        "Inside groups of closest GPUs and across them, so that bytes cross between groups once."
    }

    fn params(&self) -> &'static [Param] {
        PARAMS
    }

    fn applies(&self, kind: Kind) -> bool {
        !kind.is_fused() && kind != Kind::PointToPoint
    }

    fn build(&self, job: &Job<'_>) -> Result<Schedule, Skip> {
        let groups = match job.params.count("group") {
            0 => job.site.groups()?.to_vec(),
            size => groups::consecutive(job.ranks(), size as usize)?,
        };
        let n = job.ranks() as u64;
        affordable(3 * n * n)?;
        let mut b = begin(job);
        let bare = Bare::new(&mut b, job)?;
        let tiers = Tiers::new(&mut b, groups, &bare, job.params.mover());
        match job.operator.kind {
            Kind::AllGather => tiers.gather(&mut b, |_| None),
            Kind::AllToAll => tiers.exchange(&mut b),
            Kind::ReduceScatter => {
                tiers.reduce_scatter(&mut b, |_| 0);
            }
            _ => {
                let sums = tiers.reduce_scatter(&mut b, |rank| u32::from(rank.0));
                tiers.gather(&mut b, |rank| Some(sums[usize::from(rank.0)]));
            }
        }
        Ok(b.finish())
    }
}

/// Groups and rails.
struct Tiers<'a> {
    /// By group, then place.
    groups: Vec<Vec<Rank>>,
    /// Ranks of a group.
    size: usize,
    bare: &'a Bare,
    mover: Mover,
}

impl<'a> Tiers<'a> {
    fn new(b: &mut Builder, groups: Vec<Vec<Rank>>, bare: &'a Bare, mover: Mover) -> Self {
        let size = groups[0].len();
        let tiers = Self {
            groups,
            size,
            bare,
            mover,
        };
        if size * tiers.groups.len() <= 64 {
            for i in 1..size {
                b.name_lane(tiers.inside(i), &format!("group +{i}"));
            }
            for i in 1..tiers.groups.len() {
                b.name_lane(tiers.across(i), &format!("rail +{i}"));
            }
        }
        tiers
    }

    /// The lane to the rank `i` places on in the group.
    fn inside(&self, i: usize) -> Lane {
        Lane(COMM.0 + i as u16 - 1)
    }

    /// The lane to the rank `i` groups on in the rail.
    fn across(&self, i: usize) -> Lane {
        Lane(COMM.0 + (self.size - 1 + i - 1) as u16)
    }

    /// All (group, place) with their rank.
    fn each(&self) -> impl Iterator<Item = (usize, usize, Rank)> {
        self.groups.iter().enumerate().flat_map(|(g, group)| {
            group
                .iter()
                .enumerate()
                .map(move |(place, &rank)| (g, place, rank))
        })
    }

    /// The rank at a place of a group, both counted round.
    fn at(&self, group: usize, place: usize) -> Rank {
        self.groups[group % self.groups.len()][place % self.size]
    }

    /// `rank`'s share in the output of `of`.
    fn share(&self, b: &Builder, of: Rank, row: u32) -> Slice {
        let rows = self.bare.rows;
        b.rows(self.bare.y[usize::from(of.0)], 0, row * rows, rows)
    }

    /// Copies every share (rows by rank number) to every output. The own share waits for `ready`.
    fn gather(&self, b: &mut Builder, ready: impl Fn(Rank) -> Option<TaskId>) {
        let (count, ranks) = (self.groups.len(), b.ranks().len());
        let own = |rank: Rank| ready(rank).map(|task| Dep::from((task, Via::Event)));
        // What the copies of a share inside the group wait for, by how many groups back the share
        // came from, then rank.
        let mut waits: Vec<Vec<Option<Dep>>> = vec![b.ranks().map(own).collect()];
        for i in 1..count {
            let mut landed = vec![None; ranks];
            for (g, place, rank) in self.each() {
                let to = self.at(g + i, place);
                let row = u32::from(rank.0);
                let (from, target) = (self.share(b, rank, row), self.share(b, to, row));
                let dep = waits[0][usize::from(rank.0)];
                let lane = self.across(i);
                let task = b.transfer(rank, lane, from, target, self.mover, dep.as_slice());
                let via = opens(self.mover);
                landed[usize::from(to.0)] = Some(Dep { task, via });
            }
            waits.push(landed);
        }
        for (back, waits) in waits.iter().enumerate() {
            for i in 1..self.size {
                for (g, place, rank) in self.each() {
                    let to = self.at(g, place + i);
                    let row = u32::from(self.at(g + count - back, place).0);
                    let (from, target) = (self.share(b, rank, row), self.share(b, to, row));
                    let dep = waits[usize::from(rank.0)];
                    let lane = self.inside(i);
                    b.transfer(rank, lane, from, target, self.mover, dep.as_slice());
                }
            }
        }
    }

    /// Sums every rank's share into its output at share `home`. Returns the last sums by rank.
    fn reduce_scatter(&self, b: &mut Builder, home: impl Fn(Rank) -> u32) -> Vec<TaskId> {
        let (count, rows, cols) = (self.groups.len(), self.bare.rows, self.bare.cols);
        let tensor = self.bare.tensor;
        // Group h's part of everything is at share h of `landing` (a slot per peer) and `sums`.
        let shares = count as u32 * rows;
        let ranks: Vec<Rank> = b.ranks().collect();
        let buffers = |b: &mut Builder, name, rows, slots: usize| -> Vec<_> {
            let buffer = |&rank: &Rank| b.scratch(name, tensor, rank, rows, cols, slots as u16);
            ranks.iter().map(buffer).collect()
        };
        let landing = buffers(b, "landing", shares, self.size - 1);
        let sums = buffers(b, "group_sum", shares, 1);
        let rail = buffers(b, "rail_landing", rows, count - 1);
        let mut landed = vec![Vec::with_capacity((self.size - 1) * count); ranks.len()];
        for h in 0..count {
            for i in 1..self.size {
                for (g, place, rank) in self.each() {
                    let to = self.at(g, place + i);
                    let owner = u32::from(self.at(h, place + i).0);
                    let from = b.rows(self.bare.x[usize::from(rank.0)], 0, owner * rows, rows);
                    let row = h as u32 * rows;
                    let slot = b.rows(landing[usize::from(to.0)], i as u16 - 1, row, rows);
                    let task = b.transfer(rank, self.inside(i), from, slot, self.mover, &[]);
                    landed[usize::from(to.0)].push((h, task));
                }
            }
        }
        // The own group's sum last: it does not travel.
        let mut partial = vec![vec![TaskId(0); count]; ranks.len()];
        for later in 1..=count {
            for (g, place, rank) in self.each() {
                let r = usize::from(rank.0);
                let h = (g + later) % count;
                let row = h as u32 * rows;
                let owner = u32::from(self.at(h, place).0);
                let mut inputs = vec![b.rows(self.bare.x[r], 0, owner * rows, rows)];
                inputs.extend((1..self.size).map(|i| b.rows(landing[r], i as u16 - 1, row, rows)));
                let out = b.rows(sums[r], 0, row, rows);
                let after: Vec<Dep> = landed[r]
                    .iter()
                    .filter(|(of, _)| *of == h)
                    .map(|(_, task)| (*task, Via::StreamFlag).into())
                    .collect();
                let sum = Compute::Reduce { inputs, out };
                partial[r][h] = b.compute(rank, COMPUTE, None, sum, &after);
            }
        }
        let mut arrived = vec![Vec::with_capacity(count - 1); ranks.len()];
        for i in 1..count {
            for (g, place, rank) in self.each() {
                let h = (g + i) % count;
                let to = self.at(h, place);
                let from = b.rows(sums[usize::from(rank.0)], 0, h as u32 * rows, rows);
                let slot = b.rows(rail[usize::from(to.0)], i as u16 - 1, 0, rows);
                let after = [(partial[usize::from(rank.0)][h], Via::Event).into()];
                let task = b.transfer(rank, self.across(i), from, slot, self.mover, &after);
                arrived[usize::from(to.0)].push(task);
            }
        }
        let mut last = vec![TaskId(0); ranks.len()];
        for (g, _, rank) in self.each() {
            let r = usize::from(rank.0);
            let mut inputs = vec![b.rows(sums[r], 0, g as u32 * rows, rows)];
            inputs.extend((1..count).map(|i| b.rows(rail[r], i as u16 - 1, 0, rows)));
            let out = self.share(b, rank, home(rank));
            let after: Vec<Dep> = arrived[r]
                .iter()
                .map(|task| (*task, Via::StreamFlag).into())
                .collect();
            last[r] = b.compute(rank, COMPUTE, None, Compute::Reduce { inputs, out }, &after);
        }
        last
    }

    fn exchange(&self, b: &mut Builder) {
        let (count, rows) = (self.groups.len(), self.bare.rows);
        own_blocks(b, self.bare, self.mover);
        // At share h · g + place: the block of the group's rank at `place` for group h.
        let stage: Vec<_> = b
            .ranks()
            .map(|rank| {
                let shares = (count * self.size) as u32;
                b.scratch(
                    "stage",
                    self.bare.tensor,
                    rank,
                    shares * rows,
                    self.bare.cols,
                    1,
                )
            })
            .collect();
        let mut staged = vec![vec![Vec::new(); count]; b.ranks().len()];
        // Other groups' blocks first: they have further to go.
        for later in 1..=count {
            for i in 0..self.size {
                for (g, place, rank) in self.each() {
                    let h = (g + later) % count;
                    if h == g && i == 0 {
                        continue;
                    }
                    let to = self.at(g, place + i);
                    let owner = u32::from(self.at(h, place + i).0);
                    let from = b.rows(self.bare.x[usize::from(rank.0)], 0, owner * rows, rows);
                    let target = if h == g {
                        self.share(b, to, u32::from(rank.0))
                    } else {
                        let share = (h * self.size + place) as u32;
                        b.rows(stage[usize::from(to.0)], 0, share * rows, rows)
                    };
                    let lane = if i == 0 { COMPUTE } else { self.inside(i) };
                    let task = b.transfer(rank, lane, from, target, self.mover, &[]);
                    if h != g {
                        staged[usize::from(to.0)][h].push((rank, task));
                    }
                }
            }
        }
        for i in 1..count {
            for (g, place, rank) in self.each() {
                let h = (g + i) % count;
                let to = self.at(h, place);
                let dep = |&(from, task): &(Rank, TaskId)| Dep {
                    task,
                    via: hand_over(from, rank),
                };
                let after: Vec<Dep> = staged[usize::from(rank.0)][h].iter().map(dep).collect();
                let mut first = 0;
                for run in self.groups[g].chunk_by(|a, b| a.0 + 1 == b.0) {
                    let share = (h * self.size + first) as u32;
                    let len = run.len() as u32 * rows;
                    let from = b.rows(stage[usize::from(rank.0)], 0, share * rows, len);
                    let row = u32::from(run[0].0) * rows;
                    let target = b.rows(self.bare.y[usize::from(to.0)], 0, row, len);
                    b.transfer(rank, self.across(i), from, target, self.mover, &after);
                    first += run.len();
                }
            }
        }
    }
}
