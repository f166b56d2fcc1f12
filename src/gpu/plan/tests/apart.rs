//! Kernels that wait inside as products that do so by themselves.
//!
//! Each group of a kernel gets a stream of its own, since tiles of one are taken while another still waits: it begins
//! with the kernel and waits for its own flags only. Slabs of one group follow one another, as their sums stay in
//! registers. A group's flag speaks for all groups before it in the launch, and what follows the launch for all.

use rustc_hash::FxHashMap;

use crate::gpu::plan::{Area, EventId, Gpu, Load, Plan, Step, Stream, StreamId, What};
use crate::schedule::{Extent, TaskId};

/// A launch whose products have not all come.
#[derive(Copy, Clone)]
struct Launch {
    begun: EventId,
    /// Where the ends of its groups are told, in order.
    says: StreamId,
}

struct Apart<'a> {
    plan: &'a Plan,
    out: Plan,
}

impl Apart<'_> {
    fn stream(&mut self, gpu: Gpu, name: &str) -> StreamId {
        self.out.streams.push(Stream {
            gpu,
            name: name.to_owned(),
            urgent: false,
        });
        StreamId(self.out.streams.len() as u32 - 1)
    }

    fn push(&mut self, stream: StreamId, task: TaskId, what: What) {
        self.out.steps.push(Step { stream, task, what });
    }

    /// `after` goes on when what is in `before` has ended.
    fn follows(&mut self, after: StreamId, before: StreamId, task: TaskId) {
        let event = self.record(before, task);
        self.push(after, task, What::Await(event));
    }

    fn record(&mut self, stream: StreamId, task: TaskId) -> EventId {
        let event = EventId(self.out.events.len() as u32);
        self.out.events.push(self.out.streams[stream.index()].gpu);
        self.push(stream, task, What::Record(event));
        event
    }

    fn begins(&mut self, step: &Step, gpu: Gpu) -> Launch {
        Launch {
            begun: self.record(step.stream, step.task),
            says: self.stream(gpu, "says"),
        }
    }

    /// What a kernel brings comes beside it once it has begun.
    fn loads(&mut self, launch: Launch, task: TaskId, gpu: Gpu, loads: &[Load]) {
        if loads.is_empty() {
            return;
        }
        let stream = self.stream(gpu, "loads");
        self.push(stream, task, What::Await(launch.begun));
        for load in loads {
            let (from, to) = (load.from, load.to);
            self.push(stream, task, What::Copy { from, to });
            self.push(stream, task, What::WriteFlag(load.sets));
        }
    }

    fn groups(&mut self, launch: Launch, step: &Step) {
        let What::Gated {
            a,
            b,
            out,
            groups,
            accumulate,
            sms,
            ..
        } = &step.what
        else {
            return;
        };
        let (task, size) = (step.task, self.plan.dtype.size());
        let mut before = None;
        for group in groups {
            let (rows, depth) = (group.rows, group.depth);
            let stream = match before.filter(|_| depth.start > 0) {
                Some(stream) => stream,
                None => {
                    let stream = self.stream(a.gpu, "group");
                    self.push(stream, task, What::Await(launch.begun));
                    stream
                }
            };
            before = Some(stream);
            for flag in &group.flags {
                self.push(stream, task, What::AwaitFlag(*flag));
            }
            let of = |area: &Area| Area {
                at: area.at + u64::from(rows.start) * u64::from(area.ld) * size,
                rows: rows.len,
                ..*area
            };
            let Extent { start, len } = depth;
            let what = What::Gemm {
                a: Area {
                    at: of(a).at + u64::from(start) * size,
                    cols: len,
                    ..of(a)
                },
                b: Area {
                    at: b.at + u64::from(start) * u64::from(b.ld) * size,
                    rows: len,
                    ..*b
                },
                out: group.to.unwrap_or_else(|| of(out)),
                accumulate: *accumulate || start > 0,
                sms: *sms,
            };
            self.push(stream, task, what);
            self.follows(launch.says, stream, task);
            if let Some(flag) = group.sets {
                self.push(launch.says, task, What::WriteFlag(flag));
            }
        }
    }
}

/// The plan with such products in place of kernels that wait inside, and with flags after the copies that set them.
/// Events from `plan.events.len()` on stand for what kernels do inside.
pub(super) fn apart(plan: &Plan) -> Plan {
    let out = Plan {
        steps: Vec::new(),
        ..plan.clone()
    };
    let mut apart = Apart { plan, out };
    let mut launches: FxHashMap<StreamId, Launch> = FxHashMap::default();
    for (i, step) in plan.steps.iter().enumerate() {
        let What::Gated { a, loads, .. } = &step.what else {
            apart.out.steps.push(step.clone());
            // A copy that sets a flag does so at its end.
            if let What::CopyKernel {
                sets: Some(flag), ..
            } = step.what
            {
                apart.push(step.stream, step.task, What::WriteFlag(flag));
            }
            continue;
        };
        let joined = plan.joined.iter().find(|joined| joined.steps.contains(&i));
        let launch = match launches.remove(&step.stream) {
            Some(launch) => launch,
            None => apart.begins(step, a.gpu),
        };
        apart.loads(launch, step.task, a.gpu, loads);
        apart.groups(launch, step);
        match joined.is_some_and(|joined| joined.steps.last() != Some(&i)) {
            true => drop(launches.insert(step.stream, launch)),
            false => apart.follows(step.stream, launch.says, step.task),
        }
    }
    apart.out
}
