//! What a changed machine does to each strategy.

use super::{Figure, Picture, caption};
use crate::experiment::analysis::Analysis;
use crate::experiment::analysis::sweep::{Step, Sweep};
use crate::report::plot::{Axis, Lines, Panel, Quantity, Series};

pub(super) const FIGURE: Figure = Figure {
    name: "sweep",
    about: "time per strategy against a value set on the machine, one picture per grid that sets one",
    draw,
};

fn draw(analysis: &Analysis) -> Result<Vec<Picture>, String> {
    per_grid(
        analysis,
        picture,
        "it needs a grid with `set:` of one path and two values or more, each with a number",
    )
}

/// The pictures of all grids that set something; an error that says what is needed without any.
pub(super) fn per_grid(
    analysis: &Analysis,
    picture: fn(&Analysis, &str, &[&Sweep]) -> Option<Picture>,
    needs: &str,
) -> Result<Vec<Picture>, String> {
    let mut grids: Vec<&str> = analysis.sweeps.iter().map(|sweep| &*sweep.grid).collect();
    grids.dedup();
    let pictures: Vec<Picture> = grids
        .into_iter()
        .filter_map(|grid| {
            let sweeps = analysis.sweeps.iter().filter(|sweep| &*sweep.grid == grid);
            picture(analysis, grid, &sweeps.collect::<Vec<_>>())
        })
        .collect();
    match pictures.is_empty() {
        true => Err(needs.to_owned()),
        false => Ok(pictures),
    }
}

/// The number that a value begins with and what follows: `2x` is (2, `x`).
fn number(value: &str) -> Option<(f64, &str)> {
    let end = value.find(|c: char| !(c.is_ascii_digit() || c == '.'));
    let (digits, unit) = value.split_at(end.unwrap_or(value.len()));
    let number = digits.parse::<f64>().ok().filter(|number| *number > 0.0);
    Some((number?, unit.trim()))
}

/// Steps with their numbers; `None` where the values have none or differ in unit.
pub(super) fn numbers(sweep: &Sweep) -> Option<(Vec<(f64, &Step)>, &str)> {
    let all: Option<Vec<_>> = sweep
        .steps
        .iter()
        .map(|step| number(&step.value).map(|(x, unit)| (x, unit, step)))
        .collect();
    let mut all = all?;
    let unit = all.first()?.1;
    let same = all.len() > 1 && all.iter().all(|(_, other, _)| *other == unit);
    all.sort_by(|a, b| a.0.total_cmp(&b.0));
    same.then(|| {
        (
            all.into_iter().map(|(x, _, step)| (x, step)).collect(),
            unit,
        )
    })
}

/// The axis of a path: its label with the unit of the values, and what they are.
pub(super) fn axis(path: &str, unit: &str) -> (String, Quantity) {
    match unit {
        "x" => (path.to_owned(), Quantity::Factor),
        "" => (path.to_owned(), Quantity::Number),
        unit => (format!("{path} ({unit})"), Quantity::Number),
    }
}

fn picture(analysis: &Analysis, grid: &str, sweeps: &[&Sweep]) -> Option<Picture> {
    let first = sweeps.first()?;
    let (_, unit) = numbers(first)?;
    let (label, quantity) = axis(&first.path, unit);
    let panels: Vec<Panel> = sweeps
        .iter()
        .filter_map(|sweep| {
            let (steps, _) = numbers(sweep)?;
            let mut classes: Vec<&str> = Vec::new();
            for (class, _) in steps.iter().flat_map(|(_, step)| &step.classes) {
                if !classes.contains(class) {
                    classes.push(class);
                }
            }
            let series = classes.into_iter().map(|class| {
                let point = |(x, step): &(f64, &Step)| {
                    let time = step.classes.iter().find(|(other, _)| *other == class)?;
                    Some((*x, time.1))
                };
                Series::of(class, steps.iter().filter_map(point).collect())
            });
            Some(Panel {
                title: sweep.group.title(),
                series: series.collect(),
                marks: Vec::new(),
            })
        })
        .collect();
    let machines: Vec<&str> = {
        let mut all: Vec<&str> = sweeps.iter().map(|sweep| &*sweep.group.topology).collect();
        all.sort_unstable();
        all.dedup();
        all
    };
    let lines = Lines {
        caption: caption(
            analysis,
            format!("Time of each strategy against {}", first.path),
            format!(
                "Geometric mean over the cases of grid {grid}, parameters (d) at their best; no \
                 point where a strategy does not apply; {}",
                machines.join(", ")
            ),
        ),
        x: Axis::log2(&label, quantity),
        y: Axis::from_zero("time", Quantity::Seconds),
        columns: panels.len().min(2),
        panels,
        own_y: true,
        rules: Vec::new(),
    };
    Some(Picture {
        stem: format!("sweep-{grid}"),
        svg: lines.draw(),
    })
}

#[cfg(test)]
mod tests {
    use super::{Quantity, axis, number};

    #[test]
    fn values_are_numbers_with_a_unit() {
        assert_eq!(number("0.5x"), Some((0.5, "x")));
        assert_eq!(number("26.3 GB/s"), Some((26.3, "GB/s")));
        assert_eq!((number("lowest"), number("0x")), (None, None));
        let label = |unit| axis("links.pcie.bandwidth", unit);
        assert_eq!(
            label("GB/s"),
            ("links.pcie.bandwidth (GB/s)".to_owned(), Quantity::Number)
        );
        assert_eq!(label("x").1, Quantity::Factor);
    }
}
