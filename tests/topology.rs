//! Topology files: what they mean, and what is said about broken ones.

#[path = "topology/bad.rs"]
mod bad;
#[path = "support/corpus.rs"]
mod corpus;
#[path = "topology/format.rs"]
mod format;
#[path = "topology/generators.rs"]
mod generators;
#[path = "topology/of_machine.rs"]
mod of_machine;
#[path = "topology/robust.rs"]
mod robust;
#[path = "topology/set.rs"]
mod set;
#[path = "topology/shipped.rs"]
mod shipped;

use duet::device::{Device, ideal};
use duet::input::{Diagnostics, yaml};
use duet::topology::{Topology, TopologyError, parse};

/// Knows the profile `ideal` and two that differ by name.
fn resolve(node: &yaml::Node, found: &mut Diagnostics) -> Option<Device> {
    match node.word("gpu", found)? {
        "ideal" => Some(ideal()),
        "small" | "rtx-a6000" => Some(Device {
            name: "small".to_owned(),
            ..ideal()
        }),
        other => {
            let words = format!("`{other}` is not a GPU profile");
            found.push(
                node.wrong(words, "no such profile")
                    .help("known are `ideal` and `small`"),
            );
            None
        }
    }
}

fn read(text: &str) -> Result<Topology, TopologyError> {
    parse(text, "box.yaml", &[], &resolve)
}

/// `text` after a line that names and equips the machine.
fn machine(text: &str) -> Topology {
    read(&format!("name: box\ngpu: ideal\n{text}")).unwrap_or_else(|error| panic!("{error}"))
}

/// The text of the mistakes in such a machine.
fn mistakes(text: &str) -> String {
    read(&format!("name: box\ngpu: ideal\n{text}"))
        .expect_err("accepted")
        .to_string()
}

/// The names of a link's ends.
fn link_names(topology: &Topology) -> Vec<String> {
    topology
        .graph
        .edge_indices()
        .map(|id| {
            let (a, b) = topology.graph.edge_endpoints(id).unwrap();
            format!("{}->{}", topology.graph[a].name, topology.graph[b].name)
        })
        .collect()
}

fn node_names(topology: &Topology) -> Vec<&str> {
    let nodes = topology.graph.node_weights();
    nodes.map(|node| node.name.as_str()).collect()
}
