//! GEMMs of experiments (`--shapes`), timed as those of the grid but not used: what predictions of shapes
//! that nobody has measured are judged by.

use super::Section;
use super::book::Book;
use super::grid::{timed, write};
use super::lab::Lab;
use crate::gpu::GpuError;

pub const SECTION: Section = Section {
    name: "judged",
    about: "GEMMs of experiments, to judge predictions by",
    share: 8,
    run,
};

fn run(lab: &Lab<'_>, book: &Book<'_>) -> Result<(), GpuError> {
    let (shapes, times) = timed(lab, book, &lab.asked)?;
    for (shape, times) in shapes.iter().zip(&times) {
        if let Some(ready) = shape.first() {
            write(book, &ready.problem, times);
        }
    }
    Ok(())
}
