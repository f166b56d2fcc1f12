//! What follows from measured times beside predicted ones.
//!
//! A *case* is an operator with its shape, ranks, path, launch mode and strategy; a *group* is the same
//! without the strategy, and its rows were measured in the same rounds. All errors are of the median
//! over rounds. The headline is of strategies whose ranks have a GPU each; bare GEMMs, bare copies and
//! ranks that share GPUs have rows of their own. Excluded rows are counted, with their reasons, and
//! judge nothing.

pub mod choices;
pub mod coverage;
pub mod errors;
mod facts;
pub mod forms;
pub mod kernels;
pub mod overlap;
pub mod paired;
pub mod repeat;
pub mod residuals;
pub mod speed;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

pub use facts::Facts;

use super::divergence::{self, Divergence, Terms};
use super::key::{self, Reference, Subject};
use super::peers::Peer;
use super::prediction::{Prediction, Predictions};
use super::table::Row;
use crate::experiment::AnalysisOptions;
use crate::predict::family;
use crate::strategy;

/// A measured strategy with what was said of it.
#[derive(Clone, Debug)]
pub struct Entry<'a> {
    pub row: &'a Row,
    /// Median over rounds \[s\].
    pub seconds: f64,
    /// `None`: the table of predictions does not have the case.
    pub prediction: Option<&'a Prediction>,
    /// The strategy without its number of pieces: `interdecom:comm=direct`.
    pub family: String,
}

impl Entry<'_> {
    /// The simulated makespan \[s\].
    pub fn simulated(&self) -> Option<f64> {
        self.prediction?.simulated
    }

    /// The strategy as on the command line.
    pub fn strategy(&self) -> &str {
        self.row.case.strategy().unwrap_or("")
    }
}

/// A group with its strategies and references, none of them excluded.
#[derive(Clone, Debug)]
pub struct Group<'a> {
    pub key: &'a key::Group,
    pub entries: Vec<Entry<'a>>,
    /// By reference: what was measured, and what was said of it.
    references: BTreeMap<Reference, Entry<'a>>,
}

impl<'a> Group<'a> {
    /// A reference, where it was measured.
    pub fn reference(&self, reference: Reference) -> Option<&Entry<'a>> {
        self.references.get(&reference)
    }

    /// Ranks that share GPUs have rows of their own.
    pub fn is_headline(&self) -> bool {
        !self.key.is_virtual()
    }
}

/// A row that judges nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Excluded {
    pub case: String,
    pub reason: String,
}

/// A table measured, joined with what was predicted.
#[derive(Clone, Debug, Default)]
pub struct Joined<'a> {
    /// In the order of the table.
    pub groups: Vec<Group<'a>>,
    pub excluded: Vec<Excluded>,
    /// Strategies measured but not predicted, with the reason.
    pub unpredicted: Vec<Excluded>,
}

/// Joins measured rows with predictions.
pub fn join<'a>(rows: &'a [Row], predictions: &'a Predictions) -> Joined<'a> {
    let mut joined = Joined::default();
    let mut places: BTreeMap<String, usize> = BTreeMap::new();
    for row in rows {
        let case = row.case.to_string();
        let (None, Some(seconds)) = (&row.excluded, row.makespan) else {
            let reason = row.excluded.clone();
            let reason = reason.unwrap_or_else(|| "no time".to_owned());
            joined.excluded.push(Excluded { case, reason });
            continue;
        };
        let prediction = predictions.get(&row.case);
        let skipped = match prediction {
            None => Some("not in the table of predictions".to_owned()),
            Some(prediction) => prediction.skipped.clone(),
        };
        let choice = row.case.strategy().map(strategy::parse);
        let family = match choice {
            Some(Ok(choice)) => family(&choice),
            _ => row.case.subject.to_string(),
        };
        let entry = Entry {
            row,
            seconds,
            prediction,
            family,
        };
        let place = places.entry(row.case.group.to_string());
        let at = *place.or_insert_with(|| {
            joined.groups.push(Group {
                key: &row.case.group,
                entries: Vec::new(),
                references: BTreeMap::new(),
            });
            joined.groups.len() - 1
        });
        match row.case.subject {
            Subject::Strategy(_) => {
                if let Some(reason) = skipped {
                    joined.unpredicted.push(Excluded { case, reason });
                }
                joined.groups[at].entries.push(entry);
            }
            Subject::Reference(reference) => {
                joined.groups[at].references.insert(reference, entry);
            }
        }
    }
    joined
}

