//! One function for each kernel on data, which checks what it launches.

use super::{
    COMPARE_BLOCKS, COMPARE_BYTES, DIFFERENCE, DTYPES, Difference, GpuError, Kernels, MOST, Matrix,
    Tells, UNITS,
};
use crate::device::DType;
use crate::gpu::raw::{Args, Copy2d, Kernel, Launch, Region, Stream};

impl Kernels {
    /// Copies a rectangle of bytes with `blocks` blocks, one per SM.
    ///
    /// # Errors
    /// [`GpuError::Bounds`], [`GpuError::Argument`], and the driver's.
    pub fn copy(&self, stream: &Stream, copy: &Copy2d, blocks: u32) -> Result<(), GpuError> {
        match copy.width == 0 || copy.rows == 0 {
            true => Ok(()),
            false => self.copy_by(&self.copy, stream, copy, blocks, Args::default()),
        }
    }

    /// The same, and then sets a flag by itself.
    ///
    /// # Errors
    /// [`GpuError::Bounds`], [`GpuError::Argument`], and the driver's.
    pub fn copy_and_tell(
        &self,
        stream: &Stream,
        copy: &Copy2d,
        blocks: u32,
        tells: &Tells,
    ) -> Result<(), GpuError> {
        let args = Args::default()
            .u64(tells.done.need("a count of blocks", 4)?)
            .u64(tells.flag.need("a flag", 4)?);
        let args = tells.epoch.args(args)?;
        let kernels = match blocks > 0 && blocks.is_multiple_of(2) {
            true => &self.tell_pair,
            false => &self.tell,
        };
        self.copy_by(kernels, stream, copy, blocks, args)
    }

    /// Copies by one of `kernels`, by the bytes of an access; `more` are its further arguments.
    fn copy_by(
        &self,
        kernels: &[Kernel],
        stream: &Stream,
        copy: &Copy2d,
        blocks: u32,
        more: Args,
    ) -> Result<(), GpuError> {
        let Copy2d { width, rows, .. } = *copy;
        if rows > 1 && (copy.from_pitch < width || copy.to_pitch < width) {
            return Err(GpuError::Argument(format!(
                "a copy of rows of {width} bytes with pitches of {} and {} bytes",
                copy.from_pitch, copy.to_pitch
            )));
        }
        let from = copy
            .from
            .matrix("a copy kernel", (rows, width), copy.from_pitch, 1)?;
        let to = copy
            .to
            .matrix("a copy kernel", (rows, width), copy.to_pitch, 1)?;
        let gapless = copy.from_pitch == width && copy.to_pitch == width;
        let (width, rows) = match gapless {
            true => (width * rows, 1),
            false => (width, rows),
        };
        let pitches = match rows {
            1 => [0, 0],
            _ => [copy.from_pitch, copy.to_pitch],
        };
        let kernel = &kernels[unit(&[from, to, pitches[0], pitches[1]])];
        let args = Args::default()
            .u64(to)
            .u64(copy.to_pitch)
            .u64(from)
            .u64(copy.from_pitch)
            .u64(width)
            .u64(rows)
            .and(more);
        kernel.launch(stream, Launch::row(blocks.max(1), 1024), &args)
    }

    /// `out` = the sum of up to [`MOST`] matrices of `rows × cols`, with `blocks` blocks (0: as many
    /// as the GPU holds).
    ///
    /// # Errors
    /// [`GpuError::Bounds`], [`GpuError::Argument`], and the driver's.
    pub fn add(
        &self,
        stream: &Stream,
        dtype: DType,
        inputs: &[Matrix],
        out: Matrix,
        (rows, cols): (u64, u64),
        blocks: u32,
    ) -> Result<(), GpuError> {
        let kind = kind(dtype)?;
        if inputs.is_empty() || inputs.len() > MOST {
            return Err(GpuError::Argument(format!(
                "a sum of {} matrices: one launch adds 1 to {MOST}",
                inputs.len()
            )));
        }
        let size = dtype.size();
        let mut table = [0; 2 * MOST];
        let mut parts = Vec::new();
        for (i, matrix) in inputs.iter().chain([&out]).enumerate() {
            let start = matrix
                .start
                .matrix("a sum", (rows, cols), matrix.ld, size)?;
            parts.extend([start, matrix.ld * size]);
            if i < inputs.len() {
                table[i] = start;
                table[MOST + i] = matrix.ld;
            }
        }
        let start = out.start.address();
        let kernel = match unit(&parts) {
            0 => &self.add_wide[kind],
            _ => &self.add[kind],
        };
        let args = Args::default()
            .words(&table)
            .u64(inputs.len() as u64)
            .u64(start)
            .u64(out.ld)
            .u64(rows)
            .u64(cols);
        let blocks = match blocks {
            0 => 4 * self.gpu.attributes().sms,
            some => some,
        };
        kernel.launch(stream, Launch::row(blocks, 512), &args)
    }

