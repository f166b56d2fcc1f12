//! The figures of a validation: complete, without touching text, and documented.

use std::fs;

use duet::experiment::AnalysisOptions;
use duet::report::figures::validation;
use duet::report::plot::inspect;
use duet::report::validation::{markdown, sections};
use duet::validate::analysis::{Input, Validation, analyse};
use duet::validate::prediction::Predictions;
use duet::validate::table;

use crate::{data, root};

fn found() -> Validation {
    let read = |name: &str| table::read(&data(name)).unwrap();
    analyse(&Input {
        experiment: "synthetic",
        measured: &read("measured.csv"),
        second: Some(&read("second.csv")),
        predictions: &Predictions::read(&data("predicted.csv")).unwrap(),
        today: None,
        divergences: &[],
        peers: &[],
        options: AnalysisOptions::default(),
    })
}

#[test]
fn every_figure_is_drawn_and_can_be_read() {
    let drawn = validation::draw(&found());
    assert_eq!(drawn.left_out, []);
    for picture in &drawn.pictures {
        assert_eq!(inspect::faults(&picture.svg), [""; 0], "{}", picture.stem);
    }
    let stems: Vec<&str> = drawn.pictures.iter().map(|p| p.stem.as_str()).collect();
    assert_eq!(
        stems,
        [
            "predicted-measured",
            "error-strategies",
            "model-error-measured",
            "speed-up-ag-gemm",
            "speed-up-gemm-rs",
            "overlap-efficiency",
            "overlap-ect",
            "winner-map-p2p-stream",
        ]
    );
}

#[test]
fn nothing_measured_draws_nothing_and_says_why() {
    let none = Predictions::default();
    let found = analyse(&Input {
        experiment: "nothing",
        measured: &[],
        second: None,
        predictions: &none,
        today: None,
        divergences: &[],
        peers: &[],
        options: AnalysisOptions::default(),
    });
    let drawn = validation::draw(&found);
    assert!(drawn.pictures.is_empty());
    assert_eq!(drawn.left_out.len(), validation::registry().len());
    assert!(
        drawn
            .left_out
            .iter()
            .all(|(_, reason)| reason.starts_with("it needs "))
    );
}

#[test]
fn figures_and_sections_are_documented() {
    let plots = fs::read_to_string(root().join("docs/plots.md")).unwrap();
    for figure in validation::registry() {
        assert!(
            plots.contains(&format!("| `{}` |", figure.name)),
            "{}",
            figure.name
        );
    }
    let docs = fs::read_to_string(root().join("docs/validate.md")).unwrap();
    for section in sections(&found()) {
        assert!(
            docs.contains(&format!("| `{}` |", section.key)),
            "{}",
            section.key
        );
    }
}

#[test]
fn the_report_names_its_figures_and_defines_its_tables() {
    let found = found();
    let text = markdown(&found, &validation::draw(&found), "plots");
    assert!(text.starts_with("# Validation of `synthetic`\n\n## What was measured\n"));
    assert!(text.contains("![predicted-measured](plots/predicted-measured.svg)"));
    assert!(text.contains("MAPE is the mean of |p − t|/t"));
    assert!(text.ends_with(")\n") && !text.ends_with("\n\n"));
}
