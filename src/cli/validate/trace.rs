//! One case's measured and simulated timelines in one file.

use crate::cli::error::Failure;
use crate::topology::Topology;
use crate::validate::divergence::timeline;
use crate::validate::key::Case;
use crate::validate::simulated::Simulated;
use crate::validate::tasks::Task;

/// The trace of a case whose tasks were measured.
///
/// # Errors
/// [`Failure::Input`]: a case without measured tasks, or one that cannot be simulated.
pub fn trace(case: &Case, tasks: &[Task], topology: &Topology) -> Result<Vec<u8>, Failure> {
    let own: Vec<&Task> = tasks.iter().filter(|task| task.case == *case).collect();
    if own.is_empty() {
        let mut known: Vec<String> = tasks.iter().map(|task| task.case.to_string()).collect();
        known.dedup();
        let near = crate::input::did_you_mean(&case.to_string(), known.iter().map(String::as_str));
        return Err(Failure::Input(format!(
            "error: no task of `{case}` was measured\n  help: {near}"
        )));
    }
    let wrong = |words: String| Failure::Input(format!("error: `{case}`: {words}"));
    let simulated = Simulated::new(case, topology).map_err(wrong)?;
    let measured = timeline(&own, &simulated.schedule).map_err(wrong)?;
    let mut bytes = Vec::new();
    let both = [("measured", &measured), ("simulated", &simulated.timeline)];
    crate::report::trace::write_all(&mut bytes, &simulated.topology, &simulated.schedule, &both)
        .map_err(|error| Failure::Internal(format!("error: cannot write the trace: {error}")))?;
    Ok(bytes)
}
