//! What was measured, and what was not judged.

use std::collections::BTreeMap;

use super::Section;
use crate::validate::analysis::{Excluded, Validation};

pub(super) fn overview(found: &Validation) -> Section {
    let mut section = Section::new("overview", "What was measured", "", &["", ""]);
    let facts = &found.facts;
    let mut row = |name: &str, value: String| section.row([name.to_owned(), value]);
    let rounds = match facts.rounds {
        [least, most] if least == most => format!("{least}"),
        [least, most] => format!("{least} to {most}"),
    };
    row("machine", facts.machines.join(", "));
    row("date", facts.dates.join(", "));
    row(
        "judged",
        format!(
            "{} groups with {} cases, {rounds} rounds each",
            facts.groups, facts.cases
        ),
    );
    if facts.virtual_groups > 0 {
        let text = format!(
            "{} groups with {} cases, not in the headline",
            facts.virtual_groups, facts.virtual_cases
        );
        row("ranks that share GPUs", text);
    }
    row(
        "rows",
        format!("{}, {} of them excluded", facts.rows, found.excluded.len()),
    );
    row(
        "predicted from",
        format!("`{}`, content {}", found.topology, found.model),
    );
    section
}

pub(super) fn excluded(found: &Validation) -> Section {
    let mut section = Section::new(
        "excluded",
        "Not judged",
        "Rows that stay in their table and judge nothing: excluded by the measurement, or without a simulated time.",
        &["reason", "rows>", "for example"],
    );
    let mut reasons: BTreeMap<&str, Vec<&Excluded>> = BTreeMap::new();
    for row in found.excluded.iter().chain(&found.unpredicted) {
        reasons.entry(&row.reason).or_default().push(row);
    }
    for (reason, rows) in reasons {
        let example = rows.first().map_or("", |row| row.case.as_str());
        section.row([
            reason.to_owned(),
            rows.len().to_string(),
            example.to_owned(),
        ]);
    }
    section
}
