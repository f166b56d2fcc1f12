//! GEMMs that are bound by memory: the traffic of every tile that could still win.

use super::super::tiles::{Prepared, Waves, part, quotient};
use super::super::{GemmTime, wave};
use super::Curve;

impl Curve {
    /// The least of every tile's and split's arithmetic and memory, whichever takes longer.
    #[cold]
    pub(super) fn bound_by_memory(&self, shape: &wave::Shape, on: &Waves) -> GemmTime {
        let mut best = GemmTime {
            seconds: f64::INFINITY,
            ..GemmTime::default()
        };
        let mut first = (0, 1.0);
        // Nothing is read twice: none takes less, and of those that take that the first counts.
        let once = wave::read_again(&self.device, shape, (1.0, 1.0), (1.0, 1.0)) / self.hbm;
        let partials = wave::partials(shape, 1.0) / self.hbm;
        for prepared in &self.tiles {
            if best.seconds <= once && prepared.place > first.0 {
                continue;
            }
            let tiles = prepared.tiles(shape.m, shape.n);
            let mut split = 1.0;
            loop {
                let one = prepared.one(part(shape.k, split));
                let waves = quotient(tiles * split, on.sms, on.per_sms);
                let compute = waves * one;
                if compute <= best.seconds {
                    let bytes = self.traffic(shape, prepared, split, on);
                    let seconds = compute.max(bytes / self.hbm);
                    let place = (prepared.place, split);
                    if seconds < best.seconds || (seconds == best.seconds && place < first) {
                        first = place;
                        best = GemmTime {
                            seconds,
                            overhead: self.overhead,
                            hbm_bytes: bytes,
                            unquantised: seconds,
                            wave: seconds / waves,
                            alone: 0.0,
                            tiles: tiles * split,
                            cluster: 0,
                            cold: 0.0,
                        };
                    }
                }
                if !prepared.splits(tiles, on.sms, shape.k, &mut split) {
                    break;
                }
                // Partial sums come on top of what is read once; a little slack against rounding.
                if (once + partials * split) * (1.0 - 1e-12) > best.seconds {
                    break;
                }
            }
        }
        best.seconds += self.overhead;
        best.unquantised += self.overhead;
        best
    }

    pub(super) fn traffic(
        &self,
        shape: &wave::Shape,
        prepared: &Prepared,
        split: f64,
        on: &Waves,
    ) -> f64 {
        let (rows, columns) = (prepared.rows(shape.m), prepared.columns(shape.n));
        let wave = on.sms.min(rows * columns * split);
        let square = (wave * prepared.m / prepared.n).sqrt();
        let tiles = (rows, columns);
        wave::traffic(
            &self.device,
            shape,
            prepared.m,
            tiles,
            split,
            (wave, square),
        )
    }
}
