//! Who takes the SMs where a collective and a GEMM become ready at once.
//!
//! ```text
//! gather   stream 1  collective ─ signal ─ collective       which is first: this one
//!          stream 0                └─ GEMM                  or this one?
//! reduce   stream 0  GEMM ─ signal ─ GEMM
//!          stream 1            └─ collective
//! ```
//!
//! The last GEMM holds all SMs, so the collective ends a whole GEMM later where that one is first. In
//! streams and in a graph; the share of rounds in which the GEMM is first is the answer.

use super::Section;
use super::book::Book;
use super::crowd::{LIBRARY, gemm, ready};
use super::estimate::Estimate;
use super::lab::Lab;
use super::library::{collective, comms};
use super::products::{DTYPE, Ready, problem};
use crate::gpu::GpuError;
use crate::gpu::lt::Problem;
use crate::gpu::raw::nccl::Comms;
use crate::gpu::raw::{Event, GraphExec};

pub const SECTION: Section = Section {
    name: "race",
    about: "collectives and GEMMs that become ready at once",
    share: 2,
    run,
};

/// Bytes of a member's part.
const SIZES: [u64; 3] = [64 << 10, 512 << 10, 8 << 20];
/// Ends that differ by less are alike.
const ALIKE: f64 = 1.1;
/// GEMMs: the first, and the one that races.
const FIRST: [u64; 3] = [1024, 4096, 4096];
const SECOND: [u64; 3] = [2048, 8192, 4096];

/// Further GEMMs `[m, n, k]` that race, of one wave and of several, bound by memory and not; each with the
/// collective of its schedule: what a chunk of so many rows gathers, or scatters.
const MORE: [(Way, [u64; 3]); 18] = [
    (Way::Gather, [112, 9216, 6144]),
    (Way::Gather, [448, 5120, 2560]),
    (Way::Gather, [448, 9216, 6144]),
    (Way::Gather, [448, 12288, 6144]),
    (Way::Gather, [448, 14336, 7168]),
    (Way::Gather, [448, 18432, 9216]),
    (Way::Gather, [1792, 5120, 2560]),
    (Way::Gather, [2560, 10240, 2560]),
    (Way::Fewer, [112, 2560, 5120]),
    (Way::Fewer, [112, 9216, 18432]),
    (Way::Fewer, [128, 4096, 8192]),
    (Way::Fewer, [160, 5120, 8960]),
    (Way::Fewer, [448, 2560, 5120]),
    (Way::Fewer, [448, 6144, 3072]),
    (Way::Fewer, [448, 7168, 14336]),
    (Way::Fewer, [640, 3072, 12288]),
    (Way::Fewer, [1792, 2560, 5120]),
    (Way::Fewer, [1792, 6144, 3072]),
];

#[derive(Copy, Clone, Debug, PartialEq, Eq)]
enum Way {
    Gather,
    Reduce,
    Fewer,
}

fn run(lab: &Lab<'_>, book: &Book<'_>) -> Result<(), GpuError> {
    let Some(comms) = comms(lab, book)? else {
        return Ok(());
    };
    let (first, whole) = (ready(lab, FIRST)?, ready(lab, SECOND)?);
    let fewer = on_fewer(lab, SECOND)?;
    let mut firsts = Vec::new();
    for each in SIZES {
        let ways = [
            ("all-gather", Way::Gather, &whole),
            ("reduce-scatter", Way::Reduce, &whole),
            ("reduce-scatter", Way::Fewer, &fewer),
        ];
        for (name, way, second) in ways {
            collective(lab, &comms, (name, each), LIBRARY)?;
            lab.finish()?;
            for in_graph in [false, true] {
                let case = Case {
                    lab,
                    comms: &comms,
                    first: &first,
                    second,
                    way,
                    name,
                    each,
                };
                let ends = case.measure(book, in_graph)?;
                if way == Way::Fewer && !in_graph {
                    firsts.extend(early(&ends));
                }
            }
        }
    }
    if !firsts.is_empty() {
        // First on all GPUs, which are independent.
        let all = firsts.iter().filter(|first| **first).count() as f64 / firsts.len() as f64;
        let share = all.powf(1.0 / lab.units.len() as f64);
        book.fact("race.first", Some(Estimate::exact(share, firsts.len())));
    }
    more(lab, book, &comms, &first)
}

/// A GEMM on each GPU that leaves collectives their SMs.
pub(super) fn on_fewer(lab: &Lab<'_>, shape: [u64; 3]) -> Result<Vec<Ready>, GpuError> {
    let sms = lab.units[0].gpu.attributes().sms.saturating_sub(24).max(1);
    let problem = Problem {
        sms,
        ..problem(shape)
    };
    (0..lab.units.len())
        .map(|g| Ready::of(lab, g, problem))
        .collect()
}

