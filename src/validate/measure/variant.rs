//! What is measured of a group, ready for the GPUs: schedules and their plans.

use std::rc::Rc;

use crate::gpu::campaign::{Prepared, lower_for};
use crate::gpu::plan::{Library, Options, Plan, Products};
use crate::gpu::timing::{copy_plan, gemm_plan, gemm_plan_by};
use crate::schedule::Schedule;
use crate::strategy::{self, Choice, Site};
use crate::topology::Topology;
use crate::validate::cases::Planned;
use crate::validate::key::{Case, Reference, Subject};
use crate::validate::simulated::lowering;

/// One case of a group.
#[derive(Clone, Debug)]
pub struct Variant {
    pub case: Case,
    /// Who performs its collectives.
    pub library: Library,
    /// Why not, in words, where it cannot be performed.
    pub prepared: Result<Prepared, String>,
}

impl Variant {
    /// Whether it computes the operator's result, which can be checked.
    pub fn computes(&self) -> bool {
        !matches!(
            self.case.subject,
            Subject::Reference(Reference::Gemm | Reference::GemmOwn | Reference::Copy)
        )
    }
}

/// The strategy of a reference: what a program does that overlaps nothing.
const SEQUENTIAL: &str = "sequential";

/// The variants of a group in the order of [`Planned::cases`], for GPUs of `sms` SMs; `verify`:
/// whether schedules are verified as written and as lowered.
pub fn variants(planned: &Planned, topology: &Topology, sms: u32, verify: bool) -> Vec<Variant> {
    let group = &planned.group;
    let site = Site::new(topology, group.placement.to_vec());
    let options = Options {
        verify,
        ..lowering(group)
    };
    let build = |choice: &Choice| -> Result<Schedule, String> {
        choice
            .build_at(&group.operator, &site)
            .map_err(|skip| skip.reason)
    };
    let sequential = strategy::parse(SEQUENTIAL)
        .map_err(|error| error.to_string())
        .and_then(|choice| build(&choice));
    let reference = |plan: fn(&Schedule) -> Option<Plan>| -> Result<Prepared, String> {
        let schedule = sequential.clone()?;
        let plan = plan(&schedule).ok_or("there is no such reference for this operator")?;
        Ok(Prepared {
            schedule: Rc::new(schedule),
            plan: Rc::new(plan),
        })
    };
    let lowered = |schedule: Result<Schedule, String>, options: &Options| {
        lower_for(schedule?, sms, options).map_err(|error| error.to_string())?
    };
    let mut choices = planned.strategies.iter();
    planned
        .cases()
        .map(|case| {
            let prepared = match case.subject {
                Subject::Reference(Reference::Gemm) => reference(gemm_plan),
                Subject::Reference(Reference::GemmOwn) => {
                    reference(|schedule| gemm_plan_by(schedule, Products::Own))
                }
                Subject::Reference(Reference::Copy) => reference(copy_plan),
                Subject::Reference(Reference::SequentialCopies) => {
                    let copies = Options {
                        library: Library::Copies,
                        ..options
                    };
                    lowered(sequential.clone(), &copies)
                }
                Subject::Strategy(_) => match choices.next() {
                    Some(choice) => lowered(build(choice), &options),
                    None => Err("the strategy is not known".to_owned()),
                },
            };
            Variant {
                library: library(&prepared),
                case,
                prepared,
            }
        })
        .collect()
}

/// NCCL where it is called, else copies.
fn library(prepared: &Result<Prepared, String>) -> Library {
    match prepared {
        Ok(prepared) if !prepared.plan.collectives.is_empty() => Library::Nccl,
        _ => Library::Copies,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::parse;
    use crate::gpu::plan::{Mode, What};
    use crate::validate::cases::groups;

    fn all(ranks: &str, launch: &str) -> Vec<Variant> {
        let text = format!(
            "
name: one
grids:
  - name: g
    topologies: h200-pair
    {ranks}
    launch: {launch}
    operators: [{{ op: ag-gemm, m: 1024, n: 1024, k: 1024 }}]
    strategies: [sequential, 'interdecom:d=2,comm=direct', 'fusion-ring', 'interdecom:d=2048,comm=direct']
"
        );
        let experiment = parse(&text, "one.yaml", &[]).unwrap();
        let planned = groups(&experiment).unwrap().remove(0);
        variants(&planned, &experiment.machines[0].topology, 132, true)
    }

    #[test]
    fn references_come_first_and_what_cannot_be_is_said() {
        let variants = all("tp: 2", "stream");
        let plan = |i: usize| &variants[i].prepared.as_ref().unwrap().plan;
        assert_eq!(
            variants[0].case.subject,
            Subject::Reference(Reference::Gemm)
        );
        assert_eq!(plan(0).gemms.len(), 2);
        assert!(plan(1).gemms.is_empty() && plan(1).steps.len() == 2);
        assert_eq!(variants[2].library, Library::Copies);
        assert!(plan(2).collectives.is_empty());
        // The same schedule by the library.
        assert_eq!(variants[3].library, Library::Nccl);
        assert_eq!(plan(3).collectives.len(), 1);
        assert!(!variants[0].computes() && variants[2].computes());
        let last = variants.last().unwrap();
        assert!(
            last.prepared.as_ref().unwrap_err().contains("2048"),
            "{}",
            last.case
        );
    }

    #[test]
    fn ranks_that_share_a_gpu_copy() {
        for launch in ["stream", "graph"] {
            let variants = all("tp: 4\n    gpus: 1", launch);
            assert!(variants.iter().all(|v| v.library == Library::Copies));
            let plan = &variants[3].prepared.as_ref().unwrap().plan;
            assert_eq!(plan.gpus, [0]);
            assert_eq!(plan.mode == Mode::Graph, launch == "graph");
        }
    }

    #[test]
    fn own_products_wait_inside_their_kernels() {
        let variants = all("tp: 2\n    gemm: duet", "stream");
        let plan = &variants[6].prepared.as_ref().unwrap().plan;
        assert_eq!(plan.products, Products::Own);
        let gated = |what: &What| matches!(what, What::Gated { .. });
        assert!(plan.steps.iter().any(|step| gated(&step.what)));
        // The reference is the library's.
        let reference = &variants[0].prepared.as_ref().unwrap().plan;
        assert_eq!(reference.products, Products::Library);
        // One more is the same product by the kernels of the schedules, tile for tile.
        let own = &variants[3];
        assert_eq!(own.case.subject, Subject::Reference(Reference::GemmOwn));
        assert!(!own.computes());
        let own = &own.prepared.as_ref().unwrap().plan;
        assert_eq!((own.products, own.tile), (Products::Own, plan.tile));
        assert_eq!(
            (&own.gemms, &own.arenas),
            (&reference.gemms, &reference.arenas)
        );
    }
}
