//! Excerpts of small reports: which window, on which clock, what is kept and counted, and the format of the file.

use super::*;
use crate::testing::{Made, nccl as testing};
use nsys::tables;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

const MS: i64 = 1_000_000;
const STEP: i64 = 20 * MS;
const STEPS: i64 = 20;

/// A rank of a job of two ranks a host that reduces once in each step. The clock of each host is off.
struct SmallRank {
    rank: i64,
    /// In each step behind the others.
    late: i64,
    /// Of all ranks.
    latest: i64,
    is_connected: bool,
    name: &'static str,
}

impl SmallRank {
    fn new(rank: i64) -> SmallRank {
        SmallRank { rank, late: 0, latest: 0, is_connected: true, name: "gemm" }
    }

    fn made(&self) -> Made {
        let made = Made::begin();
        made.string(1, "cudaLaunchKernel").string(2, "ncclDevKernel_AllReduce_Sum_f32_RING_LL");
        made.string(3, "ncclDevKernel_AllReduce_Sum_f32_RING_LL").string(4, self.name).string(5, self.name);
        let host = self.rank / 2;
        // Each report has a zero of its own, and each host a clock of its own.
        let zero = 3 * MS * self.rank;
        let at = |time: i64| time + host * 40 * MS - zero;
        made.put(&tables::SESSION_START, &[("utcEpochNs", (1_760_000_000_000_000_000 + zero).into())]);
        let name = [("name", "Hostname".to_owned().into()), ("value", format!("n{host}").into())];
        made.put(&tables::SYSTEM_ENV, &name);
        testing::domain(&made);
        let communicator = if self.is_connected { 7 } else { 8 + host as u64 };
        let ranks = if self.is_connected { 4 } else { 2 };
        testing::communicator(&made, at(0), communicator, ranks, self.rank as u32);
        for step in 0..STEPS {
            let begin = 10 * MS + step * (STEP + self.latest);
            made.range((at(begin), at(begin + STEP)), 5, &format!("step {step}"));
            made.call((at(begin), at(begin) + 5), 3, 2 * step + 1, 1);
            made.kernel((at(begin), at(begin + 9 * MS + self.late)), 2 * step + 1, 4);
            let (start, end) = (at(begin + 10 * MS + self.late), at(begin + 14 * MS + self.latest));
            let payload = (communicator, 1024);
            testing::call(&made, start - 50, "ncclAllReduce", payload, (start, end), 2 * step + 2);
        }
        made
    }
}

fn inputs(made: &[Made]) -> Vec<ExcerptInput> {
    let all = made.iter().enumerate().map(|(at, made)| ExcerptInput {
        path: made.path(),
        shown: format!("r{at}"),
        rank: at as i64,
        node: None,
    });
    all.collect()
}

fn cut(made: &[Made], window: &str, most_slices: usize) -> Excerpt {
    let window = if window.is_empty() { WindowRequest::Auto } else { window.parse().expect("a window") };
    let request = ExcerptRequest { inputs: &inputs(made), window: &window, most_slices, first: &[] };
    excerpt(&request).unwrap_or_else(|why| panic!("{why}"))
}

fn four(late: [i64; 4]) -> Vec<Made> {
    let latest = late.iter().copied().max().unwrap_or(0);
    let ranks = late.iter().enumerate();
    ranks
        .map(|(rank, late)| SmallRank { late: *late, latest, ..SmallRank::new(rank as i64) }.made())
        .collect()
}

#[test]
fn a_span_of_time_in_which_no_report_has_work_says_where_there_is_some() {
    let made = four([0; 4]);
    let window = "900000s,900001s".parse().expect("a window");
    let request = ExcerptRequest { inputs: &inputs(&made), window: &window, most_slices: 100, first: &[] };
    let why = excerpt(&request).expect_err("nothing then");
    assert!(why.contains("no report has work then; collectives of r0 run from "), "{why}");
}

