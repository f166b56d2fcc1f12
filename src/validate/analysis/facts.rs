//! How much was measured.

use super::Group;
use crate::validate::table::Row;

/// What was measured, in numbers.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Facts {
    pub rows: usize,
    /// Groups whose ranks have a GPU each, and groups whose ranks share some.
    pub groups: usize,
    pub virtual_groups: usize,
    /// Cases of the headline, and of groups with shared GPUs.
    pub cases: usize,
    pub virtual_cases: usize,
    /// Fewest and most rounds of a judged row.
    pub rounds: [u32; 2],
    pub machines: Vec<String>,
    pub dates: Vec<String>,
}

impl Facts {
    pub(super) fn of(rows: &[Row], groups: &[Group<'_>]) -> Self {
        let distinct = |of: fn(&Row) -> &String| {
            let mut all: Vec<String> = rows.iter().map(of).cloned().collect();
            all.sort();
            all.dedup();
            all
        };
        let count = |headline: bool| {
            let wanted = groups
                .iter()
                .filter(|group| group.is_headline() == headline);
            let sizes: Vec<usize> = wanted.map(|group| group.entries.len()).collect();
            (
                sizes.iter().filter(|size| **size > 0).count(),
                sizes.iter().sum(),
            )
        };
        let ((groups_of, cases), (virtual_groups, virtual_cases)) = (count(true), count(false));
        let judged = rows.iter().filter(|row| row.excluded.is_none());
        let rounds: Vec<u32> = judged.map(|row| row.rounds).collect();
        Self {
            rows: rows.len(),
            groups: groups_of,
            virtual_groups,
            cases,
            virtual_cases,
            rounds: [
                rounds.iter().copied().min().unwrap_or(0),
                rounds.iter().copied().max().unwrap_or(0),
            ],
            machines: distinct(|row| &row.conditions.machine),
            dates: distinct(|row| &row.conditions.date),
        }
    }
}
