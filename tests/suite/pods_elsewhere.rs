//! A run in pods, and a kubectl whose config leads to another cluster by then: nothing of the run is looked for there.

use super::{Bench, SUITE, all, waiting, while_it_runs};
use crate::project::{Project, Ran};
use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;
use std::process::Stdio;
use std::time::{Duration, Instant};

/// A run whose harness was killed while the jobs in its pods go on.
pub(super) fn killed() -> Bench {
    let bench = waiting();
    let mut child =
        bench.command(&SUITE).stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("it starts");
    let from = Instant::now();
    while !["n1", "n2"].iter().all(|node| bench.0.path().join(format!("shared/began.{node}")).exists()) {
        assert!(from.elapsed() < Duration::from_secs(60), "the jobs do not begin");
        std::thread::sleep(Duration::from_millis(50));
    }
    child.kill().and_then(|()| child.wait()).expect("killed");
    bench
}

fn lead_to(bench: &Bench, server: &str, context: &str) {
    // In this order: a run that goes on names its own context by then.
    bench.0.write("kube/context", context);
    bench.0.write("kube/server", server);
}

fn lead_back(bench: &Bench) {
    for name in ["server", "context"] {
        fs::remove_file(bench.0.path().join("kube").join(name)).expect("removed");
    }
}

/// What was asked of the server, which no look at the config is.
fn asked(bench: &Bench) -> usize {
    ["get", "create", "delete", "exec"].iter().map(|verb| bench.calls(verb)).sum()
}

/// Refused, in one line, before anything was asked.
fn assert_refused(bench: &Bench, arguments: &[&str], why: &str) {
    let before = (asked(bench), bench.pods());
    let ran = bench.run(arguments);
    assert_eq!(ran.code, Some(3), "{arguments:?}: {}", all(&ran));
    let lines: Vec<&str> = ran.stderr.lines().filter(|line| line.contains(why)).collect();
    assert_eq!(lines.len(), 1, "{arguments:?}: {}", all(&ran));
    assert!(!ran.stdout.contains("nothing is left"), "{arguments:?}: {}", all(&ran));
    assert_eq!((asked(bench), bench.pods()), before, "{arguments:?}: {}", all(&ran));
}

const ELSEWHERE: &str = "its pods are in https://10.0.0.1:6443 (namespace default), but kubectl leads to \
                         https://10.0.0.2:6443 (namespace default); nothing was touched; first `kubectl config \
                         use-context here`, or set KUBECONFIG";

#[test]
fn a_run_in_another_cluster_is_not_resumed_and_not_cleaned() {
    let bench = killed();
    lead_to(&bench, "https://10.0.0.2:6443", "there");
    for arguments in [
        &["resume"][..],
        &["clean", "--run", "latest"],
        &["clean", "--run", "latest", "--dry-run"],
        &["clean", "--all"],
    ] {
        assert_refused(&bench, arguments, ELSEWHERE);
    }
    assert_eq!(bench.pods().len(), 2);
    // By the same context, which now leads elsewhere.
    lead_to(&bench, "https://10.0.0.2:6443", "here");
    assert_refused(
        &bench,
        &["resume"],
        "nothing was touched; first set KUBECONFIG to the file that leads there",
    );
    // Where it leads is not known.
    lead_to(&bench, "", "");
    assert_refused(
        &bench,
        &["resume"],
        "the cluster that kubectl leads to is unknown: `kubectl config view`: ",
    );
    lead_back(&bench);
    bench.0.write("shared/go", "");
    let ran = bench.run(&["resume"]);
    assert_eq!((ran.code, bench.pods()), (Some(0), Vec::new()), "{}", all(&ran));
    assert!(!ran.stderr.contains("does not record its cluster"), "{}", all(&ran));
}

/// The servers that a call of kubectl asked something.
fn servers(bench: &Bench, is_meant: impl Fn(&str) -> bool) -> BTreeSet<String> {
    let text = fs::read_to_string(bench.0.path().join("kube/asked")).unwrap_or_default();
    let calls = text.lines().filter_map(|line| line.split_once(' '));
    calls.filter(|(verb, _)| is_meant(verb)).map(|(_, server)| server.to_owned()).collect()
}

#[test]
fn a_context_that_is_chosen_while_a_run_goes_on_is_not_followed() {
    let bench = waiting();
    let ran = while_it_runs(&bench, || {
        // As `kubectl config use-context there` in another terminal.
        lead_to(&bench, "https://10.0.0.2:6443", "there");
        bench.0.write("shared/go", "");
    });
    assert_eq!((ran.code, bench.pods()), (Some(0), Vec::new()), "{}", all(&ran));
    let asked = servers(&bench, |_| true);
    assert_eq!(asked.into_iter().collect::<Vec<_>>(), ["https://10.0.0.1:6443"], "{}", all(&ran));
}

