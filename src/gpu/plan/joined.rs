//! Products with gates that follow one another in a stream as one launch.

use super::{Area, Step, What};
use crate::gpu::tiles::Tile;
use crate::schedule::Extent;

/// Products of one kernel, whose rows are those of one A.
///
/// They stay steps of their own, each where what it waits for has been issued; the launch takes place at
/// the first. Nothing lies between them in their stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Joined {
    /// In the order of their stream.
    pub steps: Vec<usize>,
    /// All of A, and B.
    pub a: Area,
    pub b: Area,
    /// By step: its rows of A.
    pub rows: Vec<Extent>,
    /// Whether any of them adds.
    pub accumulate: bool,
}

/// What can be joined of a plan's steps, whose elements have `size` bytes.
pub(super) fn joined(steps: &[Step], size: u64) -> Vec<Joined> {
    let mut streams: Vec<_> = steps.iter().map(|step| step.stream).collect();
    streams.sort_unstable();
    streams.dedup();
    let mut all = Vec::new();
    for stream in streams {
        let here: Vec<usize> = (0..steps.len())
            .filter(|&at| steps[at].stream == stream)
            .collect();
        let kernel = |at: usize| match steps[at].what {
            What::Gated { kernel, .. } => Some(kernel),
            _ => None,
        };
        let chains = here.chunk_by(|&a, &b| kernel(a).is_some() && kernel(a) == kernel(b));
        all.extend(chains.filter_map(|chain| join(steps, chain, size)));
    }
    all.sort_by_key(|joined| joined.steps[0]);
    all
}

/// Products that follow one another as one, if they are rows of one A without gaps, in whole bands of every tile:
/// a tile is stored when all that it waits for is there, which may wait for what is stored before.
fn join(steps: &[Step], chain: &[usize], size: u64) -> Option<Joined> {
    let [_, _, ..] = chain else { return None };
    let mut areas = Vec::with_capacity(chain.len());
    let (mut accumulate, mut loads_late) = (false, false);
    for &at in chain {
        let What::Gated {
            a,
            b,
            out,
            groups,
            accumulate: adds,
            ..
        } = &steps[at].what
        else {
            return None;
        };
        accumulate |= adds;
        loads_late |= !adds && groups.iter().any(|rows| !rows.flags.is_empty());
        areas.push((*a, *b, *out));
    }
    // A kernel that adds waits before it adds, not before it loads rows of A.
    if accumulate && loads_late {
        return None;
    }
    let &(first, b, out) = areas.iter().min_by_key(|(a, ..)| a.at)?;
    let mut rows = Vec::with_capacity(chain.len());
    for (a, other, c) in &areas {
        let pitch = u64::from(first.ld) * size;
        let start = (a.at - first.at) / pitch.max(1);
        let alike = (a.gpu, a.ld, a.cols) == (first.gpu, first.ld, first.cols)
            && *other == b
            && (c.gpu, c.cols, c.ld) == (out.gpu, out.cols, out.ld)
            && (a.at - first.at).is_multiple_of(pitch.max(1));
        rows.push(Extent::new(
            u32::try_from(start).ok().filter(|_| alike)?,
            a.rows,
        ));
    }
    let mut sorted = rows.clone();
    sorted.sort_by_key(|rows| rows.start);
    let follow = sorted
        .windows(2)
        .all(|pair| pair[0].start + pair[0].len == pair[1].start);
    let whole = sorted
        .iter()
        .all(|rows| rows.start.is_multiple_of(Tile::BANDS));
    let a = Area {
        rows: rows.iter().map(|rows| rows.len).sum(),
        ..first
    };
    (follow && whole).then_some(Joined {
        steps: chain.to_vec(),
        a,
        b,
        rows,
        accumulate,
    })
}
