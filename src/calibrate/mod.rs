//! From measurements to parameters: least squares, bootstrap intervals, error figures.
