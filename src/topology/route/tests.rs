//! Routes on small graphs, the tree against a plain search, and speed.

use proptest::prelude::*;

use super::super::build::Builder;
use super::super::{ExplicitRoute, Topology};
use super::*;

/// Names of the nodes a route visits.
fn route(topology: &Topology, from: NodeId, to: NodeId) -> Vec<String> {
    let mut links = Vec::new();
    let latency = Router::new(topology).direct(from, to, &mut links);
    let latency = latency.unwrap().expect("direct");
    let sum: f64 = (links.iter())
        .map(|link| topology.graph[*link].latency.get())
        .sum();
    assert_eq!(latency.get(), sum);
    let mut at = from;
    let mut names = Vec::new();
    for link in links {
        let (source, target) = topology.graph.edge_endpoints(link).unwrap();
        assert_eq!(source, at);
        at = target;
        names.push(topology.graph[at].name.clone());
    }
    assert_eq!(at, to);
    names
}

#[test]
fn least_latency_then_hops_then_order() {
    let mut b = Builder::new("t");
    let g = b.gpus(2);
    let [slow, long, last, first] = ["slow", "long", "b", "a"].map(|name| b.switch(name));
    b.link(g[0], slow, "x", 1.0, 2e-6);
    b.link(slow, g[1], "x", 1.0, 2e-6);
    // Three hops of 1 µs and twice two hops of 1.5 µs: equal latency, fewer hops, lowest node.
    b.link(g[0], long, "x", 1.0, 1e-6);
    let middle = b.switch("middle");
    b.link(long, middle, "x", 1.0, 1e-6);
    b.link(middle, g[1], "x", 1.0, 1e-6);
    for switch in [first, last] {
        b.link(g[0], switch, "x", 1.0, 1.5e-6);
        b.link(switch, g[1], "x", 1.0, 1.5e-6);
    }
    let t = b.build();
    assert_eq!(route(&t, g[0], g[1]), ["b", "gpu1"]);
}

#[test]
fn memories_do_not_forward() {
    let mut b = Builder::new("t");
    let g = b.gpus(3);
    let host = b.host("dram0");
    b.link(g[0], g[1], "x", 1.0, 1e-6);
    b.link(g[1], g[2], "x", 1.0, 1e-6);
    b.link(g[0], host, "x", 1.0, 1e-6);
    b.link(host, g[2], "x", 1.0, 1e-6);
    let t = b.build();
    let error = Router::new(&t).paths(g[0], g[2]).unwrap_err();
    assert_eq!(
        error.to_string(),
        "`gpu0` cannot reach `gpu2`: add a link or a route between them"
    );
    assert!(Router::new(&t).paths(g[0], g[0]).is_err());
}

#[test]
fn preferred_kinds_win_over_latency() {
    let mut b = Builder::new("t");
    let g = b.gpus(3);
    let [near, far] = ["near", "far"].map(|name| b.switch(name));
    for &gpu in &g {
        b.link(gpu, near, "pcie", 1.0, 1e-6);
    }
    for &gpu in &g[..2] {
        b.link(gpu, far, "nvlink", 1.0, 9e-6);
    }
    let nvlink = b.kind("nvlink");
    let mut t = b.build();
    assert_eq!(route(&t, g[0], g[1]), ["near", "gpu1"]);
    t.prefer = vec![nvlink];
    assert_eq!(route(&t, g[0], g[1]), ["far", "gpu1"]);
    assert_eq!(route(&t, g[0], g[2]), ["near", "gpu2"]);
}

#[test]
fn staging_takes_the_host_with_the_least_sum() {
    let mut b = Builder::new("t");
    let g = b.gpus(4);
    let roots = [b.root("cpu0"), b.root("cpu1")];
    let hosts = [b.host("dram0"), b.host("dram1")];
    for i in 0..2 {
        b.link(g[2 * i], roots[i], "pcie", 24e9, 1e-6);
        b.link(g[2 * i + 1], roots[i], "pcie", 24e9, 1e-6);
        b.link(roots[i], hosts[i], "ddr", 100e9, 0.1e-6);
    }
    b.link(roots[0], roots[1], "upi", 40e9, 0.5e-6);
    b.link(g[2], g[3], "nvlink", 50e9, 1e-6);
    let mut t = b.build();
    t.p2p = false;
    let mut router = Router::new(&t);
    let mut via = |from: usize, to: usize| {
        let paths = router.paths(g[from], g[to]).unwrap();
        assert_eq!((paths.len(), paths[0].share), (1, 1.0));
        let legs = &paths[0].legs;
        assert_eq!(legs.last().unwrap().to, g[to]);
        t.graph[legs[0].to].name.clone()
    };
    assert_eq!(via(0, 1), "dram0");
    // Both hosts cost the same across sockets: the sender's own is taken.
    assert_eq!(via(0, 2), "dram0");
    assert_eq!(via(2, 0), "dram1");
    // A bridge needs no staging.
    assert_eq!(via(2, 3), "gpu3");
    let path = &router.paths(g[0], g[2]).unwrap()[0];
    assert_eq!(path.chunk, t.staging_chunk);
    assert_eq!(path.legs[0].latency.get(), 1e-6 + 0.1e-6);
    assert_eq!(path.legs[1].links.len(), 3);
    assert_eq!(router.direct(g[0], g[2], &mut Vec::new()), Ok(None));

    let mut b = Builder::new("t");
    let g = b.gpus(2);
    let switch = b.switch("s");
    for &gpu in &g {
        b.link(gpu, switch, "x", 1.0, 0.0);
    }
    let mut t = b.build();
    t.p2p = false;
    let error = Router::new(&t).paths(g[0], g[1]).unwrap_err().to_string();
    assert!(error.ends_with("share no host: add a host or `p2p: true`"));
}