#[test]
fn pods_are_not_looked_for_where_a_context_leads_elsewhere_by_now() {
    let bench = waiting();
    let there = "https://10.0.0.2:6443".to_owned();
    let ran = while_it_runs(&bench, || {
        // The same context of an edited config, in whose cluster no pod has the names of ours.
        bench.0.write("kube/apart", "");
        bench.0.write("kube/server", &there);
        let from = Instant::now();
        while !servers(&bench, |_| true).contains(&there) {
            assert!(from.elapsed() < Duration::from_secs(60), "the jobs are not looked at");
            std::thread::sleep(Duration::from_millis(50));
        }
        std::thread::sleep(Duration::from_secs(2));
        fs::remove_file(bench.0.path().join("kube/server")).expect("removed");
        bench.0.write("shared/go", "");
    });
    assert_eq!((ran.code, bench.pods()), (Some(0), Vec::new()), "{}", all(&ran));
    // A command for one pod by its name was refused there; no pod was listed, made or deleted.
    assert!(!servers(&bench, |verb| verb != "exec").contains(&there), "{}", all(&ran));
    assert_eq!(ran.blamed(), Vec::<String>::new(), "{}", all(&ran));
}

#[test]
fn no_pod_is_deleted_where_a_context_leads_elsewhere_since_they_were_listed() {
    let bench = killed();
    bench.0.write("kube/after-pods", "echo https://10.0.0.2:6443 > server");
    let ran = bench.run(&["clean", "--run", "latest"]);
    assert_eq!((ran.code, bench.calls("delete"), bench.pods().len()), (Some(1), 0, 2), "{}", all(&ran));
    let why = "kubectl leads elsewhere by now: context here is https://10.0.0.2:6443, and was https://10.0.0.1:6443 when \
               this began; nothing was asked there; correct the kubeconfig";
    assert!(ran.stdout.contains(why) && ran.stdout.contains("\nleft: 2\n"), "{}", all(&ran));
    assert_eq!(ran.stdout.matches("  could not be ended\n").count(), 2, "{}", all(&ran));
    fs::remove_file(bench.0.path().join("kube/server")).expect("removed");
    let ran = bench.run(&["clean", "--run", "latest"]);
    assert_eq!((ran.code, bench.pods()), (Some(0), Vec::new()), "{}", all(&ran));
}

#[test]
fn nothing_is_asked_of_a_cluster_that_the_inventory_does_not_name() {
    let bench = Bench::new();
    let text = fs::read_to_string(bench.0.path().join("inventory/pods.toml")).expect("an inventory");
    let named = |more: &str| {
        let reach = format!("[reach]\n{more}\n");
        bench.0.write("inventory/pods.toml", &text.replace("[reach]\n", &reach));
    };
    named("cluster = \"https://10.0.0.9:6443\"");
    let both = "error: kubectl leads to another cluster: https://10.0.0.1:6443 (context here), but `cluster` in [reach] is \
                https://10.0.0.9:6443; nothing was touched; first ";
    let by_context =
        "`kubectl config use-context NAME`, with one of `kubectl config get-contexts`, or set KUBECONFIG";
    for arguments in [
        &SUITE[..],
        &["--suite", "pods", "--inventory", "pods"],
        &["inventory", "probe", "--inventory", "pods"],
        &["clean", "--kubernetes", "--inventory", "pods"],
    ] {
        assert_refused(&bench, arguments, &format!("{both}{by_context}"));
    }
    named("cluster = \"https://10.0.0.9:6443\"\ncontext = \"here\"");
    let there = "set `context` there to one of `kubectl config get-contexts`, or set KUBECONFIG";
    assert_refused(&bench, &SUITE, &format!("{both}{there}"));
    assert_eq!(bench.0.runs(), 0);
    // As it stands in a kubeconfig.
    named("cluster = \"HTTPS://10.0.0.1:6443/\"");
    let ran = bench.suite();
    assert_eq!((ran.code, bench.pods()), (Some(0), Vec::new()), "{}", all(&ran));
}

#[test]
fn a_run_is_cleaned_once_kubectl_leads_to_its_cluster_again() {
    let bench = killed();
    lead_to(&bench, "https://10.0.0.2:6443", "there");
    assert_refused(&bench, &["clean", "--run", "latest"], ELSEWHERE);
    lead_back(&bench);
    let ran = bench.run(&["clean", "--run", "latest"]);
    assert_eq!((ran.code, bench.pods()), (Some(0), Vec::new()), "{}", all(&ran));
    assert_eq!(ran.stdout.matches("  pod  ").count(), 2, "{}", all(&ran));
}

