//! `duet merge`: join the tables of shards.

use std::path::PathBuf;

use clap::Args;

use super::error::Failure;
use super::output;
use crate::experiment::merge::{self, MergeError, Merged};
use crate::units::count;

#[derive(Args, Debug)]
pub struct MergeArgs {
    /// The shards' files, or folders that hold them
    #[arg(value_name = "DIR|FILE", required = true)]
    shards: Vec<PathBuf>,
    /// The folder of the joined table [default: that of the first shard]
    #[arg(short, long, value_name = "DIR")]
    out: Option<PathBuf>,
}

pub fn run(args: &MergeArgs) -> Result<(), Failure> {
    let merged = merge::merge(&args.shards, args.out.as_deref());
    let Merged {
        path,
        shards,
        cases,
        experiment,
    } = merged.map_err(|error| match error {
        MergeError::Run(error) => error.into(),
        error => {
            let text = error.to_string();
            let (message, help) = text.rsplit_once(": ").unwrap_or((&text, ""));
            Failure::Input(format!("error: {message}\n  help: {help}"))
        }
    })?;
    let folder = path.parent().unwrap_or(&path).display().to_string();
    let text = format!(
        "{}: {} of {}; `duet run {experiment} --out {folder}` goes on from here\n",
        path.display(),
        count(cases, "case"),
        count(u64::from(shards), "shard"),
    );
    output::print(text.as_bytes())
}