/// Further GEMMs, in streams: samples only.
fn more(lab: &Lab<'_>, book: &Book<'_>, comms: &Comms, first: &[Ready]) -> Result<(), GpuError> {
    for (way, [m, n, k]) in MORE {
        if book.spent() {
            book.note(format!("out of time before {way:?} beside {m} x {n} x {k}"));
            return Ok(());
        }
        let (name, cols, second) = match way {
            Way::Gather => ("all-gather", k, ready(lab, [m, n, k])?),
            Way::Reduce => ("reduce-scatter", n, ready(lab, [m, n, k])?),
            Way::Fewer => ("reduce-scatter", n, on_fewer(lab, [m, n, k])?),
        };
        let each = m / lab.units.len() as u64 * cols * DTYPE.size();
        collective(lab, comms, (name, each), LIBRARY)?;
        lab.finish()?;
        let case = Case {
            lab,
            comms,
            first,
            second: &second,
            way,
            name,
            each,
        };
        case.beside(book, [m, n, k])?;
    }
    Ok(())
}

/// By round: whether the collective came first on all GPUs, told by which half of the range its last end
/// lies in; nothing where all rounds ended alike.
fn early(ends: &[Vec<f64>]) -> Vec<bool> {
    let rounds = ends.iter().map(Vec::len).min().unwrap_or(0);
    let last: Vec<f64> = (0..rounds)
        .map(|round| {
            ends.iter()
                .fold(0.0, |last: f64, ends| last.max(ends[round]))
        })
        .collect();
    let (least, most) = last
        .iter()
        .fold((f64::INFINITY, 0.0), |(least, most): (f64, f64), &end| {
            (least.min(end), most.max(end))
        });
    if most < ALIKE * least {
        return Vec::new();
    }
    last.iter().map(|end| 2.0 * end < least + most).collect()
}

struct Case<'a> {
    lab: &'a Lab<'a>,
    comms: &'a Comms,
    first: &'a [Ready],
    second: &'a [Ready],
    way: Way,
    name: &'a str,
    each: u64,
}

