//! What a step works with: streams, memory, kernels of each GPU.

use std::cell::RefCell;
use std::rc::Rc;

use crate::device::DType;
use crate::gpu::data;
use crate::gpu::kernels::{Kernels, Matrix, STATUS_WORDS};
use crate::gpu::lt::Gemms;
use crate::gpu::raw::{Gpu, Memory, Pinned, Priority, Region, Stream};
use crate::gpu::tiles::Tiles;
use crate::gpu::{GpuError, Session};

use super::LIMIT;

/// Bytes of memory of each GPU that steps use.
const ARENA: u64 = 256 << 20;

/// One GPU under test.
pub struct Bench {
    pub gpu: Rc<Gpu>,
    pub kernels: Kernels,
    pub gemms: RefCell<Gemms>,
    pub tiles: RefCell<Tiles>,
    /// Two streams, the second with priority.
    pub streams: [Stream; 2],
    pub arena: Memory,
    pub pinned: Pinned,
}

/// All GPUs under test.
pub struct Benches<'a> {
    pub session: &'a Session,
    pub all: Vec<Bench>,
}

impl<'a> Benches<'a> {
    pub fn new(session: &'a Session) -> Result<Self, GpuError> {
        let all = session
            .gpus()
            .iter()
            .map(|gpu| Bench::new(session, gpu))
            .collect::<Result<_, _>>()?;
        Ok(Self { session, all })
    }

    /// Waits for all streams.
    pub fn finish(&self, what: &str) -> Result<(), GpuError> {
        self.all.iter().try_for_each(|bench| bench.finish(what))
    }
}

impl Bench {
    fn new(session: &Session, gpu: &Rc<Gpu>) -> Result<Self, GpuError> {
        Ok(Self {
            gpu: Rc::clone(gpu),
            kernels: Kernels::new(gpu, session.cache())?,
            gemms: RefCell::new(Gemms::new(gpu)?),
            tiles: RefCell::new(Tiles::new(gpu, session.cache())),
            streams: [
                Stream::new(gpu, Priority::Low)?,
                Stream::new(gpu, Priority::High)?,
            ],
            arena: Memory::new(gpu, ARENA)?,
            pinned: Pinned::new(gpu, 1 << 20)?,
        })
    }

    /// The first stream.
    pub const fn stream(&self) -> &Stream {
        &self.streams[0]
    }

    /// `bytes` of the arena from `offset` on.
    pub fn at(&self, offset: u64, bytes: u64) -> Result<Region, GpuError> {
        self.arena.region().cut(offset, bytes)
    }

    /// A matrix at `offset` of the arena.
    pub fn matrix(&self, offset: u64, ld: u64) -> Result<Matrix, GpuError> {
        let start = self.arena.region().from(offset)?;
        Ok(Matrix { start, ld })
    }

    /// Waits for both streams.
    pub fn finish(&self, what: &str) -> Result<(), GpuError> {
        self.streams
            .iter()
            .try_for_each(|stream| stream.finish(LIMIT, what))
    }

    /// Zeroes the words that waits and flags of a step use.
    pub fn zero(&self, region: Region) -> Result<(), GpuError> {
        self.stream().fill(region, 0)?;
        self.stream().finish(LIMIT, "zeroing memory")
    }

    /// The bytes of the arena from `offset` on.
    pub fn bytes(&self, offset: u64, bytes: u64) -> Result<Vec<u8>, GpuError> {
        let mut data = vec![0; bytes as usize];
        self.arena.download(offset, &mut data)?;
        Ok(data)
    }

    /// 32-bit words of the arena from `offset` on.
    pub fn words(&self, offset: u64, count: u64) -> Result<Vec<u32>, GpuError> {
        let bytes = self.bytes(offset, 4 * count)?;
        let word = |part: &[u8]| u32::from_le_bytes([part[0], part[1], part[2], part[3]]);
        Ok(bytes.chunks_exact(4).map(word).collect())
    }

    /// The elements of a matrix of `rows × cols` at `offset`, row by row.
    pub fn elements(
        &self,
        dtype: DType,
        offset: u64,
        ld: u64,
        (rows, cols): (u64, u64),
    ) -> Result<Vec<f32>, GpuError> {
        let size = dtype.size();
        let bytes = self.bytes(offset, ((rows - 1) * ld + cols) * size)?;
        let all = data::decode_all(dtype, &bytes);
        Ok(all
            .chunks(ld as usize)
            .flat_map(|row| &row[..cols as usize])
            .copied()
            .collect())
    }

    /// Uploads bytes that no two places share, for copies.
    pub fn pattern(&self, offset: u64, bytes: u64, seed: u64) -> Result<Vec<u8>, GpuError> {
        let data: Vec<u8> = (0..bytes)
            .map(|i| (data::sample(seed, i, 0).to_bits() >> 8) as u8)
            .collect();
        self.arena.upload(offset, &data)?;
        Ok(data)
    }
}

/// Place and size of the words that waits report to.
pub const STATUS: u64 = 4 * STATUS_WORDS;

/// An error for a result that is not as expected.
pub fn wrong(text: impl Into<String>) -> GpuError {
    GpuError::Wrong(text.into())
}
