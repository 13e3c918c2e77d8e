//! States of pods as a real API server reported them.

use super::kubectl::{is_of_server, refusals};
use super::state::{PodState, read};
use super::{GET, HOSTS, PUT, left_file};
use base::digest::sha256;
use std::fs;
use std::io::Write;
use std::os::unix::fs::chown;
use std::process::{Child, Command, Stdio};

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
            {{"phase":"Running","conditions":{conditions},"containerStatuses":[{{"name":"work","ready":{ready},"state":{container}}}]}}}}]}}"#
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

/// As Kueue and the scheduler take pods away: each writes its condition first, and deletes the pod then.
#[test]
fn a_pod_that_is_deleted_for_somebody_else_has_the_reason_of_who_deletes_it() {
    let state = |phase: &str, condition: serde_json::Value, container: serde_json::Value| {
        let list = serde_json::json!({ "items": [{
            "metadata": { "name": "a", "uid": "u", "deletionTimestamp": "2026-01-01T00:00:00Z" },
            "status": { "phase": phase, "conditions": [condition],
                "containerStatuses": [{ "name": "work", "ready": true, "state": container }] },
        }] });
        read(list.to_string().as_bytes()).expect("a list").remove("a").expect("a pod").state
    };
    let condition = |kind: &str, status: &str, reason: &str, message: &str| serde_json::json!({ "type": kind, "status": status, "reason": reason, "message": message });
    let (runs, ended) = (
        serde_json::json!({ "running": {} }),
        serde_json::json!({ "terminated": { "reason": "Completed", "exitCode": 0 } }),
    );
    let kueue = condition(
        "TerminationTarget",
        "True",
        "WorkloadEvictedDueToPreempted",
        "Preempted to accommodate a workload (UID: 1)",
    );
    let over = |why: &str| PodState::Over(why.to_owned());
    let why =
        over("Kueue ended it: WorkloadEvictedDueToPreempted: Preempted to accommodate a workload (UID: 1)");
    assert_eq!(state("Running", kueue.clone(), runs.clone()), why);
    assert_eq!(state("Succeeded", kueue.clone(), ended), why);
    assert_eq!(state("Pending", kueue, serde_json::json!({})), why);
    let scheduler = condition(
        "DisruptionTarget",
        "True",
        "PreemptionByScheduler",
        "preempting to accommodate a higher priority pod",
    );
    let why = over("Preempted: preempting to accommodate a higher priority pod");
    assert_eq!(state("Running", scheduler, runs.clone()), why);
    let drained = condition("DisruptionTarget", "True", "EvictionByEvictionAPI", "Eviction API: evicting");
    assert_eq!(
        state("Running", drained, runs.clone()),
        over("EvictionByEvictionAPI: Eviction API: evicting")
    );
    let past = condition("DisruptionTarget", "False", "PreemptionByScheduler", "");
    assert_eq!(state("Running", past, runs), over("it is being deleted: somebody deleted or evicted it"));
}

/// A pod that Kueue admitted has no gate of it, and one that waits at another's gate does not wait for Kueue.
#[test]
fn a_pod_waits_for_the_queue_whose_gate_it_has() {
    let queue = |gates: serde_json::Value| {
        let list = serde_json::json!({ "items": [{
            "metadata": { "name": "a", "uid": "u", "labels": { "kueue.x-k8s.io/queue-name": "gpus" } },
            "spec": { "schedulingGates": gates }, "status": { "phase": "Pending" },
        }] });
        read(list.to_string().as_bytes()).expect("a list").remove("a").expect("a pod").queue
    };
    for gate in ["kueue.x-k8s.io/admission", "kueue.x-k8s.io/topology"] {
        assert_eq!(
            queue(serde_json::json!([{ "name": "other" }, { "name": gate }])).as_deref(),
            Some("gpus")
        );
    }
    assert_eq!(queue(serde_json::json!([{ "name": "example.com/kueue.x-k8s.io/admission" }])), None);
    assert_eq!(queue(serde_json::Value::Null), None);
}

