//! The machine as far as it is read: every node and link passes here and is checked here.

use petgraph::graph::DiGraph;
use rustc_hash::{FxHashMap, FxHashSet};

use super::names;
use crate::device::SOURCE_KINDS;
use crate::input::yaml::Node as Yaml;
use crate::input::{Diagnostic, Diagnostics, Fields, Span, did_you_mean, list};
use crate::topology::{
    Contention, ExplicitRoute, Link, LinkId, Node, NodeId, NodeKind, Shared, Source, SourceId, Ties,
};
use crate::units::{Bytes, BytesPerSecond, Seconds};

/// Most nodes of a machine.
pub(super) const MOST_NODES: u64 = 1_000_000;
/// Most link directions of a machine.
const MOST_LINKS: u64 = 8_000_000;

/// Whether a bandwidth lies between 1 B/s and 10^18 B/s, so that every transfer time is finite.
pub(in crate::topology) fn check_rate(rate: BytesPerSecond) -> Result<(), &'static str> {
    match rate.get() {
        0.0 => Err("a bandwidth of zero: leave out a link that carries nothing"),
        ..1.0 => Err("a bandwidth below 1 B/s: write at least 1 B/s"),
        ..=1e18 => Ok(()),
        _ => Err("a bandwidth above 10^18 B/s: write less"),
    }
}

/// Whether a latency is at most 1000 s, so that sums of many stay finite.
pub(in crate::topology) fn check_time(time: Seconds) -> Result<(), &'static str> {
    match time.get() {
        ..=1000.0 => Ok(()),
        _ => Err("a latency above 1000 s: write less"),
    }
}

/// What a link is like, whichever nodes it joins.
#[derive(Copy, Clone, Debug)]
pub(in crate::topology) struct LinkSpec {
    pub kind: u16,
    pub bandwidth: BytesPerSecond,
    pub latency: Seconds,
    pub source: SourceId,
}

/// A machine being read, with the mistakes found so far.
#[derive(Debug, Default)]
pub(in crate::topology) struct Draft {
    pub found: Diagnostics,
    pub graph: DiGraph<Node, Link, u32>,
    pub gpus: Vec<NodeId>,
    pub kinds: Vec<String>,
    pub contention: Vec<Option<Contention>>,
    pub contention_source: Vec<SourceId>,
    pub shared: Vec<Shared>,
    pub explicit: Vec<ExplicitRoute>,
    pub sources: Vec<Source>,
    /// The file's own `source:`, for items without one.
    pub default_source: SourceId,
    /// What a generator asks for where the file has no `ties:`.
    pub ties: Ties,
    /// GPUs of one box, where a generator knows them.
    pub box_size: Option<u32>,
    pub staging_chunk: Bytes,
    /// Number of the first GPU of the copy being made.
    pub scope_start: usize,
    by_name: FxHashMap<String, NodeId>,
    by_ends: FxHashMap<(NodeId, NodeId), LinkId>,
    by_kind: FxHashMap<String, u16>,
    by_source: FxHashMap<String, u32>,
    shared_names: FxHashSet<String>,
    routed: FxHashSet<(NodeId, NodeId)>,
}

impl Draft {
    /// Whether `nodes` further nodes and `links` further link directions fit; a mistake is pushed
    /// where they do not. Ask before making many.
    pub fn room(&mut self, at: &Yaml, nodes: u64, links: u64) -> bool {
        let nodes = nodes.saturating_add(self.graph.node_count() as u64);
        let links = links.saturating_add(self.graph.edge_count() as u64);
        let (count, what, most) = if nodes > MOST_NODES {
            (nodes, "nodes", MOST_NODES)
        } else if links > MOST_LINKS {
            (links, "link directions", MOST_LINKS)
        } else {
            return true;
        };
        // Sizes beyond 64 bits saturate, so that the number would be none.
        let count = match count {
            u64::MAX => "more than 10^19".to_owned(),
            count => count.to_string(),
        };
        let mistake = at.wrong(
            format!("{count} {what} are too many"),
            format!("expected at most {most} {what}"),
        );
        self.found.push(mistake.help("describe a smaller system"));
        false
    }

