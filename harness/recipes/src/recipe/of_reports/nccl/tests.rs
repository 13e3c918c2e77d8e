//! Messages, sizes, classes and summaries over several small reports.

use crate::recipe::of_reports::part_tests::both_ways;
use crate::recipe::of_reports::{Input, Outcome, Survey, find};
use crate::report::Arguments;
use crate::result_table::Values;
use crate::testing::Made;
use crate::testing::nccl::{call, communicator, domain, json, range};

fn made() -> Made {
    let made = Made::begin();
    made.string(1, "cudaLaunchKernelExC_v11060")
        .string(2, "ncclDevKernel_AllReduce")
        .string(3, "ncclDevKernel");
    domain(&made);
    made
}

fn surveyed(name: &str, words: &[&str], reports: &[Made]) -> Outcome {
    let recipe = find(name).expect("there");
    let arguments = Arguments::read(recipe.name, recipe.arguments, words).expect("known");
    let inputs = reports.iter().enumerate();
    let inputs: Vec<Input> =
        inputs.map(|(side, made)| Input { path: made.path(), shown: format!("r{side}"), side }).collect();
    let asked = [(recipe, arguments)];
    let of = Survey { asked: &asked, inputs: &inputs, filter: None, jobs: 2, progress: &|_| {} };
    let outcome = both_ways(&of).remove(0);
    assert!(outcome.unreadable.is_empty(), "{:?}", outcome.unreadable);
    outcome
}

pub(super) fn cells(outcome: &Outcome, table: &str, column: &str) -> Vec<String> {
    let result_table = &outcome.tables.iter().find(|(name, _)| *name == table).expect(table).1;
    let column = &result_table.column(column).unwrap_or_else(|| panic!("{column} of {table}")).values;
    let shown = |value: Option<String>| value.unwrap_or_else(|| "-".to_owned());
    match column {
        Values::Texts(all) => all.iter().map(|text| shown(text.map(str::to_owned))).collect(),
        Values::Integers(all) => {
            all.iter().map(|value| shown(value.map(|value| value.to_string()))).collect()
        }
        Values::Decimals(all) => {
            all.iter().map(|value| shown(value.map(|value| format!("{value:.2}")))).collect()
        }
        Values::Lists(all) => panic!("lists: {all:?}"),
    }
}

/// One rank of two: reductions of 1000 bytes, whose kernels take so long.
fn rank(number: u32, times: &[i64]) -> Made {
    let made = made();
    communicator(&made, 0, 0xabc, 2, number);
    for (at, ns) in times.iter().enumerate() {
        let start = 100 + 1000 * at as i64;
        call(&made, start, "ncclAllReduce", (0xabc, 1000), (start + 10, start + 10 + ns), at as i64 + 1);
    }
    made
}

#[test]
fn calls_of_all_ranks_stand_one_by_one_and_by_size() {
    let outcome = surveyed("nccl_msg", &[], &[rank(0, &[400, 100, 100]), rank(1, &[300, 250, 100])]);
    assert_eq!(cells(&outcome, "calls", "Rank"), ["0", "0", "0", "1", "1", "1"]);
    assert_eq!(cells(&outcome, "calls", "Comm Rank"), ["0", "0", "0", "1", "1", "1"]);
    assert_eq!(cells(&outcome, "calls", "Instance"), ["0", "1", "2", "0", "1", "2"]);
    assert_eq!(cells(&outcome, "calls", "Kernel Duration"), ["400", "100", "100", "300", "250", "100"]);
    assert_eq!(cells(&outcome, "calls", "Communicator")[..1], ["0xabc"]);
    assert_eq!(cells(&outcome, "calls", "Kernel")[..1], ["ncclDevKernel"]);
    let sizes = |column| cells(&outcome, "sizes", column);
    assert_eq!(
        (sizes("Operation"), sizes("Total Bytes")),
        (vec!["ncclAllReduce".into()], vec!["1000".into()])
    );
    assert_eq!(
        (sizes("Count"), sizes("Instances"), sizes("Ranks Seen")),
        (vec!["6".into()], vec!["3".into()], vec!["2".into()])
    );
    assert_eq!(
        (sizes("P50"), sizes("Min"), sizes("Max")),
        (vec!["175.00".into()], vec!["100".into()], vec!["400".into()])
    );
    // Of the fastest ranks 300, 100, 100; a ring of two moves each byte once.
    assert_eq!(sizes("Fastest Rank P50"), ["100.00"]);
    assert_eq!(sizes("BusBW P50 (GB/s)"), ["10.00"]);
    assert_eq!(sizes("Wait Avg"), ["83.33"]);
    assert_eq!(
        (sizes("Modes"), sizes("Found Warm-up")),
        (vec!["-".to_owned()], vec!["-".to_owned()]),
        "too few"
    );
}

