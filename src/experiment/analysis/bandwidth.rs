//! Bandwidth of bare collectives against message size.

use std::sync::Arc;

use super::cases::{Case, Group};
use crate::operator::Shape;

/// One strategy's bandwidth over sizes.
#[derive(Clone, Debug, PartialEq)]
pub struct Curve {
    pub grid: Arc<str>,
    pub group: Group,
    pub strategy: Arc<str>,
    /// (size S \[B\], algbw = S/t \[B/s\]), ascending by size.
    pub points: Vec<(f64, f64)>,
    /// algbw times this is busbw.
    pub bus_factor: f64,
}

impl Curve {
    /// Bandwidth at the largest size \[B/s\].
    pub fn peak(&self) -> Option<f64> {
        self.points.last().map(|(_, bandwidth)| *bandwidth)
    }
}

/// The curves of all bare collectives on unchanged topologies.
pub(super) fn curves(cases: &[Case]) -> Vec<Curve> {
    let mut curves: Vec<Curve> = Vec::new();
    for case in cases.iter().filter(|case| case.sets.is_empty()) {
        let Shape::Bytes(bytes) = case.operator.shape else {
            continue;
        };
        for run in &case.runs {
            let bytes = bytes.get() as f64;
            let point = (bytes, bytes / run.seconds);
            let group = Group::of(case);
            let known = curves.iter_mut().find(|curve| {
                curve.grid == case.grid && curve.group == group && curve.strategy == run.strategy
            });
            match known {
                Some(curve) => curve.points.push(point),
                None => curves.push(Curve {
                    grid: Arc::clone(&case.grid),
                    group,
                    strategy: Arc::clone(&run.strategy),
                    points: vec![point],
                    bus_factor: case.operator.bus_factor(),
                }),
            }
        }
    }
    for curve in &mut curves {
        curve.points.sort_by(|a, b| a.0.total_cmp(&b.0));
        curve.points.dedup_by_key(|(bytes, _)| *bytes);
    }
    curves
}
