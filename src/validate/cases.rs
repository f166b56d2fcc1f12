//! The groups of an experiment: what is measured and predicted, and in which order.
//!
//! Each case of the experiment's grids (an operator with ranks, path and launch mode) is a
//! [`Group`](key::Group); its strategies and references are the cases of validation. A group that
//! several grids or topologies have is measured once, with the strategies of all of them.

use std::collections::BTreeMap;

use super::key::{self, Case, Reference, Subject};
use crate::experiment::Experiment;
use crate::experiment::run::Shard;
use crate::gpu::campaign::path_of;
use crate::operator::Shape;
use crate::strategy::Choice;

/// A group with what is tried on it.
#[derive(Clone, Debug)]
pub struct Planned {
    pub group: key::Group,
    /// Index into [`Experiment::grids`]: the first that has it.
    pub grid: u32,
    /// Index into [`Experiment::machines`]: what strategies look at.
    pub machine: u32,
    pub strategies: Vec<Choice>,
}

/// Why an experiment is not measured; in words, with a remedy.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CasesError {
    /// A bare collective.
    #[error(
        "the grid `{grid}` has `{operator}`, a bare collective\n  help: only operators with a GEMM are validated: give the others a file of their own"
    )]
    Bare { grid: String, operator: String },
    /// No group is left.
    #[error("no group's name contains {only}\n  help: names are like `{example}`")]
    Nothing { only: String, example: String },
}

impl CasesError {
    /// No name has one of the parts `only`; `example` is one that there is.
    pub fn nothing(only: &[String], example: &key::Group) -> Self {
        let shown: Vec<String> = only.iter().map(|only| format!("`{only}`")).collect();
        Self::Nothing {
            only: shown.join(" or "),
            example: example.to_string(),
        }
    }
}

impl Planned {
    /// The references, then the strategies: the rows of the group in their order.
    pub fn cases(&self) -> impl Iterator<Item = Case> {
        let references = self.references().map(Subject::Reference);
        let named = |choice: &Choice| Subject::Strategy(choice.to_string());
        let strategies = self.strategies.iter().map(named);
        references.chain(strategies).map(|subject| Case {
            group: self.group.clone(),
            subject,
        })
    }

    fn references(&self) -> impl Iterator<Item = Reference> {
        let products = self.group.products;
        let all = Reference::ALL.into_iter();
        all.filter(move |reference| reference.is_of(products))
    }

    /// How many rows the group has.
    pub fn rows(&self) -> usize {
        self.references().count() + self.strategies.len()
    }
}

/// The groups of an experiment, in the order of its file.
///
/// # Errors
/// [`CasesError::Bare`].
pub fn groups(experiment: &Experiment) -> Result<Vec<Planned>, CasesError> {
    let mut groups: Vec<Planned> = Vec::new();
    let mut known: BTreeMap<String, usize> = BTreeMap::new();
    for case in &experiment.cases {
        if let Shape::Bytes(_) = case.operator.shape {
            return Err(CasesError::Bare {
                grid: experiment.grids[case.grid as usize].name.clone(),
                operator: case.operator.to_string(),
            });
        }
        let machine = &experiment.machines[case.machine as usize];
        let group = key::Group {
            operator: case.operator,
            placement: machine.placement(case.operator.tp).into(),
            path: path_of(machine.path),
            launch: case.launch,
            products: case.products,
        };
        let at = *known.entry(group.to_string()).or_insert(groups.len());
        match groups.get_mut(at) {
            None => groups.push(Planned {
                group,
                grid: case.grid,
                machine: case.machine,
                strategies: case.strategies.to_vec(),
            }),
            Some(planned) => {
                for choice in &*case.strategies {
                    if !planned.strategies.contains(choice) {
                        planned.strategies.push(choice.clone());
                    }
                }
            }
        }
    }
    Ok(groups)
}

/// Which groups are wanted.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Selection {
    /// Parts of a group's name, of which it has one; empty: all groups.
    pub only: Vec<String>,
    pub shard: Option<Shard>,
}

