use super::*;
use proptest::prelude::*;

#[test]
fn late_blocks_take_what_is_left() {
    // 512 tiles on 132 blocks: four waves.
    let gemm = Tiles {
        count: 512,
        each: 1.0,
        least: 1.0,
        own: 2,
    };
    assert_eq!(gemm.end((132, 0), 0.0), 4.0);
    // 108 do 432 in four; the others do two waves of 24 from 1.4 on and 32 are left for a fifth.
    assert_eq!(gemm.end((108, 24), 1.4), 5.0);
    // With three waves of the others 504, with a fourth 528.
    assert_eq!(gemm.end((108, 24), 0.25), 4.25);
    // They come when the first leave, with two tiles each.
    assert_eq!(gemm.end((108, 24), 5.0), 7.0);
    // With all tiles their own the late ones do four waves whenever they come.
    let all = Tiles {
        own: u32::MAX,
        ..gemm
    };
    assert_eq!(all.end((108, 24), 1.4), 5.4);
    let passing = Tiles { own: 0, ..gemm };
    assert_eq!(passing.end((108, 24), 7.0), 5.0);
    // Of 128 tiles that share the memory's rate, 32 by themselves take what their arithmetic takes.
    let shared = Tiles {
        count: 128,
        each: 1.0,
        least: 0.4,
        own: 2,
    };
    assert_eq!(shared.end((96, 32), 2.0), 2.4);
    assert_eq!(shared.end((96, 32), 0.5), 1.2);
}

#[test]
fn blocks_without_a_tile_are_idle() {
    let gemm = Tiles {
        count: 256,
        each: 1.0,
        least: 1.0,
        own: 2,
    };
    // Two waves of 108 and 40 tiles for 68 too many.
    assert_eq!(gemm.idle((108, 0), 0.0)[..], [(2.0, 68)]);
    assert!(gemm.idle((128, 0), 0.0).is_empty());
    // With 24 more to come eight blocks have one tile, seven of them among the first.
    let two = [(1.0, 7), (2.0, 101)];
    assert_eq!(gemm.idle((108, 24), 0.5)[..], two);
    assert_eq!(gemm.idle((108, 24), f64::INFINITY)[..], two);
    // 120 are on the list: 108 and 12.
    let more = Tiles { count: 384, ..gemm };
    let idle = more.idle((108, 24), f64::INFINITY);
    assert_eq!(idle[..], [(3.0, 96), (4.0, 12)]);
    // The 12 are for late blocks that come before the others have done three.
    assert_eq!(more.idle((108, 24), 0.5)[..], [(3.0, 108)]);
}

#[test]
fn blocks_have_their_first_tiles_in_order() {
    // 132 and 18 tiles: the first 18 blocks have two, the late ones one each.
    let few = Tiles {
        count: 150,
        each: 1.0,
        least: 1.0,
        own: u32::MAX,
    };
    assert_eq!(few.end((108, 24), 1.0), 2.0);
    assert_eq!(few.end((108, 24), 1.5), 2.5);
    assert_eq!(few.idle((108, 24), 1.0)[..], [(1.0, 90), (2.0, 18)]);
    // 132 and 110: two of the late ones have two.
    let more = Tiles { count: 242, ..few };
    assert_eq!(more.end((108, 24), 1.0), 3.0);
}

#[test]
fn gemms_begin_in_whole_clusters() {
    assert_eq!(blocks(512, 108, 8), 104);
    assert_eq!(blocks(512, 108, 4), 108);
    assert_eq!(blocks(86, 108, 8), 88);
    assert_eq!(blocks(1, 108, 2), 2);
    assert_eq!(blocks(107, 107, 0), 107);
    assert_eq!(blocks(5, 3, 8), 3);
}

#[test]
fn blocks_of_the_library_with_one_tile_are_early_and_late_alike() {
    // 132 and 44 tiles: 36 of the first 108 blocks have two, and 8 of the late ones.
    let few = Tiles {
        count: 176,
        each: 1.0,
        least: 1.0,
        own: 2,
    };
    assert_eq!(few.end((108, 24), 0.0), 2.0);
    assert_eq!(few.end((108, 24), 1.0), 3.0);
    assert_eq!(few.idle((108, 24), 1.0)[..], [(1.0, 72), (2.0, 36)]);
    // Too few for one to be late: the last is an early one's.
    let one = Tiles { count: 133, ..few };
    assert_eq!(one.end((108, 24), 1.5), 2.5);
}

/// When each of `first` and `late` blocks has done its last tile, where each takes its next as it is free,
/// the first blocks before the others.
fn by_block(tiles: Tiles, (first, late): (u32, u32), from: f64) -> Vec<f64> {
    let all = first + late;
    let own = tiles.count.min(tiles.own.saturating_mul(all));
    let free = |block: u32| match block < first {
        true => 0.0,
        false => from,
    };
    let mut blocks: Vec<(f64, bool)> = (0..all)
        .map(|block| {
            let more = own % all;
            let early = match tiles.own {
                u32::MAX => more.min(first),
                _ => share(more, first, all),
            };
            let extra = match block < first {
                true => block < early,
                false => block - first < more - early,
            };
            let has = own / all + u32::from(extra);
            (free(block) + f64::from(has) * tiles.each, has > 0)
        })
        .collect();
    for _ in own..tiles.count {
        if let Some(next) = blocks.iter_mut().min_by(|a, b| a.0.total_cmp(&b.0)) {
            *next = (next.0 + tiles.each, true);
        }
    }
    let done = |(at, has): (f64, bool)| if has { at } else { 0.0 };
    blocks.into_iter().map(done).collect()
}

