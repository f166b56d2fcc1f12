//! The sweep: every task performed on meanings, in one topological order.

use super::Stop;
use super::error::VerifyError;
use super::memory::Memory;
use super::order::{Clocks, Order};
use super::structure::span;
use super::value::{Band, Cell, Grid, Set, Value, append, coalesce, overlay, rows};
use crate::schedule::{
    BufferId, Collective, CollectiveKind, Compute, Extent, Role, Schedule, Slice, TaskId, Tensor,
    Work,
};

/// How a tensor comes about; stated by the first task that makes part of it.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Made {
    Product(u32, u32),
    Map(Vec<u32>),
}

struct Sweep<'a> {
    schedule: &'a Schedule,
    memory: Memory<'a>,
    /// By tensor.
    made: Vec<Option<Made>>,
}

/// Performs the schedule on meanings and checks its outputs.
pub(super) fn sweep(
    schedule: &Schedule,
    order: &Order,
    clocks: &mut Clocks,
    budget: u64,
) -> Result<(), Stop> {
    let mut sweep = Sweep {
        schedule,
        memory: Memory::new(schedule, order, clocks, budget)?,
        made: vec![None; schedule.tensors.len()],
    };
    for &node in &order.nodes {
        let node = TaskId(node);
        match schedule.task(node).work {
            Work::Transfer { from, to, .. } => {
                sweep.waits(order, node);
                let grid = sweep.memory.read(node, &from)?;
                sweep.write(node, &to, grid)?;
            }
            Work::Compute(c) => {
                sweep.waits(order, node);
                sweep.compute(node, &schedule.computes[c.index()])?;
            }
            Work::Collective(c) => {
                let group = &schedule.collectives[c.index()];
                for member in &group.members {
                    sweep.waits(order, member.task);
                }
                // All members end with the first one, and it with all of them.
                for member in &group.members[1..] {
                    sweep.memory.clocks.wait(order, node.0, member.task.0);
                    sweep.memory.clocks.wait(order, member.task.0, node.0);
                }
                sweep.collective(group)?;
            }
        }
    }
    sweep.outputs()
}

