//! Real GPUs: the CUDA driver and its libraries, found at run time, and what runs on them.
//!
//! Nothing of CUDA is needed to build or test Duet. [`mod@env`] finds the libraries on the machine,
//! [`raw`] wraps their calls one by one (the only unsafe code), [`kernels`] are our own kernels,
//! compiled at run time and kept in a [`cache`], [`lt`] and our own [`tiles`] multiply matrices and
//! [`raw::nccl`] is the library baseline of the collectives; [`check`] tests all of it against the host. Whatever is
//! missing is a [`GpuError`]: a sentence with a remedy.
//!
//! A schedule is lowered to a [`plan`], which [`exec`] performs. [`compare`] says whether the
//! results are right, [`campaign`] draws random cases, [`timing`] measures, after [`heat`] brought
//! the GPUs to the clock of sustained load.
//!
//! One process and one issuing thread drive all GPUs. The host never blocks without a limit: it
//! polls, and a limit that passes is an error.

pub mod cache;
pub mod campaign;
pub mod check;
pub mod compare;
pub mod data;
pub mod env;
mod error;
pub mod exec;
pub mod heat;
pub mod info;
pub mod kernels;
pub mod lt;
pub mod plan;
pub mod raw;
mod session;
pub mod tiles;
pub mod timing;

pub use error::GpuError;
pub use session::Session;
