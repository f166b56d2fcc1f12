//! The memory of all ranks and the work on it.

use super::reference::{self, Reference};
use super::{InterpretError, Number, POISON, PRIME};
use crate::schedule::{Collective, CollectiveKind, Compute, Role, Schedule, Slice, TaskId, Work};

/// A matrix, row-major.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Matrix {
    rows: usize,
    cols: usize,
    at: Vec<u64>,
}

impl Matrix {
    fn new(rows: usize, cols: usize) -> Self {
        let at = vec![0; rows * cols];
        Self { rows, cols, at }
    }

    fn block(&self, first: usize, rows: usize) -> Self {
        let at = self.at[first * self.cols..(first + rows) * self.cols].to_vec();
        Self { rows, at, ..*self }
    }
}

fn add(a: u64, b: u64) -> u64 {
    match a == POISON || b == POISON {
        true => POISON,
        false => (a + b) % PRIME,
    }
}

fn multiply(a: u64, b: u64) -> u64 {
    match a == POISON || b == POISON {
        true => POISON,
        false => a * b % PRIME,
    }
}

fn broken<T>(place: String, problem: impl Into<String>) -> Result<T, InterpretError> {
    Err(InterpretError::Broken {
        place,
        problem: problem.into(),
    })
}

#[derive(Clone, Debug)]
pub(super) struct Memory {
    /// By buffer: its slots one after another.
    buffers: Vec<Matrix>,
}

impl Memory {
    /// Poison, and the inputs.
    pub(super) fn initial(
        schedule: &Schedule,
        reference: &Reference,
    ) -> Result<Self, InterpretError> {
        let mut buffers = Vec::with_capacity(schedule.buffers.len());
        for buffer in &schedule.buffers {
            let mut matrix = Matrix::new(
                buffer.rows as usize * buffer.slots as usize,
                buffer.cols as usize,
            );
            matrix.at.fill(POISON);
            let place = || format!("buffer {} of rank {}", buffer.name, buffer.rank.0);
            let Some(tensor) = schedule.tensors.get(buffer.tensor.index()) else {
                return broken(place(), "it has no tensor");
            };
            for piece in &buffer.pieces {
                let fits = piece.rows.end() <= buffer.rows.into()
                    && piece.cols.end() <= buffer.cols.into()
                    && u64::from(piece.global_row) + u64::from(piece.rows.len)
                        <= tensor.rows.into()
                    && u64::from(piece.global_col) + u64::from(piece.cols.len)
                        <= tensor.cols.into()
                    && piece.initial.end() <= tensor.contributions.into()
                    && buffer.slots > 0;
                if !fits {
                    return broken(place(), "a piece lies outside it or its tensor");
                }
                if piece.initial.len == 0 || !matches!(buffer.role, Role::Input | Role::InputOutput)
                {
                    continue;
                }
                for row in 0..piece.rows.len {
                    for col in 0..piece.cols.len {
                        let at = (piece.rows.start + row) as usize * matrix.cols
                            + (piece.cols.start + col) as usize;
                        let (i, j) = (piece.global_row + row, piece.global_col + col);
                        matrix.at[at] = reference.sum(buffer.tensor.index(), i, j, piece.initial);
                    }
                }
            }
            buffers.push(matrix);
        }
        Ok(Self { buffers })
    }

    /// Compares every output with the reference.
    pub(super) fn compare(
        &self,
        schedule: &Schedule,
        reference: &Reference,
        order: u32,
    ) -> Result<(), InterpretError> {
        for (buffer, matrix) in schedule.buffers.iter().zip(&self.buffers) {
            if !matches!(buffer.role, Role::Output | Role::InputOutput) {
                continue;
            }
            for piece in &buffer.pieces {
                for r in 0..piece.rows.len {
                    for c in 0..piece.cols.len {
                        let (row, col) = (piece.rows.start + r, piece.cols.start + c);
                        let found = matrix.at[row as usize * matrix.cols + col as usize];
                        let (i, j) = (piece.global_row + r, piece.global_col + c);
                        let expected = reference.at(buffer.tensor.index(), i, j);
                        if found != expected {
                            return Err(InterpretError::Wrong {
                                order,
                                buffer: format!("{}[rank {}]", buffer.name, buffer.rank.0),
                                row,
                                col,
                                found: Number(found),
                                expected: Number(expected),
                            });
                        }
                    }
                }
            }
        }
        Ok(())
    }

