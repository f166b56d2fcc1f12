//! When GEMMs end whose last blocks find their SMs held for a while, and when a collective's blocks free theirs.
//!
//! ```text
//! GEMM        stream 1  24 blocks hold SMs for T ──────
//!             stream 0  pause ─ time ─ GEMM ─────────── time
//!             stream 2  longer pause ─ as many blocks as SMs, which write when they began
//! collective  stream 1  pause ─ time ─ collective ─ time
//!             stream 2  longer pause ─ as many blocks as SMs, which write when they began
//! ```
//!
//! The blocks that hold SMs begin in clusters as large as a collective's. Those that only write when they began tell
//! when blocks of the GEMM, or of the collective, leave their SMs: the last as late as the last of these. On
//! further GPUs collectives begin at once, or find blocks that leave them as many SMs as they want, but not their
//! places.

use std::time::Duration;

use super::Section;
use super::book::Book;
use super::copies::size;
use super::crowd::{LIBRARY, PAUSE, ready};
use super::lab::{Lab, Unit};
use super::library::{collective, comms};
use super::products::Ready;
use super::race::on_fewer;
use crate::gpu::GpuError;
use crate::gpu::raw::Region;
use crate::gpu::raw::nccl::Comms;

pub const SECTION: Section = Section {
    name: "held",
    about: "GEMMs whose last blocks wait for held SMs",
    share: 2,
    run,
};

/// Blocks that hold SMs, in clusters of so many: as a collective on two H200.
const HOLD: (u32, u32) = (24, 4);
/// Stream of the blocks that write when they began.
const PROBE: usize = 2;
/// How much later these come.
const LATER: Duration = Duration::from_micros(12);
/// For how long SMs are held, of the GEMM's own time.
const SHARES: [f64; 9] = [0.1, 0.3, 0.45, 0.55, 0.7, 0.9, 1.1, 1.4, 2.0];
/// Bytes of a member's part.
const SIZES: [u64; 3] = [256 << 10, 2 << 20, 8 << 20];
/// Words of 8 bytes for moments: before, behind, and of each block.
const MOMENTS: u64 = 1024;

/// GEMMs `[m, n, k]` of one round and of several by tiles and clusters of many forms, on all SMs or on those that a
/// collective leaves; none is of an experiment.
const GEMMS: [(bool, [u64; 3]); 16] = [
    (false, [128, 28672, 5120]),
    (false, [512, 22016, 4096]),
    (false, [576, 9152, 8192]),
    (false, [512, 27648, 2560]),
    (false, [512, 57344, 2048]),
    (false, [544, 14144, 24192]),
    (false, [448, 18304, 5120]),
    (false, [512, 11712, 5120]),
    (true, [576, 14144, 24192]),
    (true, [2304, 3520, 5568]),
    (true, [3072, 11200, 2496]),
    (true, [512, 10240, 6144]),
    (true, [512, 12288, 5120]),
    (true, [352, 14144, 9152]),
    (true, [1824, 4096, 14336]),
    (true, [48, 24192, 14144]),
];

fn run(lab: &Lab<'_>, book: &Book<'_>) -> Result<(), GpuError> {
    if lab.units[0].kernels.clusters(HOLD.1).is_err() {
        book.note("GPUs without clusters: blocks of GEMMs find any SM");
        return Ok(());
    }
    if let Some(comms) = comms(lab, book)? {
        for name in ["all-gather", "reduce-scatter"] {
            for each in SIZES {
                collective(lab, &comms, (name, each), LIBRARY)?;
                lab.finish()?;
                for taken in [false, true] {
                    leaves(lab, book, &comms, (name, each), taken)?;
                }
            }
        }
    }
    for (fewer, shape) in GEMMS {
        if book.spent() {
            book.note(format!("out of time before {shape:?}"));
            return Ok(());
        }
        let gemms = match fewer {
            true => on_fewer(lab, shape)?,
            false => ready(lab, shape)?,
        };
        late(lab, book, &gemms[0], shape)?;
    }
    Ok(())
}

/// Where moments of a GPU are written.
fn moments(unit: &Unit) -> Result<[Region; 4], GpuError> {
    let part = |at: u64| unit.stage.region().cut(8 * MOMENTS * at, 8 * MOMENTS);
    Ok([part(0)?, part(1)?, part(2)?, part(3)?])
}

/// Moments of a part, from the first of part 0 on \[s\].
fn since(unit: &Unit, part: u64, count: usize) -> Result<Vec<f64>, GpuError> {
    let word = |at: u64| -> Result<u64, GpuError> {
        let (low, high) = (unit.stage.load(2 * at)?, unit.stage.load(2 * at + 1)?);
        Ok(u64::from(high) << 32 | u64::from(low))
    };
    let first = word(0)?;
    (0..count as u64)
        .map(|i| Ok((word(MOMENTS * part + i)? as f64 - first as f64) * 1e-9))
        .collect()
}

