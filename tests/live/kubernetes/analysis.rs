//! Recipes over reports that pods of a real Kubernetes read where they lie: what comes of it is what one machine makes of
//! them, and no pod and no folder is left, however an analysis ends.

use super::bench::{Bench, ended, until};
use crate::fact::Fact;
use crate::slurm::analysis::{files, report};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use std::fs;

pub(super) const FACTS: &[Fact] = &[
    ("what_pods_read_of_reports_gives_the_bytes_of_one_machine", the_same_bytes),
    ("a_pod_of_an_analysis_that_is_deleted_is_started_again", deleted),
    ("a_pod_of_an_analysis_that_is_refused_each_time_is_reported_in_the_words_of_kubernetes", refused),
    ("an_interruption_deletes_the_pods_of_an_analysis", interrupted),
];

/// As the reports have them.
const HOSTS: usize = 2;
const RANKS: usize = 8;

/// Reports of two hosts, in the folder that pods see.
fn bench() -> Bench {
    let bench = Bench::new("n[1-2]", "");
    for rank in 0..HOSTS * RANKS {
        report(&bench.project.path().join(format!("shared/reports/rank{rank}.sqlite")), rank);
    }
    bench
}

/// Some recipes over all reports, into this folder.
fn arguments(bench: &Bench, output: &str, on: &[&str]) -> Vec<String> {
    fs::create_dir_all(bench.project.path().join(output)).expect("made");
    let (reports, output) = (format!("{}/reports", bench.shared()), format!("{output}/out"));
    let recipes = "cuda_gpu_kern_sum,nccl_sum,cuda_gpu_time_util_map";
    let own = ["recipe", recipes, "--input", &reports, "--output", &output, "--json", "--csv", "--parquet"];
    own.iter().chain(on).map(|word| (*word).to_owned()).collect()
}

const ON_PODS: [&str; 4] = ["--analyze-on", "kubernetes", "--inventory", "live"];

fn start(bench: &Bench) -> super::bench::Running {
    let arguments = arguments(bench, "there", &ON_PODS);
    bench.start_with(&arguments.iter().map(String::as_str).collect::<Vec<_>>())
}

/// Its pods, once there are some.
#[track_caller]
fn pods(bench: &Bench) -> Vec<String> {
    let listed = || {
        let pods = bench.pods();
        pods.lines().filter_map(|line| line.split(' ').next()).map(str::to_owned).collect::<Vec<_>>()
    };
    until(60, "the pods of an analysis", || listed().iter().any(|pod| pod.starts_with("harness-")));
    listed()
}

#[track_caller]
fn assert_clear(bench: &Bench) {
    bench.assert_nothing_is_left();
    let folders = fs::read_dir(bench.shared()).expect("a folder").flatten();
    let left: Vec<_> = folders
        .map(|entry| entry.file_name())
        .filter(|name| name.to_string_lossy().starts_with("analysis-"))
        .collect();
    assert!(left.is_empty(), "{left:?}");
}

#[track_caller]
fn assert_same(bench: &Bench) {
    let of = |output: &str| files(&bench.project.path().join(output).join("out"));
    let arguments = arguments(bench, "here", &[]);
    let here = bench.harness(&arguments.iter().map(String::as_str).collect::<Vec<_>>());
    assert_eq!(here.code, Some(0), "{}", here.all());
    let (here, there) = (of("here"), of("there"));
    assert!(here.len() > 5 && here.keys().eq(there.keys()), "{:?}\n{:?}", here.keys(), there.keys());
    for (name, bytes) in &here {
        assert!(there[name] == *bytes, "{name}: {} and {} bytes", bytes.len(), there[name].len());
    }
}

fn the_same_bytes() {
    let bench = bench();
    let ran = ended(start(&bench));
    assert_eq!(ran.code, Some(0), "{}", ran.all());
    assert_same(&bench);
    assert_clear(&bench);
}

fn deleted() {
    let bench = bench();
    let run = start(&bench);
    let pods = pods(&bench);
    assert_eq!(pods.len(), HOSTS, "a pod for the reports of each host: {pods:?}");
    bench.kubectl(&["delete", "pod", "--wait=false", "--grace-period=0", "--force", &pods[0]]);
    let ran = ended(run);
    assert_eq!(ran.code, Some(0), "{}", ran.all());
    assert!(ran.stderr.contains("was lost and is restarted: "), "{}", ran.all());
    assert_same(&bench);
    assert_clear(&bench);
}

fn refused() {
    let bench = bench();
    bench.kubectl(&["create", "quota", "few", "--hard=pods=1"]);
    let ran = ended(start(&bench));
    assert_eq!(ran.code, Some(3), "{}", ran.all());
    assert!(ran.stderr.contains("exceeded quota: few"), "{}", ran.all());
    assert_clear(&bench);
}

fn interrupted() {
    let bench = bench();
    let run = start(&bench);
    pods(&bench);
    kill(Pid::from_raw(run.id()), Signal::SIGINT).expect("signalled");
    let ran = ended(run);
    assert_eq!(ran.code, Some(130), "{}", ran.all());
    assert_clear(&bench);
}
