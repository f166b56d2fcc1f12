//! Random matrices as the kernels fill them, element by element on the host, and element types.
//!
//! An element is a function of seed, row and column: `mix` spreads the three over 64 bits, the sum
//! of their four 16-bit parts is nearly normal (mean 0, standard deviation 1.15), and the element
//! type's rounding follows. Integers and powers of two only, so GPU and host agree to the last bit.

use crate::device::DType;
use crate::gpu::GpuError;

/// Mixes a seed and a place, as `kernels/data.cu` does.
const fn mix(seed: u64, row: u64, col: u64) -> u64 {
    let x = seed
        .wrapping_add(row.wrapping_mul(0x9E37_79B9_7F4A_7C15))
        .wrapping_add(col.wrapping_mul(0xD1B5_4A32_D192_ED03));
    let x = (x ^ (x >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let x = (x ^ (x >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    x ^ (x >> 31)
}

/// The element at a place before rounding; exact in fp32.
pub fn sample(seed: u64, row: u64, col: u64) -> f32 {
    let bits = mix(seed, row, col);
    let part = |shift: u32| (bits >> shift & 0xFFFF) as i32;
    (part(0) + part(16) + part(32) + part(48) - 131_070) as f32 / 32768.0
}

/// The element at a place as a matrix of `dtype` holds it.
///
/// # Errors
/// [`GpuError::Argument`] for fp8, which no kernel fills.
pub fn element(dtype: DType, seed: u64, row: u64, col: u64) -> Result<f32, GpuError> {
    round(dtype, sample(seed, row, col))
}

/// `value` rounded to `dtype`, to nearest, ties to even.
///
/// # Errors
/// As [`element`].
pub fn round(dtype: DType, value: f32) -> Result<f32, GpuError> {
    Ok(decode(dtype, encode(dtype, value)?))
}

/// The bits of `value` in `dtype`, in the low bytes.
///
/// # Errors
/// As [`element`].
pub fn encode(dtype: DType, value: f32) -> Result<u32, GpuError> {
    match dtype {
        DType::Bf16 => Ok(to_bf16(value)),
        DType::Fp16 => Ok(to_fp16(value)),
        DType::Fp32 => Ok(value.to_bits()),
        DType::Fp8 => Err(GpuError::Argument(
            "kernels work on bf16, fp16 and fp32, not fp8".to_owned(),
        )),
    }
}

/// The value of the low bits of `bits` in `dtype`; fp8 has none here and gives NaN.
pub fn decode(dtype: DType, bits: u32) -> f32 {
    match dtype {
        DType::Bf16 => f32::from_bits(bits << 16),
        DType::Fp16 => from_fp16(bits),
        DType::Fp32 => f32::from_bits(bits),
        DType::Fp8 => f32::NAN,
    }
}

/// The values of a run of elements, little-endian as GPUs keep them.
pub fn decode_all(dtype: DType, bytes: &[u8]) -> Vec<f32> {
    let word = |part: &[u8]| {
        part.iter()
            .rev()
            .fold(0, |word, &byte| word << 8 | u32::from(byte))
    };
    bytes
        .chunks_exact(dtype.size() as usize)
        .map(|part| decode(dtype, word(part)))
        .collect()
}

fn to_bf16(value: f32) -> u32 {
    let bits = value.to_bits();
    if value.is_nan() {
        return 0x7FFF;
    }
    let even = bits >> 16 & 1;
    ((u64::from(bits) + 0x7FFF + u64::from(even)) >> 16) as u32
}

fn to_fp16(value: f32) -> u32 {
    let sign = value.to_bits() >> 16 & 0x8000;
    let size = value.abs();
    if value.is_nan() {
        return 0x7FFF;
    }
    if size >= 65520.0 {
        return sign | 0x7C00;
    }
    // The spacing of fp16 numbers near `size`; subnormal ones share that of the smallest exponent.
    let exponent = (size.to_bits() >> 23).saturating_sub(127 - 14);
    // Scaling by a power of two is exact, and adding 2^23 rounds to an integer, ties to even. A carry
    // into the next exponent comes out of the sum by itself: normal numbers have 1024 steps and more.
    let steps = (size * 2.0_f32.powi(24 - exponent as i32) + 8_388_608.0) - 8_388_608.0;
    sign | ((exponent << 10) + steps as u32)
}

fn from_fp16(bits: u32) -> f32 {
    let sign = if bits & 0x8000 != 0 { -1.0 } else { 1.0 };
    let (exponent, mantissa) = ((bits >> 10 & 0x1F) as i32, (bits & 0x3FF) as f32);
    sign * match exponent {
        0 => mantissa * 2.0_f32.powi(-24),
        31 if mantissa == 0.0 => f32::INFINITY,
        31 => f32::NAN,
        _ => (1024.0 + mantissa) * 2.0_f32.powi(exponent - 25),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sixteen_bits_go_back_and_forth() {
        for bits in 0..=0xFFFF_u32 {
            for dtype in [DType::Bf16, DType::Fp16] {
                let value = decode(dtype, bits);
                if !value.is_nan() {
                    assert_eq!(encode(dtype, value).unwrap(), bits, "{dtype:?} {value}");
                }
            }
        }
    }

    #[test]
    fn rounding_is_to_nearest_and_ties_to_even() {
        // Between every two neighbours: the middle goes to the even one, what is beside it to the
        // nearer one.
        for dtype in [DType::Bf16, DType::Fp16] {
            let top = if dtype == DType::Bf16 { 0x7F7F } else { 0x7BFF };
            for bits in 0..top {
                let (low, high) = (decode(dtype, bits), decode(dtype, bits + 1));
                let middle = ((f64::from(low) + f64::from(high)) / 2.0) as f32;
                assert_eq!(encode(dtype, middle).unwrap(), bits + (bits & 1));
                let (below, above) = (middle.next_down(), middle.next_up());
                assert_eq!(encode(dtype, below).unwrap(), bits, "{dtype:?} {below}");
                assert_eq!(encode(dtype, above).unwrap(), bits + 1, "{dtype:?} {above}");
            }
        }
        assert_eq!(encode(DType::Fp16, 65520.0).unwrap(), 0x7C00);
        assert_eq!(encode(DType::Fp16, -1e9).unwrap(), 0xFC00);
        assert!(round(DType::Bf16, f32::NAN).unwrap().is_nan());
    }

    #[test]
    fn samples_are_nearly_normal() {
        let n = 1 << 16;
        let values: Vec<f64> = (0..n)
            .map(|i| f64::from(sample(7, i / 256, i % 256)))
            .collect();
        let mean = values.iter().sum::<f64>() / n as f64;
        let variance = values.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / n as f64;
        // The sum of four uniform numbers on [0, 2): variance 4 · 4 / 12.
        assert!(mean.abs() < 0.02, "{mean}");
        assert!((variance - 4.0 / 3.0).abs() < 0.03, "{variance}");
        // Neighbours in a row, in a column and over seeds are not alike.
        for (row, col, seed) in [(0, 1, 7), (1, 0, 7), (0, 0, 8)] {
            let shifted = (0..n).map(|i| f64::from(sample(seed, i / 256 + row, i % 256 + col)));
            let product: f64 = values.iter().zip(shifted).map(|(a, b)| a * b).sum();
            assert!((product / n as f64).abs() < 0.03);
        }
    }
}
