//! Copies, flags, barriers and NCCL between GPUs.

use std::rc::Rc;
use std::time::Duration;

use super::LIMIT;
use super::bench::{Bench, Benches, STATUS, wrong};
use crate::device::DType;
use crate::gpu::GpuError;
use crate::gpu::data::{element, round};
use crate::gpu::env::Library;
use crate::gpu::kernels::{Epoch, Limit};
use crate::gpu::raw::nccl::{Call, Comms, Op};
use crate::gpu::raw::{Copy2d, Event, Gpu, Region};

const FLAG: u64 = 256;
const BOARD: u64 = 1024;
const DATA: u64 = 1 << 20;
const BYTES: u64 = 1 << 20;
/// Copies of each pair, with fresh data each time.
const COPIES: u64 = 40;

/// Ordered pairs of different GPUs.
fn pairs<'a>(benches: &'a Benches<'_>) -> impl Iterator<Item = (&'a Bench, &'a Bench)> {
    let all = &benches.all;
    all.iter().flat_map(move |from| {
        all.iter()
            .filter(|to| to.gpu.ordinal() != from.gpu.ordinal())
            .map(move |to| (from, to))
    })
}

/// By copy engine, by kernels of either side, and through pinned memory.
pub fn copies(benches: &Benches<'_>) -> Result<String, GpuError> {
    let mut count = 0;
    let mut closed = 0;
    for (from, to) in pairs(benches) {
        let open = from.gpu.peer(&to.gpu)?.access && to.gpu.peer(&from.gpu)?.access;
        let (rows, width, pitch) = (100, 3000, 4096);
        let copy = Copy2d {
            from: from.at(DATA, BYTES)?,
            from_pitch: pitch,
            to: to.at(2 * DATA, BYTES)?,
            to_pitch: pitch,
            width,
            rows,
        };
        let ways = [
            "engine push",
            "engine pull",
            "kernel push",
            "kernel pull",
            "host",
        ];
        for (way, seed) in ways.into_iter().cycle().zip(30..30 + COPIES) {
            if !open && way.starts_with("kernel") {
                closed += 1;
                continue;
            }
            let sent = from.pattern(DATA, rows * pitch, seed)?;
            match way {
                "engine push" => from.stream().copy_2d(&copy)?,
                "engine pull" => to.stream().copy_2d(&copy)?,
                "kernel push" => from.kernels.copy(from.stream(), &copy, 8)?,
                "kernel pull" => to.kernels.copy(to.stream(), &copy, 8)?,
                _ => staged(from, to, &copy)?,
            }
            benches.finish("a copy between GPUs")?;
            let found = to.bytes(2 * DATA, rows * pitch)?;
            let same = (0..(rows * pitch) as usize)
                .filter(|i| i % (pitch as usize) < width as usize)
                .all(|i| found[i] == sent[i]);
            if !same {
                return Err(wrong(format!(
                    "{way} from GPU {} to GPU {}",
                    from.gpu.ordinal(),
                    to.gpu.ordinal()
                )));
            }
            count += 1;
        }
    }
    Ok(format!("{count} copies, {closed} not possible without P2P"))
}

fn staged(from: &Bench, to: &Bench, copy: &Copy2d) -> Result<(), GpuError> {
    let landed = Event::new(&from.gpu, false)?;
    let stage = from.pinned.region();
    from.stream().copy_2d(&Copy2d {
        to: stage,
        to_pitch: copy.width,
        ..*copy
    })?;
    from.stream().record(&landed)?;
    to.stream().wait(&landed)?;
    to.stream().copy_2d(&Copy2d {
        from: stage,
        from_pitch: copy.width,
        ..*copy
    })?;
    to.stream().finish(LIMIT, "a staged copy")
}

fn patience(bench: &Bench) -> Result<Limit, GpuError> {
    Ok(Limit {
        time: Duration::from_secs(2),
        status: bench.at(0, STATUS)?,
        tag: 100,
    })
}

/// Flags written into a peer's memory by stream operations and by kernels.
pub fn flags(benches: &Benches<'_>) -> Result<String, GpuError> {
    for (from, to) in pairs(benches) {
        to.zero(to.at(0, 4096)?)?;
        let flag = |i: u64| to.at(FLAG + 4 * i, 4);
        to.stream().wait_value(flag(0)?, 1)?;
        to.kernels
            .flag_wait(to.stream(), flag(1)?, Epoch::fixed(1), patience(to)?)?;
        from.stream().write_value(flag(0)?, 1)?;
        from.kernels
            .flag_write(from.stream(), flag(1)?, Epoch::fixed(1))?;
        benches.finish("flags between GPUs")?;
        if to.words(FLAG, 2)? != [1, 1] || to.words(0, 1)? != [0] {
            return Err(wrong("flags between GPUs"));
        }
    }
    Ok("written by streams and kernels into the peer's memory".to_owned())
}

