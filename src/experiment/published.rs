//! Figures that a paper prints, typed in: `published.yaml` beside an experiment.
//!
//! ```yaml
//! paper: Compass, arXiv 2609.10549v1
//! machine: hardware, one server with 8 × RTX A6000
//! figures:
//!   - name: wrong-d-mean                  # unique
//!     about: mean loss by a wrong d
//!     value: 57.44 %                      # 5.43 ms, 30 %, 1.3x, 1.5x to 2.5x, 78 of 144
//!     bound: most                         # an "up to"
//!     ours: decomposition.wrong-mean      # what stands beside it, or
//!     none: whole models are not run      # why nothing does
//!     source: summary
//! claims: [d4-is-a-minority]              # of the analysis' checks, see docs/compass.md
//! ```

use std::path::Path;

use super::analysis::claims;
use super::quantity::Quantity;
use crate::input::yaml::{self, Node};
use crate::input::{Diagnostics, Fields, decode, did_you_mean, read_file};

/// Largest file that is read [bytes].
const LARGEST: u64 = 4 << 20;

/// What a paper prints.
#[derive(Clone, Debug, PartialEq)]
pub struct Published {
    /// The paper.
    pub paper: String,
    /// On what it measured.
    pub machine: String,
    pub figures: Vec<Printed>,
    /// Names of what it claims in words, each known to [`claims::names`].
    pub claims: Vec<String>,
}

/// One printed figure.
#[derive(Clone, Debug, PartialEq)]
pub struct Printed {
    pub name: String,
    pub about: String,
    pub value: Quantity,
    /// Whether it is an "up to".
    pub most: bool,
    pub beside: Beside,
    /// How good its source is.
    pub source: String,
}

/// What stands beside a printed figure.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Beside {
    /// The analysis' figure of that name.
    Ours(String),
    /// Nothing, and why.
    None(String),
}

/// Why figures cannot be read; prints as the complete message.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PublishedError {
    /// The file cannot be read.
    #[error("cannot read the published figures `{path}`: {reason}")]
    Unreadable { path: String, reason: String },
    /// The file has mistakes; all are rendered.
    #[error("{0}")]
    Invalid(String),
}

impl Published {
    /// Reads a file.
    ///
    /// # Errors
    /// [`PublishedError`]: unreadable, or mistakes in it.
    pub fn load(path: &Path) -> Result<Self, PublishedError> {
        let name = path.display().to_string();
        let bytes = read_file(path, LARGEST).map_err(|error| PublishedError::Unreadable {
            path: name.clone(),
            reason: error.to_string(),
        })?;
        let text = decode(&name, &bytes).map_err(PublishedError::Invalid)?;
        Self::read(text, &name)
    }

    /// Reads a text; `file` is its name in messages.
    ///
    /// # Errors
    /// [`PublishedError::Invalid`] with every mistake at its place.
    pub fn read(text: &str, file: &str) -> Result<Self, PublishedError> {
        let mut found = Diagnostics::default();
        let published = match yaml::parse(text) {
            Ok(node) => published(&node, &mut found),
            Err(mistake) => {
                found.push(mistake);
                None
            }
        };
        match published {
            Some(published) if found.is_empty() => Ok(published),
            _ => Err(PublishedError::Invalid(found.render(file, text))),
        }
    }
}

