//! Parameters from a file.

use std::path::Path;

use super::{Key, Overhead, Parameters};
use crate::device::SOURCE_KINDS;
use crate::input::yaml::{self, Node};
use crate::input::{Diagnostics, Fields, decode, list, read_file};
use crate::operator::Kind;
use crate::units::{Bytes, Seconds};

/// Largest file \[bytes\].
const LARGEST: u64 = 16 << 20;

/// Why there are no parameters; the text is complete, with the place in the file and the remedy.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ParametersError {
    /// The file cannot be read.
    #[error(
        "cannot read the parameters `{path}`: {reason}\n  help: give the file that `duet fit` wrote with `--out`"
    )]
    Unreadable { path: String, reason: String },
    /// The file has mistakes; all are rendered.
    #[error("{0}")]
    Invalid(String),
}

/// Seconds per byte, written as `0.03 us/MB`.
struct PerByte(f64);

impl std::str::FromStr for PerByte {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (time, unit) = text
            .rsplit_once('/')
            .ok_or_else(|| "it is a time per size: write e.g. `0.03 us/MB`".to_owned())?;
        let seconds: Seconds = time.trim().parse().map_err(|e| format!("{e}"))?;
        let bytes: Bytes = format!("1 {}", unit.trim())
            .parse()
            .map_err(|e| format!("{e}"))?;
        Ok(Self(seconds.get() / bytes.as_f64()))
    }
}

impl Parameters {
    /// Reads a file.
    ///
    /// # Errors
    /// [`ParametersError`].
    pub fn load(path: &Path) -> Result<Self, ParametersError> {
        let name = path.display().to_string();
        let bytes = read_file(path, LARGEST).map_err(|error| ParametersError::Unreadable {
            path: name.clone(),
            reason: error.to_string(),
        })?;
        let text = decode(&name, &bytes).map_err(ParametersError::Invalid)?;
        Self::read(text, &name)
    }

    /// Reads a text; `file` names it in messages.
    ///
    /// # Errors
    /// [`ParametersError::Invalid`]: all mistakes found, rendered.
    pub fn read(text: &str, file: &str) -> Result<Self, ParametersError> {
        let mut found = Diagnostics::default();
        let mut parameters = Self::default();
        match yaml::parse(text) {
            Ok(node) => entries(&node, &mut parameters, &mut found),
            Err(mistake) => found.push(mistake),
        }
        if found.is_empty() {
            Ok(parameters)
        } else {
            Err(ParametersError::Invalid(found.render(file, text)))
        }
    }
}

fn entries(node: &Node, parameters: &mut Parameters, found: &mut Diagnostics) {
    let Some(mut top) = Fields::of(node, "a file of parameters", found) else {
        return;
    };
    let overheads = top.need("overheads", "[]", found);
    top.finish(found);
    let nodes = overheads.and_then(|node| node.list("a list of overheads", found));
    for node in nodes.unwrap_or_default() {
        let Some((key, overhead)) = entry(node, found) else {
            continue;
        };
        if parameters.overheads.contains_key(&key) {
            found.push(node.wrong(
                format!("the overhead of {} is given twice", key.strategy),
                format!(
                    "second for {} on {}, tp {}",
                    key.operator, key.topology, key.tp
                ),
            ));
        }
        parameters.insert(key, overhead);
    }
}

fn entry(node: &Node, found: &mut Diagnostics) -> Option<(Key, Overhead)> {
    let mut fields = Fields::of(node, "an overhead", found)?;
    let topology = fields.need("topology", "a6000-pairs-8", found);
    let operator = fields.need("operator", "ag-gemm", found);
    let tp = fields.need("tp", "8", found);
    let strategy = fields.need("strategy", "interdecom", found);
    let alpha = fields.need("alpha", "12.5 us", found);
    let beta = fields.need("beta", "0.03 us/MB", found);
    let alpha_interval = fields.get("alpha_interval");
    let beta_interval = fields.get("beta_interval");
    let rows = fields.get("rows");
    let source = fields.need("source", "fitted, 96 rows of measured.csv", found);
    fields.finish(found);
    let kinds = Kind::ALL.map(Kind::name);
    let topology = topology?.word("topology", found)?.to_owned();
    let operator = operator?.choice("operator", &kinds, found);
    let tp = tp?.whole("tp", 1, 1 << 20, found);
    let name = strategy?.word("strategy", found)?;
    let known = crate::strategy::parse(name);
    let strategy = match &known {
        Ok(choice) => Some(super::family(choice)),
        Err(error) => {
            found.push(strategy?.wrong(format!("`{name}` is not a strategy"), error.to_string()));
            None
        }
    };
    let alpha: Option<Seconds> = alpha?.parse("alpha", found);
    let beta: Option<PerByte> = beta?.parse("beta", found);
    let alpha_interval = alpha_interval.map(|node| pair(node, found, seconds));
    let beta_interval = beta_interval.map(|node| pair(node, found, per_byte));
    let rows = rows.map(|node| node.whole("rows", 0, u64::MAX, found));
    let source = source?;
    let text = source.word("source", found)?;
    let kind = text.split([',', ' ']).next().unwrap_or("");
    let sourced = SOURCE_KINDS.contains(&kind);
    if !sourced {
        let label = format!("expected to begin with one of {}", list(SOURCE_KINDS));
        found.push(source.wrong(
            format!("`{text}` does not say where the numbers come from"),
            label,
        ));
    }
    let key = Key {
        topology,
        operator: Kind::ALL[operator?],
        tp: u32::try_from(tp?).ok()?,
        strategy: strategy?,
    };
    let overhead = Overhead {
        alpha: alpha?.get(),
        beta: beta?.0,
        alpha_interval: some(alpha_interval)?,
        beta_interval: some(beta_interval)?,
        rows: some(rows)?,
        source: text.to_owned(),
    };
    sourced.then_some((key, overhead))
}

/// `None` inside where nothing was written, outside where it was wrong.
fn some<T>(value: Option<Option<T>>) -> Option<Option<T>> {
    match value {
        None => Some(None),
        Some(read) => read.map(Some),
    }
}

fn seconds(node: &Node, found: &mut Diagnostics) -> Option<f64> {
    node.parse::<Seconds>("alpha_interval", found)
        .map(Seconds::get)
}

fn per_byte(node: &Node, found: &mut Diagnostics) -> Option<f64> {
    node.parse::<PerByte>("beta_interval", found)
        .map(|beta| beta.0)
}

/// A list of a lower and an upper end.
fn pair(
    node: &Node,
    found: &mut Diagnostics,
    one: impl Fn(&Node, &mut Diagnostics) -> Option<f64>,
) -> Option<[f64; 2]> {
    let ends = node.list("a list of the lower and the upper end", found)?;
    let [low, high] = ends else {
        found.push(node.wrong("an interval has two ends", format!("found {}", ends.len())));
        return None;
    };
    let (low, high) = (one(low, found)?, one(high, found)?);
    if low > high {
        found.push(node.wrong(
            "the interval ends below its beginning",
            "write the lower end first",
        ));
        return None;
    }
    Some([low, high])
}
