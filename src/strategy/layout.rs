//! Tensors and buffers that strategies of one operator share.
//!
//! Gathered and scattered buffers have the rows of the global tensor in their global order, so a
//! shard lands where it is needed and nothing is rearranged. With decomposition d, rank r owns the
//! global rows `{ j·m/d + r·m/(tp·d) + i }`: chunk j of all ranks together is then one block of
//! `m/d` consecutive rows.

use super::{Job, Skip};
use crate::operator::{Kind, Operator};
use crate::schedule::{
    Buffer, BufferId, Builder, Compute, Extent, GemmKernel, Lane, Mover, Piece, Rank, Role, Slice,
    TensorId,
};
use crate::units::count;

/// The lane of GEMMs and reductions.
pub(super) const COMPUTE: Lane = Lane(0);
/// The first lane of communication.
pub(super) const COMM: Lane = Lane(1);

/// Nothing there at the start.
const ABSENT: Extent = Extent::new(0, 0);

/// A builder of the job's schedule.
pub(super) fn begin(job: &Job<'_>) -> Builder {
    let mut b = Builder::new(*job.operator, job.name, job.site.placement.clone());
    b.name_lane(COMPUTE, "compute");
    b
}

/// Lanes 1…: one for each of the other ranks.
pub(super) fn name_peers(b: &mut Builder) {
    let ranks = b.ranks().len();
    // Beyond a box the names would cost more than they tell.
    if ranks <= 64 {
        for i in 1..ranks {
            b.name_lane(Lane(i as u16), &format!("peer +{i}"));
        }
    }
}

/// The blocks of an SM copy when `copies` run at once: the stated number is for all together.
pub(super) fn each_of(mover: Mover, copies: usize) -> Mover {
    match mover {
        Mover::CopyEngine | Mover::Epilogue | Mover::Loader => mover,
        Mover::Sm { blocks } => Mover::Sm {
            blocks: (usize::from(blocks) / copies.max(1)).max(1) as u16,
        },
    }
}

/// Piece `i` of `of` of `rows` rows, as even as can be: `(first row, rows)`.
pub(super) fn split(rows: u32, i: u32, of: u32) -> (u32, u32) {
    let at = |i: u32| (u64::from(rows) * u64::from(i) / u64::from(of)) as u32;
    (at(i), at(i + 1) - at(i))
}

/// Columns of a slab begin at multiples of so many where there are enough, as kernels take their
/// steps along k.
const STEP: u32 = 64;

/// Slab `i` of `of` of `cols` columns, as even as can be: `(first column, columns)`.
pub(super) fn slab(cols: u32, i: u32, of: u32) -> (u32, u32) {
    let (steps, rest) = (cols / STEP, cols % STEP);
    if of == 1 || steps < of {
        return split(cols, i, of);
    }
    let (start, len) = split(steps, i, of);
    let last = if i + 1 == of { rest } else { 0 };
    (start * STEP, len * STEP + last)
}

/// Buffers of a fused operator. Vectors are by rank.
#[derive(Debug)]
pub(super) struct Fused {
    /// The global product.
    pub tensor_c: TensorId,
    /// AG+GEMM: `m × k`, own rows filled. Else: `m × k/tp`.
    pub a: Vec<BufferId>,
    /// AG+GEMM: `k × n/tp`. Else: `k/tp × n`.
    pub b: Vec<BufferId>,
    /// AG+GEMM: `m × n/tp`. GEMM+RS: the own `m/tp × n`. GEMM+AR: `m × n`.
    pub c: Vec<BufferId>,
    /// Global rows.
    pub m: u32,
    /// Columns of the full C.
    pub n: u32,
    /// Columns of the full A.
    pub k: u32,
}

