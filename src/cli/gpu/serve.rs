//! `duet gpu serve`: a measurement for each line of standard input.
//!
//! Another program can so take turns with Duet on the same GPUs: between an answer and the next
//! line nothing of Duet runs on them.

use std::collections::BTreeMap;
use std::io::BufRead;
use std::rc::Rc;
use std::time::Duration;

use clap::Args;
use serde::Deserialize;
use serde_json::{Value, json};

use super::lowering::read_tile;
use super::settings::{UseArgs, read_warm};
use crate::cli::error::Failure;
use crate::cli::output::print;
use crate::device::DType;
use crate::gpu::GpuError;
use crate::gpu::campaign::{Case, Prepared, machine_topology, prepare};
use crate::gpu::compare::{fill, fill_all};
use crate::gpu::exec::{Faults, Machine, Run};
use crate::gpu::plan::{Flags, Library, Mode, Options, Path, Products};
use crate::gpu::tiles::Tile;
use crate::gpu::timing::{Timer, copy_plan, gemm_plan};
use crate::operator::{Kind, Operator};
use crate::units::Bytes;

/// Names the ranks' products in one piece, without communication.
const UNSPLIT: &str = "unsplit-gemm";
/// Names one copy of a rank's share of the message.
const COPY: &str = "plain-copy";
/// What a line may take beside its run.
const ASIDE: Duration = Duration::from_secs(60);
/// Waiting for a line has no limit of its own.
const IDLE: Duration = Duration::from_secs(24 * 3600);

#[derive(Args, Debug)]
pub struct ServeArgs {
    /// Let every GPU multiply for so long before each measurement
    #[arg(long, value_name = "TIME", default_value = "0", value_parser = read_warm)]
    warm: Duration,
    #[command(flatten)]
    gpus: UseArgs,
}

/// A line of input.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Request {
    op: String,
    m: Option<u64>,
    n: Option<u64>,
    k: Option<u64>,
    bytes: Option<u64>,
    #[serde(default = "two")]
    tp: u32,
    #[serde(default = "bf16")]
    dtype: String,
    strategy: String,
    #[serde(default)]
    graph: bool,
    /// Through the host in chunks of so many bytes.
    host_chunk: Option<u64>,
    /// Who multiplies: `library` or `duet`.
    #[serde(default = "library")]
    gemm: String,
    /// The tile of Duet's own products, by its name.
    tile: Option<String>,
    #[serde(default)]
    copies: bool,
    /// Whether NCCL is told of the buffers beforehand.
    #[serde(default)]
    registered: bool,
    /// Whether the buffers are windows of NCCL.
    #[serde(default)]
    windows: bool,
    #[serde(default = "one")]
    repeats: u32,
}

const fn one() -> u32 {
    1
}

const fn two() -> u32 {
    2
}

fn library() -> String {
    "library".to_owned()
}

fn bf16() -> String {
    "bf16".to_owned()
}

impl Request {
    fn read(line: &str) -> Result<Self, String> {
        let request: Self = serde_json::from_str(line).map_err(|error| error.to_string())?;
        match request.repeats {
            1..=1000 => Ok(request),
            n => Err(format!("repeats = {n}: give 1 to 1000")),
        }
    }

    fn operator(&self) -> Result<Operator, String> {
        let kind: Kind = self.op.parse().map_err(|e| format!("{e}"))?;
        let dtype = DType::ALL.into_iter().find(|d| d.name() == self.dtype);
        let dtype = dtype.ok_or_else(|| format!("unknown dtype `{}`", self.dtype))?;
        let operator = match (kind.is_fused(), self.m, self.n, self.k, self.bytes) {
            (true, Some(m), Some(n), Some(k), None) => {
                Operator::gemm(kind, m, n, k, self.tp, dtype)
            }
            (false, None, None, None, Some(bytes)) => {
                Operator::collective(kind, Bytes::new(bytes), self.tp, dtype)
            }
            (true, ..) => return Err(format!("{kind} needs m, n and k")),
            (false, ..) => return Err(format!("{kind} needs bytes")),
        };
        operator.map_err(|error| error.to_string())
    }

    fn tile(&self) -> Result<Option<Tile>, String> {
        self.tile.as_deref().map(read_tile).transpose()
    }

    /// The case on `gpus` GPUs; without the number of repeats.
    fn case(&self, gpus: u32) -> Result<Case, String> {
        let on = gpus.min(self.tp).max(1);
        let path = match self.host_chunk {
            None => Path::P2p,
            Some(0) => return Err("host_chunk = 0: give the bytes of a chunk".to_owned()),
            Some(chunk) => Path::Host { chunk },
        };
        Ok(Case {
            operator: self.operator()?,
            placement: (0..self.tp).map(|r| r * on / self.tp.max(1)).collect(),
            strategy: self.strategy.clone(),
            path,
            mode: if self.graph {
                Mode::Graph
            } else {
                Mode::Stream
            },
            library: match (self.copies, self.windows, self.registered) {
                (true, _, _) => Library::Copies,
                (_, true, _) => Library::NcclWindow,
                (_, _, true) => Library::NcclRegistered,
                _ => Library::Nccl,
            },
            products: match self.gemm.as_str() {
                "library" => Products::Library,
                "duet" => Products::Own,
                other => return Err(format!("gemm = `{other}`: give `library` or `duet`")),
            },
            flags: Flags::Value,
            seed: 1,
        })
    }
}

