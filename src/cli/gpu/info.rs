//! `duet gpu info`.

use clap::Args;
use serde_json::{Value, json};

use super::{Watchdog, enter};
use crate::cli::error::Failure;
use crate::cli::output::{Format, OutputArgs};
use crate::gpu::check::STEP_LIMIT;
use crate::gpu::info::{self, GpuInfo, Info};
use crate::report::grid::{Grid, Paint, clean, paint};
use crate::report::list::List;

#[derive(Args, Debug)]
pub struct InfoArgs {
    #[command(flatten)]
    output: OutputArgs,
}

pub fn run(args: &InfoArgs) -> Result<(), Failure> {
    let active = enter()?;
    let _watchdog = Watchdog::new("looking at the GPUs", STEP_LIMIT);
    let (_session, info) = info::open(active)?;
    match args.output.format {
        Format::Table => args.output.draw(&table(&info, args))?,
        Format::Json => args.output.json(&value(&info))?,
        Format::Csv => args.output.write(list(&info).csv().as_bytes())?,
    }
    let problems = info.problems().join("\n");
    match info.usable() {
        true => Ok(()),
        false => Err(Failure::Gpu(format!("error: {problems}"))),
    }
}

fn table(info: &Info, args: &InfoArgs) -> String {
    let look = args.output.look();
    let mut libraries = Grid::default()
        .left("library", 0)
        .left("version", 0)
        .text("file");
    for library in &info.libraries {
        let name = paint(library.library.name(), Paint::Bold);
        libraries.row(match &library.state {
            Ok((path, version)) => vec![name, clean(version), path.display().to_string()],
            Err(_) => vec![name, "–".to_owned(), "missing".to_owned()],
        });
    }
    let mut gpus = Grid::default()
        .right("GPU", 0)
        .left("name", 0)
        .right("SMs", 0)
        .right("memory", 0)
        .right("free", 1)
        .right("capability", 1)
        .left("PCI", 2)
        .left("state", 3)
        .left("id", 4);
    for gpu in &info.gpus {
        let gigabytes = |bytes: u64| format!("{:.1} GB", bytes as f64 / 1e9);
        let a = &gpu.attributes;
        gpus.row(vec![
            gpu.ordinal.to_string(),
            paint(&clean(&a.name), Paint::Bold),
            a.sms.to_string(),
            gigabytes(a.memory),
            gigabytes(gpu.free),
            format!("{}.{}", a.major, a.minor),
            clean(&a.pci),
            state(gpu),
            gpu.uuid_hash.clone(),
        ]);
    }
    let mut links = Grid::default().right("from", 0);
    for gpu in &info.gpus {
        links = links.left(format!("to {}", gpu.ordinal), 0);
    }
    let mut links = links.text("links of the GPU");
    for gpu in &info.gpus {
        let mut row = vec![gpu.ordinal.to_string()];
        row.extend(gpu.peers.iter().map(|peer| match peer {
            None => "·".to_owned(),
            Some(peer) if !peer.access => "no P2P".to_owned(),
            Some(peer) if peer.atomics => format!("P2P, atomics, rank {}", peer.rank),
            Some(peer) => format!("P2P, rank {}", peer.rank),
        }));
        row.push(connected(gpu));
        links.row(row);
    }
    let mut text = format!(
        "{}\n{}\n{}",
        libraries.draw(&look),
        gpus.draw(&look),
        links.draw(&look)
    );
    for problem in info.problems() {
        text.push_str(&format!("\n{problem}\n"));
    }
    text
}

fn state(gpu: &GpuInfo) -> String {
    let parts = [
        gpu.state.sm_mhz.map(|mhz| format!("{mhz} MHz")),
        gpu.state.power_w.map(|watts| format!("{watts:.0} W")),
        gpu.state.celsius.map(|celsius| format!("{celsius} °C")),
    ];
    parts.into_iter().flatten().collect::<Vec<_>>().join(", ")
}

fn connected(gpu: &GpuInfo) -> String {
    let version = gpu.links.nvlink_version;
    let nvlinks = match gpu.links.nvlinks.len() {
        0 => None,
        count => Some(match version {
            Some(version) => format!("{count} NVLinks (NVML version {version})"),
            None => format!("{count} NVLinks"),
        }),
    };
    let pcie = gpu.links.pcie;
    let pcie = pcie.map(|(generation, width)| format!("PCIe {generation} ×{width}"));
    [nvlinks, pcie]
        .into_iter()
        .flatten()
        .collect::<Vec<_>>()
        .join(", ")
}

fn value(info: &Info) -> Value {
    let libraries: Vec<Value> = info
        .libraries
        .iter()
        .map(|library| match &library.state {
            Ok((path, version)) => json!({
                "library": library.library.name(),
                "version": version,
                "file": path.display().to_string(),
                "missing_because": Value::Null,
            }),
            Err(error) => json!({
                "library": library.library.name(),
                "version": Value::Null,
                "file": Value::Null,
                "missing_because": error.to_string(),
            }),
        })
        .collect();
    json!({
        "schema": "duet-gpu-info-1",
        "cuda": info.cuda,
        "driver": info.driver,
        "libraries": libraries,
        "gpus": info.gpus.iter().map(gpu_value).collect::<Vec<_>>(),
        "problems": info.problems(),
    })
}

fn gpu_value(gpu: &GpuInfo) -> Value {
    let a = &gpu.attributes;
    json!({
        "gpu": gpu.ordinal,
        "name": a.name,
        "compute_capability": format!("{}.{}", a.major, a.minor),
        "sms": a.sms,
        "memory_bytes": a.memory,
        "free_bytes": gpu.free,
        "l2_bytes": a.l2,
        "copy_engines": a.copy_engines,
        "ecc": a.ecc,
        "pci": a.pci,
        "uuid_hash": gpu.uuid_hash,
        "sm_clock_mhz": gpu.state.sm_mhz,
        "memory_clock_mhz": gpu.state.memory_mhz,
        "power_w": gpu.state.power_w,
        "power_limit_w": gpu.state.limit_w,
        "temperature_c": gpu.state.celsius,
        "nvlinks": gpu.links.nvlinks.iter().map(|(link, to)| json!({ "link": link, "to": to })).collect::<Vec<_>>(),
        "nvlink_version": gpu.links.nvlink_version,
        "pcie_generation": gpu.links.pcie.map(|pcie| pcie.0),
        "pcie_width": gpu.links.pcie.map(|pcie| pcie.1),
        "peers": gpu.peers.iter().enumerate().filter_map(|(to, peer)| peer.map(|peer| json!({
            "gpu": to,
            "access": peer.access,
            "atomics": peer.atomics,
            "rank": peer.rank,
        }))).collect::<Vec<_>>(),
    })
}

/// One line per GPU.
fn list(info: &Info) -> List {
    let mut list = List::new(&[
        "gpu",
        "name",
        "compute_capability",
        "sms",
        "memory_bytes",
        "free_bytes",
        "pci",
        "uuid_hash",
        "driver",
    ]);
    for gpu in &info.gpus {
        let a = &gpu.attributes;
        list.row(vec![
            gpu.ordinal.into(),
            a.name.clone().into(),
            format!("{}.{}", a.major, a.minor).into(),
            a.sms.into(),
            a.memory.into(),
            gpu.free.into(),
            a.pci.clone().into(),
            gpu.uuid_hash.clone().into(),
            info.driver.clone().into(),
        ]);
    }
    list
}
