//! The named terms of the closed forms, each of which can be switched off.

/// Which parts of the model count. [`Terms::default`] is the accurate set.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Terms {
    /// `gemm-curve`: every piece has the time of its own shape ([`crate::device::gemm`]), not its
    /// share of the whole GEMM's.
    pub gemm_curve: bool,
    /// `stages`: first and last stages as they are (the last tile's wave, a sum after the last
    /// piece), and the loop of hand-offs that a partial sum goes through at every step.
    pub stages: bool,
    /// `contention`: fan-out curves of links, SMs that a collective takes from the GEMM beside it,
    /// memory bandwidth that copies take.
    pub contention: bool,
    /// `launch`: submissions, kernel and copy starts, lane and flag latencies, the library's base.
    pub launch: bool,
    /// `overhead`: the fitted steps · (α + β·m).
    pub overhead: bool,
    /// `compass-paper`: a fusion's stage has Tm/n instead of Tm/(n − 1), as the Compass paper
    /// (arXiv 2609.10549) prints it.
    pub compass_paper: bool,
    /// `graph-launch`: the host hands the whole operator over as one recorded graph; submissions
    /// cost that once, in place of a call for every kernel, copy, wait and signal.
    pub graph_launch: bool,
}

/// Names of the terms in the order of their fields, as written in `--terms`.
pub const NAMES: [&str; 7] = [
    "gemm-curve",
    "stages",
    "contention",
    "launch",
    "overhead",
    "compass-paper",
    "graph-launch",
];

impl Default for Terms {
    fn default() -> Self {
        Self {
            gemm_curve: true,
            stages: true,
            contention: true,
            launch: true,
            overhead: true,
            compass_paper: false,
            graph_launch: false,
        }
    }
}

/// Why a list of terms cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{name}` is not a term{remedy}")]
pub struct TermsError {
    name: String,
    remedy: String,
}

impl Terms {
    /// None of the terms.
    const NONE: Self = Self {
        gemm_curve: false,
        stages: false,
        contention: false,
        launch: false,
        overhead: false,
        compass_paper: false,
        graph_launch: false,
    };

    /// The paper's model: shares of the unsplit GEMM and of the collective, and the overhead.
    pub const fn compass() -> Self {
        Self {
            overhead: true,
            ..Self::NONE
        }
    }

    /// The paper's model before the overhead is added.
    pub const fn compass_without_overhead() -> Self {
        Self::NONE
    }

    /// The same terms without the fitted overhead.
    #[must_use]
    pub const fn without_overhead(self) -> Self {
        Self {
            overhead: false,
            ..self
        }
    }

    /// The same terms under a graph launch or a launch call by call.
    #[must_use]
    pub const fn launched_as_graph(self, graph_launch: bool) -> Self {
        Self {
            graph_launch,
            ..self
        }
    }

    /// Reads names separated by commas; `none` is none of them, `all` the default, `compass` the
    /// paper's.
    ///
    /// # Errors
    /// [`TermsError`] for a name that is not a term's.
    ///
    /// ```
    /// use duet::predict::Terms;
    /// let terms = Terms::parse("gemm-curve,overhead")?;
    /// assert!(terms.gemm_curve && terms.overhead && !terms.stages);
    /// assert_eq!(Terms::parse("all")?, Terms::default());
    /// assert_eq!(terms.to_string(), "gemm-curve,overhead");
    /// # Ok::<(), duet::predict::TermsError>(())
    /// ```
    pub fn parse(text: &str) -> Result<Self, TermsError> {
        match text {
            "all" => return Ok(Self::default()),
            "none" => return Ok(Self::NONE),
            "compass" => return Ok(Self::compass()),
            _ => {}
        }
        let mut terms = Self::NONE;
        for name in text.split(',').map(str::trim) {
            let place = NAMES.iter().position(|known| *known == name);
            let place = place.ok_or_else(|| TermsError {
                name: name.to_owned(),
                remedy: format!(": {}", crate::input::did_you_mean(name, NAMES)),
            })?;
            *terms.fields_mut()[place] = true;
        }
        Ok(terms)
    }

    fn fields_mut(&mut self) -> [&mut bool; 7] {
        [
            &mut self.gemm_curve,
            &mut self.stages,
            &mut self.contention,
            &mut self.launch,
            &mut self.overhead,
            &mut self.compass_paper,
            &mut self.graph_launch,
        ]
    }
}

impl std::fmt::Display for Terms {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut terms = *self;
        let on = terms.fields_mut().map(|on| *on);
        let names: Vec<&str> = NAMES
            .into_iter()
            .zip(on)
            .filter_map(|(n, on)| on.then_some(n))
            .collect();
        f.pad(&if names.is_empty() {
            "none".to_owned()
        } else {
            names.join(",")
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_fields_agree() {
        for (place, name) in NAMES.into_iter().enumerate() {
            let mut terms = Terms::parse(name).unwrap();
            let on: Vec<bool> = terms.fields_mut().map(|on| *on).to_vec();
            let expected: Vec<bool> = (0..NAMES.len()).map(|i| i == place).collect();
            assert_eq!(on, expected, "{name}");
            assert_eq!(terms.to_string(), name);
        }
        assert_eq!(Terms::compass_without_overhead().to_string(), "none");
        let error = Terms::parse("stages,gem-curve").unwrap_err().to_string();
        assert!(error.contains("`gem-curve` is not a term"), "{error}");
        assert!(error.contains("`gemm-curve`"), "{error}");
    }
}