#[test]
fn a_given_warm_up_does_not_count_and_a_found_one_is_given() {
    let times = [900, 500, 100, 101, 99, 100, 100, 101, 100, 99];
    let outcome = surveyed("nccl_msg", &[], &[rank(0, &times)]);
    assert_eq!(cells(&outcome, "sizes", "Found Warm-up"), ["2"]);
    assert_eq!(cells(&outcome, "sizes", "Max"), ["900"]);
    let outcome = surveyed("nccl_msg", &["warmup=2"], &[rank(0, &times)]);
    assert_eq!(cells(&outcome, "sizes", "Count"), ["8"]);
    assert_eq!(
        (cells(&outcome, "sizes", "Max"), cells(&outcome, "sizes", "Calls")),
        (vec!["101".into()], vec!["10".into()])
    );
    assert_eq!(cells(&outcome, "sizes", "Wait Avg"), ["-"], "one rank alone waits for none that is seen");
}

#[test]
fn what_is_not_recorded_stays_empty_and_a_given_number_of_ranks_fills_what_it_can() {
    let made = made();
    range(&made, (100, 108), 3, "ncclAllGather", Some(r#"{"Message size [bytes]":1000}"#));
    made.call((102, 106), 3, 1, 1).kernel((110, 210), 1, 2);
    range(&made, (300, 308), 3, "ncclAllReduce", None);
    made.call((302, 306), 3, 2, 1).kernel((310, 410), 2, 2);
    let reports = [made];
    let outcome = surveyed("nccl_msg", &[], &reports);
    let column = |outcome: &Outcome, name| cells(outcome, "sizes", name);
    assert_eq!(column(&outcome, "Operation"), ["ncclAllReduce", "ncclAllGather"]);
    for name in ["Communicator", "Ranks", "Total Bytes", "Wire Bytes", "BusBW P50 (GB/s)"] {
        assert_eq!(column(&outcome, name), ["-", "-"], "{name}");
    }
    assert_eq!(column(&outcome, "Bytes"), ["-", "1000"]);
    assert_eq!(cells(&outcome, "buckets", "Bucket"), ["not recorded", "msg < 64KB"]);
    let outcome = surveyed("nccl_msg", &["ranks=4"], &reports);
    assert_eq!(column(&outcome, "Total Bytes"), ["-", "4000"]);
    assert_eq!(column(&outcome, "BusBW P50 (GB/s)"), ["-", "30.00"]);
}

#[test]
fn calls_that_share_kernels_are_counted_and_have_no_time() {
    let made = made();
    range(&made, (100, 102), 3, "ncclGroupStart", None);
    range(&made, (110, 112), 3, "ncclSend", Some(&json(7, 64)));
    range(&made, (120, 122), 3, "ncclRecv", Some(&json(7, 64)));
    range(&made, (130, 150), 3, "ncclGroupEnd", None);
    made.call((132, 140), 3, 1, 1).kernel((200, 300), 1, 2);
    let reports = [made];
    let outcome = surveyed("nccl_msg", &[], &reports);
    assert_eq!(cells(&outcome, "calls", "Kernel Start"), ["200", "200"]);
    assert_eq!(cells(&outcome, "calls", "Shares Kernels"), ["yes", "yes"]);
    assert_eq!(cells(&outcome, "sizes", "Sharing Kernels"), ["1", "1"]);
    assert_eq!(cells(&outcome, "sizes", "Count"), ["0", "0"]);
    assert_eq!(cells(&outcome, "sizes", "P50"), ["-", "-"]);
    let outcome = surveyed("nccl_gpu_proj_sum", &[], &reports);
    assert_eq!(cells(&outcome, "all_stats", "Range"), ["ncclGroupEnd"]);
    assert_eq!(cells(&outcome, "all_stats", "Total"), ["100"]);
    assert_eq!(outcome.notes, ["r0: NCCL: ranges that launched nothing themselves, left out: 3"]);
}

#[test]
fn classes_of_size_count_calls_and_the_time_of_their_threads() {
    let made = made();
    for (at, bytes) in [(0, 65_535u64), (1, 65_536), (2, 1 << 20), (3, 16 << 20), (4, 1 << 30)] {
        let start = 100 + 1000 * at;
        call(&made, start, "ncclAllReduce", (7, bytes), (start + 10, start + 60), at + 1);
    }
    let reports = [made];
    let outcome = surveyed("nccl_msg", &[], &reports);
    let classes = ["msg < 64KB", "64KB <= msg < 1MB", "1MB <= msg < 16MB", "msg >= 16MB"];
    assert_eq!(cells(&outcome, "buckets", "Bucket"), classes);
    assert_eq!(cells(&outcome, "buckets", "Inst"), ["1", "1", "1", "2"]);
    assert_eq!(cells(&outcome, "buckets", "Sum"), ["8", "8", "8", "16"]);
    assert_eq!(cells(&outcome, "buckets", "Kernel Avg"), ["50.00"; 4]);
    let outcome = surveyed("nccl_msg", &["buckets=1G+1M"], &reports);
    assert!(outcome.tables.iter().all(|(name, _)| *name != "buckets"));
    assert!(
        outcome.notes[0].contains("`buckets` has borders that do not ascend: `1G+1M`"),
        "{:?}",
        outcome.notes
    );
}

/// A run of nccl-tests: warm-up at 8 and 16 bytes, then both sizes in both placements.
fn tests_run(skipped: Option<usize>) -> Made {
    let made = made();
    communicator(&made, 0, 7, 2, 0);
    let mut sizes = vec![8u64, 16];
    for bytes in [8, 16] {
        sizes.extend([bytes; 2 * (1 + 3 + 1)]);
    }
    for (at, bytes) in sizes.into_iter().enumerate().filter(|(at, _)| Some(*at) != skipped) {
        let start = 100 + 1000 * at as i64;
        call(&made, start, "ncclAllReduce", (7, bytes), (start + 10, start + 20 + at as i64), at as i64 + 1);
    }
    made
}

#[test]
fn calls_of_nccl_tests_have_their_parts_and_placements_and_timed_ones_count() {
    let words = ["iterations=3", "warmup=1", "checks=1"];
    let outcome = surveyed("nccl_msg", &words, &[tests_run(None)]);
    let parts = cells(&outcome, "calls", "Part");
    assert_eq!(parts[..8], ["warm-up", "warm-up", "sync", "timed", "timed", "timed", "check", "sync"]);
    assert_eq!(cells(&outcome, "calls", "Placement")[..3], ["-", "-", "out of place"]);
    assert_eq!(cells(&outcome, "sizes", "Bytes"), ["8", "8", "8", "16", "16", "16"]);
    let placements = ["-", "out of place", "in place", "-", "out of place", "in place"];
    assert_eq!(cells(&outcome, "sizes", "Placement"), placements);
    assert_eq!(cells(&outcome, "sizes", "Count"), ["0", "3", "3", "0", "3", "3"]);
    assert_eq!(cells(&outcome, "sizes", "Min")[1..3], ["13", "18"]);
    assert!(outcome.notes.is_empty(), "{:?}", outcome.notes);
    let outcome = surveyed("nccl_msg", &words, &[tests_run(Some(6))]);
    assert_eq!(cells(&outcome, "sizes", "Count"), ["0", "0"], "ambiguous calls are not counted");
    assert!(
        outcome.notes[0]
            .starts_with("r0, communicator 0x7, rank 0: calls do not match the given `iterations`"),
        "{:?}",
        outcome.notes
    );
}

#[test]
fn functions_are_summed_over_ranks_and_by_communicator_and_size() {
    let outcome = surveyed("nccl_sum", &[], &[rank(0, &[400, 100]), rank(1, &[300])]);
    assert_eq!(cells(&outcome, "all_stats", "Name"), ["ncclAllReduce", "ncclCommInitRank"]);
    assert_eq!(cells(&outcome, "all_stats", "Total"), ["24", "2"]);
    assert_eq!(cells(&outcome, "rank_stats", "Rank"), ["0", "0", "1", "1"]);
    assert_eq!(cells(&outcome, "rank_stats", "Count"), ["2", "1", "1", "1"]);
    assert_eq!(cells(&outcome, "size_stats", "Communicator"), ["0xabc"]);
    assert_eq!(cells(&outcome, "size_stats", "Size Class"), ["512 B to 1 KiB"]);
    assert_eq!(cells(&outcome, "size_stats", "Count"), ["3"]);
}

#[test]
fn ranges_of_the_domain_stand_with_what_their_payloads_say() {
    let made = rank(1, &[50]);
    made.range((5, 6), 3, "step");
    let outcome = surveyed("NCCL", &[], &[made]);
    assert_eq!(cells(&outcome, "rows", "text"), ["ncclCommInitRank", "ncclAllReduce"]);
    assert_eq!(cells(&outcome, "rows", "bytes"), ["-", "1000"]);
    assert_eq!(
        (cells(&outcome, "rows", "ranks"), cells(&outcome, "rows", "rank")),
        (vec!["-".into(), "2".into()], vec!["-".into(), "1".into()])
    );
    assert!(cells(&outcome, "rows", "jsonText")[1].contains("Message size"));
}

#[test]
fn a_report_with_ranges_and_none_of_nccl_is_looked_at_and_has_none() {
    for name in ["nccl_msg", "nccl_sum", "nccl_gpu_proj_sum", "NCCL"] {
        let made = made();
        made.range((0, 9), 3, "step");
        let outcome = surveyed(name, &[], &[made]);
        assert!(
            outcome.tables.iter().all(|(name, result_table)| *name == "files" || result_table.height() == 0),
            "{name}"
        );
        assert!(outcome.notes.iter().any(|note| note.contains("found none")), "{name}: {:?}", outcome.notes);
    }
}
