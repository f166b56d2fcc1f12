//! Reading a file section by section, in the order in which sections refer to one another.

use super::names::Names;
use super::slices::Buffers;
use super::tasks::{Context, Tasks};
use super::{FORMAT, JsonError, tables};
use crate::input::yaml::Node;
use crate::input::{Diagnostic, Diagnostics, Span, did_you_mean, json};
use crate::schedule::{Builder, Rank, Schedule};

const SECTIONS: [&str; 10] = [
    "format",
    "operator",
    "strategy",
    "placement",
    "tensors",
    "buffers",
    "lanes",
    "launches",
    "collectives",
    "tasks",
];

/// The values of a file's keys, by place.
struct File<'t> {
    text: &'t str,
    entries: Vec<(Node, Span)>,
}

impl File<'_> {
    fn node(&self, key: &str, found: &mut Diagnostics) -> Option<Node> {
        let (_, span) = self.entries.iter().find(|(k, _)| k.text() == Some(key))?;
        json::node(self.text, span)
            .map_err(|error| found.push(error))
            .ok()
    }

    /// Hands the entries of a list to `each`, one by one.
    fn each(
        &self,
        key: &str,
        found: &mut Diagnostics,
        mut each: impl FnMut(&Node, &mut Diagnostics),
    ) {
        let Some((_, span)) = self.entries.iter().find(|(k, _)| k.text() == Some(key)) else {
            return;
        };
        if self.text.as_bytes().get(span.start) != Some(&b'[') {
            let label = format!("expected a list of {key}");
            found.push(Diagnostic::new(
                span.clone(),
                format!("`{key}` is no list"),
                label,
            ));
            return;
        }
        for node in json::items(self.text, span) {
            match node {
                Ok(node) => each(&node, found),
                Err(error) => found.push(error),
            }
            if found.is_full() {
                return;
            }
        }
    }
}

/// Reads a schedule; `file_name` is for messages.
///
/// What is read is consistent in its names, numbers and ranges; whether it computes the operator
/// is [`verify`](crate::schedule::verify())'s business.
///
/// # Errors
/// [`JsonError`] with every mistake found, rendered.
pub fn read(text: &str, file_name: &str) -> Result<Schedule, JsonError> {
    let mut found = Diagnostics::default();
    let schedule = match json::entries(text) {
        Ok(entries) => schedule(&File { text, entries }, &mut found),
        Err(error) => {
            found.push(error);
            None
        }
    };
    match schedule {
        Some(schedule) if found.is_empty() => Ok(schedule),
        _ => Err(JsonError(found.render(file_name, text))),
    }
}

fn schedule(file: &File<'_>, found: &mut Diagnostics) -> Option<Schedule> {
    for (key, _) in &file.entries {
        let name = key.text().unwrap_or("");
        if !SECTIONS.contains(&name) {
            let mistake = key.wrong(
                format!("`{name}` is not a key of a schedule"),
                "unknown key",
            );
            found.push(mistake.help(did_you_mean(name, SECTIONS)));
        }
    }
    for key in ["operator", "tensors", "buffers", "tasks"] {
        if !file.entries.iter().any(|(k, _)| k.text() == Some(key)) {
            let start = file.text.find('{').unwrap_or(0);
            let message = format!("`{key}` is missing");
            let mistake = Diagnostic::new(start..start + 1, message, "in this schedule");
            found.push(mistake.help("`docs/schedule.md` shows a whole file"));
        }
    }
    if let Some(node) = file.node("format", found) {
        node.choice("format", &[FORMAT], found);
    }
    let operator = tables::operator(&file.node("operator", found)?, found)?;
    let ranks = operator.tp;
    let placement = match file.node("placement", found) {
        Some(node) => tables::placement(&node, ranks, found)?,
        None => (0..ranks).collect(),
    };
    let strategy = match file.node("strategy", found) {
        Some(node) => node.word("strategy", found)?.to_owned(),
        None => "file".to_owned(),
    };
    let mut schedule = Builder::new(operator, strategy, placement).finish();
    let (context, rings) = declare(file, ranks, &mut schedule, found)?;
    let mut tasks = Tasks::default();
    file.each("tasks", found, |node, found| {
        tasks.push(node, &context, &mut schedule, found);
    });
    if !found.is_empty() {
        return None;
    }
    tasks.finish(&mut schedule, found);
    for (c, (place, ring)) in rings.into_iter().enumerate() {
        close_ring(&mut schedule, c, place, ring, found);
    }
    Some(schedule)
}

