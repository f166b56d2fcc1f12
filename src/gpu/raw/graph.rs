//! Graphs: recorded work that is launched at once.

use std::mem::MaybeUninit;
use std::ptr;
use std::rc::Rc;

use cudarc::driver::sys::{
    self, CUDA_KERNEL_NODE_PARAMS, CUgraph, CUgraphExec, CUgraphNodeType, CUkernelNodeAttrID,
    CUkernelNodeAttrValue,
};

use super::{Gpu, Stream, check};
use crate::gpu::GpuError;

/// What a kernel is launched with.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Launched {
    /// Thread blocks.
    pub blocks: u32,
    /// Threads of each block.
    pub threads: u32,
    /// Blocks that begin together, in one group of SMs: a cluster.
    pub cluster: u32,
}

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

    /// What each kernel in it is launched with.
    ///
    /// # Errors
    /// The driver's.
    pub fn kernels(&self) -> Result<Vec<Launched>, GpuError> {
        self.gpu.enter()?;
        let mut count = self.nodes()?;
        let mut nodes = vec![ptr::null_mut(); count];
        // SAFETY: a live graph; room for `count` handles.
        check("cuGraphGetNodes", unsafe {
            sys::cuGraphGetNodes(self.raw, nodes.as_mut_ptr(), &raw mut count)
        })?;
        nodes.truncate(count);
        let mut kernels = Vec::new();
        for node in nodes {
            let mut kind = CUgraphNodeType::CU_GRAPH_NODE_TYPE_EMPTY;
            // SAFETY: a node of a live graph, a valid pointer.
            check("cuGraphNodeGetType", unsafe {
                sys::cuGraphNodeGetType(node, &raw mut kind)
            })?;
            if kind != CUgraphNodeType::CU_GRAPH_NODE_TYPE_KERNEL {
                continue;
            }
            let mut params = MaybeUninit::<CUDA_KERNEL_NODE_PARAMS>::zeroed();
            // SAFETY: a kernel's node of a live graph; the driver fills the structure, all of whose
            // fields may be zero.
            let params = unsafe {
                check(
                    "cuGraphKernelNodeGetParams",
                    sys::cuGraphKernelNodeGetParams_v2(node, params.as_mut_ptr()),
                )?;
                params.assume_init()
            };
            let mut value = MaybeUninit::<CUkernelNodeAttrValue>::zeroed();
            let id = CUkernelNodeAttrID::CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION;
            // SAFETY: as above; of a union of integers the driver fills the one that is asked for.
            let cluster = unsafe {
                check(
                    "cuGraphKernelNodeGetAttribute",
                    sys::cuGraphKernelNodeGetAttribute(node, id, value.as_mut_ptr()),
                )?;
                value.assume_init().clusterDim
            };
            kernels.push(Launched {
                blocks: params.gridDimX * params.gridDimY * params.gridDimZ,
                threads: params.blockDimX * params.blockDimY * params.blockDimZ,
                cluster: (cluster.x * cluster.y * cluster.z).max(1),
            });
        }
        Ok(kernels)
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
