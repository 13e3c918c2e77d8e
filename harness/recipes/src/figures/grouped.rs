//! Values of many groups, laid out group by group in one pass, so that the figures of each come from one slice.

use super::{Keeps, Stats};
use rayon::prelude::*;

/// Values in order of their groups, with the end of each group.
pub struct Grouped {
    values: Vec<u64>,
    /// Where each group ends; it begins where the one before ends.
    ends: Vec<usize>,
}

impl Grouped {
    /// Of row `i`, `groups[i]` is the group and `values[i]` the value.
    pub(crate) fn new(groups: &[u32], values: &[u64], count: usize) -> Grouped {
        let mut ends = vec![0usize; count];
        for group in groups {
            if let Some(end) = ends.get_mut(*group as usize) {
                *end += 1;
            }
        }
        let mut sum = 0;
        for end in &mut ends {
            // First the places where groups begin; each row moves its group's on, until they are the ends.
            let length = *end;
            *end = sum;
            sum += length;
        }
        let mut laid = vec![0; sum];
        for (group, value) in groups.iter().zip(values) {
            if let Some(next) = ends.get_mut(*group as usize) {
                laid[*next] = *value;
                *next += 1;
            }
        }
        Grouped { values: laid, ends }
    }

    /// Of each group; of one without a value there are none.
    pub(crate) fn stats(&mut self) -> Vec<Option<Stats>> {
        self.gather()
    }

    /// The same for whatever is kept of values.
    pub(crate) fn gather<K: Keeps>(&mut self) -> Vec<Option<K>> {
        let mut slices = Vec::with_capacity(self.ends.len());
        let (mut rest, mut begin) = (self.values.as_mut_slice(), 0);
        for end in &self.ends {
            let (group, others) = rest.split_at_mut(end - begin);
            slices.push(group);
            (rest, begin) = (others, *end);
        }
        slices.into_par_iter().map(K::from_values).collect()
    }

    /// The values of one group, in the order of their rows.
    pub(crate) fn values(&self, group: usize) -> &[u64] {
        let begin = if group == 0 { 0 } else { self.ends[group - 1] };
        &self.values[begin..self.ends[group]]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nsys::trace::NO_GROUP;

    #[test]
    fn rows_come_to_their_groups_and_rows_of_none_are_left_out() {
        let groups = [1, 0, 1, NO_GROUP, 3];
        let mut grouped = Grouped::new(&groups, &[10, 20, 30, 40, 50], 4);
        let values: Vec<&[u64]> = (0..4).map(|group| grouped.values(group)).collect();
        assert_eq!(values, [&[20][..], &[10, 30], &[], &[50]]);
        let totals: Vec<Option<u128>> =
            grouped.stats().into_iter().map(|stats| stats.map(|s| s.total)).collect();
        assert_eq!(totals, [Some(20), Some(40), None, Some(50)]);
    }
}
