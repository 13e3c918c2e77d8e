//! Small reports of four ranks on two hosts, and every case without a verdict.

use super::*;
use crate::chart::Figure;
use crate::recipe::Workload;
use crate::recipe::of_reports::part_tests::both_ways;
use crate::recipe::of_reports::{self, Input, Outcome, Survey};
use crate::report::Arguments;
use crate::result_table::{ResultTable, Values};
use crate::stragglers::Collective;
use crate::testing::Made;
use crate::testing::nccl as testing;
use nsys::tables;
use std::path::PathBuf;

const MS: i64 = 1_000_000;
const STEP: i64 = 100 * MS;

/// A rank of a small job. Times are true ones, in nanoseconds; a report's begin at its own zero.
#[derive(Clone)]
struct SmallRank {
    rank: i64,
    late: i64,
    steps: i64,
    payloads: bool,
    epoch: bool,
    /// Of the host's clock.
    offset: i64,
    /// A communicator of eight ranks that no other rank records.
    alone_in: Option<u64>,
}

impl SmallRank {
    fn new(rank: i64) -> SmallRank {
        let offset = (rank / 2) * 30 * MS;
        SmallRank { rank, late: 0, steps: 20, payloads: true, epoch: true, offset, alone_in: None }
    }

    /// `latest` is how late the latest of all ranks is in each step.
    fn made(&self, latest: i64) -> Made {
        let made = Made::begin();
        made.string(1, "cudaLaunchKernel").string(2, "ncclDevKernel_AllReduce_Sum_f32_RING_LL");
        made.string(3, "ncclDevKernel_AllReduce_Sum_f32_RING_LL").string(4, "gemm").string(5, "gemm");
        // The host's clock, relative to its value at the zero of the report.
        let zero = 7 * MS * self.rank;
        let at = |time: i64| time + self.offset - zero;
        if self.epoch {
            made.put(&tables::SESSION_START, &[("utcEpochNs", (1_760_000_000_000_000_000 + zero).into())]);
        }
        let host = [("name", "Hostname".to_owned().into()), ("value", format!("n{}", self.rank / 2).into())];
        made.put(&tables::SYSTEM_ENV, &host);
        testing::domain(&made);
        if self.payloads {
            testing::communicator(&made, at(0), 7, 4, self.rank as u32);
        }
        if let Some(id) = self.alone_in {
            testing::communicator(&made, at(2), id, 8, 0);
        }
        for step in 0..self.steps {
            let number = 10 * step + 1;
            // Every rank has a little of its own in each step, which is no lateness.
            let own = (step * 7 + self.rank * 3) % 11 * 10_000;
            let begin = 10 * MS + step * (STEP + latest);
            made.call((at(begin), at(begin) + 5), 3, number, 1);
            made.kernel((at(begin), at(begin + 60 * MS)), number, 4);
            let (start, end) = (at(begin + 80 * MS + self.late + own), at(begin + 90 * MS + latest));
            if let Some(id) = self.alone_in {
                let (start, end) = (at(begin + 62 * MS), at(begin + 70 * MS));
                testing::call(&made, start - 50, "ncclAllGather", (id, 1024), (start, end), number + 2);
            }
            if self.payloads {
                testing::call(&made, start - 50, "ncclAllReduce", (7, 1024), (start, end), number + 1);
            } else {
                made.call((start - 50, start - 40), 3, number + 1, 1).kernel((start, end), number + 1, 2);
            }
        }
        made
    }
}

fn made(ranks: &[SmallRank]) -> Vec<Made> {
    let latest = ranks.iter().map(|rank| rank.late).max().unwrap_or_default();
    ranks.iter().map(|rank| rank.made(latest)).collect()
}

fn small(late: [i64; 4]) -> Vec<SmallRank> {
    (0..4).map(|rank| SmallRank { late: late[rank as usize], ..SmallRank::new(rank) }).collect()
}

fn job(paths: &[PathBuf], expected: u32) -> JobInput {
    crate::recipe::testing::job(Workload::Command, paths, |rank| format!("n{}", rank / 2), expected)
}

fn ran(ranks: &[SmallRank]) -> Output {
    let made = made(ranks);
    run(&job(&made.iter().map(Made::path).collect::<Vec<_>>(), ranks.len() as u32))
}

