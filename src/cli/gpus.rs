//! `duet gpus`: the GPU profiles.

use clap::Args;

use super::error::Failure;
use super::output::OutputArgs;
use crate::device::{self, DType};
use crate::report::grid::{Grid, Paint, clean, paint};
use crate::report::list::List;
use crate::units::FlopsPerSecond;

#[derive(Args, Debug)]
pub struct GpusArgs {
    /// Profiles to list, by name or file [default: all built-in ones]
    #[arg(value_name = "NAME|FILE")]
    names: Vec<String>,
    #[command(flatten)]
    output: OutputArgs,
}

pub fn run(args: &GpusArgs) -> Result<(), Failure> {
    let names = match args.names.as_slice() {
        [] => device::names().into_iter().map(str::to_owned).collect(),
        some => some.to_vec(),
    };
    let mut list = List::new(&[
        "gpu",
        "sms",
        "bf16_peak_flop_per_s",
        "sustained",
        "hbm_bytes_per_s",
        "memory_bytes",
        "measured_gemms",
        "about",
    ]);
    let mut grid = Grid::default()
        .left("gpu", 0)
        .right("SMs", 3)
        .right("bf16 peak", 0)
        .right("HBM", 1)
        .right("memory", 2)
        .text("about");
    for name in &names {
        let device = device::load(name).map_err(|error| Failure::input(&error))?;
        let bf16 = device.peak.iter().find(|(dtype, _)| *dtype == DType::Bf16);
        let peak = bf16.map(|(_, peak)| *peak);
        grid.row(vec![
            paint(&clean(&device.name), Paint::Bold),
            device.sms.to_string(),
            peak.map_or_else(|| "–".to_owned(), |peak| peak.to_string()),
            device.hbm.to_string(),
            match device.memory >= device::ideal().memory {
                true => "unlimited".to_owned(),
                false => device.memory.to_string(),
            },
            clean(&device.about),
        ]);
        list.row(vec![
            device.name.clone().into(),
            device.sms.into(),
            // The ideal profile's infinities have no JSON number.
            peak.map(FlopsPerSecond::get)
                .filter(|p| p.is_finite())
                .into(),
            device.sustained.into(),
            Some(device.hbm.get()).filter(|b| b.is_finite()).into(),
            device.memory.get().into(),
            device.gemm_table.len().into(),
            device.about.clone().into(),
        ]);
    }
    args.output.list(&list, &grid)
}
