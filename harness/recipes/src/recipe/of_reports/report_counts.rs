//! Counts of the reports that had data for a recipe, and of those that did not.

use std::collections::BTreeSet;

/// Reports by whether they had data for one recipe, and the rows in them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ReportCounts {
    /// Reports with matching rows.
    pub with_data: usize,
    /// Rows that matched, of all reports together.
    pub rows: u64,
    /// Reports whose tables have rows, but no matching ones.
    pub found_none: usize,
    /// Rows of these reports that were searched.
    pub looked_at: u64,
    /// Reports without the tables that the recipe needs.
    pub without: usize,
    /// The tables that are absent or empty in reports of either kind.
    pub absent: BTreeSet<String>,
    /// Reports that could not be opened or read.
    pub unreadable: usize,
}
