//! What of a growing table can be kept: the complete cases at its beginning.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Seek, SeekFrom, Write};

use super::Layout;
use crate::experiment::Experiment;
use crate::experiment::results::{self, Columns, Outcome, Words};

/// Cuts the file to its header and the complete cases at its beginning, writing the header where
/// it is torn, and leaves it ready for the next row. Returns how many of `cases` are kept.
///
/// A row is kept if it is a whole line, says what this place of the grid must say, and has the
/// very bytes that writing it again would give.
pub(super) fn keep(file: &File, experiment: &Experiment, cases: &[u32]) -> io::Result<usize> {
    let header = results::header(&experiment.sets, &experiment.axes);
    let columns = Columns {
        sets: experiment.sets.clone(),
        axes: experiment.axes.clone(),
    };
    let head = results::line(&header);
    let (layout, mut words) = (Layout::of(experiment), Words::default());
    let mut lines = BufReader::new(file);
    lines.seek(SeekFrom::Start(0))?;
    let mut line = Vec::new();
    lines.read_until(b'\n', &mut line)?;
    let mut file = file;
    if line != head {
        file.set_len(0)?;
        file.seek(SeekFrom::Start(0))?;
        file.write_all(&head)?;
        return Ok(0);
    }
    let mut sound = |line: &[u8], case: u32, strategy: &str| {
        let row = results::read_line(line, &columns, &mut words)?;
        let none = Outcome::Skipped("".into());
        let expected = layout.row(experiment, case, strategy, none, (0.0, None));
        let same = results::identity(&row) == results::identity(&expected);
        (same && results::line(&results::record(&row)) == line).then_some(())
    };
    let (mut kept, mut length) = (0, head.len() as u64);
    'cases: for &case in cases {
        let mut bytes = 0;
        for choice in &*experiment.cases[case as usize].strategies {
            line.clear();
            lines.read_until(b'\n', &mut line)?;
            if sound(&line, case, &choice.to_string()).is_none() {
                break 'cases;
            }
            bytes += line.len() as u64;
        }
        kept += 1;
        length += bytes;
    }
    file.set_len(length)?;
    file.seek(SeekFrom::Start(length))?;
    Ok(kept)
}
