//! The profiles in the binary, so that `duet` runs from anywhere. To add one: put the file into
//! `topologies/gpus/` and its name here.

/// Name and text of every profile file, by name.
pub(super) const PROFILES: &[(&str, &str)] = &[];

/// Names that [`super::load`] knows without a file: the shipped profiles and `ideal`.
pub fn names() -> Vec<&'static str> {
    std::iter::once("ideal")
        .chain(PROFILES.iter().map(|(name, _)| *name))
        .collect()
}
