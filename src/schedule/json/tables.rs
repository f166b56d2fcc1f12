//! Everything of a file but the tasks.

use super::names::Names;
use super::slices::{extent, pair};
use super::{COLLECTIVES, LIBRARIES, ROLES};
use crate::device::DType;
use crate::input::yaml::Node;
use crate::input::{Diagnostic, Diagnostics, Fields};
use crate::operator::{Kind, Operator, Shape};
use crate::schedule::{
    Buffer, Collective, Extent, Lane, Launch, Piece, Rank, Role, Tensor, TensorId,
};

/// The value of a key that must be there, or a mistake pushed.
pub(super) fn need<'n>(
    fields: &mut Fields<'n>,
    key: &'static str,
    example: &str,
    found: &mut Diagnostics,
) -> Option<&'n Node> {
    let node = fields.get(key);
    if node.is_none() {
        let mistake = fields
            .node()
            .wrong(format!("`{key}` is missing"), "in this object");
        found.push(mistake.help(format!("add e.g. `\"{key}\": {example}`")));
    }
    node
}

/// A whole number that must be there.
pub(super) fn need_whole(
    fields: &mut Fields<'_>,
    key: &'static str,
    (least, most): (u64, u64),
    found: &mut Diagnostics,
) -> Option<u64> {
    need(fields, key, &least.to_string(), found)?.whole(key, least, most, found)
}

/// A word of a table.
pub(super) fn choose<T: Copy>(
    node: &Node,
    key: &str,
    table: &[(&str, T)],
    found: &mut Diagnostics,
) -> Option<T> {
    let words: Vec<&str> = table.iter().map(|(word, _)| *word).collect();
    node.choice(key, &words, found).map(|at| table[at].1)
}

pub(super) fn rank(node: &Node, ranks: u32, found: &mut Diagnostics) -> Option<Rank> {
    let most = u64::from(ranks.clamp(1, 1 << 16) - 1);
    Some(Rank(node.whole("rank", 0, most, found)? as u16))
}

fn need_rank(fields: &mut Fields<'_>, ranks: u32, found: &mut Diagnostics) -> Option<Rank> {
    rank(need(fields, "rank", "0", found)?, ranks, found)
}

const SIZE: (u64, u64) = (1, u32::MAX as u64);

pub(super) fn operator(node: &Node, found: &mut Diagnostics) -> Option<Operator> {
    let mut fields = Fields::of(node, "the operator", found)?;
    let kinds = Kind::ALL.map(|kind| (kind.name(), kind));
    let kind = need(&mut fields, "kind", "\"ag-gemm\"", found)
        .and_then(|node| choose(node, "kind", &kinds, found));
    let types = DType::ALL.map(|dtype| (dtype.name(), dtype));
    let dtype = match fields.get("dtype") {
        Some(node) => choose(node, "dtype", &types, found),
        None => Some(DType::default()),
    };
    let tp = need_whole(&mut fields, "tp", (1, 1 << 16), found);
    let kind = kind?;
    let shape = if kind.is_fused() {
        let sizes = ["m", "n", "k"].map(|key| need_whole(&mut fields, key, SIZE, found));
        match sizes {
            [Some(m), Some(n), Some(k)] => Some(Shape::Gemm { m, n, k }),
            _ => None,
        }
    } else {
        need(&mut fields, "bytes", "\"64 MiB\"", found)
            .and_then(|node| node.parse("bytes", found))
            .map(Shape::Bytes)
    };
    fields.finish(found);
    let operator = Operator {
        kind,
        shape: shape?,
        tp: tp? as u32,
        dtype: dtype?,
    };
    if let Err(error) = operator.check() {
        let words = error.to_string();
        found.push(Diagnostic::from_words(
            node.span.clone(),
            "this operator",
            &words,
        ));
        return None;
    }
    Some(operator)
}

/// GPU numbers by rank.
pub(super) fn placement(node: &Node, ranks: u32, found: &mut Diagnostics) -> Option<Vec<u32>> {
    let nodes = node.list("a list of GPU numbers, one per rank", found)?;
    if nodes.len() != ranks as usize {
        let message = format!("{} GPUs for {ranks} ranks", nodes.len());
        let mistake = node.wrong(message, format!("expected {ranks} numbers"));
        found.push(mistake.help("name one GPU for each rank; several ranks may share one"));
        return None;
    }
    nodes
        .iter()
        .map(|node| Some(node.whole("placement", 0, u64::from(u32::MAX), found)? as u32))
        .collect()
}

pub(super) fn tensor(node: &Node, found: &mut Diagnostics) -> Option<Tensor> {
    let mut fields = Fields::of(node, "a tensor", found)?;
    let name = need(&mut fields, "name", "\"A\"", found).and_then(|n| n.word("name", found));
    let rows = need_whole(&mut fields, "rows", SIZE, found);
    let cols = need_whole(&mut fields, "cols", SIZE, found);
    let contributions = match fields.get("contributions") {
        Some(node) => node.whole("contributions", 1, SIZE.1, found),
        None => Some(1),
    };
    fields.finish(found);
    Some(Tensor {
        name: name?.to_owned(),
        rows: rows? as u32,
        cols: cols? as u32,
        contributions: contributions? as u32,
    })
}

