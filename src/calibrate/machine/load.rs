//! GEMMs under continuous load: what the power limit leaves of the clock.
//!
//! Every GPU multiplies 8192³ without a pause; events lie between batches. After some 100 ms the clock
//! falls, and what the last third of the batches took is the steady state:
//!
//! ```text
//! loaded = time of one on GPUs that rested / time of one in the steady state     each the slowest GPU's
//! ```

use std::time::{Duration, Instant};

use super::book::Book;
use super::estimate::{Estimate, median};
use super::lab::{LIMIT, Lab};
use super::products::Ready;
use crate::gpu::GpuError;
use crate::gpu::raw::Event;

/// Edge of the product.
const EDGE: u64 = 8192;
/// Products between two events, and batches that are enqueued ahead.
const BATCH: u32 = 16;
const AHEAD: usize = 2;
/// How long the load lasts, in a quick calibration and else.
const TIME: [Duration; 2] = [Duration::from_millis(400), Duration::from_millis(1500)];

/// Measures on all GPUs at once.
pub fn sustained(lab: &Lab<'_>, book: &Book<'_>) -> Result<(), GpuError> {
    let bytes = EDGE * EDGE * super::products::DTYPE.size();
    if lab.units.iter().any(|unit| unit.most(1) < bytes) {
        book.note("no load: 8192³ does not fit");
        return Ok(());
    }
    let gpus = 0..lab.units.len();
    let all: Vec<Ready> = gpus
        .clone()
        .map(|g| Ready::new(lab, g, [EDGE; 3]))
        .collect::<Result<_, _>>()?;
    let lanes: Vec<(usize, usize)> = gpus.map(|g| (g, 0)).collect();
    let run = |g: usize| all[g].run(lab, g, &lab.units[g].streams[0]);
    let mut rested = Vec::new();
    for _ in 0..lab.reps(3, 9) {
        let ends = lab.sample(&lanes, || (0..all.len()).try_for_each(run))?;
        rested.push(ends.into_iter().fold(0.0, f64::max));
    }
    let (mut clocks, mut watts) = (Vec::new(), Vec::new());
    let mut marks: Vec<Vec<Event>> = all.iter().map(|_| Vec::new()).collect();
    let begin = Instant::now();
    while begin.elapsed() < TIME[usize::from(!lab.quick)] {
        for (g, (unit, marks)) in lab.units.iter().zip(&mut marks).enumerate() {
            if !marks.is_empty() {
                (0..BATCH).try_for_each(|_| run(g))?;
            }
            let mark = Event::new(&unit.gpu, true)?;
            unit.streams[0].record(&mark)?;
            marks.push(mark);
        }
        for marks in &marks {
            if let Some(before) = marks.len().checked_sub(1 + AHEAD) {
                marks[before].finish(LIMIT, "GEMMs in a row")?;
            }
        }
        for unit in &lab.units {
            if let Some(nvml) = lab.session.nvml() {
                let state = nvml.state(&unit.gpu.attributes().pci);
                clocks.extend(state.sm_mhz.map(|mhz| f64::from(mhz) * 1e6));
                watts.extend(state.power_w);
            }
        }
    }
    lab.finish()?;
    let mut slowest: Vec<f64> = Vec::new();
    for (g, marks) in marks.iter().enumerate() {
        let each = marks.windows(2).map(|pair| {
            let time = pair[0].seconds_to(&pair[1])?;
            Ok(time / f64::from(BATCH))
        });
        let each = each.collect::<Result<Vec<f64>, GpuError>>()?;
        book.times(&format!("in continuous load gpu{g}"), EDGE as f64, &each);
        let steady = last_third(&each);
        if median(steady) > median(&slowest) {
            slowest = steady.to_vec();
        }
    }
    book.times("before the load", EDGE as f64, &rested);
    book.raw("clock in load", EDGE as f64, "Hz", &clocks);
    book.raw("power in load", EDGE as f64, "W", &watts);
    let before = median(&rested).unwrap_or(0.0);
    let loaded = Estimate::median(&slowest).map(|time| time.map(|time| (before / time).min(1.0)));
    book.fact("gemm.loaded", loaded);
    book.fact("clock.loaded", Estimate::median(last_third(&clocks)));
    book.fact("power.loaded", Estimate::median(last_third(&watts)));
    Ok(())
}

/// The last third of samples.
fn last_third(samples: &[f64]) -> &[f64] {
    &samples[samples.len() - samples.len() / 3..]
}

#[cfg(test)]
mod tests {
    use super::last_third;

    #[test]
    fn the_steady_state_is_the_last_third() {
        assert_eq!(last_third(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0]), [6.0, 7.0]);
        assert!(last_third(&[1.0, 2.0]).is_empty());
    }
}
