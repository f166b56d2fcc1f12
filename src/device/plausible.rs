//! What no GPU can be, refused where a profile states it.

use super::Device;
use super::section::{Section, entry_of};
use crate::input::yaml::Node;
use crate::input::{Diagnostic, Diagnostics, Span};
use crate::units::{Bytes, FlopsPerSecond};

/// Checks numbers against each other, once all are known; `times` are the places of the table's times.
pub(super) fn check(
    device: &Device,
    sections: &[Section<'_>],
    times: &[Span],
    found: &mut Diagnostics,
) {
    let node = |section: &str, key: &str| {
        let mut all = sections.iter();
        all.find(|one| one.name == section)?.get(key)
    };
    if let (Bytes::ZERO, Some(size)) = (device.memory, node("memory", "size")) {
        let mistake = size.wrong("a GPU without memory", "expected more than 0 B");
        found.push(mistake.help("write e.g. `size: 141 GB`"));
    }
    let blocks = device.library.sms;
    if let (Some(cluster), Some(place)) = (device.scatter.cluster, node("library", "cluster"))
        && cluster > blocks
    {
        let mistake = place.wrong(
            format!("{cluster} blocks of a collective begin together"),
            format!("expected at most all of them, {blocks}"),
        );
        found.push(mistake.help("write a smaller `cluster`, or the right number of `blocks`"));
    }
    if let Some(library) = device.gemm_library.as_deref()
        && library.left >= device.sms
        && let Some(place) = left(node("gemm", "algorithms"))
    {
        let mistake = place.wrong(
            format!("a collective leaves {} SMs", library.left),
            format!("expected fewer than all of them, {}", device.sms),
        );
        found.push(mistake.help("write how many SMs a GEMM has beside it"));
    }
    for (point, place) in device.gemm_table.iter().zip(times) {
        let Some((_, peak)) = device.peak.iter().find(|(dtype, _)| *dtype == point.dtype) else {
            continue;
        };
        let [m, n, k] = [point.m, point.n, point.k].map(|extent| extent as f64);
        let rate = 2.0 * m * n * k / point.time.get();
        if rate > peak.get() {
            let message = format!(
                "m = {}, n = {}, k = {} in {} is {}",
                point.m,
                point.n,
                point.k,
                point.time,
                FlopsPerSecond::of(rate)
            );
            let label = format!(
                "expected at most the peak of {}, {peak}",
                point.dtype.name()
            );
            let mistake = Diagnostic::new(place.clone(), message, label);
            found.push(mistake.help("write the time as it was measured, or the right `peak`"));
        }
    }
}

/// The number of SMs beside collectives.
fn left(algorithms: Option<&Node>) -> Option<&Node> {
    entry_of(entry_of(algorithms?, "beside")?, "sms")
}

#[cfg(test)]
mod tests {
    use crate::device::parse;

    const BASE: &str = include_str!("../../topologies/gpus/h200.yaml");

    /// What is said of the H200's profile with `from` replaced by `to`: message, label and help.
    fn said(from: &str, to: &str) -> [String; 3] {
        assert!(BASE.contains(from), "{from}");
        let text = BASE.replacen(from, to, 1);
        let error = parse(&text, "h200.yaml").unwrap_err().to_string();
        let lines: Vec<&str> = error.lines().collect();
        let caret = lines.iter().find(|line| line.contains('^')).unwrap();
        let label = caret.rsplit("^ ").next().unwrap();
        [lines[0], label, lines[lines.len() - 1]].map(str::to_owned)
    }

    #[test]
    fn no_gemm_is_faster_than_the_peak() {
        // 2 · 4096² · 128 / 989e12 s = 4.34 us is the least.
        let found = said("128: [35 us,", "128: [20.3 us,");
        assert_eq!(
            found,
            [
                "error: m = 128, n = 4096, k = 4096 in 4.3 us is 998.8 TFLOP/s",
                "expected at most the peak of bf16, 989 TFLOP/s",
                "   = help: write the time as it was measured, or the right `peak`"
            ]
        );
        let good = BASE.replacen("128: [35 us,", "128: [20.4 us,", 1);
        assert!(parse(&good, "h200.yaml").is_ok());
    }

    #[test]
    fn a_gpu_has_memory() {
        let found = said("size: 141 GB", "size: 0 B");
        assert_eq!(
            found,
            [
                "error: a GPU without memory",
                "expected more than 0 B",
                "   = help: write e.g. `size: 141 GB`"
            ]
        );
    }

    #[test]
    fn a_cluster_is_of_blocks_there_are() {
        let calibrated = include_str!("../../topologies/h200-pair-calibrated.yaml");
        let cluster = "cluster: 4";
        assert_eq!(calibrated.matches(cluster).count(), 1);
        let text = calibrated.replacen(cluster, "cluster: 64", 1);
        let error = crate::topology::of_text(&text, "box.yaml", "".as_ref());
        let error = error.unwrap_err().to_string();
        let mut lines = calibrated.lines();
        let line = 1 + lines.position(|line| line.contains(cluster)).unwrap();
        let begin = format!(
            "error: 64 blocks of a collective begin together\n    --> box.yaml:{line}:14\n"
        );
        for words in [
            begin.as_str(),
            "^ expected at most all of them, 24\n",
            "= help: write a smaller `cluster`, or the right number of `blocks`",
        ] {
            assert!(error.contains(words), "{error}");
        }
    }
}
