//! Which kernels the GEMM library takes, and the rates of `gemm::library` fitted to measured GEMMs.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use super::book::Product;
use super::products::DTYPE;
use super::rates::{Point, START, efficiencies, searched};
use super::works::works;
use crate::device::Device;
use crate::device::gemm::library::{self, ALIGNED, Algorithm, Library, alignment};
use crate::gpu::lt::Config;

/// A tile, a split of k and a cluster.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Kernel {
    /// Rows and columns of C.
    pub tile: (u32, u32),
    /// Parts of k.
    pub split: u32,
    /// Tiles over rows and columns of C that start together.
    pub cluster: (u32, u32),
}

/// Most parts of k.
pub(super) const MOST_PARTS: u32 = 1024;

/// By column (k, n) and m.
pub type Choices = BTreeMap<(u64, u64), BTreeMap<u64, Kernel>>;

impl Kernel {
    /// `None` for a tile whose number is not known, and where the library says that it shares k out
    /// as it sees fit.
    pub fn of(config: &Config) -> Option<Self> {
        Some(Self {
            tile: config.tile?,
            split: Some(config.split_k).filter(|parts| *parts <= MOST_PARTS)?,
            cluster: config.cluster.unwrap_or((1, 1)),
        })
    }
}

/// What the library takes where only so many SMs are left to a GEMM.
#[derive(Clone, Debug, Default)]
pub struct Beside {
    pub sms: u32,
    pub choices: Choices,
}

/// The library as a profile states it; `launch` precedes each measured time \[s\]. `None` where no
/// kernel is known.
pub fn fit(
    device: &Device,
    products: &[Product],
    choices: &Choices,
    launch: f64,
) -> Option<Library> {
    fit_with(device, products, (choices, &Beside::default()), launch)
}

/// As [`fit`], with what is taken beside collectives.
pub fn fit_with(
    device: &Device,
    products: &[Product],
    (choices, beside): (&Choices, &Beside),
    launch: f64,
) -> Option<Library> {
    let aligned = |n, k, kernel| (Reverse(alignment(DTYPE, n, k)), kernel);
    let known = products.iter();
    let mut kernels: Vec<(Reverse<u32>, Kernel)> = known
        .filter_map(|p| Some(aligned(p.n, p.k, p.kernel?)))
        .collect();
    let measured = !kernels.is_empty();
    for (&(k, n), rows) in choices.iter().chain(&beside.choices) {
        kernels.extend(rows.values().map(|kernel| aligned(n, k, *kernel)));
    }
    kernels.sort_unstable();
    kernels.dedup();
    if !measured || kernels.len() > usize::from(u16::MAX) {
        return None;
    }
    let place = |n, k, kernel: &Kernel| {
        let at = kernels.binary_search(&aligned(n, k, *kernel));
        at.ok().map(|at| at as u16)
    };
    let mut columns = choices.clone();
    for product in products {
        if let Some(kernel) = product.kernel {
            let column = columns.entry((product.k, product.n)).or_default();
            column.insert(product.m, kernel);
        }
    }
    let listed = |columns: &Choices| -> Vec<library::Choices> {
        let of = |(&(k, n), rows): (&(u64, u64), &BTreeMap<u64, Kernel>)| {
            let rows = rows.iter();
            let rows = runs(rows.filter_map(|(&m, kernel)| Some((m, place(n, k, kernel)?))));
            library::Choices { n, k, rows }
        };
        columns.iter().map(of).collect()
    };
    let algorithms = kernels.iter().map(|(Reverse(align), kernel)| Algorithm {
        tile: kernel.tile,
        split: kernel.split,
        cluster: kernel.cluster,
        align: *align,
        work: 1.0,
        efficiency: 1.0,
    });
    let points: Vec<Point> = products
        .iter()
        .filter_map(|p| {
            Some(Point {
                shape: [p.m, p.n, p.k],
                align: alignment(DTYPE, p.n, p.k),
                kernel: place(p.n, p.k, &p.kernel?)?,
                time: p.time.value - launch,
            })
        })
        .filter(|point| point.time > 0.0)
        .collect();
    let library = Library::new(DTYPE, START, algorithms.collect(), Vec::new());
    let searched = searched(device, library, &points);
    let found = efficiencies(device, works(device, searched, &points), &points);
    let all = Library::new(DTYPE, found.rates, found.algorithms, listed(&columns));
    let all = all.with_beside(beside.sms, listed(&beside.choices));
    Some(all.with_unaligned(found.unaligned))
}

/// Whether rows are multiples of 16 bytes, so that the library takes its fast kernels.
pub fn whole(&[_, n, k]: &[u64; 3]) -> bool {
    alignment(DTYPE, n, k) == ALIGNED
}

/// The last m of each run of equal kernels.
fn runs(rows: impl Iterator<Item = (u64, u16)>) -> Vec<(u64, u16)> {
    let mut all: Vec<(u64, u16)> = Vec::new();
    for (m, place) in rows {
        match all.last_mut() {
            Some(last) if last.1 == place => last.0 = m,
            _ => all.push((m, place)),
        }
    }
    all
}
