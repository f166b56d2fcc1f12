//! Things by name or number.

use rustc_hash::FxHashMap;

use crate::input::yaml::Node;
use crate::input::{Diagnostics, did_you_mean};

/// Names of one kind of thing, each with the number of the thing.
#[derive(Debug)]
pub(super) struct Names {
    /// What they are, e.g. `tensor`.
    what: &'static str,
    count: u32,
    /// `None`: several have this name.
    numbers: FxHashMap<String, Option<u32>>,
    list: Vec<String>,
}

impl Names {
    pub(super) fn new(what: &'static str) -> Self {
        Self {
            what,
            count: 0,
            numbers: FxHashMap::default(),
            list: Vec::new(),
        }
    }

    /// The next thing has this name.
    pub(super) fn push(&mut self, name: &str) {
        self.add(name, self.count);
        self.count += 1;
    }

    /// A further thing that bears the name `name`, with its number stated.
    pub(super) fn add(&mut self, name: &str, number: u32) {
        if name.is_empty() {
            return;
        }
        self.numbers
            .entry(name.to_owned())
            .and_modify(|known| *known = known.filter(|&n| n == number))
            .or_insert_with(|| {
                self.list.push(name.to_owned());
                Some(number)
            });
    }

    /// The number of the thing that `node` names or counts, or a mistake pushed.
    pub(super) fn find(&self, node: &Node, text: &str, found: &mut Diagnostics) -> Option<u32> {
        let word = node.word(self.what, found)?;
        if !quoted(node, text) {
            let number = word.parse::<u32>().ok().filter(|&n| n < self.count);
            if number.is_none() {
                found.push(
                    node.wrong(
                        format!("there is no {} {word}", self.what),
                        match self.count {
                            0 => "none is declared".to_owned(),
                            n => format!("expected a number from 0 to {}, or a name", n - 1),
                        },
                    )
                    .help(format!("declare the {} or correct the number", self.what)),
                );
            }
            return number;
        }
        match self.numbers.get(word) {
            Some(Some(number)) => Some(*number),
            Some(None) => {
                let message = format!("several {}s are called `{word}`", self.what);
                let mistake = node.wrong(message, "which of them?");
                found.push(mistake.help("use its number in the file, counted from 0"));
                None
            }
            None => {
                let message = format!("there is no {} `{word}`", self.what);
                let mistake = node.wrong(message, "unknown name");
                let known = self.list.iter().map(String::as_str);
                found.push(mistake.help(match self.list.is_empty() {
                    true => format!("declare it under `{}s`", self.what),
                    false => did_you_mean(word, known),
                }));
                None
            }
        }
    }
}

/// Whether the file has the value in quotes: a name, not a number.
pub(super) fn quoted(node: &Node, text: &str) -> bool {
    text.as_bytes().get(node.span.start) == Some(&b'"')
}
