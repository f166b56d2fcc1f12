//! The simulator against closed forms, an independent naive stepper, and its own invariants.

mod closed_forms;
mod naive;
mod properties;
mod support;
