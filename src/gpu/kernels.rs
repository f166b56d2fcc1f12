//! Our own kernels, `kernels/*.cu`: compiled once for each GPU, each with a function that checks
//! what it launches.

mod launch;
mod signal;

use std::rc::Rc;
use std::time::Duration;

use super::GpuError;
use super::cache::Cache;
use super::raw::{Args, Gpu, Kernel, Module, Region, Resources, nvrtc};
use crate::device::DType;

/// Name and source of each file.
const SOURCES: [(&str, &str); 6] = [
    ("copy", include_str!("../../kernels/copy.cu")),
    ("add", include_str!("../../kernels/add.cu")),
    ("flag", include_str!("../../kernels/flag.cu")),
    ("data", include_str!("../../kernels/data.cu")),
    ("gemm_sm80", include_str!("../../kernels/gemm_sm80.cu")),
    ("gemm_sm90", include_str!("../../kernels/gemm_sm90.cu")),
];
/// What they include, in an order in which none includes a later one's.
const HEADERS: [(&str, &str); 6] = [
    ("bring", include_str!("../../kernels/bring.cuh")),
    ("fetch", include_str!("../../kernels/fetch.cuh")),
    ("gemm", include_str!("../../kernels/gemm.cuh")),
    ("hopper", include_str!("../../kernels/hopper.cuh")),
    ("flag", include_str!("../../kernels/flag.cuh")),
    ("number", include_str!("../../kernels/number.cuh")),
];
const OPTIONS: [&str; 1] = ["--std=c++17"];

/// Bytes per access of the copy kernels.
const UNITS: [u64; 5] = [16, 8, 4, 2, 1];
/// Element types of the kernels.
const DTYPES: [DType; 3] = [DType::Bf16, DType::Fp16, DType::Fp32];
/// Most inputs of a sum, and most GPUs of a barrier.
pub const MOST: usize = 16;
/// Blocks of a comparison, each with a result of its own.
const COMPARE_BLOCKS: u32 = 256;
/// Bytes of such a result: three fp64 numbers and a place.
const DIFFERENCE: u64 = 32;
/// Bytes that [`Kernels::compare`] needs for its results.
pub const COMPARE_BYTES: u64 = COMPARE_BLOCKS as u64 * DIFFERENCE;
/// Words that a wait that passed its limit fills: 1, tag, wanted, found.
pub const STATUS_WORDS: u64 = 4;
/// Bytes of shared memory with which a block has an SM to itself.
const ALONE: u32 = 160 << 10;

/// A number that flags are set to or waited for.
#[derive(Copy, Clone, Debug)]
pub struct Epoch {
    /// A word on the GPU that is added, so that a graph can be replayed.
    pub counter: Option<Region>,
    pub offset: u32,
}

impl Epoch {
    /// A number known now.
    pub const fn fixed(epoch: u32) -> Self {
        Self {
            counter: None,
            offset: epoch,
        }
    }

    fn args(self, args: Args) -> Result<Args, GpuError> {
        let counter = match self.counter {
            Some(counter) => counter.need("an epoch", 4)?,
            None => 0,
        };
        Ok(args.u64(counter).u32(self.offset))
    }
}

/// A flag that a copy sets when it has ended.
#[derive(Copy, Clone, Debug)]
pub struct Tells {
    /// A word in which its blocks are counted, zero before.
    pub done: Region,
    pub flag: Region,
    pub epoch: Epoch,
}

/// How long a kernel may wait, and where it says that it waited too long.
#[derive(Copy, Clone, Debug)]
pub struct Limit {
    pub time: Duration,
    /// [`STATUS_WORDS`] words of the GPU that waits, zero before.
    pub status: Region,
    /// A number that tells waits apart.
    pub tag: u32,
}

impl Limit {
    fn args(self, args: Args) -> Result<Args, GpuError> {
        let status = self.status.need("a status", 4 * STATUS_WORDS)?;
        Ok(args.u64(nanoseconds(self.time)).u64(status).u32(self.tag))
    }
}

/// A matrix in memory.
#[derive(Copy, Clone, Debug)]
pub struct Matrix {
    pub start: Region,
    /// Elements from row to row.
    pub ld: u64,
}

/// What a comparison found.
#[derive(Copy, Clone, Debug, PartialEq)]
pub struct Difference {
    /// ‖x − y‖ / ‖y‖, Frobenius; NaN where x holds no number.
    pub relative: f64,
    /// ‖x − y‖ and ‖y‖.
    pub off: f64,
    pub norm: f64,
    /// Greatest |x − y|; infinite where either is no number.
    pub worst: f64,
    /// Row and column of the worst, the first of equals.
    pub place: (u64, u64),
}

/// The kernels on one GPU.
#[derive(Debug)]
pub struct Kernels {
    gpu: Rc<Gpu>,
    copy: Vec<Kernel>,
    tell: Vec<Kernel>,
    tell_pair: Vec<Kernel>,
    add: Vec<Kernel>,
    add_wide: Vec<Kernel>,
    fill: Vec<Kernel>,
    compare: Vec<Kernel>,
    flag_wait: Kernel,
    flag_write: Kernel,
    epoch_bump: Kernel,
    barrier: Kernel,
    delay: Kernel,
    hold: Kernel,
    clock_rate: Kernel,
    stamp: Kernel,
}