/// A webhook puts containers beside the harness's own; the kubelet lists them by name, and calls the pod not ready for any.
#[test]
fn a_container_beside_ours_decides_nothing() {
    let pod = |phase: &str, status: &str, reason: &str, beside: &str, work: &str| {
        let list = format!(
            r#"{{"items":[{{"metadata":{{"name":"a","uid":"u"}},"status":{{"phase":"{phase}",
            "conditions":[{{"type":"Ready","status":"{status}","reason":"{reason}"}}],
            "containerStatuses":[{beside},{{"name":"work",{work}}},{{"name":"xray-daemon","ready":false,"state":{{"running":{{}}}}}}]}}}}]}}"#
        );
        let pod = read(list.as_bytes()).expect("a list").remove("a").expect("a pod");
        (pod.state, pod.has_succeeded)
    };
    let proxy = r#"{"name":"istio-proxy","ready":true,"state":{"running":{}}}"#;
    let init =
        r#"{"name":"cert-init","ready":false,"state":{"terminated":{"exitCode":0,"reason":"Completed"}}}"#;
    let runs = r#""ready":true,"state":{"running":{}}"#;
    let ended = |code: i32, reason: &str| {
        format!(r#""ready":false,"state":{{"terminated":{{"exitCode":{code},"reason":"{reason}"}}}}"#)
    };
    let over = |why: &str| PodState::Over(why.to_owned());
    let unready = "ContainersNotReady";
    for beside in [proxy, init] {
        assert_eq!(pod("Running", "False", unready, beside, runs), (PodState::Running, false));
        let killed = pod("Running", "False", unready, beside, &ended(137, "OOMKilled"));
        assert_eq!(killed, (over("OOMKilled: exit code 137"), false));
        let done = pod("Running", "False", unready, beside, &ended(0, "Completed"));
        assert_eq!(done, (over("Completed: exit code 0"), true));
        assert!(pod("Succeeded", "False", "PodCompleted", beside, &ended(0, "Completed")).1);
        // The other container failed.
        assert!(pod("Failed", "False", "PodFailed", beside, &ended(0, "Completed")).1);
        let pulls = r#""ready":false,"state":{"waiting":{"reason":"ImagePullBackOff"}}"#;
        assert_eq!(pod("Pending", "False", unready, beside, pulls).0, over("ImagePullBackOff"));
        // The node controller gives no reason.
        assert!(matches!(pod("Running", "False", "", beside, runs).0, PodState::NodeSilent(_)));
    }
    assert_eq!(pod("Running", "False", "ReadinessGatesNotReady", proxy, runs).0, PodState::Running);
}

