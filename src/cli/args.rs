//! Options shared by commands: the machine, the operator, how to run.

use clap::builder::PossibleValuesParser;
use clap::{Args, ValueEnum};

use super::error::{Failure, remedied};
use crate::device::DType;
use crate::experiment::{default_dtype, lacking};
use crate::operator::models::{self, Layer};
use crate::operator::{Kind, Operator, OperatorError};
use crate::topology::paths::{PathChoice, with_path};
use crate::topology::{self, Topology};
use crate::units::Bytes;
use crate::units::count;

/// The machine where the user names none.
pub const DEFAULT_TOPOLOGY: &str = "h200-nvswitch-8";
/// The layer where the user names none: GPT-3's MLP on four sequences of 2048 tokens.
const DEFAULT_MODEL: &str = "gpt3-175b";
const DEFAULT_SEQUENCE: u64 = 2048;
const DEFAULT_BATCH: u64 = 4;

/// Which machine.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Machine")]
pub struct MachineArgs {
    /// A built-in topology (see `duet topology list`) or a YAML file
    #[arg(short, long, value_name = "NAME|FILE", default_value = DEFAULT_TOPOLOGY)]
    pub topology: String,
    /// Change a number of the machine, e.g. `links.nvlink.bandwidth=2x`, `gpu.peak=0.8x`
    #[arg(long, value_name = "PATH=VALUE")]
    pub set: Vec<String>,
}

impl MachineArgs {
    /// Loads the topology named.
    ///
    /// # Errors
    /// [`Failure::Input`] with the whole diagnostic.
    pub fn load(&self) -> Result<Topology, Failure> {
        topology::load(&self.topology, &self.set).map_err(|error| Failure::input(&error))
    }
}

/// Which machines.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Machine")]
pub struct MachinesArgs {
    /// A built-in topology (see `duet topology list`) or a YAML file; repeat it to compare machines
    #[arg(short, long, value_name = "NAME|FILE", default_value = DEFAULT_TOPOLOGY)]
    pub topology: Vec<String>,
    /// Change a number of the machine, e.g. `links.nvlink.bandwidth=2x`, `gpu.peak=0.8x`
    #[arg(long, value_name = "PATH=VALUE")]
    pub set: Vec<String>,
}

impl MachinesArgs {
    /// Loads every topology named, in order.
    ///
    /// # Errors
    /// [`Failure::Input`] with the whole diagnostic.
    pub fn load(&self) -> Result<Vec<Topology>, Failure> {
        self.topology
            .iter()
            .map(|name| topology::load(name, &self.set).map_err(|error| Failure::input(&error)))
            .collect()
    }
}

/// The way of transfers.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Machine")]
pub struct PathArgs {
    /// The way between two GPUs: p2p, the machine's routes; host:CHUNK, through a host's memory; or
    /// hybrid:SHARE:CHUNK, both at once
    #[arg(long, value_name = "PATH", default_value = "p2p")]
    pub path: PathChoice,
}

impl PathArgs {
    /// The machine with this way between its GPUs.
    pub fn on(&self, topology: &Topology) -> Topology {
        with_path(topology, self.path)
    }
}

/// What is to be computed.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Operator")]
pub struct OperatorArgs {
    /// Operator [default: ag-gemm, or what --layer is]
    #[arg(long, value_name = "OP", value_parser = PossibleValuesParser::new(Kind::ALL.map(Kind::name)))]
    pub op: Option<String>,
    /// Rows of A and C (tokens), over all ranks [default: 8192]
    #[arg(short, value_name = "ROWS")]
    pub m: Option<u64>,
    /// Columns of B and C, over all ranks [default: those of GPT-3's MLP]
    #[arg(short, value_name = "COLS")]
    pub n: Option<u64>,
    /// Columns of A and rows of B, over all ranks [default: those of GPT-3's MLP]
    #[arg(short, value_name = "DEPTH")]
    pub k: Option<u64>,
    /// Size of a bare collective as nccl-tests counts it, e.g. 64MiB
    #[arg(long, value_name = "SIZE")]
    pub bytes: Option<Bytes>,
    /// Take n, k and the operator from a model
    #[arg(long, value_name = "MODEL", value_parser = PossibleValuesParser::new(models::names()))]
    pub model: Option<String>,
    /// The layer of the model [default: fc1]
    #[arg(long, value_name = "LAYER", requires = "model", value_parser = PossibleValuesParser::new(Layer::ALL.map(Layer::name)))]
    pub layer: Option<String>,
    /// Tokens of a sequence; m = seq × batch [default: 2048]
    #[arg(long, value_name = "TOKENS", conflicts_with = "m")]
    pub seq: Option<u64>,
    /// Sequences [default: 4]
    #[arg(long, value_name = "N", conflicts_with = "m")]
    pub batch: Option<u64>,
    /// Ranks [default: the GPUs of one box]
    #[arg(long, visible_alias = "ranks", value_name = "RANKS")]
    pub tp: Option<u32>,
    /// Element type [default: bf16, or fp16 on GPUs without bf16]
    #[arg(long, value_name = "TYPE", value_parser = PossibleValuesParser::new(DType::ALL.map(DType::name)))]
    pub dtype: Option<String>,
}

impl OperatorArgs {
    /// The operator on the ranks of `topology`.
    ///
    /// # Errors
    /// [`Failure::Usage`] for options that contradict each other, [`Failure::Input`] for a shape
    /// that cannot be cut among the ranks and for more ranks than GPUs.
    pub fn resolve(&self, topology: &Topology) -> Result<Operator, Failure> {
        self.resolve_virtual(topology, false)
    }

