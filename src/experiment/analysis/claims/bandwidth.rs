//! Claims about how fast collectives move data.

use super::{Check, Finding, printed, reason};
use crate::experiment::analysis::bandwidth::Curve;
use crate::experiment::analysis::{Analysis, Group};
use crate::units::Bytes;

/// Groups of bandwidth curves, by number of ranks.
fn groups(analysis: &Analysis) -> Vec<&Group> {
    let mut groups: Vec<&Group> = analysis.curves.iter().map(|curve| &curve.group).collect();
    groups.sort();
    groups.dedup();
    groups
}

fn curve<'a>(analysis: &'a Analysis, group: &Group, strategy: &str) -> Option<&'a Curve> {
    let mut curves = analysis.curves.iter();
    curves.find(|curve| curve.group == *group && *curve.strategy == *strategy)
}

fn peak(analysis: &Analysis, group: &Group, strategy: &str) -> Option<f64> {
    curve(analysis, group, strategy)?.peak()
}

fn gb(rate: f64) -> String {
    format!("{:.1} GB/s", rate / 1e9)
}

pub(super) const DOUBLE_RING: Check = Check {
    name: "double-ring-doubles",
    claim: "Two counter-rotating rings move data about twice as fast as one inside a NUMA domain.",
    rule: "on the smallest machine, at the largest size, 1.8 to 2.2 times",
    find: |analysis| {
        let groups = groups(analysis);
        let small = groups.iter().min_by_key(|group| group.tp)?;
        let ratio = |group: &Group| {
            let (double, single) = (
                peak(analysis, group, "double-ring")?,
                peak(analysis, group, "ring")?,
            );
            Some((double / single, double, single))
        };
        let (here, ..) = ratio(small)?;
        let numbers: Vec<String> = groups
            .iter()
            .filter_map(|group| {
                let (times, double, single) = ratio(group)?;
                Some(format!(
                    "{} GPUs: {} against {} ({times:.2}x)",
                    group.tp,
                    gb(double),
                    gb(single)
                ))
            })
            .collect();
        let holds = (1.8..=2.2).contains(&here);
        Some(Finding {
            holds,
            numbers: numbers.join("; "),
            why: reason(
                holds,
                "Every PCIe port carries one flow each way, the other neighbour is reached by the \
                 bridge, so the second ring uses what the first leaves idle.",
            ),
        })
    },
};

pub(super) const ALL_TO_ALL: Check = Check {
    name: "all-to-all-collapses",
    claim: "Copies between all pairs collapse over PCIe, below even the library's ring.",
    rule: "at the largest size, all-to-all copies are slower than the library on every machine",
    find: |analysis| {
        let mut holds = true;
        let mut numbers = Vec::new();
        for group in groups(analysis) {
            let direct = peak(analysis, group, "direct")?;
            let (library, double) = (
                peak(analysis, group, "library")?,
                peak(analysis, group, "double-ring")?,
            );
            holds &= direct < library;
            numbers.push(format!(
                "{} GPUs: {}, {:.0} % of the library's {}{}; the double ring moves {:.2}x as much{}",
                group.tp,
                gb(direct),
                100.0 * direct / library,
                gb(library),
                printed(analysis, &format!("bandwidth.direct-over-library.tp{}", group.tp)),
                double / direct,
                printed(analysis, &format!("bandwidth.double-over-direct.tp{}", group.tp)),
            ));
        }
        (!numbers.is_empty()).then(|| Finding {
            holds,
            numbers: numbers.join("; "),
            why: "What several flows at one port leave of it is the machine's contention curve: \
                  the factor is put in, not found. That of the machines of this paper is taken \
                  from it."
                .to_owned(),
        })
    },
};

pub(super) const COPY_ENGINES: Check = Check {
    name: "copy-engines-need-size",
    claim: "A ring of copy engines beats the library at large messages; the library wins at the \
            smallest.",
    rule: "on every machine, slower at the smallest size and faster at the largest",
    find: |analysis| {
        let mut holds = true;
        let mut numbers = Vec::new();
        for group in groups(analysis) {
            let (ring, library) = (
                curve(analysis, group, "ring")?,
                curve(analysis, group, "library")?,
            );
            let pairs = ring.points.iter().zip(&library.points);
            let ratios: Vec<(f64, f64)> = pairs.map(|(a, b)| (a.0, a.1 / b.1)).collect();
            let (first, last) = (ratios.first()?, ratios.last()?);
            holds &= first.1 < 1.0 && last.1 > 1.0;
            let from = ratios.iter().find(|(_, ratio)| *ratio > 1.0);
            let crossing = from.map_or_else(
                || "never ahead".to_owned(),
                |(bytes, _)| format!("ahead from {}", Bytes::new(*bytes as u64)),
            );
            numbers.push(format!(
                "{} GPUs: {:.2}x at the smallest, {:.2}x at the largest, {crossing}",
                group.tp, first.1, last.1
            ));
        }
        (!numbers.is_empty()).then(|| Finding {
            holds,
            numbers: numbers.join("; "),
            why: "At small sizes a step of copies (copy start and stream flag) is weighed against \
                  a step of the library and its fixed time, all of them constants of the GPU's \
                  profile; at large ones the library fills the links to its efficiency only, one \
                  of them too."
                .to_owned(),
        })
    },
};