pub(super) fn buffer(
    node: &Node,
    ranks: u32,
    (tensors, names): (&[Tensor], &Names),
    text: &str,
    found: &mut Diagnostics,
) -> Option<Buffer> {
    let mut fields = Fields::of(node, "a buffer", found)?;
    let name = need(&mut fields, "name", "\"A\"", found).and_then(|n| n.word("name", found));
    let rank = need_rank(&mut fields, ranks, found);
    let tensor =
        need(&mut fields, "tensor", "\"A\"", found).and_then(|node| names.find(node, text, found));
    let rows = need_whole(&mut fields, "rows", SIZE, found);
    let cols = need_whole(&mut fields, "cols", SIZE, found);
    let slots = match fields.get("slots") {
        Some(node) => node.whole("slots", 1, u64::from(u16::MAX), found),
        None => Some(1),
    };
    let role = match fields.get("role") {
        Some(node) => choose(node, "role", &ROLES, found),
        None => Some(Role::Scratch),
    };
    let pieces = fields.get("pieces");
    fields.finish(found);
    let tensor = tensor?;
    let mut buffer = Buffer {
        name: name?.to_owned(),
        tensor: TensorId(tensor),
        rank: rank?,
        rows: rows? as u32,
        cols: cols? as u32,
        slots: slots? as u16,
        role: role?,
        pieces: Vec::new(),
    };
    let of = tensors.get(tensor as usize)?;
    if let Some(node) = pieces {
        for node in node.list("a list of pieces", found)? {
            let piece = piece(node, &buffer, of, found)?;
            buffer.pieces.push(piece);
        }
    }
    Some(buffer)
}

fn piece(node: &Node, buffer: &Buffer, of: &Tensor, found: &mut Diagnostics) -> Option<Piece> {
    let mut fields = Fields::of(node, "a piece", found)?;
    let mut part = |key, most, found: &mut Diagnostics| match fields.get(key) {
        Some(node) => extent(node, key, most, false, found),
        None => Some(Extent::new(0, most)),
    };
    let rows = part("rows", buffer.rows, found);
    let cols = part("cols", buffer.cols, found);
    let place = need(&mut fields, "at", "[0, 0]", found);
    let initial = match fields.get("initial") {
        Some(node) => extent(node, "initial", of.contributions, true, found),
        None => Some(Extent::new(0, 0)),
    };
    fields.finish(found);
    let (rows, cols, place) = (rows?, cols?, place?);
    let [global_row, global_col] = pair(place, "at", "[row, column]", u64::from(u32::MAX), found)?;
    let inside = Extent::new(0, of.rows).contains(Extent::new(global_row, rows.len))
        && Extent::new(0, of.cols).contains(Extent::new(global_col, cols.len));
    if !inside {
        let message = format!(
            "{} x {} elements at row {global_row}, column {global_col} leave {} ({} x {})",
            rows.len, cols.len, of.name, of.rows, of.cols
        );
        let mistake = place.wrong(message, "where the piece begins in the tensor");
        found.push(mistake.help("move the piece or make it smaller"));
        return None;
    }
    Some(Piece {
        rows,
        cols,
        global_row,
        global_col,
        initial: initial?,
    })
}

pub(super) fn lane(node: &Node, found: &mut Diagnostics) -> Option<(Lane, String)> {
    let mut fields = Fields::of(node, "a lane", found)?;
    let lane = need_whole(&mut fields, "lane", (0, u64::from(u16::MAX)), found);
    let name = need(&mut fields, "name", "\"compute\"", found).and_then(|n| n.word("name", found));
    fields.finish(found);
    Some((Lane(lane? as u16), name?.to_owned()))
}

pub(super) fn launch(node: &Node, ranks: u32, found: &mut Diagnostics) -> Option<Launch> {
    let mut fields = Fields::of(node, "a launch", found)?;
    let name = need(&mut fields, "name", "\"gemm\"", found).and_then(|n| n.word("name", found));
    let rank = need_rank(&mut fields, ranks, found);
    let sms = sms(&mut fields, found);
    fields.finish(found);
    Some(Launch {
        name: name?.to_owned(),
        rank: rank?,
        sms: sms?,
    })
}

/// `sms`, 0 where absent.
pub(super) fn sms(fields: &mut Fields<'_>, found: &mut Diagnostics) -> Option<u16> {
    match fields.get("sms") {
        Some(node) => Some(node.whole("sms", 0, u64::from(u16::MAX), found)? as u16),
        None => Some(0),
    }
}

/// A collective still without members: its name, itself, its ring of ranks if stated.
pub(super) fn collective(
    node: &Node,
    ranks: u32,
    found: &mut Diagnostics,
) -> Option<(String, Collective, Option<Vec<Rank>>)> {
    let mut fields = Fields::of(node, "a collective", found)?;
    let name = match fields.get("name") {
        Some(node) => node.word("name", found),
        None => Some(""),
    };
    let kind = need(&mut fields, "kind", "\"all-gather\"", found)
        .and_then(|node| choose(node, "kind", &COLLECTIVES, found));
    let library = match fields.get("library") {
        Some(node) => choose(node, "library", &LIBRARIES, found),
        None => Some(LIBRARIES[0].1),
    };
    let sms = sms(&mut fields, found);
    let ring = fields.get("ring");
    fields.finish(found);
    let ring = match ring {
        Some(node) => {
            let nodes = node.list("a list of ranks in ring order", found)?;
            let ranks: Option<Vec<Rank>> = nodes.iter().map(|n| rank(n, ranks, found)).collect();
            Some(ranks?)
        }
        None => None,
    };
    let collective = Collective {
        kind: kind?,
        library: library?,
        sms: sms?,
        members: Vec::new(),
    };
    Some((name?.to_owned(), collective, ring))
}