/// As kubelets report it: our container waits for one of a webhook that pulls no image, or that has failed.
#[test]
fn a_container_that_keeps_ours_from_its_start_is_the_cause() {
    let state = |phase: &str, deleted: &str, before: &str, beside: &str, work: &str| {
        let list = format!(
            r#"{{"items":[{{"metadata":{{"name":"a","uid":"u"{deleted}}},"status":{{"phase":"{phase}",
            "initContainerStatuses":[{before}],"containerStatuses":[{beside}{{"name":"work","state":{work}}}]}}}}]}}"#
        );
        read(list.as_bytes()).expect("a list").remove("a").expect("a pod").state
    };
    let waits = |why: &str| PodState::Waiting(why.to_owned());
    let over = |why: &str| PodState::Over(why.to_owned());
    let pulls =
        r#"{"name":"proxy-init","state":{"waiting":{"reason":"ImagePullBackOff","message":"Back-off"}}}"#;
    let done = r#"{"name":"proxy-init","state":{"terminated":{"exitCode":0,"reason":"Completed"}}}"#;
    let failed = r#"{"name":"proxy-init","state":{"terminated":{"exitCode":2,"reason":"Error"}}}"#;
    let initializing = r#"{"waiting":{"reason":"PodInitializing"}}"#;
    let cause = "container proxy-init: ImagePullBackOff: Back-off";
    assert_eq!(state("Pending", "", pulls, "", initializing), waits(cause));
    assert_eq!(state("Pending", "", done, "", initializing), waits("PodInitializing"));
    assert_eq!(state("Pending", "", done, &format!("{pulls},"), r#"{"running":{}}"#), waits(cause));
    let own = r#"{"waiting":{"reason":"ErrImagePull","message":"no such image"}}"#;
    assert_eq!(state("Pending", "", pulls, "", own), waits("ErrImagePull: no such image"));
    let failure = "container proxy-init: Error: exit code 2";
    assert_eq!(state("Failed", "", failed, "", initializing), over(failure));
    assert_eq!(state("Failed", "", "", "", initializing), over("it ended before its container began"));
    let deleted = r#","deletionTimestamp":"2026-01-01T00:00:00Z""#;
    let gone = over("it is being deleted: somebody deleted or evicted it");
    assert_eq!(state("Pending", deleted, done, "", initializing), gone);
}

/// As kubectl prints what Kyverno, PodSecurity and a quota refuse; and the last line of a program that has no such mark.
#[test]
fn a_refusal_of_several_lines_is_one_and_warnings_are_none() {
    let stderr = "Warning: would violate PodSecurity\nError from server: error when creating \"STDIN\": admission webhook \
                  \"validate.kyverno.svc-fail\" denied the request: \n\nresource Pod/default/a was blocked\n\nrequire-labels:\n  \
                  check: 'label\u{1b} `team` is required'\nError from server (Forbidden): pods \"b\" is forbidden: exceeded quota\n";
    let kyverno = "Error from server: error when creating \"STDIN\": admission webhook \"validate.kyverno.svc-fail\" denied the \
                   request: resource Pod/default/a was blocked require-labels: check: 'label `team` is required'";
    let quota = "Error from server (Forbidden): pods \"b\" is forbidden: exceeded quota";
    assert_eq!(refusals(stderr.as_bytes()), [kyverno, quota]);
    let long = format!("error: {}\n{}", "x".repeat(200), "y".repeat(200));
    assert_eq!(refusals(long.as_bytes()).iter().map(String::len).collect::<Vec<_>>(), [300]);
    assert_eq!(refusals(b"one\ntwo\n"), ["one", "two"]);
    assert!(refusals(b"\nWarning: x\n").is_empty());
}

/// As kubectl prints them for an exec into a pod that runs; the last two are a dead kubelet's, and a program's own.
#[test]
fn what_the_server_refuses_for_a_running_pod_is_no_fault_of_its_node() {
    for (stderr, is_of_the_server) in [
        (
            "Error from server: admission webhook \"validate.kyverno.svc-fail\" denied the request: \n\nresource \
             PodExecOptions/default/ was blocked\n\ndeny-exec:\n  block: no exec here\n",
            true,
        ),
        ("Error from server (TooManyRequests): the server has received too many requests\n", true),
        (
            "Error from server (ServiceUnavailable): the server is currently unable to handle the request\n",
            true,
        ),
        (
            "Error from server (Timeout): the server was unable to return a response in the time allotted\n",
            true,
        ),
        ("Error from server: error dialing backend: remote error: tls: internal error\n", true),
        (
            "error: unable to upgrade connection: Forbidden (user=kube-apiserver, verb=create, resource=nodes, subresource=proxy)\n",
            true,
        ),
        ("error: Internal error occurred: unable to upgrade connection: 404 page not found\n", true),
        ("error: unable to upgrade connection: <h3>Unauthorized</h3>\n", true),
        ("Error from server: Upgrade request required\n", true),
        ("Error from server: error dialing backend: x509: certificate signed by unknown authority\n", true),
        (
            "Error from server: error dialing backend: dial tcp 10.0.0.5:10250: connect: connection refused\n",
            false,
        ),
        ("requests.exceptions.SSLError: x509: bad certificate\n", false),
    ] {
        let refusal = refusals(stderr.as_bytes()).pop().expect("a refusal");
        assert_eq!(is_of_server(&refusal), is_of_the_server, "{refusal}");
    }
}

/// A run that is resumed makes another pod in the place of one that is gone, with another address.
#[test]
fn a_pod_that_was_replaced_is_found_by_its_new_address() {
    let there = tempfile::tempdir().expect("a folder");
    let file = there.path().join("hosts");
    let own = "127.0.0.1\tlocalhost\n10.0.0.1\tn1\n";
    fs::write(&file, own).expect("written");
    let introduce = |lines: &[&str]| {
        let mut command = Command::new("sh");
        command.args(["-c", HOSTS, "sh"]).arg(&file).args(lines);
        assert!(command.status().expect("sh").success());
        fs::read_to_string(&file).expect("read").replace(own, "")
    };
    let first = "10.0.0.1 n1\n10.0.0.2 n2.x\n";
    assert_eq!(introduce(&["10.0.0.1 n1", "10.0.0.2 n2.x"]), first);
    assert_eq!(introduce(&["10.0.0.1 n1", "10.0.0.2 n2.x"]), first, "known already");
    let replaced = introduce(&["10.0.0.1 n1", "10.0.0.9 n2.x", "10.0.0.3 n2-x"]);
    assert_eq!(replaced, "10.0.0.1 n1\n10.0.0.9 n2.x\n10.0.0.3 n2-x\n");
}

#[test]
fn a_file_of_another_user_or_in_a_folder_of_one_is_not_read_from_a_pod() {
    let there = tempfile::tempdir().expect("a folder");
    let path = |name: &str| there.path().join(name).display().to_string();
    fs::create_dir_all(path("run/case/job")).expect("made");
    let file = path("run/case/job/log");
    fs::write(&file, "hidden").expect("written");
    let get = || {
        let (above, own) = left_file::split(&file);
        let arguments = ["-c", GET, "get", "mark", &file, "100", above, own];
        let output = Command::new("sh").args(arguments).output().expect("sh");
        let printed = String::from_utf8_lossy(&output.stdout).into_owned();
        (printed.contains("hidden"), String::from_utf8_lossy(&output.stderr).trim_end().to_owned())
    };
    assert_eq!(get(), (true, String::new()));
    // Only root can give a file away.
    if chown(&file, Some(65534), None).is_ok() {
        assert_eq!(get(), (false, "it belongs to user 65534, not to 0".to_owned()));
        chown(&file, Some(0), None).expect("given back");
        for level in ["run", "run/case", "run/case/job"] {
            chown(path(level), Some(65534), None).expect("given away");
            assert_eq!(get(), (false, format!("the folder `{}` belongs to user 65534", path(level))));
            chown(path(level), Some(0), None).expect("given back");
        }
    }
}

/// A shell whose stream broke lives until it sees that, which may be while a later one writes the same file.
#[test]
fn an_attempt_that_ends_late_does_not_undo_the_next_one() {
    let there = tempfile::tempdir().expect("a folder");
    let file = there.path().join("run/job.sh").display().to_string();
    let begin = |mark: &str| -> Child {
        let (above, own) = left_file::split(&file);
        let mut command = Command::new("sh");
        command.args(["-c", PUT, "put", mark, &file, "5", &sha256(b"hello"), above, own]);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("sh")
    };
    let is_writing = |child: &mut Child, mark: &str| {
        let part = there.path().join(format!("run/job.sh.{mark}.part"));
        while !part.exists() {
            assert!(child.try_wait().expect("asked").is_none(), "it ended before it wrote");
            std::thread::yield_now();
        }
    };
    let (one, two) = ("0123456789abcdef", "fedcba9876543210");
    let mut first = begin(one);
    is_writing(&mut first, one);
    let mut second = begin(two);
    is_writing(&mut second, two);
    // Its stream ends without a byte.
    let first = first.wait_with_output().expect("an end");
    assert!(!String::from_utf8_lossy(&first.stdout).ends_with(" 0\n"), "{first:?}");
    second.stdin.take().expect("a pipe").write_all(b"hello").expect("written");
    let second = second.wait_with_output().expect("an end");
    assert!(String::from_utf8_lossy(&second.stdout).ends_with(&format!("ends {two} 0\n")), "{second:?}");
    assert_eq!(fs::read(&file).expect("a file"), b"hello");
    assert_eq!(fs::read_dir(there.path().join("run")).expect("a folder").count(), 1, "nothing is left");
}
