//! Settings in words.

use crate::gpu::plan::{Flags, Library, Mode, Path};

/// `p2p`, `host:CHUNK` or `hybrid:SHARE:CHUNK`, for tables.
pub fn path_name(path: &Path) -> String {
    match path {
        Path::P2p => "p2p".to_owned(),
        Path::Host { chunk } => format!("host:{chunk}B"),
        Path::Hybrid { host_share, chunk } => format!("hybrid:{host_share}:{chunk}B"),
    }
}

/// `stream` or `graph`.
pub const fn mode_name(mode: Mode) -> &'static str {
    match mode {
        Mode::Stream => "stream",
        Mode::Graph => "graph",
    }
}

/// `nccl` or `copies`.
pub const fn library_name(library: Library) -> &'static str {
    match library {
        Library::Nccl => "nccl",
        Library::Copies => "copies",
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
