//! Products whose tiles are stored on other GPUs.

use super::mutation::fates;
use super::*;
use crate::schedule::{Compute, Mover, Role, TaskId, Work, lowered};

fn built(text: &str, (m, n, k): (u64, u64, u64), tp: u32, placement: &[u32]) -> Schedule {
    let operator = Operator::gemm(Kind::GemmRs, m, n, k, tp, DType::Bf16).expect("valid");
    let choice = strategy::parse(text).expect("a strategy");
    let topology = circle(tp as usize);
    choice
        .build(&operator, &topology, placement)
        .expect("builds")
}

fn gated(plan: &Plan) -> Vec<(usize, &[Rows])> {
    let steps = plan.steps.iter().enumerate();
    let groups = steps.filter_map(|(at, step)| match &step.what {
        What::Gated { groups, .. } => Some((at, &groups[..])),
        _ => None,
    });
    groups.collect()
}

fn copies(plan: &Plan) -> usize {
    let copy = |step: &&Step| matches!(step.what, What::Copy { .. } | What::CopyKernel { .. });
    plan.steps.iter().filter(copy).count()
}

#[test]
fn two_ranks_are_a_launch_each_that_stores_where_the_other_adds() {
    let schedule = built("fusion-ring:mover=epilogue", (1024, 48, 32), 2, &[0, 1]);
    let plan = lower(&schedule, &own(), None).expect("lowers");
    assert_eq!((copies(&plan), plan.joined.len()), (0, 2));
    // A stream for each GPU and nothing else: who waits does so inside.
    assert_eq!(plan.streams.len(), 2);
    let products = gated(&plan);
    assert_eq!(products.len(), 4);
    for (at, groups) in products {
        let here = plan.streams[plan.steps[at].stream.index()].gpu;
        for group in groups {
            assert_eq!(group.rows.len, 256);
            match (group.to, group.sets) {
                // The others' rows go to the other GPU's C, and so does the flag.
                (Some(to), Some(flag)) => {
                    assert!(to.gpu != here && plan.flags[flag.index()].gpu == to.gpu);
                    assert_eq!((to.rows, to.cols, group.flags.len()), (256, 48, 0));
                }
                // The own rows are added to what has come.
                (None, None) => assert_eq!(group.flags.len(), 1),
                other => panic!("{other:?}"),
            }
        }
    }
}

#[test]
fn many_ranks_store_into_a_place_of_each() {
    let schedule = built(
        "fusion-alltoall:mover=epilogue,chunks=2",
        (64, 48, 20),
        4,
        &[0, 1, 2, 3],
    );
    for mode in [Mode::Stream, Mode::Graph] {
        let options = Options { mode, ..own() };
        let plan = lower(&schedule, &options, None).expect("lowers");
        assert_eq!(copies(&plan), 0);
        let products = gated(&plan);
        assert_eq!(products.len(), 4);
        for (at, groups) in products {
            let here = plan.streams[plan.steps[at].stream.index()].gpu;
            let mut others: Vec<Gpu> = groups
                .iter()
                .filter_map(|g| g.to)
                .map(|to| to.gpu)
                .collect();
            assert_eq!(others.len(), 6);
            others.dedup();
            assert!(others.len() == 3 && !others.contains(&here));
            // Streams wait for the last chunk of each, in a graph for the kernels.
            let sets = groups.iter().filter(|g| g.sets.is_some()).count();
            assert_eq!(sets, if mode == Mode::Graph { 0 } else { 3 });
        }
    }
}

#[test]
fn kernels_in_graphs_tell_one_another() {
    let schedule = built("fusion-ring:mover=epilogue", (1024, 48, 32), 2, &[0, 1]);
    let options = Options {
        mode: Mode::Graph,
        ..own()
    };
    let plan = lower(&schedule, &options, None).expect("lowers");
    assert_eq!((copies(&plan), plan.joined.len()), (0, 0));
    let products = gated(&plan);
    let sets = products.iter().flat_map(|(_, groups)| *groups);
    assert_eq!(sets.filter(|g| g.sets.is_some()).count(), 4);
}

fn said(schedule: &Schedule, options: &Options) -> String {
    let refused = lower(schedule, options, None).expect_err("is refused");
    assert!(matches!(refused, LowerError::Epilogue { .. }), "{refused}");
    refused.to_string()
}

#[test]
fn what_epilogues_cannot_do_is_said() {
    let text = "fusion-ring:mover=epilogue,chunks=1";
    let schedule = built(text, (64, 48, 32), 2, &[0, 1]);
    let first = "task 2 (rank 0, lane ring, transfer) cannot be performed by an epilogue: ";
    let own_kernels = "no kernel of Duet's own computes its rows; use --gemm duet, bf16 or fp16, and flags that are words";
    let host = Options {
        path: Path::Host { chunk: 100 },
        ..own()
    };
    let events = Options {
        flags: Flags::Event,
        ..own()
    };
    for (options, why) in [
        (Options::default(), own_kernels),
        (events, own_kernels),
        (host, "the path between GPUs is not p2p; use mover=ce"),
    ] {
        assert_eq!(said(&schedule, &options), format!("{first}{why}"));
    }
    let shared = built(text, (64, 48, 32), 2, &[0, 0]);
    let why = "both ranks are on one GPU; use mover=ce";
    assert_eq!(said(&shared, &own()), format!("{first}{why}"));
}