    /// First row of the slice in its buffer's matrix, if the slice exists.
    fn locate(&self, schedule: &Schedule, slice: &Slice) -> Result<usize, InterpretError> {
        match schedule.buffers.get(slice.buffer.index()) {
            Some(b)
                if slice.slot < b.slots
                    && slice.rows.end() <= b.rows.into()
                    && slice.cols.end() <= b.cols.into() =>
            {
                Ok(slice.slot as usize * b.rows as usize + slice.rows.start as usize)
            }
            _ => broken(format!("slice {slice:?}"), "it lies outside its buffer"),
        }
    }

    fn load(&self, schedule: &Schedule, slice: &Slice) -> Result<Matrix, InterpretError> {
        let top = self.locate(schedule, slice)?;
        let from = &self.buffers[slice.buffer.index()];
        let (rows, cols) = (slice.rows.len as usize, slice.cols.len as usize);
        let mut at = Vec::with_capacity(rows * cols);
        for row in top..top + rows {
            let start = row * from.cols + slice.cols.start as usize;
            at.extend_from_slice(&from.at[start..start + cols]);
        }
        Ok(Matrix { rows, cols, at })
    }

    fn store(
        &mut self,
        schedule: &Schedule,
        slice: &Slice,
        matrix: &Matrix,
    ) -> Result<(), InterpretError> {
        let top = self.locate(schedule, slice)?;
        if (matrix.rows, matrix.cols) != (slice.rows.len as usize, slice.cols.len as usize) {
            return broken(format!("slice {slice:?}"), "another shape is written to it");
        }
        let to = &mut self.buffers[slice.buffer.index()];
        for row in 0..matrix.rows {
            let start = (top + row) * to.cols + slice.cols.start as usize;
            let source = &matrix.at[row * matrix.cols..(row + 1) * matrix.cols];
            to.at[start..start + matrix.cols].copy_from_slice(source);
        }
        Ok(())
    }

    /// Reads the operands of a task (of all members for a collective) and computes its results,
    /// one for each slice of [`outputs`].
    pub(super) fn compute(
        &self,
        schedule: &Schedule,
        task: TaskId,
    ) -> Result<Vec<Matrix>, InterpretError> {
        let load = |slice: &Slice| self.load(schedule, slice);
        match schedule.task(task).work {
            Work::Transfer { from, .. } => Ok(vec![load(&from)?]),
            Work::Compute(c) => Ok(vec![match &schedule.computes[c.index()] {
                Compute::Gemm {
                    a,
                    b,
                    out,
                    accumulate,
                    ..
                } => {
                    let product = gemm(&load(a)?, &load(b)?)?;
                    match accumulate {
                        true => sum(&[load(out)?, product])?,
                        false => product,
                    }
                }
                Compute::Reduce { inputs, .. } => {
                    sum(&inputs.iter().map(load).collect::<Result<Vec<_>, _>>()?)?
                }
                Compute::Pointwise { inputs, .. } => {
                    pointwise(&inputs.iter().map(load).collect::<Result<Vec<_>, _>>()?)?
                }
            }]),
            Work::Collective(c) => {
                let group = &schedule.collectives[c.index()];
                let inputs = by_rank(group)
                    .iter()
                    .map(|&m| load(&group.members[m].input))
                    .collect::<Result<Vec<_>, _>>()?;
                exchange(group.kind, &inputs)
            }
        }
    }