    /// The same; with `virtual_ranks` there may be more ranks than GPUs.
    ///
    /// # Errors
    /// As [`Self::resolve`].
    pub fn resolve_virtual(
        &self,
        topology: &Topology,
        virtual_ranks: bool,
    ) -> Result<Operator, Failure> {
        let kind: Option<Kind> = self
            .op
            .as_deref()
            .map(str::parse)
            .transpose()
            .map_err(wrong)?;
        let gpus = topology.gpus.len() as u32;
        let tp = match (self.tp, kind) {
            (Some(tp), _) => tp,
            (None, Some(Kind::PointToPoint)) => 2,
            (None, _) => topology.default_tp.min(gpus),
        };
        if tp > gpus && !virtual_ranks {
            return Err(Failure::Input(format!(
                "error: {} on {}: `{}` is too small\n  help: give `--tp {gpus}` or less, or a larger topology",
                count(u64::from(tp), "rank"),
                count(u64::from(gpus), "GPU"),
                topology.name
            )));
        }
        let dtype = self.dtype(topology, tp.min(gpus));
        if let Some(kind) = kind.filter(|kind| !kind.is_fused()) {
            return self.bare(kind, tp, dtype);
        }
        if self.bytes.is_some() {
            return Err(Failure::Usage(
                "error: `--bytes` is the size of a bare collective\n  help: name one, e.g. `--op all-gather`, or give `-m`, `-n` and `-k`"
                    .to_owned(),
            ));
        }
        let sequence = self.seq.unwrap_or(DEFAULT_SEQUENCE);
        let batch = self.batch.unwrap_or(DEFAULT_BATCH);
        let layer = match (&self.layer, kind) {
            (Some(layer), _) => layer.parse().map_err(wrong)?,
            (None, Some(Kind::GemmRs | Kind::GemmAr)) => Layer::Fc2,
            _ => Layer::Fc1,
        };
        let model = self.model.as_deref().unwrap_or(DEFAULT_MODEL);
        let gemm = models::find(model)
            .and_then(|model| model.gemm(layer, sequence, batch))
            .map_err(wrong)?;
        let (m, n, k) = (
            self.m.unwrap_or(gemm.m),
            self.n.unwrap_or(gemm.n),
            self.k.unwrap_or(gemm.k),
        );
        check_dtype(dtype, topology, tp.min(gpus))?;
        Operator::gemm(kind.unwrap_or(gemm.kind), m, n, k, tp, dtype).map_err(wrong)
    }

    /// The element type asked for; without one bf16, or fp16 where a GPU lacks bf16.
    fn dtype(&self, topology: &Topology, tp: u32) -> DType {
        match &self.dtype {
            Some(name) => DType::ALL
                .into_iter()
                .find(|dtype| dtype.name() == name)
                .unwrap_or_default(),
            None => default_dtype(topology, tp),
        }
    }

    fn bare(&self, kind: Kind, tp: u32, dtype: DType) -> Result<Operator, Failure> {
        let gemm = [
            ("-m", self.m.is_some()),
            ("-n", self.n.is_some()),
            ("-k", self.k.is_some()),
            ("--model", self.model.is_some()),
            ("--seq", self.seq.is_some()),
            ("--batch", self.batch.is_some()),
        ];
        if let Some((option, _)) = gemm.iter().find(|(_, given)| *given) {
            return Err(Failure::Usage(format!(
                "error: {kind} has no GEMM, so `{option}` means nothing\n  help: give its size with `--bytes`, e.g. `--bytes 64MiB`"
            )));
        }
        let bytes = self.bytes.ok_or_else(|| {
            Failure::Usage(format!(
                "error: {kind} needs a size\n  help: give it with `--bytes`, e.g. `--bytes 64MiB`"
            ))
        })?;
        Operator::collective(kind, bytes, tp, dtype).map_err(wrong)
    }
}

fn wrong(error: OperatorError) -> Failure {
    Failure::input(&remedied(&error.to_string()))
}

/// Refuses an element type that one of the first `tp` GPUs cannot multiply.
fn check_dtype(dtype: DType, topology: &Topology, tp: u32) -> Result<(), Failure> {
    let Some(device) = lacking(topology, tp, dtype) else {
        return Ok(());
    };
    let known: Vec<&str> = device.peak.iter().map(|(dtype, _)| dtype.name()).collect();
    Err(Failure::Input(format!(
        "error: GPU `{}` of {} has no {} arithmetic\n  help: choose `--dtype` from what it has: {}",
        device.name,
        topology.name,
        dtype.name(),
        known.join(", ")
    )))
}

/// How the host submits work.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Launch {
    /// Kernel by kernel into streams: every submission costs host time.
    #[default]
    Stream,
    /// Once, as a recorded graph.
    Graph,
}

/// How schedules are chosen, checked and run.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Run")]
pub struct RunArgs {
    /// How the host submits work
    #[arg(long, value_enum, default_value = "stream", value_name = "MODE")]
    pub launch: Launch,
    /// Verify schedules of any size (always done up to 100,000 tasks)
    #[arg(long, conflicts_with = "no_verify")]
    pub verify: bool,
    /// Verify nothing
    #[arg(long)]
    pub no_verify: bool,
}
