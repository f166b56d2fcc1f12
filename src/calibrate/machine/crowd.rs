//! Collectives of the library beside GEMMs: how much each slows the other, who gets the SMs, and how
//! many blocks a collective has.
//!
//! ```text
//! collective first    stream 1  collective                 GEMM first    stream 1  pause ─ collective
//!                     stream 0  pause ─ GEMM ────────                    stream 0  GEMM ─────────────
//! in turn             stream 0  GEMM ─ signal ─ GEMM ────
//!                     stream 1           └─ collective
//! ```
//!
//! The GEMM outlasts the collective. Each is set against itself alone in the same round:
//!
//! ```text
//! collective = its time beside the GEMM / alone
//! gemm       = speed of the GEMM meanwhile = 1 − (time beside − time alone) / (collective's time − pause)
//! late       = time of a collective that comes second / alone
//! ```

use std::time::Duration;

use super::Section;
use super::book::Book;
use super::copies::size;
use super::estimate::Estimate;
use super::lab::{LANES, Lab};
use super::library::{KINDS, collective, comms};
use super::products::Ready;
use crate::gpu::GpuError;
use crate::gpu::raw::nccl::Comms;
use crate::gpu::raw::{Event, Launched};

pub const SECTION: Section = Section {
    name: "crowd",
    about: "collectives beside GEMMs",
    share: 4,
    run,
};

/// The collective's stream, which has priority, as in runs.
pub(super) const LIBRARY: usize = 1;
/// What the second waits, so that the first holds its SMs.
pub(super) const PAUSE: Duration = Duration::from_micros(15);
/// GEMMs `[m, n, k]` and the bytes of a member's part beside each.
const PAIRS: [([u64; 3], u64); 3] = [
    ([4096, 4096, 4096], 2 << 20),
    ([8192, 4096, 4096], 8 << 20),
    ([16384, 4096, 8192], 64 << 20),
];
/// The first GEMM in turn, the second, and the collective between.
const TURN: ([u64; 3], [u64; 3], u64) = ([1024, 4096, 4096], [8192, 4096, 4096], 16 << 10);

/// What runs.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
enum Order {
    Collective,
    Gemm,
    CollectiveFirst,
    GemmFirst,
}

const ORDERS: [Order; 4] = [
    Order::Collective,
    Order::Gemm,
    Order::CollectiveFirst,
    Order::GemmFirst,
];

fn run(lab: &Lab<'_>, book: &Book<'_>) -> Result<(), GpuError> {
    let Some(comms) = comms(lab, book)? else {
        return Ok(());
    };
    for (kind, _) in KINDS {
        for each in [64 << 10, 1 << 20, 2 << 20, 4 << 20, 8 << 20, 64 << 20_u64] {
            blocks(lab, book, &comms, (kind, each))?;
        }
    }
    for (shape, each) in PAIRS {
        let gemms = ready(lab, shape)?;
        for (kind, _) in KINDS {
            if book.spent() {
                book.note(format!("out of time before {kind} beside {shape:?}"));
                return Ok(());
            }
            beside(lab, book, &comms, &gemms, (kind, each))?;
        }
    }
    KINDS
        .iter()
        .try_for_each(|(kind, _)| in_turn(lab, book, &comms, kind))
}

/// A GEMM on each GPU.
pub(super) fn ready(lab: &Lab<'_>, shape: [u64; 3]) -> Result<Vec<Ready>, GpuError> {
    (0..lab.units.len())
        .map(|g| Ready::new(lab, g, shape))
        .collect()
}

pub(super) fn gemm(lab: &Lab<'_>, gemms: &[Ready]) -> Result<(), GpuError> {
    let mut all = gemms.iter().enumerate();
    all.try_for_each(|(g, gemm)| gemm.run(lab, g, &lab.units[g].streams[0]))
}

pub(super) fn pause(lab: &Lab<'_>, lane: usize) -> Result<(), GpuError> {
    (lab.units.iter()).try_for_each(|unit| unit.kernels.delay(&unit.streams[lane], PAUSE))
}

/// What a collective is launched with on each GPU, as it says when it is recorded.
pub(super) fn launched(
    lab: &Lab<'_>,
    comms: &Comms,
    (kind, each): (&str, u64),
) -> Result<Vec<Launched>, GpuError> {
    // Once by itself: connections are made at the first call.
    collective(lab, comms, (kind, each), LIBRARY)?;
    lab.finish()?;
    let events = (lab.units.iter())
        .map(|unit| Event::new(&unit.gpu, false))
        .collect::<Result<Vec<_>, _>>()?;
    let origin = &lab.units[0].streams[LIBRARY];
    origin.begin_capture()?;
    let recorded = (|| {
        origin.record(&events[0])?;
        for unit in &lab.units[1..] {
            unit.streams[LIBRARY].wait(&events[0])?;
        }
        collective(lab, comms, (kind, each), LIBRARY)?;
        for (unit, event) in lab.units.iter().zip(&events).skip(1) {
            unit.streams[LIBRARY].record(event)?;
            origin.wait(event)?;
        }
        Ok(())
    })();
    // Ended whatever happened, so that the stream can be used again.
    let graph = origin.end_capture();
    recorded?;
    graph?.kernels()
}

