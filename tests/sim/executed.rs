//! Schedules as real GPUs perform them: rewritten, enqueued beforehand, compute lanes merged.

use std::sync::Arc;

use duet::device::{self, DType, Device};
use duet::operator::{Kind, Operator};
use duet::schedule::lowered::{self, lower};
use duet::schedule::{Mover, Schedule, Task, Work};
use duet::sim::{Executed, Fused, LaunchMode, Tiled, Tiling, executed, simulate};
use duet::strategy;
use duet::topology::Topology;
use duet::topology::build::Builder;
use duet::topology::paths::with_path;
use duet::units::Seconds;

use crate::support::*;

const SHAPE: [u64; 3] = [4096, 8192, 8192];

fn machine(change: impl FnOnce(&mut Device)) -> Topology {
    let mut device = device::load("h200").unwrap();
    change(&mut device);
    let mut b = Builder::with_device("pair", Arc::new(device));
    let gpus = b.gpus(2);
    b.link(gpus[0], gpus[1], "nvlink", 400.0 * GB, 0.5 * US);
    let host = b.host("dram0");
    for gpu in gpus {
        b.link(gpu, host, "pcie", 50.0 * GB, 0.5 * US);
    }
    b.build()
}

fn built(kind: Kind, text: &str, placement: &[u32], topology: &Topology) -> Schedule {
    let [m, n, k] = SHAPE;
    let operator = Operator::gemm(kind, m, n, k, placement.len() as u32, DType::Bf16).unwrap();
    let choice = strategy::parse(text).unwrap();
    choice.build(&operator, topology, placement).unwrap()
}

fn makespan(schedule: &Schedule, topology: &Topology, launch: LaunchMode) -> f64 {
    let how = Executed {
        launch,
        ..Executed::default()
    };
    executed(schedule, topology, &how).unwrap().makespan
}

#[test]
fn every_strategy_runs_on_fewer_gpus_than_ranks() {
    let topology = machine(|_| {});
    for kind in [Kind::AgGemm, Kind::GemmRs, Kind::GemmAr] {
        for placement in [&[0, 0][..], &[0, 0, 1, 1], &[0, 1]] {
            let [m, n, k] = SHAPE;
            let ranks = placement.len() as u32;
            let operator = Operator::gemm(kind, m, n, k, ranks, DType::Bf16).unwrap();
            for choice in strategy::candidates(&operator) {
                let Ok(schedule) = choice.build(&operator, &topology, placement) else {
                    continue;
                };
                for launch in LaunchMode::ALL {
                    let how = Executed {
                        launch,
                        ..Executed::default()
                    };
                    let timeline = executed(&schedule, &topology, &how)
                        .unwrap_or_else(|error| panic!("{choice} on {placement:?}: {error}"));
                    assert_eq!(timeline.spans.len(), schedule.tasks.len());
                    let last = timeline
                        .spans
                        .iter()
                        .map(|span| span.end)
                        .fold(0.0, f64::max);
                    // A graph ends on the GPU where it was launched.
                    assert!(last <= timeline.makespan && timeline.makespan < last + 10.0 * US);
                }
            }
        }
    }
}

#[test]
fn ranks_of_one_gpu_compute_one_after_another() {
    // Two ranks on one GPU: as many GEMMs as on two, in one queue.
    let topology = machine(|_| {});
    let text = "sequential";
    let one = makespan(
        &built(Kind::AgGemm, text, &[0, 0], &topology),
        &topology,
        LaunchMode::Stream,
    );
    let device = topology.device(0);
    let [m, n, k] = SHAPE;
    let gemm = device::gemm::gemm(device, DType::Bf16, m, n / 2, k, device.sms)
        .unwrap()
        .seconds;
    assert!(one > 2.0 * gemm, "{one} {gemm}");
}

