//! Windows of small reports: as requested, another one, and unknown ones.

use super::*;
use crate::recipe::{TrainingFacts, Workload};
use crate::testing::Made;
use logs::efa_counters::{self, Capture, Clock, Device, Phase, Reading};
use nsys::tables::SESSION_START;

fn job(made: &Made, asked: (u64, u64), mark: Option<Mark>) -> JobInput {
    let node = |rank| format!("n{rank}");
    let mut job = crate::recipe::testing::job(Workload::Command, &[made.path()], node, 1);
    let marks = mark.into_iter().map(|mark| (0, mark)).collect();
    job.window = Some(StepWindow { first: asked.0, last: asked.1, marks, planned_steps: None });
    job
}

fn output(made: &Made, asked: (u64, u64), mark: Option<Mark>) -> Output {
    run(&job(made, asked, mark))
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
    let counted = output.metrics.iter().filter(|row| row.unit == Unit::Count);
    counted.map(|row| (&*row.name, row.value)).collect()
}

fn codes_and_causes(output: &Output) -> (Vec<&str>, Vec<&str>) {
    let codes = output.findings.iter().map(|finding| finding.code.as_str()).collect();
    (codes, output.doubts.iter().map(|uncertain| uncertain.cause.as_str()).collect())
}

#[test]
fn a_window_as_requested_gives_its_numbers_without_doubts() {
    let hooked = ranges(MARKS, 3..=5);
    let output = output(&hooked, (3, 5), mark("hook", Some(3), Some(5), 20));
    let numbers =
        [("window.opened", 1.0), ("window.steps", 3.0), ("window.first", 3.0), ("window.last", 5.0)];
    assert_eq!(figures(&output), numbers);
    assert_eq!(codes_and_causes(&output), (vec![], vec![]));
}

#[test]
fn the_program_s_step_numbers_count_without_a_hook() {
    let own = ranges("step", 70..=75);
    let seen = output(&own, (70, 75), None);
    assert_eq!(figures(&seen)[1..], [("window.steps", 6.0), ("window.first", 70.0), ("window.last", 75.0)]);
    assert_eq!(codes_and_causes(&seen), (vec![], vec![]));
    // A capture that stops at the start of the last step has one step less.
    let (codes, causes) = (["window-not-as-asked"], ["window-not-as-asked"]);
    let short = output(&ranges("step", 70..=74), (70, 75), None);
    assert_eq!(codes_and_causes(&short), (codes.to_vec(), causes.to_vec()));
    let why = &short.findings[0].message;
    assert!(why.contains("requested steps 70..75 (6), profiled 70..74 (5)"), "{why}");
}

#[test]
fn a_window_that_the_program_s_end_cut_makes_all_numbers_of_the_node_untrustworthy() {
    let cut = ranges(MARKS, 27..=29);
    let output = output(&cut, (27, 32), mark("hook", Some(27), None, 30));
    let uncertain = &output.doubts[0];
    assert_eq!(uncertain.dims.word(Dim::Node), Some("n0"));
    assert!(uncertain.metrics.iter().any(|metric| metric == "step.time"));
    assert!(uncertain.metrics.iter().any(|metric| metric == "window.steps"));
    assert!(uncertain.why.contains("the program ended before the window was closed"), "{}", uncertain.why);
}

#[test]
fn the_hook_s_marks_count_where_its_ranges_were_not_traced() {
    // The stop cut the last range of the program itself.
    let own = ranges("step", 3..=4);
    let seen = output(&own, (3, 5), mark("hook", Some(3), Some(5), 20));
    assert_eq!(figures(&seen)[1], ("window.steps", 3.0));
    // With its last range cut off, its time is unknown.
    assert_eq!(codes_and_causes(&seen), (vec!["window-untimed"], vec![]));
    assert_eq!(value(&seen, "window.step_time"), None);
    // A report with far more steps than the marks say contradicts them.
    let contradicted = output(&ranges("step", 3..=14), (3, 5), mark("hook", Some(3), Some(5), 20));
    assert_eq!(codes_and_causes(&contradicted).1, ["window-not-as-asked"]);
    let why = &contradicted.doubts[0].why;
    assert!(why.contains("show 3 steps, ranges `") && why.ends_with(" in the report show 12"), "{why}");
}

