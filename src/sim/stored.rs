//! Transfers that epilogues perform.
//!
//! The tiles of a group are stored on another GPU as they are computed. Their bytes flow over the links from the
//! end of the group's first wave on, beside whatever is computed then. With d the time at which the group's
//! last tile is done, C_w the bytes of a wave, at most all, B the rate of stores by SMs over the links with
//! nobody else there, L their latency, w the time of a wave, and p the share of it over which the kernel spreads its
//! stores, 0 where no tile follows on these SMs or their tiles are not known,
//!
//! ```text
//! end = max(end of the flow, d + L + max(C_w / B, p w))
//! ```
//!
//! Nobody hands the transfer over or waits for it to begin; who waits for its end is told by the kernel. Within
//! one GPU's memory a tile that is stored elsewhere takes no more time.

use rustc_hash::FxHashMap;

use super::SimError;
use super::engine::{Engine, Event};
use super::fluid::TIE;
use super::machine::Way;
use crate::schedule::lowered::stored;
use crate::schedule::{Schedule, TaskId, Work};

/// How far a transfer is.
#[derive(Copy, Clone, Debug, Default)]
struct Store {
    /// Its flow is over; its group is.
    flowed: bool,
    computed: bool,
    /// When it ends at the earliest, once its group is over [s].
    end: f64,
}

/// All of a schedule's.
#[derive(Debug, Default)]
pub(super) struct Stores {
    /// By group: the transfer that it performs.
    of_group: FxHashMap<u32, u32>,
    /// By transfer.
    stores: FxHashMap<u32, Store>,
}

impl Stores {
    pub fn new(schedule: &Schedule) -> Result<Self, SimError> {
        let all = stored(schedule).map_err(|no| SimError::Epilogue {
            transfer: schedule.describe(no.transfer),
            why: no.why,
        })?;
        Ok(Self {
            of_group: all.iter().map(|s| (s.group.0, s.transfer.0)).collect(),
            stores: (all.iter())
                .map(|s| (s.transfer.0, Store::default()))
                .collect(),
        })
    }

    /// Whether the tiles of a task go to another GPU.
    pub fn leaves(&self, task: u32) -> bool {
        self.of_group.contains_key(&task)
    }

    /// Whether a step is a transfer that a kernel performs.
    pub fn performs(&self, step: u32) -> bool {
        self.stores.contains_key(&step)
    }
}

impl Engine<'_> {
    /// The tiles of a group begin.
    pub(super) fn stores_begin(&mut self, group: u32, now: f64) -> Result<(), SimError> {
        let Some(&transfer) = self.stores.of_group.get(&group) else {
            return Ok(());
        };
        let Work::Transfer { from, to, .. } = self.schedule.tasks[transfer as usize].work else {
            return Ok(());
        };
        let (src, dst) = (self.costs.gpu_of(&from), self.costs.gpu_of(&to));
        let moves = self.options.terms.communication && self.schedule.bytes(&from) > 0;
        if src == dst || !moves {
            self.stored(transfer).flowed = true;
            return Ok(());
        }
        let latency = match self.costs.machine.way(src, dst)? {
            Way::Direct(latency) => latency,
            Way::Paths(_) => {
                let task = self.schedule.describe(TaskId(group));
                return Err(SimError::NotDirect { task, gpu: dst });
            }
        };
        let launch = self.schedule.tasks[group as usize].launch;
        let wave = launch.map_or(0.0, |launch| self.kernels.wave(launch));
        let begin = now + wave + latency;
        self.start(transfer, begin);
        self.events.push(begin, Event::Flow(transfer));
        Ok(())
    }

    /// The group of a transfer is over, and what precedes the transfer in its lane.
    pub(super) fn store_computed(&mut self, transfer: u32, now: f64) -> Result<(), SimError> {
        let wave = self.last_wave(transfer)?;
        self.start(transfer, now);
        let store = self.stored(transfer);
        (store.computed, store.end) = (true, now + wave);
        if store.flowed {
            self.events.push(now + wave, Event::Drained(transfer));
        }
        Ok(())
    }

    /// The flow of a transfer by an epilogue is over, or it may end: whether it does not yet.
    pub(super) fn store_waits(&mut self, transfer: u32, now: f64) -> bool {
        if !self.stores.performs(transfer) {
            return false;
        }
        let store = self.stored(transfer);
        let first = !std::mem::replace(&mut store.flowed, true);
        let waits = store.computed && store.end > now * (1.0 + TIE);
        let (computed, end) = (store.computed, store.end);
        if first && waits {
            self.events.push(end, Event::Drained(transfer));
        }
        !computed || waits
    }

    fn stored(&mut self, transfer: u32) -> &mut Store {
        self.stores.stores.entry(transfer).or_default()
    }

    /// From the end of the last tile of a transfer's group to its being there, with nobody else on the links [s].
    fn last_wave(&mut self, transfer: u32) -> Result<f64, SimError> {
        let Work::Transfer { from, to, .. } = self.schedule.tasks[transfer as usize].work else {
            return Ok(0.0);
        };
        let (src, dst) = (self.costs.gpu_of(&from), self.costs.gpu_of(&to));
        let moves = self.options.terms.communication && self.schedule.bytes(&from) > 0;
        if src == dst || !moves {
            return Ok(0.0);
        }
        let Way::Direct(latency) = self.costs.machine.way(src, dst)? else {
            return Ok(0.0);
        };
        let deps = self.schedule.deps(TaskId(transfer));
        let Some(group) = deps.first().map(|dep| dep.task) else {
            return Ok(latency);
        };
        let shape = self.costs.gemm_shape(group.0).unwrap_or_default();
        let products: f64 = shape.iter().map(|&size| size as f64).product();
        let launch = self.schedule.task(group).launch;
        let share = match launch {
            Some(launch) if products > 0.0 => self.kernels.of_wave(launch) / products,
            _ => 1.0,
        };
        let spread = match (launch, self.next_in_launch(group.0), self.options.tiling) {
            (Some(launch), Some(_), Some(tiling)) if !self.kernels.is_one_wave(launch) => {
                tiling.pace * self.kernels.wave(launch)
            }
            _ => 0.0,
        };
        let bytes = self.schedule.bytes(&from) as f64 * share.min(1.0);
        let links = self.costs.machine.recent_links(src);
        let graph = &self.topology.graph;
        let narrowest =
            (links.iter().map(|&link| graph[link].bandwidth.get())).fold(f64::INFINITY, f64::min);
        let device = self.costs.device(self.costs.gpu(transfer));
        let rate = narrowest * device.sm_copy_efficiency;
        Ok(latency + f64::max(bytes / rate, spread))
    }
}