#[test]
fn a_fused_kernel_is_as_many_library_calls() {
    let topology = machine(|_| {});
    let schedule = built(Kind::AgGemm, "fusion-alltoall:chunks=4", &[0, 1], &topology);
    assert!(!schedule.launches.is_empty());
    let lowered = lower(&schedule, &lowered::Options::default());
    assert!(lowered.schedule.launches.is_empty());
    assert_eq!(lowered.origin.len(), lowered.schedule.tasks.len());
    // Cut into small GEMMs it takes longer than as one kernel, submission aside.
    let [m, n, k] = SHAPE;
    let whole = device::gemm::gemm(topology.device(0), DType::Bf16, m, n / 2, k, 132).unwrap();
    assert!(makespan(&schedule, &topology, LaunchMode::Stream) > whole.seconds);
}

/// One wave of tiles: with one flag they end a copy and a wave after the start, with S slabs a copy's
/// S-th part, S starts of copies at most and a wave; without a kernel slabs are products that add, of
/// which each has its own waves.
#[test]
fn slabs_open_a_fused_kernel_before_its_rows_are_there() {
    let topology = machine(|_| {});
    let operator = Operator::gemm(Kind::AgGemm, 512, 16384, 8192, 2, DType::Bf16).unwrap();
    let time = |slabs: u32, fuse| {
        let choice = strategy::parse(&format!("fusion-alltoall:slabs={slabs}")).unwrap();
        let schedule = choice.build(&operator, &topology, &[0, 1]).unwrap();
        let how = Executed {
            lowered: lowered::Options {
                fuse,
                ..lowered::Options::default()
            },
            ..Executed::default()
        };
        executed(&schedule, &topology, &how).unwrap().makespan
    };
    let copy = f64::from(256 * 8192 * 2) / (400.0 * GB);
    let start = topology.device(0).costs.copy_start.get();
    for slabs in [2, 4, 8] {
        let gained = time(1, true) - time(slabs, true);
        let most = copy * (1.0 - 1.0 / f64::from(slabs));
        assert!(
            gained <= most + US && gained >= most - f64::from(slabs) * start,
            "{slabs}: {gained}"
        );
        assert!(time(slabs, false) > time(1, false));
    }
}

#[test]
fn stated_costs_count_and_missing_ones_change_nothing() {
    let base = machine(|_| {});
    let schedule = built(Kind::AgGemm, "interdecom:d=4,comm=direct", &[0, 1], &base);
    let stream = makespan(&schedule, &base, LaunchMode::Stream);
    // What stands in for a missing cost, stated.
    let same = machine(|device| {
        let c = device.costs;
        device.costs.more.copy_next = Some(c.copy_start);
        device.costs.more.flag_local = Some(c.stream_flag);
        device.costs.more.flag_wait = Some(Seconds::ZERO);
        device.costs.more.graph_lane = Some(c.lane);
        device.costs.more.graph_kernel_start = Some(c.kernel_start);
    });
    for launch in LaunchMode::ALL {
        let here = makespan(&schedule, &same, launch);
        assert_eq!(here, makespan(&schedule, &base, launch));
    }
    // A run of 10 us is there once; a wait of 1 us at least before each of the GEMMs but the first.
    let run = machine(|device| {
        device.costs.event = Seconds::ZERO;
        device.costs.more.run = Some(Seconds::of(10.0 * US));
    });
    let free = machine(|device| device.costs.event = Seconds::ZERO);
    let difference = makespan(&schedule, &run, LaunchMode::Stream)
        - makespan(&schedule, &free, LaunchMode::Stream);
    assert_close(difference, 10.0 * US, 1e-9);
    let waits = machine(|device| device.costs.more.flag_wait = Some(Seconds::of(1.0 * US)));
    assert!(makespan(&schedule, &waits, LaunchMode::Stream) > stream);
    assert_eq!(
        makespan(&schedule, &waits, LaunchMode::Graph),
        makespan(&schedule, &base, LaunchMode::Graph)
    );
}

#[test]
fn a_graph_reaches_another_gpu_and_comes_back() {
    // An edge between GPUs at both ends of the run, where the same work is on both.
    let base = machine(|_| {});
    let schedule = built(Kind::AgGemm, "fusion-alltoall", &[0, 1], &base);
    let with = |edge: f64| {
        let topology = machine(|device| {
            device.costs.more.graph_event_peer = Some(Seconds::of(edge));
            device.costs.more.graph_event = Some(Seconds::ZERO);
        });
        makespan(&schedule, &topology, LaunchMode::Graph)
    };
    let difference = with(6.0 * US) - with(0.0);
    assert!(difference > 12.0 * US * (1.0 - 1e-9), "{difference}");
}

