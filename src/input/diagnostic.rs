//! One mistake in a text, and the rendering of several: `file:line:column`, the line, a caret.

use std::borrow::Cow;
use std::ops::Range;

use annotate_snippets::{AnnotationKind, Level, Renderer, Snippet};

/// A stretch of the text in bytes.
pub type Span = Range<usize>;

/// How many mistakes are kept; the rest is only counted.
const LIMIT: usize = 10;

/// Most characters of a message, which may quote a cell of any length.
const LONGEST: usize = 300;

/// A mistake: where, what is wrong, what is expected there, how to put it right.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostic {
    /// The place. It may lie anywhere; rendering clips it to the text.
    pub span: Span,
    /// What is wrong, as a lowercase fragment.
    pub message: String,
    /// Beside the caret: what was expected.
    pub label: String,
    /// The remedy; empty where the label says it already.
    pub help: String,
}

impl Diagnostic {
    /// A mistake without a remedy yet.
    pub fn new(span: Span, message: impl Into<String>, label: impl Into<String>) -> Self {
        Self {
            span,
            message: message.into(),
            label: label.into(),
            help: String::new(),
        }
    }

    /// Adds the remedy.
    #[must_use]
    pub fn help(mut self, help: impl Into<String>) -> Self {
        self.help = help.into();
        self
    }

    /// From an error text `what is wrong: remedy` (the house form of errors in words).
    pub fn from_words(span: Span, label: impl Into<String>, words: &str) -> Self {
        let (message, help) = words.split_once(": ").unwrap_or((words, ""));
        Self::new(span, message, label).help(help)
    }
}

/// The mistakes found in one text, in the order of finding.
#[derive(Clone, Debug, Default)]
pub struct Diagnostics {
    list: Vec<Diagnostic>,
    more: usize,
}

impl Diagnostics {
    /// Keeps a mistake, or counts it once there are enough.
    pub fn push(&mut self, diagnostic: Diagnostic) {
        if self.list.contains(&diagnostic) {
            return;
        }
        if self.list.len() < LIMIT {
            self.list.push(diagnostic);
        } else {
            self.more += 1;
        }
    }

    /// Whether nothing is wrong.
    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// Whether no further mistake would be shown, so that a reader may stop.
    pub fn is_full(&self) -> bool {
        self.list.len() >= LIMIT
    }

    /// The mistakes kept.
    pub fn iter(&self) -> impl Iterator<Item = &Diagnostic> {
        self.list.iter()
    }

    /// All of them as text without colours, separated by an empty line.
    pub fn render(&self, file: &str, text: &str) -> String {
        let mut sorted: Vec<&Diagnostic> = self.list.iter().collect();
        sorted.sort_by_key(|diagnostic| diagnostic.span.start);
        let mut parts: Vec<String> = sorted
            .iter()
            .map(|diagnostic| render_one(diagnostic, file, text))
            .collect();
        if self.more > 0 {
            parts.push(format!("... and {} more: put these right first", self.more));
        }
        parts.join("\n\n")
    }
}

/// Renders one mistake on the line where it starts.
fn render_one(diagnostic: &Diagnostic, file: &str, text: &str) -> String {
    let place = locate(text, &diagnostic.span);
    let snippet = Snippet::source(place.line)
        .line_start(place.number)
        .path(file)
        .fold(false)
        .annotation(
            AnnotationKind::Primary
                .span(place.span)
                .label(diagnostic.label.as_str()),
        );
    let mut group = Level::ERROR
        .primary_title(clipped(&diagnostic.message))
        .element(snippet);
    if !diagnostic.help.is_empty() {
        group = group.element(Level::HELP.message(diagnostic.help.as_str()));
    }
    Renderer::plain().render(&[group])
}

/// A message, the middle left out where it is too long.
fn clipped(message: &str) -> Cow<'_, str> {
    let count = message.chars().count();
    if count <= LONGEST {
        return Cow::Borrowed(message);
    }
    let mut ends: String = message.chars().take(LONGEST / 2).collect();
    ends += " ... ";
    ends.extend(message.chars().skip(count - LONGEST / 3));
    Cow::Owned(ends)
}

/// A line of the text and a span within it.
struct Place<'t> {
    line: &'t str,
    number: usize,
    span: Span,
}

/// The line on which a span starts; whatever the span, the answer lies inside the text.
fn locate<'t>(text: &'t str, span: &Span) -> Place<'t> {
    let start = floor(text, span.start);
    let from = text[..start].rfind('\n').map_or(0, |at| at + 1);
    let to = text[start..].find('\n').map_or(text.len(), |at| start + at);
    let end = floor(text, span.end.clamp(start, to)).max(start);
    let number = text[..from].matches('\n').count() + 1;
    let line = text[from..to].trim_end_matches('\r');
    let (start, end) = (start - from, end - from);
    Place {
        line,
        number,
        span: start.min(line.len())..end.min(line.len()),
    }
}

