//! Speed-ups and overlap.

use super::Section;
use crate::experiment::analysis::operator_title;
use crate::experiment::analysis::statistics::geomean;
use crate::experiment::percent;
use crate::report::table::time;
use crate::validate::analysis::Validation;
use crate::validate::analysis::speed::Gain;

const COLUMNS: &[&str] = &[
    "operator",
    "of",
    "over",
    "groups>",
    "faster>",
    "measured>",
    "predicted>",
];

pub(super) fn gains(found: &Validation) -> Section {
    table(
        "speed-ups",
        "Speed-ups",
        "Geometric means over groups of T(baseline)/T, measured in the same rounds, and as predicted; `faster` counts groups above 1. The baselines are the copy engine and then the same GEMM, and NCCL (NVLS off) and then the same GEMM.",
        &found.speed.gains,
    )
}

pub(super) fn strategies(found: &Validation) -> Section {
    table(
        "speed-ups-by-strategy",
        "Speed-ups by strategy",
        "Over the copy engine and then the same GEMM: of each strategy the setting that was measured as its fastest, geometric means over groups.",
        &found.speed.strategies,
    )
}

pub(super) fn fusions(found: &Validation) -> Section {
    table(
        "fusions",
        "Fusions over InterDecom",
        "With Duet's own products: the fusion and setting that were measured as the fastest, and those that the simulator takes for it, over the setting of InterDecom that was measured as its fastest, by ranks and the GPUs that they share; geometric means over groups.",
        &found.speed.fusions,
    )
}

fn table(key: &'static str, title: &'static str, words: &'static str, gains: &[Gain]) -> Section {
    let mut section = Section::new(key, title, words, COLUMNS);
    for gain in gains {
        section.row(cells(gain));
    }
    section
}

fn cells(gain: &Gain) -> Vec<String> {
    let times = |value: f64| format!("{value:.3}x");
    vec![
        operator_title(gain.operator).to_owned(),
        gain.of.clone(),
        gain.over.to_owned(),
        gain.groups.to_string(),
        gain.faster.to_string(),
        times(gain.measured),
        gain.predicted.map_or_else(String::new, times),
    ]
}

pub(super) fn hybrids(found: &Validation) -> Section {
    let mut section = Section::new(
        "hybrid",
        "Both paths at once",
        "The fastest strategy over the hybrid path (link and host together) against the fastest over the better of the two alone: min(link, host)/hybrid.",
        &[
            "group",
            "hybrid>",
            "link>",
            "host>",
            "measured>",
            "predicted>",
        ],
    );
    let times = |value: f64| format!("{value:.3}x");
    for hybrid in &found.speed.hybrids {
        section.row([
            hybrid.group.clone(),
            time(hybrid.hybrid),
            time(hybrid.p2p),
            hybrid.host.map_or_else(String::new, time),
            times(hybrid.measured),
            hybrid.predicted.map_or_else(String::new, times),
        ]);
    }
    let hybrids = &found.speed.hybrids;
    let predicted: Option<Vec<f64>> = hybrids.iter().map(|hybrid| hybrid.predicted).collect();
    if let Some(measured) = geomean(hybrids.iter().map(|hybrid| hybrid.measured)) {
        let predicted = predicted.and_then(geomean);
        section.note(format!(
            "Geometric mean {}{}; the hybrid is faster in {} of {}.",
            times(measured),
            predicted.map_or_else(String::new, |p| format!(", predicted {}", times(p))),
            hybrids
                .iter()
                .filter(|hybrid| hybrid.measured > 1.0)
                .count(),
            hybrids.len()
        ));
    }
    section
}

pub(super) fn peers(found: &Validation) -> Section {
    let mut section = Section::new(
        "peers",
        "Beside other programs",
        "Duet's chosen strategy in turns with the other on the same GPUs (NVLS off): geometric mean over shapes of the median over rounds of the other's time over Duet's; `faster` counts shapes on which Duet is faster.",
        &["operator", "over", "shapes", "n>", "faster>", "speed-up>"],
    );
    for peer in &found.peers {
        section.row([
            operator_title(peer.operator).to_owned(),
            peer.over.to_owned(),
            if peer.many { "m ≥ 1024" } else { "all" }.to_owned(),
            peer.shapes.to_string(),
            peer.faster.to_string(),
            format!("{:.3}x", peer.speedup),
        ]);
    }
    section
}

pub(super) fn overlap(found: &Validation) -> Section {
    let mut section = Section::new(
        "overlap",
        "Overlap",
        "ECT = T − T(unsplit GEMM); efficiency = 1 − ECT/ECT of the copy engine and then the same GEMM; both from differences within rounds, medians over cases. An efficiency is claimed with 60 rounds or more and a 95 % interval of at most 10 points; `off` is the mean of |predicted − measured| in points. T/GEMM is T/T(unsplit GEMM) of all cases.",
        &[
            "strategy",
            "cases>",
            "ECT>",
            "claimed>",
            "efficiency>",
            "predicted>",
            "off>",
            "T/GEMM>",
            "predicted T/GEMM>",
        ],
    );
    let share = |value: Option<f64>| value.map_or_else(String::new, percent);
    for overlap in &found.overlap {
        section.row([
            overlap.strategy.clone(),
            overlap.cases.to_string(),
            time(overlap.ect),
            overlap.claimed.to_string(),
            share(overlap.efficiency),
            share(overlap.predicted),
            overlap
                .error
                .map_or_else(String::new, |error| format!("{:.1}", 100.0 * error)),
            format!("{:.3}", overlap.ratio),
            overlap
                .predicted_ratio
                .map_or_else(String::new, |ratio| format!("{ratio:.3}")),
        ]);
    }
    section
}
