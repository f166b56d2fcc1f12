//! Lanes as streams.
//!
//! The compute lanes (lane 0) of the ranks of one GPU are one stream; every other lane of every
//! rank is a stream of its own, and a transfer through the host takes one more at its far end
//! (two, if another part of it goes straight), and beside Duet's own products one that says when it is there, as
//! writing a flag between two copies would hold the second up, unless a GPU would need too many. A GPU serves a limited number of streams
//! independently; where virtual ranks need more, lanes **share**: equally numbered lanes of one
//! GPU's ranks are one stream, and so is all that leaves one GPU for the host beside its lanes, or
//! enters it (one link carries that anyway).
//! Sharing adds order and cannot deadlock, since streams follow issue order.

use rustc_hash::FxHashMap;

use super::error::LowerError;
use super::{Gpu, Stream, StreamId};
use crate::schedule::lowered::MOST_STREAMS;
use crate::schedule::{Lane, Mover, Rank, Schedule, Work};

/// Which end of the host path.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum End {
    Out,
    In,
    /// Where what has entered is told.
    Told,
}

#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
enum Key {
    Compute(Gpu),
    Lane(Rank, Lane),
    Shared(Gpu, Lane),
    Host(End, Gpu, Rank, Lane),
    SharedHost(End, Gpu),
}

/// The streams in use.
pub(super) struct Streams<'a> {
    schedule: &'a Schedule,
    share: bool,
    pub list: Vec<Stream>,
    keys: FxHashMap<Key, StreamId>,
}

impl<'a> Streams<'a> {
    pub(super) fn new(schedule: &'a Schedule, share: bool) -> Self {
        Self {
            schedule,
            share,
            list: Vec::new(),
            keys: FxHashMap::default(),
        }
    }

    /// The stream of a lane of `rank`, which is on `gpu`.
    pub(super) fn lane(&mut self, gpu: Gpu, rank: Rank, lane: Lane) -> StreamId {
        let key = match (lane, self.share) {
            (Lane(0), _) => Key::Compute(gpu),
            (_, true) => Key::Shared(gpu, lane),
            (_, false) => Key::Lane(rank, lane),
        };
        self.get(key, gpu)
    }

    /// The stream of `gpu` for one end of transfers through the host in a lane of `rank`.
    pub(super) fn host(&mut self, end: End, gpu: Gpu, (rank, lane): (Rank, Lane)) -> StreamId {
        let key = match self.share {
            true => Key::SharedHost(end, gpu),
            false => Key::Host(end, gpu, rank, lane),
        };
        self.get(key, gpu)
    }

    fn get(&mut self, key: Key, gpu: Gpu) -> StreamId {
        if let Some(&id) = self.keys.get(&key) {
            return id;
        }
        let id = StreamId(self.list.len() as u32);
        self.list.push(Stream {
            gpu,
            name: self.name(key),
            urgent: !matches!(key, Key::Compute(_)),
        });
        self.keys.insert(key, id);
        id
    }

    fn name(&self, key: Key) -> String {
        let named = |lane: Lane| {
            let mut names = self.schedule.lanes.iter();
            match names.find(|(l, _)| *l == lane) {
                Some((_, name)) => name.clone(),
                None => format!("lane {}", lane.0),
            }
        };
        let end = |end| match end {
            End::Out => "to host",
            End::In => "from host",
            End::Told => "has come",
        };
        match key {
            Key::Compute(_) => named(Lane(0)),
            Key::Lane(rank, lane) => format!("rank {} {}", rank.0, named(lane)),
            Key::Shared(_, lane) => format!("all ranks {}", named(lane)),
            Key::Host(e, _, rank, lane) => format!("rank {} {} {}", rank.0, named(lane), end(e)),
            Key::SharedHost(e, _) => format!("all ranks {}", end(e)),
        }
    }
}

/// Refuses schedules with more lanes on a GPU than it serves streams, however these are shared, before anything is
/// done with them.
pub(super) fn few_lanes(schedule: &Schedule) -> Result<(), LowerError> {
    let mut lanes: Vec<(u32, Lane)> = (schedule.tasks.iter())
        .filter(|task| {
            // Products perform these.
            let mover = match task.work {
                Work::Transfer { mover, .. } => Some(mover),
                _ => None,
            };
            !matches!(mover, Some(Mover::Epilogue | Mover::Loader))
        })
        .map(|task| (schedule.placement[usize::from(task.rank.0)], task.lane))
        .collect();
    lanes.sort_unstable();
    lanes.dedup();
    let most = lanes
        .chunk_by(|(a, _), (b, _)| a == b)
        .max_by_key(|lanes| lanes.len());
    match most {
        Some(&[(gpu, _), ..]) if most.is_some_and(|lanes| lanes.len() > MOST_STREAMS) => {
            Err(LowerError::TooManyStreams {
                gpu,
                streams: most.map_or(0, <[_]>::len),
            })
        }
        _ => Ok(()),
    }
}
