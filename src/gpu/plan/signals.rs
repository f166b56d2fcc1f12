//! Waits as events and flags: one record for all who await a step by events, one flag word for
//! all who await it on one GPU.

use rustc_hash::{FxHashMap, FxHashSet};

use super::emit::{Emitter, Signal, Work};
use super::{EventId, Flag, FlagId, Fork, Gpu, Step, Stream, StreamId, What};

/// The steps of a plan and what they signal with.
pub(super) struct Signals {
    pub steps: Vec<Step>,
    pub events: Vec<Gpu>,
    pub flags: Vec<Flag>,
    pub fork: Fork,
    pub join: Vec<(StreamId, EventId)>,
}

struct Raised<'a> {
    streams: &'a [Stream],
    events: Vec<Gpu>,
    flags: Vec<Flag>,
    event_of: FxHashMap<usize, EventId>,
    flag_of: FxHashMap<(usize, Gpu), FlagId>,
}

impl Raised<'_> {
    fn gpu(&self, stream: StreamId) -> Gpu {
        self.streams[stream.index()].gpu
    }

    fn event(&mut self, stream: StreamId) -> EventId {
        self.events.push(self.gpu(stream));
        EventId(self.events.len() as u32 - 1)
    }

    /// The flag by which `reader` learns of the end of a step.
    fn flag(&mut self, works: &[Work], step: usize, reader: StreamId) -> FlagId {
        let gpu = self.gpu(reader);
        let id = *self.flag_of.entry((step, gpu)).or_insert_with(|| {
            self.flags.push(Flag {
                gpu,
                writer: works[step].stream,
                task: works[step].task,
                readers: Vec::new(),
            });
            FlagId(self.flags.len() as u32 - 1)
        });
        let readers = &mut self.flags[id.index()].readers;
        if !readers.contains(&reader) {
            readers.push(reader);
        }
        id
    }

    /// The steps by which `work` awaits what it waits for.
    fn awaits(&mut self, works: &[Work], work: &Work, (flag, event): (bool, bool)) -> Vec<What> {
        let mut steps = Vec::new();
        for need in &work.waits {
            let writer = &works[need.step];
            let asked = need.signal != Signal::Event;
            if asked && flag {
                steps.push(What::AwaitFlag(self.flag(works, need.step, work.stream)));
            }
            if !asked || event {
                let id = match self.event_of.get(&need.step) {
                    Some(&id) => id,
                    None => {
                        let id = self.event(writer.stream);
                        self.event_of.insert(need.step, id);
                        id
                    }
                };
                steps.push(What::Await(id));
            }
        }
        steps
    }
}

