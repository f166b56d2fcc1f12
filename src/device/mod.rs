//! What one GPU can do: GEMM time, memory bandwidth, SMs, copy engines, launch and sync costs.
//!
//! A [`Device`] is read from `topologies/gpus/*.yaml` (format: [`read`]); it knows nothing of
//! links.

mod algorithms;
mod beside;
mod collectives;
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

/// Fixed costs of getting work started and of handing it over.
#[derive(Copy, Clone, Debug, PartialEq)]
pub struct Costs {
    /// Host time to submit one kernel to a stream (serial per GPU).
    pub submit_kernel: Seconds,
    /// Host time to submit one copy.
    pub submit_copy: Seconds,
    /// Host time to submit one wait or record of an event or a flag.
    pub submit_sync: Seconds,
    /// Host time of launching one whole graph (graph mode: instead of the three above).
    pub submit_graph: Seconds,
    /// From the GPU taking up a kernel to its first instruction.
    pub kernel_start: Seconds,
    /// From the GPU taking up a copy-engine copy to its first byte.
    pub copy_start: Seconds,
    /// From an SM copy kernel's first instruction to its first byte on the link.
    pub sm_copy_start: Seconds,
    /// End of a task to start of its successor in the same lane.
    pub lane: Seconds,
    /// Event hand-off between two lanes of one GPU.
    pub event: Seconds,
    /// Event hand-off between two GPUs.
    pub event_peer: Seconds,
    /// Stream-written flag to a satisfied stream wait, between GPUs.
    pub stream_flag: Seconds,
    /// Flag written by a copy or a kernel to the tile group that spins on it.
    pub kernel_flag: Seconds,
    /// What a profile need not state.
    pub more: MoreCosts,
}

/// Costs that a profile may leave out; each says what then takes its place.
#[derive(Copy, Clone, Debug, Default, PartialEq)]
pub struct MoreCosts {
    /// As [`Costs::copy_start`], of a copy right behind another copy of its lane or engine; else
    /// that.
    pub copy_next: Option<Seconds>,
    /// As [`Costs::copy_start`], of a copy to or from the host's memory; else that.
    pub host_copy_start: Option<Seconds>,
    /// The same for each further chunk of a transfer that stops there; else as the first.
    pub host_copy_next: Option<Seconds>,
    /// What writing a flag takes in the writer's lane; else nothing.
    pub flag_write: Option<Seconds>,
    /// As [`Self::flag_write`], behind a copy of a copy engine; else that.
    pub flag_write_copy: Option<Seconds>,
    /// What awaiting a flag that is there takes in the waiting lane; else nothing.
    pub flag_wait: Option<Seconds>,
    /// What recording an event takes in a queue, between two kernels; else nothing.
    pub event_record: Option<Seconds>,
    /// What awaiting an event that has passed takes in a queue, between two kernels; else nothing.
    pub event_wait: Option<Seconds>,
    /// As [`Costs::stream_flag`], between two lanes of one GPU; else that.
    pub flag_local: Option<Seconds>,
    /// As [`Costs::kernel_start`], in a graph; else that.
    pub graph_kernel_start: Option<Seconds>,
    /// As [`Costs::lane`], in a graph; else that.
    pub graph_lane: Option<Seconds>,
    /// Edge of a graph between two lanes of one GPU; else an event or a flag.
    pub graph_event: Option<Seconds>,
    /// Edge of a graph between two GPUs; else an event or a flag.
    pub graph_event_peer: Option<Seconds>,
    /// Beginning and end of a run in streams, from its start event to its end event, beyond its work
    /// and the first event; else nothing.
    pub run: Option<Seconds>,
    /// The same for a run that is one graph; else nothing.
    pub run_graph: Option<Seconds>,
}

impl MoreCosts {
    /// No cost stated.
    pub const NONE: Self = Self {
        copy_next: None,
        host_copy_start: None,
        host_copy_next: None,
        flag_write: None,
        flag_write_copy: None,
        flag_wait: None,
        event_record: None,
        event_wait: None,
        flag_local: None,
        graph_kernel_start: None,
        graph_lane: None,
        graph_event: None,
        graph_event_peer: None,
        run: None,
        run_graph: None,
    };

    /// Each with its name.
    fn fields(&mut self) -> [(&'static str, &mut Option<Seconds>); 15] {
        [
            ("costs.copy_next", &mut self.copy_next),
            ("costs.host_copy_start", &mut self.host_copy_start),
            ("costs.host_copy_next", &mut self.host_copy_next),
            ("costs.flag_write", &mut self.flag_write),
            ("costs.flag_write_copy", &mut self.flag_write_copy),
            ("costs.flag_wait", &mut self.flag_wait),
            ("costs.event_record", &mut self.event_record),
            ("costs.event_wait", &mut self.event_wait),
            ("costs.flag_local", &mut self.flag_local),
            ("costs.graph_kernel_start", &mut self.graph_kernel_start),
            ("costs.graph_lane", &mut self.graph_lane),
            ("costs.graph_event", &mut self.graph_event),
            ("costs.graph_event_peer", &mut self.graph_event_peer),
            ("costs.run", &mut self.run),
            ("costs.run_graph", &mut self.run_graph),
        ]
    }
}

impl Costs {
    /// Nothing costs anything.
    pub const FREE: Self = Self {
        submit_kernel: Seconds::ZERO,
        submit_copy: Seconds::ZERO,
        submit_sync: Seconds::ZERO,
        submit_graph: Seconds::ZERO,
        kernel_start: Seconds::ZERO,
        copy_start: Seconds::ZERO,
        sm_copy_start: Seconds::ZERO,
        lane: Seconds::ZERO,
        event: Seconds::ZERO,
        event_peer: Seconds::ZERO,
        stream_flag: Seconds::ZERO,
        kernel_flag: Seconds::ZERO,
        more: MoreCosts::NONE,
    };
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
