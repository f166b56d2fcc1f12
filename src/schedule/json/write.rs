//! Writing a schedule: one line per buffer and task, names where they are unique.

use std::fmt::{Display, Write as _};

use rustc_hash::FxHashMap;

use super::tasks::usual_via;
use super::{COLLECTIVES, FORMAT, KERNELS, LIBRARIES, ROLES, VIAS, word};
use crate::operator::{Operator, Shape};
use crate::schedule::{
    Buffer, Compute, Dep, Extent, GemmKernel, Lane, LaunchId, Mover, Piece, Rank, Role, Schedule,
    Slice, Task, TaskId, Work,
};

/// The schedule as a file.
pub fn write(schedule: &Schedule) -> String {
    let writer = Writer::new(schedule);
    let mut file = File(String::from("{\n"));
    file.line("format", quote(FORMAT));
    file.line("operator", operator(&schedule.operator));
    file.line("strategy", quote(&schedule.strategy));
    file.line("placement", list(schedule.placement.iter()));
    file.lines("tensors", &schedule.tensors, |t| {
        Object::new()
            .put("name", quote(&t.name))
            .put("rows", t.rows)
            .put("cols", t.cols)
            .put_if(t.contributions != 1, "contributions", t.contributions)
            .end()
    });
    file.lines("buffers", &schedule.buffers, |b| writer.buffer(b));
    file.lines("lanes", &schedule.lanes, |(lane, name)| {
        Object::new()
            .put("lane", lane.0)
            .put("name", quote(name))
            .end()
    });
    file.lines("launches", &schedule.launches, |l| {
        Object::new()
            .put("name", quote(&l.name))
            .put("rank", l.rank.0)
            .put_if(l.sms != 0, "sms", l.sms)
            .end()
    });
    file.lines("collectives", &schedule.collectives, |c| {
        Object::new()
            .put("kind", quote(word(&COLLECTIVES, &c.kind)))
            .put("library", quote(word(&LIBRARIES, &c.library)))
            .put_if(c.sms != 0, "sms", c.sms)
            .put("ring", list(c.members.iter().map(|m| m.rank.0)))
            .end()
    });
    let ids: Vec<TaskId> = (0..schedule.tasks.len() as u32).map(TaskId).collect();
    file.lines("tasks", &ids, |&id| writer.task(id));
    // The last section ends without a comma.
    file.0.truncate(file.0.len() - ",\n".len());
    file.0.push_str("\n}\n");
    file.0
}

struct File(String);

// Writing to a string cannot fail, so results are dropped.
impl File {
    fn line(&mut self, key: &str, value: impl Display) {
        let _ = writeln!(self.0, "  \"{key}\": {value},");
    }

    /// `"key": [ … ]`, one entry per line.
    fn lines<T>(&mut self, key: &str, entries: &[T], text: impl Fn(&T) -> String) {
        let _ = write!(self.0, "  \"{key}\": [");
        for (i, entry) in entries.iter().enumerate() {
            let before = if i > 0 { "," } else { "" };
            let _ = write!(self.0, "{before}\n    {}", text(entry));
        }
        let end = if entries.is_empty() { "" } else { "\n  " };
        let _ = writeln!(self.0, "{end}],");
    }
}

/// A JSON object whose keys keep their order.
struct Object(String);

impl Object {
    fn new() -> Self {
        Self(String::from("{"))
    }

    fn put(mut self, key: &str, value: impl Display) -> Self {
        let before = if self.0.len() > 1 { ", " } else { "" };
        let _ = write!(self.0, "{before}\"{key}\": {value}");
        self
    }

    fn put_if(self, there: bool, key: &str, value: impl Display) -> Self {
        match there {
            true => self.put(key, value),
            false => self,
        }
    }

    fn end(mut self) -> String {
        self.0.push('}');
        self.0
    }
}

