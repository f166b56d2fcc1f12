//! Options of the commands that perform schedules on real GPUs.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;

use super::{Watchdog, enter};
use crate::cli::error::Failure;
use crate::cli::output::{read_text, write_file};
use crate::gpu::Session;
use crate::gpu::exec::{Faults, Machine, Settings};
use crate::gpu::lt::{Pick, Pins};
use crate::gpu::plan::{FlagId, Plan};
use crate::schedule::Rank;
use crate::units::{Bytes, Seconds};

/// Multiplies every limit, for tools that slow GPUs down, e.g. 100 under a sanitizer.
const SCALE: &str = "DUET_LIMIT_SCALE";
/// Largest file of pins \[bytes\].
const LARGEST: u64 = 64 << 20;
/// What starting the driver and the libraries may take.
const START: Duration = Duration::from_secs(120);

/// A fault on purpose.
#[derive(Clone, Debug, PartialEq)]
pub enum Inject {
    DropFlag(u32),
    Delay(u16, Duration),
    Memory(u64),
}

/// Reads `drop-flag:N`, `delay:RANK:SECONDS` or `memory:SIZE`.
pub fn read_inject(text: &str) -> Result<Inject, String> {
    let parts: Vec<&str> = text.split(':').collect();
    let inject = match parts[..] {
        ["drop-flag", flag] => flag.parse().ok().map(Inject::DropFlag),
        ["delay", rank, seconds] => rank
            .parse()
            .ok()
            .zip(read_seconds(seconds).ok())
            .map(|(rank, time)| Inject::Delay(rank, time)),
        ["memory", size] => size.parse::<Bytes>().ok().map(|b| Inject::Memory(b.get())),
        _ => None,
    };
    inject.ok_or_else(|| {
        format!("`{text}` is no fault; use drop-flag:N, delay:RANK:SECONDS or memory:SIZE")
    })
}

/// Reads a positive number of seconds, at most a day.
pub fn read_seconds(text: &str) -> Result<Duration, String> {
    text.parse()
        .ok()
        .filter(|&seconds: &f64| seconds > 0.0 && seconds <= 86_400.0)
        .map(Duration::from_secs_f64)
        .ok_or_else(|| format!("`{text}` is no time; give seconds above 0"))
}

/// Reads how long to heat the GPUs: a time of at most a second, or 0.
pub fn read_warm(text: &str) -> Result<Duration, String> {
    let seconds = match text.trim() {
        "0" => 0.0,
        text => text
            .parse::<Seconds>()
            .map_err(|error| error.to_string())?
            .get(),
    };
    match seconds <= 1.0 {
        true => Ok(Duration::from_secs_f64(seconds)),
        false => Err(format!(
            "`{text}` is too long; give at most 1 s, e.g. `0.4ms`"
        )),
    }
}

/// Reads `0,0,1,1`.
pub fn read_list(text: &str) -> Result<Vec<u32>, String> {
    text.split(',')
        .map(|part| part.trim().parse().ok())
        .collect::<Option<Vec<u32>>>()
        .ok_or_else(|| format!("`{text}` is no list of numbers; write e.g. `0,0,1,1`"))
}

/// How the GPUs are used.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "GPUs")]
pub struct UseArgs {
    /// Use the first N GPUs [default: all, as far as there are ranks]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub gpus: Option<u32>,
    /// Seconds that a run may take before it counts as hung (`DUET_LIMIT_SCALE` multiplies it)
    #[arg(long, value_name = "SECONDS", default_value = "10", value_parser = read_seconds)]
    pub limit: Duration,
    /// Choose each product's algorithm as the fastest of the library's first N guesses; 1: its
    /// first
    #[arg(long, value_name = "N", default_value = "1", value_parser = clap::value_parser!(u32).range(1..=64))]
    pub guesses: u32,
    /// Take products' algorithms from this file where it exists, and write all that were used to it
    #[arg(long, value_name = "FILE")]
    pub pins: Option<PathBuf>,
    /// Let something go wrong: drop-flag:N, delay:RANK:SECONDS or memory:SIZE
    #[arg(long, value_name = "FAULT", value_parser = read_inject)]
    pub inject: Vec<Inject>,
}

impl UseArgs {
    /// The limit, multiplied as the environment asks.
    pub fn limit(&self) -> Duration {
        let scale = std::env::var(SCALE).ok();
        let scale = scale.and_then(|text| text.parse().ok());
        let scale = scale.filter(|scale: &f64| *scale >= 1.0 && *scale <= 1e4);
        self.limit.mul_f64(scale.unwrap_or(1.0))
    }