fn codes(output: &Output) -> Vec<&str> {
    output.findings.iter().map(|finding| finding.code.as_str()).collect()
}

fn metric_values(output: &Output, metric: &str) -> Vec<f64> {
    let rows = output.metrics.iter().filter(|row| &*row.name == metric);
    rows.map(|row| row.value).collect()
}

fn surveyed(ranks: &[SmallRank], words: &[&str]) -> Outcome {
    let made = made(ranks);
    let inputs = made.iter().enumerate();
    let inputs: Vec<Input> =
        inputs.map(|(at, made)| Input { path: made.path(), shown: format!("r{at}"), side: 0 }).collect();
    let recipe = of_reports::find("stragglers").expect("there");
    let arguments = Arguments::read(recipe.name, recipe.arguments, words).expect("known");
    let asked = [(recipe, arguments)];
    let of = Survey { asked: &asked, inputs: &inputs, filter: None, jobs: 2, progress: &|_| {} };
    both_ways(&of).remove(0)
}

fn table<'a>(outcome: &'a Outcome, name: &str) -> &'a ResultTable {
    let found = outcome.tables.iter().find(|(table, _)| *table == name);
    &found.unwrap_or_else(|| panic!("no {name}")).1
}

fn cells(result_table: &ResultTable, column: &str) -> Vec<String> {
    let shown = |text: Option<String>| text.unwrap_or_default();
    match result_table.column(column).map(|column| &column.values) {
        Some(Values::Integers(all)) => all.iter().map(|cell| shown(cell.map(|n| n.to_string()))).collect(),
        Some(Values::Decimals(all)) => {
            all.iter().map(|cell| shown(cell.map(|n| format!("{n:.3}")))).collect()
        }
        Some(Values::Texts(all)) => all.iter().map(|cell| shown(cell.map(str::to_owned))).collect(),
        other => panic!("{column}: {other:?}"),
    }
}

#[test]
fn a_late_rank_is_named_with_its_node_and_gpu_and_the_others_wait() {
    let output = ran(&small([0, 0, 0, 5 * MS]));
    assert_eq!(codes(&output), ["straggler"]);
    let finding = &output.findings[0];
    assert_eq!((finding.node.as_deref(), finding.part.as_deref()), (Some("n1"), Some("gpu0")));
    assert!(finding.message.starts_with("rank 3 keeps the others waiting: "), "{}", finding.message);
    let late = metric_values(&output, "straggler.late");
    assert!(late[..3].iter().all(|us| us.abs() < 100.0) && (late[3] - 5000.0).abs() < 100.0, "{late:?}");
    let round_us =
        finding.message.split("in each iteration of ").nth(1).and_then(|rest| rest.split(' ').next());
    let round_us = round_us.and_then(|ms| ms.parse::<f64>().ok()).expect("how long a round is") * 1000.0;
    let share = metric_values(&output, "straggler.late_share");
    assert!((share[3] - late[3] / round_us).abs() < 1e-3, "{share:?} of {round_us} us");
    let wait = metric_values(&output, "straggler.wait");
    assert!(wait[..3].iter().all(|us| (us - 5000.0).abs() < 120.0) && wait[3] < 1.0, "{wait:?}");
    assert_eq!(metric_values(&output, "clock.offset"), [0.0, 30_000.0]);
    assert_eq!(metric_values(&output, "clock.residual"), [0.0, 0.0]);
}

#[test]
fn healthy_ranks_have_numbers_and_no_finding() {
    let output = ran(&small([0; 4]));
    assert_eq!(codes(&output), [] as [&str; 0]);
    assert_eq!(metric_values(&output, "straggler.late").len(), 4);
    for spec in SPEC.metrics {
        assert!(output.metrics.iter().any(|row| *row.name == spec.name), "{}", spec.name);
    }
}

