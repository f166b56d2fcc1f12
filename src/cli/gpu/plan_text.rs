//! A plan as text and as records.

use std::collections::BTreeMap;

use super::plan_json;
use crate::gpu::plan::{Area, Plan, Rows, What};
use crate::report::grid::{Grid, clean};
use crate::report::list::List;
use crate::schedule::Schedule;
use crate::units::Bytes;

pub fn summary(schedule: &Schedule, plan: &Plan) -> String {
    let numbers: Vec<String> = plan.gpus.iter().map(u32::to_string).collect();
    let mut parts = vec![format!(
        "{} on GPU {}: {} tasks, {} steps",
        schedule.operator,
        numbers.join(", "),
        schedule.tasks.len(),
        plan.steps.len()
    )];
    parts.push(kinds(plan.steps.iter().map(|step| &step.what)));
    parts.push(format!(
        "{} of {} streams forked, {} joined",
        plan.fork.streams.len(),
        plan.streams.len() - 1,
        plan.join.len()
    ));
    if plan.shared {
        parts.push("lanes share streams, as each GPU serves only so many".to_owned());
    }
    if !plan.verified {
        parts.push("not verified".to_owned());
    }
    parts.join("; ")
}

/// How many steps of each kind: `4 gemm, 2 copy`.
fn kinds<'a>(steps: impl Iterator<Item = &'a What>) -> String {
    let mut kinds: BTreeMap<&str, usize> = BTreeMap::new();
    for what in steps {
        *kinds.entry(plan_json::kind(what)).or_default() += 1;
    }
    let kinds: Vec<String> = kinds
        .iter()
        .map(|(kind, n)| format!("{n} {kind}"))
        .collect();
    kinds.join(", ")
}

pub fn streams(plan: &Plan) -> Grid {
    let mut grid = Grid::default()
        .right("GPU", 0)
        .left("stream", 0)
        .right("steps", 0)
        .right("waits", 1)
        .text("does");
    for (i, stream) in plan.streams.iter().enumerate() {
        let own: Vec<&What> = plan
            .steps
            .iter()
            .filter(|step| step.stream.index() == i)
            .map(|step| &step.what)
            .collect();
        let waits = own
            .iter()
            .filter(|w| matches!(w, What::Await(_) | What::AwaitFlag(_)))
            .count();
        grid.row(vec![
            plan.gpus[stream.gpu.index()].to_string(),
            clean(&stream.name),
            own.len().to_string(),
            waits.to_string(),
            kinds(own.into_iter()),
        ]);
    }
    grid
}

pub fn memory(plan: &Plan) -> Grid {
    let mut grid = Grid::default()
        .right("GPU", 0)
        .right("arena, each half", 0)
        .right("flags", 0)
        .right("staging, leaving", 0);
    for (g, arena) in plan.arenas.iter().enumerate() {
        let flags = plan.flags.iter().filter(|f| f.gpu.index() == g).count();
        let staging = plan.staging.iter().filter(|s| s.from.index() == g);
        let staging: u64 = staging.map(|s| u64::from(s.slots) * s.bytes).sum();
        grid.row(vec![
            plan.gpus[g].to_string(),
            Bytes::new(arena.half).to_string(),
            flags.to_string(),
            Bytes::new(staging).to_string(),
        ]);
    }
    grid
}

pub fn steps(plan: &Plan) -> Grid {
    let mut grid = Grid::default()
        .right("step", 0)
        .right("GPU", 0)
        .left("stream", 0)
        .right("task", 1)
        .text("what");
    for (i, step) in plan.steps.iter().enumerate() {
        let stream = &plan.streams[step.stream.index()];
        grid.row(vec![
            i.to_string(),
            plan.gpus[stream.gpu.index()].to_string(),
            clean(&stream.name),
            step.task.0.to_string(),
            words(plan, i),
        ]);
    }
    grid
}

