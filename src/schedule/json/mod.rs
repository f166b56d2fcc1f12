//! Schedules as JSON, friendly to hand-writing; `docs/schedule.md` describes the format.
//!
//! Strings name things (buffers, lanes, launches, collectives, tasks), numbers count them from 0 in
//! the order of the file. `read(write(s)) == s` for every schedule whose computes and collectives
//! are in the order of their first tasks, as a [`Builder`](super::Builder) leaves them.
//!
//! ```
//! use duet::schedule::json;
//! let text = r#"{
//!   "operator": {"kind": "point-to-point", "bytes": "16 B", "tp": 2, "dtype": "bf16"},
//!   "tensors": [{"name": "X", "rows": 1, "cols": 8}],
//!   "buffers": [
//!     {"name": "send", "rank": 0, "tensor": "X", "rows": 1, "cols": 8, "role": "input",
//!      "pieces": [{"rows": [0, 1], "cols": [0, 8], "at": [0, 0], "initial": [0, 1]}]},
//!     {"name": "receive", "rank": 1, "tensor": "X", "rows": 1, "cols": 8, "role": "output",
//!      "pieces": [{"rows": [0, 1], "cols": [0, 8], "at": [0, 0]}]}
//!   ],
//!   "tasks": [
//!     {"rank": 0, "lane": 1, "transfer": {"from": {"buffer": "send"}, "to": {"buffer": "receive", "rank": 1}}}
//!   ]
//! }"#;
//! let schedule = json::read(text, "send.json").unwrap();
//! assert_eq!(schedule.tasks.len(), 1);
//! assert_eq!(json::read(&json::write(&schedule), "again.json"), Ok(schedule));
//! ```

mod names;
mod read;
mod slices;
mod tables;
mod tasks;
mod write;

pub use read::read;
pub use write::write;

use super::{CollectiveKind, CollectiveLibrary, GemmKernel, Role, Via};

/// A file that is no schedule; prints as the rendered diagnostics: file, line, column, a caret
/// under the place, what was expected, a remedy.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct JsonError(String);

/// The value of the key `format`.
pub const FORMAT: &str = "duet-schedule-1";

const ROLES: [(&str, Role); 4] = [
    ("input", Role::Input),
    ("output", Role::Output),
    ("input-output", Role::InputOutput),
    ("scratch", Role::Scratch),
];

const VIAS: [(&str, Via); 5] = [
    ("lane", Via::Lane),
    ("launch", Via::Launch),
    ("event", Via::Event),
    ("stream-flag", Via::StreamFlag),
    ("kernel-flag", Via::KernelFlag),
];

const KERNELS: [(&str, GemmKernel); 3] = [
    ("library", GemmKernel::Library),
    ("gated", GemmKernel::Gated),
    ("scatter", GemmKernel::Scatter),
];

const COLLECTIVES: [(&str, CollectiveKind); 4] = [
    ("all-gather", CollectiveKind::AllGather),
    ("reduce-scatter", CollectiveKind::ReduceScatter),
    ("all-reduce", CollectiveKind::AllReduce),
    ("all-to-all", CollectiveKind::AllToAll),
];

const LIBRARIES: [(&str, CollectiveLibrary); 1] = [("ring", CollectiveLibrary::Ring)];

/// The word for a value of one of the tables above.
fn word<T: PartialEq>(table: &'static [(&'static str, T)], value: &T) -> &'static str {
    table
        .iter()
        .find(|(_, known)| known == value)
        .map_or("", |(word, _)| word)
}
