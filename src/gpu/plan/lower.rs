//! From a schedule to a plan.

use rustc_hash::FxHashMap;

use super::arena::Layout;
use super::calls::by_rank;
use super::emit::{Emitter, Need};
use super::error::LowerError;
use super::gated::Open;
use super::lanes::{Lanes, Staged};
use super::options::{Flags, Options, Path};
use super::performed::{loads, stores};
use super::streams::{Streams, few_lanes};
use super::transfer::{Rings, Transfer};
use super::{Call, GemmShape, Gpu, Library, Plan, Products, StreamId, What, windows};
use crate::schedule::lowered::{self, Lowered, MOST_STREAMS, Stored};
use crate::schedule::verify::{GpuSms, Limits, Verified, verify};
use crate::schedule::{Compute, ComputeId, Mover, Rank, Schedule, Slice, TaskId, Work};

/// Lowers `schedule` for the GPUs of its placement.
///
/// `sms` gives the SMs of a GPU by its number: collectives hold theirs while they wait for one
/// another, and must leave room for what they wait for. Without it that is not checked.
///
/// Lanes of virtual ranks share streams ([`Plan::shared`]) where a GPU would need more than
/// [`MOST_STREAMS`].
///
/// # Errors
/// [`LowerError`], a sentence.
pub fn lower(
    schedule: &Schedule,
    options: &Options,
    sms: Option<&dyn Fn(u32) -> GpuSms>,
) -> Result<Plan, LowerError> {
    options.check()?;
    few_lanes(schedule)?;
    // Without any budget the verifier still checks structure and order.
    let budget = match options.verify {
        true => Limits::BUDGET,
        false => 0,
    };
    let limits = Limits { budget, sms: None };
    let verified = verify(schedule, &limits).map_err(LowerError::Schedule)?;
    let limits = Limits { budget, sms };
    let alone = match sms {
        Some(sms) => lowered::fitting(schedule, &options.lowered(), sms),
        None => lowered::lower(schedule, &options.lowered()),
    };
    let runs = verify(&alone.schedule, &limits);
    let runs = runs.map_err(LowerError::Lowered)?;
    let stored = stores(schedule, &alone, options)?;
    let yes = |v: &Verified| matches!(v, Verified::Yes { .. });
    let verified = yes(&verified) && yes(&runs);
    let mut most = (0, 0);
    // Streams that tell are the first to go where a GPU has too few.
    for (told, share) in [(true, false), (false, false), (false, true)] {
        let lowering = Lowering::new(&alone, &stored, options, (told, share))?;
        let plan = lowering.plan(options, verified);
        if options.library == Library::NcclWindow {
            windows::alike(&plan.collectives)?;
        }
        most = most_streams(&plan);
        if most.1 <= MOST_STREAMS {
            return Ok(plan);
        }
    }
    let (gpu, streams) = most;
    Err(LowerError::TooManyStreams { gpu, streams })
}

/// The GPU with the most streams, and how many.
fn most_streams(plan: &Plan) -> (u32, usize) {
    let on = |gpu: usize| plan.streams.iter().filter(|s| s.gpu.index() == gpu).count();
    let counts = plan.gpus.iter().enumerate().map(|(g, &gpu)| (gpu, on(g)));
    counts.max_by_key(|&(_, streams)| streams).unwrap_or((0, 0))
}

pub(super) struct Lowering<'a> {
    pub(super) schedule: &'a Schedule,
    pub(super) origin: &'a [TaskId],
    /// Whether streams of their own tell of what has come through the host.
    told: bool,
    pub(super) share: bool,
    pub(super) gpus: Vec<u32>,
    pub(super) layout: Layout,
    pub(super) streams: Streams<'a>,
    pub(super) out: Emitter,
    pub(super) rings: Rings,
    pub(super) groups: Vec<Vec<Rank>>,
    pub(super) calls: Vec<Call>,
    /// By rank: its parts in calls so far, as steps.
    pub(super) called: FxHashMap<Rank, Vec<usize>>,
    pub(super) gemms: Vec<GemmShape>,
    /// By task: the product of a fused kernel that it belongs to.
    pub(super) product: &'a [Option<u32>],
    /// Such products of which not all groups have come.
    pub(super) open: FxHashMap<u32, Open>,
    /// By product: the transfers that it performs as it begins.
    pub(super) loads: FxHashMap<u32, Vec<TaskId>>,
    /// By transfer that a product performs: its group.
    performs: FxHashMap<TaskId, TaskId>,
    /// By such a group: where its tiles go.
    pub(super) goes: FxHashMap<TaskId, Slice>,
}

impl<'a> Lowering<'a> {
    fn new(
        alone: &'a Lowered,
        stored: &[Stored],
        options: &Options,
        (told, share): (bool, bool),
    ) -> Result<Self, LowerError> {
        let schedule = &alone.schedule;
        let mut gpus = schedule.placement.clone();
        gpus.sort_unstable();
        gpus.dedup();
        let mut groups: Vec<Vec<Rank>> = schedule
            .collectives
            .iter()
            .map(|c| by_rank(c.members.iter().map(|m| m.rank)))
            .collect();
        groups.sort();
        groups.dedup();
        let mut lowering = Self {
            layout: Layout::new(schedule, &gpus)?,
            streams: Streams::new(schedule, share),
            schedule,
            origin: &alone.origin,
            product: &alone.product,
            told,
            share,
            gpus,
            out: Emitter::default(),
            rings: Rings::default(),
            groups,
            calls: Vec::with_capacity(schedule.collectives.len()),
            called: FxHashMap::default(),
            gemms: Vec::new(),
            open: FxHashMap::default(),
            loads: FxHashMap::default(),
            performs: (stored.iter())
                .map(|one| (one.transfer, one.group))
                .collect(),
            goes: stored.iter().map(|one| (one.group, one.to)).collect(),
        };
        for one in loads(alone, options)? {
            let all = lowering.loads.entry(one.product).or_default();
            all.push(one.transfer);
        }
        lowering.tasks(options)?;
        Ok(lowering)
    }

