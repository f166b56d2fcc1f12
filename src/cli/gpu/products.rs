//! Who multiplies in a plan, and by which tiles.

use serde_json::{Value, json};

use crate::gpu::exec::{Asked, asked};
use crate::gpu::plan::{Plan, Products};
use crate::gpu::tiles::{refused, suits};
use crate::report::grid::Grid;
use crate::topology::Topology;
use crate::validate::tiling::hopper;

/// One launch of a product.
pub(super) struct Launch {
    gpu: u32,
    /// The steps that it performs.
    steps: Vec<usize>,
    shape: [u64; 3],
    /// `cuBLASLt`, or Duet and its tile; which that is on a GPU that is no Hopper is not known here.
    by: String,
}

/// The products of a plan in the order of their launches.
pub(super) fn launches(plan: &Plan, topology: &Topology) -> Vec<Launch> {
    let one = |at: usize| {
        let Asked {
            problem,
            stages,
            joined,
        } = asked(plan, at)?;
        let stream = plan.steps[at].stream;
        let gpu = plan.gpus[plan.streams[stream.index()].gpu.index()];
        let device = topology.device(gpu);
        let own = plan.products == Products::Own && refused(&problem).is_none();
        let best = || suits(&problem, device.sms, &stages).filter(|_| hopper(device));
        let by = match (own, plan.tile.or_else(best)) {
            (false, _) => "cuBLASLt".to_owned(),
            (true, Some(tile)) => format!("Duet, {}", tile.name()),
            (true, None) => "Duet".to_owned(),
        };
        Some(Launch {
            gpu,
            steps: joined.map_or_else(|| vec![at], |joined| joined.steps.clone()),
            shape: [problem.m, problem.n, problem.k],
            by,
        })
    };
    (0..plan.steps.len()).filter_map(one).collect()
}

/// For people: products of one shape and multiplier as a line.
pub(super) fn table(launches: &[Launch]) -> Grid {
    let mut grid = Grid::default()
        .right("launches", 0)
        .right("m", 0)
        .right("n", 0)
        .right("k", 0)
        .text("multiplied by");
    let mut seen: Vec<(&Launch, usize)> = Vec::new();
    for launch in launches {
        let alike = |(other, _): &&mut (&Launch, usize)| {
            (other.shape, &other.by) == (launch.shape, &launch.by)
        };
        match seen.iter_mut().find(alike) {
            Some((_, count)) => *count += 1,
            None => seen.push((launch, 1)),
        }
    }
    for (launch, count) in seen {
        let [m, n, k] = launch.shape.map(|size| size.to_string());
        grid.row(vec![count.to_string(), m, n, k, launch.by.clone()]);
    }
    grid
}

/// For programs.
pub(super) fn json(launches: &[Launch]) -> Value {
    let one = |launch: &Launch| {
        let [m, n, k] = launch.shape;
        json!({
            "gpu": launch.gpu, "steps": launch.steps, "m": m, "n": n, "k": k, "by": launch.by,
        })
    };
    launches.iter().map(one).collect()
}
