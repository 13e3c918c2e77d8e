//! What reports had for a recipe, counted. What the recipe makes of it is not told here.

use std::collections::BTreeSet;

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Seen {
    /// Reports that gave something, and of how many rows.
    pub with_data: usize,
    pub rows: u64,
    /// Reports whose tables have rows, and none of what is looked for; and how many rows these are.
    pub found_none: usize,
    pub looked_at: u64,
    /// Reports without what it needs.
    pub without: usize,
    /// The tables that are absent or empty in reports of either kind.
    pub absent: BTreeSet<&'static str>,
    pub unreadable: usize,
}
