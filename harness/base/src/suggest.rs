//! "Did you mean": the nearest right word to a wrong one.

/// The candidate most like `word`, if one is like it enough to be worth saying.
pub fn nearest<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let likeness = |candidate: &str| strsim::jaro_winkler(&word.to_lowercase(), &candidate.to_lowercase());
    candidates
        .into_iter()
        .map(|candidate| (likeness(candidate), candidate))
        .filter(|(likeness, _)| *likeness > 0.8)
        .max_by(|a, b| a.0.total_cmp(&b.0))
        .map(|(_, candidate)| candidate)
}

/// The candidate that is at most `edits` letters changed, swapped, added or lost away; the first of several as near.
pub fn within<'a>(
    word: &str,
    candidates: impl IntoIterator<Item = &'a str>,
    edits: usize,
) -> Option<&'a str> {
    candidates
        .into_iter()
        .filter(|candidate| candidate.len().abs_diff(word.len()) <= edits)
        .map(|candidate| (strsim::damerau_levenshtein(word, candidate), candidate))
        .filter(|(distance, _)| *distance <= edits)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}

#[cfg(test)]
mod tests {
    use super::{nearest, within};

    #[test]
    fn a_slip_of_the_finger_finds_its_word_and_a_stranger_finds_none() {
        let words = ["all_reduce", "all_gather", "scatter"];
        assert_eq!(nearest("all_redcue", words), Some("all_reduce"));
        assert_eq!(nearest("Scater", words), Some("scatter"));
        assert_eq!(nearest("xyz", words), None);
    }

    #[test]
    fn only_so_many_edits_away_is_near_enough() {
        let words = ["all_reduce", "all_gather"];
        assert_eq!(within("all_redcue", words, 1), Some("all_reduce"), "two letters swapped are one edit");
        assert_eq!(within("al_reduc", words, 2), Some("all_reduce"));
        assert_eq!(within("al_reduc", words, 1), None);
        assert_eq!(within("scatter", words, 2), None);
    }
}
