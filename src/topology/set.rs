//! Overrides from the command line: `links.pcie.bandwidth=2x`, `gpu.hbm=4 TB/s`.

mod values;

use std::sync::Arc;

use petgraph::visit::EdgeRef;

use super::read::names::ends;
use super::{Clock, LinkId, Topology, TopologyError};
use crate::device;
use crate::input::{did_you_mean, list};
use crate::units::{Bytes, Seconds};
use values::{choice, factor, rate, time};

/// What can be set, for messages.
const PATHS: [&str; 10] = [
    "links.KIND.bandwidth",
    "links.A->B.latency",
    "links.*.bandwidth",
    "shared.NAME.bandwidth",
    "gpu.FIELD",
    "p2p",
    "staging_chunk",
    "default_tp",
    "ties",
    "clock",
];

/// Applies `PATH=VALUE` overrides in order.
///
/// # Errors
/// [`TopologyError::Set`]: an unknown path, name or unit, in words.
pub(super) fn apply(topology: &mut Topology, sets: &[String]) -> Result<(), TopologyError> {
    for text in sets {
        one(topology, text).map_err(|words| TopologyError::Set {
            text: text.clone(),
            words,
        })?;
    }
    if !sets.is_empty() {
        settle_routes(topology);
    }
    Ok(())
}

/// Sums the latencies of explicit routes afresh.
fn settle_routes(topology: &mut Topology) {
    let legs = topology
        .explicit
        .iter_mut()
        .flat_map(|route| &mut route.paths)
        .flat_map(|path| &mut path.legs);
    for leg in legs {
        let latency = leg.links.iter().map(|&id| topology.graph[id].latency.get());
        leg.latency = Seconds::of(latency.sum());
    }
}

fn one(topology: &mut Topology, text: &str) -> Result<(), String> {
    let (path, value) = text
        .split_once('=')
        .ok_or("no `=`: write PATH=VALUE, e.g. `links.pcie.bandwidth=2x`")?;
    let (path, value) = (path.trim(), value.trim());
    let (head, rest) = path.split_once('.').unwrap_or((path, ""));
    match (head, rest) {
        ("links", rest) if !rest.is_empty() => links(topology, rest, value),
        ("shared", rest) if !rest.is_empty() => shared(topology, rest, value),
        ("gpu", field) if !field.is_empty() => {
            let loaded = topology.clock == Clock::Sustained;
            for gpu in &mut topology.devices {
                let gpu = Arc::make_mut(gpu);
                // What is set is the number of a GPU that rested.
                if loaded {
                    gpu.load(false);
                }
                device::set(gpu, field, value)?;
                if loaded {
                    gpu.load(true);
                }
            }
            Ok(())
        }
        ("p2p", "") => {
            topology.p2p = choice(value, &["false", "true"])? == 1;
            Ok(())
        }
        ("ties", "") => {
            let at = choice(value, &["lowest", "spread"])?;
            topology.ties = [super::Ties::Lowest, super::Ties::Spread][at];
            Ok(())
        }
        ("clock", "") => clock(topology, Clock::ALL[choice(value, &Clock::WORDS)?]),
        ("staging_chunk", "") => chunk(topology, value),
        ("default_tp", "") => {
            let most = u32::try_from(topology.gpus.len()).unwrap_or(u32::MAX);
            topology.default_tp = value
                .parse()
                .ok()
                .filter(|tp| (1..=most).contains(tp))
                .ok_or(format!(
                    "`{value}` is no size: write a number from 1 to {most}"
                ))?;
            Ok(())
        }
        _ => {
            let heads = [
                "links",
                "shared",
                "gpu",
                "p2p",
                "staging_chunk",
                "default_tp",
                "ties",
                "clock",
            ];
            let remedy = match crate::input::closest(head, heads) {
                Some(near) if near != head => format!("did you mean `{near}`?"),
                _ => format!("paths are {}", list(PATHS)),
            };
            Err(format!("`{path}` cannot be set: {remedy}"))
        }
    }
}

fn clock(topology: &mut Topology, new: Clock) -> Result<(), String> {
    if topology.clock == new {
        return Ok(());
    }
    topology.clock = new;
    for gpu in &mut topology.devices {
        if !Arc::make_mut(gpu).load(new == Clock::Sustained) {
            return Err(format!(
                "profile `{}` does not say how fast it is under load: state `gemm.loaded`, e.g. `gpu.gemm.loaded=0.85` before it",
                gpu.name
            ));
        }
    }
    Ok(())
}

