//! What the operations do to meanings.

use super::Stop;
use super::error::VerifyError;
use super::made::Made;
use super::structure::span;
use super::sweep::Sweep;
use super::value::{Band, Cell, Grid, Set, Value, append, coalesce, overlay, rows};
use crate::schedule::{Collective, CollectiveKind, Compute, Extent, Slice, TaskId};

impl Sweep<'_> {
    pub(super) fn compute(&mut self, task: TaskId, compute: &Compute) -> Result<(), Stop> {
        match compute {
            Compute::Gemm {
                a,
                b,
                out,
                accumulate,
                ..
            } => {
                let product = self.product(task, a, b, out)?;
                let grid = if *accumulate {
                    let before = self.memory.read(task, out)?;
                    self.sum(task, out, &before, &product)?
                } else {
                    product
                };
                self.write(task, out, grid)
            }
            Compute::Reduce { inputs, out } => {
                let grid = self.total(task, inputs)?;
                self.write(task, out, grid)
            }
            Compute::Pointwise { inputs, out, .. } => {
                let grid = self.map(task, inputs, out)?;
                self.write(task, out, grid)
            }
        }
    }

    /// Reads a slice whose data must be final because products and functions of partial sums are
    /// not partial results.
    fn read_complete(&mut self, task: TaskId, slice: &Slice) -> Result<Grid, Stop> {
        let grid = self.memory.read(task, slice)?;
        for cell in grid.iter().flat_map(|band| &band.cells) {
            let tensor = self.tensor(cell.value.tensor);
            if !cell.value.set.is_full(tensor.contributions) {
                let problem = format!(
                    "{} holds contributions {} of {}'s 0..{}",
                    self.schedule.describe_slice(slice),
                    cell.value.set,
                    tensor.name,
                    tensor.contributions
                );
                return Err(self.operand(task, problem, "sum it up first").into());
            }
        }
        Ok(grid)
    }

    fn product(&mut self, task: TaskId, a: &Slice, b: &Slice, out: &Slice) -> Result<Grid, Stop> {
        let (left, right) = (self.read_complete(task, a)?, self.read_complete(task, b)?);
        let [a_name, b_name] = [a, b].map(|s| self.schedule.describe_slice(s));
        let torn = |name: &str, what: &str| {
            let problem = format!("the {what} of {name} do not lie on one grid of the tensor");
            self.operand(task, problem, "multiply the parts one by one")
        };
        let (Some(a_rows), Some(a_cols)) = axes(&left) else {
            return Err(torn(&a_name, "rows and columns").into());
        };
        let (Some(b_rows), Some(b_cols)) = axes(&right) else {
            return Err(torn(&b_name, "rows and columns").into());
        };
        if a_cols != b_rows {
            let problem = format!(
                "{a_name} holds columns {} and {b_name} rows {} of the k dimension",
                axis_text(&a_cols),
                axis_text(&b_rows)
            );
            let remedy = "multiply columns of a by the same rows of b";
            return Err(self.operand(task, problem, remedy).into());
        }
        let [ta, tb] = [&left, &right].map(|g| g[0].cells[0].value.tensor);
        let tc = self.schedule.buffers[out.buffer.index()].tensor.0;
        self.define(task, tc, Made::Product(ta, tb))?;
        let set = Set::from_intervals(a_cols.iter().map(|&(len, at)| (at, at + len)).collect())
            .map_err(|(start, end)| VerifyError::CountedTwice {
                task: self.schedule.describe(task),
                slice: self.schedule.describe_slice(out),
                contributions: format!("{start}..{end}"),
            })?;
        let mut grid = Grid::with_capacity(a_rows.len());
        let mut top = 0;
        for &(height, row) in &a_rows {
            let mut cells = Vec::with_capacity(b_cols.len());
            let mut start = 0;
            for &(width, col) in &b_cols {
                cells.push(Cell {
                    start,
                    end: start + width,
                    value: Value {
                        tensor: tc,
                        row,
                        col,
                        set: set.clone(),
                    },
                });
                start += width;
            }
            grid.push(Band {
                start: top,
                end: top + height,
                cells,
            });
            top += height;
        }
        Ok(grid)
    }

    /// Σ of slices.
    fn total(&mut self, task: TaskId, inputs: &[Slice]) -> Result<Grid, Stop> {
        let mut total = self.memory.read(task, &inputs[0])?;
        for input in &inputs[1..] {
            let grid = self.memory.read(task, input)?;
            total = self.sum(task, input, &total, &grid)?;
        }
        Ok(total)
    }

    /// Σ of two grids; `slice` names the second.
    fn sum(&self, task: TaskId, slice: &Slice, a: &Grid, b: &Grid) -> Result<Grid, VerifyError> {
        overlay(a, b, |x, y| {
            if (x.tensor, x.row, x.col) != (y.tensor, y.row, y.col) {
                let [x, y] = [x, y].map(|v| self.corner(v));
                let problem = format!(
                    "{} holds {y} where the other operand holds {x}",
                    self.schedule.describe_slice(slice)
                );
                let remedy = "add only what belongs to the same place of a tensor";
                return Err(self.operand(task, problem, remedy));
            }
            let set = x
                .set
                .union(&y.set)
                .map_err(|(start, end)| VerifyError::CountedTwice {
                    task: self.schedule.describe(task),
                    slice: self.schedule.describe_slice(slice),
                    contributions: format!("{start}..{end}"),
                })?;
            Ok(Value { set, ..x.clone() })
        })
    }

    pub(super) fn corner(&self, value: &Value) -> String {
        let name = &self.tensor(value.tensor).name;
        format!("{name} from row {}, column {}", value.row, value.col)
    }

    /// f of slices.
    fn map(&mut self, task: TaskId, inputs: &[Slice], out: &Slice) -> Result<Grid, Stop> {
        let tensor = self.schedule.buffers[out.buffer.index()].tensor.0;
        let mut from = Vec::with_capacity(inputs.len());
        let mut result: Option<Grid> = None;
        for input in inputs {
            let mut grid = self.read_complete(task, input)?;
            from.push(self.schedule.buffers[input.buffer.index()].tensor.0);
            for cell in grid.iter_mut().flat_map(|band| &mut band.cells) {
                cell.value.tensor = tensor;
                cell.value.set = Set::One(0, 1);
            }
            result = Some(match result {
                None => coalesce(grid),
                Some(before) => overlay(&before, &grid, |x, y| {
                    if x == y {
                        return Ok(x.clone());
                    }
                    let problem = format!(
                        "{} begins at row {}, column {} of its tensor, another input at row {}, column {}",
                        self.schedule.describe_slice(input),
                        y.row,
                        y.col,
                        x.row,
                        x.col
                    );
                    Err(self.operand(task, problem, "give it the same part of every input"))
                })?,
            });
        }
        self.define(task, tensor, Made::Map(from))?;
        Ok(result.unwrap_or_default())
    }

    pub(super) fn collective(&mut self, group: &Collective) -> Result<(), Stop> {
        let mut members: Vec<_> = group.members.iter().collect();
        members.sort_by_key(|m| m.rank);
        let mut inputs = Vec::with_capacity(members.len());
        for member in &members {
            inputs.push(self.memory.read(member.task, &member.input)?);
        }
        let height = members[0].input.rows.len;
        let block = height / members.len() as u32;
        let total = match group.kind {
            CollectiveKind::ReduceScatter | CollectiveKind::AllReduce => {
                let mut total = inputs[0].clone();
                for (member, grid) in members.iter().zip(&inputs).skip(1) {
                    total = self.sum(member.task, &member.input, &total, grid)?;
                }
                total
            }
            CollectiveKind::AllGather => {
                let mut all = Grid::new();
                for (i, grid) in inputs.iter().enumerate() {
                    append(&mut all, grid.clone(), i as u32 * height);
                }
                coalesce(all)
            }
            CollectiveKind::AllToAll => Grid::new(),
        };
        for (i, member) in members.iter().enumerate() {
            let i = i as u32;
            let output = match group.kind {
                CollectiveKind::AllGather | CollectiveKind::AllReduce => total.clone(),
                CollectiveKind::ReduceScatter => rows(&total, i * block, (i + 1) * block),
                CollectiveKind::AllToAll => {
                    let mut mine = Grid::new();
                    for (j, grid) in inputs.iter().enumerate() {
                        let part = rows(grid, i * block, (i + 1) * block);
                        append(&mut mine, part, j as u32 * block);
                    }
                    coalesce(mine)
                }
            };
            self.write(member.task, &member.output, output)?;
        }
        Ok(())
    }
}

