//! Whatever a kill left, the next run gives the same bytes.

use std::fs;
use std::sync::OnceLock;

use duet::experiment::results::{Results, Table};
use duet::experiment::run::RunError;
use proptest::prelude::*;

use crate::{options, perform, small, whole};

fn expected() -> &'static [u8] {
    static WHOLE: OnceLock<Vec<u8>> = OnceLock::new();
    WHOLE.get_or_init(whole)
}

/// Runs over what is left of the growing table; returns the finished one and the cases kept.
fn resumed(left: &[u8]) -> (Vec<u8>, u64) {
    let folder = tempfile::tempdir().unwrap();
    let stamp = duet::experiment::run::Stamp::of(&small(), None);
    fs::write(folder.path().join("results.run.json"), stamp.text()).unwrap();
    fs::write(folder.path().join("results.csv.partial"), left).unwrap();
    let finished = perform(&options(folder.path())).unwrap();
    (fs::read(finished.path).unwrap(), finished.kept)
}

#[test]
fn the_table_has_every_row_in_order() {
    let folder = tempfile::tempdir().unwrap();
    perform(&options(folder.path())).unwrap();
    let results = Results::read(folder.path()).unwrap();
    let experiment = small();
    assert_eq!(results.rows.len() as u64, experiment.rows());
    assert_eq!(results.cases().count(), experiment.cases.len());
    for (row, number) in results.cases().zip(1..) {
        assert!(row.iter().all(|row| row.case == number));
    }
    assert!(results.rows.iter().any(|row| row.makespan().is_none()));
    let faster = results
        .rows
        .iter()
        .filter_map(|row| Some((row.makespan()?, row.lower_bound?)))
        .find(|(makespan, bound)| makespan < bound);
    assert_eq!(faster, None);
    assert_eq!(Table::Csv.write(&results).unwrap(), expected());
    let left = fs::read_dir(folder.path()).unwrap().count();
    assert_eq!(left, 3, "the table, its stamp and the lock");
}

