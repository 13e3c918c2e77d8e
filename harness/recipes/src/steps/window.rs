//! Compares the requested steps with those that were found.

use super::Step;
use std::collections::BTreeSet;

/// From the first to the last, both with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Window {
    /// How many steps were requested; 0 where the last precedes the first.
    pub asked: u64,
    /// How many complete steps there are, requested or not.
    pub found: u64,
    /// Numbers that were asked for and are not there; nothing where steps have no numbers.
    pub missing: Option<BTreeSet<u64>>,
    /// Numbers that are there and were not asked for.
    pub beyond: BTreeSet<u64>,
}

impl Window {
    /// Whether exactly the requested steps are there; without numbers, as many.
    pub(crate) fn is_as_asked(&self) -> bool {
        let none_missing = self.missing.as_ref().is_none_or(BTreeSet::is_empty);
        self.asked == self.found && none_missing && self.beyond.is_empty()
    }
}

/// More missing numbers than this are not listed one by one.
const MOST: u64 = 10_000;

/// Incomplete steps are not found. A window that ends before it begins asks for none.
pub fn window(first: u64, last: u64, steps: &[Step]) -> Window {
    let whole: Vec<&Step> = steps.iter().filter(|step| step.is_whole()).collect();
    let asked = last.checked_sub(first).map_or(0, |more| more.saturating_add(1));
    let numbers: Option<BTreeSet<u64>> = whole.iter().map(|step| step.number).collect();
    let numbers = numbers.filter(|numbers| !numbers.is_empty());
    let Some(numbers) = numbers else {
        return Window { asked, found: whole.len() as u64, missing: None, beyond: BTreeSet::new() };
    };
    let beyond = numbers.iter().filter(|number| !(first..=last).contains(number)).copied().collect();
    let missing = (first..=last).take(MOST as usize).filter(|number| !numbers.contains(number)).collect();
    Window { asked, found: whole.len() as u64, missing: Some(missing), beyond }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn steps(numbers: &[Option<u64>]) -> Vec<Step> {
        numbers
            .iter()
            .map(|number| Step { number: *number, start: 0, end: 1, alike: None, has_end: true })
            .collect()
    }

    #[test]
    fn a_window_has_its_first_and_its_last_step() {
        let found = window(70, 75, &steps(&[70, 71, 72, 73, 74, 75].map(Some)));
        assert!(found.is_as_asked() && found.asked == 6, "{found:?}");
    }

    #[test]
    fn steps_that_are_missing_or_too_many_are_named() {
        let found = window(70, 73, &steps(&[69, 70, 72].map(Some)));
        assert!(!found.is_as_asked());
        assert_eq!((found.asked, found.found), (4, 3));
        assert_eq!(found.missing, Some(BTreeSet::from([71, 73])));
        assert_eq!(found.beyond, BTreeSet::from([69]));
    }

    #[test]
    fn steps_without_numbers_are_counted_alone() {
        assert!(window(70, 72, &steps(&[None; 3])).is_as_asked());
        let found = window(70, 75, &steps(&[None; 3]));
        assert_eq!((found.is_as_asked(), found.missing), (false, None));
        assert_eq!(window(5, 4, &steps(&[])).asked, 0);
        assert_eq!(window(0, u64::MAX, &steps(&[Some(3)])).asked, u64::MAX);
    }
}
