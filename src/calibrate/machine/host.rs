//! Copies to and from pinned host memory: alone, both ways, all GPUs, staged from GPU to GPU in
//! chunks, and beside a copy between GPUs.

use super::Section;
use super::book::Book;
use super::copies::{concurrent, ladder, size, total_rate};
use super::estimate::{Estimate, fit};
use super::lab::{LANES, Lab, STAGE};
use crate::gpu::GpuError;
use crate::gpu::raw::Event;

pub const SECTION: Section = Section {
    name: "host",
    about: "copies through host memory",
    share: 5,
    run,
};

/// Largest chunk from whose times its start is told.
const NEXT: u64 = 2 << 20;
/// Bytes of copies that run at once.
const AT_ONCE: u64 = 64 << 20;

fn run(lab: &Lab<'_>, book: &Book<'_>) -> Result<(), GpuError> {
    sizes(lab, book)?;
    at_once(lab, book)?;
    for (name, into) in [("host.h2d.engines", true), ("host.d2h.engines", false)] {
        let copy = |lane: usize| one(lab, 0, lane, into, 8 << 20);
        let found = concurrent(lab, 0, &copy)?;
        book.raw(name, f64::from(8 << 20), "copies at once", &found);
        book.fact(name, Estimate::median(&found));
    }
    if lab.units.len() > 1 {
        staged(lab, book)?;
    }
    Ok(())
}

/// One copy on a lane of a GPU, between its stage and its memory.
fn one(lab: &Lab<'_>, g: usize, lane: usize, into: bool, bytes: u64) -> Result<(), GpuError> {
    let unit = &lab.units[g];
    let slot = lane as u64 % LANES as u64;
    let host = unit
        .stage
        .region()
        .cut(slot * (STAGE / LANES as u64 / 256 * 256), bytes)?;
    match into {
        true => unit.streams[lane].copy(host, unit.target(slot, bytes)?),
        false => unit.streams[lane].copy(unit.source(slot, bytes)?, host),
    }
}

fn sizes(lab: &Lab<'_>, book: &Book<'_>) -> Result<(), GpuError> {
    let most = if lab.quick { 16 << 20 } else { STAGE };
    for way in ["d2h", "h2d"] {
        // Medians, as times of one size spread by a third.
        let mut rows = Vec::new();
        for g in 0..if lab.quick { 1 } else { lab.units.len().min(2) } {
            let unit = &lab.units[g];
            for bytes in ladder(most) {
                let host = unit.stage.region().cut(0, bytes)?;
                let (from, to) = match way {
                    "d2h" => (unit.source(0, bytes)?, host),
                    _ => (host, unit.target(0, bytes)?),
                };
                let times = (0..lab.reps(3, 8))
                    .map(|_| lab.time(g, |stream| stream.copy(from, to)))
                    .collect::<Result<Vec<_>, _>>()?;
                let median = Estimate::median(&times[1..]);
                rows.extend(median.map(|time| ([1.0, bytes as f64], time.value)));
                book.times(&format!("{way} GPU {g}"), bytes as f64, &times);
            }
        }
        if let Some([start, per_byte]) = fit(&rows) {
            book.fact(&format!("host.{way}.start"), Some(start));
            book.fact(&format!("host.{way}"), Some(per_byte.map(f64::recip)));
        }
    }
    Ok(())
}

/// Total rates of copies that begin together.
fn at_once(lab: &Lab<'_>, book: &Book<'_>) -> Result<(), GpuError> {
    let count = lab.units.len();
    let bytes = AT_ONCE.min(STAGE / LANES as u64 / 256 * 256);
    let bytes = bytes / 256 * 256;
    let bytes = if lab.quick { bytes / 4 } else { bytes };
    // (GPU, lane, into the GPU)
    let both = |g: usize| [(g, 1, false), (g, 2, true)];
    let mut groups = vec![("host.both", both(0).to_vec())];
    if count > 1 {
        groups.push(("host.d2h.all", (0..count).map(|g| (g, 1, false)).collect()));
        groups.push(("host.h2d.all", (0..count).map(|g| (g, 2, true)).collect()));
        groups.push(("host.both.all", (0..count).flat_map(both).collect()));
    }
    for (name, copies) in groups {
        let lanes: Vec<(usize, usize)> = copies.iter().map(|&(g, lane, _)| (g, lane)).collect();
        let submit = || {
            copies
                .iter()
                .try_for_each(|&(g, lane, into)| one(lab, g, lane, into, bytes))
        };
        total_rate(lab, book, name, &lanes, bytes, lab.reps(2, 15), submit)?;
    }
    Ok(())
}

/// A transfer that stops in host memory, in chunks through a ring of slots.
struct Staged {
    from: usize,
    to: usize,
    chunk: u64,
    slots: u64,
    total: u64,
    filled: Vec<Event>,
    emptied: Vec<Event>,
}

