//! `duet gpu check`.

use clap::Args;

use super::{Watchdog, enter};
use crate::cli::error::Failure;
use crate::cli::output::{Format, OutputArgs};
use crate::gpu::Session;
use crate::gpu::check::{self, Outcome, STEP_LIMIT};
use crate::report::grid::{Paint, clean, paint};
use crate::report::list::List;

#[derive(Args, Debug)]
pub struct CheckArgs {
    /// Use the first N GPUs only
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    gpus: Option<u32>,
    #[command(flatten)]
    output: OutputArgs,
}

pub fn run(args: &CheckArgs) -> Result<(), Failure> {
    let active = enter()?;
    let watchdog = Watchdog::new("starting the driver", STEP_LIMIT);
    let session = Session::open(active, args.gpus)?;
    let stream = args.output.format == Format::Table && args.output.out.is_none();
    let mut outcomes = Vec::new();
    let mut closed = Ok(());
    check::run(
        &session,
        |gpus, step| watchdog.step(format!("{gpus}: {step}"), STEP_LIMIT),
        |outcome| {
            if stream && closed.is_ok() {
                // At once, so that a step that hangs leaves what came before it.
                closed = args.output.draw(&line(&outcome));
            }
            outcomes.push(outcome);
        },
    )?;
    closed?;
    match args.output.format {
        Format::Table if stream => {}
        Format::Table => {
            let lines: Vec<String> = outcomes.iter().map(line).collect();
            args.output.draw(&lines.concat())?;
        }
        Format::Json => args.output.write(list(&outcomes).json()?.as_bytes())?,
        Format::Csv => args.output.write(list(&outcomes).csv().as_bytes())?,
    }
    let failed = outcomes.iter().filter(|o| o.result.is_err()).count();
    match failed {
        0 => Ok(()),
        _ => Err(Failure::Gpu(format!(
            "error: {failed} of {} steps failed\n  help: the remarks say what was wrong",
            outcomes.len()
        ))),
    }
}

fn line(outcome: &Outcome) -> String {
    let (word, remark) = match &outcome.result {
        Ok(remark) => (paint("ok", Paint::Good), remark.clone()),
        Err(error) => (paint("failed", Paint::Bad), error.to_string()),
    };
    format!(
        "{:<6} {:<28} {word} {:>6.2} s  {}\n",
        outcome.gpus,
        outcome.step,
        outcome.time.as_secs_f64(),
        clean(&remark)
    )
}

fn list(outcomes: &[Outcome]) -> List {
    let mut list = List::new(&["gpus", "step", "ok", "time_s", "remark"]);
    for outcome in outcomes {
        let remark = match &outcome.result {
            Ok(remark) => remark.clone(),
            Err(error) => error.to_string(),
        };
        list.row(vec![
            outcome.gpus.as_str().into(),
            outcome.step.into(),
            outcome.result.is_ok().into(),
            outcome.time.as_secs_f64().into(),
            remark.into(),
        ]);
    }
    list
}
