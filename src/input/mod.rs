//! Reading files that people write: places in the text, diagnostics that point at them, YAML and
//! JSON as trees whose every node knows its place, and CSV as cells that do.
//!
//! Readers (topologies, GPU profiles, schedules) push one [`Diagnostic`] per mistake into
//! [`Diagnostics`], go on while they can, and render them all at the end.
//!
//! ```
//! use duet::input::{Diagnostic, Diagnostics};
//! let text = "links:\n  - { between: [gpu0, gpu9] }\n";
//! let at = text.find("gpu9").unwrap();
//! let mut found = Diagnostics::default();
//! found.push(Diagnostic::new(at..at + 4, "`gpu9` is not a node", "no such node").help("did you mean `gpu0`?"));
//! assert_eq!(
//!     found.render("box.yaml", text),
//!     "error: `gpu9` is not a node
//!  --> box.yaml:2:23
//!   |
//! 2 |   - { between: [gpu0, gpu9] }
//!   |                       ^^^^ no such node
//!   |
//!   = help: did you mean `gpu0`?"
//! );
//! ```

mod between;
pub mod csv;
mod diagnostic;
mod fields;
mod file;
mod fingerprint;
pub mod json;
mod suggest;
pub mod yaml;

pub use between::{beside, between};
pub use diagnostic::{Diagnostic, Diagnostics, Span, decode, span_at};
pub use fields::Fields;
pub use file::read as read_file;
pub use fingerprint::Fingerprint;
pub use suggest::{closest, did_you_mean, list};
