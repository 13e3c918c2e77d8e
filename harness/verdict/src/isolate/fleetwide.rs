//! Whether all are slow alike, which nobody is compared with: the values of like runs against what an accepted baseline lets
//! a good cluster have. Where that bound comes from is left to the plan.

use super::trial::Shape;

/// The values of runs of one shape, of whatever nodes.
#[derive(Debug, Clone, PartialEq)]
pub struct Level {
    pub shape: Shape,
    pub values: Vec<f64>,
    pub held: Held,
}

/// What they are held against.
#[derive(Debug, Clone, PartialEq)]
pub enum Held {
    /// The lower bound of an accepted baseline, and its key.
    Against { lower: f64, key: String },
    /// Why there is none.
    Nothing(String),
}

#[derive(Debug, Clone, PartialEq)]
pub enum Fleetwide {
    Good,
    /// What is below, by how much.
    Slow(String),
    Unknown(String),
}

/// Fewer may be the few that are slow.
const FEWEST: usize = 3;

pub fn told(levels: &[Level]) -> Fleetwide {
    let mut compared = false;
    let mut why: Option<&String> = None;
    for level in levels.iter().filter(|level| level.values.len() >= FEWEST) {
        let (lower, key) = match &level.held {
            Held::Against { lower, key } => (*lower, key),
            Held::Nothing(nothing) => {
                why.get_or_insert(nothing);
                continue;
            }
        };
        compared = true;
        let below = level.values.iter().filter(|value| **value < lower).count();
        // One in four may be better by chance; more of them are good nodes, and then the others are to be named.
        if below * 4 >= level.values.len() * 3 {
            let mut sorted = level.values.clone();
            sorted.sort_by(f64::total_cmp);
            let middle = sorted.get(sorted.len() / 2).copied().unwrap_or_default();
            return Fleetwide::Slow(format!(
                "{below} of {} runs are below what `{key}` lets a good cluster have, {lower:.1} GB/s, their median is \
                 {middle:.1} GB/s",
                level.values.len()
            ));
        }
    }
    match (compared, why) {
        (true, _) => Fleetwide::Good,
        (false, Some(why)) => Fleetwide::Unknown(why.clone()),
        (false, None) => Fleetwide::Unknown(format!("less than {FEWEST} runs of a kind")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn level(values: &[f64], lower: Option<f64>) -> Level {
        let held = match lower {
            Some(lower) => Held::Against { lower, key: "sim-p5 nccl.busbw".into() },
            None => Held::Nothing("no accepted baseline".into()),
        };
        Level { shape: Shape::Together { nodes: 4, across: false }, values: values.to_vec(), held }
    }

    #[test]
    fn all_alike_below_the_bound_is_the_fleets_and_a_few_below_it_are_not() {
        let slow = told(&[level(&[230.0, 231.0, 229.5, 330.0], Some(310.0))]);
        let Fleetwide::Slow(evidence) = slow else { panic!("{slow:?}") };
        assert_eq!(
            evidence,
            "3 of 4 runs are below what `sim-p5 nccl.busbw` lets a good cluster have, 310.0 GB/s, their median is \
             231.0 GB/s"
        );
        assert_eq!(told(&[level(&[230.0, 231.0, 330.0, 331.0], Some(310.0))]), Fleetwide::Good);
        assert_eq!(told(&[level(&[330.0; 5], Some(310.0))]), Fleetwide::Good);
    }

    #[test]
    fn one_shape_that_is_slow_is_enough_and_one_without_a_baseline_says_nothing() {
        let levels =
            [level(&[330.0; 5], None), level(&[330.0; 5], Some(310.0)), level(&[100.0; 3], Some(310.0))];
        assert!(matches!(told(&levels), Fleetwide::Slow(_)));
        assert_eq!(told(&levels[..1]), Fleetwide::Unknown("no accepted baseline".into()));
        assert_eq!(
            told(&[level(&[100.0; 2], Some(310.0))]),
            Fleetwide::Unknown("less than 3 runs of a kind".into())
        );
        assert_eq!(told(&[]), Fleetwide::Unknown("less than 3 runs of a kind".into()));
    }
}
