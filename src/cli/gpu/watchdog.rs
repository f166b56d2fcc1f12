//! The last resort against calls that do not return: the process ends with a sentence.

use std::process;
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::thread;
use std::time::Duration;

/// How long the orderly end of the process may take.
const PATIENCE: Duration = Duration::from_secs(5);

/// Watches the steps of a command; dropping it ends the watch.
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
                    Err(RecvTimeoutError::Disconnected) => return,
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
    eprintln!(
        "error: {step}: a call did not return within {} s\n  help: check `nvidia-smi` and the kernel's log (`dmesg`); the GPU or its driver hangs",
        limit.as_secs()
    );
    // The driver's own end may hang like the call.
    thread::spawn(|| process::exit(4));
    thread::sleep(PATIENCE);
    process::abort()
}
