//! The critical path: from the task that ended last back through what each task waited for.

use super::{Cause, Timeline};
use crate::schedule::TaskId;

/// Tasks of the critical path, first to last.
pub fn critical_path(timeline: &Timeline) -> Vec<TaskId> {
    let last = (timeline.spans.iter().enumerate())
        // The first of equals, so that the path does not depend on how ties are sorted.
        .fold(None, |best: Option<(usize, f64)>, (t, span)| match best {
            Some((_, end)) if end >= span.end => best,
            _ => Some((t, span.end)),
        });
    let mut path = Vec::new();
    let mut next = last.map(|(t, _)| TaskId(t as u32));
    // A cause ends before its effect starts, so the walk ends; the bound guards foreign data.
    while let Some(task) = next
        && path.len() < timeline.spans.len()
    {
        path.push(task);
        next = match timeline.spans.get(task.index()).map(|span| span.cause) {
            Some(Cause::Task(cause) | Cause::Resource(cause)) => Some(cause),
            _ => None,
        };
    }
    path.reverse();
    path
}
