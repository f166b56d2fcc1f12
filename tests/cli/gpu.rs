//! `gpu` where there is no GPU: sentences and exit code 4. The machine's own driver, if any, is
//! kept out of sight.

use std::fs;

use assert_cmd::Command;

use super::duet;

/// `duet` with these arguments, and with no place where libraries are looked for.
fn homeless(args: &str) -> Command {
    let mut command = duet(args);
    for name in [
        "CUDA_HOME",
        "CUDA_PATH",
        "CONDA_PREFIX",
        "VIRTUAL_ENV",
        "HOME",
    ] {
        command.env_remove(name);
    }
    command
}

/// Runs `duet gpu …` with `folder` as the only place named, and returns code and message.
fn gpu(args: &str, variables: &[(&str, &str)]) -> (i32, String) {
    let mut command = homeless(&format!("gpu {args}"));
    let output = command
        .envs(variables.iter().copied())
        .output()
        .expect("runs");
    assert!(output.stdout.is_empty());
    let text = String::from_utf8(output.stderr).expect("UTF-8");
    (output.status.code().expect("an exit code"), text)
}

/// Whether this machine has a driver after all; then nothing can be said to be missing.
pub fn has_driver() -> bool {
    let known = [
        "/usr/lib/x86_64-linux-gnu",
        "/usr/lib64",
        "/usr/lib/wsl/lib",
    ];
    fs::exists("/dev/nvidiactl").unwrap_or(false)
        || known
            .iter()
            .any(|folder| fs::exists(format!("{folder}/libcuda.so.1")).unwrap_or(false))
}

#[test]
fn a_machine_without_a_driver_is_told_where_it_was_looked_for() {
    if has_driver() {
        return;
    }
    for command in ["info", "info --format json", "check"] {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().to_str().unwrap();
        let (code, text) = gpu(command, &[("DUET_CUDA_DIR", path)]);
        assert_eq!(code, 4, "{text}");
        assert!(text.starts_with("error: no NVIDIA driver"), "{text}");
        assert!(text.contains(&format!("DUET_CUDA_DIR ({path})")), "{text}");
        assert!(text.contains("help: install the driver"), "{text}");
    }
}

#[test]
fn a_file_that_is_no_library_is_named() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("libcuda.so.1"), "not a library").unwrap();
    let path = folder.path().to_str().unwrap();
    if has_driver() {
        return;
    }
    let (code, text) = gpu("info", &[("DUET_CUDA_DIR", path)]);
    assert_eq!(code, 4, "{text}");
    assert!(text.contains("the driver does not start"), "{text}");
    assert!(text.contains("libcuda.so.1"), "{text}");
}

#[test]
fn an_environment_without_libraries_is_no_crash() {
    if has_driver() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().to_str().unwrap();
    let (code, text) = gpu("info", &[("DUET_GPU_LIBRARIES", path)]);
    assert_eq!(code, 4, "{text}");
    assert!(text.contains("no NVIDIA driver"), "{text}");
}

#[test]
fn calibrations_need_a_gpu_and_a_file() {
    let say = |args: &str| {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().to_str().unwrap();
        let mut command = homeless(&args.replace("OUT", &format!("{path}/box.yaml")));
        let output = command.env("DUET_CUDA_DIR", path).output().expect("runs");
        // Nothing is written before there is anything to write.
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
        let text = String::from_utf8(output.stderr).expect("UTF-8");
        (output.status.code().expect("an exit code"), text)
    };
    let (code, text) = say("calibrate");
    assert_eq!(code, 2, "{text}");
    assert!(
        text.contains("help: name it, e.g. `duet calibrate --out"),
        "{text}"
    );
    let (code, text) = say("calibrate --out OUT --only copys");
    assert_eq!(code, 2, "{text}");
    assert!(
        text.contains("`copys` is no section; use graphs, copies"),
        "{text}"
    );
    if has_driver() {
        return;
    }
    let (code, text) = say("calibrate --out OUT --quick");
    assert_eq!(code, 4, "{text}");
    assert!(text.starts_with("error: no NVIDIA driver"), "{text}");
}

#[test]
fn calibrations_are_compared_number_by_number() {
    let text = super::stdout("calibrate --compare h200-pair h200-pair");
    let row = text
        .lines()
        .find(|line| line.starts_with("link gpu0->gpu1 bandwidth"))
        .expect("a row for the link");
    let words: Vec<&str> = row.split_whitespace().skip(3).collect();
    assert_eq!(words, ["3.96000e11", "3.96000e11", "+0.0", "%"]);
    assert!(text.contains("median difference 0.00 %"), "{text}");
    let json = super::stdout("calibrate --compare h200-pair h100-nvswitch-8 --format json");
    assert!(json.contains("\"name\": \"costs.submit_kernel\""), "{json}");
    duet("calibrate --compare h200-pair nowhere")
        .assert()
        .code(3);
}