proptest! {
    #[test]
    fn rounds_are_those_of_blocks_one_by_one(
        count in 1u32..1500,
        first in 1u32..132,
        late in 1u32..64,
        quarters in 0u32..80,
        own in prop_oneof![Just(0), Just(1), Just(2), Just(u32::MAX)],
    ) {
        let tiles = Tiles { count, each: 1.0, least: 1.0, own };
        let from = f64::from(quarters) / 4.0;
        let blocks = by_block(tiles, (first, late), from);
        let end = blocks.iter().copied().fold(0.0, f64::max);
        prop_assert_eq!(tiles.end((first, late), from), end);
        let (early, _) = blocks.split_at(first as usize);
        for (at, _) in tiles.idle((first, late), from) {
            let gone: u32 = tiles.idle((first, late), from).iter()
                .filter(|(other, _)| *other <= at).map(|(_, blocks)| blocks).sum();
            prop_assert_eq!(gone as usize, early.iter().filter(|end| **end <= at).count());
        }
    }

    #[test]
    fn more_and_earlier_blocks_never_end_later(
        count in 1u32..3000,
        first in 1u32..132,
        late in 1u32..64,
        from in 0.0..20.0_f64,
    ) {
        let tiles = Tiles { count, each: 1.0, least: 1.0, own: 2 };
        let end = tiles.end((first, late), from);
        let alone = tiles.end((first, 0), 0.0);
        let all = f64::from(count.div_ceil(first + late));
        prop_assert!(end >= all);
        prop_assert!(alone >= all);
        prop_assert!(tiles.end((first, late), from + 0.5) >= end - 1e-9);
        prop_assert!(end <= alone.max(from + 2.0) + 1e-9);
    }
}

/// GEMMs of section `held`: tiles (those beyond C too, where clusters are not full), blocks that begin at once beside
/// those that hold SMs, and others. All begin as the first leave at the latest.
const GEMMS: [(&str, u32, (u32, u32)); 10] = [
    ("m512n22016k4096 on 132", 344, (108, 24)),
    ("m576n9152k8192 on 132", 216, (96, 24)),
    ("m512n27648k2560 on 132", 348, (108, 24)),
    ("m512n57344k2048 on 132", 896, (108, 24)),
    ("m544n14144k24192 on 132", 222, (108, 24)),
    ("m2304n3520k5568 on 108", 216, (96, 12)),
    ("m3072n11200k2496 on 108", 840, (96, 12)),
    ("m512n10240k6144 on 108", 216, (96, 12)),
    ("m352n14144k9152 on 108", 304, (72, 32)),
    ("m1824n4096k14336 on 108", 320, (96, 12)),
];
const HELD: &str =
    include_str!("../../../experiments/calibration/measured/2026-11-30-h200-pair-held.csv");

/// From the moment before a GEMM to its first block, and from its last to the moment behind it \[us\].
const AROUND: f64 = 2.0;

#[test]
fn gemms_whose_last_blocks_find_their_sms_held_end_as_measured() {
    let median = |samples: &str| {
        let mut all: Vec<f64> = samples.split(' ').map(|x| x.parse().unwrap()).collect();
        all.sort_by(f64::total_cmp);
        all[all.len() / 2]
    };
    let mut off = Vec::new();
    for (name, count, (first, late)) in GEMMS {
        let begin = format!("held,{name} ends,");
        let times: Vec<(f64, f64)> = (HELD.lines())
            .filter_map(|line| {
                let mut cells = line.strip_prefix(&begin)?.split(',');
                let held: f64 = cells.next()?.parse().ok()?;
                Some((held, median(cells.nth(1)?)))
            })
            .collect();
        let [(_, alone), held @ ..] = &times[..] else {
            panic!("{name}");
        };
        let rounds = f64::from(count.div_ceil(first + late));
        let each = (alone - AROUND) / rounds;
        let tiles = Tiles {
            count,
            each,
            least: 0.9 * each,
            own: 2,
        };
        let (leave, _) = tiles.idle((first, late), f64::INFINITY)[0];
        assert_eq!(held.len(), 9, "{name}");
        for (time, measured) in held {
            let from = (time - 2.0 * AROUND).max(0.0).min(leave);
            let end = AROUND + tiles.end((first, late), from);
            off.push((end / measured - 1.0).abs());
            assert!(
                off[off.len() - 1] < 0.075,
                "{name}, {time}: {end} {measured}"
            );
        }
    }
    let mean = off.iter().sum::<f64>() / off.len() as f64;
    assert!(mean < 0.025, "{mean}");
}
