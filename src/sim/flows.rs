//! Independent flows over shared capacities: the event engine without a schedule.
//!
//! A flow waits until `start`, then its latency, then moves its bytes at its max-min fair speed.
//! Used to check the solver against other programs, which know flows but no schedules.
//!
//! ```
//! use duet::sim::flows::{Flow, run};
//! // Two equal flows share a link of 10 bytes/s: each moves 10 bytes at 5 bytes/s.
//! let flow = Flow { start: 0.0, latency: 0.5, bytes: 10.0, weight: 1.0, resources: vec![0] };
//! assert_eq!(run(&[10.0], &[flow.clone(), flow]), [2.5, 2.5]);
//! ```

use super::fluid::{Fluid, TIE, Usage};
use super::queue::Queue;

/// One flow.
#[derive(Clone, Debug, PartialEq)]
pub struct Flow {
    /// When it is asked for \[s\].
    pub start: f64,
    /// From being asked for to its first byte \[s\].
    pub latency: f64,
    /// Bytes to move.
    pub bytes: f64,
    /// Weight of its share.
    pub weight: f64,
    /// The resources it crosses, each once.
    pub resources: Vec<u32>,
}

/// Finish time of every flow \[s\]; `capacities` in bytes per second.
pub fn run(capacities: &[f64], flows: &[Flow]) -> Vec<f64> {
    let mut fluid = Fluid::new(capacities);
    let mut begins = Queue::new();
    for (id, flow) in flows.iter().enumerate() {
        begins.push(flow.start + flow.latency, id);
    }
    let mut finish = vec![0.0; flows.len()];
    let (mut batch, mut due, mut usages) = (Vec::new(), Vec::new(), Vec::new());
    loop {
        let next = [begins.next_time(), fluid.next_end()];
        let Some(now) = next.into_iter().flatten().reduce(f64::min) else {
            return finish;
        };
        let until = now * (1.0 + TIE);
        due.clear();
        fluid.take_due(until, &mut due);
        for &flow in &due {
            finish[fluid.tag(flow) as usize] = now;
            fluid.remove(flow);
        }
        while begins.next_time().is_some_and(|time| time <= until) {
            begins.pop_into(&mut batch);
            for &id in &batch {
                let flow: &Flow = &flows[id];
                if flow.bytes == 0.0 || flow.resources.is_empty() {
                    finish[id] = now;
                    continue;
                }
                usages.clear();
                usages.extend(flow.resources.iter().map(|&resource| Usage {
                    resource,
                    per_unit: 1.0,
                }));
                fluid.add(flow.bytes, flow.weight, f64::INFINITY, &usages, id as u32);
            }
        }
        fluid.solve(now);
    }
}
