//! What the tensors are: random matrices, their products, and functions of them.

use super::{InterpretError, LIMIT, PRIME, Random};
use crate::schedule::{Compute, Extent, Schedule, Slice};

/// How the elements of a tensor come about.
#[derive(Clone, Debug)]
enum Source {
    /// Drawn, every contribution on its own.
    Drawn,
    /// Contribution c of element (i, j) is a(i, c) · b(c, j).
    Product(usize, usize),
    /// A function of the same elements of other tensors.
    Map(Vec<usize>),
}

/// The complete tensors.
pub(crate) struct Reference {
    seed: u64,
    sources: Vec<Source>,
    /// By tensor, row-major; every contribution summed.
    full: Vec<Vec<u64>>,
    cols: Vec<usize>,
}

/// A function without structure, so that no error cancels out.
pub(crate) fn map(inputs: impl Iterator<Item = u64>) -> u64 {
    inputs.fold(7, |h, x| (h * 1_000_003 + x * x % PRIME + 1) % PRIME)
}

impl Reference {
    pub(crate) fn new(schedule: &Schedule, seed: u64) -> Result<Self, InterpretError> {
        let count = schedule.tensors.len();
        let mut reference = Self {
            seed,
            sources: vec![Source::Drawn; count],
            full: vec![Vec::new(); count],
            cols: schedule.tensors.iter().map(|t| t.cols as usize).collect(),
        };
        let tensor_of = |slice: &Slice| {
            let buffer = schedule.buffers.get(slice.buffer.index())?;
            (buffer.tensor.index() < count).then_some(buffer.tensor.index())
        };
        let mut stated = vec![false; count];
        for compute in &schedule.computes {
            let (out, source) = match compute {
                Compute::Gemm { a, b, out, .. } => match (tensor_of(a), tensor_of(b)) {
                    (Some(a), Some(b)) => (out, Source::Product(a, b)),
                    _ => continue,
                },
                Compute::Pointwise { inputs, out, .. } => {
                    let inputs: Option<Vec<usize>> = inputs.iter().map(tensor_of).collect();
                    match inputs {
                        Some(inputs) => (out, Source::Map(inputs)),
                        None => continue,
                    }
                }
                Compute::Reduce { .. } => continue,
            };
            if let Some(out) = tensor_of(out)
                && !std::mem::replace(&mut stated[out], true)
            {
                reference.sources[out] = source;
            }
        }
        let mut known = vec![false; count];
        while let Some(next) = (0..count).find(|&t| !known[t] && reference.ready(t, &known)) {
            reference.fill(schedule, next)?;
            known[next] = true;
        }
        match known.iter().position(|k| !k) {
            None => Ok(reference),
            Some(tensor) => Err(InterpretError::Broken {
                place: format!("tensor {}", schedule.tensors[tensor].name),
                problem: "it is made of itself".into(),
            }),
        }
    }

    fn ready(&self, tensor: usize, known: &[bool]) -> bool {
        match &self.sources[tensor] {
            Source::Drawn => true,
            Source::Product(a, b) => known[*a] && known[*b],
            Source::Map(inputs) => inputs.iter().all(|&i| known[i]),
        }
    }

    fn fill(&mut self, schedule: &Schedule, tensor: usize) -> Result<(), InterpretError> {
        let t = &schedule.tensors[tensor];
        let fits = match &self.sources[tensor] {
            Source::Drawn => true,
            Source::Product(a, b) => {
                let (a, b) = (&schedule.tensors[*a], &schedule.tensors[*b]);
                (t.rows, t.cols, t.contributions, b.rows) == (a.rows, b.cols, a.cols, a.cols)
            }
            Source::Map(inputs) => inputs
                .iter()
                .all(|&i| (schedule.tensors[i].rows, schedule.tensors[i].cols) == (t.rows, t.cols)),
        };
        if !fits {
            return Err(InterpretError::Broken {
                place: format!("tensor {}", t.name),
                problem: "its shape is not that of what it is made of".into(),
            });
        }
        let elements = u64::from(t.rows) * u64::from(t.cols);
        let size = elements.saturating_mul(u64::from(t.contributions));
        if size > LIMIT {
            let what = "the contributions of a tensor";
            return Err(InterpretError::TooLarge { what, size });
        }
        let all = Extent::new(0, t.contributions);
        let mut full = Vec::with_capacity(elements as usize);
        for row in 0..t.rows {
            for col in 0..t.cols {
                full.push(self.sum(tensor, row, col, all));
            }
        }
        self.full[tensor] = full;
        Ok(())
    }

    /// Element `(row, col)` with these contributions; all of them must exist.
    pub(crate) fn sum(&self, tensor: usize, row: u32, col: u32, of: Extent) -> u64 {
        let range = of.start..of.start + of.len;
        match &self.sources[tensor] {
            Source::Drawn => range.fold(0, |sum, c| (sum + self.draw(tensor, row, col, c)) % PRIME),
            Source::Product(a, b) => range.fold(0, |sum, c| {
                (sum + self.at(*a, row, c) * self.at(*b, c, col)) % PRIME
            }),
            Source::Map(inputs) => map(inputs.iter().map(|&i| self.at(i, row, col))),
        }
    }

    /// Element `(row, col)`, complete.
    pub(crate) fn at(&self, tensor: usize, row: u32, col: u32) -> u64 {
        self.full[tensor][row as usize * self.cols[tensor] + col as usize]
    }

    fn draw(&self, tensor: usize, row: u32, col: u32, contribution: u32) -> u64 {
        let place = (u64::from(row) << 32 | u64::from(col))
            ^ (u64::from(contribution) << 16)
            ^ ((tensor as u64) << 56);
        let mut random = Random::new(self.seed ^ Random::new(place).next());
        random.next();
        random.next() % PRIME
    }
}
