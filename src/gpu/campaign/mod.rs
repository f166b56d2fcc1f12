//! Random cases of everything that the executor can be asked for, and performing one of them.
//!
//! A [`Case`] is an operator with its shape, how many ranks share which GPUs, the strategy, the
//! path of transfers, how the host submits, who performs collectives and what stands for a flag.
//! [`draw`] draws cases from a seed: the same seed gives the same cases on every machine with as
//! many GPUs. [`perform`] runs a case several times with fresh inputs and random delays, and
//! compares the results each time.

mod case;
mod draw;
mod perform;
mod repeat;
mod words;

pub use case::Case;
pub use draw::{Space, draw};
pub use perform::{
    Outcome, Prepared, Trial, lower_for, machine_topology, perform, prepare, rehearse,
};
pub use words::{
    choice_of, flags_name, library_name, mode_name, path_name, path_of, products_name, read_path,
};
