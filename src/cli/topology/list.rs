//! `duet topology list`.

use clap::Args;

use crate::cli::error::Failure;
use crate::cli::output::OutputArgs;
use crate::report::grid::{Grid, Paint, clean, paint};
use crate::report::list::List;
use crate::topology;

#[derive(Args, Debug)]
pub struct ListArgs {
    #[command(flatten)]
    output: OutputArgs,
}

pub fn run(args: &ListArgs) -> Result<(), Failure> {
    let mut list = List::new(&["topology", "gpus", "gpu", "default_tp", "links", "about"]);
    let mut grid = Grid::default()
        .left("topology", 0)
        .right("GPUs", 0)
        .left("GPU", 1)
        .text("about");
    for name in topology::names() {
        let topology = topology::load(name, &[]).map_err(|error| Failure::input(&error))?;
        let mut devices: Vec<&str> = topology.devices.iter().map(|d| d.name.as_str()).collect();
        devices.dedup();
        grid.row(vec![
            paint(&clean(&topology.name), Paint::Bold),
            topology.gpus.len().to_string(),
            clean(&devices.join(" ")),
            clean(&topology.about),
        ]);
        list.row(vec![
            topology.name.clone().into(),
            topology.gpus.len().into(),
            devices.join(" ").into(),
            topology.default_tp.into(),
            topology.graph.edge_count().into(),
            topology.about.clone().into(),
        ]);
    }
    args.output.list(&list, &grid)
}
