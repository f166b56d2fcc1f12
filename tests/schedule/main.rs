//! The schedule room: verifier, oracle, files.

mod errors;
mod samples;
