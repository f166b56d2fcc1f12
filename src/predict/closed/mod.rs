//! The closed forms, one per strategy.
//!
//! To add one: a file here with a function from [`Model`] and [`Setting`] to a
//! [`Pipeline`](super::form::Pipeline) (resources with what is before, during and after their stages), and its line in [`REGISTRY`]. A form has
//! no constants of its own: they come from the GPU profile, the link graph and the fit.

mod direct;
mod double_ring;
pub(super) mod fusion;
pub(super) mod fusion_alltoall;
pub(super) mod fusion_double_ring;
pub(super) mod fusion_ring;
pub(super) mod interdecom;
mod library;
mod ring;
pub(super) mod sequential;

use super::form::Form;
use super::model::{Model, Setting};

/// A strategy's closed form; `None` where the network has no number for it.
#[derive(Copy, Clone, Debug)]
pub(super) struct Closed {
    /// The strategy's name.
    pub name: &'static str,
    /// With all resources.
    pub form: fn(&Model<'_>, Setting) -> Option<Form>,
}

macro_rules! closed {
    ($name:literal, $file:ident) => {
        Closed {
            name: $name,
            form: $file::form::<Form>,
        }
    };
}

pub(super) const REGISTRY: [Closed; 9] = [
    closed!("sequential", sequential),
    closed!("interdecom", interdecom),
    closed!("fusion-alltoall", fusion_alltoall),
    closed!("fusion-ring", fusion_ring),
    closed!("fusion-double-ring", fusion_double_ring),
    closed!("library", library),
    closed!("direct", direct),
    closed!("ring", ring),
    closed!("double-ring", double_ring),
];