/// Turns the waits of all work into steps; `kinds`: what stands for a flag, flag and event.
pub(super) fn signals(
    mut emitter: Emitter,
    streams: &[Stream],
    origin: StreamId,
    kinds: (bool, bool),
) -> Signals {
    let mut works = std::mem::take(&mut emitter.works);
    let mut raised = Raised {
        streams,
        events: Vec::new(),
        flags: Vec::new(),
        event_of: FxHashMap::default(),
        flag_of: FxHashMap::default(),
    };
    let begin = raised.event(origin);
    let mut awaits = Vec::with_capacity(works.len());
    for work in &works {
        let steps = raised.awaits(&works, work, kinds);
        awaits.push(steps);
    }
    let mut inside: FxHashSet<FlagId> = FxHashSet::default();
    for w in 0..works.len() {
        for group in 0..works[w].gates.len() {
            let gates = std::mem::take(&mut works[w].gates[group]);
            let reader = works[w].stream;
            let ids = gates
                .into_iter()
                .map(|step| raised.flag(&works, step, reader));
            let ids: Vec<FlagId> = ids.collect();
            inside.extend(ids.iter().copied());
            if let Some(What::Gated { groups, .. }) = &mut works[w].what {
                groups[group].flags = ids;
            }
        }
    }
    for work in &mut works {
        let loads = std::mem::take(&mut work.loads);
        let Some(What::Gated {
            groups,
            loads: brought,
            ..
        }) = &mut work.what
        else {
            continue;
        };
        for load in brought.iter_mut() {
            load.sets = FlagId(raised.flags.len() as u32);
            raised.flags.push(Flag {
                gpu: load.to.gpu,
                writer: work.stream,
                task: load.task,
                readers: vec![work.stream],
            });
        }
        for (group, awaited) in groups.iter_mut().zip(loads) {
            let flags = awaited.iter().map(|&load| brought[load].sets);
            group.flags.extend(flags);
        }
    }
    let mut flags_of: FxHashMap<usize, Vec<FlagId>> = FxHashMap::default();
    for (&(step, _), &id) in &raised.flag_of {
        flags_of.entry(step).or_default().push(id);
    }
    for flags in flags_of.values_mut() {
        flags.sort_unstable();
    }
    // A kernel that copies writes the flag that another waits for inside, and a product one for each group;
    // others are written after it.
    for (w, work) in works.iter_mut().enumerate() {
        let (Some(What::CopyKernel { sets, .. }), Some(flags)) =
            (&mut work.what, flags_of.get_mut(&w))
        else {
            continue;
        };
        let place = flags.iter().position(|flag| inside.contains(flag));
        *sets = place.map(|place| flags.remove(place));
    }
    for w in 0..works.len() {
        let Some((kernel, group)) = works[w].reached else {
            continue;
        };
        let flags = flags_of.get_mut(&w).filter(|flags| !flags.is_empty());
        let Some(What::Gated { groups, .. }) = &mut works[kernel].what else {
            continue;
        };
        groups[group].sets = flags.map(|flags| flags.remove(0));
    }
    let mut first: Vec<Option<usize>> = vec![None; streams.len()];
    let mut last: Vec<Option<usize>> = vec![None; streams.len()];
    for (w, work) in works.iter().enumerate() {
        first[work.stream.index()].get_or_insert(w);
        last[work.stream.index()] = Some(w);
    }
    let ids = |streams: &[Stream]| (0..streams.len() as u32).map(StreamId);
    let fork = ids(streams)
        .filter(|&s| s != origin && first[s.index()].is_some_and(|w| awaits[w].is_empty()))
        .collect();
    // The latest first, as what ends late implies what ended before.
    let mut tails: Vec<(usize, StreamId)> = ids(streams)
        .filter_map(|s| Some((last[s.index()]?, s)))
        .collect();
    tails.sort_unstable_by(|a, b| b.cmp(a));
    let mut join = Vec::new();
    for (tail, stream) in tails {
        if stream != origin && !emitter.clocks.knows(origin.0, tail) {
            emitter.clocks.wait(origin.0, tail);
            join.push((stream, raised.event(stream)));
        }
    }
    let mut steps = Vec::with_capacity(2 * works.len());
    let call = |w: usize| match works.get(w)?.what {
        Some(What::Collective { call, .. }) => Some(call),
        _ => None,
    };
    let mut next = 0;
    while next < works.len() {
        // The members of a call are submitted as one group, with nothing in between.
        let mut end = next + 1;
        while call(next).is_some() && call(end) == call(next) {
            end += 1;
        }
        let push = |steps: &mut Vec<Step>, w: usize, what: What| {
            steps.push(Step {
                stream: works[w].stream,
                task: works[w].task,
                what,
            });
        };
        let group = next..end;
        for w in group.clone() {
            for what in std::mem::take(&mut awaits[w]) {
                push(&mut steps, w, what);
            }
        }
        for (w, work) in group.clone().zip(&works[group.clone()]) {
            if let Some(what) = &work.what {
                push(&mut steps, w, what.clone());
            }
        }
        for w in group {
            if let Some(&id) = raised.event_of.get(&w) {
                push(&mut steps, w, What::Record(id));
            }
            for id in flags_of.remove(&w).unwrap_or_default() {
                push(&mut steps, w, What::WriteFlag(id));
            }
        }
        next = end;
    }
    Signals {
        steps,
        events: raised.events,
        flags: raised.flags,
        fork: Fork {
            event: begin,
            streams: fork,
        },
        join,
    }
}
