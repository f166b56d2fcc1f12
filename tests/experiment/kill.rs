//! A run killed twenty times gives the bytes of one that was not.

use std::fs;
use std::process::{Command, Stdio};
use std::time::Duration;

/// Enough work that a kill comes in time: 32 cases, 448 schedules.
const GRID: &str = "
name: killed
grids:
  - name: operators
    topologies: [a6000-pairs-4, a6000-pairs-8]
    axes: { seq: [1024, 2048, 4096, 8192], hidden: [2048, 4096] }
    operators:
      - { op: ag-gemm, m: seq, n: 4*hidden, k: hidden }
      - { op: gemm-rs, m: seq, n: hidden, k: 4*hidden }
";

#[test]
fn a_run_killed_twenty_times_is_completed_to_the_same_bytes() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("killed.yaml");
    fs::write(&file, GRID).unwrap();
    let duet = |out: &str| {
        let mut command = Command::new(assert_cmd::cargo::cargo_bin("duet"));
        command
            .arg("run")
            .arg(&file)
            .arg("--out")
            .arg(folder.path().join(out));
        command.stdout(Stdio::null()).stderr(Stdio::null());
        command
    };
    assert!(duet("whole").status().unwrap().success());
    let expected = fs::read(folder.path().join("whole/results.csv")).unwrap();
    let out = folder.path().join("killed");
    let (partial, table) = (out.join("results.csv.partial"), out.join("results.csv"));
    // Killed when the file has grown to these sizes; the first ones as soon as it is started.
    let mut random = fastrand::Rng::with_seed(7);
    let mut sizes: Vec<u64> = (0..20)
        .map(|nth| match nth {
            0..3 => 0,
            _ => random.u64(0..expected.len() as u64),
        })
        .collect();
    sizes.sort_unstable();
    let mut killed = 0;
    for size in sizes {
        let mut run = duet("killed").spawn().unwrap();
        while run.try_wait().unwrap().is_none() {
            if size == 0 || fs::metadata(&partial).is_ok_and(|file| file.len() >= size) {
                run.kill().unwrap();
                killed += usize::from(!run.wait().unwrap().success());
                break;
            }
            std::thread::sleep(Duration::from_micros(100));
        }
        assert!(!table.exists() || fs::read(&table).unwrap() == expected);
    }
    // On a busy machine a run may end before it is seen to have grown.
    assert!(killed >= 3, "only {killed} runs were killed");
    assert!(duet("killed").status().unwrap().success());
    assert!(fs::read(&table).unwrap() == expected, "other bytes");
    assert!(!partial.exists());
}
