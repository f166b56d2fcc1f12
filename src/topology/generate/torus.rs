//! `torus`: switches in a grid with wrap-around, GPUs behind each.
//!
//! Point (x₀, x₁, …) has number x₀ + d₀·(x₁ + d₁·(…)). In a dimension of size 2 the two ways round
//! would be the same link, so there is one; a dimension of size 1 has none. With `routers: false`
//! the GPUs themselves are the points; as GPUs do not forward, only neighbours then reach each
//! other in one transfer.

use super::{Generator, Scope, count};
use crate::input::Fields;
use crate::topology::NodeId;
use crate::topology::read::draft::{Draft, LinkSpec};
use crate::units::{BytesPerSecond, Seconds};

pub(super) const GENERATOR: Generator = Generator {
    name: "torus",
    about: "switches in a grid with wrap-around, GPUs behind each",
    run,
};

fn run(fields: &mut Fields, scope: Scope, draft: &mut Draft) -> Option<()> {
    let spec = draft.spec(fields, "torus");
    let dims = dims(fields, draft)?;
    let routers = match fields.get("routers") {
        Some(node) => node.flag("routers", &mut draft.found)?,
        None => true,
    };
    let per_router = count(fields, "gpus_per_router", (1, 1024), Some(1), draft)?;
    let spec = spec?;
    let degree = 2 * dims.len() as u64;
    let local = match fields.get("local") {
        Some(_) => draft.sub_spec(fields, "local", "local")?,
        // As much as all links of the point together: never the bottleneck.
        None => LinkSpec {
            kind: draft.kind("local")?,
            bandwidth: BytesPerSecond::new(spec.bandwidth.get() * degree as f64).ok()?,
            latency: Seconds::ZERO,
            source: spec.source,
        },
    };
    let points = dims
        .iter()
        .try_fold(1_u64, |product, &dim| product.checked_mul(dim))
        .unwrap_or(u64::MAX);
    let (nodes, links) = if routers {
        (
            per_router.saturating_add(1),
            (2 * per_router).saturating_add(degree),
        )
    } else {
        (1, degree)
    };
    draft
        .room(
            scope.at,
            points.saturating_mul(nodes),
            points.saturating_mul(links),
        )
        .then_some(())?;
    let gpus = draft.next_gpus(scope, if routers { points * per_router } else { points })?;
    let grid: Vec<NodeId> = if routers {
        (0..points)
            .map(|point| draft.switch(scope, "router", point))
            .collect::<Option<_>>()?
    } else {
        gpus.clone()
    };
    if routers {
        let behind = gpus.chunks(usize::try_from(per_router).ok()?);
        for (gpus, &router) in behind.zip(&grid) {
            for &gpu in gpus {
                draft.both(&scope.at.span, gpu, router, local)?;
            }
        }
    }
    let mut stride = 1_usize;
    for dim in dims {
        let dim = usize::try_from(dim).ok()?;
        for (point, &here) in grid.iter().enumerate() {
            let x = point / stride % dim;
            if dim == 1 || dim == 2 && x == 1 {
                continue;
            }
            let next = point - x * stride + (x + 1) % dim * stride;
            draft.both(&scope.at.span, here, grid[next], spec)?;
        }
        stride *= dim;
    }
    Some(())
}

/// `dims: [4, 4, 2]`, at most six.
fn dims(fields: &mut Fields, draft: &mut Draft) -> Option<Vec<u64>> {
    let node = fields.need("dims", "[4, 4]", &mut draft.found)?;
    let items = node.list("a list of sizes such as `[4, 4]`", &mut draft.found)?;
    if items.is_empty() || items.len() > 6 {
        draft.found.push(node.wrong(
            format!("a torus of {} dimensions", items.len()),
            "expected 1 to 6 sizes",
        ));
        return None;
    }
    items
        .iter()
        .map(|item| item.whole("dims", 1, 1_000_000, &mut draft.found))
        .collect()
}
