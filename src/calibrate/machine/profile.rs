//! From facts to the numbers of a GPU profile, by the formulas of the simulator.
//!
//! What is measured adds up several numbers of the profile, so some are differences:
//!
//! ```text
//! kernel.each    = lane + kernel_start                  kernels that do nothing, in one stream
//! sm.each        = lane + kernel_start + sm_copy_start + latency
//! barrier.each   = lane + kernel_start + kernel_flag    a kernel, a flag across, a spin
//! hop            = order + event − lane                 a blocked hand-off, beside one in a stream
//! empty          = kernel.first − kernel.each          a sample of nothing, its two events
//! p2p.all.start  = empty + lane + copy_start + latency  copies of all GPUs at once, the last end, at size 0
//! slowed         = 1 / (1 − Σ rate / beside)           a GEMM with copies that outlast it
//! nccl           = empty + kernel_start + base + steps · (step + latency) + s / (efficiency · link)
//! GEMM of burst  = lane + kernel_start + overhead + waves
//! ```
//!
//! `kernel_start` and the latency of links cannot be told from their neighbours; they keep the
//! values of the profile that the calibration starts from.

use std::collections::BTreeMap;

use super::estimate::Estimate;
use super::extras::extras;
use crate::device::{self, Device};

/// A number of the profile with where it is from.
#[derive(Clone, Debug, PartialEq)]
pub struct Field {
    /// Full name, as in [`device::numbers`].
    pub name: String,
    pub value: Estimate,
    /// First word of its source: `measured` or `fitted`.
    pub kind: &'static str,
    /// How, in a few words.
    pub how: &'static str,
}

/// Facts by name.
pub type Facts = BTreeMap<String, Estimate>;

