//! `compare`, `simulate` and `sensitivity`.

use duet::device::DType;
use duet::operator::{Kind, Operator};
use duet::strategy;
use serde_json::Value;

use super::{PAIR, json, stdout};

const SHAPE: &str = "-m 2048 -n 2048 -k 2048";

fn number(value: &Value) -> f64 {
    value
        .as_f64()
        .unwrap_or_else(|| panic!("{value} is no number"))
}

/// Equal up to what reading decimal numbers loses.
fn close(value: &Value, expected: f64) {
    let difference = (number(value) - expected).abs();
    assert!(
        difference <= 1e-12 * expected.abs().max(1e-3),
        "{value} is not {expected}"
    );
}

#[test]
fn compare_as_a_table() {
    let text = stdout(&format!(
        "compare -t {PAIR} {SHAPE} --strategy sequential --strategy interdecom:d=2"
    ));
    insta::assert_snapshot!(text);
}

#[test]
fn compare_without_arguments_answers_for_a_default() {
    let all = json("compare");
    assert_eq!(all["topology"], "h200-nvswitch-8");
    assert_eq!(all["operator"]["kind"], "ag-gemm");
    assert_eq!(all["operator"]["m"], 8192);
    assert_eq!(all["operator"]["n"], 49152);
    assert_eq!(all["operator"]["k"], 12288);
    assert_eq!(all["operator"]["tp"], 8);
}

#[test]
fn compare_ranks_by_makespan() {
    let all = json(&format!("compare -t {PAIR} {SHAPE}"));
    let results = all["results"].as_array().unwrap();
    let times: Vec<f64> = results.iter().map(|r| number(&r["makespan_s"])).collect();
    assert!(times.len() > 1 && times.is_sorted(), "{times:?}");
    assert_eq!(all["fastest"], results[0]["strategy"]);
    // The closed forms choose, and the simulation is there to check them.
    assert_eq!(all["chosen_by"], "selector");
    let chosen = results.iter().find(|r| r["strategy"] == all["chosen"]);
    let makespan = number(&chosen.unwrap()["makespan_s"]);
    close(&all["chosen_regret"], makespan / times[0] - 1.0);
    let named = json(&format!("compare -t {PAIR} {SHAPE} --strategy interdecom"));
    assert_eq!(named["chosen_by"], "simulation");
    assert_eq!(named["chosen"], named["fastest"]);
    let sequential = results
        .iter()
        .find(|r| r["strategy"] == "sequential")
        .unwrap();
    for result in results {
        let makespan = number(&result["makespan_s"]);
        assert!(makespan >= number(&all["lower_bound_s"]));
        let speedup = number(&sequential["makespan_s"]) / makespan;
        close(&result["speedup_vs_sequential"], speedup);
        // ECT = makespan − unsplit GEMM; overlap efficiency = 1 − ECT / ECT of sequential.
        let ect = makespan - number(&all["unsplit_gemm_s"]);
        close(&result["ect_s"], ect);
        let overlap = 1.0 - ect / number(&sequential["ect_s"]);
        close(&result["overlap_efficiency"], overlap);
        // The terms telescope.
        let terms = result["terms"].as_object().unwrap().values();
        let sum: f64 = terms.map(number).sum();
        assert!((sum - makespan).abs() <= 1e-12 * makespan, "{result}");
        assert_eq!(result["verified"], true);
        assert!(result["expected_error"]["relative"].is_null());
        assert!(
            !result["expected_error"]["basis"]
                .as_str()
                .unwrap()
                .is_empty()
        );
    }
}

#[test]
fn all_commands_choose_the_first_of_compare() {
    let operator = Operator::gemm(Kind::AgGemm, 8192, 49152, 12288, 8, DType::Bf16).unwrap();
    let registry: Vec<String> = strategy::candidates(&operator)
        .iter()
        .map(ToString::to_string)
        .collect();
    for machine in ["h200-nvswitch-8", "a6000-pairs-8"] {
        let all = json(&format!("compare -t {machine}"));
        let results = all["results"].as_array().unwrap();
        let mut ties = 0;
        for two in results.windows(2) {
            let (one, next) = (number(&two[0]["makespan_s"]), number(&two[1]["makespan_s"]));
            assert!(one <= next, "{two:?}");
            // None apart by mere rounding, and equals as in the registry.
            assert!(one == next || next - one > 1e-13 * one, "{two:?}");
            let place = |row: &Value| registry.iter().position(|name| row["strategy"] == **name);
            if one == next {
                ties += 1;
                assert!(place(&two[0]).unwrap() < place(&two[1]).unwrap(), "{two:?}");
            }
        }
        assert!(ties > 0, "{machine} has no ties to order");
        for command in ["simulate", "sensitivity"] {
            let one = json(&format!("{command} -t {machine}"));
            assert_eq!(one["strategy"], all["fastest"], "{command} on {machine}");
            assert_eq!(one["makespan_s"], results[0]["makespan_s"]);
        }
    }
}

