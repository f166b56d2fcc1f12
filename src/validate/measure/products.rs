//! The GEMMs that an experiment's plans call, so that a calibration can ask for their algorithms.

use std::collections::BTreeSet;

use super::variant::variants;
use crate::experiment::Experiment;
use crate::validate::cases::Planned;

/// The distinct `[m, n, k]` of all cases' GEMMs, references included, in ascending order. Cases
/// that cannot be performed have none.
pub fn products(experiment: &Experiment, groups: &[Planned]) -> Vec<[u64; 3]> {
    let mut all = BTreeSet::new();
    for planned in groups {
        let topology = &experiment.machines[planned.machine as usize].topology;
        for variant in variants(planned, topology, topology.device(0).sms, false) {
            let Ok(prepared) = variant.prepared else {
                continue;
            };
            let gemms = prepared.plan.gemms.iter();
            all.extend(gemms.map(|gemm| [gemm.m, gemm.n, gemm.k].map(u64::from)));
        }
    }
    all.into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::parse;
    use crate::validate::cases::groups;

    #[test]
    fn chunks_and_the_unsplit_gemm_are_listed_once() {
        let text = "
name: one
grids:
  - name: g
    topologies: h200-pair
    tp: 2
    operators: [{ op: ag-gemm, m: 1024, n: 512, k: 256 }]
    strategies: [sequential, 'interdecom:d=4,comm=direct']
";
        let experiment = parse(text, "one.yaml", &[]).unwrap();
        let all = products(&experiment, &groups(&experiment).unwrap());
        // Rows of a chunk 1024 / 4, of all 1024; columns of a rank 512 / 2.
        assert_eq!(all, [[256, 256, 256], [1024, 256, 256]]);
    }
}