impl Staged {
    fn new(
        lab: &Lab<'_>,
        (from, to): (usize, usize),
        chunk: u64,
        slots: u64,
        total: u64,
    ) -> Result<Self, GpuError> {
        let events = |g: usize| {
            (0..slots)
                .map(|_| Event::new(&lab.units[g].gpu, false))
                .collect::<Result<Vec<_>, _>>()
        };
        Ok(Self {
            from,
            to,
            chunk,
            slots,
            total,
            filled: events(from)?,
            emptied: events(to)?,
        })
    }

    /// Fills on lane 3 of the source, empties on lane 4 of the destination.
    fn enqueue(&self, lab: &Lab<'_>) -> Result<(), GpuError> {
        let (a, b) = (&lab.units[self.from], &lab.units[self.to]);
        let (fill, empty) = (&a.streams[3], &b.streams[4]);
        for i in 0..self.total / self.chunk {
            let slot = (i % self.slots) as usize;
            let host = a.stage.region().cut(slot as u64 * self.chunk, self.chunk)?;
            let at = |region: crate::gpu::raw::Region| region.cut(i * self.chunk, self.chunk);
            if i >= self.slots {
                fill.wait(&self.emptied[slot])?;
            }
            fill.copy(at(a.source(0, self.total)?)?, host)?;
            fill.record(&self.filled[slot])?;
            empty.wait(&self.filled[slot])?;
            empty.copy(host, at(b.target(0, self.total)?)?)?;
            empty.record(&self.emptied[slot])?;
        }
        Ok(())
    }
}

/// GPU to GPU through the host, one way and both, by chunk size and staged footprint; then beside a
/// copy over the link.
fn staged(lab: &Lab<'_>, book: &Book<'_>) -> Result<(), GpuError> {
    let total = if lab.quick { 32 << 20 } else { 128 << 20 };
    let mut best = 0.0;
    let mut chunks = Vec::new();
    for footprint in [4 << 20, 8 << 20, 16 << 20, 32 << 20, 64 << 20, 128 << 20] {
        for chunk in [512 << 10, 1 << 20, 2 << 20, 4 << 20, 8 << 20_u64] {
            if footprint / chunk < 2 || footprint > total || (lab.quick && chunk != 4 << 20) {
                continue;
            }
            if book.spent() {
                book.note("out of time; fewer chunk sizes and footprints");
                return Ok(());
            }
            let slots = footprint / chunk;
            let there = Staged::new(lab, (0, 1), chunk, slots, total)?;
            let back = Staged::new(lab, (1, 0), chunk, slots, total)?;
            for (name, both) in [("one way", false), ("exchange", true)] {
                let mut lanes = vec![(0, 3), (1, 4)];
                if both {
                    lanes.extend([(1, 3), (0, 4)]);
                }
                let mut rates = Vec::new();
                for rep in 0..=lab.reps(1, 7) {
                    let times = lab.sample(&lanes, || {
                        there.enqueue(lab)?;
                        if both {
                            back.enqueue(lab)?;
                        }
                        Ok(())
                    })?;
                    if rep > 0 {
                        rates.push(total as f64 / times.iter().copied().fold(0.0, f64::max));
                    }
                }
                let case = format!("{name}, {} staged", size(footprint));
                book.raw(&case, chunk as f64, "bytes/s each way", &rates);
                let rate = Estimate::median(&rates);
                if both {
                    let name = format!("host.exchange.{}.{}", size(chunk), size(footprint));
                    book.fact(&name, rate);
                    // Enough slots to keep both ends busy, and chunks that starts matter for.
                    if let Some(rate) = rate.filter(|_| slots >= 4 && chunk <= NEXT) {
                        let bytes = chunk as f64;
                        chunks.push(([1.0, bytes], bytes / rate.value));
                        book.fact("host.next", next(&chunks, book));
                    }
                    if let Some(rate) = rate.filter(|rate| rate.value > best) {
                        best = rate.value;
                        book.fact("host.exchange", Some(rate));
                    }
                }
            }
        }
    }
    beside(lab, book, total)?;
    short(lab, book)
}

