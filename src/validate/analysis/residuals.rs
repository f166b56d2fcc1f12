//! What the errors go with: Spearman's rank correlation of (p − t)/t, and of its size, with what
//! cases differ in. A coefficient near ±1 names a mechanism that the model has wrong.

use super::{Entry, Group};
use crate::validate::key::Reference;

/// Fewest cases that a coefficient is of.
const LEAST: usize = 8;

/// One attribute.
#[derive(Clone, Debug, PartialEq)]
pub struct Correlation {
    pub with: &'static str,
    pub cases: usize,
    /// Of the signed relative error, and of its size.
    pub signed: f64,
    pub size: f64,
}

/// What is looked at.
type Attribute = fn(&Group<'_>, &Entry<'_>) -> Option<f64>;

const ATTRIBUTES: [(&str, Attribute); 8] = [
    ("measured time", |_, entry| Some(entry.seconds)),
    ("m", |group, _| {
        group.key.operator.mnk().map(|(m, ..)| m as f64)
    }),
    ("n·k", |group, _| {
        group
            .key
            .operator
            .mnk()
            .map(|(_, n, k)| n as f64 * k as f64)
    }),
    ("bytes of the message", |group, _| {
        Some(group.key.operator.message_bytes() as f64)
    }),
    ("bytes of a chunk", |group, entry| {
        Some(group.key.operator.message_bytes() as f64 / pieces(entry))
    }),
    ("chunks", |_, entry| Some(pieces(entry))),
    ("hand-offs between ranks", |_, entry| {
        entry
            .prediction
            .map(|prediction| f64::from(prediction.handoffs))
    }),
    ("share of the unsplit GEMM", |group, entry| {
        Some(group.reference(Reference::Gemm)?.seconds / entry.seconds)
    }),
];

/// Pieces of a strategy: its d or its chunks.
fn pieces(entry: &Entry<'_>) -> f64 {
    let choice = crate::strategy::parse(entry.strategy());
    let count = |name| {
        choice
            .as_ref()
            .map_or(1, |choice| choice.params().count(name))
    };
    let declared = |name| {
        let params = choice
            .as_ref()
            .map_or(&[][..], |choice| choice.strategy().params());
        params.iter().any(|param| param.name == name)
    };
    let one = |name| {
        if declared(name) {
            count(name).max(1)
        } else {
            1
        }
    };
    f64::from(one("d")) * f64::from(one("chunks"))
}

/// Of the headline's cases; none with too few of them.
pub fn correlations(groups: &[Group<'_>]) -> Vec<Correlation> {
    let headline = groups.iter().filter(|group| group.is_headline());
    let cases: Vec<(&Group<'_>, &Entry<'_>, f64)> = headline
        .flat_map(|group| {
            let entries = group.entries.iter();
            entries.filter_map(move |e| Some((group, e, e.simulated()? / e.seconds - 1.0)))
        })
        .collect();
    let one = |(with, of): (&'static str, Attribute)| {
        let (values, errors): (Vec<f64>, Vec<f64>) = (cases.iter())
            .filter_map(|(group, entry, error)| Some((of(group, entry)?, *error)))
            .unzip();
        let sizes: Vec<f64> = errors.iter().map(|error| error.abs()).collect();
        (values.len() >= LEAST).then_some(())?;
        Some(Correlation {
            with,
            cases: values.len(),
            signed: spearman(&values, &errors)?,
            size: spearman(&values, &sizes)?,
        })
    };
    ATTRIBUTES.into_iter().filter_map(one).collect()
}

/// Spearman's rank correlation, equals sharing their mean rank; `None` where one of the two does not
/// vary.
///
/// ```
/// use duet::validate::analysis::residuals::spearman;
/// assert!((spearman(&[1.0, 2.0, 3.0, 9.0], &[2.0, 4.0, 8.0, 9.0]).unwrap() - 1.0).abs() < 1e-12);
/// assert!((spearman(&[1.0, 2.0, 3.0], &[3.0, 1.0, 1.0]).unwrap() + 0.75_f64.sqrt()).abs() < 1e-12);
/// assert_eq!(spearman(&[1.0, 1.0], &[2.0, 3.0]), None);
/// ```
pub fn spearman(a: &[f64], b: &[f64]) -> Option<f64> {
    let (a, b) = (ranks(a), ranks(b));
    let mean = (a.len() as f64 - 1.0) / 2.0;
    let sum = |a: &[f64], b: &[f64]| -> f64 {
        a.iter().zip(b).map(|(a, b)| (a - mean) * (b - mean)).sum()
    };
    let scale = (sum(&a, &a) * sum(&b, &b)).sqrt();
    (scale > 0.0).then(|| sum(&a, &b) / scale)
}

/// Ranks from 0; equals share their mean.
fn ranks(values: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..values.len()).collect();
    order.sort_by(|a, b| values[*a].total_cmp(&values[*b]));
    let mut ranks = vec![0.0; values.len()];
    let mut before = 0;
    for equals in order.chunk_by(|a, b| values[*a] == values[*b]) {
        let mean = before as f64 + (equals.len() as f64 - 1.0) / 2.0;
        for at in equals {
            ranks[*at] = mean;
        }
        before += equals.len();
    }
    ranks
}
