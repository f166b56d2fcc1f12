//! Duet: which way of overlapping communication with computation is fastest on this machine, by
//! how much, and why.
//!
//! One schedule, two performers. A [`strategy`] writes a [`schedule::Schedule`], a verified task
//! graph over tensor slices. A performer (the simulator in [`sim`]) turns it into a
//! [`timeline::Timeline`]. Rooms import leftwards only:
//!
//! `units ► input ► device ► topology ► operator ► schedule ► strategy ► timeline ► sim ► predict ► gpu ► calibrate ► experiment ► validate ► tune ► report ► cli`
//!
//! and `sim`, `predict` and `gpu` do not know each other, so that one can check the other.

pub mod calibrate;
pub mod cli;
pub mod device;
pub mod experiment;
pub mod gpu;
pub mod input;
pub mod operator;
pub mod predict;
pub mod report;
pub mod schedule;
pub mod sim;
pub mod strategy;
pub mod timeline;
pub mod topology;
pub mod tune;
pub mod units;
pub mod validate;