/// The nearest character boundary at or before `at`.
fn floor(text: &str, at: usize) -> usize {
    let mut at = at.min(text.len());
    while !text.is_char_boundary(at) {
        at -= 1;
    }
    at
}

/// The place of a line and column as counted by JSON and YAML readers: both from 1, columns in
/// characters. It ends with the word that starts there.
pub fn span_at(text: &str, line: usize, column: usize) -> Span {
    let from = match line.checked_sub(2) {
        None => 0,
        Some(nth) => text
            .match_indices('\n')
            .nth(nth)
            .map_or(text.len(), |(at, _)| at + 1),
    };
    let rest = text[from..].split('\n').next().unwrap_or("");
    let start = rest
        .char_indices()
        .nth(column.saturating_sub(1))
        .map_or(rest.len(), |(at, _)| at);
    let word = rest[start..]
        .find(|c: char| c.is_whitespace() || ",:[]{}".contains(c))
        .unwrap_or(rest.len() - start)
        .max(rest[start..].chars().next().map_or(0, char::len_utf8));
    from + start..from + start + word
}

/// Bytes of a file as text.
///
/// # Errors
/// The rendered diagnostic where they are not UTF-8.
pub fn decode<'b>(file: &str, bytes: &'b [u8]) -> Result<&'b str, String> {
    std::str::from_utf8(bytes).map_err(|error| {
        let at = error.valid_up_to();
        let text = String::from_utf8_lossy(bytes);
        let remedy = match bytes {
            [0xff, 0xfe, ..] | [0xfe, 0xff, ..] => "the file looks like UTF-16: save it as UTF-8",
            _ => "save the file as UTF-8",
        };
        let mut found = Diagnostics::default();
        found.push(
            Diagnostic::new(
                at..at + 1,
                format!("byte 0x{:02x} at offset {at} is not UTF-8", bytes[at]),
                "expected UTF-8 text",
            )
            .help(remedy),
        );
        found.render(file, &text)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn render(span: Span, text: &str) -> String {
        let mut found = Diagnostics::default();
        found.push(Diagnostic::new(span, "wrong", "here"));
        found.render("f", text)
    }

    #[test]
    fn points_at_line_and_column() {
        assert!(render(4..5, "ab\ncde\n").contains("f:2:2"));
        assert!(render(0..0, "").contains("f:1:1"));
        assert!(render(99..100, "ab\n").contains("f:2:1"));
        assert!(render(3..9, "éé x").contains("f:1:2"), "inside a character");
    }

    #[test]
    fn a_span_over_lines_is_cut_to_its_first() {
        let text = render(0..7, "ab\ncd\nef\n");
        assert!(text.contains("1 | ab") && !text.contains("cd"), "{text}");
    }

    #[test]
    fn counts_what_it_does_not_show() {
        let mut found = Diagnostics::default();
        for at in 0..13 {
            found.push(Diagnostic::new(at..at + 1, "wrong", ""));
        }
        assert!(
            found
                .render("f", "0123456789abcdef")
                .ends_with("... and 3 more: put these right first")
        );
    }

    #[test]
    fn a_message_of_any_length_is_shown_by_its_ends() {
        let mut found = Diagnostics::default();
        let message = format!("`{}é` is no case", "x".repeat(100_000));
        found.push(Diagnostic::new(0..1, message, "here"));
        let text = found.render("f", "x");
        assert!(text.len() < 500, "{}", text.len());
        assert!(text.contains("xx ... xx") && text.contains("xé` is no case"));
    }

    #[test]
    fn line_and_column_become_a_span() {
        let text = "a: 1\nlink: [x, yé]\n";
        assert_eq!(&text[span_at(text, 2, 11)], "yé");
        assert_eq!(&text[span_at(text, 1, 1)], "a");
        assert_eq!(span_at(text, 9, 9), text.len()..text.len());
    }

    #[test]
    fn refuses_what_is_not_text() {
        let error = decode("f", b"name: \xff\n").unwrap_err();
        assert!(
            error.contains("byte 0xff at offset 6") && error.contains("f:1:7"),
            "{error}"
        );
        assert!(decode("f", b"\xff\xfen\0").unwrap_err().contains("UTF-16"));
    }

    proptest! {
        #[test]
        fn renders_any_span_of_any_text(text in "\\PC*|[a-z\\t\\r\\n\\x00\\x1b]{0,60}", start in 0usize..80, len in 0usize..80) {
            prop_assert!(render(start..start + len, &text).contains("f:"));
        }

        #[test]
        fn any_line_and_column_lies_in_the_text(text in "[a-zé:\\n]{0,40}", line in 0usize..9, column in 0usize..40) {
            let span = span_at(&text, line, column);
            prop_assert!(text.get(span).is_some());
        }
    }
}