#[test]
fn a_late_watcher_may_cut_one_step_at_either_end() {
    let watched = || mark("watch", Some(3), Some(6), 20);
    for numbers in [4..=7, 4..=6, 3..=6, 3..=7] {
        let seen = output(&ranges("step", numbers.clone()), (3, 6), watched());
        let figures = figures(&seen);
        assert_eq!(figures[1..4], [("window.steps", 4.0), ("window.first", 3.0), ("window.last", 6.0)]);
        // How long it took is known where no step of it is cut.
        let (codes, is_timed): (&[&str], _) =
            if numbers.contains(&3) { (&[], true) } else { (&["window-untimed"], false) };
        assert_eq!(codes_and_causes(&seen), (codes.to_vec(), vec![]), "{numbers:?}");
        assert_eq!(value(&seen, "window.step_time").is_some(), is_timed, "{numbers:?}");
    }
    for numbers in [5..=7, 4..=8, 2..=6, 3..=5] {
        let seen = output(&ranges("step", numbers.clone()), (3, 6), watched());
        assert_eq!(codes_and_causes(&seen).1, ["window-not-as-asked"], "{numbers:?}");
    }
}

#[test]
fn an_unknown_window_has_no_number_of_steps() {
    let silent = Made::begin();
    silent.range((0, 5), 3, "setup");
    let seen = output(&silent, (3, 5), None);
    assert_eq!(figures(&seen), [("window.opened", 1.0)]);
    assert_eq!(codes_and_causes(&seen), (vec!["window-unknown"], vec![]));
    // A watcher that was late watched other steps.
    let late = output(&silent, (3, 5), mark("watch", Some(4), Some(6), 20));
    assert_eq!(codes_and_causes(&late).1, ["window-not-as-asked"]);
}

fn value(output: &Output, metric: &str) -> Option<f64> {
    output.metrics.iter().find(|row| &*row.name == metric).map(|row| row.value)
}

#[test]
fn step_time_spans_from_the_first_begin_to_the_last_end() {
    for (made, mark) in
        [(ranges(MARKS, 3..=5), mark("hook", Some(3), Some(5), 20)), (ranges("step", 3..=5), None)]
    {
        let output = output(&made, (3, 5), mark);
        assert_eq!(value(&output, "window.step_time"), Some(2900.0 / 1e9 / 3.0));
    }
    let few = output(&ranges("step", 4..=5), (3, 5), None);
    assert_eq!(value(&few, "window.step_time"), None, "nothing is measured in another window");
}

/// As of eight processes under one torchrun: the lowest opens the window, and others began their step a moment before.
#[test]
fn a_window_that_one_of_several_processes_shows_whole_is_measured_on_that_one() {
    let made = Made::begin();
    for (thread, uneven, from) in [(3, 40, 70), (4, 0, 71), (5, 20, 71)] {
        for number in from..=75_i64 {
            let start = number * 1000 + (number % 2) * uneven;
            made.range((start, number * 1000 + 900), thread, &format!("step {number}"));
        }
    }
    let output = output(&made, (70, 75), None);
    assert_eq!(figures(&output)[1..], [("window.steps", 6.0), ("window.first", 70.0), ("window.last", 75.0)]);
    assert_eq!(codes_and_causes(&output), (vec![], vec![]));
    assert_eq!(value(&output, "window.step_time"), Some(5900.0 / 1e9 / 6.0));
}

