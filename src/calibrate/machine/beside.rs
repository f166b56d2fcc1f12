//! How much a GEMM is slowed by copies that run beside it; variants take turns, and each time is
//! set against the GEMM alone of the same round.

use super::Section;
use super::blocks::contiguous;
use super::book::Book;
use super::estimate::Estimate;
use super::lab::{LANES, Lab, STAGE};
use super::products::Ready;
use crate::gpu::GpuError;

pub const SECTION: Section = Section {
    name: "beside",
    about: "GEMMs beside copies",
    share: 3,
    run,
};

/// What runs beside the GEMM of GPU 0.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
enum Other {
    Alone,
    Push,
    Both,
    Host,
    SmPush,
    Local,
}

const VARIANTS: [(&str, Other); 6] = [
    ("alone", Other::Alone),
    ("push", Other::Push),
    ("push-and-receive", Other::Both),
    ("host", Other::Host),
    ("sm-push", Other::SmPush),
    ("local", Other::Local),
];
/// GEMMs `[m, n, k]` with what their facts begin with.
const SHAPES: [(&str, [u64; 3]); 2] = [("slowed", [8192; 3]), ("slowed.small", [1024, 4096, 4096])];
/// Blocks of copies by SMs.
const BLOCKS: u32 = 8;

fn run(lab: &Lab<'_>, book: &Book<'_>) -> Result<(), GpuError> {
    SHAPES
        .into_iter()
        .try_for_each(|(prefix, shape)| slowed(lab, book, prefix, shape))
}

fn slowed(lab: &Lab<'_>, book: &Book<'_>, prefix: &str, shape: [u64; 3]) -> Result<(), GpuError> {
    let gemm = Ready::new(lab, 0, shape)?;
    let variants = VARIANTS.into_iter().filter(|(_, other)| match other {
        Other::Alone | Other::Host | Other::Local => true,
        Other::Push | Other::Both => lab.units.len() > 1,
        Other::SmPush => lab.units.len() > 1 && lab.peers,
    });
    let variants: Vec<_> = variants.collect();
    let mut ratios = vec![Vec::new(); variants.len()];
    for round in 0..=lab.reps(3, 25) {
        let mut alone = 1.0;
        for (&(_, other), ratios) in variants.iter().zip(&mut ratios) {
            // The copies begin first and outlast the GEMM.
            let time = lab.time(0, |stream| {
                background(lab, other)?;
                gemm.run(lab, 0, stream)
            })?;
            if other == Other::Alone {
                alone = time;
            }
            if round > 0 {
                ratios.push(time / alone);
            }
        }
        if round > 1 && book.spent() {
            book.note("out of time; fewer rounds");
            break;
        }
    }
    for ((name, other), ratios) in variants.iter().zip(&ratios) {
        if *other != Other::Alone {
            book.raw(
                &format!("GEMM beside {name}"),
                shape[0] as f64,
                "ratio",
                ratios,
            );
            book.fact(&format!("{prefix}.{name}"), Estimate::median(ratios));
        }
    }
    Ok(())
}

/// Copies of about three milliseconds on other streams, which start with the gate's opening.
fn background(lab: &Lab<'_>, other: Other) -> Result<(), GpuError> {
    let unit = &lab.units[0];
    let bytes = unit.most(LANES as u64);
    let push = |from: usize, to: usize, times: u32| {
        let (a, b) = (&lab.units[from], &lab.units[to]);
        let (source, target) = (a.source(0, bytes)?, b.target(0, bytes)?);
        (0..times).try_for_each(|_| a.streams[2].copy(source, target))
    };
    match other {
        Other::Alone => Ok(()),
        Other::Push => push(0, 1, 6),
        Other::Both => {
            push(0, 1, 6)?;
            push(1, 0, 6)
        }
        Other::Host => {
            let half = STAGE / 2;
            let (out, into) = (
                unit.stage.region().cut(0, half)?,
                unit.stage.region().cut(half, half)?,
            );
            unit.streams[2].copy(unit.source(0, half)?, out)?;
            unit.streams[3].copy(into, unit.target(0, half)?)
        }
        Other::SmPush => {
            let copy = contiguous(unit.source(0, bytes)?, lab.units[1].target(0, bytes)?);
            (0..6).try_for_each(|_| unit.kernels.copy(&unit.streams[1], &copy, BLOCKS))
        }
        Other::Local => {
            let copy = contiguous(unit.source(0, bytes)?, unit.target(1, bytes)?);
            let blocks = unit.gpu.attributes().sms / 8;
            (0..20).try_for_each(|_| unit.kernels.copy(&unit.streams[1], &copy, blocks))
        }
    }
}
