//! What a calibration writes down: raw samples at once, facts and remarks for the profile.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::io::{self, Write};
use std::time::{Duration, Instant};

use super::estimate::Estimate;
use super::kernels::{Beside, Choices, Kernel};

/// First line of the raw samples.
pub const HEADER: &str = "section,case,x,unit,samples\n";

/// A measured GEMM: `m × k` times `k × n`.
#[derive(Copy, Clone, Debug, PartialEq)]
pub struct Product {
    pub m: u64,
    pub n: u64,
    pub k: u64,
    /// One of several in a row, start included \[s\].
    pub time: Estimate,
    /// The first of several, from when the GPU was told to begin \[s\].
    pub alone: Estimate,
    /// What the library takes for it.
    pub kernel: Option<Kernel>,
}

impl Product {
    /// The GEMM `[m, n, k]` as it was timed; one that only ran `alone` is freed of what being the
    /// first costs, `first` \[s\].
    pub fn new(
        [m, n, k]: [u64; 3],
        alone: Estimate,
        in_a_row: Option<Estimate>,
        first: f64,
        kernel: Option<Kernel>,
    ) -> Self {
        let time = in_a_row.unwrap_or_else(|| alone.map(|time| time - first));
        Self {
            m,
            n,
            k,
            time,
            alone,
            kernel,
        }
    }
}

/// The record of one calibration.
pub struct Book<'w> {
    raw: RefCell<Box<dyn Write + 'w>>,
    failed: RefCell<Option<io::Error>>,
    section: Cell<&'static str>,
    deadline: Cell<Instant>,
    notes: RefCell<Vec<String>>,
    facts: RefCell<BTreeMap<String, Estimate>>,
    products: RefCell<Vec<Product>>,
    choices: RefCell<Choices>,
    beside: RefCell<Beside>,
}

impl std::fmt::Debug for Book<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Book")
            .field("facts", &self.facts)
            .finish_non_exhaustive()
    }
}

impl<'w> Book<'w> {
    /// An empty record whose raw samples go to `raw`.
    pub fn new(raw: impl Write + 'w) -> Self {
        let book = Self {
            raw: RefCell::new(Box::new(raw)),
            failed: RefCell::default(),
            section: Cell::new(""),
            deadline: Cell::new(Instant::now()),
            notes: RefCell::default(),
            facts: RefCell::default(),
            products: RefCell::default(),
            choices: RefCell::default(),
            beside: RefCell::default(),
        };
        book.write(HEADER);
        book
    }

    /// A section begins that may take so long.
    pub fn begin(&self, section: &'static str, budget: Duration) {
        self.section.set(section);
        self.deadline.set(Instant::now() + budget);
    }

    /// What is left of the section's time.
    pub fn left(&self) -> Duration {
        self.deadline
            .get()
            .saturating_duration_since(Instant::now())
    }

    /// Whether the section's time is up; what it has until then is used.
    pub fn spent(&self) -> bool {
        Instant::now() > self.deadline.get()
    }

    fn write(&self, text: &str) {
        let mut raw = self.raw.borrow_mut();
        let result = raw.write_all(text.as_bytes()).and_then(|()| raw.flush());
        if let Err(error) = result {
            self.failed.borrow_mut().get_or_insert(error);
        }
    }

    /// Raw samples of a case at `x`: bytes, blocks, a number of calls. Times are seconds.
    pub fn raw(&self, case: &str, x: f64, unit: &str, samples: &[f64]) {
        let of_time = unit == "us";
        let text: Vec<String> = samples
            .iter()
            .map(|&s| match of_time {
                true => short(s * 1e6),
                false => short(s),
            })
            .collect();
        self.words(case, x, unit, &text.join(" "));
    }

    /// As [`Self::raw`] with samples in words.
    pub fn words(&self, case: &str, x: f64, unit: &str, text: &str) {
        let section = self.section.get();
        let case = case.replace(',', ";");
        self.write(&format!("{section},{case},{x},{unit},{text}\n"));
    }

    /// Times of a case \[s\], written in microseconds.
    pub fn times(&self, case: &str, x: f64, samples: &[f64]) {
        self.raw(case, x, "us", samples);
    }

    /// Keeps a fact under its name, in base units, unless there is none.
    pub fn fact(&self, name: &str, value: Option<Estimate>) {
        if let Some(value) = value {
            self.facts.borrow_mut().insert(name.to_owned(), value);
        }
    }

    /// A fact that was found.
    pub fn get(&self, name: &str) -> Option<Estimate> {
        self.facts.borrow().get(name).copied()
    }

    /// Keeps a GEMM.
    pub fn product(&self, product: Product) {
        self.products.borrow_mut().push(product);
    }

    /// Keeps what the library takes for m rows of a column (k, n).
    pub fn choice(&self, column: (u64, u64), m: u64, kernel: Kernel) {
        let mut choices = self.choices.borrow_mut();
        choices.entry(column).or_default().insert(m, kernel);
    }

    /// Keeps what the library takes for m rows of a column (k, n) where only `sms` SMs are left.
    pub fn choice_beside(&self, sms: u32, column: (u64, u64), m: u64, kernel: Kernel) {
        let mut beside = self.beside.borrow_mut();
        beside.sms = sms;
        beside.choices.entry(column).or_default().insert(m, kernel);
    }

    /// Something to tell: what was skipped and why.
    pub fn note(&self, text: impl Into<String>) {
        let text = format!("{}: {}", self.section.get(), text.into());
        self.notes.borrow_mut().push(text);
    }

    /// The facts by name.
    pub fn facts(&self) -> BTreeMap<String, Estimate> {
        self.facts.borrow().clone()
    }

    /// The GEMMs in the order of measurement.
    pub fn products(&self) -> Vec<Product> {
        self.products.borrow().clone()
    }

    /// What the library takes.
    pub fn choices(&self) -> Choices {
        self.choices.borrow().clone()
    }

    /// What the library takes beside collectives.
    pub fn beside(&self) -> Beside {
        self.beside.borrow().clone()
    }

    /// What was to be told.
    pub fn notes(&self) -> Vec<String> {
        self.notes.borrow().clone()
    }

    /// Why raw samples could not be written, if so.
    pub fn failed(&self) -> Option<io::Error> {
        self.failed.borrow_mut().take()
    }
}

/// Five significant digits.
fn short(value: f64) -> String {
    let text = format!("{value:.4e}").parse::<f64>();
    text.map_or_else(|_| value.to_string(), |value| value.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_are_lines_at_once() {
        let mut sink = Vec::new();
        {
            let book = Book::new(&mut sink);
            book.begin("copies", Duration::from_secs(60));
            assert!(!book.spent());
            book.times("push, 0-1", 4096.0, &[5.123_456e-6, 1e-3]);
            book.raw("clock", 0.0, "MHz", &[1980.0]);
            book.fact("a", Some(Estimate::exact(2.0, 1)));
            book.fact("b", None);
            assert_eq!(book.facts().len(), 1);
            book.note("nothing");
            assert_eq!(book.notes(), ["copies: nothing"]);
            book.begin("later", Duration::ZERO);
            assert!(book.spent());
            assert!(book.failed().is_none());
        }
        let text = String::from_utf8(sink).unwrap();
        let expected = "copies,push; 0-1,4096,us,5.1235 1000\ncopies,clock,0,MHz,1980\n";
        assert_eq!(text, format!("{HEADER}{expected}"));
    }
}
