//! Windows of small reports: as asked, another one, and such of which nobody can tell.

use super::*;
use crate::recipe::Workload;
use crate::trace::testing::Made;

fn output(made: &Made, asked: (u64, u64), mark: Option<Mark>) -> Output {
    let node = |rank| format!("n{rank}");
    let mut job = crate::recipe::testing::job(Workload::Command, &[made.path()], node, 1);
    let marks = mark.into_iter().map(|mark| (0, mark)).collect();
    job.window = Some(Asked { first: asked.0, last: asked.1, marks });
    run(&job)
}

fn mark(way: &str, opened: Option<u64>, closed: Option<u64>, steps: u64) -> Option<Mark> {
    Some(Mark { way: way.to_owned(), opened, closed, steps: Some(steps), error: None })
}

fn ranges(name: &str, numbers: std::ops::RangeInclusive<i64>) -> Made {
    let made = Made::begin();
    for number in numbers {
        made.range((number * 1000, number * 1000 + 900), 3, &format!("{name} {number}"));
    }
    made
}

fn figures(output: &Output) -> Vec<(&str, f64)> {
    output.metrics.iter().map(|row| (&*row.name, row.value)).collect()
}

fn told(output: &Output) -> (Vec<&str>, Vec<&str>) {
    let codes = output.findings.iter().map(|finding| finding.code.as_str()).collect();
    (codes, output.doubts.iter().map(|doubt| doubt.cause.as_str()).collect())
}

#[test]
fn a_window_as_asked_has_its_numbers_and_no_doubt() {
    let hooked = ranges(MARKS, 3..=5);
    let output = output(&hooked, (3, 5), mark("hook", Some(3), Some(5), 20));
    let numbers =
        [("window.opened", 1.0), ("window.steps", 3.0), ("window.first", 3.0), ("window.last", 5.0)];
    assert_eq!(figures(&output), numbers);
    assert_eq!(told(&output), (vec![], vec![]));
}

#[test]
fn the_program_s_own_numbers_tell_where_no_hook_was() {
    let own = ranges("step", 70..=75);
    let seen = output(&own, (70, 75), None);
    assert_eq!(figures(&seen)[1..], [("window.steps", 6.0), ("window.first", 70.0), ("window.last", 75.0)]);
    assert_eq!(told(&seen), (vec![], vec![]));
    // What stops at the start of the last step has watched one less.
    let (codes, causes) = (["window-not-as-asked"], ["window-not-as-asked"]);
    let short = output(&ranges("step", 70..=74), (70, 75), None);
    assert_eq!(told(&short), (codes.to_vec(), causes.to_vec()));
    let why = &short.findings[0].message;
    assert!(why.contains("asked for were steps 70..75 (6), watched were 70..74 (5)"), "{why}");
}

#[test]
fn a_window_that_the_program_s_end_cut_puts_all_numbers_of_the_node_in_doubt() {
    let cut = ranges(MARKS, 27..=29);
    let output = output(&cut, (27, 32), mark("hook", Some(27), None, 30));
    let doubt = &output.doubts[0];
    assert_eq!(doubt.dims.word(Dim::Node), Some("n0"));
    assert!(doubt.metrics.iter().any(|metric| metric == "step.time"));
    assert!(doubt.metrics.iter().any(|metric| metric == "window.steps"));
    assert!(doubt.why.contains("the program ended before it was closed"), "{}", doubt.why);
}

#[test]
fn the_hook_s_word_counts_where_nobody_traced_its_ranges() {
    // The stop cut the last range of the program itself.
    let own = ranges("step", 3..=4);
    let seen = output(&own, (3, 5), mark("hook", Some(3), Some(5), 20));
    assert_eq!(figures(&seen)[1], ("window.steps", 3.0));
    assert_eq!(told(&seen), (vec![], vec![]));
    // A report that shows far more steps than it tells contradicts it.
    let contradicted = output(&ranges("step", 3..=14), (3, 5), mark("hook", Some(3), Some(5), 20));
    assert_eq!(told(&contradicted).1, ["window-not-as-asked"]);
    let why = &contradicted.doubts[0].why;
    assert!(why.contains("so many by ranges") && why.ends_with(": 12"), "{why}");
}

#[test]
fn a_watcher_that_comes_a_moment_late_cuts_a_step_at_either_end_and_no_more() {
    let watched = || mark("watch", Some(3), Some(6), 20);
    for numbers in [4..=7, 4..=6, 3..=6, 3..=7] {
        let seen = output(&ranges("step", numbers.clone()), (3, 6), watched());
        let figures = figures(&seen);
        assert_eq!(figures[1..], [("window.steps", 4.0), ("window.first", 3.0), ("window.last", 6.0)]);
        assert_eq!(told(&seen), (vec![], vec![]), "{numbers:?}");
    }
    for numbers in [5..=7, 4..=8, 2..=6, 3..=5] {
        let seen = output(&ranges("step", numbers.clone()), (3, 6), watched());
        assert_eq!(told(&seen).1, ["window-not-as-asked"], "{numbers:?}");
    }
}

#[test]
fn a_window_of_which_nobody_can_tell_has_no_number_of_steps() {
    let silent = Made::begin();
    silent.range((0, 5), 3, "setup");
    let seen = output(&silent, (3, 5), None);
    assert_eq!(figures(&seen), [("window.opened", 1.0)]);
    assert_eq!(told(&seen), (vec!["window-unknown"], vec![]));
    // A watcher that was late watched other steps.
    let late = output(&silent, (3, 5), mark("watch", Some(4), Some(6), 20));
    assert_eq!(told(&late).1, ["window-not-as-asked"]);
}

#[test]
fn where_no_window_was_asked_for_there_is_nothing_to_say() {
    let node = |rank| format!("n{rank}");
    let made = ranges("step", 3..=5);
    let output = run(&crate::recipe::testing::job(Workload::Command, &[made.path()], node, 1));
    assert!(output.metrics.is_empty() && output.findings.is_empty());
}
