//! Mean absolute error of the closed forms, without and with the overhead term.

use super::{Figure, caption, series_of};
use crate::experiment::analysis::Family;
use crate::report::figures::{Picture, one};
use crate::report::plot::{Axis, Bars, Quantity, Shape};
use crate::validate::analysis::Validation;
use crate::validate::analysis::forms::{FORMS, FormErrors};

pub(super) const FIGURE: Figure = Figure {
    name: "model-error-measured",
    about: "mean absolute error of the closed forms on groups not fitted on, with and without overhead",
    draw,
};

fn draw(found: &Validation) -> Result<Vec<Picture>, String> {
    let forms = &found.forms;
    let find = |form: &str, overhead: bool, family: Family| -> Option<&FormErrors> {
        let mut errors = forms.errors.iter();
        errors.find(|e| e.form == form && e.overhead == overhead && e.family == family)
    };
    let families: Vec<Family> = [Family::Decomposition, Family::Fusion]
        .into_iter()
        .filter(|family| forms.errors.iter().any(|errors| errors.family == *family))
        .collect();
    if families.is_empty() {
        return Err(
            "it needs decompositions or fusions that the closed forms know, in groups not fitted on"
                .to_owned(),
        );
    }
    let variants = FORMS
        .into_iter()
        .flat_map(|form| [(form, false), (form, true)]);
    let series = |(nth, (form, overhead)): (usize, (&str, bool))| {
        let here = families
            .iter()
            .map(|family| find(form, overhead, *family))
            .map(|found| found.map(|errors| (errors.mae, errors.mae_interval)));
        let without = if overhead { "" } else { " without overhead" };
        series_of(format!("{form}{without}"), nth, here)
    };
    let bars = Bars {
        caption: caption(
            found,
            "Error of the closed forms on real GPUs, with and without the overhead term",
            format!(
                "Mean absolute error on {} groups that were not fitted on, with 95 % intervals; fitted on {}",
                forms.judged_groups, forms.fitted_groups
            ),
        ),
        groups: families
            .iter()
            .map(|family| family.name().to_owned())
            .collect(),
        series: variants.enumerate().map(series).collect(),
        axis: Axis::from_zero("mean absolute error", Quantity::Seconds),
        reference: None,
        shape: Shape::Auto,
    };
    Ok(one("model-error-measured", bars.draw()))
}
