//! Steps of small reports as a suite sees them, and every way in which there are none.

use super::*;
use crate::recipe::Workload;
use crate::testing::Made;
use std::path::PathBuf;

fn job(paths: &[PathBuf]) -> JobInput {
    let expected = paths.len() as u32;
    crate::recipe::testing::job(Workload::Command, paths, |rank| format!("n{rank}"), expected)
}

fn stepped(times: &[i64]) -> Made {
    let made = Made::begin();
    for (at, ns) in times.iter().enumerate() {
        let start = at as i64 * 10_000;
        made.range((start, start + ns), 3, &format!("step {}", at + 5));
    }
    made
}

fn values(output: &Output, metric: &str) -> Vec<(u64, f64)> {
    let rows = output.metrics.iter().filter(|row| &*row.name == metric);
    rows.map(|row| (row.dims.number(Dim::Rank).unwrap_or(99), row.value)).collect()
}

fn codes(output: &Output) -> Vec<&str> {
    output.findings.iter().map(|finding| finding.code.as_str()).collect()
}

#[test]
fn each_rank_has_its_steps_with_their_figures() {
    let (one, two) = (stepped(&[9000, 9100, 9200, 9300]), stepped(&[9500; 4]));
    let output = run(&job(&[one.path(), two.path()]));
    assert_eq!(codes(&output), [] as [&str; 0]);
    assert_eq!(values(&output, "step.count"), [(0, 4.0), (1, 4.0)]);
    assert_eq!(values(&output, "step.time_median"), [(0, 9150.0), (1, 9500.0)]);
    assert_eq!(values(&output, "step.slope"), [(0, 100.0), (1, 0.0)]);
    assert_eq!(values(&output, "step.time_cv")[1], (1, 0.0));
    let times: Vec<_> = output.metrics.iter().filter(|row| &*row.name == "step.time").collect();
    let steps: Vec<_> = times.iter().map(|row| (row.dims.number(Dim::Step), row.value)).collect();
    assert_eq!(steps[..2], [(Some(5), 9000.0), (Some(6), 9100.0)]);
    assert_eq!(times.len(), 8);
}

#[test]
fn ranks_with_more_and_with_fewer_steps_are_a_finding() {
    let (one, two) = (stepped(&[9000; 4]), stepped(&[9000; 5]));
    let output = run(&job(&[one.path(), two.path()]));
    assert_eq!(codes(&output), ["steps-differ"]);
    let expected = "step counts differ between ranks: 4 on ranks 0; 5 on ranks 1";
    assert_eq!(output.findings[0].message, expected);
}

#[test]
fn a_report_without_steps_or_with_lost_events_has_no_number_and_a_finding_that_says_why() {
    let nothing = Made::begin();
    nothing.range((0, 5), 3, "setup");
    let lost = stepped(&[9000; 4]);
    let row = [("severity", 2.into()), ("text", "4096 events were dropped".to_owned().into())];
    lost.put(&DIAGNOSTIC_EVENT, &row);
    let folder = tempfile::tempdir().expect("a folder");
    let torn = folder.path().join("r.sqlite");
    std::fs::write(&torn, "SQLite format 3\0 and nothing more").expect("written");
    let output = run(&job(&[nothing.path(), lost.path(), torn]));
    assert!(output.metrics.is_empty(), "{:?}", output.metrics);
    assert_eq!(codes(&output), ["no-steps", "events-dropped", "report-unreadable"]);
    assert!(output.findings.iter().all(|finding| SPEC.is_cause(&finding.code)));
    assert!(output.findings[0].message.starts_with("rank 0: no steps found: ranges: none"));
}
