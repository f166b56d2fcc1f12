//! A table of times beside what the closed forms say without overhead.

use std::collections::BTreeMap;

use super::fit::Sample;
use super::groups::Point;
use super::table::{Row, Table, TableError};
use crate::input::{Diagnostic, Diagnostics};
use crate::predict::{Key, Machine, Parameters, Terms, family};
use crate::topology::{Topology, TopologyError};
use crate::units::count;

/// Rows with a closed form that has steps, and what became of the others.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Points {
    pub points: Vec<Point>,
    /// By strategy.
    pub passed: Vec<Passed>,
}

/// Rows of a strategy passed over.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Passed {
    /// Without its number of pieces.
    pub strategy: String,
    /// Why; where reasons differ, the first in alphabetical order.
    pub reason: String,
    pub rows: usize,
}

/// A topology of the table, its overrides applied; placed on the first GPUs by number of ranks.
struct Site {
    topology: Topology,
    machines: BTreeMap<u32, Machine>,
}

/// Predicts every row of a table. `find` gives the topology of a row by its name and overrides.
///
/// # Errors
/// [`TableError::Invalid`] with the place of every topology that is not one, or is too small.
pub fn points(
    table: &Table,
    terms: &Terms,
    mut find: impl FnMut(&str, &[String]) -> Result<Topology, TopologyError>,
) -> Result<Points, TableError> {
    let mut found = Diagnostics::default();
    let mut sites: BTreeMap<(&str, &[String]), Option<Site>> = BTreeMap::new();
    let mut points = Points::default();
    for row in &table.rows {
        let site = sites.entry((&row.topology, &row.sets)).or_insert_with(|| {
            let topology = find(&row.topology, &row.sets);
            let known = topology
                .map_err(|error| found.push(unknown(row, &error)))
                .ok();
            known.map(|topology| Site {
                topology,
                machines: BTreeMap::new(),
            })
        });
        let Some(site) = site else { continue };
        let gpus = site.topology.gpus.len();
        if row.operator.tp as usize > gpus {
            let words = format!(
                "{} on the {} of {}",
                count(u64::from(row.operator.tp), "rank"),
                count(gpus as u64, "GPU"),
                site.topology.name
            );
            let wrong = Diagnostic::new(row.places.tp.clone(), words, "too many ranks");
            found.push(
                wrong.help("name a larger topology, or the number of ranks that was measured"),
            );
            continue;
        }
        let machine = site.machines.entry(row.operator.tp).or_insert_with(|| {
            let placement: Vec<u32> = (0..row.operator.tp).collect();
            Machine::new(&site.topology, &placement)
        });
        points.add(row, machine, terms);
    }
    match found.is_empty() {
        true => Ok(points),
        false => Err(table.wrong(&found)),
    }
}

impl Points {
    fn add(&mut self, row: &Row, machine: &Machine, terms: &Terms) {
        let graph = terms.graph_launch || row.launch.as_deref() == Some("graph");
        let base = terms.without_overhead().launched_as_graph(graph);
        let strategy = family(&row.strategy);
        // A decomposition into one piece belongs to its group; what never has a step has none.
        let declared = row.strategy.strategy().params();
        let cuts = declared.iter().any(|param| param.name == "d");
        let reason =
            match machine.predict(&row.operator, &row.strategy, &base, &Parameters::default()) {
                Ok(prediction) if cuts || prediction.steps > 0.0 => {
                    self.points.push(Point {
                        key: Key {
                            topology: machine.name().to_owned(),
                            operator: row.operator.kind,
                            tp: row.operator.tp,
                            strategy,
                        },
                        case: row.case(),
                        launch: row.launch.clone(),
                        sample: Sample {
                            case: 0,
                            seconds: row.seconds,
                            base: prediction.seconds,
                            steps: prediction.steps,
                            message: prediction.message,
                            weight: row.weight,
                        },
                    });
                    return;
                }
                Ok(_) => "has no overlap step that could cost anything".to_owned(),
                Err(skip) => skip.reason,
            };
        let at = self
            .passed
            .binary_search_by(|passed| passed.strategy.cmp(&strategy));
        match at {
            Ok(at) => {
                let passed = &mut self.passed[at];
                passed.rows += 1;
                // The least, so that the order of rows does not matter.
                if reason < passed.reason {
                    passed.reason = reason;
                }
            }
            Err(at) => self.passed.insert(
                at,
                Passed {
                    strategy,
                    reason,
                    rows: 1,
                },
            ),
        }
    }
}

/// The mistake of a row whose topology cannot be had.
fn unknown(row: &Row, error: &TopologyError) -> Diagnostic {
    let span = row.places.topology.clone();
    let name = &row.topology;
    match error {
        TopologyError::Invalid(_) => Diagnostic::new(
            span,
            format!("the topology `{name}` has mistakes"),
            "named here",
        )
        .help(format!("`duet topology check {name}` explains them")),
        TopologyError::Unknown { .. } => {
            Diagnostic::from_words(span, "no such topology", &error.to_string())
        }
        TopologyError::Unreadable { path, reason } => Diagnostic::new(
            span,
            format!("cannot read the topology `{path}`: {reason}"),
            "no such file",
        )
        .help("give the file with `-t FILE`; rows then name it by its `name:`"),
        TopologyError::Set { text, words } => Diagnostic::new(
            span,
            format!("`{text}` of this row does not fit the machine"),
            "the row's machine",
        )
        .help(words.as_str()),
    }
}
