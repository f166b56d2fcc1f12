//! The last resort against calls that do not return: the process ends with a sentence.

use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::thread;
use std::time::Duration;

use crate::cli::output::tell;
use crate::gpu::raw::exit_now;

/// How long the orderly end of the process may take, which waits for the driver's.
const PATIENCE: Duration = Duration::from_secs(60);

/// Watches the steps of a command, and after it is dropped the end of the process.
pub struct Watchdog {
    steps: Sender<(String, Duration)>,
}

impl Watchdog {
    /// Watches `first`, which may take `limit`.
    pub fn new(first: &str, limit: Duration) -> Self {
        let (steps, received) = mpsc::channel();
        let mut now = (first.to_owned(), limit);
        thread::spawn(move || {
            loop {
                match received.recv_timeout(now.1) {
                    Ok(next) => now = next,
                    Err(RecvTimeoutError::Disconnected) => {
                        thread::sleep(PATIENCE);
                        end("ending the process", PATIENCE)
                    }
                    Err(RecvTimeoutError::Timeout) => end(&now.0, now.1),
                }
            }
        });
        Self { steps }
    }

    /// The next step begins.
    pub fn step(&self, name: String, limit: Duration) {
        let _ = self.steps.send((name, limit));
    }
}

fn end(step: &str, limit: Duration) -> ! {
    tell(&format!(
        "error: {step}: a call did not return within {} s\n  help: check `nvidia-smi` and the kernel's log (`dmesg`); the GPU or its driver hangs",
        limit.as_secs()
    ));
    exit_now(4)
}
