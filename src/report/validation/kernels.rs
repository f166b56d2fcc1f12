//! What Duet's own kernels hide.

use super::Section;
use crate::experiment::analysis::operator_title;
use crate::experiment::analysis::statistics::geomean;
use crate::experiment::percent;
use crate::operator::Kind;
use crate::report::table::time;
use crate::validate::analysis::Validation;
use crate::validate::analysis::kernels::{Fastest, most};
use crate::validate::analysis::paired::Paired;

pub(super) fn kernels(found: &Validation) -> Section {
    let mut section = Section::new(
        "kernel-overlap",
        "Overlap of Duet's own kernels",
        "Kernel overlap efficiency = 1 − (T − T_o)/(T_s − T_o): T_o is the product in one piece by the same kernel, T_s the copy engine and then that kernel; from differences within rounds, medians over cases. It is asked where T_s − T_o is at least 5 % of T_o, and claimed with 60 rounds or more and a 95 % interval of at most 10 points; `off` is the mean of |predicted − measured| in points.",
        &[
            "strategy",
            "cases>",
            "asked>",
            "claimed>",
            "efficiency>",
            "predicted>",
            "off>",
        ],
    );
    for kernel in &found.kernels.strategies {
        section.row([
            kernel.strategy.clone(),
            kernel.cases.to_string(),
            kernel.asked.to_string(),
            kernel.claimed.to_string(),
            percent(kernel.efficiency),
            kernel.predicted.map_or_else(String::new, percent),
            (kernel.error).map_or_else(String::new, |error| format!("{:.1}", 100.0 * error)),
        ]);
    }
    section
}

pub(super) fn fastest(found: &Validation) -> Section {
    let mut section = Section::new(
        "kernel-shapes",
        "Fusions beside the product in one piece",
        "By group the fusion that was measured as its fastest: cuBLASLt and Duet are the product in one piece by either, sequential is the copy engine and then Duet's product. Kernel is the kernel overlap efficiency, against Duet's product in one piece, with its 95 % bootstrap interval over rounds; ECT the efficiency against cuBLASLt's; a dash where they are not asked (communication adds less than 5 %) or Duet's product in one piece was not measured. T/GEMM is T over the faster of the two products in one piece, the median of ratios within rounds.",
        &[
            "group",
            "fastest fusion",
            "T>",
            "T/GEMM>",
            "kernel>",
            "ECT>",
            "cuBLASLt>",
            "Duet>",
            "sequential>",
            "95 %",
            "predicted>",
        ],
    );
    let dash = || "–".to_owned();
    let share = |value: Option<f64>| value.map_or_else(dash, percent);
    let middle = |value: Option<Paired>| share(value.map(|value| value.median));
    for one in &found.kernels.fastest {
        section.row([
            one.group.clone(),
            one.strategy.clone(),
            time(one.seconds),
            format!("{:.3}", one.ratio),
            middle(one.kernel),
            middle(one.ect),
            time(one.library),
            one.own.map_or_else(dash, time),
            time(one.sequential),
            (one.kernel).map_or_else(
                dash,
                |Paired {
                     interval: [a, b], ..
                 }| { format!("{:.2} to {:.2} %", 100.0 * a, 100.0 * b) },
            ),
            share(one.predicted),
        ]);
    }
    for kind in Kind::ALL {
        let of = |one: &&Fastest| one.operator == kind;
        let ratios: Vec<f64> = (found.kernels.fastest.iter().filter(of))
            .map(|one| one.ratio)
            .collect();
        if let Some(all) = geomean(ratios.iter().copied()) {
            let most = most(kind);
            let within = ratios.iter().filter(|ratio| **ratio <= most).count();
            section.note(format!(
                "{}: T/GEMM {all:.3} (geometric mean), at most {most} in {within} of {}.",
                operator_title(kind),
                ratios.len()
            ));
        }
    }
    section
}
