//! Rows sorted into groups that share an overhead, each fitted on its own.
//!
//! A group is one topology, operator, number of ranks and strategy but for its number of pieces d:
//! the key of [`Parameters`]. A group that cannot be fitted is reported and sinks no other.

use std::collections::{BTreeMap, BTreeSet};

use super::bootstrap::Bootstrap;
use super::fit::{Errors, Fit, FitError, Sample, fit};
use super::lot;
use crate::predict::{Key, Overhead, Parameters};

/// A time with what its closed form says.
#[derive(Clone, Debug, PartialEq)]
pub struct Point {
    pub key: Key,
    /// What is computed where; the points of a case are resampled and held out together.
    pub case: String,
    /// `stream` or `graph`, where known.
    pub launch: Option<String>,
    /// The sample; its `case` is set by [`fit_groups`].
    pub sample: Sample,
}

/// How to fit groups.
#[derive(Copy, Clone, Debug, PartialEq, Default)]
pub struct Options {
    pub bootstrap: Bootstrap,
    /// Share of cases to judge the fit by instead of fitting, from 0 to below 1; chosen by [`lot`]
    /// with the bootstrap's seed.
    pub holdout: f64,
}

/// One group and what came of it.
#[derive(Clone, Debug, PartialEq)]
pub struct Group {
    pub key: Key,
    /// Rows, held out or not.
    pub rows: usize,
    pub fit: Result<Fit, GroupError>,
    /// How the fit does on the cases held out; `None` where there are none.
    pub held_out: Option<HeldOut>,
}

/// A fit judged on cases that it has not seen.
#[derive(Copy, Clone, Debug, PartialEq)]
pub struct HeldOut {
    /// Rows with a step.
    pub rows: usize,
    /// Errors with alpha = beta = 0.
    pub before: Errors,
    /// Errors with the overheads found.
    pub after: Errors,
}

/// Why a group is not fitted.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum GroupError {
    #[error(transparent)]
    Fit(#[from] FitError),
    #[error(
        "rows launched as stream and as graph are mixed, and their steps cost differently: choose one with `--launch`"
    )]
    MixedLaunch,
}

/// Fits every group; ascending by key, whatever the order of the points.
pub fn fit_groups(points: &[Point], options: &Options) -> Vec<Group> {
    let mut groups: BTreeMap<&Key, Vec<&Point>> = BTreeMap::new();
    for point in points {
        groups.entry(&point.key).or_default().push(point);
    }
    groups
        .into_iter()
        .map(|(key, points)| one(key, &points, options))
        .collect()
}

fn one(key: &Key, points: &[&Point], options: &Options) -> Group {
    let cases: BTreeSet<&str> = points.iter().map(|point| point.case.as_str()).collect();
    // Cases are numbered by name, so that the order of rows does not matter.
    let number: BTreeMap<&str, usize> = cases.into_iter().zip(0..).collect();
    let held = |point: &Point| lot(&point.case, options.bootstrap.seed) < options.holdout;
    let (mut kept, mut apart) = (Vec::new(), Vec::new());
    for point in points {
        let rows = if held(point) { &mut apart } else { &mut kept };
        rows.push(Sample {
            case: number[point.case.as_str()],
            ..point.sample
        });
    }
    let launches: BTreeSet<&str> = points
        .iter()
        .filter_map(|point| point.launch.as_deref())
        .collect();
    let fit = match launches.len() {
        0 | 1 => fit(&kept, &options.bootstrap).map_err(GroupError::from),
        _ => Err(GroupError::MixedLaunch),
    };
    let judge = |fit: &Fit| {
        let (before, after) = fit.judge(&apart)?;
        Some(HeldOut {
            rows: apart.iter().filter(|row| row.steps > 0.0).count(),
            before,
            after,
        })
    };
    Group {
        key: key.clone(),
        rows: points.len(),
        held_out: fit.as_ref().ok().and_then(judge),
        fit,
    }
}

