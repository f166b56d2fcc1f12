//! Strategies: docs and goldens for every registry entry, and schedules of the right shape.

use std::fmt::Write as _;

use duet::device::DType;
use duet::operator::{Kind, Operator};
use duet::schedule::verify::{GpuSms, Limits, Verified};
use duet::schedule::{Compute, Schedule, Via, Work, interpret, verify};
use duet::strategy::{self, Skip};
use duet::topology::Topology;
use duet::topology::build::Builder;
use duet::units::Bytes;

const SIZES: [u32; 4] = [2, 3, 4, 8];

/// GPUs behind one switch.
fn switch(gpus: usize) -> Topology {
    let mut b = Builder::new("switch");
    let ids = b.gpus(gpus);
    let hub = b.switch("s");
    for gpu in ids {
        b.link(gpu, hub, "nvlink", 50e9, 500e-9);
    }
    b.build()
}

/// GPUs in a ring of links, where two counter-rotating rings beat one.
fn circle(gpus: usize) -> Topology {
    let mut b = Builder::new("circle");
    let ids = b.gpus(gpus);
    for (i, &gpu) in ids.iter().enumerate() {
        // Two GPUs get both links between them.
        b.link(gpu, ids[(i + 1) % gpus], "nvlink", 50e9, 500e-9);
    }
    b.build()
}

/// Pairs of GPUs with a bridge each, all on one switch.
fn bridges(gpus: usize) -> Topology {
    let mut b = Builder::new("bridges");
    let ids = b.gpus(gpus);
    let hub = b.switch("s");
    for &gpu in &ids {
        b.link(gpu, hub, "pcie", 24e9, 1e-6);
    }
    for pair in ids.chunks_exact(2) {
        b.link(pair[0], pair[1], "nvlink", 52e9, 1e-6);
    }
    b.build()
}

/// Rows, columns and k that every strategy can cut at tp = 2, 3, 4 and 8.
fn small(kind: Kind, tp: u32) -> Operator {
    let tp64 = u64::from(tp);
    if kind.is_fused() {
        Operator::gemm(kind, 16 * tp64, 2 * tp64, 3 * tp64, tp, DType::Bf16)
    } else {
        // Shares of 6 × 2 elements.
        Operator::collective(kind, Bytes::new(tp64 * 24), tp, DType::Bf16)
    }
    .expect("a valid operator")
}

fn build(text: &str, operator: &Operator) -> Result<Schedule, Skip> {
    build_on(&bridges(operator.tp as usize), text, operator)
}

fn build_on(topology: &Topology, text: &str, operator: &Operator) -> Result<Schedule, Skip> {
    let placement: Vec<u32> = (0..operator.tp).collect();
    strategy::parse(text)
        .expect("a strategy")
        .build(operator, topology, &placement)
}

/// One line per task: what it does, on what, after what.
fn list(schedule: &Schedule) -> String {
    let mut text = format!("{} by {}\n", schedule.operator, schedule.strategy);
    for (id, task) in schedule.tasks.iter().enumerate() {
        let id = duet::schedule::TaskId(id as u32);
        let slice = |s| schedule.describe_slice(s);
        write!(text, "{}", schedule.describe(id)).unwrap();
        if let Some(launch) = task.launch {
            let name = &schedule.launches[launch.index()].name;
            write!(text, " in {name}").unwrap();
        }
        match &task.work {
            Work::Transfer { from, to, mover } => {
                write!(text, " {} -> {} {mover:?}", slice(from), slice(to)).unwrap();
            }
            Work::Compute(c) => match &schedule.computes[c.index()] {
                Compute::Gemm {
                    a,
                    b,
                    out,
                    accumulate,
                    kernel,
                    ..
                } => {
                    let sign = if *accumulate { "+=" } else { "=" };
                    let (out, a, b) = (slice(out), slice(a), slice(b));
                    write!(text, " {out} {sign} {a} x {b} {kernel:?}").unwrap();
                }
                Compute::Reduce { inputs, out } => {
                    let inputs: Vec<String> = inputs.iter().map(slice).collect();
                    write!(text, " {} = {}", slice(out), inputs.join(" + ")).unwrap();
                }
                Compute::Pointwise { .. } => text.push_str(" pointwise"),
            },
            Work::Collective(c) => {
                let collective = &schedule.collectives[c.index()];
                let member = collective.members.iter().find(|m| m.task == id).unwrap();
                let (input, output) = (slice(&member.input), slice(&member.output));
                write!(text, " {:?} {input} -> {output}", collective.kind).unwrap();
            }
        }
        for dep in schedule.deps(id) {
            write!(text, " after {} {:?}", dep.task.0, dep.via).unwrap();
        }
        text.push('\n');
    }
    text
}

/// Bytes that each rank's transfers send to other ranks.
fn sent(schedule: &Schedule) -> Vec<u64> {
    let mut sent = vec![0; schedule.placement.len()];
    for task in &schedule.tasks {
        if let Work::Transfer { from, to, .. } = task.work {
            let source = schedule.rank_of(&from);
            if source != schedule.rank_of(&to) {
                sent[usize::from(source.0)] += schedule.bytes(&from);
            }
        }
    }
    sent
}

