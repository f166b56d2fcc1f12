//! What it costs to hand work from one stream to another: events and flags, on one GPU and between
//! two, awaited before and after they come.
//!
//! ```text
//! stream A   delay d₀ ─ signal ──────────────── wait ─ delay d₂ ─ signal …
//! stream B              wait ─ delay d₁ ─ signal
//!                              t₀             t₁                   times of the signals
//! hand-off hᵢ = tᵢ − tᵢ₋₁ − dᵢ        in one stream: h₀;        extra = h − h₀
//! ```
//!
//! All waits but those called satisfied are blocked when they are reached, for dᵢ + hᵢ. Between two
//! GPUs only every second signal has a time of the first GPU, and h is half of what a round adds.

use std::time::Duration;

use super::Section;
use super::book::Book;
use super::estimate::{Estimate, fit};
use super::lab::{Lab, Unit};
use super::lattice::granularity;
use crate::gpu::GpuError;
use crate::gpu::kernels::{Epoch, MOST};
use crate::gpu::raw::{Event, Stream};

pub const SECTION: Section = Section {
    name: "signals",
    about: "events and flags",
    share: 3,
    run,
};

/// Hand-offs of one sample.
const HOPS: usize = 24;
/// The stream beside the first.
const OTHER: usize = 2;
/// Words of flags, behind those of the barrier.
const FLAGS: u64 = 1024;
const BARRIER: u64 = 2048;

#[derive(Copy, Clone, Debug, PartialEq, Eq)]
enum Signal {
    /// None: one stream.
    Order,
    Event,
    Value,
}

fn run(lab: &Lab<'_>, book: &Book<'_>) -> Result<(), GpuError> {
    satisfied(lab, book)?;
    let mut epoch = 0;
    let order = hops(lab, book, "order", Signal::Order, 0, &mut epoch)?;
    let order = Estimate::median(&order);
    book.fact("signal.order", order);
    let mut kinds = vec![
        ("event.same", Signal::Event, 0),
        ("value.same", Signal::Value, 0),
    ];
    if lab.units.len() > 1 {
        kinds.push(("event.peer", Signal::Event, 1));
        if lab.peers {
            kinds.push(("value.peer", Signal::Value, 1));
        }
    }
    for (name, signal, far) in kinds {
        let found = hops(lab, book, name, signal, far, &mut epoch)?;
        let extra = Estimate::median(&found).zip(order).map(|(h, o)| h.less(o));
        book.fact(&format!("{name}.extra"), extra);
    }
    if lab.peers && lab.units.len() > 1 {
        barriers(lab, book)?;
    }
    Ok(())
}

/// Waits and writes that hold nothing up, one behind another.
fn satisfied(lab: &Lab<'_>, book: &Book<'_>) -> Result<(), GpuError> {
    let unit = &lab.units[0];
    let passed = Event::new(&unit.gpu, false)?;
    unit.streams[OTHER].record(&passed)?;
    lab.finish()?;
    let flag = unit.word(FLAGS - 8, 4)?;
    let far = lab.units.get(1).filter(|_| lab.peers);
    let far = far.map(|unit| unit.word(FLAGS - 8, 4)).transpose()?;
    let spare = Event::new(&unit.gpu, false)?;
    type Call<'c> = (
        &'static str,
        Box<dyn Fn(&Stream) -> Result<(), GpuError> + 'c>,
    );
    let mut calls: Vec<Call<'_>> = vec![
        ("event.satisfied", Box::new(|s| s.wait(&passed))),
        ("event.record", Box::new(|s| s.record(&spare))),
        ("value.satisfied", Box::new(move |s| s.wait_value(flag, 0))),
        ("value.write", Box::new(move |s| s.write_value(flag, 0))),
    ];
    if let Some(far) = far {
        calls.push(("value.write.peer", Box::new(move |s| s.write_value(far, 0))));
    }
    for (name, call) in calls {
        let mut rows = Vec::new();
        for q in [1, 8, 16, 32, 64_u32] {
            let times = (0..lab.reps(4, 12))
                .map(|_| lab.time(0, |s| (0..q).try_for_each(|_| call(s))))
                .collect::<Result<Vec<_>, _>>()?;
            rows.extend(times.iter().map(|&t| ([1.0, f64::from(q)], t)));
            book.times(name, f64::from(q), &times);
        }
        book.fact(name, fit(&rows).map(|[_, each]| each));
    }
    Ok(())
}

