//! One mechanism for every closed form: a pipeline, as long as its slowest resource makes it.
//!
//! A resource r (the SMs, the links, the hand-offs of a partial sum, …) works through `count_r`
//! stages of `each_r` seconds; `before_r` passes until its first stage begins and `after_r` from
//! the end of its last until the operator is done. Every one of these chains has to be gone
//! through, so
//!
//! ```text
//! T = max over r of (before_r + count_r · each_r + after_r)  +  steps · (α + β·m)
//! ```
//!
//! With two resources of s stages each, compute c and communication t, before_compute = t,
//! after_links = c, this is the textbook pipeline first + (s − 1)·max(c, t) + last:
//! max(t + s·c, s·t + c) = t + (s − 1)·max(c, t) + c.

/// A resource of a pipeline.
#[derive(Copy, Clone, Debug, PartialEq)]
pub struct Stage {
    /// What works: `compute`, `links`, `hand-off`, `memory`, `host`.
    pub resource: &'static str,
    /// From the start until its first stage begins \[s\].
    pub before: f64,
    /// Time of one stage \[s\].
    pub each: f64,
    /// Stages.
    pub count: f64,
    /// From the end of its last stage to the end of the operator \[s\].
    pub after: f64,
}

impl Stage {
    /// The whole chain \[s\].
    pub fn seconds(&self) -> f64 {
        self.before + self.count * self.each + self.after
    }
}

/// The greater of two numbers: one instruction, where `f64::max` spends several on NaN.
#[inline(always)]
pub(super) fn greater(a: f64, b: f64) -> f64 {
    if a < b { b } else { a }
}

/// What a closed form makes of its resources: all of them to be shown, or the longest chain alone.
pub(super) trait Pipeline: Copy {
    /// Without resources; `steps` that each cost the fitted overhead: d − 1 or n − 1.
    fn new(steps: f64) -> Self;

    /// With a further resource that works `work` seconds in `count` stages; the others as in
    /// [`Stage`]. Of several chains of one resource the longest counts.
    #[must_use]
    fn with(self, resource: &'static str, before: f64, work: f64, count: f64, after: f64) -> Self;
}

/// Most resources of one form.
const MOST: usize = 5;

/// All resources.
#[derive(Copy, Clone, Debug)]
pub(super) struct Form {
    stages: [Stage; MOST],
    len: usize,
    pub steps: f64,
}

impl Pipeline for Form {
    fn new(steps: f64) -> Self {
        let none = Stage {
            resource: "",
            before: 0.0,
            each: 0.0,
            count: 0.0,
            after: 0.0,
        };
        Self {
            stages: [none; MOST],
            len: 0,
            steps,
        }
    }

    fn with(
        mut self,
        resource: &'static str,
        before: f64,
        work: f64,
        count: f64,
        after: f64,
    ) -> Self {
        let stage = Stage {
            resource,
            before,
            each: if count > 0.0 { work / count } else { 0.0 },
            count,
            after,
        };
        let known = &mut self.stages[..self.len];
        if let Some(place) = known.iter_mut().find(|known| known.resource == resource) {
            if stage.seconds() > place.seconds() {
                *place = stage;
            }
        } else if let Some(place) = self.stages.get_mut(self.len) {
            *place = stage;
            self.len += 1;
        }
        self
    }
}

impl Form {
    /// The same, begun later by so many seconds.
    pub fn delayed(mut self, seconds: f64) -> Self {
        for stage in &mut self.stages[..self.len] {
            stage.before += seconds;
        }
        self
    }

    /// The resources.
    pub fn stages(&self) -> &[Stage] {
        &self.stages[..self.len]
    }

    /// The longest chain \[s\], the fitted overhead not counted.
    pub fn seconds(&self) -> f64 {
        self.stages().iter().map(Stage::seconds).fold(0.0, f64::max)
    }
}

/// The longest chain alone, for the selector.
#[derive(Copy, Clone, Debug)]
pub(super) struct Longest {
    /// The longest chain \[s\].
    pub seconds: f64,
    pub steps: f64,
}

impl Pipeline for Longest {
    #[inline]
    fn new(steps: f64) -> Self {
        Self {
            seconds: 0.0,
            steps,
        }
    }

    #[inline]
    fn with(self, _: &'static str, before: f64, work: f64, _: f64, after: f64) -> Self {
        Self {
            seconds: greater(self.seconds, before + work + after),
            ..self
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_resources_are_the_textbook_pipeline() {
        for (c, t, s) in [(3.0, 2.0, 5.0), (2.0, 3.0, 5.0), (1.0, 1.0, 1.0)] {
            let form = Form::new(s - 1.0).with("compute", t, s * c, s, 0.0).with(
                "links",
                0.0,
                s * t,
                s,
                c,
            );
            assert_eq!(form.seconds(), t + (s - 1.0) * f64::max(c, t) + c);
            let longest = Longest::new(s - 1.0)
                .with("compute", t, s * c, s, 0.0)
                .with("links", 0.0, s * t, s, c);
            assert_eq!(longest.seconds, form.seconds());
        }
    }
}
