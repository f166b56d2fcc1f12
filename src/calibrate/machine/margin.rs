//! Collectives of the library beside a GEMM that leaves them as many SMs as they have blocks.
//!
//! ```text
//! stream 0  GEMM on fewer SMs ─────────────
//! stream 1  pause ─ collective
//! ```
//!
//! Free SMs need not be where a collective can use them: its blocks and the GEMM's begin in clusters,
//! each within one group of SMs ([`Scatter`]). The GEMM outlasts the collective, whose time is set against
//! that by itself of the same round:
//!
//! ```text
//! scattered = its time beside the GEMM / alone
//! block     = scattered / turns                what one block is busy for, of the time of all
//! ```
//!
//! Blocks and clusters are those that launches have when they are recorded; the driver says how many
//! clusters a GPU holds.

use super::Section;
use super::book::Book;
use super::copies::size;
use super::crowd::{LIBRARY, PAUSE, gemm, pause};
use super::estimate::Estimate;
use super::lab::Lab;
use super::library::{KINDS, collective, comms};
use super::products::{Ready, problem};
use crate::device::Scatter;
use crate::gpu::GpuError;
use crate::gpu::lt::Problem;
use crate::gpu::raw::nccl::Comms;

pub const SECTION: Section = Section {
    name: "margin",
    about: "collectives beside GEMMs on fewer SMs",
    share: 2,
    run,
};

/// The GEMM, and the bytes of a member's part beside it.
const SHAPE: [u64; 3] = [8192, 8192, 8192];
const SIZES: [u64; 4] = [256 << 10, 2 << 20, 8 << 20, 64 << 20];
/// SMs left beyond those that blocks need.
const MORE: [u32; 2] = [0, 8];

fn run(lab: &Lab<'_>, book: &Book<'_>) -> Result<(), GpuError> {
    let Some(comms) = comms(lab, book)? else {
        return Ok(());
    };
    let mut blocks = 0;
    let mut cluster = 1;
    for (kind, _) in KINDS {
        for each in SIZES {
            let launched = super::crowd::launched(lab, &comms, (kind, each))?;
            blocks = launched
                .iter()
                .fold(blocks, |most, kernel| most.max(kernel.blocks));
            cluster = launched
                .iter()
                .fold(cluster, |most, kernel| most.max(kernel.cluster));
        }
    }
    if cluster < 2 {
        book.note("collectives begin block by block here");
        return Ok(());
    }
    let places = lab.units[0].kernels.clusters(cluster)?;
    let count = |value: u32| Some(Estimate::exact(f64::from(value), 1));
    book.fact("margin.cluster", count(cluster));
    book.fact("margin.places", count(places));
    let wide = lab.units[0].kernels.clusters(2 * cluster)?;
    book.fact("margin.places.wide", count(wide));
    let all = lab.units[0].gpu.attributes().sms;
    let scatter = Scatter {
        cluster: Some(cluster),
        places: Some(places),
        ..Scatter::default()
    };
    for more in MORE {
        let sms = lab.units[0].gpu.attributes().sms;
        let sms = sms.saturating_sub(blocks + more).max(1);
        let gemms = (0..lab.units.len())
            .map(|g| {
                let problem = Problem {
                    sms,
                    ..problem(SHAPE)
                };
                Ready::of(lab, g, problem)
            })
            .collect::<Result<Vec<_>, _>>()?;
        let name = format!("margin.{}", blocks + more);
        let busy = own_blocks(lab, book, &name, &gemms[0])?;
        let turns = scatter.turns((busy, 0), (blocks, all - busy.min(all)));
        book.fact(&format!("{name}.turns"), count(turns));
        for (kind, _) in KINDS {
            for each in SIZES {
                if book.spent() {
                    book.note(format!("out of time before {kind} of {each} bytes"));
                    return Ok(());
                }
                let slowed = beside(lab, &comms, &gemms, (kind, each))?;
                let name = format!("{name}.{kind}.{}", size(each));
                book.raw(&name, each as f64, "ratio", &slowed);
                let slowed = Estimate::median(&slowed);
                if turns > 1 && more == 0 {
                    let block = slowed.map(|s| s.map(|s| s / f64::from(turns)));
                    book.fact(&format!("margin.block.{kind}.{}", size(each)), block);
                }
                book.fact(&name, slowed);
            }
        }
    }
    Ok(())
}

/// Thread blocks of a GEMM; notes them and their clusters.
fn own_blocks(lab: &Lab<'_>, book: &Book<'_>, name: &str, gemm: &Ready) -> Result<u32, GpuError> {
    let stream = &lab.units[0].streams[0];
    stream.begin_capture()?;
    let recorded = gemm.run(lab, 0, stream);
    // Ended whatever happened, so that the stream can be used again.
    let graph = stream.end_capture();
    recorded?;
    let mut most = 0;
    for kernel in graph?.kernels()? {
        if kernel.blocks > most {
            most = kernel.blocks;
            for (what, count) in [("blocks", kernel.blocks), ("cluster", kernel.cluster)] {
                let count = Estimate::exact(f64::from(count), 1);
                book.fact(&format!("{name}.gemm.{what}"), Some(count));
            }
        }
    }
    Ok(most)
}

/// The time of a collective beside the GEMMs over that by itself.
fn beside(
    lab: &Lab<'_>,
    comms: &Comms,
    gemms: &[Ready],
    (kind, each): (&str, u64),
) -> Result<Vec<f64>, GpuError> {
    let lanes: Vec<(usize, usize)> = (0..lab.units.len()).map(|g| (g, LIBRARY)).collect();
    let slowest = |times: Vec<f64>| times.into_iter().fold(0.0, f64::max);
    let mut slowed = Vec::new();
    for rep in 0..=lab.reps(3, 10) {
        let alone = lab.sample(&lanes, || collective(lab, comms, (kind, each), LIBRARY))?;
        let both = lab.sample(&lanes, || {
            gemm(lab, gemms)?;
            pause(lab, LIBRARY)?;
            collective(lab, comms, (kind, each), LIBRARY)
        })?;
        if rep > 0 {
            slowed.push((slowest(both) - PAUSE.as_secs_f64()) / slowest(alone));
        }
    }
    Ok(slowed)
}
