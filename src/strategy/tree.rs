//! `tree`: few long steps in place of many short ones.
//!
//! All-reduce goes up and down two binary trees at once, each with half of the rows; a rank that is
//! inside one tree is a leaf of the other (for an even number of ranks), so every rank sends and
//! receives the buffer about once in each direction, in 2·log₂ n hops. All-gather doubles: in step
//! s rank r swaps all it has with rank r xor 2^s. Reduce-scatter halves: the same backwards, with
//! sums. Both take log₂ n steps and need a power of two.

use super::fused::CHUNKS;
use super::layout::{Bare, COMM, COMPUTE, begin, split};
use super::params::{Param, Value};
use super::ring::MOVER;
use super::{Job, Skip, Strategy, affordable, opens};
use crate::operator::Kind;
use crate::schedule::{BufferId, Builder, Compute, Dep, Lane, Mover, Rank, Schedule, TaskId, Via};

#[derive(Debug)]
pub(super) struct Tree;

const PARAMS: &[Param] = &[
    Param {
        default: Value::Count(4),
        about: "pieces of each tree's rows, following one another (all-reduce only)",
        ..CHUNKS
    },
    MOVER,
];

impl Strategy for Tree {
    fn name(&self) -> &'static str {
        "tree"
    }

    fn summary(&self) -> &'static str {
        "All-reduce over a double binary tree; all-gather by doubling, reduce-scatter by halving."
    }

    fn params(&self) -> &'static [Param] {
        PARAMS
    }

    fn applies(&self, kind: Kind) -> bool {
        matches!(
            kind,
            Kind::AllGather | Kind::ReduceScatter | Kind::AllReduce
        )
    }

    fn tried(&self, kind: Kind) -> &'static [&'static str] {
        match kind {
            Kind::AllReduce => &["chunks=1", ""],
            _ => &[""],
        }
    }

    fn build(&self, job: &Job<'_>) -> Result<Schedule, Skip> {
        let n = job.ranks();
        let kind = job.operator.kind;
        if kind != Kind::AllReduce && !n.is_power_of_two() {
            return Err(Skip::because(format!(
                "{kind} by doubling needs a power of two of ranks, not {n}"
            )));
        }
        let mut b = begin(job);
        let bare = Bare::new(&mut b, job)?;
        let mover = job.params.mover();
        match kind {
            Kind::AllGather => doubling(&mut b, &bare, mover),
            Kind::ReduceScatter => halving(&mut b, &bare, mover),
            _ => {
                let chunks = job.params.count("chunks");
                affordable(6 * n as u64 * u64::from(chunks))?;
                let all = bare.rows * n as u32;
                for tree in 0..2 {
                    let rows = split(all, tree, 2);
                    let chunks = chunks.min(rows.1);
                    Half::new(&mut b, &bare, mover, tree, rows, chunks).run(&mut b);
                }
            }
        }
        Ok(b.finish())
    }
}

fn doubling(b: &mut Builder, bare: &Bare, mover: Mover) {
    let n = b.ranks().len();
    b.name_lane(COMM, "partner");
    // The transfer that landed last at every rank; the lane orders the earlier ones.
    let mut landed: Vec<Option<TaskId>> = vec![None; n];
    let mut size = 1;
    while size < n {
        let mut next = vec![None; n];
        for (r, landed) in landed.iter().enumerate() {
            let partner = r ^ size;
            let (row, rows) = (
                (r & !(size - 1)) as u32 * bare.rows,
                size as u32 * bare.rows,
            );
            let from = b.rows(bare.y[r], 0, row, rows);
            let to = b.rows(bare.y[partner], 0, row, rows);
            let via = opens(mover);
            let dep = landed.map(|task| Dep { task, via });
            let rank = Rank(r as u16);
            next[partner] = Some(b.transfer(rank, COMM, from, to, mover, dep.as_slice()));
        }
        landed = next;
        size *= 2;
    }
}

