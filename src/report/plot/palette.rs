//! Colours, markers and dashes: one look per strategy, the same in every figure.
//!
//! The colours are Okabe and Ito's (Color Universal Design, 2008), told apart with any common
//! colour blindness. Marker and dash tell strategies apart in black and white. A bare collective
//! wears the colour of the fused strategy that moves data the same way: all rings are light blue,
//! all double rings blue, whatever goes directly to everybody purple.

/// Red, green and blue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Colour(pub u8, pub u8, pub u8);

impl Colour {
    pub const BLACK: Self = Self(0, 0, 0);
    pub const WHITE: Self = Self(255, 255, 255);
    pub const ORANGE: Self = Self(230, 159, 0);
    pub const SKY: Self = Self(86, 180, 233);
    pub const GREEN: Self = Self(0, 158, 115);
    pub const YELLOW: Self = Self(240, 228, 66);
    pub const BLUE: Self = Self(0, 114, 178);
    pub const VERMILLION: Self = Self(213, 94, 0);
    pub const PURPLE: Self = Self(204, 121, 167);
    pub const SLATE: Self = Self(89, 89, 89);
    pub const GREY: Self = Self(153, 153, 153);

    /// Relative luminance of sRGB, 0 to 1 (WCAG 2).
    fn luminance(self) -> f64 {
        let linear = |byte: u8| {
            let c = f64::from(byte) / 255.0;
            if c <= 0.04045 {
                c / 12.92
            } else {
                ((c + 0.055) / 1.055).powf(2.4)
            }
        };
        0.2126 * linear(self.0) + 0.7152 * linear(self.1) + 0.0722 * linear(self.2)
    }

    /// Contrast of two colours, 1 to 21 (WCAG 2).
    fn contrast(self, other: Self) -> f64 {
        let (a, b) = (self.luminance(), other.luminance());
        (a.max(b) + 0.05) / (a.min(b) + 0.05)
    }

    /// So much of this colour, the rest of `other`.
    pub(super) fn mix(self, other: Self, share: f64) -> Self {
        let blend = |a: u8, b: u8| (f64::from(a) * share + f64::from(b) * (1.0 - share)).round();
        Self(
            blend(self.0, other.0) as u8,
            blend(self.1, other.1) as u8,
            blend(self.2, other.2) as u8,
        )
    }

    /// This colour, as dark as text on white must be (contrast of 4.5 at least).
    pub(super) fn ink(self) -> Self {
        (0..=20)
            .map(|step| self.mix(Self::BLACK, 1.0 - 0.05 * f64::from(step)))
            .find(|dark| dark.contrast(Self::WHITE) >= 4.5)
            .unwrap_or(Self::BLACK)
    }

    /// Black or white, whichever reads better on this colour.
    pub(super) fn on_top(self) -> Self {
        if self.contrast(Self::BLACK) >= self.contrast(Self::WHITE) {
            Self(26, 26, 26)
        } else {
            Self::WHITE
        }
    }
}

/// The shape of a point.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Marker {
    Circle,
    Square,
    Diamond,
    Up,
    Down,
    Plus,
    Cross,
    Star,
}

impl Marker {
    /// The corners of the shape, about as large as a circle of this radius.
    pub(super) fn outline(self, (x, y): (f64, f64), radius: f64) -> Vec<(f64, f64)> {
        let around = |corners: u32, turn: f64, radius: &dyn Fn(u32) -> f64| {
            (0..corners)
                .map(|i| {
                    let angle = (turn + f64::from(i) / f64::from(corners)) * std::f64::consts::TAU;
                    (x + radius(i) * angle.sin(), y - radius(i) * angle.cos())
                })
                .collect::<Vec<_>>()
        };
        let arm = radius * 0.36;
        let long = radius * 1.1;
        let plus = [
            (-arm, -long),
            (arm, -long),
            (arm, -arm),
            (long, -arm),
            (long, arm),
            (arm, arm),
            (arm, long),
            (-arm, long),
            (-arm, arm),
            (-long, arm),
            (-long, -arm),
            (-arm, -arm),
        ];
        let half = std::f64::consts::FRAC_1_SQRT_2;
        match self {
            Self::Circle => around(24, 0.0, &|_| radius),
            Self::Square => around(4, 0.125, &|_| radius * 1.25),
            Self::Diamond => around(4, 0.0, &|_| radius * 1.3),
            Self::Up => around(3, 0.0, &|_| radius * 1.35),
            Self::Down => around(3, 0.5, &|_| radius * 1.35),
            Self::Plus => plus.iter().map(|(a, b)| (x + a, y + b)).collect(),
            Self::Cross => plus
                .iter()
                .map(|(a, b)| (x + (a - b) * half, y + (a + b) * half))
                .collect(),
            Self::Star => around(10, 0.0, &|i| {
                if i % 2 == 0 {
                    radius * 1.5
                } else {
                    radius * 0.62
                }
            }),
        }
    }
}

