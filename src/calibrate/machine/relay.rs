//! Work that is handed on by events from one engine of a machine to another: kernels and copies of a
//! GPU, copies of two GPUs, copies into and out of the host's memory.
//!
//! ```text
//! local    kernel ─►copy ─►kernel ─►copy …            two streams of a GPU
//! peer     0→1 ─►1→0 ─►0→1 …                          a stream on each GPU
//! host     out of 0 ─►into 1 ─►out of 1 ─►into 0 …    two streams on each GPU
//! ```
//!
//! Chains of q pieces of work; the slope over q is what a piece takes with its hand-over.

use std::time::Duration;

use super::Section;
use super::book::Book;
use super::copies::size;
use super::estimate::fit;
use super::lab::Lab;
use crate::gpu::GpuError;
use crate::gpu::raw::Event;

pub const SECTION: Section = Section {
    name: "relay",
    about: "copies handed on by events",
    share: 3,
    run,
};

/// What a kernel of a chain lasts.
const DELAY: Duration = Duration::from_micros(6);
/// Bytes of a copy.
const SIZES: [u64; 3] = [4 << 10, 256 << 10, 2 << 20];
/// Pieces of work of a chain.
const LENGTHS: [usize; 4] = [2, 4, 8, 16];

#[derive(Copy, Clone, Debug, PartialEq, Eq)]
enum Way {
    Local,
    Peer,
    Host,
}

fn run(lab: &Lab<'_>, book: &Book<'_>) -> Result<(), GpuError> {
    let mut ways = vec![("local", Way::Local)];
    if lab.units.len() > 1 {
        ways.extend([("peer", Way::Peer), ("host", Way::Host)]);
    }
    for (name, way) in ways {
        for bytes in SIZES {
            let name = format!("relay.{name}.{}", size(bytes));
            let mut rows = Vec::new();
            for q in LENGTHS {
                let events = (0..q)
                    .map(|i| Event::new(&lab.units[place(way, i).0].gpu, false))
                    .collect::<Result<Vec<_>, _>>()?;
                let mut times = Vec::new();
                for rep in 0..=lab.reps(3, 12) {
                    let mut lanes: Vec<(usize, usize)> = (0..q).map(|i| place(way, i)).collect();
                    lanes.push((0, 0));
                    lanes.sort_unstable();
                    lanes.dedup();
                    let ends = lab.sample(&lanes, || chain(lab, way, bytes, &events))?;
                    if rep > 0 {
                        times.push(ends.into_iter().fold(0.0, f64::max));
                    }
                }
                rows.extend(times.iter().map(|&t| ([1.0, q as f64], t)));
                book.times(&name, q as f64, &times);
            }
            if let Some([first, each]) = fit(&rows) {
                book.fact(&format!("{name}.first"), Some(first));
                book.fact(&name, Some(each));
            }
            if book.spent() {
                book.note(format!("out of time after {name}"));
                return Ok(());
            }
        }
    }
    Ok(())
}

/// GPU and stream of piece i.
const fn place(way: Way, i: usize) -> (usize, usize) {
    match way {
        Way::Local => (0, [0, 2][i % 2]),
        Way::Peer => (i % 2, 2),
        Way::Host => [(0, 3), (1, 4), (1, 3), (0, 4)][i % 4],
    }
}

fn chain(lab: &Lab<'_>, way: Way, bytes: u64, events: &[Event]) -> Result<(), GpuError> {
    for (i, event) in events.iter().enumerate() {
        let (g, lane) = place(way, i);
        let (unit, stream) = (&lab.units[g], &lab.units[g].streams[lane]);
        if i > 0 {
            stream.wait(&events[i - 1])?;
        }
        // The host's memory is the stage of the GPU that the bytes come from.
        let stage = |g: usize| lab.units[g].stage.region().cut(0, bytes);
        match (way, i % 2) {
            (Way::Local, 0) => unit.kernels.delay(stream, DELAY)?,
            (Way::Local, _) => {
                let other = &lab.units[lab.units.len() - 1];
                stream.copy(unit.source(0, bytes)?, other.target(0, bytes)?)?;
            }
            (Way::Peer, _) => {
                let to = &lab.units[1 - g];
                stream.copy(unit.source(0, bytes)?, to.target(0, bytes)?)?;
            }
            (Way::Host, 0) => stream.copy(unit.source(0, bytes)?, stage(g)?)?,
            (Way::Host, _) => stream.copy(stage(1 - g)?, unit.target(0, bytes)?)?,
        }
        stream.record(event)?;
    }
    Ok(())
}