#[test]
fn every_strategy_has_docs_a_row_and_unique_names() {
    let page = include_str!("../docs/strategies.md");
    let mut names = Vec::new();
    for strategy in strategy::registry() {
        let name = strategy.name();
        assert!(strategy.summary().ends_with('.'), "{name}: no summary");
        let row = page
            .lines()
            .find(|line| line.starts_with(&format!("| `{name}` |")));
        assert!(row.is_some(), "{name}: no row in docs/strategies.md");
        let in_readme = ["` |", ":"].map(|end| format!("| `{name}{end}"));
        let mut lines = include_str!("../README.md").lines();
        assert!(
            lines.any(|line| in_readme.iter().any(|row| line.starts_with(row))),
            "{name}: no row in the README's table"
        );
        for param in strategy.params() {
            assert!(!param.about.is_empty(), "{name}: {} has no doc", param.name);
            assert!(
                page.contains(&format!("`{}=", param.name)),
                "{name}: docs/strategies.md does not explain `{}=`",
                param.name
            );
        }
        assert!(
            Kind::ALL.into_iter().any(|kind| strategy.applies(kind)),
            "{name} performs nothing"
        );
        let kinds = Kind::ALL.into_iter().filter(|kind| strategy.applies(*kind));
        for setting in kinds.flat_map(|kind| strategy.tried(kind)) {
            let text = format!("{name}:{setting}");
            let choice = strategy::parse(&text).expect("what is tried must parse");
            let row = row.unwrap();
            assert!(
                row.contains(&format!("`{choice}`")),
                "{choice}: not in its row"
            );
        }
        names.push(name);
    }
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), strategy::registry().len());
}

#[test]
fn golden_schedules() {
    // Every strategy on the first operator it performs, and on those listed; two or four ranks.
    for strategy in strategy::registry() {
        let name = strategy.name();
        for kind in Kind::ALL.into_iter().filter(|kind| strategy.applies(*kind)) {
            // Two ranks show little of rings, trees and groups.
            let four = name.contains("ring") || ["tree", "hierarchical"].contains(&name);
            let tp = if four { 4 } else { 2 };
            let schedule = build(name, &small(kind, tp)).expect("four GPUs in bridged pairs");
            insta::assert_snapshot!(format!("{name}-{kind}"), list(&schedule));
        }
    }
    let slabs = build("fusion-alltoall:slabs=2", &small(Kind::AgGemm, 2)).expect("two GPUs");
    insta::assert_snapshot!("fusion-alltoall-slabs-ag-gemm", list(&slabs));
}

#[test]
fn everything_tried_builds_or_says_why_not() {
    for kind in Kind::ALL {
        for tp in SIZES {
            let operator = small(kind, tp);
            for choice in strategy::candidates(&operator) {
                match build(&choice.to_string(), &operator) {
                    Ok(schedule) => {
                        assert_eq!(schedule.strategy, choice.to_string());
                        assert_eq!(schedule.dep_start.len(), schedule.tasks.len() + 1);
                        for (id, _) in schedule.tasks.iter().enumerate() {
                            let id = duet::schedule::TaskId(id as u32);
                            assert!(schedule.deps(id).iter().all(|dep| dep.task < id));
                        }
                    }
                    Err(skip) => assert!(skip.reason.len() > 10, "{choice}: {skip}"),
                }
            }
        }
    }
}

/// Every strategy with settings beyond those that a comparison tries.
fn settings(operator: &Operator) -> Vec<String> {
    let mut all: Vec<String> = strategy::candidates(operator)
        .iter()
        .map(ToString::to_string)
        .collect();
    for strategy in strategy::registry() {
        let name = strategy.name();
        let has = |param: &str| strategy.params().iter().any(|p| p.name == param);
        let mut add = |text: &str| all.push(format!("{name}:{text}"));
        if !strategy.applies(operator.kind) {
            continue;
        }
        if has("mover") {
            add("mover=sm:2");
        }
        if has("issue") {
            add("issue=pull");
        }
        if has("chunks") {
            add("chunks=3");
            add("chunks=2,mover=sm:1");
        }
        if has("slabs") {
            add("slabs=2");
            add("slabs=3,chunks=2,issue=pull");
        }
        if has("group") {
            add("group=2");
            add("group=4,mover=sm");
        }
        if has("comm") {
            add("d=2,margin=yes");
            add("d=2,comm=direct");
            add("d=4,comm=direct,issue=pull");
        }
    }
    all
}

#[test]
fn everything_verifies_and_computes_the_product() {
    let mut built = 0;
    for kind in Kind::ALL {
        for tp in SIZES {
            let operator = small(kind, tp);
            for text in settings(&operator) {
                for topology in [switch, circle, bridges].map(|make| make(tp as usize)) {
                    let Ok(schedule) = build_on(&topology, &text, &operator) else {
                        continue;
                    };
                    prove(&schedule, &topology);
                    built += 1;
                }
            }
        }
    }
    assert!(built > 400, "only {built} schedules were built");
}

