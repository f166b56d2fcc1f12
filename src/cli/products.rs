//! What follows from a result table: fitted parameters, the report, the summary and the figures,
//! written by `duet run` and `duet plot` alike.

use std::path::{Path, PathBuf};

use super::error::Failure;
use super::output::write_file;
use crate::experiment::analysis::{Analysis, analyse};
use crate::experiment::published::Published;
use crate::experiment::results::Results;
use crate::experiment::{self, Experiment};
use crate::report::experiment::{markdown, summary};
use crate::report::figures::{self, Drawn, Figure};

/// Pixels of a bitmap per pixel of a drawing.
const SCALE: f64 = 2.0;

/// An experiment with what was found.
pub struct Products {
    pub analysis: Analysis,
    pub drawn: Drawn,
}

/// Reads an experiment, its `figures:` checked against those there are.
///
/// # Errors
/// [`Failure::Input`] with every mistake in its place.
pub fn read(file: &Path) -> Result<Experiment, Failure> {
    let names: Vec<&str> = figures::registry()
        .iter()
        .map(|figure| figure.name)
        .collect();
    experiment::read(file, &names).map_err(|error| Failure::input(&error))
}

/// The figures to draw: those asked for, else those that the experiment lists, else all.
///
/// # Errors
/// [`Failure::Usage`] or [`Failure::Input`] on an unknown name.
pub fn figures(asked: &[String], experiment: &Experiment) -> Result<Vec<Figure>, Failure> {
    if !asked.is_empty() {
        return figures::named(Some(asked))
            .map_err(|error| Failure::Usage(format!("error: {error}")));
    }
    figures::named(experiment.figures.as_deref()).map_err(|error| {
        let file = experiment.file.display();
        Failure::Input(format!("error: {file}: figures: {error}"))
    })
}

impl Products {
    /// Analyses results and draws figures; `published.yaml` beside the experiment is read if it is
    /// there.
    ///
    /// # Errors
    /// [`Failure::Input`] when `published.yaml` has mistakes.
    pub fn new(
        experiment: &Experiment,
        results: &Results,
        figures: &[Figure],
    ) -> Result<Self, Failure> {
        let path = experiment.file.with_file_name("published.yaml");
        let published = match path.exists() {
            true => Some(Published::load(&path).map_err(|error| Failure::input(&error))?),
            false => None,
        };
        let analysis = analyse(experiment, results, published);
        let drawn = figures::draw(&analysis, figures);
        Ok(Self { analysis, drawn })
    }

    /// Writes the figures into `folder`, with bitmaps if `png`; returns the paths.
    ///
    /// # Errors
    /// As [`write_pictures`].
    pub fn plots(&self, folder: &Path, png: bool) -> Result<Vec<PathBuf>, Failure> {
        write_pictures(&self.drawn, folder, png)
    }

    /// Writes `params.yaml` and `summary.json` into `out` and the report to `report`, which finds
    /// the figures in `plots`; returns the paths.
    ///
    /// # Errors
    /// [`Failure::Input`] when a file cannot be written.
    pub fn texts(&self, out: &Path, report: &Path, plots: &Path) -> Result<Vec<PathBuf>, Failure> {
        let mut files = Vec::new();
        let fitted = self.analysis.parameters();
        if let Some(parameters) = fitted.filter(|parameters| !parameters.is_empty()) {
            files.push((out.join("params.yaml"), parameters.write()));
        }
        let summary = format!("{:#}\n", summary(&self.analysis, &self.drawn));
        files.push((out.join("summary.json"), summary));
        let folder = report.parent().unwrap_or(Path::new(""));
        let text = markdown(
            &self.analysis,
            &self.drawn,
            &crate::input::between(folder, plots),
        );
        files.push((report.to_owned(), text));
        for (path, text) in &files {
            write_file(path, text.as_bytes())?;
        }
        Ok(files.into_iter().map(|(path, _)| path).collect())
    }
}

/// Writes figures into `folder`, with bitmaps if `png`; returns the paths.
///
/// # Errors
/// [`Failure::Input`] when a file cannot be written.
pub fn write_pictures(drawn: &Drawn, folder: &Path, png: bool) -> Result<Vec<PathBuf>, Failure> {
    if drawn.pictures.is_empty() {
        return Ok(Vec::new());
    }
    make(folder)?;
    let mut written = Vec::new();
    for picture in &drawn.pictures {
        let path = folder.join(format!("{}.svg", picture.stem));
        write_file(&path, picture.svg.as_bytes())?;
        written.push(path);
        if png {
            let path = folder.join(format!("{}.png", picture.stem));
            let bytes = crate::report::png::render(&picture.svg, SCALE)
                .map_err(|error| Failure::Internal(format!("error: {}: {error}", picture.stem)))?;
            write_file(&path, &bytes)?;
            written.push(path);
        }
    }
    Ok(written)
}

/// Makes a folder.
fn make(folder: &Path) -> Result<(), Failure> {
    std::fs::create_dir_all(folder).map_err(|error| {
        Failure::Input(format!(
            "error: cannot make the folder `{}`: {error}\n  help: name a folder that can be written",
            folder.display()
        ))
    })
}
