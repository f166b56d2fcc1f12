//! Results as CSV: written and read back without loss.

use std::collections::BTreeSet;
use std::io::{BufRead, Read};
use std::path::Path;
use std::sync::Arc;

use ::csv::StringRecord;

use super::mistake::{Mistake, Wrong, unread};
use super::{HEAD, MIDDLE, Outcome, Results, ResultsError, Row, TAIL};
use crate::device::DType;
use crate::operator::{Kind, Operator, OperatorError, Shape};
use crate::sim::LaunchMode;
use crate::strategy;
use crate::units::Bytes;

/// The names of all columns.
pub fn header(sets: &[String], axes: &[String]) -> Vec<String> {
    let owned = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
    [
        owned(&HEAD),
        sets.to_vec(),
        owned(&MIDDLE),
        axes.to_vec(),
        owned(&TAIL),
    ]
    .concat()
}

/// The columns that say what a row is about, without those of its outcome.
pub fn identity(row: &Row) -> Vec<String> {
    let whole = |value: Option<u64>| value.map_or_else(String::new, |value| value.to_string());
    let mnk = row.operator.mnk();
    let mut fields = vec![
        row.grid.to_string(),
        row.case.to_string(),
        row.topology.to_string(),
    ];
    fields.extend(
        row.sets
            .iter()
            .map(|set| set.as_deref().unwrap_or("").to_owned()),
    );
    fields.extend([
        row.operator.kind.name().to_owned(),
        whole(mnk.map(|(m, ..)| m)),
        whole(mnk.map(|(_, n, _)| n)),
        whole(mnk.map(|(.., k)| k)),
        match row.operator.shape {
            Shape::Bytes(bytes) => bytes.get().to_string(),
            Shape::Gemm { .. } => String::new(),
        },
        row.operator.tp.to_string(),
        row.operator.dtype.name().to_owned(),
        row.launch.name().to_owned(),
    ]);
    fields.extend(row.axes.iter().map(|value| whole(*value)));
    fields.push(row.strategy.to_string());
    fields
}

/// All columns of a row.
pub fn record(row: &Row) -> Vec<String> {
    let number = |value: f64| format!("{value}");
    let mut fields = identity(row);
    let (makespan, verified, skipped) = match &row.outcome {
        Outcome::Performed { makespan, verified } => {
            (number(*makespan), verified.to_string(), String::new())
        }
        // A row is a line, so that a torn one can be told.
        Outcome::Skipped(reason) => (
            String::new(),
            String::new(),
            reason.replace(['\n', '\r'], " "),
        ),
    };
    fields.extend([
        makespan,
        number(row.unsplit_gemm),
        row.lower_bound.map_or_else(String::new, number),
        verified,
        skipped,
    ]);
    fields
}

/// Fields as a line of the file.
pub fn line(fields: &[String]) -> Vec<u8> {
    let mut writer = ::csv::Writer::from_writer(Vec::new());
    // Writing to memory cannot fail.
    let _ = writer.write_record(fields);
    writer.into_inner().unwrap_or_default()
}

/// A line, its end included, as a row; `None` where it is torn or wrong.
pub(crate) fn read_line(line: &[u8], columns: &Columns, words: &mut Words) -> Option<Row> {
    let mut reader = ::csv::ReaderBuilder::new()
        .has_headers(false)
        .from_reader(line.strip_suffix(b"\n")?);
    let mut record = StringRecord::new();
    let found = reader.read_record(&mut record).ok()?;
    found.then(|| columns.row(&record, words).ok()).flatten()
}

/// Reads a file written by [`record`]s under a [`header`].
pub(super) fn read(path: &Path) -> Result<Results, ResultsError> {
    let unreadable = |error: std::io::Error| ResultsError::Unreadable {
        path: path.display().to_string(),
        reason: error.to_string(),
    };
    let file = std::fs::File::open(path).map_err(unreadable)?;
    from_reader(file).map_err(|mistake| {
        // Only now the whole text is needed, to show the place.
        let bytes = std::fs::read(path).map_err(unreadable);
        bytes.map_or_else(
            |error| error,
            |bytes| mistake.show(&path.display().to_string(), &bytes),
        )
    })
}

/// The lines of a file after its header; a row is a line.
pub(super) fn count(path: &Path) -> Result<u64, ResultsError> {
    let lines = || -> std::io::Result<u64> {
        let mut reader = std::io::BufReader::new(std::fs::File::open(path)?);
        let mut lines = 0;
        loop {
            let bytes = reader.fill_buf()?;
            if bytes.is_empty() {
                return Ok(lines);
            }
            lines += bytes.iter().filter(|byte| **byte == b'\n').count() as u64;
            let read = bytes.len();
            reader.consume(read);
        }
    };
    let lines = lines().map_err(|error| ResultsError::Unreadable {
        path: path.display().to_string(),
        reason: error.to_string(),
    })?;
    Ok(lines.saturating_sub(1))
}

