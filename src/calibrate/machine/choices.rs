//! Which algorithm the GEMM library takes: asked for many shapes, which takes no GPU time.
//!
//! First those that are timed and those of experiments, then columns (k, n) that models' layers have, then
//! finer and finer lattices of them while there is time. What the library answers hangs on its version and
//! the GPU's kind, not on the machine. Raw samples hold the rows asked for; for each column those it has
//! besides, and where other algorithms begin; and each algorithm when it is met for the first time:
//!
//! ```text
//! choices,rows,192,rows,16 32 48 …
//! choices,algorithm tile 64×256; stages of 64; clusters of 2×4; swizzle 0; custom 3; inner 0,0,place,0
//! choices,rows k8192n5120,1,rows,500
//! choices,lt k8192n5120,2,rows:place,16:0 320:3
//! choices,sms,108,sms,108
//! choices,beside k8192n5120,2,rows:place,16:0 272:4
//! ```

use std::collections::{BTreeMap, BTreeSet};

use super::Section;
use super::book::Book;
use super::kernels::Kernel;
use super::lab::Lab;
use super::products::problem;
use super::shapes::{self, asked_rows};
use crate::gpu::GpuError;
use crate::gpu::lt::{Config, Problem};

pub const SECTION: Section = Section {
    name: "choices",
    about: "algorithms of the GEMM library",
    share: 10,
    run,
};

fn run(lab: &Lab<'_>, book: &Book<'_>) -> Result<(), GpuError> {
    let listed = !lab.listed.is_empty();
    let mut known = match listed {
        true => lab.listed.iter().map(|wanted| wanted.shape).collect(),
        false => shapes::measured(lab.quick),
    };
    known.extend(lab.asked.iter().copied());
    let gemms = lab.units[0].gemms.borrow();
    let more = match lab.quick || listed {
        true => Vec::new(),
        false => shapes::asked(),
    };
    let all = lab.units[0].gpu.attributes().sms;
    let left = all.saturating_sub(lab.collective).max(1);
    book.raw("sms", f64::from(left), "sms", &[f64::from(left)]);
    asked(book, (&known, &more), left, |shape, beside| {
        let problem = Problem {
            sms: if beside { left } else { 0 },
            ..problem(shape)
        };
        let guesses = gemms.guesses(problem, 1)?;
        Ok(guesses.into_iter().next().map(|guess| guess.config))
    })
}

/// Asks for the algorithms of the columns `known`, then of `more`, until the section's time is up.
fn asked(
    book: &Book<'_>,
    (known, more): (&[[u64; 3]], &[(u64, u64)]),
    left: u32,
    mut ask: impl FnMut([u64; 3], bool) -> Result<Option<Config>, GpuError>,
) -> Result<(), GpuError> {
    let mut own: BTreeMap<(u64, u64), BTreeSet<u64>> = BTreeMap::new();
    for &[m, n, k] in known {
        own.entry((k, n)).or_default().insert(m);
    }
    let mut all: Vec<(u64, u64)> = own.keys().copied().collect();
    all.extend(more.iter().filter(|c| !own.contains_key(c)));
    let rows = asked_rows();
    let mut places: BTreeMap<String, usize> = BTreeMap::new();
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
        for beside in [false, true] {
            let (mut last, mut starts) = (None, Vec::new());
            for &m in &all {
                let Some(config) = ask([m, n, k], beside)? else {
                    continue;
                };
                match Kernel::of(&config) {
                    Some(kernel) if beside => book.choice_beside(left, (k, n), m, kernel),
                    Some(kernel) => book.choice((k, n), m, kernel),
                    None => {}
                }
                // Rows with the algorithm of the row before are left out.
                if last != Some(config) {
                    let numbers = config.numbers;
                    let words = format!(
                        "{config}, swizzle {}, custom {}, inner {}",
                        numbers.swizzle, numbers.custom, numbers.inner
                    );
                    let next = places.len();
                    let place = *places.entry(words.clone()).or_insert(next);
                    if place == next {
                        let case = format!("algorithm {words}");
                        book.words(&case, place as f64, "place", &place.to_string());
                    }
                    starts.push(format!("{m}:{place}"));
                    last = Some(config);
                }
            }
            let count = starts.len() as f64;
            let word = if beside { "beside" } else { "lt" };
            book.words(
                &format!("{word} k{k}n{n}"),
                count,
                "rows:place",
                &starts.join(" "),
            );
        }
    }
    Ok(())
}
