//! The simulator: a fluid solver and an event engine that perform a schedule on a topology.

pub mod flows;
pub mod fluid;
mod queue;