/// The numbers of a profile that the facts tell. `latency` is that of the way between two GPUs
/// \[s\], `kind` the kind of its link.
pub fn fields(facts: &Facts, base: &Device, latency: f64, kind: &str) -> Vec<Field> {
    let get = |name: &str| facts.get(name).copied();
    let mut all = Vec::new();
    let mut put = |name: &str, value: Option<Estimate>, kind, how| {
        if let Some(value) = value.filter(|v| v.value.is_finite()) {
            let name = name.to_owned();
            all.push(Field {
                name,
                value,
                kind,
                how,
            });
        }
    };
    let fixed = |value| Estimate::exact(value, 0);
    let minus = |a: Option<Estimate>, b: f64| {
        a.map(|a| Estimate {
            n: a.n,
            ..a.less(Estimate { n: a.n, ..fixed(b) })
        })
    };
    let each = get("kernel.each");
    let start = each.map_or(base.costs.kernel_start.get(), |each| {
        base.costs.kernel_start.get().min(each.value)
    });
    if start < base.costs.kernel_start.get() {
        put(
            "costs.kernel_start",
            each,
            "fitted",
            "all of a kernel's time in a row",
        );
    }
    let lane = minus(each, start);
    let lane_value = lane.map_or(base.costs.lane.get(), |lane| lane.value);
    let row = start + lane_value;
    put(
        "costs.lane",
        lane,
        "fitted",
        "empty kernels in a row less kernel_start",
    );
    let empty = match (get("kernel.first"), each) {
        (Some(first), Some(each)) => (first.value - each.value).max(0.0),
        _ => 0.0,
    };
    // What one takes by itself spreads by half, and ranks wait for one another: for the slowest.
    let (copy, how) = match get("p2p.all.start") {
        Some(start) => (
            Some(start),
            "copies of all GPUs at once, the last end, at size 0 less events, lane and latency",
        ),
        None => (
            get("p2p.start"),
            "copies alone at size 0 less events, lane and latency",
        ),
    };
    let copy = minus(copy, empty + lane_value + latency);
    put("costs.copy_start", copy, "fitted", how);
    let sm = minus(get("sm.each"), row + latency);
    put(
        "costs.sm_copy_start",
        sm,
        "fitted",
        "4 KiB copy kernels in a row less empty ones and latency",
    );
    let plus_lane = |name: &str| get(name).map(|e| e.map(|v| v + lane_value));
    put(
        "costs.event",
        plus_lane("hop.same.extra").or(plus_lane("event.same.extra")),
        "fitted",
        "blocked waits between two streams, stream mode",
    );
    put(
        "costs.event_peer",
        plus_lane("hop.peer.extra").or(plus_lane("event.peer.extra")),
        "fitted",
        "blocked waits between two GPUs, stream mode",
    );
    put(
        "costs.stream_flag",
        plus_lane("value.peer.extra"),
        "fitted",
        "flag written to blocked wait between two GPUs",
    );
    let flag = minus(get("barrier.each"), row);
    put(
        "costs.kernel_flag",
        flag,
        "fitted",
        "barriers of all GPUs in a row less empty kernels",
    );
    let how = "host time of 100 calls in a row";
    put("costs.submit_kernel", get("submit.kernel"), "measured", how);
    put("costs.submit_copy", get("submit.copy"), "measured", how);
    put(
        "costs.submit_graph",
        get("submit.graph33"),
        "measured",
        "host time of launching a graph of 33 kernels",
    );
    let sync: Vec<Estimate> = ["record", "wait", "write", "wait-value"]
        .iter()
        .filter_map(|call| get(&format!("submit.{call}")))
        .collect();
    put(
        "costs.submit_sync",
        mean(&sync),
        "measured",
        "mean of event record, event wait, flag write, flag wait",
    );
    let link = get("p2p.bandwidth");
    put(
        "copies.peer_copy",
        link,
        "fitted",
        "copies by copy engine from 4 KiB to the largest",
    );
    put(
        "copies.sm_copy",
        get("sm.push.block"),
        "measured",
        "pushed by 1 to 4 blocks, per block",
    );
    let share = |part: Option<Estimate>| {
        let whole = link?.value;
        part.map(|part| part.map(|rate| (rate / whole).min(1.0)))
    };
    put(
        "copies.sm_copy_efficiency",
        share(get("sm.push.best")),
        "measured",
        "best push by blocks, of the copy engine's rate",
    );
    put(
        "copies.local_copy",
        get("local.eighth"),
        "measured",
        "copy kernel on an eighth of the SMs",
    );
    put(
        "copies.elementwise",
        get("add.rate"),
        "measured",
        "sum of two matrices, read and written",
    );
    let hbm = [
        get("add.rate"),
        get("gemm.floor"),
        get("local.driver").map(|e| e.map(|v| 2.0 * v)),
    ];
    let hbm = hbm
        .into_iter()
        .flatten()
        .max_by(|a, b| a.value.total_cmp(&b.value));
    put(
        "memory.hbm",
        hbm,
        "measured",
        "fastest of sum, copy and GEMM of few rows",
    );
    put(
        "gemm.loaded",
        get("gemm.loaded"),
        "measured",
        "8192³ on a GPU that rested over the same after a second of it on all GPUs",
    );
    put(
        "gemm.accumulate",
        get("gemm.accumulate.rate"),
        "measured",
        "bytes of C over what accumulating GEMMs take longer",
    );
    for (field, fact) in [
        ("peer", "p2p.engines"),
        ("h2d", "host.h2d.engines"),
        ("d2h", "host.d2h.engines"),
    ] {
        let count = get(fact).map(|e| e.map(|v| v.round().max(1.0)));
        put(
            &format!("engines.{field}"),
            count,
            "measured",
            "copies that ended together",
        );
    }
    put(
        "library.base",
        minus(get("nccl.base"), empty + start),
        "fitted",
        "collectives over sizes",
    );
    put(
        "library.step",
        minus(get("nccl.step"), latency),
        "fitted",
        "collectives over sizes",
    );
    let name = format!("library.efficiency.{kind}");
    put(
        &name,
        share(get("nccl.rate")),
        "fitted",
        "rate of collectives, of the copy engine's",
    );
    all.extend(extras(facts, start, lane_value, latency));
    all
}

/// The mean of estimates and of their bounds.
pub(super) fn mean(all: &[Estimate]) -> Option<Estimate> {
    let count = (!all.is_empty()).then_some(all.len() as f64)?;
    let of = |f: fn(&Estimate) -> f64| all.iter().map(f).sum::<f64>() / count;
    Some(Estimate {
        value: of(|e| e.value),
        low: of(|e| e.low),
        high: of(|e| e.high),
        n: all.iter().map(|e| e.n).sum(),
    })
}