    /// Adds a node, or pushes a mistake: a bad or a taken name.
    pub fn node(&mut self, at: &Span, name: String, kind: NodeKind) -> Option<NodeId> {
        if let Err(words) = names::check(&name) {
            self.found
                .push(Diagnostic::from_words(at.clone(), "bad name", &words));
            return None;
        }
        if self.by_name.contains_key(&name) {
            self.found.push(
                Diagnostic::new(
                    at.clone(),
                    format!("there are two nodes `{name}`"),
                    "second of that name",
                )
                .help("give each node a name of its own"),
            );
            return None;
        }
        let id = self.graph.add_node(Node {
            name: name.clone(),
            kind,
        });
        self.by_name.insert(name, id);
        Some(id)
    }

    /// Adds the next GPU.
    pub fn gpu(&mut self, at: &Span, name: String) -> Option<NodeId> {
        let number = u32::try_from(self.gpus.len()).ok()?;
        let id = self.node(at, name, NodeKind::Gpu(number))?;
        self.gpus.push(id);
        Some(id)
    }

    /// The node of that name, if there is one.
    pub fn find(&self, name: &str) -> Option<NodeId> {
        self.by_name.get(name).copied()
    }

    /// The node of that name, or a mistake pushed. Inside a copy the copy's own names come first.
    pub fn resolve(&mut self, at: &Span, prefix: &str, name: &str) -> Option<NodeId> {
        let own = if prefix.is_empty() {
            None
        } else {
            self.find(&format!("{prefix}{name}"))
        };
        let id = own.or_else(|| self.find(name));
        if id.is_none() {
            let names = self.graph.raw_nodes().iter();
            let names = names.map(|node| node.weight.name.as_str());
            // Beyond what is shown, the search for the nearest name would only take time.
            let remedy = if self.found.is_full() {
                String::new()
            } else if self.graph.node_count() == 0 {
                "add it under `nodes`".to_owned()
            } else {
                did_you_mean(name, names.take(10_000))
            };
            self.found.push(
                Diagnostic::new(
                    at.clone(),
                    format!("`{name}` is not a node"),
                    "no node of that name",
                )
                .help(remedy),
            );
        }
        id
    }

    /// The link direction between two nodes, if there is one.
    pub fn link_between(&self, from: NodeId, to: NodeId) -> Option<LinkId> {
        self.by_ends.get(&(from, to)).copied()
    }

    /// A node's name.
    pub fn name(&self, node: NodeId) -> &str {
        &self.graph[node].name
    }

    /// Adds one direction, or pushes a mistake: a self-link or a second one.
    pub fn one_way(
        &mut self,
        at: &Span,
        from: NodeId,
        to: NodeId,
        spec: LinkSpec,
    ) -> Option<LinkId> {
        if from == to {
            let name = self.name(from).to_owned();
            self.found.push(
                Diagnostic::new(
                    at.clone(),
                    format!("a link from `{name}` to itself"),
                    "expected two different nodes",
                )
                .help("a GPU's copies within itself go over its own memory and need no link"),
            );
            return None;
        }
        if self.by_ends.contains_key(&(from, to)) {
            let (from, to) = (self.name(from), self.name(to));
            let message = format!("there is a link `{from}->{to}` already");
            self.found.push(
                Diagnostic::new(at.clone(), message, "second of its kind").help(
                    "state the sum of both as one bandwidth, or put a switch into one of them",
                ),
            );
            return None;
        }
        let id = self.graph.add_edge(
            from,
            to,
            Link {
                kind: spec.kind,
                bandwidth: spec.bandwidth,
                latency: spec.latency,
                source: spec.source,
            },
        );
        self.by_ends.insert((from, to), id);
        Some(id)
    }

    /// Adds both directions.
    pub fn both(&mut self, at: &Span, a: NodeId, b: NodeId, spec: LinkSpec) -> Option<[LinkId; 2]> {
        let there = self.one_way(at, a, b, spec)?;
        let back = self.one_way(at, b, a, spec)?;
        Some([there, back])
    }

    /// The index of a link kind, new or known.
    pub fn kind(&mut self, name: &str) -> Option<u16> {
        if let Some(&known) = self.by_kind.get(name) {
            return Some(known);
        }
        let index = u16::try_from(self.kinds.len()).ok()?;
        self.by_kind.insert(name.to_owned(), index);
        self.kinds.push(name.to_owned());
        self.contention.push(None);
        self.contention_source.push(None);
        Some(index)
    }

