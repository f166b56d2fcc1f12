//! The fields of a profile by name: one table that the reader, the overrides and the docs share.
//!
//! A field's name is `section.field`, as in the files (`memory.hbm`, `costs.copy_start`); where
//! the last part is unique it is enough (`hbm`). A value has a unit (`4 TB/s`) or is a factor of
//! what is there (`2x`).

use super::slot::Slot;
use super::{Beside, Device, MoreCosts, Scatter};
use crate::input::{did_you_mean, list};

/// Every field that holds one number, with its name; maps (`peak`, `efficiency`) by entry.
pub(super) fn slots(device: &mut Device) -> Vec<(String, Slot<'_>)> {
    let mut all: Vec<(String, Slot<'_>)> = Vec::new();
    let mut put = |name: &str, slot| all.push((name.to_owned(), slot));
    put("compute.sms", Slot::Count(&mut device.sms));
    put("compute.sustained", Slot::Share(&mut device.sustained));
    put("memory.hbm", Slot::Rate(&mut device.hbm));
    put("memory.size", Slot::Size(&mut device.memory));
    put("memory.l2", Slot::Size(&mut device.l2));
    put("gemm.overhead", Slot::Time(&mut device.gemm_overhead));
    if let Some(loaded) = &mut device.gemm_loaded {
        put(LOADED, Slot::Share(loaded));
    }
    if let Some(rate) = &mut device.gemm_accumulate {
        put(ACCUMULATE, Slot::Rate(rate));
    }
    for (name, share) in UNALIGNED.into_iter().zip(&mut device.gemm_unaligned) {
        if let Some(share) = share {
            put(name, Slot::Share(share));
        }
    }
    put("engines.peer", Slot::Count(&mut device.engines.peer));
    put("engines.h2d", Slot::Count(&mut device.engines.h2d));
    put("engines.d2h", Slot::Count(&mut device.engines.d2h));
    put("copies.peer_copy", Slot::Rate(&mut device.peer_copy));
    put("copies.sm_copy", Slot::Rate(&mut device.sm_copy));
    put(
        "copies.sm_copy_efficiency",
        Slot::Share(&mut device.sm_copy_efficiency),
    );
    put("copies.local_copy", Slot::Rate(&mut device.local_copy));
    put("copies.elementwise", Slot::Rate(&mut device.elementwise));
    let costs = &mut device.costs;
    put("costs.submit_kernel", Slot::Time(&mut costs.submit_kernel));
    put("costs.submit_copy", Slot::Time(&mut costs.submit_copy));
    put("costs.submit_sync", Slot::Time(&mut costs.submit_sync));
    put("costs.submit_graph", Slot::Time(&mut costs.submit_graph));
    put("costs.kernel_start", Slot::Time(&mut costs.kernel_start));
    put("costs.copy_start", Slot::Time(&mut costs.copy_start));
    put("costs.sm_copy_start", Slot::Time(&mut costs.sm_copy_start));
    put("costs.lane", Slot::Time(&mut costs.lane));
    put("costs.event", Slot::Time(&mut costs.event));
    put("costs.event_peer", Slot::Time(&mut costs.event_peer));
    put("costs.stream_flag", Slot::Time(&mut costs.stream_flag));
    put("costs.kernel_flag", Slot::Time(&mut costs.kernel_flag));
    put("library.blocks", Slot::Count(&mut device.library.sms));
    put("library.base", Slot::Time(&mut device.library.base));
    put("library.step", Slot::Time(&mut device.library.step));
    put("library.other", Slot::Share(&mut device.library.other));
    for (name, stated) in costs.more.fields() {
        if let Some(time) = stated {
            all.push((name.to_owned(), Slot::Time(time)));
        }
    }
    let (rates, shares) = device.beside.fields();
    for (name, stated) in rates {
        if let Some(rate) = stated {
            all.push((name.to_owned(), Slot::Rate(rate)));
        }
    }
    for (name, stated) in shares {
        if let Some(share) = stated {
            all.push((name.to_owned(), Slot::Share(share)));
        }
    }
    let (counts, shares) = device.scatter.fields();
    for (name, stated) in counts {
        if let Some(count) = stated {
            all.push((name.to_owned(), Slot::Count(count)));
        }
    }
    for (name, stated) in shares {
        if let Some(share) = stated {
            all.push((name.to_owned(), Slot::Share(share)));
        }
    }
    for (dtype, peak) in &mut device.peak {
        all.push((format!("compute.peak.{}", dtype.name()), Slot::Flops(peak)));
    }
    for (kind, efficiency) in &mut device.library.efficiency {
        all.push((
            format!("library.efficiency.{kind}"),
            Slot::Share(efficiency),
        ));
    }
    all
}

/// Overrides one field: `hbm`, `memory.hbm`, `costs.copy_start`, `peak.bf16`, or `peak` for all
/// element types. `value` has a unit or is a factor (`2x`). Measured GEMMs keep their ratio to the
/// wave model, so that a faster peak or memory makes them faster too.
///
/// # Errors
/// An unknown field (with the nearest known) or a refused value, in words.
///
/// ```
/// let mut gpu = duet::device::load("ideal")?;
/// duet::device::set(&mut gpu, "hbm", "4 TB/s").unwrap();
/// duet::device::set(&mut gpu, "hbm", "2x").unwrap();
/// assert_eq!(gpu.hbm.get(), 8e12);
/// duet::device::set(&mut gpu, "costs.copy_start", "3 us").unwrap();
/// let error = duet::device::set(&mut gpu, "copy_strat", "3 us").unwrap_err();
/// assert!(error.contains("did you mean `copy_start`?"));
/// # Ok::<(), duet::device::DeviceError>(())
/// ```
pub fn set(device: &mut Device, field: &str, value: &str) -> Result<(), String> {
    let factor = value
        .trim()
        .strip_suffix(['x', '×'])
        .and_then(|number| number.trim().parse::<f64>().ok());
    if factor.is_none() {
        device.state(field);
    }
    let mut all = slots(device);
    let chosen = choose(&all, field)?;
    for index in chosen {
        let (name, slot) = &mut all[index];
        match factor {
            Some(factor) if factor > 0.0 && factor.is_finite() => slot.scale(factor),
            Some(_) => Err(format!(
                "`{value}` is no factor: write one above 0, e.g. `2x`"
            )),
            None => slot.write(value),
        }
        .map_err(|error| format!("gpu.{name}: {error}"))?;
    }
    Ok(())
}

/// Maps of a profile; their name alone stands for all entries.
pub(super) const MAPS: [&str; 2] = ["compute.peak", "library.efficiency"];

/// Whether `wanted` is `name` or its last parts.
fn ends_with(name: &str, wanted: &str) -> bool {
    name.strip_suffix(wanted)
        .is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
}

/// Indices of the slots that `field` names: one, or all entries of a map.
fn choose(all: &[(String, Slot<'_>)], field: &str) -> Result<Vec<usize>, String> {
    let map = MAPS.iter().find(|map| ends_with(map, field));
    let found: Vec<usize> = (0..all.len())
        .filter(|&index| {
            let name = all[index].0.as_str();
            match map {
                Some(map) => name.strip_prefix(map).is_some_and(|e| e.starts_with('.')),
                None => ends_with(name, field),
            }
        })
        .collect();
    if found.len() == 1 || (map.is_some() && !found.is_empty()) {
        return Ok(found);
    }
    if found.len() > 1 {
        let names = list(found.iter().map(|&index| all[index].0.as_str()));
        return Err(format!("`{field}` could be {names}: name the section"));
    }
    let last = |name| match field.contains('.') {
        true => name,
        false => name_after_dot(name),
    };
    let known: Vec<&str> = all
        .iter()
        .map(|(name, _)| name.as_str())
        .chain(MAPS)
        .chain(optional())
        .map(last)
        .collect();
    Err(format!(
        "`{field}` is not a field of this GPU: {}",
        did_you_mean(field, known.iter().copied())
    ))
}

/// The share of its speed that a GEMM keeps under load.
pub(super) const LOADED: &str = "gemm.loaded";
/// How fast an accumulating GEMM reads C.
pub(super) const ACCUMULATE: &str = "gemm.accumulate";
/// The shares of its arithmetic that a GEMM keeps whose rows are no multiples of 16 bytes, and none of 4.
pub(super) const UNALIGNED: [&str; 2] = ["gemm.unaligned", "gemm.odd"];

/// Names of the numbers that a profile may leave out.
pub(super) fn optional() -> Vec<&'static str> {
    let costs = MoreCosts::default().fields().map(|(name, _)| name);
    let mut beside = Beside::default();
    let (rates, shares) = beside.fields();
    let beside = rates
        .map(|(name, _)| name)
        .into_iter()
        .chain(shares.map(|(name, _)| name));
    let mut scatter = Scatter::default();
    let (counts, shares) = scatter.fields();
    let counts = counts.map(|(name, _)| name).into_iter();
    let scatter = counts.chain(shares.map(|(name, _)| name));
    let all = costs.into_iter().chain(beside).chain(scatter);
    all.chain([LOADED, ACCUMULATE]).chain(UNALIGNED).collect()
}

/// The last part of a dotted name.
fn name_after_dot(name: &str) -> &str {
    name.rsplit('.').next().unwrap_or(name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::{DType, ideal};

    #[test]
    fn names_are_distinct_and_complete() {
        let mut gpu = ideal();
        let all = slots(&mut gpu);
        for (index, (name, _)) in all.iter().enumerate() {
            assert_eq!(choose(&all, name), Ok(vec![index]), "{name}");
        }
    }

    #[test]
    fn sets_and_scales() {
        let mut gpu = ideal();
        set(&mut gpu, "peak", "100 TFLOP/s").unwrap();
        assert!(gpu.peak.iter().all(|(_, peak)| peak.get() == 100e12));
        set(&mut gpu, "peak.fp8", "2x").unwrap();
        let peak = |gpu: &Device, dtype| {
            let found = gpu.peak.iter().find(|(known, _)| *known == dtype);
            found.unwrap().1.get()
        };
        assert_eq!(peak(&gpu, DType::Fp8), 200e12);
        assert_eq!(peak(&gpu, DType::Bf16), 100e12);
        set(&mut gpu, "compute.sms", "132").unwrap();
        set(&mut gpu, "compute.sms", "0.5x").unwrap();
        assert_eq!(gpu.sms, 66);
        set(&mut gpu, "memory.size", "80 GB").unwrap();
        set(&mut gpu, "engines.peer", "2").unwrap();
        assert_eq!(gpu.engines.peer, 2);
    }

    #[test]
    fn refuses_in_words() {
        let say = |field: &str, value: &str| set(&mut ideal(), field, value).unwrap_err();
        assert!(say("hmb", "1 TB/s").ends_with("did you mean `hbm`?"));
        assert!(say("memory.hmb", "1 TB/s").ends_with("did you mean `memory.hbm`?"));
        assert!(say("hbm", "1").starts_with("gpu.memory.hbm: `1` has no unit"));
        assert!(say("hbm", "0 TB/s").contains("above 0"));
        assert!(say("hbm", "1e-10 GB/s").contains("at least 1 a second"));
        assert!(say("hbm", "2x").contains("no limit here"));
        assert!(say("costs.lane", "1e9 s").contains("an hour"));
        assert!(say("hbm", "-2x").contains("no factor"));
        assert!(say("sustained", "1.5").contains("at most 1"));
        assert!(say("sustained", "1e-300").contains("above 0"));
        assert!(say("sustained", "NaN").contains("no share"));
        assert!(say("engines.peer", "2x").contains("not a count"));
        assert!(say("compute.sms", "0").contains("at least 1"));
        let mut gpu = ideal();
        gpu.library.efficiency.push(("hbm".to_owned(), 0.5));
        let error = set(&mut gpu, "hbm", "1 TB/s").unwrap_err();
        assert!(error.contains("could be `memory.hbm` and `library.efficiency.hbm`"));
        assert!(say("", "1").contains("not a field"));
    }
}