#[test]
fn explicit_routes_come_first() {
    let mut b = Builder::new("t");
    let g = b.gpus(2);
    let (near, _) = b.link(g[0], g[1], "x", 1.0, 1e-6);
    let (far, _) = b.link(g[0], g[1], "x", 1.0, 2e-6);
    let mut t = b.build();
    let path = |share, link| Path {
        share,
        legs: vec![Leg {
            from: g[0],
            to: g[1],
            links: vec![link],
            latency: t.graph[link].latency,
        }],
        chunk: Bytes::ZERO,
        slots: 0,
    };
    let both = vec![path(0.5, near), path(0.5, far)];
    let route = |paths: &[Path]| ExplicitRoute {
        from: g[0],
        to: g[1],
        paths: paths.to_vec(),
    };
    let only_far = vec![path(1.0, far)];
    t.explicit = vec![route(&only_far)];
    let mut links = Vec::new();
    let latency = Router::new(&t).direct(g[0], g[1], &mut links).unwrap();
    assert_eq!((links, latency), (vec![far], Some(Seconds::of(2e-6))));
    t.explicit = vec![route(&both)];
    let mut router = Router::new(&t);
    assert_eq!(router.direct(g[0], g[1], &mut Vec::new()), Ok(None));
    assert_eq!(router.paths(g[0], g[1]).unwrap(), both);
    assert!(
        router
            .direct(g[1], g[0], &mut Vec::new())
            .unwrap()
            .is_some()
    );
}

/// `leaves` × `per_leaf` GPUs under leaves that all reach all spines.
fn fat_tree(leaves: usize, per_leaf: usize, spines: usize) -> (Topology, Vec<NodeId>) {
    let mut b = Builder::new("fat");
    let gpus = b.gpus(leaves * per_leaf);
    let leaf: Vec<_> = (0..leaves).map(|i| b.switch(&format!("leaf{i}"))).collect();
    let spine: Vec<_> = (0..spines)
        .map(|i| b.switch(&format!("spine{i}")))
        .collect();
    for (i, &gpu) in gpus.iter().enumerate() {
        b.link(gpu, leaf[i / per_leaf], "ib", 50e9, 0.5e-6);
    }
    for &leaf in &leaf {
        for &spine in &spine {
            b.link(leaf, spine, "ib", 50e9, 0.5e-6);
        }
    }
    let mut t = b.build();
    t.ties = Ties::Spread;
    (t, gpus)
}

#[test]
fn spread_routes_a_shift_without_sharing() {
    // d-mod-k: under any shift permutation of a non-blocking two-level tree no link carries two.
    let (t, gpus) = fat_tree(4, 4, 4);
    let mut router = Router::new(&t);
    for shift in 1..16 {
        let mut used = vec![0; t.graph.edge_count()];
        for i in 0..16 {
            let mut links = Vec::new();
            router
                .direct(gpus[i], gpus[(i + shift) % 16], &mut links)
                .unwrap();
            links.iter().for_each(|link| used[link.index()] += 1);
        }
        assert_eq!(used.iter().max(), Some(&1), "shift {shift}");
    }
}

/// Shortest length by relaxing every link until nothing changes.
fn bellman_ford(t: &Topology, from: NodeId, to: NodeId) -> Option<f64> {
    let mut best = vec![f64::INFINITY; t.graph.node_count()];
    best[from.index()] = 0.0;
    for _ in 0..best.len() {
        for edge in t.graph.raw_edges() {
            let (u, v) = (edge.source(), edge.target());
            if u == from || !t.graph[u].kind.is_memory() {
                let through = best[u.index()] + edge.weight.latency.get();
                best[v.index()] = best[v.index()].min(through);
            }
        }
    }
    Some(best[to.index()]).filter(|length| length.is_finite())
}

