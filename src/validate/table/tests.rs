//! Rows are read as written, and mistakes have a place.

use super::*;

const ROW: &str = "gemm-rs/64x64x64/bf16/4on2/host:2MiB/graph/interdecom:d=4,gemm-rs,bf16,64,64,64,4,2,0 0 1 1,host:2MiB,graph,copies,interdecom:d=4,2,10,yes,20.50,20.10,20.90,20.00;21.00,,no,,no,,,,,a,1,2,2026-11-30,7\n";

fn says(row: &str) -> String {
    parse("m.csv", &(header() + row)).unwrap_err().to_string()
}

#[test]
fn rows_are_written_as_read() {
    let rows = parse("m.csv", &(header() + ROW)).unwrap();
    assert_eq!(rows[0].line(), ROW);
    let excluded = ROW.replace(
        "20.50,20.10,20.90,20.00;21.00,,no,,no,,",
        ",,,,,no,,yes,\"ungated, at all\",",
    );
    let rows = parse("m.csv", &(header() + &excluded)).unwrap();
    assert_eq!(
        (rows[0].excluded.as_deref(), rows[0].makespan),
        (Some("ungated, at all"), None)
    );
    assert_eq!(rows[0].line(), excluded);
}

#[test]
fn mistakes_have_a_place_and_a_remedy() {
    let text = says(&ROW.replace("20.50", "20.60"));
    assert!(
        text.starts_with("error: not the median of the samples, which is 20.50"),
        "{text}"
    );
    assert!(text.contains("m.csv:2:"), "{text}");
    for (part, with, what) in [
        (",4,2,0 0 1 1", ",4,2,0 1 0 1", "help: write `0 0 1 1`"),
        ("copies", "copys", "`copys` is no library"),
        (",yes,20", ",maybe,20", "`maybe` is neither `yes` nor `no`"),
        ("20.00;21.00", "20.00;x", "`x` is not a time above 0"),
        ("20.00;21.00", "20.50", "1 samples of 2 rounds"),
        (
            "20.10,20.90",
            "20.00,20.90",
            "not the 10th percentile of the samples, which is 20.10",
        ),
        (
            "20.10,20.90",
            "20.10,",
            "not the 90th percentile of the samples, which is 20.90",
        ),
        (
            ",no,,,,,a",
            ",no,why,,,,a",
            "a reason in a row that is not excluded",
        ),
        (
            ",no,,,,,a",
            ",yes,,,,,a",
            "an excluded row without a reason",
        ),
        (",7\n", "\n", "the row has 32 cells, the header 33"),
        (",7\n", ",x\n", "`x` is not a seed"),
    ] {
        assert!(ROW.contains(part), "{part}");
        let text = says(&ROW.replacen(part, with, 1));
        assert!(
            text.contains(what) && text.contains("m.csv:2:"),
            "{what}: {text}"
        );
    }
    assert!(says(&(ROW.to_owned() + ROW)).contains("this case is there twice"));
    let error = |text: &str| parse("m.csv", text).unwrap_err().to_string();
    assert!(error("").contains("the file is empty"));
    assert!(error("a,b\n").contains("this is not a table of measured times"));
    assert!(error(&header().replace("seed", "sed")).contains("did you mean `seed`?"));
    assert!(error(&header().replace("seed", "case")).contains("the column `case` is there twice"));
}
