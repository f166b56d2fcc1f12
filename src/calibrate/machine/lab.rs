//! The GPUs ready to be measured, and how one sample is taken.
//!
//! ```text
//! host     rest ─► enqueue everything ───────────► open the gate
//! GPU g    gate ─► heat ─► barrier of the GPUs ─► start ─► lanes …  end behind each lane
//! ```
//!
//! Rest and heating are those that precede every timed run of a schedule too
//! ([`crate::gpu::heat`]): what is measured here is measured at the clocks of what is predicted.
//!
//! The gate is a kernel that polls a word in pinned memory, so that submission is not measured. Its
//! limit and the barrier's are the GPU's own clock; the host polls and has a limit too.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::time::{Duration, Instant};

use crate::device::DType;
use crate::gpu::env::Library;
use crate::gpu::heat::{Heater, Pace, WARM};
use crate::gpu::kernels::{Epoch, Kernels, Limit, Matrix, STATUS_WORDS};
use crate::gpu::lt::{Gemms, WORKSPACE};
use crate::gpu::raw::{Event, Gpu, Memory, Pinned, Priority, Region, Stream};
use crate::gpu::{GpuError, Session};

/// The limit of one sample.
pub(super) const LIMIT: Duration = Duration::from_secs(5);
/// Streams of a GPU.
pub const LANES: usize = 5;
/// Bytes of a GPU: what copies read, what they write, matrices, workspace.
const GIB: u64 = 1 << 30;
/// Bytes of a matrix at most: the weights of a large layer are 2 GB.
const MATRIX: u64 = 3 * GIB;
/// Bytes of pinned memory for each GPU.
pub const STAGE: u64 = 256 << 20;
/// Words for flags in front of everything.
const WORDS: u64 = 1 << 20;

/// One GPU.
#[derive(Debug)]
pub struct Unit {
    pub gpu: Rc<Gpu>,
    pub kernels: Kernels,
    pub gemms: RefCell<Gemms>,
    pub streams: Vec<Stream>,
    /// Pinned memory to copy into and out of.
    pub stage: Pinned,
    memory: Memory,
    /// Bytes of each of the areas: of sources and targets, and of A, B and C.
    area: u64,
    matrix: u64,
    status: Pinned,
    heater: Heater,
    start: Event,
    middle: Event,
    ends: Vec<Event>,
}

/// All GPUs.
#[derive(Debug)]
pub struct Lab<'s> {
    pub session: &'s Session,
    pub units: Vec<Unit>,
    /// Whether every GPU reaches every other's memory.
    pub peers: bool,
    /// Fewer sizes and samples.
    pub quick: bool,
    /// Further GEMMs: see [`super::Options::shapes`].
    pub asked: Vec<[u64; 3]>,
    /// GEMMs that are timed in place of the lattice's; empty: the lattice.
    pub listed: Vec<super::Wanted>,
    /// SMs that a collective of the library takes.
    pub collective: u32,
    gate: Pinned,
    round: Cell<u32>,
    pace: Pace,
}

impl<'s> Lab<'s> {
    /// Opens memory, streams and kernels of all GPUs of the session.
    ///
    /// # Errors
    /// [`GpuError`] for a missing library or too little memory, and the libraries'.
    pub fn open(session: &'s Session, quick: bool) -> Result<Self, GpuError> {
        for library in [Library::Nvrtc, Library::CublasLt] {
            session.require(library)?;
        }
        session.open_peers()?;
        let mut peers = true;
        for from in session.gpus() {
            for to in session
                .gpus()
                .iter()
                .filter(|to| to.ordinal() != from.ordinal())
            {
                peers &= from.peer(to)?.access;
            }
        }
        let units = session
            .gpus()
            .iter()
            .map(|gpu| Unit::open(session, gpu))
            .collect::<Result<Vec<_>, _>>()?;
        let Some(first) = units.first() else {
            return Err(GpuError::NoGpu);
        };
        Ok(Self {
            gate: Pinned::new(&first.gpu, 4)?,
            round: Cell::new(0),
            pace: Pace::default(),
            session,
            units,
            peers,
            quick,
            asked: Vec::new(),
            listed: Vec::new(),
            collective: 0,
        })
    }

    /// `full` samples, or `quick` ones.
    pub const fn reps(&self, quick: usize, full: usize) -> usize {
        match self.quick {
            true => quick,
            false => full,
        }
    }

