//! Error by term.

use super::Section;
use crate::experiment::percent;
use crate::validate::analysis::Validation;
use crate::validate::divergence::TOLERANCE;

pub(super) fn terms(found: &Validation) -> Section {
    let terms = &found.terms;
    let definition = format!(
        "Of traced runs against the simulated timelines of the same schedules. Along the measured critical path, measured less simulated durations of tasks, and waits of tasks beyond the last of their predecessors, over the measured makespan: mean, and mean of the size. They add up to the difference of the makespans, with what lies off that path. `first` counts the cases in which this is the first to differ by more than {:.0} % of the makespan and 2 us. Tracing costs about a microsecond a step.",
        100.0 * TOLERANCE
    );
    let mut section = Section::new(
        "terms",
        "Error by kind of task",
        definition,
        &["kind", "part", "mean>", "size>", "first>"],
    );
    let signed = |share: f64| format!("{:+.2} %", 100.0 * share);
    for row in &terms.rows {
        section.row([
            row.kind.clone(),
            row.part.name().to_owned(),
            signed(row.mean),
            percent(row.size),
            row.first.to_string(),
        ]);
    }
    if terms.cases > 0 {
        section.row([
            "off the path".to_owned(),
            String::new(),
            signed(terms.rest),
            percent(terms.rest_size),
            String::new(),
        ]);
        section.note(format!(
            "{} traced cases, in {} of them no task differs by so much.",
            terms.cases, terms.agree
        ));
    }
    section
}
