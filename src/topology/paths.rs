//! The way of transfers between GPUs, chosen from outside: the machine's own routes, through a
//! host's memory, or both at once.
//!
//! A chosen way through a host is what an executor without peer access does: a ring of
//! [`SLOTS`] pinned slots, filled in whole rows by one stream at the source and emptied by one at the
//! destination. Each chunk is handed over by an event and each slot handed back by one, so that
//! chunk i leaves the source when chunk i − 4 has reached the destination.
//!
//! Collectives of a library choose their own way and are not affected.
//!
//! ```
//! use duet::topology::paths::PathChoice;
//! let choice: PathChoice = "hybrid:0.1:2MiB".parse()?;
//! assert_eq!(choice.to_string(), "hybrid:0.1:2MiB");
//! assert!("host".parse::<PathChoice>().is_err()); // a chunk size is missing
//! # Ok::<(), duet::topology::paths::PathError>(())
//! ```

use std::fmt;
use std::str::FromStr;

use super::Topology;
use crate::units::Bytes;

/// Slots of a chosen way through a host: one is filled and one emptied, the others even out.
pub const SLOTS: u32 = 4;

/// Which way transfers between two GPUs take; a copy within one GPU never leaves its memory.
#[derive(Copy, Clone, Debug, Default, PartialEq)]
pub enum PathChoice {
    /// The routes that the machine's file states or that are found in it.
    #[default]
    Routes,
    /// Through a host's memory, `chunk` bytes at a time.
    Host { chunk: Bytes },
    /// Both at once: `share` of the rows, in \[0, 1\], goes through a host.
    Hybrid { share: f64, chunk: Bytes },
}

/// A way that cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{0}` is no path: write p2p, host:CHUNK or hybrid:SHARE:CHUNK, e.g. host:2MiB or hybrid:0.1:2MiB, with a chunk above 0 and a share from 0 to 1"
)]
pub struct PathError(String);

impl PathChoice {
    /// The share of rows that goes through a host, and the chunk; `None` with the machine's routes.
    pub const fn host(self) -> Option<(f64, Bytes)> {
        match self {
            Self::Routes => None,
            Self::Host { chunk } => Some((1.0, chunk)),
            Self::Hybrid { share, chunk } => Some((share, chunk)),
        }
    }
}

impl FromStr for PathChoice {
    type Err = PathError;

    fn from_str(text: &str) -> Result<Self, PathError> {
        let chunk = |text: &str| Bytes::from_str(text).ok().filter(|b| *b > Bytes::ZERO);
        let share = |text: &str| text.parse().ok().filter(|s| (0.0..=1.0).contains(s));
        let read = match text.split(':').collect::<Vec<_>>()[..] {
            ["p2p"] => Some(Self::Routes),
            ["host", size] => chunk(size).map(|chunk| Self::Host { chunk }),
            ["hybrid", part, size] => share(part)
                .zip(chunk(size))
                .map(|(share, chunk)| Self::Hybrid { share, chunk }),
            _ => None,
        };
        read.ok_or_else(|| PathError(text.to_owned()))
    }
}

impl fmt::Display for PathChoice {
    /// `p2p`, `host:CHUNK` or `hybrid:SHARE:CHUNK`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Routes => f.write_str("p2p"),
            Self::Host { chunk } => write!(f, "host:{}", size(chunk)),
            Self::Hybrid { share, chunk } => write!(f, "hybrid:{share}:{}", size(chunk)),
        }
    }
}

/// Bytes in the largest unit that gives a whole number: `2MiB`, `1000B`.
pub fn size(bytes: Bytes) -> String {
    const UNITS: [&str; 4] = ["GiB", "MiB", "KiB", "B"];
    let bytes = bytes.get();
    let fits = |i: &usize| bytes.is_multiple_of(1 << (10 * (3 - i)));
    let unit = (0..4).find(fits).filter(|_| bytes > 0).unwrap_or(3);
    format!("{}{}", bytes >> (10 * (3 - unit)), UNITS[unit])
}

/// The machine with another way between its GPUs. Routing refuses pairs that share no host.
pub fn with_path(topology: &Topology, path: PathChoice) -> Topology {
    Topology {
        path,
        ..topology.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn choices_are_read_back_as_written() {
        for text in [
            "p2p",
            "host:2MiB",
            "host:1000B",
            "host:3KiB",
            "hybrid:0.125:1GiB",
        ] {
            assert_eq!(text.parse::<PathChoice>().unwrap().to_string(), text);
        }
        let wrong = [
            "",
            "host",
            "host:x",
            "host:0B",
            "hybrid:1MiB",
            "hybrid:1.5:1MiB",
            "hybrid:NaN:1MiB",
            "p2p:1B",
            "host:1B:1B",
        ];
        for text in wrong {
            let said = text.parse::<PathChoice>().unwrap_err().to_string();
            assert!(said.starts_with(&format!("`{text}` is no path: write p2p, ")));
        }
    }
}