    /// Reads `kind`, `bandwidth`, `latency` and `source` of a link or a generator.
    pub fn spec(&mut self, fields: &mut Fields, default_kind: &str) -> Option<LinkSpec> {
        let kind = match fields.get("kind") {
            Some(node) => {
                let word = node.word("kind", &mut self.found)?;
                if let Err(words) = names::check(word) {
                    self.found.push(Diagnostic::from_words(
                        node.span.clone(),
                        "bad kind",
                        &words,
                    ));
                    return None;
                }
                let index = self.kind(word);
                if index.is_none() {
                    self.found.push(node.wrong(
                        "too many kinds of links",
                        format!("expected at most {}", u16::MAX),
                    ));
                }
                index
            }
            None => self.kind(default_kind),
        };
        let bandwidth = fields.need("bandwidth", "50 GB/s", &mut self.found);
        let bandwidth = bandwidth.and_then(|node| self.rate(node));
        let latency = fields.need("latency", "1 us", &mut self.found);
        let latency = latency.and_then(|node| self.time(node));
        let source = self.source(fields);
        Some(LinkSpec {
            kind: kind?,
            bandwidth: bandwidth?,
            latency: latency?,
            source,
        })
    }

    /// Reads the sub-map `key` as a link's description.
    pub fn sub_spec(
        &mut self,
        fields: &mut Fields,
        key: &'static str,
        default_kind: &str,
    ) -> Option<LinkSpec> {
        let example = "{ bandwidth: 50 GB/s, latency: 1 us }";
        let node = fields.need(key, example, &mut self.found)?;
        let mut inner = Fields::of(node, "a link description", &mut self.found)?;
        let spec = self.spec(&mut inner, default_kind);
        inner.finish(&mut self.found);
        spec
    }

    /// A bandwidth within [`check_rate`].
    pub fn rate(&mut self, node: &Yaml) -> Option<BytesPerSecond> {
        let rate: BytesPerSecond = node.parse("bandwidth", &mut self.found)?;
        self.within(node, check_rate(rate)).then_some(rate)
    }

    /// A latency within [`check_time`].
    fn time(&mut self, node: &Yaml) -> Option<Seconds> {
        let time: Seconds = node.parse("latency", &mut self.found)?;
        self.within(node, check_time(time)).then_some(time)
    }

    /// Pushes a mistake where a quantity is out of range.
    fn within(&mut self, node: &Yaml, checked: Result<(), &str>) -> bool {
        if let Err(words) = checked {
            let mistake = Diagnostic::from_words(node.span.clone(), "out of range", words);
            self.found.push(mistake);
        }
        checked.is_ok()
    }

    /// Reads `source`; the file's own source where the item has none.
    pub fn source(&mut self, fields: &mut Fields) -> SourceId {
        match fields.get("source") {
            Some(node) => self.source_of(node),
            None => self.default_source,
        }
    }

    /// The number of a source, new or known; a mistake is pushed where its first word is unknown.
    pub fn source_of(&mut self, node: &Yaml) -> SourceId {
        let text = node.word("source", &mut self.found)?.trim();
        let first = text
            .split(|c: char| !c.is_alphanumeric())
            .next()
            .unwrap_or("");
        if !SOURCE_KINDS.contains(&first) {
            let label = format!("expected {} first", list(SOURCE_KINDS));
            let mistake = node.wrong("`source` does not say what kind of source it is", label);
            let remedy = "start with one of those, e.g. `source: datasheet, NVIDIA 2023`";
            self.found.push(mistake.help(remedy));
            return None;
        }
        if let Some(&known) = self.by_source.get(text) {
            return Some(known);
        }
        let index = u32::try_from(self.sources.len()).ok()?;
        self.sources.push(Source(text.to_owned()));
        self.by_source.insert(text.to_owned(), index);
        Some(index)
    }

    /// Whether `name` is the first shared capacity of that name.
    pub fn claim_shared(&mut self, name: &str) -> bool {
        self.shared_names.insert(name.to_owned())
    }

    /// Whether this is the first explicit route between the two.
    pub fn claim_route(&mut self, from: NodeId, to: NodeId) -> bool {
        self.routed.insert((from, to))
    }
}
