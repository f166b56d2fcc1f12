//! A profile's numbers one by one: to read, to replace, to write into a file, with their sources.

use std::collections::BTreeMap;

use super::Device;
use super::fields::slots;
use super::section::entry_of;
use super::shipped::PROFILES;
use crate::input::yaml::{self, Node, Value};

/// One number of a profile.
#[derive(Clone, Debug, PartialEq)]
pub struct Number {
    /// `section.field`, and `section.map.entry` in maps.
    pub name: String,
    /// In base units: seconds, bytes, bytes or operations per second.
    pub value: f64,
    /// As a file states it.
    pub text: String,
}

/// All numbers of a profile in the order of its sections, GEMMs apart.
pub fn numbers(device: &Device) -> Vec<Number> {
    let mut device = device.clone();
    slots(&mut device)
        .into_iter()
        .map(|(name, slot)| Number {
            value: slot.get(),
            text: slot.text(slot.get()),
            name,
        })
        .collect()
}

/// Replaces the number of that full name, in base units, by `value` to five significant digits.
///
/// # Errors
/// An unknown name or a value out of range, in words.
///
/// ```
/// use duet::device;
/// let mut gpu = device::load("h200").unwrap();
/// device::assign(&mut gpu, "costs.lane", 1.234_567e-6).unwrap();
/// assert_eq!(gpu.costs.lane.get(), 1.2346e-6);
/// assert!(device::assign(&mut gpu, "copies.sm_copy_efficiency", 1.2).is_err());
/// ```
pub fn assign(device: &mut Device, name: &str, value: f64) -> Result<(), String> {
    device.state(name);
    let mut all = slots(device);
    let slot = all.iter_mut().find(|(known, _)| known == name);
    let (_, slot) = slot.ok_or_else(|| format!("a profile has no number `{name}`"))?;
    let text = slot.text(value);
    slot.write(&text)
        .map_err(|error| format!("{name}: {error}"))
}

/// Where each number of a shipped profile is from, by full name; `section.field` stands for a map's
/// entries. Empty for profiles that are not shipped.
pub fn sources(profile: &str) -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    let text = PROFILES.iter().find(|(name, _)| *name == profile);
    let Some(Ok(root)) = text.map(|(_, text)| yaml::parse(text)) else {
        return found;
    };
    let Value::Map(sections) = &root.value else {
        return found;
    };
    for (name, section) in sections {
        let (Some(name), Value::Map(entries)) = (name.text(), &section.value) else {
            continue;
        };
        let source = entry_of(section, "source");
        let of = |key: &str| {
            let own = source.and_then(|source| entry_of(source, key));
            let others = || source.and_then(|source| entry_of(source, "others"));
            own.or_else(others).or(source).and_then(Node::text)
        };
        for key in entries.iter().filter_map(|(key, _)| key.text()) {
            if let Some(text) = of(key).filter(|_| key != "source") {
                found.insert(format!("{name}.{key}"), text.to_owned());
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::{load, names};

    #[test]
    fn every_number_of_a_shipped_profile_survives_being_written() {
        for name in names().into_iter().filter(|name| *name != "ideal") {
            let gpu = load(name).unwrap();
            let mut copy = gpu.clone();
            for number in numbers(&gpu) {
                assign(&mut copy, &number.name, number.value).unwrap();
            }
            for (one, two) in numbers(&gpu).iter().zip(numbers(&copy)) {
                let close = (one.value - two.value).abs() <= 1e-4 * one.value.abs();
                assert!(close, "{name}: {one:?} {two:?}");
                assert_eq!(one.text, two.text);
            }
        }
    }

    #[test]
    fn sources_of_shipped_profiles() {
        let found = sources("h200");
        assert_eq!(found["memory.l2"], "datasheet");
        assert!(found["costs.copy_start"].starts_with("fitted, 5.1 us"));
        assert!(found["gemm.table"].starts_with("measured"));
        assert!(sources("none").is_empty());
        assert!(assign(&mut load("h200").unwrap(), "lane", 1e-6).is_err());
    }
}
