//! What stored runs report beside their numbers: why a run or a number is not counted, and what was suspected before.

use super::past::read;
use super::past_tests::replay_of;
use super::series::{Found, Key, SeriesRequest, find};
use super::suspects::before;
use super::suspects_tests::{green, red};
use crate::fingerprint::{Fingerprint, differences};
use crate::stored_runs::{Made, NIC, culprit, past};
use metric::{Dim, Dims};
use model::artefact::Culprit;
use std::collections::BTreeSet;
use store::Scratch;

/// A text without the name of the temporary folder in it.
fn without(folder: &Scratch, text: &str) -> String {
    text.replace(&folder.path().display().to_string(), "RUNS")
}

#[test]
fn messages_of_incomplete_runs() {
    type Change = fn(&mut Made);
    let cases: [(&str, Change, Option<&str>); 9] = [
        ("complete", |_| {}, None),
        ("without a record", |made| made.record = None, None),
        ("without an end", |made| made.record.as_mut().expect("a record").ended = None, None),
        ("stopped", |made| made.record.as_mut().expect("a record").stopped = Some("SIGTERM".into()), None),
        ("another case", |made| made.plan.cases[0].name = "other".into(), None),
        ("too few verdicts", |made| made.case.verdicts.clear(), None),
        ("record that is cut", |_| {}, Some("run.json")),
        ("summary that is cut", |_| {}, Some("summary.json")),
        (
            "simulated, and two reasons",
            |made| {
                made.record = None;
                made.case.verdicts.clear();
                made.plan.simulated = true;
                made.plan.sim_faults = vec!["p5-003:nic-slow".into()];
            },
            None,
        ),
    ];
    let lines = cases.map(|(what, change, cut)| {
        let mut made = Made::at(1, &[12.0]);
        change(&mut made);
        let folder = Scratch::new().expect("a folder");
        made.write(folder.path());
        if let Some(name) = cut {
            std::fs::write(folder.path().join(&made.plan.run_id).join(name), "{").expect("written");
        }
        let past = read(folder.path()).expect("runs");
        let run = &past.runs[0];
        format!("{what}: {}\n  {}", run.state(), run.partial.join("\n  ")).trim_end().to_owned()
    });
    insta::assert_snapshot!(lines.join("\n"));
}

#[test]
fn messages_of_folders_that_are_not_counted() {
    let folder = Scratch::new().expect("a folder");
    let (first, foreign) = (Made::at(1, &[12.0]), Made::at(2, &[12.0]));
    let mut nameless = Made::at(4, &[12.0]);
    (nameless.plan.run_id, nameless.record) = ("nightly".into(), None);
    for made in [&first, &foreign, &replay_of(&first, 3), &nameless] {
        made.write(folder.path());
    }
    store::mark_foreign(&folder.path().join(&foreign.plan.run_id)).expect("marked");
    for name in ["empty", "garbled"] {
        std::fs::create_dir(folder.path().join(name)).expect("a folder");
    }
    std::fs::write(folder.path().join("garbled/plan.json"), "{").expect("written");
    let all = read(folder.path()).expect("runs");
    let mut lines: Vec<String> = all.passed.iter().map(|one| format!("{}: {}", one.name, one.why)).collect();
    for name in [first.plan.run_id.as_str(), "absent"] {
        let why = read(&folder.path().join(name)).expect_err("no folder of runs");
        lines.push(without(&folder, &why));
    }
    insta::assert_snapshot!(lines.join("\n"));
}

fn request() -> SeriesRequest {
    SeriesRequest { metric: "nic.rate".into(), ..SeriesRequest::default() }
}

/// Why the last number of the only series does not count.
fn uncounted(found: &Found) -> String {
    let last = found.series.first().and_then(|series| series.points.last());
    last.and_then(|point| point.uncounted.clone()).unwrap_or_default()
}

#[test]
fn messages_of_numbers_that_are_not_counted() {
    let of = |made: &[Made]| {
        let (_folder, past) = past(made);
        uncounted(&find(&past, &request()))
    };
    let made = Made::at(1, &[12.0]);
    let (folder, whole) = past(std::slice::from_ref(&made));
    let case = folder.path().join(&made.plan.run_id).join("cases/nics");
    std::fs::write(case.join("analysis.json"), "{").expect("written");
    let without_analysis = uncounted(&find(&whole, &request()));
    std::fs::write(case.join("metrics.parquet"), "cut").expect("written");
    let unread = find(&whole, &request()).unread.remove(0).1;
    let lines = [
        of(&[Made::at(1, &[12.0]), Made::at(2, &[])]),
        of(&[Made::at(1, &[f64::NAN, f64::NAN])]),
        of(&[Made::at(1, &[12.0, f64::NAN, f64::NAN])]),
        without_analysis,
        without(&folder, &unread),
    ];
    insta::assert_snapshot!(lines.join("\n"));
}

fn software(parts: &[(&str, &[&str])]) -> Fingerprint {
    let versions =
        |those: &[&str]| -> BTreeSet<String> { those.iter().map(|one| (*one).to_owned()).collect() };
    parts.iter().map(|(part, those)| ((*part).to_owned(), versions(those))).collect()
}

#[test]
fn messages_of_series_and_their_software() {
    let key = |nodes: Option<u32>, ranks: Option<u32>, dims: Dims| {
        let (instance, suite, case) = ("p5".to_owned(), "nccl-p5".to_owned(), "all".to_owned());
        Key { instance, suite, case, nodes, ranks, dims }.to_string()
    };
    let collective = |place: &str| {
        Dims::new().with(Dim::Op, "all_reduce").with(Dim::SizeBytes, 1u64 << 30).with(Dim::Place, place)
    };
    let mut lines = vec![
        key(Some(2), Some(16), collective("out")),
        key(Some(2), Some(16), collective("in")),
        key(Some(1), Some(1), Dims::new().with(Dim::Direction, "tx")),
        key(None, None, Dims::new().with(Dim::Class, "nccl").with(Dim::Kernel, "ncclDevKernel")),
    ];
    let old = software(&[("driver", &["570.1"]), ("kernel", &["6.8"]), ("nccl", &["2.28"])]);
    let new = software(&[("cuda", &["12.8"]), ("driver", &["570.1", "580.2"]), ("nccl", &["2.29"])]);
    lines.extend(differences(&old, &new).iter().map(ToString::to_string));
    insta::assert_snapshot!(lines.join("\n"));
}

#[test]
fn messages_of_suspects() {
    let several = || Culprit::Suspects { nodes: vec!["p5-001".into()], evidence: "slow".into() };
    let (_folder, past) = past(&[red(1), green(2).naming(vec![several()]), green(3)]);
    let of = |culprit: Culprit| before(&past, false, "default", &[culprit]);
    let mut lines = of(culprit("p5-001", NIC));
    lines.push("only suspected now:".to_owned());
    lines.extend(of(several()));
    lines.push("another part:".to_owned());
    lines.extend(of(culprit("p5-001", "gpu0")));
    insta::assert_snapshot!(lines.join("\n"));
}