pub fn run(args: &ServeArgs) -> Result<(), Failure> {
    let (session, watchdog) = args.gpus.open()?;
    let numbers: Vec<u32> = session.gpus().iter().map(|gpu| gpu.ordinal()).collect();
    let machine = args.gpus.machine(&session, &numbers, args.warm)?;
    let mut timers: BTreeMap<String, Timer<'_>> = BTreeMap::new();
    answer(&json!({ "ready": true, "gpus": numbers.len() }))?;
    watchdog.step("waiting for a line".to_owned(), IDLE);
    for line in std::io::stdin().lock().lines() {
        let line = line.map_err(|error| {
            Failure::Input(format!("error: cannot read standard input: {error}"))
        })?;
        if line.trim().is_empty() {
            continue;
        }
        watchdog.step(line.clone(), args.gpus.limit() * 4 + ASIDE);
        let reply = match serve(&machine, &mut timers, &line) {
            Ok(reply) => reply,
            Err(error) => json!({ "ok": false, "error": error }),
        };
        answer(&reply)?;
        // After a run that hung nothing else is measured.
        machine.usable()?;
        watchdog.step("waiting for a line".to_owned(), IDLE);
    }
    args.gpus.keep_pins(&machine)
}

fn answer(value: &Value) -> Result<(), Failure> {
    print(format!("{value}\n").as_bytes())
}

fn serve<'m>(
    machine: &'m Machine<'m>,
    timers: &mut BTreeMap<String, Timer<'m>>,
    line: &str,
) -> Result<Value, String> {
    let request = Request::read(line)?;
    let case = request.case(machine.devices().len() as u32)?;
    let tile = request.tile()?;
    let key = format!("{} {:?}", case.command(), request.tile);
    let words = |error: GpuError| error.to_string();
    if !timers.contains_key(&key) {
        let timer = timer(machine, &case, tile)?;
        // The first run warms up.
        timer.once(1).map_err(words)?;
        timers.insert(key.clone(), timer);
    }
    let Some(timer) = timers.get(&key) else {
        return Err("no such case".to_owned());
    };
    // Bare calls of a library follow one another as a program makes them, without fork and join.
    let calls = timer.calls(request.repeats).map_err(words)?;
    let sample = match calls {
        Some(sample) => sample,
        None => timer.once(request.repeats).map_err(words)?,
    };
    let pci = &machine.devices()[0].gpu.attributes().pci;
    let state = machine.session().nvml().map(|nvml| nvml.state(pci));
    let state = state.unwrap_or_default();
    Ok(json!({
        "ok": true,
        "makespan_s": sample.makespan,
        "rank_times_s": sample.ranks,
        "gated": sample.gated,
        "repeats": request.repeats,
        "sm_clock_mhz": state.sm_mhz,
        "power_w": state.power_w,
        "temperature_c": state.celsius,
    }))
}

fn timer<'m>(
    machine: &'m Machine<'m>,
    case: &Case,
    tile: Option<Tile>,
) -> Result<Timer<'m>, String> {
    let words = |error: GpuError| error.to_string();
    let sms = machine.devices().iter().map(|d| d.gpu.attributes().sms);
    let sms = sms.min().unwrap_or(1);
    let topology = machine_topology(machine.devices().len() as u32, case.operator.tp, sms);
    let reference = matches!(case.strategy.as_str(), UNSPLIT | COPY);
    let mut built = case.clone();
    if reference {
        built.strategy = match case.operator.kind.is_fused() {
            true => "sequential".to_owned(),
            false => "library".to_owned(),
        };
    }
    let options = Options {
        tile,
        ..built.options()
    };
    let Prepared { schedule, plan } =
        prepare(&built, &topology, sms, &options).map_err(words)??;
    let plan = match case.strategy.as_str() {
        UNSPLIT => gemm_plan(&schedule).map(Rc::new),
        COPY => copy_plan(&schedule).map(Rc::new),
        _ => Some(plan),
    };
    let plan = plan.ok_or("there is no such reference for this operator")?;
    let run = Run::new(machine, &schedule, &plan, Faults::default()).map_err(words)?;
    for parity in 0..2 {
        match reference {
            true => fill_all(&run, parity, case.seed).map_err(words)?,
            false => fill(&run, parity, case.seed).map_err(words)?,
        }
    }
    Timer::new(run, false).map_err(words)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_cases_or_refused_in_words() {
        let line = r#"{"op":"ag-gemm","m":64,"n":64,"k":32,"strategy":"interdecom:d=2"}"#;
        let request = Request::read(line).unwrap();
        let case = request.case(2).unwrap();
        assert_eq!((case.placement, request.repeats), (vec![0, 1], 1));
        let said = |line: &str| match Request::read(line) {
            Err(error) => error,
            Ok(request) => request.case(2).unwrap_err(),
        };
        assert!(said("{").contains("EOF"));
        assert!(said(r#"{"op":"ag-gemm","strategy":"x","depth":1}"#).contains("unknown field"));
        let tile = |name: &str| {
            let line = format!(r#"{{"op":"ring","strategy":"x","tile":"{name}"}}"#);
            Request::read(&line).unwrap().tile()
        };
        let unknown = tile("sm90-7x7").unwrap_err();
        assert!(unknown.starts_with("there is no tile `sm90-7x7`; there are sm90-128x256x4-2x1, "));
        let known = tile("sm90-128x128x6-2x1").unwrap().unwrap();
        assert_eq!((known.cols, known.cluster), (128, (2, 1)));
        assert_eq!(
            said(r#"{"op":"ag-gemm","strategy":"ring"}"#),
            "ag-gemm needs m, n and k"
        );
        assert_eq!(
            said(r#"{"op":"all-gather","m":1,"strategy":"ring"}"#),
            "all-gather needs bytes"
        );
        assert_eq!(
            said(r#"{"op":"all-gather","bytes":64,"strategy":"ring","repeats":0}"#),
            "repeats = 0: give 1 to 1000"
        );
    }
}
