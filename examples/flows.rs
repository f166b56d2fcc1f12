//! Flows over shared links: a generator of random platforms, and Duet's finish times beside those
//! of another simulator.
//!
//! ```text
//! flows generate DIR COUNT SEED   writes COUNT platforms of each set into DIR/*.flows
//! flows finish FILE               prints one finish time [s] per flow
//! flows compare DIR TOLERANCE     reads DIR/NAME.flows and DIR/NAME.finish, prints the largest
//!                                 relative difference per set, fails above TOLERANCE
//! ```
//!
//! The format is described in `benches/peers/simgrid/flows.cpp`, which performs the same files.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;
use std::process::ExitCode;

use duet::sim::flows::{Flow, run};

type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = args.iter().map(String::as_str).collect();
    let done = match words[..] {
        ["generate", dir, count, seed] => generate(Path::new(dir), count, seed),
        ["finish", file] => finish(Path::new(file)),
        ["compare", dir, tolerance] => compare(Path::new(dir), tolerance),
        _ => {
            Err("usage: flows generate DIR COUNT SEED | finish FILE | compare DIR TOLERANCE".into())
        }
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("flows: {error}");
            ExitCode::FAILURE
        }
    }
}

/// A file of flows, ready for the solver.
struct Case {
    capacities: Vec<f64>,
    flows: Vec<Flow>,
}

/// Reads a file of flows. A flow weighs the inverse of its route's latency under
/// `weights latency` (1 where that is zero, as SimGrid does), 1 under `weights one`.
fn read(path: &Path) -> Result<Case> {
    let text = std::fs::read_to_string(path)?;
    let mut by_latency = false;
    let mut latencies: Vec<f64> = Vec::new();
    let mut routes: BTreeMap<(usize, usize), Vec<u32>> = BTreeMap::new();
    let mut case = Case {
        capacities: Vec::new(),
        flows: Vec::new(),
    };
    for (number, line) in text.lines().enumerate() {
        let words: Vec<&str> = line.split_whitespace().collect();
        match words[..] {
            [] | ["hosts", _] | ["weights", "one"] => {}
            ["weights", "latency"] => by_latency = true,
            ["link", bandwidth, latency] => {
                case.capacities.push(bandwidth.parse()?);
                latencies.push(latency.parse()?);
            }
            ["route", from, to, ref links @ ..] => {
                let links: std::result::Result<_, _> = links.iter().map(|l| l.parse()).collect();
                routes.insert((from.parse()?, to.parse()?), links?);
            }
            ["flow", start, from, to, bytes] => {
                let resources = routes
                    .get(&(from.parse()?, to.parse()?))
                    .ok_or_else(|| format!("line {}: flow without a route", number + 1))?
                    .clone();
                let latency: f64 = resources.iter().map(|l| latencies[*l as usize]).sum();
                let inverse = by_latency && latency > 0.0;
                case.flows.push(Flow {
                    start: start.parse()?,
                    latency,
                    bytes: bytes.parse()?,
                    weight: if inverse { 1.0 / latency } else { 1.0 },
                    resources,
                });
            }
            _ => return Err(format!("{}: line {}: `{line}`", path.display(), number + 1).into()),
        }
    }
    Ok(case)
}

fn finish(path: &Path) -> Result<()> {
    let case = read(path)?;
    for time in run(&case.capacities, &case.flows) {
        println!("{time}");
    }
    Ok(())
}

/// What was compared in one set, and how far apart it was.
#[derive(Default)]
struct Difference {
    platforms: usize,
    flows: usize,
    largest: f64,
    /// Platform and flow of the largest difference.
    at: String,
}

fn compare(dir: &Path, tolerance: &str) -> Result<()> {
    let tolerance: f64 = tolerance.parse()?;
    let mut files: Vec<_> = std::fs::read_dir(dir)?
        .map(|entry| entry.map(|e| e.path()))
        .collect::<std::result::Result<_, _>>()?;
    files.retain(|path| path.extension().is_some_and(|e| e == "flows"));
    files.sort();
    let mut sets: BTreeMap<String, Difference> = BTreeMap::new();
    for path in &files {
        let name = path.file_stem().unwrap_or_default().to_string_lossy();
        let set = name.trim_end_matches(|c: char| c == '-' || c.is_ascii_digit());
        let case = read(path)?;
        let ours = run(&case.capacities, &case.flows);
        let theirs: Vec<f64> = std::fs::read_to_string(path.with_extension("finish"))?
            .lines()
            .map(str::parse)
            .collect::<std::result::Result<_, _>>()?;
        if ours.len() != theirs.len() || ours.len() != case.flows.len() {
            return Err(format!("{name}: {} and {} times", ours.len(), theirs.len()).into());
        }
        let difference = sets.entry(set.to_owned()).or_default();
        difference.platforms += 1;
        difference.flows += ours.len();
        for (flow, (a, b)) in ours.iter().zip(&theirs).enumerate() {
            let relative = ((a - b) / b).abs();
            // In the total order NaN is above all numbers, so that it is kept and fails.
            if relative.total_cmp(&difference.largest).is_gt() {
                difference.largest = relative;
                difference.at = format!("{name} flow {flow}: {a} against {b} s");
            }
        }
    }
    let mut far = sets.is_empty();
    for (set, d) in &sets {
        println!(
            "{set}: {} platforms, {} flows, max relative difference {:.2e} ({})",
            d.platforms, d.flows, d.largest, d.at
        );
        far |= d.largest.total_cmp(&tolerance).is_gt();
    }
    if far {
        return Err(format!("finish times differ by more than {tolerance:e}").into());
    }
    Ok(())
}

