//! The explanation of a makespan: terms that add up to it.

use crate::units::Seconds;

/// A cause of time.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Term {
    /// Arithmetic of the busiest GPU, split without loss.
    Compute,
    /// Compute lanes waiting for one another.
    Idle,
    /// Communication beyond all compute, even under perfect overlap.
    ExposedCommunication,
    /// Compute and communication that did not run side by side.
    FillAndDrain,
    /// Partly filled waves of GEMM tiles.
    WaveQuantisation,
    /// Contention curves, shared memory bandwidth, SMs taken by other kernels.
    Contention,
    /// Launches, start-ups, waits, flags and submissions.
    SyncAndLaunch,
}

impl Term {
    /// All terms, in the order in which they add up.
    pub const ALL: [Self; 7] = [
        Self::Compute,
        Self::Idle,
        Self::ExposedCommunication,
        Self::FillAndDrain,
        Self::WaveQuantisation,
        Self::Contention,
        Self::SyncAndLaunch,
    ];

    /// Its name in sentences.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Compute => "compute",
            Self::Idle => "idle",
            Self::ExposedCommunication => "exposed communication",
            Self::FillAndDrain => "fill and drain",
            Self::WaveQuantisation => "wave quantisation",
            Self::Contention => "contention",
            Self::SyncAndLaunch => "sync and launch",
        }
    }

    /// Its key in JSON and CSV, with the unit.
    pub const fn key(self) -> &'static str {
        match self {
            Self::Compute => "compute_s",
            Self::Idle => "idle_s",
            Self::ExposedCommunication => "exposed_communication_s",
            Self::FillAndDrain => "fill_and_drain_s",
            Self::WaveQuantisation => "wave_quantisation_s",
            Self::Contention => "contention_s",
            Self::SyncAndLaunch => "sync_and_launch_s",
        }
    }
}

/// Where the time goes.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Explanation {
    /// Seconds by term, one entry per term; they add up to `makespan`. A term is negative where
    /// taking its cause away makes the schedule slower (a later start can avoid a worse clash).
    pub terms: Vec<(Term, f64)>,
    /// \[s\].
    pub makespan: f64,
}

impl Explanation {
    /// Seconds of a term.
    pub fn get(&self, term: Term) -> f64 {
        self.terms
            .iter()
            .find(|(t, _)| *t == term)
            .map_or(0.0, |(_, seconds)| *seconds)
    }

    /// One sentence: compute, then the other terms of at least 1 % of the makespan, largest first.
    pub fn sentence(&self) -> String {
        if self.makespan <= 0.0 {
            return "takes no time".to_owned();
        }
        let mut rest: Vec<(Term, f64)> = self
            .terms
            .iter()
            .copied()
            .filter(|(term, seconds)| {
                *term != Term::Compute && seconds.abs() >= 0.01 * self.makespan
            })
            .collect();
        rest.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
        let share = |seconds: f64| format!("{:.0} %", 100.0 * seconds / self.makespan);
        let amount = |seconds: f64| {
            let sign = if seconds < 0.0 { "−" } else { "" };
            format!("{sign}{}", Seconds::of(seconds.abs()))
        };
        let compute = self.get(Term::Compute);
        let mut parts: Vec<String> = Vec::new();
        if compute >= 0.01 * self.makespan {
            parts.push(format!(
                "{} of compute ({})",
                amount(compute),
                share(compute)
            ));
        }
        for (term, seconds) in rest {
            parts.push(format!(
                "{} {} ({})",
                amount(seconds),
                term.name(),
                share(seconds)
            ));
        }
        match parts.split_last() {
            None => "takes no time".to_owned(),
            Some((only, [])) => format!("{} is {only}", Seconds::of(self.makespan)),
            Some((last, first)) => format!(
                "{} is {} and {last}",
                Seconds::of(self.makespan),
                first.join(", ")
            ),
        }
    }
}