impl Kernels {
    /// Compiles them for `gpu`, or takes them from the cache, and loads them.
    ///
    /// # Errors
    /// [`GpuError::Compile`], and the libraries'.
    pub fn new(gpu: &Rc<Gpu>, cache: &Cache) -> Result<Self, GpuError> {
        let arch = gpu.arch();
        let load = |file| Module::load(gpu, &compiled(file, &arch, &[], cache)?);
        let (copy, add, flag, data) = (load("copy")?, load("add")?, load("flag")?, load("data")?);
        let each = |module: &Module, prefix: &str, suffix: &str| {
            DTYPES
                .iter()
                .map(|dtype| module.kernel(&format!("{prefix}_{}{suffix}", dtype.name())))
                .collect::<Result<Vec<_>, _>>()
        };
        let by_unit = |suffix: &str| {
            UNITS
                .iter()
                .map(|unit| copy.kernel(&format!("copy{unit}{suffix}")))
                .collect::<Result<Vec<_>, _>>()
        };
        Ok(Self {
            gpu: Rc::clone(gpu),
            copy: by_unit("")?,
            tell: by_unit("_tell")?,
            tell_pair: by_unit("_tell_pair")?,
            add: each(&add, "add", "")?,
            add_wide: each(&add, "add", "_wide")?,
            fill: each(&data, "fill", "")?,
            compare: each(&data, "compare", "")?,
            flag_wait: flag.kernel("flag_wait")?,
            flag_write: flag.kernel("flag_write")?,
            epoch_bump: flag.kernel("epoch_bump")?,
            barrier: flag.kernel("barrier")?,
            delay: flag.kernel("delay")?,
            hold: flag.kernel("hold")?,
            clock_rate: flag.kernel("clock_rate")?,
            stamp: flag.kernel("stamp")?,
        })
    }

    /// The GPU they are loaded on.
    pub const fn gpu(&self) -> &Rc<Gpu> {
        &self.gpu
    }

    /// Clusters of `cluster` blocks that the GPU holds at once, where each block has an SM to itself.
    ///
    /// # Errors
    /// The driver's, for GPUs without clusters too.
    pub fn clusters(&self, cluster: u32) -> Result<u32, GpuError> {
        self.delay.allow_shared(ALONE)?;
        self.delay.clusters(cluster, 32, ALONE)
    }

    /// Each kernel's name and what it takes of an SM.
    ///
    /// # Errors
    /// The driver's.
    pub fn resources(&self) -> Result<Vec<(String, Resources)>, GpuError> {
        let units =
            |suffix: &'static str| UNITS.map(|unit| format!("copy{unit}{suffix}")).into_iter();
        let named = |prefix: &str, suffix: &str| {
            DTYPES.map(|dtype| format!("{prefix}_{}{suffix}", dtype.name()))
        };
        let lists = units("")
            .zip(&self.copy)
            .chain(units("_tell").zip(&self.tell))
            .chain(units("_tell_pair").zip(&self.tell_pair))
            .chain(named("add", "").into_iter().zip(&self.add))
            .chain(named("add", "_wide").into_iter().zip(&self.add_wide))
            .chain(named("fill", "").into_iter().zip(&self.fill))
            .chain(named("compare", "").into_iter().zip(&self.compare));
        let single = [
            ("flag_wait", &self.flag_wait),
            ("flag_write", &self.flag_write),
            ("epoch_bump", &self.epoch_bump),
            ("barrier", &self.barrier),
            ("delay", &self.delay),
            ("hold", &self.hold),
            ("clock_rate", &self.clock_rate),
            ("stamp", &self.stamp),
        ];
        lists
            .chain(single.map(|(name, kernel)| (name.to_owned(), kernel)))
            .map(|(name, kernel)| Ok((name, kernel.resources()?)))
            .collect()
    }
}

fn nanoseconds(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

/// The machine code of one file, compiled with further `options` or from the cache.
pub(super) fn compiled(
    file: &str,
    arch: &str,
    options: &[&str],
    cache: &Cache,
) -> Result<Vec<u8>, GpuError> {
    let (_, source) = SOURCES
        .iter()
        .find(|(name, _)| *name == file)
        .ok_or_else(|| GpuError::Argument(format!("no kernel file `{file}`")))?;
    let mut source = (*source).to_owned();
    for (name, header) in HEADERS {
        let line = format!("#include \"{name}.cuh\"\n");
        source = source.replacen(&line, header, 1).replace(&line, "");
    }
    let options: Vec<&str> = OPTIONS.iter().chain(options).copied().collect();
    let (major, minor) = nvrtc::version()?;
    let version = format!("{major}.{minor}");
    let key = [source.as_str(), &options.concat(), &version, arch];
    cache.get(&format!("{file}-{arch}"), &key, || {
        nvrtc::compile(&format!("{file}.cu"), &source, arch, &options)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kernel_compiles_where_there_is_a_compiler() {
        let folder = tempfile::tempdir().unwrap();
        let cache = Cache::new(folder.path().to_owned());
        if !nvrtc::present() {
            return;
        }
        for arch in ["sm_80", "sm_90a"] {
            for (file, _) in SOURCES.iter().filter(|(file, _)| !file.starts_with("gemm")) {
                let cubin = compiled(file, arch, &[], &cache).unwrap_or_else(|e| panic!("{e}"));
                assert!(cubin.starts_with(b"\x7fELF"));
            }
        }
    }
}
