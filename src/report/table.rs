//! The table of `duet compare`.

use std::fmt::Write;

use super::grid::{Grid, Look, Paint, bar, clean, paint, wrap};
use super::{Comparison, Outcome, Selected, Verification};
use crate::units::{BytesPerSecond, Seconds};

/// Columns of a speed-up bar.
const BAR: usize = 12;
/// Times closer than this are called equal.
pub(super) const TIE: f64 = 1e-3;

/// A time for people; negative ones (an ECT can be) keep their sign.
pub fn time(seconds: f64) -> String {
    // Differences of equal times leave rounding, far below what any term of the model resolves.
    let seconds = if seconds.abs() < 1e-15 { 0.0 } else { seconds };
    let text = Seconds::of(seconds.abs()).to_string();
    if seconds < 0.0 {
        format!("-{text}")
    } else {
        text
    }
}

/// A share in per cent with three digits.
pub fn percent(share: f64) -> String {
    let value = share * 100.0;
    match value != 0.0 && value.abs() < 9.95 {
        // Rounded first, so that nothing is not minus nothing.
        true => format!("{:.1} %", (value * 10.0).round() / 10.0 + 0.0),
        false => format!("{:.0} %", value + 0.0),
    }
}

fn times(speedup: Option<f64>) -> String {
    match speedup {
        None => "–".to_owned(),
        Some(value) => paint(
            &format!("{value:.3}x"),
            match value {
                v if v > 1.0 + TIE => Paint::Good,
                v if v < 1.0 - TIE => Paint::Bad,
                _ => Paint::Plain,
            },
        ),
    }
}

/// All strategies of each comparison; several topologies stand side by side.
pub fn compare(comparisons: &[Comparison], explain: bool, look: &Look) -> String {
    let mut out = String::new();
    match comparisons {
        [one] => {
            heading(&mut out, one, look);
            out.push_str(&ranking(one).draw(look));
            out.push('\n');
            remarks(&mut out, one, explain, look);
        }
        several => {
            out.push_str(&side_by_side(several).draw(look));
            for comparison in several {
                out.push('\n');
                heading(&mut out, comparison, look);
                remarks(&mut out, comparison, explain, look);
            }
        }
    }
    out
}

fn heading(out: &mut String, comparison: &Comparison, look: &Look) {
    let title = format!(
        "{} on {}",
        paint(&comparison.operator.to_string(), Paint::Bold),
        paint(&clean(&comparison.topology), Paint::Bold),
    );
    out.push_str(&wrap(&title, 0, 2, look.width));
    let mut facts = Vec::new();
    if comparison.unsplit_gemm > 0.0 {
        facts.push(format!("unsplit GEMM {}", time(comparison.unsplit_gemm)));
    }
    if let Some(bound) = comparison.lower_bound {
        facts.push(format!("lower bound {}", time(bound)));
    }
    facts.push(format!("{} launches", comparison.launch));
    out.push_str(&wrap(&facts.join(" · "), 0, 2, look.width));
    out.push('\n');
}

fn ranking(comparison: &Comparison) -> Grid {
    let fused = comparison.operator.kind.is_fused();
    let mut grid = Grid::default()
        .left("strategy", 0)
        .right("time", 0)
        .right("speed-up", 1)
        .left("", 4);
    if fused {
        grid = grid.right("ECT", 3).right("overlap", 2).right("comm", 6);
    } else {
        grid = grid.right("algbw", 6).right("busbw", 2);
    }
    grid = grid.left("bottleneck", 5);
    let fastest = comparison.results.iter().filter_map(|o| o.speedup);
    let fastest = fastest.fold(0.0, f64::max);
    for (place, outcome) in comparison.results.iter().enumerate() {
        let share = outcome.speedup.map_or(0.0, |speedup| speedup / fastest);
        let name = clean(&outcome.strategy);
        let mut cells = vec![
            if place == 0 {
                paint(&name, Paint::Bold)
            } else {
                name
            },
            time(outcome.makespan),
            times(outcome.speedup),
            paint(&bar(share, BAR), Paint::Accent),
        ];
        if fused {
            let overlap = outcome.overlap_efficiency.map(percent);
            cells.extend([
                time(outcome.ect),
                overlap.unwrap_or_else(|| "–".to_owned()),
                time(outcome.comm_only),
            ]);
        }
        if !fused {
            let rate = |rate: Option<f64>| match rate {
                Some(rate) => BytesPerSecond::of(rate).to_string(),
                None => "–".to_owned(),
            };
            cells.push(rate(outcome.bandwidth.map(|(algbw, _)| algbw)));
            cells.push(rate(outcome.bandwidth.map(|(_, busbw)| busbw)));
        }
        cells.push(clean(&outcome.bottleneck));
        grid.row(cells);
    }
    grid
}

