//! Figures of small tables whose values follow from the numbers put in.

use super::*;
use crate::gpu::plan::Library;
use crate::validate::analysis::errors::{Dimension, Errors};
use crate::validate::prediction::Chosen;
use crate::validate::table::{Conditions, median};

/// A row whose rounds drift together: sample i is `us` · (1 + i/1000), so that ratios of the same
/// rounds have no spread.
fn row(case: &str, us: f64) -> Row {
    let samples: Vec<f64> = (0..60)
        .map(|i| us * 1e-6 * (1.0 + f64::from(i) * 1e-3))
        .collect();
    Row {
        case: case.parse().unwrap(),
        library: Library::Nccl,
        rounds: 60,
        repeats: 1,
        gated: true,
        makespan: median(&samples),
        p10: Some(samples[6]),
        p90: Some(samples[53]),
        samples,
        skew: None,
        checked: true,
        error: None,
        excluded: None,
        conditions: Conditions {
            machine: "a".to_owned(),
            ..Conditions::default()
        },
    }
}

/// A prediction of so many times the row's median.
fn said(row: &Row, factor: f64) -> Prediction {
    let simulated = row.makespan.map(|seconds| seconds * factor);
    Prediction {
        case: row.case.clone(),
        simulated,
        interval: simulated.map(|seconds| [0.95 * seconds, 1.05 * seconds]),
        closed: simulated,
        closed_no_overhead: simulated.map(|seconds| seconds - 4e-6),
        compass: simulated.map(|seconds| 0.5 * seconds),
        steps: f64::from(u8::from(row.case.strategy() != Some("sequential"))),
        message: 1e6,
        spec: simulated.map(|seconds| 1.5 * seconds),
        chosen: Chosen::default(),
        gemm_measured: Some(false),
        tasks: 4,
        handoffs: 2,
        skipped: None,
    }
}

/// Subject, measured \[us\], predicted over measured.
pub(super) type Subject3 = (&'static str, f64, f64);

pub(super) struct Tables {
    pub rows: Vec<Row>,
    pub predictions: Predictions,
}

/// Groups of m = 1024, 2048, … with the same subjects, the lengths multiplied by 1, 2, ….
pub(super) fn tables(groups: &[(&str, f64)], subjects: &[Subject3]) -> Tables {
    let (mut rows, mut said_of) = (Vec::new(), Vec::new());
    for (group, times) in groups {
        for (subject, us, factor) in subjects {
            let row = row(&format!("{group}/{subject}"), us * times);
            said_of.push(said(&row, *factor));
            rows.push(row);
        }
    }
    Tables {
        rows,
        predictions: Predictions::new("box".into(), "0".into(), said_of),
    }
}

const GROUPS: [(&str, f64); 4] = [
    ("ag-gemm/1024x4096x4096/bf16/2on2/p2p/stream", 1.0),
    ("ag-gemm/2048x4096x4096/bf16/2on2/p2p/stream", 2.0),
    ("gemm-rs/1024x4096x4096/bf16/2on2/host:2MiB/stream", 4.0),
    ("gemm-rs/1024x4096x4096/bf16/4on2/p2p/graph", 8.0),
];
const SUBJECTS: [Subject3; 6] = [
    ("reference:gemm", 80.0, 1.0),
    ("reference:copy", 40.0, 1.0),
    ("reference:sequential-copies", 120.0, 1.0),
    ("sequential", 125.0, 1.04),
    ("interdecom:d=2,comm=direct", 100.0, 0.94),
    ("fusion-ring", 99.5, 1.0),
];

fn analysed(tables: &Tables) -> Validation {
    analyse(&Input {
        experiment: "synthetic",
        measured: &tables.rows,
        second: Some(&tables.rows),
        predictions: &tables.predictions,
        today: Some(&tables.predictions),
        divergences: &[],
        peers: &[],
        options: AnalysisOptions::default(),
    })
}

fn near(a: f64, b: f64) {
    assert!((a - b).abs() < 1e-9 * b.abs().max(1.0), "{a} is not {b}");
}

fn find<'e>(errors: &'e [Errors], dimension: Dimension, name: &str) -> &'e Errors {
    let mut all = errors.iter();
    let found = all.find(|e| e.dimension == dimension && e.name == name);
    found.unwrap_or_else(|| panic!("no errors of {name}"))
}

