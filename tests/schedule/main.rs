//! The schedule room: verifier, oracle, files.

mod errors;
mod files;
mod mutate;
mod mutation;
mod samples;
