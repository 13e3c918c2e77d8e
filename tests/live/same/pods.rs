//! The cases of the suite that ships which run on one node: in pods of a real Kubernetes they have the verdicts that they
//! have over simulated ssh, by the same model.

use super::ways::{SHORT_S, SuiteRequest, by_pods, simulated_ssh};
use super::{assert_same_verdicts, parts};
use crate::fact::Fact;

pub(super) const FACTS: &[Fact] = &[("a_healthy_suite_has_the_verdicts_of_simulated_ssh", healthy)];

fn healthy() {
    let text = parts(&["gpu-each", "node-{op}"]);
    let asked = SuiteRequest { suite: "parts", faults: &[], text: &text, floor_s: SHORT_S };
    let ways = [simulated_ssh(&asked), by_pods(&asked)];
    for way in &ways {
        assert_eq!(
            (way.ran.code, way.ran.blamed()),
            (Some(0), Vec::new()),
            "{}: {}",
            way.name,
            way.ran.all()
        );
        way.assert_marked();
    }
    assert_same_verdicts(&ways);
}