#[test]
fn errors_are_those_put_in() {
    let found = analysed(&tables(&GROUPS, &SUBJECTS));
    assert_eq!((found.facts.groups, found.facts.virtual_groups), (3, 1));
    assert_eq!((found.facts.cases, found.facts.virtual_cases), (9, 3));
    assert_eq!(found.facts.rounds, [60, 60]);
    // |+4 %|, |−6 %|, 0 in every group: mean 10/3 %, bias −2/3 %.
    let all = find(&found.absolute, Dimension::All, "all");
    assert_eq!((all.groups, all.cases), (3, 9));
    near(all.mape, 0.10 / 3.0);
    near(all.bias, -0.02 / 3.0);
    near(all.worst, 0.06);
    assert!(
        all.worst_at
            .ends_with("1024x4096x4096/bf16/2on2/p2p/stream/interdecom:d=2,comm=direct")
    );
    // Equal in every group, so that no resample differs.
    let [low, high] = all.mape_interval.unwrap();
    near(low, all.mape);
    near(high, all.mape);
    // Medians are 1.0295 times the numbers put in; 5 and 6 us of 324.5 us per unit.
    near(all.mae, (5.0 + 6.0) * 1.0295e-6 * 7.0 / 9.0);
    near(all.wmape, 11.0 / 324.5);
    near(
        find(&found.absolute, Dimension::Strategy, "sequential").mape,
        0.04,
    );
    near(
        find(
            &found.absolute,
            Dimension::Strategy,
            "interdecom:comm=direct",
        )
        .bias,
        -0.06,
    );
    // At 1, 2 and 4 times the length: 128.7, 103.0 and 102.4 us; doubled; and 4 times, above 300.
    assert_eq!(
        find(&found.absolute, Dimension::Length, "longer than 100 us").cases,
        9
    );
    assert_eq!(
        find(&found.absolute, Dimension::Length, "longer than 300 us").cases,
        3
    );
    assert_eq!(find(&found.absolute, Dimension::Path, "host").cases, 3);
    assert_eq!(find(&found.absolute, Dimension::Launch, "stream").cases, 9);
    assert_eq!(
        find(&found.absolute, Dimension::Virtual, "4 ranks on 2 GPUs").cases,
        3
    );
    assert_eq!(
        find(&found.absolute, Dimension::Reference, "reference:gemm").cases,
        3
    );
    let unseen = find(&found.absolute, Dimension::Shape, "not in the calibration");
    assert_eq!(unseen.cases, 9);
    // The references are right, so that ratios err as times do.
    near(
        find(&found.relative, Dimension::All, "all").mape,
        0.10 / 3.0,
    );
    // Half as much again: 56, 41 and 50 % too long.
    near(
        find(&found.spec, Dimension::All, "all").mape,
        (0.56 + 0.41 + 0.5) / 3.0,
    );
    near(found.today.unwrap().errors[0].mape, 0.10 / 3.0);
}

#[test]
fn choices_are_right_within_one_per_cent() {
    let mut tables = tables(&GROUPS, &SUBJECTS);
    for said in &mut tables.predictions.rows {
        said.chosen.selector = said.case.strategy() == Some("sequential");
    }
    let found = analysed(&tables);
    let by = |who: &str| {
        found
            .choices
            .iter()
            .find(|summary| summary.by == who)
            .unwrap()
    };
    // The simulator takes interdecom (94 against 99.5): 0.5 % slower than the fastest.
    let simulator = by("simulator");
    assert_eq!(
        (simulator.groups, simulator.right, simulator.strict),
        (3, 3, 0)
    );
    near(simulator.mean_regret, 100.0 / 99.5 - 1.0);
    assert_eq!(simulator.worst.len(), 3);
    assert_eq!(simulator.worst[0].best, "fusion-ring");
    // Every round differs by the same share, so that no interval includes zero.
    assert!(
        simulator
            .worst
            .iter()
            .all(|choice| choice.level && !choice.indistinct)
    );
    let selector = by("selector");
    assert_eq!((selector.right, selector.strict), (0, 0));
    near(selector.most_regret, 125.0 / 99.5 - 1.0);
    assert_eq!(by("always fusion-ring").strict, 3);
    assert_eq!(by("simulator, shared GPUs").groups, 1);
}

/// 3 us more in every other round, 3 us less in the others: 3 % of the fastest, which no interval tells.
#[test]
fn choices_that_rounds_cannot_tell_are_right() {
    let mut tables = tables(&GROUPS[..1], &SUBJECTS);
    let fastest = tables.rows[5].samples.clone();
    let chosen = &mut tables.rows[4];
    let noise = |i: usize| if i.is_multiple_of(2) { 3e-6 } else { -2.9e-6 };
    chosen.samples = fastest
        .iter()
        .enumerate()
        .map(|(i, s)| s + noise(i))
        .collect();
    chosen.makespan = Some(median(&fastest).unwrap() + 2e-6);
    let found = analysed(&tables);
    let simulator = &found.choices[0];
    assert_eq!((simulator.right, simulator.strict), (1, 0));
    assert!(simulator.worst[0].indistinct && !simulator.worst[0].level);
}