/// All GPUs meet a hundred times; then one stays away, and the others say who.
pub fn barrier(benches: &Benches<'_>) -> Result<String, GpuError> {
    const MEETINGS: u32 = 100;
    let members = benches.all.len() as u64;
    for bench in &benches.all {
        bench.zero(bench.at(0, 4096)?)?;
    }
    let boards = benches
        .all
        .iter()
        .map(|bench| bench.at(BOARD, 4 * members))
        .collect::<Result<Vec<Region>, _>>()?;
    let meet = |bench: &Bench, own: usize, epoch: u32, limit: Limit| {
        let epoch = Epoch::fixed(epoch);
        bench
            .kernels
            .barrier(bench.stream(), &boards, own as u32, epoch, limit)
    };
    for epoch in 1..=MEETINGS {
        for (own, bench) in benches.all.iter().enumerate() {
            meet(bench, own, epoch, patience(bench)?)?;
        }
    }
    benches.finish("a barrier")?;
    for bench in &benches.all {
        if bench.words(0, 1)? != [0]
            || bench.words(BOARD, members)? != vec![MEETINGS; members as usize]
        {
            return Err(wrong("a barrier over all GPUs"));
        }
    }
    let first = &benches.all[0];
    let short = Limit {
        time: Duration::from_millis(20),
        ..patience(first)?
    };
    meet(first, 0, MEETINGS + 1, short)?;
    first.finish("a barrier that nobody joins")?;
    let status = first.words(0, 4)?;
    let missed = status[0] == 1
        && (101..100 + members as u32).contains(&status[1])
        && status[2..] == [MEETINGS + 1, MEETINGS];
    match missed {
        true => Ok(format!("{MEETINGS} meetings; an absent member is named")),
        false => Err(wrong(format!(
            "status {status:?} of a barrier nobody joins"
        ))),
    }
}

/// All-gather, reduce-scatter, all-reduce and a ring of sends against the host.
pub fn nccl(benches: &Benches<'_>) -> Result<String, GpuError> {
    benches.session.require(Library::Nccl)?;
    let gpus: Vec<Rc<Gpu>> = benches.all.iter().map(|b| Rc::clone(&b.gpu)).collect();
    let comms = Comms::new(&gpus)?;
    let dtype = DType::Bf16;
    let members = benches.all.len() as u64;
    let each = 3000;
    let (input, output) = (0, 64 << 20);
    for name in ["all-gather", "reduce-scatter", "all-reduce", "send"] {
        let (sent, received) = match name {
            "all-gather" => (each, each * members),
            "reduce-scatter" => (each * members, each),
            _ => (each, each),
        };
        let mut calls = Vec::new();
        for (i, bench) in benches.all.iter().enumerate() {
            let i = i as u64;
            let matrix = bench.matrix(input, sent)?;
            let stream = bench.stream();
            bench
                .kernels
                .fill(stream, dtype, matrix, (1, sent), i, (0, 0))?;
            let (from, to) = (bench.at(input, 2 * sent)?, bench.at(output, 2 * received)?);
            stream.fill(to, 0xFF)?;
            let member = i as u32;
            let mut call = |op| calls.push(Call { member, stream, op });
            let (from_all, count) = (from, members as u32);
            match name {
                "all-gather" => call(Op::AllGather {
                    input: from_all,
                    output: to,
                }),
                "reduce-scatter" => call(Op::ReduceScatter {
                    input: from_all,
                    output: to,
                }),
                "all-reduce" => call(Op::AllReduce {
                    input: from_all,
                    output: to,
                }),
                _ => {
                    call(Op::Send {
                        input: from_all,
                        to: (member + 1) % count,
                    });
                    call(Op::Receive {
                        output: to,
                        from: (member + count - 1) % count,
                    });
                }
            }
        }
        comms.group(dtype, &calls)?;
        benches.finish(name)?;
        for (i, bench) in benches.all.iter().enumerate() {
            let found = bench.elements(dtype, output, received, (1, received))?;
            expect(name, members, each, i as u64, &found)?;
        }
    }
    Ok(format!("4 operations over {members} GPUs"))
}

/// Compares with the host; sums of more than two may round in another order, by a unit or so.
fn expect(name: &str, members: u64, each: u64, own: u64, found: &[f32]) -> Result<(), GpuError> {
    let dtype = DType::Bf16;
    let sum = |col: u64| {
        (0..members).try_fold(0.0, |sum, seed| {
            Ok::<f32, GpuError>(sum + element(dtype, seed, 0, col)?)
        })
    };
    for (i, &found) in found.iter().enumerate() {
        let i = i as u64;
        let expected = match name {
            "all-gather" => element(dtype, i / each, 0, i % each)?,
            "reduce-scatter" => round(dtype, sum(own * each + i)?)?,
            "all-reduce" => round(dtype, sum(i)?)?,
            _ => element(dtype, (own + members - 1) % members, 0, i)?,
        };
        let slack = match members > 2 {
            true => 0.05 * expected.abs().max(1.0),
            false => 0.0,
        };
        if found.is_nan() || (found - expected).abs() > slack {
            return Err(wrong(format!(
                "{name}: element {i} of member {own} is {found}, not {expected}"
            )));
        }
    }
    Ok(())
}
