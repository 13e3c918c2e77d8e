//! What holds on real servers and in a real browser. What is absent makes its tests ignored, with the reason;
//! `--include-ignored` makes them fail.

// Tests wait for real processes by the machine's clock; what they test must not.
#![allow(clippy::disallowed_methods)]

mod fact;
#[path = "../pages/mod.rs"]
mod pages;

use libtest_mimic::Arguments;

fn main() {
    let arguments = Arguments::from_args();
    libtest_mimic::run(&arguments, pages::tests()).exit();
}