#[test]
fn throughput_follows_from_step_time_and_stated_facts_if_no_report_is_missing() {
    let facts = TrainingFacts {
        samples: Some(32),
        tokens_per_sample: Some(4096),
        flops_per_token: Some(1e3),
        peak_tflops: Some(989.0),
        ..TrainingFacts::default()
    };
    let made = ranges(MARKS, 3..=5);
    let mut job = job(&made, (3, 5), mark("hook", Some(3), Some(5), 20));
    job.workload = Workload::Training { facts, ranks: 16 };
    let output = run(&job);
    let seconds = 2900.0 / 1e9 / 3.0;
    let near = |name: &str, expected: f64| {
        let value = value(&output, name).unwrap_or_else(|| panic!("no {name}: {:?}", output.findings));
        assert!((value - expected).abs() < 1e-9 * expected, "{name}: {value}, not {expected}");
    };
    near("window.samples_per_s", 32.0 / seconds);
    near("window.tokens_per_s", 32.0 * 4096.0 / seconds);
    near("window.tflops_per_gpu", 32.0 * 4096.0 * 1e3 / seconds / 16.0 / 1e12);
    near("window.mfu", 32.0 * 4096.0 * 1e3 / seconds / 16.0 / 989e12);
    job.expected_exports.push((1, "n1".to_owned()));
    assert_eq!(value(&run(&job), "window.mfu"), None, "another rank's report may show that it was slower");
    job.workload = Workload::Command;
    assert!(run(&job).metrics.iter().all(|row| !measured::REACHED.iter().any(|spec| spec.name == *row.name)));
}

/// A report whose steps take a second each, and a capture with a reading in every half of one; each grows by so much.
fn with_counters(grows: u64, epoch_s: i64, interval_cs: u64) -> (Made, JobInput, tempfile::TempDir) {
    let made = Made::begin();
    for number in 3_i64..=8 {
        let start = (number - 3) * 1_000_000_000;
        made.range((start, start + 1_000_000_000), 3, &format!("{MARKS} {number}"));
    }
    made.put(&SESSION_START, &[("utcEpochNs", (epoch_s * 1_000_000_000).into())]);
    let readings = (0..40_u64).map(|at| Reading {
        phase: Phase::During,
        uptime_cs: 500 + at * 50,
        device: 0,
        values: vec![Some(at * grows)],
    });
    let capture = Capture {
        file: String::new(),
        node: "n0".to_owned(),
        root: "/sys".to_owned(),
        interval_cs,
        columns: vec!["tx_bytes".to_owned()],
        begin: Clock { wall_us: 1_700_000_000_000_000, uptime_cs: 500 },
        devices: vec![Device { name: "rdmap0s0".to_owned(), lifespan_ms: None }],
        unreadable: Vec::new(),
        missing: Vec::new(),
        bad: Vec::new(),
        not_quiet: Vec::new(),
        readings: readings.collect(),
        end: None,
    };
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("counters.n0.txt");
    std::fs::write(&path, efa_counters::render(&capture)).expect("written");
    let mut job = job(&made, (3, 8), mark("hook", Some(3), Some(8), 20));
    job.nics = vec!["rdmap0s0".to_owned()];
    job.tx_counters = vec!["tx_bytes".to_owned()];
    let shown = "raw/j/counters.n0.txt".to_owned();
    let (node, part, rank) = (Some("n0".to_owned()), None, None);
    job.files.push(InputFile { role: FileRole::Counters, path, shown, node, part, rank });
    (made, job, folder)
}

#[test]
fn efa_bytes_per_step_cover_the_first_begin_to_the_last_end() {
    let (_made, job, _folder) = with_counters(1000, 1_700_000_004, 50);
    let output = run(&job);
    assert_eq!(value(&output, "window.efa_bytes_per_step"), Some(2000.0), "{:?}", output.findings);
    for (epoch_s, interval_cs, why) in [
        (1_700_000_015, 50, "no readings on both sides"),
        (1_699_999_999, 50, "no readings on both sides"),
        (1_700_000_004, 400, "`counters = { interval_s = 3.0 }`"),
    ] {
        let (_made, job, _folder) = with_counters(1000, epoch_s, interval_cs);
        let output = run(&job);
        assert_eq!(value(&output, "window.efa_bytes_per_step"), None);
        assert_eq!(codes_and_causes(&output).0, [WindowFinding::EfaUnknown.code()]);
        assert!(output.findings[0].message.contains(why), "{:?}", output.findings);
        assert!(value(&output, "window.step_time").is_some(), "times need no counters");
    }
    // Either of two captures of a node may be of another run.
    let (_made, mut job, _folder) = with_counters(1000, 1_700_000_004, 50);
    job.files.push(job.files[1].clone());
    let twice = run(&job);
    assert_eq!(value(&twice, "window.efa_bytes_per_step"), None);
    assert!(twice.findings[0].message.contains("more than one counter capture"), "{:?}", twice.findings);
    let (_made, mut job, _folder) = with_counters(1000, 1_700_000_004, 50);
    std::fs::write(&job.files[1].path, "harness-counters 1\nnothing").expect("written");
    assert_eq!(codes_and_causes(&run(&job)).0, [WindowFinding::EfaUnknown.code()]);
    job.files.pop();
    assert_eq!(
        codes_and_causes(&run(&job)).0,
        [] as [&str; 0],
        "no finding where counters were not captured"
    );
}

