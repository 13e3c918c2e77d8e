//! Nodes of Kubernetes that are cordoned for a culprit, and put back once they have passed a run: by a stand-in for kubectl
//! that behaves as the real one was seen to. The same on a real API server is in `tests/live`.

use super::all;
use super::mpi::Mpi;
use crate::project::Ran;
use std::fs;

const GPUS: &str = r#"[{"key":"nvidia.com/gpu","effect":"NoSchedule"}]"#;
const ISOLATE: [&str; 5] = ["isolate", "--suite", "nccl-p5", "--inventory", "pods"];

/// A red run that names `n2` for a NIC that is dead, on four nodes that are in the queue.
fn red() -> Mpi {
    let mpi = Mpi::faulty("n[1-4]", &["n2:nic-dead@rdmap113s0"]);
    for n in 1..=4 {
        set(&mpi, &format!("n{n}"), "", "", GPUS);
    }
    let ran = mpi.run("pair-all_gather");
    assert_eq!(ran.code, Some(1), "{}", all(&ran));
    mpi
}

/// The objects are called otherwise than their hosts, as some clouds do.
fn file(mpi: &Mpi, node: &str) -> std::path::PathBuf {
    mpi.bench.0.path().join(format!("kube/node-objects/ip-{node}"))
}

fn set(mpi: &Mpi, node: &str, annotations: &str, unschedulable: &str, taints: &str) {
    let path = file(mpi, node);
    fs::create_dir_all(path.parent().expect("a folder")).expect("made");
    fs::write(path, format!("7\n{node}\n{annotations}\n{unschedulable}\n{taints}\n")).expect("written");
}

fn get(mpi: &Mpi, node: &str) -> Vec<String> {
    let text = fs::read_to_string(file(mpi, node)).expect("there");
    text.lines().skip(2).map(str::to_owned).collect()
}

fn drain(mpi: &Mpi) -> Ran {
    mpi.bench.run(&[&ISOLATE[..], &["--drain", "--yes"]].concat())
}

fn before_patch(mpi: &Mpi, script: &str) {
    mpi.bench.0.write("kube/before-patch", script);
}

