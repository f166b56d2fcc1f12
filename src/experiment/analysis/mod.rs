//! What follows from an experiment's results: errors of the closed forms, quality of the choices,
//! winners, what a wrong d costs, bandwidths, and whether what a paper claims holds here.
//!
//! The truth is the simulator; nothing here is a measurement. All of it is a function of the
//! results, the experiment and a seed. The *main* cases are those of the first grid with fused
//! operators on unchanged machines; a share of them, chosen by a seeded hash of each case's
//! operator and machine, is fitted on, and the rest judges the fit. What needs no model (winners,
//! d, bandwidths) is counted on all main cases.

pub mod bandwidth;
pub mod cases;
pub mod claims;
pub mod decomposition;
pub mod models;
pub mod named;
pub mod selection;
pub mod statistics;
pub mod sweep;
pub mod winners;

use std::collections::BTreeMap;
use std::sync::Arc;

pub use cases::{Case, Family, Group, Run, operator_title};

use super::published::Published;
use super::results::Results;
use super::{AnalysisOptions, Experiment, Quantity};
use crate::calibrate::lot;
use crate::predict::{Machine, Parameters, Selector};

/// Everything that reports and figures show.
#[derive(Clone, Debug)]
pub struct Analysis {
    pub name: String,
    pub about: String,
    /// How the cases were split.
    pub options: AnalysisOptions,
    pub published: Option<Published>,
    /// All cases with at least one time, in the order of the results.
    pub cases: Vec<Case>,
    /// Indices of the main cases.
    pub main: Vec<usize>,
    /// Per main case: whether it was fitted on.
    pub train: Vec<bool>,
    /// Empty without main cases.
    pub models: Vec<models::Model>,
    pub errors: Vec<models::Errors>,
    /// Choices of the selector, one per main case where it can choose.
    pub judged: Vec<selection::Judged>,
    /// Choices that the grid does not have; they count as neither right nor wrong.
    pub unsimulated: Vec<selection::Unsimulated>,
    pub winners: Vec<winners::Winners>,
    /// Decompositions of the main cases.
    pub workloads: Vec<decomposition::Workload>,
    pub curves: Vec<bandwidth::Curve>,
    pub sweeps: Vec<sweep::Sweep>,
    /// Figures by name, as `summary.json` and `published.yaml` call them.
    pub named: BTreeMap<String, Quantity>,
    pub claims: Vec<claims::Claim>,
}

/// The machines of an experiment with what closed forms need of them.
#[derive(Debug)]
pub struct Machines<'e> {
    known: Vec<(&'e super::Machine, u32, Machine)>,
}

impl<'e> Machines<'e> {
    /// Prepares every machine for the numbers of ranks that its cases have, rank r on GPU r.
    fn new(experiment: &'e Experiment) -> Self {
        let mut known: Vec<(&super::Machine, u32, Machine)> = Vec::new();
        for case in &experiment.cases {
            let machine = &experiment.machines[case.machine as usize];
            let tp = case.operator.tp;
            let same = |(other, ranks, _): &(&super::Machine, u32, Machine)| {
                *ranks == tp && std::ptr::eq(*other, machine)
            };
            if case.operator.kind.is_fused() && machine.sets.is_empty() && !known.iter().any(same) {
                let placement: Vec<u32> = (0..tp).collect();
                known.push((machine, tp, Machine::new(&machine.topology, &placement)));
            }
        }
        Self { known }
    }

    /// The machine of a case; `None` for one that the experiment does not have.
    fn of(&self, case: &Case) -> Option<&Machine> {
        let mut known = self.known.iter();
        known
            .find(|(machine, tp, _)| {
                machine.topology.name == *case.topology && *tp == case.operator.tp
            })
            .map(|(.., machine)| machine)
    }
}

impl Analysis {
    /// The main cases.
    pub fn main_cases(&self) -> impl ExactSizeIterator<Item = &Case> {
        self.main.iter().map(|&at| &self.cases[at])
    }

    /// The groups of the main cases.
    pub fn groups(&self) -> Vec<Group> {
        cases::groups(self.main_cases())
    }

    /// The choices on unseen cases, or on all, summed up.
    pub fn choices(&self, unseen: bool) -> Option<selection::Choices> {
        let judged: Vec<&selection::Judged> = self.judged_of(unseen);
        selection::choices(&self.cases, &judged, self.options.seed)
    }

    /// The confusion of the choices on unseen cases, or on all.
    pub fn confusion(&self, unseen: bool) -> selection::Confusion {
        selection::confusion(&self.cases, &self.judged_of(unseen))
    }

    fn judged_of(&self, unseen: bool) -> Vec<&selection::Judged> {
        let judged = self.judged.iter();
        judged.filter(|j| !(unseen && j.train)).collect()
    }

    /// What decompositions cost in a group of main cases; in all of them for `None`.
    pub fn penalty(&self, group: Option<&Group>) -> Option<decomposition::Penalty> {
        let here = self
            .workloads
            .iter()
            .filter(|w| group.is_none_or(|group| Group::of(&self.cases[w.case]) == *group));
        decomposition::penalty(&here.collect::<Vec<_>>())
    }

    /// Speed-ups over the fixed d by value of an axis.
    pub fn gains(&self, axis: &str) -> Vec<decomposition::Gain> {
        decomposition::gains(&self.cases, &self.workloads, axis)
    }

    /// A variant of the closed forms.
    pub fn model(&self, name: &str) -> Option<&models::Model> {
        self.models.iter().find(|model| model.name == name)
    }

    /// Its errors on unseen cases, fusions with default parameters.
    pub fn error(&self, model: &str, family: Family) -> Option<&models::Errors> {
        let mut errors = self.errors.iter();
        errors.find(|e| e.model == model && e.family == family && e.usual && !e.train)
    }