#[test]
fn without_a_requested_window_there_is_no_output() {
    let node = |rank| format!("n{rank}");
    let made = ranges("step", 3..=5);
    let output = run(&crate::recipe::testing::job(Workload::Command, &[made.path()], node, 1));
    assert!(output.metrics.is_empty() && output.findings.is_empty());
}

#[test]
fn a_hook_that_counted_other_steps_than_planned_leaves_the_window_inconclusive() {
    let hooked = ranges(MARKS, 3..=5);
    let count = |way: &str, counted, of_suite, planned_steps| {
        let mut job = job(&hooked, (3, 5), mark(way, Some(3), Some(5), counted));
        job.workload = Workload::Training {
            facts: TrainingFacts { steps: of_suite, ..TrainingFacts::default() },
            ranks: 1,
        };
        job.window.as_mut().expect("a window").planned_steps = planned_steps;
        run(&job)
    };
    for (of_suite, planned) in [(Some(10), None), (None, Some(10)), (Some(10), Some(10))] {
        for counted in [40, 11, 7] {
            let output = count("hook", counted, of_suite, planned);
            assert_eq!(
                codes_and_causes(&output),
                (vec!["window-miscounted"], vec!["window-miscounted"]),
                "{counted}"
            );
            let message = &output.findings[0].message;
            assert!(message.contains(&format!("counted {counted} steps, planned 10")), "{message}");
        }
        assert_eq!(codes_and_causes(&count("hook", 10, of_suite, planned)).1, [""; 0]);
        // A watcher reads the program's own numbers.
        assert_eq!(codes_and_causes(&count("watch", 11, of_suite, planned)).1, [""; 0]);
    }
    assert_eq!(codes_and_causes(&count("hook", 40, None, None)).1, [""; 0], "nothing to compare with");
    assert_eq!(
        codes_and_causes(&count("hook", 20, Some(10), Some(20))).1,
        [""; 0],
        "the command line says so"
    );
}

#[test]
fn messages() {
    let silent = Made::begin();
    silent.range((0, 5), 3, "setup");
    let hook = || mark("hook", Some(3), Some(5), 20);
    let mut miscounted = job(&ranges(MARKS, 3..=5), (3, 5), hook());
    let hooked = ranges(MARKS, 3..=5);
    miscounted.files[0].path = hooked.path();
    miscounted.window.as_mut().expect("a window").planned_steps = Some(10);
    let (_made, mut no_counters, _folder) = with_counters(1000, 1_700_000_004, 50);
    std::fs::write(&no_counters.files[1].path, "harness-counters 1\nnothing").expect("written");
    no_counters.files.truncate(2);
    let outputs = [
        output(&silent, (3, 5), None),
        output(&ranges("step", 70..=74), (70, 75), None),
        output(&ranges(MARKS, 27..=29), (27, 32), mark("hook", Some(27), None, 30)),
        output(&ranges("step", 3..=4), (3, 5), hook()),
        output(&ranges("step", 3..=14), (3, 5), hook()),
        run(&miscounted),
        run(&no_counters),
    ];
    insta::assert_snapshot!(crate::recipe::testing::messages(&outputs));
}
