//! `duet gpu plan`.

use serde_json::Value;

use super::{duet, json, stdout};

const SHAPE: &str = "gpu plan --op gemm-rs -m 96 -n 24 -k 64";

/// Steps of a kind.
fn count(plan: &Value, kind: &str) -> usize {
    let steps = plan["steps"].as_array().expect("steps");
    steps.iter().filter(|step| step["kind"] == kind).count()
}

#[test]
fn one_gpu_takes_all_ranks() {
    let plan = json(&format!(
        "{SHAPE} --tp 8 --gpus 1 --strategy ring-accumulate"
    ));
    assert_eq!(
        plan["placement"],
        serde_json::json!([0, 0, 0, 0, 0, 0, 0, 0])
    );
    assert_eq!(plan["verified"], true);
    // 8 shards in 2 chunks on 8 ranks, and the 7 hops of each of the 16 sums.
    assert_eq!(count(&plan, "gemm"), 8 * 8 * 2);
    assert_eq!(count(&plan, "copy-kernel"), 7 * 16);
    assert_eq!(count(&plan, "copy"), 0);
    // One for compute, one per rank's ring.
    assert_eq!(plan["streams"].as_array().expect("streams").len(), 1 + 8);
}

#[test]
fn options_change_what_is_enqueued() {
    let with = |options: &str| json(&format!("{SHAPE} --tp 2 {options}"));
    let called = with("");
    assert_eq!(count(&called, "collective"), 2);
    let copied = with("--library copies");
    assert_eq!(
        (
            count(&copied, "collective"),
            count(&copied, "copy"),
            count(&copied, "add")
        ),
        (0, 2, 2)
    );
    assert!(count(&copied, "await-flag") > 0);
    let graph = with("--library copies --launch graph");
    assert_eq!(count(&graph, "await-flag") + count(&graph, "write-flag"), 0);
    // 48 rows of 24 numbers of 2 bytes, 10 rows at a time.
    let host = with("--library copies --path host --chunk 500B");
    assert_eq!(
        (
            count(&host, "to-host"),
            count(&host, "from-host"),
            count(&host, "copy")
        ),
        (10, 10, 0)
    );
    assert_eq!(host["staging"][0]["slot_bytes"], 480);
}

#[test]
fn tables_list_steps_when_asked() {
    let short = stdout(&format!("{SHAPE} --tp 2"));
    let long = stdout(&format!("{SHAPE} --tp 2 --steps"));
    assert!(long.starts_with(&short) && long.contains("collective 0 ReduceScatter, member 1"));
    assert!(short.contains("2 collective, 2 gemm"), "{short}");
}

#[test]
fn kernels_that_wait_say_for_which_rows_and_how_far_along_k() {
    let command = "gpu plan --op ag-gemm -m 64 -n 48 -k 256 --tp 2 --gemm duet \
                   --strategy fusion-alltoall:slabs=2";
    let plan = json(command);
    assert_eq!(count(&plan, "gated-gemm"), 2);
    assert_eq!(count(&plan, "gemm"), 0);
    let steps = plan["steps"].as_array().expect("steps");
    let kernel = steps.iter().find(|step| step["kind"] == "gated-gemm");
    let groups = kernel.expect("a kernel")["groups"]
        .as_array()
        .expect("groups");
    let parts: Vec<[&Value; 4]> = groups
        .iter()
        .map(|g| ["first_row", "rows", "first_k", "k"].map(|name| &g[name]))
        .collect();
    let expected = [[0, 32, 0, 256], [32, 32, 0, 128], [32, 32, 128, 128]];
    assert_eq!(parts, expected);
    let text = stdout(&format!("{command} --steps"));
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(
        text.contains(
            "rows 0-32; rows 32-64 of k 0-128 after flag 0; rows 32-64 of k 128-256 after flag 1"
        ),
        "{text}"
    );
}

#[test]
fn plans_say_who_multiplies_by_which_tile() {
    let shape = "gpu plan -t h200-pair --op ag-gemm -m 512 -n 16384 -k 8192 --tp 2";
    let by = |more: &str| {
        let products = json(&format!("{shape} {more}"))["products"].clone();
        let all = products.as_array().expect("products").clone();
        let one = |p: &Value| (p["m"].clone(), p["by"].as_str().expect("a name").to_owned());
        all.iter().map(one).collect::<Vec<_>>()
    };
    let whole = |by: &str| vec![(512.into(), by.to_owned()); 2];
    assert_eq!(by(""), whole("cuBLASLt"));
    let own = "--gemm duet --strategy fusion-alltoall";
    // Two waves where half of the rows come late, one where they come in slabs.
    assert_eq!(by(own), whole("Duet, sm90-128x128x6-2x1"));
    let loader = format!("{own}:slabs=4,mover=loader");
    assert_eq!(by(&loader), whole("Duet, sm90-128x256x4-2x1"));
    let text = stdout(&format!("{shape} {loader} --steps"));
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(
        text.contains("2 512 8192 8192 Duet, sm90-128x256x4-2x1"),
        "{text}"
    );
    assert!(
        text.contains("(256 × 2048, ld 8192), then flag 0; brings GPU 0"),
        "{text}"
    );
}

#[test]
fn what_cannot_be_is_said() {
    for (args, message) in [
        ("--tp 2 --gpus 3", "2 ranks on 3 of 8 GPUs"),
        (
            "--tp 2 --path host --chunk 0B",
            "give the host path a chunk size",
        ),
        (
            "--tp 2 --path hybrid --host-share 2",
            "give a share from 0 to 1",
        ),
    ] {
        let assert = duet(&format!("{SHAPE} {args}")).assert().code(3);
        let error = String::from_utf8_lossy(&assert.get_output().stderr).into_owned();
        assert!(error.contains(message), "{args}: {error}");
    }
}

#[test]
fn epilogues_store_where_the_plan_says_or_are_refused() {
    let with = |options: &str| {
        format!(
            "gpu plan --op gemm-rs -m 1024 -n 64 -k 64 --tp 2 --strategy fusion-ring:mover=epilogue,chunks=1 {options}"
        )
    };
    let plan = json(&with("--gemm duet"));
    assert_eq!((count(&plan, "gated-gemm"), count(&plan, "copy")), (4, 0));
    let group = &plan["steps"][0]["groups"][0];
    assert_eq!(
        (&group["to"]["gpu"], &group["to"]["rows"]),
        (&1.into(), &512.into())
    );
    let table = stdout(&with("--gemm duet --steps"));
    assert!(
        table.contains("to GPU") && table.contains("then flag"),
        "{table}"
    );
    let (code, text) = super::failure(&with(""));
    assert_eq!(code, 3);
    assert_eq!(
        text,
        "error: `fusion-ring:chunks=1,mover=epilogue` cannot be performed: task 2 (rank 0, lane ring, transfer) cannot be performed by an epilogue: no kernel of Duet's own computes its rows; use --gemm duet, bf16 or fp16, and flags that are words\n"
    );
}