#[test]
fn speed_ups_and_efficiencies_follow_from_the_references() {
    let found = analysed(&tables(&GROUPS, &SUBJECTS));
    let gain = |of: &str, over: &str| {
        let mut gains = found.speed.gains.iter().chain(&found.speed.strategies);
        let found = gains.find(|gain| gain.of == of && gain.over.starts_with(over));
        found.unwrap_or_else(|| panic!("no gain of {of}")).clone()
    };
    let chosen = gain("chosen by the simulator", "copy engine");
    assert_eq!((chosen.groups, chosen.faster), (2, 2));
    near(chosen.measured, 1.2);
    near(chosen.predicted.unwrap(), 120.0 / 94.0);
    near(gain("fastest measured", "NCCL").measured, 125.0 / 99.5);
    near(gain("sequential", "copy engine").measured, 120.0 / 125.0);
    let overlap = found
        .overlap
        .iter()
        .find(|o| o.strategy == "fusion-ring")
        .unwrap();
    // (99.5 − 80)/(120 − 80) of the communication is left, in every round.
    assert_eq!((overlap.cases, overlap.claimed), (3, 3));
    near(overlap.efficiency.unwrap(), 1.0 - 19.5 / 40.0);
    near(overlap.error.unwrap(), 0.0);
    near(overlap.ratio, 99.5 / 80.0);
    let sequential = found
        .overlap
        .iter()
        .find(|o| o.strategy == "sequential")
        .unwrap();
    near(sequential.predicted.unwrap(), 1.0 - (130.0 - 80.0) / 40.0);
    near(sequential.error.unwrap(), 5.0 / 40.0);
}

#[test]
fn fusions_by_own_products_are_held_against_interdecoms_best_setting() {
    let groups = [
        ("ag-gemm/1024x4096x4096/bf16/2on2/p2p/stream:duet", 1.0),
        ("ag-gemm/2048x4096x4096/bf16/2on2/p2p/stream:duet", 2.0),
        ("ag-gemm/1024x4096x4096/bf16/4on2/p2p/stream:duet", 3.0),
        // Other products, another path.
        ("ag-gemm/1024x4096x4096/bf16/2on2/p2p/stream", 1.0),
        (
            "ag-gemm/1024x4096x4096/bf16/2on2/host:2MiB/stream:duet",
            1.0,
        ),
    ];
    // Measured, and predicted over measured: the simulator takes the second fusion for the fastest.
    let subjects = [
        ("interdecom:d=2,comm=direct", 120.0, 1.0),
        ("interdecom:d=4,comm=direct", 110.0, 1.2),
        ("fusion-alltoall", 100.0, 1.0),
        ("fusion-alltoall:chunks=2", 105.0, 0.9),
    ];
    let found = analysed(&tables(&groups, &subjects));
    let gains: Vec<(&str, usize, f64)> = (found.speed.fusions.iter())
        .map(|gain| (gain.of.as_str(), gain.groups, gain.measured))
        .collect();
    let [best, chosen] = [110.0 / 100.0, 110.0 / 105.0];
    let expected = [
        ("fusion, fastest measured, 2 ranks on 2", 2, best),
        ("fusion, chosen by the simulator, 2 ranks on 2", 2, chosen),
        ("fusion, fastest measured, 4 ranks on 2", 1, best),
        ("fusion, chosen by the simulator, 4 ranks on 2", 1, chosen),
    ];
    assert_eq!(gains.len(), expected.len(), "{gains:?}");
    for ((of, groups, gain), (name, count, value)) in gains.into_iter().zip(expected) {
        assert_eq!((of, groups), (name, count));
        near(gain, value);
    }
}

#[test]
fn a_hybrid_is_held_against_the_better_single_path() {
    let groups = [
        ("ag-gemm/1024x4096x4096/bf16/2on2/p2p/stream", 1.0),
        ("ag-gemm/1024x4096x4096/bf16/2on2/host:2MiB/stream", 3.0),
        (
            "ag-gemm/1024x4096x4096/bf16/2on2/hybrid:0.1:2MiB/stream",
            0.8,
        ),
        (
            "ag-gemm/2048x4096x4096/bf16/2on2/hybrid:0.1:2MiB/stream",
            0.8,
        ),
    ];
    let found = analysed(&tables(&groups, &SUBJECTS));
    // The last has no fellow over one path.
    assert_eq!(found.speed.hybrids.len(), 1);
    let hybrid = &found.speed.hybrids[0];
    near(hybrid.measured, 1.25);
    near(hybrid.predicted.unwrap(), 1.25);
    near(hybrid.host.unwrap(), 3.0 * hybrid.p2p);
}

#[test]
fn intervals_cover_what_lies_in_them() {
    let found = analysed(&tables(&GROUPS, &SUBJECTS));
    let all = &found.coverage[0];
    // ±5 % of the prediction: +4 % and 0 inside, −6 % outside.
    assert_eq!((all.name.as_str(), all.cases, all.inside), ("all", 9, 6));
    near(all.half_width, 0.05);
    let interdecom = &found.coverage[2];
    near(interdecom.widen, 0.06 / (0.05 * 0.94));
}

