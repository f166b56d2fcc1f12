//! Profiles from files.

use super::shipped::{PROFILES, names};
use super::{Device, ideal};
use crate::input::did_you_mean;

/// Why there is no profile; the text is complete, with the place in the file and the remedy.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DeviceError {
    /// No shipped profile of that name.
    #[error("`{name}` is not a GPU profile: {remedy}")]
    Unknown { name: String, remedy: String },
    /// The file cannot be read.
    #[error("cannot read the GPU profile `{path}`: {reason}")]
    Unreadable { path: String, reason: String },
    /// The file has mistakes.
    #[error("{0}")]
    Invalid(String),
}

/// The profile of that name, or from the file at that path (`./my-gpu.yaml`).
///
/// # Errors
/// [`DeviceError`]: an unknown name, an unreadable file or mistakes in it.
pub fn load(name_or_path: &str) -> Result<Device, DeviceError> {
    if name_or_path == "ideal" {
        return Ok(ideal());
    }
    debug_assert!(PROFILES.iter().all(|(name, _)| *name != name_or_path));
    Err(DeviceError::Unknown {
        name: name_or_path.to_owned(),
        remedy: did_you_mean(name_or_path, names().iter().copied()),
    })
}
