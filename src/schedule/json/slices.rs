//! Extents and slices.

use rustc_hash::FxHashMap;

use super::names::{Names, quoted};
use crate::input::yaml::Node;
use crate::input::{Diagnostics, Fields};
use crate::schedule::{Buffer, BufferId, Extent, Rank, Slice};

/// `[start, end]` or `[start, end)` as two numbers, end excluded, at most `most`.
pub(super) fn extent(
    node: &Node,
    key: &str,
    most: u32,
    empty: bool,
    found: &mut Diagnostics,
) -> Option<Extent> {
    let [start, end] = pair(node, key, "[first, end]", u64::from(u32::MAX), found)?;
    let ordered = if empty { start <= end } else { start < end };
    if !ordered || end > most {
        found.push(
            node.wrong(
                format!("`{key}` from {start} to {end} is no range of 0..{most}"),
                "expected [first, end], end excluded",
            )
            .help(format!("write e.g. `\"{key}\": [0, {most}]`")),
        );
        return None;
    }
    Some(Extent::new(start, end - start))
}

/// Two whole numbers.
pub(super) fn pair(
    node: &Node,
    key: &str,
    form: &str,
    most: u64,
    found: &mut Diagnostics,
) -> Option<[u32; 2]> {
    match node.list(&format!("two numbers {form}"), found)? {
        [a, b] => Some([
            a.whole(key, 0, most, found)? as u32,
            b.whole(key, 0, most, found)? as u32,
        ]),
        _ => {
            let label = format!("expected two numbers {form}");
            found.push(node.wrong(format!("`{key}` is no pair"), label));
            None
        }
    }
}

/// The buffers of a file, by name within each rank.
#[derive(Debug, Default)]
pub(super) struct Buffers {
    by_rank: FxHashMap<u16, Names>,
    /// Rank, rows, columns and slots of each.
    shapes: Vec<(Rank, u32, u32, u16)>,
}

impl Buffers {
    pub(super) fn push(&mut self, buffer: &Buffer) {
        let number = self.shapes.len() as u32;
        self.by_rank
            .entry(buffer.rank.0)
            .or_insert_with(|| Names::new("buffer"))
            .add(&buffer.name, number);
        let (rows, cols) = (buffer.rows, buffer.cols);
        self.shapes.push((buffer.rank, rows, cols, buffer.slots));
    }

    /// A slice `{buffer, rank, slot, rows, cols}`; everything but the buffer may be left out, the
    /// rank being `rank` then.
    pub(super) fn slice(
        &self,
        node: &Node,
        rank: Rank,
        text: &str,
        found: &mut Diagnostics,
    ) -> Option<Slice> {
        let mut fields = Fields::of(node, "a slice", found)?;
        let buffer = super::tables::need(&mut fields, "buffer", "\"A\"", found);
        let stated = fields.get("rank");
        let slot = fields.get("slot");
        let (rows, cols) = (fields.get("rows"), fields.get("cols"));
        fields.finish(found);
        let (buffer, number) = (buffer?, self.shapes.len() as u64);
        let rank = match stated {
            Some(node) => Rank(node.whole("rank", 0, u64::from(u16::MAX), found)? as u16),
            None => rank,
        };
        let index = if quoted(buffer, text) {
            match self.by_rank.get(&rank.0) {
                Some(names) => names.find(buffer, text, found)?,
                None => {
                    let message = format!("rank {} has no buffers", rank.0);
                    let mistake = buffer.wrong(message, "looked for here");
                    found.push(mistake.help("declare the buffer or correct the rank"));
                    return None;
                }
            }
        } else {
            buffer.whole("buffer", 0, number.saturating_sub(1), found)? as u32
        };
        let Some(&(owner, height, width, slots)) = self.shapes.get(index as usize) else {
            let mistake = buffer.wrong("there are no buffers", "none is declared");
            found.push(mistake.help("declare them under `buffers`"));
            return None;
        };
        if let (Some(node), true) = (stated, owner != rank) {
            let message = format!("buffer {index} belongs to rank {}", owner.0);
            let mistake = node.wrong(message, "another rank");
            found.push(mistake.help("leave `rank` out where the buffer is a number"));
            return None;
        }
        let slot = match slot {
            Some(node) => node.whole("slot", 0, u64::from(slots) - 1, found)? as u16,
            None => 0,
        };
        let mut part = |node: Option<&Node>, key, of| match node {
            Some(node) => extent(node, key, of, false, found),
            None => Some(Extent::new(0, of)),
        };
        Some(Slice {
            buffer: BufferId(index),
            slot,
            rows: part(rows, "rows", height)?,
            cols: part(cols, "cols", width)?,
        })
    }
}
