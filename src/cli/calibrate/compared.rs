//! `duet calibrate --compare`: two calibrations number by number.

use serde_json::Value;

use super::CalibrateArgs;
use crate::calibrate::machine::difference::{Difference, compare};
use crate::cli::error::Failure;
use crate::cli::output::Format;
use crate::report::grid::Grid;
use crate::report::list::List;

pub(super) fn show(args: &CalibrateArgs, one: &str, two: &str) -> Result<(), Failure> {
    let rows = compare(one, two).map_err(|error| Failure::input(&error))?;
    let mut list = List::new(&["name", "first", "second", "relative"]);
    let mut grid = Grid::default()
        .left("number", 0)
        .right("first", 0)
        .right("second", 0)
        .right("difference", 0);
    let number = |value: Option<f64>| value.map_or_else(|| "·".to_owned(), |v| format!("{v:.5e}"));
    for row in &rows {
        let json = |value: Option<f64>| value.map_or(Value::Null, Value::from);
        let [first, second] = row.values;
        list.row(vec![
            row.name.as_str().into(),
            json(first),
            json(second),
            json(row.relative()),
        ]);
        let relative = row
            .relative()
            .map_or_else(|| "·".to_owned(), |r| format!("{:+.1} %", 100.0 * r));
        grid.row(vec![
            row.name.clone(),
            number(first),
            number(second),
            relative,
        ]);
    }
    match args.output.format {
        Format::Table => {
            let mut drawing = grid.draw(&args.output.look());
            drawing.push_str(&summary(&rows));
            args.output.draw(&drawing)
        }
        Format::Json => args.output.write(list.json()?.as_bytes()),
        Format::Csv => args.output.write(list.csv().as_bytes()),
    }
}

fn summary(rows: &[Difference]) -> String {
    let mut all: Vec<f64> = rows
        .iter()
        .filter_map(Difference::relative)
        .map(f64::abs)
        .collect();
    all.sort_by(f64::total_cmp);
    let at = |share: f64| all.get((share * all.len() as f64) as usize).or(all.last());
    match (at(0.5), at(0.9), all.last()) {
        (Some(median), Some(most), Some(worst)) => format!(
            "\n{} numbers in both: median difference {:.2} %, nine in ten within {:.2} %, largest {:.1} %\n",
            all.len(),
            100.0 * median,
            100.0 * most,
            100.0 * worst
        ),
        _ => "\nno number is in both\n".to_owned(),
    }
}
