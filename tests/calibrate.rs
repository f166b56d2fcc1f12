//! Calibration: what is said about broken tables of times, and what is fitted.

#[path = "calibrate/bad.rs"]
mod bad;
#[path = "support/corpus.rs"]
mod corpus;
#[path = "calibrate/recover.rs"]
mod recover;
