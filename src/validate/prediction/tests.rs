//! Predictions are read as written, agree with the commands that predict one by one, and their
//! intervals are the stated formula.

use super::*;
use crate::device::DType;
use crate::predict::Parameters;
use crate::timeline::{Explanation, Term};
use crate::topology;
use crate::topology::paths::PathChoice;

fn cases(subjects: &[&str]) -> Vec<Case> {
    let groups = [
        "ag-gemm/2048x8192x4096/bf16/2on2/p2p/stream",
        "gemm-rs/2048x8192x4096/bf16/2on2/host:2MiB/graph",
    ];
    let case = |group: &str, subject: &&str| format!("{group}/{subject}").parse().unwrap();
    (groups.iter())
        .flat_map(|group| subjects.iter().map(move |subject| case(group, subject)))
        .collect()
}

const SUBJECTS: [&str; 6] = [
    "sequential",
    "interdecom:d=2,comm=direct",
    "fusion-ring",
    "reference:gemm",
    "reference:copy",
    "reference:sequential-copies",
];

fn predicted() -> Predictions {
    let name = "h200-pair-calibrated";
    let topology = topology::load(name, &[]).unwrap();
    let text = topology::text(name).unwrap();
    let model = Model {
        topology: &topology,
        sigmas: Sigmas::of(&text, topology.device(0), DType::Bf16),
        spec: Some(&topology),
        parameters: &Parameters::default(),
    };
    predict(&cases(&SUBJECTS), &model, &|| ())
}

#[test]
fn predictions_are_what_the_judge_says_and_are_read_back() {
    let table = predicted();
    assert_eq!(table.rows.len(), 12);
    for row in &table.rows {
        assert_eq!(row.skipped, None, "{}", row.case);
        let simulated = row.simulated.unwrap();
        // The same machine in place of the data sheet's gives the same time.
        assert_eq!(row.spec, Some(simulated), "{}", row.case);
        assert_eq!(row.interval.is_some(), row.tasks > 0, "{}", row.case);
        if let Some([low, high]) = row.interval {
            assert!(low < simulated && simulated < high, "{}", row.case);
        }
    }
    // A plain copy crosses the link, whatever the group's path: twice the bytes and a graph's launch,
    // where the host's memory would take eight times as long.
    let copy = |at: usize| table.rows[at].simulated.unwrap();
    assert_eq!(table.rows[10].message, 2.0 * table.rows[4].message);
    assert!(
        (1.5..3.0).contains(&(copy(10) / copy(4))),
        "{} {}",
        copy(4),
        copy(10)
    );
    for group in table.rows.chunks(6) {
        let chosen = |by: fn(&Chosen) -> bool| group.iter().filter(|row| by(&row.chosen)).count();
        assert_eq!(chosen(|c| c.simulation), 1);
        assert!(chosen(|c| c.selector) <= 1);
        let fastest = group.iter().find(|row| row.chosen.simulation).unwrap();
        let strategies = group.iter().filter(|row| row.case.strategy().is_some());
        let least = strategies
            .filter_map(|row| row.simulated)
            .fold(f64::INFINITY, f64::min);
        assert_eq!(fastest.simulated, Some(least));
    }
    let text = table.write();
    let read = Predictions::parse("p.csv", &text).unwrap();
    assert_eq!(read.write(), text);
    assert_eq!(
        (&read.topology, &read.model),
        (&table.topology, &table.model)
    );
    // Earlier tables do not say whether the calibration knew the product.
    let earlier: String = text
        .lines()
        .map(|line| line.rsplit_once(',').unwrap().0.to_owned() + "\n")
        .collect();
    let unsaid = Predictions::parse("p.csv", &earlier).unwrap();
    assert!(unsaid.rows.iter().all(|row| row.gemm_measured.is_none()));
    assert_eq!(unsaid.write(), earlier);
    let case = &table.rows[2].case;
    let (read, written) = (read.get(case).unwrap(), &table.rows[2]);
    assert!((read.simulated.unwrap() - written.simulated.unwrap()).abs() < 0.006e-6);
    assert_eq!(
        (read.handoffs, read.chosen),
        (written.handoffs, written.chosen)
    );
}

#[test]
fn mistakes_have_a_place() {
    let text = predicted().write();
    let says = |from: &str, to: &str| {
        assert!(text.contains(from), "{from}");
        let error = Predictions::parse("p.csv", &text.replacen(from, to, 1));
        error.unwrap_err().to_string()
    };
    assert!(says(",simulation,", ",simulator,").contains("`simulator` chooses nothing"));
    assert!(says("stream/sequential", "graph/sequential").contains("help: write `graph`"));
    let model = predicted().model;
    assert!(says(&model, "0").contains("two models in one table"));
    assert!(says(&model, "0").contains("`0` is no hash of a model"));
    let header = text.lines().next().unwrap();
    let nothing = Predictions::parse("p.csv", &format!("{header}\n"));
    assert_eq!(
        nothing.unwrap_err().to_string(),
        "error: `p.csv` predicts nothing: below its header there is no row\n  help: `duet validate EXPERIMENT -t TOPOLOGY --predict --out FILE` writes such tables: write it anew"
    );
    // A row by column, damaged.
    let header: Vec<&str> = text.lines().next().unwrap().split(',').collect();
    let row: Vec<&str> = text.lines().nth(1).unwrap().split(',').collect();
    let at = |name: &str| header.iter().position(|known| *known == name).unwrap();
    let damaged = |name: &str, cell: &str| {
        let mut cells = row.clone();
        cells[at(name)] = cell;
        let table = text.replacen(&row.join(","), &cells.join(","), 1);
        Predictions::parse("p.csv", &table).unwrap_err().to_string()
    };
    for (name, cell, words) in [
        ("low_us", "", "an interval with one end"),
        ("high_us", "", "an interval with one end"),
        (
            "low_us",
            "1e9",
            "the simulated time is not within its interval",
        ),
        (
            "high_us",
            "0.5",
            "the simulated time is not within its interval",
        ),
        (
            "simulated_us",
            "1e9",
            "the simulated time is not within its interval",
        ),
        ("steps", "", "a number is missing"),
        ("message_bytes", "", "a number is missing"),
        ("topology", "", "a name is missing"),
        ("closed_us", "-1", "`-1` is not a number of at least 0"),
        ("spec_us", "nan", "`nan` is not a number of at least 0"),
        ("tasks", "1.5", "`1.5` is not a number of tasks"),
    ] {
        let error = damaged(name, cell);
        assert!(
            error.contains(words) && error.contains("p.csv:2:"),
            "{name}: {error}"
        );
    }
}

