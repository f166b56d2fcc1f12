//! How a schedule is to be performed on GPUs.

use super::LowerError;
use crate::gpu::tiles::Tile;
use crate::schedule::lowered;

/// The way of a transfer between two GPUs; a copy within one GPU never leaves its memory.
#[derive(Copy, Clone, Debug, Default, PartialEq)]
pub enum Path {
    /// From one GPU's memory straight into the other's.
    #[default]
    P2p,
    /// Through pinned memory of the host, `chunk` bytes at a time: one chunk leaves the source
    /// while the one before it enters the destination.
    Host { chunk: u64 },
    /// Both at once: `host_share` of the rows, in \[0, 1\], goes through the host.
    Hybrid { host_share: f64, chunk: u64 },
}

/// How the host submits a run.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub enum Mode {
    /// Step by step into streams.
    #[default]
    Stream,
    /// Captured once into a graph, which is then launched as a whole.
    Graph,
}

/// Who performs the collectives of a schedule.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub enum Library {
    /// NCCL, where every rank has a GPU of its own and the slices are whole rows; else copies.
    #[default]
    Nccl,
    /// The same, with the arenas registered with NCCL, so that it may use them without buffers of
    /// its own between.
    NcclRegistered,
    /// The same, with the arenas as windows of one another (symmetric memory), so that kernels of NCCL
    /// read and write the other GPUs' in place.
    NcclWindow,
    /// Copies and additions.
    Copies,
}

/// Who multiplies matrices.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub enum Products {
    /// cuBLASLt.
    #[default]
    Library,
    /// Duet's own kernels where they can, see [`tiles`](crate::gpu::tiles); else cuBLASLt.
    Own,
}

/// What stands for a wait by [`StreamFlag`] or [`KernelFlag`] in [`Mode::Stream`].
///
/// [`StreamFlag`]: crate::schedule::Via::StreamFlag
/// [`KernelFlag`]: crate::schedule::Via::KernelFlag
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub enum Flags {
    /// A word in the waiting GPU's memory.
    #[default]
    Value,
    /// The word, and an event that says the same.
    ValueAndEvent,
    /// An event.
    Event,
}

/// Where tile groups of own products wait for what they need.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub enum Waits {
    /// Inside the kernel wherever one can be made.
    #[default]
    Inside,
    /// In its stream: each group is a product of its own.
    Stream,
}

/// How to lower a schedule.
#[derive(Copy, Clone, Debug, PartialEq)]
pub struct Options {
    pub path: Path,
    pub mode: Mode,
    pub library: Library,
    pub products: Products,
    /// The tile of Duet's own products; `None`: the one that suits each.
    pub tile: Option<Tile>,
    pub flags: Flags,
    pub waits: Waits,
    /// Thread blocks of a copy within one GPU that the schedule leaves to a copy engine.
    pub local_blocks: u16,
    /// Whether the schedule is verified first, as written and as lowered.
    pub verify: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            path: Path::default(),
            mode: Mode::default(),
            library: Library::default(),
            products: Products::default(),
            tile: None,
            flags: Flags::default(),
            waits: Waits::default(),
            local_blocks: 16,
            verify: true,
        }
    }
}

impl Options {
    /// Refuses settings that mean nothing.
    pub(super) fn check(&self) -> Result<(), LowerError> {
        let refuse = |problem: String| Err(LowerError::Option { problem });
        match self.path {
            Path::Host { chunk: 0 } | Path::Hybrid { chunk: 0, .. } => {
                return refuse("chunks of 0 bytes; give the host path a chunk size".to_owned());
            }
            Path::Hybrid { host_share, .. } if !(0.0..=1.0).contains(&host_share) => {
                return refuse(format!(
                    "{host_share} of the rows through the host; give a share from 0 to 1"
                ));
            }
            _ => {}
        }
        if self.local_blocks == 0 {
            return refuse("local copies by 0 thread blocks; give them at least one".to_owned());
        }
        Ok(())
    }

    /// What the schedule is rewritten to first.
    pub fn lowered(&self) -> lowered::Options {
        lowered::Options {
            library: self.library != Library::Copies,
            local_blocks: self.local_blocks,
            fuse: self.products == Products::Own
                && self.flags != Flags::Event
                && self.waits == Waits::Inside,
            // In a graph copies wait for nodes, not for words in memory.
            tell: self.mode == Mode::Stream,
        }
    }

    /// Whether a wait by a flag becomes a flag, and whether it becomes an event.
    pub(super) fn flag_and_event(&self) -> (bool, bool) {
        match (self.mode, self.flags) {
            (Mode::Graph, _) | (_, Flags::Event) => (false, true),
            (_, Flags::Value) => (true, false),
            (_, Flags::ValueAndEvent) => (true, true),
        }
    }
}
