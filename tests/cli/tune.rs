//! `tune` as far as no GPU is needed: the simulator's order, and what is refused.

use super::{failure, json, stdout};

const SHAPE: &str = "ag-gemm/8192x16384x8192/bf16/2on2/p2p/stream";

#[test]
fn a_dry_run_lists_the_best_of_all_settings() {
    let value = json(&format!(
        "tune --dry-run -t h200-pair --shape {SHAPE} --best 5"
    ));
    assert_eq!(value["schema"], "duet-tune-list-1");
    assert_eq!(value["dry_run"], true);
    let group = &value["groups"][0];
    assert_eq!(group["group"], SHAPE);
    assert_eq!(group["machine"], "h200-pair");
    assert!(group["searched"].as_u64().unwrap() > 300);
    let tried = group["tried"].as_array().unwrap();
    assert_eq!(tried.len(), 5);
    let times: Vec<f64> = tried
        .iter()
        .map(|t| t["predicted_s"].as_f64().unwrap())
        .collect();
    assert!(times.is_sorted());
    assert!(group["regret"].is_null() && tried[0]["measured_s"].is_null());
    let text = stdout(&format!(
        "tune --dry-run -t h200-pair --shape {SHAPE} --best 5"
    ));
    assert!(
        text.starts_with(&format!("{SHAPE} on h200-pair, ")),
        "{text}"
    );
    let csv = stdout(&format!(
        "tune --dry-run -t h200-pair --shape {SHAPE} --best 5 --format csv"
    ));
    assert_eq!(csv.lines().count(), 6);
}

#[test]
fn an_experiment_is_tuned_shape_by_shape() {
    let value = json("tune experiments/h200-pair/pilot.yaml --only ag-gemm/ --best 1 --dry-run");
    let groups = value["groups"].as_array().unwrap();
    assert!(!groups.is_empty());
    for group in groups {
        assert!(group["group"].as_str().unwrap().starts_with("ag-gemm/"));
        assert_eq!(group["tried"].as_array().unwrap().len(), 1);
    }
}

#[test]
fn tiles_of_older_gpus_are_other_tiles() {
    let setting = |cores: &str| {
        let text = stdout(&format!(
            "tune --dry-run -t h200-pair --shape {SHAPE} --best 40 --cores {cores} --format csv"
        ));
        (text.contains("sm90-"), text.contains("sm80-"))
    };
    assert_eq!(setting("sm90"), (true, false));
    assert_eq!(setting("sm80"), (false, true));
}

#[test]
fn what_cannot_be_tuned_is_refused_in_words() {
    let (code, message) = failure("tune --dry-run");
    assert_eq!(code, 2);
    assert!(message.contains("<EXPERIMENT>"), "{message}");
    let (code, message) = failure("tune --dry-run --shape ag-gemm/1x2");
    assert_eq!(code, 2);
    assert!(
        message.contains("is no group: write OPERATOR/MxNxK"),
        "{message}"
    );
    let shape = "ag-gemm/8192x8192x8192/bf16/4on4/p2p/stream";
    let found = failure(&format!("tune --dry-run -t h200-pair --shape {shape}"));
    let wanted = "error: `ag-gemm/8192x8192x8192/bf16/4on4/p2p/stream` needs more GPUs than the 2 of `h200-pair`\n  help: choose another machine with `--topology`, or place ranks on fewer GPUs, e.g. `4on2`\n";
    assert_eq!(found, (3, wanted.to_owned()));
    // A path is read by the rules of every path.
    for path in [
        "hybrid:-1:2MiB",
        "hybrid:nan:2MiB",
        "hybrid:1.5:2MiB",
        "host:0B",
    ] {
        let shape = format!("ag-gemm/512x2048x1024/bf16/2on2/{path}/stream");
        let found = failure(&format!("tune --dry-run -t h200-pair --shape {shape}"));
        let wanted = format!(
            "error: invalid value '{shape}' for '--shape <SHAPE>': `{path}` is no path: write p2p, host:CHUNK or hybrid:SHARE:CHUNK, e.g. host:2MiB or hybrid:0.1:2MiB, with a chunk above 0 and a share from 0 to 1\n\nFor more information, try '--help'.\n"
        );
        assert_eq!(found, (2, wanted));
    }
    let found = failure(&format!(
        "tune --dry-run --shape {SHAPE} --only zzz --only yyy"
    ));
    let wanted = format!(
        "error: no group's name contains `zzz` or `yyy`\n  help: names are like `{SHAPE}`\n"
    );
    assert_eq!(found, (3, wanted));
    // Simulated for hours, were it not refused.
    let shape = "ag-gemm/1048576x65536x65536/bf16/2on2/host:64KiB/stream";
    let found = failure(&format!("tune --dry-run -t h200-pair --shape {shape}"));
    let wanted = format!(
        "error: `{shape}` has 1048576 pieces that go through the host, and hundreds of settings are simulated\n  help: choose larger pieces for at most 65536 of them, such as `host:2MiB`, or a smaller shape\n"
    );
    assert_eq!(found, (3, wanted));
    // No setting has a time there.
    let shape = "gemm-ar/512x1000x16/bf16/2on2/p2p/graph";
    let found = failure(&format!("tune --dry-run -t v100-dgx1-8 --shape {shape}"));
    let wanted = format!(
        "error: no setting of `{shape}` can be simulated on `v100-dgx1-8`\n  14 × `v100-sxm2` has no bf16 peak: choose another --dtype or add it to the GPU profile\n  2 × two GPUs make one ring only: a second would take the same links\n  help: choose another element type, path or number of ranks, or another machine with `--topology`\n"
    );
    assert_eq!(found, (3, wanted));
}
