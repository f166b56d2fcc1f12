//! Building a schedule task by task, in an order in which every dependency comes before its task.

use super::{
    Buffer, BufferId, Collective, CollectiveId, CollectiveKind, CollectiveLibrary, Compute,
    ComputeId, Dep, Extent, Lane, Launch, LaunchId, Member, Mover, Piece, Rank, Role, Schedule,
    Slice, Task, TaskId, Tensor, TensorId, Via, Work,
};
use crate::operator::Operator;

/// Appends to a [`Schedule`].
#[derive(Clone, Debug)]
pub struct Builder {
    schedule: Schedule,
}

impl Builder {
    /// An empty schedule of `operator`; rank r on GPU `placement[r]`.
    pub fn new(operator: Operator, strategy: impl Into<String>, placement: Vec<u32>) -> Self {
        Self {
            schedule: Schedule {
                operator,
                strategy: strategy.into(),
                tensors: Vec::new(),
                buffers: Vec::new(),
                tasks: Vec::new(),
                dep_start: vec![0],
                deps: Vec::new(),
                computes: Vec::new(),
                collectives: Vec::new(),
                launches: Vec::new(),
                placement,
                lanes: Vec::new(),
            },
        }
    }

    /// Room for this many tasks and dependencies, for schedules of millions.
    pub fn reserve(&mut self, tasks: usize, deps: usize) {
        self.schedule.tasks.reserve_exact(tasks);
        self.schedule.dep_start.reserve_exact(tasks);
        self.schedule.deps.reserve_exact(deps);
    }

    /// Ranks of the schedule.
    pub fn ranks(&self) -> impl ExactSizeIterator<Item = Rank> + use<> {
        (0..self.schedule.placement.len()).map(|r| Rank(r as u16))
    }

    /// The id of the next task.
    pub fn next_task(&self) -> TaskId {
        TaskId(self.schedule.tasks.len() as u32)
    }

    /// A global tensor.
    pub fn tensor(&mut self, name: &str, rows: u32, cols: u32, contributions: u32) -> TensorId {
        self.schedule.tensors.push(Tensor {
            name: name.to_owned(),
            rows,
            cols,
            contributions,
        });
        TensorId(self.schedule.tensors.len() as u32 - 1)
    }

    /// A buffer; see [`Buffer`] for the fields.
    pub fn buffer(&mut self, buffer: Buffer) -> BufferId {
        self.schedule.buffers.push(buffer);
        BufferId(self.schedule.buffers.len() as u32 - 1)
    }

    /// A scratch buffer of `slots` slots.
    pub fn scratch(
        &mut self,
        name: &str,
        tensor: TensorId,
        rank: Rank,
        rows: u32,
        cols: u32,
        slots: u16,
    ) -> BufferId {
        self.buffer(Buffer {
            name: name.to_owned(),
            tensor,
            rank,
            rows,
            cols,
            slots,
            role: Role::Scratch,
            pieces: Vec::<Piece>::new(),
        })
    }

    /// Names a lane, for traces and messages.
    pub fn name_lane(&mut self, lane: Lane, name: &str) {
        self.schedule.lanes.push((lane, name.to_owned()));
    }

    /// Rows `[row, row + rows)` of slot `slot`, all columns.
    pub fn rows(&self, buffer: BufferId, slot: u16, row: u32, rows: u32) -> Slice {
        Slice {
            slot,
            rows: Extent::new(row, rows),
            ..self.schedule.whole(buffer, slot)
        }
    }

    /// All of slot 0.
    pub fn whole(&self, buffer: BufferId) -> Slice {
        self.schedule.whole(buffer, 0)
    }

    /// A fused kernel on `rank`.
    pub fn launch(&mut self, name: &str, rank: Rank, sms: u16) -> LaunchId {
        self.schedule.launches.push(Launch {
            name: name.to_owned(),
            rank,
            sms,
        });
        LaunchId(self.schedule.launches.len() as u32 - 1)
    }

    /// A copy of `from` onto `to`, issued by `rank` in `lane`.
    pub fn transfer(
        &mut self,
        rank: Rank,
        lane: Lane,
        from: Slice,
        to: Slice,
        mover: Mover,
        after: &[Dep],
    ) -> TaskId {
        self.push(rank, lane, None, Work::Transfer { from, to, mover }, after)
    }

    /// SM work in `lane`, part of fused kernel `launch` if given.
    pub fn compute(
        &mut self,
        rank: Rank,
        lane: Lane,
        launch: Option<LaunchId>,
        compute: Compute,
        after: &[Dep],
    ) -> TaskId {
        self.schedule.computes.push(compute);
        let id = ComputeId(self.schedule.computes.len() as u32 - 1);
        self.push(rank, lane, launch, Work::Compute(id), after)
    }

    /// One collective: a task on each member, `(rank, input, output, after)` in ring order, each
    /// in `lane` of its rank. Returns the members' tasks in the same order.
    pub fn collective(
        &mut self,
        kind: CollectiveKind,
        library: CollectiveLibrary,
        sms: u16,
        lane: Lane,
        members: &[(Rank, Slice, Slice, &[Dep])],
    ) -> Vec<TaskId> {
        let id = CollectiveId(self.schedule.collectives.len() as u32);
        let tasks: Vec<TaskId> = members
            .iter()
            .map(|(rank, _, _, after)| self.push(*rank, lane, None, Work::Collective(id), after))
            .collect();
        self.schedule.collectives.push(Collective {
            kind,
            library,
            sms,
            members: members
                .iter()
                .zip(&tasks)
                .map(|((rank, input, output, _), task)| Member {
                    rank: *rank,
                    task: *task,
                    input: *input,
                    output: *output,
                })
                .collect(),
        });
        tasks
    }

    fn push(
        &mut self,
        rank: Rank,
        lane: Lane,
        launch: Option<LaunchId>,
        work: Work,
        after: &[Dep],
    ) -> TaskId {
        let id = TaskId(self.schedule.tasks.len() as u32);
        self.schedule.tasks.push(Task {
            work,
            rank,
            lane,
            launch,
        });
        self.schedule.deps.extend_from_slice(after);
        self.schedule
            .dep_start
            .push(self.schedule.deps.len() as u32);
        id
    }

    /// The finished schedule.
    pub fn finish(self) -> Schedule {
        self.schedule
    }
}

/// `task` via `via`.
impl From<(TaskId, Via)> for Dep {
    fn from((task, via): (TaskId, Via)) -> Self {
        Self { task, via }
    }
}
