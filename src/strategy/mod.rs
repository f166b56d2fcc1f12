//! The strategies: operator × topology → [`crate::schedule::Schedule`].
