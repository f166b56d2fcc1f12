//! `routes:` explicit ways between two memories: through named nodes or links, staged through a
//! host, or split over several paths.

use super::draft::Draft;
use super::nodes::names_of;
use super::shared::{link_named, no_link};
use crate::input::yaml::Node as Yaml;
use crate::input::{Diagnostics, Fields};
use crate::topology::{ExplicitRoute, Leg, LinkId, NodeId, NodeKind, Path};
use crate::units::{Bytes, Seconds};

/// Tolerance of "the shares add up to 1".
const SHARES: f64 = 1e-6;

/// Most nodes on a way.
const MOST_HOPS: u64 = 4096;

/// Reads the section, after all links.
pub(super) fn read(node: &Yaml, draft: &mut Draft) -> Option<()> {
    for item in node.list("a list of routes", &mut draft.found)? {
        read_one(item, draft);
    }
    Some(())
}

fn read_one(item: &Yaml, draft: &mut Draft) -> Option<()> {
    let mut fields = Fields::of(item, "a route", &mut draft.found)?;
    let from = fields.need("from", "gpu0", &mut draft.found);
    let to = fields.need("to", "gpu1", &mut draft.found);
    let both = fields.get("both");
    let both = both.and_then(|node| node.flag("both", &mut draft.found));
    let chunk = read_chunk(&mut fields, &mut draft.found);
    let via = fields.get("via");
    let paths = fields.get("paths");
    fields.finish(&mut draft.found);
    let from = from.and_then(|node| memory(node, draft));
    let to = to.and_then(|node| memory(node, draft));
    let (from, to) = (from?, to?);
    if from == to {
        draft.found.push(
            item.wrong(
                "a route from a node to itself",
                "expected two different memories",
            )
            .help("copies within one memory need no route"),
        );
        return None;
    }
    let mut reader = Reader {
        from,
        to,
        chunk: chunk.unwrap_or(draft.staging_chunk),
        draft,
    };
    let ways = match (via, paths) {
        (Some(via), None) => vec![reader.way(via, 1.0, None)?],
        (None, Some(paths)) => reader.ways(paths)?,
        _ => {
            draft.found.push(
                item.wrong("a route without a way", "expected `via` or `paths`")
                    .help("write e.g. `via: [switch0]`, or `via: []` for the direct link"),
            );
            return None;
        }
    };
    let back = both == Some(true);
    let reverse: Option<Vec<Path>> = if back {
        ways.iter().map(|way| way.reversed(draft, item)).collect()
    } else {
        None
    };
    let forward = ways.into_iter().map(|way| way.path).collect();
    add(item, from, to, forward, draft);
    if let Some(reverse) = reverse {
        add(item, to, from, reverse, draft);
    }
    Some(())
}

fn add(item: &Yaml, from: NodeId, to: NodeId, paths: Vec<Path>, draft: &mut Draft) {
    if !draft.claim_route(from, to) {
        let (from, to) = (draft.name(from), draft.name(to));
        let message = format!("there is a route from `{from}` to `{to}` already");
        draft.found.push(
            item.wrong(message, "second of its kind")
                .help("list several ways as `paths` of one route"),
        );
        return;
    }
    draft.explicit.push(ExplicitRoute { from, to, paths });
}

fn read_chunk(fields: &mut Fields, found: &mut Diagnostics) -> Option<Bytes> {
    chunk(fields.get("chunk")?, "chunk", found)
}

/// A chunk of at least one byte.
pub(super) fn chunk(node: &Yaml, key: &str, found: &mut Diagnostics) -> Option<Bytes> {
    let bytes: Bytes = node.parse(key, found)?;
    if bytes == Bytes::ZERO {
        found.push(
            node.wrong(
                format!("`{key}` cannot be zero"),
                "expected at least 1 byte",
            )
            .help(format!("write e.g. `{key}: 4 MiB`")),
        );
        return None;
    }
    Some(bytes)
}

/// A node that can end a transfer, or a mistake pushed.
fn memory(node: &Yaml, draft: &mut Draft) -> Option<NodeId> {
    let word = node.word("an end of a route", &mut draft.found)?;
    let id = draft.resolve(&node.span, "", word)?;
    if draft.graph[id].kind.is_memory() {
        return Some(id);
    }
    draft.found.push(
        node.wrong(
            format!("`{word}` only forwards: no route starts or ends there"),
            "expected a GPU or a host",
        )
        .help("routes join memories; name switches and roots under `via`"),
    );
    None
}

/// A path with the nodes it passes, ends included.
struct Way {
    nodes: Vec<NodeId>,
    path: Path,
}

impl Way {
    /// The same nodes the other way round.
    fn reversed(&self, draft: &mut Draft, item: &Yaml) -> Option<Path> {
        let nodes: Vec<NodeId> = self.nodes.iter().rev().copied().collect();
        let links: Option<Vec<LinkId>> = nodes
            .windows(2)
            .map(|pair| {
                let link = draft.link_between(pair[0], pair[1]);
                if link.is_none() {
                    let mistake = no_link(item, pair[0], pair[1], draft);
                    draft.found.push(mistake);
                }
                link
            })
            .collect();
        Some(Path {
            share: self.path.share,
            legs: legs(&nodes, &links?, draft),
            chunk: self.path.chunk,
            slots: 0,
        })
    }
}

struct Reader<'d> {
    from: NodeId,
    to: NodeId,
    chunk: Bytes,
    draft: &'d mut Draft,
}

