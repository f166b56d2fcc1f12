//! Running Duet once more in an environment in which the CUDA libraries load.

use std::process::Command;

use crate::cli::error::Failure;
use crate::gpu::GpuError;
use crate::gpu::env::{self, Active, Environment, Machine};

/// The libraries of this process; if it has none yet, it is replaced by one that has.
///
/// # Errors
/// [`Failure::Gpu`] when there is no driver, [`Failure::Internal`] when Duet cannot run itself.
pub fn enter() -> Result<Active, Failure> {
    if let Some(active) = env::active() {
        return Ok(active);
    }
    if !cfg!(target_os = "linux") {
        return Err(Failure::from(GpuError::Argument(
            "GPUs are used on Linux only\n  help: all that simulates and predicts runs here too"
                .to_owned(),
        )));
    }
    let environment = Environment::prepare(&Machine::this())?;
    let program = std::env::current_exe()
        .map_err(|error| Failure::Internal(format!("error: cannot find the program: {error}")))?;
    let mut command = Command::new(program);
    command.args(std::env::args_os().skip(1));
    for (name, value) in environment.variables() {
        command.env(name, value);
    }
    Err(replace(command))
}

/// Replaces this process, or says why not.
#[cfg(unix)]
fn replace(mut command: Command) -> Failure {
    use std::os::unix::process::CommandExt;
    let error = command.exec();
    Failure::Internal(format!("error: cannot run Duet once more: {error}"))
}

#[cfg(not(unix))]
fn replace(_: Command) -> Failure {
    Failure::Internal("error: cannot run Duet once more on this system".to_owned())
}