#[test]
fn gpus_that_wait_inside_kernels_alone_have_graphs_of_their_own() {
    // T(edge) = T(0): no edge lies between the GPUs. Where products wait in streams, or for a
    // collective, one graph is for both.
    // So it is through the host, where each half of a transfer waits for the other. m is so large that
    // copies are hidden: a flag behind one is not told of by an edge, but simulated as if.
    let base = machine(|_| {});
    let with = |(strategy, path): (&str, &str), fuse: bool, edge: f64| {
        let schedule = built(Kind::AgGemm, strategy, &[0, 1], &base);
        let topology = machine(|device| {
            device.costs.more.graph_event_peer = Some(Seconds::of(edge));
        });
        let topology = with_path(&topology, path.parse().unwrap());
        let how = Executed {
            launch: LaunchMode::Graph,
            lowered: lowered::Options {
                fuse,
                ..lowered::Options::default()
            },
            ..Executed::default()
        };
        executed(&schedule, &topology, &how).unwrap().makespan
    };
    let difference = |how, fuse| with(how, fuse, 6.0 * US) - with(how, fuse, 0.0);
    let edges = 12.0 * US * (1.0 - 1e-9);
    assert_eq!(difference(("fusion-alltoall", "p2p"), true), 0.0);
    assert!(difference(("fusion-alltoall", "p2p"), false) > edges);
    assert!(difference(("fusion-alltoall", "host:1MiB"), true) > edges);
    assert!(difference(("fusion-ring", "hybrid:0.2:1MiB"), true) > edges);
    assert!(difference(("sequential", "p2p"), true) > 0.0);
}

#[test]
fn queues_that_share_a_copy_engine_take_turns() {
    // Two queues of one GPU, a copy of each: the first is told only after the second, at the next
    // turn of its queue, so that both GEMMs that wait begin after all copies.
    let topology = machine(|device| device.engines.peer = 1);
    let schedule = built(
        Kind::AgGemm,
        "interdecom:d=1,comm=direct",
        &[0, 0, 1, 1],
        &topology,
    );
    let timeline = executed(&schedule, &topology, &Executed::default()).unwrap();
    let spans = || schedule.tasks.iter().zip(&timeline.spans);
    let across = |task: &Task| match task.work {
        Work::Transfer { from, to, .. } => {
            let gpu = |slice| schedule.placement[usize::from(schedule.rank_of(slice).0)];
            gpu(&from) != gpu(&to)
        }
        _ => false,
    };
    let mut ends: Vec<f64> = (spans())
        .filter(|(task, _)| across(task) && task.rank.0 < 2)
        .map(|(_, span)| span.end)
        .collect();
    ends.sort_by(f64::total_cmp);
    // Each rank of GPU 0 sends to both ranks of GPU 1, in four queues.
    assert_eq!(ends.len(), 4);
    let first = (spans())
        .filter(|(task, _)| task.rank.0 >= 2 && task.lane.0 == 0)
        .map(|(_, span)| span.start)
        .fold(f64::INFINITY, f64::min);
    assert!(first > ends[3], "{first} {ends:?}");
}

/// Two H200 linked by so many GB/s: a copy takes nothing of the memory that a GEMM needs, and the link alone
/// limits it.
fn linked(rate: f64) -> Topology {
    let mut device = device::load("h200").unwrap();
    device.hbm = duet::units::BytesPerSecond::of(1e6 * GB);
    device.peer_copy = duet::units::BytesPerSecond::of(1e6 * GB);
    let mut b = Builder::with_device("pair", Arc::new(device));
    let gpus = b.gpus(2);
    b.link(gpus[0], gpus[1], "nvlink", rate * GB, 0.5 * US);
    b.build()
}

