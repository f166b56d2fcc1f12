//! What a calibration says of its machine, and the profile that it starts from.

use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use crate::calibrate::machine::file::Machine;
use crate::cli::error::Failure;
use crate::device::{self, Device};
use crate::gpu::info::Info;

/// Parts of a GPU's name and the profile that is started from; of two that one name holds, the longer first.
const PROFILES: [(&str, &str); 14] = [
    ("H100 PCIe", "h100-sxm"),
    ("A100-PCIE", "a100-pcie-80g"),
    ("A100 80GB PCIe", "a100-pcie-80g"),
    ("RTX A6000", "rtx-a6000"),
    ("RTX 4090", "rtx-4090"),
    ("GB200", "gb200"),
    ("B200", "b200"),
    ("H200", "h200"),
    ("H100", "h100-sxm"),
    ("H800", "h800"),
    ("H20", "h20"),
    ("A100", "a100-sxm-80g"),
    ("A800", "a800"),
    ("L40S", "l40s"),
];

/// The profile to start from, by the GPU's name.
pub(super) fn base(info: &Info) -> Result<Device, Failure> {
    let model = info
        .gpus
        .first()
        .map_or("", |gpu| gpu.attributes.name.as_str());
    let name = match PROFILES.iter().find(|(part, _)| model.contains(part)) {
        Some((_, profile)) => profile,
        None => {
            return Err(Failure::Usage(format!(
                "error: no profile is known for `{model}`\n  help: say which one is nearest, e.g. `--base h100-sxm` (`duet gpus` lists them)"
            )));
        }
    };
    device::load(name).map_err(|error| Failure::input(&error))
}

pub(super) fn describe(info: &Info, out: &Path) -> Machine {
    let stem = out.file_stem().map(|stem| stem.to_string_lossy());
    let name: String = stem
        .unwrap_or_default()
        .chars()
        .map(|c| {
            if c.is_ascii_alphanumeric() || c == '-' {
                c
            } else {
                '-'
            }
        })
        .collect();
    let first = info.gpus.first();
    let attributes = first.map(|gpu| &gpu.attributes);
    let versions = info.libraries.iter().filter_map(|library| {
        let (_, version) = library.state.as_ref().ok()?;
        Some(format!("{:?} {version}", library.library))
    });
    Machine {
        name: if name.is_empty() {
            "calibrated".to_owned()
        } else {
            name
        },
        gpus: info.gpus.len() as u32,
        model: attributes.map_or_else(String::new, |a| a.name.clone()),
        hashes: info.gpus.iter().map(|gpu| gpu.uuid_hash.clone()).collect(),
        peers: info
            .gpus
            .iter()
            .all(|gpu| gpu.peers.iter().flatten().all(|p| p.access)),
        nvlink: first.is_some_and(|gpu| !gpu.links.nvlinks.is_empty()),
        sms: attributes.map_or(1, |a| a.sms),
        memory: attributes.map_or(1, |a| a.memory),
        l2: attributes.map_or(1, |a| a.l2),
        software: versions.collect::<Vec<_>>().join(", "),
        date: today(),
    }
}

/// The date in UTC, `2026-11-30`.
pub(in crate::cli) fn today() -> String {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    date(now.map_or(0, |now| now.as_secs() / 86_400))
}

/// The date so many days after 1970-01-01 (the algorithm of H. Hinnant's `civil_from_days`).
fn date(days: u64) -> String {
    let days = days + 719_468;
    let (era, day) = (days / 146_097, days % 146_097);
    let year = (day - day / 1460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let day = day - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    let year = era * 400 + year + u64::from(month <= 2);
    format!("{year:04}-{month:02}-{day:02}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_become_dates() {
        for (days, text) in [
            (0, "1970-01-01"),
            (11_016, "2000-02-29"),
            (20_787, "2026-11-30"),
            (47_541, "2100-03-01"),
        ] {
            assert_eq!(date(days), text);
        }
    }

    #[test]
    fn every_profile_by_name_exists() {
        for (_, profile) in PROFILES {
            assert!(device::load(profile).is_ok(), "{profile}");
        }
    }
}
