//! How far predictions are off, over all cases and parts of them.
//!
//! With p predicted and t measured of each case: MAE = mean |p − t|, MAPE = mean |p − t|/t,
//! wMAPE = Σ|p − t|/Σt, bias = mean (p − t)/t, worst = max |p − t|/t.

use super::{Entry, Group, paired};
use crate::calibrate::bootstrap::Bootstrap;
use crate::calibrate::metrics::{Pair, mae, mape, mean, row_mean_interval, wmape, worst};
use crate::gpu::plan::Path;
use crate::validate::key::Reference;

/// Cases longer than these are judged apart \[s\].
pub const LONG: [f64; 2] = [100e-6, 300e-6];

/// By what cases are told apart.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Dimension {
    All,
    Length,
    Strategy,
    Path,
    Launch,
    Operator,
    /// Whether the calibration measured products of the rank's n × k.
    Shape,
    /// Ranks that share GPUs; not in the headline.
    Virtual,
    /// Bare GEMMs, copies and the sequential reference; not in the headline.
    Reference,
}

impl Dimension {
    /// Its name in tables.
    pub const fn name(self) -> &'static str {
        match self {
            Self::All => "all",
            Self::Length => "length",
            Self::Strategy => "strategy",
            Self::Path => "path",
            Self::Launch => "launch",
            Self::Operator => "operator",
            Self::Shape => "GEMM's n × k",
            Self::Virtual => "shared GPUs",
            Self::Reference => "reference",
        }
    }
}

/// Errors of some cases.
#[derive(Clone, Debug, PartialEq)]
pub struct Errors {
    pub dimension: Dimension,
    /// Which of them, e.g. `longer than 300 us`.
    pub name: String,
    pub groups: usize,
    pub cases: usize,
    /// \[s\], or of a ratio.
    pub mae: f64,
    pub mape: f64,
    /// 95 % bootstrap interval of the MAPE over groups.
    pub mape_interval: Option<[f64; 2]>,
    pub wmape: f64,
    /// Mean of (p − t)/t.
    pub bias: f64,
    pub worst: f64,
    /// The case with the largest error.
    pub worst_at: String,
}

/// One case: its group, its name, what of it is told apart, and the pair.
struct Judged {
    group: usize,
    case: String,
    /// Names that select it, by dimension.
    names: Vec<(Dimension, String)>,
    pair: Pair,
}

/// How a path is called in tables: its kind.
pub fn path_kind(path: &Path) -> &'static str {
    match path {
        Path::P2p => "p2p",
        Path::Host { .. } => "host",
        Path::Hybrid { .. } => "hybrid",
    }
}