#[test]
fn schedules_whose_copies_are_no_epilogues_are_refused() {
    let text = "fusion-ring:mover=epilogue,chunks=1";
    let schedule = || built(text, (64, 48, 32), 2, &[0, 1]);
    let first = "task 2 (rank 0, lane ring, transfer) cannot be performed by an epilogue: ";
    let source = |schedule: &Schedule| match schedule.tasks[2].work {
        Work::Transfer { from, .. } => from,
        other => panic!("{other:?}"),
    };
    // Somebody reads what would not be there.
    let mut read = schedule();
    let from = source(&read);
    let (buffer, tensor) = (from.buffer, read.buffers[from.buffer.index()].tensor);
    let mut other = read.buffers[buffer.index()].clone();
    other.tensor = tensor;
    read.buffers.push(other);
    let to = crate::schedule::Slice {
        buffer: crate::schedule::BufferId(read.buffers.len() as u32 - 1),
        ..from
    };
    read.computes.push(Compute::Reduce {
        inputs: vec![from],
        out: to,
    });
    let mut late = read.tasks[read.tasks.len() - 1];
    late.work = Work::Compute(crate::schedule::ComputeId(read.computes.len() as u32 - 1));
    (late.rank, late.lane, late.launch) = (read.tasks[2].rank, crate::schedule::Lane(5), None);
    read.tasks.push(late);
    read.deps
        .push((TaskId(2), crate::schedule::Via::Event).into());
    read.dep_start.push(read.deps.len() as u32);
    assert_eq!(
        said(&read, &own()),
        format!(
            "{first}travelling[rank 0, slot 0, rows 0..32, cols 0..48] is of task 0 (rank 0, lane compute, gemm) and of task 6 (rank 0, lane 5, reduce), and would never be there"
        )
    );
    // A library computes it.
    let mut library = schedule();
    for compute in &mut library.computes {
        if let Compute::Gemm { kernel, .. } = compute {
            *kernel = crate::schedule::GemmKernel::Library;
        }
    }
    for dep in &mut library.deps {
        dep.via = crate::schedule::Via::StreamFlag;
    }
    library.tasks.iter_mut().for_each(|task| task.launch = None);
    library.launches.clear();
    assert_eq!(
        said(&library, &own()),
        format!(
            "{first}travelling[rank 0, slot 0, rows 0..32, cols 0..48] is not what one tile group of a fused kernel computes"
        )
    );
    // A copy by an engine goes before it.
    let mut behind = built("fusion-ring:mover=epilogue", (64, 48, 32), 2, &[0, 1]);
    let Work::Transfer { mover, .. } = &mut behind.tasks[4].work else {
        panic!("no transfer");
    };
    *mover = Mover::CopyEngine;
    for dep in &mut behind.deps[..1] {
        dep.via = crate::schedule::Via::StreamFlag;
    }
    assert_eq!(
        said(&behind, &own()),
        "task 5 (rank 0, lane ring, transfer) cannot be performed by an epilogue: task 4 (rank 0, lane ring, transfer) comes before it in its lane"
    );
    assert_eq!(schedule().buffers[buffer.index()].role, Role::Scratch);
}

#[test]
fn a_missing_wait_of_stored_tiles_is_noticed() {
    let mut total = [0; 3];
    for text in [
        "fusion-ring:mover=epilogue",
        "fusion-alltoall:mover=epilogue",
    ] {
        for (m, tp) in [(64, 2), (1024, 2), (24, 4)] {
            let placement: Vec<u32> = (0..tp).collect();
            if text.starts_with("fusion-ring") && tp > 2 {
                continue;
            }
            let case = Case {
                schedule: built(text, (m, 5, 12), tp, &placement),
                name: text.to_owned(),
            };
            for mode in [Mode::Stream, Mode::Graph] {
                let options = Options { mode, ..own() };
                let found = fates(&case, &options);
                (0..3).for_each(|i| total[i] += found[i]);
            }
        }
    }
    let [caught, missed, harmless] = total;
    assert!(caught > 20 && missed <= 2 && harmless == 0, "{total:?}");
}

#[test]
fn what_the_lowered_schedule_lacks_is_no_other_task() {
    let schedule = built(
        "fusion-ring:mover=epilogue,chunks=1",
        (64, 48, 32),
        2,
        &[0, 1],
    );
    let mut alone = lowered::lower(&schedule, &own().lowered());
    alone.origin.clear();
    let refused = super::super::performed::stores(&schedule, &alone, &own());
    let text = refused.expect_err("is refused").to_string();
    assert_eq!(
        text,
        "task 2 (rank 0, lane ring, transfer) cannot be performed by an epilogue: what runs in its place lacks it or its group; use mover=ce"
    );
}