/// Notes thread blocks of a collective, their threads and clusters.
fn blocks(
    lab: &Lab<'_>,
    book: &Book<'_>,
    comms: &Comms,
    (kind, each): (&str, u64),
) -> Result<(), GpuError> {
    let kernels = launched(lab, comms, (kind, each))?;
    let name = format!("crowd.{kind}.{}", size(each));
    let most = |of: fn(&Launched) -> u32| kernels.iter().map(of).max();
    for (what, count) in [
        ("blocks", most(|kernel| kernel.blocks)),
        ("threads", most(|kernel| kernel.threads)),
        ("cluster", most(|kernel| kernel.cluster)),
    ] {
        let count = count.map(|count| Estimate::exact(f64::from(count), 1));
        book.fact(&format!("{name}.{what}"), count);
    }
    Ok(())
}

fn beside(
    lab: &Lab<'_>,
    book: &Book<'_>,
    comms: &Comms,
    gemms: &[Ready],
    (kind, each): (&str, u64),
) -> Result<(), GpuError> {
    let lanes: Vec<(usize, usize)> = (0..lab.units.len())
        .flat_map(|g| [(g, 0), (g, LIBRARY)])
        .collect();
    let pause_s = PAUSE.as_secs_f64();
    let [mut slowed, mut speeds, mut lates] = [const { Vec::new() }; 3];
    for rep in 0..=lab.reps(3, 12) {
        // (GEMM, collective), the slowest GPU's.
        let mut times = [[0.0; 2]; ORDERS.len()];
        for (order, times) in ORDERS.into_iter().zip(&mut times) {
            let ends = lab.sample(&lanes, || match order {
                Order::Collective => collective(lab, comms, (kind, each), LIBRARY),
                Order::Gemm => pause(lab, 0).and_then(|()| gemm(lab, gemms)),
                Order::CollectiveFirst => {
                    collective(lab, comms, (kind, each), LIBRARY)?;
                    pause(lab, 0)?;
                    gemm(lab, gemms)
                }
                Order::GemmFirst => {
                    gemm(lab, gemms)?;
                    pause(lab, LIBRARY)?;
                    collective(lab, comms, (kind, each), LIBRARY)
                }
            })?;
            for (end, (_, lane)) in ends.into_iter().zip(&lanes) {
                let time = &mut times[usize::from(*lane == LIBRARY)];
                *time = end.max(*time);
            }
        }
        if rep == 0 {
            continue;
        }
        let [[_, alone], [gemm, _], [beside, first], [_, second]] = times;
        slowed.push(first / alone);
        speeds.push(1.0 - (beside - gemm) / (first - pause_s));
        lates.push((second - pause_s) / alone);
    }
    let name = format!("crowd.{kind}.{}", size(each));
    for (what, values) in [("collective", &slowed), ("gemm", &speeds), ("late", &lates)] {
        book.raw(&format!("{name}.{what}"), each as f64, "ratio", values);
        book.fact(&format!("{name}.{what}"), Estimate::median(values));
    }
    Ok(())
}

/// A GEMM, then at once another and, on a signal, a small collective: its time from the first GEMM's
/// end on less that of the collective by itself.
fn in_turn(lab: &Lab<'_>, book: &Book<'_>, comms: &Comms, kind: &str) -> Result<(), GpuError> {
    let (first, second, each) = TURN;
    let (first, second) = (ready(lab, first)?, ready(lab, second)?);
    let ended = (lab.units.iter())
        .map(|unit| Event::new(&unit.gpu, false))
        .collect::<Result<Vec<_>, _>>()?;
    let alone: Vec<(usize, usize)> = (0..lab.units.len()).map(|g| (g, LIBRARY)).collect();
    let lanes: Vec<(usize, usize)> = (0..LANES.min(2))
        .flat_map(|lane| (0..lab.units.len()).map(move |g| (g, lane)))
        .collect();
    let mut extras = Vec::new();
    for rep in 0..=lab.reps(3, 30) {
        let by_itself = lab.sample(&alone, || collective(lab, comms, (kind, each), LIBRARY))?;
        let by_itself = by_itself.into_iter().fold(0.0, f64::max);
        let ends = lab.sample(&lanes, || {
            gemm(lab, &first)?;
            for (unit, ended) in lab.units.iter().zip(&ended) {
                unit.mark(&unit.streams[0])?;
                unit.streams[0].record(ended)?;
            }
            gemm(lab, &second)?;
            for (unit, ended) in lab.units.iter().zip(&ended) {
                unit.streams[LIBRARY].wait(ended)?;
            }
            collective(lab, comms, (kind, each), LIBRARY)
        })?;
        if rep == 0 {
            continue;
        }
        let collectives = ends.iter().skip(lab.units.len());
        let mut extra = 0f64;
        for (unit, end) in lab.units.iter().zip(collectives) {
            extra = extra.max(end - unit.marked()?);
        }
        extras.push(extra - by_itself);
    }
    let name = format!("crowd.{kind}.turn");
    book.times(&name, each as f64, &extras);
    book.fact(&name, Estimate::median(&extras));
    Ok(())
}