#[test]
fn a_culprit_is_cordoned_with_a_taint_and_its_reason_and_put_back_once_it_passes() {
    let mpi = red();
    // Reports of the run name its context, wherever they are read.
    for report in ["junit.xml", "index.html"] {
        let text = fs::read_to_string(mpi.bench.0.latest().join(report)).expect("a report");
        let drain = "kubectl --context=here --namespace=default annotate nodes -l kubernetes.io/hostname=n2 ";
        assert!(text.contains(drain), "{report}");
    }
    let ran = mpi.bench.run(&[&ISOLATE[..], &["--drain"]].concat());
    assert!(ran.stdout.contains("nothing is drained: `--yes` is needed without a terminal"), "{}", all(&ran));
    // By its hostname, and by the context that the harness began with, which the inventory does not name.
    let by_hand = "\n  kubectl --context=here --namespace=default annotate nodes -l kubernetes.io/hostname=n2 \
                   'harness/drained=[harness] HRN-NIC-DEAD rdmap113s0' && kubectl --context=here --namespace=default \
                   cordon -l kubernetes.io/hostname=n2\n";
    assert!(ran.stdout.contains(by_hand), "{}", all(&ran));
    assert_eq!(get(&mpi, "n2"), ["", "", GPUS]);
    mpi.bench.0.write("kube/listed-nodes", "");
    let ran = drain(&mpi);
    assert!(
        ran.code == Some(1) && ran.stdout.contains("\ndrained n2: [harness] HRN-NIC-DEAD "),
        "{}",
        all(&ran)
    );
    // All are listed to see how many are drained, and the one that is patched before and after.
    let listed = fs::read_to_string(mpi.bench.0.path().join("kube/listed-nodes")).expect("lists");
    let of = |node: &str| listed.lines().filter(|line| *line == node).count();
    assert_eq!(of("ip-n2"), of("ip-n1") + 2, "{listed}");
    let [annotations, unschedulable, taints] = &get(&mpi, "n2")[..] else { panic!("three lines") };
    assert!(
        annotations.starts_with(r#"{"harness/drained":"[harness] HRN-NIC-DEAD rdmap113s0: "#),
        "{annotations}"
    );
    let ours = r#",{"key":"harness/drained","value":"HRN-NIC-DEAD","effect":"NoSchedule"}]"#;
    assert_eq!(unschedulable, "true");
    assert!(taints.contains("nvidia.com/gpu") && taints.ends_with(ours), "{taints}");
    assert_eq!(get(&mpi, "n1"), ["", "", GPUS]);
    let ran = drain(&mpi);
    assert!(ran.stdout.contains("n2 is drained already: [harness] HRN-NIC-DEAD "), "{}", all(&ran));

    // A suite that measures nothing of NICs shows nothing of this one.
    let ran = mpi.bench.run(&["isolate", "--suite", "pods", "--inventory", "pods", "--resume-drained"]);
    let untested = "n2 stays drained, its re-check has passed, but has no judged pass of `";
    let next = "blames it; give --suite nccl-p5: [harness] HRN-NIC-DEAD rdmap113s0: ";
    let is_said = ran.stdout.contains(untested) && ran.stdout.contains(next);
    assert!(ran.code == Some(3) && is_said, "{}", all(&ran));
    assert_eq!(get(&mpi, "n2")[1], "true");

    // Neither does one at all, where the run that blames it is gone.
    assert!(annotations.ends_with(r#" nvidia.com/gpu:NoSchedule"}"#), "{annotations}");
    let blaming = annotations.rsplit(", run ").next().and_then(|end| end.split('"').next()).expect("a run");
    let (runs, away) = (mpi.bench.0.path().join("runs"), mpi.bench.0.path().join("away"));
    fs::rename(runs.join(blaming), &away).expect("moved");
    let ran = mpi.bench.run(&["isolate", "--suite", "pods", "--inventory", "pods", "--resume-drained"]);
    let unknown = format!(
        "n2 stays drained, what it is blamed for is not known: run {blaming} is gone; run on it what it"
    );
    let by_hand = "put it back by hand: `kubectl --context=here --namespace=default uncordon -l \
                   kubernetes.io/hostname=n2; kubectl --context=here --namespace=default taint nodes -l ";
    assert!(ran.code == Some(3) && ran.stdout.contains(&unknown), "{}", all(&ran));
    assert!(ran.stdout.contains(by_hand) && !ran.stdout.contains("re-check of n2 with"), "{}", all(&ran));
    assert_eq!(get(&mpi, "n2")[1], "true");
    fs::rename(&away, runs.join(blaming)).expect("moved back");

    // What fails on it still leaves it where it is.
    let suite = fs::read_to_string(mpi.bench.0.path().join("suites/pods.toml")).expect("a suite");
    mpi.bench.0.write("suites/pods.toml", &suite.replace("echo on $HARNESS_NODE", "[ $HARNESS_NODE != n2 ]"));
    let ran = mpi.bench.run(&["isolate", "--suite", "pods", "--inventory", "pods", "--resume-drained"]);
    assert!(
        ran.code != Some(0) && ran.stdout.contains("n2 stays drained, its re-check ended with"),
        "{}",
        all(&ran)
    );
    assert_eq!(get(&mpi, "n2")[1], "true");
}

#[test]
fn a_node_that_passes_is_put_back_and_one_of_others_is_not_touched() {
    let mpi = Mpi::faulty("n[1-4]", &[]);
    let suite = fs::read_to_string(mpi.bench.0.path().join("suites/pods.toml")).expect("a suite");
    mpi.bench.0.write("suites/pods.toml", &suite.replace("echo on $HARNESS_NODE", "[ $HARNESS_NODE != n2 ]"));
    let ran = mpi.bench.run(&["--suite", "pods", "--inventory", "pods", "--no-probe"]);
    assert!(ran.code != Some(0), "{}", all(&ran));
    mpi.bench.0.write("suites/pods.toml", &suite);
    let run = fs::read_link(mpi.bench.0.latest()).expect("the newest run");
    let ours = format!(
        r#"{{"harness/drained":"[harness] HRN-NODE-BROKEN node: exit 1, run {}"}}"#,
        run.file_name().and_then(|id| id.to_str()).expect("an id")
    );
    let taints = r#"[{"key":"nvidia.com/gpu","effect":"NoSchedule"},{"key":"harness/drained","value":"X","effect":"NoSchedule"}]"#;
    set(&mpi, "n1", "", "", GPUS);
    set(&mpi, "n2", &ours, "true", taints);
    set(&mpi, "n3", "", "true", GPUS);
    set(&mpi, "n4", "", "", GPUS);
    let ran = mpi.bench.run(&["isolate", "--suite", "pods", "--inventory", "pods", "--resume-drained"]);
    assert_eq!(ran.code, Some(0), "{}", all(&ran));
    assert!(ran.stdout.contains("re-check of n2 with n1; n2 stays cordoned for others\n"), "{}", all(&ran));
    assert!(ran.stdout.contains("resumed n2: its re-check has passed"), "{}", all(&ran));
    let others = "n3 stays drained, its reason in Kubernetes is not the harness's: Ready,SchedulingDisabled";
    assert!(ran.stdout.contains(others), "{}", all(&ran));
    assert_eq!(get(&mpi, "n2")[1..], ["", GPUS]);
    assert_eq!(get(&mpi, "n3"), ["", "true", GPUS]);
    let pods = fs::read_to_string(mpi.bench.0.path().join("kube/created")).expect("what was created");
    for key in ["harness/drained", "node.kubernetes.io/unschedulable"] {
        assert!(
            pods.contains(&format!(r#""key":"{key}","operator":"Exists","effect":"NoSchedule""#)),
            "{pods}"
        );
    }
}

#[test]
fn a_node_that_others_change_meanwhile_is_read_again_and_their_cordon_stands() {
    let mpi = red();
    before_patch(&mpi, "printf '8\\nn2\\n\\n\\n[]\\n' > ip-n2");
    let ran = drain(&mpi);
    assert!(ran.stdout.contains("\ndrained n2: "), "{}", all(&ran));
    let taints = &get(&mpi, "n2")[2];
    assert!(!taints.contains("nvidia") && taints.contains("harness/drained"), "{taints}");

    let mpi = red();
    before_patch(&mpi, "printf '8\\nn2\\n\\ntrue\\n[]\\n' > ip-n2");
    let ran = drain(&mpi);
    let why = "not drained n2, its reason in Kubernetes is not the harness's: Ready,SchedulingDisabled: cordoned, without a";
    assert!(ran.stdout.contains(why), "{}", all(&ran));
    assert_eq!(get(&mpi, "n2"), ["", "true", "[]"]);
}

#[test]
fn who_may_not_patch_nodes_or_has_drained_too_many_drains_none_and_is_given_the_next_step() {
    let mpi = red();
    mpi.bench.0.write("kube/no-patch", "");
    let ran = drain(&mpi);
    assert!(
        ran.stdout.contains("not drained n2: `kubectl patch node`: Error from server (Forbidden): "),
        "{}",
        all(&ran)
    );
    assert!(
        ran.stdout.contains("`harness inventory role --namespace NAME --drain` prints it"),
        "{}",
        all(&ran)
    );
    fs::remove_file(mpi.bench.0.path().join("kube/no-patch")).expect("removed");
    set(&mpi, "n4", r#"{"harness/drained":"[harness] HRN-GPU-WRONG gpu1: x, run 1"}"#, "true", "[]");
    let ran = drain(&mpi);
    let limit = "nothing is drained: 1 to drain and 1 drained by the harness before, limit 1; `--drain-at-most 2` allows it";
    assert!(ran.stdout.contains(limit), "{}", all(&ran));
    assert_eq!(get(&mpi, "n2"), ["", "", GPUS]);
}

#[test]
fn a_run_in_another_cluster_drains_no_node_here_and_puts_none_back() {
    let mpi = red();
    let elsewhere = || {
        mpi.bench.0.write("kube/server", "https://10.0.0.2:6443");
        mpi.bench.0.write("kube/context", "there");
    };
    elsewhere();
    let why = " are in https://10.0.0.1:6443 (namespace default), but kubectl leads to https://10.0.0.2:6443 \
               (namespace default); nothing was touched; first `kubectl config use-context here`, or set KUBECONFIG";
    let ran = drain(&mpi);
    assert!(ran.stderr.contains("error: not isolated: the nodes of run "), "{}", all(&ran));
    assert!(ran.code == Some(3) && ran.stderr.contains(why), "{}", all(&ran));
    assert!(ran.stderr.contains("; --no-evidence begins without that run\n"), "{}", all(&ran));
    assert_eq!(
        (get(&mpi, "n2"), mpi.bench.calls("patch")),
        (vec![String::new(), String::new(), GPUS.into()], 0)
    );

    for name in ["server", "context"] {
        fs::remove_file(mpi.bench.0.path().join("kube").join(name)).expect("removed");
    }
    let ran = drain(&mpi);
    assert!(ran.stdout.contains("\ndrained n2: "), "{}", all(&ran));
    assert!(!ran.stderr.contains("does not record its cluster"), "{}", all(&ran));

    // Its reason names a run that was made in the other one.
    elsewhere();
    let (before, created) = (get(&mpi, "n2"), mpi.bench.calls("create"));
    let ran = mpi.bench.run(&[&ISOLATE[..], &["--resume-drained"]].concat());
    assert!(ran.stdout.contains("n2 stays drained: the nodes of run "), "{}", all(&ran));
    assert!(ran.code == Some(3) && ran.stdout.contains(why), "{}", all(&ran));
    assert_eq!((get(&mpi, "n2"), mpi.bench.calls("create")), (before, created), "{}", all(&ran));
    assert!(!ran.stdout.contains(" uncordon "), "{}", all(&ran));
}

#[test]
fn no_node_is_cordoned_where_a_context_leads_elsewhere_since_the_nodes_were_listed() {
    let mpi = red();
    let before = get(&mpi, "n2");
    let why = "kubectl leads elsewhere by now: context here is https://10.0.0.2:6443, and was https://10.0.0.1:6443 when \
               this began; nothing was asked there; correct the kubeconfig";
    // After the first list, which counts drained nodes, and after the third, just before the patch.
    for last in [1, 3] {
        let edit = format!(
            "echo >> lists; if (($(wc -l < lists) < {last})); then mv after-nodes.done after-nodes; else echo \
             https://10.0.0.2:6443 > server; rm lists; fi"
        );
        mpi.bench.0.write("kube/after-nodes", &edit);
        let ran = drain(&mpi);
        assert!(ran.stdout.contains(why), "{}", all(&ran));
        assert_eq!((get(&mpi, "n2"), mpi.bench.calls("patch")), (before.clone(), 0), "{}", all(&ran));
        fs::remove_file(mpi.bench.0.path().join("kube/server")).expect("removed");
    }
    let ran = drain(&mpi);
    assert!(ran.stdout.contains("\ndrained n2: "), "{}", all(&ran));
}

#[test]
fn a_cordon_that_others_rely_on_by_now_is_not_lifted() {
    let mpi = Mpi::faulty("n[1-4]", &[]);
    let suite = fs::read_to_string(mpi.bench.0.path().join("suites/pods.toml")).expect("a suite");
    mpi.bench.0.write("suites/pods.toml", &suite.replace("echo on $HARNESS_NODE", "[ $HARNESS_NODE != n2 ]"));
    let ran = mpi.bench.run(&["--suite", "pods", "--inventory", "pods", "--no-probe"]);
    assert!(ran.code != Some(0), "{}", all(&ran));
    mpi.bench.0.write("suites/pods.toml", &suite);
    let run = fs::read_link(mpi.bench.0.latest()).expect("the newest run");
    let run = run.file_name().and_then(|id| id.to_str()).expect("an id");
    let reason = format!("[harness] HRN-NODE-BROKEN node: exit 1, run {run}");
    // As the drain of this reason leaves them, beside the taint that was there before.
    let digest = &base::digest::sha256(reason.as_bytes())[..16];
    let ours = format!(
        r#"{{"harness/drained":"{reason}","harness/drained-beside":"{digest} nvidia.com/gpu:NoSchedule"}}"#
    );
    let taints = r#"[{"key":"nvidia.com/gpu","effect":"NoSchedule"},{"key":"harness/drained","value":"X","effect":"NoSchedule"}]"#;
    for n in [1, 3, 4] {
        set(&mpi, &format!("n{n}"), "", "", GPUS);
    }
    set(&mpi, "n2", &ours, "true", taints);
    // Between the last look at the node and its patch.
    before_patch(
        &mpi,
        r#"sed -i -e '1s/.*/8/' -e '5s/]$/,{"key":"karpenter.sh\/disrupted","effect":"NoSchedule"}]/' ip-n2"#,
    );
    let recheck = ["isolate", "--suite", "pods", "--inventory", "pods", "--resume-drained"];
    let ran = mpi.bench.run(&recheck);
    let why = "n2 passed its re-check and is not put back: others have tainted it since it was drained: \
               karpenter.sh/disrupted:NoSchedule; its cordon stays until they are gone";
    assert!(ran.code == Some(3) && ran.stdout.contains(why), "{}", all(&ran));
    let [annotations, unschedulable, there] = &get(&mpi, "n2")[..] else { panic!("three lines") };
    assert_eq!((annotations, unschedulable.as_str()), (&ours, "true"));
    assert!(there.contains("karpenter.sh/disrupted") && there.contains("harness/drained"), "{there}");
    // Gone again.
    set(&mpi, "n2", &ours, "true", taints);
    let ran = mpi.bench.run(&recheck);
    assert!(ran.code == Some(0) && ran.stdout.contains("resumed n2: "), "{}", all(&ran));
    assert_eq!(get(&mpi, "n2"), ["", "", GPUS]);
}
