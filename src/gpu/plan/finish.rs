//! The plan of what has been lowered.

use super::joined::joined;
use super::lower::Lowering;
use super::options::Options;
use super::signals::{Signals, signals};
use super::{Gpu, Library, Plan, StreamId, windows};
use crate::schedule::{Lane, Rank};

impl Lowering<'_> {
    pub(super) fn plan(mut self, options: &Options, verified: bool) -> Plan {
        let origin = StreamId(0);
        if self.streams.list.is_empty() {
            // A run of nothing still begins and ends somewhere.
            self.streams.lane(Gpu(0), Rank(0), Lane(0));
        }
        let streams = self.streams.list;
        let Signals {
            steps,
            events,
            flags,
            fork,
            join,
        } = signals(self.out, &streams, origin, options.flag_and_event());
        self.gemms.sort_unstable();
        self.gemms.dedup();
        if options.library == Library::NcclWindow {
            windows::even(&mut self.layout.arenas);
        }
        Plan {
            dtype: self.schedule.operator.dtype,
            mode: options.mode,
            products: options.products,
            tile: options.tile,
            joined: joined(&steps, self.schedule.operator.dtype.size()),
            verified,
            library: options.library,
            gpus: self.gpus,
            streams,
            shared: self.share,
            origin,
            fork,
            steps,
            join,
            events,
            flags,
            arenas: self.layout.arenas,
            places: self.layout.places,
            staging: self.rings.list,
            groups: self.groups,
            collectives: self.calls,
            gemms: self.gemms,
        }
    }
}