/// How a line is broken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dash {
    Solid,
    Dashed,
    Dotted,
    DashDot,
    Long,
}

impl Dash {
    /// Strokes and gaps in pixels.
    pub(super) fn pattern(self) -> &'static [f64] {
        match self {
            Self::Solid => &[],
            Self::Dashed => &[6.0, 3.0],
            Self::Dotted => &[2.0, 2.5],
            Self::DashDot => &[8.0, 3.0, 2.0, 3.0],
            Self::Long => &[12.0, 4.0],
        }
    }
}

/// How a series is drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Look {
    pub colour: Colour,
    pub marker: Marker,
    pub dash: Dash,
}

impl Look {
    const fn new(colour: Colour, marker: Marker, dash: Dash) -> Self {
        Self {
            colour,
            marker,
            dash,
        }
    }

    /// What is not about one strategy.
    pub const NEUTRAL: Self = Self::new(Colour::GREY, Marker::Circle, Dash::Solid);

    /// The look of a strategy as written on the command line; parameters do not matter. Names
    /// without a row are [`Look::NEUTRAL`].
    ///
    /// ```
    /// use duet::report::plot::Look;
    /// assert_eq!(Look::of("interdecom:d=4"), Look::of("interdecom"));
    /// assert_ne!(Look::of("fusion-ring"), Look::of("fusion-double-ring"));
    /// ```
    pub fn of(strategy: &str) -> Self {
        let name = strategy.split([':', ' ', '{']).next().unwrap_or_default();
        REGISTRY
            .iter()
            .find(|(known, _)| *known == name)
            .map_or(Self::NEUTRAL, |(_, look)| *look)
    }

    /// The look of series number `index` among series that are no strategies.
    pub fn nth(index: usize) -> Self {
        SERIES[index % SERIES.len()]
    }
}

/// Strategies and bare collectives; a new one gets its row here.
const REGISTRY: [(&str, Look); 12] = [
    (
        "sequential",
        Look::new(Colour::SLATE, Marker::Circle, Dash::Long),
    ),
    (
        "interdecom",
        Look::new(Colour::ORANGE, Marker::Square, Dash::Dashed),
    ),
    (
        "fusion-alltoall",
        Look::new(Colour::PURPLE, Marker::Up, Dash::Dotted),
    ),
    (
        "fusion-ring",
        Look::new(Colour::SKY, Marker::Diamond, Dash::DashDot),
    ),
    (
        "fusion-double-ring",
        Look::new(Colour::BLUE, Marker::Down, Dash::Solid),
    ),
    (
        "ring-accumulate",
        Look::new(Colour::GREEN, Marker::Cross, Dash::Dashed),
    ),
    (
        "library",
        Look::new(Colour::SLATE, Marker::Circle, Dash::Long),
    ),
    (
        "ring",
        Look::new(Colour::SKY, Marker::Diamond, Dash::DashDot),
    ),
    (
        "double-ring",
        Look::new(Colour::BLUE, Marker::Down, Dash::Solid),
    ),
    (
        "direct",
        Look::new(Colour::PURPLE, Marker::Up, Dash::Dotted),
    ),
    ("tree", Look::new(Colour::GREEN, Marker::Plus, Dash::Dashed)),
    (
        "hierarchical",
        Look::new(Colour::VERMILLION, Marker::Cross, Dash::DashDot),
    ),
];

const SERIES: [Look; 6] = [
    Look::new(Colour::BLUE, Marker::Circle, Dash::Solid),
    Look::new(Colour::VERMILLION, Marker::Square, Dash::Dashed),
    Look::new(Colour::GREEN, Marker::Diamond, Dash::DashDot),
    Look::new(Colour::PURPLE, Marker::Up, Dash::Dotted),
    Look::new(Colour::ORANGE, Marker::Down, Dash::Long),
    Look::new(Colour::SLATE, Marker::Plus, Dash::Solid),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_strategy_has_a_look() {
        for strategy in crate::strategy::registry() {
            assert!(
                REGISTRY.iter().any(|(name, _)| *name == strategy.name()),
                "`{}` needs a row in REGISTRY",
                strategy.name()
            );
        }
    }

    #[test]
    fn strategies_of_one_operator_differ_in_colour_marker_and_dash_or_marker() {
        for family in [&REGISTRY[..6], &REGISTRY[6..]] {
            for (i, (a, x)) in family.iter().enumerate() {
                for (b, y) in &family[i + 1..] {
                    assert_ne!(x.colour, y.colour, "{a} and {b}");
                    assert_ne!(x.marker, y.marker, "{a} and {b}");
                }
            }
        }
    }

    #[test]
    fn text_in_a_colour_can_be_read() {
        for (_, look) in REGISTRY {
            assert!(look.colour.ink().contrast(Colour::WHITE) >= 4.5);
            assert!(look.colour.on_top().contrast(look.colour) >= 4.5);
        }
    }
}
