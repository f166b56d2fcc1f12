//! Predicting cases: by the simulator, by closed forms, and from the data sheet alone.

use std::fmt::Write;

use rayon::prelude::*;

use super::{Chosen, Prediction, Predictions, Sigmas};
use crate::experiment::judge::{Trial, settled};
use crate::gpu::plan::Path;
use crate::input::Fingerprint;
use crate::operator::Operator;
use crate::predict::{self, Parameters, Selector, Terms};
use crate::schedule::{Schedule, TaskId, Work};
use crate::sim;
use crate::strategy::{self, Site};
use crate::topology::Topology;
use crate::topology::paths::with_path;
use crate::validate::key::{Case, Group, Reference, Subject};
use crate::validate::simulated;

/// What predicts.
#[derive(Copy, Clone, Debug)]
pub struct Model<'a> {
    /// A calibrated machine, usually.
    pub topology: &'a Topology,
    /// How sure its numbers are; `None`: no intervals.
    pub sigmas: Option<Sigmas>,
    /// The same machine by its data sheet; `None`: not predicted.
    pub spec: Option<&'a Topology>,
    /// Overheads of the closed forms.
    pub parameters: &'a Parameters,
}

/// A group's machine.
struct Place<'a> {
    group: &'a Group,
    site: Site<'a>,
    spec: Option<Site<'a>>,
    closed: predict::Machine,
}

/// Predicts cases, those of one group standing together; `step` is called after each.
pub fn predict(cases: &[Case], model: &Model<'_>, step: &(dyn Fn() + Sync)) -> Predictions {
    let groups: Vec<&[Case]> = cases.chunk_by(|a, b| a.group == b.group).collect();
    let rows: Vec<Vec<Prediction>> = (groups.par_iter())
        .map(|cases| group(cases, model, step))
        .collect();
    let name = model.topology.name.clone();
    Predictions::new(name, fingerprint(model), rows.concat())
}

/// A hash of all numbers that predictions depend on.
fn fingerprint(model: &Model<'_>) -> String {
    let mut hash = Fingerprint::default();
    // Hashing cannot fail.
    let _ = write!(hash, "{} {:?}", env!("CARGO_PKG_VERSION"), model.topology);
    let _ = write!(hash, "{:?} {:?}", model.spec, model.parameters);
    hash.to_string()
}

fn group(cases: &[Case], model: &Model<'_>, step: &(dyn Fn() + Sync)) -> Vec<Prediction> {
    let Some(Case { group, .. }) = cases.first() else {
        return Vec::new();
    };
    let (topology, spec) = (
        with_path(model.topology, group.choice()),
        model.spec.map(|spec| with_path(spec, group.choice())),
    );
    let place = Place {
        group,
        site: Site::new(&topology, group.placement.to_vec()),
        spec: spec
            .as_ref()
            .map(|spec| Site::new(spec, group.placement.to_vec())),
        closed: predict::Machine::new(&topology, &group.placement),
    };
    let mut rows: Vec<Prediction> = Vec::new();
    for case in cases {
        rows.push(match case.subject {
            Subject::Reference(Reference::Copy) if group.path != Path::P2p => copied(case, model),
            _ => place.case(case, model),
        });
        step();
    }
    mark(&mut rows, &place, model);
    rows
}

/// A plain copy crosses the link between the GPUs, whatever the group's path.
fn copied(case: &Case, model: &Model<'_>) -> Prediction {
    let linked = Case {
        group: Group {
            path: Path::P2p,
            ..case.group.clone()
        },
        subject: case.subject.clone(),
    };
    let topology = with_path(model.topology, linked.group.choice());
    let place = Place {
        group: &linked.group,
        site: Site::new(&topology, case.group.placement.to_vec()),
        spec: model
            .spec
            .map(|spec| Site::new(spec, case.group.placement.to_vec())),
        closed: predict::Machine::new(&topology, &case.group.placement),
    };
    Prediction {
        case: case.clone(),
        ..place.case(&linked, model)
    }
}

/// Marks the fastest strategy by the simulator and the one that the selector takes.
fn mark(rows: &mut [Prediction], place: &Place<'_>, model: &Model<'_>) {
    let times = rows.iter().enumerate().filter_map(|(at, row)| {
        row.case.strategy()?;
        Some((at, row.simulated?))
    });
    if let Some((at, _)) = times.reduce(|best, next| if next.1 < best.1 { next } else { best }) {
        rows[at].chosen.simulation = true;
    }
    let Operator { kind, dtype, .. } = place.group.operator;
    let Some((m, n, k)) = place.group.operator.mnk() else {
        return;
    };
    let terms = Terms::default();
    let selector = Selector::new(&place.closed, kind, dtype, &terms, model.parameters);
    let chosen = selector.choose(m, n, k);
    let pick = strategy::parse(&chosen.pick.to_string()).map(|choice| choice.to_string());
    if let (Ok(pick), true) = (pick, chosen.seconds.is_finite()) {
        for row in rows.iter_mut() {
            row.chosen.selector = row.case.strategy() == Some(&pick);
        }
    }
}

