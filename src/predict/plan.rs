//! What the selector works out before it knows a shape: the candidates on every kind of GPU, each with
//! the constants of its closed form.

use super::Terms;
use super::closed::fusion::Kernel;
use super::closed::fusion_alltoall::{self, AllToAll};
use super::closed::fusion_double_ring;
use super::closed::fusion_ring::{self, Rings};
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
    /// Whether their overheads are the same, so that the time is convex in the pieces of a shard.
    pub convex: bool,
}

/// A setting with its closed form and its fitted overhead.
#[derive(Clone, Debug)]
pub(super) struct Offer {
    pub setting: Setting,
    form: Prepared,
    /// Rows that a shard needs.
    pub rows: u64,
    pub alpha: f64,
    pub beta: f64,
}

/// A closed form without its shape.
#[derive(Clone, Debug)]
enum Prepared {
    Sequential,
    InterDecom,
    Rings(Rings),
    AllToAll(AllToAll),
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

impl Prepared {
    fn new(pick: Pick, site: &Site, net: &Network, setting: Setting) -> Option<Self> {
        Some(match pick {
            Pick::Sequential => Self::Sequential,
            Pick::InterDecom(_) => Self::InterDecom,
            Pick::FusionRing(_) => Self::Rings(fusion_ring::new(site, net, setting)),
            Pick::FusionDoubleRing(_) => Self::Rings(fusion_double_ring::new(site, net, setting)?),
            Pick::FusionAllToAll(_) => Self::AllToAll(fusion_alltoall::new(site, net, setting)?),
        })
    }
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
                    form: Prepared::new(pick, &site, net, setting)?,
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
        let same = |two: &[Offer]| (two[0].alpha, two[0].beta) == (two[1].alpha, two[1].beta);
        (!offers.is_empty()).then(|| Self {
            pick,
            convex: offers.windows(2).all(same),
            offers,
        })
    }
}

impl Offer {
    /// The time with the fitted overhead.
    #[inline]
    pub fn seconds(&self, model: &Model<'_>, form: Longest) -> f64 {
        form.seconds + form.steps * (self.alpha + self.beta * model.case.message)
    }

    /// What is known at once: a fusion takes no less, the fitted overhead aside \[s\].
    #[inline(always)]
    pub fn least(&self, kernel: &Kernel) -> f64 {
        match &self.form {
            Prepared::AllToAll(all) => all.least(kernel),
            Prepared::Rings(_) | Prepared::Sequential | Prepared::InterDecom => 0.0,
        }
    }

    /// A fusion with its shape; `None` for another strategy.
    #[inline(always)]
    pub fn fused(&self, kernel: &Kernel) -> Option<Longest> {
        match &self.form {
            Prepared::Rings(rings) => Some(rings.form(kernel)),
            Prepared::AllToAll(all) => Some(all.form(kernel)),
            Prepared::Sequential | Prepared::InterDecom => None,
        }
    }
}
