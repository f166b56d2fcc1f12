//! One entry of `grids`, read but not yet multiplied out.

use std::collections::HashSet;

use super::machines::Machines;
use super::operator::{self, OperatorDraft};
use super::places::Places;
use super::strategies::{self, Listed};
use super::{plain_name, product, some, twice};
use crate::device::DType;
use crate::experiment::results::{HEAD, MIDDLE, TAIL};
use crate::gpu::campaign::products_name;
use crate::gpu::plan::Products;
use crate::input::yaml::{Node, Value};
use crate::input::{Diagnostic, Diagnostics, Fields};
use crate::sim::LaunchMode;

/// An axis with its place.
#[derive(Clone, Debug)]
pub(super) struct AxisDraft<'n> {
    pub node: &'n Node,
    pub name: String,
    pub values: Vec<u64>,
    /// Whether nothing was wrong with its name.
    named: bool,
}

/// A path to set with its values, each with its place.
pub(super) type SetDraft<'n> = (&'n Node, &'n str, Vec<(&'n Node, &'n str)>);

/// A grid as written.
#[derive(Clone, Debug)]
pub(super) struct Draft<'n> {
    pub node: &'n Node,
    pub name_node: &'n Node,
    pub name: String,
    pub topologies: Vec<(&'n Node, &'n str)>,
    /// `None`: each topology's own.
    pub tp: Option<Vec<(&'n Node, u32)>>,
    /// `None`: what each topology's GPUs multiply.
    pub dtype: Option<(&'n Node, DType)>,
    pub launch: LaunchMode,
    pub products: Products,
    pub axes: Vec<AxisDraft<'n>>,
    pub operators: Vec<OperatorDraft<'n>>,
    /// `None`: everything that comparisons try.
    pub strategies: Option<Vec<Listed<'n>>>,
    pub sets: Vec<SetDraft<'n>>,
    pub places: Places<'n>,
}

/// Reads a grid; mistakes are pushed, and `None` stands for one too broken to go on with.
pub(super) fn read<'n>(
    node: &'n Node,
    text: &str,
    machines: &mut Machines<'_>,
    found: &mut Diagnostics,
) -> Option<Draft<'n>> {
    let mut fields = Fields::of(node, "a grid", found)?;
    let name_node = fields.need("name", "operators", found);
    let name = name_node.and_then(|node| plain_name("name", node, found));
    let topologies = fields.need("topologies", "[a6000-pairs-8]", found);
    let topologies = topologies.map(|node| distinct("topologies", node, found));
    let tp = fields.get("tp");
    let tp = tp.map(|node| ranks(node, found));
    let dtype = fields.get("dtype").and_then(|node| {
        let at = node.choice("dtype", &DType::ALL.map(DType::name), found)?;
        Some((node, DType::ALL[at]))
    });
    let launch = fields.get("launch").and_then(|node| {
        let at = node.choice("launch", &LaunchMode::ALL.map(LaunchMode::name), found)?;
        Some(LaunchMode::ALL[at])
    });
    let products = fields.get("gemm").and_then(|node| {
        const ALL: [Products; 2] = [Products::Library, Products::Own];
        let at = node.choice("gemm", &ALL.map(products_name), found)?;
        Some(ALL[at])
    });
    let axes = fields.get("axes");
    let axes = axes.map_or_else(Vec::new, |node| axes_of(node, found));
    let operators = fields.need("operators", "[{ op: ag-gemm, … }]", found);
    let nodes = operators.and_then(|node| node.list("a list of operators", found));
    if let (Some(node), Some([])) = (operators, nodes) {
        found.push(node.wrong("`operators` is empty", "expected at least one operator"));
    }
    let operators: Vec<Option<OperatorDraft<'n>>> = nodes
        .unwrap_or_default()
        .iter()
        .map(|node| operator::read(node, text, &axes, found))
        .collect();
    let strategies = fields.get("strategies");
    let strategies = strategies.map(|node| strategies::read(node, found));
    let sets = fields.get("set");
    let sets = sets.map_or_else(Vec::new, |node| sets_of(node, found));
    let (paths, gpus) = (fields.get("paths"), fields.get("gpus"));
    let places = Places::read(paths, gpus, found);
    fields.finish(found);
    let read: Vec<OperatorDraft<'n>> = operators.iter().flatten().cloned().collect();
    let kinds: Vec<_> = read.iter().map(|operator| operator.kind).collect();
    let whole = !read.is_empty() && read.len() == operators.len();
    if whole {
        strategies::check(strategies.as_deref().unwrap_or_default(), &kinds, found);
    }
    if !whole || unused(&axes, &read, found) {
        // Machines are loaded when the grid is multiplied out; here only to find more mistakes.
        for &(topology, name) in topologies.iter().flatten() {
            for (key, path, values) in &sets {
                for (value, word) in values {
                    machines.get(topology, name, &[(key, path, value, word)], found);
                }
            }
        }
        return None;
    }
    Some(Draft {
        node,
        name_node: name_node?,
        name: name?,
        topologies: topologies?,
        tp,
        dtype,
        launch: launch.unwrap_or_default(),
        products: products.unwrap_or_default(),
        axes,
        operators: read,
        strategies,
        sets,
        places,
    })
}

