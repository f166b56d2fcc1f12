//! The `strategies` of a grid: what is tried on each of its operators.

use std::sync::Arc;

use super::some;
use crate::input::yaml::Node;
use crate::input::{Diagnostic, Diagnostics};
use crate::operator::{Kind, Operator};
use crate::strategy::{self, Choice};

/// A strategy as listed.
#[derive(Clone, Debug)]
pub(super) struct Listed<'n> {
    node: &'n Node,
    choice: Choice,
    /// Only a name: every setting that comparisons try.
    bare: bool,
}

/// Reads the list; mistakes are pushed.
pub(super) fn read<'n>(node: &'n Node, found: &mut Diagnostics) -> Vec<Listed<'n>> {
    let mut listed: Vec<Listed<'n>> = Vec::new();
    for node in some("strategies", node, found) {
        let Some(text) = node.word("strategies", found) else {
            continue;
        };
        let bare = !text.contains(':');
        match strategy::parse(text) {
            Err(error) => found.push(Diagnostic::from_words(
                node.span.clone(),
                "see `duet strategies`",
                &error.to_string(),
            )),
            Ok(choice) => {
                if listed
                    .iter()
                    .any(|other| other.choice == choice && other.bare == bare)
                {
                    found.push(super::twice("strategies", text, node));
                } else {
                    listed.push(Listed { node, choice, bare });
                }
            }
        }
    }
    listed
}

/// What is tried on `operator`: everything that comparisons try, or what is listed.
pub(super) fn choices(listed: Option<&[Listed<'_>]>, operator: &Operator) -> Arc<[Choice]> {
    let all = strategy::candidates(operator);
    let Some(listed) = listed else {
        return all.into();
    };
    let mut chosen: Vec<Choice> = Vec::new();
    for Listed { choice, bare, .. } in listed {
        let name = choice.strategy().name();
        let mut matching: Vec<Choice> = all
            .iter()
            .filter(|other| *bare && other.strategy().name() == name)
            .cloned()
            .collect();
        if matching.is_empty() {
            matching.push(choice.clone());
        }
        for choice in matching {
            if !chosen.contains(&choice) {
                chosen.push(choice);
            }
        }
    }
    chosen.into()
}

/// Pushes a mistake for every listed strategy that performs none of `kinds`.
pub(super) fn check(listed: &[Listed<'_>], kinds: &[Kind], found: &mut Diagnostics) {
    for Listed { node, choice, .. } in listed {
        let strategy = choice.strategy();
        if kinds.is_empty() || kinds.iter().any(|kind| strategy.applies(*kind)) {
            continue;
        }
        let name = strategy.name();
        let does: Vec<&str> = Kind::ALL
            .into_iter()
            .filter(|kind| strategy.applies(*kind))
            .map(Kind::name)
            .collect();
        found.push(
            node.wrong(
                format!("`{name}` performs none of the grid's operators"),
                "nothing to do",
            )
            .help(format!("it performs {}", crate::input::list(does))),
        );
    }
}
