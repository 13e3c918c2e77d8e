//! Properties that a case asks of its jobs. Each is declared once, by its field and its row: suites and `--set` read it,
//! the plan carries it to every later stage, and the dry run shows it.

use base::text::duration;
use serde::{Deserialize, Serialize};
use std::ops::RangeInclusive;

/// What a case asks of each of its jobs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct JobProperties {
    /// Wall time of each job, in seconds from its start.
    pub limit_s: u64,
    /// A job that makes no progress for so long is ended; never, where absent. It has no row: it stands in the table of
    /// the workload, which knows what is usual.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stall_s: Option<u64>,
    /// Longest wait of a job in the queue, in seconds.
    pub queue_limit_s: u64,
}

/// As a suite has them that says nothing.
impl Default for JobProperties {
    fn default() -> JobProperties {
        JobProperties { limit_s: 900, stall_s: None, queue_limit_s: 3600 }
    }
}

/// How a property is called, read and shown.
pub struct JobProperty {
    /// In the table of a case, and of `--set`.
    pub key: &'static str,
    /// For the help of `--set`.
    pub about: &'static str,
    /// Where a suite says nothing, as TOML.
    pub default: &'static str,
    /// What a suite may ask for.
    pub range: RangeInclusive<u64>,
    /// Takes the value from a suite or from `--set`.
    pub set: fn(&mut JobProperties, u64),
    /// In the dry run; nothing where it says nothing of these jobs.
    pub describe: fn(&JobProperties) -> Option<String>,
}

/// Every property with a key of its own, in the order in which they are listed.
pub static JOB_PROPERTIES: [JobProperty; 2] = [
    JobProperty {
        key: "limit_s",
        about: "time limit of a job, in seconds",
        default: "900",
        range: 1..=7 * 86_400,
        set: |properties, seconds| properties.limit_s = seconds,
        describe: |properties| Some(format!("time limit: {}", duration(properties.limit_s as f64))),
    },
    JobProperty {
        key: "queue_limit_s",
        about: "how long a job may wait in the queue, in seconds",
        default: "3600",
        range: 1..=30 * 86_400,
        set: |properties, seconds| properties.queue_limit_s = seconds,
        describe: |properties| Some(format!("in the queue: {}", duration(properties.queue_limit_s as f64))),
    },
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_row_shows_the_default() {
        for property in &JOB_PROPERTIES {
            let mut properties = JobProperties::default();
            (property.set)(&mut properties, property.default.parse().expect("a whole number"));
            assert_eq!(properties, JobProperties::default(), "{}", property.key);
        }
    }

    #[test]
    fn each_row_sets_and_shows_a_property_of_its_own() {
        for property in &JOB_PROPERTIES {
            let mut properties = JobProperties::default();
            (property.set)(&mut properties, 7);
            assert_ne!(properties, JobProperties::default(), "{}", property.key);
            assert!(
                (property.describe)(&properties).is_some_and(|text| text.contains("7 s")),
                "{}",
                property.key
            );
        }
    }
}
