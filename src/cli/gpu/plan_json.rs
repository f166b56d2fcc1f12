//! A plan as JSON; offsets are bytes in one half of an arena, leading dimensions elements.

use serde_json::{Value, json};

use crate::gpu::plan::{Area, Mode, Plan, What};
use crate::schedule::{CollectiveKind, Schedule};

/// The name of a kind of step.
pub(super) fn kind(what: &What) -> &'static str {
    match what {
        What::Copy { .. } => "copy",
        What::CopyKernel { .. } => "copy-kernel",
        What::ToHost { .. } => "to-host",
        What::FromHost { .. } => "from-host",
        What::Gemm { .. } => "gemm",
        What::Gated { .. } => "gated-gemm",
        What::Add { .. } => "add",
        What::Pointwise { .. } => "pointwise",
        What::Collective { .. } => "collective",
        What::Record(_) => "record",
        What::Await(_) => "await",
        What::WriteFlag(_) => "write-flag",
        What::AwaitFlag(_) => "await-flag",
    }
}

fn area(plan: &Plan, a: &Area) -> Value {
    json!({
        "gpu": plan.gpus[a.gpu.index()],
        "offset_bytes": a.at,
        "ld": a.ld,
        "rows": a.rows,
        "cols": a.cols,
    })
}

/// What is particular to a kind of step.
fn detail(plan: &Plan, what: &What) -> Value {
    let at = |a: &Area| area(plan, a);
    match what {
        What::Copy { from, to } => json!({ "from": at(from), "to": at(to) }),
        What::CopyKernel {
            from,
            to,
            blocks,
            sets,
        } => json!({
            "from": at(from), "to": at(to), "blocks": blocks, "sets": sets.map(|f| f.0),
        }),
        What::ToHost { from, to } => {
            json!({ "from": at(from), "staging": to.staging.0, "slot": to.slot })
        }
        What::FromHost { from, to } => {
            json!({ "staging": from.staging.0, "slot": from.slot, "to": at(to) })
        }
        What::Gemm {
            a,
            b,
            out,
            accumulate,
            sms,
        } => json!({
            "a": at(a), "b": at(b), "out": at(out), "accumulate": accumulate, "sms": sms,
        }),
        What::Gated {
            a,
            b,
            out,
            groups,
            accumulate,
            sms,
            loads,
            ..
        } => json!({
            "a": at(a), "b": at(b), "out": at(out), "accumulate": accumulate, "sms": sms,
            "loads": loads.iter().map(|load| json!({
                "from": at(&load.from), "to": at(&load.to), "task": load.task.0, "sets": load.sets.0,
            })).collect::<Vec<_>>(),
            "groups": groups.iter().map(|g| json!({
                "first_row": g.rows.start, "rows": g.rows.len,
                "first_k": g.depth.start, "k": g.depth.len,
                "flags": g.flags.iter().map(|f| f.0).collect::<Vec<_>>(),
                "to": g.to.as_ref().map(at),
                "sets": g.sets.map(|f| f.0),
            })).collect::<Vec<_>>(),
        }),
        What::Add { inputs, out } | What::Pointwise { inputs, out, .. } => json!({
            "inputs": inputs.iter().map(at).collect::<Vec<_>>(), "out": at(out),
        }),
        What::Collective { call, member } => json!({ "call": call.0, "member": member }),
        What::Record(event) | What::Await(event) => json!({ "event": event.0 }),
        What::WriteFlag(flag) | What::AwaitFlag(flag) => json!({ "flag": flag.0 }),
    }
}

/// The whole plan.
pub(super) fn json(schedule: &Schedule, plan: &Plan) -> Value {
    let number = |gpu: crate::gpu::plan::Gpu| plan.gpus[gpu.index()];
    let ids = |streams: &[crate::gpu::plan::StreamId]| -> Vec<u32> {
        streams.iter().map(|s| s.0).collect()
    };
    let steps: Vec<Value> = plan
        .steps
        .iter()
        .map(|step| {
            let mut value = json!({
                "stream": step.stream.0, "task": step.task.0, "kind": kind(&step.what),
            });
            if let (Value::Object(all), Value::Object(more)) =
                (&mut value, detail(plan, &step.what))
            {
                all.extend(more);
            }
            value
        })
        .collect();
    json!({
        "schema": "duet-plan-1",
        "strategy": schedule.strategy,
        "operator": schedule.operator.to_string(),
        "placement": schedule.placement,
        "launch": match plan.mode { Mode::Stream => "stream", Mode::Graph => "graph" },
        "verified": plan.verified,
        "shared_streams": plan.shared,
        "streams": plan.streams.iter().map(|s| json!({
            "gpu": number(s.gpu), "name": s.name, "urgent": s.urgent,
        })).collect::<Vec<_>>(),
        "origin": plan.origin.0,
        "fork": { "event": plan.fork.event.0, "streams": ids(&plan.fork.streams) },
        "steps": steps,
        "joined": plan.joined.iter().map(|j| &j.steps).collect::<Vec<_>>(),
        "join": plan.join.iter().map(|(s, e)| json!({ "stream": s.0, "event": e.0 })).collect::<Vec<_>>(),
        "events": plan.events.len(),
        "flags": plan.flags.iter().map(|f| json!({
            "gpu": number(f.gpu), "writer": f.writer.0, "task": f.task.0, "readers": ids(&f.readers),
        })).collect::<Vec<_>>(),
        "arenas": plan.gpus.iter().zip(&plan.arenas).map(|(gpu, a)| json!({
            "gpu": gpu, "half_bytes": a.half,
        })).collect::<Vec<_>>(),
        "buffers": plan.places.iter().enumerate().map(|(b, place)| {
            let buffer = schedule.buffers.get(b);
            json!({
                "name": buffer.map_or("received", |b| b.name.as_str()),
                "rank": buffer.map(|b| b.rank.0),
                "place": area(plan, &place.area),
                "slots": place.slots,
                "slot_bytes": place.stride,
            })
        }).collect::<Vec<_>>(),
        "staging": plan.staging.iter().map(|s| json!({
            "slots": s.slots, "slot_bytes": s.bytes, "from_gpu": number(s.from), "to_gpu": number(s.to),
        })).collect::<Vec<_>>(),
        "calls": plan.collectives.iter().map(|c| json!({
            "kind": match c.kind {
                CollectiveKind::AllGather => "all-gather",
                CollectiveKind::ReduceScatter => "reduce-scatter",
                CollectiveKind::AllReduce => "all-reduce",
                CollectiveKind::AllToAll => "all-to-all",
            },
            "sms": c.sms,
            "members": c.members.iter().map(|m| json!({
                "rank": m.rank.0, "stream": m.stream.0,
                "input": area(plan, &m.input), "output": area(plan, &m.output),
            })).collect::<Vec<_>>(),
        })).collect::<Vec<_>>(),
        "gemms": plan.gemms.iter().map(|g| json!({
            "gpu": number(g.gpu), "m": g.m, "n": g.n, "k": g.k, "ld": g.ld,
            "accumulate": g.accumulate, "sms": g.sms, "alignment_bytes": g.alignment,
        })).collect::<Vec<_>>(),
    })
}
