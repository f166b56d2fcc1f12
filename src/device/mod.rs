//! What one GPU can do: GEMM time, memory bandwidth, SMs, copy engines, launch and sync costs.
//!
//! A [`Device`] is read from `topologies/gpus/*.yaml` (format: [`read`]); it knows nothing of
//! links.

mod algorithms;
mod beside;
mod collectives;
mod costs;
mod fields;
pub mod gemm;
mod ideal;
mod measured;
mod numbers;
mod parse;
mod plausible;
mod scatter;
mod section;
mod shipped;
mod slot;
mod source;

pub use beside::Beside;
pub use collectives::{COLLECTIVES, CollectiveTable};
pub use costs::{Costs, MoreCosts};
pub use fields::set;
pub use ideal::ideal;
pub use numbers::{Number, assign, numbers, sources};
pub use parse::{DeviceError, load, parse, read};
pub use scatter::Scatter;
pub use shipped::names;
pub(crate) use slot::digits;
pub use source::KINDS as SOURCE_KINDS;

use std::sync::Arc;

use crate::units::{Bytes, BytesPerSecond, FlopsPerSecond, Seconds};

/// Element type of a tensor.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum DType {
    /// bfloat16, 2 bytes.
    #[default]
    Bf16,
    /// IEEE half, 2 bytes.
    Fp16,
    /// 8-bit float (e4m3 or e5m2), 1 byte.
    Fp8,
    /// IEEE single, 4 bytes (matrix units in TF32 where the GPU has them).
    Fp32,
}

impl DType {
    /// All element types, in the order of their names' documentation.
    pub const ALL: [Self; 4] = [Self::Bf16, Self::Fp16, Self::Fp8, Self::Fp32];

    /// Bytes of one element.
    pub const fn size(self) -> u64 {
        match self {
            Self::Bf16 | Self::Fp16 => 2,
            Self::Fp8 => 1,
            Self::Fp32 => 4,
        }
    }

    /// The name used in files and on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Bf16 => "bf16",
            Self::Fp16 => "fp16",
            Self::Fp8 => "fp8",
            Self::Fp32 => "fp32",
        }
    }
}

/// One output tile a GEMM library can choose.
#[derive(Clone, Debug, PartialEq)]
pub struct Tile {
    /// Rows of C \[elements\].
    pub m: u32,
    /// Columns of C \[elements\].
    pub n: u32,
    /// Share of an SM's peak that the main loop of this tile reaches [0–1].
    pub efficiency: f64,
}

/// One measured GEMM: `m × k` times `k × n`.
#[derive(Copy, Clone, Debug, PartialEq)]
pub struct MeasuredGemm {
    pub dtype: DType,
    pub m: u64,
    pub n: u64,
    pub k: u64,
    /// Median time on an otherwise idle GPU, launch excluded.
    pub time: Seconds,
    /// `time` over the modelled one on the unchanged profile, all SMs; kept when a field is set.
    pub correction: f64,
}

/// How many copies each kind of copy engine runs at once.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct CopyEngines {
    /// Copies to or from peers, per direction.
    pub peer: u32,
    /// Copies from host memory to the GPU.
    pub h2d: u32,
    /// Copies from the GPU to host memory.
    pub d2h: u32,
}

/// What the collective library (NCCL, RCCL) reaches and costs on this GPU.
#[derive(Clone, Debug, PartialEq)]
pub struct Library {
    /// SMs (thread blocks) a collective holds.
    pub sms: u32,
    /// Time of an empty collective, whatever its size.
    pub base: Seconds,
    /// Further time per ring or tree step.
    pub step: Seconds,
    /// Share of a link's bandwidth that the library reaches, by link kind; [`Self::other`] else.
    pub efficiency: Vec<(String, f64)>,
    /// Share for link kinds not listed.
    pub other: f64,
    /// Measured collectives; empty where there are none.
    pub table: CollectiveTable,
}

impl Library {
    /// The share of a link's bandwidth that it reaches, by link kind.
    pub fn efficiency_of(&self, kind: &str) -> f64 {
        let known = self.efficiency.iter().find(|(name, _)| name == kind);
        known.map_or(self.other, |(_, efficiency)| *efficiency)
    }
}

