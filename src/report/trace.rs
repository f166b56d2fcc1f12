//! Chrome trace events, which ui.perfetto.dev and chrome://tracing open.
//!
//! One process per GPU with one track per rank and lane, a process `links` whose counters are the
//! bytes per second of each link direction, a counter of held SMs per GPU, and arrows for
//! dependencies between tracks. Times are microseconds, rounded to picoseconds so that one track's
//! slices never overlap by a rounding error.

use std::collections::BTreeSet;
use std::io::{self, Write};

use serde_json::{Value, json};

use super::names;
use crate::schedule::{Schedule, TaskId, Via};
use crate::timeline::{Counter, Timeline};
use crate::topology::Topology;

/// Process of the link counters; GPU g is process g + 1.
const LINKS: u32 = 0;
/// Arrows beyond this number hide more than they show.
const MOST_ARROWS: usize = 20_000;

/// Microseconds of a time in seconds, on a grid of picoseconds.
fn micros(seconds: f64) -> f64 {
    (seconds * 1e12).round() / 1e6
}

/// Writes the trace of `timeline`, one event per line.
///
/// # Errors
/// Those of `out`.
pub fn write(
    out: &mut dyn Write,
    topology: &Topology,
    schedule: &Schedule,
    timeline: &Timeline,
) -> io::Result<()> {
    write_all(out, topology, schedule, &[("", timeline)])
}

/// Writes several timelines of one schedule, each with processes of its own whose names begin with
/// the timeline's.
///
/// # Errors
/// Those of `out`.
pub fn write_all(
    out: &mut dyn Write,
    topology: &Topology,
    schedule: &Schedule,
    timelines: &[(&str, &Timeline)],
) -> io::Result<()> {
    let processes = topology.gpus.len() as u32 + 1;
    let mut events = Events {
        out,
        first: true,
        base: 0,
        name: String::new(),
    };
    write!(events.out, "{{\"displayTimeUnit\":\"ns\",\"traceEvents\":[")?;
    for (at, (name, timeline)) in timelines.iter().enumerate() {
        events.base = at as u32 * processes;
        (*name).clone_into(&mut events.name);
        one(&mut events, topology, schedule, timeline)?;
    }
    writeln!(events.out, "\n]}}")
}

fn one(
    events: &mut Events<'_>,
    topology: &Topology,
    schedule: &Schedule,
    timeline: &Timeline,
) -> io::Result<()> {
    metadata(events, topology, schedule)?;
    for (index, span) in timeline.spans.iter().enumerate() {
        let id = TaskId(index as u32);
        let track = track(schedule, id);
        let start = micros(span.start);
        events.push(json!({
            "ph": "X",
            "name": names::label(topology, schedule, id),
            "cat": names::kind(schedule, id),
            "pid": track.0,
            "tid": track.1,
            "ts": start,
            "dur": micros(micros(span.end) / 1e6 - start / 1e6),
            "args": {
                "task": index,
                "bytes": names::bytes(schedule, id),
                "bound_by": names::bound(topology, span.bound),
                "waited_us": micros(span.start - span.ready),
            },
        }))?;
    }
    arrows(events, schedule, timeline)?;
    counters(events, topology, timeline)
}

/// Appends events with commas between them.
struct Events<'a> {
    out: &'a mut dyn Write,
    first: bool,
    /// Added to the number of every process.
    base: u32,
    /// Precedes the name of every process.
    name: String,
}

impl Events<'_> {
    fn push(&mut self, mut event: Value) -> io::Result<()> {
        if let Some(process) = event["pid"].as_u64() {
            event["pid"] = (process + u64::from(self.base)).into();
        }
        self.out
            .write_all(if self.first { b"\n" } else { b",\n" })?;
        self.first = false;
        serde_json::to_writer(&mut *self.out, &event)?;
        Ok(())
    }
}

/// Process and thread of a task.
fn track(schedule: &Schedule, id: TaskId) -> (u32, u32) {
    let task = schedule.task(id);
    let gpu = schedule.placement[usize::from(task.rank.0)];
    let thread = (u32::from(task.rank.0) << 16) | u32::from(task.lane.0);
    (gpu + 1, thread)
}

