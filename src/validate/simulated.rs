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
        Subject::Reference(Reference::Gemm) => Ok(None),
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
