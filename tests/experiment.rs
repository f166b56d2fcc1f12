//! Experiments: files read, grids performed, runs killed, resumed, sharded and merged.

#[path = "experiment/bad.rs"]
mod bad;
#[path = "experiment/commands.rs"]
mod commands;
#[path = "experiment/compass.rs"]
mod compass;
#[path = "support/corpus.rs"]
mod corpus;
#[path = "experiment/docs.rs"]
mod docs;
#[path = "experiment/files.rs"]
mod files;
#[path = "experiment/kill.rs"]
mod kill;
#[path = "experiment/plot.rs"]
mod plot;
#[path = "experiment/resume.rs"]
mod resume;
#[path = "experiment/shards.rs"]
mod shards;

use std::path::Path;

use duet::experiment::results::Table;
use duet::experiment::run::{self, Finished, Observer, RunError, RunOptions};
use duet::experiment::{self, Experiment};

/// 12 cases, 66 rows with skipped ones and settings among them.
const SMALL: &str = "
name: small
grids:
  - name: operators
    topologies: [a6000-pairs-4]
    axes: { seq: [32, 512, 1024], hidden: [2048] }
    operators:
      - { op: ag-gemm, m: seq, n: 4*hidden, k: hidden }
      - { op: gemm-rs, m: seq, n: hidden, k: 4*hidden }
    strategies: [sequential, interdecom, fusion-ring]
  - name: bandwidth
    topologies: [a6000-pairs-4]
    axes: { size: [64 KiB, 1 MiB, 16 MiB] }
    operators: [{ op: all-gather, bytes: size }]
    strategies: [library, ring]
    set: { links.pcie.bandwidth: [0.5x, 1x] }
";

fn small() -> Experiment {
    experiment::parse(SMALL, "small.yaml", &[]).expect("it is right")
}

/// Watches nothing.
struct Nobody;

impl Observer for Nobody {
    fn begin(&self, _: u64, _: u64) {}
    fn step(&self) {}
}

fn options(out: &Path) -> RunOptions {
    RunOptions {
        out: out.to_owned(),
        shard: None,
        fresh: false,
        table: Table::Csv,
    }
}

fn perform(options: &RunOptions) -> Result<Finished, RunError> {
    run::run(&small(), options, &Nobody)
}

/// The table of an uninterrupted run.
fn whole() -> Vec<u8> {
    let folder = tempfile::tempdir().unwrap();
    perform(&options(folder.path())).unwrap();
    std::fs::read(folder.path().join("results.csv")).unwrap()
}
