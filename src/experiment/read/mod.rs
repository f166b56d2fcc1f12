//! Reading `experiment.yaml`: everything is checked, and named with its place, before a case runs.
//! `docs/experiments.md` describes the format.

mod cases;
mod grid;
mod machines;
mod operator;
mod places;
mod product;
mod strategies;

use std::path::Path;

use super::{AnalysisOptions, Experiment, ExperimentError, Machine, measure};
use crate::input::yaml::{self, Node};
use crate::input::{Diagnostics, Fields, decode, did_you_mean, read_file};
use machines::Machines;

/// Largest file that is read \[bytes\].
const LARGEST: u64 = 16 << 20;
/// Most cases of one experiment; their list is kept in memory.
const MOST_CASES: u64 = 1_000_000;

/// Reads the experiment in a file; `figures` are the names that its `figures:` may list.
///
/// # Errors
/// [`ExperimentError`]: an unreadable file, or every mistake in it with its place.
pub fn read(path: &Path, figures: &[&str]) -> Result<Experiment, ExperimentError> {
    let shown = path.display().to_string();
    let bytes = read_file(path, LARGEST).map_err(|error| ExperimentError::Unreadable {
        path: shown.clone(),
        reason: match error.kind() {
            std::io::ErrorKind::IsADirectory => "it is a folder: name the file in it".to_owned(),
            std::io::ErrorKind::NotFound => {
                "there is no such file; give the path of an experiment's YAML file".to_owned()
            }
            _ => error.to_string(),
        },
    })?;
    let text = decode(&shown, &bytes).map_err(ExperimentError::Invalid)?;
    parse(text, &shown, figures)
}

/// Reads the text of the file `file`; topologies are found relative to its folder.
///
/// # Errors
/// [`ExperimentError::Invalid`]: every mistake with its place.
pub fn parse(text: &str, file: &str, figures: &[&str]) -> Result<Experiment, ExperimentError> {
    let mut found = Diagnostics::default();
    let node = yaml::parse(text).map_err(|mistake| {
        found.push(mistake);
        ExperimentError::Invalid(found.render(file, text))
    })?;
    let base = Path::new(file).parent().unwrap_or(Path::new(""));
    let mut machines = Machines::new(base);
    let experiment = experiment(&node, text, file, figures, &mut machines, &mut found);
    match experiment {
        Some(experiment) if found.is_empty() => Ok(experiment),
        _ => {
            let mut parts = vec![found.render(file, text)];
            parts.extend(machines.broken);
            Err(ExperimentError::Invalid(parts.join("\n\n")))
        }
    }
}

