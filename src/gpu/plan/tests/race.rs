//! Whether any two steps that touch the same memory, one of them writing, are in no order. Works
//! on the finished list of steps and shares nothing with the lowering.

use rustc_hash::FxHashMap;

use super::machine::{Memory, touches};
use crate::gpu::plan::{Plan, StreamId, What};

/// A set of steps.
#[derive(Clone, Debug)]
struct Set(Vec<u64>);

impl Set {
    fn new(count: usize) -> Self {
        Self(vec![0; count.div_ceil(64)])
    }

    fn insert(&mut self, i: usize) {
        self.0[i / 64] |= 1 << (i % 64);
    }

    fn has(&self, i: usize) -> bool {
        self.0[i / 64] >> (i % 64) & 1 == 1
    }

    fn add(&mut self, other: &Self) {
        for (a, b) in self.0.iter_mut().zip(&other.0) {
            *a |= b;
        }
    }
}

/// A rectangle of one slot of one buffer (or of staging), for comparison.
#[derive(Copy, Clone, Debug)]
struct Rect {
    rows: (u64, u64),
    cols: (u64, u64),
}

fn locate(plan: &Plan, memory: &Memory) -> (u64, Rect) {
    match *memory {
        Memory::Slot(slot, ..) => {
            let id = u64::from(slot.staging.0) << 32 | u64::from(slot.slot);
            let all = (0, u64::MAX);
            (
                1 << 63 | id,
                Rect {
                    rows: all,
                    cols: all,
                },
            )
        }
        Memory::Area(area) => {
            let of = |p: &crate::gpu::plan::Place| {
                p.area.gpu == area.gpu
                    && (p.area.at..p.area.at + p.stride * u64::from(p.slots)).contains(&area.at)
            };
            let b = plan
                .places
                .iter()
                .position(of)
                .expect("an area of a buffer");
            let place = &plan.places[b];
            let slot = (area.at - place.area.at) / place.stride;
            let elements = (area.at - place.area.at) % place.stride / plan.dtype.size();
            let ld = u64::from(place.area.ld);
            let (row, col) = (elements / ld, elements % ld);
            let rect = Rect {
                rows: (row, row + u64::from(area.rows)),
                cols: (col, col + u64::from(area.cols)),
            };
            ((b as u64) << 16 | slot, rect)
        }
    }
}

/// Whether a step does more than to signal.
pub(super) fn works(what: &What) -> bool {
    !matches!(
        what,
        What::Record(_) | What::Await(_) | What::WriteFlag(_) | What::AwaitFlag(_)
    )
}

/// What happens before what.
pub(super) struct Order {
    /// By step: what has ended before it begins.
    before: Vec<Set>,
    /// By stream: what has ended when its last step has.
    last: FxHashMap<StreamId, Set>,
}

impl Order {
    pub(super) fn new(plan: &Plan) -> Self {
        let count = plan.steps.len();
        let mut last: FxHashMap<StreamId, Set> = FxHashMap::default();
        let mut records: FxHashMap<u32, Set> = FxHashMap::default();
        let mut flags: FxHashMap<u32, Set> = FxHashMap::default();
        let mut before: Vec<Set> = Vec::with_capacity(count);
        let mut i = 0;
        while i < count {
            let mut upto = i + 1;
            let none = || Set::new(count);
            let mut now = last
                .get(&plan.steps[i].stream)
                .cloned()
                .unwrap_or_else(none);
            match plan.steps[i].what {
                What::Record(event) => {
                    records.insert(event.0, now.clone());
                }
                What::Await(event) => now.add(records.get(&event.0).unwrap_or(&none())),
                What::WriteFlag(flag) => {
                    flags.insert(flag.0, now.clone());
                }
                What::AwaitFlag(flag) => now.add(flags.get(&flag.0).unwrap_or(&none())),
                What::Collective { call, .. } => {
                    upto = i + plan.collectives[call.index()].members.len();
                    for step in &plan.steps[i..upto] {
                        if let Some(other) = last.get(&step.stream) {
                            now.add(other);
                        }
                    }
                }
                _ => {}
            }
            for at in i..upto {
                before.push(now.clone());
                let mut ended = now.clone();
                ended.insert(at);
                last.insert(plan.steps[at].stream, ended);
            }
            i = upto;
        }
        Self { before, last }
    }

    /// Whether step `first` has ended when step `second` begins.
    pub(super) fn ordered(&self, first: usize, second: usize) -> bool {
        self.before[second].has(first)
    }
}

/// Races as pairs of steps: at most the first few.
pub(super) fn races(plan: &Plan) -> Vec<(usize, usize)> {
    let Order { before, .. } = Order::new(plan);
    let mut touched: FxHashMap<u64, Vec<(usize, Rect, bool)>> = FxHashMap::default();
    let mut found = Vec::new();
    for (i, step) in plan.steps.iter().enumerate() {
        let (reads, writes) = touches(plan, &step.what);
        let all = reads.iter().map(|m| (m, false));
        let all: Vec<_> = all.chain(writes.iter().map(|m| (m, true))).collect();
        for (memory, write) in all {
            let (key, rect) = locate(plan, memory);
            let list = touched.entry(key).or_default();
            for &(other, r, w) in list.iter() {
                let apart = |a: (u64, u64), b: (u64, u64)| a.1 <= b.0 || b.1 <= a.0;
                let meet = !apart(r.rows, rect.rows) && !apart(r.cols, rect.cols);
                if other != i && (w || write) && meet && !before[i].has(other) && found.len() < 8 {
                    found.push((other, i));
                }
            }
            list.push((i, rect, write));
        }
    }
    found
}

/// The fork reaches every stream before its first step, and the join follows every step.
pub(super) fn forks_and_joins(plan: &Plan) -> Result<(), String> {
    let mut begun = vec![false; plan.streams.len()];
    begun[plan.origin.index()] = true;
    for &stream in &plan.fork.streams {
        begun[stream.index()] = true;
    }
    let mut recorded = vec![false; plan.events.len()];
    let mut written = vec![false; plan.flags.len()];
    for (i, step) in plan.steps.iter().enumerate() {
        let stream = step.stream.index();
        match step.what {
            What::Await(event) if recorded[event.index()] => begun[stream] = true,
            What::AwaitFlag(flag) if written[flag.index()] => begun[stream] = true,
            What::Await(_) | What::AwaitFlag(_) => {
                return Err(format!("step {i} awaits what is issued later"));
            }
            What::Record(event) => recorded[event.index()] = true,
            What::WriteFlag(flag) => written[flag.index()] = true,
            _ => {}
        }
        if !begun[stream] {
            return Err(format!("step {i} begins before the fork"));
        }
    }
    let Order { mut last, .. } = Order::new(plan);
    let none = || Set::new(plan.steps.len());
    let mut ended = last.remove(&plan.origin).unwrap_or_else(none);
    for (stream, _) in &plan.join {
        ended.add(&last.remove(stream).unwrap_or_else(none));
    }
    match (0..plan.steps.len()).find(|&i| !ended.has(i) && works(&plan.steps[i].what)) {
        Some(i) => Err(format!("the run may end before step {i}")),
        None => Ok(()),
    }
}
