//! Whatever the bytes: an answer, never a panic.

use duet::input::decode;
use duet::topology::parse;
use proptest::prelude::*;

use crate::resolve;

/// Files to mutate: a shipped one, one with every section, generators.
const GOOD: [&str; 3] = [
    include_str!("../../topologies/a6000-pairs-8.yaml"),
    "name: b\ngpu: { per_gpu: { gpu0: small, others: ideal } }\nnodes: { gpus: 3, hosts: 1, switches: [sw] }\nlinks:\n  - { between: [gpu0..2, sw], kind: pcie, bandwidth: 24 GB/s, latency: 1 us, duplex: half }\n  - { between: [sw, dram0], bandwidth: 30 GB/s, latency: 500 ns }\nshared: [{ links: [gpu0->sw], bandwidth: 1 GB/s }]\ncontention: { pcie: { efficiency: { 2: 0.5 }, source: paper } }\nprefer: [pcie, link]\np2p: false\nroutes: [{ from: gpu0, to: gpu1, both: true, paths: [{ share: 0.5, via: [sw] }, { share: 0.5, via: [sw, dram0, sw] }] }]\n",
    "name: g\ngpu: ideal\ngenerate:\n  - torus: { dims: [3, 2], bandwidth: 9 GB/s, latency: 1 us }\n  - fat_tree: { arity: 2, levels: 2, bandwidth: 9 GB/s, latency: 1 us }\n  - replicate: { count: 2, generate: [{ switch: { gpus: 2, bandwidth: 9 GB/s, latency: 0 ns } }], links: [{ between: [switch, router0], bandwidth: 9 GB/s, latency: 0 ns }] }\n  - dragonfly: { groups: 3, routers: 1, terminal: { bandwidth: 9 GB/s, latency: 0 ns }, local: { bandwidth: 9 GB/s, latency: 0 ns }, global: { bandwidth: 9 GB/s, latency: 0 ns } }\n",
];

/// What replaces a stretch of a good file.
const SPLICES: [&str; 30] = [
    "",
    " ",
    "\n",
    "\t",
    ":",
    ",",
    "[",
    "]",
    "{",
    "}",
    "-",
    "&a ",
    "*a",
    "\"",
    "'",
    "..",
    "->",
    "gpu0",
    "sw",
    "99999999999",
    "-1",
    "0",
    "nan",
    "1e999",
    "~",
    "é",
    "<<: ",
    "0..9",
    "1000000",
    "others",
];

/// Any answer will do, but a refusal says where and what.
fn answers(bytes: &[u8]) {
    let error = match decode("f.yaml", bytes) {
        Err(error) => error,
        Ok(text) => match parse(text, "f.yaml", &[], &resolve) {
            Ok(_) => return,
            Err(error) => error.to_string(),
        },
    };
    assert!(
        error.starts_with("error: ") && error.contains("--> f.yaml:"),
        "{error}"
    );
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn random_bytes(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        answers(&bytes);
    }

    #[test]
    fn random_words(words in proptest::collection::vec(0..SPLICES.len(), 0..60)) {
        let text: String = words.iter().map(|&word| SPLICES[word]).collect();
        answers(text.as_bytes());
    }

    #[test]
    fn mutated_files(
        file in 0..GOOD.len(),
        cuts in proptest::collection::vec((any::<prop::sample::Index>(), 0usize..8, 0..SPLICES.len()), 1..5),
    ) {
        let mut bytes = GOOD[file].as_bytes().to_vec();
        for (at, len, splice) in cuts {
            let at = at.index(bytes.len());
            let end = (at + len).min(bytes.len());
            bytes.splice(at..end, SPLICES[splice].bytes());
        }
        answers(&bytes);
    }

    #[test]
    fn random_overrides(path in "(links|shared|gpu|p2p)?[.]?[*a-z0-9<>.-]{0,14}", value in "=?[-0-9.ex×µa-zGB/s ]{0,8}") {
        let _ = parse(GOOD[1], "f.yaml", &[path + &value], &resolve);
    }
}

#[test]
fn the_files_to_mutate_are_good() {
    for text in GOOD {
        let result = parse(text, "f.yaml", &[], &resolve);
        assert!(
            result.is_ok() || text.contains("dragonfly"),
            "{}",
            result.unwrap_err()
        );
    }
}