#[test]
fn pods_of_analyses_in_another_cluster_are_not_looked_for_here() {
    let bench = killed();
    let place = r#"{"namespace":"default","server":"https://10.0.0.3:6443"}"#;
    let shared = bench.0.path().join("shared").display().to_string();
    let analyses = format!("{{\"format\":1,\"shared\":{shared:?},\"kubernetes\":{place}}}\n");
    bench.0.write("runs/latest/analyses.json", &analyses);
    let why = "the pods of its analyses are in https://10.0.0.3:6443 (namespace default), but kubectl leads to \
               https://10.0.0.1:6443 (namespace default)";
    assert_refused(&bench, &["clean", "--run", "latest"], why);
    assert_refused(&bench, &["resume"], why);
}

#[test]
fn a_run_of_an_older_harness_goes_on_with_a_note() {
    let bench = killed();
    fs::remove_file(bench.0.latest().join("cluster.json")).expect("removed");
    lead_to(&bench, "https://10.0.0.2:6443", "there");
    let note =
        |ran: &Ran| ran.stderr.contains("does not record its cluster; kubectl's context is taken for it");
    let ran = bench.run(&["clean", "--run", "latest", "--dry-run"]);
    assert!(ran.code == Some(1) && note(&ran), "{}", all(&ran));
    bench.0.write("shared/go", "");
    let ran = bench.run(&["resume"]);
    assert!(ran.code == Some(0) && note(&ran), "{}", all(&ran));
    assert_eq!(bench.pods(), Vec::<PathBuf>::new());
}

#[test]
fn a_password_in_the_url_of_a_server_is_neither_stored_nor_printed() {
    let bench = Bench::new();
    lead_to(&bench, "https://jo:hunter2/x@A.example:443/", "odd\u{1b}[2J");
    let ran = bench.suite();
    assert_eq!(ran.code, Some(0), "{}", all(&ran));
    let recorded = bench.0.json("cluster.json");
    let expected = serde_json::json!({ "format": 1, "server": "https://a.example", "namespace": "default" });
    assert_eq!(recorded, expected);
    assert!(!all(&ran).contains("hunter2"), "{}", all(&ran));
    // Another user of the same server.
    lead_to(&bench, "https://kim:hunter3@a.example", "here");
    let ran = bench.run(&["clean", "--run", "latest"]);
    assert_eq!(ran.code, Some(0), "{}", all(&ran));
    lead_to(&bench, "https://kim:hunter3@b.example", "here");
    let ran = bench.run(&["clean", "--run", "latest"]);
    let text = all(&ran);
    assert!(ran.code == Some(3) && text.contains("kubectl leads to https://b.example "), "{text}");
    assert!(!text.contains("hunter"), "{text}");
    lead_to(&bench, "https://b.example/?token=hunter4", "here");
    let before = bench.0.runs();
    let ran = bench.suite();
    let text = all(&ran);
    let odd =
        "error: the cluster that kubectl leads to is unknown: the server in kubectl's config is no plain URL";
    assert!(ran.code == Some(3) && text.contains(odd) && !text.contains("hunter"), "{text}");
    assert_eq!((bench.0.runs(), bench.pods()), (before, Vec::new()), "nothing was made");
}

/// As `aws eks update-kubeconfig` names a context.
#[test]
fn a_run_keeps_the_account_of_its_context_and_its_bundle_has_none() {
    const CONTEXT: &str = "arn:aws:eks:us-west-2:123456789012:cluster/x";
    let bench = Bench::new();
    bench.0.write("kube/context", CONTEXT);
    let ran = bench.run(&SUITE);
    assert_eq!(ran.code, Some(0), "{}", all(&ran));
    assert_eq!(bench.0.json("cluster.json")["context"], CONTEXT);
    let run = bench.0.latest().canonicalize().expect("a run");
    let run = run.file_name().expect("an id");
    let file = bench.0.path().join("run.tar.gz").display().to_string();
    let packed = bench.run(&["bundle", "--run", "latest", "--output", &file]);
    assert_eq!(packed.code, Some(0), "{}", all(&packed));
    let replay = ["-q", "--run", &file, "--from", "judge"];
    let here = bench.run(&replay);
    assert_eq!(here.code, Some(0), "it is the run that lies here: {}", all(&here));
    let other = Project::new();
    let there = other.harness(&replay);
    assert_eq!(there.code, Some(0), "{}", all(&there));
    let opened = crate::determinism::files(&other.path().join("runs").join(run), "");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    assert!(
        opened.iter().any(|(_, bytes)| text(bytes).contains("arn:aws:eks:us-west-2:************:cluster/x"))
    );
    for (name, bytes) in &opened {
        assert!(!text(bytes).contains("123456789012"), "{name}");
    }
}
