//! Chooses ticks: as many as fit, at round numbers.

use super::axis::{Direction, Scale, Spacing};
use super::quantity::{self, Quantity};
use super::style::TICK;
use super::text;

/// A place on an axis that is named.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Tick {
    pub value: f64,
    pub label: String,
}

/// Sets the ticks of a scale, widening a linear one to whole steps.
pub(super) fn place(scale: &mut Scale, quantity: &Quantity, pixels: f64, direction: Direction) {
    let most = match direction {
        Direction::Across => (pixels / 72.0).clamp(1.0, 10.0),
        Direction::Up => (pixels / 44.0).clamp(1.0, 8.0),
    } as usize;
    if scale.spacing == Spacing::Linear {
        for steps in (1..=most).rev() {
            let candidate = linear(scale, quantity, steps);
            let good = fits(&candidate, pixels, direction);
            if good || steps == 1 {
                *scale = candidate;
                if !good {
                    // One label is better than two that touch.
                    scale.ticks.truncate(1);
                }
                return;
            }
        }
    }
    let fewest = if scale.hi / scale.lo >= 4.0 { 2 } else { 3 };
    let all: Vec<Vec<f64>> = match scale.spacing {
        Spacing::Log2 => powers_of_two(scale),
        _ => tens(scale),
    };
    let lists = all.into_iter().filter(|list| list.len() >= fewest);
    for list in lists.chain([within(scale, most), vec![scale.lo, scale.hi]]) {
        let mut candidate = scale.clone();
        candidate.ticks = list
            .into_iter()
            .map(|value| Tick {
                label: name(scale, quantity, value),
                value,
            })
            .collect();
        if fits(&candidate, pixels, direction) {
            *scale = candidate;
            return;
        }
    }
}

/// Whether no two labels come too close.
fn fits(scale: &Scale, pixels: f64, direction: Direction) -> bool {
    let mut end = f64::NEG_INFINITY;
    for tick in &scale.ticks {
        let Some(at) = scale.at(tick.value) else {
            return false;
        };
        let (half, gap) = match direction {
            Direction::Across => (text::width(&tick.label, TICK, false) / 2.0, 10.0),
            Direction::Up => (TICK / 2.0, 8.0),
        };
        if at * pixels - half < end {
            return false;
        }
        end = at * pixels + half + gap;
    }
    true
}

/// At most about so many steps of 1, 2 or 5 times a power of ten, the range rounded outwards.
fn linear(scale: &Scale, quantity: &Quantity, steps: usize) -> Scale {
    let mut out = scale.clone();
    let (size, _) = scale.unit;
    let rough = (scale.hi - scale.lo) / size / steps as f64;
    let power = 10f64.powi(rough.log10().floor() as i32);
    let step = [1.0, 2.0, 5.0, 10.0]
        .iter()
        .map(|round| round * power)
        .find(|step| *step >= rough * 0.75)
        .unwrap_or(10.0 * power);
    let first = (scale.lo / size / step + 1e-9).floor();
    let last = (scale.hi / size / step - 1e-9).ceil().max(first + 1.0);
    let decimals = (-(step.log10() + 1e-9).floor()).max(0.0) as usize;
    let largest = (first * step).abs().max((last * step).abs());
    // Where steps are tiny beside the values, all digits that tell them apart.
    let mantissa = ((largest / step).log10().ceil().max(0.0) as usize).min(8);
    let suffix = if quantity.unit_on_ticks() {
        scale.unit.1
    } else {
        ""
    };
    let count = ((last - first) as usize).min(50);
    out.ticks = (0..=count)
        .map(|i| {
            let value = (first + i as f64) * step;
            let number = if value == 0.0 {
                "0".to_owned()
            } else if largest >= 1e7 || decimals > 6 {
                quantity::exponent(value, mantissa)
            } else {
                quantity::plain(value, decimals)
            };
            Tick {
                value: value * size,
                label: number + suffix,
            }
        })
        .collect();
    out.lo = first * step * size;
    out.hi = (last * step * size).max(out.ticks.last().map_or(out.lo, |t| t.value));
    out
}

/// Powers of two, every one, every second, …, the densest first.
fn powers_of_two(scale: &Scale) -> Vec<Vec<f64>> {
    let (first, last) = (scale.lo.log2() - 1e-6, scale.hi.log2() + 1e-6);
    let range = first.ceil() as i32..=last.floor() as i32;
    [1, 2, 3, 4, 5, 10, 20, 50, 100, 200]
        .map(|stride| {
            let fit = range.clone().filter(|e| e.rem_euclid(stride) == 0);
            fit.map(|e| 2f64.powi(e)).collect()
        })
        .into()
}

/// 1, 2, 5 times powers of ten; 1 and 3; then every power of ten, every second, …
fn tens(scale: &Scale) -> Vec<Vec<f64>> {
    // Round numbers of the unit: with an axis in ms, 1 ms.
    let size = scale.unit.0;
    let (lo, hi) = (
        scale.lo / size * (1.0 - 1e-6),
        scale.hi / size * (1.0 + 1e-6),
    );
    let range = lo.log10().floor() as i32..=hi.log10().floor() as i32;
    let mut lists: Vec<Vec<f64>> = Vec::new();
    for digits in [&[1.0, 2.0, 5.0][..], &[1.0, 3.0], &[1.0]] {
        let all = range.clone().flat_map(|e| {
            digits.iter().map(move |digit| {
                // Division keeps 0.2 what people write as 0.2.
                if e < 0 {
                    digit / 10f64.powi(-e)
                } else {
                    digit * 10f64.powi(e)
                }
            })
        });
        lists.push(
            all.filter(|v| (lo..=hi).contains(v))
                .map(|v| v * size)
                .collect(),
        );
    }
    for stride in [2, 3, 5, 10, 20, 50] {
        let fit = range.clone().filter(|e| e.rem_euclid(stride) == 0);
        lists.push(
            fit.map(|e| 10f64.powi(e))
                .filter(|v| (lo..=hi).contains(v))
                .map(|v| v * size)
                .collect(),
        );
    }
    lists
}

/// Linear steps on a logarithmic axis so short that it has no two powers.
fn within(scale: &Scale, most: usize) -> Vec<f64> {
    let flat = Scale {
        spacing: Spacing::Linear,
        ..scale.clone()
    };
    let steps = linear(&flat, &Quantity::Number, most.min(5));
    let inside = steps.ticks.iter().map(|tick| tick.value);
    inside
        .filter(|v| (scale.lo..=scale.hi).contains(v))
        .collect()
}

/// A tick of a logarithmic axis.
fn name(scale: &Scale, quantity: &Quantity, value: f64) -> String {
    match quantity {
        Quantity::Bytes => quantity.show(value),
        // Over many powers of ten one unit would need many noughts.
        Quantity::Seconds | Quantity::Rate if scale.hi / scale.lo > 2e3 => quantity.show(value),
        _ => {
            let number = value / scale.unit.0;
            let whole = number.fract() == 0.0 && number.abs() < 1e7;
            let text = if whole {
                format!("{number}")
            } else {
                quantity::digits(number)
            };
            let text = if text.contains('.') && !text.contains('e') {
                text.trim_end_matches('0').trim_end_matches('.').to_owned()
            } else {
                text
            };
            if quantity.unit_on_ticks() {
                text + scale.unit.1
            } else {
                text
            }
        }
    }
}
