//! What each kind of call costs the host thread that makes it.

use std::time::{Duration, Instant};

use super::Section;
use super::book::Book;
use super::estimate::Estimate;
use super::graphs::capture;
use super::lab::Lab;
use crate::gpu::GpuError;
use crate::gpu::raw::{Event, Stream};

pub const SECTION: Section = Section {
    name: "submit",
    about: "what calls cost the host",
    share: 1,
    run,
};

/// Calls timed together, fewer than fill the driver's queue.
const CALLS: u32 = 100;

fn run(lab: &Lab<'_>, book: &Book<'_>) -> Result<(), GpuError> {
    let unit = &lab.units[0];
    let near = (unit.source(0, 4096)?, unit.target(0, 4096)?);
    let copy = match lab.units.get(1) {
        Some(peer) => (near.0, peer.target(0, 4096)?),
        None => near,
    };
    let flag = unit.word(64, 4)?;
    let (spare, passed) = (Event::new(&unit.gpu, false)?, Event::new(&unit.gpu, false)?);
    unit.streams[2].record(&passed)?;
    lab.finish()?;
    let small = capture(lab, None, Duration::ZERO, 1)?;
    let large = capture(lab, None, Duration::ZERO, 33)?;
    type Call<'c> = (
        &'static str,
        Box<dyn Fn(&Stream) -> Result<(), GpuError> + 'c>,
    );
    let calls: Vec<Call<'_>> = vec![
        (
            "kernel",
            Box::new(|s| unit.kernels.delay(s, Duration::ZERO)),
        ),
        ("copy", Box::new(move |s| s.copy(copy.0, copy.1))),
        ("record", Box::new(|s| s.record(&spare))),
        ("wait", Box::new(|s| s.wait(&passed))),
        ("write", Box::new(move |s| s.write_value(flag, 0))),
        ("wait-value", Box::new(move |s| s.wait_value(flag, 0))),
        ("graph", Box::new(|s| small.launch(s))),
        ("graph33", Box::new(|s| large.launch(s))),
    ];
    let stream = &unit.streams[0];
    let mut samples = vec![Vec::new(); calls.len()];
    for rep in 0..=lab.reps(4, 20) {
        for ((_, call), samples) in calls.iter().zip(&mut samples) {
            let begin = Instant::now();
            for _ in 0..CALLS {
                call(stream)?;
            }
            let each = begin.elapsed().as_secs_f64() / f64::from(CALLS);
            lab.finish()?;
            if rep > 0 {
                samples.push(each);
            }
        }
        if book.spent() {
            break;
        }
    }
    for ((name, _), samples) in calls.iter().zip(&samples) {
        book.times(name, f64::from(CALLS), samples);
        book.fact(&format!("submit.{name}"), Estimate::median(samples));
    }
    Ok(())
}
