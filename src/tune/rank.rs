//! The simulator's order of settings.

use rayon::prelude::*;

use super::Setting;
use crate::experiment::judge::{Trial, settled};
use crate::gpu::lt::Problem;
use crate::gpu::plan::Products;
use crate::gpu::tiles::Tile;
use crate::sim::{self, Executed};
use crate::strategy::Site;
use crate::topology::Topology;
use crate::topology::paths::with_path;
use crate::validate::key::Group;

/// A setting with its simulated time.
#[derive(Clone, Debug, PartialEq)]
pub struct Ranked {
    pub setting: Setting,
    /// \[seconds\].
    pub predicted: f64,
}

/// All settings of a group.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Ranking {
    /// The fastest first; equals in the order of [`settings`](super::settings()).
    pub ranked: Vec<Ranked>,
    /// What cannot be simulated, and why.
    pub skipped: Vec<(Setting, String)>,
}

/// Simulates every setting of a group on a machine; `step` is called after each strategy.
///
/// The simulator multiplies at the library's speed. A tile's own speed is what its waves take beside the
/// best tile's, for the product in one piece:
///
/// ```text
/// time = simulated + (cost(tile) / least cost − 1) · time of all products of a GPU
/// ```
pub fn rank(
    group: &Group,
    topology: &Topology,
    settings: &[Setting],
    step: &(dyn Fn() + Sync),
) -> Ranking {
    let topology = with_path(topology, group.choice());
    let site = Site::new(&topology, group.placement.to_vec());
    let trial = Trial {
        site: &site,
        operator: group.operator,
        options: executed(group, settings.first()).options(),
        verify_up_to: 0,
    };
    let product = trial.unsplit_gemm();
    let sms = topology.device(0).sms;
    let stretch = stretches(group, sms, settings);
    // Tiles of one strategy share a simulation.
    let alike = |a: &Setting, b: &Setting| a.strategy == b.strategy && a.products == b.products;
    let runs: Vec<&[Setting]> = settings.chunk_by(alike).collect();
    let times: Vec<Vec<Result<f64, String>>> = runs
        .par_iter()
        .map(|run| {
            let time = run.first().map_or(Ok(0.0), |setting| {
                let schedule = setting
                    .strategy
                    .build_at(&group.operator, &site)
                    .map_err(|skip| skip.reason)?;
                let how = executed(group, Some(setting));
                sim::executed(&schedule, &topology, &how)
                    .map(|timeline| timeline.makespan)
                    .map_err(|error| error.to_string())
            });
            step();
            vec![time; run.len()]
        })
        .collect();
    let mut ranking = Ranking::default();
    for ((setting, time), stretch) in settings.iter().zip(times.concat()).zip(stretch) {
        match time {
            Ok(time) => ranking.ranked.push(Ranked {
                setting: setting.clone(),
                predicted: settled(time + (stretch - 1.0) * product),
            }),
            Err(reason) => ranking.skipped.push((setting.clone(), reason)),
        }
    }
    ranking
        .ranked
        .sort_by(|a, b| a.predicted.total_cmp(&b.predicted));
    ranking
}

/// How GPUs perform a setting; without one, how the group is launched.
fn executed(group: &Group, setting: Option<&Setting>) -> Executed {
    let lowered = setting.map(|setting| setting.options(group).lowered());
    Executed {
        launch: group.launch,
        lowered: lowered.unwrap_or_default(),
        record: false,
    }
}

/// By setting: what its tile takes beside the best one, for the product of one rank.
fn stretches(group: &Group, sms: u32, settings: &[Setting]) -> Vec<f64> {
    let (m, n, k) = group.operator.rank_gemm().unwrap_or((1, 1, 1));
    let problem = Problem {
        m,
        n,
        k,
        ld: [k, n, n],
        align: [256; 3],
        dtype: group.operator.dtype,
        accumulate: false,
        sms: 0,
    };
    let cost = |tile: Tile| tile.cost(&problem, sms);
    let tiles = settings.iter().filter_map(|setting| setting.tile);
    let least = tiles.map(cost).fold(f64::INFINITY, f64::min);
    let of = |setting: &Setting| match (setting.products, setting.tile) {
        (Products::Own, Some(tile)) => cost(tile) / least,
        _ => 1.0,
    };
    settings.iter().map(of).collect()
}

/// The first `count` of a ranking, with at most two tiles of each strategy with its parameters, and of each
/// strategy as many as are half of all, so that the simulator's errors of one kind do not fill the list.
pub fn shortlist(ranking: &Ranking, count: usize) -> Vec<Ranked> {
    const TILES: usize = 2;
    let mut list: Vec<Ranked> = Vec::new();
    for ranked in &ranking.ranked {
        let alike = |other: &&Ranked| {
            other.setting.strategy == ranked.setting.strategy
                && other.setting.products == ranked.setting.products
        };
        let kin = |other: &&Ranked| {
            let name = |ranked: &Ranked| ranked.setting.strategy.strategy().name();
            name(other) == name(ranked) && other.setting.products == ranked.setting.products
        };
        let room = list.len() < count
            && list.iter().filter(alike).count() < TILES
            && list.iter().filter(kin).count() < count.div_ceil(2);
        if room {
            list.push(ranked.clone());
        }
    }
    list
}