/// The file, checked against the format: what each kind of event must have, and that slices of a row nest or follow.
fn checked(excerpt: &Excerpt) -> Vec<Value> {
    let mut bytes = Vec::new();
    let count = write(excerpt, &mut bytes).expect("written");
    let file: Value = serde_json::from_slice(&bytes).expect("JSON");
    let events = file["traceEvents"].as_array().expect("an array").clone();
    assert_eq!(events.len() as u64, count);
    let mut named: BTreeSet<(u64, u64)> = BTreeSet::new();
    let mut open: BTreeMap<(u64, u64), Vec<f64>> = BTreeMap::new();
    for event in &events {
        let number = |key: &str| event[key].as_f64().unwrap_or_else(|| panic!("no {key} in {event}"));
        let row = (number("pid") as u64, number("tid") as u64);
        assert!(event["name"].is_string() && number("ts").is_finite(), "{event}");
        match event["ph"].as_str().expect("a phase") {
            "M" => {
                let args = event["args"].as_object().expect("arguments");
                assert_eq!(args.len(), 1, "{event}");
                named.insert(row);
            }
            "X" => {
                assert!(event["cat"].is_string() && named.contains(&row), "{event}");
                let (start, end) = (number("ts"), number("ts") + number("dur"));
                assert!(end >= start);
                let open = open.entry(row).or_default();
                open.retain(|open| *open > start + 1e-6);
                assert!(open.iter().all(|open| *open >= end - 1e-6), "crosses another: {event}");
                open.push(end);
            }
            "C" => assert!(event["args"]["value"].is_number(), "{event}"),
            other => panic!("phase {other}"),
        }
    }
    // It is read back as it was written.
    let read = read(&bytes).expect("read");
    assert_eq!(
        (read.window.as_str(), read.ns, read.kept),
        (excerpt.window.as_str(), excerpt.ns, excerpt.kept)
    );
    let slices: usize =
        read.processes.iter().flat_map(|process| &process.tracks).map(|track| track.slices.len()).sum();
    assert_eq!(slices, events.iter().filter(|event| event["ph"] == "X").count());
    events
}

/// Begins, in microseconds, of the slices of a category by process.
fn begins(events: &[Value], category: &str) -> Vec<(u64, f64)> {
    let slices = events.iter().filter(|event| event["cat"] == category);
    slices.map(|event| (event["pid"].as_u64().unwrap(), event["ts"].as_f64().unwrap())).collect()
}

#[test]
fn the_collective_for_which_a_straggler_is_waited_for_is_shown_with_the_straggler_first() {
    let made = four([0, 0, 5 * MS, 0]);
    let excerpt = cut(&made, "", 1_000);
    assert!(
        excerpt.look.starts_with("rank 2 on n1 gpu0: the others wait up to 5.0 ms in AllReduce"),
        "{}",
        excerpt.look
    );
    assert!(excerpt.is_aligned && excerpt.clocks.starts_with("2 clocks aligned"), "{}", excerpt.clocks);
    let events = checked(&excerpt);
    let names = events.iter().filter(|event| event["name"] == "process_name");
    let names: Vec<&str> = names.filter_map(|event| event["args"]["name"].as_str()).collect();
    assert_eq!(names[0], "rank 2 · n1");
    // On one clock: the straggler comes 5 ms after all others, whatever their clocks say.
    let last: BTreeMap<u64, f64> = begins(&events, "communication").into_iter().collect();
    assert_eq!(last.len(), 4);
    for pid in 2..=4 {
        assert!((last[&1] - last[&pid] - 5_000.0).abs() < 1.0, "{last:?}");
    }
}

