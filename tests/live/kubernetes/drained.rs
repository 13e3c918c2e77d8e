//! Nodes of a real Kubernetes that are cordoned for a culprit and put back, by somebody who may do no more than the roles
//! allow that the harness prints.

use super::bench::{Bench, RUN, WAITS, case, until};
use crate::fact::Fact;
use crate::project::{Ran, ran};
use std::fs;
use std::path::PathBuf;
use std::process::{Command, Stdio};

pub(super) const FACTS: &[Fact] = &[
    ("a_culprit_is_cordoned_and_put_back_once_it_passes_by_who_has_the_roles_for_it", cordoned),
    ("a_patch_of_an_old_version_is_refused_as_a_conflict", conflict),
];

const ISOLATE: [&str; 5] = ["isolate", "--suite", "live", "--inventory", "live"];

/// Jobs of `n2` hang until its node is mended. One that does drains no node: there are two.
fn suite(bench: &Bench) {
    let program = "until [ \"$HARNESS_NODE\" != n2 ] || [ -e BENCH/mended ]; do sleep 0.2; done";
    let case = |name| case(name, "\"each\"", program, "").replace("limit_s = 300", "limit_s = 10");
    bench.suite("live", &[case("first"), case("second")].concat());
}

/// A user of that name, who may do what the printed roles allow.
fn kubeconfig(bench: &Bench, user: &str, more: &[&str]) -> PathBuf {
    let namespace = bench.namespace.to_string();
    let line = ["inventory", "role", "--namespace", &namespace, "--user", user];
    let printed = bench.harness(&[&line[..], more].concat());
    assert_eq!(printed.code, Some(0), "{}", printed.all());
    let file = bench.project.path().join(format!("{user}.yaml"));
    fs::write(&file, &printed.stdout).expect("written");
    bench.cluster.kubectl(&["apply", "--filename", &file.display().to_string()]);
    let own = bench.cluster.variables().into_iter().find(|(name, _)| *name == "KUBECONFIG").expect("one").1;
    let text = fs::read_to_string(own).expect("a kubeconfig");
    let file = bench.project.path().join(format!("{user}.kubeconfig"));
    fs::write(&file, text.replace("{token:", &format!("{{as: {user}, token:"))).expect("written");
    // The server's authorizer sees new roles a moment later.
    let may = |verb: &str, what: &str| {
        let mut asked = Command::new("env");
        asked.args(["kubectl", "auth", "can-i", verb, what, &format!("--namespace={namespace}")]);
        asked.envs(bench.cluster.variables()).env("KUBECONFIG", &file).stderr(Stdio::null());
        asked.stdout(Stdio::null()).status().expect("kubectl").success()
    };
    until(30, "the roles hold", || may("list", "pods") && (more.is_empty() || may("patch", "nodes")));
    file
}

fn as_user(bench: &Bench, kubeconfig: &PathBuf, args: &[&str]) -> Ran {
    let mut command = bench.command(args);
    ran(command.env("KUBECONFIG", kubeconfig).output().expect("the harness starts"))
}

/// What the server shows of a node: cordoned, our annotation, and the keys of its taints.
fn node_facts(bench: &Bench, node: &str) -> [String; 3] {
    let ask =
        |path: &str| bench.cluster.kubectl(&["get", "node", node, &format!("--output=jsonpath={path}")]);
    [
        ask("{.spec.unschedulable}"),
        ask("{.metadata.annotations.harness/drained}"),
        ask("{.spec.taints[*].key}"),
    ]
}

fn cordoned() {
    let bench = Bench::new("n[1-4]", "");
    suite(&bench);
    let runs_alone = kubeconfig(&bench, "runs-alone", &[]);
    bench.cluster.kubectl(&["taint", "nodes", "n2", "theirs=kept:PreferNoSchedule"]);
    let red = as_user(&bench, &runs_alone, &[&RUN[..], &["--keep-bad-nodes"]].concat());
    assert_eq!(red.code, Some(3), "{}", red.all());
    assert!(red.all().contains("culprit n2"), "{}", red.all());

    let drain = [&ISOLATE[..], &["--drain", "--yes"]].concat();
    let refused = as_user(&bench, &runs_alone, &drain);
    assert!(refused.stdout.contains("(Forbidden)"), "{}", refused.all());
    assert!(
        refused.stdout.contains("`harness inventory role --namespace NAME --drain`"),
        "{}",
        refused.all()
    );
    assert_eq!(node_facts(&bench, "n2")[..2], ["", ""]);

    // A binding of that name is replaced by one for the other user.
    let drains = kubeconfig(&bench, "drains", &["--drain"]);
    let drained = as_user(&bench, &drains, &drain);
    assert!(
        drained.stdout.contains("\ndrained n2: [harness] HRN-NODE-BROKEN node: hang: "),
        "{}",
        drained.all()
    );
    let [unschedulable, reason, taints] = node_facts(&bench, "n2");
    assert!(unschedulable == "true" && reason.starts_with("[harness] HRN-NODE-BROKEN node: "), "{reason}");
    assert!(taints.contains("theirs") && taints.contains("harness/drained"), "{taints}");
    // The server adds the taint of its own.
    until(30, "the taint of the cordon", || {
        node_facts(&bench, "n2")[2].contains("node.kubernetes.io/unschedulable")
    });
    let again = as_user(&bench, &drains, &drain);
    assert!(again.stdout.contains("n2 is drained already: [harness] "), "{}", again.all());

    let recheck = [&ISOLATE[..], &["--resume-drained"]].concat();
    let stays = as_user(&bench, &drains, &recheck);
    assert!(
        stays.stdout.contains("n2 stays drained, its re-check ended with exit code 3"),
        "{}",
        stays.all()
    );
    bench.project.write("shared/mended", "");
    // Pods of others do not get it, before and after.
    let back = as_user(&bench, &drains, &recheck);
    assert_eq!(back.code, Some(0), "{}", back.all());
    assert!(back.stdout.contains("resumed n2: its re-check has passed"), "{}", back.all());
    until(30, "the taint of the cordon goes", || node_facts(&bench, "n2") == ["", "", "theirs"]);
    bench.cluster.kubectl(&["taint", "nodes", "n2", "theirs-"]);
    bench.assert_nothing_is_left();
}

fn conflict() {
    let bench = Bench::new("n[1-2]", &case("waits", "\"each\"", WAITS, ""));
    let patch = r#"{"metadata":{"resourceVersion":"1"},"spec":{"unschedulable":true}}"#;
    let mut command = Command::new("env");
    command.args(["kubectl", "patch", "node", "n1", "--type=merge", "--patch", patch]);
    let printed = command.envs(bench.cluster.variables()).output().expect("kubectl");
    let stderr = String::from_utf8_lossy(&printed.stderr);
    assert!(!printed.status.success() && stderr.contains("(Conflict)"), "{stderr}");
    assert_eq!(node_facts(&bench, "n1")[0], "");
}
