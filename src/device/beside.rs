//! What a GEMM loses to copies beside it, beyond its share of the memory's bandwidth.
//!
//! Copy engines move bytes through the same cache that feeds the SMs. While copies leave at the rates
//! s, arrive at r and go to and from the host's memory at h, a GEMM runs at
//!
//! ```text
//! 1 − s/S − r/R − h/H        of its speed
//! ```
//!
//! where S, R and H are rates at which copies alone would leave it nothing. They are measured: a GEMM
//! with copies of each kind that outlast it.

use crate::units::BytesPerSecond;

/// The rates S, R and H; what a profile does not state costs a GEMM nothing.
#[derive(Copy, Clone, Debug, Default, PartialEq)]
pub struct Beside {
    /// Of copies by copy engine to another GPU.
    pub sent: Option<BytesPerSecond>,
    /// Of copies by copy engine from another GPU.
    pub received: Option<BytesPerSecond>,
    /// Of copies by copy engine to and from the host's memory.
    pub host: Option<BytesPerSecond>,
}

impl Beside {
    /// Each with its name.
    pub(super) fn fields(&mut self) -> [(&'static str, &mut Option<BytesPerSecond>); 3] {
        [
            ("copies.beside_sent", &mut self.sent),
            ("copies.beside_received", &mut self.received),
            ("copies.beside_host", &mut self.host),
        ]
    }

    /// Whether any is stated.
    pub fn any(&self) -> bool {
        self.sent.or(self.received).or(self.host).is_some()
    }
}
