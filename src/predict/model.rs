//! What a closed form is a function of: one GPU, the link graph in numbers, the terms and the shape.

use super::Terms;
use super::network::Network;
use crate::device::gemm::{Column, Curve, GemmTime};
use crate::device::{Costs, DType, Device};
use crate::operator::{Kind, Operator, Shape};
use crate::schedule::CollectiveKind;
use crate::strategy::Choice;
use crate::units::Seconds;

/// One GPU's constants.
#[derive(Clone, Debug)]
pub(super) struct Gpu {
    curves: Vec<(DType, Curve)>,
    pub sms: u32,
    /// SMs that a library collective holds.
    pub library_sms: u32,
    /// Its fixed time and that of each step \[s\].
    library_base: f64,
    library_step: f64,
    /// Memory bandwidth \[bytes/s\], its inverse, and that of elementwise kernels' rate.
    pub hbm: f64,
    pub per_hbm: f64,
    pub per_elementwise: f64,
    costs: Costs,
    /// The same where submissions are part of one graph launch.
    in_graph: Costs,
}

impl Gpu {
    pub fn new(device: &Device) -> Self {
        let curve = |dtype| Some((dtype, Curve::new(device, dtype)?));
        Self {
            curves: DType::ALL.into_iter().filter_map(curve).collect(),
            sms: device.sms,
            library_sms: device.library.sms,
            library_base: device.library.base.get(),
            library_step: device.library.step.get(),
            hbm: device.hbm.get(),
            per_hbm: 1.0 / device.hbm.get(),
            per_elementwise: 1.0 / device.elementwise.get(),
            costs: device.costs,
            in_graph: Costs {
                submit_kernel: Seconds::ZERO,
                submit_copy: Seconds::ZERO,
                submit_sync: Seconds::ZERO,
                ..device.costs
            },
        }
    }

    /// What the host's one launch of everything takes \[s\]; 0 where calls are handed over one by
    /// one.
    pub fn graph_launch(&self, terms: Terms) -> f64 {
        match terms.launch && terms.graph_launch {
            true => self.costs.submit_graph.get(),
            false => 0.0,
        }
    }

    /// GEMM times of an element type; `None` where the GPU lacks it.
    pub fn curve(&self, dtype: DType) -> Option<&Curve> {
        let (_, curve) = self.curves.iter().find(|(known, _)| *known == dtype)?;
        Some(curve)
    }
}

/// What is to be computed, as one rank sees it.
#[derive(Copy, Clone, Debug)]
pub(super) struct Case {
    pub kind: Kind,
    /// Ranks.
    pub n: u32,
    /// A rank's GEMM; zeros for a bare collective.
    pub gemm: [u64; 3],
    /// The message S \[bytes\].
    pub message: f64,
    /// Ranks as a number, and their inverse.
    ranks: f64,
    part: f64,
}

impl Case {
    pub fn new(operator: &Operator) -> Self {
        let gemm = operator.rank_gemm().unwrap_or_default();
        let ranks = f64::from(operator.tp);
        Self {
            ranks,
            part: 1.0 / ranks,
            kind: operator.kind,
            n: operator.tp,
            gemm: [gemm.0, gemm.1, gemm.2],
            message: match operator.shape {
                Shape::Bytes(bytes) => bytes.as_f64(),
                Shape::Gemm { .. } => operator.message_bytes() as f64,
            },
        }
    }

    /// Ranks as a number.
    pub const fn ranks(&self) -> f64 {
        self.ranks
    }

    /// A rank's part of anything: 1/n.
    pub const fn part(&self) -> f64 {
        self.part
    }

    /// A rank's part of the message \[bytes\].
    pub fn shard(&self) -> f64 {
        self.message * self.part
    }

    /// The collective beside the GEMM.
    pub const fn collective(&self) -> CollectiveKind {
        match self.kind {
            Kind::AgGemm | Kind::AllGather => CollectiveKind::AllGather,
            Kind::GemmRs | Kind::ReduceScatter => CollectiveKind::ReduceScatter,
            Kind::GemmAr | Kind::AllReduce => CollectiveKind::AllReduce,
            Kind::AllToAll | Kind::PointToPoint => CollectiveKind::AllToAll,
        }
    }
}

/// The settings of a strategy, those that a closed form knows.
#[derive(Copy, Clone, Debug, PartialEq)]
pub(super) struct Setting {
    /// Pieces of the operator.
    pub d: u32,
    /// Pieces of a shard; as a number, and the inverse.
    pub chunks: u32,
    pub parts: f64,
    pub part: f64,
    /// Copies between all pairs in place of the library.
    pub direct: bool,
    /// Whether GEMMs leave the library its SMs.
    pub margin: bool,
}

