//! Whether NCCL may use a plan's arenas as windows.
//!
//! A collective on windows finds the others' part at the place of its own: what it reads or writes of
//! the others must lie at one offset of all arenas.

use super::{Arena, Call, LowerError};
use crate::schedule::CollectiveKind;

/// Makes all arenas as large as the largest, so that both halves begin at one offset.
pub(super) fn even(arenas: &mut [Arena]) {
    let most = arenas.iter().map(|arena| arena.half).max();
    arenas.fill(Arena {
        half: most.unwrap_or(0),
    });
}

/// That the members of every call have the same layout.
///
/// # Errors
/// [`LowerError::Option`].
pub(super) fn alike(calls: &[Call]) -> Result<(), LowerError> {
    let differs = |call: &&Call| {
        let (input, output) = match call.kind {
            CollectiveKind::AllGather => (false, true),
            CollectiveKind::ReduceScatter => (true, false),
            CollectiveKind::AllReduce => (true, true),
            // Sent and received pair by pair.
            CollectiveKind::AllToAll => (false, false),
        };
        let first = call.members.first();
        call.members.iter().any(|member| {
            first.is_some_and(|first| {
                (input && member.input.at != first.input.at)
                    || (output && member.output.at != first.output.at)
            })
        })
    };
    match calls.iter().find(differs) {
        None => Ok(()),
        Some(_) => Err(LowerError::Option {
            problem: "NCCL's windows want every rank's memory laid out alike, and here it is not; take sizes that the ranks divide evenly, or the library `nccl`".to_owned(),
        }),
    }
}

#[cfg(test)]
mod tests {
    use crate::device::DType;
    use crate::gpu::plan::{Library, LowerError, Options, Plan, lower};
    use crate::operator::{Kind, Operator};
    use crate::{strategy, topology};

    fn plan(kind: Kind, m: u64, library: Library) -> Result<Plan, LowerError> {
        let machine = topology::load("h200-pair", &[]).unwrap();
        let operator = Operator::gemm(kind, m, 128, 256, 2, DType::Bf16).unwrap();
        let sequential = strategy::parse("sequential").unwrap();
        let schedule = sequential.build(&operator, &machine, &[0, 1]).unwrap();
        let options = Options {
            library,
            ..Options::default()
        };
        lower(&schedule, &options, None)
    }

    #[test]
    fn ranks_laid_out_alike_have_windows() {
        for kind in [Kind::AgGemm, Kind::GemmRs, Kind::GemmAr] {
            let plain = plan(kind, 512, Library::Nccl).unwrap();
            let windows = plan(kind, 512, Library::NcclWindow).unwrap();
            assert!(!windows.collectives.is_empty());
            assert_eq!(windows.collectives, plain.collectives);
            let halves: Vec<u64> = windows.arenas.iter().map(|arena| arena.half).collect();
            assert_eq!(halves[0], halves[1]);
        }
    }

    /// The second rank's memory begins with something that the first has not.
    #[test]
    fn others_are_refused_in_words() {
        let mut plan = plan(Kind::AgGemm, 512, Library::NcclWindow).unwrap();
        for (party, what) in [("output", 1), ("input", 0)] {
            let mut calls = plan.collectives.clone();
            match party {
                "output" => calls[0].members[1].output.at += 256,
                _ => calls[0].members[1].input.at += 256,
            }
            // An all-gather only writes into the others' memory.
            assert_eq!(usize::from(super::alike(&calls).is_err()), what, "{party}");
        }
        plan.collectives[0].members[1].output.at += 256;
        let refused = super::alike(&plan.collectives).unwrap_err();
        let words = "NCCL's windows want every rank's memory laid out alike, and here it is not; take sizes that the ranks divide evenly, or the library `nccl`";
        assert_eq!(refused.to_string(), words);
        plan.arenas[1].half += 512;
        super::even(&mut plan.arenas);
        assert_eq!(plan.arenas[0], plan.arenas[1]);
    }
}
