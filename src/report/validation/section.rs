//! A titled table with the definition of what it shows.

use crate::report::experiment::Table;
use crate::report::grid::{Grid, Look, Paint, clean, paint, wrap};

/// A part of the report.
#[derive(Clone, Debug, Default)]
pub struct Section {
    /// As `--section` names it.
    pub key: &'static str,
    title: &'static str,
    /// What the figures are.
    definition: String,
    /// Titles; one that ends in `>` is of a right-aligned column.
    columns: &'static [&'static str],
    rows: Vec<Vec<String>>,
    /// Sentences below the table.
    notes: Vec<String>,
}

impl Section {
    /// An empty section.
    pub fn new(
        key: &'static str,
        title: &'static str,
        definition: impl Into<String>,
        columns: &'static [&'static str],
    ) -> Self {
        Self {
            key,
            title,
            definition: definition.into(),
            columns,
            rows: Vec::new(),
            notes: Vec::new(),
        }
    }

    /// Adds a row, a cell per column.
    pub fn row(&mut self, cells: impl IntoIterator<Item = String>) {
        self.rows.push(cells.into_iter().collect());
    }

    /// Adds a sentence below the table.
    pub fn note(&mut self, sentence: impl Into<String>) {
        self.notes.push(sentence.into());
    }

    /// Whether it has nothing to say.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty() && self.notes.is_empty()
    }

    /// For terminals, marks of colour inside.
    fn text(&self, look: &Look) -> String {
        let mut text = paint(self.title, Paint::Bold) + "\n";
        if !self.rows.is_empty() {
            let mut grid = Grid::default();
            for (at, column) in self.columns.iter().enumerate() {
                let title = column.trim_end_matches('>');
                // The last columns give way first; the first three stay.
                let give_way = at.saturating_sub(2) as u8;
                grid = match column.ends_with('>') {
                    true => grid.right(title, give_way),
                    false => grid.left(title, give_way),
                };
            }
            for row in &self.rows {
                grid.row(row.iter().map(|cell| clean(cell)).collect());
            }
            text += &grid.draw(look);
        }
        for note in &self.notes {
            text += &wrap(&clean(note), 0, 2, look.width);
        }
        if !self.definition.is_empty() {
            text += &paint(
                wrap(&self.definition, 0, 0, look.width).trim_end(),
                Paint::Dim,
            );
            text.push('\n');
        }
        text
    }

    /// For reports.
    pub fn markdown(&self) -> String {
        let mut text = format!("## {}\n\n", self.title);
        if !self.definition.is_empty() {
            text += &format!("{}\n\n", self.definition);
        }
        if !self.rows.is_empty() {
            let mut table = Table::new(self.columns);
            for row in &self.rows {
                table.row(row.clone());
            }
            text += &table.draw();
        }
        for note in &self.notes {
            text += &format!("* {note}\n");
        }
        if !self.notes.is_empty() {
            text.push('\n');
        }
        text
    }
}

/// The sections of these keys in the order of the keys; all without any.
///
/// # Errors
/// A key that no section has, with those that there are.
pub fn named(sections: Vec<Section>, keys: &[String]) -> Result<Vec<Section>, String> {
    if keys.is_empty() {
        return Ok(sections);
    }
    let one = |key: &String| {
        let found = sections.iter().find(|section| section.key == key);
        found.cloned().ok_or_else(|| {
            let there: Vec<&str> = sections.iter().map(|section| section.key).collect();
            format!(
                "error: this report has no section `{key}`: nothing that is judged is of it\n  help: its sections are {}",
                there.join(", ")
            )
        })
    };
    keys.iter().map(one).collect()
}

/// Sections for terminals, marks of colour inside.
pub fn text(sections: &[Section], look: &Look) -> String {
    let texts: Vec<String> = sections.iter().map(|section| section.text(look)).collect();
    texts.join("\n")
}
