//! What was run, ours beside the published figures, claims, winners.

use super::tables::Table;
use crate::experiment::analysis::{Analysis, Family, operator_title};
use crate::experiment::published::Beside;

pub(super) fn head(analysis: &Analysis) -> String {
    let mut text = format!("# {}\n\n", analysis.name);
    if !analysis.about.is_empty() {
        text += &format!("{}.\n\n", analysis.about.trim_end_matches('.'));
    }
    text += "Every time here is the simulator's; nothing was measured on hardware. \"Error\" and \
             \"regret\" are\nagainst the simulator.\n\n";
    let rows: usize = analysis.cases.iter().map(|case| case.runs.len()).sum();
    text += &format!(
        "* {} cases, {rows} simulated strategies.\n",
        analysis.cases.len()
    );
    if !analysis.main.is_empty() {
        let grid = &analysis.cases[analysis.main[0]].grid;
        let fitted = analysis.train.iter().filter(|train| **train).count();
        text += &format!(
            "* Judged grid `{grid}`: {} cases. Overheads are fitted on {fitted} of them (seed {}), \
             errors and choices\n  are judged on the other {}.\n",
            analysis.main.len(),
            analysis.options.seed,
            analysis.main.len() - fitted
        );
    }
    text + "\n"
}

pub(super) fn beside(analysis: &Analysis) -> String {
    let Some(published) = &analysis.published else {
        return String::new();
    };
    let mut table = Table::new(&["figure", "published>", "ours>", "source of the published"]);
    for printed in &published.figures {
        let ours = match &printed.beside {
            Beside::Ours(name) => match analysis.named.get(name) {
                Some(value) => value.to_string(),
                None => "the data do not give it".to_owned(),
            },
            Beside::None(reason) => format!("none: {reason}"),
        };
        let most = if printed.most { "up to " } else { "" };
        table.row([
            printed.about.clone(),
            format!("{most}{}", printed.value),
            ours,
            printed.source.clone(),
        ]);
    }
    format!(
        "## Beside the published figures\n\nPublished: {} ({}). Ours: against the simulator, on \
         a grid whose sizes are our own choice. The two are\nnot the same experiment: times in \
         milliseconds above all are hardware figures of another machine.\n\n{}",
        published.paper,
        published.machine,
        table.draw()
    )
}

pub(super) fn claims(analysis: &Analysis) -> String {
    if analysis.claims.is_empty() {
        return String::new();
    }
    let mut text = "## Claims, checked against the simulator\n\n".to_owned();
    let mut table = Table::new(&["claim", "verdict"]);
    for claim in &analysis.claims {
        table.row([claim.claim.to_owned(), claim.verdict.name().to_owned()]);
    }
    text += &table.draw();
    for claim in &analysis.claims {
        text += &format!(
            "**{}** ({}). Rule: {}.\n{}.\n",
            claim.name,
            claim.verdict.name(),
            claim.rule,
            claim.numbers
        );
        if !claim.why.is_empty() {
            text += &format!("{}\n", claim.why);
        }
        text.push('\n');
    }
    text
}

pub(super) fn winners(analysis: &Analysis) -> String {
    if analysis.winners.is_empty() {
        return String::new();
    }
    let families = [
        Family::Fusion,
        Family::Decomposition,
        Family::Sequential,
        Family::Other,
    ];
    let shown: Vec<Family> = families
        .into_iter()
        .filter(|family| analysis.winners.iter().any(|w| w.won(*family) > 0))
        .collect();
    let mut columns = vec!["cases".to_owned()];
    columns.extend(shown.iter().map(|family| format!("{}>", family.name())));
    columns.extend(["by strategy", "speed-up, mean>", "most>"].map(str::to_owned));
    let columns: Vec<&str> = columns.iter().map(String::as_str).collect();
    let mut table = Table::new(&columns);
    for winners in &analysis.winners {
        let group = &winners.group;
        let mut row = vec![format!(
            "{}, TP {} ({} cases)",
            operator_title(group.kind),
            group.tp,
            winners.cases
        )];
        row.extend(shown.iter().map(|family| winners.won(*family).to_string()));
        let classes = winners.classes.iter();
        let classes: Vec<String> = classes.map(|(class, n)| format!("{class} {n}")).collect();
        row.push(classes.join(", "));
        let factor = |x: Option<f64>| x.map_or_else(String::new, |x| format!("{x:.2}x"));
        row.extend([factor(winners.speedup), factor(winners.speedup_most)]);
        table.row(row);
    }
    format!(
        "## Winners, by the simulator\n\nCases won by each family, and the fastest strategy's \
         speed-up over sequential (geometric mean, largest).\n\n{}",
        table.draw()
    )
}
