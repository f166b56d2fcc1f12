//! One step of a run, handed over to the driver.

use super::Run;
use super::issue::Extras;
use super::tables::Traced;
use crate::gpu::GpuError;
use crate::gpu::kernels::{Epoch, Matrix, Tells};
use crate::gpu::plan::{Area, CallId, What};
use crate::gpu::raw::nccl::{Call, Op};
use crate::gpu::raw::{Copy2d, Region};
use crate::gpu::tiles::Beside;
use crate::schedule::CollectiveKind;

impl Run<'_> {
    /// How many steps from `at` on are submitted as one: the members of a call, or one.
    pub(super) fn together(&self, at: usize) -> usize {
        let call = |at: usize| match self.plan.steps.get(at)?.what {
            What::Collective { call, .. } => Some(call),
            _ => None,
        };
        match call(at) {
            None => 1,
            Some(first) => (at..).take_while(|&i| call(i) == Some(first)).count(),
        }
    }

    /// Index of a product among the plan's.
    pub(super) fn gemm(&self, what: &What) -> Result<usize, GpuError> {
        what.gemm()
            .and_then(|shape| self.plan.gemms.binary_search(&shape).ok())
            .ok_or_else(|| GpuError::Argument("the plan does not list a product".to_owned()))
    }

    /// Submits `count` steps from `at` on.
    pub(super) fn step(
        &self,
        at: usize,
        count: usize,
        (parity, epoch): (u64, u32),
        extras: &Extras<'_>,
    ) -> Result<(), GpuError> {
        let traced = extras.tiles.and_then(|steps| steps.get(at)?.as_ref());
        let beside = Beside {
            gate: None,
            trace: traced.map(Traced::region),
            // Delays are kernels too, which did not begin beside products that hold every SM.
            spare: if extras.shake.is_some() { 2 } else { 0 },
        };
        let step = &self.plan.steps[at];
        let stream = self.stream(step.stream);
        let gpu = self.plan.streams[step.stream.index()].gpu.index();
        let device = self.device(gpu);
        let dtype = self.plan.dtype;
        let size = dtype.size();
        match &step.what {
            What::Copy { from, to } => stream.copy_2d(&self.rectangle(from, to, parity)?),
            What::CopyKernel {
                from,
                to,
                blocks,
                sets,
            } => {
                let copy = self.rectangle(from, to, parity)?;
                let blocks = u32::from(*blocks);
                match sets.filter(|flag| self.faults.drop_flag != Some(*flag)) {
                    None => device.kernels.copy(stream, &copy, blocks),
                    Some(flag) => {
                        let tells = Tells {
                            done: self.copied[gpu].region().cut(4 * at as u64, 4)?,
                            flag: self.flag(flag)?,
                            epoch: self.epoch_of(gpu, epoch),
                        };
                        let kernels = &device.kernels;
                        kernels.copy_and_tell(stream, &copy, blocks, &tells)
                    }
                }
            }
            What::ToHost { from, to } => {
                let (rows, width) = (u64::from(from.rows), u64::from(from.cols) * size);
                stream.copy_2d(&Copy2d {
                    from: self.region(from, parity)?,
                    from_pitch: u64::from(from.ld) * size,
                    to: self.slot(to, rows * width)?,
                    to_pitch: width,
                    width,
                    rows,
                })
            }
            What::FromHost { from, to } => {
                let (rows, width) = (u64::from(to.rows), u64::from(to.cols) * size);
                stream.copy_2d(&Copy2d {
                    from: self.slot(from, rows * width)?,
                    from_pitch: width,
                    to: self.region(to, parity)?,
                    to_pitch: u64::from(to.ld) * size,
                    width,
                    rows,
                })
            }
            What::Gemm { a, b, out, .. } => {
                let problem = &self.problems[self.gemm(&step.what)?];
                let matrices = (
                    self.region(a, parity)?,
                    self.region(b, parity)?,
                    self.region(out, parity)?,
                );
                if self.own(problem) {
                    let tiles = device.tiles.borrow();
                    return match self.tile_of(at)? {
                        Some(tile) => tiles.launch(stream, problem, tile, matrices, beside),
                        None => tiles.run(stream, problem, matrices),
                    };
                }
                let Some(space) = &self.workspaces[step.stream.index()] else {
                    return Err(GpuError::Argument("a product without workspace".to_owned()));
                };
                let gemms = device.gemms.borrow();
                gemms.run(stream, problem, matrices, space.region())
            }
            What::Gated { .. } => self.gated(at, (parity, epoch), beside),
            What::Add { inputs, out } => {
                let matrix = |area: &Area| {
                    Ok::<_, GpuError>(Matrix {
                        start: self.region(area, parity)?,
                        ld: area.ld.into(),
                    })
                };
                let inputs = inputs.iter().map(matrix).collect::<Result<Vec<_>, _>>()?;
                let shape = (u64::from(out.rows), u64::from(out.cols));
                device
                    .kernels
                    .add(stream, dtype, &inputs, matrix(out)?, shape, 0)
            }
            What::Pointwise { .. } => Err(GpuError::Argument(format!(
                "{}: real GPUs have no kernel for pointwise work; choose a strategy without it",
                self.schedule.describe(step.task)
            ))),
            What::Collective { call, .. } => self.collective(*call, count, parity),
            What::Record(event) => stream.record(&self.events[event.index()]),
            What::Await(event) => stream.wait(&self.events[event.index()]),
            What::WriteFlag(flag) if self.faults.drop_flag == Some(*flag) => Ok(()),
            What::WriteFlag(flag) => match self.epoch_at(gpu) {
                Some(word) => stream.copy(word, self.flag(*flag)?),
                None => stream.write_value(self.flag(*flag)?, epoch),
            },
            What::AwaitFlag(flag) => stream.wait_value(self.flag(*flag)?, epoch),
        }
    }

    /// The epoch of a run on a GPU of the plan, as kernels take it.
    pub(super) fn epoch_of(&self, gpu: usize, epoch: u32) -> Epoch {
        match self.epoch_at(gpu) {
            Some(word) => Epoch {
                counter: Some(word),
                offset: 0,
            },
            None => Epoch::fixed(epoch),
        }
    }

    pub(super) fn rectangle(
        &self,
        from: &Area,
        to: &Area,
        parity: u64,
    ) -> Result<Copy2d, GpuError> {
        let size = self.plan.dtype.size();
        Ok(Copy2d {
            from: self.region(from, parity)?,
            from_pitch: u64::from(from.ld) * size,
            to: self.region(to, parity)?,
            to_pitch: u64::from(to.ld) * size,
            width: u64::from(from.cols) * size,
            rows: from.rows.into(),
        })
    }

    fn collective(&self, id: CallId, count: usize, parity: u64) -> Result<(), GpuError> {
        let call = &self.plan.collectives[id.index()];
        let Some(comms) = &self.comms[call.group as usize] else {
            return Err(GpuError::Argument(
                "a collective without members".to_owned(),
            ));
        };
        if count != call.members.len() {
            return Err(GpuError::Argument(format!(
                "{count} of {} members of a collective follow one another",
                call.members.len()
            )));
        }
        let parts = call.members.len() as u32;
        let block = |region: Region, i: u32| {
            let bytes = region.bytes() / u64::from(parts);
            region.cut(u64::from(i) * bytes, bytes)
        };
        let mut calls = Vec::with_capacity(count);
        for (member, party) in call.members.iter().enumerate() {
            let member = member as u32;
            let stream = self.stream(party.stream);
            let input = self.rows(&party.input, parity)?;
            let output = self.rows(&party.output, parity)?;
            let mut push = |op| calls.push(Call { member, stream, op });
            match call.kind {
                CollectiveKind::AllGather => push(Op::AllGather { input, output }),
                CollectiveKind::ReduceScatter => push(Op::ReduceScatter { input, output }),
                CollectiveKind::AllReduce => push(Op::AllReduce { input, output }),
                CollectiveKind::AllToAll => {
                    for peer in 0..parts {
                        push(Op::Send {
                            input: block(input, peer)?,
                            to: peer,
                        });
                        push(Op::Receive {
                            output: block(output, peer)?,
                            from: peer,
                        });
                    }
                }
            }
        }
        comms.group(self.plan.dtype, &calls)
    }
}
