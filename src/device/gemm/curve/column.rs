//! GEMM times at fixed n and k: what does not depend on m is worked out.

use super::super::library::Place;
use super::super::tiles::Waves;
use super::super::{GemmTime, gemm, listed, table};
use super::Curve;

/// A curve at fixed n and k.
#[derive(Clone, Debug)]
pub struct Column<'c> {
    pub(super) curve: &'c Curve,
    pub(super) n: u64,
    pub(super) k: u64,
    /// Of corrections; `None`: worked out by each call.
    pub(super) blend: Option<table::Blend>,
    /// The least of them, whatever m.
    pub(super) factor: f64,
    /// Where (n, k) lies among what the profile lists of the library's choices.
    pub(super) place: Option<Place>,
}

impl Column<'_> {
    /// The arithmetic of `m` rows, in any number of pieces, takes no less \[s\].
    pub fn least(&self, m: u64) -> f64 {
        let depth = self.k as f64 + self.curve.fill;
        m as f64 * self.n as f64 * depth * self.curve.least * self.factor
    }

    /// No GEMM takes less beyond its arithmetic \[s\].
    pub fn least_overhead(&self) -> f64 {
        self.curve.least_overhead * self.factor
    }

    /// No cut of `m` rows takes the memory less: every piece reads all of B, all of them A and C
    /// \[s\].
    pub fn least_memory(&self, m: u64) -> (f64, f64) {
        let curve = self.curve;
        let per_element = curve.size * curve.least_per_byte * self.factor;
        let (n, k) = (self.n as f64, self.k as f64);
        (n * k * per_element, m as f64 * (n + k) * per_element)
    }

    /// The time of `m` rows on all SMs, as [`gemm`] gives it but for `unquantised`, which is
    /// not worked out.
    #[inline]
    pub fn time(&self, m: u64) -> GemmTime {
        self.time_and_arithmetic(m).0
    }

    /// The same, and by the wave model the seconds of its arithmetic without corrections, 0 where others
    /// decide: any number of equal pieces has no fewer tiles and waves, on no more SMs, and what k may
    /// be split into for one of them it may for as many at once, in fewer parts.
    #[inline(always)]
    pub fn time_and_arithmetic(&self, m: u64) -> (GemmTime, f64) {
        let [all, _] = &self.curve.waves;
        let ([time], [arithmetic]) = self.times(m, [all]);
        (time, arithmetic)
    }

    /// The correction of `m` rows, absolute and as a multiple of the least; `None` where there is no
    /// short way to it.
    #[inline(always)]
    pub fn correction(&self, m: u64) -> Option<[f64; 2]> {
        match (&self.blend, &self.place) {
            (Some(blend), None) => {
                let factor = self.curve.table.along(blend, m as i64 as f64);
                Some([factor, factor / self.factor])
            }
            _ => None,
        }
    }

    /// The same on all SMs, and on those that a library collective leaves.
    #[inline]
    pub fn time_with_and_beside(&self, m: u64) -> [GemmTime; 2] {
        let [all, left] = &self.curve.waves;
        self.times(m, [all, left]).0
    }

    /// Without short cuts.
    #[cold]
    fn long(&self, m: u64, sms: u32) -> GemmTime {
        let (curve, n, k) = (self.curve, self.n, self.k);
        let time = match self.place.as_ref().filter(|_| m > 0 && n > 0 && k > 0) {
            Some(place) => listed(&curve.device, curve.dtype).and_then(|library| {
                library.time(&curve.device, curve.search.as_ref(), (place, m), sms)
            }),
            None => gemm(&curve.device, curve.dtype, m, n, k, sms),
        };
        time.unwrap_or_default()
    }

    /// On each of some numbers of SMs, with the arithmetic without corrections.
    #[inline(always)]
    fn times<const S: usize>(&self, m: u64, on: [&Waves; S]) -> ([GemmTime; S], [f64; S]) {
        let (curve, n, k) = (self.curve, self.n, self.k);
        let (Some(blend), None, Some(shape)) = (&self.blend, &self.place, curve.shape([m, n, k]))
        else {
            return (on.map(|on| self.long(m, on.sms as u32)), [0.0; S]);
        };
        let factor = curve.table.along(blend, shape.m);
        let choices = curve.arithmetic(&shape, on);
        let times = std::array::from_fn(|i| {
            let time = curve.settle(&shape, choices[i], on[i]);
            time.slower(factor)
        });
        (times, choices.map(|choice| choice.compute))
    }
}
