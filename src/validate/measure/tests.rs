//! Runs with a performer that needs no GPU: order, budget, kills, tables that do not fit.

use std::cell::Cell;
use std::fs;
use std::path::Path;

use super::*;
use crate::experiment::{Experiment, Measure, parse};
use crate::gpu::plan::Library;
use crate::gpu::timing::Summary;
use crate::validate::cases::groups;
use crate::validate::key::Subject;
use crate::validate::table::{self, Conditions};
use crate::validate::tasks;

const TEXT: &str = "
name: fake
measure: { rounds: 3, seed: 5 }
grids:
  - name: one
    topologies: h200-pair
    paths: [p2p, 'host:2MiB']
    axes: { rows: [256, 512, 1024] }
    operators: [{ op: ag-gemm, m: rows, n: 512, k: 512 }]
    strategies: [sequential, 'interdecom:d=2,comm=direct']
  - name: two
    topologies: h200-pair
    tp: 4
    gpus: [1, 2]
    operators: [{ op: gemm-rs, m: 512, n: 512, k: 512 }]
    strategies: [sequential]
";

fn experiment() -> (Experiment, Vec<Planned>) {
    let experiment = parse(TEXT, "fake.yaml", &[]).unwrap();
    let groups = groups(&experiment).unwrap();
    (experiment, groups)
}

/// Makes rows up; halts at the n-th group if asked.
struct Fake {
    halt: Option<usize>,
    performed: Vec<String>,
}

impl Performer for Fake {
    fn perform(&mut self, planned: &Planned) -> Result<Measured, Box<Halt>> {
        self.performed.push(planned.group.to_string());
        let halts = self.halt == Some(self.performed.len());
        let mut measured = Measured::default();
        for case in planned.cases() {
            // Times that depend on the case alone.
            let base = 1e-6 * (10.0 + case.to_string().len() as f64);
            let samples = vec![base, base + 1e-6, base + 2e-6];
            if let Subject::Strategy(_) = case.subject {
                measured.tasks.push(tasks::Task {
                    case: case.clone(),
                    task: 0,
                    rank: 0,
                    lane: 0,
                    kind: "gemm".to_owned(),
                    start: 0.0,
                    end: base,
                });
            }
            measured.rows.push(table::Row {
                case,
                library: Library::Copies,
                rounds: 3,
                repeats: 1,
                gated: true,
                makespan: table::median(&samples),
                p10: Summary::of(&samples).map(|summary| summary.p10),
                p90: Summary::of(&samples).map(|summary| summary.p90),
                samples,
                skew: None,
                checked: true,
                error: Some(0.0),
                excluded: halts.then(|| "the group was stopped: a run hung".to_owned()),
                conditions: Conditions {
                    machine: "fake".to_owned(),
                    date: "2026-11-30".to_owned(),
                    seed: 5,
                    ..Conditions::default()
                },
            });
        }
        match halts {
            false => Ok(measured),
            true => Err(Box::new(Halt {
                measured,
                error: GpuError::Unusable {
                    reason: "a run hung".to_owned(),
                },
            })),
        }
    }
}

#[derive(Default)]
struct Counter {
    begun: Cell<usize>,
    ended: Cell<usize>,
}

impl Observer for Counter {
    fn begin(&self, _: &Planned, seconds: f64) {
        assert!(seconds >= 0.0);
        self.begun.set(self.begun.get() + 1);
    }

    fn end(&self, measured: &Measured) {
        assert!(!measured.rows.is_empty());
        self.ended.set(self.ended.get() + 1);
    }
}

fn plan(groups: &[Planned], budget: Option<f64>) -> Plan {
    Plan {
        chosen: (0..groups.len()).collect(),
        seconds: vec![1.0; groups.len()],
        budget: budget.map(Duration::from_secs_f64),
        seed: 5,
    }
}

fn open(path: &Path, groups: &[Planned], measure: &Measure) -> Result<Store, StoreError> {
    Store::open(path, groups, measure, false)
}

/// One run into `path`; how many groups were performed.
fn go(path: &Path, halt: Option<usize>) -> (Finished, Vec<String>) {
    let (experiment, groups) = experiment();
    let mut store = open(path, &groups, &experiment.measure).unwrap();
    let mut fake = Fake {
        halt,
        performed: Vec::new(),
    };
    let counter = Counter::default();
    let all = plan(&groups, None);
    let finished = run(&groups, &all, &mut store, &mut fake, &counter).unwrap();
    assert_eq!(counter.begun.get(), fake.performed.len());
    assert_eq!(counter.ended.get(), fake.performed.len());
    (finished, fake.performed)
}