#[test]
fn gpus_without_bf16_multiply_fp16() {
    let dtype = |args: &str| json(&format!("compare {args}"))["operator"]["dtype"].clone();
    assert_eq!(dtype("-t v100-dgx1-8"), "fp16");
    assert_eq!(dtype("-t v100-dgx1-8 --dtype fp32"), "fp32");
    assert_eq!(dtype(&format!("-t {PAIR}")), "bf16");
}

#[test]
fn compare_says_what_was_skipped_and_why() {
    let all = json(&format!("compare -t {PAIR} {SHAPE} --strategy direct"));
    assert_eq!(all["skipped"][0]["strategy"], "direct");
    assert!(
        all["skipped"][0]["reason"]
            .as_str()
            .unwrap()
            .contains("ag-gemm")
    );
    assert_eq!(all["results"][0]["strategy"], "sequential");
    assert!(all["margin"].is_null());
}

#[test]
fn compare_sets_topologies_side_by_side() {
    let args = format!("compare -t {PAIR} -t h200-nvswitch-8 {SHAPE} --tp 2");
    let text = stdout(&args);
    let header = text.lines().next().unwrap();
    assert!(
        header.contains("pair") && header.contains("h200-nvswitch-8"),
        "{text}"
    );
    let both = json(&args);
    assert_eq!(both[0]["topology"], "pair");
    assert_eq!(both[1]["topology"], "h200-nvswitch-8");
}

#[test]
fn bare_collectives_have_bandwidths() {
    let all = json(&format!("compare -t {PAIR} --op all-reduce --bytes 8MiB"));
    for result in all["results"].as_array().unwrap() {
        let algbw = (8 << 20) as f64 / number(&result["makespan_s"]);
        close(&result["algbw_bytes_per_s"], algbw);
        // 2(n − 1)/n of two ranks is 1.
        close(&result["busbw_bytes_per_s"], algbw);
        assert!(result["overlap_efficiency"].is_null());
    }
    let text = stdout(&format!("compare -t {PAIR} --op all-reduce --bytes 8MiB"));
    assert!(text.contains("busbw"), "{text}");
}

#[test]
fn models_name_shapes() {
    let operator =
        |args: &str| json(&format!("compare --strategy sequential {args}"))["operator"].clone();
    let fc2 = operator("--model llama3-70b --layer fc2 --seq 1024 --batch 2");
    assert_eq!(fc2["kind"], "gemm-rs");
    assert_eq!(
        (&fc2["m"], &fc2["n"], &fc2["k"]),
        (&2048.into(), &8192.into(), &28672.into())
    );
    let reduced = operator("--model llama3-70b --layer fc2 --op gemm-ar");
    assert_eq!(reduced["kind"], "gemm-ar");
    let own = operator("-m 4096 --dtype fp8 --tp 4");
    assert_eq!(
        (&own["m"], &own["dtype"], &own["tp"]),
        (&4096.into(), &"fp8".into(), &4.into())
    );
}

#[test]
fn graphs_save_host_time() {
    let makespan = |launch: &str| {
        let args = format!(
            "simulate -t {PAIR} -m 256 -n 256 -k 256 --strategy sequential --launch {launch}"
        );
        number(&json(&args)["makespan_s"])
    };
    assert_ne!(makespan("graph"), makespan("stream"));
}

#[test]
fn overrides_change_the_machine() {
    let makespan = |set: &str| {
        let args = format!("simulate -t {PAIR} {SHAPE} --strategy sequential {set}");
        number(&json(&args)["makespan_s"])
    };
    let before = makespan("");
    assert!(makespan("--set links.nvlink.bandwidth=2x") < before);
    assert!(makespan("--set gpu.peak=0.5x --set links.nvlink.bandwidth=0.5x") > before);
}

