//! Where an operator runs: the machine, which GPU each rank has, and what follows from the two.
//! Rings and groups are found once per site, however many strategies ask.

use std::sync::OnceLock;

use super::Skip;
use super::rings::{self, RankRings};
use crate::schedule::Rank;
use crate::topology::Topology;
use crate::units::count;

/// A machine with ranks placed on its GPUs.
#[derive(Debug)]
pub struct Site<'a> {
    pub topology: &'a Topology,
    /// Rank → GPU number.
    pub placement: Vec<u32>,
    rings: OnceLock<RankRings>,
    groups: OnceLock<Result<Vec<Vec<Rank>>, Skip>>,
}

impl<'a> Site<'a> {
    /// `topology` with rank r on GPU `placement[r]`.
    pub fn new(topology: &'a Topology, placement: Vec<u32>) -> Self {
        Self {
            topology,
            placement,
            rings: OnceLock::new(),
            groups: OnceLock::new(),
        }
    }

    /// Whether an operator on `ranks` ranks is placed on GPUs that exist.
    pub(super) fn check(&self, ranks: u32) -> Result<(), Skip> {
        if self.placement.len() != ranks as usize {
            return Err(Skip::because(format!(
                "{} placed, but the operator has {ranks}",
                count(self.placement.len() as u64, "rank"),
            )));
        }
        let gpus = self.topology.gpus.len();
        match self.placement.iter().find(|&&gpu| gpu as usize >= gpus) {
            None => Ok(()),
            Some(gpu) => Err(Skip::because(format!(
                "GPU {gpu} is none of {}'s {gpus}",
                self.topology.name
            ))),
        }
    }

    pub(super) fn rings(&self) -> &RankRings {
        self.rings
            .get_or_init(|| rings::find(self.topology, &self.placement))
    }

    pub(super) fn groups(&self) -> Result<&[Vec<Rank>], Skip> {
        self.groups
            .get_or_init(|| super::groups::find(self.topology, &self.placement))
            .as_deref()
            .map_err(Clone::clone)
    }

    /// SMs for a kernel of `rank` that runs beside communication kernels on `beside` SMs; 0 (all
    /// that are free) where nothing is beside it. Ranks that share a GPU share its SMs evenly.
    ///
    /// # Errors
    /// [`Skip`] when communication would leave none.
    pub(super) fn sms(&self, rank: Rank, beside: u32) -> Result<u16, Skip> {
        let gpu = self.placement[usize::from(rank.0)];
        let sharing = self.placement.iter().filter(|&&g| g == gpu).count() as u32;
        let total = self.topology.device(gpu).sms;
        if beside == 0 && sharing == 1 {
            return Ok(0);
        }
        let left = (total / sharing).saturating_sub(beside);
        if left == 0 {
            return Err(Skip::because(format!(
                "copies on {beside} SMs leave none of GPU {gpu}'s {total} to each of its {sharing} ranks' GEMMs"
            )));
        }
        // Only the ideal GPU has more, and there they make no difference.
        Ok(u16::try_from(left).unwrap_or(u16::MAX))
    }

    /// SMs that the collective library holds on a rank's GPU.
    pub(super) fn library_sms(&self, rank: Rank) -> u32 {
        let gpu = self.placement[usize::from(rank.0)];
        self.topology.device(gpu).library.sms
    }
}
