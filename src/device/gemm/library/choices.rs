//! What a library takes for the rows of columns.

/// Choices for one (n, k).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Choices {
    pub n: u64,
    pub k: u64,
    /// (most rows, place in the list), by rows; more rows than the last's take the last.
    pub rows: Vec<(u64, u16)>,
}

/// Choices by (n, k) and rows, without those of algorithms that there are not.
pub(super) fn sorted(mut choices: Vec<Choices>, algorithms: usize) -> Vec<Choices> {
    choices.retain(|choice| !choice.rows.is_empty());
    choices.sort_by_key(|choice| (choice.n, choice.k));
    for choice in &mut choices {
        choice.rows.sort_unstable();
        choice
            .rows
            .retain(|(_, place)| usize::from(*place) < algorithms);
    }
    choices
}

impl Choices {
    /// The algorithm's place in the list for `m` rows.
    pub(super) fn of(&self, m: u64) -> Option<u16> {
        let at = self.rows.partition_point(|(most, _)| *most < m);
        let row = self.rows.get(at).or_else(|| self.rows.last());
        row.map(|(_, place)| *place)
    }
}
