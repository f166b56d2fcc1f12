//! Which algorithm the GEMM library takes: asked for many shapes, which takes no GPU time.
//!
//! First those that are timed and those of experiments, then columns (k, n) that models' layers have, then
//! finer and finer lattices of them while there is time. What the library answers hangs on its version and
//! the GPU's kind, not on the machine. The rows asked for are written first; then for each column those it
//! has besides, and the rows at which another algorithm begins.

use std::collections::{BTreeMap, BTreeSet};

use super::Section;
use super::book::Book;
use super::kernels::Kernel;
use super::lab::Lab;
use super::products::problem;
use super::shapes::{self, asked_rows};
use crate::gpu::GpuError;
use crate::gpu::lt::Config;

pub const SECTION: Section = Section {
    name: "choices",
    about: "algorithms of the GEMM library",
    share: 10,
    run,
};

fn run(lab: &Lab<'_>, book: &Book<'_>) -> Result<(), GpuError> {
    let mut known = shapes::measured(lab.quick);
    known.extend(lab.asked.iter().copied());
    let gemms = lab.units[0].gemms.borrow();
    let more = match lab.quick {
        true => Vec::new(),
        false => shapes::asked(),
    };
    asked(book, &known, &more, |shape| {
        let guesses = gemms.guesses(problem(shape), 1)?;
        Ok(guesses.into_iter().next().map(|guess| guess.config))
    })
}

/// Asks for the algorithms of the columns `known`, then of `more`, until the section's time is up.
fn asked(
    book: &Book<'_>,
    known: &[[u64; 3]],
    more: &[(u64, u64)],
    mut ask: impl FnMut([u64; 3]) -> Result<Option<Config>, GpuError>,
) -> Result<(), GpuError> {
    let mut own: BTreeMap<(u64, u64), BTreeSet<u64>> = BTreeMap::new();
    for &[m, n, k] in known {
        own.entry((k, n)).or_default().insert(m);
    }
    let mut all: Vec<(u64, u64)> = own.keys().copied().collect();
    all.extend(more.iter().filter(|c| !own.contains_key(c)));
    let rows = asked_rows();
    let numbers = |rows: &[u64]| -> Vec<f64> { rows.iter().map(|m| *m as f64).collect() };
    book.raw("rows", rows.len() as f64, "rows", &numbers(&rows));
    for (i, &(k, n)) in all.iter().enumerate() {
        if i > 0 && book.spent() {
            let all = all.len();
            book.note(format!("out of time after {i} of {all} columns"));
            break;
        }
        let own = own.get(&(k, n)).into_iter().flatten().copied();
        let further: Vec<u64> = own.filter(|m| rows.binary_search(m).is_err()).collect();
        if !further.is_empty() {
            let count = further.len() as f64;
            book.raw(&format!("rows k{k}n{n}"), count, "rows", &numbers(&further));
        }
        let all: BTreeSet<u64> = rows.iter().chain(&further).copied().collect();
        let mut last = None;
        for m in all {
            let Some(config) = ask([m, n, k])? else {
                continue;
            };
            if let Some(kernel) = Kernel::of(&config) {
                book.choice((k, n), m, kernel);
            }
            // Rows with the algorithm of the row before are left out.
            if last != Some(config) {
                let numbers = config.numbers;
                let words = format!(
                    "{config}, swizzle {}, custom {}, inner {}",
                    numbers.swizzle, numbers.custom, numbers.inner
                );
                let words = words.replace(',', ";");
                book.raw(
                    &format!("lt k{k}n{n} {words}"),
                    m as f64,
                    "rows",
                    &[m as f64],
                );
                last = Some(config);
            }
        }
    }
    Ok(())
}
