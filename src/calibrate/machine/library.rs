//! NCCL: all-gather, reduce-scatter and all-reduce over sizes.
//!
//! For n GPUs, with the steps (n − 1) · rounds (one round, two for an all-reduce) and s the bytes a
//! member sends, (n − 1)/n of the whole a round:
//!
//! ```text
//! time = base + steps · step + s / rate
//! ```

use super::Section;
use super::book::Book;
use super::copies::size;
use super::estimate::{Estimate, fit};
use super::file::PREFIX;
use super::lab::Lab;
use crate::device::DType;
use crate::gpu::GpuError;
use crate::gpu::env::Library;
use crate::gpu::raw::nccl::{Call, Comms, Op};

pub const SECTION: Section = Section {
    name: "library",
    about: "collectives of NCCL",
    share: 5,
    run,
};

/// Names of collectives, and their rounds.
pub(super) const KINDS: [(&str, f64); 3] = [
    ("all-gather", 1.0),
    ("reduce-scatter", 1.0),
    ("all-reduce", 2.0),
];

/// The library's communicators of all GPUs; `None` with a note where there are none to be had.
pub(super) fn comms(lab: &Lab<'_>, book: &Book<'_>) -> Result<Option<Comms>, GpuError> {
    if lab.units.len() < 2 {
        book.note("one GPU has nobody to gather from");
        return Ok(None);
    }
    if let Err(error) = lab.session.require(Library::Nccl) {
        book.note(format!("skipped: {error}"));
        return Ok(None);
    }
    let gpus: Vec<_> = lab.units.iter().map(|unit| unit.gpu.clone()).collect();
    Comms::new(&gpus).map(Some)
}

fn run(lab: &Lab<'_>, book: &Book<'_>) -> Result<(), GpuError> {
    let members = lab.units.len() as u64;
    let Some(comms) = comms(lab, book)? else {
        return Ok(());
    };
    let most = lab.units[0]
        .most(members)
        .min(if lab.quick { 16 << 20 } else { 256 << 20 });
    // A protocol gives way to another at once, so that there are four sizes between powers of two.
    let sizes: Vec<u64> = (12..)
        .step_by(if lab.quick { 2 } else { 1 })
        .flat_map(|i| {
            [
                1_u64 << i,
                9 << (i - 3),
                5 << (i - 2),
                3 << (i - 1),
                7 << (i - 2),
            ]
        })
        .filter(|bytes| !lab.quick || bytes.is_power_of_two())
        .take_while(|bytes| *bytes <= most)
        .collect();
    let lanes: Vec<(usize, usize)> = (0..lab.units.len()).map(|g| (g, 0)).collect();
    let mut rows = Vec::new();
    for (name, rounds) in KINDS {
        for &each in &sizes {
            let call = || collective(lab, &comms, (name, each), 0);
            // Once by itself: connections are made at the first call.
            call()?;
            lab.finish()?;
            let mut times = Vec::new();
            for rep in 0..=lab.reps(3, 12) {
                let ends = lab.sample(&lanes, call)?;
                if rep > 0 {
                    times.push(ends.into_iter().fold(0.0, f64::max));
                }
            }
            let steps = (members - 1) as f64;
            // `each` is a member's part of the whole; an all-reduce moves every part twice.
            let sent = each as f64 * steps * rounds;
            rows.extend(times.iter().map(|&t| ([1.0, steps * rounds, sent], t)));
            book.times(name, each as f64, &times);
            let rate = Estimate::median(&times).map(|t| t.map(|t| sent / t));
            book.fact(&format!("nccl.{name}.{}", size(each)), rate);
            book.fact(
                &format!("{PREFIX}{name}.{}", sent as u64),
                Estimate::median(&times),
            );
            if book.spent() {
                book.note(format!("out of time after {name} of {each} bytes"));
                break;
            }
        }
    }
    if let Some([base, step, per_byte]) = fit(&rows) {
        book.fact("nccl.base", Some(base));
        book.fact("nccl.step", Some(step));
        book.fact("nccl.rate", Some(per_byte.map(f64::recip)));
    }
    Ok(())
}

/// One collective whose parts have `each` bytes, in stream `lane` of every GPU.
pub(super) fn collective(
    lab: &Lab<'_>,
    comms: &Comms,
    (name, each): (&str, u64),
    lane: usize,
) -> Result<(), GpuError> {
    let members = lab.units.len() as u64;
    let whole = each * members;
    let calls = lab
        .units
        .iter()
        .enumerate()
        .map(|(member, unit)| {
            let op = match name {
                "all-gather" => Op::AllGather {
                    input: unit.source(0, each)?,
                    output: unit.target(0, whole)?,
                },
                "reduce-scatter" => Op::ReduceScatter {
                    input: unit.source(0, whole)?,
                    output: unit.target(0, each)?,
                },
                _ => Op::AllReduce {
                    input: unit.source(0, whole)?,
                    output: unit.target(0, whole)?,
                },
            };
            Ok(Call {
                member: member as u32,
                stream: &unit.streams[lane],
                op,
            })
        })
        .collect::<Result<Vec<_>, GpuError>>()?;
    comms.group(DType::Bf16, &calls)
}