/// The time of a GEMM+RS on two GPUs by own kernels.
fn reduced(text: &str, topology: &Topology, [m, n, k]: [u64; 3]) -> f64 {
    let operator = Operator::gemm(Kind::GemmRs, m, n, k, 2, DType::Bf16).unwrap();
    let choice = strategy::parse(text).unwrap();
    let schedule = choice.build(&operator, topology, &[0, 1]).unwrap();
    let how = Executed {
        lowered: lowered::Options {
            fuse: true,
            ..lowered::Options::default()
        },
        ..Executed::default()
    };
    executed(&schedule, topology, &how).unwrap().makespan
}

/// GEMM+RS on two GPUs whose own kernels add to what arrives: one launch. With T its time, w a wave, C the
/// shard's bytes, the half for the other GPU is there at e₁ = start + max(T/2, w), its sum one copy later,
/// and the own half is
///
/// ```text
/// start + T                                                where the sum comes within the first wave
/// e₁ + flag + copy + flag + 2 C/memory's rate + (T/2 − w)   else: an SM holds the sums of one tile, and
///                                                          takes the next when they are stored
/// ```
#[test]
fn a_sum_waits_for_its_arrival_when_it_is_multiplied() {
    let end = |topology: &Topology, shape| reduced("fusion-ring:chunks=1", topology, shape);
    let (fast, slow) = (linked(1e5), linked(20.0));
    let device = fast.device(0);
    // A wave for each half, and four.
    for shape in [[1024, 8192, 16384], [4096, 8192, 16384]] {
        let [m, n, k] = shape;
        let whole = device::gemm::gemm(device, DType::Bf16, m, n, k / 2, device.sms).unwrap();
        let c = device.costs;
        let start = c.kernel_start.get() + whole.overhead;
        let time = whole.seconds + whole.cold - whole.overhead;
        assert_close(end(&fast, shape), start + time, 1e-3);
        let bytes = (m / 2 * n * 2) as f64;
        let told = start + f64::max(time / 2.0, whole.wave) + c.stream_flag.get();
        let copy = c.copy_start.get() + 0.5 * US + bytes / (20.0 * GB);
        let added = 2.0 * bytes / (1e6 * GB);
        let rest = (time / 2.0 - whole.wave).max(0.0);
        let expected = told + copy + c.kernel_flag.get() + added + rest;
        assert_close(end(&slow, shape), expected, 1e-3);
    }
}

/// The same where epilogues store into the other GPU. With B the link's rate, B_s the rate of stores by SMs over
/// it, L its latency, C_w the bytes of a wave, at most C, and e₁ as there, the sum is there at
///
/// ```text
/// f = max(start + w + L + C / B_s, e₁ + L + C_w / B_s)
/// ```
///
/// and its flag one kernel flag later: no copy starts, and what is stored before the last wave travels beside the
/// product. The own half ends as there.
#[test]
fn tiles_that_are_stored_on_the_other_gpu_travel_beside_the_product() {
    let text = "fusion-ring:chunks=1,mover=epilogue";
    for rate in [1e5, 400.0, 20.0] {
        let topology = linked(rate);
        let device = topology.device(0);
        let rate = rate * GB * device.sm_copy_efficiency;
        for shape in [[1024, 8192, 16384], [1024, 4096, 8192], [4096, 8192, 16384]] {
            let [m, n, k] = shape;
            let whole = device::gemm::gemm(device, DType::Bf16, m, n, k / 2, device.sms).unwrap();
            let start = device.costs.kernel_start.get() + whole.overhead;
            let time = whole.seconds + whole.cold - whole.overhead;
            let (half, wave) = (time / 2.0, whole.wave);
            let bytes = (m / 2 * n * 2) as f64;
            let last = bytes * (wave / half).min(1.0);
            let latency = 0.5 * US;
            let flows = start + wave + latency + bytes / rate;
            let there = f64::max(flows, start + half.max(wave) + latency + last / rate)
                + device.costs.kernel_flag.get();
            let in_time = there <= f64::min(start + time, start + half + wave);
            let expected = match in_time {
                true => start + f64::max(time, half + wave),
                false => f64::max(
                    start + time,
                    there + 2.0 * last / (1e6 * GB) + (half - wave).max(0.0),
                ),
            };
            let found = reduced(text, &topology, shape);
            assert_close(found, expected, 1e-3);
            // A copy starts later, and its flag is written by its queue; but it fills the link better.
            let copied = reduced("fusion-ring:chunks=1", &topology, shape);
            assert!(found <= copied * 1.0001 || rate < 100.0 * GB);
        }
    }
}

