//! Settings in words.

use crate::gpu::plan::{Flags, Library, Mode, Path, Products};
use crate::topology::paths::{PathChoice, PathError};
use crate::units::Bytes;

/// `p2p`, `host:CHUNK` or `hybrid:SHARE:CHUNK`, for tables; [`read_path`] reads it.
pub fn path_name(path: &Path) -> String {
    choice_of(path).to_string()
}

/// The path that [`path_name`] names, by the rules of [`PathChoice`].
///
/// # Errors
/// [`PathError`].
pub fn read_path(text: &str) -> Result<Path, PathError> {
    text.parse().map(path_of)
}

/// The path of a machine as GPUs perform it.
pub fn path_of(choice: PathChoice) -> Path {
    match choice {
        PathChoice::Routes => Path::P2p,
        PathChoice::Host { chunk } => Path::Host { chunk: chunk.get() },
        PathChoice::Hybrid { share, chunk } => Path::Hybrid {
            host_share: share,
            chunk: chunk.get(),
        },
    }
}

/// The path that GPUs perform as a machine's, the inverse of [`path_of`].
pub fn choice_of(path: &Path) -> PathChoice {
    match *path {
        Path::P2p => PathChoice::Routes,
        Path::Host { chunk } => PathChoice::Host {
            chunk: Bytes::new(chunk),
        },
        Path::Hybrid { host_share, chunk } => PathChoice::Hybrid {
            share: host_share,
            chunk: Bytes::new(chunk),
        },
    }
}

/// `stream` or `graph`.
pub const fn mode_name(mode: Mode) -> &'static str {
    match mode {
        Mode::Stream => "stream",
        Mode::Graph => "graph",
    }
}

/// `nccl`, `nccl-registered`, `nccl-window` or `copies`.
pub const fn library_name(library: Library) -> &'static str {
    match library {
        Library::Nccl => "nccl",
        Library::NcclRegistered => "nccl-registered",
        Library::NcclWindow => "nccl-window",
        Library::Copies => "copies",
    }
}

/// `library` or `duet`.
pub const fn products_name(products: Products) -> &'static str {
    match products {
        Products::Library => "library",
        Products::Own => "duet",
    }
}

/// `value`, `value-and-event` or `event`.
pub const fn flags_name(flags: Flags) -> &'static str {
    match flags {
        Flags::Value => "value",
        Flags::ValueAndEvent => "value-and-event",
        Flags::Event => "event",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::topology::paths::size;

    #[test]
    fn paths_are_written_in_usual_units_and_read_back() {
        let chunks = [1, 1000, 1024, 3 << 10, 2 << 20, (2 << 20) + 1, 1 << 30];
        for chunk in chunks {
            let host_share = 0.125;
            for path in [
                Path::P2p,
                Path::Host { chunk },
                Path::Hybrid { host_share, chunk },
            ] {
                assert_eq!(read_path(&path_name(&path)), Ok(path));
            }
        }
        assert_eq!(path_name(&Path::Host { chunk: 2 << 20 }), "host:2MiB");
        assert_eq!(size(Bytes::ZERO), "0B");
        let wrong = [
            "",
            "host",
            "host:x",
            "host:0B",
            "hybrid:1MiB",
            "hybrid:-1:2MiB",
            "hybrid:nan:2MiB",
            "hybrid:inf:2MiB",
            "hybrid:1.5:2MiB",
            "p2p:1B",
            "host:1B:1B",
        ];
        for text in wrong {
            assert_eq!(
                read_path(text).unwrap_err().to_string(),
                format!(
                    "`{text}` is no path: write p2p, host:CHUNK or hybrid:SHARE:CHUNK, e.g. host:2MiB or hybrid:0.1:2MiB, with a chunk above 0 and a share from 0 to 1"
                )
            );
        }
    }
}
