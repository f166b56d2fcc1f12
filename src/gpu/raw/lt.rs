//! cuBLASLt: matrix products with an algorithm of our choice.
//!
//! The library thinks in columns. A row-major `C = A · B` is its column-major `Cᵀ = Bᵀ · Aᵀ`, so B
//! is given as its first operand and A as its second, none transposed; its m is our n.

mod describe;

use std::ffi::c_void;
use std::ptr;
use std::rc::Rc;

use cudarc::cublaslt::sys::{
    self, cublasLtHandle_t, cublasLtMatmulAlgo_t, cublasLtMatmulAlgoConfigAttributes_t as Config,
    cublasStatus_t,
};

pub use describe::Matmul;
use describe::Preference;

use super::{Gpu, Region, Stream, owned};
use crate::device::DType;
use crate::gpu::GpuError;

/// Whether the library can be loaded.
pub fn present() -> bool {
    // SAFETY: loads the library by the loader's own rules; its constructors are sound.
    unsafe { sys::is_culib_present() }
}

/// The library's version: 10000 · major + 100 · minor + patch.
pub fn version() -> u64 {
    // SAFETY: takes nothing, returns a number.
    unsafe { sys::cublasLtGetVersion() as u64 }
}

fn check(call: &'static str, code: cublasStatus_t) -> Result<(), GpuError> {
    match code {
        cublasStatus_t::CUBLAS_STATUS_SUCCESS => Ok(()),
        code => Err(GpuError::Library {
            library: "cuBLASLt",
            call,
            // SAFETY: takes any code, returns a static string.
            text: owned(unsafe { sys::cublasLtGetStatusString(code) }),
        }),
    }
}

/// One product: `C = A · B`, or `C += A · B`, all row-major.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Problem {
    /// Rows of A and C.
    pub m: u64,
    /// Columns of B and C.
    pub n: u64,
    /// Columns of A and rows of B.
    pub k: u64,
    /// Elements from row to row of A, B and C.
    pub ld: [u64; 3],
    /// What the addresses of A, B and C are multiples of, at most 256 bytes.
    pub align: [u32; 3],
    pub dtype: DType,
    /// Whether the product is added to C.
    pub accumulate: bool,
    /// SMs it may count on; 0: all.
    pub sms: u32,
}

/// The library's opaque algorithm.
#[derive(Copy, Clone, Debug, PartialEq)]
pub struct Algo {
    pub words: [u64; 8],
    /// Bytes of workspace it needs.
    pub workspace: u64,
    /// Waves of blocks it takes, as the library counts them.
    pub waves: f32,
}

/// What can be read of an algorithm, as the library numbers it.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct AlgoNumbers {
    pub id: u32,
    pub tile: u32,
    pub stages: u32,
    pub split_k: u32,
    pub reduction: u32,
    pub swizzle: u32,
    pub custom: u32,
    pub inner: u32,
    pub cluster: u32,
}

/// The library's handle on one GPU.
#[derive(Debug)]
pub struct Handle {
    gpu: Rc<Gpu>,
    raw: cublasLtHandle_t,
}

impl Handle {
    /// Starts the library on `gpu`.
    ///
    /// # Errors
    /// The library's.
    pub fn new(gpu: &Rc<Gpu>) -> Result<Self, GpuError> {
        gpu.enter()?;
        let mut raw = ptr::null_mut();
        // SAFETY: current context, valid pointer.
        check("cublasLtCreate", unsafe {
            sys::cublasLtCreate(&raw mut raw)
        })?;
        Ok(Self {
            gpu: Rc::clone(gpu),
            raw,
        })
    }

    /// The GPU it works on.
    pub const fn gpu(&self) -> &Rc<Gpu> {
        &self.gpu
    }

    /// Up to `count` algorithms for `matmul` with at most `workspace` bytes, best guess first.
    ///
    /// # Errors
    /// The library's; [`GpuError::Argument`] when it knows none.
    pub fn heuristics(
        &self,
        matmul: &Matmul,
        workspace: u64,
        count: u32,
    ) -> Result<Vec<Algo>, GpuError> {
        self.gpu.enter()?;
        let preference = Preference::new(workspace, matmul.problem.align)?;
        let count = i32::try_from(count.clamp(1, 256)).unwrap_or(1);
        // SAFETY: plain numbers, for which all bits zero are a value.
        let mut found = vec![unsafe { std::mem::zeroed() }; count as usize];
        let mut got = 0;
        // SAFETY: live handles, room for `count` answers.
        check("cublasLtMatmulAlgoGetHeuristic", unsafe {
            sys::cublasLtMatmulAlgoGetHeuristic(
                self.raw,
                matmul.desc,
                matmul.b,
                matmul.a,
                matmul.c,
                matmul.c,
                preference.0,
                count,
                found.as_mut_ptr(),
                &raw mut got,
            )
        })?;
        found.truncate(usize::try_from(got).unwrap_or(0));
        let algos: Vec<Algo> = found
            .iter()
            .filter(|result: &&sys::cublasLtMatmulHeuristicResult_t| {
                result.state == cublasStatus_t::CUBLAS_STATUS_SUCCESS
            })
            .map(|result| Algo {
                words: result.algo.data,
                workspace: result.workspaceSize as u64,
                waves: result.wavesCount,
            })
            .collect();
        if algos.is_empty() {
            return Err(GpuError::Argument(format!(
                "cuBLASLt has no algorithm for {:?}",
                matmul.problem
            )));
        }
        Ok(algos)
    }