/// The hand-offs' times \[s\]; `far` is the other stream's GPU.
fn hops(
    lab: &Lab<'_>,
    book: &Book<'_>,
    name: &str,
    signal: Signal,
    far: usize,
    epoch: &mut u32,
) -> Result<Vec<f64>, GpuError> {
    let mut rng = fastrand::Rng::with_seed(7);
    let places = [(0, 0), (far, OTHER)];
    // Timed events of both sides; only those of GPU 0 are read when the other is far.
    let events = (0..HOPS)
        .map(|i| Event::new(&side(lab, places[turn(signal, i)]).0.gpu, true))
        .collect::<Result<Vec<_>, _>>()?;
    let (mut waits, mut found) = (Vec::new(), Vec::new());
    for rep in 0..=lab.reps(3, 20) {
        let delays: Vec<u64> = (0..HOPS).map(|_| rng.u64(2_000..40_000)).collect();
        let mut lanes = vec![places[0]];
        if signal != Signal::Order {
            lanes.push(places[1]);
        }
        lab.sample(&lanes, || {
            for i in 0..HOPS {
                let (unit, stream) = side(lab, places[turn(signal, i)]);
                match signal {
                    Signal::Event if i > 0 => stream.wait(&events[i - 1])?,
                    Signal::Value if i > 0 => {
                        stream.wait_value(unit.word(FLAGS + turn(signal, i) as u64, 4)?, *epoch)?;
                    }
                    _ => {}
                }
                unit.kernels
                    .delay(stream, Duration::from_nanos(delays[i]))?;
                stream.record(&events[i])?;
                if signal == Signal::Value && i + 1 < HOPS {
                    *epoch += 1;
                    let (next, _) = side(lab, places[turn(signal, i + 1)]);
                    let flag = next.word(FLAGS + turn(signal, i + 1) as u64, 4)?;
                    stream.write_value(flag, *epoch)?;
                }
            }
            Ok(())
        })?;
        if rep == 0 {
            continue;
        }
        let step = if far == 0 { 1 } else { 2 };
        for i in (step..HOPS).step_by(step) {
            let between = events[i - step].seconds_to(&events[i])?;
            let delay: u64 = delays[i + 1 - step..=i].iter().sum();
            let hop = (between - delay as f64 * 1e-9) / step as f64;
            waits.push(between / step as f64);
            found.push(hop);
        }
        if book.spent() {
            book.note("out of time; fewer samples");
            break;
        }
    }
    book.times(&format!("{name}, blocked for"), 0.0, &waits);
    book.times(&format!("{name}, hand-off"), 0.0, &found);
    if far == 0 && signal != Signal::Order {
        match granularity(&waits) {
            Some((g, sure)) => {
                book.fact(
                    &format!("{name}.granularity"),
                    Some(Estimate::exact(g, waits.len())),
                );
                book.note(format!(
                    "{name}: waits end on a lattice of {:.2} us (concentration {sure:.2})",
                    g * 1e6
                ));
            }
            None => book.note(format!("{name}: no lattice")),
        }
    }
    Ok(found)
}

/// Which of the two streams takes turn `i`.
const fn turn(signal: Signal, i: usize) -> usize {
    match signal {
        Signal::Order => 0,
        _ => i % 2,
    }
}

fn side<'l>(lab: &'l Lab<'_>, (gpu, lane): (usize, usize)) -> (&'l Unit, &'l Stream) {
    (&lab.units[gpu], &lab.units[gpu].streams[lane])
}

/// Barriers of all GPUs one behind another: each is a kernel, a flag written across and a spin.
fn barriers(lab: &Lab<'_>, book: &Book<'_>) -> Result<(), GpuError> {
    let members = lab.units.len().min(MOST);
    let boards = lab.units[..members]
        .iter()
        .map(|unit| unit.word(BARRIER, 64))
        .collect::<Result<Vec<_>, _>>()?;
    let lanes: Vec<(usize, usize)> = (0..members).map(|g| (g, 0)).collect();
    let (mut rows, mut epoch) = (Vec::new(), 0);
    for q in [1, 8, 16, 32_u32] {
        let mut samples = Vec::new();
        for _ in 0..lab.reps(4, 12) {
            let times = lab.sample(&lanes, || {
                for _ in 0..q {
                    epoch += 1;
                    for (own, unit) in lab.units[..members].iter().enumerate() {
                        let number = Epoch::fixed(epoch);
                        let limit = unit.limit(100);
                        unit.kernels.barrier(
                            &unit.streams[0],
                            &boards,
                            own as u32,
                            number,
                            limit,
                        )?;
                    }
                }
                Ok(())
            })?;
            samples.push(times[0]);
            rows.push(([1.0, f64::from(q)], times[0]));
        }
        book.times("barriers", f64::from(q), &samples);
    }
    book.fact("barrier.each", fit(&rows).map(|[_, each]| each));
    Ok(())
}
