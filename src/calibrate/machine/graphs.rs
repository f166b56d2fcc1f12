//! Kernels one behind another and hand-offs between streams, in streams and in graphs.

use std::time::Duration;

use super::Section;
use super::book::Book;
use super::estimate::fit;
use super::lab::Lab;
use crate::gpu::GpuError;
use crate::gpu::raw::{Event, GraphExec};

pub const SECTION: Section = Section {
    name: "graphs",
    about: "kernels in a row, in streams and in graphs",
    share: 2,
    run,
};

const OTHER: usize = 2;
/// What a kernel of a chain lasts.
const DELAY: Duration = Duration::from_micros(6);

fn run(lab: &Lab<'_>, book: &Book<'_>) -> Result<(), GpuError> {
    let unit = &lab.units[0];
    let mut rows = Vec::new();
    for q in [1, 4, 8, 16, 32, 64_u32] {
        let times = (0..lab.reps(5, 20))
            .map(|_| {
                lab.time(0, |s| {
                    (0..q).try_for_each(|_| unit.kernels.delay(s, Duration::ZERO))
                })
            })
            .collect::<Result<Vec<_>, _>>()?;
        rows.extend(times.iter().map(|&t| ([1.0, f64::from(q - 1)], t)));
        book.times("kernels in a stream", f64::from(q), &times);
    }
    if let Some([first, each]) = fit(&rows) {
        book.fact("kernel.first", Some(first));
        book.fact("kernel.each", Some(each));
    }
    // (fact, GPU of the other stream, hand-offs, duration)
    let mut chains = vec![
        ("kernel.each.graph", None, Duration::ZERO),
        ("order.graph", None, DELAY),
        ("event.same.graph", Some(0), DELAY),
    ];
    if lab.units.len() > 1 {
        chains.push(("event.peer.graph", Some(1), DELAY));
    }
    for (name, other, delay) in chains {
        match chain(lab, book, name, other, delay) {
            Ok(()) => {}
            Err(error @ (GpuError::Timeout { .. } | GpuError::Unusable { .. })) => {
                return Err(error);
            }
            Err(error) => book.note(format!("{name}: {error}")),
        }
    }
    for name in ["event.same", "event.peer"] {
        let graph = book
            .get(&format!("{name}.graph"))
            .zip(book.get("order.graph"));
        let extra = graph.map(|(hop, order)| hop.less(order));
        book.fact(&format!("{name}.graph.extra"), extra);
    }
    Ok(())
}

/// A graph of q kernels, alternating with the other stream where there is one; time of each.
fn chain(
    lab: &Lab<'_>,
    book: &Book<'_>,
    name: &str,
    other: Option<usize>,
    delay: Duration,
) -> Result<(), GpuError> {
    let mut rows = Vec::new();
    for q in [2, 8, 24_u32] {
        let graph = capture(lab, other, delay, q)?;
        let origin = &lab.units[0].streams[0];
        let mut times = Vec::new();
        for rep in 0..=lab.reps(5, 15) {
            let time = lab.time(0, |_| graph.launch(origin))?;
            if rep > 0 {
                times.push(time);
            }
        }
        rows.extend(times.iter().map(|&t| ([1.0, f64::from(q)], t)));
        book.times(name, f64::from(q), &times);
    }
    if let Some([first, each]) = fit(&rows) {
        book.fact(&format!("{name}.first"), Some(first));
        book.fact(name, Some(each));
    }
    Ok(())
}

/// Such a graph, ready to launch.
pub fn capture(
    lab: &Lab<'_>,
    other: Option<usize>,
    delay: Duration,
    q: u32,
) -> Result<GraphExec, GpuError> {
    let origin = &lab.units[0].streams[0];
    let places = [(0, 0), other.map_or((0, 0), |gpu| (gpu, OTHER))];
    let events = (0..q as usize)
        .map(|i| Event::new(&lab.units[places[i % 2].0].gpu, false))
        .collect::<Result<Vec<_>, _>>()?;
    origin.begin_capture()?;
    let recorded = (|| {
        for i in 0..q as usize {
            let (gpu, lane) = places[i % 2];
            let (unit, stream) = (&lab.units[gpu], &lab.units[gpu].streams[lane]);
            if i > 0 && other.is_some() {
                stream.wait(&events[i - 1])?;
            }
            unit.kernels.delay(stream, delay)?;
            if other.is_some() {
                stream.record(&events[i])?;
            }
        }
        match other {
            Some(_) => origin.wait(&events[q as usize - 1]),
            None => Ok(()),
        }
    })();
    // Ended whatever happened, so that the stream can be used again.
    let graph = origin.end_capture();
    recorded?;
    let ready = graph?.instantiate()?;
    ready.upload(origin)?;
    Ok(ready)
}
