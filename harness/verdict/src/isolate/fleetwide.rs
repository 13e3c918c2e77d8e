//! Whether all nodes are equally slow, which a comparison with peers cannot show: the values of runs of one shape
//! compared with the lower bound of an accepted baseline. The plan looks that bound up.

use super::trial::Shape;

/// The values of runs of one shape, of whatever nodes.
#[derive(Debug, Clone, PartialEq)]
pub struct Level {
    /// Only whole nodes: `Together` or `Inside`.
    pub shape: Shape,
    /// Bus bandwidth of each run, in GB/s.
    pub values: Vec<f64>,
    /// The accepted baseline of such a run, or why there is none.
    pub reference: Reference,
}

/// What they are compared with.
#[derive(Debug, Clone, PartialEq)]
pub enum Reference {
    /// The lower bound of an accepted baseline, and its key.
    Baseline {
        /// In GB/s.
        lower: f64,
        /// The baseline's key, as messages show it.
        key: String,
    },
    /// Why there is none.
    Missing(String),
}

/// Whether the fleet as a whole is below its baseline.
#[derive(Debug, Clone, PartialEq)]
pub enum Fleetwide {
    /// At least one shape was compared, and none is slow.
    Good,
    /// What is below, by how much.
    Slow(String),
    /// Why nothing could be compared.
    Unknown(String),
}

/// Fewer may be the few that are slow.
const FEWEST: usize = 3;
/// What slows all nodes slows them alike: from the slowest run to the fastest of the slow ones.
const ALIKE: f64 = 1.15;

/// One slow shape is enough; shapes of fewer than three values are ignored.
pub fn judge(levels: &[Level]) -> Fleetwide {
    let mut compared = false;
    let mut why: Option<&String> = None;
    for level in levels.iter().filter(|level| level.values.len() >= FEWEST) {
        let (lower, key) = match &level.reference {
            Reference::Baseline { lower, key } => (*lower, key),
            Reference::Missing(nothing) => {
                why.get_or_insert(nothing);
                continue;
            }
        };
        compared = true;
        let slow = || level.values.iter().copied().filter(|value| *value < lower);
        let below = slow().count();
        let (least, most) = (slow().fold(f64::INFINITY, f64::min), slow().fold(0.0, f64::max));
        // One in four may be better by chance; more of them are good nodes, and then the others are to be named. Runs that
        // differ are slow by several faults.
        if below * 4 >= level.values.len() * 3 && most <= least * ALIKE {
            let mut sorted = level.values.clone();
            sorted.sort_by(f64::total_cmp);
            let middle = sorted.get(sorted.len() / 2).copied().unwrap_or_default();
            return Fleetwide::Slow(format!(
                "{below} of {} runs are below the baseline `{key}`: median {middle:.1} GB/s, limit {lower:.1} GB/s",
                level.values.len()
            ));
        }
    }
    match (compared, why) {
        (true, _) => Fleetwide::Good,
        (false, Some(why)) => Fleetwide::Unknown(why.clone()),
        (false, None) => Fleetwide::Unknown(format!("fewer than {FEWEST} runs of one shape")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn level(values: &[f64], lower: Option<f64>) -> Level {
        let reference = match lower {
            Some(lower) => Reference::Baseline { lower, key: "sim-p5 nccl.busbw".into() },
            None => Reference::Missing("no accepted baseline".into()),
        };
        Level { shape: Shape::Together { nodes: 4, across: false }, values: values.to_vec(), reference }
    }

    #[test]
    fn most_runs_below_the_bound_are_a_slow_fleet_and_a_few_are_not() {
        let slow = judge(&[level(&[230.0, 231.0, 229.5, 330.0], Some(310.0))]);
        let Fleetwide::Slow(evidence) = slow else { panic!("{slow:?}") };
        assert_eq!(
            evidence,
            "3 of 4 runs are below the baseline `sim-p5 nccl.busbw`: median 231.0 GB/s, limit 310.0 GB/s"
        );
        assert_eq!(judge(&[level(&[230.0, 231.0, 330.0, 331.0], Some(310.0))]), Fleetwide::Good);
        assert_eq!(judge(&[level(&[330.0; 5], Some(310.0))]), Fleetwide::Good);
    }

    #[test]
    fn runs_that_are_slow_by_different_faults_are_no_slow_fleet() {
        let differ = [230.0, 231.0, 130.0, 131.0];
        assert_eq!(judge(&[level(&differ, Some(310.0))]), Fleetwide::Good);
        assert!(matches!(
            judge(&[level(&differ.map(|value| value.max(210.0)), Some(310.0))]),
            Fleetwide::Slow(_)
        ));
    }

    #[test]
    fn one_slow_shape_is_enough_and_one_without_a_baseline_is_ignored() {
        let levels =
            [level(&[330.0; 5], None), level(&[330.0; 5], Some(310.0)), level(&[100.0; 3], Some(310.0))];
        assert!(matches!(judge(&levels), Fleetwide::Slow(_)));
        assert_eq!(judge(&levels[..1]), Fleetwide::Unknown("no accepted baseline".into()));
        assert_eq!(
            judge(&[level(&[100.0; 2], Some(310.0))]),
            Fleetwide::Unknown("fewer than 3 runs of one shape".into())
        );
        assert_eq!(judge(&[]), Fleetwide::Unknown("fewer than 3 runs of one shape".into()));
    }

    #[test]
    fn messages() {
        let text = |levels: &[Level]| match judge(levels) {
            Fleetwide::Good => "good".to_owned(),
            Fleetwide::Slow(evidence) => format!("slow: {evidence}"),
            Fleetwide::Unknown(why) => format!("unknown: {why}"),
        };
        let lines = [
            text(&[level(&[230.0, 231.0, 229.5, 330.0], Some(310.0))]),
            text(&[level(&[100.0; 3], Some(310.0))]),
            text(&[level(&[330.0; 5], Some(310.0))]),
            text(&[level(&[330.0; 5], None)]),
            text(&[]),
        ];
        insta::assert_snapshot!(lines.join("\n"));
    }
}
