//! What can go wrong in a command, with its exit code.

use std::process::ExitCode;

use crate::gpu::GpuError;

/// A command's failure; the text goes to stderr as it is.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// The arguments do not fit together (exit code 2).
    #[error("{0}")]
    Usage(String),
    /// A file, a topology or a shape is wrong (exit code 3).
    #[error("{0}")]
    Input(String),
    /// No GPU can be used, or one failed (exit code 4).
    #[error("{0}")]
    Gpu(String),
    /// Results are not what they must be (exit code 5).
    #[error("{0}")]
    Validation(String),
    /// Duet itself is wrong, or the machine ran out of something (exit code 1).
    #[error("{0}")]
    Internal(String),
    /// The reader of our output has gone; nobody is left to tell (exit code 0).
    #[error("the reader closed the pipe")]
    Closed,
}

impl Failure {
    /// The exit code of this failure.
    pub fn code(&self) -> ExitCode {
        ExitCode::from(match self {
            Self::Closed => 0,
            Self::Internal(_) => 1,
            Self::Usage(_) => 2,
            Self::Input(_) => 3,
            Self::Gpu(_) => 4,
            Self::Validation(_) => 5,
        })
    }
}

impl Failure {
    /// Bad input described by another room, whose diagnostics begin with `error:` where they point
    /// into a file.
    pub fn input(error: &impl std::fmt::Display) -> Self {
        let text = error.to_string();
        Self::Input(match text.starts_with("error") {
            true => text,
            false => format!("error: {text}"),
        })
    }

    /// A strategy that is none for this operator and machine.
    pub fn cannot_perform(strategy: &str, reason: &str) -> Self {
        Self::Input(format!(
            "error: `{strategy}` cannot be performed: {reason}\n  help: choose another; `duet strategies` says what each is for and its parameters"
        ))
    }
}

/// The house form of errors in words, `what is wrong: remedy`, on two lines.
pub fn remedied(words: &str) -> String {
    match words.split_once(": ") {
        Some((wrong, remedy)) => format!("{wrong}\n  help: {remedy}"),
        None => words.to_owned(),
    }
}

impl From<GpuError> for Failure {
    fn from(error: GpuError) -> Self {
        Self::Gpu(format!("error: {error}"))
    }
}

impl From<serde_json::Error> for Failure {
    fn from(error: serde_json::Error) -> Self {
        Self::Internal(format!("error: cannot write JSON: {error}"))
    }
}
