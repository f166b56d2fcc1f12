//! What a closed form knows before there is a shape: one GPU's constants, the terms, the operator's
//! kind and the library's collective on the link graph.

use super::Terms;
use super::collective::{Collective, Line};
use super::network::{Edge, Network, place};
use crate::device::gemm::Curve;
use crate::device::{CollectiveTable, Costs, DType, Device, MoreCosts};
use crate::operator::Kind;
use crate::schedule::CollectiveKind;
use crate::units::Seconds;

/// One GPU's constants.
#[derive(Clone, Debug)]
pub(super) struct Gpu {
    curves: Vec<(DType, Curve)>,
    sms: u32,
    /// SMs that a library collective holds.
    library_sms: u32,
    /// Its fixed time and that of each step \[s\].
    library_base: f64,
    library_step: f64,
    /// Its measured times over those of the line.
    library_table: CollectiveTable,
    /// Memory bandwidth \[bytes/s\], and the inverse of elementwise kernels' rate.
    hbm: f64,
    per_elementwise: f64,
    costs: Costs,
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
            library_table: device.library.table.clone(),
            hbm: device.hbm.get(),
            per_elementwise: 1.0 / device.elementwise.get(),
            costs: device.costs,
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

/// Everything that a closed form is a function of, but for the shape.
#[derive(Clone, Debug)]
pub(super) struct Site {
    pub kind: Kind,
    /// Ranks; as a number, and a rank's part of anything.
    pub n: u32,
    pub ranks: f64,
    pub part: f64,
    pub terms: Terms,
    /// What counts under the terms.
    pub costs: Costs,
    /// SMs that a library collective takes from a GEMM beside it, and how much longer arithmetic takes
    /// on those that it leaves.
    pub taken: u32,
    pub beside: f64,
    /// Memory bandwidth \[bytes/s\], its inverse, and that of elementwise kernels' rate.
    pub hbm: f64,
    pub per_hbm: f64,
    pub per_elementwise: f64,
    /// What memory takes for a byte of a shard that everyone gets, or everyone sends a part of: read
    /// and written n − 1 times, twice that where both \[s/byte\].
    pub moved: f64,
    /// The operator's collective by the library.
    library: Option<Line>,
}

impl Site {
    /// `n` ranks on GPUs of the kind `gpu`.
    pub fn new(gpu: &Gpu, net: &Network, terms: Terms, kind: Kind, n: u32) -> Self {
        let costs = match (terms.launch, terms.graph_launch) {
            (true, false) => gpu.costs,
            (true, true) => in_graph(&gpu.costs),
            (false, _) => Costs::FREE,
        };
        let library = net.library(collective(kind)).map(|library| {
            let start = match terms.launch {
                true => {
                    let base = costs.kernel_start.get() + gpu.library_base;
                    base + library.steps * gpu.library_step
                }
                false => 0.0,
            };
            let fixed = start + library.steps * library.latency;
            let measured = terms.launch.then_some(&gpu.library_table);
            Line::new(fixed, library, measured, place(collective(kind)))
        });
        let taken = if terms.contention { gpu.library_sms } else { 0 };
        Self {
            kind,
            n,
            ranks: f64::from(n),
            part: 1.0 / f64::from(n),
            terms,
            costs,
            taken,
            beside: f64::from(gpu.sms) / f64::from(gpu.sms.saturating_sub(taken).max(1)),
            hbm: gpu.hbm,
            per_hbm: 1.0 / gpu.hbm,
            per_elementwise: gpu.per_elementwise,
            moved: match kind {
                Kind::GemmAr => 4.0 * f64::from(n.saturating_sub(1)) / gpu.hbm,
                _ => 2.0 * f64::from(n.saturating_sub(1)) / gpu.hbm,
            },
            library,
        }
    }

    /// The library's collective of `message` bytes (nccl-tests' size).
    #[inline(always)]
    pub fn library(&self, message: f64) -> Option<Collective> {
        let line = self.library.as_ref()?;
        Some(line.at(message, self.terms.contention))
    }

    /// Pieces of it take no less: each, and all of them for their bytes \[s\].
    #[inline(always)]
    pub fn least_library(&self, message: f64) -> Option<[f64; 2]> {
        Some(self.library.as_ref()?.least(message))
    }

    /// From a kernel's group to a copy on the same GPU that it lets go \[s\].
    pub fn flag_local(&self) -> f64 {
        let c = &self.costs;
        c.more.flag_local.unwrap_or(c.stream_flag).get()
    }

    /// Whether the host hands calls over one by one.
    pub const fn submits_calls(&self) -> bool {
        self.terms.launch && !self.terms.graph_launch
    }

    /// The host's time for handing over a copy, a kernel, or a number of waits and signals \[s\].
    #[inline]
    pub fn submits(&self, copies: f64, kernels: f64, syncs: f64) -> f64 {
        let c = &self.costs;
        copies * c.submit_copy.get() + kernels * c.submit_kernel.get() + syncs * c.submit_sync.get()
    }

    /// A kernel that adds up all parts of a shard of `bytes`.
    #[inline]
    pub fn sum(&self, bytes: f64) -> f64 {
        self.sum_line().at(bytes)
    }

    /// The same as a line over the bytes.
    pub fn sum_line(&self) -> Edge {
        Edge {
            latency: self.costs.kernel_start.get(),
            per_byte: (self.ranks + 1.0) * self.per_elementwise,
        }
    }
}

/// The costs within a graph, which is handed over as one: starts and edges as far as a profile states them.
fn in_graph(costs: &Costs) -> Costs {
    let more = &costs.more;
    let peer = |stated| more.graph_event_peer.unwrap_or(stated);
    Costs {
        submit_kernel: Seconds::ZERO,
        submit_copy: Seconds::ZERO,
        submit_sync: Seconds::ZERO,
        kernel_start: more.graph_kernel_start.unwrap_or(costs.kernel_start),
        lane: more.graph_lane.unwrap_or(costs.lane),
        event: more.graph_event.unwrap_or(costs.event),
        event_peer: peer(costs.event_peer),
        stream_flag: peer(costs.stream_flag),
        kernel_flag: peer(costs.kernel_flag),
        more: MoreCosts {
            flag_local: more.graph_event.or(more.flag_local),
            ..*more
        },
        ..*costs
    }
}

/// The collective beside the GEMM, or the bare one.
const fn collective(kind: Kind) -> CollectiveKind {
    match kind {
        Kind::AgGemm | Kind::AllGather => CollectiveKind::AllGather,
        Kind::GemmRs | Kind::ReduceScatter => CollectiveKind::ReduceScatter,
        Kind::GemmAr | Kind::AllReduce => CollectiveKind::AllReduce,
        Kind::AllToAll | Kind::PointToPoint => CollectiveKind::AllToAll,
    }
}
