//! Products that wait, add and tell inside kernels, and which of them are one launch.

use super::{circle, own};
use crate::device::DType;
use crate::gpu::plan::{FlagId, Flags, Joined, Mode, Options, Plan, Rows, Step, What, lower};
use crate::operator::{Kind, Operator};
use crate::schedule::verify::GpuSms;
use crate::schedule::{Dep, Extent, Schedule, TaskId, Via};
use crate::strategy;

#[test]
fn own_kernels_wait_inside_where_every_rank_has_a_gpu() {
    let operator = Operator::gemm(Kind::AgGemm, 64, 48, 5, 4, DType::Bf16).unwrap();
    let choice = strategy::parse("fusion-alltoall:chunks=2").unwrap();
    let options = own();
    let sms = |_: u32| GpuSms {
        total: 132,
        collective: 32,
    };
    let plan = |placement: &[u32], options: &Options| {
        let schedule = choice.build(&operator, &circle(4), placement).unwrap();
        lower(&schedule, options, Some(&sms)).unwrap()
    };
    let kernels = |plan: &Plan| -> Vec<Vec<Rows>> {
        let groups = |step: &Step| match &step.what {
            What::Gated { groups, .. } => Some(groups.clone()),
            _ => None,
        };
        plan.steps.iter().filter_map(groups).collect()
    };
    let fused = plan(&[0, 1, 2, 3], &options);
    let all = kernels(&fused);
    assert_eq!(all.len(), 4);
    assert!(
        !fused
            .steps
            .iter()
            .any(|s| matches!(s.what, What::Gemm { .. }))
    );
    for (rank, groups) in all.iter().enumerate() {
        // The own 16 rows first, then those of the next ranks in halves, each after one copy.
        let starts: Vec<u32> = groups.iter().map(|g| g.rows.start / 16).collect();
        let next = |i: usize| ((rank + i) % 4) as u32;
        let expected = [0, 1, 1, 2, 2, 3, 3].map(next);
        assert_eq!(starts, expected);
        let flags: Vec<usize> = groups.iter().map(|g| g.flags.len()).collect();
        assert_eq!(flags, [0, 1, 1, 1, 1, 1, 1]);
    }
    // Two kernels that hold all SMs of one GPU might keep each other's copies from starting.
    assert!(kernels(&plan(&[0, 0, 1, 1], &options)).is_empty());
    // They leave copies by SMs, a lane for each of the other ranks, those that they need.
    let choice = strategy::parse("fusion-alltoall:mover=sm:18").unwrap();
    let schedule = choice.build(&operator, &circle(4), &[0, 0, 1, 1]).unwrap();
    let total = crate::device::ideal().sms;
    let sms = |_: u32| GpuSms {
        total,
        collective: 32,
    };
    let shared = lower(&schedule, &options, Some(&sms)).unwrap();
    assert_eq!(kernels(&shared).len(), 4);
    for step in &shared.steps {
        if let What::Gated { sms, .. } = step.what {
            assert!(sms > 0 && u32::from(sms) <= total - 18);
        }
    }
    // In a graph too copies write flags, and kernels wait for them.
    let graph = Options {
        mode: Mode::Graph,
        ..options
    };
    assert_eq!(kernels(&plan(&[0, 1, 2, 3], &graph)), all);
    let events = Options {
        flags: Flags::Event,
        ..options
    };
    assert!(kernels(&plan(&[0, 1, 2, 3], &events)).is_empty());
    assert!(kernels(&plan(&[0, 1, 2, 3], &Options::default())).is_empty());
}