impl Fused {
    /// Buffers of `job`, rows owned block-cyclically in `d` chunks; `d · tp` must divide m, unless
    /// the operator is GEMM+AR, which owns no rows.
    pub(super) fn new(builder: &mut Builder, job: &Job<'_>, d: u32) -> Result<Self, Skip> {
        let operator = job.operator;
        let (m, n, k) = dims(operator)?;
        let tp = operator.tp;
        let tensor_a = builder.tensor("A", m, k, 1);
        let tensor_b = builder.tensor("B", k, n, 1);
        let tensor_c = builder.tensor("C", m, n, k);
        let mut fused = Self {
            tensor_c,
            a: Vec::with_capacity(tp as usize),
            b: Vec::with_capacity(tp as usize),
            c: Vec::with_capacity(tp as usize),
            m,
            n,
            k,
        };
        for rank in builder.ranks() {
            let r = u32::from(rank.0);
            let data = Extent::new(0, 1);
            let buffer = |name: &str, tensor, role, rows, cols, pieces| Buffer {
                name: name.to_owned(),
                tensor,
                rank,
                rows,
                cols,
                slots: 1,
                role,
                pieces,
            };
            let all = |rows, cols, global_row, global_col, initial| {
                vec![Piece {
                    rows: Extent::new(0, rows),
                    cols: Extent::new(0, cols),
                    global_row,
                    global_col,
                    initial,
                }]
            };
            let part = m / d / tp;
            // Rows of the buffer (`at`) that are the own rows of chunk j.
            let own = |cols, initial, at: &dyn Fn(u32) -> u32| {
                (0..d)
                    .map(|j| Piece {
                        rows: Extent::new(at(j), part),
                        cols: Extent::new(0, cols),
                        global_row: j * (m / d) + r * part,
                        global_col: 0,
                        initial,
                    })
                    .collect::<Vec<_>>()
            };
            let (a, b, c);
            if operator.kind == Kind::AgGemm {
                let w = n / tp;
                let rows = own(k, data, &|j| j * (m / d) + r * part);
                a = buffer("A", tensor_a, Role::Input, m, k, rows);
                b = buffer("B", tensor_b, Role::Input, k, w, all(k, w, 0, r * w, data));
                c = buffer(
                    "C",
                    tensor_c,
                    Role::Output,
                    m,
                    w,
                    all(m, w, 0, r * w, ABSENT),
                );
            } else {
                let w = k / tp;
                a = buffer("A", tensor_a, Role::Input, m, w, all(m, w, 0, r * w, data));
                b = buffer("B", tensor_b, Role::Input, w, n, all(w, n, r * w, 0, data));
                c = if operator.kind == Kind::GemmRs {
                    let rows = own(n, ABSENT, &|j| j * part);
                    buffer("C", tensor_c, Role::Output, part * d, n, rows)
                } else {
                    buffer("C", tensor_c, Role::Output, m, n, all(m, n, 0, 0, ABSENT))
                };
            }
            fused.a.push(builder.buffer(a));
            fused.b.push(builder.buffer(b));
            fused.c.push(builder.buffer(c));
        }
        Ok(fused)
    }

    /// A full `m × n` partial product on every rank.
    pub(super) fn partials(&self, builder: &mut Builder) -> Vec<BufferId> {
        builder
            .ranks()
            .map(|rank| builder.scratch("C_partial", self.tensor_c, rank, self.m, self.n, 1))
            .collect()
    }

    /// The rows `[row, row + rows)` of A times all of B, into `out`.
    pub(super) fn gemm(
        &self,
        builder: &Builder,
        rank: Rank,
        (row, rows): (u32, u32),
        out: Slice,
        kernel: GemmKernel,
    ) -> Compute {
        let r = usize::from(rank.0);
        Compute::Gemm {
            a: builder.rows(self.a[r], 0, row, rows),
            b: builder.whole(self.b[r]),
            out,
            accumulate: false,
            kernel,
            sms: 0,
        }
    }
}

/// m, n, k of a fused operator.
pub(super) fn dims(operator: &Operator) -> Result<(u32, u32, u32), Skip> {
    let dims = operator.mnk().and_then(|(m, n, k)| {
        Some((
            u32::try_from(m).ok()?,
            u32::try_from(n).ok()?,
            u32::try_from(k).ok()?,
        ))
    });
    dims.ok_or_else(|| Skip::because(format!("{} has no GEMM", operator.kind)))
}

/// Refuses to cut `rows` rows into more chunks than rows.
pub(super) fn cuttable(rows: u32, chunks: u32) -> Result<(), Skip> {
    if chunks > rows {
        return Err(Skip::because(format!(
            "a shard of {} cannot be cut into {}",
            count(u64::from(rows), "row"),
            count(u64::from(chunks), "chunk")
        )));
    }
    Ok(())
}

