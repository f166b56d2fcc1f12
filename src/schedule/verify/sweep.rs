//! The sweep: every task performed on meanings, in one topological order.

use super::Stop;
use super::clocks::Clocks;
use super::error::VerifyError;
use super::made::Made;
use super::memory::Memory;
use super::order::Order;
use super::structure::span;
use super::value::{Grid, Set, Value};
use crate::schedule::{BufferId, Extent, Role, Schedule, Slice, TaskId, Tensor, Work};

pub(super) struct Sweep<'a> {
    pub schedule: &'a Schedule,
    pub memory: Memory<'a>,
    /// By tensor.
    pub made: Vec<Option<Made>>,
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
        for (node, from) in order.edges(self.schedule, task) {
            self.memory.clocks.wait(order, node, from);
        }
    }

    pub(super) fn tensor(&self, tensor: u32) -> &Tensor {
        &self.schedule.tensors[tensor as usize]
    }

    pub(super) fn operand(
        &self,
        task: TaskId,
        problem: String,
        remedy: &'static str,
    ) -> VerifyError {
        VerifyError::Operand {
            task: self.schedule.describe(task),
            problem,
            remedy,
        }
    }

    /// Writes, if the buffer may hold what is written.
    pub(super) fn write(&mut self, task: TaskId, to: &Slice, grid: Grid) -> Result<(), Stop> {
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
