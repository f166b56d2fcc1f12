//! `fat_tree`: an extended generalised fat tree with GPUs as leaves.
//!
//! Level l (from 1) has switches with `down[l]` children each; a node below has `up[l]` parents.
//! With h levels there are Π down leaves, and level l has Π_{i>l} down[i] · Π_{i≤l} up[i] switches.
//! Full bisection at arity k: down = [k, …, k], up = [1, k, …, k], that is k^h GPUs.
//! Reference: S. Öhring et al., "On generalized fat trees", IPPS 1995. Routes spread by
//! destination (`ties: spread`, d-mod-k) unless the file says otherwise.
//!
//! A switch of level l is named by (w₁…w_l, m_{l+1}…m_h); its children differ in w_l dropped and
//! m_l added.

use super::{Generator, Scope, count};
use crate::input::Fields;
use crate::topology::read::draft::{Draft, LinkSpec};
use crate::topology::{NodeId, Ties};

pub(super) const GENERATOR: Generator = Generator {
    name: "fat_tree",
    about: "a fat tree of any levels, arities and oversubscription",
    run,
};

fn run(fields: &mut Fields, scope: Scope, draft: &mut Draft) -> Option<()> {
    let spec = draft.spec(fields, "fabric");
    let shape = shape(fields, draft);
    let (down, up) = shape?;
    let spec = spec?;
    let leaves = product(&down);
    let (mut nodes, mut links) = (leaves, 0_u64);
    for level in 0..down.len() {
        let below = size(&down, &up, level);
        nodes = nodes.saturating_add(size(&down, &up, level + 1));
        links = links.saturating_add(below.saturating_mul(2 * up[level]));
    }
    draft.room(scope.at, nodes, links).then_some(())?;
    draft.ties = Ties::Spread;
    let mut below = draft.next_gpus(scope, leaves)?;
    for level in 0..down.len() {
        below = add_level(scope, level, &down, &up, &below, spec, draft)?;
    }
    Some(())
}

/// Adds the switches above `below` and the links to them.
fn add_level(
    scope: Scope,
    level: usize,
    down: &[u64],
    up: &[u64],
    below: &[NodeId],
    spec: LinkSpec,
    draft: &mut Draft,
) -> Option<Vec<NodeId>> {
    // Node number = planes index (w₁…w_l, w₁ slowest) + planes · subtree index (m_{l+1}…m_h).
    let planes = product(&up[..level]);
    let parents = up[level];
    let stem = format!("level{}-", level + 1);
    let switches: Vec<NodeId> = (0..size(down, up, level + 1))
        .map(|number| draft.switch(scope, &stem, number))
        .collect::<Option<_>>()?;
    for (number, &node) in below.iter().enumerate() {
        let number = number as u64;
        let (plane, subtree) = (number % planes, number / planes);
        for parent in 0..parents {
            let above = plane * parents + parent + planes * parents * (subtree / down[level]);
            let switch = switches[usize::try_from(above).ok()?];
            draft.both(&scope.at.span, node, switch, spec)?;
        }
    }
    Some(switches)
}

fn product(numbers: &[u64]) -> u64 {
    numbers
        .iter()
        .fold(1, |product: u64, &number| product.saturating_mul(number))
}

/// Number of nodes on a level; level 0 are the leaves.
fn size(down: &[u64], up: &[u64], level: usize) -> u64 {
    product(&down[level..]).saturating_mul(product(&up[..level]))
}

/// `arity` and `levels`, or `down` and `up`.
fn shape(fields: &mut Fields, draft: &mut Draft) -> Option<(Vec<u64>, Vec<u64>)> {
    let (down, up) = (fields.get("down"), fields.get("up"));
    let (Some(down), Some(up)) = (down, up) else {
        if let Some(node) = down.or(up) {
            let mistake = node.wrong("`down` and `up` belong together", "one of them is missing");
            draft
                .found
                .push(mistake.help("write e.g. `down: [16, 8], up: [1, 16]`"));
            return None;
        }
        let arity = count(fields, "arity", (1, 1 << 20), None, draft);
        let levels = count(fields, "levels", (1, 8), None, draft);
        let levels = usize::try_from(levels?).ok()?;
        let mut up = vec![arity?; levels];
        up[0] = 1;
        return Some((vec![arity?; levels], up));
    };
    let mut read = |node: &crate::input::yaml::Node, key| -> Option<Vec<u64>> {
        node.list("a list of numbers by level", &mut draft.found)?
            .iter()
            .map(|item| item.whole(key, 1, 1 << 20, &mut draft.found))
            .collect()
    };
    let (downs, ups) = (read(down, "down"), read(up, "up"));
    let (downs, ups) = (downs?, ups?);
    if downs.is_empty() || downs.len() != ups.len() || downs.len() > 8 {
        draft.found.push(up.wrong(
            format!("{} levels in `down`, {} in `up`", downs.len(), ups.len()),
            "expected as many numbers as in `down`, 1 to 8",
        ));
        return None;
    }
    Some((downs, ups))
}
