//! What was found, by machine, in a file that survives a kill.

use std::fs::OpenOptions;
use std::io::Write;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::input::read_file;

/// Of every line.
const SCHEMA: &str = "duet-tune-1";
/// Largest file that is read \[bytes\].
const LARGEST: u64 = 64 << 20;

/// One setting that was performed, or was to be.
#[derive(Clone, Debug, PartialEq)]
pub struct Tried {
    pub setting: String,
    /// By the simulator \[seconds\].
    pub predicted: f64,
    /// Median and quantiles of the samples \[seconds\]; `None` where it was not performed.
    pub measured: Option<f64>,
    pub p10: Option<f64>,
    pub p90: Option<f64>,
    /// Why not.
    pub reason: Option<String>,
}

/// What came of one group.
#[derive(Clone, Debug, PartialEq)]
pub struct Tuned {
    /// Name of the group.
    pub group: String,
    /// Who measured: a file may hold several machines.
    pub machine: String,
    pub rounds: u32,
    /// Who simulated: a hash of Duet's version and the machine's numbers.
    pub model: String,
    /// How many settings there are.
    pub searched: u32,
    /// How many of them cannot be simulated, by reason.
    pub skipped: Vec<(String, u32)>,
    /// Those measured, in the order of the simulator.
    pub tried: Vec<Tried>,
}

impl Tuned {
    /// The fastest as measured, with its place in the simulator's order.
    pub fn best(&self) -> Option<(usize, &Tried, f64)> {
        let measured = self.tried.iter().enumerate();
        measured
            .filter_map(|(at, tried)| Some((at, tried, tried.measured?)))
            .min_by(|a, b| a.2.total_cmp(&b.2))
    }

    /// The simulator's first choice among those that could be performed, and its measured time.
    pub fn first(&self) -> Option<(&Tried, f64)> {
        self.tried
            .iter()
            .find_map(|tried| Some((tried, tried.measured?)))
    }

    /// By how much the simulator's first choice is slower than the best, as a share.
    pub fn regret(&self) -> Option<f64> {
        let ((_, first), (.., best)) = (self.first()?, self.best()?);
        Some(first / best - 1.0)
    }

    /// As JSON, times in seconds.
    pub fn json(&self) -> Value {
        let best = self.best();
        json!({
            "schema": SCHEMA,
            "group": self.group,
            "machine": self.machine,
            "rounds": self.rounds,
            "model": self.model,
            "searched": self.searched,
            "skipped": self.skipped.iter().map(|(reason, count)| json!({
                "reason": reason, "count": count,
            })).collect::<Vec<_>>(),
            "best": best.map(|(_, tried, _)| &tried.setting),
            "best_s": best.map(|(.., time)| time),
            "best_rank": best.map(|(at, ..)| at + 1),
            "first_s": self.first().map(|(_, time)| time),
            "regret": self.regret(),
            "tried": self.tried.iter().map(|tried| json!({
                "setting": tried.setting,
                "predicted_s": tried.predicted,
                "measured_s": tried.measured,
                "p10_s": tried.p10,
                "p90_s": tried.p90,
                "reason": tried.reason,
            })).collect::<Vec<_>>(),
        })
    }

    fn read(line: &str) -> Option<Self> {
        let value: Value = serde_json::from_str(line).ok()?;
        let text = |value: &Value| value.as_str().map(str::to_owned);
        let tried = |value: &Value| {
            Some(Tried {
                setting: text(&value["setting"])?,
                predicted: value["predicted_s"].as_f64()?,
                measured: value["measured_s"].as_f64(),
                p10: value["p10_s"].as_f64(),
                p90: value["p90_s"].as_f64(),
                reason: text(&value["reason"]),
            })
        };
        let skip = |value: &Value| {
            let count = u32::try_from(value["count"].as_u64()?).ok()?;
            Some((text(&value["reason"])?, count))
        };
        (value["schema"] == SCHEMA).then_some(())?;
        // The first lines had neither.
        let skipped = value["skipped"].as_array().map_or(&[][..], Vec::as_slice);
        Some(Self {
            group: text(&value["group"])?,
            machine: text(&value["machine"])?,
            rounds: u32::try_from(value["rounds"].as_u64()?).ok()?,
            searched: u32::try_from(value["searched"].as_u64()?).ok()?,
            model: text(&value["model"]).unwrap_or_default(),
            skipped: skipped.iter().map(skip).collect::<Option<_>>()?,
            tried: value["tried"]
                .as_array()?
                .iter()
                .map(tried)
                .collect::<Option<_>>()?,
        })
    }
}

