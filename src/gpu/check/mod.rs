//! A self-test on the real GPUs: every kernel and every call of a library against the host, each
//! step with a limit.

mod bench;
mod flags;
mod graphs;
mod loads;
mod math;
mod moves;
mod pairs;
mod rates;
mod sums;
mod tiles;

use std::time::{Duration, Instant};

use super::env::Library;
use super::{GpuError, Session};
use bench::{Bench, Benches};

/// The limit of one wait for a GPU.
pub const LIMIT: Duration = Duration::from_secs(5);
/// The limit of a whole step, which includes starting a library.
pub const STEP_LIMIT: Duration = Duration::from_secs(60);

/// What came of one step.
#[derive(Debug)]
pub struct Outcome {
    /// Which GPUs, e.g. `GPU 0` or `all`.
    pub gpus: String,
    pub step: &'static str,
    /// A remark, or what is wrong.
    pub result: Result<String, GpuError>,
    pub time: Duration,
}

/// One step on one GPU.
type Single = (&'static str, fn(&Bench) -> Result<String, GpuError>);
/// One step on all GPUs.
type Joint = (&'static str, fn(&Benches) -> Result<String, GpuError>);

const SINGLE: [Single; 19] = [
    ("memory", moves::memory),
    ("kernels", moves::resources),
    ("random fill", math::fill),
    ("copy kernel", moves::copy_kernel),
    ("copy engine", moves::copy_engine),
    ("sum", math::add),
    ("comparison", math::compare),
    ("flags", flags::flags),
    ("spin limit", flags::spin_limit),
    ("gate", flags::gate),
    ("GEMM", math::gemm),
    ("own GEMMs", tiles::products),
    ("gated GEMMs", tiles::gated),
    ("parted GEMMs", tiles::parted),
    ("summed GEMMs", sums::summed),
    ("loading GEMMs", loads::brought),
    ("graph", graphs::replay),
    ("value wait in a graph", graphs::value_wait),
    ("rates", rates::single),
];

const JOINT: [Joint; 7] = [
    ("peer copies", pairs::copies),
    ("peer flags", pairs::flags),
    ("barrier", pairs::barrier),
    ("graph over all GPUs", graphs::joint),
    ("value wait in a joint graph", graphs::joint_value_wait),
    ("NCCL", pairs::nccl),
    ("peer rates", rates::peer),
];

/// Runs all steps; `begin` is told of each before it starts, `done` after. A step that passes its
/// limit is the last.
///
/// # Errors
/// When the GPUs cannot be prepared at all.
pub fn run(
    session: &Session,
    mut begin: impl FnMut(&str, &'static str),
    mut done: impl FnMut(Outcome),
) -> Result<(), GpuError> {
    begin("all", "preparation");
    session.require(Library::Nvrtc)?;
    session.require(Library::CublasLt)?;
    session.open_peers()?;
    let benches = Benches::new(session)?;
    for bench in &benches.all {
        let gpus = format!("GPU {}", bench.gpu.ordinal());
        for (step, test) in SINGLE {
            begin(&gpus, step);
            let start = Instant::now();
            let result = test(bench);
            let lost = bench.gpu.is_lost();
            done(Outcome {
                gpus: gpus.clone(),
                step,
                result,
                time: start.elapsed(),
            });
            if lost {
                return Ok(());
            }
        }
    }
    for (step, test) in JOINT.iter().filter(|_| benches.all.len() > 1) {
        begin("all", step);
        let start = Instant::now();
        let result = test(&benches);
        done(Outcome {
            gpus: "all".to_owned(),
            step,
            result,
            time: start.elapsed(),
        });
        if benches.all.iter().any(|bench| bench.gpu.is_lost()) {
            return Ok(());
        }
    }
    Ok(())
}
