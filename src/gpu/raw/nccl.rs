//! NCCL: one communicator per GPU, all in this process.

use std::ffi::{c_int, c_void};
use std::ptr;
use std::rc::Rc;

use cudarc::nccl::sys::{self, ncclComm_t, ncclDataType_t, ncclRedOp_t, ncclResult_t};

use super::{Gpu, Region, Stream, owned};
use crate::device::DType;
use crate::gpu::GpuError;

/// Whether the library can be loaded.
pub fn present() -> bool {
    // SAFETY: loads the library by the loader's own rules; its constructors are sound.
    unsafe { sys::is_culib_present() }
}

/// The library's version: 10000 · major + 100 · minor + patch.
///
/// # Errors
/// The library's.
pub fn version() -> Result<u32, GpuError> {
    let mut version = 0;
    // SAFETY: a valid pointer.
    check("ncclGetVersion", unsafe {
        sys::ncclGetVersion(&raw mut version)
    })?;
    Ok(u32::try_from(version).unwrap_or(0))
}

pub(super) fn check(call: &'static str, code: ncclResult_t) -> Result<(), GpuError> {
    if code == ncclResult_t::ncclSuccess {
        return Ok(());
    }
    // SAFETY: takes any code and no communicator, returns strings that last.
    let (text, last) = unsafe {
        (
            owned(sys::ncclGetErrorString(code)),
            owned(sys::ncclGetLastError(ptr::null_mut())),
        )
    };
    Err(GpuError::Library {
        library: "NCCL",
        call,
        text: match last.is_empty() {
            true => text,
            false => format!("{text}: {last}"),
        },
    })
}

/// What one member does in a group call; counts follow from the regions.
#[derive(Copy, Clone, Debug)]
pub enum Op {
    /// `output` = the inputs of all members, in their order.
    AllGather { input: Region, output: Region },
    /// `output` = this member's part of the sum of the inputs.
    ReduceScatter { input: Region, output: Region },
    /// `output` = the sum of the inputs.
    AllReduce { input: Region, output: Region },
    /// Sends to a member.
    Send { input: Region, to: u32 },
    /// Receives from a member.
    Receive { output: Region, from: u32 },
}

/// One call inside a group.
#[derive(Copy, Clone, Debug)]
pub struct Call<'a> {
    /// Place of the GPU in the communicator.
    pub member: u32,
    pub stream: &'a Stream,
    pub op: Op,
}

/// The communicators of some GPUs.
#[derive(Debug)]
pub struct Comms {
    gpus: Vec<Rc<Gpu>>,
    raw: Vec<ncclComm_t>,
}

impl Comms {
    /// Connects the GPUs, each of which may be there once.
    ///
    /// # Errors
    /// [`GpuError::Argument`] for a GPU that is listed twice, and the library's.
    pub fn new(gpus: &[Rc<Gpu>]) -> Result<Self, GpuError> {
        let ordinals: Vec<c_int> = gpus.iter().map(|gpu| gpu.ordinal() as c_int).collect();
        let mut sorted = ordinals.clone();
        sorted.sort_unstable();
        sorted.dedup();
        if sorted.len() != ordinals.len() || ordinals.is_empty() {
            return Err(GpuError::Argument(format!(
                "NCCL wants different GPUs, not {ordinals:?}"
            )));
        }
        let mut raw = vec![ptr::null_mut(); ordinals.len()];
        let count = ordinals.len() as c_int;
        // SAFETY: room for as many communicators as there are devices.
        check("ncclCommInitAll", unsafe {
            sys::ncclCommInitAll(raw.as_mut_ptr(), count, ordinals.as_ptr())
        })?;
        Ok(Self {
            gpus: gpus.to_vec(),
            raw,
        })
    }

    /// The library's handles, in member order.
    pub(super) fn handles(&self) -> &[ncclComm_t] {
        &self.raw
    }

    /// The GPUs, in member order.
    pub fn gpus(&self) -> &[Rc<Gpu>] {
        &self.gpus
    }