    /// Checks that an algorithm, perhaps read from a file, fits a product; its workspace in bytes.
    ///
    /// # Errors
    /// The library's when it does not fit.
    pub fn fits(&self, matmul: &Matmul, algo: &Algo) -> Result<u64, GpuError> {
        self.gpu.enter()?;
        let raw = cublasLtMatmulAlgo_t { data: algo.words };
        // SAFETY: plain numbers, for which all bits zero are a value.
        let mut result: sys::cublasLtMatmulHeuristicResult_t = unsafe { std::mem::zeroed() };
        // SAFETY: live handles, valid pointers.
        check("cublasLtMatmulAlgoCheck", unsafe {
            sys::cublasLtMatmulAlgoCheck(
                self.raw,
                matmul.desc,
                matmul.b,
                matmul.a,
                matmul.c,
                matmul.c,
                &raw const raw,
                &raw mut result,
            )
        })?;
        Ok(result.workspaceSize as u64)
    }

    /// Enqueues the product on matrices that `matmul` describes.
    ///
    /// # Errors
    /// [`GpuError::Bounds`] for matrices or a workspace too small, and the library's.
    pub fn run(
        &self,
        stream: &Stream,
        matmul: &Matmul,
        algo: &Algo,
        (a, b, c): (Region, Region, Region),
        workspace: Region,
    ) -> Result<(), GpuError> {
        let Problem {
            m,
            n,
            k,
            ld,
            dtype,
            accumulate,
            ..
        } = matmul.problem;
        let size = dtype.size();
        let a = a.matrix("A of a GEMM", (m, k), ld[0], size)?;
        let b = b.matrix("B of a GEMM", (k, n), ld[1], size)?;
        let c = c.matrix("C of a GEMM", (m, n), ld[2], size)?;
        let space = workspace.need("the workspace of a GEMM", algo.workspace)?;
        if stream.gpu().ordinal() != self.gpu.ordinal() {
            return Err(GpuError::Argument(
                "a GEMM in a stream of another GPU".to_owned(),
            ));
        }
        self.gpu.enter()?;
        let raw = cublasLtMatmulAlgo_t { data: algo.words };
        let alpha = 1.0_f32;
        let beta = if accumulate { 1.0_f32 } else { 0.0 };
        let address = |address: u64| address as *mut c_void;
        // SAFETY: live handles; the matrices lie inside their regions; the scalars are read now.
        check("cublasLtMatmul", unsafe {
            sys::cublasLtMatmul(
                self.raw,
                matmul.desc,
                (&raw const alpha).cast(),
                address(b),
                matmul.b,
                address(a),
                matmul.a,
                (&raw const beta).cast(),
                address(c),
                matmul.c,
                address(c),
                matmul.c,
                &raw const raw,
                address(space),
                workspace.bytes() as usize,
                stream.raw().cast(),
            )
        })
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        if !self.gpu.is_lost() && self.gpu.enter().is_ok() {
            // SAFETY: a live handle, destroyed once.
            let _ = unsafe { sys::cublasLtDestroy(self.raw) };
        }
    }
}

/// What the numbers of an algorithm are; those the library version does not know are 0.
pub fn numbers(algo: &Algo) -> AlgoNumbers {
    let raw = cublasLtMatmulAlgo_t { data: algo.words };
    let get = |attribute, bytes| {
        let mut value = 0_u32;
        // SAFETY: a valid algorithm, room for the 2 or 4 bytes of the attribute.
        let code = unsafe {
            sys::cublasLtMatmulAlgoConfigGetAttribute(
                &raw const raw,
                attribute,
                (&raw mut value).cast(),
                bytes,
                ptr::null_mut(),
            )
        };
        match code {
            cublasStatus_t::CUBLAS_STATUS_SUCCESS => value,
            _ => 0,
        }
    };
    AlgoNumbers {
        id: get(Config::CUBLASLT_ALGO_CONFIG_ID, 4),
        tile: get(Config::CUBLASLT_ALGO_CONFIG_TILE_ID, 4),
        stages: get(Config::CUBLASLT_ALGO_CONFIG_STAGES_ID, 4),
        split_k: get(Config::CUBLASLT_ALGO_CONFIG_SPLITK_NUM, 4),
        reduction: get(Config::CUBLASLT_ALGO_CONFIG_REDUCTION_SCHEME, 4),
        swizzle: get(Config::CUBLASLT_ALGO_CONFIG_CTA_SWIZZLING, 4),
        custom: get(Config::CUBLASLT_ALGO_CONFIG_CUSTOM_OPTION, 4),
        inner: get(Config::CUBLASLT_ALGO_CONFIG_INNER_SHAPE_ID, 2),
        cluster: get(Config::CUBLASLT_ALGO_CONFIG_CLUSTER_SHAPE_ID, 2),
    }
}
