//! The schedule room: verifier, oracle, files.

mod bad;
#[path = "../support/corpus.rs"]
mod corpus;
mod errors;
mod files;
mod kernels;
mod mutate;
mod mutation;
mod robust;
mod samples;
mod schema;
