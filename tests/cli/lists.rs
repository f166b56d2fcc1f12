//! `strategies`, `gpus`, `topology …` and `completions`.

use super::{PAIR, duet, json, stdout};

#[test]
fn strategies_are_listed_with_what_they_do() {
    let all = json("strategies");
    let names: Vec<&str> = all
        .as_array()
        .unwrap()
        .iter()
        .map(|row| row["strategy"].as_str().unwrap())
        .collect();
    assert!(
        names.contains(&"sequential") && names.contains(&"ring"),
        "{names:?}"
    );
    let text = stdout("strategies");
    for name in names {
        assert!(text.contains(name), "{name} is not in the table");
    }
    let bare = stdout("strategies --op all-gather --format csv");
    assert!(
        !bare.contains("sequential") && bare.contains("ring"),
        "{bare}"
    );
}

#[test]
fn gpus_are_listed() {
    let all = json("gpus");
    assert!(
        all.as_array()
            .unwrap()
            .iter()
            .any(|gpu| gpu["gpu"] == "h200")
    );
    let ideal = json("gpus ideal");
    assert!(ideal[0]["hbm_bytes_per_s"].is_null());
    assert!(stdout("gpus ideal").contains("unlimited"));
    assert!(stdout("gpus h200").contains("989 TFLOP/s"));
}

#[test]
fn topologies_are_listed() {
    let all = json("topology list");
    let find = |name: &str| {
        let rows = all.as_array().unwrap();
        rows.iter().find(|row| row["topology"] == name).cloned()
    };
    assert_eq!(find("h200-nvswitch-8").unwrap()["gpus"], 8);
    assert_eq!(find("a6000-pairs-8").unwrap()["default_tp"], 8);
    assert!(stdout("topology list").contains("h200-nvswitch-8"));
}

#[test]
fn a_good_file_is_checked() {
    assert_eq!(
        stdout(&format!("topology check {PAIR}")),
        format!("{PAIR}: ok, pair with 2 GPUs and 2 link directions\n")
    );
}

#[test]
fn bounds_are_listed() {
    let all = json(&format!(
        "topology bound {PAIR} --op all-gather --bytes 8MiB"
    ));
    // Half of 8 MiB over 50 GB/s, after 1 us.
    let expected = (4 << 20) as f64 / 50e9 + 1e-6;
    let found = all[0]["seconds"].as_f64().unwrap();
    assert!((found - expected).abs() < 1e-12, "{all}");
    // 7 of 8 ranks' shares of 64 MiB.
    assert!(stdout("topology bound --op all-gather").contains("56 MiB at"));
    let text = stdout("topology bound");
    for collective in [
        "all-gather",
        "reduce-scatter",
        "all-reduce",
        "all-to-all",
        "point-to-point",
    ] {
        assert!(text.contains(collective), "{text}");
    }
}

#[test]
fn rings_are_found() {
    let rings = json("topology rings a6000-pairs-8");
    assert_eq!(rings["gpus"].as_array().unwrap().len(), 8);
    let single = rings["single"]["bandwidth_bytes_per_s"].as_f64().unwrap();
    let pair = rings["pair"]["combined_bytes_per_s"].as_f64().unwrap();
    assert!(pair > single);
    let text = stdout("topology rings a6000-pairs-8 --gpus 0,1");
    assert!(text.contains("gpu0 → gpu1"), "{text}");
    let none = json("topology rings h200-nvswitch-8");
    assert!(none["pair"].is_null() && !none["no_pair_reason"].is_null());
}

#[test]
fn a_machine_is_shown() {
    let text = stdout("topology show a6000-pairs-8");
    assert!(
        text.contains("├─ pcie 26.3 GB/s ──── gpu0  gpu1  gpu2  gpu3"),
        "{text}"
    );
    assert!(text.contains("gpu0     –  52.0  26.3"), "{text}");
    let all = json("topology show a6000-pairs-8");
    assert_eq!(all["schema"], "duet-topology-1");
    assert_eq!(all["nodes"].as_array().unwrap().len(), 12);
    assert_eq!(all["links"].as_array().unwrap().len(), 2 * 15);
    assert_eq!(all["bandwidth_bytes_per_s"][0][1], 52e9);
    let staged = stdout("topology show rtx4090-pcie-8 --gpus 0,1 --format csv");
    assert_eq!(staged.lines().count(), 3);
    assert!(staged.lines().nth(1).unwrap().ends_with(",1,1"), "{staged}");
    assert!(stdout("topology show --format dot").starts_with("digraph"));
    assert!(stdout("topology show --format svg").ends_with("</svg>\n"));
}

#[test]
fn completions_for_every_shell() {
    for shell in ["bash", "zsh", "fish", "powershell", "elvish"] {
        assert!(
            stdout(&format!("completions {shell}")).contains("sensitivity"),
            "{shell}"
        );
    }
}

#[test]
fn help_and_version() {
    assert!(stdout("--help").contains("compare"));
    for command in [
        "compare",
        "simulate",
        "sensitivity",
        "topology",
        "strategies",
        "gpus",
    ] {
        assert!(
            stdout(&format!("{command} --help")).contains("Usage: duet"),
            "{command}"
        );
    }
    // Options that only `compare` repeats.
    assert!(stdout("compare --help").contains("repeat it"));
    for command in ["simulate", "sensitivity"] {
        assert!(!stdout(&format!("{command} --help")).contains("repeat it"));
    }
    let version = format!("duet {}\n", env!("CARGO_PKG_VERSION"));
    duet("--version").assert().success().stdout(version);
}

/// GPUs linked in a line: the ends have no way, the machine is shown all the same.
#[test]
fn pairs_without_a_way_are_shown_as_such() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("line.yaml");
    let text = "name: line\ngpu: ideal\nnodes: { gpus: 3 }\nlinks:\n  - { between: [[gpu0, gpu1], [gpu1, gpu2]], bandwidth: 10 GB/s, latency: 1 us }\n";
    std::fs::write(&path, text).unwrap();
    let show = format!("topology show {}", path.display());
    let shown = stdout(&show);
    assert!(shown.contains("none: no way but through other GPUs"));
    // No colon without a description behind it.
    assert_eq!(shown.lines().next(), Some("line"));
    let rates = &json(&show)["bandwidth_bytes_per_s"];
    assert_eq!(rates[0], serde_json::json!([0.0, 10e9, null]));
    let csv = stdout(&format!("{show} --format csv"));
    assert!(csv.contains("\n0,2,,,0,0\n"), "{csv}");
}