#[test]
fn simulate_as_a_table() {
    insta::assert_snapshot!(stdout(&format!(
        "simulate -t {PAIR} {SHAPE} --strategy sequential --tasks"
    )));
}

#[test]
fn simulate_has_the_documented_fields() {
    let one = json(&format!(
        "simulate -t {PAIR} {SHAPE} --strategy sequential --tasks"
    ));
    for field in [
        "strategy",
        "topology",
        "operator",
        "makespan_s",
        "gemm_only_s",
        "comm_only_s",
        "ect_s",
        "overlap_efficiency",
        "bottleneck",
        "expected_error",
        "lower_bound_s",
        "why",
    ] {
        assert!(!one[field].is_null(), "{field}");
    }
    assert_eq!(one["tasks"], one["timeline"].as_array().unwrap().len());
    for link in one["links"].as_array().unwrap() {
        let busy = number(&link["busy_fraction"]);
        assert!(busy > 0.0 && busy <= 1.0, "{link}");
        // Rank r's 1024 rows of A, 2048 bf16 columns.
        assert_eq!(number(&link["bytes"]), 1024.0 * 2048.0 * 2.0);
    }
    let path = one["critical_path"].as_array().unwrap();
    close(&path.last().unwrap()["end_s"], number(&one["makespan_s"]));
    let ends: Vec<f64> = path.iter().map(|step| number(&step["end_s"])).collect();
    assert!(ends.is_sorted());
    // The default is the fastest.
    let best = json(&format!("simulate -t {PAIR} {SHAPE}"));
    let all = json(&format!("compare -t {PAIR} {SHAPE}"));
    assert_eq!(best["strategy"], all["fastest"]);
    assert_eq!(best["makespan_s"], all["results"][0]["makespan_s"]);
    assert!(best.get("timeline").is_none());
}

#[test]
fn traces_load() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("trace.json");
    let csv = stdout(&format!(
        "simulate -t {PAIR} {SHAPE} --trace {} --format csv",
        path.display()
    ));
    let trace: Value = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
    let events = trace["traceEvents"].as_array().unwrap();
    let of = |phase: &str| events.iter().filter(|event| event["ph"] == phase).count();
    assert_eq!(of("X"), csv.lines().count() - 1);
    assert!(of("C") > 0 && of("M") > 0);
}

#[test]
fn schedules_go_through_files() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("schedule.json");
    let saved = json(&format!(
        "simulate -t {PAIR} {SHAPE} --strategy fusion-ring --save-schedule {}",
        path.display()
    ));
    let read = json(&format!("simulate -t {PAIR} --schedule {}", path.display()));
    assert_eq!(read, saved);
}

#[test]
fn a_wrong_schedule_is_refused_and_only_performed_when_asked() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("schedule.json");
    stdout(&format!(
        "simulate -t {PAIR} {SHAPE} --strategy fusion-ring --save-schedule {}",
        path.display()
    ));
    // Without its waits the kernel reads what has not arrived.
    let mut schedule: Value = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
    for task in schedule["tasks"].as_array_mut().unwrap() {
        if let Some(after) = task.get_mut("after") {
            *after = Value::Array(Vec::new());
        }
    }
    std::fs::write(&path, schedule.to_string()).unwrap();
    let (code, text) = super::failure(&format!("simulate -t {PAIR} --schedule {}", path.display()));
    assert_eq!(code, 3);
    assert!(text.contains("the schedule is wrong"), "{text}");
    let blind = json(&format!(
        "simulate -t {PAIR} --no-verify --schedule {}",
        path.display()
    ));
    assert_eq!(blind["verified"], false);
    assert_eq!(blind["not_verified_because"], "not asked for");
}

