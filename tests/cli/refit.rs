//! `duet calibrate --refit`: samples that cannot be what a calibration took.

use std::fs;
use std::path::PathBuf;

use super::failure;

const FOLDER: &str = "experiments/calibration/measured/2026-11-30-h200";

/// A file of raw samples, removed at the end.
struct Raw(PathBuf);

impl Raw {
    fn new(name: &str, text: &str) -> Self {
        let name = format!("duet-refit-{name}-{}.csv", std::process::id());
        let file = std::env::temp_dir().join(name);
        fs::write(&file, text).unwrap();
        Self(file)
    }
}

impl Drop for Raw {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}

fn refit(options: &str) -> (i32, String) {
    failure(&format!(
        "calibrate --refit {FOLDER}-pair-fourth.yaml --raw {FOLDER}-pair-fourth.csv --out /dev/null {options}"
    ))
}

#[test]
fn samples_are_whole_and_of_their_section() {
    let torn = Raw::new("torn", "section,case,x,unit,samples\nchoices,algorithm ");
    let name = torn.0.display();
    for option in ["--choices", "--other"] {
        let wanted = format!(
            "error: {name}:2:1: this is no line of raw samples, which have 5 columns\n  help: give the file that `duet calibrate --raw` wrote, whole and unchanged\n"
        );
        assert_eq!(refit(&format!("{option} {name}")), (3, wanted));
    }
    let wanted = format!(
        "error: no sample of `{FOLDER}-choices.csv` is of the section `gemm`\n  help: give what `duet calibrate --only gemm --raw FILE` wrote\n"
    );
    assert_eq!(refit(&format!("--other {FOLDER}-choices.csv")), (3, wanted));
}

/// What is damaged, where, and what is said of it.
const DAMAGED: [(&str, &str, &str); 11] = [
    ("choices,rows,1,rows,16 a", "24", "`a` is no number of rows"),
    ("choices,rows,1,rows,16 0", "24", "`0` is no number of rows"),
    ("choices,rows,nan,rows,16", "14", "`nan` is no whole number"),
    ("choices,sms,0,sms,0", "19", "`0` is no number of SMs"),
    (
        "choices,rows k0n64,1,rows,16",
        "14",
        "`k0n64` is no column, `k4096n1024`",
    ),
    (
        "choices,lt k18446744073709551615n64,1,rows:place,16:0",
        "12",
        "`k18446744073709551615n64` is no column, `k4096n1024`",
    ),
    (
        "choices,lt k64n64,1,rows:place,16:9999",
        "32",
        "`16:9999` is no choice, rows and the place of an algorithm above, `512:3`",
    ),
    (
        "choices,beside k64n64,1,rows:place,16",
        "36",
        "`16` is no choice, rows and the place of an algorithm above, `512:3`",
    ),
    (
        "choices,algorithm tile 0×0; stages of 64,0,place,0",
        "24",
        "`0×0` is no extent of a tile or cluster, nor a number of parts",
    ),
    (
        "choices,algorithm tile 64×64; k in 0 parts,0,place,0",
        "36",
        "`0` is no extent of a tile or cluster, nor a number of parts",
    ),
    (
        "gemm,k64n64 gpu0,128,us,1.0 x",
        "29",
        "`x` is no time in microseconds",
    ),
];

#[test]
fn what_is_damaged_is_named_by_file_and_line() {
    for (line, column, words) in DAMAGED {
        let option = match line.starts_with("gemm") {
            true => "--other",
            false => "--choices",
        };
        let file = Raw::new("damaged", &format!("section,case,x,unit,samples\n{line}\n"));
        let name = file.0.display();
        let wanted = format!(
            "error: {name}:2:{column}: {words}\n  help: give the file of raw samples that the calibration wrote, unchanged\n"
        );
        assert_eq!(refit(&format!("{option} {name}")), (3, wanted), "{line}");
    }
}

/// 200 SMs beside collectives are more than the GPU has; each line is right by itself.
#[test]
fn what_cannot_be_read_back_is_not_written() {
    let all = fs::read_to_string(format!("{FOLDER}-choices.csv")).unwrap();
    let file = Raw::new("sms", &all.replace("choices,sms,108,", "choices,sms,200,"));
    let out = std::env::temp_dir().join(format!("duet-refit-{}.yaml", std::process::id()));
    let (code, text) = failure(&format!(
        "calibrate --refit {FOLDER}-pair-fourth.yaml --raw {FOLDER}-pair-fourth.csv --choices {} --out {}",
        file.0.display(),
        out.display()
    ));
    let begin = format!(
        "error: what these samples say cannot be read back, so nothing is written\n  help: give samples as `duet calibrate` took them\nerror: a collective leaves 200 SMs\n    --> {}:",
        out.display()
    );
    assert_eq!(code, 3, "{text}");
    assert!(text.starts_with(&begin), "{text}");
    assert!(
        text.ends_with("   = help: write how many SMs a GEMM has beside it\n"),
        "{text}"
    );
    assert!(!out.exists());
}