fn from_reader(from: impl Read) -> Result<Results, Mistake> {
    let fail = |line: u64, cell: Option<usize>, words: String| Mistake { line, cell, words };
    let mut reader = ::csv::ReaderBuilder::new().from_reader(std::io::BufReader::new(from));
    let header = reader
        .headers()
        .map_err(|error| fail(1, None, unread(&error)))?
        .clone();
    let columns = Columns::of(&header).map_err(|words| fail(1, None, words))?;
    let mut results = Results {
        sets: columns.sets.clone(),
        axes: columns.axes.clone(),
        rows: Vec::new(),
    };
    let mut words = Words::default();
    let mut record = StringRecord::new();
    loop {
        let line = reader.position().line();
        match reader.read_record(&mut record) {
            Ok(false) => return Ok(results),
            Ok(true) => {}
            Err(error) => return Err(fail(line, None, unread(&error))),
        }
        let row = columns.row(&record, &mut words).map_err(|wrong| {
            let cell = header.iter().position(|name| name == wrong.column);
            fail(line, cell, wrong.words)
        });
        results.rows.push(row?);
    }
}

/// Where the columns stand.
#[derive(Debug)]
pub(crate) struct Columns {
    pub(crate) sets: Vec<String>,
    pub(crate) axes: Vec<String>,
}

/// Each distinct text once.
#[derive(Debug, Default)]
pub(crate) struct Words(BTreeSet<Arc<str>>);

impl Words {
    fn lacks(&self, text: &str) -> bool {
        !self.0.contains(text)
    }

    pub(crate) fn get(&mut self, text: &str) -> Arc<str> {
        if let Some(known) = self.0.get(text) {
            return Arc::clone(known);
        }
        let new: Arc<str> = text.into();
        self.0.insert(Arc::clone(&new));
        new
    }
}

impl Columns {
    /// From the header of a file.
    pub(crate) fn of(header: &StringRecord) -> Result<Self, String> {
        let names: Vec<&str> = header.iter().collect();
        let at = |name: &str| names.iter().position(|found| *found == name);
        let remedy =
            "`duet run` writes grid,case,topology,…,operator,…,launch,…,strategy,…,skipped";
        let (Some(operator), Some(strategy)) = (at(MIDDLE[0]), at(TAIL[0])) else {
            return Err(format!(
                "these are not the columns of a result table: {remedy}"
            ));
        };
        let axes = operator + MIDDLE.len();
        if operator < HEAD.len() || axes > strategy {
            return Err(format!("the columns are not in order: {remedy}"));
        }
        let owned = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        let columns = Self {
            sets: owned(&names[HEAD.len()..operator]),
            axes: owned(&names[axes..strategy]),
        };
        if super::header(&columns.sets, &columns.axes) != names {
            return Err(format!("the columns are not in order: {remedy}"));
        }
        Ok(columns)
    }

    /// One record as a row.
    pub(crate) fn row(&self, record: &StringRecord, words: &mut Words) -> Result<Row, Wrong> {
        let mut fields = record.iter();
        let mut next = || fields.next().unwrap_or("");
        let grid = words.get(next());
        let case = whole("case", next())?;
        let topology = words.get(next());
        let mut sets = Vec::with_capacity(self.sets.len());
        for _ in &self.sets {
            let value = next();
            sets.push((!value.is_empty()).then(|| words.get(value)));
        }
        let kind = next();
        let kind: Kind = kind
            .parse()
            .map_err(|error: OperatorError| Wrong::new("operator", error.to_string()))?;
        let [m, n, k, bytes] = [(); 4].map(|()| next());
        let tp = whole("tp", next())?;
        let dtype = next();
        let launch = next();
        let shape = match bytes {
            "" => Shape::Gemm {
                m: whole("m", m)?,
                n: whole("n", n)?,
                k: whole("k", k)?,
            },
            bytes => Shape::Bytes(Bytes::new(whole("bytes", bytes)?)),
        };
        let mut axes = Vec::with_capacity(self.axes.len());
        for name in &self.axes {
            let value = next();
            axes.push(match value {
                "" => None,
                value => Some(whole(name, value)?),
            });
        }
        let strategy = next();
        if words.lacks(strategy) {
            strategy::parse(strategy).map_err(|error| Wrong::new(TAIL[0], error.to_string()))?;
        }
        let strategy = words.get(strategy);
        let [makespan, unsplit, bound, verified, skipped] = [(); 5].map(|()| next());
        let outcome = match (makespan, skipped) {
            ("", "") => {
                return Err(Wrong::new(
                    "makespan_s",
                    "neither `makespan_s` nor `skipped` is given",
                ));
            }
            ("", reason) => Outcome::Skipped(words.get(reason)),
            (makespan, _) => Outcome::Performed {
                makespan: seconds("makespan_s", makespan)?,
                verified: match verified {
                    "true" => true,
                    "false" => false,
                    other => {
                        return Err(Wrong::new(
                            "verified",
                            format!("`verified` is `{other}`, not true or false"),
                        ));
                    }
                },
            },
        };
        let operator = Operator {
            kind,
            shape,
            tp,
            dtype: DType::ALL
                .into_iter()
                .find(|known| known.name() == dtype)
                .ok_or_else(|| Wrong::new("dtype", format!("`{dtype}` is no element type")))?,
        };
        let checked = operator.check();
        checked.map_err(|error| Wrong::new("operator", error.to_string()))?;
        Ok(Row {
            grid,
            case,
            topology,
            sets: sets.into(),
            operator,
            launch: LaunchMode::ALL
                .into_iter()
                .find(|known| known.name() == launch)
                .ok_or_else(|| Wrong::new("launch", format!("`{launch}` is no launch mode")))?,
            axes: axes.into(),
            strategy,
            outcome,
            unsplit_gemm: seconds("unsplit_gemm_s", unsplit)?,
            lower_bound: match bound {
                "" => None,
                bound => Some(seconds("lower_bound_s", bound)?),
            },
        })
    }
}

