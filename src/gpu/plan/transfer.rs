//! Transfers as copies: straight, through the host, or both.

use rustc_hash::FxHashMap;

use super::emit::{Emitter, Need};
use super::options::Path;
use super::streams::{End, Streams};
use super::{Area, Gpu, Slot, Staging, StagingId, StreamId, What};
use crate::schedule::{Lane, Mover, Rank, TaskId};

/// Slots of a ring of staging memory: one is filled and one emptied, the others even out. Rings
/// stay small because the host path slows down once its footprint leaves the processor's cache.
const SLOTS: u32 = 4;

/// One ring, for each pair of streams that uses one.
struct Ring {
    id: StagingId,
    next: u32,
    /// By slot: the step that emptied it last.
    emptied: [Option<usize>; SLOTS as usize],
}

/// The staging memory in use.
#[derive(Default)]
pub(super) struct Rings {
    pub list: Vec<Staging>,
    rings: FxHashMap<(StreamId, StreamId), Ring>,
}

impl Rings {
    /// The next slot for a chunk of `bytes`, and the step that must have emptied it.
    fn next(
        &mut self,
        streams: (StreamId, StreamId),
        gpus: (Gpu, Gpu),
        bytes: u64,
    ) -> (Slot, Option<usize>) {
        let ring = self.rings.entry(streams).or_insert_with(|| {
            self.list.push(Staging {
                slots: SLOTS,
                bytes: 0,
                from: gpus.0,
                to: gpus.1,
            });
            Ring {
                id: StagingId(self.list.len() as u32 - 1),
                next: 0,
                emptied: [None; SLOTS as usize],
            }
        });
        let slot = ring.next;
        ring.next = (slot + 1) % SLOTS;
        let staging = &mut self.list[ring.id.index()];
        staging.bytes = staging.bytes.max(bytes);
        let at = Slot {
            staging: ring.id,
            slot,
        };
        (at, ring.emptied[slot as usize])
    }

    fn emptied(&mut self, streams: (StreamId, StreamId), slot: Slot, step: usize) {
        if let Some(ring) = self.rings.get_mut(&streams) {
            ring.emptied[slot.slot as usize] = Some(step);
        }
    }
}

/// A transfer in a lane of `rank`, which is on `gpu`.
pub(super) struct Transfer<'a> {
    pub task: TaskId,
    pub lane: (Rank, Lane),
    pub gpu: Gpu,
    pub from: Area,
    pub to: Area,
    pub mover: Mover,
    pub needs: &'a [Need],
    /// Whether a stream of its own tells of what has come through the host.
    pub told: bool,
    /// Bytes of an element.
    pub element: u64,
}

/// The rows `[first, first + rows)` of an area.
fn part(area: &Area, first: u32, rows: u32, element: u64) -> Area {
    Area {
        at: area.at + u64::from(first) * u64::from(area.ld) * element,
        rows,
        ..*area
    }
}

impl Transfer<'_> {
    /// Appends the steps; returns those with which it ends. `None`: a product must perform it, which none does.
    pub(super) fn emit(
        &self,
        out: &mut Emitter,
        streams: &mut Streams<'_>,
        rings: &mut Rings,
        path: Path,
    ) -> Option<Vec<usize>> {
        let blocks = match self.mover {
            Mover::CopyEngine => None,
            Mover::Sm { blocks } => Some(blocks),
            Mover::Epilogue | Mover::Loader => return None,
        };
        let rows = self.from.rows;
        let (host_rows, chunk) = match path {
            _ if self.from.gpu == self.to.gpu => (0, 0),
            Path::P2p => (0, 0),
            Path::Host { chunk } => (rows, chunk),
            Path::Hybrid { host_share, chunk } => {
                ((f64::from(rows) * host_share).round() as u32, chunk)
            }
        };
        let straight = rows - host_rows.min(rows);
        let mut ends = Vec::new();
        if straight > 0 || rows == 0 {
            let stream = streams.lane(self.gpu, self.lane.0, self.lane.1);
            let from = part(&self.from, 0, straight, self.element);
            let to = part(&self.to, 0, straight, self.element);
            let what = match blocks {
                None => What::Copy { from, to },
                Some(blocks) => What::CopyKernel {
                    from,
                    to,
                    blocks,
                    sets: None,
                },
            };
            ends.push(out.step(stream, self.task, what, self.needs));
        }
        if straight < rows {
            // The lane's own stream serves the end on its GPU unless the straight part is in it.
            let (g, lane) = (self.gpu, self.lane);
            let mut stream = |end, here: Gpu| match straight == 0 && here == g {
                true if end != End::Told => streams.lane(g, lane.0, lane.1),
                _ => streams.host(end, here, lane),
            };
            let leave = stream(End::Out, self.from.gpu);
            let enter = stream(End::In, self.to.gpu);
            let told = self.told.then(|| stream(End::Told, self.to.gpu));
            let entered = self.through_host(out, rings, (leave, enter), straight, chunk);
            ends.extend(entered.map(|step| match told {
                Some(told) => out.tell(told, self.task, step),
                None => step,
            }));
        }
        Some(ends)
    }

    /// The rows from `first` on, chunk by chunk; returns the last step.
    fn through_host(
        &self,
        out: &mut Emitter,
        rings: &mut Rings,
        streams: (StreamId, StreamId),
        first: u32,
        chunk: u64,
    ) -> Option<usize> {
        let row = (u64::from(self.from.cols) * self.element).max(1);
        let each = u32::try_from(chunk / row).unwrap_or(u32::MAX).max(1);
        let mut last = None;
        let mut at = first;
        while at < self.from.rows {
            let rows = each.min(self.from.rows - at);
            let gpus = (self.from.gpu, self.to.gpu);
            let (slot, emptied) = rings.next(streams, gpus, u64::from(rows) * row);
            let from = part(&self.from, at, rows, self.element);
            let to = part(&self.to, at, rows, self.element);
            let mut needs: Vec<Need> = emptied.map(Need::event).into_iter().collect();
            if last.is_none() {
                needs.extend_from_slice(self.needs);
            }
            let what = What::ToHost { from, to: slot };
            let filled = out.step(streams.0, self.task, what, &needs);
            let what = What::FromHost { from: slot, to };
            let entered = out.step(streams.1, self.task, what, &[Need::event(filled)]);
            rings.emptied(streams, slot, entered);
            last = Some(entered);
            at += rows;
        }
        last
    }
}
