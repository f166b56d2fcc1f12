//! Schedules that no strategy writes.

use proptest::prelude::*;

use super::emulator::emulate;
use super::race::{forks_and_joins, races};
use super::{apart, bridges, cases, circle, own, references, settings, stores};
use crate::device::DType;
use crate::gpu::plan::{
    FlagId, Flags, Joined, LowerError, Mode, Options, Path, Plan, Products, Rows, Step, What, lower,
};
use crate::operator::{Kind, Operator};
use crate::schedule::interpret::Random;
use crate::schedule::verify::{GpuSms, VerifyError};
use crate::schedule::{
    Buffer, BufferId, Builder, CollectiveKind, CollectiveLibrary, Dep, Extent, Lane, Mover, Piece,
    Rank, Role, Schedule, TaskId, TensorId, Via,
};
use crate::strategy;
use crate::units::Bytes;

/// Rows of one rank's share, and columns (as many as an all-gather's elements are laid out in).
const SHARE: (u32, u32) = (3, 4);

/// An all-gather over `placement`, with its buffers by rank.
fn gather(placement: Vec<u32>) -> (Builder, Vec<BufferId>) {
    let tp = placement.len() as u32;
    let bytes = Bytes::new(u64::from(tp * SHARE.0 * SHARE.1) * 2);
    let operator = Operator::collective(Kind::AllGather, bytes, tp, DType::Bf16).expect("valid");
    let mut b = Builder::new(operator, "special", placement);
    let x = b.tensor("X", tp * SHARE.0, SHARE.1, 1);
    let ranks = b.ranks();
    let buffers = ranks
        .map(|rank| {
            let pieces = (0..tp).map(|r| Piece {
                rows: Extent::new(r * SHARE.0, SHARE.0),
                cols: Extent::new(0, SHARE.1),
                global_row: r * SHARE.0,
                global_col: 0,
                initial: Extent::new(0, u32::from(r == u32::from(rank.0))),
            });
            b.buffer(Buffer {
                name: "X".into(),
                tensor: x,
                rank,
                rows: tp * SHARE.0,
                cols: SHARE.1,
                slots: 1,
                role: Role::InputOutput,
                pieces: pieces.collect(),
            })
        })
        .collect();
    (b, buffers)
}

/// Every share reaches every rank along a random tree, in random lanes, pushed or pulled.
fn random_gather(seed: u64) -> Schedule {
    let mut random = Random::new(seed);
    let mut below = |n: usize| random.next() as usize % n;
    let tp = 2 + below(5);
    let gpus = 1 + below(tp);
    let placement: Vec<u32> = (0..tp).map(|_| below(gpus) as u32 * 3).collect();
    let (mut b, buffers) = gather(placement);
    // By share: who has it, since which task.
    let own = b.ranks().map(|rank| vec![(rank, None)]);
    let mut holders: Vec<Vec<(Rank, Option<TaskId>)>> = own.collect();
    for _ in 0..tp * (tp - 1) {
        let open: Vec<usize> = (0..tp).filter(|&s| holders[s].len() < tp).collect();
        let share = open[below(open.len())];
        let (from, since) = holders[share][below(holders[share].len())];
        let lacks: Vec<Rank> = b
            .ranks()
            .filter(|rank| holders[share].iter().all(|(holder, _)| holder != rank))
            .collect();
        let to = lacks[below(lacks.len())];
        let issuer = [from, to][below(2)];
        let mover = match below(3) {
            0 => Mover::Sm { blocks: 2 },
            _ => Mover::CopyEngine,
        };
        let via = [Via::Event, Via::StreamFlag][below(2)];
        let after: Vec<Dep> = since.map(|task| Dep { task, via }).into_iter().collect();
        let row = share as u32 * SHARE.0;
        let [source, target] =
            [from, to].map(|rank| b.rows(buffers[usize::from(rank.0)], 0, row, SHARE.0));
        let lane = Lane(below(3) as u16);
        let task = b.transfer(issuer, lane, source, target, mover, &after);
        holders[share].push((to, Some(task)));
    }
    b.finish()
}

