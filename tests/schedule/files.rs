//! Schedules as files: round trips, the documented example, broken files, any bytes at all.

use duet::device::DType;
use duet::operator::{Kind, Operator};
use duet::schedule::{Schedule, json};
use duet::strategy;
use proptest::prelude::*;

use crate::{mutation, samples};

fn round_trip(name: &str, schedule: &Schedule) {
    let text = json::write(schedule);
    match json::read(&text, name) {
        Ok(read) => assert!(read == *schedule, "{name} reads as something else:\n{text}"),
        Err(error) => panic!("{name}:\n{error}\n{text}"),
    }
}

#[test]
fn what_is_written_reads_the_same() {
    for tp in [2, 3, 4] {
        for (name, schedule) in mutation::of_registry(tp) {
            round_trip(&name, &schedule);
        }
        for (name, schedule) in samples::all(tp) {
            round_trip(name, &schedule);
        }
    }
}

#[test]
fn movers_are_written_and_read() {
    let operator = Operator::gemm(Kind::GemmRs, 64, 32, 16, 2, DType::Bf16).unwrap();
    let topology = duet::topology::load("h200-nvswitch-8", &[]).unwrap();
    for (mover, text) in [
        ("sm:3", "\"mover\": {\"sm\": 3}"),
        ("epilogue", "\"mover\": \"epilogue\""),
    ] {
        let choice = strategy::parse(&format!("fusion-ring:mover={mover}")).unwrap();
        let schedule = choice.build(&operator, &topology, &[0, 1]).unwrap();
        assert!(json::write(&schedule).contains(text));
        round_trip(mover, &schedule);
    }
}

#[test]
fn names_that_are_no_names_round_trip() {
    let mut schedule = samples::two_slots(3);
    // Twice the same, empty, a number, quotes and escapes.
    schedule.buffers[0].name = "A_inbox".into();
    schedule.buffers[1].name = String::new();
    schedule.buffers[2].name = "0".into();
    schedule.tensors[1].name = "A".into();
    schedule.lanes = vec![
        (samples::COMPUTE, "x\"\\\n\u{7}é".into()),
        (samples::COMM, "x".into()),
        (samples::COMM, "x".into()),
    ];
    round_trip("names", &schedule);
}

proptest! {
    #[test]
    fn any_text_is_read_or_refused(text in "[-{}\\[\\]:,\"a-z0-9 \\n]{0,80}") {
        let _ = json::read(&text, "f.json");
    }

    /// A valid file with a stretch replaced.
    #[test]
    fn any_damage_is_read_or_refused(at in 0usize..4000, len in 0usize..12, with in "[-{}\\[\\]:,\"a-z0-9é]{0,6}") {
        let text = json::write(&samples::gemm_rs(2));
        let floor = |at: usize| (0..=at.min(text.len())).rev().find(|&i| text.is_char_boundary(i)).unwrap_or(0);
        let (start, end) = (floor(at), floor(at + len));
        let broken = format!("{}{with}{}", &text[..start], &text[end..]);
        if let Err(error) = json::read(&broken, "f.json") {
            prop_assert!(error.to_string().contains("f.json:"), "{error}");
        }
    }
}