#[test]
fn a_range_is_the_same_step_on_every_rank() {
    let made = four([0; 4]);
    let excerpt = cut(&made, "step 7", 1_000);
    assert_eq!(excerpt.window, "range `step 7`, number 0 of 1");
    // A step and a fiftieth on either side.
    assert!(excerpt.ns.abs_diff(20_800_000) < 1_000, "{}", excerpt.ns);
    let events = checked(&excerpt);
    let whole = begins(&events, "compute").into_iter().filter(|(_, begin)| (begin - 400.0).abs() < 1.0);
    assert_eq!(whole.count(), 4, "{events:?}");
    let calls = events.iter().filter(|event| event["cat"] == "nccl");
    assert_eq!(calls.map(|call| call["args"]["bytes"].clone()).collect::<Vec<_>>(), [1024; 4]);
}

#[test]
fn a_span_of_time_is_of_the_first_report_and_collectives_have_names() {
    let made = four([0; 4]);
    let excerpt = cut(&made, "10ms,30ms", 1_000);
    assert_eq!((excerpt.ns, excerpt.window.as_str()), (20_000_000, "10.000 ms to 30.000 ms"));
    assert_eq!(begins(&checked(&excerpt), "compute").len(), 4, "one step");
    assert!(cut(&made, "AllReduce/3", 1_000).window.starts_with("AllReduce number 3"));
    let refused = |window: &str| {
        let window = window.parse().expect("a window");
        let request = ExcerptRequest { inputs: &inputs(&made), window: &window, most_slices: 9, first: &[] };
        super::excerpt(&request).expect_err("no such window")
    };
    assert!(
        refused("stop 7")
            .contains("no range or collective `stop 7` in these reports; ranges of the first report: `")
    );
    assert!("5,4".parse::<WindowRequest>().is_ok_and(|one| matches!(one, WindowRequest::Named(_))));
}

#[test]
fn clocks_that_no_collective_connects_are_not_aligned_and_it_is_said() {
    let ranks = (0..4).map(|rank| SmallRank { is_connected: false, ..SmallRank::new(rank) }.made());
    let made: Vec<Made> = ranks.collect();
    let excerpt = cut(&made, "step 7", 1_000);
    assert!(
        !excerpt.is_aligned && excerpt.clocks == "not aligned: no collective connects n0 | n1",
        "{}",
        excerpt.clocks
    );
    // Each at the time of its own report: the zero of rank 3 is 9 ms later, and its clock 40 ms ahead.
    let events = checked(&excerpt);
    let begins: BTreeMap<u64, f64> = begins(&events, "nvtx").into_iter().collect();
    assert!((begins[&4] - begins[&1] - 31_000.0).abs() < 1.0, "{begins:?}");
}

#[test]
fn the_longest_are_kept_and_all_others_are_counted() {
    let made = Made::begin();
    made.string(4, "short").string(5, "short").string(6, "long").string(7, "long");
    for number in 0..5_000 {
        let is_long = number % 100 == 0;
        let end = number * 1_000 + if is_long { 900 } else { 200 };
        made.kernel((number * 1_000, end), number + 1, if is_long { 6 } else { 4 });
    }
    let excerpt = cut(&[made], "0,5ms", 150);
    assert_eq!((excerpt.kept, excerpt.merged), (50, 4_950));
    let events = checked(&excerpt);
    let slices = events.iter().filter(|event| event["cat"] == "compute");
    assert!(slices.clone().all(|event| event["name"] == "long") && slices.count() == 50);
    let merged: Vec<&Value> = events.iter().filter(|event| event["cat"] == "merged").collect();
    let sum = |key: &str| merged.iter().filter_map(|event| event["args"][key].as_u64()).sum::<u64>();
    assert_eq!((merged.len(), sum("count"), sum("total_ns")), (50, 4_950, 4_950 * 200));
}

