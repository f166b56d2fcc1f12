//! A second fluid model, written to be obviously right and slow: at every event it solves all
//! flows afresh, by the textbook loop over all resources, and advances every flow. It shares no
//! code with the simulator, only the tie rule.

use duet::schedule::{Schedule, TaskId, Work};
use duet::sim::flows::Flow;
use duet::sim::fluid::TIE;
use duet::topology::Topology;
use duet::topology::route::Router;

/// Finish times; the same contract as `duet::sim::flows::run`.
pub fn run(capacities: &[f64], flows: &[Flow]) -> Vec<f64> {
    let mut remaining: Vec<f64> = flows.iter().map(|f| f.bytes).collect();
    let mut finish = vec![f64::NAN; flows.len()];
    let mut now = 0.0;
    let begin = |f: &Flow| f.start + f.latency;
    while finish.iter().any(|t| t.is_nan()) {
        let running: Vec<usize> = (0..flows.len())
            .filter(|&i| finish[i].is_nan() && begin(&flows[i]) <= now * (1.0 + TIE))
            .collect();
        let rates = max_min(capacities, flows, &running);
        let ends = running.iter().map(|&i| now + remaining[i] / rates[i]);
        let begins = (0..flows.len())
            .filter(|i| finish[*i].is_nan() && !running.contains(i))
            .map(|i| begin(&flows[i]));
        let next = ends.chain(begins).fold(f64::INFINITY, f64::min);
        assert!(next.is_finite(), "stuck at {now}");
        for &i in &running {
            let end = now + remaining[i] / rates[i];
            if end <= next * (1.0 + TIE) {
                finish[i] = next;
            } else {
                remaining[i] -= rates[i] * (next - now);
            }
        }
        now = next;
    }
    finish
}

/// Weighted max-min fair rates of `running`: find the resource with the lowest level
/// (capacity left / weight of its unfrozen flows), freeze its flows there, repeat.
pub fn max_min(capacities: &[f64], flows: &[Flow], running: &[usize]) -> Vec<f64> {
    let mut rates = vec![0.0; flows.len()];
    let mut open: Vec<usize> = running.to_vec();
    while !open.is_empty() {
        let level = |r: usize| {
            let crosses = |i: &usize| flows[*i].resources.contains(&(r as u32));
            let used: f64 = (running.iter().filter(|i| crosses(i) && !open.contains(i)))
                .map(|&i| rates[i])
                .sum();
            let weight: f64 = (open.iter().filter(|i| crosses(i)))
                .map(|&i| flows[i].weight)
                .sum();
            if weight > 0.0 {
                (capacities[r] - used) / weight
            } else {
                f64::INFINITY
            }
        };
        let (r, lowest) = (0..capacities.len())
            .map(|r| (r, level(r)))
            .min_by(|a, b| a.1.total_cmp(&b.1))
            .unwrap();
        for &i in &open {
            if flows[i].resources.contains(&(r as u32)) {
                rates[i] = lowest * flows[i].weight;
            }
        }
        open.retain(|&i| !flows[i].resources.contains(&(r as u32)));
    }
    rates
}

/// End of every task of a schedule of direct transfers between GPUs without limits of their own:
/// a task begins when its dependencies and the task before it in its lane have ended, flows after
/// its route's latency, and everything is solved afresh at every event. Copies within a GPU take
/// no time; nothing may wait for one in the same instant.
pub fn perform(schedule: &Schedule, topology: &Topology) -> Vec<f64> {
    let capacities: Vec<f64> = (topology.graph.edge_weights())
        .map(|link| link.bandwidth.get())
        .collect();
    let mut router = Router::new(topology);
    let flows: Vec<Flow> = (schedule.tasks.iter())
        .map(|task| {
            let Work::Transfer { from, to, .. } = task.work else {
                panic!("only transfers");
            };
            let [a, z] = [from, to].map(|slice| {
                let rank = schedule.rank_of(&slice);
                topology.gpus[schedule.placement[usize::from(rank.0)] as usize]
            });
            let mut links = Vec::new();
            let latency = if a == z {
                0.0 // within one GPU: no time
            } else {
                router.direct(a, z, &mut links).unwrap().unwrap().get()
            };
            Flow {
                start: f64::NAN,
                latency,
                bytes: schedule.bytes(&from) as f64,
                weight: 1.0,
                resources: links.iter().map(|link| link.index() as u32).collect(),
            }
        })
        .collect();
    let tasks = flows.len();
    let waits = |t: usize| -> Vec<usize> {
        let lane = |t: usize| (schedule.tasks[t].rank, schedule.tasks[t].lane);
        let before = (0..t).rev().find(|&other| lane(other) == lane(t));
        let deps = schedule.deps(TaskId(t as u32)).iter();
        deps.map(|dep| dep.task.index()).chain(before).collect()
    };
    let waits: Vec<Vec<usize>> = (0..tasks).map(waits).collect();
    let mut begin = vec![f64::NAN; tasks];
    let mut end = vec![f64::NAN; tasks];
    let mut remaining: Vec<f64> = flows.iter().map(|flow| flow.bytes).collect();
    let mut now = 0.0;
    while end.iter().any(|t| t.is_nan()) {
        for t in 0..tasks {
            if begin[t].is_nan() && waits[t].iter().all(|&other| !end[other].is_nan()) {
                begin[t] = now + flows[t].latency;
                if flows[t].resources.is_empty() {
                    end[t] = now;
                }
            }
        }
        let until = now * (1.0 + TIE);
        let running: Vec<usize> = (0..tasks)
            .filter(|&t| end[t].is_nan() && begin[t] <= until)
            .collect();
        let rates = max_min(&capacities, &flows, &running);
        let ends = running.iter().map(|&t| now + remaining[t] / rates[t]);
        let begins = (0..tasks).filter(|&t| begin[t] > until).map(|t| begin[t]);
        let next = ends.chain(begins).fold(f64::INFINITY, f64::min);
        if next.is_infinite() {
            assert!(end.iter().all(|t| !t.is_nan()), "stuck at {now}");
            break;
        }
        for &t in &running {
            if now + remaining[t] / rates[t] <= next * (1.0 + TIE) {
                end[t] = next;
            } else {
                remaining[t] -= rates[t] * (next - now);
            }
        }
        now = next;
    }
    end
}
