//! Copies by copy engine between GPUs: bandwidth against size, start-up, several at once.

use super::Section;
use super::book::Book;
use super::estimate::{Estimate, fit};
use super::lab::{LANES, Lab};
use crate::gpu::GpuError;

pub const SECTION: Section = Section {
    name: "copies",
    about: "copies between GPUs",
    share: 4,
    run,
};

/// Ordered pairs that are measured one by one.
const PAIRS: usize = 8;
/// Bytes of copies that run at once.
pub const AT_ONCE: u64 = 128 << 20;

fn run(lab: &Lab<'_>, book: &Book<'_>) -> Result<(), GpuError> {
    let pairs = lab.pairs(if lab.quick { 1 } else { PAIRS });
    if pairs.is_empty() {
        book.note("one GPU has no peer");
        return Ok(());
    }
    sizes(lab, book, &pairs)?;
    everywhere(lab, book)?;
    trains(lab, book, pairs[0])?;
    at_once(lab, book)?;
    engines(lab, book, pairs[0])
}

/// Sizes of copies from 4 KiB on, fourfold each.
pub fn ladder(most: u64) -> impl Iterator<Item = u64> {
    (6..)
        .map(|i| 1 << (2 * i))
        .take_while(move |bytes| *bytes <= most)
}

fn sizes(lab: &Lab<'_>, book: &Book<'_>, pairs: &[(usize, usize)]) -> Result<(), GpuError> {
    let most = lab.units[0]
        .most(1)
        .min(if lab.quick { 64 << 20 } else { 1 << 30 });
    let reps = lab.reps(3, 15);
    let mut rows = Vec::new();
    for &(a, b) in pairs {
        let all: Vec<u64> = ladder(most).collect();
        let mut times = vec![Vec::new(); all.len()];
        for rep in 0..=reps {
            for (bytes, times) in all.iter().zip(&mut times) {
                let (from, to) = (
                    lab.units[a].source(0, *bytes)?,
                    lab.units[b].target(0, *bytes)?,
                );
                let time = lab.time(a, |stream| stream.copy(from, to))?;
                // The first round warms up.
                if rep > 0 {
                    times.push(time);
                }
            }
            if rep > 0 && book.spent() {
                book.note("out of time; fewer sizes or pairs");
                break;
            }
        }
        for (bytes, times) in all.iter().zip(&times) {
            book.times(&format!("push {a}-{b}"), *bytes as f64, times);
            // Medians, as times of one size spread by half: of single times short ones would count most.
            let median = Estimate::median(times);
            rows.extend(median.map(|time| ([1.0, *bytes as f64], time.value)));
            let rates: Vec<f64> = times.iter().map(|t| *bytes as f64 / t).collect();
            if (a, b) == pairs[0] {
                let name = format!("p2p.rate.{}", size(*bytes));
                book.fact(&name, Estimate::median(&rates));
            }
        }
    }
    if let Some([start, per_byte]) = fit(&rows) {
        book.fact("p2p.start", Some(start));
        book.fact("p2p.bandwidth", Some(per_byte.map(f64::recip)));
    }
    Ok(())
}

/// A copy from every GPU to the next at once, until the last has ended: what one takes by itself spreads
/// from 6 to 14 us, and schedules wait for the slowest.
fn everywhere(lab: &Lab<'_>, book: &Book<'_>) -> Result<(), GpuError> {
    let count = lab.units.len();
    let lanes: Vec<(usize, usize)> = (0..count).map(|g| (g, 0)).collect();
    let mut rows = Vec::new();
    for bytes in ladder(lab.units[0].most(1).min(64 << 20)) {
        let mut times = Vec::new();
        for rep in 0..=lab.reps(3, 25) {
            let ends = lab.sample(&lanes, || {
                (0..count).try_for_each(|g| {
                    let (unit, next) = (&lab.units[g], &lab.units[(g + 1) % count]);
                    unit.streams[0].copy(unit.source(0, bytes)?, next.target(0, bytes)?)
                })
            })?;
            if rep > 0 {
                times.push(ends.into_iter().fold(0.0, f64::max));
            }
        }
        let median = Estimate::median(&times);
        rows.extend(median.map(|time| ([1.0, bytes as f64], time.value)));
        book.times("push, all at once", bytes as f64, &times);
    }
    if let Some([start, per_byte]) = fit(&rows) {
        book.fact("p2p.all.start", Some(start));
        book.fact("p2p.all.bandwidth", Some(per_byte.map(f64::recip)));
    }
    Ok(())
}

/// A size in short: `4KiB`, `16MiB`, `1GiB`.
pub fn size(bytes: u64) -> String {
    match bytes {
        b if b >= 1 << 30 => format!("{}GiB", b >> 30),
        b if b >= 1 << 20 => format!("{}MiB", b >> 20),
        b => format!("{}KiB", b >> 10),
    }
}