/// Why results are not kept; in words, with a remedy.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    #[error("cannot read `{path}`: {error}\n  help: name another file with `--cache`")]
    Read { path: String, error: std::io::Error },
    #[error("cannot write `{path}`: {error}\n  help: name another file with `--cache`")]
    Write { path: String, error: std::io::Error },
    #[error(
        "line {line} of `{path}` is no result of `duet tune`\n  help: name another file with `--cache`, or forget what it holds with `--fresh`"
    )]
    Line { path: String, line: usize },
}

/// A file with a line for each group, the latest of a group and machine counting.
#[derive(Debug)]
pub struct Store {
    path: PathBuf,
    known: Vec<Tuned>,
}

impl Store {
    /// Reads what there is, nothing where there is no file; `fresh` forgets it. A last line that a kill cut
    /// short is removed.
    ///
    /// # Errors
    /// [`StoreError`].
    pub fn open(path: &Path, fresh: bool) -> Result<Self, StoreError> {
        let shown = || path.display().to_string();
        let write = |error| StoreError::Write {
            path: shown(),
            error,
        };
        let read = read_file(path, LARGEST).and_then(|bytes| {
            String::from_utf8(bytes).map_err(|_| {
                std::io::Error::new(std::io::ErrorKind::InvalidData, "it is not UTF-8 text")
            })
        });
        let text = match read {
            Ok(text) if !fresh => text,
            Ok(_) => String::new(),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => String::new(),
            Err(error) => {
                return Err(StoreError::Read {
                    path: shown(),
                    error,
                });
            }
        };
        let whole = text.rfind('\n').map_or("", |end| &text[..=end]);
        let known = whole
            .lines()
            .enumerate()
            .map(|(at, line)| {
                Tuned::read(line).ok_or_else(|| StoreError::Line {
                    path: shown(),
                    line: at + 1,
                })
            })
            .collect::<Result<Vec<_>, _>>()?;
        let changed = fresh || whole.len() < text.len();
        if changed && path.exists() {
            // Cut, not written anew: a full disk would leave nothing.
            let file = OpenOptions::new().write(true).open(path).map_err(write)?;
            file.set_len(whole.len() as u64).map_err(write)?;
        }
        Ok(Self {
            path: path.to_owned(),
            known,
        })
    }

    /// What is known of the group and machine of `wanted` by the same model, from at least as many rounds and
    /// `tried` settings.
    pub fn get(&self, wanted: &Tuned, tried: usize) -> Option<&Tuned> {
        self.known.iter().rev().find(|known| {
            known.group == wanted.group
                && known.machine == wanted.machine
                && known.model == wanted.model
                && known.rounds >= wanted.rounds
                && known.tried.len() >= tried
        })
    }

    /// Keeps what came of a group.
    ///
    /// # Errors
    /// [`StoreError::Write`].
    pub fn keep(&mut self, tuned: Tuned) -> Result<(), StoreError> {
        let write = |error| StoreError::Write {
            path: self.path.display().to_string(),
            error,
        };
        if let Some(folder) = self.path.parent().filter(|f| !f.as_os_str().is_empty()) {
            std::fs::create_dir_all(folder).map_err(write)?;
        }
        let mut file = OpenOptions::new()
            .create(true)
            .append(true)
            .open(&self.path)
            .map_err(write)?;
        file.write_all(format!("{}\n", tuned.json()).as_bytes())
            .map_err(write)?;
        self.known.push(tuned);
        Ok(())
    }
}