fn metadata(events: &mut Events<'_>, topology: &Topology, schedule: &Schedule) -> io::Result<()> {
    let before = match events.name.as_str() {
        "" => String::new(),
        name => format!("{name}: "),
    };
    let base = events.base;
    let mut name = |what: &str, pid: u32, tid: u32, key: &str, value: Value| {
        let args = json!({ key: value });
        events.push(json!({ "ph": "M", "name": what, "pid": pid, "tid": tid, "args": args }))
    };
    let gpus: BTreeSet<u32> = schedule.placement.iter().copied().collect();
    for &gpu in &gpus {
        let text = format!("{before}{}", names::gpu(topology, gpu));
        name("process_name", gpu + 1, 0, "name", text.into())?;
        let place = (base + gpu).into();
        name("process_sort_index", gpu + 1, 0, "sort_index", place)?;
    }
    let text = format!("{before}links");
    name("process_name", LINKS, 0, "name", text.into())?;
    let last = (u64::from(base) + topology.gpus.len() as u64).into();
    name("process_sort_index", LINKS, 0, "sort_index", last)?;
    let tracks: BTreeSet<_> = (0..schedule.tasks.len() as u32)
        .map(|id| {
            let task = schedule.task(TaskId(id));
            (track(schedule, TaskId(id)), task.rank, task.lane)
        })
        .collect();
    for ((pid, tid), rank, lane) in tracks {
        let text = format!("rank {} {}", rank.0, names::lane(schedule, lane));
        name("thread_name", pid, tid, "name", text.into())?;
        name("thread_sort_index", pid, tid, "sort_index", tid.into())?;
    }
    Ok(())
}

fn arrows(events: &mut Events<'_>, schedule: &Schedule, timeline: &Timeline) -> io::Result<()> {
    let mut drawn = 0;
    let first = u64::from(events.base) << 32;
    for (index, span) in timeline.spans.iter().enumerate() {
        let to = TaskId(index as u32);
        for dep in schedule.deps(to) {
            let from = track(schedule, dep.task);
            let (via, target) = (via_name(dep.via), track(schedule, to));
            if from == target || drawn == MOST_ARROWS {
                continue;
            }
            drawn += 1;
            let end = micros(timeline.spans[dep.task.index()].end);
            // An arrow must begin inside its slice: a picosecond before the end.
            let begin = (end - 1e-6).max(micros(timeline.spans[dep.task.index()].start));
            events.push(json!({ "ph": "s", "id": first + drawn as u64, "name": via, "cat": "wait", "pid": from.0, "tid": from.1, "ts": begin }))?;
            events.push(json!({ "ph": "f", "bp": "e", "id": first + drawn as u64, "name": via, "cat": "wait", "pid": target.0, "tid": target.1, "ts": micros(span.start) }))?;
        }
    }
    Ok(())
}

fn via_name(via: Via) -> &'static str {
    match via {
        Via::Lane => "lane",
        Via::Launch => "launch",
        Via::Event => "event",
        Via::StreamFlag => "stream flag",
        Via::KernelFlag => "kernel flag",
    }
}

