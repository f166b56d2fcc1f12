//! `rail_optimized`: hosts of GPUs around a switch; GPU r of every host also hangs, through its
//! network card, on rail switch r, so that equal GPUs of a group of hosts are one switch apart.
//! Spine switches join all rail switches. A GPU's data for another rail crosses its own host first
//! or the spine, whichever the routes find shorter.

use super::{Generator, Scope, count};
use crate::input::Fields;
use crate::topology::NodeId;
use crate::topology::Ties;
use crate::topology::read::draft::Draft;

pub(super) const GENERATOR: Generator = Generator {
    name: "rail_optimized",
    about: "hosts of GPUs, one network rail per GPU of a host, spines above the rails",
    run,
};

fn run(fields: &mut Fields, scope: Scope, draft: &mut Draft) -> Option<()> {
    let hosts = count(fields, "hosts", (1, 1_000_000), None, draft);
    let per_host = count(fields, "gpus_per_host", (1, 1024), Some(8), draft);
    let intra = draft.sub_spec(fields, "intra", "nvlink");
    let rail = draft.sub_spec(fields, "rail", "ib");
    let (hosts, per_host) = (hosts?, per_host?);
    let group = count(fields, "group", (1, hosts), Some(hosts), draft)?;
    let spines = match fields.get("spine") {
        Some(node) => {
            let mut inner = Fields::of(node, "`spine`", &mut draft.found)?;
            let switches = count(&mut inner, "switches", (1, 100_000), None, draft);
            let spec = draft.spec(&mut inner, "ib");
            inner.finish(&mut draft.found);
            Some((switches?, spec?))
        }
        None => None,
    };
    let (intra, rail) = (intra?, rail?);
    let groups = hosts.div_ceil(group);
    if groups > 1 && spines.is_none() {
        draft.found.push(
            scope
                .at
                .wrong(
                    format!("{groups} groups of hosts without a spine"),
                    "needs `spine`",
                )
                .help("add e.g. `spine: { switches: 8, bandwidth: 50 GB/s, latency: 1 us }`"),
        );
        return None;
    }
    let rails = groups * per_host;
    let (gpus, spine_count) = (hosts * per_host, spines.map_or(0, |(switches, _)| switches));
    let nodes = gpus + hosts + rails + spine_count;
    let links = (4 * gpus).saturating_add((2 * rails).saturating_mul(spine_count));
    draft.room(scope.at, nodes, links).then_some(())?;
    draft.box_size = draft.box_size.or(u32::try_from(per_host).ok());
    let gpus = draft.next_gpus(scope, gpus)?;
    let width = usize::try_from(per_host).ok()?;
    for (host, gpus) in gpus.chunks(width).enumerate() {
        let switch = draft.switch(scope, "nvswitch", host)?;
        for &gpu in gpus {
            draft.both(&scope.at.span, gpu, switch, intra)?;
        }
    }
    let mut leaves: Vec<NodeId> = Vec::new();
    for (number, gpus) in gpus
        .chunks(width * usize::try_from(group).ok()?)
        .enumerate()
    {
        for lane in 0..width {
            let name = match groups {
                1 => format!("rail{lane}"),
                _ => format!("group{number}-rail{lane}"),
            };
            let leaf = draft.switch(scope, &name, "")?;
            for &gpu in gpus.iter().skip(lane).step_by(width) {
                draft.both(&scope.at.span, gpu, leaf, rail)?;
            }
            leaves.push(leaf);
        }
    }
    if let Some((switches, spec)) = spines {
        draft.ties = Ties::Spread;
        for number in 0..switches {
            let spine = draft.switch(scope, "spine", number)?;
            for &leaf in &leaves {
                draft.both(&scope.at.span, leaf, spine, spec)?;
            }
        }
    }
    Some(())
}
