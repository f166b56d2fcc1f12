//! Schedules that no strategy writes.

use proptest::prelude::*;

use super::emulator::emulate;
use super::race::{forks_and_joins, races};
use super::{apart, bridges, cases, references, settings, stores};
use crate::device::DType;
use crate::gpu::plan::{LowerError, Options, What, lower};
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
