//! Multiplying a grid out into cases: topologies × settings × tp × operators × axes, the last
//! fastest. Every shape is checked here.

use std::sync::Arc;

use rustc_hash::{FxHashMap, FxHashSet};

use super::MOST_CASES;
use super::grid::Draft;
use super::machines::{self, Machines, Setting};
use super::places::fits;
use super::strategies;
use crate::device::DType;
use crate::experiment::{Axis, Case, Experiment, Grid, Machine, default_dtype, lacking};
use crate::input::Diagnostics;
use crate::operator::{Kind, Operator};
use crate::strategy::Choice;
use crate::topology::Topology;

/// A grid being multiplied out.
struct Expansion<'d, 'n> {
    draft: &'d Draft<'n>,
    /// By kind of operator.
    strategies: FxHashMap<Kind, Arc<[Choice]>>,
    /// One mistake per operator: the next case would say the same again.
    wrong: Vec<bool>,
    /// What was performed on the machine at hand, and with which values.
    seen: FxHashMap<Operator, Box<[u64]>>,
}

/// Appends the grid and its cases to the experiment; mistakes are pushed.
pub(super) fn expand(
    draft: &Draft<'_>,
    machines: &mut Machines<'_>,
    experiment: &mut Experiment,
    found: &mut Diagnostics,
) {
    if !affordable(draft, experiment.cases.len() as u64, found) {
        return;
    }
    let axes = draft.axes.iter().map(|axis| Axis {
        name: axis.name.clone(),
        values: axis.values.clone(),
    });
    experiment.grids.push(Grid {
        name: draft.name.clone(),
        axes: axes.collect(),
    });
    let mut expansion = Expansion {
        draft,
        strategies: FxHashMap::default(),
        wrong: vec![false; draft.operators.len()],
        seen: FxHashMap::default(),
    };
    let mut refused = FxHashSet::default();
    for &(node, name) in &draft.topologies {
        for settings in settings(draft) {
            let Some(machine) = machines.get(node, name, &settings, found) else {
                continue;
            };
            for (at, place) in draft.places.all() {
                let machine = machines.at(machine, place);
                let machine = (machine, &machines.list[machine as usize].clone());
                expansion.seen.clear();
                let given = draft.tp.as_deref().unwrap_or_default();
                for &(node, tp) in given {
                    match fits(&machine.1.topology, name, tp, node, at.zip(place.gpus)) {
                        Ok(()) => expansion.machine(machine, Some(tp), experiment, found),
                        Err(mistake) if refused.insert((name, tp, place.gpus)) => {
                            found.push(mistake);
                        }
                        Err(_) => {}
                    }
                }
                if draft.tp.is_some() {
                    continue;
                }
                match at.zip(place.gpus).map(|shared| (shared.0, shared)) {
                    Some((at, shared)) if shared.1 as usize > machine.1.topology.gpus.len() => {
                        let most = u32::from(u16::MAX);
                        let fits = fits(&machine.1.topology, name, most, at, Some(shared));
                        fits.err()
                            .into_iter()
                            .for_each(|mistake| found.push(mistake));
                    }
                    _ => expansion.machine(machine, None, experiment, found),
                }
            }
        }
    }
}

/// Refuses a grid that would take all memory.
fn affordable(draft: &Draft<'_>, before: u64, found: &mut Diagnostics) -> bool {
    let mut factors = vec![
        (draft.topologies.len(), "topologies".to_owned()),
        (draft.operators.len(), "operators".to_owned()),
        (draft.tp.as_ref().map_or(1, Vec::len), "tp".to_owned()),
    ];
    let sets = draft.sets.iter();
    factors.extend(sets.map(|(_, path, values)| (values.len(), (*path).to_owned())));
    let (paths, gpus) = (&draft.places.paths, &draft.places.gpus);
    factors.extend(paths.iter().map(|list| (list.len(), "paths".to_owned())));
    factors.extend(gpus.iter().map(|list| (list.len(), "gpus".to_owned())));
    let count = |factors: &[(usize, String)]| {
        factors.iter().try_fold(1u128, |product, (factor, _)| {
            product.checked_mul(*factor as u128)
        })
    };
    let hosts = count(&[&factors[..1], &factors[3..]].concat());
    let axes = draft.axes.iter();
    factors.extend(axes.map(|axis| (axis.values.len(), axis.name.clone())));
    let cases = count(&factors);
    let (what, number, most) = if hosts.is_none_or(|hosts| hosts > u128::from(machines::MOST)) {
        ("machines", hosts, machines::MOST)
    } else if cases.is_none_or(|cases| cases + u128::from(before) > u128::from(MOST_CASES)) {
        ("cases", cases, MOST_CASES)
    } else {
        return true;
    };
    let number = number.map_or_else(|| "more than 10^38".to_owned(), |number| number.to_string());
    let shown: Vec<String> = factors
        .iter()
        .filter(|(factor, _)| *factor > 1)
        .map(|(factor, name)| format!("{factor} {name}"))
        .collect();
    let already = match before {
        0 => String::new(),
        before => format!(", after {before} of the grids before"),
    };
    let mistake = draft.name_node.wrong(
        format!("the grid `{}` has {number} {what}{already}", draft.name),
        shown.join(" × "),
    );
    found.push(mistake.help(format!(
        "an experiment has at most {most} {what}: shorten a list, or make several experiments"
    )));
    false
}