    /// Writes the results of a task.
    pub(super) fn write(
        &mut self,
        schedule: &Schedule,
        task: TaskId,
        results: &[Matrix],
    ) -> Result<(), InterpretError> {
        let outputs = match schedule.task(task).work {
            Work::Transfer { to, .. } => vec![to],
            Work::Compute(c) => match &schedule.computes[c.index()] {
                Compute::Gemm { out, .. }
                | Compute::Reduce { out, .. }
                | Compute::Pointwise { out, .. } => vec![*out],
            },
            Work::Collective(c) => {
                let group = &schedule.collectives[c.index()];
                by_rank(group)
                    .iter()
                    .map(|&m| group.members[m].output)
                    .collect()
            }
        };
        outputs
            .iter()
            .zip(results)
            .try_for_each(|(slice, matrix)| self.store(schedule, slice, matrix))
    }
}

/// Members in the order of their ranks.
fn by_rank(group: &Collective) -> Vec<usize> {
    let mut members: Vec<usize> = (0..group.members.len()).collect();
    members.sort_by_key(|&m| group.members[m].rank);
    members
}

fn gemm(a: &Matrix, b: &Matrix) -> Result<Matrix, InterpretError> {
    if a.cols != b.rows {
        return broken("gemm".into(), "columns of a are not rows of b");
    }
    let mut out = Matrix::new(a.rows, b.cols);
    for i in 0..a.rows {
        for k in 0..a.cols {
            for j in 0..b.cols {
                let product = multiply(a.at[i * a.cols + k], b.at[k * b.cols + j]);
                let at = &mut out.at[i * b.cols + j];
                *at = add(*at, product);
            }
        }
    }
    Ok(out)
}

fn alike(inputs: &[Matrix]) -> Result<(usize, usize), InterpretError> {
    match inputs {
        [first, rest @ ..]
            if rest
                .iter()
                .all(|m| (m.rows, m.cols) == (first.rows, first.cols)) =>
        {
            Ok((first.rows, first.cols))
        }
        _ => broken("operands".into(), "they are none or differ in shape"),
    }
}

fn sum(inputs: &[Matrix]) -> Result<Matrix, InterpretError> {
    let (rows, cols) = alike(inputs)?;
    let mut out = Matrix::new(rows, cols);
    for input in inputs {
        for (at, x) in out.at.iter_mut().zip(&input.at) {
            *at = add(*at, *x);
        }
    }
    Ok(out)
}

fn pointwise(inputs: &[Matrix]) -> Result<Matrix, InterpretError> {
    let (rows, cols) = alike(inputs)?;
    let mut out = Matrix::new(rows, cols);
    for (i, at) in out.at.iter_mut().enumerate() {
        let values = || inputs.iter().map(|m| m.at[i]);
        *at = match values().any(|x| x == POISON) {
            true => POISON,
            false => reference::map(values()),
        };
    }
    Ok(out)
}

/// The outputs of a collective, inputs and outputs in the order of ranks.
fn exchange(kind: CollectiveKind, inputs: &[Matrix]) -> Result<Vec<Matrix>, InterpretError> {
    let (rows, cols) = alike(inputs)?;
    let members = inputs.len();
    let block = rows / members;
    let divides = rows % members == 0;
    let stack = |parts: &mut dyn Iterator<Item = Matrix>| {
        let at: Vec<u64> = parts.flat_map(|m| m.at).collect();
        let rows = at.len() / cols.max(1);
        Matrix { rows, cols, at }
    };
    match kind {
        CollectiveKind::AllGather => Ok(vec![stack(&mut inputs.iter().cloned()); members]),
        CollectiveKind::AllReduce => Ok(vec![sum(inputs)?; members]),
        _ if !divides => broken("collective".into(), "rows do not divide among its members"),
        CollectiveKind::ReduceScatter => {
            let total = sum(inputs)?;
            Ok((0..members)
                .map(|i| total.block(i * block, block))
                .collect())
        }
        CollectiveKind::AllToAll => Ok((0..members)
            .map(|i| stack(&mut inputs.iter().map(|m| m.block(i * block, block))))
            .collect()),
    }
}
