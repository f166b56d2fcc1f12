//! Sizes as products of numbers and axes: `4*hidden`, `seq*batch`, `64 KiB`.

use super::grid::AxisDraft;
use crate::input::yaml::Node;
use crate::input::{Diagnostic, Diagnostics, Span, did_you_mean};
use crate::units::Bytes;

/// A product: a number times some axes.
#[derive(Clone, Debug)]
pub(super) struct Product {
    pub span: Span,
    number: u64,
    /// Indices of axes; one may stand twice.
    pub axes: Vec<usize>,
}

impl Product {
    /// The number 1, written nowhere.
    pub fn one(span: Span) -> Self {
        Self {
            span,
            number: 1,
            axes: Vec::new(),
        }
    }

    /// Its value with a value for every axis; `None` beyond 64 bits.
    pub fn value(&self, values: &[u64]) -> Option<u64> {
        self.axes.iter().try_fold(self.number, |product, &axis| {
            product.checked_mul(values[axis])
        })
    }
}

/// A whole number of at least 1, with or without a unit of bytes.
///
/// # Errors
/// What is wrong and how to put it right, in words.
pub(super) fn whole(text: &str) -> Result<u64, String> {
    let remedy = "write a whole number of at least 1, e.g. `4096`, or bytes, e.g. `64 KiB`";
    let digits = text.bytes().all(|byte| byte.is_ascii_digit()) && !text.is_empty();
    // Tables hold signed numbers of 64 bits.
    let number = match (digits, text.parse::<i64>()) {
        (true, Ok(number)) => number.unsigned_abs(),
        (true, Err(_)) => return Err(format!("`{text}` is not below 2^63: {remedy}")),
        // A bare `-1` or `1.5` is a number without a unit, which says less than this.
        _ if text.parse::<f64>().is_ok() => {
            return Err(format!("`{text}` is no size: {remedy}"));
        }
        _ => text
            .parse::<Bytes>()
            .map(Bytes::get)
            .map_err(|_| format!("`{text}` is no size: {remedy}"))?,
    };
    match number {
        0 => Err(format!("`{text}` is zero: {remedy}")),
        number => Ok(number),
    }
}

/// Reads the product at `node`, or pushes a mistake at the factor at fault.
pub(super) fn read(
    key: &'static str,
    node: &Node,
    text: &str,
    axes: &[AxisDraft<'_>],
    found: &mut Diagnostics,
) -> Option<Product> {
    let word = node.word(key, found)?;
    let written = text.get(node.span.clone()).unwrap_or("");
    let from = node.span.start + written.find(word).unwrap_or(0);
    let mut product = Product::one(node.span.clone());
    let mut at = from;
    let mut sound = true;
    for factor in word.split('*') {
        let start = at + (factor.len() - factor.trim_start().len());
        let name = factor.trim();
        let span = start..start + name.len().max(1);
        at += factor.len() + 1;
        if let Some(axis) = axes.iter().position(|axis| axis.name == name) {
            product.axes.push(axis);
            continue;
        }
        match number(name, axes) {
            Ok(number) => match product.number.checked_mul(number) {
                Some(number) => product.number = number,
                None => {
                    let message = format!("`{key}` is beyond 64 bits");
                    found.push(
                        Diagnostic::new(span, message, "too large").help("write a smaller size"),
                    );
                    sound = false;
                }
            },
            Err(words) => {
                found.push(Diagnostic::from_words(
                    span,
                    "expected a number or an axis",
                    &words,
                ));
                sound = false;
            }
        }
    }
    sound.then_some(product)
}

fn number(name: &str, axes: &[AxisDraft<'_>]) -> Result<u64, String> {
    let numeric = name.starts_with(|c: char| c.is_ascii_digit() || "-+.".contains(c));
    let plain = |c: char| c.is_alphanumeric() || c == '_' || c == '-';
    if name.is_empty() {
        return Err("a factor is missing: write a product such as `4*hidden`".to_owned());
    }
    if name.contains(['/', '+', '(', ')', '^', '%']) || name.trim_start_matches('-').contains(" - ")
    {
        return Err(format!(
            "`{name}` is no product: only `*` joins numbers and axes, as in `4*hidden`; for other sizes add an axis"
        ));
    }
    if numeric {
        return whole(name);
    }
    let remedy = match axes {
        [] => "the grid has no axes; add e.g. `axes: { seq: [1024, 2048] }`".to_owned(),
        axes => did_you_mean(name, axes.iter().map(|axis| axis.name.as_str())),
    };
    match name.chars().all(plain) {
        true => Err(format!("`{name}` is not an axis: {remedy}")),
        false => Err(format!(
            "`{name}` is neither a number nor an axis: {remedy}"
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::whole;

    #[test]
    fn sizes() {
        assert_eq!(whole("4096"), Ok(4096));
        assert_eq!(whole("64 KiB"), Ok(65536));
        for wrong in [
            "0",
            "-1",
            "1.5",
            "0 B",
            "x",
            "",
            "1e400",
            "99999999999999999999",
            "1.5 B",
            "nan",
        ] {
            let words = whole(wrong).unwrap_err();
            assert!(words.contains(": write a whole number"), "{words}");
        }
    }
}