fn performs(schedule: &Schedule, options: &Options, seed: u64) -> Result<(), TestCaseError> {
    let plan = match lower(schedule, options, None) {
        Err(LowerError::Epilogue { .. } | LowerError::Loader { .. })
            if !stores(schedule, options) =>
        {
            return Ok(());
        }
        plan => apart(&plan.map_err(|e| TestCaseError::fail(e.to_string()))?),
    };
    prop_assert_eq!(races(&plan), []);
    prop_assert_eq!(forks_and_joins(&plan), Ok(()));
    let references = references(schedule, 3);
    for seed in seed..seed + 7 {
        prop_assert_eq!(emulate(&plan, schedule, &references, seed), Ok(()));
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, ..ProptestConfig::default() })]

    #[test]
    fn random_trees_gather(seed in any::<u64>(), setting in 0..30usize) {
        performs(&random_gather(seed), &settings()[setting], seed % 1000)?;
    }
}

/// The same schedule with all tasks of rank 0 listed first, then those of rank 1, ….
fn rank_by_rank(schedule: &Schedule) -> Schedule {
    let mut order: Vec<usize> = (0..schedule.tasks.len()).collect();
    order.sort_by_key(|&t| schedule.tasks[t].rank);
    let mut new = vec![TaskId(0); order.len()];
    for (at, &t) in order.iter().enumerate() {
        new[t] = TaskId(at as u32);
    }
    let mut out = schedule.clone();
    out.tasks = order.iter().map(|&t| schedule.tasks[t]).collect();
    out.deps.clear();
    out.dep_start = vec![0];
    for &t in &order {
        let deps = schedule.deps(TaskId(t as u32)).iter();
        out.deps.extend(deps.map(|dep| Dep {
            task: new[dep.task.index()],
            ..*dep
        }));
        out.dep_start.push(out.deps.len() as u32);
    }
    for member in out.collectives.iter_mut().flat_map(|c| &mut c.members) {
        member.task = new[member.task.index()];
    }
    out
}

#[test]
fn tasks_may_be_listed_in_any_order() {
    let settings = settings();
    let mut forward = 0;
    for (c, case) in cases(4).iter().enumerate().step_by(5) {
        let schedule = rank_by_rank(&case.schedule);
        let waits_for_later = |t: usize| {
            let deps = schedule.deps(TaskId(t as u32)).iter();
            deps.clone().any(|dep| dep.task.index() > t)
        };
        forward += usize::from((0..schedule.tasks.len()).any(waits_for_later));
        performs(&schedule, &settings[c % settings.len()], c as u64)
            .unwrap_or_else(|error| panic!("{}: {error}", case.name));
    }
    assert!(
        forward > 10,
        "only {forward} list a task before what it waits for"
    );
}

/// A call in `lane` that gathers the shares into `outputs` on two ranks, each member after the
/// same one of an earlier call.
fn call(
    b: &mut Builder,
    lane: Lane,
    buffers: &[BufferId],
    outputs: &[BufferId],
    after: Option<&[TaskId]>,
) -> Vec<TaskId> {
    let after: [Vec<Dep>; 2] = [0, 1].map(|r| {
        let task = after.map(|tasks| tasks[r]);
        task.map(|task| (task, Via::Event).into())
            .into_iter()
            .collect()
    });
    let members: Vec<_> = (0..2usize)
        .map(|r| {
            let input = b.rows(buffers[r], 0, r as u32 * SHARE.0, SHARE.0);
            (Rank(r as u16), input, b.whole(outputs[r]), &after[r][..])
        })
        .collect();
    let (kind, library) = (CollectiveKind::AllGather, CollectiveLibrary::Ring);
    b.collective(kind, library, 0, lane, &members)
}

/// A library's all-gather on two GPUs; then rank 0 fetches its share back from rank 1, after its
/// own part of the call.
fn fetched_back() -> Schedule {
    let (mut b, buffers) = gather(vec![0, 1]);
    let calls = call(&mut b, Lane(1), &buffers, &buffers, None);
    let copy = b.scratch("copy", TensorId(0), Rank(0), SHARE.0, SHARE.1, 1);
    let (from, to) = (b.rows(buffers[1], 0, 0, SHARE.0), b.whole(copy));
    let after = [(calls[0], Via::Event).into()];
    b.transfer(Rank(0), Lane(2), from, to, Mover::CopyEngine, &after);
    b.finish()
}

