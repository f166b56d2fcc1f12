//! `experiments/compass`: what is committed is what the program writes, the figures can be read,
//! and verdicts follow from the data.
//!
//! `UPDATE_PLOTS=1 cargo test --test experiment committed` writes the committed files anew, as
//! `plots/update.sh` does.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use assert_cmd::Command;
use duet::experiment::analysis::claims::Verdict;
use duet::experiment::analysis::{Analysis, Family, analyse};
use duet::experiment::published::{Beside, Published};
use duet::experiment::results::{Outcome, Results};
use duet::experiment::run;
use duet::experiment::{self, Experiment};
use duet::operator::Kind;
use duet::report::plot::inspect;
use duet::report::{self, figures};

use crate::Nobody;

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn published() -> Published {
    Published::load(&root().join("experiments/compass/published.yaml")).unwrap()
}

/// The experiment, performed once for all tests of this file.
static COMPASS: LazyLock<(Experiment, Results)> = LazyLock::new(|| {
    let file = root().join("experiments/compass/experiment.yaml");
    let experiment = experiment::read(&file, &[]).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let options = crate::options(folder.path());
    let finished = run::run(&experiment, &options, &Nobody).unwrap();
    let results = Results::read(&finished.path).unwrap();
    (experiment, results)
});

static ANALYSIS: LazyLock<Analysis> = LazyLock::new(|| analysis(&COMPASS.1));

fn analysis(results: &Results) -> Analysis {
    analyse(&COMPASS.0, results, Some(published()))
}

/// Files of a folder with an ending.
fn files(folder: &Path, ending: &str) -> BTreeSet<PathBuf> {
    let entries = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path());
    let wanted = entries.filter(|path| path.extension().is_some_and(|e| e == ending));
    wanted
        .map(|path| path.file_name().unwrap().into())
        .collect()
}

#[test]
fn committed_figures_and_report_are_what_the_program_writes() {
    let folder = tempfile::tempdir().unwrap();
    let update = std::env::var_os("UPDATE_PLOTS").is_some();
    let to = if update { root() } else { folder.path() };
    let (plots, report) = ("plots/compass", "experiments/compass/report.md");
    fs::create_dir_all(to.join("experiments/compass")).unwrap();
    let mut command = Command::cargo_bin("duet").expect("built");
    command
        .current_dir(to)
        .arg("run")
        .arg(root().join("experiments/compass/experiment.yaml"))
        .arg("--out")
        .arg(folder.path().join("results"))
        .args(["--plots", plots, "--report", report])
        .assert()
        .success();
    let same = |path: &Path| {
        let (here, there) = (fs::read(root().join(path)), fs::read(to.join(path)));
        assert!(
            here.ok() == there.ok(),
            "{} is not what `duet run` writes; run plots/update.sh",
            path.display()
        );
    };
    same(Path::new(report));
    let written = files(&to.join(plots), "svg");
    assert_eq!(
        files(&root().join(plots), "svg"),
        written,
        "run plots/update.sh"
    );
    for name in written {
        same(&Path::new(plots).join(name));
    }
}

#[test]
fn committed_figures_have_no_touching_or_tiny_text() {
    let folder = root().join("plots/compass");
    let mut drawn = 0;
    for name in files(&folder, "svg") {
        let svg = fs::read_to_string(folder.join(&name)).unwrap();
        let faults = inspect::faults(&svg);
        assert_eq!(faults, Vec::<String>::new(), "{}", name.display());
        drawn += 1;
    }
    assert!(drawn >= figures::registry().len());
}

#[test]
fn every_figure_is_documented_and_drawn_of_compass() {
    let docs = fs::read_to_string(root().join("docs/plots.md")).unwrap();
    for figure in figures::registry() {
        let row = format!("| `{}` |", figure.name);
        assert!(
            docs.contains(&row),
            "docs/plots.md has no row `{}`",
            figure.name
        );
        let pictures = (figure.draw)(&ANALYSIS)
            .unwrap_or_else(|reason| panic!("`{}` is left out of Compass: {reason}", figure.name));
        assert!(!pictures.is_empty());
        for picture in pictures {
            let own = picture.stem == figure.name
                || picture.stem.starts_with(&format!("{}-", figure.name));
            assert!(own, "{} of figure {}", picture.stem, figure.name);
        }
    }
}

#[test]
fn the_grid_is_that_of_the_paper() {
    let main: Vec<_> = ANALYSIS.main_cases().collect();
    assert_eq!(main.len(), 288);
    for kind in [Kind::AgGemm, Kind::GemmRs] {
        for tp in [4, 8] {
            let here = main
                .iter()
                .filter(|case| case.operator.kind == kind && case.operator.tp == tp);
            assert_eq!(here.count(), 72);
        }
    }
    let fitted = ANALYSIS.train.iter().filter(|train| **train).count();
    assert!(
        (80..=112).contains(&fitted),
        "{fitted} of 288 are about a third"
    );
}

#[test]
fn every_published_figure_stands_beside_one_of_ours() {
    for printed in published().figures {
        if let Beside::Ours(name) = printed.beside {
            assert!(
                ANALYSIS.named.contains_key(&name),
                "{}: no `{name}`",
                printed.name
            );
        }
    }
    for claim in &ANALYSIS.claims {
        assert_ne!(claim.verdict, Verdict::NotTested, "{}", claim.name);
    }
    assert_eq!(ANALYSIS.claims.len(), published().claims.len());
}

