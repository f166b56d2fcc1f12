//! A machine as closed forms see it, and their evaluation.

use std::sync::Arc;

use super::Terms;
use super::closed::REGISTRY;
use super::closed::interdecom::Ends;
use super::decomposition::{Decomposition, MOST_PIECES};
use super::form::{Form, Stage};
use super::model::{Case, Model, Setting};
use super::network::Network;
use super::parameters::{Overhead, Parameters, family};
use super::site::{Gpu, Site};
use crate::device::Device;
use crate::operator::{Kind, Operator};
use crate::strategy::{Choice, Skip};
use crate::topology::Topology;
use crate::units::count;

/// A topology with ranks placed on it, in the numbers that closed forms need. Built once.
#[derive(Clone, Debug)]
pub struct Machine {
    name: String,
    ranks: u32,
    /// The distinct GPUs among the ranks'; the slowest of them counts.
    pub(super) gpus: Vec<Gpu>,
    /// The link graph with and without contention curves, or why there is none.
    nets: Result<Box<[Network; 2]>, String>,
}

/// The time that a closed form gives one strategy.
#[derive(Clone, Debug, PartialEq)]
pub struct Prediction {
    /// The predicted time \[s\], fitted overhead included.
    pub seconds: f64,
    /// The multiplier of `alpha + beta · message`: d − 1 or n − 1, 0 for what has no steps.
    pub steps: f64,
    /// The message m \[bytes\].
    pub message: f64,
    /// The pipeline's resources.
    pub stages: Vec<Stage>,
    /// The resource that rules: a place in `stages`.
    pub binding: usize,
    /// `steps · (alpha + beta · message)` \[s\]; 0 where the term is off or nothing is fitted.
    pub overhead: f64,
    /// For a decomposition its A, B, C and best number of pieces.
    pub decomposition: Option<Decomposition>,
    /// The best number of pieces rounded as the model rounds it; for a decomposition only.
    pub pieces: Option<u32>,
}

fn skip<T>(reason: impl Into<String>) -> Result<T, Skip> {
    Err(Skip {
        reason: reason.into(),
    })
}

impl Machine {
    /// `topology` with rank r on GPU `placement[r]`.
    pub fn new(topology: &Topology, placement: &[u32]) -> Self {
        let known = (topology.gpus.len()) as u32;
        let nets = if placement.len() < 2 {
            Err("one rank has nobody to communicate with".to_owned())
        } else if let Some(gpu) = placement.iter().find(|gpu| **gpu >= known) {
            Err(format!("GPU {gpu} is none of {}'s {known}", topology.name))
        } else if (1..placement.len()).any(|i| placement[..i].contains(&placement[i])) {
            Err("closed forms know ranks on GPUs of their own only".to_owned())
        } else {
            let net = |contention| Network::new(topology, placement, contention);
            net(true).and_then(|with| Ok(Box::new([with, net(false)?])))
        };
        let mut devices: Vec<&Arc<Device>> = Vec::new();
        for gpu in placement.iter().filter(|gpu| **gpu < known) {
            let device = topology.device(*gpu);
            if !devices.iter().any(|known| Arc::ptr_eq(known, device)) {
                devices.push(device);
            }
        }
        Self {
            name: topology.name.clone(),
            ranks: placement.len() as u32,
            gpus: devices.into_iter().map(|device| Gpu::new(device)).collect(),
            nets,
        }
    }

    /// The topology's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Ranks placed on it.
    pub fn ranks(&self) -> u32 {
        self.ranks
    }

    /// The link graph in numbers.
    ///
    /// # Errors
    /// [`Skip`] where there is none.
    pub(super) fn network(&self, terms: Terms) -> Result<&Network, Skip> {
        match &self.nets {
            Ok(nets) => Ok(&nets[usize::from(!terms.contention)]),
            Err(reason) => skip(reason.clone()),
        }
    }

