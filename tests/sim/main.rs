//! The simulator against closed forms, an independent naive stepper, and its own invariants.

mod beside;
mod blocks;
mod bounds;
mod chosen_paths;
mod closed_forms;
mod executed;
mod golden;
mod kernels;
mod naive;
mod operands;
mod pcie;
mod properties;
mod published;
mod slower;
mod support;
