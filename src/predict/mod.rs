//! Closed forms: how long each strategy takes, in nanoseconds of computation.
//!
//! With Tc the GEMM, Tm the collective, n ranks, d pieces and a message of m bytes:
//!
//! ```text
//! sequential  T = Tc + Tm
//! decomposed  T = (d − 1)·max(Tc/d, Tm/d) + (Tc + Tm)/d + (d − 1)(α + β·m)
//! fusion      T = (n − 1)·max(Tc/n, Tm/(n − 1)) + Tc/n + (n − 1)(α + β·m)
//! ```
//!
//! All of them are one mechanism, a pipeline that is as long as its slowest resource makes it
//! ([`Stage`]); each strategy's file says what its resources are. [`Terms`] names what the forms
//! know beyond these lines. α and β are fitted ([`Parameters`]); everything else comes from the GPU
//! profile and the link graph ([`Machine`]). The simulator is not asked: one checks the other.
//!
//! ```
//! use duet::device::DType;
//! use duet::operator::{Kind, Operator};
//! use duet::predict::{Machine, Parameters, Selector, Terms};
//! let topology = duet::topology::load("a6000-pairs-8", &[])?;
//! let machine = Machine::new(&topology, &[0, 1, 2, 3, 4, 5, 6, 7]);
//! let (terms, fitted) = (Terms::default(), Parameters::default());
//! let operator = Operator::gemm(Kind::AgGemm, 4096, 16384, 4096, 8, DType::Bf16)?;
//! let choice = duet::strategy::parse("fusion-ring")?;
//! let prediction = machine.predict(&operator, &choice, &terms, &fitted)?;
//! assert_eq!(prediction.steps, 7.0);
//! assert_eq!(prediction.stages[prediction.binding].resource, "links");
//! let selector = Selector::new(&machine, Kind::AgGemm, DType::Bf16, &terms, &fitted);
//! let chosen = selector.choose(4096, 16384, 4096);
//! assert!(chosen.seconds <= prediction.seconds);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod chains;
mod closed;
mod collective;
mod decomposition;
mod form;
mod machine;
mod model;
mod network;
mod parameters;
mod pick;
mod plan;
mod selector;
mod site;
mod terms;

pub use decomposition::Decomposition;
pub use form::Stage;
pub use machine::{Machine, Prediction};
pub use parameters::{Key, Overhead, Parameters, ParametersError, family};
pub use pick::Pick;
pub use selector::{Selection, Selector};
pub use terms::{NAMES, Terms, TermsError};
