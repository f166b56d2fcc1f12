//! The closed forms, one per strategy.
//!
//! To add one: a file here with a function from [`Model`] and [`Setting`] to a [`Form`] (resources
//! with what is before, during and after their stages), and its line in [`REGISTRY`]. A form has
//! no constants of its own: they come from the GPU profile, the link graph and the fit.

mod direct;
mod double_ring;
mod fusion;
mod fusion_alltoall;
mod fusion_double_ring;
mod fusion_ring;
pub(super) mod interdecom;
mod library;
mod ring;
pub(super) mod sequential;

use super::form::Form;
use super::model::{Model, Setting};

/// A strategy's closed form; `None` where the network has no number for it.
pub(super) type Closed = fn(&Model<'_>, Setting) -> Option<Form>;

/// By the strategy's name.
pub(super) const REGISTRY: [(&str, Closed); 9] = [
    ("sequential", sequential::form),
    ("interdecom", interdecom::form),
    ("fusion-alltoall", fusion_alltoall::form),
    ("fusion-ring", fusion_ring::form),
    ("fusion-double-ring", fusion_double_ring::form),
    ("library", library::form),
    ("direct", direct::form),
    ("ring", ring::form),
    ("double-ring", double_ring::form),
];