/// Slab after slab, from the moment on at which the kernel may begin, with B bytes each and in flight on every SM
/// 32 · 8 of the 1024 · 4 accesses of a block that copies:
///
/// ```text
/// end of slab i = open + (i + 1) · (start of a copy by SMs + latency + B / min(link, SMs · 32·8/(1024·4) · rate of a block))
/// ```
#[test]
fn a_kernel_brings_its_rows_slab_after_slab_as_it_begins() {
    let topology = machine(|_| {});
    let device = topology.device(0);
    let operator = Operator::gemm(Kind::AgGemm, 512, 16384, 8192, 2, DType::Bf16).unwrap();
    let run = |text: &str| {
        let choice = strategy::parse(text).unwrap();
        let schedule = choice.build(&operator, &topology, &[0, 1]).unwrap();
        let how = Executed {
            lowered: lowered::Options {
                fuse: true,
                ..lowered::Options::default()
            },
            ..Executed::default()
        };
        let timeline = executed(&schedule, &topology, &how).unwrap();
        let transfers = (0..schedule.tasks.len()).filter(|&t| {
            let task = &schedule.tasks[t];
            task.rank.0 == 0 && matches!(task.work, Work::Transfer { .. })
        });
        let spans: Vec<_> = transfers.map(|t| timeline.spans[t]).collect();
        (spans, timeline.makespan)
    };
    let rate = f64::min(
        400.0 * GB * device.sm_copy_efficiency,
        device.sm_copy.get() * f64::from(device.sms) / 16.0,
    );
    for slabs in [1, 4] {
        let bytes = f64::from(256 * 8192 * 2 / slabs);
        let each = device.costs.sm_copy_start.get() + 0.5 * US + bytes / rate;
        let (spans, makespan) = run(&format!("fusion-alltoall:slabs={slabs},mover=loader"));
        assert_eq!(spans.len(), slabs as usize);
        let open = spans[0].start;
        assert!(open >= device.costs.kernel_start.get());
        for (i, span) in spans.iter().enumerate() {
            assert_close(span.end - open, (i + 1) as f64 * each, 1e-6);
        }
        // The kernel is not over before they are, and a copy engine begins later.
        assert!(spans.last().unwrap().end < makespan);
        assert!(slabs == 1 || makespan < run("fusion-alltoall:mover=loader").1);
    }
}

#[test]
fn no_copy_follows_loaders_in_their_lane() {
    let operator = Operator::gemm(Kind::AgGemm, 512, 1024, 512, 2, DType::Bf16).unwrap();
    let topology = machine(|_| {});
    let choice = strategy::parse("fusion-alltoall:slabs=2,mover=loader").unwrap();
    let schedule = choice.build(&operator, &topology, &[0, 1]).unwrap();
    let how = duet::sim::Options::default();
    let said = |schedule: &Schedule, topology: &Topology| {
        simulate(schedule, topology, &how).unwrap_err().to_string()
    };
    assert!(simulate(&schedule, &topology, &how).is_ok());
    // The second of two slabs by a copy engine.
    let mut mixed = schedule.clone();
    let own = |task: &&mut Task| task.rank.0 == 0 && matches!(task.work, Work::Transfer { .. });
    let second = mixed.tasks.iter_mut().filter(own).nth(1).unwrap();
    if let Work::Transfer { mover, .. } = &mut second.work {
        *mover = Mover::CopyEngine;
    }
    let text = said(&mixed, &topology);
    assert!(
        text.contains("cannot be performed by the product that reads it: task")
            && text.ends_with("follows it in its lane, but nothing there waits for what a product brings; use another lane"),
        "{text}"
    );
}