fn counters(events: &mut Events<'_>, topology: &Topology, timeline: &Timeline) -> io::Result<()> {
    for sample in &timeline.samples {
        // Sums that cancel may leave a negative zero.
        let used = sample.value + 0.0;
        let (pid, name, args) = match sample.counter {
            Counter::Link(link) => (
                LINKS,
                names::link(topology, link),
                json!({ "GB/s": used / 1e9 }),
            ),
            Counter::Sms(gpu) => (gpu + 1, "SMs held".to_owned(), json!({ "SMs": used })),
        };
        let ts = micros(sample.time);
        events.push(
            json!({ "ph": "C", "name": name, "pid": pid, "tid": 0, "ts": ts, "args": args }),
        )?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::report::fixture;

    fn events() -> Vec<Value> {
        let mut text = Vec::new();
        let (topology, schedule) = (fixture::pair(), fixture::schedule());
        write(&mut text, &topology, &schedule, &fixture::timeline()).unwrap();
        let trace: Value = serde_json::from_slice(&text).unwrap();
        trace["traceEvents"].as_array().unwrap().clone()
    }

    fn of_phase(phase: &str) -> Vec<Value> {
        events().into_iter().filter(|e| e["ph"] == phase).collect()
    }

    #[test]
    fn tracks_never_overlap() {
        let mut tracks: BTreeMap<(u64, u64), Vec<(f64, f64)>> = BTreeMap::new();
        for event in of_phase("X") {
            let number = |key: &str| event[key].as_f64().unwrap();
            assert!(number("dur") >= 0.0);
            tracks
                .entry((
                    event["pid"].as_u64().unwrap(),
                    event["tid"].as_u64().unwrap(),
                ))
                .or_default()
                .push((number("ts"), number("ts") + number("dur")));
        }
        assert_eq!(tracks.len(), 4);
        for slices in tracks.values_mut() {
            slices.sort_by(|a, b| a.0.total_cmp(&b.0));
            assert!(slices.windows(2).all(|two| two[0].1 <= two[1].0 + 1e-9));
        }
    }

    #[test]
    fn timelines_side_by_side_share_no_process_and_no_arrow() {
        let mut text = Vec::new();
        let (topology, schedule) = (fixture::pair(), fixture::schedule());
        let timeline = fixture::timeline();
        let both = [("measured", &timeline), ("simulated", &timeline)];
        write_all(&mut text, &topology, &schedule, &both).unwrap();
        let trace: Value = serde_json::from_slice(&text).unwrap();
        let all = trace["traceEvents"].as_array().unwrap();
        assert_eq!(all.len(), 2 * events().len());
        let numbers = |key: &str, phase: &str| {
            let of: Vec<u64> = all
                .iter()
                .filter(|e| e["ph"] == phase)
                .map(|e| e[key].as_u64().unwrap())
                .collect();
            let (first, second) = of.split_at(of.len() / 2);
            (first.to_vec(), second.to_vec())
        };
        for (key, phase) in [("pid", "X"), ("pid", "C"), ("id", "s")] {
            let (first, second) = numbers(key, phase);
            assert!(first.iter().all(|number| !second.contains(number)));
        }
        let names: Vec<String> = all
            .iter()
            .filter(|e| e["name"] == "process_name")
            .map(|e| e["args"]["name"].as_str().unwrap().to_owned())
            .collect();
        assert!(names[0].starts_with("measured: ") && names[5] == "simulated: links");
    }

    #[test]
    fn every_track_has_a_name() {
        let names: Vec<(u64, String)> = of_phase("M")
            .iter()
            .filter(|event| event["name"] == "thread_name")
            .map(|event| {
                (
                    event["pid"].as_u64().unwrap(),
                    event["args"]["name"].to_string(),
                )
            })
            .collect();
        let text = |pid, name: &str| (pid, format!("\"{name}\""));
        assert_eq!(
            names,
            [
                text(1, "rank 0 compute"),
                text(1, "rank 0 copy"),
                text(2, "rank 1 compute"),
                text(2, "rank 1 copy")
            ]
        );
    }

    #[test]
    fn arrows_join_tracks_and_go_forward() {
        let (starts, ends) = (of_phase("s"), of_phase("f"));
        assert_eq!(starts.len(), 2);
        for (start, end) in starts.iter().zip(&ends) {
            assert_eq!(start["id"], end["id"]);
            assert_ne!(start["pid"], end["pid"]);
            assert!(start["ts"].as_f64() <= end["ts"].as_f64());
        }
    }

    #[test]
    fn counters_follow_the_samples() {
        let counters = of_phase("C");
        assert_eq!(counters.len(), 4);
        assert_eq!(counters[0]["name"], "gpu0->gpu1");
        assert_eq!(counters[0]["args"]["GB/s"], 42.0);
        assert_eq!(counters[2]["args"]["SMs"], 4.0);
        // The fixture's sample is a negative zero.
        assert_eq!(counters[1]["args"]["GB/s"].to_string(), "0.0");
    }
}
