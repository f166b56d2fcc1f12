//! The machine as text: every switch and root with what hangs on it.

use std::fmt::Write;

use super::rate;
use crate::report::grid::clean;
use crate::topology::Topology;
use crate::topology::sketch::{Bundle, Part, Role, Sketch};

/// Draws `topology`; each link stands once.
pub fn draw(topology: &Topology) -> String {
    let sketch = Sketch::new(topology);
    let mut out = String::new();
    let mut drawn = vec![false; sketch.bundles.len()];
    let joins = |part: usize| matches!(sketch.parts[part].role, Role::Switch | Role::Root);
    let mut groups = Groups {
        lines: Vec::new(),
        apart: sketch.summarised,
    };
    // Switches and roots first: what they join hangs below them. What is left joins memories.
    for part in (0..sketch.parts.len()).filter(|part| joins(*part)) {
        for (at, bundle) in sketch.bundles.iter().enumerate() {
            if !drawn[at] && (bundle.from == part || bundle.to == part) {
                drawn[at] = true;
                let (head, other) = line(&sketch, bundle, part);
                groups.add(head, other);
            }
        }
        groups.write(&title(&sketch.parts[part]), &mut out);
    }
    for (_, bundle) in drawn
        .iter()
        .zip(&sketch.bundles)
        .filter(|(drawn, _)| !**drawn)
    {
        let (head, other) = line(&sketch, bundle, bundle.from);
        let from = &sketch.parts[bundle.from];
        if sketch.summarised {
            groups.add(head, format!("{} – {other}", title(from)));
        } else {
            groups.add(head, format!("{}–{other}", clean(&from.name)));
        }
    }
    groups.write("memory to memory", &mut out);
    out
}

/// Lines under one title: what a link is, and everything it leads to.
struct Groups {
    lines: Vec<(String, Vec<String>)>,
    /// Whether everything has a line of its own.
    apart: bool,
}

impl Groups {
    fn add(&mut self, head: String, other: String) {
        match self.lines.iter_mut().find(|(known, _)| *known == head) {
            Some((_, others)) if !self.apart => others.push(other),
            _ => self.lines.push((head, vec![other])),
        }
    }

    /// Writes the lines, if any, and forgets them.
    fn write(&mut self, title: &str, out: &mut String) {
        let lines = std::mem::take(&mut self.lines);
        let width = lines.iter().map(|(head, _)| head.chars().count()).max();
        if let Some(width) = width {
            let _ = writeln!(out, "{title}");
            for (at, (head, others)) in lines.iter().enumerate() {
                let corner = if at + 1 == lines.len() { '└' } else { '├' };
                let fill = "─".repeat(width - head.chars().count());
                let _ = writeln!(out, " {corner}─ {head} {fill}── {}", others.join("  "));
            }
        }
    }
}

fn title(part: &Part) -> String {
    let name = clean(&part.name);
    match (part.count, part.role) {
        (1, Role::Gpu) => name,
        (count, role) if count > 1 => format!("{name} ({count} {})", role.noun(count)),
        (_, role) => format!("{name} ({})", role.noun(1)),
    }
}

/// The link as seen from `part`: kind and rate, and what is at the other end.
fn line(sketch: &Sketch, bundle: &Bundle, part: usize) -> (String, String) {
    let (other, here, there) = if bundle.from == part {
        (bundle.to, bundle.at_from, bundle.at_to)
    } else {
        (bundle.from, bundle.at_to, bundle.at_from)
    };
    let way = match (bundle.both_ways, bundle.from == part) {
        (true, _) => "",
        (false, true) => " out",
        (false, false) => " in",
    };
    let kind = clean(&bundle.kind);
    let other = &sketch.parts[other];
    if sketch.summarised {
        let each = format!("{here} of {}", title(other));
        let back = if there == here {
            String::new()
        } else {
            format!(", {there} on each")
        };
        return (
            format!("{kind} {}{way}", bundle.bandwidth),
            format!("{each}{back}"),
        );
    }
    (format!("{kind} {}{way}", rate(bundle)), clean(&other.name))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn picture(name: &str) -> String {
        draw(&crate::topology::load(name, &[]).unwrap())
    }

    #[test]
    fn small_machines_show_every_node() {
        insta::assert_snapshot!(picture("a6000-pairs-8"));
        insta::assert_snapshot!(picture("v100-dgx1-8"));
    }

    #[test]
    fn large_machines_show_kinds_of_nodes() {
        insta::assert_snapshot!(picture("h100-rail-128"));
        insta::assert_snapshot!(picture("fat-tree-1024"));
    }
}
