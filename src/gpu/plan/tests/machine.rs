//! The memory of the emulated GPUs and the work on it: numbers modulo a prime at the addresses
//! that the plan states, everything that nobody wrote poisoned, the padding of rows included.

use crate::gpu::plan::{Area, Plan, Slot, What};
use crate::schedule::interpret::reference::{self, Reference};
use crate::schedule::interpret::{POISON, PRIME};
use crate::schedule::{CollectiveKind, Role, Schedule};

/// What a step reads or writes.
#[derive(Copy, Clone, Debug, PartialEq)]
pub(super) enum Memory {
    Area(Area),
    Slot(Slot, u32, u32),
}

/// A matrix, row-major.
#[derive(Clone, Debug)]
pub(super) struct Matrix {
    rows: usize,
    cols: usize,
    at: Vec<u64>,
}

pub(super) struct Machine {
    element: u64,
    halves: Vec<u64>,
    arenas: Vec<Vec<u64>>,
    staging: Vec<(u64, Vec<u64>)>,
    pub flags: Vec<u32>,
}

impl Machine {
    pub(super) fn new(plan: &Plan) -> Self {
        let element = plan.dtype.size();
        let poison = |bytes: u64| vec![POISON; (bytes / element) as usize];
        Self {
            element,
            halves: plan.arenas.iter().map(|a| a.half / element).collect(),
            arenas: plan.arenas.iter().map(|a| poison(2 * a.half)).collect(),
            staging: plan
                .staging
                .iter()
                .map(|s| {
                    let each = s.bytes / element;
                    (each, poison(u64::from(s.slots) * each * element))
                })
                .collect(),
            flags: vec![0; plan.flags.len()],
        }
    }

    /// Poisons one half of every arena and fills the inputs.
    pub(super) fn fill(
        &mut self,
        plan: &Plan,
        schedule: &Schedule,
        reference: &Reference,
        parity: u64,
    ) {
        for (arena, &half) in self.arenas.iter_mut().zip(&self.halves) {
            arena[(parity * half) as usize..((parity + 1) * half) as usize].fill(POISON);
        }
        for (buffer, place) in schedule.buffers.iter().zip(&plan.places) {
            if !matches!(buffer.role, Role::Input | Role::InputOutput) {
                continue;
            }
            for piece in buffer.pieces.iter().filter(|p| p.initial.len > 0) {
                for r in 0..piece.rows.len {
                    for c in 0..piece.cols.len {
                        let (i, j) = (piece.global_row + r, piece.global_col + c);
                        let value = reference.sum(buffer.tensor.index(), i, j, piece.initial);
                        let (row, col) = (piece.rows.start + r, piece.cols.start + c);
                        *self.element(&place.area, parity, row, col) = value;
                    }
                }
            }
        }
    }

    /// Whether the outputs are the plain product.
    pub(super) fn check(
        &mut self,
        plan: &Plan,
        schedule: &Schedule,
        reference: &Reference,
        parity: u64,
    ) -> Result<(), String> {
        for (buffer, place) in schedule.buffers.iter().zip(&plan.places) {
            if !matches!(buffer.role, Role::Output | Role::InputOutput) {
                continue;
            }
            for piece in &buffer.pieces {
                for r in 0..piece.rows.len {
                    for c in 0..piece.cols.len {
                        let (row, col) = (piece.rows.start + r, piece.cols.start + c);
                        let found = *self.element(&place.area, parity, row, col);
                        let (i, j) = (piece.global_row + r, piece.global_col + c);
                        let expected = reference.at(buffer.tensor.index(), i, j);
                        if found != expected {
                            return Err(format!(
                                "{}[rank {}] ends with {found} instead of {expected} in row {row}, column {col}",
                                buffer.name, buffer.rank.0
                            ));
                        }
                    }
                }
            }
        }
        Ok(())
    }

    fn element(&mut self, area: &Area, parity: u64, row: u32, col: u32) -> &mut u64 {
        let half = self.halves[area.gpu.index()];
        let at = parity * half
            + area.at / self.element
            + u64::from(row) * u64::from(area.ld)
            + u64::from(col);
        assert!(
            at < (parity + 1) * half,
            "an address outside the run's half"
        );
        &mut self.arenas[area.gpu.index()][at as usize]
    }

    fn load(&mut self, memory: &Memory, parity: u64) -> Matrix {
        match *memory {
            Memory::Area(area) => {
                let mut at = Vec::new();
                for row in 0..area.rows {
                    for col in 0..area.cols {
                        at.push(*self.element(&area, parity, row, col));
                    }
                }
                let (rows, cols) = (area.rows as usize, area.cols as usize);
                Matrix { rows, cols, at }
            }
            Memory::Slot(slot, rows, cols) => {
                let (each, memory) = &self.staging[slot.staging.index()];
                let first = (each * u64::from(slot.slot)) as usize;
                let (rows, cols) = (rows as usize, cols as usize);
                assert!(
                    rows * cols <= *each as usize,
                    "a chunk larger than its slot"
                );
                let at = memory[first..first + rows * cols].to_vec();
                Matrix { rows, cols, at }
            }
        }
    }

    pub(super) fn store(&mut self, memory: &Memory, matrix: &Matrix, parity: u64) {
        match *memory {
            Memory::Area(area) => {
                let shape = (area.rows as usize, area.cols as usize);
                assert_eq!((matrix.rows, matrix.cols), shape);
                for row in 0..area.rows {
                    for col in 0..area.cols {
                        let at = row as usize * matrix.cols + col as usize;
                        *self.element(&area, parity, row, col) = matrix.at[at];
                    }
                }
            }
            Memory::Slot(slot, ..) => {
                let (each, memory) = &mut self.staging[slot.staging.index()];
                let first = (*each * u64::from(slot.slot)) as usize;
                assert!(
                    matrix.at.len() <= *each as usize,
                    "a chunk larger than its slot"
                );
                memory[first..first + matrix.at.len()].copy_from_slice(&matrix.at);
            }
        }
    }

