//! `gpu: { of: MACHINE }`: the GPUs of another machine.

use std::fs;

use duet::topology::{self, Topology};

/// Loads `gpu: GPU` in a machine of two GPUs that lies in `folder`.
fn load(folder: &std::path::Path, gpu: &str) -> Result<Topology, String> {
    let file = folder.join("box.yaml");
    let text = format!(
        "name: box\ngpu: {gpu}\nnodes: {{ gpus: 2 }}\nlinks:\n  - {{ between: [gpu0, gpu1], bandwidth: 50 GB/s, latency: 1 us }}\n"
    );
    fs::write(&file, text).unwrap();
    topology::load(file.to_str().unwrap(), &[]).map_err(|error| error.to_string())
}

#[test]
fn the_profile_of_a_shipped_machine_or_a_file_is_taken() {
    let folder = tempfile::tempdir().unwrap();
    let pair = topology::load("h200-pair-calibrated", &[]).unwrap();
    let ours = load(folder.path(), "{ of: h200-pair-calibrated }").unwrap();
    assert_eq!(ours.device(1), pair.device(0));
    // Relative to the file that says so.
    fs::create_dir(folder.path().join("calibrated")).unwrap();
    let text = topology::text("h200-pair-calibrated").unwrap();
    fs::write(folder.path().join("calibrated/pair.yaml"), &*text).unwrap();
    let ours = load(folder.path(), "{ of: ./calibrated/pair.yaml }").unwrap();
    assert_eq!(ours.device(0), pair.device(0));
    // A name in the other file is a shipped profile.
    let ours = load(folder.path(), "{ of: h200-nvswitch-8 }").unwrap();
    assert_eq!(ours.device(0).name, "h200");
    let each = load(
        folder.path(),
        "{ per_gpu: { gpu0: ideal, others: { of: h200-pair-calibrated } } }",
    );
    assert_eq!(each.unwrap().device(1), pair.device(0));
}

#[test]
fn what_has_no_profile_of_its_own_is_refused_in_words() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| fs::write(folder.path().join(name), text).unwrap();
    write("none.yaml", "name: none\n");
    fs::write(folder.path().join("bytes.yaml"), b"name: \xff\n").unwrap();
    write("broken.yaml", "name: [\n");
    write(
        "wrong.yaml",
        "name: wrong\ngpu: { name: x, compute: { sms: none } }\n",
    );
    write("circle.yaml", "name: circle\ngpu: { of: ./circle.yaml }\n");
    let error = |gpu: &str| load(folder.path(), gpu).unwrap_err();
    for (gpu, message) in [
        ("{ of: h200-pear }", "did you mean `h200-pair`?"),
        ("{ of: h200 }", "`h200` is a profile, not a machine"),
        ("{ of: ./absent.yaml }", "absent.yaml"),
        ("{ of: ./bytes.yaml }", "`./bytes.yaml` has mistakes"),
        (
            "{ of: ./none.yaml }",
            "`./none.yaml` says nothing of its GPUs",
        ),
        ("{ of: ./broken.yaml }", "`./broken.yaml` has mistakes"),
        (
            "{ of: ./wrong.yaml }",
            "the GPU profile of `./wrong.yaml` has mistakes",
        ),
        (
            "{ of: ./circle.yaml }",
            "`./circle.yaml` itself has `gpu: { of: … }`",
        ),
        ("{ of: h200-pair, sms: 3 }", "`sms` is not a key of `gpu`"),
        ("{ of: [1] }", "expected"),
    ] {
        let error = error(gpu);
        assert!(error.contains(message), "{gpu}: {error}");
        assert!(error.contains("box.yaml:2:"), "{gpu}: {error}");
    }
}
