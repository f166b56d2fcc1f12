//! Experiments: grids of cases from a YAML file, performed resumably, and what follows from them.
