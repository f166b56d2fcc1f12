//! The GPU's profile, each number with its source.

use std::collections::BTreeMap;
use std::fmt::Write;

use super::super::book::Product;
use super::super::estimate::Estimate;
use super::super::profile::{Facts, Field};
use super::{Machine, algorithms, collectives, quoted, table};
use crate::device::{self, Device};

/// A source's words: `measured, median 5.1 us, n=20, 95 % 5.0 to 5.2 us; how`.
fn source(field: &Field, number: &str, state: impl Fn(f64) -> String) -> String {
    let Estimate { low, high, n, .. } = field.value;
    let what = if field.kind == "measured" {
        "median"
    } else {
        "fit"
    };
    let spread = match low == high {
        true => String::new(),
        false => format!(", 95 % {} to {}", state(low), state(high)),
    };
    format!(
        "{}, {what} {number}, n={n}{spread}; {}",
        field.kind, field.how
    )
}

pub fn write(
    out: &mut String,
    machine: &Machine,
    device: &Device,
    base: &str,
    fields: &[Field],
    (facts, products): (&Facts, &[Product]),
) {
    let kept = device::sources(base);
    let _ = writeln!(out, "gpu:\n  name: {}", device.name);
    let _ = writeln!(
        out,
        "  about: {}, calibrated {}",
        machine.model, machine.date
    );
    let numbers = device::numbers(device);
    let mut sections: Vec<&str> = Vec::new();
    for number in &numbers {
        let section = number.name.split('.').next().unwrap_or_default();
        if !sections.contains(&section) {
            sections.push(section);
        }
    }
    for section in sections {
        let _ = writeln!(out, "  {section}:");
        let mut sources = BTreeMap::new();
        let mut maps: BTreeMap<&str, Vec<String>> = BTreeMap::new();
        for number in &numbers {
            let Some(key) = number
                .name
                .strip_prefix(section)
                .and_then(|k| k.strip_prefix('.'))
            else {
                continue;
            };
            let (key, entry) = key
                .split_once('.')
                .map_or((key, None), |(k, e)| (k, Some(e)));
            match entry {
                Some(entry) => maps
                    .entry(key)
                    .or_default()
                    .push(format!("{entry}: {}", number.text)),
                None => {
                    let _ = writeln!(out, "    {key}: {}", number.text);
                }
            }
            let state = |value: f64| {
                let mut other = device.clone();
                let _ = device::assign(&mut other, &number.name, value);
                let all = device::numbers(&other);
                let found = all.into_iter().find(|n| n.name == number.name);
                found.map_or_else(|| value.to_string(), |n| n.text)
            };
            let words = match fields.iter().rfind(|f| f.name == number.name) {
                Some(field) => source(field, &number.text, state),
                None => kept_words(&kept, &format!("{section}.{key}"), base),
            };
            // One source for all entries of a map: the measured one names its entry.
            let measured = fields.iter().any(|f| f.name == number.name);
            if measured || !sources.contains_key(key) {
                let words = match entry.filter(|_| measured) {
                    Some(entry) => format!("{words}; this is {entry}, others kept from `{base}`"),
                    None => words,
                };
                sources.insert(key.to_owned(), words);
            }
        }
        for (key, entries) in &maps {
            let _ = writeln!(out, "    {key}: {{ {} }}", entries.join(", "));
        }
        // The map of a profile may be empty and is needed all the same.
        if section == "library" && !maps.contains_key("efficiency") {
            let _ = writeln!(out, "    efficiency: {{}}");
            sources.insert(
                "efficiency".to_owned(),
                kept_words(&kept, "library.efficiency", base),
            );
        }
        if section == "library" {
            collectives::write(out, machine, facts, &mut sources);
        }
        if section == "gemm" {
            table::write(out, device, products, &kept, base, &mut sources);
            algorithms::write(out, device, products.len(), &mut sources);
        }
        let _ = writeln!(out, "    source:");
        for (key, words) in sources {
            let _ = writeln!(out, "      {key}: {}", quoted(&words));
        }
    }
}

pub fn kept_words(kept: &BTreeMap<String, String>, name: &str, base: &str) -> String {
    match kept.get(name) {
        Some(words) => format!("{words}; kept from profile `{base}`, not measured here"),
        None => format!("assumed, kept from profile `{base}`, not measured here"),
    }
}