/// The profile with the fields put in; those out of range are left and told.
pub fn apply(base: &Device, fields: &[Field], kind: &str) -> (Device, Vec<String>) {
    let mut device = base.clone();
    let known = |device: &Device| {
        device
            .library
            .efficiency
            .iter()
            .any(|(name, _)| name == kind)
    };
    if !known(&device) {
        let other = device.library.other;
        device.library.efficiency.push((kind.to_owned(), other));
    }
    let mut refused = Vec::new();
    for field in fields {
        if let Err(error) = device::assign(&mut device, &field.name, field.value.value) {
            refused.push(error);
        }
    }
    (device, refused)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fact(facts: &mut Facts, name: &str, value: f64) {
        facts.insert(name.to_owned(), Estimate::exact(value, 10));
    }

    /// A machine made up: facts by the formulas above, from which its numbers must come back.
    #[test]
    fn numbers_come_back_from_what_they_add_up_to() {
        let base = device::load("h200").unwrap();
        let (lane, start, copy, sm, latency) = (0.7e-6, 1e-6, 3.1e-6, 0.4e-6, 0.5e-6);
        let mut facts = Facts::new();
        fact(&mut facts, "kernel.each", lane + start);
        fact(&mut facts, "kernel.first", 3e-6 + lane + start);
        fact(&mut facts, "p2p.start", 2e-6 + lane + copy + latency);
        fact(&mut facts, "p2p.all.start", 3e-6 + lane + copy + latency);
        fact(&mut facts, "sm.each", lane + start + sm + latency);
        fact(&mut facts, "barrier.each", lane + start + 1.9e-6);
        fact(&mut facts, "event.same.extra", 2.3e-6);
        fact(&mut facts, "p2p.bandwidth", 400e9);
        fact(&mut facts, "sm.push.best", 360e9);
        fact(&mut facts, "p2p.both", 760e9);
        fact(&mut facts, "host.both", 100e9);
        fact(&mut facts, "slowed.push", 1.0 / (1.0 - 400e9 / 13e12));
        let both = 380e9 / 13e12 + 380e9 / 15e12;
        fact(&mut facts, "slowed.push-and-receive", 1.0 / (1.0 - both));
        fact(&mut facts, "slowed.host", 1.0 / (1.0 - 100e9 / 8e12));
        fact(&mut facts, "nccl.base", 3e-6 + start + 25e-6);
        fact(&mut facts, "nccl.step", latency + 3e-6);
        fact(&mut facts, "nccl.rate", 240e9);
        fact(&mut facts, "add.rate", 3.9e12);
        fact(&mut facts, "local.driver", 2.1e12);
        for (i, call) in ["record", "wait", "write", "wait-value"].iter().enumerate() {
            fact(
                &mut facts,
                &format!("submit.{call}"),
                (1.0 + i as f64) * 1e-6,
            );
        }
        let fields = fields(&facts, &base, latency, "nvlink-pair");
        let (device, refused) = apply(&base, &fields, "nvlink-pair");
        assert!(refused.is_empty(), "{refused:?}");
        let close = |found: f64, wanted: f64| {
            assert!((found / wanted - 1.0).abs() < 1e-4, "{found} {wanted}")
        };
        close(device.costs.lane.get(), lane);
        close(device.costs.kernel_start.get(), start);
        close(device.costs.copy_start.get(), copy);
        close(device.costs.sm_copy_start.get(), sm);
        close(device.costs.kernel_flag.get(), 1.9e-6);
        close(device.costs.event.get(), 2.3e-6 + lane);
        close(device.costs.submit_sync.get(), 2.5e-6);
        close(device.sm_copy_efficiency, 0.9);
        close(device.beside.sent.unwrap().get(), 13e12);
        close(device.beside.received.unwrap().get(), 15e12);
        close(device.beside.host.unwrap().get(), 8e12);
        close(device.library.base.get(), 25e-6);
        close(device.library.step.get(), 3e-6);
        close(device.hbm.get(), 4.2e12);
        let efficiency = &device.library.efficiency[0];
        assert_eq!(efficiency.0, "nvlink-pair");
        close(efficiency.1, 0.6);
        // Nothing measured, nothing changed.
        assert_eq!(device.costs.submit_kernel, base.costs.submit_kernel);
        assert!(super::fields(&Facts::new(), &base, latency, "nvlink").is_empty());
    }

    #[test]
    fn kernels_faster_than_the_start_that_was_assumed() {
        let base = device::load("h200").unwrap();
        let mut facts = Facts::new();
        fact(&mut facts, "kernel.each", 0.8e-6);
        let (device, _) = apply(&base, &fields(&facts, &base, 0.0, "nvlink"), "nvlink");
        assert!((device.costs.kernel_start.get() - 0.8e-6).abs() < 1e-11);
        assert_eq!(device.costs.lane.get(), 0.0);
    }
}
