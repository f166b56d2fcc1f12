//! Every rank with every other at once: gather and scatter without forwarding.
//!
//! A lane belongs to one peer, so that only copy engines and links limit how many transfers run at
//! a time. Offset i (1 to n − 1) is how many ranks after the receiver (gather) or the sender
//! (scatter) the other one is: every rank begins with a different peer.

use super::hand_over;
use super::layout::{each_of, slab as slab_of, split};
use crate::schedule::{
    BufferId, Builder, Compute, Dep, Lane, Mover, Rank, Slice, TaskId, TensorId,
};

/// How shards are exchanged.
#[derive(Copy, Clone, Debug)]
pub(super) struct Exchange {
    pub ranks: usize,
    /// First of the exchanged rows in every buffer.
    pub base: u32,
    /// Rows of a shard; rank r's begin at `base + r · shard`.
    pub shard: u32,
    /// Pieces of a shard, along its rows.
    pub chunks: u32,
    /// Pieces of a chunk, along its columns; a gather's alone.
    pub slabs: u32,
    pub mover: Mover,
    /// Whether the sender issues the copies, or the receiver.
    pub push: bool,
    /// The lane of offset 1; the others follow.
    pub lane: Lane,
}

/// Ids of transfers by offset, rank and piece: slab by slab of chunk by chunk.
#[derive(Copy, Clone, Debug)]
pub(super) struct Ids {
    exchange: Exchange,
    base: u32,
}

impl Ids {
    /// Gather: `rank` receives. Scatter: `rank` sends.
    pub(super) fn at(&self, offset: usize, rank: Rank, piece: u32) -> TaskId {
        let Exchange { ranks, .. } = self.exchange;
        let pieces = self.exchange.pieces() as usize;
        let index = ((offset - 1) * ranks + usize::from(rank.0)) * pieces;
        TaskId(self.base + index as u32 + piece)
    }
}

impl Exchange {
    /// The first row of a rank's shard.
    pub(super) fn row(&self, owner: Rank) -> u32 {
        self.base + u32::from(owner.0) * self.shard
    }

    fn lane(&self, offset: usize) -> Lane {
        Lane(self.lane.0 + offset as u16 - 1)
    }

    /// The rank `by` after `rank`.
    pub(super) fn after(&self, rank: Rank, by: usize) -> Rank {
        Rank(((usize::from(rank.0) + by) % self.ranks) as u16)
    }

    /// The rank `by` before `rank`.
    pub(super) fn before(&self, rank: Rank, by: usize) -> Rank {
        self.after(rank, self.ranks - by)
    }

    /// Chunk `chunk` of a shard: (first row, rows).
    pub(super) fn chunk(&self, chunk: u32) -> (u32, u32) {
        split(self.shard, chunk, self.chunks)
    }

    /// Columns of slab `slab` of rows of `cols`: (first column, columns).
    pub(super) fn slab(&self, cols: u32, slab: u32) -> (u32, u32) {
        slab_of(cols, slab, self.slabs)
    }

    /// Transfers for each pair.
    const fn pieces(&self) -> u32 {
        self.chunks * self.slabs
    }

    /// Who issues a copy.
    pub(super) fn issuer(&self, from: Rank, to: Rank) -> Rank {
        if self.push { from } else { to }
    }

    /// How `reader` learns that a chunk has landed, other than inside a running kernel.
    fn landed(&self, from: Rank, reader: Rank) -> crate::schedule::Via {
        hand_over(self.issuer(from, reader), reader)
    }

    /// The wait of a kernel of `reader` for the only chunk from the rank `offset` after it.
    pub(super) fn arrival(&self, ids: &Ids, offset: usize, reader: Rank) -> Dep {
        Dep {
            task: ids.at(offset, reader, 0),
            via: self.landed(self.after(reader, offset), reader),
        }
    }

    /// All offsets, ranks and pieces in the order of their tasks.
    fn each(&self) -> impl Iterator<Item = (usize, Rank, u32)> + use<> {
        let (ranks, pieces) = (self.ranks, self.pieces());
        (1..ranks).flat_map(move |offset| {
            (0..ranks).flat_map(move |rank| {
                (0..pieces).map(move |piece| (offset, Rank(rank as u16), piece))
            })
        })
    }

    fn ids(&self, b: &Builder) -> Ids {
        Ids {
            exchange: *self,
            base: b.next_task().0,
        }
    }

