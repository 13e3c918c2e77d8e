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

use libtest_mimic::Arguments;

fn main() {
    let arguments = Arguments::from_args();
    let own = libtest_mimic::run(&arguments, [pages::tests(), ssh::tests()].into_iter().flatten().collect());
    // Jobs mostly wait: more of them at a time than there are cores.
    let waiting = Arguments { test_threads: arguments.test_threads.or(Some(6)), ..arguments.clone() };
    // They take minutes each: `tests/nightly` asks for them by name.
    let by_name = arguments.filter.as_deref().is_some_and(|name| name.starts_with("nightly"));
    let nightly =
        if by_name { [ssh::nightly(), slurm::nightly()].into_iter().flatten().collect() } else { Vec::new() };
    let waiting = libtest_mimic::run(
        &waiting,
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
    table::print();
    if own.has_failed() {
        own.exit();
    }
    waiting.exit();
}