#[test]
fn unknown_stragglers_give_a_finding_and_no_number() {
    let blind = |output: &Output, expected: &[&str]| {
        assert_eq!(codes(output), expected);
        assert!(output.metrics.is_empty(), "{:?}", output.metrics);
        let is_cause = |code: &str| SPEC.is_cause(code);
        assert!(expected.is_empty() || expected.iter().any(|code| is_cause(code)), "{expected:?}");
    };
    let mut few = small([0, 0, 0, 5 * MS]);
    few.iter_mut().for_each(|rank| rank.steps = 3);
    let output = ran(&few);
    blind(&output, &["stragglers-untold"]);
    assert!(output.findings[0].message.contains("2 rounds, at least 16 needed"), "{:?}", output.findings);
    // A rank left no report, or none that can be read, or one without communication.
    let all = made(&small([0; 4]));
    let mut paths: Vec<PathBuf> = all.iter().map(Made::path).collect();
    blind(&run(&job(&paths[..3], 4)), &["report-missing"]);
    blind(&run(&job(&[], 0)), &[]);
    let empty = Made::begin();
    empty.string(1, "gemm").string(2, "gemm").kernel((0, 9), 1, 1);
    paths[2] = empty.path();
    blind(&run(&job(&paths, 4)), &["no-communication"]);
    paths[2] = PathBuf::from("/nowhere");
    blind(&run(&job(&paths, 4)), &["report-unreadable"]);
    // One that says itself that it lost events.
    let lossy = SmallRank::new(2).made(0);
    let text = "4096 events were dropped".to_owned();
    lossy.put(&tables::DIAGNOSTIC_EVENT, &[("severity", 2.into()), ("text", text.into())]);
    paths[2] = lossy.path();
    blind(&run(&job(&paths, 4)), &["events-dropped"]);
    // One that has a collective less.
    let mut unequal = small([0; 4]);
    unequal[1].steps -= 1;
    blind(&ran(&unequal), &["collectives-unequal", "clocks-apart", "stragglers-untold"]);
}

/// What it waits for a rank that has no report looks like time of its own, or hides that it is late itself.
#[test]
fn a_rank_of_a_communicator_that_not_all_its_ranks_recorded_has_no_lateness() {
    let mut ranks = small([0, 0, 0, 5 * MS]);
    ranks[3].alone_in = Some(9);
    let output = ran(&ranks);
    assert_eq!(codes(&output), ["ranks-not-recorded"]);
    assert_eq!(output.findings[0].message, "communicator 0x9: not used, recorded by 1 of 8 ranks");
    for metric in ["straggler.late", "straggler.late_share"] {
        assert_eq!(metric_values(&output, metric).len(), 3, "{metric}");
    }
    // One rank of each node is profiled, and each is of a communicator of its node.
    ranks.iter_mut().for_each(|rank| rank.alone_in = Some(9 + rank.rank as u64));
    let output = ran(&ranks);
    assert_eq!(codes(&output), ["ranks-not-recorded"; 4], "nor is one named");
    for metric in ["straggler.late", "straggler.late_share"] {
        assert!(metric_values(&output, metric).is_empty(), "{metric}");
    }
    assert!(SPEC.is_cause("ranks-not-recorded"));
}

