//! Tables in Markdown, columns padded so that the source reads as a table too.

/// A table; the first column is left-aligned, the others as `right` says.
#[derive(Clone, Debug)]
pub struct Table {
    header: Vec<String>,
    right: Vec<bool>,
    rows: Vec<Vec<String>>,
}

impl Table {
    /// A table with these columns; a name that ends in `>` is right-aligned.
    pub fn new(columns: &[&str]) -> Self {
        Self {
            header: columns
                .iter()
                .map(|c| c.trim_end_matches('>').to_owned())
                .collect(),
            right: columns.iter().map(|c| c.ends_with('>')).collect(),
            rows: Vec::new(),
        }
    }

    /// Adds a row; a `|` in a cell is escaped.
    pub fn row(&mut self, cells: impl IntoIterator<Item = String>) {
        let cells = cells.into_iter().map(|cell| cell.replace('|', "\\|"));
        self.rows.push(cells.collect());
    }

    /// Whether there is any row.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// The table with a blank line after it.
    pub fn draw(&self) -> String {
        let width = |column: usize| {
            let cells = self.rows.iter().filter_map(|row| row.get(column));
            let cells = cells.chain([&self.header[column]]);
            cells
                .map(|cell| cell.chars().count())
                .max()
                .unwrap_or(0)
                .max(3)
        };
        let widths: Vec<usize> = (0..self.header.len()).map(width).collect();
        let line = |cells: &[String]| {
            let mut text = String::from("|");
            for (column, width) in widths.iter().enumerate() {
                let cell = cells.get(column).map_or("", String::as_str);
                let pad = " ".repeat(width - cell.chars().count());
                text += &match self.right[column] {
                    true => format!(" {pad}{cell} |"),
                    false => format!(" {cell}{pad} |"),
                };
            }
            text + "\n"
        };
        let rule: Vec<String> = widths
            .iter()
            .zip(&self.right)
            .map(|(width, right)| match right {
                true => format!("{}:", "-".repeat(width - 1)),
                false => "-".repeat(*width),
            })
            .collect();
        let rows: String = self.rows.iter().map(|row| line(row)).collect();
        format!("{}{}{rows}\n", line(&self.header), line(&rule))
    }
}

#[cfg(test)]
mod tests {
    use super::Table;

    #[test]
    fn columns_are_padded_and_bars_escaped() {
        let mut table = Table::new(&["name", "time>"]);
        table.row(["a|b".to_owned(), "5".to_owned()]);
        table.row(["c".to_owned(), "10.25".to_owned()]);
        let expected =
            "| name |  time |\n| ---- | ----: |\n| a\\|b |     5 |\n| c    | 10.25 |\n\n";
        assert_eq!(table.draw(), expected);
        assert!(!table.is_empty());
    }
}
