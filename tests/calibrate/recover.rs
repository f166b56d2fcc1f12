//! From times made by the closed forms and known overheads back to those overheads.

use std::collections::BTreeMap;

use duet::calibrate::groups::{Options, fit_groups, parameters};
use duet::calibrate::points::{Points, points};
use duet::calibrate::table;
use duet::device::DType;
use duet::operator::{Kind, Operator};
use duet::predict::{Key, Machine, Overhead, Parameters, Terms, family};
use duet::{strategy, topology};

const MACHINE: &str = "a6000-pairs-8";

/// Known overheads of four families, AG+GEMM and GEMM+RS.
fn known() -> Parameters {
    let mut parameters = Parameters::default();
    let families = [
        "interdecom",
        "interdecom:comm=direct",
        "fusion-ring",
        "fusion-alltoall",
    ];
    for (i, strategy) in families.into_iter().enumerate() {
        for (operator, factor) in [(Kind::AgGemm, 1.0), (Kind::GemmRs, 2.0)] {
            let key = Key {
                topology: MACHINE.into(),
                operator,
                tp: 8,
                strategy: strategy.into(),
            };
            let overhead = Overhead {
                alpha: factor * (i + 1) as f64 * 5e-6,
                beta: factor * (4 - i) as f64 * 3e-13,
                source: "fitted, by hand".into(),
                ..Overhead::default()
            };
            parameters.insert(key, overhead);
        }
    }
    parameters
}

/// Times of 16 shapes under those overheads, as lines of CSV below a header.
fn times(terms: &Terms) -> Vec<String> {
    let topology = topology::load(MACHINE, &[]).unwrap();
    let machine = Machine::new(&topology, &[0, 1, 2, 3, 4, 5, 6, 7]);
    let (known, mut lines) = (known(), Vec::new());
    for kind in [Kind::AgGemm, Kind::GemmRs] {
        for (m, k) in [512, 1024, 4096, 16384]
            .into_iter()
            .flat_map(|m| [2048, 3072, 4096, 8192].map(|k| (m, k)))
        {
            let operator = Operator::gemm(kind, m, 4 * k, k, 8, DType::Bf16).unwrap();
            for text in [
                "sequential",
                "interdecom:d=1",
                "interdecom:d=2",
                "interdecom:d=8",
                "interdecom:d=4,comm=direct",
                "fusion-ring",
                "fusion-alltoall",
            ] {
                let choice = strategy::parse(text).unwrap();
                let seconds = machine
                    .predict(&operator, &choice, terms, &known)
                    .unwrap()
                    .seconds;
                lines.push(format!(
                    "{MACHINE},{kind},{m},{},{k},8,bf16,\"{text}\",{seconds:e}",
                    4 * k
                ));
            }
        }
    }
    lines
}

fn read(lines: &[String], terms: &Terms) -> Points {
    let text = format!(
        "topology,operator,m,n,k,tp,dtype,strategy,seconds\n{}\n",
        lines.join("\n")
    );
    let table = table::parse("times.csv", &text).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(table.rows.len(), lines.len());
    points(&table, terms, topology::load).unwrap_or_else(|error| panic!("{error}"))
}

