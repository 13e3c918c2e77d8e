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
