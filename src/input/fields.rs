//! Reading the keys of a map: each key is asked for once, and what nobody asked for is a mistake.

use std::str::FromStr;

use super::yaml::{Node, Value};
use super::{Diagnostics, closest, did_you_mean, list};

/// A map being read. Call [`Fields::finish`] at the end, so that unknown keys are reported.
///
/// ```
/// use duet::input::{Diagnostics, Fields, yaml};
/// use duet::units::BytesPerSecond;
/// let text = "{ bandwidth: 52 GB/s, latncy: 1 us }";
/// let (node, mut found) = (yaml::parse(text).unwrap(), Diagnostics::default());
/// let mut fields = Fields::of(&node, "a link", &mut found).unwrap();
/// let bandwidth: Option<BytesPerSecond> = fields.parse("bandwidth", &mut found);
/// let latency = fields.get("latency");
/// fields.finish(&mut found);
/// assert_eq!(bandwidth.unwrap().get(), 52e9);
/// assert!(latency.is_none());
/// assert!(found.render("f", text).contains("help: did you mean `latency`?"));
/// ```
#[derive(Debug)]
pub struct Fields<'n> {
    node: &'n Node,
    what: &'static str,
    entries: &'n [(Node, Node)],
    used: Vec<bool>,
    asked: Vec<&'static str>,
}

impl<'n> Fields<'n> {
    /// The entries of a map, or a mistake pushed; `what` is e.g. `a link`.
    pub fn of(node: &'n Node, what: &'static str, found: &mut Diagnostics) -> Option<Self> {
        let Value::Map(entries) = &node.value else {
            found.push(node.wrong(
                format!("found {} in place of {what}", node.found()),
                "expected a map of `key: value`",
            ));
            return None;
        };
        Some(Self {
            node,
            what,
            entries,
            used: vec![false; entries.len()],
            asked: Vec::new(),
        })
    }

    /// The map itself.
    pub fn node(&self) -> &'n Node {
        self.node
    }

    /// The value of a key, `None` where the key is absent.
    pub fn get(&mut self, key: &'static str) -> Option<&'n Node> {
        self.asked.push(key);
        let at = self
            .entries
            .iter()
            .position(|(name, _)| name.text() == Some(key))?;
        self.used[at] = true;
        Some(&self.entries[at].1)
    }

    /// The value of a key that must be there, or a mistake pushed; `example` shows how to write it.
    pub fn need(
        &mut self,
        key: &'static str,
        example: &str,
        found: &mut Diagnostics,
    ) -> Option<&'n Node> {
        let node = self.get(key);
        // A misspelt key is reported once, by `finish`.
        if node.is_none() && !self.unread().any(|name| closest(name, [key]).is_some()) {
            found.push(
                self.node
                    .wrong(
                        format!("`{key}` is missing"),
                        format!("{} needs `{key}`", self.what),
                    )
                    .help(format!("add e.g. `{key}: {example}`")),
            );
        }
        node
    }

    /// The value of a key read as a quantity, number or other word; a mistake is pushed where it
    /// is not one.
    pub fn parse<T: FromStr<Err: std::fmt::Display>>(
        &mut self,
        key: &'static str,
        found: &mut Diagnostics,
    ) -> Option<T> {
        self.get(key)?.parse(key, found)
    }

    /// Reports every key that was not asked for.
    pub fn finish(self, found: &mut Diagnostics) {
        self.report(found, |_| true);
    }

    /// Reports, after a mistake that left keys unread, only those that look misspelt.
    pub fn finish_early(self, found: &mut Diagnostics) {
        self.report(found, |near| near.is_some());
    }

    /// Keys not asked for, as far as they are text.
    fn unread(&self) -> impl Iterator<Item = &'n str> {
        let entries = self.entries.iter().zip(&self.used);
        entries.filter_map(|((key, _), used)| key.text().filter(|_| !used))
    }

    fn report(self, found: &mut Diagnostics, wanted: impl Fn(Option<&str>) -> bool) {
        let asked = self.asked.iter().copied();
        for ((key, _), used) in self.entries.iter().zip(&self.used) {
            let name = key.text().unwrap_or("");
            if !*used && found.is_full() {
                // Only counted: the search for the nearest key would take time.
                found.push(key.wrong("unknown key", ""));
                continue;
            }
            if *used || !wanted(closest(name, asked.clone())) {
                continue;
            }
            let message = format!("`{name}` is not a key of {}", self.what);
            let mistake = key.wrong(message, "unknown key");
            found.push(mistake.help(did_you_mean(name, asked.clone())));
        }
    }
}

impl Node {
    /// The scalar read as a `T`, or a mistake pushed that names `key`.
    pub fn parse<T: FromStr<Err: std::fmt::Display>>(
        &self,
        key: &str,
        found: &mut Diagnostics,
    ) -> Option<T> {
        let text = self.word(key, found)?;
        text.parse()
            .map_err(|error: T::Err| {
                let words = error.to_string();
                let (label, help) = words.split_once(": ").unwrap_or((&words, ""));
                let message = format!("`{key}` cannot be `{text}`");
                found.push(self.wrong(message, label).help(help));
            })
            .ok()
    }

    /// The scalar's text, or a mistake pushed that names `key`.
    pub fn word(&self, key: &str, found: &mut Diagnostics) -> Option<&str> {
        let text = self.text();
        if text.is_none() {
            found.push(self.wrong(
                format!("`{key}` holds {}", self.found()),
                "expected a single value",
            ));
        }
        text
    }

    /// `true` or `false`, or a mistake pushed.
    pub fn flag(&self, key: &str, found: &mut Diagnostics) -> Option<bool> {
        self.choice(key, &["true", "false"], found)
            .map(|at| at == 0)
    }

    /// The index of the word among `words`, or a mistake pushed.
    pub fn choice(&self, key: &str, words: &[&str], found: &mut Diagnostics) -> Option<usize> {
        let text = self.word(key, found)?;
        let at = words.iter().position(|word| *word == text);
        if at.is_none() {
            let label = format!("expected one of {}", list(words.iter().copied()));
            let mistake = self.wrong(format!("`{text}` is not a value of `{key}`"), label);
            found.push(match closest(text, words.iter().copied()) {
                Some(near) => mistake.help(format!("did you mean `{near}`?")),
                None => mistake,
            });
        }
        at
    }

    /// A whole number from `least` to `most`, or a mistake pushed.
    pub fn whole(&self, key: &str, least: u64, most: u64, found: &mut Diagnostics) -> Option<u64> {
        let text = self.word(key, found)?;
        let number = text.parse::<u64>().ok();
        let fits = number.filter(|n| (least..=most).contains(n));
        if fits.is_none() {
            found.push(self.wrong(
                format!("`{text}` is not a value of `{key}`"),
                format!("expected a whole number from {least} to {most}"),
            ));
        }
        fits
    }

    /// A plain number without a unit, or a mistake pushed; it may be anything but NaN.
    pub fn number(&self, key: &str, found: &mut Diagnostics) -> Option<f64> {
        let text = self.word(key, found)?;
        let number = text.parse::<f64>().ok().filter(|n| !n.is_nan());
        if number.is_none() {
            found.push(self.wrong(
                format!("`{text}` is not a value of `{key}`"),
                "expected a plain number",
            ));
        }
        number
    }
}
