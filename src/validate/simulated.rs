//! A case simulated: its schedule and timeline on its group's path.

use super::key::{Case, Group, Reference, Subject};
use super::tiling::tiling;
use crate::experiment::judge::Trial;
use crate::gpu::plan::{Mode, Options};
use crate::operator::{Kind, Operator};
use crate::schedule::{Schedule, lowered};
use crate::sim::{self, Executed, LaunchMode};
use crate::strategy::{self, Site};
use crate::timeline::Timeline;
use crate::topology::Topology;
use crate::topology::paths::with_path;
use crate::units::Bytes;

/// A case with its simulation, as the prediction of it is made.
#[derive(Clone, Debug)]
pub struct Simulated {
    /// The machine with the group's path.
    pub topology: Topology,
    pub schedule: Schedule,
    pub timeline: Timeline,
}

impl Simulated {
    /// Simulates a case on a machine, task by task of its schedule.
    ///
    /// # Errors
    /// Why it cannot be simulated, or has no schedule, in words.
    pub fn new(case: &Case, topology: &Topology) -> Result<Self, String> {
        let topology = with_path(topology, case.group.choice());
        let site = Site::new(&topology, case.group.placement.to_vec());
        let written = written(&case.subject, &case.group, &site)?;
        let (schedule, library) = written.ok_or("a product alone has no schedule")?;
        let how = Executed {
            record: true,
            ..executed(&case.group, library)
        };
        let timeline =
            sim::executed(&schedule, &topology, &how).map_err(|error| error.to_string())?;
        Ok(Self {
            schedule,
            timeline,
            topology: topology.clone(),
        })
    }
}

/// How the GPUs perform a group's schedules; `library`: by the collective library where it can.
fn executed(group: &Group, library: bool) -> Executed {
    Executed {
        launch: group.launch,
        lowered: lowered::Options {
            library,
            ..lowering(group).lowered()
        },
        record: false,
        tiling: tiling(group.products, None),
    }
}

/// How a group's schedules are lowered.
pub(crate) fn lowering(group: &Group) -> Options {
    Options {
        path: group.path,
        mode: match group.launch {
            LaunchMode::Stream => Mode::Stream,
            LaunchMode::Graph => Mode::Graph,
        },
        products: group.products,
        ..Options::default()
    }
}

/// How a group's schedules are simulated.
pub(super) fn trial<'s, 't>(group: &Group, site: &'s Site<'t>) -> Trial<'s, 't> {
    Trial {
        site,
        operator: group.operator,
        options: executed(group, true).options(),
        verify_up_to: 0,
    }
}

/// What the GPUs perform for a strategy or reference; `None` for a product alone.
pub(super) fn performed(
    subject: &Subject,
    group: &Group,
    site: &Site<'_>,
) -> Result<Option<Schedule>, String> {
    let written = written(subject, group, site)?;
    Ok(written.map(|(schedule, library)| {
        let sms = |gpu: u32| sim::sms(site.topology, gpu);
        lowered::fitting(&schedule, &executed(group, library).lowered, &sms).schedule
    }))
}

/// The schedule of a strategy or reference as it is written, and whether the collective library
/// performs its collectives; `None` for a product alone.
fn written(
    subject: &Subject,
    group: &Group,
    site: &Site<'_>,
) -> Result<Option<(Schedule, bool)>, String> {
    let build = |strategy: &str, library: bool| {
        let choice = strategy::parse(strategy).map_err(|error| error.to_string())?;
        let schedule = trial(group, site).build(&choice)?;
        Ok(Some((schedule, library)))
    };
    match subject {
        Subject::Strategy(strategy) => build(strategy, true),
        Subject::Reference(Reference::SequentialCopies) => build("sequential", false),
        Subject::Reference(Reference::Gemm | Reference::GemmOwn) => Ok(None),
        Subject::Reference(Reference::Copy) => {
            let Operator { tp, dtype, .. } = group.operator;
            if tp != 2 || group.is_virtual() {
                return Err("plain copies are simulated between two GPUs only".to_owned());
            }
            let bytes = Bytes::new(group.operator.message_bytes());
            let copy = Operator::collective(Kind::AllGather, bytes, tp, dtype)
                .map_err(|error| error.to_string())?;
            let direct = strategy::parse("direct").map_err(|error| error.to_string())?;
            let schedule = direct.build_at(&copy, site).map_err(|skip| skip.reason)?;
            Ok(Some((schedule, true)))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::DType;
    use crate::gpu::plan::{Path, Products, lower};
    use crate::topology::build::Builder;

    /// Ranks of one GPU share streams in a simulation where they do in the plan.
    #[test]
    fn streams_are_shared_where_plans_share_them() {
        let mut b = Builder::new("pair");
        let ids = b.gpus(2);
        b.link(ids[0], ids[1], "nvlink", 50e9, 500e-9);
        let pair = b.build();
        let paths = [
            (0.0, Path::P2p),
            (1.0, Path::Host { chunk: 1 << 20 }),
            (
                0.5,
                Path::Hybrid {
                    host_share: 0.5,
                    chunk: 1 << 20,
                },
            ),
        ];
        let mut found = [0; 2];
        let cases = [Kind::AgGemm, Kind::GemmRs]
            .into_iter()
            .flat_map(|kind| (3..10).map(move |tp| (kind, tp)));
        for (kind, tp) in cases {
            let size = u64::from(tp) * 8;
            let operator = Operator::gemm(kind, size, size, size, tp, DType::Bf16).unwrap();
            for (text, gpus) in [
                "fusion-ring",
                "fusion-alltoall",
                "fusion-alltoall:issue=pull",
                "fusion-alltoall:mover=sm:2",
            ]
            .into_iter()
            .flat_map(|text| [(text, 1), (text, 2)])
            {
                let placement: Vec<u32> = (0..tp).map(|rank| rank * gpus / tp).collect();
                let choice = strategy::parse(text).unwrap();
                let Ok(schedule) = choice.build(&operator, &pair, &placement) else {
                    continue;
                };
                for ((share, path), products) in paths
                    .into_iter()
                    .flat_map(|path| [(path, Products::Library), (path, Products::Own)])
                {
                    let options = Options {
                        path,
                        products,
                        ..Options::default()
                    };
                    let plan = lower(&schedule, &options, None).unwrap();
                    let alone = lowered::lower(&schedule, &options.lowered()).schedule;
                    let shares = sim::shares(&alone, sim::Streams::PerGpu, share);
                    assert_eq!(
                        shares, plan.shared,
                        "{kind:?} {text} {placement:?} {options:?}"
                    );
                    found[usize::from(shares)] += 1;
                }
            }
        }
        assert!(found.into_iter().all(|of| of > 20), "{found:?}");
    }
}
