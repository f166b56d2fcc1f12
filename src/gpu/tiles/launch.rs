//! What a launch passes to a kernel: `struct Gemm` of `kernels/gemm_*.cu`.

use std::time::Duration;

use super::fetch::{Brought, FETCH};
use super::near::WORDS as NEAR;
use super::order::{BAND, COMPLETION};
use super::sections::{Section, grouped};
use super::{Does, Family, Gated, Near, Tile, Tiles};
use crate::gpu::GpuError;
use crate::gpu::kernels::{Epoch, STATUS_WORDS};
use crate::gpu::lt::Problem;
use crate::gpu::raw::{Args, Boxes, Launch, Region, Stream};
use crate::schedule::Extent;

/// What the rows of a product wait for.
#[derive(Copy, Clone, Debug)]
pub struct Gate {
    /// The tables that [`order`](super::order()) made for the product's tile.
    pub bands: Region,
    pub sections: Region,
    pub waits: Region,
    /// How they begin.
    pub near: Near,
    /// Of which there may be none.
    pub completions: Option<Region>,
    /// What flags are waited for to have, and what they are set to.
    pub epoch: Epoch,
    /// How long a wait may take.
    pub limit: Duration,
    /// [`STATUS_WORDS`] words, zero before.
    pub status: Region,
    /// The table of [`Tiles::parts`], if C is several.
    pub parts: Option<Region>,
    /// What the kernel brings of A itself.
    pub fetches: Option<Brought>,
}

impl Gate {
    /// What it asks of a kernel.
    pub const fn asks(&self) -> Gated {
        Gated {
            brings: self.fetches.is_some(),
            parted: self.parts.is_some(),
        }
    }
}

/// Rows of a product that go to a place of their own.
#[derive(Copy, Clone, Debug)]
pub struct Part {
    pub rows: Extent,
    pub to: Region,
    /// Elements from row to row.
    pub ld: u64,
    /// Where they may lie on the way, and its elements from row to row, if the place is on another GPU.
    pub here: Option<(Region, u64)>,
    /// Whether they are added to what is there, by kernels that accumulate; these take parts that begin with
    /// a multiple of [`PIECE`] rows.
    pub adds: bool,
}

/// Rows that a group of four warps stores at a time.
pub const PIECE: u32 = 64;

/// What a product is given beside its matrices.
#[derive(Copy, Clone, Debug, Default)]
pub struct Beside<'a> {
    /// What its rows wait for, and who is told of them.
    pub gate: Option<&'a Gate>,
    /// Takes the moments of its tiles, [`MOMENTS`] bytes for each of [`Tile::turns`].
    pub trace: Option<Region>,
    /// SMs that it leaves to others, of those that it might take.
    pub spare: u32,
}

/// Bytes of what is noted of a tile: six times \[ns of the GPU's timer\], the SM, and row and column
/// of its first element (32 bits each).
pub const MOMENTS: u64 = 64;

/// Words of 8 bytes of `struct Gate`.
const GATE: usize = BROUGHT + FETCH as usize / 8 + NEAR;
/// Those before what the kernel brings first.
const BROUGHT: usize = 10;

/// Words of `struct Gate` in a kernel.
pub(super) const fn gate_size(tile: Tile, does: Does) -> usize {
    if tile.gated(does) { GATE } else { 1 }
}

/// Bytes of `struct Part`.
const PART: usize = 384;

impl Tiles {
    /// Enqueues a product by the kernel of `tile`, which is loaded for what is asked.
    ///
    /// # Errors
    /// [`GpuError::Argument`] for one that is not, [`GpuError::Bounds`], and the driver's.
    pub fn launch(
        &self,
        stream: &Stream,
        problem: &Problem,
        tile: Tile,
        matrices: (Region, Region, Region),
        Beside { gate, trace, spare }: Beside<'_>,
    ) -> Result<(), GpuError> {
        let does = Does {
            traced: trace.is_some(),
            gated: gate.map(Gate::asks),
            ..Does::of(problem)
        };
        let Some(kernel) = self.kernels.get(&(tile, does)) else {
            return Err(GpuError::Argument(format!("{tile} was not compiled")));
        };
        let (bands, columns) = tile.grid(problem.m, problem.n);
        let parts = gate.and_then(|gate| gate.parts);
        // Where C is several places, one stands for it.
        let rows = if parts.is_some() { 1 } else { problem.m };
        let [a, b, c] = addresses(problem, rows, matrices)?;
        let ld = problem.ld;
        let mut words = match tile.family {
            Family::Sm90 => self.tensors(problem, rows, tile, matrices)?,
            Family::Sm80 => vec![a, b, c, ld[0], ld[1], ld[2]],
        };
        let sms = match problem.sms {
            0 => self.gpu.attributes().sms,
            some => some.min(self.gpu.attributes().sms),
        };
        let sms = sms.saturating_sub(spare);
        let held = match tile.family {
            Family::Sm90 => 1,
            Family::Sm80 => kernel.blocks_per_sm(tile.threads(), tile.shared())?,
        };
        let cluster = tile.cluster.0 * tile.cluster.1;
        let clusters = u64::from(sms * held.max(1) / cluster).clamp(1, (bands * columns).max(1));
        match gate {
            Some(gate) => words.extend(gate_words(gate, bands, (clusters, u64::from(cluster)))?),
            None => words.resize(words.len() + gate_size(tile, does), 0),
        }
        if let Some(parts) = parts {
            words.push(parts.need("a table of parts", PART as u64)?);
        }
        if tile.family == Family::Sm90 {
            words.extend([c, ld[2]]);
        }
        let pair = |low: u64, high: u64| low | high << 32;
        let group = grouped(bands, tile.band());
        words.extend([pair(problem.m, problem.n), pair(problem.k, group)]);
        words.push(match trace {
            Some(trace) => {
                let bytes = MOMENTS * tile.turns(problem.m, problem.n);
                trace.need("a trace of tiles", bytes)?
            }
            None => 0,
        });
        if tile.family == Family::Sm90 {
            // The structure's alignment of 64 bytes counts at its end too.
            words.resize(words.len().next_multiple_of(8), 0);
        }
        let size = Launch {
            grid: (clusters as u32 * cluster, 1),
            block: tile.threads(),
            shared: tile.shared(),
        };
        kernel.launch(stream, size, &Args::default().words(&words))
    }