    /// What a step computes, for each of what it writes.
    pub(super) fn compute(&mut self, plan: &Plan, what: &What, parity: u64) -> Vec<Matrix> {
        let (reads, _) = touches(plan, what);
        let inputs: Vec<Matrix> = reads.iter().map(|m| self.load(m, parity)).collect();
        match what {
            What::Gemm { .. } | What::Gated { .. } => {
                let mut out = multiply(&inputs[0], &inputs[1]);
                if let Some(before) = inputs.get(2) {
                    out = sum(&[before.clone(), out]);
                }
                vec![out]
            }
            What::Add { .. } => vec![sum(&inputs)],
            What::Pointwise { .. } => {
                let mut out = inputs[0].clone();
                for (i, at) in out.at.iter_mut().enumerate() {
                    let values = || inputs.iter().map(|m| m.at[i]);
                    *at = match values().any(|x| x == POISON) {
                        true => POISON,
                        false => reference::map(values()),
                    };
                }
                vec![out]
            }
            _ => inputs,
        }
    }

    /// The outputs of all members of a call.
    pub(super) fn call(&mut self, plan: &Plan, call: usize, parity: u64) -> Vec<Matrix> {
        let call = &plan.collectives[call];
        let inputs: Vec<Matrix> = call
            .members
            .iter()
            .map(|m| self.load(&Memory::Area(rows(&m.input)), parity))
            .collect();
        let p = inputs.len();
        let block = |m: &Matrix, j: usize| {
            let rows = m.rows / p;
            Matrix {
                rows,
                cols: m.cols,
                at: m.at[j * rows * m.cols..(j + 1) * rows * m.cols].to_vec(),
            }
        };
        let stack = |parts: Vec<Matrix>| Matrix {
            rows: parts.iter().map(|m| m.rows).sum(),
            cols: parts[0].cols,
            at: parts.into_iter().flat_map(|m| m.at).collect(),
        };
        match call.kind {
            CollectiveKind::AllGather => vec![stack(inputs); p],
            CollectiveKind::AllReduce => vec![sum(&inputs); p],
            CollectiveKind::ReduceScatter => {
                let total = sum(&inputs);
                (0..p).map(|j| block(&total, j)).collect()
            }
            CollectiveKind::AllToAll => (0..p)
                .map(|j| stack(inputs.iter().map(|m| block(m, j)).collect()))
                .collect(),
        }
    }
}

/// The library moves whole rows, padding included.
pub(super) fn rows(area: &Area) -> Area {
    Area {
        cols: area.ld,
        ..*area
    }
}

/// What a step reads, and what it writes; a member of a call its own part.
pub(super) fn touches(plan: &Plan, what: &What) -> (Vec<Memory>, Vec<Memory>) {
    use Memory::Area as A;
    match what {
        What::Copy { from, to } | What::CopyKernel { from, to, .. } => {
            (vec![A(*from)], vec![A(*to)])
        }
        What::ToHost { from, to } => (
            vec![A(*from)],
            vec![Memory::Slot(*to, from.rows, from.cols)],
        ),
        What::FromHost { from, to } => (vec![Memory::Slot(*from, to.rows, to.cols)], vec![A(*to)]),
        What::Gemm {
            a,
            b,
            out,
            accumulate,
            ..
        }
        | What::Gated {
            a,
            b,
            out,
            accumulate,
            ..
        } => {
            let mut reads = vec![A(*a), A(*b)];
            if *accumulate {
                reads.push(A(*out));
            }
            (reads, vec![A(*out)])
        }
        What::Add { inputs, out } | What::Pointwise { inputs, out, .. } => {
            (inputs.iter().map(|i| A(*i)).collect(), vec![A(*out)])
        }
        What::Collective { call, member } => {
            let party = &plan.collectives[call.index()].members[usize::from(*member)];
            (vec![A(rows(&party.input))], vec![A(rows(&party.output))])
        }
        What::Record(_) | What::Await(_) | What::WriteFlag(_) | What::AwaitFlag(_) => {
            (Vec::new(), Vec::new())
        }
    }
}

fn add(a: u64, b: u64) -> u64 {
    match a == POISON || b == POISON {
        true => POISON,
        false => (a + b) % PRIME,
    }
}

fn multiply(a: &Matrix, b: &Matrix) -> Matrix {
    assert_eq!(a.cols, b.rows);
    let mut at = vec![0; a.rows * b.cols];
    for i in 0..a.rows {
        for k in 0..a.cols {
            let x = a.at[i * a.cols + k];
            for j in 0..b.cols {
                let y = b.at[k * b.cols + j];
                let product = match x == POISON || y == POISON {
                    true => POISON,
                    false => x * y % PRIME,
                };
                let sum = &mut at[i * b.cols + j];
                *sum = add(*sum, product);
            }
        }
    }
    Matrix {
        rows: a.rows,
        cols: b.cols,
        at,
    }
}

fn sum(inputs: &[Matrix]) -> Matrix {
    let mut out = inputs[0].clone();
    for input in &inputs[1..] {
        assert_eq!((input.rows, input.cols), (out.rows, out.cols));
        for (at, x) in out.at.iter_mut().zip(&input.at) {
            *at = add(*at, *x);
        }
    }
    out
}
