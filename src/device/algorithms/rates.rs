//! What the kernels of a GEMM library reach.

use crate::device::gemm::library::Rates;
use crate::input::yaml::Node;
use crate::input::{Diagnostics, Fields};
use crate::units::{Bytes, BytesPerSecond, Seconds};

/// Largest factor, and the inverse of the least.
const MOST: f64 = 20.0;

/// The rates of kernels; `None` with a mistake pushed when they are wrong.
pub(super) fn read_rates(node: &Node, found: &mut Diagnostics) -> Option<Rates> {
    let mut fields = Fields::of(node, "rates of GEMM kernels", found)?;
    let mut part = |key| {
        let node = fields.need(key, "0.95", found)?;
        factor(node, node.word(key, found)?, found)
    };
    let (arithmetic, memory, overhead) = (part("arithmetic"), part("memory"), part("overhead"));
    let load: Option<BytesPerSecond> = positive(&mut fields, "load", "110 GB/s", found, |r| {
        BytesPerSecond::get(*r)
    });
    let epilogue: Option<Seconds> = fields
        .need("epilogue", "2.5 us", found)
        .and_then(|node| node.parse("epilogue", found));
    let partials = positive(&mut fields, "partials", "2.4 TB/s", found, |r| {
        BytesPerSecond::get(*r)
    });
    let latency: Option<Seconds> = fields.parse("latency", found);
    let cached: Option<Bytes> = fields.parse("cached", found);
    let reduction: Option<Seconds> = fields.parse("reduction", found);
    fields.finish(found);
    Some(Rates {
        arithmetic: arithmetic?,
        memory: memory?,
        overhead: overhead?,
        load: load?,
        epilogue: epilogue?,
        partials: partials?,
        latency: latency.unwrap_or_default(),
        cached: cached.map_or(0.0, Bytes::as_f64),
        reduction: reduction.unwrap_or_default(),
    })
}

/// A rate of at least one byte a second.
fn positive<'n>(
    fields: &mut Fields<'n>,
    key: &'static str,
    example: &str,
    found: &mut Diagnostics,
    get: impl Fn(&BytesPerSecond) -> f64,
) -> Option<BytesPerSecond> {
    let node = fields.need(key, example, found)?;
    let rate: BytesPerSecond = node.parse(key, found)?;
    if !(1.0..f64::INFINITY).contains(&get(&rate)) {
        found.push(node.wrong(
            format!("`{key}` cannot be {rate}"),
            "expected a finite rate of at least 1 byte a second",
        ));
        return None;
    }
    Some(rate)
}

/// A factor near 1, or a mistake pushed.
pub(super) fn factor(node: &Node, text: &str, found: &mut Diagnostics) -> Option<f64> {
    let number = text.parse::<f64>().ok();
    let number = number.filter(|number| (1.0 / MOST..=MOST).contains(number));
    if number.is_none() {
        let label = format!("expected a number from {} to {MOST}", 1.0 / MOST);
        found.push(node.wrong(format!("`{text}` is no factor"), label));
    }
    number
}