    /// Enqueues calls of several members as one group, without which they would wait for one
    /// another on this thread.
    ///
    /// # Errors
    /// [`GpuError::Argument`] for a member that does not exist, a stream of another GPU, an
    /// element type that NCCL cannot add and sizes that do not fit; and the library's.
    pub fn group(&self, dtype: DType, calls: &[Call<'_>]) -> Result<(), GpuError> {
        for call in calls {
            self.check_call(dtype, call)?;
        }
        // SAFETY: paired with the end below on every path.
        check("ncclGroupStart", unsafe { sys::ncclGroupStart() })?;
        let result = calls.iter().try_for_each(|call| self.enqueue(dtype, call));
        // SAFETY: a group was started.
        let end = check("ncclGroupEnd", unsafe { sys::ncclGroupEnd() });
        result.and(end)
    }

    fn check_call(&self, dtype: DType, call: &Call<'_>) -> Result<(), GpuError> {
        let members = self.gpus.len() as u64;
        let argument = |text: String| Err(GpuError::Argument(text));
        let Some(gpu) = self.gpus.get(call.member as usize) else {
            return argument(format!("NCCL has {members} members, not {}", call.member));
        };
        if gpu.ordinal() != call.stream.gpu().ordinal() {
            return argument("an NCCL call in a stream of another GPU".to_owned());
        }
        let peer = |peer: u32| match u64::from(peer) < members {
            true => Ok(()),
            false => argument(format!("NCCL has {members} members, not {peer}")),
        };
        let (whole, part, parts) = match call.op {
            Op::AllGather { input, output } => (output, input, members),
            Op::ReduceScatter { input, output } => (input, output, members),
            Op::AllReduce { input, output } => (input, output, 1),
            Op::Send { input, to } => {
                peer(to)?;
                (input, input, 1)
            }
            Op::Receive { output, from } => {
                peer(from)?;
                (output, output, 1)
            }
        };
        if part.bytes().checked_mul(parts) != Some(whole.bytes())
            || part.bytes() % dtype.size() != 0
        {
            return argument(format!(
                "{members} members with parts of {} bytes and a whole of {} bytes",
                part.bytes(),
                whole.bytes()
            ));
        }
        data_type(dtype).map(|_| ())
    }

    fn enqueue(&self, dtype: DType, call: &Call<'_>) -> Result<(), GpuError> {
        let comm = self.raw[call.member as usize];
        let kind = data_type(dtype)?;
        let sum = ncclRedOp_t::ncclSum;
        let stream = call.stream.raw().cast();
        let count = |region: Region| (region.bytes() / dtype.size()) as usize;
        let at = |region: Region| region.address() as *mut c_void;
        // SAFETY: live communicators and streams; the sizes were checked against the regions.
        unsafe {
            match call.op {
                Op::AllGather { input, output } => check(
                    "ncclAllGather",
                    sys::ncclAllGather(at(input), at(output), count(input), kind, comm, stream),
                ),
                Op::ReduceScatter { input, output } => check(
                    "ncclReduceScatter",
                    sys::ncclReduceScatter(
                        at(input),
                        at(output),
                        count(output),
                        kind,
                        sum,
                        comm,
                        stream,
                    ),
                ),
                Op::AllReduce { input, output } => check(
                    "ncclAllReduce",
                    sys::ncclAllReduce(
                        at(input),
                        at(output),
                        count(input),
                        kind,
                        sum,
                        comm,
                        stream,
                    ),
                ),
                Op::Send { input, to } => check(
                    "ncclSend",
                    sys::ncclSend(at(input), count(input), kind, to as c_int, comm, stream),
                ),
                Op::Receive { output, from } => check(
                    "ncclRecv",
                    sys::ncclRecv(at(output), count(output), kind, from as c_int, comm, stream),
                ),
            }
        }
    }
}

impl Drop for Comms {
    fn drop(&mut self) {
        if self.gpus.iter().any(|gpu| gpu.is_lost()) {
            return;
        }
        for comm in &self.raw {
            // SAFETY: a live communicator, destroyed once.
            let _ = unsafe { sys::ncclCommDestroy(*comm) };
        }
    }
}

/// Memory that a communicator knows of, until dropped; its [`Memory`](super::Memory) must live
/// longer.
#[derive(Debug)]
pub struct Registration {
    comms: Rc<Comms>,
    member: usize,
    handle: *mut c_void,
}

impl Registration {
    /// Tells a member of `memory`, which lies on its GPU. All members do so before the next call.
    ///
    /// # Errors
    /// [`GpuError::Argument`] for a member that does not exist, and the library's.
    pub fn new(comms: &Rc<Comms>, member: usize, memory: Region) -> Result<Self, GpuError> {
        let (Some(gpu), Some(&raw)) = (comms.gpus.get(member), comms.raw.get(member)) else {
            return Err(GpuError::Argument(format!("NCCL has no member {member}")));
        };
        gpu.enter()?;
        let mut handle = ptr::null_mut();
        let start = memory.address() as *mut c_void;
        let bytes = memory.bytes() as usize;
        // SAFETY: a live communicator; the memory is all of an allocation, which outlives this.
        check("ncclCommRegister", unsafe {
            sys::ncclCommRegister(raw, start, bytes, &raw mut handle)
        })?;
        Ok(Self {
            comms: Rc::clone(comms),
            member,
            handle,
        })
    }
}

impl Drop for Registration {
    fn drop(&mut self) {
        let lost = self.comms.gpus.iter().any(|gpu| gpu.is_lost());
        if !lost && !self.handle.is_null() && self.comms.gpus[self.member].enter().is_ok() {
            // SAFETY: a live communicator and what it registered, given back once.
            let _ = unsafe { sys::ncclCommDeregister(self.comms.raw[self.member], self.handle) };
        }
    }
}

fn data_type(dtype: DType) -> Result<ncclDataType_t, GpuError> {
    match dtype {
        DType::Bf16 => Ok(ncclDataType_t::ncclBfloat16),
        DType::Fp16 => Ok(ncclDataType_t::ncclFloat16),
        DType::Fp32 => Ok(ncclDataType_t::ncclFloat32),
        DType::Fp8 => Err(GpuError::Argument(
            "NCCL adds bf16, fp16 and fp32, not fp8".to_owned(),
        )),
    }
}
