//! From a schedule to its numbers: verify, simulate, explain, and set in relation.

mod bottleneck;
mod rank;

pub use rank::{choice, choices};

use super::args::{Launch, RunArgs};
use crate::experiment::judge::{Trial, VERIFY_UP_TO, settled};
use crate::operator::Operator;
use crate::report::{ExpectedError, Outcome, Verification};
use crate::schedule::Schedule;
use crate::sim::{self, LaunchMode, Options, SimError};
use crate::strategy::{Choice, Site};
use crate::timeline::{Term, Timeline};
use crate::topology::Topology;
use crate::validate::held::held;

/// Judges schedules of one operator on one machine.
#[derive(Debug)]
pub struct Judge<'t> {
    topology: &'t Topology,
    operator: Operator,
    options: Options,
    /// Tasks up to which schedules are verified.
    verify_up_to: usize,
    /// The machine with the ranks on it; it keeps the rings it found.
    site: Site<'t>,
}

/// One schedule's numbers; times in seconds.
#[derive(Clone, Debug)]
pub struct Numbers {
    pub makespan: f64,
    gemm_only: f64,
    comm_only: f64,
    tasks: usize,
    bottleneck: String,
    verification: Verification,
    terms: Vec<(Term, f64)>,
    why: String,
}

impl<'t> Judge<'t> {
    /// A judge with rank r on GPU r.
    pub fn new(topology: &'t Topology, operator: Operator, run: &RunArgs) -> Self {
        Self::placed(topology, operator, (0..operator.tp).collect(), run)
    }

    /// A judge with rank r on GPU `placement[r]`.
    pub fn placed(
        topology: &'t Topology,
        operator: Operator,
        placement: Vec<u32>,
        run: &RunArgs,
    ) -> Self {
        Self {
            topology,
            operator,
            options: Options {
                launch: match run.launch {
                    Launch::Stream => LaunchMode::Stream,
                    Launch::Graph => LaunchMode::Graph,
                },
                ..Options::default()
            },
            verify_up_to: match (run.verify, run.no_verify) {
                (true, _) => usize::MAX,
                (_, true) => 0,
                _ => VERIFY_UP_TO,
            },
            site: Site::new(topology, placement),
        }
    }

    /// The same on a changed machine, for schedules already verified.
    pub fn on<'u>(&self, topology: &'u Topology) -> Judge<'u> {
        Judge {
            topology,
            operator: self.operator,
            options: self.options,
            verify_up_to: 0,
            site: Site::new(topology, self.site.placement.clone()),
        }
    }

    /// The operator at its site, as experiments see it.
    fn trial(&self) -> Trial<'_, 't> {
        Trial {
            site: &self.site,
            operator: self.operator,
            options: self.options,
            verify_up_to: self.verify_up_to,
        }
    }

    /// The schedule of a choice.
    ///
    /// # Errors
    /// Why it is skipped, in words.
    pub fn build(&self, choice: &Choice) -> Result<Schedule, String> {
        self.trial().build(choice)
    }

    /// The makespan of a schedule [s].
    ///
    /// # Errors
    /// Why it cannot be performed, in words.
    pub fn makespan(&self, schedule: &Schedule) -> Result<f64, String> {
        self.trial().makespan(schedule)
    }

    /// Whether the schedule computes its operator.
    ///
    /// # Errors
    /// The first fault, in words.
    pub fn verify(&self, schedule: &Schedule) -> Result<Verification, String> {
        self.trial().verify(schedule)
    }

    /// Fastest unsplit GEMM of a rank on its own GPU, the slowest rank's [s]; 0 for a bare
    /// collective.
    pub fn unsplit_gemm(&self) -> f64 {
        self.trial().unsplit_gemm()
    }

    /// No strategy can be faster [s].
    pub fn lower_bound(&self) -> Option<f64> {
        self.trial().lower_bound()
    }

    /// The timeline of a schedule and everything that follows from it; counters over time are
    /// kept if `record`.
    ///
    /// # Errors
    /// Why it cannot be performed, in words.
    pub fn perform(
        &self,
        schedule: &Schedule,
        record: bool,
    ) -> Result<(Timeline, Numbers), String> {
        let verification = self.verify(schedule)?;
        let words = |error: SimError| error.to_string();
        let mut options = self.options;
        options.terms.communication = false;
        let gemm_only = sim::simulate(schedule, self.topology, &options).map_err(words)?;
        let options = Options {
            record,
            ..self.options
        };
        let evaluation = sim::evaluate(schedule, self.topology, &options).map_err(words)?;
        let timeline = evaluation.timeline;
        let numbers = Numbers {
            makespan: settled(timeline.makespan),
            gemm_only: settled(gemm_only.makespan),
            comm_only: settled(evaluation.comm_only),
            tasks: schedule.tasks.len(),
            bottleneck: bottleneck::bottleneck(self.topology, &timeline),
            verification,
            terms: evaluation.explanation.terms.clone(),
            why: evaluation.explanation.sentence(),
        };
        Ok((timeline, numbers))
    }

    /// Sets the numbers in relation to the baseline's makespan.
    pub fn outcome(&self, strategy: String, numbers: Numbers, baseline: Option<f64>) -> Outcome {
        let unsplit = self.unsplit_gemm();
        let makespan = numbers.makespan;
        // Less than the rounding of sums of times is nothing.
        let ect = match makespan - unsplit {
            rounding if rounding.abs() < 1e-12 * makespan => 0.0,
            ect => ect,
        };
        Outcome {
            strategy,
            makespan,
            gemm_only: numbers.gemm_only,
            comm_only: numbers.comm_only,
            exposed: makespan - numbers.gemm_only,
            ect,
            overlap_efficiency: baseline
                .map(|baseline| baseline - unsplit)
                .filter(|baseline| *baseline > 0.0 && self.operator.kind.is_fused())
                .map(|baseline| 1.0 - ect / baseline),
            speedup: baseline
                .filter(|_| makespan > 0.0)
                .map(|baseline| baseline / makespan),
            bandwidth: (!self.operator.kind.is_fused() && makespan > 0.0).then(|| {
                let algbw = self.operator.message_bytes() as f64 / makespan;
                (algbw, algbw * self.operator.bus_factor())
            }),
            tasks: numbers.tasks,
            bottleneck: numbers.bottleneck,
            verification: numbers.verification,
            terms: numbers.terms,
            why: numbers.why,
        }
    }

    /// `stream` or `graph`.
    pub fn launch(&self) -> &'static str {
        self.options.launch.name()
    }

    /// How sure the times are.
    pub fn expected_error(&self) -> ExpectedError {
        expected_error(self.topology, &self.site.placement)
    }
}

/// How sure times on the GPUs of `placement` are: by the report of measurements that judged this topology,
/// where there is one.
pub fn expected_error(topology: &Topology, placement: &[u32]) -> ExpectedError {
    if let Some(held) = held(&topology.name) {
        return ExpectedError {
            relative: Some(held.mape),
            basis: format!(
                "mean of {} cases of `{}` as shipped, predicted before they were measured on {}; worst {}",
                held.cases, held.experiment, held.date, held.worst
            ),
        };
    }
    let table = |gpu: &u32| &topology.device(*gpu).gemm_table;
    let measured = placement.iter().all(|gpu| !table(gpu).is_empty());
    ExpectedError {
        relative: None,
        basis: if measured {
            "not validated; GEMM times measured, other numbers as the topology's sources say"
        } else {
            "not validated; nothing measured, numbers as the topology's sources say"
        }
        .to_owned(),
    }
}