fn chunk(topology: &mut Topology, value: &str) -> Result<(), String> {
    let old = topology.staging_chunk;
    let new = match factor(value)? {
        Some(factor) => {
            let bytes = (old.as_f64() * factor).round();
            if bytes >= 2f64.powi(63) {
                return Err(format!(
                    "`{value}` makes too many bytes: use a smaller factor"
                ));
            }
            Bytes::new(bytes as u64)
        }
        None => value.parse().map_err(|error| format!("{error}"))?,
    };
    if new == Bytes::ZERO {
        return Err("zero: write at least 1 byte".to_owned());
    }
    topology.staging_chunk = new;
    // Routes that took the file's chunk follow; those with a chunk of their own keep it.
    for path in topology
        .explicit
        .iter_mut()
        .flat_map(|route| &mut route.paths)
    {
        if path.chunk == old {
            path.chunk = new;
        }
    }
    Ok(())
}

/// `WHICH.FIELD` after `links.`
fn links(topology: &mut Topology, rest: &str, value: &str) -> Result<(), String> {
    let (which, field) = rest.rsplit_once('.').ok_or(format!(
        "`links.{rest}` names no field: add `.bandwidth` or `.latency`"
    ))?;
    let chosen = choose(topology, which)?;
    let is_bandwidth = match field {
        "bandwidth" => true,
        "latency" => false,
        _ => {
            let remedy = did_you_mean(field, ["bandwidth", "latency"]);
            return Err(format!("`{field}` is not a field of a link: {remedy}"));
        }
    };
    for &id in &chosen {
        let link = &mut topology.graph[id];
        if is_bandwidth {
            link.bandwidth = rate(link.bandwidth, value)?;
        } else {
            link.latency = time(link.latency, value)?;
        }
    }
    if is_bandwidth {
        for shared in &mut topology.shared {
            // The one capacity of a half-duplex link is the link's bandwidth.
            if shared.half_duplex
                && let Some(&link) = shared.links.iter().find(|link| chosen.contains(link))
            {
                shared.bandwidth = topology.graph[link].bandwidth;
            }
        }
    }
    Ok(())
}

/// The link directions that `*`, a kind, `A->B` or `A<->B` stands for; an end may be `*`.
fn choose(topology: &Topology, which: &str) -> Result<rustc_hash::FxHashSet<LinkId>, String> {
    let all = topology.graph.edge_references();
    if which == "*" {
        return Ok(all.map(|edge| edge.id()).collect());
    }
    if let Some(kind) = topology.kinds.iter().position(|kind| kind == which) {
        return Ok(all
            .filter(|edge| usize::from(edge.weight().kind) == kind)
            .map(|edge| edge.id())
            .collect());
    }
    if !which.contains("->") {
        let kinds = topology.kinds.iter().map(String::as_str);
        let remedy = did_you_mean(which, kinds);
        return Err(format!("no link is of kind `{which}`: {remedy}"));
    }
    let both = which.contains("<->");
    let plain = which.replacen("<->", "->", 1);
    let (from, to) = ends(&plain)?;
    let name = |node: super::NodeId| topology.graph[node].name.as_str();
    for end in [from, to] {
        if end != "*" && !topology.graph.node_weights().any(|node| node.name == end) {
            let names = topology.graph.raw_nodes().iter();
            let names = names.map(|node| node.weight.name.as_str());
            let remedy = did_you_mean(end, names.take(10_000));
            return Err(format!("`{end}` is not a node: {remedy}"));
        }
    }
    let fits = |pattern: &str, node| pattern == "*" || pattern == name(node);
    let chosen: rustc_hash::FxHashSet<LinkId> = all
        .filter(|edge| {
            let (a, b) = (edge.source(), edge.target());
            fits(from, a) && fits(to, b) || both && fits(from, b) && fits(to, a)
        })
        .map(|edge| edge.id())
        .collect();
    if chosen.is_empty() {
        return Err(format!(
            "there is no link `{which}`: see `duet topology show`"
        ));
    }
    Ok(chosen)
}

/// `NAME.bandwidth` after `shared.`
fn shared(topology: &mut Topology, rest: &str, value: &str) -> Result<(), String> {
    let (name, field) = rest
        .rsplit_once('.')
        .ok_or(format!("`shared.{rest}` names no field: add `.bandwidth`"))?;
    if field != "bandwidth" {
        return Err(format!(
            "`{field}` is not a field of a shared capacity: write `bandwidth`"
        ));
    }
    let mut found = false;
    for shared in &mut topology.shared {
        if shared.name == name || name == "*" {
            shared.bandwidth = rate(shared.bandwidth, value)?;
            found = true;
        }
    }
    if found {
        return Ok(());
    }
    let names = topology.shared.iter().map(|shared| shared.name.as_str());
    let remedy = did_you_mean(name, names);
    Err(format!("there is no shared capacity `{name}`: {remedy}"))
}