/// A kernel whose tiles are known spreads its stores over a share of the next wave, if there is one: with it the sum
/// of the last wave is there at e₁ + L + max(C_w / B_s, p w), which shows in one long enough to be late.
#[test]
fn stores_are_spread_over_the_wave_that_follows() {
    let topology = linked(400.0);
    let device = topology.device(0);
    let (m, n, k) = (1024, 4096, 8192);
    let whole = device::gemm::gemm(device, DType::Bf16, m, n, k / 2, device.sms).unwrap();
    let start = device.costs.kernel_start.get() + whole.overhead;
    let time = whole.seconds + whole.cold - whole.overhead;
    let bytes = (m / 2 * n * 2) as f64;
    let link = 0.5 * US + bytes / (400.0 * GB * device.sm_copy_efficiency);
    let end = |tiling: Tiling| {
        let operator = Operator::gemm(Kind::GemmRs, m, n, k, 2, DType::Bf16).unwrap();
        let choice = strategy::parse("fusion-ring:chunks=1,mover=epilogue").unwrap();
        let schedule = choice.build(&operator, &topology, &[0, 1]).unwrap();
        let how = Executed {
            lowered: lowered::Options {
                fuse: true,
                ..lowered::Options::default()
            },
            tiling: Some(tiling),
            ..Executed::default()
        };
        executed(&schedule, &topology, &how).unwrap().makespan
    };
    let tiles = |wave: fn(&Fused<'_>, Option<usize>) -> Option<Tiled>, pace| Tiling {
        find: wave,
        tile: None,
        pace,
    };
    let two = |_: &Fused<'_>, _: Option<usize>| {
        Some(Tiled {
            time: 1.0,
            wave: 0.5,
        })
    };
    let one = |_: &Fused<'_>, _: Option<usize>| {
        Some(Tiled {
            time: 1.0,
            wave: 1.0,
        })
    };
    // Two waves, each of one half: in time, and as late as the pace says.
    assert_close(end(tiles(two, 0.6)), start + time, 1e-3);
    let late = start + time / 2.0 + 0.5 * US + 1.5 * time / 2.0;
    let told = late + device.costs.kernel_flag.get() + 2.0 * bytes / (1e6 * GB);
    assert_close(end(tiles(two, 1.5)), told, 1e-3);
    // Both halves in one wave: nothing to spread stores over.
    let told = start + time + link + device.costs.kernel_flag.get() + 2.0 * bytes / (1e6 * GB);
    assert_close(end(tiles(one, 1.5)), told, 1e-3);
}

/// What an epilogue cannot do is an error of the simulation, and stores within a GPU take nothing.
#[test]
fn epilogues_are_simulated_where_there_are_some() {
    let topology = machine(|_| {});
    let text = "fusion-alltoall:mover=epilogue";
    let schedule = built(Kind::GemmRs, text, &[0, 1], &topology);
    let refused = executed(&schedule, &topology, &Executed::default()).unwrap_err();
    assert_eq!(
        refused.to_string(),
        "task 4 (rank 0, lane peer +1, transfer) cannot be performed by an epilogue: C_partial[rank 0, slot 0, rows 2048..4096, cols 0..8192] is not what one tile group of a fused kernel computes"
    );
    for placement in [&[0, 1][..], &[0, 0], &[0, 1, 0, 1]] {
        for kind in [Kind::GemmRs, Kind::GemmAr] {
            let schedule = built(kind, text, placement, &topology);
            let options = duet::sim::Options::default();
            let timeline = duet::sim::simulate(&schedule, &topology, &options).unwrap();
            let by_engine = built(kind, "fusion-alltoall", placement, &topology);
            let copied = duet::sim::simulate(&by_engine, &topology, &options).unwrap();
            let bytes =
                |t: &duet::timeline::Timeline| -> f64 { t.links.iter().map(|l| l.bytes).sum() };
            let difference = (bytes(&timeline) - bytes(&copied)).abs();
            assert!(difference <= 1e-9 * bytes(&copied), "{difference}");
            assert!(timeline.makespan <= copied.makespan);
        }
    }
}
