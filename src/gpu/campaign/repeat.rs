//! Whether a run leaves the same bits every time.

use crate::gpu::GpuError;
use crate::gpu::compare::fill;
use crate::gpu::exec::{Extras, Run, Start};
use crate::schedule::Role;

/// Performs a run `repeats` times on one of two sets of inputs, both of which meet both halves of the
/// arenas, and compares the bits of all outputs with those of the first run on the same set. The first
/// difference, as a sentence.
///
/// # Errors
/// [`GpuError`], of the runs.
pub(super) fn alike(
    run: &Run<'_>,
    seed: u64,
    repeats: u32,
    extras: &Extras<'_>,
) -> Result<Option<String>, GpuError> {
    let mut first: [Option<Vec<Vec<u8>>>; 2] = [None, None];
    for turn in 0..repeats {
        let set = set(turn);
        let parity = run.next_parity();
        fill(run, parity, seed.wrapping_add((set as u64) << 40))?;
        run.enqueue(Start::Origin, extras)?;
        run.finish()?;
        let found = outputs(run, parity)?;
        match &first[set] {
            None => first[set] = Some(found),
            Some(known) if *known == found => {}
            Some(known) => {
                let buffer = known.iter().zip(&found).position(|(x, y)| x != y);
                return Ok(Some(format!(
                    "run {} of {repeats} leaves other bits than the first on the same inputs, in output {}",
                    turn + 1,
                    buffer.unwrap_or(0)
                )));
            }
        }
    }
    Ok(None)
}

/// The inputs of a turn: 0, 1, 1, 0, 0, 1, 1, 0, …, while halves alternate.
const fn set(turn: u32) -> usize {
    (turn as usize + turn as usize / 2) % 2
}

/// The elements of every output buffer.
fn outputs(run: &Run<'_>, parity: u64) -> Result<Vec<Vec<u8>>, GpuError> {
    let mut all = Vec::new();
    for (buffer, place) in run.schedule().buffers.iter().zip(&run.plan().places) {
        if matches!(buffer.role, Role::Output | Role::InputOutput) {
            all.push(run.elements(&place.area, parity)?);
        }
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::set;

    #[test]
    fn both_inputs_meet_both_halves() {
        let met: Vec<(usize, u32)> = (0..4).map(|turn| (set(turn), turn % 2)).collect();
        assert_eq!(met, [(0, 0), (1, 1), (1, 0), (0, 1)]);
    }
}
