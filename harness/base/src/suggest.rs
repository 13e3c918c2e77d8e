//! "Did you mean": the nearest right word to a wrong one.

/// In bytes. No name is longer; of a word of megabytes each comparison takes seconds.
const LONGEST: usize = 256;

/// The candidate most like `word`, if one is like it enough to be worth saying.
pub fn nearest<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    if word.len() > LONGEST {
        return None;
    }
    let likeness = |candidate: &str| strsim::jaro_winkler(&word.to_lowercase(), &candidate.to_lowercase());
    let is_near = |candidate: &str| likeness(candidate) > 0.8 || is_swapped(word, candidate);
    candidates
        .into_iter()
        .filter(|&candidate| is_near(candidate))
        .max_by(|&a, &b| likeness(a).total_cmp(&likeness(b)))
}

/// Whether two letters beside each other are swapped: in words of three letters no other measure finds it.
fn is_swapped(word: &str, candidate: &str) -> bool {
    let sorted = |text: &str| {
        let mut letters: Vec<char> = text.chars().collect();
        letters.sort_unstable();
        letters
    };
    candidate.len() == word.len()
        && sorted(word) == sorted(candidate)
        && strsim::damerau_levenshtein(word, candidate) == 1
}

/// So many candidates, the most like `word` first, where none need be like it enough for a guess.
pub fn most_alike<'a>(
    word: &str,
    candidates: impl IntoIterator<Item = &'a str>,
    most: usize,
) -> Vec<&'a str> {
    let word: String = word.to_lowercase().chars().take(LONGEST).collect();
    let likeness = |candidate: &'a str| (strsim::jaro_winkler(&word, &candidate.to_lowercase()), candidate);
    let mut alike: Vec<(f64, &'a str)> = candidates.into_iter().map(likeness).collect();
    alike.sort_by(|a, b| b.0.total_cmp(&a.0));
    alike.into_iter().take(most).map(|(_, candidate)| candidate).collect()
}

/// The same of nodes, suites and instances. One that begins with the word comes first, and one with another number is another
/// thing: it is no slip.
pub fn nearest_name<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    if word.len() > LONGEST {
        return None;
    }
    let alike: Vec<&'a str> =
        candidates.into_iter().filter(|candidate| has_its_numbers(word, candidate)).collect();
    let begins = |candidate: &&'a str| candidate.to_lowercase().starts_with(&word.to_lowercase());
    let longer = alike.iter().copied().filter(begins).min_by_key(|candidate| candidate.len());
    longer.filter(|_| word.len() > 1).or_else(|| nearest(word, alike))
}

/// Whether the numbers in both are the same as far as both have some.
fn has_its_numbers(word: &str, candidate: &str) -> bool {
    let numbers = |text: &str| -> Vec<String> {
        let all = text.split(|c: char| !c.is_ascii_digit()).filter(|digits| !digits.is_empty());
        all.map(|digits| digits.trim_start_matches('0').to_owned()).collect()
    };
    numbers(word).iter().zip(numbers(candidate)).all(|(one, other)| *one == other)
}

/// The candidate that is at most `edits` letters changed, swapped, added or lost away; the first of several as near.
pub fn within<'a>(
    word: &str,
    candidates: impl IntoIterator<Item = &'a str>,
    edits: usize,
) -> Option<&'a str> {
    candidates
        .into_iter()
        .filter(|candidate| word.len() <= LONGEST && candidate.len().abs_diff(word.len()) <= edits)
        .map(|candidate| (strsim::damerau_levenshtein(word, candidate), candidate))
        .filter(|(distance, _)| *distance <= edits)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}

#[cfg(test)]
mod tests {
    use super::{most_alike, nearest, nearest_name, within};

    #[test]
    fn another_number_is_another_thing_and_a_longer_name_comes_first() {
        let nodes = ["p5-001", "p5-002", "p5-003", "p5-004"];
        for word in ["p5-033", "p5-009", "p5-0033", "p4-003"] {
            assert_eq!(nearest_name(word, nodes), None, "{word}");
        }
        assert_eq!(nearest_name("p5-03", nodes), Some("p5-003"));
        assert_eq!(nearest_name("node10", ["node1", "node2"]), None);
        let suites = ["nccl-p5", "nccl-p5e", "nccl-p6-b200", "acceptance-p5"];
        assert_eq!(nearest_name("nccl-p6", suites), Some("nccl-p6-b200"));
        assert_eq!(nearest_name("nclc-p5", suites), Some("nccl-p5"));
        assert_eq!(nearest_name("sim-p5", ["default", "sim-32", "sim-512"]), None);
    }

    #[test]
    fn a_slip_of_the_finger_finds_its_word_and_a_stranger_finds_none() {
        let words = ["all_reduce", "all_gather", "scatter"];
        assert_eq!(nearest("all_redcue", words), Some("all_reduce"));
        assert_eq!(nearest("Scater", words), Some("scatter"));
        assert_eq!(nearest("xyz", words), None);
        assert_eq!(nearest("nwe", ["new", "old"]), Some("new"), "two letters of three are swapped");
        assert_eq!(nearest("wen", ["new", "old"]), None, "three letters are in other places");
    }

    #[test]
    fn the_most_alike_come_first_though_none_is_near() {
        let words = ["hang", "nic-slow", "nic-dead", "gpu-slow"];
        assert_eq!(most_alike("nic", words, 2), ["nic-slow", "nic-dead"]);
        assert_eq!(most_alike("", words, 9).len(), 4);
    }

    #[test]
    fn a_word_longer_than_any_name_is_compared_with_none() {
        let long = "a".repeat(super::LONGEST + 1);
        for candidate in [long.clone(), format!("{long}b")] {
            assert_eq!(nearest(&long, [candidate.as_str()]), None);
            assert_eq!(nearest_name(&long, [candidate.as_str()]), None);
            assert_eq!(within(&long, [candidate.as_str()], 1), None);
        }
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