    /// The fitted overheads of the accurate form, for `params.yaml`.
    pub fn parameters(&self) -> Option<&Parameters> {
        self.model("extended").map(|model| &model.parameters)
    }

    /// Names of the axes of the main cases.
    pub fn axes(&self) -> Vec<Arc<str>> {
        let first = self.main.first().map(|&at| &self.cases[at]);
        let axes = first.into_iter().flat_map(|case| &case.axes);
        axes.map(|(name, _)| Arc::clone(name)).collect()
    }
}

/// Analyses results; `published` are the figures to stand beside ours.
pub fn analyse(
    experiment: &Experiment,
    results: &Results,
    published: Option<Published>,
) -> Analysis {
    let options = experiment.analysis.unwrap_or_default();
    let all = cases::cases(results);
    let grid = all
        .iter()
        .find(|case| is_main(case))
        .map(|case| Arc::clone(&case.grid));
    let main: Vec<usize> = (0..all.len())
        .filter(|&at| is_main(&all[at]) && Some(&all[at].grid) == grid.as_ref())
        .collect();
    let chosen: Vec<&Case> = main.iter().map(|&at| &all[at]).collect();
    let train: Vec<bool> = chosen
        .iter()
        .map(|case| lot(&case.title(), options.seed) < options.train)
        .collect();
    let machines = Machines::new(experiment);
    let models = models::models(&chosen, &train, &machines, options.seed);
    let errors = models::errors(&chosen, &train, &models, options.seed);
    let (judged, unsimulated) = judged(&chosen, &main, &train, &models, &machines);
    let mut analysis = Analysis {
        name: experiment.name.clone(),
        about: experiment.about.clone(),
        options,
        published,
        judged,
        unsimulated,
        winners: winners::winners(&all, &main),
        workloads: workloads(&chosen, &main, &models, &machines),
        curves: bandwidth::curves(&all),
        sweeps: sweep::sweeps(&all),
        cases: all,
        main,
        train,
        models,
        errors,
        named: BTreeMap::new(),
        claims: Vec::new(),
    };
    analysis.named = named::figures(&analysis);
    analysis.claims = claims::check(&analysis);
    analysis
}

fn is_main(case: &Case) -> bool {
    case.operator.kind.is_fused() && case.sets.is_empty()
}

/// The selector's choices, with the accurate form and its fitted overheads: those that were
/// simulated, judged, and the others.
fn judged(
    chosen: &[&Case],
    main: &[usize],
    train: &[bool],
    models: &[models::Model],
    machines: &Machines<'_>,
) -> (Vec<selection::Judged>, Vec<selection::Unsimulated>) {
    let (mut judged, mut unsimulated) = (Vec::new(), Vec::new());
    let Some(model) = models.iter().find(|model| model.name == "extended") else {
        return (judged, unsimulated);
    };
    let groups = cases::groups(chosen.iter().copied());
    let mut selectors: Vec<(Group, Option<Selector>)> =
        groups.into_iter().map(|group| (group, None)).collect();
    for (at, case) in chosen.iter().enumerate() {
        let group = Group::of(case);
        let Some((machine, (m, n, k))) = machines.of(case).zip(case.operator.mnk()) else {
            continue;
        };
        let Some((_, slot)) = selectors.iter_mut().find(|(other, _)| *other == group) else {
            continue;
        };
        let selector = slot.get_or_insert_with(|| {
            let (kind, dtype) = (case.operator.kind, case.operator.dtype);
            let terms = case.terms(&model.terms);
            Selector::new(machine, kind, dtype, &terms, &model.parameters)
        });
        let selection = selector.choose(m, n, k);
        let pick = selection.pick.to_string();
        let (place, train) = (main[at], train[at]);
        match case.runs.iter().position(|run| *run.strategy == *pick) {
            Some(pick) => {
                let seconds = selection.seconds;
                judged.push(selection::judge(place, case, train, pick, seconds));
            }
            None => unsimulated.push(selection::Unsimulated {
                case: place,
                train,
                pick,
            }),
        }
    }
    (judged, unsimulated)
}

/// The main cases' decompositions; a predicted d is the one to which a closed form with its
/// overhead gives the shortest time.
fn workloads(
    chosen: &[&Case],
    main: &[usize],
    models: &[models::Model],
    machines: &Machines<'_>,
) -> Vec<decomposition::Workload> {
    let model = |name: &str| models.iter().find(|model| model.name == name);
    let workload = |(at, case): (usize, &&Case)| {
        let mut workload = decomposition::Workload::of(main[at], case)?;
        let best = |model: &models::Model| {
            let runs = case.runs.iter().zip(&model.predictions[at]);
            let mut times: Vec<(u32, f64)> = runs
                .filter_map(|(run, predicted)| Some((run.pieces?, (*predicted)?)))
                .collect();
            times.sort_by_key(|(d, _)| *d);
            decomposition::fastest(times)
        };
        workload.extended = model("extended").and_then(best);
        let Some(model) = model("compass") else {
            return Some(workload);
        };
        workload.predicted = best(model);
        let mut runs = case.runs.iter();
        workload.form = runs.find_map(|run| {
            let decomposed = run.pieces.is_some_and(|d| d > 1);
            let machine = machines.of(case).filter(|_| decomposed)?;
            let (terms, parameters) = (case.terms(&model.terms), &model.parameters);
            let found = machine.predict(&case.operator, &run.choice, &terms, parameters);
            found.ok()?.decomposition
        });
        Some(workload)
    };
    chosen.iter().enumerate().filter_map(workload).collect()
}