fn halving(b: &mut Builder, bare: &Bare, mover: Mover) {
    let n = b.ranks().len();
    b.name_lane(COMM, "partner");
    let all = n as u32 * bare.rows;
    let (tensor, cols) = (bare.tensor, bare.cols);
    let mut scratch = |name, rows| -> Vec<BufferId> {
        b.ranks()
            .map(|rank| b.scratch(name, tensor, rank, rows, cols, 1))
            .collect()
    };
    // Step by step n/2, n/4, … shares land, one after another: n − 1 in all.
    let landing = scratch("landing", all - bare.rows);
    let sums = scratch("sum", all);
    let mut at = 0;
    let mut summed: Vec<Option<TaskId>> = vec![None; n];
    let mut size = n / 2;
    while size > 0 {
        let rows = size as u32 * bare.rows;
        let block = |r: usize| (r & !(size - 1)) as u32 * bare.rows;
        let mut landed = vec![TaskId(0); n];
        for r in 0..n {
            let partner = r ^ size;
            let source = if summed[r].is_some() { &sums } else { &bare.x };
            let from = b.rows(source[r], 0, block(partner), rows);
            let to = b.rows(landing[partner], 0, at, rows);
            let dep = summed[r].map(|task| Dep {
                task,
                via: Via::Event,
            });
            let rank = Rank(r as u16);
            landed[partner] = b.transfer(rank, COMM, from, to, mover, dep.as_slice());
        }
        for r in 0..n {
            let source = if summed[r].is_some() { &sums } else { &bare.x };
            let inputs = vec![
                b.rows(source[r], 0, block(r), rows),
                b.rows(landing[r], 0, at, rows),
            ];
            let out = match size {
                1 => b.whole(bare.y[r]),
                _ => b.rows(sums[r], 0, block(r), rows),
            };
            let after = [(landed[r], Via::StreamFlag).into()];
            let sum = Compute::Reduce { inputs, out };
            summed[r] = Some(b.compute(Rank(r as u16), COMPUTE, None, sum, &after));
        }
        at += rows;
        size /= 2;
    }
}

/// One of the two trees with its half of the rows.
struct Half<'a> {
    bare: &'a Bare,
    mover: Mover,
    /// Parent of each rank; `None`: the root.
    parent: Vec<Option<usize>>,
    children: Vec<Vec<usize>>,
    /// Ranks, children before parents.
    upwards: Vec<usize>,
    rows: (u32, u32),
    chunks: u32,
    /// Lanes of the tree: up, and down to each child.
    lane: u16,
    landing: Vec<Option<BufferId>>,
    sums: Vec<Option<BufferId>>,
}

impl<'a> Half<'a> {
    fn new(
        b: &mut Builder,
        bare: &'a Bare,
        mover: Mover,
        tree: u32,
        rows: (u32, u32),
        chunks: u32,
    ) -> Self {
        let n = b.ranks().len();
        // Node v = 1 … n sits at the height of its lowest set bit; the second tree is the first
        // moved on by one rank.
        let rank = |v: usize| (v - 1 + tree as usize) % n;
        let mut parent = vec![None; n];
        let mut children = vec![Vec::new(); n];
        let mut nodes: Vec<usize> = (1..=n).collect();
        nodes.sort_by_key(|v| (v.trailing_zeros(), *v));
        for &v in &nodes {
            if let Some(up) = parent_of(v, n) {
                parent[rank(v)] = Some(rank(up));
                children[rank(up)].push(rank(v));
            }
        }
        let lane = COMM.0 + 3 * tree as u16;
        for (i, name) in ["up", "down", "down too"].into_iter().enumerate() {
            b.name_lane(Lane(lane + i as u16), &format!("tree {} {name}", tree + 1));
        }
        let (mut landing, mut sums) = (vec![None; n], vec![None; n]);
        for r in 0..n {
            let (id, slots) = (Rank(r as u16), children[r].len() as u16);
            if slots > 0 {
                let (tensor, cols) = (bare.tensor, bare.cols);
                landing[r] = Some(b.scratch("landing", tensor, id, rows.1, cols, slots));
                if parent[r].is_some() {
                    sums[r] = Some(b.scratch("tree_sum", tensor, id, rows.1, cols, 1));
                }
            }
        }
        Self {
            bare,
            mover,
            upwards: nodes.into_iter().map(rank).collect(),
            parent,
            children,
            rows,
            chunks,
            lane,
            landing,
            sums,
        }
    }

