//! The schedule room: verifier, oracle, files.

mod errors;
mod mutate;
mod mutation;
mod samples;