/// Exchanges through the host of a few chunks, and with a straight copy at once that carries nine times as
/// much: what starts cost, of all GPUs the last end.
fn short(lab: &Lab<'_>, book: &Book<'_>) -> Result<(), GpuError> {
    let (host, link) = ([(0, 4), (1, 4)], [(0, 1), (1, 1)]);
    let all = [(0, 3), (1, 3), (0, 4), (1, 4), (0, 1), (1, 1)];
    for total in [256 << 10, 512 << 10, 1 << 20, 2 << 20, 4 << 20, 8 << 20_u64] {
        let chunk = total.min(2 << 20);
        let there = Staged::new(lab, (0, 1), chunk, 4, total)?;
        let back = Staged::new(lab, (1, 0), chunk, 4, total)?;
        let staged = || there.enqueue(lab).and_then(|()| back.enqueue(lab));
        let straight = || {
            [(0, 1), (1, 0)]
                .into_iter()
                .try_for_each(|(a, b): (usize, usize)| {
                    let (a, b) = (&lab.units[a], &lab.units[b]);
                    a.streams[1].copy(a.source(2, 9 * total)?, b.target(2, 9 * total)?)
                })
        };
        let last = |ends: &[f64]| ends.iter().copied().fold(0.0, f64::max);
        let [mut alone, mut over, mut by_host, mut by_link] = [const { Vec::new() }; 4];
        for rep in 0..=lab.reps(2, 25) {
            let lone = lab.sample(&[(0, 3), (1, 3), host[0], host[1]], staged)?;
            let straight_alone = lab.sample(&link, straight)?;
            let both = lab.sample(&all, || straight().and_then(|()| staged()))?;
            if rep > 0 {
                alone.push(last(&lone[2..]));
                over.push(last(&straight_alone));
                by_host.push(last(&both[2..4]));
                by_link.push(last(&both[4..]));
            }
        }
        let bytes = total as f64;
        book.times("exchange of a few chunks", bytes, &alone);
        book.times("exchange beside it alone", bytes, &over);
        book.times("exchange of a few chunks beside it", bytes, &by_host);
        book.times("exchange beside a few chunks", bytes, &by_link);
    }
    Ok(())
}

/// The start g of a further chunk in an exchange, from chunks' sizes s and times t. Of the four copies of
/// two GPUs three flow, each at the rate b of its own link, while one starts, and all at x otherwise
/// (`file::links`):
///
/// ```text
/// t = 2·g + (s − b·g)/x = g·(2 − b/x) + s/x
/// ```
fn next(chunks: &[([f64; 2], f64)], book: &Book<'_>) -> Option<Estimate> {
    let ways = ["host.d2h", "host.h2d"].map(|way| book.get(way));
    let [one, two] = ways.map(|way| way.map(|rate| rate.value));
    start_of(chunks, (one? + two?) / 2.0)
}

fn start_of(chunks: &[([f64; 2], f64)], link: f64) -> Option<Estimate> {
    let [intercept, slope] = fit(chunks)?;
    let share = 2.0 - link * slope.value;
    // Memory that is no faster than half a link leaves nothing to tell starts from.
    (share > 0.1).then(|| intercept.map(|intercept| intercept / share))
}

/// The link and the host path at once, as shares of what each does alone.
fn beside(lab: &Lab<'_>, book: &Book<'_>, total: u64) -> Result<(), GpuError> {
    let staged = Staged::new(lab, (0, 1), 4 << 20, 4, total)?;
    let bytes = lab.units[0].most(2);
    // Long enough that the link is busy while the host path is.
    let link = |times: u32| {
        let (from, to) = (
            lab.units[0].source(2, bytes)?,
            lab.units[1].target(2, bytes)?,
        );
        (0..times).try_for_each(|_| lab.units[0].streams[1].copy(from, to))
    };
    let (mut of_host, mut of_link) = (Vec::new(), Vec::new());
    for _ in 0..lab.reps(1, 9) {
        let host_alone = lab.sample(&[(0, 3), (1, 4)], || staged.enqueue(lab))?[1];
        let link_alone = lab.sample(&[(0, 1)], || link(4))?[0];
        let both = lab.sample(&[(0, 1), (0, 3), (1, 4)], || {
            link(4)?;
            staged.enqueue(lab)
        })?;
        of_link.push(link_alone / both[0]);
        of_host.push(host_alone / both[2]);
    }
    book.raw(
        "beside the host path, share of link",
        bytes as f64,
        "share",
        &of_link,
    );
    book.raw(
        "beside the link, share of host path",
        total as f64,
        "share",
        &of_host,
    );
    book.fact("hybrid.link", Estimate::median(&of_link));
    book.fact("hybrid.host", Estimate::median(&of_host));
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn starts_come_back_from_exchanges() {
        let (g, b, x) = (5e-6, 56e9, 45e9);
        let chunks: Vec<([f64; 2], f64)> = [512 << 10, 1 << 20, 2 << 20]
            .into_iter()
            .map(|s: u64| s as f64)
            .map(|s| ([1.0, s], 2.0 * g + (s - b * g) / x))
            .collect();
        let found = start_of(&chunks, b).unwrap();
        assert!((found.value - g).abs() < 1e-12, "{found:?}");
        assert_eq!(start_of(&chunks, 2.0 * x), None);
        assert_eq!(start_of(&chunks[..1], b), None);
    }
}