    /// The time of `choice` on `operator`.
    ///
    /// # Errors
    /// [`Skip`]: the strategy does not apply, or has no closed form.
    pub fn predict(
        &self,
        operator: &Operator,
        choice: &Choice,
        terms: &Terms,
        parameters: &Parameters,
    ) -> Result<Prediction, Skip> {
        let setting = Setting::new(choice, operator.kind);
        let closed = self.applies(operator, choice, setting)?;
        let case = Case::new(operator);
        let net = self.network(*terms)?;
        let forms = self.gpus.iter().filter_map(|gpu| {
            let site = Site::new(gpu, net, *terms, operator.kind, operator.tp);
            let column = case.column(gpu.curve(operator.dtype));
            let model = Model::new(&site, net, column.as_ref(), case);
            let form: Form = (closed.form)(&model, setting)?;
            Some((form.delayed(gpu.graph_launch(*terms)), gpu))
        });
        let slowest = forms.reduce(|a, b| if b.0.seconds() > a.0.seconds() { b } else { a });
        let Some((form, gpu)) = slowest else {
            return skip(format!(
                "`{choice}` has no closed form for {} on {}",
                operator.kind, self.name
            ));
        };
        let found = parameters.get(&self.name, operator.kind, operator.tp, &family(choice));
        let overhead = found.filter(|_| terms.overhead);
        let extra = overhead.map_or(0.0, |o| form.steps * step(o, case.message));
        let stages = form.stages().to_vec();
        let times = stages.iter().map(Stage::seconds).enumerate();
        let binding = times
            .max_by(|a, b| a.1.total_cmp(&b.1))
            .map_or(0, |(place, _)| place);
        let mut prediction = Prediction {
            seconds: form.seconds() + extra,
            steps: form.steps,
            message: case.message,
            stages,
            binding,
            overhead: extra,
            decomposition: None,
            pieces: None,
        };
        if choice.strategy().name() == "interdecom" {
            let site = Site::new(gpu, net, *terms, operator.kind, operator.tp);
            let column = case.column(gpu.curve(operator.dtype));
            let model = Model::new(&site, net, column.as_ref(), case);
            let step = overhead.map_or(0.0, |o| step(o, case.message));
            let form = Ends::new(&model, setting).map(|ends| ends.textbook(&model, step));
            prediction.pieces = form.map(|form| form.pieces(|d| admissible(operator, setting, d)));
            prediction.decomposition = form;
        }
        Ok(prediction)
    }

    /// The closed form of a strategy that applies.
    fn applies(
        &self,
        operator: &Operator,
        choice: &Choice,
        setting: Setting,
    ) -> Result<super::closed::Closed, Skip> {
        if let Err(error) = operator.check() {
            return skip(error.to_string());
        }
        if operator.tp != self.ranks {
            return skip(format!(
                "{} placed, but the operator has {}",
                count(u64::from(self.ranks), "rank"),
                operator.tp
            ));
        }
        let strategy = choice.strategy();
        let name = strategy.name();
        if !strategy.applies(operator.kind) {
            return skip(format!("`{name}` does not perform {}", operator.kind));
        }
        let Some(closed) = REGISTRY.iter().find(|closed| closed.name == name) else {
            return skip(format!("`{name}` has no closed form"));
        };
        if !matches!(choice.params().mover(), crate::schedule::Mover::CopyEngine) {
            return skip("closed forms know copies by copy engines only");
        }
        if choice.params().count("slabs") > 1 {
            return skip("closed forms know chunks of rows only, no slabs along k");
        }
        for gpu in &self.gpus {
            if operator.kind.is_fused() && gpu.curve(operator.dtype).is_none() {
                return skip(format!(
                    "a GPU of {} has no {} arithmetic",
                    self.name,
                    operator.dtype.name()
                ));
            }
        }
        if name.contains("double-ring")
            && let Err(reason) = &self.network(Terms::default())?.pair
        {
            return skip(reason.clone());
        }
        if name == "interdecom" && !admissible(operator, setting, setting.d) {
            let (m, _, _) = operator.mnk().unwrap_or_default();
            return skip(format!(
                "m = {m} cannot be cut into {} chunks for {} ranks",
                setting.d, operator.tp
            ));
        }
        if name.starts_with("fusion") && !has_rows(operator, name, setting) {
            let (m, _, _) = operator.mnk().unwrap_or_default();
            return skip(format!(
                "m = {m} cannot be cut into {} pieces for {} ranks",
                shard_pieces(name, setting),
                operator.tp
            ));
        }
        Ok(*closed)
    }
}

/// Pieces into which a fusion cuts a shard.
pub(super) fn shard_pieces(name: &str, setting: Setting) -> u64 {
    u64::from(setting.chunks) * if name.contains("double") { 2 } else { 1 }
}

/// Whether a fusion has a row for every piece of every shard.
fn has_rows(operator: &Operator, name: &str, setting: Setting) -> bool {
    let (m, ..) = operator.mnk().unwrap_or_default();
    let n = u64::from(operator.tp).max(1);
    m.is_multiple_of(n) && m / n >= shard_pieces(name, setting)
}

/// The rows that the number of pieces of a decomposition has to divide: a shard's, but all of them
/// where the library reduces a piece for everyone.
fn divisible_rows(operator: &Operator, setting: Setting) -> Option<u64> {
    let (m, ..) = operator.mnk()?;
    let shards = match operator.kind {
        Kind::GemmAr if !setting.direct => 1,
        _ => u64::from(operator.tp).max(1),
    };
    m.is_multiple_of(shards).then_some(m / shards)
}

/// Whether the rows can be cut into `d` pieces for the ranks.
fn admissible(operator: &Operator, setting: Setting, d: u32) -> bool {
    let rows = divisible_rows(operator, setting);
    d <= MOST_PIECES && rows.is_some_and(|rows| rows.is_multiple_of(u64::from(d.max(1))))
}

/// The fitted cost of one step \[s\].
fn step(overhead: &Overhead, message: f64) -> f64 {
    overhead.alpha + overhead.beta * message
}