    /// Ordered pairs of different GPUs, those of the first two first; at most `most`.
    pub fn pairs(&self, most: usize) -> Vec<(usize, usize)> {
        let count = self.units.len();
        let mut all: Vec<(usize, usize)> = (0..count)
            .flat_map(|a| (0..count).map(move |b| (a, b)))
            .filter(|(a, b)| a != b)
            .collect();
        all.sort_by_key(|&(a, b)| (a.max(b), a));
        all.truncate(most);
        all
    }

    /// Takes one sample on `gpus`: `work` enqueues on the streams `lanes` (GPU, stream), which
    /// begin together; the answer is when each lane ended, in seconds from its GPU's start.
    ///
    /// # Errors
    /// [`GpuError::Timeout`] after which the GPUs are lost, and the libraries'.
    pub fn sample(
        &self,
        lanes: &[(usize, usize)],
        work: impl FnOnce() -> Result<(), GpuError>,
    ) -> Result<Vec<f64>, GpuError> {
        if self.units.iter().any(|unit| unit.gpu.is_lost()) {
            return Err(GpuError::Unusable {
                reason: "a measurement did not end".to_owned(),
            });
        }
        let mut gpus: Vec<usize> = lanes.iter().map(|lane| lane.0).collect();
        gpus.sort_unstable();
        gpus.dedup();
        self.pace.rest();
        let round = self.round.get().wrapping_add(1);
        self.round.set(round);
        let boards = gpus
            .iter()
            .map(|&g| self.units[g].word(0, 64))
            .collect::<Result<Vec<_>, _>>()?;
        for (own, &g) in gpus.iter().enumerate() {
            let unit = &self.units[g];
            for word in 0..STATUS_WORDS {
                unit.status.store(word, 0)?;
            }
            let limit = unit.limit(1);
            let epoch = Epoch::fixed(round);
            let clock = &unit.streams[0];
            unit.kernels
                .flag_wait(clock, self.gate.region(), epoch, limit)?;
            unit.heater.heat(clock, WARM)?;
            if gpus.len() > 1 && self.peers {
                unit.kernels
                    .barrier(clock, &boards, own as u32, epoch, limit)?;
            }
            clock.record(&unit.start)?;
        }
        for &(g, lane) in lanes.iter().filter(|lane| lane.1 != 0) {
            self.units[g].streams[lane].wait(&self.units[g].start)?;
        }
        let worked = work();
        for &(g, lane) in lanes {
            let unit = &self.units[g];
            unit.streams[lane].record(&unit.ends[lane])?;
        }
        // Opened whatever happened, so that nothing waits for it.
        let opened = Instant::now();
        self.gate.store(0, round)?;
        for unit in &self.units {
            for stream in &unit.streams {
                stream.finish(LIMIT, "a measurement")?;
            }
        }
        self.pace.worked(opened.elapsed());
        worked?;
        for &g in &gpus {
            if self.units[g].status.load(0)? != 0 {
                return Err(GpuError::Wrong(
                    "a measurement did not start: its gate passed its limit".to_owned(),
                ));
            }
        }
        lanes
            .iter()
            .map(|&(g, lane)| self.units[g].start.seconds_to(&self.units[g].ends[lane]))
            .collect()
    }

    /// The time of what `work` enqueues on a GPU's first stream \[s\].
    ///
    /// # Errors
    /// As [`Self::sample`].
    pub fn time(
        &self,
        gpu: usize,
        work: impl FnOnce(&Stream) -> Result<(), GpuError>,
    ) -> Result<f64, GpuError> {
        let times = self.sample(&[(gpu, 0)], || work(&self.units[gpu].streams[0]))?;
        Ok(times[0])
    }

    /// Waits for everything.
    ///
    /// # Errors
    /// [`GpuError::Timeout`].
    pub fn finish(&self) -> Result<(), GpuError> {
        let streams = self.units.iter().flat_map(|unit| &unit.streams);
        streams
            .into_iter()
            .try_for_each(|stream| stream.finish(LIMIT, "a measurement"))
    }
}

