//! `duet topology check FILE…`.

use clap::Args;

use crate::cli::error::Failure;
use crate::cli::output;
use crate::topology;

#[derive(Args, Debug)]
pub struct CheckArgs {
    /// Topology files (or built-in names)
    #[arg(required = true, value_name = "FILE")]
    files: Vec<String>,
    /// Overrides to check along with them
    #[arg(long, value_name = "PATH=VALUE")]
    set: Vec<String>,
}

pub fn run(args: &CheckArgs) -> Result<(), Failure> {
    let (mut good, mut faults) = (String::new(), Vec::new());
    for file in &args.files {
        match topology::load(file, &args.set) {
            Ok(topology) => {
                let (gpus, links) = (topology.gpus.len(), topology.graph.edge_count());
                good += &format!(
                    "{file}: ok, {} with {gpus} GPU{} and {links} link directions\n",
                    topology.name,
                    if gpus == 1 { "" } else { "s" },
                );
            }
            Err(fault) => faults.push(Failure::input(&fault).to_string()),
        }
    }
    output::print(good.as_bytes())?;
    match faults.is_empty() {
        true => Ok(()),
        false => Err(Failure::Input(faults.join("\n\n"))),
    }
}
