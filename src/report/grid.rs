//! A plain table for terminals: aligned columns, optional colour, and columns that give way where
//! the terminal is narrow.

use comfy_table::{CellAlignment, ContentArrangement, Table};
use comfy_table::{LineStyle, presets};

/// How to draw: for whom and how wide.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Look {
    /// Columns of the terminal.
    pub width: usize,
    /// Whether to write colour codes.
    pub color: bool,
}

/// The colour of a cell.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub enum Paint {
    #[default]
    Plain,
    Bold,
    Dim,
    Good,
    Bad,
    Accent,
}

/// Colours with their marks. A mark is an invisible character of width 0 that stands in the text
/// while columns are aligned and becomes the colour code afterwards, so that codes never count as
/// width.
const PAINTS: [(Paint, char, &str); 5] = [
    (Paint::Bold, '\u{2061}', "\u{1b}[1m"),
    (Paint::Dim, '\u{2062}', "\u{1b}[2m"),
    (Paint::Good, '\u{2063}', "\u{1b}[32m"),
    (Paint::Bad, '\u{2064}', "\u{1b}[31m"),
    (Paint::Accent, '\u{2065}', "\u{1b}[36m"),
];
const END: char = '\u{2060}';

/// Marks `text` with a colour; [`finish`] turns the marks into codes.
pub fn paint(text: &str, paint: Paint) -> String {
    match PAINTS.iter().find(|(p, ..)| *p == paint) {
        Some((_, mark, _)) if !text.is_empty() => format!("{mark}{text}{END}"),
        _ => text.to_owned(),
    }
}

/// Replaces the marks by colour codes, or drops them.
pub fn finish(text: &str, color: bool) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        if c == END {
            out.push_str(if color { "\u{1b}[0m" } else { "" });
        } else if let Some((.., code)) = PAINTS.iter().find(|(_, mark, _)| *mark == c) {
            out.push_str(if color { code } else { "" });
        } else {
            out.push(c);
        }
    }
    out
}

/// Text from a file, safe to print: no control characters and no marks.
pub fn clean(text: &str) -> String {
    text.chars()
        .filter(|c| !c.is_control() && !('\u{2060}'..='\u{2065}').contains(c))
        .collect()
}

/// Spaces between columns.
const GAP: usize = 2;
/// Running text is not squeezed below this many columns.
const LEAST_TEXT: usize = 20;

/// A column of a [`Grid`].
#[derive(Clone, Debug)]
pub struct Column {
    title: String,
    right: bool,
    /// Columns with the highest number give way first; 0 stays.
    give_way: u8,
    /// Whether its text goes on in further lines where the terminal is narrow.
    wraps: bool,
}

/// Rows of cells under titles.
#[derive(Clone, Debug, Default)]
pub struct Grid {
    columns: Vec<Column>,
    rows: Vec<Vec<String>>,
}

impl Grid {
    /// A left-aligned column; `give_way` 0 stays, higher ones leave first in narrow
    /// terminals, equal ones together.
    pub fn left(mut self, title: impl Into<String>, give_way: u8) -> Self {
        self.columns.push(Column {
            title: title.into(),
            right: false,
            give_way,
            wraps: false,
        });
        self
    }

    /// A left-aligned column of running text, which takes what width the others leave.
    pub fn text(mut self, title: impl Into<String>) -> Self {
        self.columns.push(Column {
            title: title.into(),
            right: false,
            give_way: 0,
            wraps: true,
        });
        self
    }

    /// A right-aligned column.
    pub fn right(mut self, title: impl Into<String>, give_way: u8) -> Self {
        self.columns.push(Column {
            title: title.into(),
            right: true,
            give_way,
            wraps: false,
        });
        self
    }

    /// A row; one cell per column.
    pub fn row(&mut self, cells: Vec<String>) {
        debug_assert_eq!(cells.len(), self.columns.len());
        self.rows.push(cells);
    }

    /// The drawing, marks still inside (see [`finish`]), each line ending in a newline.
    pub fn draw(&self, look: &Look) -> String {
        let mut shown: Vec<usize> = (0..self.columns.len()).collect();
        let widths: Vec<usize> = (0..self.columns.len()).map(|i| self.width(i)).collect();
        loop {
            let all: usize = shown.iter().map(|&i| widths[i] + GAP).sum();
            let excess = all.saturating_sub(GAP + look.width);
            let text = shown.iter().copied().find(|&i| self.columns[i].wraps);
            let leaves = shown
                .iter()
                .map(|&i| self.columns[i].give_way)
                .filter(|&give_way| give_way > 0)
                .max();
            match (text, leaves) {
                _ if excess == 0 => return self.draw_columns(&shown, None),
                (Some(i), _) if widths[i] >= excess + LEAST_TEXT => {
                    return self.draw_columns(&shown, Some((i, widths[i] - excess)));
                }
                (_, Some(leaves)) => shown.retain(|&i| self.columns[i].give_way != leaves),
                (Some(i), None) => return self.draw_columns(&shown, Some((i, LEAST_TEXT))),
                (None, None) => return self.draw_columns(&shown, None),
            }
        }
    }

    /// Columns that column `i` takes.
    fn width(&self, i: usize) -> usize {
        let cells = self.rows.iter().map(|row| row[i].as_str());
        let texts = cells.chain([self.columns[i].title.as_str()]);
        texts.map(display_width).max().unwrap_or(0)
    }