fn whole<T: std::str::FromStr>(name: &str, text: &str) -> Result<T, Wrong> {
    text.parse()
        .map_err(|_| Wrong::new(name, format!("`{name}` is `{text}`, not a whole number")))
}

fn seconds(name: &str, text: &str) -> Result<f64, Wrong> {
    text.parse()
        .ok()
        .filter(|value: &f64| value.is_finite() && *value >= 0.0)
        .ok_or_else(|| Wrong::new(name, format!("`{name}` is `{text}`, not a time in seconds")))
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "\
grid,case,topology,links.pcie.bandwidth,operator,m,n,k,bytes,tp,dtype,launch,seq,strategy,makespan_s,unsplit_gemm_s,lower_bound_s,verified,skipped
a,1,box,2x,ag-gemm,64,32,16,,4,bf16,stream,64,sequential,0.000012,0.00001,0.000002,true,
a,1,box,2x,ag-gemm,64,32,16,,4,bf16,stream,64,interdecom:d=32,,0.00001,0.000002,,\"m = 64 cannot be cut, so it is not\"
b,2,box,,all-gather,,,,1024,4,bf16,graph,,ring,0.000001,0,,false,
";

    #[test]
    fn what_is_read_is_written() {
        let results = from_reader(TEXT.as_bytes()).unwrap();
        assert_eq!(results.rows.len(), 3);
        assert_eq!(results.rows[0].makespan(), Some(12e-6));
        assert_eq!(results.rows[1].makespan(), None);
        assert_eq!(results.cases().count(), 2);
        assert_eq!(results.rows[0].axes[results.axis("seq").unwrap()], Some(64));
        let mut writer = ::csv::Writer::from_writer(Vec::new());
        writer
            .write_record(header(&results.sets, &results.axes))
            .unwrap();
        for row in &results.rows {
            writer.write_record(record(row)).unwrap();
        }
        let written = String::from_utf8(writer.into_inner().unwrap()).unwrap();
        assert_eq!(written, TEXT);
    }

    #[test]
    fn what_is_wrong_is_said_with_its_line() {
        let said = |from: &str, to: &str| {
            let text = TEXT.replacen(from, to, 1);
            let mistake = from_reader(text.as_bytes()).unwrap_err();
            mistake.show("r.csv", text.as_bytes()).to_string()
        };
        let shown = said("0.000012", "soon");
        assert!(
            shown.contains("`soon`, not a time in seconds\n --> r.csv:2:58\n"),
            "{shown}"
        );
        let marked = shown.lines().nth(4).unwrap_or("");
        assert!(marked.contains("^^^^ not as"), "{shown}");
        let shown = said("interdecom:d=32", "interdecom:e=32");
        assert!(shown.contains("--> r.csv:3:47\n"), "{shown}");
        assert!(shown.contains("no parameter `e`"), "{shown}");
        assert!(said("graph", "grph").contains("`grph` is no launch mode\n --> r.csv:4:36\n"));
        assert!(
            said("operator,m", "m,operator")
                .contains("the columns are not in order\n --> r.csv:1:1\n")
        );
        assert!(said("strategy", "how").contains("these are not the columns"));
        let torn = said("0.000012,", "");
        assert!(torn.contains("18 cells, the header 19"), "{torn}");
        assert!(torn.contains("--> r.csv:2:1\n"), "{torn}");
        assert!(said(",64,32,16,,4", ",63,32,16,,4").contains("63 cannot be divided"));
    }
}