impl Case<'_> {
    /// When the collective ended on each GPU, by round.
    fn measure(&self, book: &Book<'_>, in_graph: bool) -> Result<Vec<Vec<f64>>, GpuError> {
        let lab = self.lab;
        let signals = (lab.units.iter())
            .map(|unit| Event::new(&unit.gpu, false))
            .collect::<Result<Vec<_>, _>>()?;
        let graph = match in_graph {
            true => Some(self.capture(&signals)?),
            false => None,
        };
        let lanes: Vec<(usize, usize)> = (0..lab.units.len())
            .flat_map(|g| [(g, 0), (g, LIBRARY)])
            .collect();
        let mut alone = Vec::new();
        let mut ends = vec![Vec::new(); lab.units.len()];
        let mut gemms = ends.clone();
        for rep in 0..=lab.reps(3, 30) {
            let own = lab.sample(&lanes, || match self.way {
                Way::Gather => collective(lab, self.comms, (self.name, self.each), LIBRARY),
                Way::Reduce | Way::Fewer => gemm(lab, self.first),
            })?;
            let all = lab.sample(&lanes, || match &graph {
                Some(graph) => graph.launch(&lab.units[0].streams[0]),
                None => self.steps(&signals, false),
            })?;
            if rep > 0 {
                alone.push(own.into_iter().fold(0.0, f64::max));
                for (unit, ends) in lab.units.iter().zip(&mut ends) {
                    ends.push(unit.marked()?);
                }
                for (end, gemms) in all.iter().step_by(2).zip(&mut gemms) {
                    gemms.push(*end);
                }
            }
        }
        let mode = if in_graph { "graph" } else { "stream" };
        let name = format!("race.{:?}.{mode}", self.way);
        book.times(&format!("{name} first alone"), self.each as f64, &alone);
        for (g, ends) in ends.iter().enumerate() {
            book.times(
                &format!("{name} collective ends on {g}"),
                self.each as f64,
                ends,
            );
        }
        for (g, ends) in gemms.iter().enumerate() {
            book.times(&format!("{name} GEMM ends on {g}"), self.each as f64, ends);
        }
        book.fact(&format!("{name}.{}", self.each), Estimate::median(&ends[0]));
        Ok(ends)
    }

    /// GEMM and collective of the same rounds alone, and both in their race.
    fn beside(&self, book: &Book<'_>, [m, n, k]: [u64; 3]) -> Result<(), GpuError> {
        let lab = self.lab;
        let signals = (lab.units.iter())
            .map(|unit| Event::new(&unit.gpu, false))
            .collect::<Result<Vec<_>, _>>()?;
        let of = |lane| (0..lab.units.len()).map(move |g| (g, lane));
        let (gemms, library): (Vec<_>, Vec<_>) = (of(0).collect(), of(LIBRARY).collect());
        let lanes: Vec<(usize, usize)> = of(0).flat_map(|(g, _)| [(g, 0), (g, LIBRARY)]).collect();
        let call = || collective(lab, self.comms, (self.name, self.each), LIBRARY);
        let mut times: Vec<(String, Vec<f64>)> = Vec::new();
        for rep in 0..=lab.reps(3, 24) {
            let mut round = Vec::new();
            let mut note = |what: &str, values: Vec<f64>| {
                round.extend(
                    values
                        .into_iter()
                        .enumerate()
                        .map(|(g, t)| (format!("{what} on {g}"), t)),
                );
            };
            note(
                "first alone",
                match self.way {
                    Way::Gather => lab.sample(&library, call)?,
                    Way::Reduce | Way::Fewer => lab.sample(&gemms, || gemm(lab, self.first))?,
                },
            );
            note("collective alone", lab.sample(&library, call)?);
            note("GEMM alone", lab.sample(&gemms, || gemm(lab, self.second))?);
            let ends = lab.sample(&lanes, || self.steps(&signals, false))?;
            note("GEMM ends", ends.iter().step_by(2).copied().collect());
            let marked = lab.units.iter().map(|unit| unit.marked());
            note("collective ends", marked.collect::<Result<Vec<_>, _>>()?);
            times.resize_with(round.len(), Default::default);
            if rep > 0 {
                for ((name, values), (what, time)) in times.iter_mut().zip(round) {
                    *name = what;
                    values.push(time);
                }
            }
        }
        for (what, values) in times {
            let name = format!("race.{:?} m{m}n{n}k{k} {what}", self.way);
            book.times(&name, self.each as f64, &values);
        }
        Ok(())
    }

    fn steps(&self, signals: &[Event], in_graph: bool) -> Result<(), GpuError> {
        let lab = self.lab;
        let call = || collective(lab, self.comms, (self.name, self.each), LIBRARY);
        let (from, to) = match self.way {
            Way::Gather => (LIBRARY, 0),
            Way::Reduce | Way::Fewer => (0, LIBRARY),
        };
        match self.way {
            Way::Gather => call()?,
            Way::Reduce | Way::Fewer => gemm(lab, self.first)?,
        }
        for (unit, signal) in lab.units.iter().zip(signals) {
            unit.streams[from].record(signal)?;
        }
        // In the order of a schedule: the next collective before the GEMM, or behind it.
        if self.way == Way::Gather {
            call()?;
            for (unit, signal) in lab.units.iter().zip(signals) {
                unit.streams[to].wait(signal)?;
            }
            gemm(lab, self.second)?;
        } else {
            gemm(lab, self.second)?;
            for (unit, signal) in lab.units.iter().zip(signals) {
                unit.streams[to].wait(signal)?;
            }
            call()?;
        }
        for unit in &lab.units {
            match in_graph {
                true => unit.mark_in_graph(&unit.streams[LIBRARY])?,
                false => unit.mark(&unit.streams[LIBRARY])?,
            }
        }
        Ok(())
    }

    fn capture(&self, signals: &[Event]) -> Result<GraphExec, GpuError> {
        let lab = self.lab;
        let fork = Event::new(&lab.units[0].gpu, false)?;
        let origin = &lab.units[0].streams[0];
        let others: Vec<(usize, usize)> = (0..lab.units.len())
            .flat_map(|g| [(g, 0), (g, LIBRARY)])
            .filter(|lane| *lane != (0, 0))
            .collect();
        let joins = (others.iter())
            .map(|(g, _)| Event::new(&lab.units[*g].gpu, false))
            .collect::<Result<Vec<_>, _>>()?;
        // Once by itself: connections are made at the first call.
        collective(lab, self.comms, (self.name, self.each), LIBRARY)?;
        lab.finish()?;
        origin.begin_capture()?;
        let recorded = (|| {
            origin.record(&fork)?;
            for &(g, lane) in &others {
                lab.units[g].streams[lane].wait(&fork)?;
            }
            self.steps(signals, true)?;
            for (&(g, lane), join) in others.iter().zip(&joins) {
                lab.units[g].streams[lane].record(join)?;
                origin.wait(join)?;
            }
            Ok(())
        })();
        // Ended whatever happened, so that the stream can be used again.
        let graph = origin.end_capture();
        recorded?;
        let ready = graph?.instantiate()?;
        ready.upload(origin)?;
        Ok(ready)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_was_first_is_told_by_the_last_end() {
        let ends = [vec![1.0, 1.9, 1.1, 1.0], vec![1.1, 2.0, 1.0, 2.0]];
        assert_eq!(early(&ends), [true, false, true, false]);
        assert!(early(&[vec![1.0, 1.05], vec![1.02, 1.0]]).is_empty());
        assert!(early(&[]).is_empty());
    }
}
