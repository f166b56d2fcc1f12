//! Flags, limits of spins, gates on one GPU.

use std::time::{Duration, Instant};

use super::LIMIT;
use super::bench::{Bench, STATUS, wrong};
use crate::gpu::GpuError;
use crate::gpu::kernels::{Epoch, Limit};

/// Places in the arena: the status words, then flags, then an epoch.
const FLAGS: u64 = 256;
const EPOCH: u64 = 512;

fn limit(bench: &Bench, time: Duration, tag: u32) -> Result<Limit, GpuError> {
    Ok(Limit {
        time,
        status: bench.at(0, STATUS)?,
        tag,
    })
}

/// Stream and kernel operations on flags, in order and against it, near the end of the cycle too.
pub fn flags(bench: &Bench) -> Result<String, GpuError> {
    let [first, second] = &bench.streams;
    let patience = limit(bench, Duration::from_secs(1), 1)?;
    bench.zero(bench.at(0, 4096)?)?;
    let flag = |i: u64| bench.at(FLAGS + 4 * i, 4);
    let epoch = u32::MAX - 1;
    for (round, epoch) in (0..4).map(|i: u32| (i, epoch.wrapping_add(i))) {
        // A flag far behind in the cycle counts as not there, whatever its number.
        let before = epoch.wrapping_sub(1).to_le_bytes();
        for i in 0..3 {
            bench.arena.upload(FLAGS + 4 * i, &before)?;
        }
        // The waiters first: nothing but the flags lets them go.
        second.wait_value(flag(0)?, epoch)?;
        bench
            .kernels
            .flag_wait(second, flag(1)?, Epoch::fixed(epoch), patience)?;
        second.write_value(flag(2)?, epoch)?;
        bench.kernels.delay(first, Duration::from_micros(200))?;
        bench
            .kernels
            .flag_write(first, flag(0)?, Epoch::fixed(epoch))?;
        first.write_value(flag(1)?, epoch)?;
        bench.finish("flags between two streams")?;
        let words = bench.words(FLAGS, 3)?;
        if words != [epoch; 3] {
            return Err(wrong(format!("flags of round {round}: {words:?}")));
        }
    }
    if bench.words(0, 1)? != [0] {
        return Err(wrong("a wait reported that it passed its limit"));
    }
    Ok("stream and kernel waits open each other, across the end of the cycle".to_owned())
}

/// Seconds that two waits for a flag that never comes take.
fn limit_reached(bench: &Bench) -> Result<f64, GpuError> {
    let flag = bench.at(FLAGS, 4)?;
    bench.zero(bench.at(0, 4096)?)?;
    let begin = Instant::now();
    let short = limit(bench, Duration::from_millis(20), 7)?;
    bench
        .kernels
        .flag_wait(bench.stream(), flag, Epoch::fixed(5), short)?;
    let long = limit(bench, Duration::from_secs(4), 8)?;
    bench
        .kernels
        .flag_wait(bench.stream(), flag, Epoch::fixed(6), long)?;
    bench.finish("a wait with a limit")?;
    Ok(begin.elapsed().as_secs_f64())
}

/// A wait for a flag that never comes ends at its limit and says so; the next gives up at once.
pub fn spin_limit(bench: &Bench) -> Result<String, GpuError> {
    let seconds = limit_reached(bench)?;
    let status = bench.words(0, 4)?;
    if status != [1, 7, 5, 0] {
        return Err(wrong(format!("status {status:?}, not [1, 7, 5, 0]")));
    }
    if seconds > 2.0 {
        return Err(wrong(format!(
            "the second wait did not give up: {seconds:.3} s"
        )));
    }
    Ok(format!(
        "two waits for flags that never come ended after {:.0} ms",
        seconds * 1e3
    ))
}

/// The host opens a gate in pinned memory, and the epoch of a counter is read.
pub fn gate(bench: &Bench) -> Result<String, GpuError> {
    bench.zero(bench.at(0, 4096)?)?;
    bench.pinned.store(0, 0)?;
    let counter = bench.at(EPOCH, 4)?;
    let gate = bench.pinned.region().cut(0, 4)?;
    let long = limit(bench, Duration::from_secs(3), 3)?;
    let stream = bench.stream();
    for round in 1..=3 {
        bench.kernels.epoch_bump(stream, counter)?;
        let epoch = Epoch {
            counter: Some(counter),
            offset: 0,
        };
        bench.kernels.flag_wait(stream, gate, epoch, long)?;
        stream.write_value(bench.at(FLAGS, 4)?, round)?;
        std::thread::sleep(Duration::from_millis(2));
        if stream.is_idle()? {
            return Err(wrong("a closed gate let a stream through"));
        }
        bench.pinned.store(0, round)?;
        stream.finish(LIMIT, "a gate")?;
    }
    match bench.words(FLAGS, 1)? == [3] && bench.words(0, 1)? == [0] {
        true => Ok("opened by the host three times, epoch read from a counter".to_owned()),
        false => Err(wrong("the gate's flag or status")),
    }
}
