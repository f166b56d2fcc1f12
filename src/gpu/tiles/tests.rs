//! The kernels' table, their choice, and what the compiler makes of them.

use super::tile::TILES;
use super::{Does, Family, Gated, Stage, Tile, waves};
use crate::device::DType;
use crate::gpu::cache::Cache;
use crate::gpu::kernels::compiled;
use crate::gpu::lt::Problem;
use crate::gpu::raw::{Attributes, nvrtc};

pub(super) fn gpu(major: u32, sms: u32, shared: u32) -> Attributes {
    Attributes {
        name: "GPU".to_owned(),
        major,
        minor: 0,
        sms,
        memory: 1 << 36,
        l2: 1 << 25,
        shared,
        copy_engines: 3,
        ecc: true,
        pci: String::new(),
        uuid: [0; 16],
    }
}

fn problem(m: u64, n: u64, k: u64) -> Problem {
    Problem {
        m,
        n,
        k,
        ld: [k, n, n],
        align: [256; 3],
        dtype: DType::Bf16,
        accumulate: false,
        sms: 0,
    }
}

#[test]
fn gpus_get_the_kernels_that_they_have_tensor_cores_and_memory_for() {
    let hopper = Tile::all(&gpu(9, 132, 232_448));
    assert_eq!(hopper.len(), TILES.len());
    assert_eq!(hopper[0].family, Family::Sm90);
    // An A100 gives a block 163 KiB, an RTX 4090 99 KiB.
    let ampere = Tile::all(&gpu(8, 108, 166_912));
    assert!(ampere.iter().all(|tile| tile.family == Family::Sm80));
    assert!(!ampere.is_empty());
    assert!(!Tile::all(&gpu(8, 128, 101_376)).is_empty());
    // No warpgroup products after Hopper.
    let later = Tile::all(&gpu(10, 148, 232_448));
    assert!(later.iter().all(|tile| tile.family == Family::Sm80));
}

#[test]
fn small_products_get_small_tiles_and_large_ones_large_tiles() {
    let h200 = gpu(9, 132, 232_448);
    let best = |m, n, k| Tile::ranked(&problem(m, n, k), &h200, &[])[0];
    assert_eq!(best(8192, 8192, 8192).cols, 256);
    assert!(best(128, 4096, 4096).cols < 256);
    // 8 × 14 tiles of 128 × 256 fill 112 of 132 SMs; 8 × 28 of 128 × 128 need two waves.
    assert_eq!(best(1024, 3584, 8192).cols, 256);
}

#[test]
fn tiles_have_names_of_their_own() {
    for (tile, _) in TILES {
        assert_eq!(Tile::named(&tile.name()), Some(tile));
    }
    assert_eq!(TILES[0].0.name(), "sm90-128x256x4-2x1");
    assert_eq!(Tile::named("sm90-1x1x1"), None);
    let whole = |tile: &Tile| u64::from(Tile::BANDS).is_multiple_of(tile.band());
    assert!(Tile::TABLE.iter().all(whole));
}

#[test]
fn rows_that_come_late_get_tiles_that_the_first_rows_fill_the_gpu_with() {
    let h200 = gpu(9, 132, 232_448);
    let halves = |m| {
        let of = |waits| Stage {
            rows: m / 2,
            waits,
            adds: false,
            leaves: false,
        };
        [of(false), of(true)]
    };
    let best = |m, n, k| Tile::ranked(&problem(m, n, k), &h200, &halves(m))[0];
    // One wave of 128 × 256 tiles, half of which would stand still: two of half the size.
    assert_eq!(
        Tile::ranked(&problem(512, 8192, 8192), &h200, &[])[0].cols,
        256
    );
    assert_eq!(best(512, 8192, 8192).cols, 128);
    // A wave for each half.
    assert_eq!(best(1024, 8192, 8192).cols, 256);
    assert_eq!(best(8192, 8192, 8192).cols, 256);
}

