//! Two calibrations number by number.

use std::collections::BTreeMap;

use super::file::MARK;
use crate::device;
use crate::device::gemm::library::{ALIGNED, Library};
use crate::topology::{self, Topology, TopologyError};

/// A number of two calibrations.
#[derive(Clone, Debug, PartialEq)]
pub struct Difference {
    pub name: String,
    pub values: [Option<f64>; 2],
}

impl Difference {
    /// Second over first, less 1; `None` where one is missing or 0.
    pub fn relative(&self) -> Option<f64> {
        let [one, two] = self.values;
        let (one, two) = one.zip(two).filter(|(one, _)| *one != 0.0)?;
        Some(two / one - 1.0)
    }
}

/// The numbers of a machine: profiles, GEMMs, links, shared capacities.
fn numbers(topology: &Topology) -> Vec<(String, f64)> {
    let mut all = Vec::new();
    for (i, gpu) in topology.devices.iter().enumerate() {
        let profile = match topology.devices.len() {
            1 => String::new(),
            _ => format!("profile {i}: "),
        };
        let own = device::numbers(gpu);
        all.extend(
            own.into_iter()
                .map(|n| (format!("{profile}{}", n.name), n.value)),
        );
        if let Some(library) = gpu.gemm_library.as_deref() {
            all.extend(kernels(&profile, library));
        }
        for point in &gpu.gemm_table {
            let device::MeasuredGemm { m, n, k, time, .. } = point;
            all.push((format!("{profile}gemm m={m} n={n} k={k}"), time.get()));
        }
    }
    for id in topology.graph.edge_indices() {
        let Some((from, to)) = topology.graph.edge_endpoints(id) else {
            continue;
        };
        let link = &topology.graph[id];
        let [from, to] = [from, to].map(|node| topology.graph[node].name.as_str());
        let name = format!("link {from}->{to}");
        all.push((format!("{name} bandwidth"), link.bandwidth.get()));
        all.push((format!("{name} latency"), link.latency.get()));
    }
    for shared in &topology.shared {
        all.push((format!("shared {}", shared.name), shared.bandwidth.get()));
    }
    all
}

/// Rates and efficiencies of a library of GEMMs.
fn kernels(profile: &str, library: &Library) -> Vec<(String, f64)> {
    let aligned = (ALIGNED, library.rates);
    let mut all = Vec::new();
    for (align, rates) in [aligned].iter().chain(&library.unaligned) {
        let numbers = [
            ("arithmetic", rates.arithmetic),
            ("memory", rates.memory),
            ("overhead", rates.overhead),
            ("load", rates.load.get()),
            ("epilogue", rates.epilogue.get()),
            ("partials", rates.partials.get()),
            ("latency", rates.latency.get()),
            ("cached", rates.cached),
            ("reduction", rates.reduction.get()),
        ];
        let name = |name| format!("{profile}gemm rates of {align} bytes: {name}");
        all.extend(numbers.map(|(key, value)| (name(key), value)));
    }
    for algorithm in &library.algorithms {
        let (rows, columns) = algorithm.tile;
        let (parts, align) = (algorithm.split, algorithm.align);
        let (over, across) = algorithm.cluster;
        let name = format!("{profile}gemm tile {rows}x{columns}/{parts}+{over}x{across}@{align}");
        all.push((name, algorithm.efficiency));
    }
    all
}

/// The facts that a calibration's comments state.
fn facts(text: &str) -> Vec<(String, f64)> {
    let lines = text.lines().filter_map(|line| line.strip_prefix(MARK));
    lines
        .filter_map(|line| {
            let (name, rest) = line.split_once(" = ")?;
            let value = rest.split_whitespace().next()?.parse().ok()?;
            Some((format!("fact {name}"), value))
        })
        .collect()
}

/// Sets two calibrations (names or paths of topologies) against each other, in the order of the
/// first, then what only the second has.
///
/// # Errors
/// [`TopologyError`] for one that cannot be read.
pub fn compare(one: &str, two: &str) -> Result<Vec<Difference>, TopologyError> {
    let read = |name: &str| -> Result<Vec<(String, f64)>, TopologyError> {
        let mut all = numbers(&topology::load(name, &[])?);
        // A shipped machine has a name and no file; its facts are not compared.
        if let Ok(text) = std::fs::read_to_string(name) {
            all.extend(facts(&text));
        }
        Ok(all)
    };
    let (first, second) = (read(one)?, read(two)?);
    let by_name = |all: &[(String, f64)]| all.iter().cloned().collect::<BTreeMap<_, _>>();
    let (known, others) = (by_name(&first), by_name(&second));
    let mut rows: Vec<Difference> = first
        .into_iter()
        .map(|(name, value)| Difference {
            values: [Some(value), others.get(&name).copied()],
            name,
        })
        .collect();
    let rest = second
        .into_iter()
        .filter(|(name, _)| !known.contains_key(name));
    rows.extend(rest.map(|(name, value)| Difference {
        name,
        values: [None, Some(value)],
    }));
    Ok(rows)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_machine_is_as_itself() {
        let rows = compare("h200-pair", "h200-pair").unwrap();
        assert!(rows.len() > 80);
        for row in &rows {
            assert_eq!(row.values[0], row.values[1]);
            assert!(row.relative().is_none_or(|r| r == 0.0));
        }
        assert!(
            rows.iter()
                .any(|row| row.name == "link gpu0->gpu1 bandwidth")
        );
        assert!(
            rows.iter()
                .any(|row| row.name == "gemm m=512 n=6144 k=12288")
        );
    }

    #[test]
    fn rates_and_tiles_are_compared() {
        let rows = compare("h200-pair-calibrated", "h200-pair").unwrap();
        let row = |name: &str| rows.iter().find(|row| row.name == name);
        assert!(row("gemm rates of 16 bytes: arithmetic").is_some());
        assert!(row("gemm rates of 2 bytes: arithmetic").unwrap().values[0] < Some(0.3));
        assert!(row("gemm tile 128x256/1+2x1@16").is_some());
    }

    #[test]
    fn what_differs_is_stated_as_a_ratio() {
        let rows = compare("h200-pair", "h100-nvswitch-8").unwrap();
        let row = |name: &str| rows.iter().find(|row| row.name == name).unwrap();
        assert_eq!(row("shared dram0").values, [Some(164e9), None]);
        assert_eq!(row("shared dram0").relative(), None);
        assert!(row("costs.submit_kernel").relative().unwrap() < 0.0);
        assert!(compare("h200-pair", "nowhere").is_err());
    }

    #[test]
    fn facts_are_read_from_comments() {
        let text = "# no\n#= p2p.both = 7.6e11 from 7.5e11 to 7.7e11, n 9\n#= broken\nname: x\n";
        assert_eq!(facts(text), [("fact p2p.both".to_owned(), 7.6e11)]);
    }
}
