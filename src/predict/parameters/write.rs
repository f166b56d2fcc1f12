//! Parameters as text.

use std::fmt::Write as _;

use super::{Overhead, Parameters};

/// Bytes in a megabyte, microseconds in a second: beta is written in us/MB.
const MICRO: f64 = 1e6;

impl Parameters {
    /// The file's text; what [`Parameters::read`] reads. Numbers are written to 9 significant
    /// digits, far more than any fit knows.
    pub fn write(&self) -> String {
        let mut text =
            String::from("# Overheads of a step: alpha + beta x message. See docs/predict.md.\n");
        if self.is_empty() {
            text.push_str("overheads: []\n");
            return text;
        }
        text.push_str("overheads:\n");
        for (key, overhead) in self.iter() {
            // Writing to a String cannot fail.
            let _ = one(&mut text, key, overhead);
        }
        text
    }
}

fn one(text: &mut String, key: &super::Key, overhead: &Overhead) -> std::fmt::Result {
    let alpha = |seconds: f64| format!("{} us", short(seconds * MICRO));
    let beta = |per_byte: f64| format!("{} us/MB", short(per_byte * MICRO * MICRO));
    writeln!(text, "  - topology: {}", quoted(&key.topology))?;
    writeln!(text, "    operator: {}", key.operator)?;
    writeln!(text, "    tp: {}", key.tp)?;
    writeln!(text, "    strategy: {}", quoted(&key.strategy))?;
    writeln!(text, "    alpha: {}", alpha(overhead.alpha))?;
    writeln!(text, "    beta: {}", beta(overhead.beta))?;
    if let Some([low, high]) = overhead.alpha_interval {
        writeln!(
            text,
            "    alpha_interval: [{}, {}]",
            alpha(low),
            alpha(high)
        )?;
    }
    if let Some([low, high]) = overhead.beta_interval {
        writeln!(text, "    beta_interval: [{}, {}]", beta(low), beta(high))?;
    }
    if let Some(rows) = overhead.rows {
        writeln!(text, "    rows: {rows}")?;
    }
    writeln!(text, "    source: {}", quoted(&overhead.source))
}

/// 9 significant digits, no exponent where a plain number is short.
fn short(value: f64) -> String {
    let rounded: f64 = format!("{value:.8e}").parse().unwrap_or(value);
    format!("{rounded}")
}

/// Text that YAML reads back as it is: in double quotes where it has anything but plain characters.
fn quoted(text: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./=".contains(c);
    let first = text.chars().next().is_some_and(|c| c.is_ascii_alphabetic());
    if first && text.chars().all(plain) {
        return text.to_owned();
    }
    let mut out = String::from("\"");
    for c in text.chars() {
        match c {
            '"' | '\\' => out.extend(['\\', c]),
            c if c.is_control() => {
                let _ = write!(out, "\\U{:08x}", c as u32);
            }
            c => out.push(c),
        }
    }
    out.push('"');
    out
}