/// The proof: verified, and interpreted in some random orders.
fn prove(schedule: &Schedule, topology: &Topology) {
    let sms = |gpu| {
        let device = topology.device(gpu);
        GpuSms {
            total: device.sms,
            collective: device.library.sms,
        }
    };
    let limits = Limits {
        budget: u64::MAX,
        sms: Some(&sms),
    };
    let what = format!("{} by {}", schedule.operator, schedule.strategy);
    match verify(schedule, &limits) {
        Ok(Verified::Yes { .. }) => {}
        other => panic!("{what} on {}: {other:?}\n{}", topology.name, list(schedule)),
    }
    if let Err(error) = interpret(schedule, 1, 4) {
        panic!("{what} on {}: {error}\n{}", topology.name, list(schedule));
    }
}

#[test]
fn everything_verifies_with_ranks_that_share_gpus_or_are_shuffled() {
    for kind in Kind::ALL {
        let operator = small(kind, 4);
        for placement in [[0, 0, 1, 1], [3, 1, 0, 2], [0, 1, 0, 1]] {
            let topology = bridges(4);
            for choice in strategy::candidates(&operator) {
                if let Ok(schedule) = choice.build(&operator, &topology, &placement) {
                    prove(&schedule, &topology);
                }
            }
        }
    }
}

#[test]
fn ring_all_gather_is_one_wait_per_transfer() {
    for n in SIZES {
        let operator = small(Kind::AllGather, n);
        let schedule = build("ring", &operator).unwrap();
        let n = n as usize;
        assert_eq!(schedule.tasks.len(), n * (n - 1));
        // The first step waits for nothing.
        assert_eq!(schedule.deps.len(), n * (n - 2));
        assert!(schedule.deps.iter().all(|dep| dep.via == Via::StreamFlag));
    }
}

#[test]
fn every_rank_sends_the_least_bytes() {
    // (n − 1)/n · S, all-reduce 2(n − 1)/n · S; an all-to-all round a ring sends them once per hop.
    for n in SIZES {
        for (kind, names) in [
            (Kind::AllGather, &["ring", "direct"][..]),
            (Kind::ReduceScatter, &["ring", "direct"]),
            (Kind::AllReduce, &["ring", "direct"]),
            (Kind::AllToAll, &["direct"]),
        ] {
            let operator = small(kind, n);
            for name in names {
                let schedule = build(name, &operator).unwrap();
                let least = operator.bytes_per_rank() as u64;
                assert_eq!(
                    sent(&schedule),
                    vec![least; n as usize],
                    "{name} {kind} {n}"
                );
            }
        }
        // Hops forwards 1 + … + n/2, backwards 1 + … + (n − 1)/2, S/n each.
        let operator = small(Kind::AllToAll, n);
        let (f, b) = (u64::from(n / 2), u64::from((n - 1) / 2));
        let hops = f * (f + 1) / 2 + b * (b + 1) / 2;
        let schedule = build("ring", &operator).unwrap();
        let bytes = hops * operator.message_bytes() / u64::from(n);
        assert_eq!(sent(&schedule), vec![bytes; n as usize]);
    }
}

#[test]
fn what_cannot_be_is_skipped_in_words() {
    let said = |text: &str, kind, tp| build(text, &small(kind, tp)).unwrap_err().reason;
    assert_eq!(
        said("ring", Kind::AgGemm, 4),
        "`ring` does not perform ag-gemm"
    );
    let operator = small(Kind::AllGather, 4);
    let choice = strategy::parse("ring").unwrap();
    let skip = choice.build(&operator, &switch(4), &[0, 1, 2]).unwrap_err();
    assert_eq!(skip.reason, "3 ranks placed, but the operator has 4");
    let skip = choice.build(&operator, &switch(3), &[0, 1, 2, 3]);
    assert_eq!(skip.unwrap_err().reason, "GPU 3 is none of switch's 3");
    assert_eq!(
        said("ring:chunks=64", Kind::AllGather, 4),
        "a shard of 3 rows cannot be cut into 64 chunks"
    );
    assert_eq!(
        said("fusion-alltoall:slabs=7", Kind::AgGemm, 2),
        "6 columns of A cannot be cut into 7 slabs"
    );
    assert_eq!(
        said("fusion-alltoall:slabs=2", Kind::GemmRs, 2),
        "slabs cut a gathered A along k, and gemm-rs gathers none"
    );
    let many = Operator::gemm(Kind::AgGemm, 4096, 64, 4096, 2, DType::Bf16).unwrap();
    let choice = strategy::parse("fusion-alltoall:chunks=1024,slabs=1024").unwrap();
    let refused = choice.build(&many, &switch(2), &[0, 1]).unwrap_err();
    assert_eq!(
        refused.reason,
        "chunks=1024 and slabs=1024 cut a shard into 1048576 pieces, more than 16384"
    );
    assert_eq!(
        said("fusion-alltoall:mover=loader", Kind::GemmRs, 2),
        "mover=loader brings the rows of A that others have, and gemm-rs gathers none"
    );
    assert_eq!(
        said("fusion-ring:mover=loader", Kind::AgGemm, 2),
        "mover=loader on a ring: what travels on has to arrive first; use fusion-alltoall"
    );
}
