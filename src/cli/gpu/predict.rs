//! The simulator's view of what is performed, and files beside a run.

use std::path::Path;

use super::lowering::LoweringArgs;
use super::run_output::Variant;
use crate::cli::args::Launch;
use crate::cli::error::Failure;
use crate::cli::output::write_file;
use crate::device::DType;
use crate::gpu::campaign::{Prepared, choice_of};
use crate::gpu::compare::fill;
use crate::gpu::exec::{Faults, Machine, Run};
use crate::gpu::plan::Options;
use crate::gpu::timing::{Timer, tile_trace, trace};
use crate::sim::{self, Executed, LaunchMode};
use crate::timeline::Timeline;
use crate::topology::Topology;
use crate::topology::paths::with_path;
use crate::validate::tiling::tiling;

/// Refuses element types that real GPUs are not asked for.
///
/// # Errors
/// [`Failure::Input`].
pub fn possible(dtype: DType, fused: bool) -> Result<(), Failure> {
    let allowed = match fused {
        true => matches!(dtype, DType::Bf16 | DType::Fp16),
        false => dtype != DType::Fp8,
    };
    match allowed {
        true => Ok(()),
        false => Err(Failure::Input(format!(
            "error: {} cannot be performed on real GPUs\n  help: choose `--dtype bf16` or `--dtype fp16`{}",
            dtype.name(),
            if fused { "" } else { " or `--dtype fp32`" }
        ))),
    }
}

/// The simulated timeline of a variant with the same placement; `None` where transfers go a way that
/// the simulator does not choose.
///
/// # Errors
/// Why the simulator cannot perform it, in words.
pub fn predict(
    topology: &Topology,
    lowering: &LoweringArgs,
    variant: &Variant<'_>,
) -> Result<Option<Timeline>, Failure> {
    let case = &variant.columns.case;
    let topology = &with_path(topology, choice_of(&case.path));
    let lowered = Options {
        products: case.products,
        ..lowering.options()
    };
    let how = Executed {
        launch: match lowering.launch() {
            Launch::Stream => LaunchMode::Stream,
            Launch::Graph => LaunchMode::Graph,
        },
        lowered: lowered.lowered(),
        record: true,
        tiling: tiling(case.products, lowered.tile),
    };
    let timeline = sim::executed(&variant.prepared.schedule, topology, &how);
    timeline.map(Some).map_err(|error| {
        Failure::Input(format!(
            "error: `{}` cannot be predicted: {error}",
            variant.columns.variant
        ))
    })
}

/// Performs a variant once more, untimed.
fn once_more<'a>(
    seed: u64,
    machine: &'a Machine<'_>,
    variant: &'a Variant<'_>,
) -> Result<Timer<'a>, Failure> {
    let Prepared { schedule, plan } = &variant.prepared;
    let run = Run::new(machine, schedule, plan, Faults::default())?;
    for parity in 0..2 {
        fill(&run, parity, seed)?;
    }
    let timer = Timer::new(run, false)?;
    timer.once(1)?;
    Ok(timer)
}

/// Performs a variant once more and writes when each task ran, beside the simulator's view.
///
/// # Errors
/// The GPUs', and a file that cannot be written.
pub fn write_trace(
    seed: u64,
    machine: &Machine<'_>,
    topology: &Topology,
    variant: &Variant<'_>,
    path: &Path,
) -> Result<(), Failure> {
    let timer = once_more(seed, machine, variant)?;
    let timeline = trace(&timer)?;
    let mut all = vec![("measured", &timeline)];
    all.extend(
        variant
            .predicted
            .iter()
            .map(|timeline| ("simulated", timeline)),
    );
    let mut bytes = Vec::new();
    crate::report::trace::write_all(&mut bytes, topology, &variant.prepared.schedule, &all)
        .map_err(|error| Failure::Internal(format!("error: cannot write the trace: {error}")))?;
    write_file(path, &bytes)
}

/// Performs a variant once more and writes when its tiles were what.
///
/// # Errors
/// The GPUs', and a file that cannot be written.
pub fn write_tiles(
    seed: u64,
    machine: &Machine<'_>,
    variant: &Variant<'_>,
    path: &Path,
) -> Result<(), Failure> {
    let timer = once_more(seed, machine, variant)?;
    let tiles = tile_trace(&timer)?;
    if tiles.tiles.is_empty() {
        return Err(Failure::Usage(format!(
            "error: `{}` has no tiles of Duet's kernels to trace\n  help: add `--gemm duet`",
            variant.columns.variant
        )));
    }
    write_file(path, tiles.csv().as_bytes())
}

/// A file that cannot be written.
pub fn written(path: &Path, error: &std::io::Error) -> Failure {
    Failure::Input(format!(
        "error: cannot write `{}`: {error}\n  help: name a file in a folder that exists and is writable",
        path.display()
    ))
}