#[test]
fn rows_that_come_in_slabs_are_one_kernel_that_waits_on_its_way() {
    let operator = Operator::gemm(Kind::AgGemm, 64, 48, 300, 2, DType::Bf16).unwrap();
    let plan = |text: &str, flags| {
        let choice = strategy::parse(text).unwrap();
        let schedule = choice.build(&operator, &circle(2), &[0, 1]).unwrap();
        let options = Options { flags, ..own() };
        lower(&schedule, &options, None).unwrap()
    };
    let slabs = plan("fusion-alltoall:slabs=3,chunks=2", Flags::Value);
    let mut kernels = 0;
    for step in &slabs.steps {
        match &step.what {
            What::Gated {
                a,
                b,
                out,
                groups,
                accumulate,
                ..
            } => {
                kernels += 1;
                // One product through all of k, which adds to nothing.
                assert_eq!((a.rows, a.cols, b.rows, out.rows), (64, 300, 300, 64));
                assert!(!accumulate);
                // The own rows at once; each half of the others in slabs of whole steps along k, the
                // last with the rest, each after a copy of its own.
                let own = groups[0].rows.start;
                let other = 32 - own;
                let slab = |row, start, len| (row, Extent::new(start, len), 1);
                let halves = [other, other + 16]
                    .map(|row| [slab(row, 0, 64), slab(row, 64, 64), slab(row, 128, 172)]);
                let mut expected = vec![(own, Extent::new(0, 300), 0)];
                expected.extend(halves.as_flattened());
                let all: Vec<_> = (groups.iter())
                    .map(|g| (g.rows.start, g.depth, g.flags.len()))
                    .collect();
                assert_eq!(all, expected);
            }
            What::Copy { from, to } => {
                assert_eq!((from.rows, from.ld, to.ld), (16, to.ld, from.ld));
                assert!([64, 172].contains(&from.cols));
            }
            _ => {}
        }
    }
    assert_eq!(kernels, 2);
    // Streams that wait take them as products of their own, each added to the one before.
    let adds = plan("fusion-alltoall:slabs=3", Flags::Event);
    let product = |step: &Step| match &step.what {
        What::Gemm { a, accumulate, .. } => Some((a.cols, *accumulate)),
        What::Gated { .. } => panic!("a kernel that waits"),
        _ => None,
    };
    let mut products: Vec<_> = adds.steps.iter().filter_map(product).collect();
    products.sort_unstable();
    let slab = [(64, false), (64, true), (172, true), (300, false)];
    assert_eq!(products, slab.map(|one| [one, one]).concat());
}

#[test]
fn sums_that_travel_are_a_kernel_in_each_step() {
    let operator = Operator::gemm(Kind::GemmRs, 64, 48, 10, 2, DType::Bf16).unwrap();
    let choice = strategy::parse("fusion-ring:chunks=2").unwrap();
    let schedule = choice.build(&operator, &circle(2), &[0, 1]).unwrap();
    let plan = |mode| {
        let options = Options { mode, ..own() };
        let plan = lower(&schedule, &options, None).unwrap();
        let kernel = |step: &Step| match &step.what {
            What::Gated {
                groups, accumulate, ..
            } => Some((
                *accumulate,
                groups.iter().map(|g| g.flags.len()).sum(),
                groups.iter().filter(|g| g.sets.is_some()).count(),
            )),
            What::Gemm { accumulate, .. } => Some((*accumulate, 0, 0)),
            _ => None,
        };
        plan.steps
            .iter()
            .filter_map(kernel)
            .collect::<Vec<(bool, usize, usize)>>()
    };
    // On each rank both halves for the other, each of which leaves when it is done; then both own
    // halves, each once the other's sum is there.
    let (first, second) = ((false, 0, 2), (true, 2, 0));
    assert_eq!(plan(Mode::Stream), [first, first, second, second]);
    // A node of a graph tells of itself only: two products for the other.
    let half = (false, 0, 0);
    assert_eq!(plan(Mode::Graph), [half, half, half, half, second, second]);
}

#[test]
fn products_of_one_kernel_are_one_launch_where_no_tile_has_rows_of_two() {
    let joined = |m: u64, ranks: u32, mode, flags| {
        let operator = Operator::gemm(Kind::GemmRs, m, 48, 40, ranks, DType::Bf16).unwrap();
        let choice = strategy::parse("fusion-ring:chunks=2").unwrap();
        let placement: Vec<u32> = (0..ranks).collect();
        let topology = circle(ranks as usize);
        let schedule = choice.build(&operator, &topology, &placement).unwrap();
        let options = Options {
            mode,
            flags,
            ..own()
        };
        let plan = lower(&schedule, &options, None).unwrap();
        let rows = |joined: &Joined| joined.rows.iter().map(|r| r.start).collect::<Vec<_>>();
        let all = plan.joined.iter().map(|joined| {
            assert!(joined.accumulate);
            assert_eq!(u64::from(joined.a.rows), m);
            rows(joined)
        });
        all.collect::<Vec<_>>()
    };
    // The other's rows first, then the own, which add.
    let (value, stream) = (Flags::Value, Mode::Stream);
    assert_eq!(joined(512, 2, stream, value), [[256, 0], [0, 256]]);
    // The sums of each step of a ring, over the end of A too.
    let four = joined(1024, 4, stream, value);
    assert_eq!(four[0], [768, 512, 256, 0]);
    assert_eq!(four[1], [0, 768, 512, 256]);
    assert_eq!(four.len(), 4);
    // Rows that share a tile with those that they wait for, nodes of a graph and events are launches of
    // their own.
    assert!(joined(384, 2, stream, value).is_empty());
    assert!(joined(512, 2, Mode::Graph, value).is_empty());
    assert!(joined(512, 2, stream, Flags::ValueAndEvent).is_empty());
}