fn quote(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

fn list(entries: impl Iterator<Item = impl Display>) -> String {
    let entries: Vec<String> = entries.map(|entry| entry.to_string()).collect();
    format!("[{}]", entries.join(", "))
}

fn range(extent: Extent) -> String {
    format!("[{}, {}]", extent.start, extent.end())
}

fn operator(operator: &Operator) -> String {
    let kind = Object::new().put("kind", quote(operator.kind.name()));
    let sized = match operator.shape {
        Shape::Gemm { m, n, k } => kind.put("m", m).put("n", n).put("k", k),
        Shape::Bytes(bytes) => kind.put("bytes", quote(&format!("{} B", bytes.get()))),
    };
    sized
        .put("tp", operator.tp)
        .put("dtype", quote(operator.dtype.name()))
        .end()
}

fn piece(piece: &Piece) -> String {
    Object::new()
        .put("rows", range(piece.rows))
        .put("cols", range(piece.cols))
        .put(
            "at",
            format!("[{}, {}]", piece.global_row, piece.global_col),
        )
        .put_if(
            piece.initial != Extent::new(0, 0),
            "initial",
            range(piece.initial),
        )
        .end()
}

/// What is unique, so that names can stand for numbers.
struct Writer<'s> {
    schedule: &'s Schedule,
    tensors: FxHashMap<&'s str, u32>,
    buffers: FxHashMap<(Rank, &'s str), u32>,
    lanes: FxHashMap<&'s str, u32>,
    launches: FxHashMap<&'s str, u32>,
}

/// How often each key occurs.
fn counts<K: std::hash::Hash + Eq>(keys: impl Iterator<Item = K>) -> FxHashMap<K, u32> {
    let mut counts = FxHashMap::default();
    for key in keys {
        *counts.entry(key).or_insert(0) += 1;
    }
    counts
}

/// The name where exactly one thing bears it, else the number.
fn refer(name: &str, count: u32, number: impl Display) -> String {
    match count == 1 && !name.is_empty() {
        true => quote(name),
        false => number.to_string(),
    }
}

impl<'s> Writer<'s> {
    fn new(schedule: &'s Schedule) -> Self {
        Self {
            schedule,
            tensors: counts(schedule.tensors.iter().map(|t| t.name.as_str())),
            buffers: counts(schedule.buffers.iter().map(|b| (b.rank, b.name.as_str()))),
            lanes: counts(schedule.lanes.iter().map(|(_, name)| name.as_str())),
            launches: counts(schedule.launches.iter().map(|l| l.name.as_str())),
        }
    }

    fn buffer(&self, buffer: &Buffer) -> String {
        let name = self.schedule.tensors[buffer.tensor.index()].name.as_str();
        let tensor = refer(name, self.tensors[name], buffer.tensor.0);
        Object::new()
            .put("name", quote(&buffer.name))
            .put("rank", buffer.rank.0)
            .put("tensor", tensor)
            .put("rows", buffer.rows)
            .put("cols", buffer.cols)
            .put_if(buffer.slots != 1, "slots", buffer.slots)
            .put("role", quote(word(&ROLES, &buffer.role)))
            .put_if(
                !buffer.pieces.is_empty() || buffer.role != Role::Scratch,
                "pieces",
                list(buffer.pieces.iter().map(piece)),
            )
            .end()
    }

    fn task(&self, id: TaskId) -> String {
        let task = self.schedule.task(id);
        let entry = Object::new()
            .put("rank", task.rank.0)
            .put("lane", self.lane(task.lane));
        let entry = match task.launch {
            Some(launch) => entry.put("launch", self.launch(launch)),
            None => entry,
        };
        let (kind, work) = self.work(id, task);
        let deps = self.schedule.deps(id);
        entry
            .put(kind, work)
            .put_if(
                !deps.is_empty(),
                "after",
                list(deps.iter().map(|dep| self.dep(dep, task))),
            )
            .end()
    }

    fn dep(&self, dep: &Dep, task: &Task) -> String {
        if dep.via == usual_via(self.schedule.task(dep.task), task) {
            return dep.task.0.to_string();
        }
        Object::new()
            .put("task", dep.task.0)
            .put("via", quote(word(&VIAS, &dep.via)))
            .end()
    }

    fn lane(&self, lane: Lane) -> String {
        match self.schedule.lanes.iter().find(|(l, _)| *l == lane) {
            Some((_, name)) => refer(name, self.lanes[name.as_str()], lane.0),
            None => lane.0.to_string(),
        }
    }

    fn launch(&self, launch: LaunchId) -> String {
        let name = self.schedule.launches[launch.index()].name.as_str();
        refer(name, self.launches[name], launch.0)
    }

    /// A slice as seen from a task of `rank`.
    fn slice(&self, slice: &Slice, rank: Rank) -> String {
        let buffer = &self.schedule.buffers[slice.buffer.index()];
        let name = buffer.name.as_str();
        let reference = refer(name, self.buffers[&(buffer.rank, name)], slice.buffer.0);
        let by_name = reference.starts_with('"');
        Object::new()
            .put("buffer", reference)
            .put_if(by_name && buffer.rank != rank, "rank", buffer.rank.0)
            .put_if(slice.slot != 0, "slot", slice.slot)
            .put_if(
                slice.rows != Extent::new(0, buffer.rows),
                "rows",
                range(slice.rows),
            )
            .put_if(
                slice.cols != Extent::new(0, buffer.cols),
                "cols",
                range(slice.cols),
            )
            .end()
    }

    fn work(&self, id: TaskId, task: &Task) -> (&'static str, String) {
        let slice = |s: &Slice| self.slice(s, task.rank);
        let object = Object::new();
        match task.work {
            Work::Transfer { from, to, mover } => {
                let entry = object.put("from", slice(&from)).put("to", slice(&to));
                let entry = match mover {
                    Mover::CopyEngine => entry,
                    Mover::Sm { blocks } => entry.put("mover", format!("{{\"sm\": {blocks}}}")),
                    Mover::Epilogue => entry.put("mover", "\"epilogue\""),
                    Mover::Loader => entry.put("mover", "\"loader\""),
                };
                ("transfer", entry.end())
            }
            Work::Collective(c) => {
                let members = &self.schedule.collectives[c.index()].members;
                let entry = object.put("of", c.0);
                let entry = match members.iter().find(|m| m.task == id) {
                    Some(member) => entry
                        .put("input", slice(&member.input))
                        .put("output", slice(&member.output)),
                    None => entry,
                };
                ("collective", entry.end())
            }
            Work::Compute(c) => compute(&self.schedule.computes[c.index()], slice),
        }
    }
}

fn compute(compute: &Compute, slice: impl Fn(&Slice) -> String) -> (&'static str, String) {
    let object = Object::new();
    match compute {
        Compute::Gemm {
            a,
            b,
            out,
            accumulate,
            kernel,
            sms,
        } => {
            let entry = object
                .put("a", slice(a))
                .put("b", slice(b))
                .put("out", slice(out))
                .put_if(*accumulate, "accumulate", true)
                .put_if(
                    *kernel != GemmKernel::Library,
                    "kernel",
                    quote(word(&KERNELS, kernel)),
                )
                .put_if(*sms != 0, "sms", sms);
            ("gemm", entry.end())
        }
        Compute::Reduce { inputs, out } => {
            let entry = object
                .put("inputs", list(inputs.iter().map(&slice)))
                .put("out", slice(out));
            ("reduce", entry.end())
        }
        Compute::Pointwise {
            inputs,
            out,
            bytes,
            flops,
        } => {
            let entry = object
                .put("inputs", list(inputs.iter().map(&slice)))
                .put("out", slice(out))
                .put("bytes", quote(&format!("{bytes} B")))
                // The shortest text that reads as the same number.
                .put("flops", quote(&format!("{flops:?} FLOP")));
            ("pointwise", entry.end())
        }
    }
}
