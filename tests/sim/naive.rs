//! A second fluid model, written to be obviously right and slow: at every event it solves all
//! flows afresh, by the textbook loop over all resources, and advances every flow. It shares no
//! code with the simulator, only the tie rule.

use duet::sim::flows::Flow;
use duet::sim::fluid::TIE;

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