#[test]
fn a_slow_nic_is_named_where_no_rank_is_late_and_nics_are_tracks() {
    let made = four([0; 4]);
    for (host, made) in made.iter().step_by(2).enumerate() {
        let counter = [("metricsListId", 1.into()), ("metricsIdx", 0.into())];
        let named = [("name", "Bytes sent".to_owned().into()), ("unit", "bytes/ms".to_owned().into())];
        made.put(&tables::TARGET_INFO_NETWORK_METRICS, &[counter.clone(), named].concat());
        for nic in 0..4 {
            let name =
                [("GUID", nic.into()), ("nicId", nic.into()), ("name", format!("rdmap{nic}s0").into())];
            made.put(&tables::TARGET_INFO_NIC_INFO, &name);
            made.put(&tables::NIC_ID_MAP, &[("nicId", nic.into()), ("globalId", (10 + nic).into())]);
            let rate: i64 = if (host, nic) == (1, 2) { 4_000_000 } else { 12_000_000 };
            // The first is of another time.
            for (at, rate) in std::iter::once((0, 1)).chain((20..60).map(|at| (at, rate))) {
                let times = [("start", (5 * at * MS).into()), ("end", (5 * (at + 1) * MS).into())];
                let value = [("globalId", (10 + nic).into()), ("value", rate.into())];
                made.put(&tables::NET_NIC_METRIC, &[&times[..], &value, &counter].concat());
            }
        }
    }
    let excerpt = cut(&made, "step 7", 1_000);
    assert_eq!(excerpt.look, "n1 rdmap2s0: Bytes sent 4.0 GB/s, the others 12.0 GB/s");
    let events = checked(&excerpt);
    let tracks: BTreeSet<(u64, &str)> = events
        .iter()
        .filter(|event| event["ph"] == "C")
        .map(|event| (event["pid"].as_u64().unwrap(), event["name"].as_str().unwrap()))
        .collect();
    assert_eq!(tracks.len(), 8, "each NIC of each node once: {tracks:?}");
    assert!(tracks.contains(&(6, "rdmap2s0 Bytes sent (bytes/ms)")), "{tracks:?}");
    // Samples that are longer than the window say nothing about it.
    let short = cut(&made, "AllReduce/7", 1_000);
    assert!(short.look.contains("Bytes sent"), "{}", short.look);
    let shorter = cut(&made, "150ms,153ms", 1_000);
    assert!(!shorter.look.contains("Bytes sent"), "{}", shorter.look);
    let events = checked(&shorter);
    assert!(events.iter().any(|event| event["name"] == "rdmap2s0 Bytes sent (bytes/ms, mean of 5 ms)"));
}

#[test]
fn hostile_names_stay_text_and_are_short() {
    const HOSTILE: &str = "\"}],\u{1b}[31m\u{202e}</script>\0\n\\";
    let long = Box::leak(format!("{HOSTILE}{}", "x".repeat(100_000)).into_boxed_str());
    let made = [SmallRank { name: long, ..SmallRank::new(0) }.made(), SmallRank::new(1).made()];
    let events = checked(&cut(&made, "step 7", 100));
    let names: Vec<&str> = events.iter().filter_map(|event| event["name"].as_str()).collect();
    let hostile = names.iter().find(|name| name.contains("</script>")).expect("it is there");
    assert!(
        hostile.chars().count() < 200 && !hostile.contains(['\u{1b}', '\u{202e}', '\0', '\n']),
        "{hostile:?}"
    );
}

#[test]
fn reports_that_cannot_be_read_are_named_and_damaged_files_refused() {
    let made = four([0; 4]);
    let mut inputs = inputs(&made);
    inputs[1].path = "/nowhere".into();
    let request =
        ExcerptRequest { inputs: &inputs, window: &WindowRequest::Auto, most_slices: 100, first: &[] };
    let made = super::excerpt(&request).expect("the others");
    assert_eq!(made.unreadable.len(), 1, "{:?}", made.unreadable);
    assert_eq!(made.unreadable[0].0, "r1");
    let none = ExcerptRequest { inputs: &inputs[1..2], ..request };
    assert!(super::excerpt(&none).expect_err("nothing to read").starts_with("r1: "));
    for bytes in [&b""[..], b"{}", b"[1", b"{\"otherData\":{},\"traceEvents\":[{\"ph\":\"Xx\"}]}"] {
        assert!(read(bytes).is_err());
    }
}
