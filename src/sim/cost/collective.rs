//! Collectives of the library.

use rustc_hash::FxHashMap;

use super::{Cost, Costs};
use crate::schedule::{Collective, CollectiveKind, Slice};
use crate::sim::SimError;
use crate::sim::fluid::Usage;
use crate::topology::LinkId;

impl Costs<'_> {
    /// A library collective as one flow over all its links at once. Its work is what each member
    /// sends, per member: (n − 1)/n of S for all-gather, reduce-scatter and all-to-all, twice that
    /// for all-reduce, with S as in nccl-tests; its α is that of all its steps.
    pub fn collective(
        &mut self,
        collective: &Collective,
        usages: &mut Vec<Usage>,
    ) -> Result<Cost, SimError> {
        usages.clear();
        let n = collective.members.len();
        let first = self.schedule.placement[collective.members[0].rank.0 as usize];
        let device = self.device(first);
        let library = &device.library;
        let start = self.kernel_start(first) + self.fixed(library.base);
        if n < 2 {
            return Ok(Cost::instant(start));
        }
        let gpus: Vec<u32> = collective
            .members
            .iter()
            .map(|m| self.schedule.placement[m.rank.0 as usize])
            .collect();
        let largest = |slice: fn(&crate::schedule::Member) -> &Slice| {
            let bytes = |m| self.schedule.bytes(slice(m)) as f64;
            collective.members.iter().map(bytes).fold(0.0, f64::max)
        };
        let steps = (n - 1) as f64;
        // (bytes each member sends, memory accesses per byte sent, rounds of n − 1 steps). A
        // gathering step reads and writes once; a reducing one reads its own part too.
        let (sent, accesses, rounds) = match collective.kind {
            CollectiveKind::AllGather => (largest(|m| &m.input) * steps, 2.0, 1.0),
            CollectiveKind::ReduceScatter => (largest(|m| &m.output) * steps, 3.0, 1.0),
            CollectiveKind::AllReduce => (largest(|m| &m.input) / n as f64 * 2.0 * steps, 2.5, 2.0),
            CollectiveKind::AllToAll => (largest(|m| &m.input) / n as f64 * steps, 2.0, 1.0),
        };
        let place = match collective.kind {
            CollectiveKind::AllGather => 0,
            CollectiveKind::ReduceScatter => 1,
            CollectiveKind::AllReduce => 2,
            CollectiveKind::AllToAll => 3,
        };
        let factor = library.table.factor(place, sent);
        let mut latency = 0f64;
        let mut flows = FxHashMap::default();
        for (from, to, share) in self.channels(collective.kind, &gpus) {
            latency = latency.max(self.edge(from, to, share * factor, usages, &mut flows)?);
        }
        self.crowd(&flows, usages);
        for &gpu in &gpus {
            self.machine.use_memory(gpu, accesses, usages);
        }
        let step = self.fixed(library.step) + latency;
        let sms = f64::from(self.collective_sms(collective, first));
        Ok(Cost {
            alpha: (start + rounds * steps * step) * factor,
            work: sent,
            bound: if sms > 0.0 {
                sms * device.sm_copy.get()
            } else {
                f64::INFINITY
            },
            weight: 1.0,
        })
    }

    /// The pairs of GPUs that a collective moves bytes between, each with its share of what a
    /// member sends. An all-to-all uses every pair. The others run round the members' ring; where
    /// every hop is a link of its own, the library lays further channels over links that the ring
    /// leaves idle: over all pairs of a full mesh (n − 1 rings that share no link), or backwards.
    fn channels(&mut self, kind: CollectiveKind, gpus: &[u32]) -> Vec<(u32, u32, f64)> {
        let n = gpus.len();
        let pairs = |share: f64| -> Vec<(u32, u32, f64)> {
            let others = |i: usize| gpus[..i].iter().chain(&gpus[i + 1..]);
            (0..n)
                .flat_map(|i| others(i).map(move |&to| (gpus[i], to, share)))
                .collect()
        };
        let all = pairs(1.0 / (n - 1) as f64);
        if kind == CollectiveKind::AllToAll {
            return all;
        }
        let ring = (0..n).map(|i| (gpus[i], gpus[(i + 1) % n], 1.0));
        let forward: Vec<(u32, u32, f64)> = ring.collect();
        let both: Vec<(u32, u32, f64)> = (forward.iter())
            .flat_map(|&(from, to, _)| [(from, to, 0.5), (to, from, 0.5)])
            .collect();
        for candidate in [all, both] {
            if self.own_links(&candidate) {
                return candidate;
            }
        }
        forward
    }

    /// The collective is one flow to the solver; where several of its pairs share a link, the
    /// link's contention curve counts each of them.
    fn crowd(&self, flows: &FxHashMap<LinkId, u32>, usages: &mut [Usage]) {
        if !self.options.terms.contention {
            return;
        }
        let topology = self.machine.topology;
        for usage in usages {
            let link = LinkId::new(usage.resource as usize);
            if let Some(&flows) = flows.get(&link).filter(|flows| **flows > 1) {
                usage.per_unit *= topology.capacity(link, 1) / topology.capacity(link, flows);
            }
        }
    }

    /// Whether each of these pairs has one direct link; pairs without a way have none.
    fn own_links(&mut self, pairs: &[(u32, u32, f64)]) -> bool {
        pairs
            .iter()
            .all(|&(from, to, _)| from != to && self.machine.library_links(from, to) == Some(1))
    }

    /// SMs a collective holds on each member.
    pub fn collective_sms(&self, collective: &Collective, gpu: u32) -> u32 {
        match collective.sms {
            0 => self.device(gpu).library.sms,
            sms => u32::from(sms),
        }
    }

    /// One edge of a collective: uses every leg of every path at once (the library pipelines
    /// through staging buffers), less efficiently than a copy engine. Counts itself among the
    /// `flows` of its links; returns its latency [s].
    fn edge(
        &mut self,
        from: u32,
        to: u32,
        per_unit: f64,
        usages: &mut Vec<Usage>,
        flows: &mut FxHashMap<LinkId, u32>,
    ) -> Result<f64, SimError> {
        if from == to {
            return Ok(0.0);
        }
        let paths = self.machine.library_paths(from, to)?;
        let mut latency = 0f64;
        for path in &paths {
            for leg in &path.legs {
                for link in &leg.links {
                    let efficiency = self.library_efficiency(from, *link);
                    let use_per_unit = per_unit * path.share / efficiency;
                    self.machine.use_links(&[*link], use_per_unit, usages);
                    *flows.entry(*link).or_insert(0) += 1;
                }
            }
            latency = latency.max(path.legs.iter().map(|leg| leg.latency.get()).sum());
        }
        Ok(latency)
    }

    /// Share of a link's bandwidth that the collective library reaches.
    pub fn library_efficiency(&self, gpu: u32, link: LinkId) -> f64 {
        let topology = self.machine.topology;
        let kind = &topology.kinds[topology.graph[link].kind as usize];
        self.device(gpu).library.efficiency_of(kind)
    }
}