fn experiment(
    node: &Node,
    text: &str,
    file: &str,
    figures: &[&str],
    machines: &mut Machines<'_>,
    found: &mut Diagnostics,
) -> Option<Experiment> {
    let mut fields = Fields::of(node, "an experiment", found)?;
    let name = fields
        .need("name", "compass", found)
        .and_then(|node| plain_name("name", node, found));
    let about = fields.get("about");
    let about = about.and_then(|node| node.word("about", found));
    let grids = fields.need("grids", "[{ name: operators, … }]", found);
    let grids = grids.and_then(|node| node.list("a list of grids", found));
    let wanted = fields.get("figures");
    let figures = wanted.map(|node| {
        words("figures", node, found, |name| {
            if figures.contains(&name) {
                return Ok(());
            }
            let remedy = did_you_mean(name, figures.iter().copied());
            Err(format!("`{name}` is no figure: {remedy}"))
        })
    });
    let analysis = fields.get("analysis");
    let analysis = analysis.and_then(|node| analysis_options(node, found));
    let measured = fields.get("measure");
    let measure = measured.and_then(|node| measure::read(node, found));
    fields.finish(found);
    let mut experiment = Experiment {
        name: name.unwrap_or_default(),
        about: about.unwrap_or_default().to_owned(),
        file: file.into(),
        machines: Vec::new(),
        grids: Vec::new(),
        cases: Vec::new(),
        sets: Vec::new(),
        axes: Vec::new(),
        figures,
        analysis,
        measure: measure.unwrap_or_default(),
    };
    let grids = grids?;
    if grids.is_empty() {
        found.push(node.wrong("`grids` is empty", "expected at least one grid"));
    }
    let mut drafts = Vec::new();
    for node in grids {
        let Some(draft) = grid::read(node, text, machines, found) else {
            continue;
        };
        if drafts
            .iter()
            .any(|other: &grid::Draft<'_>| other.name == draft.name)
        {
            found.push(
                draft
                    .name_node
                    .wrong(format!("two grids are called `{}`", draft.name), "taken")
                    .help("give each grid a name of its own"),
            );
        }
        drafts.push(draft);
    }
    for draft in &drafts {
        cases::expand(draft, machines, &mut experiment, found);
    }
    columns(&drafts, &mut experiment, found);
    keep_used(std::mem::take(&mut machines.list), &mut experiment);
    Some(experiment)
}

/// Gives the experiment the machines that its cases name, in their order; a topology that every
/// grid varies is not one of them itself.
fn keep_used(machines: Vec<Machine>, experiment: &mut Experiment) {
    let mut numbers: Vec<Option<u32>> = vec![None; machines.len()];
    for case in &experiment.cases {
        numbers[case.machine as usize] = Some(0);
    }
    let used = numbers.iter_mut().flatten();
    used.zip(0..).for_each(|(number, next)| *number = next);
    for case in &mut experiment.cases {
        case.machine = numbers[case.machine as usize].unwrap_or(case.machine);
    }
    let kept = machines.into_iter().zip(&numbers);
    experiment.machines = kept
        .filter_map(|(machine, number)| number.map(|_| machine))
        .collect();
}

/// The columns that axes and set paths become: each once, in the order of first mention.
fn columns(drafts: &[grid::Draft<'_>], experiment: &mut Experiment, found: &mut Diagnostics) {
    for draft in drafts {
        for (_, path, _) in &draft.sets {
            if !experiment.sets.iter().any(|known| known == path) {
                experiment.sets.push((*path).to_owned());
            }
        }
    }
    for column in drafts.iter().flat_map(|draft| draft.places.columns()) {
        if !experiment.sets.iter().any(|known| known == column) {
            experiment.sets.push(column.to_owned());
        }
    }
    for draft in drafts {
        for axis in &draft.axes {
            if experiment.sets.contains(&axis.name) {
                let message = format!("`{}` is set by a grid and an axis of one", axis.name);
                let mistake = axis.node.wrong(message, "taken");
                found.push(mistake.help("give the axis another name: both become columns"));
            }
            if !experiment.axes.contains(&axis.name) {
                experiment.axes.push(axis.name.clone());
            }
        }
    }
}

/// Words, one or a list of them, each once and each as `check` wants it (`what is wrong: remedy`).
fn words(
    key: &str,
    node: &Node,
    found: &mut Diagnostics,
    check: impl Fn(&str) -> Result<(), String>,
) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    for node in some(key, node, found) {
        let Some(word) = node.word(key, found) else {
            continue;
        };
        if let Err(reason) = check(word) {
            found.push(crate::input::Diagnostic::from_words(
                node.span.clone(),
                "",
                &reason,
            ));
        } else if words.iter().any(|known| known == word) {
            found.push(twice(key, word, node));
        } else {
            words.push(word.to_owned());
        }
    }
    words
}

/// The entries of a list, or the one value that stands for a list of one; an empty list is a
/// mistake.
fn some<'n>(key: &str, node: &'n Node, found: &mut Diagnostics) -> &'n [Node] {
    match &node.value {
        yaml::Value::Text(_) => std::slice::from_ref(node),
        yaml::Value::List(nodes) if nodes.is_empty() => {
            let mistake = node.wrong(format!("`{key}` is empty"), "expected at least one value");
            found.push(
                mistake.help("an empty list makes an empty grid: add a value or remove the key"),
            );
            &[]
        }
        yaml::Value::List(nodes) => nodes,
        _ => {
            let message = format!("`{key}` holds {}", node.found());
            found.push(node.wrong(message, "expected a value or a list of values"));
            &[]
        }
    }
}

/// The mistake that a value is in a list already.
fn twice(key: &str, word: &str, node: &Node) -> crate::input::Diagnostic {
    node.wrong(format!("`{word}` is twice in `{key}`"), "the second time")
        .help("remove one: every case is performed once")
}

/// A name that can stand in a table and in a file's name.
fn plain_name(key: &str, node: &Node, found: &mut Diagnostics) -> Option<String> {
    let name = node.word(key, found)?;
    let fits = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    if (1..=64).contains(&name.len()) && name.chars().all(fits) && !name.starts_with('.') {
        return Some(name.to_owned());
    }
    found.push(
        node.wrong(format!("`{key}` cannot be `{name}`"), "not a plain name")
            .help("use up to 64 letters, digits, `-`, `_` and `.`"),
    );
    None
}

/// `{ train: 1/3, seed: 1 }`.
fn analysis_options(node: &Node, found: &mut Diagnostics) -> Option<AnalysisOptions> {
    let mut fields = Fields::of(node, "the analysis", found)?;
    let train = fields.get("train").map(|node| {
        let text = node.word("train", found)?;
        let share = match text.split_once('/') {
            None => text.parse().ok(),
            Some((a, b)) => match (a.trim().parse::<f64>(), b.trim().parse::<f64>()) {
                (Ok(a), Ok(b)) => Some(a / b),
                _ => None,
            },
        };
        let share = share.filter(|share| *share > 0.0 && *share < 1.0);
        if share.is_none() {
            let mistake = node.wrong(format!("`train` cannot be `{text}`"), "not a share");
            found.push(mistake.help("write a share between 0 and 1, e.g. `1/3`"));
        }
        share
    });
    let seed = fields.get("seed");
    let seed = seed.map(|node| node.whole("seed", 0, u64::MAX, found));
    fields.finish(found);
    Some(AnalysisOptions {
        train: train.unwrap_or(Some(1.0 / 3.0))?,
        seed: seed.unwrap_or(Some(1))?,
    })
}
