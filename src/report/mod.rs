//! Tables, JSON, CSV, traces and drawings of results; computes no new numbers.