impl Setting {
    pub fn new(choice: &Choice, kind: Kind) -> Self {
        let params = choice.params();
        let chunks = params.count("chunks");
        Self {
            d: params.count("d"),
            chunks,
            parts: f64::from(chunks),
            part: 1.0 / f64::from(chunks),
            direct: params.is("comm", "direct"),
            margin: params.is("margin", "yes")
                || (params.is("margin", "auto") && kind != Kind::AgGemm),
        }
    }
}

/// Everything that a closed form is a function of.
#[derive(Clone, Debug)]
pub(super) struct Model<'a> {
    pub gpu: &'a Gpu,
    /// GEMM times of the operator's columns and depth; `None` for a bare collective.
    column: Option<Column<'a>>,
    /// The unsplit GEMM.
    pub whole: GemmTime,
    pub net: &'a Network,
    pub costs: &'a Costs,
    pub terms: Terms,
    pub case: Case,
}

/// What GEMMs take at least, in however many pieces \[s\].
#[derive(Copy, Clone, Debug, PartialEq)]
pub(super) struct Least {
    /// The arithmetic of all on all SMs.
    pub arithmetic: f64,
    /// The overhead of each.
    pub each: f64,
    /// Reading B, once in each; the rows of A and C of all.
    pub weights: f64,
    pub moved: f64,
}

/// A collective of the library.
#[derive(Copy, Clone, Debug, PartialEq)]
pub(super) struct Collective {
    pub seconds: f64,
    /// Rate at which it moves bytes in a GPU's memory while it flows \[bytes/s\].
    pub memory: f64,
}

impl<'a> Model<'a> {
    #[inline(always)]
    pub fn new(gpu: &'a Gpu, net: &'a Network, terms: Terms, dtype: DType, case: Case) -> Self {
        let [m, n, k] = case.gemm;
        let curve = gpu.curve(dtype).filter(|_| case.kind.is_fused());
        let mut model = Self {
            gpu,
            column: curve.map(|curve| curve.at(n, k)),
            whole: GemmTime::default(),
            net,
            costs: match (terms.launch, terms.graph_launch) {
                (true, false) => &gpu.costs,
                (true, true) => &gpu.in_graph,
                (false, _) => &Costs::FREE,
            },
            terms,
            case,
        };
        if let Some(column) = &model.column {
            model.whole = column.time(m);
        }
        model
    }

    /// The GEMM of `rows` of the rank's rows on all SMs, and on those that a library collective
    /// leaves where contention counts.
    #[inline]
    pub fn gemms(&self, rows: u64) -> [GemmTime; 2] {
        let Some(column) = &self.column else {
            return [GemmTime::default(); 2];
        };
        match self.taken() > 0 {
            true => column.time_with_and_beside(rows),
            false => [column.time(rows); 2],
        }
    }

    /// No way of cutting the rank's GEMM takes less.
    #[inline]
    pub fn least(&self) -> Least {
        match &self.column {
            Some(column) if self.terms.gemm_curve => {
                let (weights, moved) = column.least_memory(self.case.gemm[0]);
                Least {
                    arithmetic: column.least(self.case.gemm[0]),
                    each: column.least_overhead(),
                    weights,
                    moved,
                }
            }
            _ => Least {
                arithmetic: self.whole.seconds,
                each: 0.0,
                weights: 0.0,
                moved: 0.0,
            },
        }
    }

    /// SMs that a library collective takes from a GEMM beside it.
    pub fn taken(&self) -> u32 {
        if self.terms.contention {
            self.gpu.library_sms
        } else {
            0
        }
    }

    /// The library's collective of `message` bytes (nccl-tests' size).
    pub fn library(&self, kind: CollectiveKind, message: f64) -> Option<Collective> {
        let library = self.net.library(kind)?;
        let fixed = if self.terms.launch {
            let start = self.costs.kernel_start.get() + self.gpu.library_base;
            start + library.steps * self.gpu.library_step
        } else {
            0.0
        };
        let bytes = library.sent * message;
        Some(Collective {
            seconds: fixed + library.steps * library.latency + bytes * library.per_byte,
            memory: if self.terms.contention {
                library.accesses / library.per_byte
            } else {
                0.0
            },
        })
    }

    /// Whether the host hands calls over one by one.
    pub const fn submits_calls(&self) -> bool {
        self.terms.launch && !self.terms.graph_launch
    }

    /// The host's time for handing over a copy, a kernel, or a number of waits and signals \[s\].
    pub fn submits(&self, copies: f64, kernels: f64, syncs: f64) -> f64 {
        let c = self.costs;
        copies * c.submit_copy.get() + kernels * c.submit_kernel.get() + syncs * c.submit_sync.get()
    }

    /// A kernel that adds up all parts of a shard of `bytes`.
    pub fn sum(&self, bytes: f64) -> f64 {
        self.costs.kernel_start.get() + (self.case.ranks() + 1.0) * bytes * self.gpu.per_elementwise
    }
}
