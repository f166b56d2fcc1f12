//! What tuning found, as tables.

use super::grid::{Grid, Look, Paint, clean, paint};
use crate::tune::Tuned;

/// A line for each setting on the short lists.
pub fn csv(all: &[Tuned]) -> String {
    let mut text = "group,machine,rank,setting,predicted_s,measured_s,p10_s,p90_s\n".to_owned();
    for tuned in all {
        for (at, tried) in tuned.tried.iter().enumerate() {
            let number = |x: Option<f64>| x.map(|x| x.to_string()).unwrap_or_default();
            text += &format!(
                "{},{},{},\"{}\",{},{},{},{}\n",
                tuned.group,
                tuned.machine,
                at + 1,
                tried.setting,
                tried.predicted,
                number(tried.measured),
                number(tried.p10),
                number(tried.p90)
            );
        }
    }
    text
}

/// The short lists, and how far the simulator's first choices are from the fastest.
pub fn table(all: &[Tuned], look: &Look) -> String {
    let micros = |seconds: Option<f64>| match seconds {
        Some(seconds) => format!("{:.1} µs", 1e6 * seconds),
        None => "·".to_owned(),
    };
    let mut text = String::new();
    for tuned in all {
        let mut grid = Grid::default()
            .right("", 0)
            .left("setting", 0)
            .right("simulated", 0)
            .right("measured", 0);
        let best = tuned.best().map(|(at, ..)| at);
        for (at, tried) in tuned.tried.iter().enumerate() {
            let measured = match (&tried.reason, tried.measured) {
                (Some(_), _) => paint("cannot", Paint::Dim),
                (None, time) if best == Some(at) => paint(&micros(time), Paint::Good),
                (None, time) => micros(time),
            };
            grid.row(vec![
                (at + 1).to_string(),
                tried.setting.clone(),
                micros(Some(tried.predicted)),
                measured,
            ]);
        }
        text += &format!(
            "{} on {}, {} settings\n",
            tuned.group, tuned.machine, tuned.searched
        );
        for (reason, count) in &tuned.skipped {
            text += &format!("  {count} × cannot: {}\n", clean(reason));
        }
        let cannot: u32 = tuned.skipped.iter().map(|(_, count)| count).sum();
        let left = tuned
            .searched
            .saturating_sub(cannot + tuned.tried.len() as u32);
        if left > 0 {
            text +=
                &format!("  {left} × slower by the simulator, or more of a kind than are tried\n");
        }
        text += &grid.draw(look);
        if let (Some((at, tried, _)), Some(regret)) = (tuned.best(), tuned.regret()) {
            text += &format!(
                "best: {}, number {} of the simulator, whose first choice takes {:.1} % more\n",
                tried.setting,
                at + 1,
                100.0 * regret
            );
        }
        text.push('\n');
    }
    let regrets: Vec<f64> = all.iter().filter_map(Tuned::regret).collect();
    if regrets.len() > 1 {
        let mean = regrets.iter().sum::<f64>() / regrets.len() as f64;
        let hits = regrets.iter().filter(|&&regret| regret <= 0.0).count();
        text += &format!(
            "the simulator's first choice is the fastest in {hits} of {} shapes and takes {:.1} % more in the mean\n",
            regrets.len(),
            100.0 * mean
        );
    }
    text
}
