//! What the fused strategies share: one GEMM kernel per rank whose tile groups wait for flags or
//! raise them.

use super::layout::{COMPUTE, Fused};
use super::params::{Param, Value, Values};
use super::ring::MOVER;
use super::{Job, Skip, opens};
use crate::operator::Kind;
use crate::schedule::{
    BufferId, Builder, Compute, Dep, GemmKernel, LaunchId, Mover, Rank, Slice, TaskId, Via,
};

pub(super) const CHUNKS: Param = Param {
    name: "chunks",
    values: Values::Count {
        least: 1,
        most: 1024,
    },
    default: Value::Count(1),
    about: "pieces of every shard; each moves on, or opens its tiles, as soon as it is there",
    shown: false,
};

pub(super) const SLABS: Param = Param {
    name: "slabs",
    values: Values::Count {
        least: 1,
        most: 1024,
    },
    default: Value::Count(1),
    about: "ag-gemm: pieces of every chunk along k; its tiles open with the first and wait for the others on their way",
    shown: false,
};

/// Who moves what a fused kernel computes or waits for.
pub(super) const FUSED_MOVER: Param = Param {
    values: Values::FusedMover,
    about: "who copies: the copy engine, a kernel of so many thread blocks, or the fused kernel, which (epilogue: gemm-rs, gemm-ar) stores its tiles where they are added up, or (loader: ag-gemm) brings what it waits for",
    ..MOVER
};

/// The parameters of fusions and collectives on two rings, which take turns as two chunks would.
pub(super) const DOUBLE_RING: &[Param] = &[CHUNKS, MOVER];

/// The parameters of the fusion on one ring. A partial sum is either computed on or on its way, so
/// that one chunk would overlap nothing.
pub(super) const RING: &[Param] = &[IN_TWO, MOVER];

/// The same of one kernel.
pub(super) const FUSED_RING: &[Param] = &[IN_TWO, FUSED_MOVER];

const IN_TWO: Param = Param {
    default: Value::Count(2),
    ..CHUNKS
};

/// What a comparison tries of every fusion.
pub(super) const TRIED: &[&str] = &["", "chunks=4"];

/// Refuses stores by epilogues where no product is what is copied, and loaders where none reads what is given.
pub(super) fn stored(kind: Kind, mover: Mover) -> Result<(), Skip> {
    match (kind, mover) {
        (Kind::AgGemm, Mover::Epilogue) => Err(Skip::because(format!(
            "mover=epilogue stores products where they are added up, and {kind} gathers what is given"
        ))),
        (Kind::GemmRs | Kind::GemmAr, Mover::Loader) => Err(Skip::because(format!(
            "mover=loader brings the rows of A that others have, and {kind} gathers none"
        ))),
        _ => Ok(()),
    }
}

/// The GEMMs of all ranks: one fused kernel each, or library calls.
#[derive(Debug)]
pub(super) struct Kernels<'a> {
    fused: &'a Fused,
    /// By rank: its SMs (0: all that are free), and its fused kernel.
    ranks: Vec<(u16, Option<LaunchId>)>,
}

impl<'a> Kernels<'a> {
    /// Fused kernels that leave `lanes` copy kernels per rank their SMs.
    pub(super) fn new(
        b: &mut Builder,
        job: &Job<'_>,
        fused: &'a Fused,
        mover: Mover,
        lanes: usize,
    ) -> Result<Self, Skip> {
        let mut kernels = Self::library(b, job, fused, mover, lanes)?;
        for (rank, (sms, launch)) in b.ranks().zip(&mut kernels.ranks) {
            *launch = Some(b.launch("gemm", rank, *sms));
        }
        Ok(kernels)
    }

