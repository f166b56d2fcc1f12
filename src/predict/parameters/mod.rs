//! Fitted overheads: α and β of every (topology, operator, ranks, strategy).
//!
//! `params.yaml`, as `duet fit` writes it and `--params` reads it:
//!
//! ```yaml
//! overheads:
//!   - topology: a6000-pairs-8
//!     operator: ag-gemm
//!     tp: 8
//!     strategy: interdecom                # without `d`; other settings as on the command line
//!     alpha: 12.5 us                      # per step
//!     beta: 0.031 us/MB                   # per step and byte of the message
//!     alpha_interval: [10 us, 15 us]      # optional, as are the next two
//!     beta_interval: [0.02 us/MB, 0.04 us/MB]
//!     rows: 96
//!     source: fitted, 96 rows of measured.csv
//! ```

mod read;
mod write;

pub use read::ParametersError;

use std::collections::BTreeMap;

use crate::operator::Kind;
use crate::strategy::Choice;

/// What one step costs beyond the closed form.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Overhead {
    /// Per step \[s\].
    pub alpha: f64,
    /// Per step and byte of the message \[s/byte\].
    pub beta: f64,
    /// Confidence interval of `alpha` \[s\].
    pub alpha_interval: Option<[f64; 2]>,
    /// Confidence interval of `beta` \[s/byte\].
    pub beta_interval: Option<[f64; 2]>,
    /// Points it was fitted to.
    pub rows: Option<u64>,
    /// Where it comes from, beginning with one of [`crate::device::SOURCE_KINDS`].
    pub source: String,
}

/// What an overhead belongs to.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Key {
    pub topology: String,
    pub operator: Kind,
    pub tp: u32,
    /// See [`family`].
    pub strategy: String,
}

/// Fitted overheads; empty: none are known, and predictions go by the machine's profile alone.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Parameters {
    overheads: BTreeMap<Key, Overhead>,
}

/// The strategy that shares one overhead with `choice`: as written, without the number of pieces
/// `d`, which is the variable of the model.
///
/// ```
/// use duet::predict::family;
/// let family = |text| family(&duet::strategy::parse(text).unwrap());
/// assert_eq!(family("interdecom:d=8"), "interdecom");
/// assert_eq!(family("interdecom:d=8,comm=direct"), "interdecom:comm=direct");
/// assert_eq!(family("fusion-ring:chunks=4"), "fusion-ring:chunks=4");
/// ```
pub fn family(choice: &Choice) -> String {
    let text = choice.to_string();
    let (name, settings) = text.split_once(':').unwrap_or((&text, ""));
    let kept: Vec<&str> = settings
        .split(',')
        .filter(|setting| !setting.is_empty() && !setting.starts_with("d="))
        .collect();
    if kept.is_empty() {
        name.to_owned()
    } else {
        format!("{name}:{}", kept.join(","))
    }
}

impl Parameters {
    /// The overhead of `strategy` (see [`family`]).
    pub fn get(
        &self,
        topology: &str,
        operator: Kind,
        tp: u32,
        strategy: &str,
    ) -> Option<&Overhead> {
        // A borrowed key would take a trait object; look-ups are outside the selector's path.
        self.overheads.get(&Key {
            topology: topology.to_owned(),
            operator,
            tp,
            strategy: strategy.to_owned(),
        })
    }

    /// Adds or replaces an overhead.
    pub fn insert(&mut self, key: Key, overhead: Overhead) {
        self.overheads.insert(key, overhead);
    }

    /// All of them, by key.
    pub fn iter(&self) -> impl Iterator<Item = (&Key, &Overhead)> {
        self.overheads.iter()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.overheads.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn overhead(alpha: f64, beta: f64, source: &str) -> Overhead {
        Overhead {
            alpha,
            beta,
            source: format!("fitted, {source}"),
            ..Overhead::default()
        }
    }

    fn key(topology: &str) -> Key {
        Key {
            topology: topology.to_owned(),
            operator: Kind::AgGemm,
            tp: 8,
            strategy: "interdecom:comm=direct".to_owned(),
        }
    }

    proptest! {
        /// Text and all; numbers to 9 digits.
        #[test]
        fn what_is_written_is_read_back(
            topology in "\\PC{0,12}",
            source in "[ -~\\n\\t]{0,20}",
            alpha in 0.0..1.0f64,
            beta in prop_oneof![Just(0.0), 1e-18..1e-6f64],
            interval in any::<bool>(),
        ) {
            let mut written = Parameters::default();
            let mut one = overhead(alpha, beta, &source);
            if interval {
                one.alpha_interval = Some([alpha / 2.0, alpha]);
                one.beta_interval = Some([0.0, beta]);
                one.rows = Some(7);
            }
            written.insert(key(&topology), one.clone());
            let text = written.write();
            let read = Parameters::read(&text, "params.yaml").map_err(|e| TestCaseError::fail(format!("{e}\n{text}")))?;
            let back = read.get(&topology, Kind::AgGemm, 8, "interdecom:comm=direct").unwrap();
            let near = |a: f64, b: f64| (a - b).abs() <= 1e-8 * a.abs();
            prop_assert!(near(one.alpha, back.alpha) && near(one.beta, back.beta));
            prop_assert_eq!((&one.source, one.rows), (&back.source, back.rows));
            prop_assert_eq!(one.alpha_interval.is_some(), back.alpha_interval.is_some());
            prop_assert_eq!(read.write(), text);
        }

        #[test]
        fn reading_never_panics(text in "[-a-z:,\\[\\]{}&*|'\"!# \n0-9./]{0,80}") {
            let _ = Parameters::read(&text, "f");
            let _ = Parameters::read(&format!("overheads:\n  - {text}"), "f");
        }
    }

    #[test]
    fn mistakes_have_a_place_and_a_remedy() {
        let text = "overheads:
  - { topology: t, operator: ag-gem, tp: 0, strategy: interdecm, alpha: 3, beta: 1 us,
      alpha_interval: [2 us, 1 us], source: guessed, extra: 1 }
  - { topology: t, operator: ag-gemm, tp: 8, strategy: interdecom, alpha: 3 us, beta: 1 us/MB, source: fitted }
  - { topology: t, operator: ag-gemm, tp: 8, strategy: \"interdecom:d=8\", alpha: 3 us, beta: 1 us/MB, source: fitted }
";
        insta::assert_snapshot!(Parameters::read(text, "params.yaml").unwrap_err());
    }
}
