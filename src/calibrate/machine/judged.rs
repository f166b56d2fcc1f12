//! GEMMs of experiments (`--shapes`), timed as those of the grid but not used: what predictions of shapes
//! that nobody has measured are judged by.

use super::book::Book;
use super::grid::{timed, write};
use super::lab::Lab;
use super::{Section, Wanted};
use crate::gpu::GpuError;

pub const SECTION: Section = Section {
    name: "judged",
    about: "GEMMs of experiments, to judge predictions by",
    share: 8,
    run,
};

fn run(lab: &Lab<'_>, book: &Book<'_>) -> Result<(), GpuError> {
    let asked = lab.asked.iter().map(|&shape| Wanted { shape, sms: 0 });
    let (shapes, times) = timed(lab, book, asked)?;
    for (shape, times) in shapes.iter().zip(&times) {
        if let Some(ready) = shape.first() {
            write(book, &ready.problem, times);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use crate::calibrate::machine::kernels::{Choices, whole};
    use crate::calibrate::machine::products::DTYPE;
    use crate::calibrate::machine::recorded::{Further, products, refit};
    use crate::device::Device;
    use crate::device::gemm::gemm;
    use crate::topology;

    /// GEMMs of columns that no calibration has timed, on a machine that none was made on, and what the
    /// library takes for them.
    const SAMPLES: &str =
        include_str!("../../../experiments/calibration/measured/2026-11-30-h200-judged.csv");
    /// What the shipped calibration is from.
    const TEXT: &str = include_str!("../../../topologies/h200-pair-calibrated.yaml");
    const OWN: &str =
        include_str!("../../../experiments/calibration/measured/2026-11-30-h200-pair-fourth.csv");
    const OTHERS: [&str; 4] = [
        include_str!("../../../experiments/calibration/measured/2026-11-30-h200-pair-fifth.csv"),
        include_str!("../../../experiments/calibration/measured/2026-11-30-h200-pair-sixth.csv"),
        include_str!("../../../experiments/calibration/measured/2026-11-30-h200-pair-seventh.csv"),
        include_str!("../../../experiments/calibration/measured/2026-11-30-h200-fewer.csv"),
    ];
    const TOLD: &str =
        include_str!("../../../experiments/calibration/measured/2026-11-30-h200-choices.csv");

    /// Mean and largest |predicted / measured − 1| of all, and of those longer than 100 us.
    fn errors(device: &Device, listed: bool) -> [(f64, f64); 2] {
        let launch = device.costs.lane.get() + device.costs.kernel_start.get();
        let all = products(SAMPLES, "judged", &Choices::new()).unwrap();
        assert!(all.len() > 340, "{}", all.len());
        let library = device.gemm_library.as_deref().unwrap();
        let mut errors = Vec::new();
        for p in all.iter().filter(|p| whole(&[p.m, p.n, p.k])) {
            let known = library.choices.iter().any(|c| (c.n, c.k) == (p.n, p.k));
            assert_eq!(known, listed);
            let time = gemm(device, DTYPE, p.m, p.n, p.k, device.sms).unwrap();
            let error = ((time.seconds + launch) / p.time.value - 1.0).abs();
            errors.push((error, p.time.value));
        }
        [0.0, 100e-6].map(|least| {
            let long = errors.iter().filter(|(_, time)| *time >= least);
            let long: Vec<f64> = long.map(|(error, _)| *error).collect();
            let worst = long.iter().copied().fold(0.0, f64::max);
            (long.iter().sum::<f64>() / long.len() as f64, worst)
        })
    }

    /// With choices known at multiples of 64 only and corrections from near columns the errors of the
    /// first were 6.6 and 5.3 %.
    #[test]
    fn what_the_shipped_calibration_says_of_gemms_it_was_not_fitted_to() {
        let shipped = topology::load("h200-pair-calibrated", &[]).unwrap();
        let [all, long] = errors(shipped.device(0), false);
        println!("choices not known: {all:?}, long {long:?}");
        assert!(all.0 < 0.056 && long.0 < 0.048, "{all:?} {long:?}");
    }

    #[test]
    #[ignore = "takes minutes: refits the shipped calibration, as another test does"]
    fn and_where_the_library_was_asked_for_them() {
        let shipped = topology::load("h200-pair-calibrated", &[]).unwrap();
        let told = format!("{TOLD}{SAMPLES}");
        let further = Further {
            told: &told,
            others: &OTHERS,
        };
        let text = refit(TEXT, shipped.device(0), OWN, further).unwrap();
        let path = std::env::temp_dir().join(format!("duet-asked-{}.yaml", std::process::id()));
        std::fs::write(&path, &text).unwrap();
        let asked = topology::load(path.to_str().unwrap(), &[]).unwrap();
        std::fs::remove_file(&path).unwrap();
        let [all, long] = errors(asked.device(0), true);
        println!("choices known: {all:?}, long {long:?}");
        assert!(all.0 < 0.045 && long.0 < 0.035, "{all:?} {long:?}");
    }
}