    /// Draws the columns `shown`; `wrapped` is one that goes on in further lines, and its width.
    fn draw_columns(&self, shown: &[usize], wrapped: Option<(usize, usize)>) -> String {
        let mut table = Table::new();
        table
            .load_style(presets::NOTHING.header_separator(LineStyle::none().fill('─')))
            .set_content_arrangement(ContentArrangement::Disabled)
            .set_header(
                shown
                    .iter()
                    .map(|&i| paint(&self.columns[i].title, Paint::Bold)),
            );
        for row in &self.rows {
            table.add_row(shown.iter().map(|&i| match wrapped {
                Some((text, width)) if text == i => {
                    wrap(&row[i], 0, 0, width).trim_end().to_owned()
                }
                _ => row[i].clone(),
            }));
        }
        for (place, &i) in shown.iter().enumerate() {
            if let Some(column) = table.column_mut(place) {
                column.set_padding((if place > 0 { GAP as u16 } else { 0 }, 0));
                if self.columns[i].right {
                    column.set_cell_alignment(CellAlignment::Right);
                }
            }
        }
        let mut text = String::new();
        for line in table.lines() {
            text.push_str(line.trim_end());
            text.push('\n');
        }
        text
    }
}

/// Columns that a line takes on the terminal: one per character, none for marks.
pub fn display_width(line: &str) -> usize {
    line.chars()
        .filter(|c| !('\u{2060}'..='\u{2065}').contains(c))
        .count()
}

/// Words of `text` in lines of at most `width` columns; every line but the first is indented by
/// `indent` spaces, and `text` starts at column `start` of the first. Ends in a newline.
pub fn wrap(text: &str, start: usize, indent: usize, width: usize) -> String {
    let mut out = String::new();
    let mut column = start;
    let mut fresh = true;
    for word in text.split_whitespace() {
        let length = display_width(word);
        if !fresh && column + 1 + length > width {
            out.push('\n');
            out.push_str(&" ".repeat(indent));
            column = indent;
            fresh = true;
        }
        if !fresh {
            out.push(' ');
            column += 1;
        }
        out.push_str(word);
        column += length;
        fresh = false;
    }
    out.push('\n');
    out
}

/// A bar of `share` (0–1) of `width` columns, in eighths of a block.
pub fn bar(share: f64, width: usize) -> String {
    const PARTS: [&str; 8] = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"];
    let eighths = (share.clamp(0.0, 1.0) * width as f64 * 8.0).round() as usize;
    format!("{}{}", "█".repeat(eighths / 8), PARTS[eighths % 8])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn grid() -> Grid {
        let mut grid = Grid::default()
            .left("name", 0)
            .right("time", 0)
            .left("long remark", 2)
            .left("note", 1);
        grid.row(vec![
            paint("ring", Paint::Good),
            "1 us".into(),
            "as it is".into(),
            "x".into(),
        ]);
        grid.row(vec!["tree".into(), "12.5 us".into(), "".into(), "y".into()]);
        grid
    }

    #[test]
    fn colour_never_counts_as_width() {
        let look = Look {
            width: 80,
            color: true,
        };
        let plain = finish(&grid().draw(&look), false);
        insta::assert_snapshot!(plain, @r"
        name     time  long remark  note
        ────────────────────────────────
        ring     1 us  as it is     x
        tree  12.5 us               y
        ");
        let coloured = finish(&grid().draw(&look), true);
        assert!(coloured.contains("\u{1b}[32mring\u{1b}[0m     1 us"));
    }

    #[test]
    fn narrow_terminals_lose_columns_in_order() {
        let at = |width| {
            let look = Look {
                width,
                color: false,
            };
            finish(&grid().draw(&look), false)
                .lines()
                .next()
                .unwrap()
                .to_owned()
        };
        assert_eq!(at(32), "name     time  long remark  note");
        assert_eq!(at(31), "name     time  note");
        assert_eq!(at(18), "name     time");
        assert_eq!(at(3), "name     time");
    }

    #[test]
    fn running_text_takes_what_is_left() {
        let mut grid = Grid::default().left("name", 0).text("about");
        grid.row(vec!["ring".into(), "each rank sends to the next".into()]);
        let look = Look {
            width: 28,
            color: false,
        };
        insta::assert_snapshot!(finish(&grid.draw(&look), false), @r"
        name  about
        ────────────────────────────
        ring  each rank sends to the
              next
        ");
    }

    #[test]
    fn bars_grow_by_eighths() {
        assert_eq!(bar(1.0, 4), "████");
        assert_eq!(bar(0.5, 4), "██");
        assert_eq!(bar(0.53125, 4), "██▏");
        assert_eq!(bar(0.0, 4), "");
        assert_eq!(bar(f64::NAN, 4), "");
    }

    #[test]
    fn wraps_words_with_a_hanging_indent() {
        assert_eq!(wrap("aa bb cc dd", 2, 2, 7), "aa bb\n  cc dd\n");
        assert_eq!(wrap("aaaaaaaaaa b", 0, 1, 5), "aaaaaaaaaa\n b\n");
    }

    #[test]
    fn cleans_what_a_file_may_contain() {
        assert_eq!(clean("a\u{1b}[31m\u{2061}b\n"), "a[31mb");
    }
}
