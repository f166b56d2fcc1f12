//! Graphs by capture: over streams of one GPU, over all GPUs, with value waits inside.

use std::time::{Duration, Instant};

use super::LIMIT;
use super::bench::{Bench, Benches, STATUS, wrong};
use crate::gpu::GpuError;
use crate::gpu::kernels::{Epoch, Limit};
use crate::gpu::raw::{Event, GraphExec, Stream};

const FLAG: u64 = 256;
const EPOCH: u64 = 512;
const DATA: u64 = 1 << 20;
const BYTES: u64 = 64 << 10;
const REPLAYS: u32 = 20;
/// Replays of a timing.
const TIMED: u32 = 50;

/// Records `work`; a capture that fails is ended, so that its streams can be used again.
fn capture(
    origin: &Stream,
    work: impl FnOnce() -> Result<(), GpuError>,
) -> Result<GraphExec, GpuError> {
    origin.begin_capture()?;
    let result = work();
    let graph = origin.end_capture();
    result?;
    let graph = graph?;
    let ready = graph.instantiate()?;
    ready.upload(origin)?;
    Ok(ready)
}

/// Two streams of one GPU, an epoch from a counter, a flag between them; replayed.
pub fn replay(bench: &Bench) -> Result<String, GpuError> {
    let [first, second] = &bench.streams;
    bench.zero(bench.at(0, 4096)?)?;
    let counter = bench.at(EPOCH, 4)?;
    let flag = bench.at(FLAG, 4)?;
    let (fork, join) = (
        Event::new(&bench.gpu, false)?,
        Event::new(&bench.gpu, false)?,
    );
    let epoch = Epoch {
        counter: Some(counter),
        offset: 0,
    };
    let limit = Limit {
        time: Duration::from_secs(1),
        status: bench.at(0, STATUS)?,
        tag: 1,
    };
    let exec = capture(first, || {
        bench.kernels.epoch_bump(first, counter)?;
        first.record(&fork)?;
        second.wait(&fork)?;
        bench.kernels.flag_wait(second, flag, epoch, limit)?;
        second.copy(bench.at(DATA, BYTES)?, bench.at(2 * DATA, BYTES)?)?;
        second.record(&join)?;
        bench.kernels.delay(first, Duration::from_micros(50))?;
        bench.kernels.flag_write(first, flag, epoch)?;
        first.wait(&join)
    })?;
    for round in 1..=REPLAYS {
        let sent = bench.pattern(DATA, BYTES, u64::from(round))?;
        exec.launch(first)?;
        first.finish(LIMIT, "a graph")?;
        if bench.bytes(2 * DATA, BYTES)? != sent || bench.words(EPOCH, 1)? != [round] {
            return Err(wrong(format!("replay {round} of a graph")));
        }
    }
    if bench.words(0, 1)? != [0] {
        return Err(wrong("a wait in a graph passed its limit"));
    }
    Ok(format!("{REPLAYS} replays with a flag between two streams"))
}

/// Whether a value wait may be recorded; what it says if not.
pub fn value_wait(bench: &Bench) -> Result<String, GpuError> {
    let [first, second] = &bench.streams;
    bench.zero(bench.at(0, 4096)?)?;
    let flag = bench.at(FLAG, 4)?;
    let (fork, join) = (
        Event::new(&bench.gpu, false)?,
        Event::new(&bench.gpu, false)?,
    );
    let exec = capture(first, || {
        first.record(&fork)?;
        second.wait(&fork)?;
        // The producer first: in whatever order the nodes run, it does not wait.
        first.write_value(flag, 1)?;
        second.wait_value(flag, 1)?;
        second.copy(bench.at(DATA, BYTES)?, bench.at(2 * DATA, BYTES)?)?;
        second.record(&join)?;
        first.wait(&join)
    });
    let exec = match exec {
        Ok(exec) => exec,
        Err(error) => return Ok(format!("not possible: {error}")),
    };
    let sent = bench.pattern(DATA, BYTES, 5)?;
    exec.launch(first)?;
    first.finish(LIMIT, "a graph with a value wait")?;
    match bench.bytes(2 * DATA, BYTES)? == sent {
        true => Ok("possible".to_owned()),
        false => Err(wrong("a graph with a value wait")),
    }
}

/// One graph over all GPUs: each fetches from the one before, in turn.
pub fn joint(benches: &Benches<'_>) -> Result<String, GpuError> {
    let first = &benches.all[0];
    let origin = first.stream();
    let fork = Event::new(&first.gpu, false)?;
    let turns = benches
        .all
        .iter()
        .map(|bench| Event::new(&bench.gpu, false))
        .collect::<Result<Vec<_>, _>>()?;
    let exec = capture(origin, || {
        origin.record(&fork)?;
        origin.record(&turns[0])?;
        for (i, pair) in benches.all.windows(2).enumerate() {
            let stream = pair[1].stream();
            stream.wait(&fork)?;
            stream.wait(&turns[i])?;
            stream.copy(pair[0].at(DATA, BYTES)?, pair[1].at(DATA, BYTES)?)?;
            stream.record(&turns[i + 1])?;
        }
        origin.wait(&turns[turns.len() - 1])
    });
    let exec = match exec {
        Ok(exec) => exec,
        Err(error) => return Ok(format!("not possible: {error}")),
    };
    let last = &benches.all[benches.all.len() - 1];
    for round in 0..REPLAYS {
        let sent = first.pattern(DATA, BYTES, u64::from(round) + 20)?;
        exec.launch(origin)?;
        origin.finish(LIMIT, "a graph over all GPUs")?;
        if last.bytes(DATA, BYTES)? != sent {
            return Err(wrong(format!("replay {round} of a graph over all GPUs")));
        }
    }
    let begin = Instant::now();
    for _ in 0..TIMED {
        exec.launch(origin)?;
    }
    let host = begin.elapsed();
    origin.finish(LIMIT, "graphs over all GPUs")?;
    let all = begin.elapsed();
    let each = |time: Duration| time.as_secs_f64() * 1e6 / f64::from(TIMED);
    Ok(format!(
        "possible; a replay takes the host {:.1} µs and {:.1} µs in all",
        each(host),
        each(all)
    ))
}

/// Whether flags may join GPUs inside one graph.
pub fn joint_value_wait(benches: &Benches<'_>) -> Result<String, GpuError> {
    let (a, b) = (&benches.all[0], &benches.all[1]);
    b.zero(b.at(0, 4096)?)?;
    let (first, second) = (a.stream(), b.stream());
    let flag = b.at(FLAG, 4)?;
    let (fork, join) = (Event::new(&a.gpu, false)?, Event::new(&b.gpu, false)?);
    let exec = capture(first, || {
        first.record(&fork)?;
        second.wait(&fork)?;
        first.copy(a.at(DATA, BYTES)?, b.at(DATA, BYTES)?)?;
        first.write_value(flag, 1)?;
        second.wait_value(flag, 1)?;
        second.copy(b.at(DATA, BYTES)?, b.at(2 * DATA, BYTES)?)?;
        second.record(&join)?;
        first.wait(&join)
    });
    let exec = match exec {
        Ok(exec) => exec,
        Err(error) => return Ok(format!("not possible: {error}")),
    };
    let sent = a.pattern(DATA, BYTES, 6)?;
    exec.launch(first)?;
    first.finish(LIMIT, "a joint graph with a value wait")?;
    match b.bytes(2 * DATA, BYTES)? == sent {
        true => Ok("possible".to_owned()),
        false => Err(wrong("a joint graph with a value wait")),
    }
}
