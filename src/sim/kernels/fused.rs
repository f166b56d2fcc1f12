//! Fused kernels: the time of their tasks, groups of tiles that follow one another.
//!
//! A tile group takes its share s of the fused kernel's time T, one group after another. But one
//! tile takes a whole wave t, however few there are: with its flag seen at f and its share over at
//! e, what a group wrote is there at max(e, f + t), while the next groups' tiles fill the SMs it
//! leaves free. A kernel that never waits takes T; one that waits for its last flag, or whose
//! groups wait for one another across GPUs (partial sums on a ring), pays t each time.

use super::Kernels;
use crate::device::gemm::GemmTime;
use crate::schedule::LaunchId;
use crate::sim::SimError;
use crate::sim::engine::{Engine, Event};
use crate::sim::fluid::TIE;
use crate::sim::pool::Request;

impl Kernels {
    /// A task of fused kernel `launch`, if it is of any, learns that its tiles may begin no earlier than
    /// `at`, or get to its slab of k no earlier.
    pub fn opens(&mut self, task: u32, launch: Option<LaunchId>, at: f64) {
        let (Some(launch), Some(opened)) = (launch, self.opened.get_mut(task as usize)) else {
            return;
        };
        let (_, whole, _) = &self.launches[launch.index()];
        *opened = opened.max(at - self.slabs.of(task).before * whole.wave);
    }

    /// Tiles are taken up in order: those of `next` begin no earlier than those of `task`.
    pub fn follows(&mut self, task: u32, next: u32) {
        self.opened[next as usize] = self.opened[next as usize].max(self.opened[task as usize]);
    }

    /// When the last tile of a task of fused kernel `launch` ends whose share of the kernel's time
    /// was over at `now`.
    pub fn last_tile(&self, task: u32, launch: LaunchId, now: f64) -> f64 {
        let (_, whole, _) = &self.launches[launch.index()];
        now.max(self.opened[task as usize] + whole.wave)
    }

    /// The time of a wave of fused kernel `launch` [s].
    pub fn wave(&self, launch: LaunchId) -> f64 {
        let (_, whole, _) = &self.launches[launch.index()];
        whole.wave
    }

    /// Whether all tiles of fused kernel `launch` are computed at once.
    pub fn is_one_wave(&self, launch: LaunchId) -> bool {
        let (_, whole, _) = &self.launches[launch.index()];
        whole.wave >= (whole.seconds - whole.overhead) * (1.0 - TIE)
    }

    /// What so many products take of its time [s].
    pub fn alone(&self, launch: LaunchId, products: f64) -> f64 {
        let (_, whole, total) = &self.launches[launch.index()];
        match *total > 0.0 {
            true => (whole.seconds - whole.overhead) * products / total,
            false => 0.0,
        }
    }

    /// Products (m · n · k) of a wave of fused kernel `launch`.
    pub fn of_wave(&self, launch: LaunchId) -> f64 {
        let (_, whole, total) = &self.launches[launch.index()];
        let time = whole.seconds - whole.overhead;
        match time > 0.0 && whole.wave > 0.0 {
            true => total * (whole.wave / time),
            false => *total,
        }
    }
}

impl Engine<'_> {
    /// A fused kernel's lane is free: take its SMs or queue for them.
    pub fn launch_ready(&mut self, launch: u32, now: f64) -> Result<(), SimError> {
        let (gpu, want) = self.launch_wants(launch);
        let who = self.graph.launch_step(LaunchId(launch));
        let request = Request {
            who,
            want,
            fixed: false,
        };
        match self.kernels.pools[gpu as usize].request(request) {
            Some(got) => self.granted(who, got, now),
            None => Ok(()),
        }
    }

    /// The GPU of a fused kernel, and the SMs that it asks for.
    pub(super) fn launch_wants(&self, launch: u32) -> (u32, u32) {
        let l = &self.schedule.launches[launch as usize];
        let gpu = self.schedule.placement[l.rank.0 as usize];
        let sms = self.costs.device(gpu).sms;
        let want = match l.sms {
            limit if limit > 0 && self.options.terms.contention => u32::from(limit).min(sms),
            _ => sms,
        };
        (gpu, want)
    }

    /// The fused kernel has its SMs: its tiles may begin after the kernel's own start.
    pub(super) fn launch_opens(&mut self, launch: u32, got: u32, now: f64) -> Result<(), SimError> {
        let l = &self.schedule.launches[launch as usize];
        let gpu = self.schedule.placement[l.rank.0 as usize];
        let tasks = std::mem::take(&mut self.kernels.launches[launch as usize].0);
        let mut start = 0.0;
        if self.options.terms.compute {
            let whole = self.launch_time(&tasks, gpu, got)?;
            let flops = |&t: &u32| {
                let shape = self.costs.gemm_shape(t);
                shape.map_or(0.0, |s| s.iter().map(|&d| d as f64).product())
            };
            let total: f64 = tasks.iter().map(flops).sum();
            start = self.costs.launch_start(l, &whole);
            for &task in &tasks {
                let before = self.kernels.slabs.of(task).before * whole.wave;
                let opened = &mut self.kernels.opened[task as usize];
                *opened = (*opened - before).max(now + start);
            }
            self.kernels.launches[launch as usize] = (tasks, whole, total);
        }
        self.events.push(now + start, Event::Open(launch));
        Ok(())
    }

    /// A fused kernel of these tasks on so many SMs, as one GEMM.
    fn launch_time(&self, tasks: &[u32], gpu: u32, sms: u32) -> Result<GemmTime, SimError> {
        let (slabs, apart) = (&self.kernels.slabs, (&self.graph.sums, &self.stores));
        let Some(tiled) = self.costs.tiled(tasks, slabs, apart, (gpu, sms)) else {
            return self.costs.launch_gemm(tasks, slabs, (gpu, sms));
        };
        let all = self.costs.device(gpu).sms;
        let whole = self.costs.launch_gemm(tasks, slabs, (gpu, all))?;
        Ok(whole.tiled(tiled.time, tiled.wave))
    }

    /// A fused kernel goes on with so many SMs.
    pub(super) fn launch_grows(&mut self, launch: u32, sms: u32) -> Result<(), SimError> {
        let (gpu, _) = self.launch_wants(launch);
        let tasks = std::mem::take(&mut self.kernels.launches[launch as usize].0);
        if self.options.terms.compute {
            self.kernels.launches[launch as usize].1 = self.launch_time(&tasks, gpu, sms)?;
            for &task in &tasks {
                if let Some(&flow) = self.kernels.flows.get(&task) {
                    let bound = self.kernel_cost(task)?.bound;
                    self.rebound(flow, bound);
                }
            }
        }
        self.kernels.launches[launch as usize].0 = tasks;
        Ok(())
    }
}
