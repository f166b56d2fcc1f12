//! The variants of a run: their results compared, and all timed in turns beside references.

use std::fs::File;
use std::io::Write;
use std::rc::Rc;

use super::RunArgs;
use crate::cli::error::Failure;
use crate::cli::gpu::predict::written;
use crate::cli::gpu::run_output::{References, Variant};
use crate::cli::progress::Progress;
use crate::gpu::GpuError;
use crate::gpu::campaign::{Prepared, Trial, rehearse};
use crate::gpu::compare::{Checker, Verdict, fill, fill_all};
use crate::gpu::exec::{Faults, Machine, Run};
use crate::gpu::plan::{Plan, Products};
use crate::gpu::timing::{Row, Sample, Timer, copy_plan, gemm_plan, gemm_plan_by, header};

/// Compares every variant's results.
pub(super) fn check(
    args: &RunArgs,
    machine: &Machine<'_>,
    variants: &mut [Variant<'_>],
    step: impl Fn(String),
) -> Result<(), Failure> {
    if args.no_check {
        return Ok(());
    }
    let trial = Trial {
        replays: args.replays,
        faults: args.gpus.faults(),
        shake: true,
        repeats: 0,
    };
    for variant in variants {
        step(format!("checking `{}`", variant.columns.variant));
        let verdict = rehearse(machine, &variant.prepared, args.seed, &trial)?;
        right(variant, &verdict)?;
        variant.columns.error = Some(verdict.relative);
        variant.verdict = Some(verdict);
    }
    Ok(())
}

/// Times all variants in turns.
pub(super) fn measure<'m>(
    args: &RunArgs,
    machine: &'m Machine<'m>,
    variants: &mut [Variant<'m>],
    step: impl Fn(String),
) -> Result<References, Failure> {
    let mut references = References::default();
    if args.rounds == 0 {
        return Ok(references);
    }
    let Some(first) = variants.first() else {
        return Ok(references);
    };
    let schedule = Rc::clone(&first.prepared.schedule);
    let reference = |plan: Option<Plan>| -> Result<Option<Timer<'m>>, Failure> {
        let Some(plan) = plan else { return Ok(None) };
        let run = Run::new(machine, &schedule, &Rc::new(plan), Faults::default())?;
        for parity in 0..2 {
            fill_all(&run, parity, args.seed)?;
        }
        Ok(Some(Timer::new(run, false)?))
    };
    let gemm = reference(gemm_plan(&schedule))?;
    let own = match args.lowering.products().any(|p| p == Products::Own) {
        true => reference(gemm_plan_by(&schedule, Products::Own))?,
        false => None,
    };
    let needs_peers = machine.devices().len() > 1 && !machine.all_peers();
    let copy = match needs_peers {
        true => None,
        false => reference(copy_plan(&schedule))?,
    };
    for variant in variants.iter_mut() {
        step(format!("preparing `{}`", variant.columns.variant));
        let Prepared { schedule, plan } = &variant.prepared;
        let run = Run::new(machine, schedule, plan, args.gpus.faults())?;
        for parity in 0..2 {
            fill(&run, parity, args.seed)?;
        }
        variant.timer = Some(Timer::new(run, args.graph_ends)?);
    }
    let mut rows = match &args.rows {
        None => None,
        Some(path) => {
            let mut file = File::create(path).map_err(|error| written(path, &error))?;
            file.write_all(header().as_bytes())
                .map_err(|error| written(path, &error))?;
            Some((file, path))
        }
    };
    let progress = Progress::new(args.rounds as usize * variants.len(), "timing");
    // The first round warms up and is not kept.
    for round in 0..=args.rounds {
        let once = |timer: &Option<Timer<'m>>| -> Result<Option<f64>, Failure> {
            let Some(timer) = timer else { return Ok(None) };
            step("a reference".to_owned());
            Ok(Some(timer.once(args.repeats)?.makespan))
        };
        let (product, plain, own) = (once(&gemm)?, once(&copy)?, once(&own)?);
        if round > 0 {
            references.gemm.extend(product);
            references.copy.extend(plain);
            references.own.extend(own);
        }
        // Each round begins with another variant.
        let count = variants.len();
        for i in 0..count {
            let variant = &mut variants[(round as usize + i) % count];
            let Some(timer) = &variant.timer else {
                continue;
            };
            step(format!("timing `{}`", variant.columns.variant));
            let sample = timer.once(args.repeats)?;
            if round == 0 {
                continue;
            }
            let pci = &machine.devices()[0].gpu.attributes().pci;
            let state = machine.session().nvml().map(|nvml| nvml.state(pci));
            if let Some((file, path)) = &mut rows {
                let row = Row {
                    columns: &variant.columns,
                    round,
                    repeats: args.repeats,
                    sample: &sample,
                    reference_gemm: product,
                    reference_copy: plain,
                    state: state.unwrap_or_default(),
                };
                file.write_all(row.line().as_bytes())
                    .and_then(|()| file.flush())
                    .map_err(|error| written(path, &error))?;
            }
            keep(variant, &sample, product);
            progress.step();
        }
    }
    if !args.no_check {
        step("checking what was timed".to_owned());
        variants
            .iter()
            .try_for_each(|variant| checked(args, variant))?;
    }
    Ok(references)
}

/// Compares the results of a run as it was timed, without delays; not where the memory for
/// references is missing.
fn checked(args: &RunArgs, variant: &Variant<'_>) -> Result<(), Failure> {
    let Some(timer) = &variant.timer else {
        return Ok(());
    };
    let run = timer.run();
    let checker = match Checker::new(run) {
        Err(GpuError::Memory { .. }) => return Ok(()),
        checker => checker?,
    };
    let (parity, seed) = (run.next_parity(), args.seed.wrapping_add(1));
    fill(run, parity, seed)?;
    timer.once(1)?;
    let verdict = checker.check(run, parity, seed)?;
    right(variant, &verdict)
}

/// A wrong result as a failure.
fn right(variant: &Variant<'_>, verdict: &Verdict) -> Result<(), Failure> {
    match &verdict.wrong {
        None => Ok(()),
        Some(wrong) => Err(Failure::Validation(format!(
            "error: `{}` computes a wrong result: {wrong}\n  help: `duet gpu check` tests the machine; a schedule from a file may lack a dependency",
            variant.columns.variant
        ))),
    }
}

fn keep(variant: &mut Variant<'_>, sample: &Sample, product: Option<f64>) {
    variant.times.push(sample.makespan);
    variant.skews.extend(sample.skew());
    variant.gated &= sample.gated;
    let product = product.filter(|&time| time > 0.0);
    variant
        .ratios
        .extend(product.map(|time| sample.makespan / time));
}