impl Reader<'_> {
    /// `paths:` a list of `{ share, via, chunk }`.
    fn ways(&mut self, node: &Yaml) -> Option<Vec<Way>> {
        let items = node.list("a list of paths", &mut self.draft.found)?;
        let mut ways = Vec::new();
        for item in items {
            let found = &mut self.draft.found;
            let mut fields = Fields::of(item, "a path", found)?;
            let share = fields.need("share", "0.5", found);
            let share = share.and_then(|node| {
                let share = node.number("share", found)?;
                if share > 0.0 && share <= 1.0 {
                    return Some(share);
                }
                found.push(node.wrong(
                    format!("a share of {share}"),
                    "expected more than 0 and at most 1",
                ));
                None
            });
            let via = fields.need("via", "[switch0]", found);
            let chunk = read_chunk(&mut fields, found);
            fields.finish(found);
            ways.push(self.way(via?, share?, chunk)?);
        }
        let sum: f64 = ways.iter().map(|way| way.path.share).sum();
        if (sum - 1.0).abs() > SHARES {
            self.draft.found.push(
                node.wrong(format!("the shares add up to {sum}"), "expected a sum of 1")
                    .help("the shares say which part of the bytes takes each path"),
            );
            return None;
        }
        for way in &mut ways {
            way.path.share /= sum;
        }
        Some(ways)
    }

    /// `via:` the nodes between the ends, or all links from end to end.
    fn way(&mut self, via: &Yaml, share: f64, chunk: Option<Bytes>) -> Option<Way> {
        let what = "a list of nodes or of links";
        let items = via.list(what, &mut self.draft.found)?;
        let is_link = |item: &Yaml| item.text().is_some_and(|text| text.contains("->"));
        let (nodes, links) = if items.first().is_some_and(is_link) {
            self.by_links(items)?
        } else {
            self.by_nodes(via)?
        };
        let inner = nodes.get(1..nodes.len() - 1).unwrap_or(&[]);
        for &node in inner {
            if let NodeKind::Gpu(_) = self.draft.graph[node].kind {
                let name = self.draft.name(node).to_owned();
                self.draft.found.push(
                    via.wrong(format!("the way goes through the GPU `{name}`"), "a GPU does not forward")
                        .help("end one transfer there and start another, or go through a switch or a host"),
                );
                return None;
            }
        }
        let mut seen: Vec<LinkId> = links.clone();
        seen.sort_unstable();
        seen.dedup();
        if seen.len() < links.len() {
            self.draft.found.push(
                via.wrong("the way crosses a link twice", "expected each link once")
                    .help("leave out the detour"),
            );
            return None;
        }
        let path = Path {
            share,
            legs: legs(&nodes, &links, self.draft),
            chunk: chunk.unwrap_or(self.chunk),
            slots: 0,
        };
        Some(Way { nodes, path })
    }

    fn by_nodes(&mut self, via: &Yaml) -> Option<(Vec<NodeId>, Vec<LinkId>)> {
        let between = names_of(via, "a list of nodes", MOST_HOPS, self.draft)?;
        let mut nodes = vec![self.from];
        let mut links = Vec::new();
        for (place, name) in &between {
            let next = self.draft.resolve(&place.span, "", name)?;
            self.step(place, &mut nodes, &mut links, next)?;
        }
        let last = between.last().map_or(via, |(place, _)| place);
        self.step(last, &mut nodes, &mut links, self.to)?;
        Some((nodes, links))
    }

    /// Goes on to `next` over the link that leads there.
    fn step(
        &mut self,
        place: &Yaml,
        nodes: &mut Vec<NodeId>,
        links: &mut Vec<LinkId>,
        next: NodeId,
    ) -> Option<()> {
        let last = *nodes.last()?;
        let link = self.draft.link_between(last, next);
        if link.is_none() {
            let mistake = no_link(place, last, next, self.draft);
            self.draft.found.push(mistake);
        }
        links.push(link?);
        nodes.push(next);
        Some(())
    }

    fn by_links(&mut self, items: &[Yaml]) -> Option<(Vec<NodeId>, Vec<LinkId>)> {
        let mut nodes = vec![self.from];
        let mut links = Vec::new();
        for item in items {
            let link = link_named(item, "", self.draft)?;
            let (start, end) = self.draft.graph.edge_endpoints(link)?;
            let last = *nodes.last()?;
            if start != last {
                let (start, last) = (self.draft.name(start), self.draft.name(last));
                let mistake = item.wrong(
                    format!("this link starts at `{start}`, but the way has come to `{last}`"),
                    format!("expected a link from `{last}`"),
                );
                let remedy = "list the links in order, each starting where the one before ends";
                self.draft.found.push(mistake.help(remedy));
                return None;
            }
            nodes.push(end);
            links.push(link);
        }
        let last = *nodes.last()?;
        if last != self.to {
            let (last, to) = (self.draft.name(last), self.draft.name(self.to));
            let mistake = items.last()?.wrong(
                format!("the way ends at `{last}`, the route at `{to}`"),
                format!("expected a link to `{to}`"),
            );
            self.draft.found.push(mistake.help("add the missing links"));
            return None;
        }
        Some((nodes, links))
    }
}

/// Cuts a way at the hosts inside it.
fn legs(nodes: &[NodeId], links: &[LinkId], draft: &Draft) -> Vec<Leg> {
    let mut legs = Vec::new();
    let mut start = 0;
    for end in 1..nodes.len() {
        if end + 1 == nodes.len() || draft.graph[nodes[end]].kind.is_memory() {
            let links = links[start..end].to_vec();
            let latency = links.iter().map(|&link| draft.graph[link].latency.get());
            legs.push(Leg {
                from: nodes[start],
                to: nodes[end],
                latency: Seconds::of(latency.sum()),
                links,
            });
            start = end;
        }
    }
    legs
}
