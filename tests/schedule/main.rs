//! The schedule room: verifier, oracle, files.

mod bad;
mod errors;
mod files;
mod kernels;
mod mutate;
mod mutation;
mod robust;
mod samples;
mod schema;
