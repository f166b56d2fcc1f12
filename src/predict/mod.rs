//! Closed forms: how long a strategy takes, in nanoseconds of arithmetic instead of a simulation.
