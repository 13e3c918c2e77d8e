//! What holds on real servers and in a real browser. What is absent makes its tests ignored, with the reason;
//! `--include-ignored` makes them fail.

// Tests wait for real processes by the machine's clock; what they test must not.
#![allow(clippy::disallowed_methods)]

mod fact;
#[path = "../pages/mod.rs"]
mod pages;
#[path = "../suite/project.rs"]
#[allow(dead_code)]
mod project;
mod ssh;

use libtest_mimic::Arguments;

fn main() {
    let arguments = Arguments::from_args();
    let tests = [pages::tests(), ssh::tests()].into_iter().flatten().collect();
    libtest_mimic::run(&arguments, tests).exit();
}