#[test]
fn tables_list_who_is_late_and_the_clocks() {
    let outcome = surveyed(&small([0, 0, 0, 5 * MS]), &[]);
    assert!(outcome.unreadable.is_empty() && outcome.notes.is_empty(), "{:?}", outcome.notes);
    let verdict = table(&outcome, "verdict");
    let word = |column| cells(verdict, column).join(" ");
    assert_eq!(
        (word("Verdict"), word("Who"), word("Node")),
        ("straggler".into(), "rank".into(), "n1".into())
    );
    assert_eq!((word("Rank"), word("GPU"), word("Residual")), ("3".into(), "0".into(), "0".into()));
    assert!(word("Cause").starts_with("its kernels run as long"), "{}", word("Cause"));
    let ranks = table(&outcome, "ranks");
    assert_eq!(cells(ranks, "NCCL Rank"), ["0", "1", "2", "3"]);
    assert_eq!(cells(ranks, "Last in"), ["0", "0", "0", "20"]);
    assert_eq!(cells(ranks, "Rounds"), ["19"; 4]);
    assert_eq!(cells(ranks, "Launched before"), ["48"; 4]);
    assert_eq!(cells(table(&outcome, "nodes"), "Ranks"), ["2", "2"]);
    let clocks = table(&outcome, "clocks");
    assert_eq!(
        (cells(clocks, "Clock"), cells(clocks, "Ahead")),
        (vec!["n0".into(), "n1".into()], vec!["0".into(), "30000000".into()])
    );
    assert_eq!(cells(clocks, "Rate (ppm)"), ["0.000", "0.000"]);
    let instances = table(&outcome, "instances");
    assert_eq!(cells(instances, "Communicator"), ["communicator 0x7"]);
    assert_eq!(cells(instances, "Instances"), ["20"]);
    let Figure::Bars(late) = &outcome.charts[0].figure else { panic!("{:?}", outcome.charts) };
    let bars: Vec<(&str, bool)> =
        late.bars.iter().map(|bar| (bar.label.as_str(), bar.value > Some(4.0 * MS as f64))).collect();
    assert_eq!(bars, [("rank 0", false), ("rank 1", false), ("rank 2", false), ("rank 3", true)]);
    assert_eq!(late.marks[0].at, 200_000.0);
    // Arguments override the defaults.
    let patient = surveyed(&small([0, 0, 0, 5 * MS]), &["least_us=6000"]);
    assert_eq!(cells(table(&patient, "verdict"), "Verdict"), ["none"]);
    let strict = surveyed(&small([0, 0, 0, 5 * MS]), &["least_rounds=20"]);
    assert_eq!(cells(table(&strict, "verdict"), "Verdict"), ["inconclusive"]);
    assert_eq!(cells(table(&strict, "verdict"), "Late"), [""], "not recorded is never a zero");
}

#[test]
fn without_payloads_streams_stand_for_communicators_with_a_note() {
    let mut ranks = small([0, 5 * MS, 0, 0]);
    ranks.iter_mut().for_each(|rank| rank.payloads = false);
    let outcome = surveyed(&ranks, &[]);
    assert_eq!(cells(table(&outcome, "verdict"), "Rank"), ["1"]);
    assert_eq!(cells(table(&outcome, "instances"), "Communicator"), ["stream 0 in order of use"]);
    assert!(
        outcome.notes.iter().any(|note| note.starts_with("communicators are not recorded")),
        "{outcome:?}"
    );
    assert_eq!(cells(table(&outcome, "ranks"), "NCCL Rank"), [""; 4]);
    // One rank has another number of them: nothing is aligned.
    ranks[2].steps -= 1;
    let outcome = surveyed(&ranks, &[]);
    assert_eq!(cells(table(&outcome, "verdict"), "Verdict"), ["inconclusive"]);
    assert!(
        outcome.notes.iter().any(|note| note.contains("different counts: rank 2 19 times")),
        "{outcome:?}"
    );
}

#[test]
fn a_report_without_its_zero_has_a_clock_of_its_own() {
    let mut ranks = small([0, 5 * MS, 0, 0]);
    ranks[1].epoch = false;
    let outcome = surveyed(&ranks, &[]);
    assert_eq!(cells(table(&outcome, "clocks"), "Clock"), ["n0", "r1", "n1"]);
    assert_eq!(cells(table(&outcome, "verdict"), "Rank"), ["1"], "its ends align it all the same");
    assert!(outcome.notes.iter().any(|note| note.ends_with("a clock of their own: r1")), "{outcome:?}");
}

#[test]
fn a_communicator_with_a_missing_report_is_not_used() {
    let outcome = surveyed(&small([0, 5 * MS, 0, 0])[..3], &[]);
    assert_eq!(cells(table(&outcome, "verdict"), "Verdict"), ["inconclusive"]);
    let said = "communicator 0x7: not used, recorded by 3 of 4 ranks";
    assert!(outcome.notes.iter().any(|note| note == said), "{:?}", outcome.notes);
}