fn published(node: &Node, found: &mut Diagnostics) -> Option<Published> {
    let mut fields = Fields::of(node, "published figures", found)?;
    let paper = text(&mut fields, "paper", "Compass, arXiv 2609.10549v1", found);
    let machine = text(&mut fields, "machine", "hardware, 8 × RTX A6000", found);
    let list = fields.need("figures", "[{ name: speed-up, … }]", found);
    let listed = fields.get("claims");
    fields.finish(found);
    let mut claimed = Vec::new();
    let listed = listed.and_then(|node| node.list("a list of claims", found));
    for node in listed.unwrap_or_default() {
        let Some(name) = node.word("claims", found) else {
            continue;
        };
        if !claims::names().any(|known| known == name) {
            let mistake = node.wrong(format!("`{name}` is not a claim"), "nothing checks it");
            found.push(mistake.help(did_you_mean(name, claims::names())));
        }
        claimed.push(name.to_owned());
    }
    let mut figures: Vec<Printed> = Vec::new();
    for node in list?.list("a list of figures", found)? {
        let Some(figure) = figure(node, found) else {
            continue;
        };
        if figures.iter().any(|other| other.name == figure.name) {
            let message = format!("`{}` is printed twice", figure.name);
            found.push(
                node.wrong(message, "second of that name")
                    .help("rename or remove it"),
            );
        }
        figures.push(figure);
    }
    Some(Published {
        paper: paper?,
        machine: machine?,
        figures,
        claims: claimed,
    })
}

fn text(
    fields: &mut Fields<'_>,
    key: &'static str,
    example: &str,
    found: &mut Diagnostics,
) -> Option<String> {
    let node = fields.need(key, example, found)?;
    node.word(key, found).map(str::to_owned)
}

fn figure(node: &Node, found: &mut Diagnostics) -> Option<Printed> {
    let mut fields = Fields::of(node, "a published figure", found)?;
    let name = text(&mut fields, "name", "speed-up", found);
    let about = text(&mut fields, "about", "speed-up over sequential", found);
    fields.need("value", "1.3x", found);
    let value = fields.parse::<Quantity>("value", found);
    let bound = fields.get("bound");
    let most = bound.is_some_and(|node| node.choice("bound", &["most"], found).is_some());
    let ours = fields.get("ours");
    let none = fields.get("none");
    let source = text(&mut fields, "source", "summary", found);
    fields.finish(found);
    let beside = match (ours, none) {
        (Some(ours), None) => Beside::Ours(ours.word("ours", found)?.to_owned()),
        (None, Some(none)) => Beside::None(none.word("none", found)?.to_owned()),
        _ => {
            let mistake = node.wrong("`ours` or `none`, one of them", "what stands beside it?");
            found.push(mistake.help("add e.g. `ours: selection.right` or `none: why not`"));
            return None;
        }
    };
    Some(Printed {
        name: name?,
        about: about?,
        value: value?,
        most,
        beside,
        source: source?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const COMPASS: &str = include_str!("../../experiments/compass/published.yaml");

    #[test]
    fn the_figures_of_compass_are_read() {
        let published = Published::read(COMPASS, "published.yaml").unwrap();
        let value = |name: &str| {
            let mut figures = published.figures.iter();
            figures.find(|figure| figure.name == name).unwrap().value
        };
        assert_eq!(value("mae-fusion"), Quantity::Seconds(2.66e-3));
        assert_eq!(value("wrong-d-most"), Quantity::Share(2.8190));
        assert_eq!(value("ag-gemm-fusion-wins"), Quantity::Count(78, 144));
    }

    #[test]
    fn mistakes_are_told_with_their_place() {
        let text = "paper: p\nmachine: m\nfigures:\n  - { name: a, about: b, value: 3, ours: x, source: s }\n  - { name: c, abuot: b, value: 3x, source: s }\n";
        let error = Published::read(text, "p.yaml").unwrap_err().to_string();
        assert!(error.contains("p.yaml:4:33"), "{error}");
        assert!(error.contains("write e.g. `5.43 ms`"), "{error}");
        assert!(error.contains("did you mean `about`?"), "{error}");
        assert!(error.contains("`ours` or `none`"), "{error}");
        let twice = "paper: p\nmachine: m\nfigures:\n  - { name: a, about: b, value: 3x, ours: x, source: s }\n  - { name: a, about: b, value: 3x, none: x, source: s }\n";
        let error = Published::read(twice, "p.yaml").unwrap_err().to_string();
        assert!(
            error.contains("p.yaml:5:") && error.contains("printed twice"),
            "{error}"
        );
    }
}
