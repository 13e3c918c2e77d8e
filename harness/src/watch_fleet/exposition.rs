//! The state of the fleet as metrics for node_exporter. The number of series is bounded.

use super::messages::code_of;
use crate::report::metrics::{Gauges, Labels, expose};
use fleet::{Coverage, Fall};
use std::collections::BTreeMap;

/// Alarms with series of their own; `harness_fleet_alarms` counts them all.
const MOST_ALARMS: usize = 100;

/// What a round leaves.
pub(super) struct RoundState<'a> {
    pub inventory: &'a str,
    pub now_s: u64,
    pub alarms: &'a [Fall],
    pub suspects: usize,
    /// Tests in which many nodes fell alike.
    pub fell: usize,
    /// Nodes on which the suite failed, and blamed none.
    pub unattributed: usize,
    pub coverage: &'a Coverage,
    pub idle: usize,
    /// The last round did what was to be done.
    pub is_complete: bool,
}

pub(super) fn render(round: &RoundState<'_>) -> Vec<u8> {
    let one = |name, about, value: f64| Gauges {
        name,
        about,
        samples: vec![(vec![("inventory", round.inventory.to_owned())], value)],
    };
    let mut worst: BTreeMap<Labels, f64> = BTreeMap::new();
    for fall in round.alarms.iter().take(MOST_ALARMS) {
        let labels = vec![
            ("inventory", round.inventory.to_owned()),
            ("node", fall.node.clone()),
            ("part", fall.part.clone()),
            ("code", code_of(fall).to_owned()),
        ];
        let value = worst.entry(labels).or_default();
        *value = value.max(fall.lower_by);
    }
    let coverage = round.coverage;
    let count = |value: usize| value as f64;
    expose(&[
        one("harness_fleet_alarms", "Alarms that last", count(round.alarms.len())),
        Gauges {
            name: "harness_fleet_alarm_ratio",
            about: "An alarm that lasts: by which part it is below its own past; 0 where it fails",
            samples: worst.into_iter().collect(),
        },
        one("harness_fleet_suspects", "Nodes and parts that are checked again", count(round.suspects)),
        one("harness_fleet_tests_fell", "Tests in which many nodes fell alike", count(round.fell)),
        one(
            "harness_fleet_unattributed_nodes",
            "Nodes on which the suite failed in their last check, and blamed none",
            count(round.unattributed),
        ),
        one("harness_fleet_nodes", "Nodes of the inventory", count(coverage.nodes)),
        one("harness_fleet_idle_nodes", "Nodes that were idle in the last round", count(round.idle)),
        one("harness_fleet_recent_nodes", "Nodes measured within 30 days", count(coverage.recent)),
        one("harness_fleet_never_measured_nodes", "Nodes that were never measured", count(coverage.never)),
        one(
            "harness_fleet_tried_in_vain_nodes",
            "Nodes whose last three tries, or more, gave no measurement",
            count(coverage.tried_in_vain.len()),
        ),
        one(
            "harness_fleet_oldest_check_seconds",
            "Age of the last check of the node that was measured longest ago",
            coverage.oldest_s as f64,
        ),
        one("harness_fleet_checks", "Checks of nodes so far", coverage.checks as f64),
        one("harness_fleet_node_hours_7d", "Node-hours of checks in 7 days", coverage.node_hours.0),
        one("harness_fleet_budget_node_hours_7d", "What the budget allows in 7 days", coverage.node_hours.1),
        one(
            "harness_fleet_complete",
            "1 where the queue was read and the last check measured something, or none was due",
            f64::from(u8::from(round.is_complete)),
        ),
        one("harness_fleet_last_round_timestamp_seconds", "When the last round ended", round.now_s as f64),
    ])
}
