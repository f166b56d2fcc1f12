//! The memory of all ranks during the sweep: reads and writes with their happens-before checks.

use rustc_hash::FxHashMap;

use super::clocks::Clocks;
use super::error::{Race, VerifyError};
use super::order::Order;
use super::region::{INITIAL, Slot, Unread};
use super::value::{Band, Cell, Grid, Set, Value};
use super::{Stop, structure};
use crate::schedule::{BufferId, Compute, Extent, Role, Schedule, Slice, TaskId, Work};

/// What lies where, and the clocks that order the accesses to it.
pub(super) struct Memory<'a> {
    schedule: &'a Schedule,
    order: &'a Order,
    pub clocks: &'a mut Clocks,
    budget: u64,
    slots: FxHashMap<(u32, u16), Slot>,
}

/// Why an access was refused.
enum Refusal {
    Budget,
    /// Unordered with this task.
    Unordered(u32, Race),
}

impl<'a> Memory<'a> {
    /// The memory before the first task.
    pub(super) fn new(
        schedule: &'a Schedule,
        order: &'a Order,
        clocks: &'a mut Clocks,
        budget: u64,
    ) -> Result<Self, Stop> {
        let mut memory = Self {
            schedule,
            order,
            clocks,
            budget,
            slots: FxHashMap::default(),
        };
        for (i, buffer) in schedule.buffers.iter().enumerate() {
            if !matches!(buffer.role, Role::Input | Role::InputOutput) {
                continue;
            }
            for piece in buffer.pieces.iter().filter(|p| p.initial.len > 0) {
                let slice = Slice {
                    buffer: BufferId(i as u32),
                    slot: 0,
                    rows: piece.rows,
                    cols: piece.cols,
                };
                let slot = memory.slots.entry((i as u32, 0)).or_default();
                slot.touch(&slice, |_| Err(()))
                    .map_err(|()| VerifyError::Structure {
                        place: schedule.describe_slice(&slice),
                        problem: "two pieces state what is there at the start".into(),
                        remedy: "let the pieces of a buffer be disjoint",
                    })?;
                let value = Value {
                    tensor: buffer.tensor.0,
                    row: piece.global_row,
                    col: piece.global_col,
                    set: Set::One(piece.initial.start, piece.initial.start + piece.initial.len),
                };
                slot.write(&slice, whole(&slice, value), INITIAL);
                memory.clocks.steps += 1;
            }
        }
        Ok(memory)
    }

    /// What the slice holds when `task` reads it.
    pub(super) fn read(&mut self, task: TaskId, slice: &Slice) -> Result<Grid, Stop> {
        let (order, clocks, budget) = (self.order, &mut *self.clocks, self.budget);
        let slot = self.slots.entry((slice.buffer.0, slice.slot)).or_default();
        let grid = slot.read(slice, |segment| {
            let writer = segment.writer;
            if writer != INITIAL && !clocks.ordered(order, writer, task.0) {
                return Err(Refusal::Unordered(writer, Race::ReadWrite));
            }
            segment.readers.add(task.0, &order.chain);
            spend(clocks, budget)
        });
        grid.map_err(|unread| match unread {
            Unread::Gap(rows, cols) => self.missing(task, slice, rows, cols).into(),
            Unread::Refused(refusal) => self.refuse(refusal, task, slice),
        })
    }

    /// Lets `task` write `grid` over the slice.
    pub(super) fn write(&mut self, task: TaskId, slice: &Slice, grid: Grid) -> Result<(), Stop> {
        let (order, clocks, budget) = (self.order, &mut *self.clocks, self.budget);
        let slot = self.slots.entry((slice.buffer.0, slice.slot)).or_default();
        let free = slot.touch(slice, |segment| {
            let mut unordered = |other: u32| {
                other != INITIAL && other != task.0 && !clocks.ordered(order, other, task.0)
            };
            if unordered(segment.writer) {
                return Err(Refusal::Unordered(segment.writer, Race::WriteWrite));
            }
            if let Some(reader) = segment.readers.tasks().find(|&r| unordered(r)) {
                return Err(Refusal::Unordered(reader, Race::ReadWrite));
            }
            spend(clocks, budget)
        });
        match free {
            Ok(()) => {
                self.clocks.steps += grid.len() as u64;
                slot.write(slice, grid, task.0);
                Ok(())
            }
            Err(refusal) => Err(self.refuse(refusal, task, slice)),
        }
    }

    /// What lies in a slice after the last task; `Err` with a rectangle that was never written.
    pub(super) fn last(&mut self, slice: &Slice) -> Result<Grid, (Extent, Extent)> {
        let slot = self.slots.entry((slice.buffer.0, slice.slot)).or_default();
        self.clocks.steps += 1;
        slot.read(slice, |_| Ok::<(), std::convert::Infallible>(()))
            .map_err(|unread| match unread {
                Unread::Gap(rows, cols) => (rows, cols),
                Unread::Refused(never) => match never {},
            })
    }

    fn refuse(&self, refusal: Refusal, task: TaskId, slice: &Slice) -> Stop {
        match refusal {
            Refusal::Budget => Stop::Budget,
            Refusal::Unordered(other, race) => VerifyError::Race {
                race,
                slice: self.schedule.describe_slice(slice),
                first: self.schedule.describe(TaskId(other)),
                second: self.schedule.describe(task),
            }
            .into(),
        }
    }

    fn missing(&self, task: TaskId, slice: &Slice, rows: Extent, cols: Extent) -> VerifyError {
        let hole = Slice {
            rows,
            cols,
            ..*slice
        };
        let writer = (0..self.schedule.tasks.len() as u32)
            .map(TaskId)
            .find(|&t| t != task && writes(self.schedule, t, &hole));
        VerifyError::Missing {
            task: self.schedule.describe(task),
            slice: self.schedule.describe_slice(slice),
            missing: if hole == *slice {
                "it".into()
            } else {
                format!(
                    "its part rows {}, cols {}",
                    structure::span(rows),
                    structure::span(cols)
                )
            },
            hint: match writer {
                Some(t) => format!(
                    "; {} writes there but does not come before: wait for it",
                    self.schedule.describe(t)
                ),
                None => "; no task writes there".into(),
            },
        }
    }
}

fn spend(clocks: &mut Clocks, budget: u64) -> Result<(), Refusal> {
    clocks.steps += 1;
    if clocks.steps > budget {
        return Err(Refusal::Budget);
    }
    Ok(())
}

fn writes(schedule: &Schedule, task: TaskId, hole: &Slice) -> bool {
    let out = match schedule.task(task).work {
        Work::Transfer { to, .. } => to,
        Work::Compute(c) => match &schedule.computes[c.index()] {
            Compute::Gemm { out, .. }
            | Compute::Reduce { out, .. }
            | Compute::Pointwise { out, .. } => *out,
        },
        Work::Collective(c) => {
            let members = &schedule.collectives[c.index()].members;
            match members.iter().find(|m| m.task == task) {
                Some(member) => member.output,
                None => return false,
            }
        }
    };
    structure::overlaps(&out, hole)
}

/// A grid of one value in the shape of the slice.
pub(super) fn whole(slice: &Slice, value: Value) -> Grid {
    vec![Band {
        start: 0,
        end: slice.rows.len,
        cells: vec![Cell {
            start: 0,
            end: slice.cols.len,
            value,
        }],
    }]
}