/// T = 100 us: 60 of compute at 3 %, 20 of exposed communication at 10 %, 10 of contention at 50 %,
/// 10 of sync at 20 %, repeatability 1 %: σ² = 1.8² + 2² + 5² + 2² + 1², σ = 6.1 us.
#[test]
fn intervals_add_independent_classes() {
    let sigmas = Sigmas {
        gemm: 0.03,
        peer: 0.1,
        host: 0.4,
        library: 0.2,
        sync: 0.2,
        contention: 0.5,
        repeat: 0.01,
    };
    let terms = [
        (Term::Compute, 50e-6),
        (Term::WaveQuantisation, 10e-6),
        (Term::ExposedCommunication, 20e-6),
        (Term::Contention, 10e-6),
        (Term::SyncAndLaunch, 10e-6),
    ];
    let explanation = Explanation {
        terms: terms.to_vec(),
        makespan: 100e-6,
    };
    let half = |links: f64| {
        let parts = [1.8, 20.0 * links, 5.0, 2.0, 1.0];
        1.96e-6 * parts.iter().map(|part| part * part).sum::<f64>().sqrt()
    };
    let chunk = crate::units::Bytes::new(1 << 20);
    for (path, library, links) in [
        (PathChoice::Routes, false, 0.1),
        (PathChoice::Routes, true, 0.2),
        (PathChoice::Host { chunk }, true, 0.4),
        (PathChoice::Hybrid { share: 0.1, chunk }, false, 0.4),
    ] {
        let [low, high] = sigmas.interval(&explanation, path, library);
        assert!((high - 100e-6 - half(links)).abs() < 1e-12, "{path}");
        assert!((100e-6 - low - half(links)).abs() < 1e-12, "{path}");
    }
}

#[test]
fn sigmas_come_from_the_sources_of_the_file() {
    let text = "
name: box
gpu:
  gemm:
    source:
      table: \"measured, 95 % within 1.96 % (median)\"
  copies:
    source: { peer_copy: \"fitted, 95 % 98.04 GB/s to 101.96 GB/s; slope\" }
  costs:
    source: { event: \"fitted, 95 % 900 ns to 1.1 us; x\", lane: assumed }
links:
  - kind: nvlink-pair
    source: measured, n=3, 95 % 392.16 to 407.84 GB/s; slope
  - kind: pcie
    source: measured, 95 % 50 to 60 GB/s
";
    let sigmas = Sigmas::of(text, &crate::device::ideal(), DType::Bf16).unwrap();
    let near = |a: f64, b: f64| assert!((a - b).abs() < 1e-9, "{a} {b}");
    near(sigmas.gemm, 0.01);
    near(sigmas.peer, 0.01); // ±2 %, by both
    near(sigmas.host, 5.0 / 55.0 / 1.96);
    near(sigmas.sync, 0.1 / 1.96);
    let text = format!("{text}#= gemm.unseen.listed.mean = 7.9788e-3 from 1 to 2, n 9\n");
    let sigmas = Sigmas::of(&text, &crate::device::ideal(), DType::Bf16).unwrap();
    assert!(
        (sigmas.gemm - 0.01 * 2f64.sqrt()).abs() < 1e-6,
        "{}",
        sigmas.gemm
    );
    assert_eq!(
        Sigmas::of("name: box", &crate::device::ideal(), DType::Bf16),
        None
    );
    assert_eq!(Sigmas::of("[", &crate::device::ideal(), DType::Bf16), None);
}

#[test]
fn a_table_predicts_its_own_columns() {
    let topology = topology::load("h200-pair", &[]).unwrap();
    let error = gemm_table_error(topology.device(0), DType::Bf16).unwrap();
    assert!((0.001..0.5).contains(&error), "{error}");
    assert_eq!(gemm_table_error(&crate::device::ideal(), DType::Bf16), None);
}

/// By rows: a measured product of 1024 rows is sure, one that nothing measured is near is not.
#[test]
fn products_are_as_sure_as_what_is_near_them() {
    let topology = topology::load("h200-pair-calibrated", &[]).unwrap();
    let device = topology.device(0);
    let doubt = |m, n, k| crate::device::gemm::doubt(device, DType::Bf16, m, n, k).unwrap();
    let (known, near, far) = (
        doubt(1024, 4096, 4096),
        doubt(1000, 4104, 4096),
        doubt(24, 1_000_000, 8),
    );
    assert!((known - 0.003).abs() < 1e-12, "{known}");
    assert!(near > known && near < 0.05, "{near}");
    assert!(far > near && far > 0.05, "{far}");
    let none = topology::load("h200-pair", &[]).unwrap();
    let none = crate::device::gemm::doubt(none.device(0), DType::Bf16, 1024, 4096, 4096);
    assert_eq!(none, None);
}
