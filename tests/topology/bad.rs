//! The broken files of `tests/bad/topology/`, see [`crate::corpus`].

use duet::input::decode;
use duet::topology::parse;

use crate::corpus::every_file_is_explained;
use crate::resolve;

#[test]
fn every_broken_file_is_explained() {
    every_file_is_explained("topology", "yaml", |name, bytes| {
        match decode(name, bytes) {
            Err(error) => Some(error),
            Ok(text) => parse(text, name, &[], &resolve)
                .err()
                .map(|error| error.to_string()),
        }
    });
}
