//! Streams: in-order queues of work on one GPU.

use std::ptr;
use std::rc::Rc;
use std::time::{Duration, Instant};

use cudarc::driver::sys::{
    self, CUevent_record_flags, CUresult, CUstream, CUstream_flags, CUstreamCaptureMode,
    CUstreamWaitValue_flags as Wait, CUstreamWriteValue_flags as Write,
};

use super::{Event, Gpu, Graph, Region, check};
use crate::gpu::GpuError;

/// Which of two ready kernels goes first.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq, Hash)]
pub enum Priority {
    /// First: short work that others wait for.
    High,
    #[default]
    Low,
}

/// An in-order queue; never ordered with the default stream.
#[derive(Debug)]
pub struct Stream {
    gpu: Rc<Gpu>,
    raw: CUstream,
}

impl Stream {
    /// A stream of `gpu`.
    ///
    /// # Errors
    /// The driver's.
    pub fn new(gpu: &Rc<Gpu>, priority: Priority) -> Result<Self, GpuError> {
        gpu.enter()?;
        let (mut least, mut greatest) = (0, 0);
        let mut raw = ptr::null_mut();
        // SAFETY: current context, valid pointers.
        unsafe {
            check(
                "cuCtxGetStreamPriorityRange",
                sys::cuCtxGetStreamPriorityRange(&raw mut least, &raw mut greatest),
            )?;
            let priority = match priority {
                Priority::High => greatest,
                Priority::Low => least,
            };
            let flags = CUstream_flags::CU_STREAM_NON_BLOCKING as u32;
            check(
                "cuStreamCreateWithPriority",
                sys::cuStreamCreateWithPriority(&raw mut raw, flags, priority),
            )?;
        }
        Ok(Self {
            gpu: Rc::clone(gpu),
            raw,
        })
    }

    /// The GPU it belongs to.
    pub const fn gpu(&self) -> &Rc<Gpu> {
        &self.gpu
    }

    /// Whether all its work is done.
    ///
    /// # Errors
    /// The driver's, which may come from earlier work on the GPU.
    pub fn is_idle(&self) -> Result<bool, GpuError> {
        self.gpu.enter()?;
        // SAFETY: a live stream.
        match unsafe { sys::cuStreamQuery(self.raw) } {
            CUresult::CUDA_ERROR_NOT_READY => Ok(false),
            code => check("cuStreamQuery", code).map(|()| true),
        }
    }

    /// Polls until all its work is done.
    ///
    /// # Errors
    /// [`GpuError::Timeout`] after `limit`; the GPU is lost then.
    pub fn finish(&self, limit: Duration, what: &str) -> Result<(), GpuError> {
        poll(&self.gpu, limit, what, || self.is_idle())
    }

    /// Records an event of the same GPU.
    ///
    /// # Errors
    /// The driver's.
    pub fn record(&self, event: &Event) -> Result<(), GpuError> {
        self.gpu.enter()?;
        // SAFETY: live handles; the driver refuses an event of another context.
        check("cuEventRecord", unsafe {
            sys::cuEventRecord(event.raw(), self.raw)
        })
    }

    /// While recording a graph: lets every launch of the graph record the event here.
    ///
    /// # Errors
    /// The driver's, also when nothing is being recorded.
    pub fn record_in_graph(&self, event: &Event) -> Result<(), GpuError> {
        self.gpu.enter()?;
        let flags = CUevent_record_flags::CU_EVENT_RECORD_EXTERNAL as u32;
        // SAFETY: live handles, a known flag; the event outlives the graph's launches, or else the
        // driver refuses them.
        check("cuEventRecordWithFlags", unsafe {
            sys::cuEventRecordWithFlags(event.raw(), self.raw, flags)
        })
    }

    /// Lets what follows wait for an event, of any GPU.
    ///
    /// # Errors
    /// The driver's.
    pub fn wait(&self, event: &Event) -> Result<(), GpuError> {
        self.gpu.enter()?;
        // SAFETY: live handles; 0 is the default flag.
        check("cuStreamWaitEvent", unsafe {
            sys::cuStreamWaitEvent(self.raw, event.raw(), 0)
        })
    }