/// What is analysed.
#[derive(Copy, Clone, Debug)]
pub struct Input<'a> {
    pub experiment: &'a str,
    pub measured: &'a [Row],
    /// The same measured again, on this machine or another of its kind.
    pub second: Option<&'a [Row]>,
    /// What the measurement judges.
    pub predictions: &'a Predictions,
    /// What today's model says, where that is not the same.
    pub today: Option<&'a Predictions>,
    /// Where traced cases leave their simulation.
    pub divergences: &'a [Divergence],
    /// Other programs beside Duet.
    pub peers: &'a [Peer],
    /// How closed forms are fitted, and the seed of resamples.
    pub options: AnalysisOptions,
}

/// What a model that is not the judged one says, in short.
#[derive(Clone, Debug)]
pub struct Today {
    pub topology: String,
    pub model: String,
    pub errors: Vec<errors::Errors>,
    pub choices: Option<choices::Summary>,
}

/// Everything that reports and figures show.
#[derive(Clone, Debug)]
pub struct Validation {
    pub experiment: String,
    pub facts: Facts,
    pub topology: String,
    pub model: String,
    pub excluded: Vec<Excluded>,
    pub unpredicted: Vec<Excluded>,
    /// Of the simulator, from nothing measured of the case.
    pub absolute: Vec<errors::Errors>,
    /// Of T over the unsplit GEMM of the same rounds.
    pub relative: Vec<errors::Errors>,
    /// Of the data sheet's machine.
    pub spec: Vec<errors::Errors>,
    pub today: Option<Today>,
    pub choices: Vec<choices::Summary>,
    pub speed: speed::Speed,
    pub overlap: Vec<overlap::Overlap>,
    pub kernels: kernels::Kernels,
    pub residuals: Vec<residuals::Correlation>,
    pub coverage: Vec<coverage::Coverage>,
    pub forms: forms::Forms,
    pub repeat: Vec<repeat::Repeat>,
    pub terms: Terms,
    pub peers: Vec<Peer>,
    /// Simulated and measured times \[s\] of the headline's cases, by family.
    pub points: Vec<Point>,
}

/// A case for figures.
#[derive(Clone, Debug, PartialEq)]
pub struct Point {
    pub group: key::Group,
    pub strategy: String,
    pub family: String,
    pub measured: f64,
    pub simulated: Option<f64>,
    /// Of the reference `sequential-copies`, measured and simulated.
    pub sequential: Option<f64>,
    pub sequential_simulated: Option<f64>,
}

/// Analyses.
pub fn analyse(input: &Input<'_>) -> Validation {
    let Input { options, .. } = *input;
    let joined = join(input.measured, input.predictions);
    let groups = &joined.groups;
    let seed = options.seed;
    let today = input.today.map(|predictions| {
        let joined = join(input.measured, predictions);
        Today {
            topology: predictions.topology.clone(),
            model: predictions.model.clone(),
            errors: errors::absolute(&joined.groups, seed),
            choices: choices::summaries(&joined.groups, seed).into_iter().next(),
        }
    });
    Validation {
        experiment: input.experiment.to_owned(),
        facts: Facts::of(input.measured, groups),
        topology: input.predictions.topology.clone(),
        model: input.predictions.model.clone(),
        absolute: errors::absolute(groups, seed),
        relative: errors::relative(groups, seed),
        spec: errors::spec(groups, seed),
        today,
        choices: choices::summaries(groups, seed),
        speed: speed::speed(groups),
        overlap: overlap::overlaps(groups, seed),
        kernels: kernels::kernels(groups, seed),
        residuals: residuals::correlations(groups),
        coverage: coverage::coverage(groups),
        forms: forms::forms(groups, options),
        repeat: repeat::repeat(input.measured, input.second),
        terms: divergence::terms(input.divergences),
        peers: input.peers.to_vec(),
        points: points(groups),
        excluded: joined.excluded,
        unpredicted: joined.unpredicted,
    }
}

fn points(groups: &[Group<'_>]) -> Vec<Point> {
    let headline = groups.iter().filter(|group| group.is_headline());
    let points = headline.flat_map(|group| {
        let sequential = group.reference(Reference::SequentialCopies);
        group.entries.iter().map(move |entry| Point {
            group: group.key.clone(),
            strategy: entry.strategy().to_owned(),
            family: entry.family.clone(),
            measured: entry.seconds,
            simulated: entry.simulated(),
            sequential: sequential.map(|entry| entry.seconds),
            sequential_simulated: sequential.and_then(Entry::simulated),
        })
    });
    points.collect()
}