#[test]
fn stages_cost_what_a_schedule_of_their_tiles_takes() {
    let tile = Tile::all(&gpu(9, 132, 232_448))[0];
    let problem = problem(1024, 8192, 8192);
    let wave = tile.cost(&Problem { m: 256, ..problem }, 132);
    let cost = |rows: &[(u64, bool)]| {
        let of = |&(rows, waits): &(u64, bool)| Stage {
            rows,
            waits,
            adds: false,
            leaves: false,
        };
        let stages: Vec<Stage> = rows.iter().map(of).collect();
        tile.cost_in_stages(&problem, 132, &stages) / wave
    };
    // 32 clusters in a row of tiles, 66 at once: two waves, waiting or not.
    assert_eq!(cost(&[]), 2.0);
    assert_eq!(cost(&[(1024, false)]), 2.0);
    assert_eq!(cost(&[(512, false), (512, true)]), 2.0);
    // A quarter leaves half of the GPU idle until 64/66 of half a wave has passed.
    let there = 256.0 * 8192.0 / (132.0 * 128.0 * 256.0);
    assert!((cost(&[(256, false), (768, true)]) - (there + 2.0)).abs() < 1e-9);
}

#[test]
fn sums_are_awaited_by_tiles_that_are_multiplied() {
    let tile = Tile::all(&gpu(9, 132, 232_448))[0];
    let problem = problem(1024, 8192, 8192);
    let wave = tile.cost(&Problem { m: 256, ..problem }, 132);
    let stage = |rows, adds| Stage {
        rows,
        waits: adds,
        adds,
        leaves: false,
    };
    let cost = |first, second| {
        let stages = [stage(first, false), stage(second, true)];
        tile.cost_in_stages(&problem, 132, &stages) / wave
    };
    // Half of the rows are a wave, and the sums of the others come while these are multiplied, also in
    // two parts: the second comes behind the first, and not when that is done.
    assert_eq!(cost(512, 512), 2.0);
    let parts = [stage(512, false), stage(256, true), stage(256, true)];
    assert_eq!(tile.cost_in_stages(&problem, 132, &parts) / wave, 2.0);
    // All in one wave but for what comes over the link: 256 · 2000 of 8192 + 200 products deep.
    let one = Problem { m: 512, ..problem };
    let halves = [stage(256, false), stage(256, true)];
    let arrival = 256.0 * 8192.0 * 2000.0 / (132.0 * 128.0 * 256.0 * 8392.0);
    let found = tile.cost_in_stages(&one, 132, &halves) / wave;
    assert!((found - (1.0 + arrival)).abs() < 1e-9, "{found}");
}

/// Tiles that leave as they are stored follow one another over the link: with 2000 / (1000 + 200) of a wave for
/// those of 66 clusters, 128 of them have left at 1 + 128/66 · 5/3. Tiles that wait for them have been multiplied
/// by then, each on its SM, and the others take another wave. At k = 8192 they have left in time.
#[test]
fn tiles_that_leave_are_there_when_the_last_of_them_is() {
    let tile = Tile::all(&gpu(9, 132, 232_448))[0];
    let stage = |adds| Stage {
        rows: 1024,
        waits: adds,
        adds,
        leaves: !adds,
    };
    let cost = |k| {
        let problem = problem(2048, 8192, k);
        let wave = tile.cost(&Problem { m: 256, ..problem }, 132);
        tile.cost_in_stages(&problem, 132, &[stage(false), stage(true)]) / wave
    };
    let left = 1.0 + 128.0 / 66.0 * 2000.0 / 1200.0;
    assert!((cost(1000) - (left + 1.0)).abs() < 1e-9, "{}", cost(1000));
    assert_eq!(cost(8192), 4.0);
}

