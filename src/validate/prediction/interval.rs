//! How sure a simulated time is, from how sure the calibration's numbers are.
//!
//! A makespan T is explained by terms that add up to it (compute, communication, …). With s the
//! terms of one class over T and σ that class's relative standard deviation,
//!
//! ```text
//! σ_T² = Σ over classes (s · σ)² + σ_repeat²          interval = T · (1 ± 1.96 · σ_T)
//! ```
//!
//! | class | terms | σ |
//! |---|---|---|
//! | GEMM | compute, idle, waves | [`doubt`] of the case's own products, by rows; where no library is listed √(error of products not measured² + the table's own interval²), the former by the calibration's cross-validation, or leaving out one column of its table after another |
//! | links | exposed communication, fill and drain | the widest interval of what the path crosses |
//! | sync | sync and launch | root mean square of the costs' intervals |
//! | contention | contention | [`CONTENTION`] |
//!
//! The errors within a class are taken as one (equal chunks err together), those of classes as
//! independent. An interval `95 % a to b` of the topology's file counts as σ = (b − a)/(b + a)/1.96.
//! What the mechanism itself leaves out is in none of this; coverage shows it.

use std::collections::BTreeMap;

use crate::device::gemm::{doubt, gemm};
use crate::device::{DType, Device};
use crate::input::yaml::{Node, Value};
use crate::schedule::{Compute, GemmKernel, Rank, Schedule, Work};
use crate::timeline::{Explanation, Term};
use crate::topology::paths::PathChoice;
use crate::units::{BytesPerSecond, Seconds};

/// Half an interval of 95 % of a normal distribution in standard deviations.
const Z: f64 = 1.96;
/// Of the contention term. Assumed: what a GEMM loses beside copies is measured for one large GEMM, and
/// others lose up to four times as much (`slowed.small.*` of calibrations).
const CONTENTION: f64 = 0.5;
/// Of the same GEMM on two machines of a kind: half of all differ by more than 1.6 % (two H200
/// pairs, `docs/calibration.md`), and the median of |x| is 0.6745 σ.
const REPEAT: f64 = 0.016 / 0.6745;

/// Relative standard deviations of what times are made of.
#[derive(Copy, Clone, Debug, PartialEq)]
pub struct Sigmas {
    pub gemm: f64,
    /// Links between GPUs and the copy engine's rate.
    pub peer: f64,
    /// Links to a host, its memory, and what they share.
    pub host: f64,
    /// Collectives of the library.
    pub library: f64,
    pub sync: f64,
    pub contention: f64,
    pub repeat: f64,
}

impl Sigmas {
    /// Those of a topology's file, for products of one type on its GPU; `None` where its sources
    /// state no intervals.
    pub fn of(text: &str, device: &Device, dtype: DType) -> Option<Self> {
        let root = crate::input::yaml::parse(text).ok()?;
        let mut found = BTreeMap::new();
        collect(&root, "", &mut found);
        if found.is_empty() {
            return None;
        }
        let widest = |wanted: &dyn Fn(&str) -> bool| {
            let values = found.iter().filter(|(name, _)| wanted(name));
            values.map(|(_, sigma)| *sigma).fold(0.0, f64::max)
        };
        let square = |wanted: &str| {
            let values = found.iter().filter(|(name, _)| name.starts_with(wanted));
            let squares: Vec<f64> = values.map(|(_, sigma)| sigma * sigma).collect();
            (squares.iter().sum::<f64>() / squares.len().max(1) as f64).sqrt()
        };
        let table = widest(&|name| name == "gpu.gemm.table");
        let unseen = cross_validated(text).or_else(|| gemm_table_error(device, dtype));
        let unseen = unseen.unwrap_or(0.0);
        let between =
            |name: &str| name.starts_with("links.nvlink") || name == "gpu.copies.peer_copy";
        Some(Self {
            gemm: unseen.hypot(table),
            peer: widest(&between),
            host: widest(&|name| {
                name.starts_with("shared.") || name.starts_with("links.") && !between(name)
            }),
            library: widest(&|name| name == "gpu.library.efficiency"),
            sync: square("gpu.costs."),
            contention: CONTENTION,
            repeat: REPEAT,
        })
    }

    /// Those of a schedule's own products on its GPU.
    #[must_use]
    pub fn of_products(mut self, schedule: &Schedule, device: &Device) -> Self {
        let whole = schedule.operator.rank_gemm();
        let (mut sum, mut rows) = (0.0, 0.0);
        for task in schedule.tasks.iter().filter(|task| task.rank == Rank(0)) {
            let Work::Compute(id) = task.work else {
                continue;
            };
            let Some(Compute::Gemm { a, out, kernel, .. }) = schedule.computes.get(id.index())
            else {
                continue;
            };
            // The groups of a fused kernel are parts of one product.
            let m = u64::from(out.rows.len);
            let piece = (m, u64::from(out.cols.len), u64::from(a.cols.len));
            let (m_all, n, k) = match kernel {
                GemmKernel::Library => piece,
                GemmKernel::Gated | GemmKernel::Scatter => whole.unwrap_or(piece),
            };
            if let Some(doubt) = doubt(device, schedule.operator.dtype, m_all, n, k) {
                sum += doubt * m as f64;
                rows += m as f64;
            }
        }
        if rows > 0.0 {
            self.gemm = sum / rows;
        }
        self
    }

