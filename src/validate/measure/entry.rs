//! What is known of one case while its group is measured.

use super::variant::Variant;
use crate::gpu::compare::Verdict;
use crate::gpu::raw::nvml::State;
use crate::gpu::timing::{Sample, Summary, Timer};
use crate::validate::table::{Conditions, Row, median};

/// A variant under way.
pub(super) struct Entry<'m> {
    pub variant: Variant,
    pub timer: Option<Timer<'m>>,
    pub excluded: Option<String>,
    /// Of the comparison before.
    pub verdict: Option<Verdict>,
    pub samples: Vec<Sample>,
    pub states: Vec<State>,
}

impl From<Variant> for Entry<'_> {
    fn from(variant: Variant) -> Self {
        Self {
            variant,
            timer: None,
            excluded: None,
            verdict: None,
            samples: Vec::new(),
            states: Vec::new(),
        }
    }
}

impl Entry<'_> {
    /// Its row; `conditions` are those of all rows, without the state of the GPU.
    pub fn row(&self, conditions: &Conditions) -> Row {
        let times: Vec<f64> = self.samples.iter().map(|s| s.makespan).collect();
        let summary = Summary::of(&times);
        let skews: Vec<f64> = self.samples.iter().filter_map(Sample::skew).collect();
        let of = |value: fn(&State) -> Option<f64>| {
            median(&self.states.iter().filter_map(value).collect::<Vec<f64>>())
        };
        let gated = self.samples.iter().all(|sample| sample.gated);
        let ungated =
            (!gated).then(|| "ungated: submission by the host is part of the times".to_owned());
        let error = self.verdict.as_ref().map(|verdict| verdict.relative);
        Row {
            case: self.variant.case.clone(),
            library: self.variant.library,
            rounds: times.len() as u32,
            repeats: 1,
            gated: gated && !times.is_empty(),
            makespan: median(&times),
            p10: summary.map(|summary| summary.p10),
            p90: summary.map(|summary| summary.p90),
            samples: times,
            skew: median(&skews),
            checked: self.verdict.as_ref().is_some_and(|v| v.wrong.is_none()),
            error: error.filter(|error| error.is_finite()),
            excluded: self.excluded.clone().or(ungated),
            conditions: Conditions {
                sm_clock_mhz: of(|state| state.sm_mhz.map(f64::from)),
                power_w: of(|state| state.power_w),
                temperature_c: of(|state| state.celsius.map(f64::from)),
                ..conditions.clone()
            },
        }
    }
}