/// Words, one or a list of them, each once.
fn distinct<'n>(key: &str, node: &'n Node, found: &mut Diagnostics) -> Vec<(&'n Node, &'n str)> {
    let mut words: Vec<(&'n Node, &'n str)> = Vec::new();
    // A list may have as many words as there may be cases.
    let mut known = HashSet::new();
    for node in some(key, node, found) {
        let Some(word) = node.word(key, found) else {
            continue;
        };
        match known.insert(word) {
            true => words.push((node, word)),
            false => found.push(twice(key, word, node)),
        }
    }
    words
}

fn ranks<'n>(node: &'n Node, found: &mut Diagnostics) -> Vec<(&'n Node, u32)> {
    let words = distinct("tp", node, found);
    let read = words.into_iter().filter_map(|(node, _)| {
        let tp = node.whole("tp", 1, u64::from(u16::MAX), found)?;
        Some((node, u32::try_from(tp).ok()?))
    });
    read.collect()
}

/// The entries of a map from words to values.
fn entries<'n>(key: &str, node: &'n Node, found: &mut Diagnostics) -> &'n [(Node, Node)] {
    match &node.value {
        Value::Map(entries) => entries,
        _ => {
            let message = format!("`{key}` holds {}", node.found());
            found.push(node.wrong(message, "expected a map from names to lists of values"));
            &[]
        }
    }
}

fn axes_of<'n>(node: &'n Node, found: &mut Diagnostics) -> Vec<AxisDraft<'n>> {
    let mut axes = Vec::new();
    for (key, list) in entries("axes", node, found) {
        let Some(name) = key.word("axes", found) else {
            continue;
        };
        let fits = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
        let begins = name.starts_with(|c: char| c.is_ascii_alphabetic());
        let plain = begins && name.chars().all(fits) && name.len() <= 64;
        let fixed = [&HEAD[..], &MIDDLE[..], &TAIL[..]].concat();
        if !plain {
            found.push(
                key.wrong(
                    format!("an axis cannot be called `{name}`"),
                    "not a plain name",
                )
                .help("begin with a letter; then letters, digits, `-` and `_`"),
            );
        } else if fixed.contains(&name) {
            found.push(
                key.wrong(format!("`{name}` is a column of every result"), "taken")
                    .help("give the axis another name, e.g. `seq`, `hidden` or `size`"),
            );
        }
        let mut values = Vec::new();
        let mut known = HashSet::new();
        for (node, word) in distinct(name, list, found) {
            match product::whole(word) {
                Err(words) => found.push(Diagnostic::from_words(
                    node.span.clone(),
                    format!("a value of axis `{name}`"),
                    &words,
                )),
                Ok(value) if known.insert(value) => values.push(value),
                Ok(_) => found.push(twice(name, word, node)),
            }
        }
        axes.push(AxisDraft {
            node: key,
            name: name.to_owned(),
            values,
            named: plain && !fixed.contains(&name),
        });
    }
    axes
}

fn sets_of<'n>(node: &'n Node, found: &mut Diagnostics) -> Vec<SetDraft<'n>> {
    let mut sets = Vec::new();
    for (key, list) in entries("set", node, found) {
        if let Some(path) = key.word("set", found) {
            sets.push((key, path, distinct(path, list, found)));
        }
    }
    sets
}

/// Whether some axis is used by no operator, so that its values would repeat each case; a mistake
/// is pushed for each.
fn unused(
    axes: &[AxisDraft<'_>],
    operators: &[OperatorDraft<'_>],
    found: &mut Diagnostics,
) -> bool {
    let mut some = false;
    for (index, axis) in axes.iter().enumerate() {
        if operators.iter().any(|operator| operator.uses(index)) {
            continue;
        }
        some = true;
        if !axis.named {
            continue;
        }
        let message = format!("no operator uses the axis `{}`", axis.name);
        let mistake = axis.node.wrong(message, "every case would be repeated");
        found.push(mistake.help("use it in a size, e.g. `m: seq`, or remove it"));
    }
    some
}