/// Buffers of a bare collective; a share is `rows × cols`. Vectors are by rank, except that a
/// point-to-point message has one input and one output.
#[derive(Debug)]
pub(super) struct Bare {
    pub tensor: TensorId,
    /// Inputs: all shares, or for an all-gather (the same buffers as `y`) the own.
    pub x: Vec<BufferId>,
    /// Outputs.
    pub y: Vec<BufferId>,
    pub rows: u32,
    pub cols: u32,
}

impl Bare {
    pub(super) fn new(builder: &mut Builder, job: &Job<'_>) -> Result<Self, Skip> {
        let operator = job.operator;
        let (rows, cols) = operator
            .share()
            .ok_or_else(|| Skip::because(format!("{} has no size", operator.kind)))?;
        let kind = operator.kind;
        let tp = operator.tp;
        let (shares, contributions) = match kind {
            Kind::PointToPoint => (1, 1),
            Kind::AllToAll => (tp * tp, 1),
            Kind::ReduceScatter | Kind::AllReduce => (tp, tp),
            _ => (tp, 1),
        };
        let tensor = builder.tensor("X", shares * rows, cols, contributions);
        let piece = |at, global, shares, initial| Piece {
            rows: Extent::new(at * rows, shares * rows),
            cols: Extent::new(0, cols),
            global_row: global * rows,
            global_col: 0,
            initial,
        };
        let mut buffer = |name: &str, rank, role, pieces: Vec<Piece>| {
            let rows = pieces.iter().map(|p| p.rows.len).sum();
            builder.buffer(Buffer {
                name: name.to_owned(),
                tensor,
                rank,
                rows,
                cols,
                slots: 1,
                role,
                pieces,
            })
        };
        let (mut x, mut y) = (Vec::new(), Vec::new());
        for r in 0..tp {
            let rank = Rank(r as u16);
            let data = match kind {
                Kind::ReduceScatter | Kind::AllReduce => Extent::new(r, 1),
                _ => Extent::new(0, 1),
            };
            match kind {
                Kind::PointToPoint if r == 0 => {
                    x.push(buffer("X", rank, Role::Input, vec![piece(0, 0, 1, data)]));
                }
                Kind::PointToPoint if r == 1 => {
                    let pieces = vec![piece(0, 0, 1, ABSENT)];
                    y.push(buffer("Y", rank, Role::Output, pieces));
                }
                Kind::ReduceScatter => {
                    x.push(buffer("X", rank, Role::Input, vec![piece(0, 0, tp, data)]));
                    let pieces = vec![piece(0, r, 1, ABSENT)];
                    y.push(buffer("Y", rank, Role::Output, pieces));
                }
                Kind::AllReduce => {
                    x.push(buffer("X", rank, Role::Input, vec![piece(0, 0, tp, data)]));
                    let pieces = vec![piece(0, 0, tp, ABSENT)];
                    y.push(buffer("Y", rank, Role::Output, pieces));
                }
                Kind::AllToAll => {
                    let pieces = vec![piece(0, r * tp, tp, data)];
                    x.push(buffer("X", rank, Role::Input, pieces));
                    let pieces = (0..tp).map(|s| piece(s, s * tp + r, 1, ABSENT)).collect();
                    y.push(buffer("Y", rank, Role::Output, pieces));
                }
                Kind::AllGather => {
                    let pieces = [(0, r, ABSENT), (r, 1, data), (r + 1, tp - r - 1, ABSENT)]
                        .into_iter()
                        .filter(|(_, shares, _)| *shares > 0)
                        .map(|(at, shares, initial)| piece(at, at, shares, initial))
                        .collect();
                    let id = buffer("X", rank, Role::InputOutput, pieces);
                    x.push(id);
                    y.push(id);
                }
                _ => {}
            }
        }
        Ok(Self {
            tensor,
            x,
            y,
            rows,
            cols,
        })
    }
}

/// The rows of each rank's shard of m.
///
/// # Errors
/// [`Skip`] when they are unequal (only GEMM+AR allows such an m).
pub(super) fn shard(m: u32, tp: u32) -> Result<u32, Skip> {
    if !m.is_multiple_of(tp) {
        return Err(Skip::because(format!(
            "m = {m} cannot be cut into {tp} equal shards"
        )));
    }
    Ok(m / tp)
}

/// Refuses one rank.
pub(super) fn several(job: &Job<'_>) -> Result<(), Skip> {
    if job.ranks() < 2 {
        return Err(Skip::because("one rank: there is nothing to communicate"));
    }
    Ok(())
}
