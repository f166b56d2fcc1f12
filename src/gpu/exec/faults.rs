//! Faults on purpose, to see that each ends in a sentence.

use std::time::Duration;

use crate::gpu::plan::FlagId;
use crate::schedule::Rank;

/// What goes wrong.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Faults {
    /// This flag is never written.
    pub drop_flag: Option<FlagId>,
    /// This rank begins so much later.
    pub delay: Option<(Rank, Duration)>,
}
