//! `duet topology show`.

use clap::{Args, ValueEnum};
use serde_json::{Value, json};

use super::Subject;
use crate::cli::apart::Files;
use crate::cli::error::Failure;
use crate::cli::output::{ColorChoice, Format, OutputArgs};
use crate::report::grid::{Paint, clean, paint, wrap};
use crate::report::list::List;
use crate::report::topology::{dot, matrix, picture, svg};
use crate::topology::Topology;
use crate::topology::matrix::{Cell, Matrix};

/// More GPUs than this are not shown in the matrix unless asked for.
const MATRIX_GPUS: u32 = 16;

#[derive(Args, Debug)]
pub struct ShowArgs {
    #[command(flatten)]
    subject: Subject,
    /// GPUs of the matrix, e.g. `0,1,4,5` [default: the GPUs of one box, at most 16]
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    gpus: Vec<u32>,
    /// How to show the machine
    #[arg(
        long,
        value_enum,
        default_value = "table",
        value_name = "FORMAT",
        help_heading = "Output"
    )]
    format: ShowFormat,
    /// Write the result to FILE instead of standard output
    #[arg(short, long, value_name = "FILE", help_heading = "Output")]
    out: Option<std::path::PathBuf>,
    /// When to use colour
    #[arg(
        long,
        value_enum,
        default_value = "auto",
        value_name = "WHEN",
        help_heading = "Output"
    )]
    color: ColorChoice,
}

#[derive(Copy, Clone, Debug, PartialEq, Eq, ValueEnum)]
enum ShowFormat {
    /// Picture, bandwidth matrix and links, for people
    Table,
    /// Nodes, links and the matrix
    Json,
    /// The matrix, one line per pair
    Csv,
    /// A graph for Graphviz
    Dot,
    /// A drawing
    Svg,
}

pub fn run(args: &ShowArgs) -> Result<(), Failure> {
    Files::default()
        .writes("--out", args.out.as_ref())
        .reads([&args.subject.topology])
        .apart()?;
    let topology = args.subject.load()?;
    let output = OutputArgs {
        format: Format::Table,
        out: args.out.clone(),
        color: args.color,
    };
    match args.format {
        ShowFormat::Dot => return output.write(dot::draw(&topology).as_bytes()),
        ShowFormat::Svg => return output.write(svg::draw(&topology).as_bytes()),
        _ => {}
    }
    let mut gpus = super::gpus(&topology, &args.gpus)?;
    if args.gpus.is_empty() {
        gpus.truncate(MATRIX_GPUS as usize);
    }
    let pairs = Matrix::new(&topology, &gpus).map_err(|error| Failure::input(&error))?;
    match args.format {
        ShowFormat::Json => output.json(&machine(&topology, &pairs)),
        ShowFormat::Csv => output.write(csv(&pairs).as_bytes()),
        _ => output.draw(&table(&topology, &pairs, &output)),
    }
}

fn table(topology: &Topology, pairs: &Matrix, output: &OutputArgs) -> String {
    let look = output.look();
    let title = paint(&clean(&topology.name), Paint::Bold);
    let mut out = match clean(&topology.about) {
        about if about.is_empty() => format!("{title}\n\n"),
        about => wrap(&format!("{title}: {about}"), 0, 2, look.width) + "\n",
    };
    out.push_str(&picture::draw(topology));
    out.push_str("\nOne transfer alone, from row to column [GB/s]\n");
    out.push_str(&matrix::bandwidths(topology, pairs, &look));
    let all = topology.gpus.len();
    if pairs.gpus.len() < all {
        out.push_str(&format!(
            "({} of {all} GPUs; more by --gpus)\n",
            pairs.gpus.len()
        ));
    }
    out.push('\n');
    out.push_str(&matrix::links(topology, &look));
    out
}

fn machine(topology: &Topology, pairs: &Matrix) -> Value {
    let graph = &topology.graph;
    let nodes: Vec<Value> = (graph.node_weights())
        .map(|node| json!({ "name": node.name, "kind": matrix::kind(node.kind) }))
        .collect();
    let links: Vec<Value> = (graph.raw_edges().iter())
        .map(|edge| {
            let link = &edge.weight;
            json!({
                "from": graph[edge.source()].name,
                "to": graph[edge.target()].name,
                "kind": topology.kinds[usize::from(link.kind)],
                "bandwidth_bytes_per_s": link.bandwidth.get(),
                "latency_s": link.latency.get(),
                "source": matrix::source_of(topology, link),
            })
        })
        .collect();
    // Without a way there is no number; the diagonal is zero.
    let rows = |value: fn(Cell) -> f64| -> Vec<Vec<Option<f64>>> {
        let count = pairs.gpus.len();
        (0..count)
            .map(|row| {
                (0..count)
                    .map(|column| (column, pairs.cell(row, column)))
                    .map(|(column, cell)| (cell.paths > 0 || column == row).then(|| value(cell)))
                    .collect()
            })
            .collect()
    };
    json!({
        "schema": "duet-topology-1",
        "topology": topology.name,
        "about": topology.about,
        "default_tp": topology.default_tp,
        "nodes": nodes,
        "links": links,
        "gpus": pairs.gpus,
        "bandwidth_bytes_per_s": rows(|cell| cell.bandwidth.get()),
        "latency_s": rows(|cell| cell.latency.get()),
    })
}

fn csv(pairs: &Matrix) -> String {
    let mut list = List::new(&[
        "from",
        "to",
        "bandwidth_bytes_per_s",
        "latency_s",
        "paths",
        "stops",
    ]);
    for (row, from) in pairs.gpus.iter().enumerate() {
        for (column, to) in pairs.gpus.iter().enumerate() {
            if row != column {
                let cell = pairs.cell(row, column);
                list.row(vec![
                    (*from).into(),
                    (*to).into(),
                    (cell.paths > 0).then(|| cell.bandwidth.get()).into(),
                    (cell.paths > 0).then(|| cell.latency.get()).into(),
                    cell.paths.into(),
                    cell.stops.into(),
                ]);
            }
        }
    }
    list.csv()
}
