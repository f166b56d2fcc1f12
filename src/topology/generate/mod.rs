//! Generators: whole networks from a few numbers. One file per generator and one line in
//! [`GENERATORS`].
//!
//! A generator reads its keys, asks `Draft::room` before it makes anything, and adds nodes and
//! links to the `Draft`, which checks them. Inside a copy (`replicate`) names get a prefix.

mod dragonfly;
mod fat_tree;
mod full_mesh;
mod rail_optimized;
mod replicate;
mod switch;
mod torus;

use crate::input::yaml::{Node as Yaml, Value};
use crate::input::{Fields, did_you_mean};
use crate::topology::NodeId;
use crate::topology::read::draft::{Draft, LinkSpec};
use crate::topology::read::nodes::names_of;

/// A network by name.
#[derive(Debug)]
pub struct Generator {
    /// The key in the file.
    pub name: &'static str,
    /// What it makes, in one line.
    pub about: &'static str,
    run: fn(&mut Fields, Scope, &mut Draft) -> Option<()>,
}

/// Where a generator stands and what is put before the names that it makes.
#[derive(Copy, Clone, Debug)]
struct Scope<'s> {
    at: &'s Yaml,
    prefix: &'s str,
}

/// All generators, in the order of the documentation.
pub const GENERATORS: [Generator; 7] = [
    switch::GENERATOR,
    full_mesh::GENERATOR,
    rail_optimized::GENERATOR,
    fat_tree::GENERATOR,
    torus::GENERATOR,
    dragonfly::GENERATOR,
    replicate::GENERATOR,
];

/// Reads `generate:`, a list of `NAME: { … }`.
pub(super) fn read(node: &Yaml, prefix: &str, draft: &mut Draft) -> Option<()> {
    for item in node.list("a list of generators", &mut draft.found)? {
        read_one(item, prefix, draft);
    }
    Some(())
}

fn read_one(item: &Yaml, prefix: &str, draft: &mut Draft) -> Option<()> {
    let Value::Map(entries) = &item.value else {
        let example = "expected e.g. `switch: { gpus: 8, … }`";
        draft
            .found
            .push(item.wrong(format!("found {}", item.found()), example));
        return None;
    };
    for (key, arguments) in entries {
        let name = key.word("a generator", &mut draft.found)?;
        let Some(generator) = GENERATORS.iter().find(|known| known.name == name) else {
            let names = GENERATORS.iter().map(|generator| generator.name);
            let mistake = key.wrong(format!("`{name}` is not a generator"), "unknown generator");
            draft.found.push(mistake.help(did_you_mean(name, names)));
            continue;
        };
        let mut fields = Fields::of(arguments, generator.name, &mut draft.found)?;
        let scope = Scope {
            at: arguments,
            prefix,
        };
        match (generator.run)(&mut fields, scope, draft) {
            Some(()) => fields.finish(&mut draft.found),
            None => fields.finish_early(&mut draft.found),
        }
    }
    Some(())
}

impl Draft {
    /// Adds GPUs with the next numbers of this scope; ask for room first.
    fn next_gpus(&mut self, scope: Scope, count: u64) -> Option<Vec<NodeId>> {
        (0..count)
            .map(|_| {
                let number = self.gpus.len() - self.scope_start;
                self.gpu(&scope.at.span, format!("{}gpu{number}", scope.prefix))
            })
            .collect()
    }

    /// Adds a switch `stem` + `number`.
    fn switch(
        &mut self,
        scope: Scope,
        stem: &str,
        number: impl std::fmt::Display,
    ) -> Option<NodeId> {
        let name = format!("{}{stem}{number}", scope.prefix);
        self.node(&scope.at.span, name, crate::topology::NodeKind::Switch)
    }

    /// The members of a network: `gpus: N` further GPUs or `connect: [names]` of nodes that exist.
    /// `links` is how many link directions one member needs, given their number.
    fn members(
        &mut self,
        fields: &mut Fields,
        scope: Scope,
        links: impl Fn(u64) -> u64,
    ) -> Option<Vec<NodeId>> {
        match (fields.get("gpus"), fields.get("connect")) {
            (Some(node), None) => {
                let count = node.whole("gpus", 1, u64::from(u32::MAX), &mut self.found)?;
                let needed = count.saturating_mul(links(count));
                self.room(node, count, needed).then_some(())?;
                self.next_gpus(scope, count)
            }
            (None, Some(node)) => {
                let known = self.graph.node_count() as u64;
                let names = names_of(node, "a list of nodes", known, self)?;
                let count = names.len() as u64;
                self.room(node, 0, count.saturating_mul(links(count)))
                    .then_some(())?;
                let ids: Option<Vec<NodeId>> = names
                    .iter()
                    .map(|(place, name)| self.resolve(&place.span, scope.prefix, name))
                    .collect();
                ids
            }
            _ => {
                let mistake = scope.at.wrong("no members", "expected `gpus` or `connect`");
                let remedy = "write `gpus: 8` for new GPUs or `connect: [a, b]` for known nodes";
                self.found.push(mistake.help(remedy));
                None
            }
        }
    }

    /// Links between all pairs of `members`.
    fn mesh(&mut self, scope: Scope, members: &[NodeId], spec: LinkSpec) -> Option<()> {
        for (index, &a) in members.iter().enumerate() {
            for &b in &members[index + 1..] {
                self.both(&scope.at.span, a, b, spec)?;
            }
        }
        Some(())
    }
}

/// A whole number `key` from `least` to `most`, `default` where the key is absent.
fn count(
    fields: &mut Fields,
    key: &'static str,
    (least, most): (u64, u64),
    default: Option<u64>,
    draft: &mut Draft,
) -> Option<u64> {
    let node = match default {
        Some(default) => match fields.get(key) {
            Some(node) => node,
            None => return Some(default),
        },
        None => fields.need(key, &least.max(8).min(most).to_string(), &mut draft.found)?,
    };
    node.whole(key, least, most, &mut draft.found)
}