/// The results with every time of some strategies multiplied.
fn slower(matches: impl Fn(&str) -> bool, factor: f64) -> Analysis {
    let mut results = COMPASS.1.clone();
    for row in &mut results.rows {
        if let Outcome::Performed { makespan, .. } = &mut row.outcome
            && matches(&row.strategy)
        {
            *makespan *= factor;
        }
    }
    analysis(&results)
}

fn verdict(analysis: &Analysis, name: &str) -> Verdict {
    let mut claims = analysis.claims.iter();
    claims.find(|claim| claim.name == name).unwrap().verdict
}

#[test]
fn verdicts_follow_from_the_data() {
    // Slow fused kernels down by their median lead: fusion then wins half.
    assert_eq!(verdict(&ANALYSIS, "fusion-wins-half"), Verdict::DoesNotHold);
    let winners = ANALYSIS
        .winners
        .iter()
        .filter(|w| w.group.kind == Kind::AgGemm);
    let mut leads: Vec<f64> = winners.flat_map(|w| w.leads.iter().copied()).collect();
    leads.sort_by(f64::total_cmp);
    let changed = slower(|name| name.starts_with("fusion-"), leads[leads.len() / 2]);
    assert_eq!(verdict(&changed, "fusion-wins-half"), Verdict::Holds);

    assert_eq!(verdict(&ANALYSIS, "double-ring-doubles"), Verdict::Holds);
    let changed = slower(|name| name == "double-ring", 1.5);
    assert_eq!(
        verdict(&changed, "double-ring-doubles"),
        Verdict::DoesNotHold
    );

    assert_eq!(verdict(&ANALYSIS, "d4-is-a-minority"), Verdict::Holds);
    let changed = slower(|name| name == "interdecom:d=4", 0.5);
    assert_eq!(verdict(&changed, "d4-is-a-minority"), Verdict::DoesNotHold);

    // A reason why a claim holds is not given for one that does not.
    let why = |analysis: &Analysis, name: &str| {
        let mut claims = analysis.claims.iter();
        claims.find(|claim| claim.name == name).unwrap().why.clone()
    };
    assert_ne!(why(&ANALYSIS, "d4-is-a-minority"), "");
    assert_eq!(why(&changed, "d4-is-a-minority"), "");

    let changed = slower(|name| name == "direct", 0.1);
    assert_eq!(
        verdict(&changed, "all-to-all-collapses"),
        Verdict::DoesNotHold
    );
}

#[test]
fn claims_print_what_the_file_prints() {
    let mut other = published();
    let mut figures = other.figures.iter_mut();
    let figure = figures.find(|figure| figure.name == "d4-optimal").unwrap();
    figure.value = experiment::Quantity::Share(0.875);
    let changed = analyse(&COMPASS.0, &COMPASS.1, Some(other));
    let numbers = |analysis: &Analysis| {
        let mut claims = analysis.claims.iter();
        let claim = claims.find(|claim| claim.name == "d4-is-a-minority");
        claim.unwrap().numbers.clone()
    };
    assert!(numbers(&ANALYSIS).contains("(published: 30.00 %)"));
    assert!(numbers(&changed).contains("(published: 87.50 %)"));
}

/// Without the rows of one strategy, the selector chooses what nobody simulated.
#[test]
fn choices_that_were_not_simulated_are_counted_apart() {
    assert!(ANALYSIS.unsimulated.is_empty());
    let mut results = COMPASS.1.clone();
    let kept = |strategy: &str| !strategy.starts_with("fusion-double-ring");
    results.rows.retain(|row| kept(&row.strategy));
    let changed = analysis(&results);
    let apart = changed.unsimulated.len();
    assert!(apart > 0);
    assert_eq!(changed.judged.len() + apart, 288);
    let none = figures::Drawn::default();
    let line = format!("In {apart} further cases the choice is none of the strategies simulated");
    assert!(report::experiment::markdown(&changed, &none, "plots").contains(&line));
}

#[test]
fn the_overhead_term_and_the_further_terms_pay() {
    for family in [Family::Decomposition, Family::Fusion] {
        let mae = |model| ANALYSIS.error(model, family).unwrap().mae;
        assert!(
            mae("compass") < mae("compass-without-overhead"),
            "{}",
            family.name()
        );
        assert!(mae("extended") < mae("compass"), "{}", family.name());
    }
}

#[test]
fn no_choice_was_fitted_on_what_judges_it() {
    let unseen = ANALYSIS.choices(true).unwrap();
    let all = ANALYSIS.choices(false).unwrap();
    assert_eq!(all.cases, 288);
    let fitted = ANALYSIS.train.iter().filter(|train| **train).count();
    assert_eq!(unseen.cases + fitted, all.cases);
    assert!(unseen.strict <= unseen.right && unseen.right <= unseen.cases);
    // Of strategies that take as long the one chosen stands in the matrix, on its diagonal.
    let counts = ANALYSIS.confusion(true).counts;
    let diagonal: usize = (0..counts.len()).map(|i| counts[i][i]).sum();
    assert!(unseen.strict <= diagonal);
}
