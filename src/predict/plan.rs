//! What the selector works out before it knows a shape: the candidates on every kind of GPU, each with
//! the constants of its closed form.

use super::Terms;
use super::closed::fusion::Quick;
use super::closed::{fusion_alltoall, fusion_double_ring, fusion_ring};
use super::form::Longest;
use super::machine::{Machine, shard_pieces};
use super::model::{Model, Setting};
use super::network::Network;
use super::parameters::{Parameters, family};
use super::pick::{PICKS, Pick};
use super::site::{Gpu, Site};
use crate::operator::Kind;
use crate::strategy::{self, Choice};

/// A strategy with the settings among which it is chosen.
#[derive(Clone, Debug)]
pub(super) struct Candidate {
    pub pick: Pick,
    /// By pieces of a shard; one for what the number of pieces is worked out for.
    pub offers: Vec<Offer>,
}

/// A setting with its closed form and its fitted overhead.
#[derive(Clone, Debug)]
pub(super) struct Offer {
    pub setting: Setting,
    /// Of a fusion its chains.
    pub fused: Option<Quick>,
    /// Rows that a shard needs.
    pub rows: u64,
    pub alpha: f64,
    pub beta: f64,
}

/// All candidates on one kind of GPU.
#[derive(Clone, Debug)]
pub(super) struct Plan {
    pub site: Site,
    /// Its place among the machine's, and what one launch of everything delays all by \[s\].
    pub gpu: usize,
    pub launch: f64,
    pub candidates: Vec<Candidate>,
}

/// The chains of a fusion, or why there is no such candidate.
fn fused(pick: Pick, site: &Site, net: &Network, setting: Setting) -> Option<Option<Quick>> {
    let fusion = match pick {
        Pick::Sequential | Pick::InterDecom(_) => return Some(None),
        Pick::FusionRing(_) => fusion_ring::new(site, net, setting),
        Pick::FusionDoubleRing(_) => fusion_double_ring::new(site, net, setting)?,
        Pick::FusionAllToAll(_) => fusion_alltoall::new(site, net, setting)?,
    };
    Some(Some(Quick::new(&fusion)))
}

impl Plan {
    /// One for every kind of GPU among the machine's; none where ranks have no links.
    pub fn all(machine: &Machine, kind: Kind, terms: &Terms, parameters: &Parameters) -> Vec<Self> {
        let Ok(net) = machine.network(*terms) else {
            return Vec::new();
        };
        let plan = |(place, gpu): (usize, &Gpu)| {
            let site = Site::new(gpu, net, *terms, kind, machine.ranks());
            let offer = |pick: Pick, choice: &Choice| {
                let (name, setting) = (machine.name(), Setting::new(choice, kind));
                let found = parameters.get(name, kind, machine.ranks(), &family(choice));
                let overhead = found.filter(|_| terms.overhead);
                Some(Offer {
                    setting,
                    fused: fused(pick, &site, net, setting)?,
                    rows: shard_pieces(choice.strategy().name(), setting),
                    alpha: overhead.map_or(0.0, |o| o.alpha),
                    beta: overhead.map_or(0.0, |o| o.beta),
                })
            };
            let candidate = |pick: Pick| {
                let choices = match pick {
                    Pick::Sequential | Pick::InterDecom(_) => {
                        vec![strategy::parse(pick.name()).ok()?]
                    }
                    fusion => fusion.settings(kind),
                };
                let offers = choices.iter().filter_map(|choice| offer(pick, choice));
                Candidate::new(pick, offers.collect())
            };
            Self {
                candidates: PICKS.into_iter().filter_map(candidate).collect(),
                gpu: place,
                launch: gpu.graph_launch(*terms),
                site,
            }
        };
        machine.gpus.iter().enumerate().map(plan).collect()
    }
}

impl Candidate {
    /// `None` without settings.
    fn new(pick: Pick, mut offers: Vec<Offer>) -> Option<Self> {
        offers.sort_by_key(|offer| offer.setting.chunks);
        (!offers.is_empty()).then_some(Self { pick, offers })
    }
}

impl Offer {
    /// The time with the fitted overhead.
    #[inline]
    pub fn seconds(&self, model: &Model<'_>, form: Longest) -> f64 {
        form.seconds + form.steps * (self.alpha + self.beta * model.case.message)
    }
}
