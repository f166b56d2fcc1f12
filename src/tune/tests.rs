//! The order of settings, and what is kept.

use super::*;
use crate::gpu::plan::Products;
use crate::gpu::tiles::{Family, Tile};
use crate::topology;
use crate::validate::key::Group;

fn group(name: &str) -> Group {
    name.parse().unwrap()
}

fn tiles() -> Vec<Tile> {
    Tile::of(Family::Sm90, 232_448)
}

fn ranking(name: &str) -> Ranking {
    let group = group(name);
    let topology = topology::load("h200-pair", &[]).unwrap();
    let settings = settings(&group, &tiles());
    let ranking = rank(&group, &topology, &settings, &|| ());
    assert_eq!(ranking.ranked.len() + ranking.skipped.len(), settings.len());
    ranking
}

#[test]
fn every_tile_chunk_order_and_mover_is_there_once() {
    let all = settings(
        &group("gemm-rs/8192x8192x16384/bf16/2on2/p2p/stream"),
        &tiles(),
    );
    let mut names: Vec<String> = all.iter().map(ToString::to_string).collect();
    let count = names.len();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), count);
    let own = |all: &[Setting]| {
        let own = all.iter().filter(|s| s.products == Products::Own);
        own.count() / tiles().len()
    };
    // Sequential, and for each chunk: two orders and two rings by five movers, one of each by epilogues, and
    // accumulation.
    assert_eq!(own(&all), 1 + 4 * (4 * 5 + 2 + 1));
    // Five movers in each of three numbers of slabs, loaders in these and in none; nothing accumulates.
    let of = |name: &str| own(&settings(&group(name), &tiles()));
    let gathers = of("ag-gemm/8192x8192x16384/bf16/2on2/p2p/stream");
    assert_eq!(gathers, 1 + 4 * 4 * 5 + 3 * 5 + 4);
    // Through the host by copy engines alone: five numbers of chunks, and up to 32 pieces in slabs.
    let gathers = of("ag-gemm/8192x8192x16384/bf16/2on2/host:2MiB/stream");
    assert_eq!(gathers, 1 + 5 * 4 + 3 + 3 + 3 + 2 + 1);
    let scatters = of("gemm-rs/8192x8192x16384/bf16/2on2/host:2MiB/stream");
    assert_eq!(scatters, 1 + 5 * (4 + 1));
    assert!(
        all.iter()
            .all(|s| (s.products == Products::Own) == s.tile.is_some())
    );
}

#[test]
fn fast_tiles_and_overlap_come_first_and_shortlists_are_mixed() {
    let ranking = ranking("ag-gemm/8192x16384x8192/bf16/2on2/p2p/stream");
    let times: Vec<f64> = ranking.ranked.iter().map(|r| r.predicted).collect();
    assert!(times.is_sorted() && times[0] > 0.0);
    let at = |name: &str| {
        let named = |r: &Ranked| r.setting.to_string() == name;
        ranking.ranked.iter().position(named).unwrap()
    };
    let [wide, narrow] = ["128x256x4-2x1", "128x64x8"]
        .map(|tile| at(&format!("fusion-alltoall, duet, sm90-{tile}")));
    assert!(wide < narrow);
    assert!(wide < at("sequential, library"));
    let list = shortlist(&ranking, 8);
    assert_eq!(list.len(), 8);
    assert_eq!(list[0], ranking.ranked[0]);
    for ranked in &list {
        let same = list
            .iter()
            .filter(|r| r.setting.strategy == ranked.setting.strategy);
        assert!(same.count() <= 4);
        let name = |r: &Ranked| (r.setting.strategy.strategy().name(), r.setting.products);
        let kin = list.iter().filter(|r| name(r) == name(ranked));
        assert!(kin.count() <= 4);
    }
}

fn tuned(group: &str, times: &[Option<f64>]) -> Tuned {
    Tuned {
        group: group.to_owned(),
        machine: "m".to_owned(),
        rounds: 5,
        model: "0".to_owned(),
        searched: 100,
        skipped: vec![("no ring".to_owned(), 3)],
        tried: times
            .iter()
            .map(|&measured| Tried {
                setting: format!("{measured:?}"),
                predicted: 1.0,
                measured,
                p10: measured,
                p90: measured,
                reason: measured.is_none().then(|| "no".to_owned()),
            })
            .collect(),
    }
}

#[test]
fn regret_is_of_the_first_that_could_be_performed() {
    let found = tuned("g", &[None, Some(1.1), Some(1.0), Some(1.2)]);
    assert_eq!(found.best().map(|(at, _, time)| (at, time)), Some((2, 1.0)));
    assert!((found.regret().unwrap() - 0.1).abs() < 1e-12);
    assert_eq!(tuned("g", &[None]).regret(), None);
}

#[test]
fn what_is_kept_is_read_again_and_a_torn_line_is_not() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a/tuned.jsonl");
    let mut store = Store::open(&path, false).unwrap();
    let first = tuned("one", &[Some(2.0), None]);
    store.keep(first.clone()).unwrap();
    store.keep(tuned("two", &[Some(3.0)])).unwrap();
    let text = std::fs::read_to_string(&path).unwrap();
    std::fs::write(&path, &text[..text.len() - 9]).unwrap();
    let store = Store::open(&path, false).unwrap();
    assert_eq!(store.get(&first, 2), Some(&first));
    assert_eq!(store.get(&tuned("two", &[]), 1), None);
    // More settings; another machine, another model, more rounds.
    assert_eq!(store.get(&first, 3), None);
    let other = |change: fn(&mut Tuned)| {
        let mut wanted = first.clone();
        change(&mut wanted);
        store.get(&wanted, 2).is_none()
    };
    assert!(other(|t| t.machine = "x".to_owned()));
    assert!(other(|t| t.model = "1".to_owned()));
    assert!(other(|t| t.rounds = 6));
    let left = std::fs::read_to_string(&path).unwrap();
    assert_eq!(left.lines().count(), 1);
    #[cfg(unix)]
    {
        let error = Store::open(std::path::Path::new("/dev/zero"), false).unwrap_err();
        assert!(error.to_string().contains("larger than 64 MiB"), "{error}");
    }
    std::fs::write(&path, "{}\n").unwrap();
    let error = Store::open(&path, false).unwrap_err().to_string();
    assert!(error.starts_with("line 1 of `"), "{error}");
    assert!(Store::open(&path, true).is_ok());
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "");
}
