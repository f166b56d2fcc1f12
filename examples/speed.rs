//! Large collectives, built and simulated once, for measuring speed.
//!
//! ```text
//! speed ring N           all-gather of N MiB round the fat tree of 1024 GPUs
//! speed all-to-all N     all messages of 1 MiB at once through a switch
//! speed random N         the same without symmetry: sizes random by ±50 %
//! speed flows N          prints the flows of `random` in the format of `examples/flows.rs`
//! ```
//!
//! All but `flows` print the number of transfers and the makespan [s].

use std::error::Error;
use std::fmt::Write as _;
use std::process::ExitCode;

use duet::device::DType;
use duet::operator::{Kind, Operator, Shape};
use duet::schedule::{Buffer, Builder, Extent, Lane, Mover, Piece, Role, Schedule, Slice};
use duet::sim::{Options, simulate};
use duet::strategy;
use duet::topology::{self, Topology, build::Builder as Machine};
use duet::units::Bytes;

/// Elements of 2 bytes in a message of mean size.
const MEAN: f64 = (1 << 19) as f64;
/// Of each host's link to the switch [byte/s], [s].
const BANDWIDTH: f64 = 50e9;
const LATENCY: f64 = 500e-9;

fn main() -> ExitCode {
    match run(&std::env::args().skip(1).collect::<Vec<_>>()) {
        Ok(text) => {
            print!("{text}");
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("speed: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run(args: &[String]) -> Result<String, Box<dyn Error>> {
    let [case, ranks] = args else {
        return Err("usage: speed ring|all-to-all|random|flows N".into());
    };
    let ranks: u16 = ranks.parse()?;
    let (topology, schedule) = match case.as_str() {
        "ring" => {
            let topology = topology::load("fat-tree-1024", &[])?;
            let schedule = bare(Kind::AllGather, "ring", ranks, &topology)?;
            (topology, schedule)
        }
        "all-to-all" => {
            let topology = switch(ranks.into());
            let schedule = bare(Kind::AllToAll, "direct", ranks, &topology)?;
            (topology, schedule)
        }
        "random" => (switch(ranks.into()), random(&sizes(ranks.into()))),
        "flows" => return Ok(flows(&sizes(ranks.into()))),
        other => return Err(format!("`{other}` is no case").into()),
    };
    let timeline = simulate(&schedule, &topology, &Options::default())?;
    let (tasks, makespan) = (schedule.tasks.len(), timeline.makespan);
    Ok(format!("{tasks} transfers, {makespan} s\n"))
}

/// The registry's schedule of a bare collective with 1 MiB per message.
fn bare(
    kind: Kind,
    strategy: &str,
    ranks: u16,
    topology: &Topology,
) -> Result<Schedule, Box<dyn Error>> {
    let operator = operator(kind, ranks.into());
    let placement: Vec<u32> = (0..u32::from(ranks)).collect();
    Ok(strategy::parse(strategy)?.build(&operator, topology, &placement)?)
}

fn operator(kind: Kind, ranks: u32) -> Operator {
    Operator {
        kind,
        shape: Shape::Bytes(Bytes::new(u64::from(ranks) << 20)),
        tp: ranks,
        dtype: DType::Bf16,
    }
}

/// Elements from rank to rank; the diagonal is unused.
fn sizes(ranks: usize) -> Vec<Vec<u32>> {
    let mut state = 1_u64;
    let mut unit = || {
        // SplitMix64.
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) >> 11) as f64 / (1u64 << 53) as f64
    };
    (0..ranks)
        .map(|_| (0..ranks).map(|_| (MEAN * (0.5 + unit())) as u32).collect())
        .collect()
}

fn switch(gpus: usize) -> Topology {
    let mut builder = Machine::new("switch");
    let switch = builder.switch("switch");
    for gpu in builder.gpus(gpus) {
        builder.link(gpu, switch, "cable", BANDWIDTH, LATENCY);
    }
    builder.build()
}

/// Every message is a transfer in a lane of its own, so that all start at once.
fn random(sizes: &[Vec<u32>]) -> Schedule {
    let ranks = sizes.len();
    let operator = operator(Kind::AllToAll, ranks as u32);
    let mut builder = Builder::new(operator, "file", (0..ranks as u32).collect());
    let tensor = builder.tensor("X", u32::MAX, 1, 1);
    let memory = |rows: u32| Extent::new(0, rows);
    let (mut sends, mut receives) = (Vec::new(), Vec::new());
    for rank in builder.ranks() {
        let me = rank.0 as usize;
        let mut buffer = |name: &str, role, rows: u32, there: u32| {
            builder.buffer(Buffer {
                name: name.to_owned(),
                tensor,
                rank,
                rows,
                cols: 1,
                slots: 1,
                role,
                pieces: vec![Piece {
                    rows: memory(rows),
                    cols: memory(1),
                    global_row: 0,
                    global_col: 0,
                    initial: memory(there),
                }],
            })
        };
        sends.push(buffer("send", Role::Input, sizes[me].iter().sum(), 1));
        let incoming = sizes.iter().map(|row| row[me]).sum();
        receives.push(buffer("receive", Role::Output, incoming, 0));
    }
    let mut filled = vec![0; ranks];
    for rank in builder.ranks() {
        let me = rank.0 as usize;
        let mut taken = 0;
        for (to, &rows) in sizes[me].iter().enumerate() {
            if to != me {
                let slice = |buffer, start| Slice {
                    buffer,
                    slot: 0,
                    rows: Extent::new(start, rows),
                    cols: memory(1),
                };
                let (from, into) = (slice(sends[me], taken), slice(receives[to], filled[to]));
                let lane = Lane(1 + to as u16);
                builder.transfer(rank, lane, from, into, Mover::CopyEngine, &[]);
            }
            taken += rows;
            filled[to] += rows;
        }
    }
    builder.finish()
}

fn flows(sizes: &[Vec<u32>]) -> String {
    let ranks = sizes.len();
    let mut text = format!("weights one\nhosts {ranks}\n");
    for _ in 0..2 * ranks {
        let _ = writeln!(text, "link {BANDWIDTH} {LATENCY}");
    }
    for (from, row) in sizes.iter().enumerate() {
        for (to, elements) in row.iter().enumerate().filter(|(to, _)| *to != from) {
            let _ = writeln!(text, "route {from} {to} {from} {}", ranks + to);
            let _ = writeln!(text, "flow 0 {from} {to} {}", 2 * u64::from(*elements));
        }
    }
    text
}