/// One GPU. Bandwidths are what a well-written program reaches, not the data sheet's peak, unless
/// the profile's `source:` says datasheet.
#[derive(Clone, Debug, PartialEq)]
pub struct Device {
    /// The profile's name, e.g. `h200`.
    pub name: String,
    /// What it is, in one line.
    pub about: String,
    /// Streaming multiprocessors (compute units on AMD).
    pub sms: u32,
    /// Dense peak by element type; a type the GPU lacks is absent.
    pub peak: Vec<(DType, FlopsPerSecond)>,
    /// Share of the peak that survives sustained load (clock under the power limit) [0–1].
    pub sustained: f64,
    /// Reachable memory bandwidth, reads and writes together.
    pub hbm: BytesPerSecond,
    /// Memory size.
    pub memory: Bytes,
    /// Level-2 cache size.
    pub l2: Bytes,
    /// Tiles the GEMM library chooses from.
    pub tiles: Vec<Tile>,
    /// Fixed time of one GEMM kernel beyond its waves (prologue, epilogue).
    pub gemm_overhead: Seconds,
    /// Share of its arithmetic rate that a GEMM keeps under continuous load, against a GPU that rested
    /// [0–1]; `None` where it was not measured.
    pub gemm_loaded: Option<f64>,
    /// Bytes of C that take a GEMM a second longer when it accumulates onto them; `None` where that
    /// was not measured: the memory traffic alone.
    pub gemm_accumulate: Option<BytesPerSecond>,
    /// Shares of its arithmetic that a GEMM keeps whose rows of n or k elements are no multiples of 16
    /// bytes, and whose rows are none of 4 [0–1]; all of it where that is not stated, and where a
    /// `gemm_library` says more.
    pub gemm_unaligned: [Option<f64>; 2],
    /// Measured GEMMs, empty where there are none.
    pub gemm_table: Vec<MeasuredGemm>,
    /// What is known of the GEMM library's choices, if anything.
    pub gemm_library: Option<Arc<gemm::library::Library>>,
    /// Copy engines.
    pub engines: CopyEngines,
    /// Fastest copy-engine rate to a peer, whatever the link; infinite where only links limit.
    pub peer_copy: BytesPerSecond,
    /// Copy rate of one SM (thread block).
    pub sm_copy: BytesPerSecond,
    /// Share of a link's bandwidth that SM copies reach at most [0–1].
    pub sm_copy_efficiency: f64,
    /// Copies within the GPU's own memory: bytes moved once per second.
    pub local_copy: BytesPerSecond,
    /// Elementwise kernels (reductions, pointwise): bytes read and written per second.
    pub elementwise: BytesPerSecond,
    /// Launch, start-up and sync costs.
    pub costs: Costs,
    /// The collective library.
    pub library: Library,
    /// What GEMMs, and copies and collectives beside them, lose.
    pub beside: Beside,
    /// What collectives find of the SMs that GEMMs leave.
    pub scatter: Scatter,
}

impl Device {
    /// Makes room for the number of that full name or short one, if it is one that a profile may
    /// leave out.
    fn state(&mut self, field: &str) {
        let named =
            |name: &str| name == field || name.split_once('.').is_some_and(|n| n.1 == field);
        for (name, slot) in self.costs.more.fields() {
            if named(name) {
                slot.get_or_insert(Seconds::ZERO);
            }
        }
        let (rates, shares) = self.beside.fields();
        for (name, slot) in rates {
            if named(name) {
                slot.get_or_insert(BytesPerSecond::INFINITE);
            }
        }
        for (name, slot) in shares {
            if named(name) {
                slot.get_or_insert(1.0);
            }
        }
        let (counts, shares) = self.scatter.fields();
        for (name, slot) in counts {
            if named(name) {
                slot.get_or_insert(1);
            }
        }
        for (name, slot) in shares {
            if named(name) {
                slot.get_or_insert(1.0);
            }
        }
        if named(fields::LOADED) {
            self.gemm_loaded.get_or_insert(1.0);
        }
        if named(fields::ACCUMULATE) {
            self.gemm_accumulate.get_or_insert(BytesPerSecond::INFINITE);
        }
        for (name, share) in fields::UNALIGNED.into_iter().zip(&mut self.gemm_unaligned) {
            if named(name) {
                share.get_or_insert(1.0);
            }
        }
    }

    /// Arithmetic rate of all SMs under sustained load [FLOP/s]; `None` when it lacks `dtype`.
    pub fn rate(&self, dtype: DType) -> Option<f64> {
        let (_, peak) = self.peak.iter().find(|(known, _)| *known == dtype)?;
        Some(peak.get() * self.sustained)
    }

    /// Share of the arithmetic that a GEMM keeps for the [`alignment`](gemm::library::alignment) of its
    /// rows.
    fn aligned(&self, dtype: DType, n: u64, k: u64) -> f64 {
        let [unaligned, odd] = self.gemm_unaligned;
        let share = match gemm::library::alignment(dtype, n, k) {
            gemm::library::ALIGNED.. => None,
            4.. => unaligned,
            _ => odd.or(unaligned),
        };
        share.unwrap_or(1.0)
    }

    /// Makes arithmetic, and what else of a GEMM goes by the SMs' clock, as slow as under continuous
    /// load, or as fast as before it; measured GEMMs keep their ratio to the model. Says whether the
    /// profile states how slow that is.
    pub fn load(&mut self, loaded: bool) -> bool {
        let Some(share) = self.gemm_loaded else {
            return false;
        };
        let factor = if loaded { share } else { 1.0 / share };
        for (_, peak) in &mut self.peak {
            *peak = FlopsPerSecond::of(peak.get() * factor);
        }
        if let Some(library) = &mut self.gemm_library {
            Arc::make_mut(library).clock(factor);
        }
        true
    }
}
