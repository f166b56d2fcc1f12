//! `duet topology bound`.

use clap::Args;
use clap::builder::PossibleValuesParser;
use serde_json::Value;

use super::Subject;
use crate::cli::apart::Files;
use crate::cli::error::Failure;
use crate::cli::output::OutputArgs;
use crate::report::grid::{Grid, Paint, clean, paint};
use crate::report::list::List;
use crate::topology::bound::{self, Kind};
use crate::units::Bytes;

/// Collectives by the names of the operators.
const KINDS: [(&str, Kind); 5] = [
    ("all-gather", Kind::AllGather),
    ("reduce-scatter", Kind::ReduceScatter),
    ("all-reduce", Kind::AllReduce),
    ("all-to-all", Kind::AllToAll),
    ("point-to-point", Kind::PointToPoint),
];

#[derive(Args, Debug)]
pub struct BoundArgs {
    #[command(flatten)]
    subject: Subject,
    /// Only this collective
    #[arg(long, value_name = "OP", value_parser = PossibleValuesParser::new(KINDS.map(|(name, _)| name)))]
    op: Option<String>,
    /// Size as nccl-tests counts it
    #[arg(long, value_name = "SIZE", default_value = "64 MiB")]
    bytes: Bytes,
    /// GPU numbers, e.g. `0,1,4,5` [default: the GPUs of one box]
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    gpus: Vec<u32>,
    #[command(flatten)]
    output: OutputArgs,
}

pub fn run(args: &BoundArgs) -> Result<(), Failure> {
    Files::default()
        .writes("--out", args.output.out.as_ref())
        .reads([&args.subject.topology])
        .apart()?;
    let topology = args.subject.load()?;
    let gpus = super::several(&topology, &args.gpus)?;
    let mut list = List::new(&["operator", "bytes", "bound", "seconds", "tight", "why"]);
    let mut grid = Grid::default()
        .left("collective", 0)
        .right("at least", 0)
        .left("tight", 1)
        .left("by", 2)
        .text("because");
    for (name, kind) in KINDS {
        if args.op.as_deref().is_some_and(|op| op != name) {
            continue;
        }
        let bounds = bound::bounds(&topology, kind, args.bytes.as_f64(), &gpus);
        for (place, bound) in bounds.iter().enumerate() {
            grid.row(vec![
                match place {
                    0 => paint(name, Paint::Bold),
                    _ => String::new(),
                },
                bound.seconds.to_string(),
                match bound.tight {
                    Some(true) => "yes",
                    Some(false) => "no",
                    None => "unknown",
                }
                .to_owned(),
                clean(&bound.name),
                clean(&bound.why),
            ]);
            list.row(vec![
                name.into(),
                args.bytes.get().into(),
                bound.name.clone().into(),
                bound.seconds.get().into(),
                bound.tight.map_or(Value::Null, Value::from),
                bound.why.clone().into(),
            ]);
        }
    }
    args.output.list(&list, &grid)
}
