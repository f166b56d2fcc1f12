//! How far a right result may be from the reference.

use super::Source;
use crate::device::DType;
use crate::gpu::kernels::Difference;

/// Bounds on the outputs of one tensor; the formulas are in [`super`].
#[derive(Copy, Clone, Debug, PartialEq)]
pub struct Bound {
    /// On ‖x − y‖ / ‖y‖ without the factor for few elements; 0: the same bits.
    relative: f64,
    /// On |xᵢ − yᵢ|.
    pub element: f64,
    /// Standard deviation of an element; 0 for what is copied.
    deviation: f64,
}

impl Bound {
    /// For a tensor; `k` is the inner dimension of a product.
    pub fn new(dtype: DType, source: Source, k: u32) -> Self {
        let u = unit_roundoff(dtype);
        let (roundings, variance, inside) = match source {
            Source::Drawn { contributions: 1 } => (0.0, 0.0, 0.0),
            Source::Drawn { contributions } => {
                let parts = f64::from(contributions);
                (parts, parts * 4.0 / 3.0, 0.0)
            }
            Source::Product { parts, .. } => {
                let k = f64::from(k);
                let inside = k.sqrt() * 2.0_f64.powi(-24);
                (f64::from(parts), k * 16.0 / 9.0, inside)
            }
        };
        if roundings == 0.0 {
            return Self {
                relative: 0.0,
                element: 0.0,
                deviation: 0.0,
            };
        }
        Self {
            relative: u * (1.0 + roundings).sqrt() + inside,
            element: (u * (1.0 + roundings) + inside) * 7.0 * variance.sqrt(),
            deviation: variance.sqrt(),
        }
    }

    /// What is bounded, of a comparison of `elements` elements: ‖x − y‖ / max(‖y‖, σ √N).
    pub fn measured(&self, found: &Difference, elements: u64) -> f64 {
        match self.deviation {
            0.0 => found.relative,
            deviation => found.off / found.norm.max(deviation * (elements as f64).sqrt()),
        }
    }

    /// On that of `elements` elements.
    pub fn relative(&self, elements: u64) -> f64 {
        self.relative * (1.0 + (8.0 / elements.max(1) as f64).sqrt())
    }
}

/// Largest relative error of rounding to nearest: 2⁻ᵖ for p bits of significand.
fn unit_roundoff(dtype: DType) -> f64 {
    let bits = match dtype {
        DType::Bf16 => 8,
        DType::Fp16 => 11,
        DType::Fp32 => 24,
        DType::Fp8 => 4,
    };
    2.0_f64.powi(-bits)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gpu::data::{element, round};
    use crate::schedule::TensorId;

    /// Sums of `parts` products over k, rounded as a ring of ranks rounds them.
    fn errors(dtype: DType, parts: u64, k: u64, elements: u64, lose: bool) -> (f64, f64) {
        let (mut squared, mut reference, mut worst) = (0.0, 0.0, 0.0_f64);
        for e in 0..elements {
            let mut running = 0.0_f32;
            let mut exact = 0.0_f32;
            for part in 0..parts {
                let products = (part * k / parts..(part + 1) * k / parts)
                    .map(|i| element(dtype, 3, e, i).unwrap() * element(dtype, 4, i, e).unwrap());
                let sum: f32 = products.sum();
                exact += sum;
                if !(lose && part == 1) {
                    let sum = round(dtype, sum).unwrap();
                    running = round(dtype, running + sum).unwrap();
                }
            }
            let y = f64::from(round(dtype, exact).unwrap());
            let d = f64::from(running) - y;
            squared += d * d;
            reference += y * y;
            worst = worst.max(d.abs());
        }
        ((squared / reference).sqrt(), worst)
    }

    #[test]
    fn right_results_pass_and_a_lost_part_does_not() {
        for dtype in [DType::Bf16, DType::Fp16] {
            for parts in [1, 2, 8] {
                for elements in [1, 7, 500] {
                    let source = Source::Product {
                        a: TensorId(0),
                        b: TensorId(1),
                        parts: parts as u32,
                    };
                    let bound = Bound::new(dtype, source, 256);
                    let (relative, worst) = errors(dtype, parts, 256, elements, false);
                    assert!(relative <= bound.relative(elements), "{relative} {bound:?}");
                    assert!(worst <= bound.element, "{worst} {bound:?}");
                    let (relative, _) = errors(dtype, parts, 256, elements, true);
                    let caught = relative > bound.relative(elements);
                    assert!(caught || parts == 1 || elements < 500);
                }
            }
        }
    }

    #[test]
    fn copies_must_be_the_same_bits_and_nan_never_passes() {
        let copy = Bound::new(DType::Bf16, Source::Drawn { contributions: 1 }, 0);
        assert_eq!((copy.relative(1), copy.element), (0.0, 0.0));
        let sum = Bound::new(DType::Fp32, Source::Drawn { contributions: 8 }, 0);
        // 2^-24 · √9 for many elements.
        let many = sum.relative(u64::MAX);
        assert!((many - 3.0 * 2.0_f64.powi(-24)).abs() < 1e-12);
        let passes = |error: f64| error <= sum.relative(10);
        assert!(!passes(f64::NAN) && passes(0.0));
    }

    #[test]
    fn terms_that_cancel_are_no_error() {
        let bound = Bound::new(DType::Bf16, Source::Drawn { contributions: 4 }, 0);
        // One sum of four draws that is nearly nothing, off by a rounding of its terms.
        let found = |off: f64, norm: f64| Difference {
            relative: off / norm,
            off,
            norm,
            worst: off,
            place: (0, 0),
        };
        let found = found(6.8e-3, 0.16);
        assert!(found.relative > bound.relative(1));
        let sigma = (4.0_f64 * 4.0 / 3.0).sqrt();
        assert!((bound.measured(&found, 1) - 6.8e-3 / sigma).abs() < 1e-12);
        // Many elements cannot all cancel: it is their norm that counts.
        let many = Difference {
            norm: 2.0 * sigma * 100.0,
            ..found
        };
        assert_eq!(bound.measured(&many, 10_000), many.off / many.norm);
        let copied = Bound::new(DType::Bf16, Source::Drawn { contributions: 1 }, 0);
        assert_eq!(copied.measured(&found, 1), found.relative);
        let missing = Difference {
            off: f64::NAN,
            ..found
        };
        assert!(bound.measured(&missing, 1).is_nan());
    }
}
