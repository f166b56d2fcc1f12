//! Whether a schedule starts from the operator's inputs and promises its outputs.
//!
//! Fused operators have tensors A (m × k), B (k × n) and C (m × n, k contributions); bare ones have
//! X. "Shared" below means: the ranks hold equal, disjoint parts that make up the whole.
//!
//! | operator | at the start | at the end |
//! |---|---|---|
//! | AG+GEMM, GEMM+RS | A and B shared | C shared |
//! | GEMM+AR | A and B shared | C whole on every rank |
//! | all-gather | X shared | X whole on every rank |
//! | reduce-scatter | contribution r of X whole on rank r | X shared |
//! | all-reduce | contribution r of X whole on rank r | X whole on every rank |
//! | all-to-all | X shared | X shared; an equal part of each rank's comes from each rank |
//! | point-to-point | X whole on rank 0 | X whole on rank 1 |

use super::VerifyError;
use super::memory::whole;
use super::region::{INITIAL, Slot};
use super::value::{Set, Value};
use crate::operator::{Kind, Shape};
use crate::schedule::{BufferId, Extent, Piece, Rank, Role, Schedule, Slice, TensorId};

type Check = Result<(), VerifyError>;

/// Who must hold what of a tensor.
#[derive(Copy, Clone)]
enum Held {
    /// Equal, disjoint parts.
    Shared,
    /// Everything, every rank.
    Everywhere,
    /// Everything, this rank alone.
    On(Rank),
    /// Everything, rank r with contribution r.
    Parts,
}

#[derive(Copy, Clone, PartialEq, Eq)]
enum When {
    Start,
    End,
}

/// Checks tensors and pieces against the operator.
pub(super) fn check(schedule: &Schedule) -> Check {
    let operator = &schedule.operator;
    let tp = operator.tp;
    let size = |bytes: u64| u128::from(bytes / operator.dtype.size());
    match operator.shape {
        Shape::Gemm { m, n, k } => {
            let a = tensor(schedule, "A", Some((m, k)), 1)?;
            let b = tensor(schedule, "B", Some((k, n)), 1)?;
            let c = tensor(schedule, "C", Some((m, n)), k)?;
            let end = match operator.kind {
                Kind::GemmAr => Held::Everywhere,
                _ => Held::Shared,
            };
            held(schedule, a, When::Start, Held::Shared)?;
            held(schedule, b, When::Start, Held::Shared)?;
            held(schedule, c, When::End, end).map(drop)
        }
        Shape::Bytes(bytes) => {
            let (start, end) = match operator.kind {
                Kind::AllGather => (Held::Shared, Held::Everywhere),
                Kind::ReduceScatter => (Held::Parts, Held::Shared),
                Kind::AllReduce => (Held::Parts, Held::Everywhere),
                Kind::PointToPoint => (Held::On(Rank(0)), Held::On(Rank(1))),
                _ => (Held::Shared, Held::Shared),
            };
            let contributions = match start {
                Held::Parts => u64::from(tp),
                _ => 1,
            };
            let x = tensor(schedule, "X", None, contributions)?;
            let copies = match operator.kind {
                Kind::AllToAll => tp,
                _ => 1,
            };
            let wanted = size(bytes.get()) * u128::from(copies);
            if u128::from(area(schedule, x)) != wanted {
                let problem = format!("X has {} elements, not {wanted}", area(schedule, x));
                return refuse(schedule, problem, "give it the operator's size");
            }
            let mut from = held(schedule, x, When::Start, start)?;
            held(schedule, x, When::End, end)?;
            match operator.kind {
                Kind::AllToAll => exchanged(schedule, x, &mut from),
                _ => Ok(()),
            }
        }
    }
}

fn refuse<T>(schedule: &Schedule, problem: String, remedy: &'static str) -> Result<T, VerifyError> {
    Err(VerifyError::Contract {
        operator: schedule.operator.to_string(),
        problem,
        remedy,
    })
}

/// The tensor of this name and shape.
fn tensor(
    schedule: &Schedule,
    name: &str,
    shape: Option<(u64, u64)>,
    contributions: u64,
) -> Result<TensorId, VerifyError> {
    let Some(index) = schedule.tensors.iter().position(|t| t.name == name) else {
        let problem = format!("there is no tensor {name}");
        return refuse(schedule, problem, "declare the operator's tensors");
    };
    let t = &schedule.tensors[index];
    let (rows, cols) = shape.unwrap_or((t.rows.into(), t.cols.into()));
    if (t.rows.into(), t.cols.into(), t.contributions.into()) != (rows, cols, contributions) {
        let problem = format!(
            "{name} is {} x {} with {} contributions, not {rows} x {cols} with {contributions}",
            t.rows, t.cols, t.contributions
        );
        return refuse(schedule, problem, "give it the operator's shape");
    }
    Ok(TensorId(index as u32))
}

fn area(schedule: &Schedule, tensor: TensorId) -> u64 {
    let t = &schedule.tensors[tensor.index()];
    u64::from(t.rows) * u64::from(t.cols)
}

