//! The tasks of a file.

use rustc_hash::FxHashMap;

use super::names::{Names, quoted};
use super::slices::Buffers;
use super::tables::{self, choose, need};
use super::{KERNELS, VIAS};
use crate::input::yaml::Node;
use crate::input::{Diagnostics, Fields, Span, did_you_mean};
use crate::schedule::{
    CollectiveId, Compute, ComputeId, Dep, GemmKernel, Lane, LaunchId, Member, Mover, Rank,
    Schedule, Slice, Task, TaskId, Via, Work,
};
use crate::units::{Bytes, Flops};

/// What tasks refer to.
pub(super) struct Context<'t> {
    pub text: &'t str,
    pub ranks: u32,
    pub buffers: Buffers,
    pub lanes: Names,
    pub launches: Names,
    pub collectives: Names,
}

/// A dependency that names a task, which may come later in the file.
struct Pending {
    dep: usize,
    name: Node,
}

/// Reads tasks one by one.
#[derive(Default)]
pub(super) struct Tasks {
    ids: FxHashMap<String, u32>,
    pending: Vec<Pending>,
    /// By dependency: the way stated, and where it stands.
    vias: Vec<(Option<Via>, Span)>,
}

const KINDS: [&str; 5] = ["transfer", "gemm", "reduce", "pointwise", "collective"];

impl Tasks {
    /// Reads one task into the schedule.
    pub(super) fn push(
        &mut self,
        node: &Node,
        context: &Context<'_>,
        schedule: &mut Schedule,
        found: &mut Diagnostics,
    ) -> Option<()> {
        let id = TaskId(schedule.tasks.len() as u32);
        let mut fields = Fields::of(node, "a task", found)?;
        if let Some(name) = fields.get("id") {
            self.name(name, id, context.text, found);
        }
        let rank = need(&mut fields, "rank", "0", found)
            .and_then(|node| tables::rank(node, context.ranks, found));
        let lane =
            need(&mut fields, "lane", "0", found).and_then(|node| self::lane(node, context, found));
        let launch = match fields.get("launch") {
            Some(node) => context.launches.find(node, context.text, found).map(Some),
            None => Some(None),
        };
        let after = fields.get("after");
        let works: Vec<(&str, &Node)> = KINDS
            .into_iter()
            .filter_map(|kind| Some((kind, fields.get(kind)?)))
            .collect();
        fields.finish(found);
        let work = match works[..] {
            [(kind, node)] => rank.and_then(|rank| {
                let task = (rank, id);
                self::work(kind, node, task, context, schedule, found)
            }),
            [] => {
                let mistake = node.wrong("a task without work", "this task does nothing");
                let form = "{\"from\": {…}, \"to\": {…}}";
                found.push(mistake.help(format!("add e.g. `\"transfer\": {form}`")));
                None
            }
            [_, (kind, second), ..] => {
                let mistake = second.wrong(format!("`{kind}` is a second work"), "one too many");
                found.push(mistake.help("give each piece of work a task of its own"));
                None
            }
        };
        if let Some(node) = after {
            for node in node.list("a list of tasks", found)? {
                self.dep(node, context.text, schedule, found)?;
            }
        }
        schedule.dep_start.push(schedule.deps.len() as u32);
        schedule.tasks.push(Task {
            work: work?,
            rank: rank?,
            lane: lane?,
            launch: launch?.map(LaunchId),
        });
        Some(())
    }

    fn name(&mut self, node: &Node, id: TaskId, text: &str, found: &mut Diagnostics) {
        let Some(name) = node.word("id", found) else {
            return;
        };
        if !quoted(node, text) {
            let mistake = node.wrong(format!("the id {name} is no name"), "expected a string");
            found
                .push(mistake.help("write it in quotes; numbers count tasks from 0 by themselves"));
        } else if self.ids.insert(name.to_owned(), id.0).is_some() {
            let mistake = node.wrong(format!("two tasks are called `{name}`"), "second one");
            found.push(mistake.help("give each task its own id"));
        }
    }

