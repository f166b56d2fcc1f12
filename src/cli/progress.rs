//! A progress bar that appears after a second, and only on a terminal.

use std::fmt::Write;
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressState, ProgressStyle};

/// Work shorter than this shows no bar.
const PATIENCE: Duration = Duration::from_secs(1);

/// Counts finished pieces of work.
pub struct Progress {
    bar: ProgressBar,
    begin: Instant,
}

impl Progress {
    /// `total` pieces of work, described by `what`.
    pub fn new(total: usize, what: &'static str) -> Self {
        let bar = ProgressBar::with_draw_target(Some(total as u64), ProgressDrawTarget::hidden());
        if let Ok(style) = ProgressStyle::with_template("{msg} {wide_bar} {pos}/{len} {rate} {eta}")
        {
            bar.set_style(
                style.with_key("rate", |state: &ProgressState, to: &mut dyn Write| {
                    let _ = write!(to, "{:.0}/s", state.per_sec());
                }),
            );
        }
        bar.set_message(what);
        Self {
            bar,
            begin: Instant::now(),
        }
    }

    /// There are `total` pieces after all, `done` of them before this run.
    pub fn of(&self, total: u64, done: u64) {
        self.bar.set_length(total);
        self.bar.set_position(done);
        self.bar.reset_eta();
    }

    /// One piece is done.
    pub fn step(&self) {
        self.bar.inc(1);
        if self.bar.is_hidden() && self.begin.elapsed() > PATIENCE {
            // Stays hidden where stderr is no terminal.
            self.bar.set_draw_target(ProgressDrawTarget::stderr());
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}
