//! What commands cost that stand between two kernels or two copies of a stream, and hand-offs by events
//! that carry no time.
//!
//! Chains of q kernels (or copies) with a command between each two, for some q; the slope over q less
//! that of the chain with nothing between is the command's cost. In a row by itself a command can be
//! hidden or take longer: what a schedule sees is this.

use std::time::Duration;

use super::Section;
use super::book::Book;
use super::estimate::{Estimate, fit};
use super::lab::Lab;
use super::products::Ready;
use crate::gpu::GpuError;
use crate::gpu::raw::{Event, Stream};

pub const SECTION: Section = Section {
    name: "between",
    about: "commands between kernels and copies",
    share: 4,
    run,
};

/// What a kernel of a chain lasts.
const DELAY: Duration = Duration::from_micros(6);
/// Bytes of a copy of a chain.
const COPY: u64 = 256 << 10;
/// Kernels of a chain.
const LENGTHS: [usize; 4] = [2, 6, 12, 24];
/// Lengths of chains of GEMMs, and their shape.
const FEW: [usize; 3] = [1, 3, 5];
const GEMM: [u64; 3] = [1024, 4096, 4096];
/// The stream beside the first.
const OTHER: usize = 2;
/// The word that is waited for and written.
const FLAG: u64 = 3072;

type Command<'c> = Box<dyn Fn(&Stream) -> Result<(), GpuError> + 'c>;

fn run(lab: &Lab<'_>, book: &Book<'_>) -> Result<(), GpuError> {
    let unit = &lab.units[0];
    let (spare, passed) = (Event::new(&unit.gpu, false)?, Event::new(&unit.gpu, false)?);
    unit.streams[OTHER].record(&passed)?;
    lab.finish()?;
    let (spare, passed) = (&spare, &passed);
    let flag = unit.word(FLAG, 4)?;
    let far = match lab.units.get(1).filter(|_| lab.peers) {
        Some(peer) => peer.word(FLAG, 4)?,
        None => flag,
    };
    let commands: Vec<(&str, Command<'_>)> = vec![
        ("nothing", Box::new(|_| Ok(()))),
        ("record", Box::new(move |s| s.record(spare))),
        ("wait", Box::new(move |s| s.wait(passed))),
        (
            "record-and-wait",
            Box::new(move |s| s.record(spare).and_then(|()| s.wait(passed))),
        ),
        ("flag-wait", Box::new(move |s| s.wait_value(flag, 0))),
        ("flag-write", Box::new(move |s| s.write_value(far, 0))),
    ];
    let delay = |s: &Stream| unit.kernels.delay(s, DELAY);
    chains(lab, book, "between", &LENGTHS, &delay, &commands)?;
    let gemm = Ready::new(lab, 0, GEMM)?;
    let product = |s: &Stream| gemm.run(lab, 0, s);
    chains(lab, book, "between.gemm", &FEW, &product, &commands)?;
    if let Some(peer) = lab.units.get(1) {
        let (from, to) = (unit.source(0, COPY)?, peer.target(0, COPY)?);
        let copy = |s: &Stream| s.copy(from, to);
        chains(lab, book, "between.copy", &LENGTHS, &copy, &commands)?;
    }
    let order = book.get("between.nothing");
    for (name, far) in [("hop.same", 0), ("hop.peer", 1)] {
        if far < lab.units.len() {
            let slope = hops(lab, book, name, far)?;
            let extra = slope.zip(order).map(|(hop, order)| hop.less(order));
            book.fact(&format!("{name}.extra"), extra);
        }
    }
    Ok(())
}

/// Chains with each of the commands, in turn; facts: the slope with nothing between, and what each
/// command adds to it.
fn chains(
    lab: &Lab<'_>,
    book: &Book<'_>,
    name: &str,
    lengths: &[usize],
    work: &dyn Fn(&Stream) -> Result<(), GpuError>,
    commands: &[(&str, Command<'_>)],
) -> Result<(), GpuError> {
    let mut times = vec![vec![Vec::new(); lengths.len()]; commands.len()];
    // All GPUs, whose barrier wakes the links up.
    let lanes: Vec<(usize, usize)> = (0..lab.units.len()).map(|g| (g, 0)).collect();
    let stream = &lab.units[0].streams[0];
    for rep in 0..=lab.reps(3, 15) {
        for ((_, command), times) in commands.iter().zip(&mut times) {
            let chain = |q: usize| {
                lab.sample(&lanes, || {
                    work(stream)?;
                    (1..q).try_for_each(|_| command(stream).and_then(|()| work(stream)))
                })
            };
            // Not counted: a link that has been idle lets its first write wait for 0.1 ms, barrier or not.
            chain(lengths[0])?;
            for (&q, times) in lengths.iter().zip(times) {
                let ends = chain(q)?;
                if rep > 0 {
                    times.push(ends[0]);
                }
            }
        }
        if rep > 1 && book.spent() {
            book.note(format!("{name}: out of time; fewer samples"));
            break;
        }
    }
    let mut nothing: Option<Estimate> = None;
    for ((command, _), times) in commands.iter().zip(&times) {
        let mut rows = Vec::new();
        for (&q, times) in lengths.iter().zip(times) {
            book.times(&format!("{name}: {command}"), q as f64, times);
            rows.extend(times.iter().map(|&t| ([1.0, q as f64], t)));
        }
        let slope = fit(&rows).map(|[_, each]| each);
        let fact = match nothing {
            None => slope,
            Some(nothing) => slope.map(|slope| slope.less(nothing)),
        };
        nothing = nothing.or(slope);
        book.fact(&format!("{name}.{command}"), fact);
    }
    Ok(())
}

/// Chains of kernels that change streams by events without times; the slope over hand-offs.
fn hops(
    lab: &Lab<'_>,
    book: &Book<'_>,
    name: &str,
    far: usize,
) -> Result<Option<Estimate>, GpuError> {
    let places = [(0, 0), (far, OTHER)];
    let most = LENGTHS.iter().copied().max().unwrap_or(1);
    let events = (0..most)
        .map(|i| Event::new(&lab.units[places[i % 2].0].gpu, false))
        .collect::<Result<Vec<_>, _>>()?;
    let mut rows = Vec::new();
    for q in LENGTHS {
        let mut times = Vec::new();
        for rep in 0..=lab.reps(3, 15) {
            let ends = lab.sample(&places, || {
                for i in 0..q {
                    let (gpu, lane) = places[i % 2];
                    let (unit, stream) = (&lab.units[gpu], &lab.units[gpu].streams[lane]);
                    if i > 0 {
                        stream.wait(&events[i - 1])?;
                    }
                    unit.kernels.delay(stream, DELAY)?;
                    stream.record(&events[i])?;
                }
                Ok(())
            })?;
            if rep > 0 {
                times.push(ends.into_iter().fold(0.0, f64::max));
            }
        }
        book.times(name, q as f64, &times);
        rows.extend(times.iter().map(|&t| ([1.0, q as f64], t)));
    }
    Ok(fit(&rows).map(|[_, each]| each))
}
