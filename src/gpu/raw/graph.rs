//! Graphs: recorded work that is launched at once.

use std::ptr;
use std::rc::Rc;

use cudarc::driver::sys::{self, CUgraph, CUgraphExec};

use super::{Gpu, Stream, check};
use crate::gpu::GpuError;

/// Recorded work, possibly on several GPUs.
#[derive(Debug)]
pub struct Graph {
    gpu: Rc<Gpu>,
    raw: CUgraph,
}

impl Graph {
    pub(super) fn from_raw(gpu: &Rc<Gpu>, raw: CUgraph) -> Self {
        Self {
            gpu: Rc::clone(gpu),
            raw,
        }
    }

    /// Number of nodes.
    ///
    /// # Errors
    /// The driver's.
    pub fn nodes(&self) -> Result<usize, GpuError> {
        let mut count = 0;
        // SAFETY: a live graph; null asks for the number only.
        check("cuGraphGetNodes", unsafe {
            sys::cuGraphGetNodes(self.raw, ptr::null_mut(), &raw mut count)
        })?;
        Ok(count)
    }

    /// Makes it ready to launch.
    ///
    /// # Errors
    /// The driver's, e.g. for nodes it cannot put into one graph.
    pub fn instantiate(&self) -> Result<GraphExec, GpuError> {
        self.gpu.enter()?;
        let mut raw = ptr::null_mut();
        // SAFETY: a live graph, a valid pointer, no flags.
        check("cuGraphInstantiate", unsafe {
            sys::cuGraphInstantiateWithFlags(&raw mut raw, self.raw, 0)
        })?;
        Ok(GraphExec {
            gpu: Rc::clone(&self.gpu),
            raw,
        })
    }
}

impl Drop for Graph {
    fn drop(&mut self) {
        if !self.gpu.is_lost() {
            // SAFETY: a live graph, destroyed once.
            let _ = unsafe { sys::cuGraphDestroy(self.raw) };
        }
    }
}

/// A graph that can be launched again and again.
#[derive(Debug)]
pub struct GraphExec {
    gpu: Rc<Gpu>,
    raw: CUgraphExec,
}

impl GraphExec {
    /// Sends it to the GPU ahead of the first launch.
    ///
    /// # Errors
    /// The driver's.
    pub fn upload(&self, stream: &Stream) -> Result<(), GpuError> {
        stream.gpu().enter()?;
        // SAFETY: live handles.
        check("cuGraphUpload", unsafe {
            sys::cuGraphUpload(self.raw, stream.raw())
        })
    }

    /// Launches all of it in `stream`'s order.
    ///
    /// # Errors
    /// The driver's.
    pub fn launch(&self, stream: &Stream) -> Result<(), GpuError> {
        stream.gpu().enter()?;
        // SAFETY: live handles.
        check("cuGraphLaunch", unsafe {
            sys::cuGraphLaunch(self.raw, stream.raw())
        })
    }
}

impl Drop for GraphExec {
    fn drop(&mut self) {
        if !self.gpu.is_lost() {
            // SAFETY: a live executable graph, destroyed once.
            let _ = unsafe { sys::cuGraphExecDestroy(self.raw) };
        }
    }
}
