//! Natural order of file names: `rank2` before `rank10`.

use std::cmp::Ordering;

/// Runs of digits by their value, all else by its bytes; equal where the texts are equal and nowhere else.
pub fn natural(a: &str, b: &str) -> Ordering {
    let (mut left, mut right) = (a, b);
    loop {
        let (digits_left, digits_right) = (digits(left), digits(right));
        if !digits_left.is_empty() && !digits_right.is_empty() {
            let (x, y) = (digits_left.trim_start_matches('0'), digits_right.trim_start_matches('0'));
            // Without their zeros the longer number is the greater one, however long it is.
            let order = x.len().cmp(&y.len()).then_with(|| x.cmp(y));
            if order != Ordering::Equal {
                return order;
            }
            (left, right) = (&left[digits_left.len()..], &right[digits_right.len()..]);
            continue;
        }
        let (mut rest_left, mut rest_right) = (left.chars(), right.chars());
        match (rest_left.next(), rest_right.next()) {
            (Some(x), Some(y)) if x == y => (left, right) = (rest_left.as_str(), rest_right.as_str()),
            // Numbers with zeros before them and without are equal so far.
            (None, None) => return a.cmp(b),
            (x, y) => return x.cmp(&y),
        }
    }
}

fn digits(text: &str) -> &str {
    let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    &text[..end]
}

#[cfg(test)]
mod tests {
    use super::natural;

    #[test]
    fn numbers_in_names_go_by_their_value() {
        let mut names =
            ["rank10", "rank2", "rank02", "rank", "a100-9b", "a100-10a", "99999999999999999999999", "3", "é"];
        names.sort_by(|a, b| natural(a, b));
        assert_eq!(
            names,
            ["3", "99999999999999999999999", "a100-9b", "a100-10a", "rank", "rank02", "rank2", "rank10", "é"]
        );
    }
}
