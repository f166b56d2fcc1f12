//! What a paper claims in words, checked on the data: one function and one line per claim.
//!
//! A claim is checked where `published.yaml` lists it. Its verdict follows from the numbers by the
//! rule that `rule` states; `why` says what in the model makes it so.

mod bandwidth;
mod decomposition;
mod winners;

use super::Analysis;
use crate::experiment::published::Beside;

/// How a claim stands.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    Holds,
    DoesNotHold,
    /// The data do not bear on it.
    NotTested,
}

impl Verdict {
    /// As reports write it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Holds => "HOLDS",
            Self::DoesNotHold => "DOES NOT HOLD",
            Self::NotTested => "NOT TESTED",
        }
    }

    const fn of(holds: bool) -> Self {
        if holds {
            Self::Holds
        } else {
            Self::DoesNotHold
        }
    }
}

/// A claim, checked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Claim {
    pub name: &'static str,
    /// What is claimed.
    pub claim: &'static str,
    /// When it holds.
    pub rule: &'static str,
    pub verdict: Verdict,
    /// The numbers that decide.
    pub numbers: String,
    /// What makes it so.
    pub why: String,
}

/// What a check finds: the verdict, its numbers and their reason; `None`: nothing to test it on.
struct Finding {
    holds: bool,
    numbers: String,
    /// True whatever the verdict; empty where the numbers say all that is known.
    why: String,
}

/// A reason why a claim holds, for one that does.
fn reason(holds: bool, why: &str) -> String {
    let why = if holds { why } else { "" };
    why.to_owned()
}

/// What is printed beside one of our figures: ` (published: 30.00 %)`; empty where nothing is.
fn printed(analysis: &Analysis, ours: &str) -> String {
    let mut figures = analysis.published.iter().flat_map(|p| &p.figures);
    let beside = Beside::Ours(ours.to_owned());
    let found = figures.find(|printed| printed.beside == beside);
    found.map_or_else(String::new, |printed| {
        let most = if printed.most { "up to " } else { "" };
        format!(" (published: {most}{})", printed.value)
    })
}

/// A claim that can be checked.
struct Check {
    name: &'static str,
    claim: &'static str,
    rule: &'static str,
    find: fn(&Analysis) -> Option<Finding>,
}

const CHECKS: &[Check] = &[
    bandwidth::DOUBLE_RING,
    bandwidth::ALL_TO_ALL,
    bandwidth::COPY_ENGINES,
    winners::FUSION_HALF,
    winners::OVERHEAD_TERM,
    decomposition::D4_MINORITY,
    decomposition::COMPUTE_BOUND,
    decomposition::OVERHEAD_LOWERS_D,
];

/// Names of all claims that can be checked.
pub fn names() -> impl Iterator<Item = &'static str> + Clone {
    CHECKS.iter().map(|check| check.name)
}

/// Checks the claims that the published figures list, in their order.
pub(super) fn check(analysis: &Analysis) -> Vec<Claim> {
    let listed = analysis.published.iter().flat_map(|p| &p.claims);
    let known = listed.filter_map(|name| CHECKS.iter().find(|check| check.name == name));
    known
        .map(|check| {
            let found = (check.find)(analysis);
            Claim {
                name: check.name,
                claim: check.claim,
                rule: check.rule,
                verdict: found
                    .as_ref()
                    .map_or(Verdict::NotTested, |found| Verdict::of(found.holds)),
                numbers: found.as_ref().map_or_else(
                    || "the experiment has no such cases".to_owned(),
                    |found| found.numbers.clone(),
                ),
                why: found.map_or_else(String::new, |found| found.why),
            }
        })
        .collect()
}
