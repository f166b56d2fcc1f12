//! The broken files of `tests/bad/table/`, see [`crate::corpus`].

use duet::calibrate::table::{parse, read};
use duet::input::decode;
use proptest::prelude::*;

use crate::corpus::every_file_is_explained;

#[test]
fn every_broken_file_is_explained() {
    every_file_is_explained("table", "csv", |name, bytes| match decode(name, bytes) {
        Err(error) => Some(error),
        Ok(text) => parse(name, text).err().map(|error| error.to_string()),
    });
}

#[test]
fn a_file_that_cannot_be_read_is_named() {
    let error = read("no/such.csv".as_ref()).unwrap_err().to_string();
    assert!(error.starts_with("cannot read `no/such.csv`: "), "{error}");
    assert!(read(".".as_ref()).is_err());
}

const HEADER: &str =
    "topology,operator,m,n,k,bytes,tp,dtype,launch,strategy,makespan_s,weight,skipped";

proptest! {
    /// Whatever stands in the cells, there is an answer, and a mistake has a place.
    #[test]
    fn any_cells_have_an_answer(rows in prop::collection::vec(prop::collection::vec(
        prop_oneof![
            Just("8"), Just("a6000-pairs-8"), Just("ag-gemm"), Just("all-gather"), Just("bf16"), Just("0"), Just("1e-3"), Just("-1"),
            Just(""), Just("sequential"), Just("\"a\nb\""), Just("\""), Just("\u{feff}"), Just("18446744073709551615"), Just("é"),
        ], 11..14), 0..4)) {
        let text = rows.iter().fold(HEADER.to_owned(), |text, row| text + "\n" + &row.join(","));
        if let Err(error) = parse("times.csv", &text) {
            prop_assert!(error.to_string().contains("--> times.csv:"), "{}", error);
        }
    }

    #[test]
    fn any_text_has_an_answer(text in "\\PC*|[a-z,\"\n\r;\t]{0,60}") {
        if let Err(error) = parse("times.csv", &text) {
            prop_assert!(error.to_string().contains("--> times.csv:"), "{}", error);
        }
    }
}