/// The pieces of a tensor that are there at the start or required at the end.
fn pieces(
    schedule: &Schedule,
    tensor: TensorId,
    when: When,
) -> impl Iterator<Item = (Rank, &Piece)> {
    let there = move |role: Role, piece: &Piece| match when {
        When::Start => matches!(role, Role::Input | Role::InputOutput) && piece.initial.len > 0,
        When::End => matches!(role, Role::Output | Role::InputOutput),
    };
    let buffers = schedule.buffers.iter();
    buffers
        .filter(move |b| b.tensor == tensor)
        .flat_map(move |b| {
            let pieces = b.pieces.iter().filter(move |p| there(b.role, p));
            pieces.map(|p| (b.rank, p))
        })
}

/// The part of the tensor that a piece maps, as a slice of it.
fn mapped(piece: &Piece) -> Slice {
    Slice {
        buffer: BufferId(0),
        slot: 0,
        rows: Extent::new(piece.global_row, piece.rows.len),
        cols: Extent::new(piece.global_col, piece.cols.len),
    }
}

/// Checks who holds what; returns a map of the tensor whose rows tell the rank that holds it
/// (for [`Held::Shared`]).
fn held(
    schedule: &Schedule,
    tensor: TensorId,
    when: When,
    held: Held,
) -> Result<Slot, VerifyError> {
    let ranks = schedule.placement.len();
    let name = &schedule.tensors[tensor.index()].name;
    let time = match when {
        When::Start => "at the start",
        When::End => "as output",
    };
    // One map for all, or one for each rank.
    let together = matches!(held, Held::Shared);
    let mut maps: Vec<Slot> = Vec::new();
    maps.resize_with(if together { 1 } else { ranks }, Slot::default);
    let mut areas = vec![0u64; ranks];
    for (rank, piece) in pieces(schedule, tensor, when) {
        let part = mapped(piece);
        let r = usize::from(rank.0);
        let map = &mut maps[if together { 0 } else { r }];
        if map.touch(&part, |_| Err(())).is_err() {
            let problem = format!(
                "{name}'s rows {}, cols {} are stated twice {time}, last on rank {}",
                super::structure::span(part.rows),
                super::structure::span(part.cols),
                rank.0
            );
            return refuse(schedule, problem, "state every part once");
        }
        let contributions = match held {
            Held::Parts => Extent::new(rank.0.into(), 1),
            _ => Extent::new(0, 1),
        };
        if when == When::Start && piece.initial != contributions {
            let problem = format!(
                "rank {} begins with contributions {} of {name}, not {}",
                rank.0,
                super::structure::span(piece.initial),
                super::structure::span(contributions)
            );
            return refuse(schedule, problem, "begin with the operator's inputs");
        }
        let value = Value {
            tensor: rank.0.into(),
            row: piece.global_row,
            col: piece.global_col,
            set: Set::One(0, 1),
        };
        map.write(&part, whole(&part, value), INITIAL);
        areas[r] += part.elements();
    }
    let all = area(schedule, tensor);
    for (r, &area) in areas.iter().enumerate() {
        let wanted = match held {
            Held::Shared => all / ranks as u64,
            Held::Everywhere | Held::Parts => all,
            Held::On(rank) if usize::from(rank.0) == r => all,
            Held::On(_) => 0,
        };
        if area != wanted {
            let problem = format!("rank {r} has {area} of {wanted} elements of {name} {time}");
            let remedy = "let its pieces be what the operator gives the rank";
            return refuse(schedule, problem, remedy);
        }
    }
    Ok(maps.swap_remove(0))
}

/// Checks that every rank of an all-to-all takes an equal part of what each rank has.
fn exchanged(schedule: &Schedule, tensor: TensorId, from: &mut Slot) -> Check {
    let ranks = schedule.placement.len();
    let share = area(schedule, tensor) / (ranks * ranks) as u64;
    let mut taken: Vec<Vec<(u32, u64)>> = vec![Vec::new(); ranks];
    for (rank, piece) in pieces(schedule, tensor, When::End) {
        // The inputs are whole, so every part of the tensor is on the map.
        let Ok(grid) = from.read(&mapped(piece), |_| Ok::<(), ()>(())) else {
            continue;
        };
        for band in &grid {
            for cell in &band.cells {
                let area = u64::from(band.end - band.start) * u64::from(cell.end - cell.start);
                taken[usize::from(rank.0)].push((cell.value.tensor, area));
            }
        }
    }
    for (to, parts) in taken.iter_mut().enumerate() {
        parts.sort_unstable();
        let mut sums = parts.chunk_by(|a, b| a.0 == b.0).map(|chunk| {
            let sum: u64 = chunk.iter().map(|(_, area)| area).sum();
            (chunk[0].0, sum)
        });
        if let Some((source, sum)) = sums.find(|(_, sum)| *sum != share) {
            let problem = format!("rank {to} takes {sum} of {share} elements from rank {source}");
            return refuse(schedule, problem, "take the same from every rank");
        }
    }
    Ok(())
}