#[test]
fn every_group_is_measured_once_in_the_order_of_the_seed() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("measured/a.csv");
    let (finished, performed) = go(&path, None);
    assert_eq!((finished.kept, finished.measured), (0, 8));
    assert!(finished.left.is_empty() && finished.halted.is_none());
    let (_, groups) = experiment();
    let all: Vec<usize> = (0..8).collect();
    let expected: Vec<String> = (order(&groups, &all, 5).into_iter())
        .map(|index| groups[index].group.to_string())
        .collect();
    assert_eq!(performed, expected);
    let rows = table::read(&path).unwrap();
    assert_eq!(rows.len(), 6 * 5 + 2 * 4);
    let tasks = tasks::read(&store::tasks_beside(&path)).unwrap();
    assert_eq!(tasks.len(), 6 * 2 + 2);
    // Nothing is left for another run.
    let bytes = fs::read(&path).unwrap();
    let (finished, performed) = go(&path, None);
    assert_eq!((finished.kept, performed.len()), (8, 0));
    assert_eq!(fs::read(&path).unwrap(), bytes);
}

#[test]
fn a_run_that_was_killed_anywhere_ends_with_the_same_bytes() {
    let folder = tempfile::tempdir().unwrap();
    let whole = folder.path().join("whole.csv");
    go(&whole, None);
    let (rows, beside) = (
        fs::read(&whole).unwrap(),
        fs::read(store::tasks_beside(&whole)).unwrap(),
    );
    let mut random = fastrand::Rng::with_seed(3);
    for _ in 0..60 {
        let path = folder.path().join("cut.csv");
        // Tasks are written before rows, so never fewer groups of them.
        let at = random.usize(..=rows.len());
        let groups = fs::read_to_string(&whole).unwrap()[..at]
            .matches("/reference:gemm")
            .count();
        let tasks = String::from_utf8(beside.clone()).unwrap();
        let mut names: Vec<&str> = tasks.lines().skip(1).map(group_of).collect();
        names.dedup();
        let least: usize = tasks
            .split_inclusive('\n')
            .take_while(|line| !names[groups..].contains(&group_of(line)))
            .map(str::len)
            .sum();
        fs::write(&path, &rows[..at]).unwrap();
        let until = random.usize(least..=beside.len());
        fs::write(store::tasks_beside(&path), &beside[..until]).unwrap();
        let (finished, performed) = go(&path, None);
        assert_eq!(finished.kept + performed.len(), 8);
        assert_eq!(fs::read(&path).unwrap(), rows, "cut at {at}");
        assert_eq!(fs::read(store::tasks_beside(&path)).unwrap(), beside);
    }
}

/// The group that a line of tasks belongs to; the header's is empty.
fn group_of(line: &str) -> &str {
    let case = line.trim_start_matches('"');
    let end = case.match_indices('/').nth(5).map_or(0, |(end, _)| end);
    &case[..end]
}

#[test]
fn after_a_hang_everything_stays_and_the_next_run_goes_on_behind_it() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.csv");
    let (finished, performed) = go(&path, Some(3));
    assert_eq!((performed.len(), finished.measured), (3, 3));
    assert_eq!(finished.left.len(), 5);
    assert!(finished.halted.unwrap().to_string().contains("a run hung"));
    let rows = table::read(&path).unwrap();
    let excluded: Vec<_> = rows.iter().filter(|row| row.excluded.is_some()).collect();
    assert!(!excluded.is_empty());
    assert!(
        excluded
            .iter()
            .all(|row| row.case.group == excluded[0].case.group)
    );
    let (finished, performed) = go(&path, None);
    assert_eq!((finished.kept, performed.len()), (3, 5));
    assert!(finished.left.is_empty());
}

#[test]
fn no_group_begins_that_would_end_too_late() {
    let folder = tempfile::tempdir().unwrap();
    let (experiment, groups) = experiment();
    let path = folder.path().join("a.csv");
    let mut store = open(&path, &groups, &experiment.measure).unwrap();
    let mut fake = Fake {
        halt: None,
        performed: Vec::new(),
    };
    // Every second group is far too long; the fake takes no time.
    let mut plan = plan(&groups, Some(50.0));
    for index in (0..8).step_by(2) {
        plan.seconds[index] = 1e9;
    }
    let counter = Counter::default();
    let finished = run(&groups, &plan, &mut store, &mut fake, &counter).unwrap();
    assert_eq!(finished.measured + finished.left.len(), 8);
    assert!(finished.left.contains(&0) || finished.measured == 8);
    drop(store);
    let (finished, _) = go(&path, None);
    assert!(finished.left.is_empty());
}