    /// Where 95 % of measurements of an explained time should lie \[s\]; `library`: whether its
    /// collectives are the library's.
    pub fn interval(&self, explanation: &Explanation, path: PathChoice, library: bool) -> [f64; 2] {
        let links = match path {
            PathChoice::Routes if library => self.peer.max(self.library),
            PathChoice::Routes => self.peer,
            PathChoice::Host { .. } => self.host,
            PathChoice::Hybrid { .. } => self.host.max(self.peer),
        };
        let seconds =
            |terms: &[Term]| -> f64 { terms.iter().map(|term| explanation.get(*term).abs()).sum() };
        let classes = [
            (
                &[Term::Compute, Term::Idle, Term::WaveQuantisation][..],
                self.gemm,
            ),
            (&[Term::ExposedCommunication, Term::FillAndDrain], links),
            (&[Term::Contention], self.contention),
            (&[Term::SyncAndLaunch], self.sync),
        ];
        let makespan = explanation.makespan;
        let parts = classes.map(|(terms, sigma)| (seconds(terms) * sigma).powi(2));
        let sigma = (parts.iter().sum::<f64>() + (makespan * self.repeat).powi(2)).sqrt();
        // No time is below nothing, however unsure.
        [(makespan - Z * sigma).max(0.0), makespan + Z * sigma]
    }
}

/// The relative standard deviation of products that the calibration has not measured, by its own
/// cross-validation; it states the mean size of the error, which is 0.798 of a normal distribution's σ.
fn cross_validated(text: &str) -> Option<f64> {
    let facts = text
        .lines()
        .filter_map(|line| line.strip_prefix("#= gemm.unseen.listed.mean = "));
    let mean = facts
        .filter_map(|fact| fact.split_whitespace().next()?.parse::<f64>().ok())
        .next()?;
    let sigma = mean * (std::f64::consts::PI / 2.0).sqrt();
    (sigma.is_finite() && sigma >= 0.0).then_some(sigma)
}

/// By name of a number: the relative standard deviation that its source states.
fn collect(node: &Node, name: &str, found: &mut BTreeMap<String, f64>) {
    let join = |key: &str| match name {
        "" => key.to_owned(),
        name => format!("{name}.{key}"),
    };
    match &node.value {
        Value::List(nodes) => {
            for (at, node) in nodes.iter().enumerate() {
                // Links are known by their kind, which several may share.
                let kind = entry(node, "kind").or_else(|| entry(node, "name"));
                let kind = kind.and_then(Node::text).unwrap_or("");
                collect(node, &join(&format!("{kind}.{at}")), found);
            }
        }
        Value::Map(entries) => {
            for (key, node) in entries {
                match (key.text(), &node.value) {
                    (Some("source"), Value::Text(words)) => {
                        found.extend(stated(words).map(|sigma| (name.to_owned(), sigma)));
                    }
                    (Some("source"), Value::Map(sources)) => {
                        for (of, words) in sources {
                            let sigma = words.text().and_then(stated);
                            found.extend(of.text().map(&join).zip(sigma));
                        }
                    }
                    (Some(key), _) => collect(node, &join(key), found),
                    (None, _) => {}
                }
            }
        }
        _ => {}
    }
}

fn entry<'n>(node: &'n Node, name: &str) -> Option<&'n Node> {
    let Value::Map(entries) = &node.value else {
        return None;
    };
    let mut entries = entries.iter();
    entries
        .find(|(key, _)| key.text() == Some(name))
        .map(|(_, node)| node)
}

/// The relative standard deviation in a source's words: `95 % 1.2 us to 1.4 us`, `95 % 54 to 55 GB/s`,
/// `95 % within 0.9 %`.
fn stated(words: &str) -> Option<f64> {
    let (_, rest) = words.split_once("95 % ")?;
    let rest = rest.split(';').next()?;
    if let Some(within) = rest.strip_prefix("within ") {
        let (percent, _) = within.split_once(" %")?;
        return Some(percent.trim().parse::<f64>().ok()? / 100.0 / Z);
    }
    let (low, high) = rest.split_once(" to ")?;
    let high = high.split(',').next()?.trim();
    let unit = high.split_once(' ').map_or("", |(_, unit)| unit);
    let low = low.trim();
    let low = match low.contains(' ') {
        true => low.to_owned(),
        false => format!("{low} {unit}"),
    };
    let (low, high) = (number(low.trim())?, number(high)?);
    let sigma = (high - low) / (high + low) / Z;
    (sigma.is_finite() && sigma >= 0.0).then_some(sigma)
}

/// A time, a rate or a plain number.
fn number(text: &str) -> Option<f64> {
    let seconds = || text.parse::<Seconds>().ok().map(Seconds::get);
    let rate = || text.parse::<BytesPerSecond>().ok().map(BytesPerSecond::get);
    text.parse().ok().or_else(seconds).or_else(rate)
}

/// Root mean square of the relative error with which the GEMM table predicts each of its columns
/// (n × k) without that column; `None` without two columns of this type.
pub fn gemm_table_error(device: &Device, dtype: DType) -> Option<f64> {
    let mut columns: Vec<(u64, u64)> = (device.gemm_table.iter())
        .filter(|point| point.dtype == dtype)
        .map(|point| (point.n, point.k))
        .collect();
    columns.sort_unstable();
    columns.dedup();
    if columns.len() < 2 {
        return None;
    }
    let (mut squares, mut count) = (0.0, 0_usize);
    for (n, k) in columns {
        let mut blind = device.clone();
        blind
            .gemm_table
            .retain(|point| (point.n, point.k, point.dtype) != (n, k, dtype));
        let here = (device.gemm_table.iter())
            .filter(|point| (point.n, point.k, point.dtype) == (n, k, dtype));
        for point in here {
            let time = |device: &Device| {
                gemm(device, dtype, point.m, n, k, device.sms).map(|time| time.seconds)
            };
            let (Some(guess), Some(truth)) = (time(&blind), time(device)) else {
                continue;
            };
            squares += (guess / truth - 1.0).powi(2);
            count += 1;
        }
    }
    (count > 0).then(|| (squares / count as f64).sqrt())
}
