//! Duet's own kernels, measured as predicted but for their product in one piece.

use std::fs;

use duet::validate::key::Case;
use duet::validate::prediction::Predictions;
use serde_json::Value;

use crate::duet;
use crate::synthetic::row;

const EXPERIMENT: &str = "name: own
grids:
  - name: ag-gemm
    topologies: h200-pair-calibrated
    tp: 2
    gemm: duet
    operators: [{ op: ag-gemm, m: 4096, n: 8192, k: 8192 }]
    strategies: [sequential, fusion-alltoall]
";
const GROUP: &str = "ag-gemm/4096x8192x8192/bf16/2on2/p2p/stream:duet";
/// The kernel in one piece beside its prediction.
const SLOWER: f64 = 1.01;

#[test]
fn own_products_in_one_piece_are_predicted_measured_and_judged() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).display().to_string();
    let (experiment, predicted, older) = (at("own.yaml"), at("predicted.csv"), at("older.csv"));
    fs::write(&experiment, EXPERIMENT).unwrap();
    let topology = ["-t", "h200-pair-calibrated"];
    let predict = ["validate", &experiment, "--predict", "--out", &predicted];
    duet(&[&predict[..], &topology].concat(), 0);
    let predictions = Predictions::read(predicted.as_ref()).unwrap();
    let own: Case = format!("{GROUP}/reference:gemm-own").parse().unwrap();
    assert_eq!(predictions.rows[3].case, own);

    let seconds = |case: &Case| {
        let simulated = predictions.get(case).unwrap().simulated.unwrap();
        match *case == own {
            true => simulated * SLOWER,
            false => simulated,
        }
    };
    let rows: String = (predictions.rows.iter())
        .map(|prediction| row(prediction, seconds(&prediction.case), "a").line())
        .collect();
    let measured = at("measured.csv");
    fs::write(&measured, duet::validate::table::header() + &rows).unwrap();
    let of = |subject: &str| seconds(&format!("{GROUP}/{subject}").parse().unwrap());
    let (t, o, g, s) = (
        of("fusion-alltoall"),
        of("reference:gemm-own"),
        of("reference:gemm"),
        of("reference:sequential-copies"),
    );

    let judge = [
        "validate",
        &experiment,
        "--measured",
        &measured,
        "--predicted",
    ];
    let found = duet(&[&judge[..], &[&predicted, "--format", "json"]].concat(), 0);
    let found: Value = serde_json::from_str(&found).unwrap();
    let near = |found: &Value, expected: f64| {
        let found = found.as_f64().unwrap();
        assert!((found - expected).abs() < 2e-3, "{found} is not {expected}");
    };
    let shape = &found["kernel_shapes"][0];
    assert_eq!(
        (&shape["group"], &shape["fastest"]),
        (&GROUP.into(), &"fusion-alltoall".into())
    );
    near(&shape["kernel_efficiency"], 1.0 - (t - o) / (s - o));
    near(&shape["ect_efficiency"], 1.0 - (t - g) / (s - g));
    near(&shape["over_best_unsplit_gemm"], t / g.min(o));
    let strategies = found["kernel_overlap"].as_array().unwrap();
    let of = |name: &str| {
        strategies
            .iter()
            .find(|one| one["strategy"] == name)
            .unwrap()
    };
    let fused = of("fusion-alltoall");
    assert_eq!((&fused["asked"], &fused["claimed"]), (&1.into(), &1.into()));
    near(&fused["efficiency"], 1.0 - (t - o) / (s - o));

    // Predictions from before there was such a reference judge the table still.
    let text = fs::read_to_string(&predicted).unwrap();
    let lines = text.split_inclusive('\n');
    let kept: String = lines
        .filter(|line| !line.contains("reference:gemm-own"))
        .collect();
    fs::write(&older, kept).unwrap();
    let sections = ["--section", "kernel-overlap", "--section", "kernel-shapes"];
    let shown = duet(&[&judge[..], &[&older], &sections].concat(), 0);
    assert!(shown.contains("Overlap of Duet's own kernels"), "{shown}");
    assert!(shown.contains("AG+GEMM: T/GEMM "), "{shown}");
    assert!(
        shown.contains(" in 1 of 1.") || shown.contains(" in 0 of 1."),
        "{shown}"
    );
}