impl Unit {
    fn open(session: &Session, gpu: &Rc<Gpu>) -> Result<Self, GpuError> {
        let (free, _) = gpu.memory()?;
        let eighth = free / 8 / GIB * GIB;
        let [area, matrix] = [GIB, MATRIX].map(|most| eighth.clamp(GIB / 4, most));
        let memory = Memory::new(gpu, WORDS + 2 * area + 3 * matrix + WORKSPACE)?;
        let kernels = Kernels::new(gpu, session.cache())?;
        let lane = |i: usize| match i {
            1 => Priority::High,
            _ => Priority::Low,
        };
        let streams = (0..LANES)
            .map(|i| Stream::new(gpu, lane(i)))
            .collect::<Result<Vec<_>, _>>()?;
        let (free, _) = gpu.memory()?;
        let heater = Heater::new(gpu, &kernels, &streams[0], free, LIMIT)?;
        let unit = Self {
            heater,
            gpu: Rc::clone(gpu),
            gemms: RefCell::new(Gemms::new(gpu)?),
            stage: Pinned::new(gpu, STAGE)?,
            status: Pinned::new(gpu, 4 * STATUS_WORDS)?,
            start: Event::new(gpu, true)?,
            middle: Event::new(gpu, true)?,
            ends: (0..LANES)
                .map(|_| Event::new(gpu, true))
                .collect::<Result<_, _>>()?,
            kernels,
            streams,
            memory,
            area,
            matrix,
        };
        unit.prepare()?;
        Ok(unit)
    }

    /// Random numbers everywhere: zeros draw less power and run faster.
    fn prepare(&self) -> Result<(), GpuError> {
        let stream = &self.streams[0];
        stream.fill(self.memory.region().cut(0, WORDS)?, 0)?;
        let areas = (0..2).map(|lane| self.piece(lane, 0, self.area));
        let matrices = (0..3).map(|which| self.matrix(which, self.matrix));
        for (area, seed) in areas.chain(matrices).zip(1..) {
            let start = area?;
            let rows = start.bytes() / 2 / 8192;
            let all = Matrix { start, ld: 8192 };
            self.kernels
                .fill(stream, DType::Bf16, all, (rows, 8192), seed, (0, 0))?;
        }
        stream.finish(LIMIT, "filling memory")
    }

    /// Marks a point within a sample.
    ///
    /// # Errors
    /// The driver's.
    pub fn mark(&self, stream: &Stream) -> Result<(), GpuError> {
        stream.record(&self.middle)
    }

    /// Marks a point in a graph that is being recorded, at every launch of it.
    ///
    /// # Errors
    /// The driver's.
    pub fn mark_in_graph(&self, stream: &Stream) -> Result<(), GpuError> {
        stream.record_in_graph(&self.middle)
    }

    /// When the mark of the last sample was reached, in seconds from its start.
    ///
    /// # Errors
    /// The driver's, when nothing was marked.
    pub fn marked(&self) -> Result<f64, GpuError> {
        self.start.seconds_to(&self.middle)
    }

    /// How long waits of a sample may last.
    pub fn limit(&self, tag: u32) -> Limit {
        Limit {
            time: LIMIT / 2,
            status: self.status.region(),
            tag,
        }
    }

    /// `bytes` of the words for flags, from word `at` on; zero at first.
    ///
    /// # Errors
    /// [`GpuError::Bounds`].
    pub fn word(&self, at: u64, bytes: u64) -> Result<Region, GpuError> {
        self.memory.region().cut(0, WORDS)?.cut(4 * at, bytes)
    }

    /// Largest copy of one lane of `lanes`.
    pub const fn most(&self, lanes: u64) -> u64 {
        self.area / lanes
    }

    /// Largest matrix \[bytes\].
    pub const fn widest(&self) -> u64 {
        self.matrix
    }

    fn piece(&self, area: u64, lane: u64, bytes: u64) -> Result<Region, GpuError> {
        let begin = WORDS + area * self.area + lane * (self.area / LANES as u64 / 256 * 256);
        self.memory.region().cut(begin, bytes)
    }

    /// What lane `lane` copies from.
    ///
    /// # Errors
    /// [`GpuError::Bounds`].
    pub fn source(&self, lane: u64, bytes: u64) -> Result<Region, GpuError> {
        self.piece(0, lane, bytes)
    }

    /// What lane `lane` copies to.
    ///
    /// # Errors
    /// [`GpuError::Bounds`].
    pub fn target(&self, lane: u64, bytes: u64) -> Result<Region, GpuError> {
        self.piece(1, lane, bytes)
    }

    /// Matrix A, B or C (0, 1, 2).
    ///
    /// # Errors
    /// [`GpuError::Bounds`].
    pub fn matrix(&self, which: u64, bytes: u64) -> Result<Region, GpuError> {
        let begin = WORDS + 2 * self.area + which * self.matrix;
        self.memory.region().cut(begin, bytes)
    }

    /// Scratch memory of GEMMs in the first stream.
    ///
    /// # Errors
    /// [`GpuError::Bounds`].
    pub fn workspace(&self) -> Result<Region, GpuError> {
        self.memory
            .region()
            .cut(WORDS + 2 * self.area + 3 * self.matrix, WORKSPACE)
    }
}