impl Place<'_> {
    fn trial<'s, 't>(&self, site: &'s Site<'t>) -> Trial<'s, 't> {
        simulated::trial(self.group, site)
    }

    fn case(&self, case: &Case, model: &Model<'_>) -> Prediction {
        let mut row = Prediction {
            case: case.clone(),
            simulated: None,
            interval: None,
            closed: None,
            closed_no_overhead: None,
            compass: None,
            steps: 0.0,
            message: self.group.operator.message_bytes() as f64,
            spec: None,
            chosen: Chosen::default(),
            gemm_measured: Some(self.gemm_measured()),
            tasks: 0,
            handoffs: 0,
            skipped: None,
        };
        if let Some(strategy) = case.strategy() {
            self.closed(strategy, model, &mut row);
        }
        if let Err(reason) = self.simulate(&case.subject, model, &mut row) {
            row.skipped = Some(reason);
        }
        let spec = self.spec.as_ref();
        row.spec = spec.and_then(|site| self.seconds(&case.subject, site).ok());
        row
    }

    /// Whether the machine's table has the column of a rank's product.
    fn gemm_measured(&self) -> bool {
        let Some((_, n, k)) = self.group.operator.rank_gemm() else {
            return false;
        };
        let gpu = self.group.placement.first().copied().unwrap_or(0);
        let table = &self.site.topology.device(gpu).gemm_table;
        table.iter().any(|point| (point.n, point.k) == (n, k))
    }

    fn closed(&self, strategy: &str, model: &Model<'_>, row: &mut Prediction) {
        let Ok(choice) = strategy::parse(strategy) else {
            return;
        };
        let operator = &self.group.operator;
        let all = Terms::default();
        let none = Parameters::default();
        let predict = |terms: &Terms, parameters: &Parameters| {
            self.closed
                .predict(operator, &choice, terms, parameters)
                .ok()
        };
        row.closed = predict(&all, model.parameters).map(|found| settled(found.seconds));
        row.compass = predict(&Terms::compass().without_overhead(), &none)
            .map(|found| settled(found.seconds));
        if let Some(found) = predict(&all.without_overhead(), &none) {
            row.closed_no_overhead = Some(settled(found.seconds));
            row.steps = found.steps;
        }
    }

    /// The makespan alone \[s\].
    fn seconds(&self, subject: &Subject, site: &Site<'_>) -> Result<f64, String> {
        match simulated::performed(subject, self.group, site)? {
            Some(schedule) => self.trial(site).makespan(&schedule),
            None => Ok(self.product(subject, site)),
        }
    }

    /// A product alone, in one piece \[s\].
    fn product(&self, subject: &Subject, site: &Site<'_>) -> f64 {
        let trial = self.trial(site);
        match subject {
            Subject::Reference(Reference::GemmOwn) => trial.unsplit_own(),
            _ => trial.unsplit_gemm(),
        }
    }

    fn simulate(
        &self,
        subject: &Subject,
        model: &Model<'_>,
        row: &mut Prediction,
    ) -> Result<(), String> {
        let site = &self.site;
        let Some(schedule) = simulated::performed(subject, self.group, site)? else {
            row.simulated = Some(self.product(subject, site));
            return Ok(());
        };
        let options = self.trial(site).options;
        let found = sim::evaluate(&schedule, site.topology, &options);
        let found = found.map_err(|error| error.to_string())?;
        row.simulated = Some(settled(found.timeline.makespan));
        row.tasks = schedule.tasks.len() as u32;
        row.handoffs = handoffs(&schedule);
        let library = (schedule.tasks.iter()).any(|task| matches!(task.work, Work::Collective(_)));
        let gpu = self.group.placement.first().copied().unwrap_or(0);
        let device = site.topology.device(gpu);
        row.interval = (model.sigmas)
            .map(|sigmas| sigmas.of_products(&schedule, device))
            .map(|sigmas| sigmas.interval(&found.explanation, self.group.choice(), library));
        Ok(())
    }
}

/// Dependencies of a task of one rank on a task of another.
fn handoffs(schedule: &Schedule) -> u32 {
    let count = schedule.tasks.iter().enumerate().map(|(at, task)| {
        let deps = schedule.deps(TaskId(at as u32)).iter();
        deps.filter(|dep| schedule.task(dep.task).rank != task.rank)
            .count() as u32
    });
    count.sum()
}