#[test]
fn who_touches_another_members_memory_waits_for_that_member() {
    let schedule = fetched_back();
    for options in &settings() {
        performs(&schedule, options, 3).expect("no race");
    }
    let plan = lower(&schedule, &Options::default(), None).expect("lowers");
    let waits = plan
        .steps
        .iter()
        .filter(|s| matches!(s.what, What::Await(_)));
    assert_eq!(waits.count(), 2);
}

#[test]
fn calls_that_hold_all_sms_are_refused() {
    let (mut b, buffers) = gather(vec![0, 1]);
    // Two calls at once, in no order: each may hold the SMs that the other needs.
    let copies = |b: &mut Builder| {
        let rows = 2 * SHARE.0;
        [0, 1].map(|r| b.scratch("copy", TensorId(0), Rank(r), rows, SHARE.1, 1))
    };
    for lane in [1, 2] {
        let copies = copies(&mut b);
        let first = call(&mut b, Lane(lane), &buffers, &copies, None);
        if lane == 2 {
            call(&mut b, Lane(1), &buffers, &buffers, Some(&first));
        }
    }
    let schedule = b.finish();
    let with = |total| {
        let sms = move |_| GpuSms {
            total,
            collective: 16,
        };
        lower(&schedule, &Options::default(), Some(&sms)).map(|plan| plan.verified)
    };
    assert_eq!(with(32), Ok(true));
    let error = with(31).expect_err("refused");
    let refused = matches!(error, LowerError::Lowered(VerifyError::CanDeadlock { .. }));
    assert!(refused, "{error}");
}

#[test]
fn more_streams_than_a_gpu_serves_are_refused() {
    let topology = bridges(32);
    let bytes = Bytes::new(32 * 24);
    let operator = Operator::collective(Kind::AllGather, bytes, 32, DType::Bf16).expect("valid");
    let direct = strategy::parse("direct").expect("a strategy");
    let own: Vec<u32> = (0..32).collect();
    let schedule = direct.build(&operator, &topology, &own).expect("built");
    let error = lower(&schedule, &Options::default(), None).expect_err("31 lanes");
    assert_eq!(
        error.to_string(),
        "GPU 31 would need 31 streams, more than 28; use a strategy with fewer lanes, fewer ranks, or another path"
    );
}

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
fn chunks_through_the_host_follow_one_another_without_a_pause() {
    let operator = Operator::gemm(Kind::AgGemm, 64, 48, 16, 2, DType::Bf16).unwrap();
    let choice = strategy::parse("fusion-alltoall:chunks=4").unwrap();
    let schedule = choice.build(&operator, &circle(2), &[0, 1]).unwrap();
    let waits = |products| {
        let options = Options {
            products,
            // Each chunk of a shard in one piece; a ring has four slots.
            path: Path::Host { chunk: 1 << 20 },
            ..Options::default()
        };
        let plan = lower(&schedule, &options, None).unwrap();
        let leave = plan
            .steps
            .iter()
            .find(|s| matches!(s.what, What::ToHost { .. }));
        let leave = leave.unwrap().stream;
        let here = plan.steps.iter().filter(|step| step.stream == leave);
        here.filter(|step| matches!(step.what, What::Await(_)))
            .count()
    };
    // Own products: nothing leaves late. Others: each after the one before has entered.
    assert_eq!((waits(Products::Own), waits(Products::Library)), (0, 3));
}

#[test]
fn more_lanes_than_streams_are_refused_before_anything_is_lowered() {
    let operator = Operator::gemm(Kind::AgGemm, 144, 144, 8, 72, DType::Bf16).unwrap();
    let choice = strategy::parse("fusion-alltoall").unwrap();
    let placement: Vec<u32> = (0..72).collect();
    let schedule = choice.build(&operator, &circle(72), &placement).unwrap();
    // A lane for the product and one for each of 71 others.
    let refused = lower(&schedule, &Options::default(), None);
    let expected = LowerError::TooManyStreams {
        gpu: 71,
        streams: 72,
    };
    assert_eq!(refused, Err(expected));
    // Kernels that bring their rows need no others.
    let choice = strategy::parse("fusion-alltoall:mover=loader").unwrap();
    let operator = Operator::gemm(Kind::AgGemm, 60, 60, 8, 30, DType::Bf16).unwrap();
    let placement: Vec<u32> = (0..30).collect();
    let schedule = choice.build(&operator, &circle(30), &placement).unwrap();
    let options = own();
    assert!(lower(&schedule, &options, None).is_ok());
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
