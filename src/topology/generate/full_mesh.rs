//! `full_mesh`: a link between every two members (MI300X).

use super::{Generator, Scope};
use crate::input::Fields;
use crate::topology::read::draft::Draft;

pub(super) const GENERATOR: Generator = Generator {
    name: "full_mesh",
    about: "a link between every two members",
    run,
};

fn run(fields: &mut Fields, scope: Scope, draft: &mut Draft) -> Option<()> {
    let spec = draft.spec(fields, "mesh");
    let members = draft.members(fields, scope, |count| count.saturating_sub(1))?;
    draft.mesh(scope, &members, spec?)
}
