//! `gpu run`, `gpu test` and `gpu serve` as far as no GPU is needed: arguments, and what is said
//! where there is none.

use super::failure;

const SMALL: &str = "--op ag-gemm -m 64 -n 64 -k 32 --ranks 2";

#[test]
fn wrong_arguments_are_refused_before_any_gpu_is_asked_for() {
    let cases = [
        (
            format!("gpu run {SMALL} --strategy sequental"),
            2,
            "unknown strategy `sequental`: did you mean `sequential`?",
        ),
        (
            "gpu run --op ag-gemm -m 63 -n 64 -k 32 --ranks 2 --strategy sequential".to_owned(),
            3,
            "m = 63 cannot be divided among 2 ranks",
        ),
        (
            format!("gpu run {SMALL} --dtype fp8 --strategy sequential"),
            3,
            "fp8 cannot be performed on real GPUs",
        ),
        (
            format!("gpu run {SMALL} --dtype fp32 --strategy sequential"),
            3,
            "choose `--dtype bf16` or `--dtype fp16`",
        ),
        (
            format!("gpu run {SMALL} --strategy sequential --inject boom"),
            2,
            "`boom` is no fault; use drop-flag:N, delay:RANK:SECONDS or memory:SIZE",
        ),
        (
            format!("gpu run {SMALL} --strategy sequential --limit 0"),
            2,
            "`0` is no time; give seconds above 0",
        ),
        (
            format!("gpu run {SMALL} --strategy sequential --placement 0,x"),
            2,
            "`0,x` is no list of numbers",
        ),
        (format!("gpu run {SMALL}"), 2, "--strategy"),
        (
            format!("gpu run {SMALL} --strategy sequential --predict"),
            2,
            "--topology",
        ),
        (
            "gpu run --schedule no-such-file.json".to_owned(),
            3,
            "cannot read `no-such-file.json`",
        ),
        (
            "gpu test --ranks 2,1".to_owned(),
            2,
            "1 rank cannot be tested",
        ),
        ("gpu test --cases 0".to_owned(), 2, "--cases"),
        ("gpu test --seconds 0".to_owned(), 2, "--seconds"),
    ];
    for (args, code, said) in cases {
        let (found, text) = failure(&args);
        assert_eq!(found, code, "{args}: {text}");
        assert!(text.contains(said), "{args}: {text}");
    }
}

#[test]
fn without_a_driver_there_is_a_sentence() {
    if super::gpu::has_driver() {
        return;
    }
    for args in [
        format!("gpu run {SMALL} --strategy sequential"),
        "gpu run --schedule examples/two-gpu.json".to_owned(),
        "gpu test --cases 1".to_owned(),
        "gpu serve".to_owned(),
        "validate experiments/h200-pair/pilot.yaml".to_owned(),
    ] {
        let (code, text) = failure(&args);
        assert_eq!(code, 4, "{args}: {text}");
        assert!(
            text.starts_with("error: no NVIDIA driver"),
            "{args}: {text}"
        );
        assert!(text.contains("help: "), "{args}: {text}");
    }
}