/// Small copies one behind another: the first and each further one.
fn trains(lab: &Lab<'_>, book: &Book<'_>, (a, b): (usize, usize)) -> Result<(), GpuError> {
    for bytes in [4 << 10, 256 << 10] {
        let (from, to) = (
            lab.units[a].source(0, bytes)?,
            lab.units[b].target(0, bytes)?,
        );
        let mut rows = Vec::new();
        for q in [1, 2, 4, 8, 16, 32_u32] {
            let times = (0..lab.reps(5, 20))
                .map(|_| lab.time(a, |stream| (0..q).try_for_each(|_| stream.copy(from, to))))
                .collect::<Result<Vec<_>, _>>()?;
            rows.extend(times.iter().map(|&t| ([1.0, f64::from(q - 1)], t)));
            book.times(&format!("train of {}", size(bytes)), f64::from(q), &times);
        }
        if let Some([first, each]) = fit(&rows) {
            let name = match bytes {
                4096 => "p2p",
                _ => "p2p.256KiB",
            };
            book.fact(&format!("{name}.first"), Some(first));
            book.fact(&format!("{name}.each"), Some(each));
        }
    }
    Ok(())
}

/// Total rate of copies that begin together: both directions, fan-out, fan-in, all to all.
fn at_once(lab: &Lab<'_>, book: &Book<'_>) -> Result<(), GpuError> {
    let count = lab.units.len();
    let lanes = LANES as u64 - 1;
    let bytes = AT_ONCE.min(lab.units[0].most(LANES as u64));
    let all = |pairs: &mut dyn Iterator<Item = (usize, usize)>| pairs.collect::<Vec<_>>();
    let mut groups = vec![
        ("p2p.both", all(&mut [(0, 1), (1, 0)].into_iter())),
        ("p2p.same", all(&mut [(0, 1), (0, 1)].into_iter())),
    ];
    if count > 2 {
        groups.push((
            "p2p.ring",
            all(&mut (0..count).map(|g| (g, (g + 1) % count))),
        ));
        let others = 1..count.min(lanes as usize + 1);
        groups.push(("p2p.fan-out", all(&mut others.clone().map(|g| (0, g)))));
        groups.push(("p2p.fan-in", all(&mut others.map(|g| (g, 0)))));
    }
    for (name, pairs) in groups {
        let mut used = vec![0; count];
        let lanes: Vec<(usize, usize)> = pairs
            .iter()
            .map(|&(a, _)| {
                used[a] += 1;
                (a, used[a])
            })
            .collect();
        let submit = || {
            for (i, (&(a, b), &(_, lane))) in pairs.iter().zip(&lanes).enumerate() {
                let slot = i as u64 % LANES as u64;
                let from = lab.units[a].source(slot, bytes)?;
                lab.units[a].streams[lane].copy(from, lab.units[b].target(slot, bytes)?)?;
            }
            Ok(())
        };
        total_rate(lab, book, name, &lanes, bytes, lab.reps(3, 9), submit)?;
    }
    Ok(())
}

/// Total rate of one copy of `bytes` in each of `lanes` that begin together \[bytes/s\], noted as
/// `name`; the first of `reps` + 1 rounds warms up.
pub fn total_rate(
    lab: &Lab<'_>,
    book: &Book<'_>,
    name: &str,
    lanes: &[(usize, usize)],
    bytes: u64,
    reps: usize,
    submit: impl Fn() -> Result<(), GpuError>,
) -> Result<(), GpuError> {
    let mut rates = Vec::new();
    for rep in 0..=reps {
        let times = lab.sample(lanes, &submit)?;
        let last = times.iter().copied().fold(0.0, f64::max);
        if rep > 0 {
            rates.push(bytes as f64 * lanes.len() as f64 / last);
        }
    }
    book.raw(name, bytes as f64, "bytes/s", &rates);
    book.fact(name, Estimate::median(&rates));
    Ok(())
}

/// How many copies the engines run side by side: of q equal copies, with e at once and a shared
/// link, the first end after e times a copy alone.
fn engines(lab: &Lab<'_>, book: &Book<'_>, (a, b): (usize, usize)) -> Result<(), GpuError> {
    let bytes = (32 << 20).min(lab.units[0].most(LANES as u64));
    let copy = |lane: usize| {
        let (from, to) = (
            lab.units[a].source(lane as u64 - 1, bytes)?,
            lab.units[b].target(lane as u64 - 1, bytes)?,
        );
        lab.units[a].streams[lane].copy(from, to)
    };
    let found = concurrent(lab, a, &copy)?;
    book.raw("engines push", bytes as f64, "copies at once", &found);
    book.fact("p2p.engines", Estimate::median(&found));
    Ok(())
}

/// Copies at once, as above: `copy` enqueues one on stream 1 to 4 of GPU `a`.
pub fn concurrent(
    lab: &Lab<'_>,
    a: usize,
    copy: &dyn Fn(usize) -> Result<(), GpuError>,
) -> Result<Vec<f64>, GpuError> {
    let mut found = Vec::new();
    for _ in 0..lab.reps(2, 5) {
        let alone = lab.sample(&[(a, 1)], || copy(1))?[0];
        let lanes: Vec<(usize, usize)> = (1..LANES).map(|lane| (a, lane)).collect();
        let times = lab.sample(&lanes, || (1..LANES).try_for_each(copy))?;
        let first = times.iter().copied().fold(f64::INFINITY, f64::min);
        found.push((first / alone).round().max(1.0));
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_named_in_short() {
        let all: Vec<String> = ladder(1 << 30).map(size).collect();
        assert_eq!(all.first().map(String::as_str), Some("4KiB"));
        assert_eq!(all.last().map(String::as_str), Some("1GiB"));
        assert_eq!(all.len(), 10);
    }
}
