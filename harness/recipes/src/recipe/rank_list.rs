//! Ranks in a line for people.

use std::collections::BTreeSet;

/// Of ranks and ranges of them that are listed.
const LISTED: usize = 6;

/// `rank 3`, `ranks 0-7, 9`.
pub(super) fn listed(ranks: &BTreeSet<u64>) -> String {
    let mut ranges: Vec<(u64, u64)> = Vec::new();
    for rank in ranks {
        match ranges.last_mut() {
            Some((_, last)) if last.checked_add(1) == Some(*rank) => *last = *rank,
            _ => ranges.push((*rank, *rank)),
        }
    }
    let text = |(first, last): &(u64, u64)| match first == last {
        true => first.to_string(),
        false => format!("{first}-{last}"),
    };
    let shown: Vec<String> = ranges.iter().take(LISTED).map(text).collect();
    let word = if ranks.len() == 1 { "rank" } else { "ranks" };
    let more = if ranges.len() > LISTED { format!(", ... ({} in all)", ranks.len()) } else { String::new() };
    format!("{word} {}{more}", shown.join(", "))
}
