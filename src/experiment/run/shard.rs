//! A part of an experiment: `2/8` is every eighth case from the second on, so that large and small
//! cases are spread evenly.

/// Shard `index` (from 1) of `of`.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Shard {
    pub index: u32,
    pub of: u32,
}

/// What is wrong with a shard as written.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is no shard: write I/N with I from 1 to N, e.g. `2/8`")]
pub struct ShardError(String);

/// Most shards; each is a file that `duet merge` opens.
const MOST: u32 = 10_000;

impl Shard {
    /// Whether the case (from 0) is of this shard.
    pub const fn has(self, case: u32) -> bool {
        case % self.of == self.index - 1
    }
}

impl std::str::FromStr for Shard {
    type Err = ShardError;

    fn from_str(text: &str) -> Result<Self, ShardError> {
        let read = || {
            let (index, of) = text.split_once('/')?;
            let (index, of) = (index.parse().ok()?, of.parse().ok()?);
            (1 <= index && index <= of && of <= MOST).then_some(Self { index, of })
        };
        read().ok_or_else(|| ShardError(text.to_owned()))
    }
}

impl std::fmt::Display for Shard {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}/{}", self.index, self.of)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shards_are_read_and_part_the_cases() {
        let all: Vec<Shard> = (1..=3).map(|i| format!("{i}/3").parse().unwrap()).collect();
        for case in 0..10 {
            assert_eq!(all.iter().filter(|shard| shard.has(case)).count(), 1);
        }
        for wrong in ["0/3", "4/3", "1/0", "1", "a/b", "-1/2", "1/99999", ""] {
            let words = wrong.parse::<Shard>().unwrap_err().to_string();
            assert!(words.contains("write I/N"), "{words}");
        }
    }
}
