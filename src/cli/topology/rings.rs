//! `duet topology rings`.

use clap::Args;
use serde_json::{Value, json};

use super::Subject;
use crate::cli::apart::Files;
use crate::cli::error::Failure;
use crate::cli::output::{Format, OutputArgs};
use crate::report::grid::{Grid, Paint, clean, paint, wrap};
use crate::report::list::List;
use crate::report::names;
use crate::report::table::percent;
use crate::topology::Topology;
use crate::topology::rings::{self, Ring};

#[derive(Args, Debug)]
pub struct RingsArgs {
    #[command(flatten)]
    subject: Subject,
    /// GPU numbers, e.g. `0,1,4,5` [default: the GPUs of one box]
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    gpus: Vec<u32>,
    #[command(flatten)]
    output: OutputArgs,
}

pub fn run(args: &RingsArgs) -> Result<(), Failure> {
    Files::default()
        .writes("--out", args.output.out.as_ref())
        .reads([&args.subject.topology])
        .apart()?;
    let topology = args.subject.load()?;
    let gpus = super::several(&topology, &args.gpus)?;
    let found = rings::find(&topology, &gpus);
    let mut rows = vec![("single", None, &found.single)];
    if let Some(pair) = &found.pair {
        rows.push(("pair, first", Some(pair.share_first), &pair.first));
        rows.push(("pair, second", Some(1.0 - pair.share_first), &pair.second));
    }
    let combined = found.pair.as_ref().map(|pair| pair.combined);
    match args.output.format {
        Format::Table => {
            let look = args.output.look();
            let mut grid = Grid::default()
                .left("ring", 0)
                .right("bandwidth", 0)
                .right("share of bytes", 1)
                .text("order");
            for (name, share, ring) in &rows {
                grid.row(vec![
                    paint(name, Paint::Bold),
                    ring.bandwidth.to_string(),
                    share.map_or_else(|| "–".to_owned(), percent),
                    order(&topology, ring),
                ]);
            }
            let mut out = grid.draw(&look);
            out.push('\n');
            if let Some(combined) = combined {
                let text = format!(
                    "Both rings of the pair together move {combined}, {:.3}x the single ring.",
                    combined.get() / found.single.bandwidth.get()
                );
                out.push_str(&wrap(&text, 0, 0, look.width));
            }
            for text in found.no_pair_reason.iter().chain([&found.note]) {
                out.push_str(&wrap(&clean(text), 0, 0, look.width));
            }
            args.output.draw(&out)
        }
        Format::Json => {
            let ring = |ring: &Ring| {
                json!({
                    "order": ring.order,
                    "bandwidth_bytes_per_s": ring.bandwidth.get(),
                    "latency_s": ring.latency.get(),
                })
            };
            let pair = found.pair.as_ref().map(|pair| {
                json!({
                    "first": ring(&pair.first),
                    "second": ring(&pair.second),
                    "share_first": pair.share_first,
                    "combined_bytes_per_s": pair.combined.get(),
                })
            });
            args.output.json(&json!({
                "schema": "duet-rings-1",
                "topology": topology.name,
                "gpus": gpus,
                "single": ring(&found.single),
                "pair": pair,
                "no_pair_reason": found.no_pair_reason,
                "exact": found.exact,
                "note": found.note,
            }))
        }
        Format::Csv => {
            let mut list = List::new(&["ring", "bandwidth_bytes_per_s", "share", "order"]);
            for (name, share, ring) in rows {
                list.row(vec![
                    name.into(),
                    ring.bandwidth.get().into(),
                    share.map_or(Value::Null, Value::from),
                    ring.order.clone().into(),
                ]);
            }
            args.output.write(list.csv().as_bytes())
        }
    }
}

fn order(topology: &Topology, ring: &Ring) -> String {
    let names: Vec<String> = ring
        .order
        .iter()
        .map(|&gpu| names::gpu(topology, gpu))
        .collect();
    names.join(" → ")
}
