//! What the YAML parser complains about, in this project's words where a user can do better.

use serde_saphyr::Error;
use serde_saphyr::budget::BudgetBreach;

use super::{MAX_DEPTH, MAX_NODES, span_of};
use crate::input::{Diagnostic, Span, span_at};

/// One sentence at the parser's place.
pub(super) fn diagnose(error: &Error, text: &str) -> Diagnostic {
    let error = innermost(error);
    let span = place(error, text);
    if tab_indented(text, &span) {
        return Diagnostic::new(span, "a tab in the indentation", "expected spaces")
            .help("indent with spaces: YAML allows no tabs there");
    }
    match error {
        Error::DuplicateMappingKey { key, .. } => {
            let message = match key {
                Some(key) => format!("`{key}` is given twice"),
                None => "a key is given twice".to_owned(),
            };
            Diagnostic::new(span, message, "second mention").help("keep one of the two")
        }
        Error::Budget { breach, .. } => over_budget(breach, span),
        Error::AliasReplayLimitExceeded { .. }
        | Error::AliasReplayStackDepthExceeded { .. }
        | Error::RecursiveReferencesRequireWeakTypes { .. } => too_many_aliases(span),
        Error::MultipleDocuments { .. } => second_document(span),
        _ => {
            let words = error.render();
            let words = words.lines().next().unwrap_or("");
            // The snippet shows the place; the parser's own mention would be a second one.
            let words = words.split(" at line ").next().unwrap_or(words);
            let words = words.trim_start_matches("error: ");
            if words.contains("recursion limit") {
                return too_deep(span);
            }
            Diagnostic::new(span, format!("not readable as YAML: {words}"), "here")
                .help("check quotes, brackets, colons and indentation up to this place")
        }
    }
}

/// Unwraps what only adds a context.
fn innermost(mut error: &Error) -> &Error {
    loop {
        error = match error {
            Error::WithSnippet { error, .. } | Error::AliasError { error, .. } => error,
            _ => return error,
        }
    }
}

/// The parser's place, by bytes or else by line and column; the end where it names none.
fn place(error: &Error, text: &str) -> Span {
    let Some(location) = error.location() else {
        return text.len()..text.len();
    };
    match span_of(location) {
        Some(span) if span.end <= text.len() => span,
        _ => {
            let number = |n: u64| usize::try_from(n).unwrap_or(usize::MAX);
            span_at(text, number(location.line()), number(location.column()))
        }
    }
}

/// Whether the line of the place is indented with a tab.
fn tab_indented(text: &str, span: &Span) -> bool {
    let before = text.get(..span.start).unwrap_or(text);
    let line = before.rfind('\n').map_or(0, |at| at + 1);
    text.get(line..)
        .is_some_and(|rest| rest.trim_start_matches(' ').starts_with('\t'))
}

fn over_budget(breach: &BudgetBreach, span: Span) -> Diagnostic {
    match breach {
        BudgetBreach::Depth { .. } => too_deep(span),
        BudgetBreach::Documents { .. } => second_document(span),
        BudgetBreach::Aliases { .. }
        | BudgetBreach::Anchors { .. }
        | BudgetBreach::MergeKeys { .. }
        | BudgetBreach::AliasAnchorRatio { .. }
        | BudgetBreach::RecordedAnchorEvents { .. }
        | BudgetBreach::RecordedAnchorBytes { .. } => too_many_aliases(span),
        _ => Diagnostic::new(span, "the file is too large", "reading stopped here").help(format!(
            "keep it below {MAX_NODES} values: describe big systems with `generate`"
        )),
    }
}

fn too_deep(span: Span) -> Diagnostic {
    Diagnostic::new(
        span,
        format!("nested deeper than {MAX_DEPTH} levels"),
        "one level too many",
    )
    .help("no key of this format needs that: check the brackets and the indentation")
}

fn too_many_aliases(span: Span) -> Diagnostic {
    Diagnostic::new(
        span,
        "aliases expand to too many values",
        "reading stopped here",
    )
    .help("write the values out, or describe big systems with `generate`")
}

fn second_document(span: Span) -> Diagnostic {
    Diagnostic::new(
        span,
        "a second document starts here",
        "expected the end of the file",
    )
    .help("keep one document in the file: remove `---`")
}