/// Every combination of the settings, the last path fastest.
fn settings<'d, 'n>(draft: &'d Draft<'n>) -> Vec<Vec<Setting<'n>>> {
    let mut combinations: Vec<Vec<Setting<'n>>> = vec![Vec::new()];
    for (key, path, values) in &draft.sets {
        combinations = combinations
            .iter()
            .flat_map(|before| {
                values.iter().map(|(node, value)| {
                    let mut all = before.clone();
                    all.push((*key, *path, *node, *value));
                    all
                })
            })
            .collect();
    }
    combinations
}

impl Expansion<'_, '_> {
    /// The cases of one machine and one number of ranks.
    fn machine(
        &mut self,
        (machine, on): (u32, &Machine),
        tp: Option<u32>,
        experiment: &mut Experiment,
        found: &mut Diagnostics,
    ) {
        let topology = &*on.topology;
        for index in 0..self.draft.operators.len() {
            let kind = self.draft.operators[index].kind;
            let gpus = topology.gpus.len() as u32;
            let tp = tp.unwrap_or(match kind {
                Kind::PointToPoint => 2.min(gpus),
                _ => topology.default_tp.min(gpus).max(on.gpus.unwrap_or(1)),
            });
            let used = on.gpus.unwrap_or(tp);
            let dtype = match self.draft.dtype {
                Some((_, dtype)) => dtype,
                None => default_dtype(topology, used),
            };
            if kind.is_fused() && !self.multiplies(index, topology, used, dtype, found) {
                continue;
            }
            let mut place = vec![0; self.draft.axes.len()];
            loop {
                if self.wrong[index] {
                    break;
                }
                self.case(
                    index, &place, machine, topology, tp, dtype, experiment, found,
                );
                if !self.advance(&mut place) {
                    break;
                }
            }
        }
    }

    /// Whether the GPUs can multiply the element type, or a mistake pushed.
    fn multiplies(
        &mut self,
        index: usize,
        topology: &Topology,
        tp: u32,
        dtype: DType,
        found: &mut Diagnostics,
    ) -> bool {
        let Some(device) = lacking(topology, tp, dtype) else {
            return true;
        };
        let known: Vec<&str> = device.peak.iter().map(|(dtype, _)| dtype.name()).collect();
        let message = format!(
            "GPU `{}` of {} has no {} arithmetic",
            device.name,
            topology.name,
            dtype.name()
        );
        if !std::mem::replace(&mut self.wrong[index], true) {
            let node = self.draft.dtype.map_or(self.draft.node, |(node, _)| node);
            let help = format!(
                "choose `dtype` from what it has: {}",
                crate::input::list(known)
            );
            found.push(node.wrong(message, "no such arithmetic").help(help));
        }
        false
    }

    /// Steps to the next place in the product of the axes, the last fastest; `false` after the last.
    fn advance(&self, place: &mut [usize]) -> bool {
        for (at, axis) in place.iter_mut().zip(&self.draft.axes).rev() {
            *at += 1;
            if *at < axis.values.len() {
                return true;
            }
            *at = 0;
        }
        false
    }

    #[allow(clippy::too_many_arguments, reason = "the coordinates of a case")]
    fn case(
        &mut self,
        index: usize,
        place: &[usize],
        machine: u32,
        topology: &Topology,
        tp: u32,
        dtype: DType,
        experiment: &mut Experiment,
        found: &mut Diagnostics,
    ) {
        let axes = place.iter().zip(&self.draft.axes);
        // An axis without values was reported; it has no cases.
        let Some(values) = axes
            .map(|(&at, axis)| axis.values.get(at).copied())
            .collect::<Option<Box<[u64]>>>()
        else {
            self.wrong[index] = true;
            return;
        };
        let draft = &self.draft.operators[index];
        let operator = match draft.at(&values, tp, dtype) {
            Ok(operator) => operator,
            Err(mut mistake) => {
                mistake.label = self.where_at(&values, topology, tp);
                self.wrong[index] = true;
                found.push(mistake);
                return;
            }
        };
        if let Some(first) = self.seen.get(&operator) {
            let (first, second) = (self.values(first), self.values(&values));
            let help = match first == second {
                true => "remove one of the two operators".to_owned(),
                false => format!(
                    "at {first} and at {second}: remove values, or give the operator a grid with only the axes that it uses"
                ),
            };
            let mistake = draft.node.wrong(
                format!("the case `{operator}` is there twice"),
                "the second time",
            );
            found.push(mistake.help(help));
            self.wrong[index] = true;
            return;
        }
        self.seen.insert(operator, values.clone());
        let listed = self.draft.strategies.as_deref();
        let strategies = self
            .strategies
            .entry(operator.kind)
            .or_insert_with(|| strategies::choices(listed, &operator));
        experiment.cases.push(Case {
            grid: experiment.grids.len() as u32 - 1,
            machine,
            operator,
            launch: self.draft.launch,
            products: self.draft.products,
            values,
            strategies: Arc::clone(strategies),
        });
    }

    /// `seq = 512, hidden = 2048`.
    fn values(&self, values: &[u64]) -> String {
        let axes = self.draft.axes.iter().zip(values);
        let shown: Vec<String> = axes
            .map(|(axis, value)| format!("{} = {value}", axis.name))
            .collect();
        shown.join(", ")
    }

    fn where_at(&self, values: &[u64], topology: &Topology, tp: u32) -> String {
        let values = match self.values(values) {
            none if none.is_empty() => none,
            some => format!("{some} "),
        };
        format!("in the case {values}on `{}` with tp = {tp}", topology.name)
    }
}
