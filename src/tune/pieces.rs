//! Shapes that would be simulated for hours: every piece of a copy through the host is an event.

use crate::gpu::campaign::path_name;
use crate::gpu::plan::Path;
use crate::operator::{Kind, Shape};
use crate::validate::key::Group;

/// Most pieces of a shape: with so many, hundreds of settings are simulated in about a minute.
const MOST: u64 = 1 << 16;

/// Pieces in which what all ranks send at least goes through the host; 0 without a path through it.
///
/// ⌈share · tp · bytes of a rank / piece⌉, where a piece is whole rows, as the simulator cuts them, and
/// every two ranks are on two GPUs.
fn pieces(group: &Group) -> u64 {
    let (share, chunk) = match group.path {
        Path::P2p => return 0,
        Path::Host { chunk } => (1.0, chunk),
        Path::Hybrid { host_share, chunk } => (host_share, chunk),
    };
    let operator = &group.operator;
    let columns = match (operator.kind, operator.shape) {
        (Kind::AgGemm, Shape::Gemm { k, .. }) => k,
        (_, Shape::Gemm { n, .. }) => n,
        (_, Shape::Bytes(_)) => 1,
    };
    let row = (columns * operator.dtype.size()).max(1);
    let piece = (chunk / row).max(1).saturating_mul(row);
    let sent = share * f64::from(operator.tp) * operator.bytes_per_rank();
    (sent / piece as f64).ceil() as u64
}

/// Refuses a shape whose copies come in too many pieces.
///
/// # Errors
/// The reason and the remedy.
pub fn patient(group: &Group) -> Result<(), String> {
    let count = pieces(group);
    if count <= MOST {
        return Ok(());
    }
    let larger = |times: u64| {
        let path = match group.path {
            Path::P2p => Path::P2p,
            Path::Host { chunk } => Path::Host {
                chunk: chunk.saturating_mul(times),
            },
            Path::Hybrid { host_share, chunk } => Path::Hybrid {
                host_share,
                chunk: chunk.saturating_mul(times),
            },
        };
        Group {
            path,
            ..group.clone()
        }
    };
    let fitting = (1..u64::BITS).map(|power| larger(1 << power));
    let fitting = fitting.into_iter().find(|other| pieces(other) <= MOST);
    let path = fitting.map_or_else(|| "p2p".to_owned(), |other| path_name(&other.path));
    Err(format!(
        "`{group}` has {count} pieces that go through the host, and hundreds of settings are simulated\n  help: choose larger pieces for at most {MOST} of them, such as `{path}`, or a smaller shape"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(group: &str) -> Result<(), String> {
        patient(&group.parse().unwrap())
    }

    /// tp · S · (tp − 1) / tp bytes, S = 2·m·k, in pieces of whole rows of 2·k bytes.
    #[test]
    fn pieces_are_whole_rows_of_what_is_sent() {
        let count = |group: &str| pieces(&group.parse().unwrap());
        assert_eq!(count("ag-gemm/1024x64x512/bf16/2on2/p2p/stream"), 0);
        assert_eq!(count("ag-gemm/1024x64x512/bf16/2on2/host:4KiB/stream"), 256);
        // A piece holds a row at least; 5 KiB hold five.
        assert_eq!(count("ag-gemm/1024x64x512/bf16/2on2/host:1B/stream"), 1024);
        assert_eq!(
            count("ag-gemm/1024x64x512/bf16/2on2/host:5500B/stream"),
            205
        );
        assert_eq!(
            count("gemm-ar/1024x512x64/bf16/4on4/hybrid:0.25:1KiB/stream"),
            1536
        );
    }

    #[test]
    fn too_many_pieces_are_refused_with_a_size_that_is_not() {
        let shape = "ag-gemm/1048576x65536x65536/bf16/2on2";
        let words = |path: &str, count: u64, better: &str| {
            format!(
                "`{shape}/{path}/stream` has {count} pieces that go through the host, and hundreds of settings are simulated\n  help: choose larger pieces for at most 65536 of them, such as `{better}`, or a smaller shape"
            )
        };
        for (path, count, better) in [
            ("host:64KiB", 1 << 20, "host:2MiB"),
            ("hybrid:0.5:64KiB", 1 << 19, "hybrid:0.5:1MiB"),
        ] {
            let found = said(&format!("{shape}/{path}/stream"));
            assert_eq!(found, Err(words(path, count, better)));
            assert_eq!(said(&format!("{shape}/{better}/stream")), Ok(()));
        }
        assert_eq!(said(&format!("{shape}/p2p/stream")), Ok(()));
    }
}