#[test]
fn sensitivity_ranks_upgrades() {
    let args = format!("sensitivity -t {PAIR} {SHAPE} --strategy sequential");
    let all = json(&args);
    let rows = all["capacities"].as_array().unwrap();
    let savings: Vec<f64> = rows
        .iter()
        .map(|row| number(&row["saving_doubled"]))
        .collect();
    assert!(savings.is_sorted_by(|a, b| a >= b), "{savings:?}");
    let row = |name: &str| {
        let found = rows.iter().find(|row| row["capacity"] == name);
        found.unwrap_or_else(|| panic!("no {name} in {all}"))
    };
    for name in ["nvlink bandwidth", "GPU arithmetic"] {
        let row = row(name);
        assert!(number(&row["elasticity"]) < 0.0, "{row}");
        assert!(number(&row["saving_doubled"]) > 0.0);
        // What the row says can be tried by hand.
        let sets: Vec<String> = row["set_doubled"]
            .as_array()
            .unwrap()
            .iter()
            .map(|set| format!("--set {}", set.as_str().unwrap()))
            .collect();
        let by_hand = json(&format!(
            "simulate -t {PAIR} {SHAPE} --strategy sequential {}",
            sets.join(" ")
        ));
        assert_eq!(by_hand["makespan_s"], row["makespan_doubled_s"]);
    }
    let text = stdout(&args);
    assert!(text.contains("upgrade this first"), "{text}");
    // Both peers have one other: more engines than one per peer are idle.
    let (_, still) = text.split_once("\nno effect: ").unwrap();
    assert!(still.contains("copy engines"), "{text}");
    assert!(!text.contains("0.000 %"), "{text}");
    assert!(!stdout(&format!("{args} --format json")).contains("-0.0,"));
    let csv = stdout(&format!("{args} --format csv"));
    assert_eq!(csv.lines().count(), rows.len() + 1);
}

#[test]
fn predict_shows_the_closed_forms() {
    let operator = "--op gemm-rs -m 4096 -n 8192 -k 32768";
    let all = json(&format!("predict -t a6000-pairs-8 {operator}"));
    assert_eq!(all["schema"], "duet-predict-1");
    let results = all["results"].as_array().unwrap();
    let times: Vec<f64> = results.iter().map(|r| number(&r["predicted_s"])).collect();
    assert!(times.len() > 8 && times.is_sorted(), "{times:?}");
    for result in results {
        let chains = result["stages"].as_array().unwrap().iter();
        let longest = chains
            .map(|stage| number(&stage["total_s"]))
            .fold(0.0, f64::max);
        close(&result["predicted_s"], longest);
        let cut = result["strategy"]
            .as_str()
            .unwrap()
            .starts_with("interdecom");
        assert_eq!(result.get("decomposition").is_some(), cut);
    }
    let compared = json(&format!("compare -t a6000-pairs-8 {operator}"));
    for field in ["chosen", "chosen_by", "runner_up", "margin"] {
        assert_eq!(all[field], compared[field], "{field}");
    }
    // What the selector does not choose among is named where it is faster, and only there.
    let line = "in the table: interdecom:d=8,comm=direct is 14 % faster, and none that the selector chooses among";
    let text = |args: &str| -> String {
        let words = stdout(args);
        words.split_whitespace().collect::<Vec<_>>().join(" ")
    };
    assert!(
        text("predict -t a100-nvswitch-8 --op gemm-ar -m 8192 -n 16384 -k 16384").contains(line)
    );
    assert!(!text(&format!("predict -t a6000-pairs-8 {operator}")).contains("in the table:"));
    let bare = json("predict -t a6000-pairs-8 --op all-gather --bytes 64MiB");
    assert_eq!(bare["chosen"], "double-ring");
    assert_eq!(bare["chosen_by"], "closed-forms");
}

#[test]
fn overheads_from_a_file_count() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("params.yaml");
    let text = "overheads:
  - { topology: a6000-pairs-8, operator: ag-gemm, tp: 8, strategy: fusion-ring, alpha: 100 us, beta: 1 us/MB, source: assumed }
";
    std::fs::write(&path, text).unwrap();
    let shape =
        "-t a6000-pairs-8 --op ag-gemm -m 4096 -n 16384 -k 4096 --strategy fusion-ring:chunks=2";
    let of = |options: &str| json(&format!("predict {shape} {options}"));
    let find = |all: &Value| {
        let results = all["results"].as_array().unwrap();
        number(
            &results
                .iter()
                .find(|r| r["strategy"] == "fusion-ring")
                .unwrap()["predicted_s"],
        )
    };
    let (without, with) = (
        find(&of("")),
        find(&of(&format!("--params {}", path.display()))),
    );
    // Seven steps of 100 us and of 1 us for each of 33.55 MB.
    let expected = 7.0 * (100e-6 + 1e-12 * 4096.0 * 4096.0 * 2.0);
    assert!((with - without - expected).abs() < 1e-9, "{without} {with}");
    let off = of(&format!(
        "--params {} --terms gemm-curve,stages,contention,launch",
        path.display()
    ));
    assert_eq!(find(&off), without);
}
