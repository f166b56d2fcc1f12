//! What the fixed d = 4 costs: the distribution over workloads.

use super::{Figure, Picture, caption, machines, one};
use crate::experiment::analysis::Analysis;
use crate::experiment::analysis::decomposition::FIXED;
use crate::report::plot::{Axis, Form, Histogram, Look, Quantity, Sample};

pub(super) const FIGURE: Figure = Figure {
    name: "penalty",
    about: "distribution of what d = 4 costs over the best d, by number of ranks",
    draw,
};

fn draw(analysis: &Analysis) -> Result<Vec<Picture>, String> {
    let Some(all) = analysis.penalty(None) else {
        return Err("it needs fused operators under d = 4 and other d".to_owned());
    };
    let mut ranks: Vec<u32> = analysis.groups().iter().map(|group| group.tp).collect();
    ranks.sort_unstable();
    ranks.dedup();
    let sample = |(i, tp): (usize, u32)| {
        let here = analysis.workloads.iter();
        let here = here.filter(|w| analysis.cases[w.case].operator.tp == tp);
        Sample {
            name: format!("TP {tp}"),
            look: Look::nth(i),
            values: here.filter_map(|w| w.penalty(FIXED)).collect(),
        }
    };
    let histogram = Histogram {
        caption: caption(
            analysis,
            format!(
                "d = {FIXED} is the best decomposition in {} of {} workloads",
                all.fixed_optimal, all.workloads
            ),
            format!(
                "T({FIXED})/T(best d) − 1 over workloads: mean {:.1} %, at most {:.0} %; {}",
                100.0 * all.fixed_mean,
                100.0 * all.fixed_most,
                machines(analysis)
            ),
        ),
        axis: Axis::from_zero("penalty of d = 4", Quantity::Share),
        samples: ranks.into_iter().enumerate().map(sample).collect(),
        form: Form::Cumulative,
        rules: vec![(
            all.fixed_mean,
            format!("mean {:.1}%", 100.0 * all.fixed_mean),
        )],
    };
    Ok(one("penalty", histogram.draw()))
}
