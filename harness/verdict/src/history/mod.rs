//! Trends over many stored runs: how a number went over time and where it changed, and which parts were suspected
//! before. All of it is read from the runs' own folders; what
//! lists need of each is kept beside them in an index, which can be removed at any time.

pub mod agreement;
pub mod before;
pub mod blameless;
pub mod change;
pub mod grounds;
#[cfg(test)]
mod grounds_tests;
pub mod hardware;
pub mod hardware_record;
pub mod identifiers;
pub mod index;
#[cfg(test)]
mod index_tests;
mod isolations;
mod outline;
pub mod past;
pub mod series;
mod sightings;
pub mod suspects;

#[cfg(test)]
mod before_tests;
#[cfg(test)]
mod hardware_history_tests;
#[cfg(test)]
mod hardware_record_tests;
#[cfg(test)]
mod message_tests;
#[cfg(test)]
mod past_tests;
#[cfg(test)]
mod series_tests;
#[cfg(test)]
mod suspects_tests;

/// A line of numbers in one row of blocks, the lowest to the highest; a number that is none is a blank.
pub fn spark(values: &[Option<f64>]) -> String {
    const BLOCKS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
    let known = || values.iter().flatten().copied().filter(|value| value.is_finite());
    let (low, high) = (known().fold(f64::INFINITY, f64::min), known().fold(f64::NEG_INFINITY, f64::max));
    let block = |value: f64| match high > low {
        true => BLOCKS[((value - low) / (high - low) * 7.0).round() as usize],
        false => BLOCKS[3],
    };
    let shown = |value: &Option<f64>| value.filter(|value| value.is_finite()).map_or(' ', block);
    values.iter().map(shown).collect()
}

#[cfg(test)]
mod tests {
    use super::spark;

    #[test]
    fn numbers_become_a_row_of_blocks_and_gaps_are_blank() {
        assert_eq!(spark(&[Some(1.0), Some(8.0), None, Some(f64::NAN), Some(4.5)]), "▁█  ▅");
        assert_eq!(spark(&[Some(2.0), Some(2.0)]), "▄▄");
        assert_eq!(spark(&[]), "");
    }
}