    /// How the machine is used, heated for `warm` before each measurement.
    pub fn settings(&self, warm: Duration) -> Settings {
        let memory = self.inject.iter().find_map(|fault| match fault {
            Inject::Memory(bytes) => Some(*bytes),
            _ => None,
        });
        Settings {
            limit: self.limit(),
            memory,
            warm,
            pick: match self.guesses {
                1 => Pick::Heuristic,
                of => Pick::Fastest { of },
            },
        }
    }

    /// Opens GPUs by their numbers, with the algorithms of the file of pins; `warm`: how long they
    /// are heated before each measurement.
    ///
    /// # Errors
    /// [`Failure::Gpu`], and [`Failure::Input`] for a file that cannot be used here.
    pub fn machine<'s>(
        &self,
        session: &'s Session,
        gpus: &[u32],
        warm: Duration,
    ) -> Result<Machine<'s>, Failure> {
        let machine = Machine::open(session, gpus, self.settings(warm))?;
        if let Some(path) = self.pins.as_deref().filter(|path| path.exists()) {
            let name = path.display();
            let text = read_text(path, LARGEST)?;
            let read = Pins::read(&text)
                .and_then(|pins| machine.pin(&pins).map_err(|error| error.to_string()));
            read.map_err(|error| {
                Failure::Input(format!(
                    "error: `{name}` holds no algorithms for this machine: {error}\n  help: name another file, or remove it to have it written anew"
                ))
            })?;
        }
        Ok(machine)
    }

    /// Writes the file of pins.
    ///
    /// # Errors
    /// [`Failure::Input`] where it cannot be written.
    pub fn keep_pins(&self, machine: &Machine<'_>) -> Result<(), Failure> {
        match &self.pins {
            None => Ok(()),
            Some(path) => write_file(path, machine.pins().write()?.as_bytes()),
        }
    }

    /// What is to go wrong in a run.
    pub fn faults(&self) -> Faults {
        let mut faults = Faults::default();
        for fault in &self.inject {
            match *fault {
                Inject::DropFlag(flag) => faults.drop_flag = Some(FlagId(flag)),
                Inject::Delay(rank, time) => faults.delay = Some((Rank(rank), time)),
                Inject::Memory(_) => {}
            }
        }
        faults
    }

    /// That what is to go wrong is there.
    ///
    /// # Errors
    /// [`Failure::Usage`] for a flag or rank that `name` does not have.
    pub fn possible(&self, name: &str, plan: &Plan, ranks: usize) -> Result<(), Failure> {
        let faults = self.faults();
        let (flags, rank) = (plan.flags.len(), faults.delay.map(|(Rank(rank), _)| rank));
        let missing = match faults.drop_flag {
            Some(FlagId(flag)) if flag as usize >= flags => {
                format!("flag {flag}, but {flags} flags")
            }
            _ => match rank {
                Some(rank) if usize::from(rank) >= ranks => {
                    format!("rank {rank}, but {ranks} ranks")
                }
                _ => return Ok(()),
            },
        };
        Err(Failure::Usage(format!(
            "error: `{name}` has no {missing}\n  help: `duet gpu plan --steps` lists the flags; graphs and `--flags event` have none"
        )))
    }

    /// Starts the driver and opens the GPUs, in a process that finds its libraries.
    ///
    /// # Errors
    /// [`Failure::Gpu`] without usable GPUs.
    pub fn open(&self) -> Result<(Session, Watchdog), Failure> {
        let active = enter()?;
        let watchdog = Watchdog::new("starting the driver", START);
        let session = Session::open(active, self.gpus)?;
        watchdog.step("starting the libraries".to_owned(), START);
        Ok((session, watchdog))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn faults_lists_and_times_are_read_or_refused_in_words() {
        assert_eq!(read_inject("drop-flag:3"), Ok(Inject::DropFlag(3)));
        let second = Duration::from_secs(1);
        assert_eq!(read_inject("delay:1:1.0"), Ok(Inject::Delay(1, second)));
        assert_eq!(read_inject("memory:1MiB"), Ok(Inject::Memory(1 << 20)));
        for text in ["drop-flag", "delay:1", "delay:1:-1", "memory:x", "boom:1"] {
            let said = read_inject(text).unwrap_err();
            assert!(said.starts_with(&format!("`{text}` is no fault; use ")));
        }
        assert_eq!(read_list("0, 1,1"), Ok(vec![0, 1, 1]));
        assert!(read_list("0,,1").is_err());
        assert!(read_seconds("NaN").is_err() && read_seconds("0").is_err());
        assert_eq!(read_warm("3ms"), Ok(Duration::from_millis(3)));
        assert_eq!(read_warm("0"), Ok(Duration::ZERO));
        assert!(read_warm("3").unwrap_err().contains("has no unit"));
        assert!(read_warm("2 s").unwrap_err().contains("at most 1 s"));
    }
}
