//! The model that results come from, in one number.
//!
//! A finished table is used again only while the model that made it stands. [`FINGERPRINT`] hashes
//! what the simulator says of a few schedules on a machine whose every number is fixed; it is part
//! of the stamp beside every table. A test works it out anew, so that a change of the model that
//! leaves it as it was does not pass.

/// Hash of the simulated times of the tests' reference cases.
pub(super) const FINGERPRINT: &str = "c8c2a3ab438ab492";

#[cfg(test)]
mod tests {
    use std::fmt::Write;

    use super::FINGERPRINT;
    use crate::experiment::results::Results;
    use crate::experiment::run::{Observer, RunOptions, run};
    use crate::input::Fingerprint;

    const MACHINE: &str = include_str!("../../../tests/data/model.yaml");
    /// Operators of all kinds, from those that launches rule to
    /// those that links or arithmetic rule; call by call and as graphs; with and without peer access.
    const CASES: &str = "
name: reference
grids:
  - name: stream
    topologies: [model.yaml, staged.yaml]
    tp: [2, 4, 6]
    axes: { rows: [96, 1536, 12288] }
    operators:
      - { op: ag-gemm, m: rows, n: 6144, k: 1536 }
      - { op: gemm-rs, m: rows, n: 1536, k: 6144 }
      - { op: gemm-ar, m: rows, n: 1536, k: 6144 }
      - { op: all-gather, bytes: 1536*rows }
      - { op: reduce-scatter, bytes: 1536*rows }
      - { op: all-reduce, bytes: 1536*rows }
      - { op: all-to-all, bytes: 1536*rows }
    strategies:
      - sequential
      - interdecom:d=2
      - interdecom:d=4,comm=direct
      - fusion-alltoall
      - fusion-ring
      - fusion-ring:mover=sm:2
      - fusion-double-ring
      - ring-accumulate
      - library
      - direct
      - ring
      - double-ring
      - tree
      - hierarchical
";

    struct Unwatched;

    impl Observer for Unwatched {
        fn begin(&self, _: u64, _: u64) {}
        fn step(&self) {}
    }

    #[test]
    fn a_changed_model_is_another_model() {
        let folder = tempfile::tempdir().unwrap();
        let staged = MACHINE.replace("name: model", "name: staged");
        let staged = format!("{staged}p2p: false\nstaging_chunk: 1 MiB\n");
        let (_, grid) = CASES.split_once("grids:").unwrap();
        let graph = grid.replace("name: stream", "name: graph\n    launch: graph");
        for (file, text) in [
            ("model.yaml", MACHINE),
            ("staged.yaml", &staged),
            (
                "experiment.yaml",
                &format!("{CASES}{}", graph.trim_start_matches('\n')),
            ),
        ] {
            std::fs::write(folder.path().join(file), text).unwrap();
        }
        let file = folder.path().join("experiment.yaml");
        let experiment = crate::experiment::read(&file, &[]).unwrap();
        let options = RunOptions {
            out: folder.path().join("out"),
            shard: None,
            fresh: false,
            table: Default::default(),
        };
        let finished = run(&experiment, &options, &Unwatched).unwrap();
        let mut hash = Fingerprint::default();
        for row in Results::read(&finished.path).unwrap().rows {
            // Nine digits: beyond them a library's logarithm may differ.
            let time = row.makespan().unwrap_or(0.0);
            let (gemm, bound) = (row.unsplit_gemm, row.lower_bound.unwrap_or(0.0));
            writeln!(hash, "{} {time:.8e} {gemm:.8e} {bound:.8e}", row.strategy).unwrap();
        }
        let found = hash.to_string();
        assert_eq!(
            found, FINGERPRINT,
            "the simulator's times have changed: set FINGERPRINT in src/experiment/run/model.rs to \
             what is at the left, so that results of the old model are not used again"
        );
    }
}
