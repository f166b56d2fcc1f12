//! Fused kernels by tiles of their own.

use std::fmt;

use crate::device::{DType, Device};

/// Rows of a fused kernel, in the order in which they are taken.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Rows {
    pub rows: u64,
    /// Whether they wait for something, and whether only before they are added to it.
    pub waits: bool,
    pub adds: bool,
    /// Whether their tiles are stored on another GPU.
    pub leaves: bool,
}

/// A fused kernel whose tiles are asked for.
#[derive(Clone, Debug)]
pub struct Fused<'a> {
    pub device: &'a Device,
    pub dtype: DType,
    /// `[m, n, k]` of all its rows.
    pub shape: [u64; 3],
    /// SMs that it may use.
    pub sms: u32,
    pub rows: Vec<Rows>,
}

/// What its tiles make of a kernel's time.
#[derive(Copy, Clone, Debug, PartialEq)]
pub struct Tiled {
    /// By the time of the library's product on all SMs.
    pub time: f64,
    /// The time of a wave by that of the kernel.
    pub wave: f64,
}

/// Knows the tiles of Duet's own kernels, which this room does not.
#[derive(Copy, Clone)]
pub struct Tiling {
    /// What a kernel's tiles make of its time; `None` where it takes the library's time.
    pub find: fn(&Fused<'_>, Option<usize>) -> Option<Tiled>,
    /// The number of the only tile, as `find` counts them.
    pub tile: Option<usize>,
    /// Of the time of a wave: over how much the stores of the one before are spread that leave for another GPU.
    pub pace: f64,
}

impl Tiling {
    /// A product `[m, n, k]` that is a kernel of its own on so many SMs.
    pub fn alone(
        &self,
        device: &Device,
        dtype: DType,
        (shape, sms): ([u64; 3], u32),
    ) -> Option<Tiled> {
        let rows = Rows {
            rows: shape[0],
            waits: false,
            adds: false,
            leaves: false,
        };
        let fused = Fused {
            device,
            dtype,
            shape,
            sms,
            rows: vec![rows],
        };
        (self.find)(&fused, self.tile)
    }
}

impl fmt::Debug for Tiling {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tiling")
            .field("tile", &self.tile)
            .finish_non_exhaustive()
    }
}

/// There is one that finds.
impl PartialEq for Tiling {
    fn eq(&self, other: &Self) -> bool {
        self.tile == other.tile
    }
}

impl Eq for Tiling {}
