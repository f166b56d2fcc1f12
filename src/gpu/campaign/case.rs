//! One case.

use super::{flags_name, library_name, mode_name, products_name};
use crate::gpu::plan::{Flags, Library, Mode, Options, Path, Products};
use crate::operator::{Operator, Shape};
use crate::topology::paths::size;
use crate::units::Bytes;

/// What is performed and how.
#[derive(Clone, Debug, PartialEq)]
pub struct Case {
    pub operator: Operator,
    /// Rank → GPU number.
    pub placement: Vec<u32>,
    /// As written on the command line.
    pub strategy: String,
    pub path: Path,
    pub mode: Mode,
    pub library: Library,
    pub products: Products,
    pub flags: Flags,
    /// Of the inputs and of the delays.
    pub seed: u64,
}

impl Case {
    /// The settings of its lowering.
    pub fn options(&self) -> Options {
        Options {
            path: self.path,
            mode: self.mode,
            library: self.library,
            products: self.products,
            flags: self.flags,
            ..Options::default()
        }
    }

    /// The command that repeats it.
    pub fn command(&self) -> String {
        let shape = match self.operator.shape {
            Shape::Gemm { m, n, k } => format!("-m {m} -n {n} -k {k}"),
            Shape::Bytes(bytes) => format!("--bytes {}", size(bytes)),
        };
        let path = match self.path {
            Path::P2p => "p2p".to_owned(),
            Path::Host { chunk } => format!("host --chunk {}", size(Bytes::new(chunk))),
            Path::Hybrid { host_share, chunk } => {
                let chunk = size(Bytes::new(chunk));
                format!("hybrid --host-share {host_share} --chunk {chunk}")
            }
        };
        let placement: Vec<String> = self.placement.iter().map(u32::to_string).collect();
        format!(
            "duet gpu run --op {} {shape} --tp {} --dtype {} --placement {} --strategy {} --path {} --launch {} --library {} --gemm {} --flags {} --seed {}",
            self.operator.kind,
            self.operator.tp,
            self.operator.dtype.name(),
            placement.join(","),
            self.strategy,
            path,
            mode_name(self.mode),
            library_name(self.library),
            products_name(self.products),
            flags_name(self.flags),
            self.seed,
        )
    }
}
