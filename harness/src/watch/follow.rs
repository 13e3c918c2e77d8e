//! How far a run is, by its events: what its page shows while it goes on.

use crate::report::RunState;
use base::nodeset;
use std::collections::BTreeMap;
use store::Stored;

/// By all events so far; those of other kinds, and what is no text where one is expected, say nothing.
pub(super) fn run_state(stored: &Stored, events: &[serde_json::Value], judged: usize) -> RunState {
    let mut running: BTreeMap<(String, String), String> = BTreeMap::new();
    let mut ended = 0;
    for event in events {
        let text = |key: &str| event[key].as_str().unwrap_or_default().to_owned();
        let job = (text("case"), text("job"));
        match event["event"].as_str() {
            Some("job-submitted") => {
                let nodes = event["nodes"].as_array().into_iter().flatten();
                let nodes: Vec<&str> = nodes.filter_map(serde_json::Value::as_str).collect();
                running.insert(job, nodeset::fold(&nodes));
            }
            Some("job-ended") => {
                running.remove(&job);
                ended += 1;
            }
            _ => {}
        }
    }
    let running = running.into_iter().map(|((case, job), nodes)| (case, job, nodes)).collect();
    RunState { judged, cases: stored.plan.cases.len(), running, ended }
}
