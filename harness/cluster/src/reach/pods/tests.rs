//! States of pods as a real API server reported them.

use super::state::{PodState, read};

/// Pods of Kubernetes 1.20.
const LIST: &str = include_str!("pods.json");

#[test]
fn states_of_pods_are_causes_in_the_servers_own_words() {
    let pods = read(LIST.as_bytes()).expect("a list");
    let lines: Vec<String> = pods.iter().map(|(name, pod)| format!("{name}: {:?}", pod.state)).collect();
    insta::assert_snapshot!(lines.join("\n"));
}

#[test]
fn what_is_no_list_is_refused_and_what_moves_a_terminal_is_not_shown() {
    for odd in ["", "[]", "{}", "{\"items\": 3}", "\u{0}"] {
        assert!(read(odd.as_bytes()).is_err(), "{odd}");
    }
    let hostile = serde_json::json!({ "items": [7, { "metadata": { "name": "a\u{1b}[2J", "uid": "u" },
        "status": { "phase": "Failed", "reason": "x\u{1b}]0;y\u{7}", "podIP": "1.2.3.4 evil" } }] });
    let pods = read(hostile.to_string().as_bytes()).expect("a list");
    let (name, pod) = pods.iter().next().expect("one");
    assert!(!name.contains('\u{1b}') && pod.ip.is_none());
    assert_eq!(pod.state, PodState::Over("x ]0;y".to_owned()));
}

/// As Kubernetes 1.20 reported them while they were ended, and while their node was away.
#[test]
fn a_pod_that_is_deleted_is_reported_as_deleted_and_one_on_a_lost_node_as_silent() {
    let ready = |status: &str| format!(r#"[{{"type":"Ready","status":"{status}"}}]"#);
    let state = |conditions: &str, ready: bool, container: &str| {
        let list = format!(
            r#"{{"items":[{{"metadata":{{"name":"a","uid":"u","deletionTimestamp":"2026-01-01T00:00:00Z"}},"status":
            {{"phase":"Running","conditions":{conditions},"containerStatuses":[{{"ready":{ready},"state":{container}}}]}}}}]}}"#
        );
        read(list.as_bytes()).expect("a list").remove("a").expect("a pod").state
    };
    let ended = |reason: &str| format!(r#"{{"terminated":{{"reason":"{reason}","exitCode":137}}}}"#);
    let over = |why: &str| PodState::Over(why.to_owned());
    let deleted = over("it is being deleted: somebody deleted or evicted it");
    assert_eq!(state(&ready("True"), true, r#"{"running":{}}"#), deleted);
    assert_eq!(state(&ready("False"), false, &ended("Completed")), deleted);
    assert_eq!(state(&ready("False"), false, &ended("OOMKilled")), over("OOMKilled: exit code 137"));
    let silent = state(&ready("False"), true, r#"{"running":{}}"#);
    assert_eq!(silent, PodState::NodeSilent("NotReady".to_owned()));
}
