//! Any bytes as a topology file, with the first line as an override: an answer, never a panic.

#![no_main]

use duet::device::{Device, ideal};
use duet::input::{Diagnostics, decode, yaml};
use duet::topology::parse;
use libfuzzer_sys::fuzz_target;

/// `ideal`, or whatever is written inline.
fn resolve(node: &yaml::Node, found: &mut Diagnostics) -> Option<Device> {
    match node.text() {
        Some(_) => Some(ideal()),
        None => duet::device::read(node, found),
    }
}

fuzz_target!(|bytes: &[u8]| {
    let Ok(text) = decode("f.yaml", bytes) else {
        return;
    };
    let set = text.lines().next().and_then(|line| line.strip_prefix("#set "));
    let sets: Vec<String> = set.map(str::to_owned).into_iter().collect();
    match parse(text, "f.yaml", &sets, &resolve) {
        Ok(topology) => assert!(!topology.gpus.is_empty()),
        Err(error) => assert!(!error.to_string().is_empty()),
    }
});