#[test]
fn closed_forms_find_the_overhead_put_in() {
    // The extended form lacks 4 us a step everywhere, whatever the message.
    let groups: Vec<(String, f64)> = (1..40)
        .map(|i| {
            (
                format!("ag-gemm/{}x4096x4096/bf16/2on2/p2p/stream", 128 * i),
                f64::from(i),
            )
        })
        .collect();
    let groups: Vec<(&str, f64)> = groups.iter().map(|(g, t)| (g.as_str(), *t)).collect();
    let subjects = [("reference:gemm", 80.0, 1.0), ("fusion-ring", 99.5, 1.0)];
    let mut tables = tables(&groups, &subjects);
    for (at, said) in tables.predictions.rows.iter_mut().enumerate() {
        said.message = 1e6 * (at + 1) as f64;
    }
    let found = analysed(&tables);
    assert_eq!(found.forms.fitted_groups + found.forms.judged_groups, 39);
    let errors = |form: &str, overhead: bool| {
        let mut all = found.forms.errors.iter();
        all.find(|e| e.form == form && e.overhead == overhead)
            .unwrap()
    };
    near(errors("extended", false).mae, 4e-6);
    assert!(errors("extended", true).mae < 1e-12);
    // Half of the time is proportional to the message here, up to a constant.
    assert!(errors("compass", true).mae < 0.1 * errors("compass", false).mae);
    let fit = found
        .forms
        .fitted
        .iter()
        .find(|f| f.form == "extended")
        .unwrap();
    assert_eq!(fit.name, "ag-gemm p2p stream fusion-ring");
    near(fit.fit.as_ref().unwrap().alpha, 4e-6);
}

#[test]
fn excluded_rows_stay_with_their_reasons_and_judge_nothing() {
    let mut tables = tables(&GROUPS[..1], &SUBJECTS);
    tables.rows[4].excluded = Some("ungated".to_owned());
    tables.predictions.rows.remove(3);
    tables.predictions =
        Predictions::new("box".into(), "0".into(), tables.predictions.rows.clone());
    let found = analysed(&tables);
    assert_eq!(found.excluded.len(), 1);
    assert_eq!(found.excluded[0].reason, "ungated");
    assert_eq!(
        found.unpredicted[0].reason,
        "not in the table of predictions"
    );
    assert_eq!(find(&found.absolute, Dimension::All, "all").cases, 1);
}

#[test]
fn repeatability_is_of_the_same_cases() {
    let first = tables(&GROUPS, &SUBJECTS);
    let mut second = first.rows.clone();
    for row in &mut second {
        row.makespan = row.makespan.map(|seconds| 1.02 * seconds);
    }
    second.remove(3);
    let found = repeat::repeat(&first.rows, Some(&second));
    // Of 60 rounds, sample 53 is 1.053 and sample 6 is 1.006; the median 1.0295.
    near(found[0].median, (1.053 - 1.006) / 1.0295);
    assert_eq!(
        (found[1].cases, found[1].name.as_str()),
        (11, "second table, all")
    );
    near(found[1].mean, 0.02);
    near(found[1].weighted.unwrap(), 0.02);
    assert_eq!(repeat::repeat(&first.rows, None).len(), 1);
}

#[test]
fn errors_that_grow_with_something_correlate_with_it() {
    let groups: Vec<String> = (1..20)
        .map(|i| format!("ag-gemm/{}x4096x4096/bf16/2on2/p2p/stream", 128 * i))
        .collect();
    let mut rows = Vec::new();
    let mut predictions = Vec::new();
    for (i, group) in groups.iter().enumerate() {
        let row = row(&format!("{group}/fusion-ring"), 100.0 * (i + 1) as f64);
        predictions.push(said(&row, 1.0 - 0.01 * i as f64));
        rows.push(row);
    }
    let predictions = Predictions::new("box".into(), "0".into(), predictions);
    let joined = join(&rows, &predictions);
    let found = residuals::correlations(&joined.groups);
    let with = |name: &str| found.iter().find(|c| c.with == name);
    near(with("m").unwrap().signed, -1.0);
    near(with("m").unwrap().size, 1.0);
    near(with("bytes of the message").unwrap().signed, -1.0);
    assert!(
        with("chunks").is_none(),
        "what does not vary goes with nothing"
    );
    assert!(
        with("share of the unsplit GEMM").is_none(),
        "no reference was measured"
    );
}

#[test]
fn nothing_measured_is_nothing_judged() {
    let tables = Tables {
        rows: Vec::new(),
        predictions: Predictions::default(),
    };
    let found = analysed(&tables);
    assert!(found.absolute.is_empty() && found.choices.is_empty() && found.coverage.is_empty());
}