/// The overheads of the groups that were fitted; `source` says of what, e.g. `measured.csv`.
pub fn parameters(groups: &[Group], source: &str) -> Parameters {
    let mut parameters = Parameters::default();
    for group in groups {
        let Ok(fit) = &group.fit else { continue };
        let overhead = Overhead {
            alpha: fit.alpha,
            beta: fit.beta,
            alpha_interval: fit.alpha_interval,
            beta_interval: fit.beta_interval,
            rows: Some(fit.rows as u64),
            source: format!("fitted, {source}"),
        };
        parameters.insert(group.key.clone(), overhead);
    }
    parameters
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::operator::Kind;

    /// Six operators in d = 1, 2, 4, with 2 us and 1 us/MB per step.
    fn points(strategy: &str, launch: Option<&str>) -> Vec<Point> {
        let one = |(case, d): (u32, f64)| {
            let message = f64::from(1 + case) * 4e6;
            let base = message * 1e-10;
            Point {
                key: Key {
                    topology: "box".into(),
                    operator: Kind::AgGemm,
                    tp: 4,
                    strategy: strategy.into(),
                },
                case: format!("m={case}"),
                launch: launch.map(str::to_owned),
                sample: Sample {
                    case: 0,
                    seconds: base + (d - 1.0) * (2e-6 + 1e-12 * message),
                    base,
                    steps: d - 1.0,
                    message,
                    weight: 1.0,
                },
            }
        };
        (0..6)
            .flat_map(|case| [1.0, 2.0, 4.0].map(|d| (case, d)))
            .map(one)
            .collect()
    }

    #[test]
    fn groups_stand_for_themselves() {
        let mut all = points("interdecom", None);
        all.extend(points("fusion-ring", None).into_iter().take(3));
        let mut mixed = points("interdecom:comm=direct", Some("stream"));
        mixed[4].launch = Some("graph".into());
        all.extend(mixed);
        let groups = fit_groups(&all, &Options::default());
        let names: Vec<&str> = groups
            .iter()
            .map(|group| group.key.strategy.as_str())
            .collect();
        assert_eq!(
            names,
            ["fusion-ring", "interdecom", "interdecom:comm=direct"]
        );
        assert!(matches!(
            groups[0].fit,
            Err(GroupError::Fit(FitError::TooFew { cases: 1, rows: 2 }))
        ));
        assert_eq!(groups[2].fit, Err(GroupError::MixedLaunch));
        let fit = groups[1].fit.as_ref().unwrap();
        assert_eq!((groups[1].rows, fit.rows, fit.cases), (18, 12, 6));
        let fitted = parameters(&groups, "times.csv");
        assert_eq!(fitted.iter().count(), 1);
        let overhead = fitted.get("box", Kind::AgGemm, 4, "interdecom").unwrap();
        assert!((overhead.alpha - 2e-6).abs() < 1e-14 && (overhead.beta - 1e-12).abs() < 1e-20);
        assert_eq!(overhead.source, "fitted, times.csv");
    }

    #[test]
    fn the_order_of_points_changes_nothing() {
        let mut all = points("interdecom", None);
        all.extend(points("fusion-ring", None));
        let options = Options {
            holdout: 0.3,
            ..Options::default()
        };
        let groups = fit_groups(&all, &options);
        fastrand::Rng::with_seed(3).shuffle(&mut all);
        assert_eq!(fit_groups(&all, &options), groups);
    }

    #[test]
    fn cases_held_out_are_whole_and_judge() {
        let options = Options {
            holdout: 0.4,
            ..Options::default()
        };
        let groups = fit_groups(&points("interdecom", None), &options);
        let (fit, held) = (groups[0].fit.as_ref().unwrap(), groups[0].held_out.unwrap());
        assert_eq!((held.rows % 2, fit.rows + held.rows), (0, 12));
        assert!(held.rows > 0 && held.after.mape < 1e-9 && held.before.mape > 1e-3);
    }
}
