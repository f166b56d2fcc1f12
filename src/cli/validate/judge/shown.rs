//! What is shown of a validation, and its report.

use std::path::Path;

use super::JudgeArgs;
use crate::cli::error::Failure;
use crate::cli::output::{Format, OutputArgs, write_file};
use crate::report::figures::Drawn;
use crate::report::validation as report;
use crate::validate::analysis::Validation;

pub(super) fn show(
    found: &Validation,
    args: &JudgeArgs,
    output: &OutputArgs,
) -> Result<(), Failure> {
    match output.format {
        Format::Json => output.json(&report::json(found)),
        // CSV was refused before anything was read.
        Format::Table | Format::Csv => {
            let sections =
                report::named(report::sections(found), &args.section).map_err(Failure::Usage)?;
            output.draw(&report::text(&sections, &output.look()))
        }
    }
}

/// The report begins with the command that writes it again.
pub(super) fn write_report(
    found: &Validation,
    drawn: &Drawn,
    path: &Path,
    experiment: &Path,
    args: &JudgeArgs,
) -> Result<(), Failure> {
    let folder = path.parent().unwrap_or(Path::new(""));
    let none = Drawn::default();
    let (drawn, plots) = match &args.plots {
        Some(plots) => (drawn, crate::input::between(folder, plots)),
        None => (&none, String::new()),
    };
    let text = format!(
        "<!-- written by: duet validate {} -->\n\n{}",
        args.command(experiment),
        report::markdown(found, drawn, &plots)
    );
    write_file(path, text.as_bytes())
}