    /// Library calls, one per group, that leave as many SMs free.
    pub(super) fn library(
        b: &Builder,
        job: &Job<'_>,
        fused: &'a Fused,
        mover: Mover,
        lanes: usize,
    ) -> Result<Self, Skip> {
        let beside = match mover {
            Mover::CopyEngine | Mover::Epilogue | Mover::Loader => 0,
            Mover::Sm { blocks } => u32::from(blocks) * lanes as u32,
        };
        let ranks: Result<_, Skip> = b
            .ranks()
            .map(|rank| Ok((job.site.sms(rank, beside)?, None)))
            .collect();
        Ok(Self {
            fused,
            ranks: ranks?,
        })
    }

    fn fuses(&self) -> bool {
        self.ranks.iter().any(|(_, launch)| launch.is_some())
    }

    /// How a group waits for what another rank's transfer brings.
    pub(super) fn opened_by(&self) -> Via {
        match self.fuses() {
            true => Via::KernelFlag,
            false => Via::StreamFlag,
        }
    }

    /// How a transfer by `mover` waits for a group of its own rank.
    pub(super) fn leaves_by(&self, mover: Mover) -> Via {
        match self.fuses() {
            true => opens(mover),
            false => Via::Event,
        }
    }

    /// The tile group of the rows `[row, row + rows)` of A, into `out`.
    pub(super) fn group(
        &self,
        b: &mut Builder,
        rank: Rank,
        rows: (u32, u32),
        out: Slice,
        kernel: GemmKernel,
        after: &[Dep],
    ) -> TaskId {
        let gemm = self.fused.gemm(b, rank, rows, out, kernel);
        self.push(b, rank, gemm, after)
    }

    /// The same, added to what `out` holds.
    pub(super) fn accumulate(
        &self,
        b: &mut Builder,
        rank: Rank,
        rows: (u32, u32),
        out: Slice,
        after: &[Dep],
    ) -> TaskId {
        let mut gemm = self.fused.gemm(b, rank, rows, out, GemmKernel::Scatter);
        if let Compute::Gemm { accumulate, .. } = &mut gemm {
            *accumulate = true;
        }
        self.push(b, rank, gemm, after)
    }

    /// The tile group into the same rows of `buffers[rank]`.
    pub(super) fn in_place(
        &self,
        b: &mut Builder,
        rank: Rank,
        rows: (u32, u32),
        buffers: &[BufferId],
        kernel: GemmKernel,
        after: &[Dep],
    ) -> TaskId {
        let out = b.rows(buffers[usize::from(rank.0)], 0, rows.0, rows.1);
        self.group(b, rank, rows, out, kernel, after)
    }

    /// What slab `cols` of k adds to the product of the rows `[row, row + rows)`, `before` being the
    /// group of the slab before it.
    pub(super) fn slab(
        &self,
        b: &mut Builder,
        rank: Rank,
        (rows, cols): ((u32, u32), (u32, u32)),
        buffers: &[BufferId],
        before: Option<TaskId>,
        landed: Dep,
    ) -> TaskId {
        let out = b.rows(buffers[usize::from(rank.0)], 0, rows.0, rows.1);
        let mut gemm = self.fused.gemm(b, rank, rows, out, GemmKernel::Gated);
        if let Compute::Gemm {
            a, b, accumulate, ..
        } = &mut gemm
        {
            (*a, *b) = (a.cols(cols.0, cols.1), b.rows(cols.0, cols.1));
            *accumulate = before.is_some();
        }
        let mut after = vec![landed];
        after.extend(before.map(|task| Dep {
            task,
            via: Via::Launch,
        }));
        self.push(b, rank, gemm, &after)
    }

    fn push(&self, b: &mut Builder, rank: Rank, mut gemm: Compute, after: &[Dep]) -> TaskId {
        let (limit, launch) = self.ranks[usize::from(rank.0)];
        if let (Compute::Gemm { kernel, sms, .. }, None) = (&mut gemm, launch) {
            *kernel = GemmKernel::Library;
            *sms = limit;
        }
        b.compute(rank, COMPUTE, launch, gemm, after)
    }
}
