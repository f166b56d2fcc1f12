//! Kernels that set, await and shake the order of flags, and those that tell the time.

use std::time::Duration;

use super::{ALONE, Epoch, GpuError, Kernels, Limit, MOST, nanoseconds};
use crate::gpu::raw::{Args, Launch, Region, Stream};

impl Kernels {
    /// Holds `stream` until `flag` is at least `epoch`, or the limit has passed.
    ///
    /// # Errors
    /// [`GpuError::Bounds`], and the driver's.
    pub fn flag_wait(
        &self,
        stream: &Stream,
        flag: Region,
        epoch: Epoch,
        limit: Limit,
    ) -> Result<(), GpuError> {
        let args = Args::default().u64(flag.need("a flag", 4)?);
        let args = limit.args(epoch.args(args)?)?;
        self.flag_wait.launch(stream, Launch::row(1, 1), &args)
    }

    /// Sets `flag` after all that precedes in `stream`.
    ///
    /// # Errors
    /// [`GpuError::Bounds`], and the driver's.
    pub fn flag_write(&self, stream: &Stream, flag: Region, epoch: Epoch) -> Result<(), GpuError> {
        let args = epoch.args(Args::default().u64(flag.need("a flag", 4)?))?;
        self.flag_write.launch(stream, Launch::row(1, 1), &args)
    }

    /// Adds 1 to the word that [`Epoch::counter`]s refer to.
    ///
    /// # Errors
    /// [`GpuError::Bounds`], and the driver's.
    pub fn epoch_bump(&self, stream: &Stream, counter: Region) -> Result<(), GpuError> {
        let args = Args::default().u64(counter.need("an epoch", 4)?);
        self.epoch_bump.launch(stream, Launch::row(1, 1), &args)
    }

    /// Member `own` of a barrier: one launch on each GPU; `boards` has one region of as many words as
    /// there are members on each GPU. The tag of a wait that fails is the limit's plus the member
    /// that did not come.
    ///
    /// # Errors
    /// [`GpuError::Bounds`], [`GpuError::Argument`], and the driver's.
    pub fn barrier(
        &self,
        stream: &Stream,
        boards: &[Region],
        own: u32,
        epoch: Epoch,
        limit: Limit,
    ) -> Result<(), GpuError> {
        let members = boards.len();
        if members > MOST || own as usize >= members {
            return Err(GpuError::Argument(format!(
                "member {own} of a barrier of {members} GPUs; it takes up to {MOST}"
            )));
        }
        let mut table = [0; MOST];
        for (place, board) in table.iter_mut().zip(boards) {
            *place = board.need("a barrier", 4 * members as u64)?;
        }
        let args = Args::default().words(&table).u32(members as u32).u32(own);
        let args = limit.args(epoch.args(args)?)?;
        self.barrier.launch(stream, Launch::row(1, 32), &args)
    }

    /// Holds `stream` for a while, at most a second.
    ///
    /// # Errors
    /// The driver's.
    pub fn delay(&self, stream: &Stream, time: Duration) -> Result<(), GpuError> {
        let time = nanoseconds(time.min(Duration::from_secs(1)));
        let args = Args::default().u64(time);
        self.delay.launch(stream, Launch::row(1, 1), &args)
    }

    /// Holds an SM with each of `blocks` blocks for a while, at most a second, where they begin in clusters of
    /// `cluster`; `begins` takes 8 bytes a block, when it began on the GPU's timer \[ns\].
    ///
    /// # Errors
    /// [`GpuError::Bounds`], and the driver's.
    pub fn hold(
        &self,
        stream: &Stream,
        (blocks, cluster): (u32, u32),
        time: Duration,
        begins: Region,
    ) -> Result<(), GpuError> {
        let time = nanoseconds(time.min(Duration::from_secs(1)));
        let begins = begins.need("beginnings", 8 * u64::from(blocks))?;
        self.hold.allow_shared(ALONE)?;
        let size = Launch {
            shared: ALONE,
            ..Launch::row(blocks, 32)
        };
        let args = Args::default().u64(time).u64(begins);
        self.hold.launch_together(stream, size, cluster, &args)
    }

    /// Writes the time on the GPU's timer \[ns\] once all that precedes in `stream` has ended.
    ///
    /// # Errors
    /// [`GpuError::Bounds`], and the driver's.
    pub fn stamp(&self, stream: &Stream, out: Region) -> Result<(), GpuError> {
        let args = Args::default().u64(out.need("a time", 8)?);
        self.stamp.launch(stream, Launch::row(1, 1), &args)
    }

    /// Counts the cycles of an SM for a while, at most a second: `out` takes two 8-byte words, the
    /// cycles and the nanoseconds.
    ///
    /// # Errors
    /// [`GpuError::Bounds`], and the driver's.
    pub fn clock_rate(&self, stream: &Stream, time: Duration, out: Region) -> Result<(), GpuError> {
        let time = nanoseconds(time.min(Duration::from_secs(1)));
        let args = Args::default().u64(time).u64(out.need("a clock", 16)?);
        self.clock_rate.launch(stream, Launch::row(1, 1), &args)
    }
}
