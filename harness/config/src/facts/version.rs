//! Versions of software, ordered by number: as text 1.10 would come before 1.9.

use std::cmp::Ordering;

/// By the numbers between points; what is glued to a number, such as `amzn3` or `-1`, counts for nothing.
pub fn compare(a: &str, b: &str) -> Ordering {
    let (a, b) = (numbers(a), numbers(b));
    let longest = a.len().max(b.len());
    let at = |numbers: &[u64], index: usize| numbers.get(index).copied().unwrap_or_default();
    (0..longest)
        .map(|index| at(&a, index).cmp(&at(&b, index)))
        .find(|one| one.is_ne())
        .unwrap_or(Ordering::Equal)
}

/// Whether a text begins with a number.
pub fn is_one(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_digit())
}

fn numbers(text: &str) -> Vec<u64> {
    let mut numbers = Vec::new();
    for part in text.split('.') {
        let digits = part.find(|c: char| !c.is_ascii_digit()).unwrap_or(part.len());
        numbers.push(part[..digits].parse().unwrap_or_default());
        if digits < part.len() {
            break;
        }
    }
    numbers
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_ordered_by_number() {
        for (a, b, wanted) in [
            ("1.10.0", "1.9.1", Ordering::Greater),
            ("570.133.20", "570.133.20-SIMULATED", Ordering::Equal),
            ("2.1.0amzn3.0", "2.1", Ordering::Equal),
            ("550.90", "550.127", Ordering::Less),
            ("2", "2.0.0", Ordering::Equal),
        ] {
            assert_eq!(compare(a, b), wanted, "{a} {b}");
            assert_eq!(compare(b, a), wanted.reverse(), "{b} {a}");
        }
    }
}