fn side_by_side(comparisons: &[Comparison]) -> Grid {
    let mut grid = Grid::default().left("strategy", 0);
    for comparison in comparisons {
        grid = grid.right(clean(&comparison.topology), 0).right("", 1);
    }
    let mut strategies: Vec<&str> = Vec::new();
    for outcome in comparisons.iter().flat_map(|c| &c.results) {
        if !strategies.contains(&outcome.strategy.as_str()) {
            strategies.push(&outcome.strategy);
        }
    }
    for strategy in strategies {
        let mut cells = vec![clean(strategy)];
        for comparison in comparisons {
            let place = comparison
                .results
                .iter()
                .position(|outcome| outcome.strategy == strategy);
            match place {
                Some(place) => {
                    let outcome = &comparison.results[place];
                    let best = if place == 0 { "* " } else { "" };
                    let text = format!("{best}{}", time(outcome.makespan));
                    cells.push(match place {
                        0 => paint(&text, Paint::Bold),
                        _ => text,
                    });
                    cells.push(times(outcome.speedup));
                }
                None => cells.extend([paint("skipped", Paint::Dim), String::new()]),
            }
        }
        grid.row(cells);
    }
    grid
}

fn remarks(out: &mut String, comparison: &Comparison, explain: bool, look: &Look) {
    let mut say = |label: &str, mark: Paint, text: &str| {
        let _ = write!(out, "{} ", paint(label, mark));
        out.push_str(&wrap(text, label.chars().count() + 1, 2, look.width));
    };
    if let Some(best) = comparison.results.first() {
        let lead = match (comparison.margin(), comparison.results.get(1)) {
            (Some(margin), Some(second)) if margin <= TIE => {
                format!("{}, level with {}", best.strategy, second.strategy)
            }
            (Some(margin), Some(second)) => format!(
                "{}, {} ahead of {}",
                best.strategy,
                percent(margin),
                second.strategy
            ),
            _ => best.strategy.clone(),
        };
        say("best:", Paint::Good, &clean(&lead));
        say("why:", Paint::Bold, &clean(&best.why));
    }
    if let Some(selected) = &comparison.selected {
        say(
            "closed forms:",
            Paint::Bold,
            &clean(&agreement(comparison, selected)),
        );
    }
    if explain {
        for outcome in comparison.results.iter().skip(1) {
            let label = format!("{}:", clean(&outcome.strategy));
            say(&label, Paint::Bold, &clean(&outcome.why));
        }
    }
    let mut reasons: Vec<(&str, Vec<&str>)> = Vec::new();
    for skipped in &comparison.skipped {
        match reasons
            .iter_mut()
            .find(|(reason, _)| *reason == skipped.reason)
        {
            Some((_, strategies)) => strategies.push(&skipped.strategy),
            None => reasons.push((&skipped.reason, vec![&skipped.strategy])),
        }
    }
    for (reason, strategies) in reasons {
        let text = format!("{}: {reason}", strategies.join(", "));
        say("skipped:", Paint::Dim, &clean(&text));
    }
    for (reason, strategies) in unverified(&comparison.results) {
        let text = format!("{}: {reason}", strategies.join(", "));
        say("not verified:", Paint::Bad, &clean(&text));
    }
    let error = &comparison.expected_error;
    let text = match error.relative {
        Some(relative) => format!("± {} ({})", percent(relative), error.basis),
        None => error.basis.clone(),
    };
    say("expected error:", Paint::Dim, &clean(&text));
}

