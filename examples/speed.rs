//! An all-to-all without symmetry, for measuring speed: all messages at once through a switch,
//! their sizes random by ±50 % around 1 MiB.
//!
//! ```text
//! speed simulate N SEED    prints the makespan [s] of N ranks
//! speed flows N SEED       prints the same flows in the format of `examples/flows.rs`
//! ```

use std::error::Error;
use std::fmt::Write as _;
use std::process::ExitCode;

use duet::device::DType;
use duet::operator::{Kind, Operator, Shape};
use duet::schedule::{Buffer, Builder, Extent, Lane, Mover, Piece, Role, Schedule, Slice};
use duet::sim::{Options, simulate};
use duet::topology::{Topology, build::Builder as Machine};
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
    let [what, ranks, seed] = args else {
        return Err("usage: speed simulate|flows N SEED".into());
    };
    let sizes = sizes(ranks.parse()?, seed.parse()?);
    match what.as_str() {
        "simulate" => {
            let timeline = simulate(&schedule(&sizes), &switch(sizes.len()), &Options::default())?;
            Ok(format!("{}\n", timeline.makespan))
        }
        "flows" => Ok(flows(&sizes)),
        other => Err(format!("`{other}` is neither `simulate` nor `flows`").into()),
    }
}

/// Elements from rank to rank; the diagonal is unused.
fn sizes(ranks: usize, seed: u64) -> Vec<Vec<u32>> {
    let mut state = seed;
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
fn schedule(sizes: &[Vec<u32>]) -> Schedule {
    let ranks = sizes.len();
    let operator = Operator {
        kind: Kind::AllToAll,
        shape: Shape::Bytes(Bytes::new((ranks as f64 * MEAN * 2.0) as u64)),
        tp: ranks as u32,
        dtype: DType::Bf16,
    };
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
