//! `duet completions SHELL`.

use clap::{Args, CommandFactory};
use clap_complete::Shell;

use super::error::Failure;
use super::{Cli, output};

#[derive(Args, Debug)]
pub struct CompletionsArgs {
    /// The shell
    #[arg(value_enum)]
    shell: Shell,
}

pub fn run(args: &CompletionsArgs) -> Result<(), Failure> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "duet", &mut script);
    output::print(&script)
}