    /// Copies every shard (rows by rank number) to every other rank. A chunk waits for
    /// `ready(owner, chunk)`.
    pub(super) fn gather(
        &self,
        b: &mut Builder,
        buffers: &[BufferId],
        ready: impl Fn(Rank, u32) -> Option<TaskId>,
    ) -> Ids {
        let ids = self.ids(b);
        let mover = each_of(self.mover, self.ranks - 1);
        for (offset, to, piece) in self.each() {
            let owner = self.after(to, offset);
            let chunk = piece / self.slabs;
            let (row, rows) = self.chunk(chunk);
            let row = self.row(owner) + row;
            let [source, target] = [owner, to].map(|rank| {
                let whole = b.rows(buffers[usize::from(rank.0)], 0, row, rows);
                let (start, cols) = self.slab(whole.cols.len, piece % self.slabs);
                whole.cols(start, cols)
            });
            let issuer = self.issuer(owner, to);
            let dep = ready(owner, chunk).map(|task| Dep {
                task,
                via: hand_over(owner, issuer),
            });
            let lane = self.lane(offset);
            b.transfer(issuer, lane, source, target, mover, dep.as_slice());
        }
        ids
    }

    /// Copies the part of every rank's `x` that belongs to another to where `to(owner, offset)` of
    /// that rank's landing place begins. A chunk waits for `ready(sender, offset, chunk)`.
    pub(super) fn scatter(
        &self,
        b: &mut Builder,
        x: &[BufferId],
        to: impl Fn(&Builder, Rank, usize) -> Slice,
        ready: impl Fn(Rank, usize, u32) -> Option<Dep>,
    ) -> Ids {
        let ids = self.ids(b);
        let mover = each_of(self.mover, self.ranks - 1);
        for (offset, from, chunk) in self.each() {
            let owner = self.after(from, offset);
            let (row, rows) = self.chunk(chunk);
            let first = self.row(owner) + row;
            let source = b.rows(x[usize::from(from.0)], 0, first, rows);
            let target = to(b, owner, offset).rows(row, rows);
            let dep = ready(from, offset, chunk);
            let issuer = self.issuer(from, owner);
            let lane = self.lane(offset);
            b.transfer(issuer, lane, source, target, mover, dep.as_slice());
        }
        ids
    }

    /// Scatters into `slot(owner, offset)` and then sums, in `lane`, what landed and the own part
    /// of `x` into `home(rank)`; the own part waits for `own(rank)`. Returns the reductions by rank.
    #[allow(clippy::too_many_arguments, reason = "five places and two waits")]
    pub(super) fn reduce_scatter(
        &self,
        b: &mut Builder,
        lane: Lane,
        x: &[BufferId],
        slot: impl Fn(&Builder, Rank, usize) -> Slice,
        home: impl Fn(&Builder, Rank) -> Slice,
        ready: impl Fn(Rank, usize, u32) -> Option<Dep>,
        own: impl Fn(Rank) -> Option<Dep>,
    ) -> Vec<TaskId> {
        let ids = self.scatter(b, x, &slot, ready);
        let mut after = Vec::new();
        let mut tasks = Vec::with_capacity(self.ranks);
        for rank in b.ranks() {
            after.clear();
            after.extend(own(rank));
            let mut inputs = Vec::with_capacity(self.ranks);
            inputs.push(b.rows(x[usize::from(rank.0)], 0, self.row(rank), self.shard));
            for offset in 1..self.ranks {
                let from = self.before(rank, offset);
                inputs.push(slot(b, rank, offset));
                let via = self.landed(from, rank);
                after.extend((0..self.chunks).map(|chunk| Dep {
                    task: ids.at(offset, from, chunk),
                    via,
                }));
            }
            let out = home(b, rank);
            tasks.push(b.compute(rank, lane, None, Compute::Reduce { inputs, out }, &after));
        }
        tasks
    }
}

/// The rows `[row, row + rows)` of the landing slot of the rank `offset` before `owner`.
pub(super) fn slot_rows(
    b: &Builder,
    landing: &[BufferId],
    owner: Rank,
    offset: usize,
    (row, rows): (u32, u32),
) -> Slice {
    b.rows(landing[usize::from(owner.0)], offset as u16 - 1, row, rows)
}

/// A landing slot of `rows` rows for every other rank, on every rank.
pub(super) fn landing(b: &mut Builder, tensor: TensorId, rows: u32, cols: u32) -> Vec<BufferId> {
    let slots = (b.ranks().len() - 1) as u16;
    b.ranks()
        .map(|rank| b.scratch("landing", tensor, rank, rows, cols, slots))
        .collect()
}