    pub(super) fn gpu(&self, rank: Rank) -> Gpu {
        let number = self.schedule.placement[usize::from(rank.0)];
        Gpu(self.gpus.partition_point(|&g| g < number) as u32)
    }

    pub(super) fn stream(&mut self, id: TaskId) -> StreamId {
        let task = self.schedule.task(id);
        let gpu = self.gpu(task.rank);
        self.streams.lane(gpu, task.rank, task.lane)
    }

    /// Appends the steps of all tasks.
    fn tasks(&mut self, options: &Options) -> Result<(), LowerError> {
        let mut lanes = Lanes::default();
        let size = self.schedule.operator.dtype.size();
        let mut next = 0;
        while next < self.schedule.tasks.len() {
            let id = TaskId(next as u32);
            let count = match self.schedule.task(id).work {
                Work::Collective(c) => self.schedule.collectives[c.index()].members.len(),
                _ => 1,
            };
            let mut needs = Vec::with_capacity(count);
            for id in (next..next + count).map(|t| TaskId(t as u32)) {
                let task = self.schedule.task(id);
                let staged = self.staged(id, options);
                let before = lanes.next((task.rank, task.lane), id, staged, size);
                let ends = before.iter().flat_map(|&t| self.out.ends(t));
                let mut all: Vec<Need> = ends.map(|&step| Need::event(step)).collect();
                all.extend(
                    self.schedule
                        .deps(id)
                        .iter()
                        .flat_map(|d| self.out.needs(d)),
                );
                needs.push(all);
            }
            match self.schedule.task(id).work {
                Work::Collective(c) => self.collective(c, id, needs),
                Work::Transfer { .. } if self.performs.contains_key(&id) => {
                    let ends = self.out.ends(self.performs[&id]).to_vec();
                    self.out.end(ends);
                }
                // Its product says when it is there.
                Work::Transfer {
                    mover: Mover::Loader,
                    ..
                } => self.out.end(Vec::new()),
                Work::Transfer { from, to, mover } => {
                    let known = needs.concat();
                    let mut needs = known.clone();
                    let task = self.schedule.task(id);
                    for slice in [&from, &to] {
                        self.calls_have_ended(self.schedule.rank_of(slice), &known, &mut needs);
                    }
                    let transfer = Transfer {
                        task: self.origin[id.index()],
                        lane: (task.rank, task.lane),
                        gpu: self.gpu(task.rank),
                        from: self.layout.area(&from),
                        to: self.layout.area(&to),
                        mover,
                        needs: &needs,
                        told: self.told
                            && options.flags != Flags::Event
                            && self.staged(id, options).is_some(),
                        element: self.schedule.operator.dtype.size(),
                    };
                    let (streams, rings) = (&mut self.streams, &mut self.rings);
                    let ends = transfer.emit(&mut self.out, streams, rings, options.path);
                    let ends = ends.ok_or_else(|| LowerError::Epilogue {
                        transfer: self.schedule.describe(id),
                        why: "no product performs it; use mover=ce".to_owned(),
                    })?;
                    self.out.end(ends);
                }
                Work::Compute(c) if self.schedule.task(id).launch.is_some() => {
                    self.group(id, c, &needs.concat());
                }
                Work::Compute(c) => {
                    let stream = self.stream(id);
                    let what = self.compute(c);
                    let task = self.origin[id.index()];
                    let known = needs.concat();
                    let mut needs = known.clone();
                    self.calls_have_ended(self.schedule.task(id).rank, &known, &mut needs);
                    let step = self.out.step(stream, task, what, &needs);
                    self.out.end(vec![step]);
                }
            }
            next += count;
        }
        Ok(())
    }

    /// A transfer that goes through the host and need not wait for others of its lane that do. Those beside
    /// the library's products keep to the order of tasks, as they were measured.
    fn staged(&self, id: TaskId, options: &Options) -> Option<Staged> {
        let Work::Transfer { from, to, .. } = self.schedule.task(id).work else {
            return None;
        };
        let (from, to) = (self.layout.area(&from), self.layout.area(&to));
        let through = matches!(options.path, Path::Host { .. }) && from.gpu != to.gpu;
        let own = options.products == Products::Own;
        (through && own && from.rows > 0).then_some(Staged { from, to })
    }

    fn compute(&mut self, id: ComputeId) -> What {
        let area = |slice: &Slice| self.layout.area(slice);
        match &self.schedule.computes[id.index()] {
            Compute::Gemm {
                a,
                b,
                out,
                accumulate,
                sms,
                ..
            } => {
                let (a, b, out) = (area(a), area(b), area(out));
                let what = What::Gemm {
                    a,
                    b,
                    out,
                    accumulate: *accumulate,
                    sms: *sms,
                };
                self.gemms.extend(what.gemm());
                what
            }
            Compute::Reduce { inputs, out } => What::Add {
                inputs: inputs.iter().map(area).collect(),
                out: area(out),
            },
            Compute::Pointwise {
                inputs,
                out,
                bytes,
                flops,
            } => What::Pointwise {
                inputs: inputs.iter().map(area).collect(),
                out: area(out),
                bytes: *bytes,
                flops: *flops,
            },
        }
    }
}