    fn run(&self, b: &mut Builder) {
        let n = self.parent.len();
        let roots: Vec<Option<TaskId>> = (0..self.chunks).map(|c| self.up(b, c)).collect();
        for (chunk, root) in roots.into_iter().enumerate() {
            let (start, len) = split(self.rows.1, chunk as u32, self.chunks);
            let row = self.rows.0 + start;
            let mut have: Vec<Option<Dep>> = vec![None; n];
            for &r in self.upwards.iter().rev() {
                if self.parent[r].is_none() {
                    have[r] = root.map(|task| (task, Via::Event).into());
                }
                for (i, &child) in self.children[r].iter().enumerate() {
                    let from = b.rows(self.bare.y[r], 0, row, len);
                    let to = b.rows(self.bare.y[child], 0, row, len);
                    let lane = Lane(self.lane + 1 + i as u16);
                    let rank = Rank(r as u16);
                    let task = b.transfer(rank, lane, from, to, self.mover, have[r].as_slice());
                    let via = opens(self.mover);
                    have[child] = Some(Dep { task, via });
                }
            }
        }
    }

    /// Sums one chunk towards the root; returns the root's sum.
    fn up(&self, b: &mut Builder, chunk: u32) -> Option<TaskId> {
        let (start, len) = split(self.rows.1, chunk, self.chunks);
        let row = self.rows.0 + start;
        let mut arrived: Vec<Vec<Dep>> = vec![Vec::new(); self.parent.len()];
        let mut root = None;
        for &r in &self.upwards {
            let rank = Rank(r as u16);
            let mut partial = b.rows(self.bare.x[r], 0, row, len);
            let mut summed = None;
            if let Some(landing) = self.landing[r] {
                let mut inputs = vec![partial];
                let slots = 0..self.children[r].len() as u16;
                inputs.extend(slots.map(|slot| b.rows(landing, slot, start, len)));
                partial = match self.sums[r] {
                    Some(sums) => b.rows(sums, 0, start, len),
                    None => b.rows(self.bare.y[r], 0, row, len),
                };
                let sum = Compute::Reduce {
                    inputs,
                    out: partial,
                };
                summed = Some(b.compute(rank, COMPUTE, None, sum, &arrived[r]));
            }
            let Some(up) = self.parent[r] else {
                root = summed;
                continue;
            };
            let Some(landing) = self.landing[up] else {
                continue;
            };
            let slot = self.children[up].iter().position(|&child| child == r);
            let to = b.rows(landing, slot.unwrap_or(0) as u16, start, len);
            let dep = summed.map(|task| Dep {
                task,
                via: Via::Event,
            });
            let lane = Lane(self.lane);
            let task = b.transfer(rank, lane, partial, to, self.mover, dep.as_slice());
            arrived[up].push((task, Via::StreamFlag).into());
        }
        root
    }
}

/// The parent of node `v` of the in-order binary tree over 1 … n: the next height's node on the side
/// where it exists.
fn parent_of(v: usize, n: usize) -> Option<usize> {
    let bit = v & v.wrapping_neg();
    let above = (v ^ bit) | (bit << 1);
    match above <= n {
        true => Some(above),
        false => Some(v ^ bit).filter(|up| *up > 0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn trees_are_binary_connected_and_low() {
        for n in 2usize..200 {
            let mut children = vec![0; n + 1];
            let mut roots = 0;
            for v in 1..=n {
                match parent_of(v, n) {
                    Some(up) => {
                        assert!(up.trailing_zeros() > v.trailing_zeros());
                        children[up] += 1;
                    }
                    None => roots += 1,
                }
            }
            // Odd nodes are leaves, so two trees one rank apart share no inner rank (n even).
            assert!((1..=n).step_by(2).all(|v| children[v] == 0));
            assert_eq!(roots, 1, "{n}");
            assert!(children.iter().all(|c| *c <= 2), "{n}");
        }
    }
}