#[test]
fn any_number_of_threads_gives_the_same_bytes() {
    for threads in [1, 3, 16] {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build();
        assert_eq!(pool.unwrap().install(whole), expected());
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn a_table_cut_anywhere_is_completed(cut in 0usize..1 << 20) {
        let all = expected();
        let cut = cut % (all.len() + 1);
        let (table, kept) = resumed(&all[..cut]);
        prop_assert!(table == all);
        let lines = all[..cut].iter().filter(|byte| **byte == b'\n').count() as u64;
        // Of 6 cases of at least 2 rows no more can be complete than there are lines.
        prop_assert!(kept <= lines);
    }

    /// A digit or letter of an outcome may change unnoticed; what is not a row of this place of the
    /// grid, or not as it is written, is performed again.
    #[test]
    fn a_table_with_a_foreign_byte_has_all_rows(at in 0usize..1 << 20, byte in any::<u8>()) {
        let mut left = expected().to_vec();
        let at = at % left.len();
        let row = left[..at].iter().filter(|byte| **byte == b'\n').count();
        left[at] = byte;
        let (table, _) = resumed(&left);
        let split = |text: &[u8]| -> Vec<Vec<u8>> { text.split(|byte| *byte == b'\n').map(<[u8]>::to_vec).collect() };
        let (found, right) = (split(&table), split(expected()));
        prop_assert_eq!(found.len(), right.len());
        let name = |line: &[u8]| line.split(|byte| *byte == b',').take(14).collect::<Vec<_>>().join(&b',');
        for (number, (found, right)) in found.iter().zip(&right).enumerate() {
            if number == row {
                prop_assert_eq!(name(found), name(right));
            } else {
                prop_assert_eq!(found, right);
            }
        }
    }
}

#[test]
fn complete_cases_are_kept_and_torn_ones_are_not() {
    let all = expected();
    let ends: Vec<usize> = (0..all.len()).filter(|at| all[*at] == b'\n').collect();
    // The header and the first case's rows.
    let rows = small().cases[0].strategies.len();
    assert_eq!(resumed(&all[..=ends[rows]]).1, 1);
    assert_eq!(resumed(&all[..ends[rows]]).1, 0);
    assert_eq!(resumed(all).1, small().cases.len() as u64);
    assert_eq!(resumed(b"").1, 0);
}

#[test]
fn a_finished_table_is_used_again_unless_it_is_to_be_fresh() {
    let folder = tempfile::tempdir().unwrap();
    let mut options = options(folder.path());
    perform(&options).unwrap();
    let cases = small().cases.len() as u64;
    assert_eq!(perform(&options).unwrap().kept, cases);
    options.fresh = true;
    assert_eq!(perform(&options).unwrap().kept, 0);
}

#[test]
fn a_finished_table_that_lost_a_row_is_refused() {
    for table in [Table::Csv, Table::Parquet] {
        let folder = tempfile::tempdir().unwrap();
        let mut options = options(folder.path());
        options.table = table;
        let path = perform(&options).unwrap().path;
        let mut results = Results::read(&path).unwrap();
        results.rows.pop();
        fs::write(&path, table.write(&results).unwrap()).unwrap();
        let error = perform(&options).unwrap_err();
        let text = error.to_string();
        assert!(matches!(error, RunError::Damaged(_)), "{text}");
        assert!(
            text.contains(" rows, not the ") && text.contains("help: give `--fresh`"),
            "{text}"
        );
    }
}

#[test]
fn a_finished_table_that_was_edited_is_refused_where_it_differs() {
    let edits = [
        (
            "operators,2,a6000",
            "operators,3,a6000",
            "is not case 2 under sequential",
        ),
        (
            "operators,1,a6000-pairs-4",
            "operators,1,other",
            "row 1 is not case 1",
        ),
        (
            ",interdecom:d=4,",
            ",interdecom:d=16,",
            "is not case 1 under interdecom:d=4",
        ),
    ];
    for (from, to, what) in edits {
        for table in [Table::Csv, Table::Parquet] {
            let folder = tempfile::tempdir().unwrap();
            let mut options = options(folder.path());
            perform(&options).unwrap();
            let path = folder.path().join("results.csv");
            let text = fs::read_to_string(&path).unwrap();
            assert!(text.contains(from), "{text}");
            fs::write(&path, text.replacen(from, to, 1)).unwrap();
            options.table = table;
            let error = perform(&options).unwrap_err();
            let text = error.to_string();
            assert!(matches!(error, RunError::Damaged(_)), "{text}");
            assert!(
                text.contains("was edited: ") && text.contains(what),
                "{text}"
            );
        }
    }
}

#[test]
fn parquet_and_csv_hold_the_same() {
    let folder = tempfile::tempdir().unwrap();
    let mut options = options(folder.path());
    options.table = Table::Parquet;
    let finished = perform(&options).unwrap();
    assert_eq!(finished.path, folder.path().join("results.parquet"));
    assert!(!folder.path().join("results.csv").exists());
    let bytes = fs::read(&finished.path).unwrap();
    let results = Results::read(folder.path()).unwrap();
    assert_eq!(Table::Csv.write(&results).unwrap(), expected());
    assert_eq!(Table::Parquet.write(&results).unwrap(), bytes);
    // The other form is made from it without performing anything.
    options.table = Table::Csv;
    assert_eq!(perform(&options).unwrap().kept, small().cases.len() as u64);
    assert_eq!(
        fs::read(folder.path().join("results.csv")).unwrap(),
        expected()
    );
    assert!(!folder.path().join("results.parquet").exists());
}

#[test]
fn a_damaged_parquet_file_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("results.parquet"), b"PAR1PAR1").unwrap();
    let error = Results::read(folder.path()).unwrap_err().to_string();
    assert!(error.starts_with("cannot read the results"), "{error}");
}

#[test]
fn a_changed_experiment_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let options = options(folder.path());
    perform(&options).unwrap();
    for (from, to, what) in [
        ("512, 1024", "512", "before its grid or a topology changed"),
        ("0.5x", "0.6x", "before its grid or a topology changed"),
        ("interdecom,", "", "before its grid or a topology changed"),
        ("name: small", "name: other", "another experiment, `small`"),
    ] {
        let mut text = crate::SMALL.replace(from, to);
        if from.starts_with("name") {
            // Another name alone is the same table.
            text = text.replace("512", "768");
        }
        let changed = duet::experiment::parse(&text, "small.yaml", &[]).unwrap();
        let error = duet::experiment::run::run(&changed, &options, &crate::Nobody).unwrap_err();
        let text = error.to_string();
        assert!(matches!(error, RunError::Changed { .. }), "{text}");
        assert!(text.contains(what) && text.contains("--fresh"), "{text}");
    }
    assert_eq!(
        fs::read(folder.path().join("results.csv")).unwrap(),
        expected()
    );
}
