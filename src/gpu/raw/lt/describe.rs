//! Descriptions of products, as the library wants them.

use std::ffi::c_void;
use std::ptr;

use cudarc::cublaslt::sys::{
    self, cublasComputeType_t as ComputeType, cublasLtMatmulDesc_t,
    cublasLtMatmulDescAttributes_t as Desc, cublasLtMatmulPreference_t,
    cublasLtMatmulPreferenceAttributes_t as Pref, cublasLtMatrixLayout_t, cudaDataType,
};

use super::{Problem, check};
use crate::device::DType;
use crate::gpu::GpuError;

/// The library's description of a product.
#[derive(Debug)]
pub struct Matmul {
    pub(super) problem: Problem,
    pub(super) desc: cublasLtMatmulDesc_t,
    pub(super) a: cublasLtMatrixLayout_t,
    pub(super) b: cublasLtMatrixLayout_t,
    pub(super) c: cublasLtMatrixLayout_t,
}

impl Matmul {
    /// Describes `problem`.
    ///
    /// # Errors
    /// [`GpuError::Argument`] for an element type other than bf16 and fp16, for an empty matrix and
    /// for a leading dimension below the row; the library's.
    pub fn new(problem: Problem) -> Result<Self, GpuError> {
        let Problem { m, n, k, ld, .. } = problem;
        let dtype = data_type(problem.dtype)?;
        if m.min(n).min(k) == 0 || ld[0] < k || ld[1] < n || ld[2] < n {
            return Err(GpuError::Argument(format!(
                "no GEMM of {m} × {n} × {k} with leading dimensions {ld:?}"
            )));
        }
        let null = ptr::null_mut();
        let mut matmul = Self {
            problem,
            desc: ptr::null_mut(),
            a: null,
            b: null,
            c: null,
        };
        let compute = ComputeType::CUBLAS_COMPUTE_32F;
        // SAFETY: valid pointers, known types.
        check("cublasLtMatmulDescCreate", unsafe {
            sys::cublasLtMatmulDescCreate(&raw mut matmul.desc, compute, cudaDataType::CUDA_R_32F)
        })?;
        if problem.sms > 0 {
            let sms = i32::try_from(problem.sms).unwrap_or(i32::MAX);
            // SAFETY: a live description; the attribute is a 32-bit integer.
            check("cublasLtMatmulDescSetAttribute", unsafe {
                sys::cublasLtMatmulDescSetAttribute(
                    matmul.desc,
                    Desc::CUBLASLT_MATMUL_DESC_SM_COUNT_TARGET,
                    (&raw const sms).cast(),
                    4,
                )
            })?;
        }
        let layout = |layout: &mut cublasLtMatrixLayout_t, rows, cols, ld: u64| {
            let ld = i64::try_from(ld).unwrap_or(i64::MAX);
            // SAFETY: a valid pointer; our rows are the library's columns.
            check("cublasLtMatrixLayoutCreate", unsafe {
                sys::cublasLtMatrixLayoutCreate(layout, dtype, cols, rows, ld)
            })
        };
        layout(&mut matmul.a, m, k, ld[0])?;
        layout(&mut matmul.b, k, n, ld[1])?;
        layout(&mut matmul.c, m, n, ld[2])?;
        Ok(matmul)
    }

    /// What it describes.
    pub const fn problem(&self) -> &Problem {
        &self.problem
    }
}

impl Drop for Matmul {
    fn drop(&mut self) {
        // SAFETY: live descriptions, destroyed once; what was not made is null.
        unsafe {
            for layout in [self.a, self.b, self.c] {
                if !layout.is_null() {
                    let _ = sys::cublasLtMatrixLayoutDestroy(layout);
                }
            }
            if !self.desc.is_null() {
                let _ = sys::cublasLtMatmulDescDestroy(self.desc);
            }
        }
    }
}

fn data_type(dtype: DType) -> Result<cudaDataType, GpuError> {
    match dtype {
        DType::Bf16 => Ok(cudaDataType::CUDA_R_16BF),
        DType::Fp16 => Ok(cudaDataType::CUDA_R_16F),
        DType::Fp8 | DType::Fp32 => Err(GpuError::Argument(format!(
            "GEMMs on real GPUs are bf16 or fp16, not {}",
            dtype.name()
        ))),
    }
}

/// What algorithms may be proposed.
pub(super) struct Preference(pub(super) cublasLtMatmulPreference_t);

impl Preference {
    pub(super) fn new(workspace: u64, align: [u32; 3]) -> Result<Self, GpuError> {
        let mut raw = ptr::null_mut();
        // SAFETY: a valid pointer.
        check("cublasLtMatmulPreferenceCreate", unsafe {
            sys::cublasLtMatmulPreferenceCreate(&raw mut raw)
        })?;
        let preference = Self(raw);
        let set = |attribute, value: *const c_void, bytes| {
            // SAFETY: a live preference; the value has as many bytes as the attribute.
            check("cublasLtMatmulPreferenceSetAttribute", unsafe {
                sys::cublasLtMatmulPreferenceSetAttribute(raw, attribute, value, bytes)
            })
        };
        set(
            Pref::CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES,
            (&raw const workspace).cast(),
            8,
        )?;
        for (attribute, align) in [
            (Pref::CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, &align[1]),
            (Pref::CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, &align[0]),
            (Pref::CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, &align[2]),
            (Pref::CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, &align[2]),
        ] {
            set(attribute, ptr::from_ref(align).cast(), 4)?;
        }
        Ok(preference)
    }
}

impl Drop for Preference {
    fn drop(&mut self) {
        // SAFETY: a live preference, destroyed once.
        let _ = unsafe { sys::cublasLtMatmulPreferenceDestroy(self.0) };
    }
}
