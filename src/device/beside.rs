//! What GEMMs and copies or collectives beside them lose, beyond shares of the memory's bandwidth.
//!
//! Copy engines move bytes through the same cache that feeds the SMs. While copies leave at the rates
//! s, arrive at r and go to and from the host's memory at h, a GEMM runs at
//!
//! ```text
//! 1 − s/S − r/R − h/H        of its speed
//! ```
//!
//! where S, R and H are rates at which copies alone would leave it nothing. They are measured: a GEMM
//! with copies of each kind that outlast it. A collective of the library keeps a share of its speed while a
//! GEMM runs on the GPU of any member; what the GEMM loses are the SMs that the collective holds.

use crate::units::BytesPerSecond;

/// The rates S, R and H, and shares that collectives keep; what a profile does not state costs nothing.
#[derive(Copy, Clone, Debug, Default, PartialEq)]
pub struct Beside {
    /// Of copies by copy engine to another GPU.
    pub sent: Option<BytesPerSecond>,
    /// Of copies by copy engine from another GPU.
    pub received: Option<BytesPerSecond>,
    /// Of copies by copy engine to and from the host's memory.
    pub host: Option<BytesPerSecond>,
    /// What collectives keep of their speed, by kind in the order of [`COLLECTIVES`](super::COLLECTIVES) [0–1].
    pub collectives: [Option<f64>; 4],
}

/// Numbers that a profile may leave out, with their names.
type Named<'d, T, const N: usize> = [(&'static str, &'d mut Option<T>); N];

impl Beside {
    /// The rates and the shares, each with its name.
    pub(super) fn fields(&mut self) -> (Named<'_, BytesPerSecond, 3>, Named<'_, f64, 4>) {
        let [gather, scatter, reduce, exchange] = &mut self.collectives;
        (
            [
                ("copies.beside_sent", &mut self.sent),
                ("copies.beside_received", &mut self.received),
                ("copies.beside_host", &mut self.host),
            ],
            [
                ("library.beside_all_gather", gather),
                ("library.beside_reduce_scatter", scatter),
                ("library.beside_all_reduce", reduce),
                ("library.beside_all_to_all", exchange),
            ],
        )
    }

    /// Whether any is stated.
    pub fn any(&self) -> bool {
        let copies = self.sent.or(self.received).or(self.host);
        copies.is_some() || self.collectives.iter().any(Option::is_some)
    }
}
