//! Schedules that no builder would make: an answer, never a panic.

use duet::schedule::verify::{GpuSms, Limits, verify};
use duet::schedule::{
    CollectiveId, Compute, ComputeId, LaunchId, Mover, Rank, Schedule, Slice, Via, Work, interpret,
};
use proptest::prelude::*;

use crate::mutate::Random;
use crate::samples;

/// A number that is small, or at the edge of its type.
fn odd(random: &mut Random) -> u32 {
    match random.below(4) {
        0 => u32::MAX - random.below(3) as u32,
        1 => 1 << random.below(32),
        _ => random.below(9) as u32,
    }
}

fn spoil_slice(slice: &mut Slice, random: &mut Random) {
    let value = odd(random);
    match random.below(6) {
        0 => slice.buffer.0 = value,
        1 => slice.slot = value as u16,
        2 => slice.rows.start = value,
        3 => slice.rows.len = value,
        4 => slice.cols.start = value,
        _ => slice.cols.len = value,
    }
}

fn spoil_task(s: &mut Schedule, random: &mut Random) {
    let value = odd(random);
    let at = random.below(s.tasks.len());
    let task = &mut s.tasks[at];
    match random.below(7) {
        0 => task.rank = Rank(value as u16),
        1 => task.lane.0 = value as u16,
        2 => task.launch = Some(LaunchId(value)),
        3 => task.work = Work::Compute(ComputeId(value)),
        4 => task.work = Work::Collective(CollectiveId(value)),
        _ => match &mut task.work {
            Work::Transfer { from, to, mover } => match random.below(3) {
                0 => spoil_slice(from, random),
                1 => spoil_slice(to, random),
                _ => {
                    *mover = Mover::Sm {
                        blocks: value as u16,
                    }
                }
            },
            Work::Compute(c) => match s.computes.get_mut(c.index()) {
                Some(Compute::Gemm { a, b, out, .. }) => {
                    spoil_slice([a, b, out][random.below(3)], random);
                }
                Some(Compute::Reduce { inputs, out } | Compute::Pointwise { inputs, out, .. }) => {
                    spoil_slice(out, random);
                    inputs.truncate(random.below(4));
                }
                None => {}
            },
            Work::Collective(c) => {
                if let Some(group) = s.collectives.get_mut(c.index()) {
                    group.members.truncate(random.below(4));
                    if let Some(member) = group.members.last_mut() {
                        spoil_slice(&mut member.output, random);
                        member.task.0 = value;
                    }
                }
            }
        },
    }
}

fn spoil_tables(s: &mut Schedule, random: &mut Random) {
    let value = odd(random);
    let buffer = random.below(s.buffers.len());
    let buffer = &mut s.buffers[buffer];
    let tensor = random.below(s.tensors.len());
    let tensor = &mut s.tensors[tensor];
    match random.below(14) {
        0 => buffer.rank = Rank(value as u16),
        1 => buffer.tensor.0 = value,
        2 => buffer.rows = value,
        3 => buffer.cols = value,
        4 => buffer.slots = value as u16,
        5 => tensor.rows = value,
        6 => tensor.cols = value,
        7 => tensor.contributions = value,
        8 => s.placement.truncate(value as usize),
        9 => s.operator.tp = value,
        10 => {
            if let Some(piece) = buffer.pieces.first_mut() {
                match random.below(4) {
                    0 => piece.rows.len = value,
                    1 => piece.cols.start = value,
                    2 => piece.global_row = value,
                    _ => piece.initial.len = value,
                }
            }
        }
        11 if !s.deps.is_empty() => {
            let at = random.below(s.deps.len());
            s.deps[at].task.0 = value;
            s.deps[at].via = Via::KernelFlag;
        }
        12 => {
            let at = random.below(s.dep_start.len());
            s.dep_start[at] = value;
        }
        _ => s.launches.truncate(value as usize),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1500))]

    #[test]
    fn anything_is_verified_or_refused(seed in any::<u64>(), which in 0usize..6, damage in 1usize..4) {
        let mut random = Random::new(seed);
        let mut schedule = samples::all(3).swap_remove(which).1;
        for _ in 0..damage {
            if random.below(2) == 0 {
                spoil_task(&mut schedule, &mut random);
            } else {
                spoil_tables(&mut schedule, &mut random);
            }
        }
        let sms = |_| GpuSms { total: 132, collective: 16 };
        let limits = Limits { budget: 100_000, sms: Some(&sms) };
        match verify(&schedule, &limits) {
            Ok(_) => {}
            Err(error) => prop_assert!(!error.to_string().is_empty()),
        }
        if let Err(error) = interpret(&schedule, seed, 2) {
            prop_assert!(!error.to_string().is_empty());
        }
    }
}
