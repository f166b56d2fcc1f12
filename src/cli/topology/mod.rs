//! `duet topology`: list, show, check, rings, bound.

mod bound;
mod check;
mod list;
mod rings;
mod show;

use clap::{Args, Subcommand};

use super::args::DEFAULT_TOPOLOGY;
use super::error::Failure;
use crate::topology::{self, Topology};

#[derive(Args, Debug)]
pub struct TopologyArgs {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand, Debug)]
enum Command {
    /// List the built-in machines
    List(list::ListArgs),
    /// Show a machine: picture, bandwidth between GPUs, links
    Show(show::ShowArgs),
    /// Check topology files and explain what is wrong with them
    Check(check::CheckArgs),
    /// Find the best ring and the best pair of rings
    Rings(rings::RingsArgs),
    /// Print lower bounds of collectives, and whether they can be reached
    Bound(bound::BoundArgs),
}

pub fn run(args: &TopologyArgs) -> Result<(), Failure> {
    match &args.command {
        Command::List(args) => list::run(args),
        Command::Show(args) => show::run(args),
        Command::Check(args) => check::run(args),
        Command::Rings(args) => rings::run(args),
        Command::Bound(args) => bound::run(args),
    }
}

/// The machine that a command is about.
#[derive(Args, Debug)]
struct Subject {
    /// A built-in topology (see `duet topology list`) or a YAML file
    #[arg(value_name = "NAME|FILE", default_value = DEFAULT_TOPOLOGY)]
    topology: String,
    /// Change a number of the machine, e.g. `links.nvlink.bandwidth=2x` (repeatable)
    #[arg(long, value_name = "PATH=VALUE")]
    set: Vec<String>,
}

impl Subject {
    fn load(&self) -> Result<Topology, Failure> {
        topology::load(&self.topology, &self.set).map_err(|error| Failure::input(&error))
    }
}

/// The GPUs asked for, or those of one box; each once and there.
fn gpus(topology: &Topology, asked: &[u32]) -> Result<Vec<u32>, Failure> {
    let all = topology.gpus.len() as u32;
    if asked.is_empty() {
        return Ok((0..topology.default_tp.min(all)).collect());
    }
    for (place, gpu) in asked.iter().enumerate() {
        if *gpu >= all {
            return Err(Failure::Input(format!(
                "error: there is no GPU {gpu}: {} has {all} GPUs, 0 to {}",
                topology.name,
                all - 1
            )));
        }
        if asked[..place].contains(gpu) {
            return Err(Failure::Usage(format!(
                "error: GPU {gpu} is listed twice\n  help: name each GPU once"
            )));
        }
    }
    Ok(asked.to_vec())
}

/// As [`gpus`], for what takes at least two.
fn several(topology: &Topology, asked: &[u32]) -> Result<Vec<u32>, Failure> {
    let found = gpus(topology, asked)?;
    match found.len() {
        0 | 1 => Err(Failure::Usage(format!(
            "error: at least two GPUs are needed\n  help: list them, e.g. `--gpus 0,1`; {} has {}",
            topology.name,
            topology.gpus.len()
        ))),
        _ => Ok(found),
    }
}