impl Selection {
    /// Indices of the wanted groups.
    ///
    /// # Errors
    /// [`CasesError::Nothing`] when no name fits.
    pub fn of(&self, groups: &[Planned]) -> Result<Vec<usize>, CasesError> {
        let fits = |name: &str| self.only.is_empty() || self.only.iter().any(|o| name.contains(o));
        let named = groups.iter().enumerate();
        let named = named.filter(|(_, planned)| fits(&planned.group.to_string()));
        let chosen: Vec<usize> = named.map(|(index, _)| index).collect();
        if let (true, Some(first)) = (chosen.is_empty(), groups.first()) {
            return Err(CasesError::nothing(&self.only, &first.group));
        }
        let part = |index: &usize| {
            let shard = self.shard;
            shard.is_none_or(|shard| u32::try_from(*index).is_ok_and(|index| shard.has(index)))
        };
        Ok(chosen.into_iter().filter(part).collect())
    }
}

/// The order of measuring `chosen`: at random, but so that each grid has its share of every
/// beginning of the list. A run that is cut short is then a fair sample of the whole.
///
/// Group i of a grid's n, shuffled, is at (i + u) / n, with u drawn from \[0, 1).
pub fn order(groups: &[Planned], chosen: &[usize], seed: u64) -> Vec<usize> {
    let mut random = fastrand::Rng::with_seed(seed);
    let mut grids: BTreeMap<u32, Vec<usize>> = BTreeMap::new();
    for &index in chosen {
        grids.entry(groups[index].grid).or_default().push(index);
    }
    let mut placed: Vec<(f64, usize)> = Vec::with_capacity(chosen.len());
    for indices in grids.values_mut() {
        random.shuffle(indices);
        let count = indices.len() as f64;
        for (i, &index) in indices.iter().enumerate() {
            placed.push(((i as f64 + random.f64()) / count, index));
        }
    }
    placed.sort_by(|a, b| a.0.total_cmp(&b.0));
    placed.into_iter().map(|(_, index)| index).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::parse;

    const TEXT: &str = "
name: two
grids:
  - name: small
    topologies: [h200-pair, h200-pair-calibrated]
    paths: [p2p, 'hybrid:0.1:2MiB']
    axes: { rows: [128, 256, 512, 1024] }
    operators: [{ op: ag-gemm, m: rows, n: 1024, k: 1024 }]
    strategies: [sequential, 'interdecom:d=2']
  - name: shared
    topologies: h200-pair
    tp: [4, 8]
    gpus: [1, 2]
    launch: graph
    operators: [{ op: gemm-rs, m: 1024, n: 1024, k: 1024 }]
    strategies: [sequential]
";

    fn planned() -> Vec<Planned> {
        groups(&parse(TEXT, "two.yaml", &[]).unwrap()).unwrap()
    }

    #[test]
    fn a_group_is_a_case_without_its_topology() {
        let groups = planned();
        let names: Vec<String> = groups.iter().map(|g| g.group.to_string()).collect();
        assert_eq!(groups.len(), 8 + 4);
        assert_eq!(names[0], "ag-gemm/128x1024x1024/bf16/2on2/p2p/stream");
        assert_eq!(
            names[4],
            "ag-gemm/128x1024x1024/bf16/2on2/hybrid:0.1:2MiB/stream"
        );
        assert_eq!(names[8], "gemm-rs/1024x1024x1024/bf16/4on1/p2p/graph");
        let cases: Vec<String> = groups[8].cases().map(|case| case.to_string()).collect();
        assert_eq!(cases.len(), groups[8].rows());
        assert_eq!(cases[0], format!("{}/reference:gemm", names[8]));
        assert_eq!(cases[3], format!("{}/sequential", names[8]));
        for name in &names {
            assert_eq!(&name.parse::<key::Group>().unwrap().to_string(), name);
        }
    }

    #[test]
    fn own_products_are_groups_of_their_own() {
        let own = TEXT.replace("    launch: graph\n", "    launch: graph\n    gemm: duet\n");
        let own = groups(&parse(&own, "two.yaml", &[]).unwrap()).unwrap();
        let name = own[8].group.to_string();
        assert_eq!(name, "gemm-rs/1024x1024x1024/bf16/4on1/p2p/graph:duet");
        assert_eq!(name.parse::<key::Group>().unwrap(), own[8].group);
        // The product in one piece by its own kernel is one more reference.
        let cases: Vec<String> = own[8].cases().map(|case| case.to_string()).collect();
        assert_eq!(cases.len(), own[8].rows());
        assert_eq!(cases[3], format!("{name}/reference:gemm-own"));
        assert_eq!(cases[4], format!("{name}/sequential"));
        assert_eq!(own[0].group, planned()[0].group);
        let wrong = name.replace(":duet", ":cublas").parse::<key::Group>();
        assert_eq!(wrong.unwrap_err(), "`graph:cublas` is no launch mode");
    }

    #[test]
    fn bare_collectives_are_refused() {
        let bare = TEXT.replace(
            "{ op: ag-gemm, m: rows, n: 1024, k: 1024 }",
            "{ op: all-gather, bytes: 1024*rows }",
        );
        let bare = bare.replace("[sequential, 'interdecom:d=2']", "[library]");
        let error = groups(&parse(&bare, "two.yaml", &[]).unwrap()).unwrap_err();
        assert!(error.to_string().contains("a bare collective"), "{error}");
    }

    #[test]
    fn selections_name_parts_and_shards_divide() {
        let groups = planned();
        let only = |only: &[&str], shard: Option<&str>| Selection {
            only: only.iter().map(|o| (*o).to_owned()).collect(),
            shard: shard.map(|s| s.parse().unwrap()),
        };
        assert_eq!(only(&["hybrid"], None).of(&groups).unwrap(), [4, 5, 6, 7]);
        assert_eq!(
            only(&["4on", "8on1"], None).of(&groups).unwrap(),
            [8, 9, 10]
        );
        assert_eq!(only(&[], Some("2/3")).of(&groups).unwrap(), [1, 4, 7, 10]);
        let error = only(&["nvlink"], None).of(&groups).unwrap_err().to_string();
        assert!(
            error
                .starts_with("no group's name contains `nvlink`\n  help: names are like `ag-gemm/")
        );
    }

    #[test]
    fn every_beginning_of_the_order_has_all_grids() {
        let groups = planned();
        let all: Vec<usize> = (0..groups.len()).collect();
        let first = order(&groups, &all, 7);
        assert_eq!(first, order(&groups, &all, 7));
        assert_ne!(first, order(&groups, &all, 8));
        let mut sorted = first.clone();
        sorted.sort_unstable();
        assert_eq!(sorted, all);
        // 8 groups of one grid and 4 of the other: of any first t, each grid has its share ± 1.
        for seed in 0..50 {
            let order = order(&groups, &all, seed);
            for t in 1..=12 {
                let small = order[..t].iter().filter(|&&i| groups[i].grid == 0).count();
                let share = 8.0 * t as f64 / 12.0;
                assert!((small as f64 - share).abs() <= 2.0, "{seed} {t} {small}");
            }
        }
    }

    #[test]
    fn most_groups_of_the_committed_grid_have_gemms_that_the_calibration_has_not() {
        let text = include_str!(concat!(
            env!("CARGO_MANIFEST_DIR"),
            "/experiments/h200-pair/experiment.yaml"
        ));
        let experiment = parse(text, "experiment.yaml", &[]).unwrap();
        let groups = groups(&experiment).unwrap();
        let absent = |planned: &&Planned| {
            let topology = &experiment.machines[planned.machine as usize].topology;
            let (_, n, k) = planned.group.operator.rank_gemm().unwrap();
            let mut table = topology.device(0).gemm_table.iter();
            !table.any(|row| (row.n, row.k) == (n, k))
        };
        let absent = groups.iter().filter(absent).count();
        assert!(2 * absent >= groups.len(), "{absent} of {}", groups.len());
    }
}