impl Sweep<'_> {
    fn waits(&mut self, order: &Order, task: TaskId) {
        for dep in self.schedule.deps(task) {
            self.memory.clocks.wait(order, task.0, dep.task.0);
        }
    }

    fn tensor(&self, tensor: u32) -> &Tensor {
        &self.schedule.tensors[tensor as usize]
    }

    fn operand(&self, task: TaskId, problem: String, remedy: &'static str) -> VerifyError {
        VerifyError::Operand {
            task: self.schedule.describe(task),
            problem,
            remedy,
        }
    }

    /// Writes, if the buffer may hold what is written.
    fn write(&mut self, task: TaskId, to: &Slice, grid: Grid) -> Result<(), Stop> {
        let holds = self.schedule.buffers[to.buffer.index()].tensor.0;
        let mut cells = grid.iter().flat_map(|band| &band.cells);
        if let Some(wrong) = cells.find(|c| c.value.tensor != holds) {
            let problem = format!(
                "it writes part of {} to {}, a buffer of {}",
                self.tensor(wrong.value.tensor).name,
                self.schedule.describe_slice(to),
                self.tensor(holds).name
            );
            let remedy = "write to a buffer of the same tensor";
            return Err(self.operand(task, problem, remedy).into());
        }
        self.memory.write(task, to, grid)
    }

    fn compute(&mut self, task: TaskId, compute: &Compute) -> Result<(), Stop> {
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

    /// States or confirms how a tensor comes about.
    fn define(&mut self, task: TaskId, tensor: u32, made: Made) -> Result<(), VerifyError> {
        let name = |t: u32| self.tensor(t).name.as_str();
        let text = |made: &Made| match made {
            Made::Product(a, b) => format!("{} times {}", name(*a), name(*b)),
            Made::Map(inputs) => {
                let names: Vec<&str> = inputs.iter().map(|&t| name(t)).collect();
                format!("a function of {}", names.join(", "))
            }
        };
        match &self.made[tensor as usize] {
            Some(known) if *known == made => return Ok(()),
            Some(known) => {
                let problem = format!(
                    "it makes part of {} as {}, but {0} is {}",
                    name(tensor),
                    text(&made),
                    text(known)
                );
                return Err(self.operand(task, problem, "make every part of a tensor alike"));
            }
            None => {}
        }
        if self.made_of(&made, tensor) {
            let problem = format!("it makes {} of itself", name(tensor));
            return Err(self.operand(task, problem, "make a new tensor"));
        }
        let t = self.tensor(tensor);
        let fits = match &made {
            Made::Product(a, b) => {
                let (a, b) = (self.tensor(*a), self.tensor(*b));
                (t.rows, t.cols, t.contributions, a.cols) == (a.rows, b.cols, a.cols, b.rows)
            }
            Made::Map(inputs) => {
                t.contributions == 1
                    && inputs.iter().all(|&i| {
                        let input = self.tensor(i);
                        (input.rows, input.cols) == (t.rows, t.cols)
                    })
            }
        };
        if !fits {
            let problem = format!(
                "{} ({} x {}, {} contributions) is not {}",
                t.name,
                t.rows,
                t.cols,
                t.contributions,
                text(&made)
            );
            let remedy = match made {
                Made::Product(..) => "a product has the shape m x n and k contributions",
                Made::Map(_) => {
                    "a pointwise result is a new tensor of its inputs' shape with 1 contribution"
                }
            };
            return Err(self.operand(task, problem, remedy));
        }
        self.made[tensor as usize] = Some(made);
        Ok(())
    }

    /// Whether `tensor` is among what is used, directly or through other tensors.
    fn made_of(&self, made: &Made, tensor: u32) -> bool {
        let mut seen = vec![false; self.made.len()];
        let mut todo = vec![made];
        while let Some(made) = todo.pop() {
            let inputs = match made {
                Made::Product(a, b) => &[*a, *b][..],
                Made::Map(inputs) => inputs,
            };
            for &input in inputs {
                if input == tensor {
                    return true;
                }
                if !std::mem::replace(&mut seen[input as usize], true) {
                    todo.extend(&self.made[input as usize]);
                }
            }
        }
        false
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

    fn corner(&self, value: &Value) -> String {
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

    fn collective(&mut self, group: &Collective) -> Result<(), Stop> {
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

    fn outputs(&mut self) -> Result<(), Stop> {
        for (i, buffer) in self.schedule.buffers.iter().enumerate() {
            if !matches!(buffer.role, Role::Output | Role::InputOutput) {
                continue;
            }
            for piece in &buffer.pieces {
                let slice = Slice {
                    buffer: BufferId(i as u32),
                    slot: 0,
                    rows: piece.rows,
                    cols: piece.cols,
                };
                let full = Value {
                    tensor: buffer.tensor.0,
                    row: piece.global_row,
                    col: piece.global_col,
                    set: Set::One(0, self.tensor(buffer.tensor.0).contributions),
                };
                self.output(&slice, &full)?;
            }
        }
        Ok(())
    }

    fn output(&mut self, slice: &Slice, full: &Value) -> Result<(), VerifyError> {
        let refuse = |slice: &Slice, problem: String, remedy| VerifyError::Output {
            slice: self.schedule.describe_slice(slice),
            problem,
            remedy,
        };
        let part = |rows: Extent, cols: Extent| Slice {
            rows,
            cols,
            ..*slice
        };
        let grid = match self.memory.last(slice) {
            Ok(grid) => grid,
            Err((rows, cols)) => {
                let problem = "nothing was ever written there".into();
                return Err(refuse(&part(rows, cols), problem, "let a task write it"));
            }
        };
        for band in &grid {
            for cell in &band.cells {
                let want = full.offset(band.start, cell.start);
                if cell.value == want {
                    continue;
                }
                let here = part(
                    Extent::new(slice.rows.start + band.start, band.end - band.start),
                    Extent::new(slice.cols.start + cell.start, cell.end - cell.start),
                );
                let same_place = (cell.value.row, cell.value.col) == (want.row, want.col);
                return Err(if same_place {
                    let all = span(Extent::new(0, self.tensor(full.tensor).contributions));
                    let problem = format!("it holds contributions {} of {all}", cell.value.set);
                    refuse(&here, problem, "add the contributions that are missing")
                } else {
                    let [held, want] = [&cell.value, &want].map(|v| self.corner(v));
                    let problem = format!("it holds {held} instead of {want}");
                    refuse(&here, problem, "write each part to its own place")
                });
            }
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