/// Lengths and global starts along one dimension.
type Axis = Vec<(u32, u32)>;

/// Global rows and columns of a grid that is the product of the two; `None` if it is not.
fn axes(grid: &Grid) -> (Option<Axis>, Option<Axis>) {
    let mut rows = Axis::new();
    let mut cols: Option<Axis> = None;
    for band in grid {
        let row = band.cells.first().map(|c| (c.value.row, c.value.tensor));
        let one_row = band
            .cells
            .iter()
            .all(|c| Some((c.value.row, c.value.tensor)) == row);
        let axis: Axis = band
            .cells
            .iter()
            .map(|c| (c.end - c.start, c.value.col))
            .collect();
        let (Some((row, _)), true) = (row, one_row) else {
            return (None, None);
        };
        if cols.get_or_insert_with(|| axis.clone()) != &axis {
            return (None, None);
        }
        push(&mut rows, band.end - band.start, row);
    }
    (Some(rows), cols)
}

/// Appends a piece, merged with the last where it continues it.
fn push(axis: &mut Axis, len: u32, at: u32) {
    match axis.last_mut() {
        Some(last) if last.1 + last.0 == at => last.0 += len,
        _ => axis.push((len, at)),
    }
}

fn axis_text(axis: &Axis) -> String {
    let parts: Vec<String> = axis
        .iter()
        .take(4)
        .map(|&(len, at)| span(Extent::new(at, len)))
        .collect();
    let more = if axis.len() > 4 { ", …" } else { "" };
    parts.join(", ") + more
}
