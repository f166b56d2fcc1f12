//! `switch`: members around one non-blocking switch (an NVSwitch box).

use super::{Generator, Scope};
use crate::input::Fields;
use crate::topology::read::draft::Draft;

pub(super) const GENERATOR: Generator = Generator {
    name: "switch",
    about: "members around one non-blocking switch",
    run,
};

fn run(fields: &mut Fields, scope: Scope, draft: &mut Draft) -> Option<()> {
    let name = match fields.get("name") {
        Some(node) => node.word("name", &mut draft.found)?,
        None => "switch",
    };
    let spec = draft.spec(fields, "switch");
    let members = draft.members(fields, scope, |_| 2)?;
    let spec = spec?;
    draft.room(scope.at, 1, 0).then_some(())?;
    let switch = draft.switch(scope, name, "")?;
    for member in members {
        draft.both(&scope.at.span, member, switch, spec)?;
    }
    Some(())
}
