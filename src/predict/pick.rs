//! What the selector chooses among: strategies with settings.

use crate::operator::Kind;
use crate::strategy::{self, Choice};

/// A strategy that the selector can choose, with its setting; prints as it is written on the command
/// line.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Pick {
    Sequential,
    /// With this many pieces.
    InterDecom(u32),
    /// With this many pieces of every shard.
    FusionAllToAll(u32),
    FusionRing(u32),
    FusionDoubleRing(u32),
}

impl Pick {
    /// The strategy's name without parameters.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Sequential => "sequential",
            Self::InterDecom(_) => "interdecom",
            Self::FusionAllToAll(_) => "fusion-alltoall",
            Self::FusionRing(_) => "fusion-ring",
            Self::FusionDoubleRing(_) => "fusion-double-ring",
        }
    }

    /// Whether the selector can choose this for operators of a `kind`: a decomposition by the library, whatever
    /// its d, but fusions as comparisons try them.
    pub fn offers(kind: Kind, choice: &Choice) -> bool {
        let name = choice.strategy().name();
        PICKS.iter().any(|pick| match pick {
            _ if pick.name() != name => false,
            Pick::Sequential => true,
            Pick::InterDecom(_) => {
                Ok(choice.clone())
                    == strategy::parse(&format!("interdecom:d={}", choice.params().count("d")))
            }
            _ => pick.settings(kind).contains(choice),
        })
    }

    /// The settings of a fusion among which the selector chooses: those that comparisons try.
    pub(super) fn settings(self, kind: Kind) -> Vec<Choice> {
        let tried = strategy::registry()
            .iter()
            .find(|s| s.name() == self.name());
        let tried = tried.map_or(&[] as &[&str], |strategy| strategy.tried(kind));
        let written = |setting: &&str| match setting.is_empty() {
            true => self.name().to_owned(),
            false => format!("{}:{setting}", self.name()),
        };
        let choices = tried.iter().map(written);
        choices
            .filter_map(|text| strategy::parse(&text).ok())
            .collect()
    }

    /// The same in so many pieces.
    pub(super) const fn with(self, pieces: u32) -> Self {
        match self {
            Self::Sequential => self,
            Self::InterDecom(_) => Self::InterDecom(pieces),
            Self::FusionAllToAll(_) => Self::FusionAllToAll(pieces),
            Self::FusionRing(_) => Self::FusionRing(pieces),
            Self::FusionDoubleRing(_) => Self::FusionDoubleRing(pieces),
        }
    }
}

impl std::fmt::Display for Pick {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let name = self.name();
        let text = match self {
            Self::Sequential => name.to_owned(),
            Self::InterDecom(d) => format!("{name}:d={d}"),
            Self::FusionAllToAll(chunks)
            | Self::FusionRing(chunks)
            | Self::FusionDoubleRing(chunks) => format!("{name}:chunks={chunks}"),
        };
        // As choices are printed: without what is so by default.
        f.pad(&strategy::parse(&text).map_or(text, |choice| choice.to_string()))
    }
}

/// Of equals the first is named. Decomposition comes last, so that most numbers of pieces are seen to
/// be too slow at once.
pub(super) const PICKS: [Pick; 5] = [
    Pick::Sequential,
    Pick::FusionRing(1),
    Pick::FusionDoubleRing(1),
    Pick::FusionAllToAll(1),
    Pick::InterDecom(1),
];