#[test]
fn the_gpus_of_one_report_are_compared_with_each_other() {
    let made = Made::begin();
    made.string(1, "cudaLaunchKernel").string(2, "ncclDevKernel_AllReduce_Sum_f32_RING_LL");
    testing::domain(&made);
    testing::communicator(&made, 0, 7, 2, 0);
    for step in 0..20 {
        let at = MS + step * STEP;
        let own = step * 7 % 11 * 10_000;
        testing::range(&made, (at, at + 1), 3, "ncclGroupStart", None);
        for call in 0..2 {
            let (from, json) = (at + 2 + 10 * call, testing::json(7, 1024));
            testing::range(&made, (from, from + 5), 3, "ncclAllReduce", Some(&json));
        }
        testing::range(&made, (at + 30, at + 60), 3, "ncclGroupEnd", None);
        for device in 0..2 {
            let number = 2 * step + device + 1;
            made.call((at + 32 + 10 * device, at + 38 + 10 * device), 3, number, 1);
            let start = at + 100 + device * 5 * MS + own * (1 - 2 * device).abs();
            let row = [
                ("start", start),
                ("end", at + 20 * MS),
                ("deviceId", device),
                ("streamId", 7),
                ("demangledName", 2),
                ("shortName", 2),
                ("correlationId", number),
                ("globalPid", crate::testing::PROCESS),
            ];
            let row: Vec<_> = row.into_iter().map(|(name, value)| (name, value.into())).collect();
            made.put(&tables::KERNEL, &row);
        }
    }
    let mut job = job(&[made.path()], 1);
    let output = run(&job);
    assert_eq!(codes(&output), ["straggler"], "{:?}", output.findings);
    assert_eq!(output.findings[0].part.as_deref(), Some("gpu1"));
    let late = metric_values(&output, "straggler.late");
    assert!(late.len() == 1 && (late[0] - 5000.0).abs() < 100.0, "the latest of the report: {late:?}");
    job.files[0].node = None;
    assert_eq!(codes(&run(&job)), ["report-unreadable"], "it is not known whose it is");
}

#[test]
fn kernels_shared_by_different_calls_belong_to_neither() {
    let of = |calls: [(&str, u64); 2]| {
        let made = Made::begin();
        made.string(1, "cudaLaunchKernel")
            .string(2, "ncclDevKernel_AllReduce_Sum_f32_RING_LL")
            .string(3, "x");
        testing::domain(&made);
        testing::range(&made, (0, 1), 3, "ncclGroupStart", None);
        for (at, (name, id)) in calls.into_iter().enumerate() {
            let from = 10 * (at as i64 + 1);
            testing::range(&made, (from, from + 5), 3, name, Some(&testing::json(id, 1024)));
        }
        testing::range(&made, (30, 60), 3, "ncclGroupEnd", None);
        made.call((35, 40), 3, 5, 1).kernel((50, 90), 5, 1);
        let (extract, _) = extract::take(&made.trace()).expect("read").expect("communication");
        let part = [RankReport { rank: 0, node: "n", clock: "n", zero: 0, extract: &extract }];
        let evidence = extract::evidence(&part);
        let work = evidence.ranks[0].work;
        assert_eq!(work.len(), 1);
        (work[0].communicator, work[0].kind)
    };
    assert_eq!(of([("ncclAllReduce", 7), ("ncclAllReduce", 7)]), (Some(7), Collective::AllReduce));
    assert_eq!(of([("ncclAllReduce", 7), ("ncclAllGather", 7)]), (Some(7), Collective::Other));
    assert_eq!(of([("ncclAllReduce", 7), ("ncclAllReduce", 8)]), (None, Collective::Other));
}

#[test]
fn messages() {
    let mut few = small([0, 0, 0, 5 * MS]);
    few.iter_mut().for_each(|rank| rank.steps = 3);
    let mut unequal = small([0; 4]);
    unequal[1].steps -= 1;
    let all = made(&small([0; 4]));
    let mut paths: Vec<PathBuf> = all.iter().map(Made::path).collect();
    let missing = run(&job(&paths[..3], 4));
    let (empty, lossy) = (Made::begin(), SmallRank::new(2).made(0));
    empty.string(1, "gemm").string(2, "gemm").kernel((0, 9), 1, 1);
    let text = "4096 events were dropped".to_owned();
    lossy.put(&tables::DIAGNOSTIC_EVENT, &[("severity", 2.into()), ("text", text.into())]);
    paths[1] = empty.path();
    paths[2] = lossy.path();
    let outputs = [ran(&small([0, 0, 0, 5 * MS])), ran(&few), ran(&unequal), missing, run(&job(&paths, 4))];
    insta::assert_snapshot!(crate::recipe::testing::messages(&outputs));
}