    /// Fills `rows × cols` elements with random numbers, those of the places from `origin` on; see
    /// [`crate::gpu::data::element`].
    ///
    /// # Errors
    /// [`GpuError::Bounds`], [`GpuError::Argument`], and the driver's.
    pub fn fill(
        &self,
        stream: &Stream,
        dtype: DType,
        matrix: Matrix,
        (rows, cols): (u64, u64),
        seed: u64,
        origin: (u64, u64),
    ) -> Result<(), GpuError> {
        let size = dtype.size();
        let start = matrix
            .start
            .matrix("a fill", (rows, cols), matrix.ld, size)?;
        let args = Args::default()
            .u64(start)
            .u64(matrix.ld)
            .u64(rows)
            .u64(cols)
            .u64(seed)
            .u64(origin.0)
            .u64(origin.1);
        let blocks = 4 * self.gpu.attributes().sms;
        self.fill[kind(dtype)?].launch(stream, Launch::row(blocks, 512), &args)
    }

    /// Compares `x` with `y`, both `rows × cols`; `results` takes [`COMPARE_BYTES`], which
    /// [`Self::difference`] reads.
    ///
    /// # Errors
    /// [`GpuError::Bounds`], [`GpuError::Argument`], and the driver's.
    pub fn compare(
        &self,
        stream: &Stream,
        dtype: DType,
        (x, y): (Matrix, Matrix),
        (rows, cols): (u64, u64),
        results: Region,
    ) -> Result<(), GpuError> {
        let size = dtype.size();
        let args = Args::default()
            .u64(x.start.matrix("x", (rows, cols), x.ld, size)?)
            .u64(x.ld)
            .u64(y.start.matrix("y", (rows, cols), y.ld, size)?)
            .u64(y.ld)
            .u64(rows)
            .u64(cols)
            .u64(results.need("the results of a comparison", COMPARE_BYTES)?);
        self.compare[kind(dtype)?].launch(stream, Launch::row(COMPARE_BLOCKS, 512), &args)
    }

    /// Adds up what [`Self::compare`] left, in a fixed order; `cols` as given there.
    pub fn difference(results: &[u8], cols: u64) -> Difference {
        let (mut squared, mut reference) = (0.0, 0.0);
        let (mut worst, mut place) = (-1.0, u64::MAX);
        for block in results.chunks_exact(DIFFERENCE as usize) {
            let word = |i: usize| {
                let mut bytes = [0; 8];
                bytes.copy_from_slice(&block[8 * i..8 * i + 8]);
                u64::from_le_bytes(bytes)
            };
            squared += f64::from_bits(word(0));
            reference += f64::from_bits(word(1));
            let (bad, at) = (f64::from_bits(word(2)), word(3));
            if bad > worst || (bad == worst && at < place) {
                (worst, place) = (bad, at);
            }
        }
        let cols = cols.max(1);
        Difference {
            relative: match squared {
                0.0 => 0.0,
                _ => (squared / reference).sqrt(),
            },
            off: squared.sqrt(),
            norm: reference.sqrt(),
            worst: worst.max(0.0),
            place: match place {
                u64::MAX => (0, 0),
                _ => (place / cols, place % cols),
            },
        }
    }
}

/// Index into [`UNITS`] of the widest access that divides all addresses and pitches.
fn unit(parts: &[u64]) -> usize {
    let all = parts.iter().fold(0, |all, part| all | part);
    UNITS
        .iter()
        .position(|unit| all % unit == 0)
        .unwrap_or(UNITS.len() - 1)
}

fn kind(dtype: DType) -> Result<usize, GpuError> {
    DTYPES
        .iter()
        .position(|known| *known == dtype)
        .ok_or_else(|| {
            GpuError::Argument(format!(
                "kernels work on bf16, fp16 and fp32, not {}",
                dtype.name()
            ))
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn accesses_are_as_wide_as_all_addresses_and_pitches_allow() {
        assert_eq!(UNITS[unit(&[256, 4096, 1024, 0])], 16);
        assert_eq!(UNITS[unit(&[256, 4104])], 8);
        assert_eq!(UNITS[unit(&[256, 4100])], 4);
        assert_eq!(UNITS[unit(&[256, 2, 4096])], 2);
        assert_eq!(UNITS[unit(&[255, 4096])], 1);
    }

    #[test]
    fn differences_are_summed_and_the_first_worst_is_named() {
        let block = |squared: f64, reference: f64, worst: f64, place: u64| {
            [
                squared.to_bits(),
                reference.to_bits(),
                worst.to_bits(),
                place,
            ]
            .map(u64::to_le_bytes)
            .concat()
        };
        let results = [
            block(1.0, 30.0, 0.5, 25),
            block(0.0, 0.0, -1.0, u64::MAX),
            block(3.0, 34.0, 0.5, 13),
        ]
        .concat();
        let found = Kernels::difference(&results, 10);
        // √(4 / 64).
        assert_eq!((found.relative, found.off, found.norm), (0.25, 2.0, 8.0));
        assert_eq!((found.worst, found.place), (0.5, (1, 3)));
        let same = Kernels::difference(&block(0.0, 0.0, 0.0, 0), 10);
        assert_eq!((same.relative, same.worst), (0.0, 0.0));
    }
}