pub fn records(plan: &Plan) -> List {
    let mut list = List::new(&["step", "gpu", "stream", "task", "kind", "what"]);
    for (i, step) in plan.steps.iter().enumerate() {
        let stream = &plan.streams[step.stream.index()];
        list.row(vec![
            i.into(),
            plan.gpus[stream.gpu.index()].into(),
            stream.name.clone().into(),
            step.task.0.into(),
            plan_json::kind(&step.what).into(),
            words(plan, i).into(),
        ]);
    }
    list
}

/// A step in words.
fn words(plan: &Plan, step: usize) -> String {
    let mut text = plain(plan, &plan.steps[step].what);
    if let Some(joined) = plan.joined.iter().find(|j| j.steps.contains(&step)) {
        let others = joined.steps.iter().filter(|&&other| other != step);
        let others: Vec<String> = others.map(usize::to_string).collect();
        text.push_str(&format!("; one launch with step {}", others.join(", ")));
    }
    text
}

fn plain(plan: &Plan, what: &What) -> String {
    let area = |a: &Area| {
        format!(
            "GPU {} +{:#x} ({} × {}, ld {})",
            plan.gpus[a.gpu.index()],
            a.at,
            a.rows,
            a.cols,
            a.ld
        )
    };
    let kind = plan_json::kind(what);
    match what {
        What::Copy { from, to } => format!("{kind} {} → {}", area(from), area(to)),
        What::CopyKernel {
            from,
            to,
            blocks,
            sets,
        } => {
            let then = sets.map_or_else(String::new, |flag| format!(", then flag {}", flag.0));
            format!(
                "{kind} ({blocks} blocks) {} → {}{then}",
                area(from),
                area(to)
            )
        }
        What::ToHost { from, to } => {
            format!(
                "{kind} {} → staging {} slot {}",
                area(from),
                to.staging.0,
                to.slot
            )
        }
        What::FromHost { from, to } => {
            format!(
                "{kind} staging {} slot {} → {}",
                from.staging.0,
                from.slot,
                area(to)
            )
        }
        What::Gemm {
            a,
            b,
            out,
            accumulate,
            ..
        } => {
            let sign = if *accumulate { "+=" } else { "=" };
            format!("{kind} {} {sign} {} · {}", area(out), area(a), area(b))
        }
        What::Gated {
            a,
            b,
            out,
            groups,
            accumulate,
            loads,
            ..
        } => {
            let sign = if *accumulate { "+=" } else { "=" };
            let group = |g: &Rows| {
                let end = g.rows.start + g.rows.len;
                let flags: Vec<String> = g.flags.iter().map(|f| f.0.to_string()).collect();
                let mut text = format!("rows {}-{end}", g.rows.start);
                if g.depth.len < a.cols {
                    let end = g.depth.start + g.depth.len;
                    text.push_str(&format!(" of k {}-{end}", g.depth.start));
                }
                if !flags.is_empty() {
                    text.push_str(&format!(" after flag {}", flags.join(", ")));
                }
                if let Some(to) = &g.to {
                    text.push_str(&format!(" to {}", area(to)));
                }
                if let Some(flag) = g.sets {
                    text.push_str(&format!(", then flag {}", flag.0));
                }
                text
            };
            let mut parts: Vec<String> = groups.iter().map(group).collect();
            parts.extend(loads.iter().map(|load| {
                let (from, to) = (area(&load.from), area(&load.to));
                format!("brings {to} from {from}, then flag {}", load.sets.0)
            }));
            format!(
                "{kind} {} {sign} {} · {}: {}",
                area(out),
                area(a),
                area(b),
                parts.join("; ")
            )
        }
        What::Add { inputs, out } | What::Pointwise { inputs, out, .. } => {
            let inputs: Vec<String> = inputs.iter().map(area).collect();
            format!("{kind} {} = {}", area(out), inputs.join(" + "))
        }
        What::Collective { call, member } => {
            let group = plan.collectives[call.index()].kind;
            format!("{kind} {} {group:?}, member {member}", call.0)
        }
        What::Record(event) | What::Await(event) => format!("{kind} {}", event.0),
        What::WriteFlag(flag) | What::AwaitFlag(flag) => format!("{kind} {}", flag.0),
    }
}
