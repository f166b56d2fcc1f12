//! From a schedule to its time: build, verify, simulate. Every command that ranks or tabulates
//! schedules asks here, so that they agree to the last digit.

mod bounds;

use crate::operator::Operator;
use crate::schedule::Schedule;
use crate::schedule::verify::{GpuSms, Limits, Verified, verify};
use crate::sim::{self, Options};
use crate::strategy::{Choice, Site};
use crate::topology::Topology;

/// Schedules up to this many tasks are verified unless told otherwise.
pub const VERIFY_UP_TO: usize = 100_000;

/// A time to 13 significant digits, as every command ranks and prints it. Sums of equal times may
/// differ in their last bits; so rounded they are equal, and equals stay in the registry's order.
/// Larger times stay larger or become equal.
pub fn settled(seconds: f64) -> f64 {
    format!("{seconds:.12e}").parse().unwrap_or(seconds)
}

/// Whether a schedule was proved to compute its operator.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verification {
    /// Every output is complete and no two accesses race.
    Verified,
    /// Not checked, and why.
    NotVerified(String),
}

/// An operator at a site, and how its schedules are checked and run.
#[derive(Copy, Clone, Debug)]
pub struct Trial<'a, 't> {
    /// The machine with the ranks on it; it keeps the rings it found.
    pub site: &'a Site<'t>,
    pub operator: Operator,
    pub options: Options,
    /// Tasks up to which schedules are verified.
    pub verify_up_to: usize,
}

impl Trial<'_, '_> {
    fn topology(&self) -> &Topology {
        self.site.topology
    }

    /// The schedule of a choice.
    ///
    /// # Errors
    /// Why it is skipped, in words.
    pub fn build(&self, choice: &Choice) -> Result<Schedule, String> {
        choice
            .build_at(&self.operator, self.site)
            .map_err(|skip| skip.reason)
    }

    /// The makespan of a schedule \[s\].
    ///
    /// # Errors
    /// Why it cannot be performed, in words.
    pub fn makespan(&self, schedule: &Schedule) -> Result<f64, String> {
        sim::simulate(schedule, self.topology(), &self.options)
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
            let device = self.topology().device(gpu);
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

    /// Fastest unsplit GEMM of a rank on its own GPU, the slowest rank's \[s\]; 0 for a bare
    /// collective.
    pub fn unsplit_gemm(&self) -> f64 {
        let placement = &self.site.placement;
        let gemm = sim::unsplit_gemm(&self.operator, self.topology(), placement, &self.options);
        settled(gemm.unwrap_or(0.0))
    }

    /// The same by Duet's own kernels, where the options know their tiles.
    pub fn unsplit_own(&self) -> f64 {
        let placement = &self.site.placement;
        let gemm = sim::unsplit_own(&self.operator, self.topology(), placement, &self.options);
        settled(gemm.unwrap_or(0.0))
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
