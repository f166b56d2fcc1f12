//! What a shipped topology was off by where it was judged: read from the committed report.
//!
//! Only reports of cases that were predicted before anybody had measured them count, and of those the
//! last one.

/// Reports, the last one last.
const REPORTS: [&str; 1] = [include_str!(
    "../../experiments/h200-pair/report-seventh.md"
)];

/// How a topology's times held.
#[derive(Clone, Debug, PartialEq)]
pub struct Held {
    pub experiment: String,
    /// When its cases were measured, `2026-11-30`.
    pub date: String,
    pub cases: usize,
    /// Mean of |predicted / measured − 1| over cases \[0–1\].
    pub mape: f64,
    /// The largest, as the report states it.
    pub worst: String,
}

/// How times of the topology of this name held; `None` where nothing was measured of it.
pub fn held(topology: &str) -> Option<Held> {
    REPORTS
        .iter()
        .rev()
        .find_map(|report| read(report, topology))
}

/// Reads a report, if it is of this topology.
fn read(report: &str, topology: &str) -> Option<Held> {
    let title = report
        .lines()
        .find_map(|line| line.strip_prefix("# Validation of `"))?;
    let rows = || {
        let lines = report.lines().filter(|line| line.starts_with('|'));
        lines.map(|line| line.split('|').map(str::trim).collect::<Vec<_>>())
    };
    let fact = |name: &str| rows().find(|row| row.get(1) == Some(&name));
    let from = format!("`{topology}`, content ");
    fact("predicted from")?.get(2)?.strip_prefix(&from)?;
    // `| length | what | n | MAPE | 95 % | wMAPE | MAE | bias | worst | where |`: the first row is of all.
    let all = rows().find(|row| row.get(2) == Some(&"all"))?;
    let percent = all.get(4)?.strip_suffix(" %")?;
    Some(Held {
        experiment: title.trim_end_matches('`').to_owned(),
        date: (*fact("date")?.get(2)?).to_owned(),
        cases: all.get(3)?.parse().ok()?,
        mape: percent.parse::<f64>().ok()? / 100.0,
        worst: (*all.get(9)?).to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const REPORT: &str = "# Validation of `grid`

|                |                                    |
| -------------- | ---------------------------------- |
| machine        | 2x-box                             |
| date           | 2026-11-30                         |
| predicted from | `a-box`, content 93bc4f07060f0d02 |

| cases  |                     |   n |   MAPE | 95 %           |  wMAPE |      MAE |    bias |   worst | where |
| ------ | ------------------- | --: | -----: | -------------- | -----: | -------: | ------: | ------: | ----- |
|        | all                 | 297 | 3.78 % | 2.65 to 5.29 % | 3.15 % | 22.89 us | -1.33 % | 89.42 % | case  |
| length | longer than 300 us  | 202 | 3.47 % | 2.43 to 4.80 % | 3.01 % | 29.34 us | -2.53 % | 25.33 % | case  |
";

    #[test]
    fn a_report_says_how_its_topology_held() {
        let wanted = Held {
            experiment: "grid".into(),
            date: "2026-11-30".into(),
            cases: 297,
            mape: 0.0378,
            worst: "89.42 %".into(),
        };
        assert_eq!(read(REPORT, "a-box"), Some(wanted));
        assert_eq!(read(REPORT, "a"), None);
        assert_eq!(read("", "a-box"), None);
        assert_eq!(read(&REPORT.replace("3.78 %", "–"), "a-box"), None);
    }

    #[test]
    fn the_calibrated_pair_has_a_report() {
        let held = held("h200-pair-calibrated").unwrap();
        assert!(held.cases >= 200 && held.mape > 0.0 && held.mape < 0.1);
        assert!(held.experiment.starts_with("h200-pair-"));
        assert_eq!(super::held("h200-pair"), None);
    }
}
