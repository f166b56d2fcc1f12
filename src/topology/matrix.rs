//! GPU-to-GPU bandwidth and latency of one transfer alone.
//!
//! A transfer of X bytes/s loads resource r (a link direction or a shared capacity) with a_r·X in
//! f_r flows, so X ≤ min_r C_r(f_r) / a_r, all paths and legs flowing at once. A staged path moves
//! chunks of s bytes, each after its leg's latency α: with r the path's part of X, at most
//! s / (α + s/r). Start-up costs of the mover are not included.

use super::rings::edges::Edges;
use super::route::{RouteError, Router};
use super::{Path, Topology};
use crate::units::{BytesPerSecond, Seconds};

/// Every ordered pair of some GPUs.
#[derive(Clone, Debug, PartialEq)]
pub struct Matrix {
    /// GPU numbers, in row and column order.
    pub gpus: Vec<u32>,
    /// Row-major, from row to column; the diagonal is zero.
    pub cells: Vec<Cell>,
}

/// One ordered pair.
#[derive(Copy, Clone, Debug, Default, PartialEq)]
pub struct Cell {
    /// Bytes per second of a long transfer alone.
    pub bandwidth: BytesPerSecond,
    /// Latency of its slowest path.
    pub latency: Seconds,
    /// Sub-flows by different ways; 0 where there is none, as between GPUs with a third one between
    /// them (GPUs do not forward), and on the diagonal.
    pub paths: u32,
    /// Stops in host memory, over all paths.
    pub stops: u32,
}

impl Matrix {
    /// Routes all ordered pairs of `gpus` (numbers that the topology has).
    ///
    /// # Errors
    /// [`RouteError::NoHost`] when a pair would be staged and cannot be.
    pub fn new(topology: &Topology, gpus: &[u32]) -> Result<Self, RouteError> {
        let mut router = Router::new(topology);
        let mut edges = Edges::new(topology, gpus);
        let count = gpus.len();
        let mut cells = vec![Cell::default(); count * count];
        for row in 0..count {
            for column in (0..count).filter(|column| *column != row) {
                let node = |at: usize| topology.gpus[gpus[at] as usize];
                let paths = match router.paths(node(row), node(column)) {
                    Err(RouteError::Unreachable { .. }) => continue,
                    paths => paths?,
                };
                let edge = edges.edge(row as u32, column as u32);
                let rate = chunked(&paths, edges.alone(edge));
                cells[row * count + column] = Cell {
                    bandwidth: BytesPerSecond::of(rate),
                    latency: Seconds::of(edge.latency),
                    paths: paths.len() as u32,
                    stops: paths.iter().map(|path| path.legs.len() as u32 - 1).sum(),
                };
            }
        }
        Ok(Self {
            gpus: gpus.to_vec(),
            cells,
        })
    }

    /// From the GPU in row `row` to the one in column `column`.
    pub fn cell(&self, row: usize, column: usize) -> Cell {
        self.cells[row * self.gpus.len() + column]
    }
}

/// What is left of `rate` when staged paths go chunk by chunk.
fn chunked(paths: &[Path], rate: f64) -> f64 {
    let mut total = rate;
    for path in paths.iter().filter(|path| path.legs.len() > 1) {
        let chunk = path.chunk.as_f64();
        let part = rate * path.share;
        for leg in &path.legs {
            if chunk > 0.0 && path.share > 0.0 {
                let pace = chunk / (leg.latency.get() + chunk / part);
                total = total.min(pace / path.share);
            }
        }
    }
    total
}

#[cfg(test)]
mod tests {
    use super::super::build::Builder;
    use super::*;

    /// GPUs do not forward: the ends of a line of three have no way, and no error.
    #[test]
    fn pairs_without_a_way_stay_empty() {
        let mut b = Builder::new("line");
        let gpus = b.gpus(3);
        b.link(gpus[0], gpus[1], "nvlink", 10e9, 1e-6);
        b.link(gpus[1], gpus[2], "nvlink", 10e9, 1e-6);
        let matrix = Matrix::new(&b.build(), &[0, 1, 2]).unwrap();
        assert_eq!(matrix.cell(0, 2), Cell::default());
        assert_eq!(matrix.cell(0, 1).bandwidth.get(), 10e9);
    }

    #[test]
    fn one_flow_alone() {
        let mut b = Builder::new("t");
        let gpus = b.gpus(3);
        let root = b.root("cpu0");
        let host = b.host("dram0");
        let mut links = Vec::new();
        for (gpu, bandwidth) in gpus.iter().zip([10e9, 20e9, 30e9]) {
            links.push(b.link(*gpu, root, "pcie", bandwidth, 1e-6));
        }
        let (down, up) = b.link(host, root, "dram", 100e9, 0.0);
        b.shared("narrow", &[links[2].0], 25e9);
        b.contention("pcie", &[(1, 0.8), (2, 0.5)]);
        let mut t = b.build();
        let matrix = Matrix::new(&t, &[0, 1, 2]).unwrap();
        let rate = |from, to| matrix.cell(from, to).bandwidth.get();
        assert_eq!(rate(0, 1), 8e9); // 10 GB/s at 0.8
        assert_eq!(rate(2, 1), 16e9);
        assert_eq!(rate(1, 2), 16e9);
        assert_eq!((rate(0, 0), matrix.cell(0, 1).latency.get()), (0.0, 2e-6));

        // Staged: chunks of 1 MiB at 16 GB/s, each after 1 µs.
        t.p2p = false;
        let staged = Matrix::new(&t, &[1, 2]).unwrap().cell(0, 1);
        let chunk = 1_048_576.0;
        let want = chunk / (1e-6 + chunk / 16e9);
        assert!((staged.bandwidth.get() / want - 1.0).abs() < 1e-12);
        assert_eq!((staged.paths, staged.stops), (1, 1));
        // A capacity that both legs cross carries every byte twice.
        let both = vec![down, up];
        t.shared.push(super::super::Shared {
            name: "memory".to_owned(),
            links: both,
            bandwidth: BytesPerSecond::of(20e9),
            footprint: Vec::new(),
            half_duplex: false,
            source: None,
        });
        let halved = Matrix::new(&t, &[1, 2]).unwrap().cell(0, 1);
        let want = chunk / (1e-6 + chunk / 10e9);
        assert!((halved.bandwidth.get() / want - 1.0).abs() < 1e-12);
    }
}
