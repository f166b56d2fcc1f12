//! A calibration as a topology file with the GPU's profile inside.
//!
//! Every number states its source with median or fit, number of samples and interval; numbers that
//! were not measured keep the profile's value they started from and say so. What has no place in
//! the format follows as comments that [`super::difference`] reads, one a line:
//!
//! ```text
//! #= p2p.rate.1MiB = 133.1e9 from 132.8e9 to 133.4e9, n 9
//! ```

pub(super) mod algorithms;
mod collectives;
mod links;
mod profile;
pub(super) mod table;
#[cfg(test)]
mod tests;

use std::fmt::Write;
use std::sync::Arc;

pub(super) use collectives::PREFIX;

use super::book::Product;
use super::estimate::Estimate;
use super::kernels::{self, Beside, Choices};
use super::profile::{Facts, Field, apply, fields};
use super::unseen;
use super::waves::fit_waves;
use crate::device::Device;

/// Marks a fact that has no place in the format.
pub const MARK: &str = "#= ";
/// Latencies of links \[us\], assumed: a copy's start-up cannot be told from them.
const LATENCY: [f64; 3] = [0.5, 0.4, 0.1];
/// Of the way between a GPU and its host's memory \[s\].
pub const HOST_LATENCY: f64 = (LATENCY[1] + LATENCY[2]) * 1e-6;

/// The machine, in words.
#[derive(Clone, Debug, Default)]
pub struct Machine {
    /// Name of the topology.
    pub name: String,
    pub gpus: u32,
    /// The GPUs' name by the driver.
    pub model: String,
    /// Hashes of the GPUs' unique ids.
    pub hashes: Vec<String>,
    /// Whether GPUs reach each other's memory, and by NVLink.
    pub peers: bool,
    pub nvlink: bool,
    pub sms: u32,
    pub memory: u64,
    pub l2: u64,
    /// Versions of driver and libraries.
    pub software: String,
    /// `2026-11-30`.
    pub date: String,
}

impl Machine {
    /// The kind of the links between GPUs.
    pub const fn kind(&self) -> &'static str {
        match (self.nvlink, self.gpus) {
            (true, 2) => "nvlink-pair",
            (true, _) => "nvlink",
            _ => "pcie-peer",
        }
    }

    /// Links from GPU to GPU.
    const fn hops(&self) -> u32 {
        if self.gpus > 2 { 2 } else { 1 }
    }

    /// Latency of the way from GPU to GPU \[s\].
    pub fn latency(&self) -> f64 {
        LATENCY[0] * 1e-6 * f64::from(self.hops())
    }
}

/// The file's text, and what is to be told.
pub fn text(
    machine: &Machine,
    base: &Device,
    facts: &Facts,
    (products, choices, beside): (&[Product], &Choices, &Beside),
    notes: &[String],
) -> (String, Vec<String>) {
    let (latency, kind) = (machine.latency(), machine.kind());
    let mut all = fields(facts, base, latency, kind);
    let told = |name: &str, value: f64| Field {
        name: name.to_owned(),
        value: Estimate::exact(value, 1),
        kind: "measured",
        how: "as the driver says",
    };
    all.push(told("compute.sms", f64::from(machine.sms)));
    all.push(told("memory.size", machine.memory as f64));
    all.push(told("memory.l2", machine.l2 as f64));
    let (device, mut refused) = apply(base, &all, kind);
    let launch = device.costs.lane.get() + device.costs.kernel_start.get();
    if let Some([sustained, overhead]) = fit_waves(&device, products, launch) {
        let how = "wave model to the table below";
        for (name, value) in [
            ("compute.sustained", sustained),
            ("gemm.overhead", overhead),
        ] {
            let (name, kind) = (name.to_owned(), "fitted");
            all.push(Field {
                name,
                value,
                kind,
                how,
            });
        }
    }
    let (mut device, more) = apply(base, &all, kind);
    refused.extend(more);
    refused.sort();
    refused.dedup();
    base.name.clone_into(&mut device.name);
    device.gemm_library =
        kernels::fit_with(&device, products, (choices, beside), launch).map(Arc::new);
    let mut out = String::new();
    head(&mut out, machine, notes);
    profile::write(
        &mut out,
        machine,
        &device,
        &base.name,
        &all,
        (facts, products),
    );
    links::write(&mut out, machine, facts);
    // A calibration is read by eyes as well.
    let _ = writeln!(
        out,
        "\n# Measured, without a place in the format, in base units:"
    );
    let launch = device.costs.lane.get() + device.costs.kernel_start.get();
    let mut facts = facts.clone();
    for (name, value) in unseen::facts(&device, products, choices, launch) {
        facts.insert(name, value);
    }
    for (name, value) in &facts {
        out.push_str(&fact(name, value));
    }
    (out, refused)
}

/// A line for a fact that has no place in the format.
pub(super) fn fact(name: &str, e: &Estimate) -> String {
    let [value, low, high] = [e.value, e.low, e.high].map(|v| format!("{v:.4e}"));
    format!("{MARK}{name} = {value} from {low} to {high}, n {}\n", e.n)
}

fn head(out: &mut String, machine: &Machine, notes: &[String]) {
    let Machine {
        gpus,
        model,
        software,
        date,
        ..
    } = machine;
    let _ = writeln!(
        out,
        "# Written by `duet calibrate` on {date}: {gpus} x {model}, {software}."
    );
    let _ = writeln!(
        out,
        "# GPUs by hash of their unique id: {}.",
        machine.hashes.join(", ")
    );
    let _ = writeln!(
        out,
        "# Intervals are of 95 %, by bootstrap over the samples."
    );
    for note in notes {
        let _ = writeln!(out, "# {}", note.replace('\n', " "));
    }
    let _ = writeln!(out, "name: {}", machine.name);
    let _ = writeln!(out, "about: {gpus} × {model}, calibrated {date}");
}

/// As a scalar in double quotes.
fn quoted(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
}