proptest! {
    #[test]
    fn equals_a_plain_search(
        kinds in prop::collection::vec(0..3_u8, 4..9),
        links in prop::collection::vec((0..9_usize, 0..9_usize, 0..5_u8), 4..30),
        spread in any::<bool>(),
    ) {
        let mut b = Builder::new("random");
        let nodes: Vec<_> = (kinds.iter().zip(0..))
            .map(|(kind, i)| match kind {
                0 => b.gpu(),
                1 => b.switch(&format!("s{i}")),
                _ => b.host(&format!("h{i}")),
            })
            .collect();
        for (from, to, latency) in links {
            let (from, to) = (from % nodes.len(), to % nodes.len());
            if from != to {
                b.one_way(nodes[from], nodes[to], "x", 1.0, f64::from(latency) * 1e-6);
            }
        }
        let mut t = b.build();
        t.ties = if spread { Ties::Spread } else { Ties::Lowest };
        let mut router = Router::new(&t);
        let memories = || nodes.iter().filter(|id| t.graph[**id].kind.is_memory());
        for &from in memories() {
            for &to in memories().filter(|to| **to != from) {
                let mut links = Vec::new();
                let got = router.direct(from, to, &mut links).ok().flatten();
                let want = bellman_ford(&t, from, to);
                prop_assert_eq!(got.is_some(), want.is_some());
                if let (Some(got), Some(want)) = (got, want) {
                    prop_assert!((got.get() - want).abs() < 1e-12);
                    let joined = links.windows(2).all(|pair| {
                        let middle = t.graph.edge_endpoints(pair[0]).unwrap().1;
                        middle == t.graph.edge_endpoints(pair[1]).unwrap().0
                            && !t.graph[middle].kind.is_memory()
                    });
                    prop_assert!(joined);
                }
            }
        }
    }
}

#[test]
#[ignore = "prints times; run with --release"]
fn speed() {
    let (t, gpus) = fat_tree(32, 32, 32);
    let mut links = Vec::with_capacity(8);
    let time = |what: &str, pairs: usize, run: &mut dyn FnMut()| {
        let start = std::time::Instant::now();
        run();
        let per = start.elapsed().as_secs_f64() / pairs as f64;
        println!(
            "{what}: {:.1} ns a pair, {:.2} ms in all",
            per * 1e9,
            per * pairs as f64 * 1e3
        );
    };
    let mut router = Router::new(&t);
    time("ring, 1024 sources", 1024, &mut || {
        for i in 0..1024 {
            links.clear();
            router
                .direct(gpus[i], gpus[(i + 1) % 1024], &mut links)
                .unwrap();
        }
    });
    time("all pairs", 1024 * 1023, &mut || {
        for &from in &gpus {
            for &to in &gpus {
                if from != to {
                    links.clear();
                    router.direct(from, to, &mut links).unwrap();
                }
            }
        }
    });
}

/// Chosen ways go through the host with a ring of slots, and leave the library its own.
#[test]
fn a_chosen_path_replaces_the_routes_between_gpus() {
    use super::super::paths::with_path;
    let mut b = Builder::new("two");
    let g = b.gpus(2);
    let host = b.host("dram0");
    let (direct, _) = b.link(g[0], g[1], "nvlink", 400e9, 500e-9);
    let (up, _) = b.link(g[0], host, "pcie", 50e9, 1e-6);
    let (_, down) = b.link(g[1], host, "pcie", 50e9, 1e-6);
    let plain = b.build();
    let t = with_path(&plain, "hybrid:0.25:2MiB".parse().unwrap());
    let mut router = Router::new(&t);
    let paths = router.paths(g[0], g[1]).unwrap();
    assert_eq!(paths.len(), 2);
    assert_eq!((paths[0].share, paths[0].slots), (0.75, 0));
    assert_eq!(paths[0].legs[0].links, [direct]);
    assert_eq!((paths[1].share, paths[1].slots), (0.25, 4));
    assert_eq!(paths[1].chunk.get(), 2 << 20);
    let legs: Vec<_> = paths[1].legs.iter().map(|leg| leg.links.clone()).collect();
    assert_eq!(legs, [[up], [down]]);
    assert_eq!(router.direct(g[0], g[1], &mut Vec::new()).unwrap(), None);
    // To the host itself nothing changes.
    assert_eq!(router.paths(g[0], host).unwrap().len(), 1);
    let own = Router::of_routes(&t).paths(g[0], g[1]).unwrap();
    assert_eq!(own, Router::new(&plain).paths(g[0], g[1]).unwrap());
    let t = with_path(&plain, "host:1MiB".parse().unwrap());
    let paths = Router::new(&t).paths(g[0], g[1]).unwrap();
    assert_eq!((paths.len(), paths[0].share, paths[0].slots), (1, 1.0, 4));
}

#[test]
fn a_path_through_a_host_needs_one() {
    use super::super::paths::with_path;
    let mut b = Builder::new("two");
    let g = b.gpus(2);
    b.link(g[0], g[1], "nvlink", 400e9, 500e-9);
    let t = with_path(&b.build(), "host:1MiB".parse().unwrap());
    let error = Router::new(&t).paths(g[0], g[1]).unwrap_err().to_string();
    assert_eq!(
        error,
        "`gpu0` and `gpu1` share no host, so there is no path through one: add a host to the topology, or choose the path p2p"
    );
}
