//! From a schedule to its numbers: verify, simulate, explain, and set in relation.

mod bottleneck;
mod bounds;
mod rank;

pub use rank::{choice, choices};

use super::args::{Launch, RunArgs};
use crate::operator::Operator;
use crate::report::{ExpectedError, Outcome, Verification};
use crate::schedule::Schedule;
use crate::schedule::verify::{GpuSms, Limits, Verified, verify};
use crate::sim::{self, LaunchMode, Options, SimError};
use crate::strategy::{Choice, Site};
use crate::timeline::{Term, Timeline};
use crate::topology::Topology;

/// Schedules up to this many tasks are verified unless told otherwise.
const VERIFY_UP_TO: usize = 100_000;

/// A time to 13 significant digits, as every command ranks and prints it. Sums of equal times may
/// differ in their last bits; so rounded they are equal, and equals stay in the registry's order.
/// Larger times stay larger or become equal.
fn settled(seconds: f64) -> f64 {
    format!("{seconds:.12e}").parse().unwrap_or(seconds)
}

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

    /// The schedule of a choice.
    ///
    /// # Errors
    /// Why it is skipped, in words.
    pub fn build(&self, choice: &Choice) -> Result<Schedule, String> {
        choice
            .build_at(&self.operator, &self.site)
            .map_err(|skip| skip.reason)
    }

    /// The makespan of a schedule [s].
    ///
    /// # Errors
    /// Why it cannot be performed, in words.
    pub fn makespan(&self, schedule: &Schedule) -> Result<f64, String> {
        sim::simulate(schedule, self.topology, &self.options)
            .map(|timeline| settled(timeline.makespan))
            .map_err(|error| error.to_string())
    }

    /// Whether the schedule computes its operator.
    ///
    /// # Errors
    /// The first fault, in words.
    pub fn verify(&self, schedule: &Schedule) -> Result<Verification, String> {
        if schedule.tasks.len() > self.verify_up_to {
            return Ok(Verification::NotVerified(match self.verify_up_to {
                0 => "not asked for".to_owned(),
                _ => format!(
                    "{} tasks; schedules of more than {VERIFY_UP_TO} are verified with --verify",
                    schedule.tasks.len()
                ),
            }));
        }
        let sms = |gpu: u32| {
            let device = self.topology.device(gpu);
            GpuSms {
                total: device.sms,
                collective: device.library.sms,
            }
        };
        let limits = Limits {
            sms: Some(&sms),
            ..Limits::default()
        };
        match verify(schedule, &limits) {
            Ok(Verified::Yes { .. }) => Ok(Verification::Verified),
            Ok(Verified::NotVerified { reason }) => Ok(Verification::NotVerified(reason)),
            Err(fault) => Err(format!("the schedule is wrong: {fault}")),
        }
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
        match self.options.launch {
            LaunchMode::Stream => "stream",
            LaunchMode::Graph => "graph",
        }
    }

    /// How sure the times are.
    pub fn expected_error(&self) -> ExpectedError {
        let measured = self
            .site
            .placement
            .iter()
            .all(|&gpu| !self.topology.device(gpu).gemm_table.is_empty());
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
}

#[cfg(test)]
mod tests {
    use super::settled;

    #[test]
    fn equal_sums_settle_on_one_time() {
        // 0.1 + 0.2 = 0.30000000000000004 in doubles.
        assert_ne!(0.1 + 0.2, 0.3);
        assert_eq!(settled(0.1 + 0.2), settled(0.3));
        assert_eq!(settled(0.3), 0.3);
        // 13 digits are kept, of small times too.
        assert_eq!(settled(1.234_567_890_123e-6), 1.234_567_890_123e-6);
        assert!(settled(1.000_000_000_001e-3) > settled(1e-3));
        assert_eq!(settled(0.0), 0.0);
    }
}
