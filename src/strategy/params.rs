//! Parameters of strategies: what may be set, and what is set.

use crate::schedule::Mover;

/// One parameter of a strategy.
#[derive(Clone, Debug)]
pub struct Param {
    pub name: &'static str,
    /// What may be written.
    pub values: Values,
    /// The value when nothing is written.
    pub default: Value,
    /// What it does.
    pub about: &'static str,
    /// Whether names show it even at its default.
    pub shown: bool,
}

/// What may be written for a parameter.
#[derive(Copy, Clone, Debug)]
pub enum Values {
    /// A whole number in a range.
    Count { least: u32, most: u32 },
    /// One of some words.
    Word(&'static [&'static str]),
    /// `ce`, `sm` or `sm:BLOCKS`.
    Mover,
    /// The same, `epilogue` or `loader`.
    FusedMover,
}

impl std::fmt::Display for Values {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Count { least, most } => write!(f, "a whole number from {least} to {most}"),
            Self::Word(words) => f.write_str(&words.join(" or ")),
            Self::Mover => f.write_str("ce, sm or sm:BLOCKS (1 to 1024)"),
            Self::FusedMover => f.write_str("ce, sm, sm:BLOCKS (1 to 1024), epilogue or loader"),
        }
    }
}

/// The value of a parameter.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Value {
    Count(u32),
    Word(&'static str),
    Mover(Mover),
}

/// Thread blocks of an SM copy where none are stated: enough for an NVLink port.
const BLOCKS: u16 = 16;

impl Values {
    /// Reads `text`; `None` if it is not allowed.
    pub(super) fn read(&self, text: &str) -> Option<Value> {
        match self {
            Self::Count { least, most } => {
                let count = text.parse().ok()?;
                (*least..=*most)
                    .contains(&count)
                    .then_some(Value::Count(count))
            }
            Self::Word(words) => {
                let word = words.iter().find(|word| **word == text)?;
                Some(Value::Word(word))
            }
            Self::FusedMover if text == "epilogue" => Some(Value::Mover(Mover::Epilogue)),
            Self::FusedMover if text == "loader" => Some(Value::Mover(Mover::Loader)),
            Self::Mover | Self::FusedMover => {
                let blocks = match text {
                    "ce" => return Some(Value::Mover(Mover::CopyEngine)),
                    "sm" => BLOCKS,
                    _ => text.strip_prefix("sm:")?.parse().ok()?,
                };
                (1..=1024)
                    .contains(&blocks)
                    .then_some(Value::Mover(Mover::Sm { blocks }))
            }
        }
    }
}

impl std::fmt::Display for Value {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Count(count) => count.fmt(f),
            Self::Word(word) => f.write_str(word),
            Self::Mover(Mover::CopyEngine) => f.write_str("ce"),
            Self::Mover(Mover::Sm { blocks }) => write!(f, "sm:{blocks}"),
            Self::Mover(Mover::Epilogue) => f.write_str("epilogue"),
            Self::Mover(Mover::Loader) => f.write_str("loader"),
        }
    }
}

/// The parameters of a choice: a value for every parameter of its strategy.
#[derive(Clone, Debug)]
pub struct Params {
    declared: &'static [Param],
    values: Vec<Value>,
}

impl PartialEq for Params {
    fn eq(&self, other: &Self) -> bool {
        self.values == other.values
    }
}

impl Params {
    pub(super) fn defaults(declared: &'static [Param]) -> Self {
        Self {
            declared,
            values: declared.iter().map(|param| param.default).collect(),
        }
    }

    pub(super) fn set(&mut self, index: usize, value: Value) {
        self.values[index] = value;
    }

    fn get(&self, name: &str) -> Option<Value> {
        let index = self.declared.iter().position(|param| param.name == name)?;
        self.values.get(index).copied()
    }

    /// The whole number `name`; 1 if the strategy has no such parameter.
    pub fn count(&self, name: &str) -> u32 {
        match self.get(name) {
            Some(Value::Count(count)) => count,
            _ => 1,
        }
    }

    /// Whether the word `name` is `word`.
    pub fn is(&self, name: &str, word: &str) -> bool {
        matches!(self.get(name), Some(Value::Word(set)) if set == word)
    }

    /// The mover `mover`; the copy engine if the strategy has no such parameter.
    pub fn mover(&self) -> Mover {
        match self.get("mover") {
            Some(Value::Mover(mover)) => mover,
            _ => Mover::CopyEngine,
        }
    }

    /// `name=value` of what differs from the default or is always shown.
    pub(super) fn shown(&self) -> impl Iterator<Item = String> {
        self.declared
            .iter()
            .zip(&self.values)
            .filter(|(param, value)| param.shown || param.default != **value)
            .map(|(param, value)| format!("{}={value}", param.name))
    }
}
