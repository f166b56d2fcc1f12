//! The broken files of `tests/bad/experiment/`, see [`crate::corpus`].

use duet::experiment::{self, ExperimentError};
use duet::input::decode;

use crate::corpus::every_file_is_explained;

#[test]
fn every_broken_file_is_explained() {
    every_file_is_explained("experiment", "yaml", |name, bytes| {
        let text = match decode(name, bytes) {
            Err(error) => return Some(error),
            Ok(text) => text,
        };
        let error: ExperimentError = experiment::parse(text, name, &["speedup"]).err()?;
        Some(error.to_string())
    });
}

proptest::proptest! {
    /// Whatever the bytes, there is an answer.
    #[test]
    fn never_panics(from in 0usize..1000, len in 0usize..40, with in "[-a-z0-9:,*/\\[\\]{} \n]{0,12}") {
        let mut text = crate::SMALL.to_owned();
        let from = from.min(text.len());
        let to = (from + len).min(text.len());
        text.replace_range(from..to, &with);
        // A grid that became large is only parsed.
        let _ = experiment::parse(&text, "x.yaml", &[]);
    }
}