/// The absolute errors of the simulator: nothing measured of a case enters its prediction.
pub fn absolute(groups: &[Group<'_>], seed: u64) -> Vec<Errors> {
    all(groups, seed, |_, entry| {
        Some(Pair::new(entry.simulated()?, entry.seconds))
    })
}

/// The same of the data sheet's machine.
pub fn spec(groups: &[Group<'_>], seed: u64) -> Vec<Errors> {
    all(groups, seed, |_, entry| {
        Some(Pair::new(entry.prediction?.spec?, entry.seconds))
    })
}

/// The errors of T over the unsplit GEMM: predicted over predicted, measured over measured in the
/// same rounds.
pub fn relative(groups: &[Group<'_>], seed: u64) -> Vec<Errors> {
    all(groups, seed, |group, entry| {
        let gemm = group.reference(Reference::Gemm)?;
        let measured = paired::ratio(&entry.row.samples, &gemm.row.samples)?;
        Some(Pair::new(entry.simulated()? / gemm.simulated()?, measured))
    })
}

fn all<'g>(
    groups: &'g [Group<'g>],
    seed: u64,
    pair: impl Fn(&Group<'g>, &Entry<'g>) -> Option<Pair>,
) -> Vec<Errors> {
    let mut judged = Vec::new();
    for (at, group) in groups.iter().enumerate() {
        for entry in &group.entries {
            if let Some(pair) = pair(group, entry) {
                judged.push(strategy(at, group, entry, pair));
            }
        }
        for reference in Reference::ALL {
            let entry = group.reference(reference).filter(|_| group.is_headline());
            if let Some((entry, pair)) = entry.and_then(|entry| Some((entry, pair(group, entry)?)))
            {
                judged.push(Judged {
                    group: at,
                    case: entry.row.case.to_string(),
                    names: vec![(Dimension::Reference, reference.name().to_owned())],
                    pair,
                });
            }
        }
    }
    slices(&judged, seed)
}

fn strategy(at: usize, group: &Group<'_>, entry: &Entry<'_>, pair: Pair) -> Judged {
    let key = group.key;
    let names = match group.is_headline() {
        true => {
            let mut names = vec![
                (Dimension::All, "all".to_owned()),
                (Dimension::Strategy, entry.family.clone()),
                (Dimension::Path, path_kind(&key.path).to_owned()),
                (Dimension::Launch, key.launch.name().to_owned()),
                (Dimension::Operator, key.operator.kind.name().to_owned()),
            ];
            let known = entry.prediction.and_then(|said| said.gemm_measured);
            names.extend(known.map(|known| {
                let known = if known { "in" } else { "not in" };
                (Dimension::Shape, format!("{known} the calibration"))
            }));
            names.extend(lengths(entry.seconds).map(|name| (Dimension::Length, name)));
            names
        }
        false => {
            let gpus = key.gpus();
            let s = if gpus == 1 { "" } else { "s" };
            let name = format!("{} ranks on {gpus} GPU{s}", key.operator.tp);
            vec![(Dimension::Virtual, name)]
        }
    };
    Judged {
        group: at,
        case: entry.row.case.to_string(),
        names,
        pair,
    }
}

/// The classes of length that a measured time belongs to.
fn lengths(seconds: f64) -> impl Iterator<Item = String> {
    let micros = |seconds: f64| format!("{:.0} us", seconds * 1e6);
    let longer = LONG.into_iter().filter(move |limit| seconds > *limit);
    let short = (seconds <= LONG[0]).then(|| format!("up to {}", micros(LONG[0])));
    let longer = longer.map(move |limit| format!("longer than {}", micros(limit)));
    short.into_iter().chain(longer)
}

/// Errors by every name, in the order of dimensions and of the first case of each.
fn slices(judged: &[Judged], seed: u64) -> Vec<Errors> {
    let mut names: Vec<&(Dimension, String)> = Vec::new();
    for name in judged.iter().flat_map(|judged| &judged.names) {
        if !names.contains(&name) {
            names.push(name);
        }
    }
    // Lengths and ranks by their names, the others as they come.
    names.sort_by_key(|(dimension, name)| {
        let by_name = matches!(dimension, Dimension::Length | Dimension::Virtual);
        (*dimension, by_name.then(|| name.clone()))
    });
    let one = |name: &(Dimension, String)| {
        let part: Vec<&Judged> = (judged.iter())
            .filter(|judged| judged.names.contains(name))
            .collect();
        errors(name, &part, seed)
    };
    names.into_iter().filter_map(one).collect()
}

fn errors((dimension, name): &(Dimension, String), part: &[&Judged], seed: u64) -> Option<Errors> {
    let pairs: Vec<Pair> = part.iter().map(|judged| judged.pair).collect();
    let groups: Vec<(f64, usize)> = part
        .chunk_by(|a, b| a.group == b.group)
        .map(|rows| {
            let sum: f64 = rows.iter().map(|judged| judged.pair.relative()).sum();
            (sum, rows.len())
        })
        .collect();
    let bootstrap = Bootstrap {
        seed,
        ..Bootstrap::default()
    };
    let signed = |pair: &Pair| pair.predicted / pair.measured - 1.0;
    let (at, worst) = worst(&pairs)?;
    Some(Errors {
        dimension: *dimension,
        name: name.clone(),
        groups: groups.len(),
        cases: pairs.len(),
        mae: mae(&pairs)?,
        mape: mape(&pairs)?,
        mape_interval: row_mean_interval(&groups, &bootstrap),
        wmape: wmape(&pairs)?,
        bias: mean(pairs.iter().map(signed))?,
        worst,
        worst_at: part[at].case.clone(),
    })
}