    fn dep(
        &mut self,
        node: &Node,
        text: &str,
        schedule: &mut Schedule,
        found: &mut Diagnostics,
    ) -> Option<()> {
        let (task, via) = match &node.value {
            crate::input::yaml::Value::Map(_) => {
                let mut fields = Fields::of(node, "a dependency", found)?;
                let task = need(&mut fields, "task", "0", found);
                let via = fields.get("via");
                fields.finish(found);
                (task?, via)
            }
            _ => (node, None),
        };
        let via = match via {
            Some(node) => Some(choose(node, "via", &VIAS, found)?),
            None => None,
        };
        task.word("after", found)?;
        let number = if quoted(task, text) {
            self.pending.push(Pending {
                dep: schedule.deps.len(),
                name: task.clone(),
            });
            0
        } else {
            task.whole("after", 0, u64::from(u32::MAX), found)? as u32
        };
        schedule.deps.push(Dep {
            task: TaskId(number),
            via: Via::Event,
        });
        self.vias.push((via, task.span.clone()));
        Some(())
    }

    /// Puts numbers for names, and the usual way of waiting where none is stated.
    pub(super) fn finish(self, schedule: &mut Schedule, found: &mut Diagnostics) {
        for Pending { dep, name } in self.pending {
            let word = name.text().unwrap_or("");
            match self.ids.get(word) {
                Some(&id) => schedule.deps[dep].task = TaskId(id),
                None => {
                    let mut known: Vec<&str> = self.ids.keys().map(String::as_str).collect();
                    known.sort_unstable();
                    let mistake = name.wrong(format!("no task is called `{word}`"), "unknown id");
                    found.push(mistake.help(match known.is_empty() {
                        true => "give that task an `\"id\"`, or use its number".to_owned(),
                        false => did_you_mean(word, known.iter().copied()),
                    }));
                }
            }
        }
        let count = schedule.tasks.len();
        for task in 0..count {
            let range = schedule.dep_start[task] as usize..schedule.dep_start[task + 1] as usize;
            for dep in range {
                let (stated, span) = &self.vias[dep];
                let on = schedule.deps[dep].task;
                if on.index() >= count {
                    let message = format!("there is no task {}", on.0);
                    let label = format!("expected a number from 0 to {}", count - 1);
                    let mistake = crate::input::Diagnostic::new(span.clone(), message, label);
                    found.push(mistake.help("tasks count from 0 in the order of the file"));
                    continue;
                }
                let usual = usual_via(schedule.task(on), &schedule.tasks[task]);
                schedule.deps[dep].via = stated.unwrap_or(usual);
            }
        }
    }
}

/// How `task` waits for `on` unless the file says otherwise.
pub(super) fn usual_via(on: &Task, task: &Task) -> Via {
    if task.launch.is_some() && task.launch == on.launch {
        Via::Launch
    } else if (task.rank, task.lane) == (on.rank, on.lane) {
        Via::Lane
    } else {
        Via::Event
    }
}

fn lane(node: &Node, context: &Context<'_>, found: &mut Diagnostics) -> Option<Lane> {
    let number = if quoted(node, context.text) {
        u64::from(context.lanes.find(node, context.text, found)?)
    } else {
        node.whole("lane", 0, u64::from(u16::MAX), found)?
    };
    Some(Lane(number as u16))
}

fn work(
    kind: &str,
    node: &Node,
    (rank, id): (Rank, TaskId),
    context: &Context<'_>,
    schedule: &mut Schedule,
    found: &mut Diagnostics,
) -> Option<Work> {
    let slice = |node: &Node, found: &mut Diagnostics| {
        context.buffers.slice(node, rank, context.text, found)
    };
    let form = "{\"buffer\": \"A\"}";
    let mut fields = match kind {
        "transfer" => Fields::of(node, "a transfer", found)?,
        "gemm" => Fields::of(node, "a gemm", found)?,
        "reduce" => Fields::of(node, "a reduction", found)?,
        "pointwise" => Fields::of(node, "a pointwise kernel", found)?,
        _ => Fields::of(node, "a collective's member", found)?,
    };
    let part = |fields: &mut Fields<'_>, key, found: &mut Diagnostics| {
        need(fields, key, form, found).and_then(|node| slice(node, found))
    };
    match kind {
        "transfer" => {
            let from = part(&mut fields, "from", found);
            let to = part(&mut fields, "to", found);
            let mover = match fields.get("mover") {
                Some(node) => mover(node, context.text, found),
                None => Some(Mover::CopyEngine),
            };
            fields.finish(found);
            Some(Work::Transfer {
                from: from?,
                to: to?,
                mover: mover?,
            })
        }
        "collective" => {
            let of = need(&mut fields, "of", "0", found)
                .and_then(|node| context.collectives.find(node, context.text, found));
            let input = part(&mut fields, "input", found);
            let output = part(&mut fields, "output", found);
            fields.finish(found);
            let of = of?;
            let group = schedule.collectives.get_mut(of as usize)?;
            group.members.push(Member {
                rank,
                task: id,
                input: input?,
                output: output?,
            });
            Some(Work::Collective(CollectiveId(of)))
        }
        _ => {
            let compute = compute(kind, fields, &slice, found)?;
            schedule.computes.push(compute);
            Some(Work::Compute(ComputeId(schedule.computes.len() as u32 - 1)))
        }
    }
}