/// A collective's place in the file and the ranks in ring order, if stated.
type Ring = (Span, Option<Vec<Rank>>);

/// Reads what tasks refer to; `None` if anything is wrong, because tasks would be wrong in turn.
fn declare<'t>(
    file: &File<'t>,
    ranks: u32,
    schedule: &mut Schedule,
    found: &mut Diagnostics,
) -> Option<(Context<'t>, Vec<Ring>)> {
    let mut tensors = Names::new("tensor");
    file.each("tensors", found, |node, found| {
        if let Some(tensor) = tables::tensor(node, found) {
            tensors.push(&tensor.name);
            schedule.tensors.push(tensor);
        }
    });
    // A tensor that could not be read is unknown to every buffer that names it.
    found.is_empty().then_some(())?;
    let mut buffers = Buffers::default();
    file.each("buffers", found, |node, found| {
        let of = (&schedule.tensors[..], &tensors);
        if let Some(buffer) = tables::buffer(node, ranks, of, file.text, found) {
            buffers.push(&buffer);
            schedule.buffers.push(buffer);
        }
    });
    let mut lanes = Names::new("lane");
    file.each("lanes", found, |node, found| {
        if let Some((lane, name)) = tables::lane(node, found) {
            lanes.add(&name, u32::from(lane.0));
            schedule.lanes.push((lane, name));
        }
    });
    let mut launches = Names::new("launch");
    file.each("launches", found, |node, found| {
        if let Some(launch) = tables::launch(node, ranks, found) {
            launches.push(&launch.name);
            schedule.launches.push(launch);
        }
    });
    let mut collectives = Names::new("collective");
    let mut rings = Vec::new();
    file.each("collectives", found, |node, found| {
        if let Some((name, collective, ring)) = tables::collective(node, ranks, found) {
            collectives.push(&name);
            schedule.collectives.push(collective);
            rings.push((node.span.clone(), ring));
        }
    });
    found.is_empty().then_some(())?;
    let context = Context {
        text: file.text,
        ranks,
        buffers,
        lanes,
        launches,
        collectives,
    };
    Some((context, rings))
}

/// Puts the members of a collective into the stated ring order.
fn close_ring(
    schedule: &mut Schedule,
    c: usize,
    place: Span,
    ring: Option<Vec<Rank>>,
    found: &mut Diagnostics,
) {
    let members = &mut schedule.collectives[c].members;
    let mut wrong = |message: String, remedy: &str| {
        found.push(Diagnostic::new(place.clone(), message, "this collective").help(remedy));
    };
    if members.is_empty() {
        return wrong(
            format!("no task takes part in collective {c}"),
            "give each member a task with `\"collective\": {\"of\": …}`, or remove it",
        );
    }
    let mut ranks: Vec<Rank> = members.iter().map(|m| m.rank).collect();
    ranks.sort_unstable();
    if let Some(twice) = ranks.windows(2).find(|w| w[0] == w[1]) {
        return wrong(
            format!("rank {} takes part in collective {c} twice", twice[0].0),
            "give each member one task",
        );
    }
    let Some(ring) = ring else { return };
    let mut sorted = ring.clone();
    sorted.sort_unstable();
    if sorted != ranks {
        return wrong(
            format!("the ring of collective {c} does not list its members once each"),
            "list the ranks whose tasks take part",
        );
    }
    members.sort_by_key(|m| ring.iter().position(|rank| *rank == m.rank));
}