/// 1024 × 8192 in 128 clusters of 256 × 256, 66 at once, are two waves. Where copies take 8 of 132 SMs, three waves
/// of 344 tiles of 128 × 192, 0.75 of one each, take less than three of those. At 0.93 of the rate on all SMs they are
/// assumed to reach 0.99 on 124.
#[test]
fn fewer_sms_take_more_waves_of_other_tiles() {
    let all = problem(1024, 8192, 8192);
    let of = |problem: &Problem| waves(problem, 132, &[], None).unwrap();
    let whole = of(&all);
    assert_eq!((whole.time, whole.wave), (1.0, 0.5));
    let left = of(&Problem { sms: 124, ..all });
    assert!((left.time - 1.125 / 0.99).abs() < 1e-9, "{left:?}");
    assert!((left.wave - 1.0 / 3.0).abs() < 1e-9, "{left:?}");
    // One tile, as where it is named; and a product that is the library's.
    let named = waves(&Problem { sms: 124, ..all }, 132, &[], Some(TILES[0].0)).unwrap();
    assert_eq!((named.time, named.wave), (1.5, 1.0 / 3.0));
    // 256 clusters of 256 × 128, 33 at once on half of the SMs: eight waves of half the work, at the full rate.
    let half = waves(&Problem { sms: 66, ..all }, 132, &[], Some(TILES[4].0)).unwrap();
    assert!((half.time - 2.0).abs() < 1e-9, "{half:?}");
    let odd = Problem {
        ld: [8191, 8192, 8192],
        ..all
    };
    assert_eq!(waves(&odd, 132, &[], None), None);
}

/// Registers of a thread and bytes of its stack frame, spilled registers included: what the section
/// `.nv.info` of the machine code says.
fn registers_and_frame(code: &[u8]) -> Option<(u32, u32)> {
    let bytes = |at: usize, count: usize| code.get(at..at + count);
    let number = |at: usize, count: usize| -> Option<usize> {
        let fold = |all: usize, byte: &u8| all << 8 | usize::from(*byte);
        Some(bytes(at, count)?.iter().rev().fold(0, fold))
    };
    // Of an ELF file of 64 bits: the section headers, the size and number of them, that of the names.
    let (headers, size) = (number(0x28, 8)?, number(0x3A, 2)?);
    let (count, names) = (number(0x3C, 2)?, number(0x3E, 2)?);
    let names = number(headers + names * size + 24, 8)?;
    let (mut registers, mut frame) = (None, None);
    for header in (0..count).map(|i| headers + i * size) {
        let name = names + number(header, 4)?;
        if bytes(name, 9)? != b".nv.info\0" {
            continue;
        }
        let (mut at, end) = (number(header + 24, 8)?, number(header + 32, 8)?);
        let end = at + end;
        while at < end {
            let (format, attribute) = (number(at, 1)?, number(at + 1, 1)?);
            let length = number(at + 2, 2)?;
            // A kernel's number, then the value.
            match (format, attribute) {
                (4, 0x2F) => registers = number(at + 8, 4),
                (4, 0x11) => frame = number(at + 8, 4),
                _ => {}
            }
            at += 4 + if format == 4 { length } else { 0 };
        }
    }
    Some((registers? as u32, frame? as u32))
}

#[test]
fn every_kernel_compiles_without_spills_where_there_is_a_compiler() {
    if !nvrtc::present() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let cache = Cache::new(folder.path().to_owned());
    for (tile, _) in TILES {
        let archs: &[&str] = match tile.family {
            Family::Sm80 => &["sm_80", "sm_90a"],
            Family::Sm90 => &["sm_90a"],
        };
        for arch in archs {
            let all = Gated {
                brings: true,
                parted: true,
            };
            let gates = [None, Some(Gated::default()), Some(all)];
            let types = [(DType::Bf16, false), (DType::Fp16, true)];
            for (gated, (dtype, accumulate)) in gates
                .into_iter()
                .flat_map(|gated| types.map(|kind| (gated, kind)))
            {
                let options = tile.options(Does {
                    dtype,
                    accumulate,
                    traced: false,
                    gated,
                });
                let options: Vec<&str> = options.iter().map(String::as_str).collect();
                let code = compiled(tile.file(), arch, &options, &cache);
                let code = code.unwrap_or_else(|e| panic!("{tile}: {e}"));
                let (registers, frame) = registers_and_frame(&code).unwrap();
                let most = 65536 / (tile.threads() * tile.blocks());
                assert!(registers <= most, "{tile}, {arch}: {registers} registers");
                assert_eq!(frame, 0, "{tile}, {arch}: a stack of {frame} bytes");
            }
        }
    }
}
