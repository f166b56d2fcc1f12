//! Sizes and greys that every figure shares.

use super::canvas::Type;
use super::palette::Colour;

/// Blank border of a page \[px\].
pub(super) const MARGIN: f64 = 24.0;
/// Text sizes \[px\].
pub(super) const TITLE: f64 = 18.0;
pub(super) const SUBTITLE: f64 = 13.0;
pub(super) const LABEL: f64 = 12.0;
pub(super) const TICK: f64 = 12.0;
pub(super) const SMALL: f64 = 11.0;
/// Baseline to baseline, in text sizes.
pub(super) const LEADING: f64 = 1.35;

pub(super) const INK: Colour = Colour(34, 34, 34);
pub(super) const SOFT: Colour = Colour(89, 89, 89);
pub(super) const GRID: Colour = Colour(226, 226, 226);
/// Lines that join what belongs together.
pub(super) const GREY_LINE: Colour = Colour(190, 190, 190);
pub(super) const EMPTY: Colour = Colour(242, 242, 242);
pub(super) const AXIS: Colour = Colour(120, 120, 120);

const fn kind(size: f64, bold: bool, colour: Colour) -> Type {
    Type { size, bold, colour }
}

pub(super) const TITLE_TYPE: Type = kind(TITLE, true, INK);
pub(super) const SUBTITLE_TYPE: Type = kind(SUBTITLE, false, SOFT);
pub(super) const LABEL_TYPE: Type = kind(LABEL, false, SOFT);
pub(super) const TICK_TYPE: Type = kind(TICK, false, SOFT);
pub(super) const SOURCE_TYPE: Type = kind(SMALL, false, Colour(110, 110, 110));
pub(super) const PANEL_TYPE: Type = kind(LABEL, true, INK);

/// Words about a series, in its colour.
pub(super) fn series(colour: Colour) -> Type {
    kind(LABEL, true, colour.ink())
}
