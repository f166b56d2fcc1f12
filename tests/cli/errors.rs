//! What goes wrong, in words and exit codes: 2 for arguments, 3 for files, machines and shapes.

use super::{PAIR, failure};

fn refused(code: i32, args: &str, words: &[&str]) {
    let (found, text) = failure(args);
    assert_eq!(found, code, "{args}: {text}");
    assert!(text.starts_with("error"), "{args}: {text}");
    for word in words {
        assert!(text.contains(word), "{args}: no `{word}` in\n{text}");
    }
    assert!(!text.contains("panicked"), "{text}");
}

#[test]
fn wrong_arguments_exit_with_2() {
    refused(2, "compare --op ag+gemm", &["possible values: ag-gemm"]);
    refused(2, "compare -m many", &["invalid"]);
    refused(2, "compare --layer fc1", &["--model"]);
    refused(
        2,
        "compare --model gpt3-175b --seq 10 -m 3",
        &["cannot be used with"],
    );
    refused(
        2,
        "compare --bytes 5MiB",
        &["`--bytes` is the size of a bare collective"],
    );
    refused(
        2,
        "compare --op all-gather",
        &["all-gather needs a size", "--bytes 64MiB"],
    );
    refused(
        2,
        "compare --op all-gather --bytes 5",
        &["has no unit: write e.g. `5 MiB`"],
    );
    refused(
        2,
        "compare --op all-gather --bytes 8MiB -k 4",
        &["has no GEMM, so `-k` means nothing"],
    );
    refused(
        2,
        "compare --strategy interdecomp",
        &["unknown strategy `interdecomp`", "duet strategies"],
    );
    refused(2, "compare --verify --no-verify", &["cannot be used with"]);
    refused(2, "compare --threads 0", &["0 is not in 1.."]);
    refused(
        2,
        "simulate -t h200-nvswitch-8 -t a6000-pairs-8",
        &["cannot be used multiple times"],
    );
    refused(2, "sensitivity --step 0", &["write a share from 1e-6 to 1"]);
    refused(2, "topology rings --gpus 1,1", &["GPU 1 is listed twice"]);
    refused(2, "topology rings --gpus 0", &["at least two GPUs"]);
    refused(2, "topology bound --gpus 0", &["at least two GPUs"]);
    refused(2, "topology check", &["<FILE>"]);
    refused(
        2,
        "simulate --schedule x.json --strategy ring",
        &["cannot be used with"],
    );
    refused(
        2,
        "simulate --trace no-such-file --out no-such-file",
        &["`--out` and `--trace` both name `no-such-file`"],
    );
    // Nor is a file overwritten that is read.
    for args in [
        "fit examples/times.csv -o examples/times.csv",
        "simulate --schedule examples/two-gpu.json --trace ./examples/two-gpu.json",
        "calibrate --only gemm --gemms examples/times.csv -o examples/times.csv",
        "tune experiments/h200-pair/pilot.yaml --dry-run -o experiments/h200-pair/pilot.yaml",
        "run experiments/h200-pair/pilot.yaml --report experiments/h200-pair/pilot.yaml",
        "validate experiments/h200-pair/pilot.yaml --predict -o experiments/h200-pair/pilot.yaml",
        "topology show topologies/h200-pair.yaml --out topologies/../topologies/h200-pair.yaml",
        "compare -t topologies/h200-pair.yaml -o topologies/h200-pair.yaml",
    ] {
        refused(
            2,
            args,
            &[
                "would overwrite",
                "which is read",
                "help: name another file",
            ],
        );
    }
    refused(
        2,
        "calibrate -o no-such-file.csv",
        &["`--out` and `--raw` both name `no-such-file.csv`"],
    );
    refused(2, "completions tcsh", &["possible values: bash"]);
}

#[test]
fn no_command_shows_the_help() {
    let (code, text) = failure("");
    assert_eq!(code, 2);
    assert!(
        text.contains("Usage: duet") && text.contains("sensitivity"),
        "{text}"
    );
}

#[test]
fn wrong_input_exits_with_3() {
    refused(
        3,
        "compare -m 100",
        &["m = 100 cannot be divided among 8 ranks", "such as 96"],
    );
    refused(3, "compare --tp 9", &["9 ranks on 8 GPUs", "--tp 8"]);
    refused(
        3,
        "compare -t h200-nvswich-8",
        &["did you mean `h200-nvswitch-8`?"],
    );
    refused(
        3,
        "compare -t ./no-such.yaml",
        &["cannot read", "no-such.yaml"],
    );
    refused(
        3,
        &format!("compare -t {PAIR} --dtype fp8 -m 64"),
        &[
            "GPU `small` of pair has no fp8 arithmetic",
            "it has: bf16\n",
        ],
    );
    refused(
        3,
        "compare -t v100-dgx1-8 --dtype bf16",
        &["has no bf16 arithmetic", "it has: fp16, fp32\n"],
    );
    refused(
        3,
        &format!("compare -t {PAIR} --set links.nvlik.bandwidth=2x"),
        &["did you mean `nvlink`?"],
    );
    refused(
        3,
        &format!("compare -t {PAIR} --set gpu.hbm=4"),
        &["has no unit"],
    );
    refused(
        3,
        &format!("simulate -t {PAIR} --strategy ring"),
        &["`ring` cannot be performed", "ag-gemm"],
    );
    refused(3, "topology rings --gpus 0,8", &["there is no GPU 8"]);
    refused(3, "gpus h201", &["h201"]);
    refused(
        3,
        "compare -o no/such/folder/out.txt",
        &[
            "cannot write",
            "(os error 2)\n",
            "help: name a file in a folder",
        ],
    );
}