/// When each of so many blocks of the probe began, in order, from the first of part 0 on \[s\].
fn begins_of(unit: &Unit, count: u32) -> Result<Vec<f64>, GpuError> {
    let mut begins = since(unit, 2, count as usize)?;
    begins.sort_by(f64::total_cmp);
    Ok(begins)
}

/// A GEMM on the first GPU beside blocks that hold SMs.
fn late(lab: &Lab<'_>, book: &Book<'_>, gemm: &Ready, [m, n, k]: [u64; 3]) -> Result<(), GpuError> {
    let unit = &lab.units[0];
    let all = unit.gpu.attributes().sms;
    let [before, behind, begins, held] = moments(unit)?;
    let sample = |time: Option<Duration>, probe: Option<Duration>| -> Result<Vec<f64>, GpuError> {
        let streams = &unit.streams;
        lab.sample(&[(0, 0), (0, LIBRARY), (0, PROBE)], || {
            if let Some(time) = time {
                unit.kernels
                    .hold(&streams[LIBRARY], HOLD, PAUSE + time, held)?;
            }
            unit.kernels.delay(&streams[0], PAUSE)?;
            unit.kernels.stamp(&streams[0], before)?;
            gemm.run(lab, 0, &streams[0])?;
            unit.kernels.stamp(&streams[0], behind)?;
            if let Some(probe) = probe {
                unit.kernels.delay(&streams[PROBE], PAUSE + LATER)?;
                unit.kernels
                    .hold(&streams[PROBE], (all, 1), probe, begins)?;
            }
            Ok(())
        })?;
        match probe {
            None => since(unit, 1, 1),
            Some(_) => begins_of(unit, all),
        }
    };
    let name = format!(
        "m{m}n{n}k{k} on {}",
        if gemm.problem.sms > 0 {
            gemm.problem.sms
        } else {
            all
        }
    );
    let reps = lab.reps(2, 6);
    let mut times = Vec::new();
    for rep in 0..=reps {
        let time = sample(None, None)?;
        if rep > 0 {
            times.extend(time);
        }
    }
    book.times(&format!("{name} ends"), 0.0, &times);
    times.sort_by(f64::total_cmp);
    let own = times[times.len() / 2];
    let probe = Duration::from_secs_f64(4.0 * own);
    book.times(&format!("{name} frees"), 0.0, &sample(None, Some(probe))?);
    for share in SHARES {
        let time = Duration::from_secs_f64(share * own);
        let x = (time.as_secs_f64() * 1e6).round();
        let mut times = Vec::new();
        for _ in 0..reps {
            times.extend(sample(Some(time), None)?);
        }
        book.times(&format!("{name} ends"), x, &times);
        let frees = sample(Some(time), Some(probe))?;
        book.times(&format!("{name} frees"), x, &frees);
    }
    Ok(())
}

/// When a collective's blocks leave the SMs of the first GPU, where on the others all begin at once, or not.
fn leaves(
    lab: &Lab<'_>,
    book: &Book<'_>,
    comms: &Comms,
    (name, each): (&str, u64),
    taken: bool,
) -> Result<(), GpuError> {
    let lanes: Vec<(usize, usize)> = (0..lab.units.len())
        .flat_map(|g| [(g, 0), (g, LIBRARY), (g, PROBE)])
        .collect();
    let first = &lab.units[0];
    let all = first.gpu.attributes().sms;
    let rest = (all.saturating_sub(HOLD.0) / HOLD.1 * HOLD.1, HOLD.1);
    let long = Duration::from_micros(400);
    let mut ends = vec![Vec::new(); lab.units.len()];
    let mut frees = Vec::new();
    for rep in 0..=lab.reps(1, 5) {
        lab.sample(&lanes, || {
            for (g, unit) in lab.units.iter().enumerate() {
                let [before, _, begins, held] = moments(unit)?;
                let streams = &unit.streams;
                if g > 0 && taken {
                    unit.kernels.hold(&streams[0], rest, long, held)?;
                }
                unit.kernels.delay(&streams[LIBRARY], PAUSE)?;
                unit.kernels.stamp(&streams[LIBRARY], before)?;
                if g == 0 {
                    unit.kernels.delay(&streams[PROBE], PAUSE + LATER)?;
                    unit.kernels.hold(&streams[PROBE], (all, 1), long, begins)?;
                }
            }
            collective(lab, comms, (name, each), LIBRARY)?;
            for unit in &lab.units {
                let [_, behind, ..] = moments(unit)?;
                unit.kernels.stamp(&unit.streams[LIBRARY], behind)?;
            }
            Ok(())
        })?;
        if rep > 0 {
            for (unit, ends) in lab.units.iter().zip(&mut ends) {
                ends.extend(since(unit, 1, 1)?);
            }
            frees = begins_of(first, all)?;
        }
    }
    let how = if taken { "places taken" } else { "at once" };
    let name = format!("{name} {} {how}", size(each));
    for (g, ends) in ends.iter().enumerate() {
        book.times(&format!("{name} ends on {g}"), each as f64, ends);
    }
    book.times(&format!("{name} frees"), each as f64, &frees);
    Ok(())
}
