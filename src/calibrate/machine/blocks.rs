//! Copies by SMs, between GPUs and within one, by number of blocks.

use super::Section;
use super::book::Book;
use super::estimate::{Estimate, fit, median};
use super::lab::Lab;
use crate::gpu::GpuError;
use crate::gpu::raw::{Copy2d, Region};

pub const SECTION: Section = Section {
    name: "blocks",
    about: "copies by SMs",
    share: 2,
    run,
};

/// Blocks up to which the link is taken not to limit them.
const FEW: u32 = 4;

fn run(lab: &Lab<'_>, book: &Book<'_>) -> Result<(), GpuError> {
    let sms = lab.units[0].gpu.attributes().sms;
    let mut counts: Vec<u32> = (0..8).map(|i| 1 << i).filter(|b| *b < sms).collect();
    counts.extend([sms / 8, sms]);
    counts.sort_unstable();
    counts.dedup();
    let bytes = (64 << 20).min(lab.units[0].most(2));
    if lab.peers && lab.units.len() > 1 {
        for way in ["push", "pull"] {
            let (a, b) = (&lab.units[0], &lab.units[1]);
            let (from, to) = match way {
                "push" => (a.source(0, bytes)?, b.target(0, bytes)?),
                _ => (b.source(0, bytes)?, a.target(0, bytes)?),
            };
            let rates = rates(lab, book, way, (from, to), &counts)?;
            let few: Vec<f64> = of(&rates, |b| b <= FEW, f64::from);
            book.fact(&format!("sm.{way}.block"), Estimate::median(&few));
            let best = rates
                .iter()
                .filter_map(|(_, r)| median(r))
                .fold(0.0, f64::max);
            let at_best = rates.iter().find(|(_, r)| median(r) == Some(best));
            let best = at_best.and_then(|(_, r)| Estimate::median(r));
            book.fact(&format!("sm.{way}.best"), best);
        }
        train(lab, book)?;
    }
    let unit = &lab.units[0];
    let (from, to) = (unit.source(0, bytes)?, unit.target(0, bytes)?);
    let local = rates(lab, book, "local", (from, to), &counts)?;
    let eighth = of(&local, |b| b == sms / 8, |_| 1.0);
    book.fact("local.eighth", Estimate::median(&eighth));
    let few = of(&local, |b| b <= FEW, f64::from);
    book.fact("local.block", Estimate::median(&few));
    let big = unit.most(1);
    let mut samples = Vec::new();
    for rep in 0..=lab.reps(3, 9) {
        let (from, to) = (unit.source(0, big)?, unit.target(0, big)?);
        let time = lab.time(0, |stream| stream.copy(from, to))?;
        if rep > 0 {
            samples.push(big as f64 / time);
        }
    }
    book.raw("local by the driver", big as f64, "bytes/s", &samples);
    book.fact("local.driver", Estimate::median(&samples));
    Ok(())
}

/// Rates of some numbers of blocks, each divided.
fn of(rates: &[(u32, Vec<f64>)], keep: impl Fn(u32) -> bool, by: impl Fn(u32) -> f64) -> Vec<f64> {
    let kept = rates.iter().filter(|(blocks, _)| keep(*blocks));
    kept.flat_map(|(blocks, rates)| rates.iter().map(|rate| rate / by(*blocks)))
        .collect()
}

fn rates(
    lab: &Lab<'_>,
    book: &Book<'_>,
    way: &str,
    (from, to): (Region, Region),
    counts: &[u32],
) -> Result<Vec<(u32, Vec<f64>)>, GpuError> {
    let mut rates: Vec<(u32, Vec<f64>)> = counts.iter().map(|b| (*b, Vec::new())).collect();
    for rep in 0..=lab.reps(2, 7) {
        for (blocks, rates) in &mut rates {
            let time = lab.time(0, |stream| {
                let copy = contiguous(from, to);
                lab.units[0].kernels.copy(stream, &copy, *blocks)
            })?;
            if rep > 0 {
                rates.push(to.bytes() as f64 / time);
            }
        }
        if rep > 0 && book.spent() {
            book.note("out of time; fewer samples");
            break;
        }
    }
    for (blocks, rates) in &rates {
        book.raw(way, f64::from(*blocks), "bytes/s", rates);
    }
    Ok(rates)
}

/// A copy of as many bytes as the target has.
pub const fn contiguous(from: Region, to: Region) -> Copy2d {
    Copy2d {
        from,
        from_pitch: to.bytes(),
        to,
        to_pitch: to.bytes(),
        width: to.bytes(),
        rows: 1,
    }
}

/// Small copies by one block, one behind another.
fn train(lab: &Lab<'_>, book: &Book<'_>) -> Result<(), GpuError> {
    let (a, b) = (&lab.units[0], &lab.units[1]);
    let copy = contiguous(a.source(0, 4096)?, b.target(0, 4096)?);
    let mut rows = Vec::new();
    for q in [1, 2, 4, 8, 16, 32_u32] {
        let times = (0..lab.reps(5, 20))
            .map(|_| lab.time(0, |s| (0..q).try_for_each(|_| a.kernels.copy(s, &copy, 1))))
            .collect::<Result<Vec<_>, _>>()?;
        rows.extend(times.iter().map(|&t| ([1.0, f64::from(q - 1)], t)));
        book.times("train of 4KiB", f64::from(q), &times);
    }
    book.fact("sm.each", fit(&rows).map(|[_, each]| each));
    Ok(())
}