#[test]
fn products_that_wait_for_rows_of_a_are_not_joined_with_sums() {
    let operator = Operator::gemm(Kind::GemmRs, 512, 48, 40, 2, DType::Bf16).unwrap();
    let choice = strategy::parse("fusion-ring:chunks=2").unwrap();
    let schedule = choice.build(&operator, &circle(2), &[0, 1]).unwrap();
    let options = own();
    let mut plan = lower(&schedule, &options, None).unwrap();
    let joined = |plan: &Plan| crate::gpu::plan::joined::joined(&plan.steps, 2).len();
    assert_eq!(joined(&plan), 2);
    // The first half of one rank waits before it is loaded, which a kernel that adds does not do.
    let flag = FlagId(0);
    let first = plan.steps.iter_mut().find_map(|step| match &mut step.what {
        What::Gated {
            accumulate: false,
            groups,
            ..
        } => Some(groups),
        _ => None,
    });
    first.unwrap()[0].flags.push(flag);
    assert_eq!(joined(&plan), 1);
}

#[test]
fn products_that_follow_one_another_by_launch_order_are_not_joined() {
    let operator = Operator::gemm(Kind::GemmRs, 512, 48, 40, 2, DType::Bf16).unwrap();
    let choice = strategy::parse("fusion-ring:chunks=1").unwrap();
    let mut schedule = choice.build(&operator, &circle(2), &[0, 1]).unwrap();
    let options = own();
    let joined = |schedule: &Schedule| lower(schedule, &options, None).unwrap().joined.len();
    assert_eq!(joined(&schedule), 2);
    // A group of a kernel that waits for another to have ended: tiles of one launch are in no such order.
    let groups: Vec<TaskId> = (0..schedule.tasks.len() as u32)
        .map(TaskId)
        .filter(|&id| schedule.task(id).launch.is_some() && schedule.task(id).rank.0 == 0)
        .collect();
    let [first, last] = groups[..] else {
        panic!("{groups:?}");
    };
    let at = schedule.dep_start[last.index() + 1] as usize;
    let dep = Dep {
        task: first,
        via: Via::Launch,
    };
    schedule.deps.insert(at, dep);
    let later = &mut schedule.dep_start[last.index() + 1..];
    later.iter_mut().for_each(|start| *start += 1);
    assert_eq!(joined(&schedule), 1);
}

#[test]
fn own_kernels_say_which_rows_are_done() {
    let operator = Operator::gemm(Kind::GemmRs, 64, 48, 20, 4, DType::Bf16).unwrap();
    let choice = strategy::parse("fusion-alltoall:chunks=2").unwrap();
    let schedule = choice.build(&operator, &circle(4), &[0, 1, 2, 3]).unwrap();
    let options = own();
    let plan = lower(&schedule, &options, None).unwrap();
    let mut kernels = 0;
    for (at, step) in plan.steps.iter().enumerate() {
        let What::Gated { groups, .. } = &step.what else {
            continue;
        };
        kernels += 1;
        // Six halves for others, then the own rows, which nobody awaits.
        let sets: Vec<bool> = groups.iter().map(|g| g.sets.is_some()).collect();
        assert_eq!(sets, [true, true, true, true, true, true, false]);
        for flag in groups.iter().filter_map(|g| g.sets) {
            let writes = |s: &Step| s.what == What::WriteFlag(flag);
            assert!(!plan.steps.iter().any(writes));
            // Whoever waits is issued behind the kernel.
            let waits = |s: &Step| s.what == What::AwaitFlag(flag);
            assert!(plan.steps.iter().position(waits).is_some_and(|w| w > at));
        }
    }
    assert_eq!(kernels, 4);
    assert!(
        !plan
            .steps
            .iter()
            .any(|s| matches!(s.what, What::Gemm { .. }))
    );
}