    /// The table of parts of a product, which are its rows from the top without gaps.
    ///
    /// # Errors
    /// [`GpuError::Argument`] for a part that adds and begins within a piece, [`GpuError::Bounds`], and the
    /// driver's.
    pub fn parts(
        &self,
        problem: &Problem,
        tile: Tile,
        parts: &[Part],
    ) -> Result<Vec<u8>, GpuError> {
        let mut table = Vec::with_capacity(PART * parts.len());
        for part in parts {
            if problem.accumulate && !part.rows.start.is_multiple_of(PIECE) {
                return Err(GpuError::Argument(format!(
                    "a part of a sum that begins with row {}, which is no multiple of {PIECE}",
                    part.rows.start
                )));
            }
            let shape = (u64::from(part.rows.len), problem.n);
            let start = part
                .to
                .matrix("a part of C", shape, part.ld, problem.dtype.size())?;
            let map = |(start, ld)| match tile.family {
                Family::Sm90 => {
                    let boxes = Boxes {
                        start,
                        shape,
                        ld,
                        dtype: problem.dtype,
                        rows: 64,
                    };
                    boxes.encode(&self.gpu, "a part of C")
                }
                Family::Sm80 => Ok([0; 16]),
            };
            let mut words = map((part.to, part.ld))?.to_vec();
            words.extend(part.here.map_or(Ok([0; 16]), map)?);
            let rows = u64::from(part.rows.start) | u64::from(part.rows.len) << 32;
            let flags = u64::from(part.adds) | u64::from(part.here.is_some()) << 32;
            words.extend([start, part.ld, rows, flags]);
            words.resize(PART / 8, 0);
            table.extend(words.iter().flat_map(|word| word.to_le_bytes()));
        }
        Ok(table)
    }

    /// The matrices as the tensor copy engine sees them, of C so many rows.
    fn tensors(
        &self,
        problem: &Problem,
        rows: u64,
        tile: Tile,
        (a, b, c): (Region, Region, Region),
    ) -> Result<Vec<u64>, GpuError> {
        let Problem { m, n, k, ld, .. } = *problem;
        let encode = |what, start, shape, ld, rows| {
            let dtype = problem.dtype;
            Boxes {
                start,
                shape,
                ld,
                dtype,
                rows,
            }
            .encode(&self.gpu, what)
        };
        let mut words = Vec::with_capacity(64);
        words.extend(encode("A", a, (m, k), ld[0], tile.rows / tile.cluster.1)?);
        words.extend(encode("B", b, (k, n), ld[1], 64)?);
        words.extend(encode("C", c, (rows, n), ld[2], 64)?);
        Ok(words)
    }
}

/// Where the matrices begin; C has so many rows.
fn addresses(
    problem: &Problem,
    rows: u64,
    (a, b, c): (Region, Region, Region),
) -> Result<[u64; 3], GpuError> {
    let Problem { m, n, k, ld, .. } = *problem;
    let size = problem.dtype.size();
    Ok([
        a.matrix("A", (m, k), ld[0], size)?,
        b.matrix("B", (k, n), ld[1], size)?,
        c.matrix("C", (rows, n), ld[2], size)?,
    ])
}

/// `struct Gate`.
fn gate_words(
    gate: &Gate,
    bands: u64,
    (clusters, cluster): (u64, u64),
) -> Result<[u64; GATE], GpuError> {
    let mut words = [0; GATE];
    let counter = match gate.epoch.counter {
        Some(counter) => counter.need("an epoch", 4)?,
        None => 0,
    };
    let status = 4 * STATUS_WORDS;
    // What the tables say is the business of `order`; that rows are whole can be seen here.
    let sections = gate.sections.bytes();
    if !sections.is_multiple_of(Section::BYTES as u64) {
        return Err(GpuError::Argument(format!(
            "a table of sections of {sections} bytes, where each has {}",
            Section::BYTES
        )));
    }
    let (completed, completions) = match gate.completions {
        Some(table) => (table.address(), table.bytes() / COMPLETION as u64),
        None => (0, 0),
    };
    if let Some(brought) = &gate.fetches {
        let loaders = brought.loaders(clusters, cluster);
        words[8] = brought.table.address();
        words[9] = (brought.table.bytes() / FETCH) | (loaders << 32);
        words[BROUGHT..GATE - NEAR].copy_from_slice(&brought.first);
    }
    words[GATE - NEAR..].copy_from_slice(&gate.near.0);
    words[..8].copy_from_slice(&[
        gate.bands.need("a table of bands", bands * BAND)?,
        gate.sections
            .need("a table of sections", Section::BYTES as u64)?,
        gate.waits.address(),
        counter,
        u64::try_from(gate.limit.as_nanos()).unwrap_or(u64::MAX),
        gate.status.need("a status", status)?,
        u64::from(gate.epoch.offset) | completions << 32,
        completed,
    ]);
    Ok(words)
}