/// What the closed forms choose, and whether the simulator agrees.
fn agreement(comparison: &Comparison, selected: &Selected) -> String {
    let lead = match (&selected.runner_up, selected.margin) {
        (Some(next), Some(margin)) if margin <= TIE => format!(", level with {next}"),
        (Some(next), Some(margin)) => format!(", {} ahead of {next}", percent(margin)),
        _ => String::new(),
    };
    let fastest = comparison.results.first().map_or("", |best| &best.strategy);
    let verdict = match comparison.regret() {
        Some(regret) if regret <= TIE => "the simulator agrees".to_owned(),
        Some(regret) => format!(
            "in the simulator it takes {} longer than {fastest}",
            percent(regret)
        ),
        None => "the simulator cannot perform it".to_owned(),
    };
    let (name, predicted) = (&selected.strategy, time(selected.predicted));
    format!("choose {name} (predicted {predicted}{lead}); {verdict}")
}

/// Reasons for not verifying, with the strategies that share each.
fn unverified(results: &[Outcome]) -> Vec<(&str, Vec<&str>)> {
    let mut reasons: Vec<(&str, Vec<&str>)> = Vec::new();
    for outcome in results {
        let Verification::NotVerified(reason) = &outcome.verification else {
            continue;
        };
        match reasons.iter_mut().find(|(known, _)| known == reason) {
            Some((_, strategies)) => strategies.push(&outcome.strategy),
            None => reasons.push((reason, vec![&outcome.strategy])),
        }
    }
    reasons
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::fixture::{comparison, outcome};
    use crate::report::grid::finish;

    fn draw(comparisons: &[Comparison], explain: bool, width: usize) -> String {
        let look = Look {
            width,
            color: false,
        };
        finish(&compare(comparisons, explain, &look), false)
    }

    #[test]
    fn one_topology_is_ranked() {
        insta::assert_snapshot!(draw(&[comparison("box")], false, 100));
    }

    #[test]
    fn a_narrow_terminal_keeps_what_matters() {
        let text = draw(&[comparison("box")], true, 60);
        assert!(
            text.lines().all(|line| line.chars().count() <= 60),
            "{text}"
        );
        insta::assert_snapshot!(text);
    }

    #[test]
    fn several_topologies_stand_side_by_side() {
        let mut other = comparison("other");
        other.results.swap_remove(0);
        insta::assert_snapshot!(draw(&[comparison("box"), other], false, 80));
    }

    #[test]
    fn the_selector_is_held_against_the_simulation() {
        let mut one = comparison("box");
        let fastest = one.results[0].strategy.clone();
        let slower = one.results[1].strategy.clone();
        let mut says = |strategy: &str| {
            one.selected = Some(Selected {
                strategy: strategy.to_owned(),
                predicted: 108e-6,
                runner_up: Some("sequential".to_owned()),
                margin: Some(0.25),
            });
            draw(std::slice::from_ref(&one), false, 200)
        };
        let text = says(&fastest);
        assert!(
            text.contains("(predicted 108 us, 25 % ahead of sequential); the simulator agrees"),
            "{text}"
        );
        let text = says(&slower);
        assert!(text.contains(&format!("longer than {fastest}\n")), "{text}");
        let text = says("interdecom:d=1024");
        assert!(text.contains("the simulator cannot perform it"), "{text}");
    }

    #[test]
    fn equals_are_called_level() {
        let mut tied = comparison("box");
        tied.results.insert(1, outcome("ring", 110.05e-6, 150e-6));
        let text = draw(&[tied], false, 100);
        assert!(
            text.contains("best: interdecom:d=4, level with ring\n"),
            "{text}"
        );
    }

    #[test]
    fn signs_and_shares() {
        assert_eq!(time(-3.2e-6), "-3.2 us");
        assert_eq!(time(-0.0), "0 ns");
        assert_eq!(percent(0.5), "50 %");
        assert_eq!(percent(-0.031), "-3.1 %");
        assert_eq!(percent(1.2345), "123 %");
    }
}