    /// Writes `value` to a 4-byte flag after all that precedes, visible with it.
    ///
    /// # Errors
    /// The driver's.
    pub fn write_value(&self, flag: Region, value: u32) -> Result<(), GpuError> {
        let address = flag.need("cuStreamWriteValue32", 4)?;
        self.gpu.enter()?;
        let flags = Write::CU_STREAM_WRITE_VALUE_DEFAULT as u32;
        // SAFETY: an address with 4 bytes left.
        check("cuStreamWriteValue32", unsafe {
            sys::cuStreamWriteValue32_v2(self.raw, address, value, flags)
        })
    }

    /// Holds what follows until the 4-byte flag is at least `value` in cyclic order.
    ///
    /// Has no limit of its own: a watchdog must be able to open it.
    ///
    /// # Errors
    /// The driver's.
    pub fn wait_value(&self, flag: Region, value: u32) -> Result<(), GpuError> {
        let address = flag.need("cuStreamWaitValue32", 4)?;
        self.gpu.enter()?;
        let flags = Wait::CU_STREAM_WAIT_VALUE_GEQ as u32;
        // SAFETY: an address with 4 bytes left.
        check("cuStreamWaitValue32", unsafe {
            sys::cuStreamWaitValue32_v2(self.raw, address, value, flags)
        })
    }

    /// Records what follows on this stream, and on streams that it forks to by events, as a graph.
    ///
    /// # Errors
    /// The driver's.
    pub fn begin_capture(&self) -> Result<(), GpuError> {
        self.gpu.enter()?;
        // One thread issues everything, so other work of the process is no danger to a capture.
        let mode = CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_RELAXED;
        // SAFETY: a live stream.
        check("cuStreamBeginCapture", unsafe {
            sys::cuStreamBeginCapture_v2(self.raw, mode)
        })
    }

    /// Ends the recording; every forked stream must have been joined by an event.
    ///
    /// # Errors
    /// The driver's, also for what was not allowed while recording.
    pub fn end_capture(&self) -> Result<Graph, GpuError> {
        self.gpu.enter()?;
        let mut graph = ptr::null_mut();
        // SAFETY: a live stream, a valid pointer.
        check("cuStreamEndCapture", unsafe {
            sys::cuStreamEndCapture(self.raw, &raw mut graph)
        })?;
        Ok(Graph::from_raw(&self.gpu, graph))
    }

    pub(super) const fn raw(&self) -> CUstream {
        self.raw
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        if !self.gpu.is_lost() && self.gpu.enter().is_ok() {
            // SAFETY: a live stream, destroyed once; its work goes on by itself.
            let _ = unsafe { sys::cuStreamDestroy_v2(self.raw) };
        }
    }
}

/// Asks until `done` says yes: without pause at first, so that short work is seen at once. Whether it
/// does within `limit`.
///
/// # Errors
/// Those of `done`.
pub fn patiently(
    limit: Duration,
    done: impl Fn() -> Result<bool, GpuError>,
) -> Result<bool, GpuError> {
    const EAGER: Duration = Duration::from_millis(2);
    let begin = Instant::now();
    while !done()? {
        let passed = begin.elapsed();
        if passed > limit {
            return Ok(false);
        }
        match passed > EAGER {
            true => std::thread::sleep(Duration::from_micros(50)),
            false => std::hint::spin_loop(),
        }
    }
    Ok(true)
}

/// The same; a GPU that does not answer in time is lost.
pub(super) fn poll(
    gpu: &Gpu,
    limit: Duration,
    what: &str,
    done: impl Fn() -> Result<bool, GpuError>,
) -> Result<(), GpuError> {
    match patiently(limit, done)? {
        true => Ok(()),
        false => {
            gpu.lose();
            Err(GpuError::Timeout {
                what: what.to_owned(),
                limit,
            })
        }
    }
}