#[test]
fn a_table_of_something_else_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let (experiment, groups) = experiment();
    let path = folder.path().join("a.csv");
    go(&path, None);
    let error = |groups: &[Planned], measure: &Measure| {
        open(&path, groups, measure).unwrap_err().to_string()
    };
    let measure = experiment.measure;
    let more = Measure {
        rounds: 4,
        ..measure
    };
    let said = error(&groups, &more);
    assert!(
        said.contains(
            "was measured in 3 rounds with seed 5, and 4 rounds with seed 5 are asked for"
        ),
        "{said}"
    );
    let said = error(&groups[..4], &measure);
    assert!(
        said.contains("which the experiment does not have"),
        "{said}"
    );
    assert!(
        said.contains("help: name another file with `--rows`"),
        "{said}"
    );
    let mut changed = groups.clone();
    for planned in &mut changed {
        planned.strategies.reverse();
    }
    assert!(error(&changed, &measure).contains("in the place of"));
    // Another process has it.
    let held = open(&path, &groups, &measure).unwrap();
    assert!(error(&groups, &measure).contains("another `duet` is writing"));
    drop(held);
    // A mistake in the middle is shown with its place, and nothing is cut.
    let text = fs::read_to_string(&path).unwrap();
    fs::write(&path, text.replacen("reference:copy", "reference:cpy", 1)).unwrap();
    let said = error(&groups, &measure);
    assert!(said.contains("a.csv:3:"), "{said}");
    fs::write(&path, "no,table\n1,2\n").unwrap();
    assert!(error(&groups, &measure).contains("this is not a table of measured times"));
    assert_eq!(fs::read_to_string(&path).unwrap(), "no,table\n1,2\n");
    // `fresh` forgets all that.
    drop(Store::open(&path, &groups, &measure, true).unwrap());
    let (finished, performed) = go(&path, None);
    assert_eq!((finished.kept, performed.len()), (0, 8));
}

#[test]
fn an_edited_table_is_refused_and_keeps_every_byte() {
    let folder = tempfile::tempdir().unwrap();
    let (experiment, groups) = experiment();
    let path = folder.path().join("a.csv");
    let beside = store::tasks_beside(&path);
    go(&path, None);
    let rows = fs::read_to_string(&path).unwrap();
    let tasks = fs::read_to_string(&beside).unwrap();
    let refused = |rows: &[u8], tasks: &[u8]| {
        fs::write(&path, rows).unwrap();
        fs::write(&beside, tasks).unwrap();
        let error = open(&path, &groups, &experiment.measure).unwrap_err();
        assert_eq!(fs::read(&path).unwrap(), rows);
        assert_eq!(fs::read(&beside).unwrap(), tasks);
        error.to_string()
    };
    // As spreadsheets and editors leave them: line ends, a mark in front, blank lines.
    let crlf = |text: &str| text.replace('\n', "\r\n").into_bytes();
    let marked = format!("\u{feff}{rows}");
    let spaced = rows.replacen('\n', "\n\n", 3);
    for edited in [&crlf(&rows)[..], marked.as_bytes(), spaced.as_bytes()] {
        let said = refused(edited, tasks.as_bytes());
        assert!(said.contains("a.csv` has been edited"), "{said}");
        assert!(said.contains("help: name another file with `--rows`"));
    }
    let said = refused(rows.as_bytes(), &crlf(&tasks));
    assert!(said.contains("a-tasks.csv` has been edited"), "{said}");
    let said = refused(rows.as_bytes(), b"notes of mine\n");
    assert!(said.contains("a-tasks.csv` is no table of tasks"), "{said}");
    let mut broken = rows.clone().into_bytes();
    broken[rows.find("fake").unwrap()] = 0xff;
    let said = refused(&broken, tasks.as_bytes());
    assert!(said.contains("byte 0xff at offset"), "{said}");
}

/// Who removes the rows of a group to measure it again must not lose the tasks behind it.
#[test]
fn tasks_behind_those_of_a_group_that_is_gone_are_kept() {
    let folder = tempfile::tempdir().unwrap();
    let (experiment, groups) = experiment();
    let path = folder.path().join("a.csv");
    let beside = store::tasks_beside(&path);
    go(&path, None);
    let tasks = fs::read_to_string(&beside).unwrap();
    let gone = group_of(tasks.lines().nth(1).unwrap()).to_owned();
    let without = |text: &str| -> String {
        let kept = text.split_inclusive('\n');
        kept.filter(|line| group_of(line) != gone).collect()
    };
    let rows = without(&fs::read_to_string(&path).unwrap());
    fs::write(&path, &rows).unwrap();
    let error = open(&path, &groups, &experiment.measure).unwrap_err();
    let said = error.to_string();
    assert!(
        said.contains(&format!(
            "line 2 of `{}` is the first of `{gone}`",
            beside.display()
        )),
        "{said}"
    );
    assert_eq!(fs::read_to_string(&beside).unwrap(), tasks);
    fs::write(&beside, without(&tasks)).unwrap();
    let (finished, performed) = go(&path, None);
    assert_eq!((finished.kept, performed), (7, vec![gone]));
}

#[test]
fn estimates_grow_with_rounds_and_name_what_is_skipped() {
    let (experiment, groups) = experiment();
    let topology = |planned: &Planned| &experiment.machines[planned.machine as usize].topology;
    for planned in &groups {
        let found = estimate(planned, topology(planned), &experiment.measure);
        assert_eq!(found.performed + found.skipped.len(), planned.rows());
        assert!(found.memory > 3 << 30 && found.fits(topology(planned)));
        let more = Measure {
            rounds: 60,
            ..experiment.measure
        };
        let longer = estimate(planned, topology(planned), &more);
        // 57 more samples of at least their heating.
        let least = 57.0 * found.performed as f64 * 3e-3;
        assert!(longer.seconds > found.seconds + least);
    }
}