fn generate(dir: &Path, count: &str, seed: &str) -> Result<()> {
    let (count, seed): (u64, u64) = (count.parse()?, seed.parse()?);
    std::fs::create_dir_all(dir)?;
    for number in 0..count {
        for (set, weights) in [("latency-weights", "latency"), ("equal-latency", "one")] {
            let mut random = Random(seed ^ (number << 32) ^ (weights.len() as u64));
            let text = platform(&mut random, weights == "one", number);
            let text = format!("weights {weights}\n{text}");
            std::fs::write(dir.join(format!("{set}-{number:03}.flows")), text)?;
        }
    }
    Ok(())
}

/// One random platform with its flows: hosts and switches joined by a random tree and a few more
/// cables, full or half duplex; least-cost routes under random costs; flows between random pairs.
///
/// With `equal`, every host sends through a link of its own that has all the latency, so that all
/// routes are equally long. Otherwise links have random latencies, or, on every fourth platform,
/// none has any.
fn platform(random: &mut Random, equal: bool, number: u64) -> String {
    let hosts = random.between(2, 20);
    let nodes = hosts + random.between(1, 8);
    // Few distinct bandwidths make ties, many make none.
    let few = random.chance(0.4);
    let latency = random.log(1e-7, 1e-4);
    let silent = !equal && number % 4 == 3;
    let mut links: Vec<(f64, f64)> = Vec::new();
    let link = |random: &mut Random, links: &mut Vec<(f64, f64)>| {
        let bandwidth = if few {
            [12.5e9, 25e9, 50e9][random.below(3)]
        } else {
            random.log(1e9, 1e11).round()
        };
        let own = if equal || silent {
            0.0
        } else {
            latency * random.log(0.1, 10.0)
        };
        links.push((bandwidth, own));
        links.len() - 1
    };

    // edges[a] holds (b, link, cost) for each way out of a.
    let mut edges: Vec<Vec<(usize, usize, f64)>> = vec![Vec::new(); nodes];
    // Switches come first in the tree, so that hosts hang off switches or off other hosts.
    let order: Vec<usize> = (hosts..nodes).chain(0..hosts).collect();
    let extra = random.below(nodes);
    for i in 1..nodes + extra {
        let (a, b) = if i < nodes {
            (order[i], order[random.below(i)])
        } else {
            (random.below(nodes), random.below(nodes))
        };
        if a == b {
            continue;
        }
        let forth = link(random, &mut links);
        let back = if random.chance(0.75) {
            link(random, &mut links)
        } else {
            forth
        };
        edges[a].push((b, forth, random.log(1.0, 10.0)));
        edges[b].push((a, back, random.log(1.0, 10.0)));
    }
    let access: Vec<usize> = (0..if equal { hosts } else { 0 })
        .map(|_| {
            let own = link(random, &mut links);
            links[own].1 = latency;
            own
        })
        .collect();

    let mut text = format!("hosts {hosts}\n");
    for (bandwidth, latency) in &links {
        let _ = writeln!(text, "link {bandwidth} {latency}");
    }
    let pattern = random.below(3);
    let same_size = random.chance(0.3);
    let size = random.log(1e4, 1e8).round();
    let mut routed: Vec<(usize, usize)> = Vec::new();
    let mut flows = String::new();
    for _ in 0..random.between(2, 150) {
        let from = random.below(hosts);
        let to = (from + 1 + random.below(hosts - 1)) % hosts;
        if !routed.contains(&(from, to)) {
            routed.push((from, to));
            let _ = write!(text, "route {from} {to}");
            for link in access.get(from).into_iter().chain(&route(&edges, from, to)) {
                let _ = write!(text, " {link}");
            }
            text.push('\n');
        }
        let start = match pattern {
            0 => 0.0,
            1 => random.below(5) as f64 * 1e-3,
            _ => random.unit() * 10e-3,
        };
        let bytes = if same_size {
            size
        } else {
            random.log(1e3, 1e8).round()
        };
        let _ = writeln!(flows, "flow {start} {from} {to} {bytes}");
    }
    text + &flows
}

/// Links of the least-cost way (Bellman-Ford: the platforms are small).
fn route(edges: &[Vec<(usize, usize, f64)>], from: usize, to: usize) -> Vec<usize> {
    let mut cost = vec![f64::INFINITY; edges.len()];
    let mut came: Vec<Option<(usize, usize)>> = vec![None; edges.len()];
    cost[from] = 0.0;
    for _ in 1..edges.len() {
        for a in 0..edges.len() {
            for &(b, link, edge) in &edges[a] {
                if cost[a] + edge < cost[b] {
                    cost[b] = cost[a] + edge;
                    came[b] = Some((a, link));
                }
            }
        }
    }
    let mut links = Vec::new();
    let mut at = to;
    while let Some((before, link)) = came[at] {
        links.push(link);
        at = before;
    }
    links.reverse();
    links
}

/// SplitMix64 (Steele, Lea, Flood: Fast splittable pseudorandom number generators, 2014).
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Uniform in [0, 1).
    fn unit(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// Uniform in 0..n.
    fn below(&mut self, n: usize) -> usize {
        (self.unit() * n as f64) as usize
    }

    /// Uniform in low..=high.
    fn between(&mut self, low: usize, high: usize) -> usize {
        low + self.below(high - low + 1)
    }

    /// Log-uniform between `low` and `high`.
    fn log(&mut self, low: f64, high: f64) -> f64 {
        low * (high / low).powf(self.unit())
    }

    fn chance(&mut self, probability: f64) -> bool {
        self.unit() < probability
    }
}
