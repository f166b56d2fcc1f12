//! Options of the commands that lower schedules.

use clap::{Args, ValueEnum};

use crate::cli::args::Launch;
use crate::gpu::plan::{Flags, Library, Mode, Options, Path, Products, Waits};
use crate::gpu::tiles::{Family, Tile};
use crate::units::Bytes;

/// The way between two GPUs.
#[derive(Copy, Clone, Debug, PartialEq, Eq, ValueEnum)]
enum PathArg {
    /// From memory to memory.
    P2p,
    /// Through pinned memory of the host.
    Host,
    /// Both at once.
    Hybrid,
}

#[derive(Copy, Clone, Debug, PartialEq, Eq, ValueEnum)]
pub enum LibraryArg {
    /// NCCL where each rank has a GPU of its own.
    Nccl,
    /// The same, with the buffers registered beforehand.
    NcclRegistered,
    /// The same, with the buffers as windows of one another; NCCL 2.27 or newer.
    NcclWindow,
    /// Copies and additions.
    Copies,
}

impl From<LibraryArg> for Library {
    fn from(library: LibraryArg) -> Self {
        match library {
            LibraryArg::Nccl => Self::Nccl,
            LibraryArg::NcclRegistered => Self::NcclRegistered,
            LibraryArg::NcclWindow => Self::NcclWindow,
            LibraryArg::Copies => Self::Copies,
        }
    }
}

/// Who multiplies matrices.
#[derive(Copy, Clone, Debug, PartialEq, Eq, ValueEnum)]
pub enum GemmArg {
    /// cuBLASLt.
    Library,
    /// Duet's own kernels where they can (bf16 and fp16, rows at multiples of 16 bytes).
    Duet,
}

impl From<GemmArg> for Products {
    fn from(arg: GemmArg) -> Self {
        match arg {
            GemmArg::Library => Self::Library,
            GemmArg::Duet => Self::Own,
        }
    }
}

#[derive(Copy, Clone, Debug, PartialEq, Eq, ValueEnum)]
enum WaitsArg {
    /// Inside the kernel.
    Inside,
    /// In streams.
    Stream,
}

#[derive(Copy, Clone, Debug, PartialEq, Eq, ValueEnum)]
enum FlagsArg {
    /// Words in the waiting GPU's memory.
    Value,
    /// Words, and events that say the same.
    ValueAndEvent,
    /// Events.
    Event,
}

/// Reads the name of a tile.
pub fn read_tile(text: &str) -> Result<Tile, String> {
    Tile::named(text).ok_or_else(|| {
        let all = [Family::Sm90, Family::Sm80].map(|family| Tile::of(family, u32::MAX));
        let names: Vec<String> = all.concat().iter().map(|tile| tile.name()).collect();
        format!("there is no tile `{text}`; there are {}", names.join(", "))
    })
}

/// How a schedule is lowered.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Lowering")]
pub struct LoweringArgs {
    /// The way of transfers between GPUs
    #[arg(long, value_enum, value_name = "PATH", default_value = "p2p")]
    path: PathArg,
    /// Bytes that go through the host at a time
    #[arg(long, value_name = "SIZE", default_value = "2MiB")]
    chunk: Bytes,
    /// Part of every transfer's rows that goes through the host on the hybrid path
    #[arg(long, value_name = "SHARE", default_value = "0.1")]
    host_share: f64,
    /// How the host submits work
    #[arg(long, value_enum, default_value = "stream", value_name = "MODE")]
    launch: Launch,
    /// Who performs collectives
    #[arg(long, value_enum, default_value = "nccl", value_name = "LIBRARY")]
    library: LibraryArg,
    /// Who multiplies matrices; `gpu run` takes several, e.g. `library,duet`, and performs every
    /// strategy by each
    #[arg(
        long,
        value_enum,
        default_value = "library",
        value_name = "WHOSE",
        value_delimiter = ','
    )]
    gemm: Vec<GemmArg>,
    /// The tile of Duet's own products, e.g. `sm90-128x256x4-2x1` [default: the one that suits each]
    #[arg(long, value_name = "TILE", value_parser = read_tile)]
    tile: Option<Tile>,
    /// What stands for a schedule's flags in streams
    #[arg(long, value_enum, default_value = "value", value_name = "KIND")]
    flags: FlagsArg,
    /// Where tile groups of Duet's own products wait: inside one kernel, or each in its stream
    #[arg(long, value_enum, default_value = "inside", value_name = "WHERE")]
    waits: WaitsArg,
    /// Thread blocks of copies within one GPU
    #[arg(long, default_value = "16", value_name = "N")]
    local_blocks: u16,
    /// Lower without verifying
    #[arg(long)]
    no_verify: bool,
}

impl LoweringArgs {
    /// How the host submits work.
    pub const fn launch(&self) -> Launch {
        self.launch
    }

    /// Who multiplies matrices.
    pub fn products(&self) -> impl Iterator<Item = Products> + '_ {
        self.gemm.iter().map(|&whose| whose.into())
    }

    /// The options, with the first of those who multiply.
    pub fn options(&self) -> Options {
        let chunk = self.chunk.get();
        Options {
            path: match self.path {
                PathArg::P2p => Path::P2p,
                PathArg::Host => Path::Host { chunk },
                PathArg::Hybrid => Path::Hybrid {
                    host_share: self.host_share,
                    chunk,
                },
            },
            mode: match self.launch {
                Launch::Stream => Mode::Stream,
                Launch::Graph => Mode::Graph,
            },
            library: self.library.into(),
            products: self.products().next().unwrap_or_default(),
            tile: self.tile,
            flags: match self.flags {
                FlagsArg::Value => Flags::Value,
                FlagsArg::ValueAndEvent => Flags::ValueAndEvent,
                FlagsArg::Event => Flags::Event,
            },
            waits: match self.waits {
                WaitsArg::Inside => Waits::Inside,
                WaitsArg::Stream => Waits::Stream,
            },
            local_blocks: self.local_blocks,
            verify: !self.no_verify,
        }
    }
}
