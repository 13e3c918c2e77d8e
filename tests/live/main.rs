//! What holds on real servers and in a real browser. What is absent makes its tests ignored, with the reason;
//! `--include-ignored` makes them fail.

// Tests wait for real processes by the machine's clock; what they test must not.
#![allow(clippy::disallowed_methods)]

#[path = "../stand_ins/mod.rs"]
#[allow(dead_code)]
mod bed;
mod fact;
mod hostile;
mod hostile_exports;
mod kubernetes;
mod kubernetes_cluster;
mod left_out;
mod mpi;
#[path = "../pages/mod.rs"]
mod pages;
#[path = "../suite/peak_memory.rs"]
mod peak_memory;
#[path = "../planted/mod.rs"]
mod planted;
mod pods;
#[allow(dead_code)]
#[path = "../suite/project.rs"]
mod project;
mod same;
mod slurm;
mod slurm_cluster;
#[allow(dead_code)]
#[path = "../suite/small_export.rs"]
mod small_export;
mod ssh;
mod table;
#[path = "../words/mod.rs"]
mod words;

use libtest_mimic::{Arguments, Conclusion};

fn main() {
    let arguments = Arguments::from_args();
    // More of them at a time than there are cores: most wait, and jobs do little else.
    let at_once =
        |many| Arguments { test_threads: arguments.test_threads.or(Some(many)), ..arguments.clone() };
    let own = libtest_mimic::run(
        &at_once(3),
        [pages::tests(), ssh::tests(), left_out::tests()].into_iter().flatten().collect(),
    );
    // They take minutes each: `tests/nightly` asks for them by name.
    let by_name = arguments.filter.as_deref().is_some_and(|name| name.starts_with("nightly"));
    let nightly =
        if by_name { [ssh::nightly(), slurm::nightly()].into_iter().flatten().collect() } else { Vec::new() };
    let waiting = libtest_mimic::run(
        &at_once(8),
        [
            same::tests(),
            hostile::tests(),
            hostile_exports::tests(),
            slurm::tests(),
            ssh::waiting(),
            pods::tests(),
            nightly,
        ]
        .into_iter()
        .flatten()
        .collect(),
    );
    let (of_kubernetes, is_ended) = run_kubernetes(&arguments);
    table::print();
    for ended in [own, waiting] {
        if ended.has_failed() {
            ended.exit();
        }
    }
    if !is_ended {
        std::process::exit(1);
    }
    of_kubernetes.exit();
}

/// One test at a time: they share a cluster, and some take a part of it away. What no script installs stays ignored where
/// it is absent, also with `--include-ignored`.
fn run_kubernetes(arguments: &Arguments) -> (Conclusion, bool) {
    let absent = kubernetes_cluster::absent();
    let one = Arguments { test_threads: Some(1), ..arguments.clone() };
    let one = match absent {
        Some(_) => Arguments { include_ignored: false, ignored: false, ..one },
        None => one,
    };
    let ended =
        libtest_mimic::run(&one, [kubernetes::tests(), same::in_pods()].into_iter().flatten().collect());
    if let Some(why) = absent.filter(|_| !arguments.list) {
        println!("tests left out: {why}");
    }
    (ended, kubernetes_cluster::end())
}