#[test]
fn known_overheads_come_back() {
    for terms in [Terms::default(), Terms::compass()] {
        let points = read(&times(&terms), &terms);
        assert_eq!(points.passed.len(), 1, "{:?}", points.passed);
        assert_eq!(
            (points.passed[0].strategy.as_str(), points.passed[0].rows),
            ("sequential", 32)
        );
        let groups = fit_groups(&points.points, &Options::default());
        let found = parameters(&groups, "times.csv");
        let known = known();
        assert_eq!(found.iter().count(), known.iter().count());
        for (key, want) in known.iter() {
            let got = found
                .get(&key.topology, key.operator, key.tp, &key.strategy)
                .unwrap();
            // The times are 1e3 larger than the overheads, and doubles have 16 digits.
            let near = |a: f64, b: f64| (a - b).abs() < 1e-6 * b;
            assert!(
                near(got.alpha, want.alpha) && near(got.beta, want.beta),
                "{key:?}: {got:?} for {want:?}"
            );
        }
        for group in &groups {
            let fit = group.fit.as_ref().unwrap();
            assert!(fit.after.mape < 1e-9 && fit.before.mape > 1e-4, "{group:?}");
        }
        // What was written predicts what was measured.
        let read = Parameters::read(&found.write(), "params.yaml").unwrap();
        let topology = topology::load(MACHINE, &[]).unwrap();
        let machine = Machine::new(&topology, &[0, 1, 2, 3, 4, 5, 6, 7]);
        let operator = Operator::gemm(Kind::AgGemm, 2048, 16384, 4096, 8, DType::Bf16).unwrap();
        let choice = strategy::parse("interdecom:d=4").unwrap();
        let predict = |parameters| {
            machine
                .predict(&operator, &choice, &terms, parameters)
                .unwrap()
                .seconds
        };
        assert!((predict(&read) / predict(&known) - 1.0).abs() < 1e-7);
    }
}

#[test]
fn the_order_of_rows_changes_no_byte() {
    let terms = Terms::compass();
    let mut lines = times(&Terms::default());
    let options = Options {
        holdout: 0.3,
        ..Options::default()
    };
    let said = |lines: &[String]| {
        let points = read(lines, &terms);
        let groups = fit_groups(&points.points, &options);
        (
            parameters(&groups, "x").write(),
            format!("{groups:?} {:?}", points.passed),
        )
    };
    let first = said(&lines);
    fastrand::Rng::with_seed(5).shuffle(&mut lines);
    assert!(said(&lines) == first);
}

/// A machine with changed numbers shares the key, but its base times are its own.
#[test]
fn columns_named_like_paths_change_the_machine() {
    let text = "topology,operator,m,n,k,tp,dtype,strategy,seconds,links.pcie.bandwidth\n\
        a6000-pairs-8,ag-gemm,8192,16384,4096,8,bf16,fusion-ring,1e-2,\n\
        a6000-pairs-8,ag-gemm,8192,16384,4096,8,bf16,fusion-ring,1e-2,0.1x\n";
    let table = table::parse("times.csv", text).unwrap();
    assert_eq!(table.rows[1].sets, ["links.pcie.bandwidth=0.1x"]);
    let found = points(&table, &Terms::default(), topology::load)
        .unwrap()
        .points;
    assert_eq!(found[0].key, found[1].key);
    assert_ne!(found[0].case, found[1].case);
    assert!(found[1].sample.base > 2.0 * found[0].sample.base);
}

#[test]
fn topologies_that_are_none_are_named_once_and_in_their_place() {
    let mut text = "topology,operator,m,n,k,tp,dtype,strategy,seconds,gpu.hbm\n".to_owned();
    for (topology, tp, hbm) in [
        ("a6000-pair-8", 8, ""),
        ("a6000-pair-8", 8, ""),
        ("./no-such.yaml", 8, ""),
        ("a6000-pairs-4", 8, ""),
        ("a6000-pairs-4", 4, "4"),
    ] {
        text += &format!("{topology},ag-gemm,8192,16384,4096,{tp},bf16,fusion-ring,1e-2,{hbm}\n");
    }
    let table = table::parse("times.csv", &text).unwrap();
    let error = points(&table, &Terms::default(), topology::load).unwrap_err();
    insta::assert_snapshot!(error.to_string());
}

#[test]
fn families_of_the_table_are_those_of_the_parameters() {
    let points = read(&times(&Terms::default()), &Terms::default());
    let families: BTreeMap<&str, usize> =
        points
            .points
            .iter()
            .fold(BTreeMap::new(), |mut all, point| {
                *all.entry(point.key.strategy.as_str()).or_default() += 1;
                all
            });
    assert_eq!(families["interdecom"], 3 * 32, "d is no part of the key");
    assert_eq!(families["interdecom:comm=direct"], 32);
    assert_eq!(
        family(&strategy::parse("interdecom:d=4,comm=direct").unwrap()),
        "interdecom:comm=direct"
    );
}
