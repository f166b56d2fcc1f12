//! Which experiment a table belongs to.

use std::fmt::Write;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::model::FINGERPRINT;
use super::{Layout, Shard};
use crate::experiment::Experiment;
use crate::experiment::results::{self, Outcome};
use crate::input::Fingerprint;

/// Version of the table's format and of this file's.
const FORMAT: u32 = 1;

/// What stands beside a table, as JSON.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stamp {
    pub format: u32,
    /// Version of Duet that performed it.
    pub duet: String,
    /// The model that it performed it with; of several under one version.
    #[serde(default)]
    pub model: String,
    /// The experiment's name and file, as seen from the table's folder; earlier versions wrote it as seen
    /// from where they ran.
    pub experiment: String,
    pub file: String,
    /// Hash of the machines, cases and strategies.
    pub fingerprint: String,
    /// `i/n`; absent for a whole experiment.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub shard: Option<String>,
    /// Cases of the whole experiment.
    pub cases: u64,
    /// Rows of this table.
    pub rows: u64,
}

impl Stamp {
    /// The stamp of a run.
    pub fn of(experiment: &Experiment, shard: Option<Shard>) -> Self {
        Self {
            format: FORMAT,
            duet: env!("CARGO_PKG_VERSION").to_owned(),
            model: FINGERPRINT.to_owned(),
            experiment: experiment.name.clone(),
            file: experiment.file.display().to_string(),
            fingerprint: fingerprint(experiment),
            shard: shard.map(|shard| shard.to_string()),
            cases: experiment.cases.len() as u64,
            rows: super::size(experiment, shard).1,
        }
    }

    /// The stamp beside a table.
    pub fn beside(table: &Path) -> Option<Self> {
        Self::read(&table.with_extension("run.json"))
    }

    /// The experiment's file, for a stamp in `folder`.
    pub fn experiment_file(&self, folder: &Path) -> PathBuf {
        let file = crate::input::beside(folder, Path::new(&self.file));
        match file.exists() || !Path::new(&self.file).exists() {
            true => file,
            false => PathBuf::from(&self.file),
        }
    }

    /// Why a table with this stamp is none of the experiment's, in words; `None` where it may be.
    pub fn foreign(&self, experiment: &Experiment) -> Option<String> {
        let own = Self::of(experiment, None);
        if self.experiment != own.experiment {
            return Some(format!(
                "they are of `{}`, not of `{}`",
                self.experiment, own.experiment
            ));
        }
        let same = (&self.duet, &self.model) == (&own.duet, &own.model);
        let changed = same && self.fingerprint != own.fingerprint;
        (changed || self.cases != own.cases)
            .then(|| "its machines, cases or strategies have changed since".to_owned())
    }

    /// Reads a stamp; `None` where there is none that this version understands.
    pub fn read(path: &Path) -> Option<Self> {
        let bytes = crate::input::read_file(path, 1 << 20).ok()?;
        let stamp: Self = serde_json::from_slice(&bytes).ok()?;
        (stamp.format == FORMAT).then_some(stamp)
    }

    /// Whether a table with the other stamp holds the very rows of this one.
    pub fn agrees(&self, other: &Self) -> bool {
        let rows = |stamp: &Self| (stamp.fingerprint.clone(), stamp.shard.clone(), stamp.rows);
        rows(self) == rows(other)
    }

    /// As it is written.
    pub fn text(&self) -> String {
        let text = serde_json::to_string_pretty(self);
        text.unwrap_or_default() + "\n"
    }
}

/// Everything that results depend on, hashed: the version and the model, each machine with all its
/// numbers, and each row's identity.
fn fingerprint(experiment: &Experiment) -> String {
    let mut hash = Fingerprint::default();
    // Hashing cannot fail.
    let version = env!("CARGO_PKG_VERSION");
    let _ = writeln!(hash, "{FORMAT} {version} {FINGERPRINT}");
    let header = results::header(&experiment.sets, &experiment.axes);
    let _ = writeln!(hash, "{header:?}");
    for machine in &experiment.machines {
        let _ = writeln!(hash, "{:?} {:?}", machine.sets, machine.topology);
    }
    let layout = Layout::of(experiment);
    for (index, case) in experiment.cases.iter().enumerate() {
        let none = Outcome::Skipped("".into());
        let row = layout.row(experiment, index as u32, "", none, (0.0, None));
        let _ = write!(hash, "{} {:?}", case.machine, results::identity(&row));
        for choice in &*case.strategies {
            let _ = write!(hash, " {choice}");
        }
        let _ = hash.write_str("\n");
    }
    hash.to_string()
}
