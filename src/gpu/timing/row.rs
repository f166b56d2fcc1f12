//! One measurement as a line of CSV.

use super::Sample;
use crate::gpu::campaign::{Case, flags_name, library_name, mode_name, path_name};
use crate::gpu::raw::nvml::State;
use crate::operator::Shape;

/// The columns, in order.
const COLUMNS: [&str; 32] = [
    "round",
    "variant",
    "strategy",
    "op",
    "m",
    "n",
    "k",
    "bytes",
    "tp",
    "dtype",
    "placement",
    "path",
    "launch",
    "library",
    "flags",
    "repeats",
    "gated",
    "makespan_s",
    "skew_s",
    "rank_times_s",
    "reference_gemm_s",
    "reference_copy_s",
    "predicted_s",
    "sm_clock_mhz",
    "memory_clock_mhz",
    "power_w",
    "temperature_c",
    "gpu",
    "driver",
    "cuda",
    "seed",
    "verified_relative_error",
];

/// What all rows of a variant have in common.
#[derive(Clone, Debug)]
pub struct Columns {
    pub variant: String,
    pub case: Case,
    /// The simulator's makespan \[seconds\], where it was asked.
    pub predicted: Option<f64>,
    /// Of the check before; `None` where there was none.
    pub error: Option<f64>,
    pub gpu: String,
    pub driver: String,
    pub cuda: String,
}

/// One measurement.
#[derive(Clone, Debug)]
pub struct Row<'a> {
    pub columns: &'a Columns,
    pub round: u32,
    pub repeats: u32,
    pub sample: &'a Sample,
    /// Of the same round \[seconds\].
    pub reference_gemm: Option<f64>,
    pub reference_copy: Option<f64>,
    /// Of the first GPU, right after.
    pub state: State,
}

/// The first line of a file.
pub fn header() -> String {
    line(COLUMNS.iter().map(|name| (*name).to_owned()))
}

impl Row<'_> {
    /// A line of a file.
    pub fn line(&self) -> String {
        let case = &self.columns.case;
        let (mut m, mut n, mut k, mut bytes) = (None, None, None, None);
        match case.operator.shape {
            Shape::Gemm {
                m: rows,
                n: cols,
                k: depth,
            } => (m, n, k) = (Some(rows), Some(cols), Some(depth)),
            Shape::Bytes(size) => bytes = Some(size.get()),
        }
        let sample = self.sample;
        line([
            self.round.to_string(),
            self.columns.variant.clone(),
            case.strategy.clone(),
            case.operator.kind.name().to_owned(),
            text(m),
            text(n),
            text(k),
            text(bytes),
            case.operator.tp.to_string(),
            case.operator.dtype.name().to_owned(),
            joined(&case.placement),
            path_name(&case.path),
            mode_name(case.mode).to_owned(),
            library_name(case.library).to_owned(),
            flags_name(case.flags).to_owned(),
            self.repeats.to_string(),
            sample.gated.to_string(),
            seconds(sample.makespan),
            sample.skew().map_or_else(String::new, seconds),
            sample
                .ranks
                .iter()
                .map(|&time| seconds(time))
                .collect::<Vec<_>>()
                .join(" "),
            self.reference_gemm.map_or_else(String::new, seconds),
            self.reference_copy.map_or_else(String::new, seconds),
            self.columns.predicted.map_or_else(String::new, seconds),
            text(self.state.sm_mhz),
            text(self.state.memory_mhz),
            text(self.state.power_w),
            text(self.state.celsius),
            self.columns.gpu.clone(),
            self.columns.driver.clone(),
            self.columns.cuda.clone(),
            case.seed.to_string(),
            text(self.columns.error),
        ])
    }
}

fn text(value: Option<impl ToString>) -> String {
    value.map_or_else(String::new, |value| value.to_string())
}

fn joined(values: &[u32]) -> String {
    let texts: Vec<String> = values.iter().map(u32::to_string).collect();
    texts.join(" ")
}

/// To a tenth of a nanosecond, far below what events resolve.
fn seconds(value: f64) -> String {
    format!("{value:.10}")
}

fn line(cells: impl IntoIterator<Item = String>) -> String {
    let cells: Vec<String> = cells
        .into_iter()
        .map(|cell| match cell.contains([',', '"', '\n']) {
            true => format!("\"{}\"", cell.replace('"', "\"\"")),
            false => cell,
        })
        .collect();
    let mut line = cells.join(",");
    line.push('\n');
    line
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::DType;
    use crate::gpu::plan::{Flags, Library, Mode, Path, Products};
    use crate::operator::{Kind, Operator};

    #[test]
    fn a_row_has_a_cell_for_each_column() {
        let columns = Columns {
            variant: "interdecom:d=2,comm=direct".to_owned(),
            case: Case {
                operator: Operator::gemm(Kind::AgGemm, 8, 8, 3, 2, DType::Bf16).unwrap(),
                placement: vec![0, 1],
                strategy: "interdecom:d=2,comm=direct".to_owned(),
                path: Path::P2p,
                mode: Mode::Stream,
                library: Library::Nccl,
                products: Products::default(),
                flags: Flags::Value,
                seed: 9,
            },
            predicted: Some(1.1e-3),
            error: Some(0.001),
            gpu: "GPU".to_owned(),
            driver: "1".to_owned(),
            cuda: "13.0".to_owned(),
        };
        let sample = Sample {
            makespan: 1e-3,
            ranks: vec![1e-3, 9e-4],
            gated: true,
        };
        let row = Row {
            columns: &columns,
            round: 3,
            repeats: 1,
            sample: &sample,
            reference_gemm: Some(8e-4),
            reference_copy: None,
            state: State::default(),
        };
        let text = header() + &row.line();
        let mut reader = csv::Reader::from_reader(text.as_bytes());
        let names = reader.headers().unwrap().clone();
        let record = reader.records().next().unwrap().unwrap();
        let cell = |name: &str| &record[names.iter().position(|n| n == name).unwrap()];
        assert_eq!(cell("variant"), "interdecom:d=2,comm=direct");
        assert_eq!(cell("makespan_s"), "0.0010000000");
        assert_eq!(cell("rank_times_s"), "0.0010000000 0.0009000000");
        assert_eq!(cell("skew_s"), "0.0001000000");
        assert_eq!(cell("predicted_s"), "0.0011000000");
        assert_eq!(cell("bytes"), "");
        assert_eq!(cell("placement"), "0 1");
        assert_eq!(cell("verified_relative_error"), "0.001");
    }
}
