//! The simulator's order of settings.

use rayon::prelude::*;

use super::Setting;
use crate::experiment::judge::settled;
use crate::sim::{self, Executed};
use crate::strategy::Site;
use crate::topology::Topology;
use crate::topology::paths::with_path;
use crate::validate::key::Group;
use crate::validate::tiling::tiling;

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

/// Simulates every setting of a group on a machine; `step` is called after each setting.
pub fn rank(
    group: &Group,
    topology: &Topology,
    settings: &[Setting],
    step: &(dyn Fn() + Sync),
) -> Ranking {
    let topology = with_path(topology, group.choice());
    let site = Site::new(&topology, group.placement.to_vec());
    let times: Vec<Result<f64, String>> = settings
        .par_iter()
        .map(|setting| {
            let schedule = setting.strategy.build_at(&group.operator, &site);
            let time = schedule.map_err(|skip| skip.reason).and_then(|schedule| {
                let how = executed(group, setting);
                sim::executed(&schedule, &topology, &how)
                    .map(|timeline| timeline.makespan)
                    .map_err(|error| error.to_string())
            });
            step();
            time
        })
        .collect();
    let mut ranking = Ranking::default();
    for (setting, time) in settings.iter().zip(times) {
        match time {
            Ok(time) => ranking.ranked.push(Ranked {
                setting: setting.clone(),
                predicted: settled(time),
            }),
            Err(reason) => ranking.skipped.push((setting.clone(), reason)),
        }
    }
    ranking
        .ranked
        .sort_by(|a, b| a.predicted.total_cmp(&b.predicted));
    ranking
}

/// How GPUs perform a setting.
fn executed(group: &Group, setting: &Setting) -> Executed {
    Executed {
        launch: group.launch,
        lowered: setting.options(group).lowered(),
        record: false,
        tiling: tiling(setting.products, setting.tile),
    }
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
