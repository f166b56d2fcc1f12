//! What a check found, and the float64 value of an element.

use super::{Source, seed_of};
use crate::device::DType;
use crate::gpu::GpuError;
use crate::gpu::data::element;
use crate::schedule::{Schedule, TensorId};

/// The worst that was found in the outputs of one run.
#[derive(Clone, Debug, PartialEq)]
pub struct Verdict {
    /// ‖x − y‖ / ‖y‖ of the buffer that comes nearest to its bound.
    pub relative: f64,
    /// The bound there.
    pub bound: f64,
    /// Elements compared with float64 on the host.
    pub spots: u32,
    /// The first thing that is wrong, in words.
    pub wrong: Option<String>,
}

impl Verdict {
    /// Nothing found yet.
    pub const fn new() -> Self {
        Self {
            relative: 0.0,
            bound: 0.0,
            spots: 0,
            wrong: None,
        }
    }

    /// Takes another buffer's error into account.
    pub fn note(&mut self, relative: f64, bound: f64) {
        // Cross-multiplied, because bounds may be 0.
        let nearer = relative * self.bound >= self.relative * bound;
        if nearer || relative.is_nan() {
            (self.relative, self.bound) = (relative, bound);
        }
    }

    /// Takes the first fault down.
    pub fn fault(&mut self, text: impl FnOnce() -> String) {
        if self.wrong.is_none() {
            self.wrong = Some(text());
        }
    }

    /// Right, or the fault as an error.
    ///
    /// # Errors
    /// [`GpuError::Wrong`].
    pub fn require(&self) -> Result<(), GpuError> {
        match &self.wrong {
            None => Ok(()),
            Some(text) => Err(GpuError::Wrong(text.clone())),
        }
    }
}

impl Default for Verdict {
    fn default() -> Self {
        Self::new()
    }
}

/// An element of the complete tensor in float64, from inputs rounded to the element type.
///
/// # Errors
/// [`GpuError::Argument`] for an element type that cannot be filled.
pub fn exact(
    schedule: &Schedule,
    sources: &[Source],
    seed: u64,
    tensor: TensorId,
    (row, col): (u64, u64),
) -> Result<f64, GpuError> {
    let dtype: DType = schedule.operator.dtype;
    match sources[tensor.index()] {
        Source::Drawn { contributions } => (0..contributions)
            .map(|c| {
                Ok(f64::from(element(
                    dtype,
                    seed_of(seed, tensor, c),
                    row,
                    col,
                )?))
            })
            .sum(),
        Source::Product { a, b, .. } => {
            let k = u64::from(schedule.tensors[a.index()].cols);
            let (a, b) = (seed_of(seed, a, 0), seed_of(seed, b, 0));
            (0..k)
                .map(|i| {
                    let x = f64::from(element(dtype, a, row, i)?);
                    Ok(x * f64::from(element(dtype, b, i, col)?))
                })
                .sum()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_to_its_bound_is_kept_and_nan_always() {
        let mut verdict = Verdict::new();
        verdict.note(0.0, 0.0);
        verdict.note(1e-3, 4e-3);
        verdict.note(2e-3, 1e-2);
        assert_eq!((verdict.relative, verdict.bound), (1e-3, 4e-3));
        verdict.note(f64::NAN, 1e-2);
        assert!(verdict.relative.is_nan());
        verdict.fault(|| "first".to_owned());
        verdict.fault(|| "second".to_owned());
        let error = verdict.require().unwrap_err().to_string();
        assert_eq!(error, "wrong result: first");
    }
}