#[test]
fn a_broken_file_is_explained_with_its_place() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("broken.yaml");
    std::fs::write(&path, "name: x\ngpu: ideal\nnodes: { gpus: 2 }\nlinks:\n  - { between: [gpu0, gpu1], kind: nvlink, bandwidth: 50, latency: 1 us }\n").unwrap();
    for command in ["topology check", "compare -t", "topology rings"] {
        let (code, text) = failure(&format!("{command} {}", path.display()));
        assert_eq!(code, 3, "{text}");
        assert!(text.contains("broken.yaml:5:"), "{text}");
        assert!(text.contains('^') && text.contains("50 GB/s"), "{text}");
    }
}

#[test]
fn checking_goes_on_after_a_broken_file() {
    let assert = super::duet(&format!("topology check ./none.yaml {PAIR}"))
        .assert()
        .code(3);
    let output = assert.get_output();
    assert!(String::from_utf8_lossy(&output.stdout).contains("pair.yaml: ok"));
    assert!(String::from_utf8_lossy(&output.stderr).contains("none.yaml"));
}

#[test]
fn rows_are_brought_over_direct_paths_only() {
    let shape = "--op ag-gemm -m 2048 -n 8192 -k 16384 --strategy fusion-alltoall:mover=loader";
    for way in [
        "-t rtx4090-pcie-8 --tp 8",
        "-t h200-pair --tp 2 --path host:2MiB",
        "-t h200-pair --tp 2 --path hybrid:0.1:2MiB",
    ] {
        refused(
            3,
            &format!("simulate {way} {shape}"),
            &["from inside a kernel, but there is no direct path: copy the slice first"],
        );
    }
}

#[test]
fn lists_of_gemms_are_read_before_any_gpu() {
    let file = std::env::temp_dir().join(format!("duet-gemms-{}.csv", std::process::id()));
    let name = file.display();
    for (text, place, what) in [
        ("128,256,512\n128,256\n", "2:1", "`128,256` is no GEMM"),
        ("128,0,512\n", "1:1", "`128,0,512` is no GEMM"),
        ("\nm,n,k\n", "2:1", "`m,n,k` is no GEMM"),
        ("128,256,512,0\n", "1:1", "`128,256,512,0` is no GEMM"),
    ] {
        std::fs::write(&file, text).unwrap();
        refused(
            3,
            &format!("calibrate --only gemm --gemms {name} --out /dev/null"),
            &[
                &format!("error: {name}:{place}: {what}"),
                "help: write its rows, columns and k, `4096,8192,1024`, each 1 to 1048576",
            ],
        );
    }
    std::fs::write(&file, "\n").unwrap();
    refused(
        3,
        &format!("calibrate --only gemm --gemms {name} --out /dev/null"),
        &[
            &format!("error: `{name}` lists no GEMM"),
            "help: `duet calibrate --doubts",
        ],
    );
    refused(
        2,
        &format!("calibrate --only copies --gemms {name} --out /dev/null"),
        &["error: no section of `--only` times the GEMMs of `--gemms`"],
    );
    std::fs::remove_file(file).unwrap();
}

#[test]
fn what_is_in_doubt_is_known_of_calibrations_only() {
    refused(
        3,
        "calibrate --doubts h200-pair",
        &[
            "error: `h200-pair` does not say which algorithms its GEMM library takes",
            "help: give what `duet calibrate` wrote",
        ],
    );
    refused(2, "calibrate --doubts h200-pair --count 0", &["--count"]);
}

#[test]
fn what_is_wrong_comes_with_a_remedy_of_its_own() {
    let indivisible = "error: m = 513 cannot be divided among 2 ranks\n  help: use a multiple of 2, such as 512\n";
    let missing = "error: cannot read the topology `./none.yaml`: No such file or directory (os error 2)\n  help: name a file that can be read, or a built-in topology; `duet topology list` shows them\n";
    for (args, wanted) in [
        ("-t h200-pair -m 513 -n 512 -k 512", indivisible),
        ("-t ./none.yaml -m 512 -n 512 -k 512", missing),
    ] {
        let found = failure(&format!("simulate --op ag-gemm {args}"));
        assert_eq!(found, (3, wanted.to_owned()));
    }
    let uneven = "error: 8 bytes are not a whole number of bf16 elements for each of 8 parts\n  help: use a multiple of 16 bytes, such as 16\n";
    let found = failure("simulate --op all-reduce --bytes 8B");
    assert_eq!(found, (3, uneven.to_owned()));
    let none = "error: `tree` cannot be performed: `tree` does not perform ag-gemm\n  help: choose another; `duet strategies` says what each is for and its parameters\n";
    let found = failure("simulate --op ag-gemm --strategy tree");
    assert_eq!(found, (3, none.to_owned()));
    let unread = "error: cannot read `no/such.csv`: No such file or directory (os error 2)\n  help: name a table that Duet wrote\n";
    let found = failure(
        "validate experiments/h200-pair/own.yaml --measured no/such.csv --section errors -t h200-pair",
    );
    assert_eq!(found, (3, unread.to_owned()));
}

#[test]
fn a_calibration_reads_its_options_before_any_gpu() {
    let folder = "no/such/folder";
    let missing = format!(
        "error: cannot write `{folder}/box.yaml`: there is no folder `{folder}`\n  help: create it, or name a file in a folder that exists\n"
    );
    let found = failure(&format!("calibrate --out {folder}/box.yaml"));
    assert_eq!(found, (3, missing));
    let found = failure("calibrate --out box.yaml --base h201");
    assert_eq!(found.0, 3);
    assert!(
        found
            .1
            .starts_with("error: `h201` is not a GPU profile: did you mean `h20`?"),
        "{}",
        found.1
    );
    refused(
        3,
        "calibrate --out box.yaml --shapes ./none.yaml",
        &["none.yaml"],
    );
}
