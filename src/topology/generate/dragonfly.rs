//! `dragonfly`: groups of routers, all-to-all within a group, one link between every two groups.
//!
//! Reference: J. Kim et al., "Technology-driven, highly-scalable dragonfly topology", ISCA 2008,
//! with a routers per group, p GPUs per router and h global links per router, h = ⌈(g−1)/a⌉ for g
//! groups. The link from group i to group j leaves by port (j − i − 1) mod g, that is from router
//! ⌊port/h⌋ of group i. Routes are minimal: least latency.

use super::{Generator, Scope, count};
use crate::input::Fields;
use crate::topology::NodeId;
use crate::topology::read::draft::Draft;

pub(super) const GENERATOR: Generator = Generator {
    name: "dragonfly",
    about: "groups of routers, all-to-all within a group, one link between every two groups",
    run,
};

fn run(fields: &mut Fields, scope: Scope, draft: &mut Draft) -> Option<()> {
    let groups = count(fields, "groups", (1, 100_000), None, draft);
    let routers = count(fields, "routers", (1, 100_000), None, draft);
    let per_router = count(fields, "gpus_per_router", (1, 1024), Some(1), draft);
    let terminal = draft.sub_spec(fields, "terminal", "terminal");
    let local = draft.sub_spec(fields, "local", "local");
    let global = draft.sub_spec(fields, "global", "global");
    let (groups, routers, per_router) = (groups?, routers?, per_router?);
    let (terminal, local, global) = (terminal?, local?, global?);
    let all = groups * routers;
    let gpus = all.saturating_mul(per_router);
    let links = (2 * gpus)
        .saturating_add(all.saturating_mul(routers - 1))
        .saturating_add(groups * (groups - 1));
    draft
        .room(scope.at, gpus.saturating_add(all), links)
        .then_some(())?;
    let gpus = draft.next_gpus(scope, gpus)?;
    let mut grid: Vec<NodeId> = Vec::new();
    for group in 0..groups {
        for router in 0..routers {
            grid.push(draft.switch(scope, &format!("group{group}-router"), router)?);
        }
    }
    let behind = gpus.chunks(usize::try_from(per_router).ok()?);
    for (gpus, &router) in behind.zip(&grid) {
        for &gpu in gpus {
            draft.both(&scope.at.span, gpu, router, terminal)?;
        }
    }
    let width = usize::try_from(routers).ok()?;
    for group in grid.chunks(width) {
        draft.mesh(scope, group, local)?;
    }
    let ports = (groups - 1).div_ceil(routers).max(1);
    // The router by which group `from` reaches group `to`.
    let gate = |from: u64, to: u64| -> Option<NodeId> {
        let port = (to + groups - from - 1) % groups;
        let router = usize::try_from(from * routers + port / ports).ok()?;
        grid.get(router).copied()
    };
    for a in 0..groups {
        for b in a + 1..groups {
            draft.both(&scope.at.span, gate(a, b)?, gate(b, a)?, global)?;
        }
    }
    Some(())
}