fn compute(
    kind: &str,
    mut fields: Fields<'_>,
    slice: &dyn Fn(&Node, &mut Diagnostics) -> Option<Slice>,
    found: &mut Diagnostics,
) -> Option<Compute> {
    let form = "{\"buffer\": \"A\"}";
    let part = |fields: &mut Fields<'_>, key, found: &mut Diagnostics| {
        need(fields, key, form, found).and_then(|node| slice(node, found))
    };
    let out = part(&mut fields, "out", found);
    if kind == "gemm" {
        let a = part(&mut fields, "a", found);
        let b = part(&mut fields, "b", found);
        let accumulate = match fields.get("accumulate") {
            Some(node) => node.flag("accumulate", found),
            None => Some(false),
        };
        let kernel = match fields.get("kernel") {
            Some(node) => choose(node, "kernel", &KERNELS, found),
            None => Some(GemmKernel::Library),
        };
        let sms = tables::sms(&mut fields, found);
        fields.finish(found);
        return Some(Compute::Gemm {
            a: a?,
            b: b?,
            out: out?,
            accumulate: accumulate?,
            kernel: kernel?,
            sms: sms?,
        });
    }
    let list = need(&mut fields, "inputs", &format!("[{form}]"), found);
    let (mut bytes, mut flops) = (None, None);
    if kind == "pointwise" {
        bytes = need(&mut fields, "bytes", "\"64 MiB\"", found)
            .and_then(|node| node.parse::<Bytes>("bytes", found));
        flops = need(&mut fields, "flops", "\"1 GFLOP\"", found)
            .and_then(|node| node.parse::<Flops>("flops", found));
    }
    fields.finish(found);
    let nodes = list?.list("a list of slices", found)?;
    let inputs: Option<Vec<Slice>> = nodes.iter().map(|node| slice(node, found)).collect();
    let (inputs, out) = (inputs?, out?);
    Some(match kind {
        "pointwise" => Compute::Pointwise {
            inputs,
            out,
            bytes: bytes?.get(),
            flops: flops?.get(),
        },
        _ => Compute::Reduce { inputs, out },
    })
}

/// `"copy-engine"`, `"epilogue"`, `"loader"` or `{"sm": blocks}`.
fn mover(node: &Node, text: &str, found: &mut Diagnostics) -> Option<Mover> {
    if quoted(node, text) {
        if node.text() == Some("copy-engine") {
            return Some(Mover::CopyEngine);
        }
        match node.text() {
            Some("epilogue") => return Some(Mover::Epilogue),
            Some("loader") => return Some(Mover::Loader),
            _ => {}
        }
        let message = format!("`{}` is not a value of `mover`", node.text().unwrap_or(""));
        let mistake = node.wrong(
            message,
            "expected `copy-engine`, `epilogue`, `loader` or an object",
        );
        found.push(mistake.help(
            "write `\"copy-engine\"`, `\"epilogue\"`, `\"loader\"`, or e.g. `{\"sm\": 8}` for 8 thread blocks",
        ));
        return None;
    }
    let mut fields = Fields::of(node, "an SM mover such as {\"sm\": 8}", found)?;
    let blocks = tables::need_whole(&mut fields, "sm", (1, u64::from(u16::MAX)), found);
    fields.finish(found);
    Some(Mover::Sm {
        blocks: blocks? as u16,
    })
}
