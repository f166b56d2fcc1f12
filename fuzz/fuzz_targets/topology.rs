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

/// Whether a number stands there that makes a large but legal system, which only takes time. Larger
/// ones are refused at once.
fn takes_time(text: &str) -> bool {
    let numbers = text.split(|c: char| !c.is_ascii_digit());
    let mut sizes = numbers.filter_map(|digits| digits.parse::<u64>().ok());
    sizes.any(|size| (1_000..=10_000_000).contains(&size))
}

fuzz_target!(|bytes: &[u8]| {
    let Ok(text) = decode("f.yaml", bytes) else {
        return;
    };
    if takes_time(text) {
        return;
    }
    let set = text
        .lines()
        .next()
        .and_then(|line| line.strip_prefix("#set "));
    let sets: Vec<String> = set.map(str::to_owned).into_iter().collect();
    match parse(text, "f.yaml", &sets, &resolve) {
        Ok(topology) => assert!(!topology.gpus.is_empty()),
        Err(error) => assert!(!error.to_string().is_empty()),
    }
});
