//! Tests of dumps in both forms: written here byte by byte, as libtorch and Python write them, and damaged.

use super::*;
use serde_json::{Value, json};

/// A pickle of protocol 2, as libtorch writes it: `ranks` of JSON become tuples nowhere, which no reader minds.
fn pickle(value: &Value) -> Vec<u8> {
    let mut bytes = vec![0x80, 2];
    put(value, &mut bytes);
    bytes.push(b'.');
    bytes
}

fn put(value: &Value, out: &mut Vec<u8>) {
    match value {
        Value::Null => out.push(b'N'),
        Value::Bool(true) => out.push(0x88),
        Value::Bool(false) => out.push(0x89),
        Value::Number(number) => match number.as_i64() {
            Some(int @ 0..=255) => out.extend([b'K', int as u8]),
            Some(int) => {
                out.extend([0x8a, 8]);
                out.extend(int.to_le_bytes());
            }
            None => {
                out.push(b'G');
                out.extend(number.as_f64().expect("a float").to_be_bytes());
            }
        },
        Value::String(text) => {
            out.push(b'X');
            out.extend((text.len() as u32).to_le_bytes());
            out.extend(text.bytes());
        }
        Value::Array(items) => {
            out.extend([b']', b'(']);
            items.iter().for_each(|item| put(item, out));
            out.push(b'e');
        }
        Value::Object(map) => {
            out.extend([b'}', b'(']);
            for (key, value) in map {
                put(&Value::String(key.clone()), out);
                put(value, out);
            }
            out.push(b'u');
        }
    }
}

#[derive(Clone, Copy)]
struct Call {
    group: &'static str,
    number: u64,
    name: &'static str,
    elements: u64,
    is_done: bool,
}

fn call(group: &'static str, number: u64, name: &'static str) -> Call {
    Call { group, number, name, elements: 1024, is_done: false }
}

fn done(call: Call) -> Call {
    Call { is_done: true, ..call }
}

fn sized(call: Call, elements: u64) -> Call {
    Call { elements, ..call }
}

/// Groups as `(name, ranks)`.
fn dump(groups: &[(&str, &str)], calls: &[Call]) -> Value {
    let config: serde_json::Map<String, Value> = groups
        .iter()
        .map(|(name, ranks)| {
            ((*name).to_owned(), json!({"name": name, "desc": format!("g{name}"), "ranks": ranks}))
        })
        .collect();
    let entry = |(record, call): (usize, &Call)| {
        json!({
            "record_id": record, "pg_id": 40 + call.group.len(), "process_group": [call.group, "d"],
            "collective_seq_id": call.number, "p2p_seq_id": 0, "op_id": call.number,
            "profiling_name": format!("nccl:{}", call.name), "time_created_ns": 1_800_000_000_000_000_000_u64 + record as u64,
            "input_sizes": [[call.elements, 2]], "input_dtypes": ["Float"],
            "output_sizes": [[call.elements, 2]], "output_dtypes": ["Float"],
            "state": if call.is_done { "completed" } else { "scheduled" },
            "time_discovered_started_ns": null, "time_discovered_completed_ns": null,
            "retired": call.is_done, "timeout_ms": 600_000,
            "is_p2p": call.name.contains(' ') || (call.name == "coalesced" && call.number == 0),
        })
    };
    let entries: Vec<Value> = calls.iter().enumerate().map(entry).collect();
    json!({"version": "2.9", "nccl_version": "2.27.3", "pg_config": config, "pg_status": {}, "entries": entries})
}

const WORLD: &[(&str, &str)] = &[("0", "[0, 1, 2, 3]")];

fn read(dumps: &[(u64, Value)]) -> FlightLog {
    let mut reader = Reader::default();
    for (rank, dump) in dumps {
        reader.read(&pickle(dump), &format!("trace_{rank}")).expect("a dump");
    }
    reader.finish()
}

fn messages(log: &FlightLog) -> Vec<String> {
    log.findings.iter().map(|it| format!("{}: {}", it.code, it.message)).collect()
}

/// Four ranks of one group, each with its calls.
fn four(calls: [&[Call]; 4]) -> Vec<String> {
    let dumps: Vec<(u64, Value)> = (0..).zip(calls).map(|(rank, calls)| (rank, dump(WORLD, calls))).collect();
    messages(&read(&dumps))
}

const A1: fn() -> Call = || done(call("0", 1, "all_reduce"));

#[test]
fn ranks_that_agree_give_no_finding() {
    let all = [A1(), done(call("0", 2, "_all_gather_base"))];
    assert_eq!(four([&all, &all, &all, &all]), Vec::<String>::new());
    let open = [A1(), call("0", 2, "_all_gather_base")];
    let expected =
        "fr-inside: all 4 ranks are in all_gather #2 of group 0 (g0): it hangs within, or still ran";
    assert_eq!(four([&open, &open, &open, &open]), [expected]);
}

#[test]
fn the_rank_that_never_came_is_named_and_the_first_file_is_no_reference() {
    let waits = [A1(), call("0", 2, "all_reduce")];
    for late in 0..4 {
        let mut calls: [&[Call]; 4] = [&waits, &waits, &waits, &waits];
        let only = [A1()];
        calls[late] = &only;
        let others: Vec<String> = (0..4).filter(|rank| *rank != late).map(|rank| rank.to_string()).collect();
        let expected = format!(
            "fr-rank-missing: rank {late} did not enter all_reduce #2 of group 0 (g0); ranks {} wait",
            others.join(", ")
        );
        assert_eq!(four(calls), [expected]);
    }
}

#[test]
fn a_tie_and_a_majority_that_did_not_come_name_no_rank() {
    let (waits, only) = ([A1(), call("0", 2, "all_reduce")], [A1()]);
    let tie = "fr-undecided: ranks 2, 3 did not enter all_reduce #2 of group 0 (g0), ranks 0, 1 did; no majority, no culprit";
    assert_eq!(four([&waits, &waits, &only, &only]), [tie]);
    let alone = "fr-undecided: ranks 0, 2, 3 did not enter all_reduce #2 of group 0 (g0), rank 1 did; no majority, no culprit";
    assert_eq!(four([&only, &waits, &only, &only]), [alone]);
}

#[test]
fn another_type_size_or_order_is_named_by_the_majority() {
    let all = [A1(), call("0", 2, "all_reduce"), call("0", 3, "all_gather")];
    let typed = [A1(), call("0", 2, "broadcast"), call("0", 3, "all_gather")];
    let expected =
        "fr-type-differs: rank 0 called broadcast, others all_reduce: all_reduce #2 of group 0 (g0)";
    assert_eq!(four([&typed, &all, &all, &all]), [expected]);
    let swapped = [A1(), call("0", 2, "all_gather"), call("0", 3, "all_reduce")];
    let expected = "fr-type-differs: rank 3 called all_gather, others all_reduce, the next is swapped: all_reduce #2 of group 0 (g0)";
    assert_eq!(four([&all, &all, &all, &swapped]), [expected]);
    let size = [A1(), sized(call("0", 2, "all_reduce"), 512), call("0", 3, "all_gather")];
    let expected =
        "fr-size-differs: rank 2 called with 1024 Float, others 2048 Float: all_reduce #2 of group 0 (g0)";
    assert_eq!(four([&all, &all, &size, &all]), [expected]);
    let tie =
        "fr-undecided: all_reduce, others broadcast: broadcast #2 of group 0 (g0); no majority, no culprit";
    let found = four([&typed, &typed, &all, &all]);
    assert_eq!(found, [tie]);
    // Both are one operation of NCCL.
    let (all, base) = ([done(call("0", 1, "all_gather"))], [done(call("0", 1, "_all_gather_base"))]);
    assert_eq!(four([&all, &base, &all, &all]), Vec::<String>::new());
}

#[test]
fn all_to_all_may_differ_in_size_but_must_add_up() {
    let mut dumps: Vec<(u64, Value)> = (0..4)
        .map(|rank| (rank, dump(WORLD, &[sized(done(call("0", 1, "all_to_all")), 100 + rank)])))
        .collect();
    assert_eq!(messages(&read(&dumps)), Vec::<String>::new());
    dumps[0].1["entries"][0]["output_sizes"] = json!([[1, 2]]);
    let expected =
        "fr-size-differs: all send 812 elements and receive 614: all_to_all #1 of group 0 (g0); no culprit";
    assert_eq!(messages(&read(&dumps)), [expected]);
}

#[test]
fn a_rank_without_a_dump_is_not_missing() {
    let waits = dump(WORLD, &[A1(), call("0", 2, "all_reduce")]);
    let three: Vec<(u64, Value)> = [0, 1, 3].map(|rank| (rank, waits.clone())).to_vec();
    assert_eq!(
        messages(&read(&three)),
        [
            "fr-undecided: ranks 0, 1, 3 entered all_reduce #2 of group 0 (g0); of rank 2 nothing is known",
            "fr-no-dump: rank 2: no dump: dead before it, of another folder, or still running"
        ]
    );
}

#[test]
fn a_rank_that_waits_elsewhere_is_not_the_one_that_began_it() {
    // Rank 1 waits for rank 0 in a pair, and so never comes to the group of four.
    let groups: &[(&str, &str)] = &[("0", "[0, 1, 2, 3]"), ("pair", "[0, 1, 2]")];
    let four = || call("0", 2, "all_reduce");
    let waits = dump(WORLD, &[A1(), four()]);
    let zero = dump(groups, &[A1(), done(call("pair", 1, "all_reduce")), four()]);
    let pair = |calls: &[Call]| dump(groups, calls);
    let one = pair(&[A1(), done(call("pair", 1, "all_reduce")), call("pair", 2, "all_reduce")]);
    let two = pair(&[A1(), done(call("pair", 1, "all_reduce")), call("pair", 2, "all_reduce"), four()]);
    let found = messages(&read(&[(0, zero), (1, one), (2, two), (3, waits)]));
    assert!(
        found.iter().all(|it| !it.contains("rank 1 did not") || it.starts_with("fr-undecided")),
        "{found:?}"
    );
    let expected =
        "fr-undecided: rank 1 did not enter all_reduce #2 of group 0 (g0), and waits for others elsewhere";
    assert!(found.iter().any(|it| it == expected), "{found:?}");
}

#[test]
fn a_rank_that_hangs_with_others_in_a_smaller_group_is_not_named() {
    let groups: &[(&str, &str)] = &[("0", "[0, 1, 2, 3]"), ("tp", "[2, 3]")];
    let (first, second) = (|| call("tp", 1, "all_reduce"), || call("0", 2, "all_reduce"));
    let waits = dump(WORLD, &[A1(), second()]);
    let three = dump(groups, &[A1(), first()]);
    let read = |two: &[Call]| {
        messages(&read(&[(0, waits.clone()), (1, waits.clone()), (2, dump(groups, two)), (3, three.clone())]))
    };
    assert_eq!(
        read(&[A1(), first(), second()]),
        [
            "fr-undecided: rank 3 did not enter all_reduce #2 of group 0 (g0), and waits for others elsewhere",
            "fr-inside: all 2 ranks are in all_reduce #1 of group tp (gtp): it hangs within, or still ran",
        ]
    );
    // Where the other is through, it is rank 3 alone that hangs.
    assert_eq!(
        read(&[A1(), done(first()), second()]),
        [
            "fr-rank-missing: rank 3 did not enter all_reduce #2 of group 0 (g0); ranks 0, 1, 2 wait",
            "fr-not-completed: rank 3: still in all_reduce #1 of group tp (gtp), which rank 2 completed",
        ]
    );
}

#[test]
fn a_rank_that_waits_for_a_send_or_a_receive_is_not_named() {
    let groups: &[(&str, &str)] = &[("0", "[0, 1, 2, 3]"), ("pp", "[2, 3]")];
    let waits = dump(groups, &[A1(), call("0", 2, "all_reduce")]);
    let three = dump(groups, &[A1(), call("pp", 0, "recv 1<-0")]);
    let world = dump(WORLD, &[A1(), call("0", 2, "all_reduce")]);
    let found = messages(&read(&[(0, world.clone()), (1, world), (2, waits), (3, three)]));
    let expected =
        "fr-undecided: rank 3 did not enter all_reduce #2 of group 0 (g0), and waits for others elsewhere";
    assert_eq!(found, [expected]);
}

#[test]
fn calls_of_a_batch_that_ended_are_not_open() {
    // Sends and receives of a pipeline.
    let groups: &[(&str, &str)] = &[("0", "[0, 1, 2, 3]"), ("pp", "[2, 3]")];
    let batch = || [call("pp", 0, "recv 1<-0"), call("pp", 0, "send 1->0"), done(call("pp", 0, "coalesced"))];
    let three = dump(groups, &[&[A1()][..], &batch()].concat());
    let waits = dump(WORLD, &[A1(), call("0", 2, "all_reduce")]);
    let two = dump(groups, &[&[A1()][..], &batch(), &[call("0", 2, "all_reduce")]].concat());
    let found = messages(&read(&[(0, waits.clone()), (1, waits), (2, two), (3, three)]));
    assert_eq!(
        found,
        ["fr-rank-missing: rank 3 did not enter all_reduce #2 of group 0 (g0); ranks 0, 1, 2 wait"]
    );
    // An all_gather of uneven shares.
    let gathered = [
        A1(),
        call("0", 2, "_broadcast_oop"),
        call("0", 2, "_broadcast_oop"),
        done(call("0", 2, "ALLGATHER_coalesced")),
        done(call("0", 3, "all_reduce")),
    ];
    assert_eq!(four([&gathered, &gathered, &gathered, &gathered]), Vec::<String>::new());
    let waits = [&gathered[..], &[call("0", 4, "all_reduce")]].concat();
    let expected = "fr-rank-missing: rank 2 did not enter all_reduce #4 of group 0 (g0); ranks 0, 1, 3 wait";
    assert_eq!(four([&waits, &waits, &gathered, &waits]), [expected]);
    // One that has not ended is open as before.
    let open = [A1(), call("0", 2, "_broadcast_oop"), call("0", 2, "ALLGATHER_coalesced")];
    assert_eq!(
        four([&open, &open, &open, &open]),
        ["fr-inside: all 4 ranks are in coalesced #2 of group 0 (g0): it hangs within, or still ran"]
    );
}

#[test]
fn a_batch_whose_first_calls_the_ring_has_lost_is_not_compared() {
    let ring = |lost: u64, calls: &[Call]| {
        let mut dump = dump(WORLD, calls);
        for entry in dump["entries"].as_array_mut().expect("entries") {
            entry["record_id"] = json!(entry["record_id"].as_u64().expect("a number") + lost);
        }
        dump
    };
    let all = [
        call("0", 2, "_broadcast_oop"),
        call("0", 2, "_broadcast_oop"),
        done(call("0", 2, "ALLGATHER_coalesced")),
        done(call("0", 3, "all_reduce")),
    ];
    let found = |lost: u64| {
        let others = (1..4).map(|rank| (rank, ring(lost, &all)));
        messages(&read(&[vec![(0, ring(lost, &all[2..]))], others.collect()].concat()))
    };
    assert_eq!(found(70), Vec::<String>::new());
    assert!(found(0)[0].starts_with("fr-type-differs: rank 0 called "), "{:?}", found(0));
}

#[test]
fn groups_of_one_name_with_other_ranks_are_other_groups() {
    let (left, right) = ([("s", "[0, 1]")], [("s", "[2, 3]")]);
    let dumps = [
        (0, dump(&left, &[done(call("s", 7, "all_reduce"))])),
        (1, dump(&left, &[done(call("s", 7, "all_reduce"))])),
        (2, dump(&right, &[done(call("s", 2, "broadcast"))])),
        (3, dump(&right, &[done(call("s", 2, "broadcast"))])),
    ];
    assert_eq!(messages(&read(&dumps)), Vec::<String>::new());
}

#[test]
fn the_count_of_a_process_shows_who_never_came_where_its_ring_is_empty() {
    let waits = dump(WORLD, &[call("0", 2, "all_reduce")]);
    let status = |enqueued: i64, completed: i64| json!({"41": {"last_enqueued_collective": enqueued, "last_started_collective": -1, "last_completed_collective": completed}});
    let mut dumps: Vec<(u64, Value)> = (0..4).map(|rank| (rank, waits.clone())).collect();
    for (rank, dump) in &mut dumps {
        dump["pg_status"] = if *rank == 2 { status(1, 1) } else { status(2, 1) };
    }
    dumps[2].1["entries"] = json!([]);
    let expected = "fr-rank-missing: rank 2 did not enter all_reduce #2 of group 0 (g0); ranks 0, 1, 3 wait";
    assert_eq!(messages(&read(&dumps)), [expected]);
    // A count that is less than what the group completed is of something else.
    dumps[2].1["pg_status"] = status(0, 0);
    let expected =
        "fr-undecided: ranks 0, 1, 3 entered all_reduce #2 of group 0 (g0); of rank 2 nothing is known";
    assert_eq!(messages(&read(&dumps)), [expected]);
    // And so is one that does not fit the ring of another rank.
    dumps[2].1["pg_status"] = status(1, 1);
    dumps[0].1["pg_status"] = status(9, 8);
    assert_eq!(messages(&read(&dumps)), [expected]);
}

#[test]
fn collectives_that_others_completed_are_shown_without_a_culprit() {
    let (late, all) =
        ([call("0", 1, "all_reduce"), call("0", 2, "all_reduce")], [A1(), call("0", 2, "all_reduce")]);
    let expected =
        "fr-not-completed: rank 1: still in all_reduce #1 of group 0 (g0), which ranks 0, 2, 3 completed";
    assert_eq!(four([&all, &late, &all, &all]), [expected]);
    // The root of a broadcast is done before the others.
    let (late, all) = ([call("0", 1, "broadcast")], [done(call("0", 1, "broadcast"))]);
    assert_eq!(four([&all, &late, &all, &late]), Vec::<String>::new());
}

#[test]
fn a_dump_that_an_earlier_run_left_names_no_rank() {
    const SECOND: u64 = 1_000_000_000;
    let waits = dump(WORLD, &[done(A1()), done(call("0", 2, "all_reduce")), call("0", 3, "all_reduce")]);
    let since = |created: u64, completed: u64| {
        let mut old = dump(WORLD, &[done(A1()), done(call("0", 2, "all_reduce"))]);
        let entry = &mut old["entries"][1];
        let created_ns = entry["time_created_ns"].as_u64().expect("a time");
        entry["time_created_ns"] = json!(created_ns - created * SECOND);
        entry["time_discovered_completed_ns"] = json!(created_ns - completed * SECOND);
        messages(&read(&[(0, waits.clone()), (1, waits.clone()), (2, waits.clone()), (3, old)]))
    };
    let missing = |found: &[String]| found.iter().any(|it| it.starts_with("fr-rank-missing: rank 3"));
    // Clocks differ by some seconds, and one that waits is not done.
    assert!(missing(&since(5, 3)));
    assert!(missing(&since(1800, 0)));
    let found = since(1800, 1799);
    assert_eq!(
        found[0],
        "fr-mixed-jobs: rank 3 completed all_reduce #2 of group 0 1799 s before rank 2 entered it: another job, or a \
         clock is off"
    );
    assert!(!missing(&found), "{found:?}");
}

/// Their numbers follow one another, so that the older dump seems to have missed the next collective.
#[test]
fn a_dump_that_is_older_than_a_time_out_names_no_rank() {
    const MINUTE: u64 = 60_000_000_000;
    let waits = dump(WORLD, &[call("0", 3, "all_reduce")]);
    let after = |minutes: u64| {
        let mut old = dump(WORLD, &[done(call("0", 2, "all_reduce"))]);
        let entry = &mut old["entries"][0];
        let created_ns = entry["time_created_ns"].as_u64().expect("a time");
        entry["time_created_ns"] = json!(created_ns - minutes * MINUTE);
        messages(&read(&[(0, waits.clone()), (1, waits.clone()), (2, waits.clone()), (3, old)]))
    };
    let expected = "fr-rank-missing: rank 3 did not enter all_reduce #3 of group 0 (g0); ranks 0, 1, 2 wait";
    assert_eq!(after(9), [expected], "its time-out is 10 minutes, and clocks differ");
    assert_eq!(
        after(12),
        [
            "fr-mixed-jobs: the newest entry of rank 3 is 12 min older than all of rank 0, longer than a time-out: \
          another job, or a clock is off"
        ]
    );
}

#[test]
fn dumps_with_other_ranks_in_one_group_are_not_compared() {
    let world = WORLD[0];
    let waits = dump(&[world, ("5", "[0, 1, 2, 3]")], &[A1(), call("0", 2, "all_reduce")]);
    let odd = dump(&[world, ("5", "[2, 3]")], &[A1()]);
    let found = messages(&read(&[(0, waits.clone()), (1, waits.clone()), (2, waits), (3, odd)]));
    assert_eq!(found[0], "fr-mixed-jobs: ranks 0 and 3 list other ranks for group 5: of different jobs");
    assert!(!found.iter().any(|it| it.starts_with("fr-rank-missing")), "{found:?}");
}

#[test]
fn a_dump_of_an_earlier_run_names_no_rank_where_no_number_is_shared() {
    let waits = dump(WORLD, &[A1(), call("0", 2, "all_reduce")]);
    let read = |calls: &[Call]| {
        let mut old = dump(WORLD, calls);
        for entry in old["entries"].as_array_mut().expect("entries") {
            let created_ns = entry["time_created_ns"].as_u64().expect("a time") - 300_000_000_000;
            entry["time_created_ns"] = json!(created_ns);
            entry["time_discovered_completed_ns"] = json!(created_ns);
        }
        messages(&read(&[(0, waits.clone()), (1, waits.clone()), (2, waits.clone()), (3, old)]))
    };
    let found = read(&[done(call("0", 9, "all_reduce"))]);
    assert_eq!(
        found[0],
        "fr-mixed-jobs: rank 3 completed all_reduce #9 of group 0 300 s before rank 2 entered #2: another job, or a \
         clock is off"
    );
    // Numbers that go back are of a second communicator of one job.
    let found = read(&[done(call("0", 9, "all_reduce")), done(call("0", 8, "all_reduce"))]);
    assert!(!found.iter().any(|it| it.starts_with("fr-mixed-jobs")), "{found:?}");
}

#[test]
fn dumps_of_several_jobs_are_named_and_not_compared() {
    let waits = dump(WORLD, &[A1(), call("0", 2, "all_reduce")]);
    let other = |change: fn(&mut Value)| {
        let mut odd = dump(WORLD, &[A1()]);
        change(&mut odd);
        let dumps = [(0, waits.clone()), (1, waits.clone()), (2, waits.clone()), (3, odd)];
        messages(&read(&dumps))
    };
    type Change = fn(&mut Value);
    let table: [(Change, &str); 5] = [
        (
            |it| it["version"] = json!("2.10"),
            "fr-mixed-jobs: dumps of versions 2.10 (1), 2.9 (3): of different jobs",
        ),
        (
            |it| it["nccl_version"] = json!("2.21.5"),
            "fr-mixed-jobs: dumps with NCCL 2.21.5 (1), 2.27.3 (3): of different jobs",
        ),
        (
            |it| it["pg_config"]["0"]["ranks"] = json!("[0, 1, 2, 3, 4, 5, 6, 7]"),
            "fr-mixed-jobs: default groups of 4 ranks (3), 8 ranks (1): of different jobs",
        ),
        (
            |it| it["pg_config"]["0"]["ranks"] = json!("[4, 5, 6, 7]"),
            "fr-mixed-jobs: rank 3 is in the name of a file and not in its groups: 1 dump so, of another job",
        ),
        (
            |it| it["entries"][0]["time_created_ns"] = json!(1_790_000_000_000_000_000_u64),
            "fr-mixed-jobs: the newest entry of rank 3 is 2777 h older than that of rank 2: another job",
        ),
    ];
    for (change, expected) in table {
        let found = other(change);
        assert_eq!(found[0], expected);
        assert!(!found.iter().any(|it| it.starts_with("fr-rank-missing")), "{found:?}");
    }
    let mut reader = Reader::default();
    for folder in ["a", "b"] {
        reader.read(&pickle(&waits), &format!("{folder}/trace_0")).expect("a dump");
    }
    let found = messages(&reader.finish());
    assert_eq!(
        found[0],
        "fr-mixed-jobs: two dumps of rank 0, the second `b/trace_0`: of two jobs or folders"
    );
}

#[test]
fn json_is_read_as_pickle_is() {
    let mut reader = Reader::default();
    let waits = dump(WORLD, &[A1(), call("0", 2, "all_reduce")]);
    for rank in 0..3 {
        let mut text = waits.clone();
        text["entries"][1]["time_discovered_completed_ns"] = json!(0);
        reader.read(text.to_string().as_bytes(), &format!("t_{rank}.json")).expect("a dump");
    }
    // Without entries JSON has none of them, and its counts are texts.
    let mut late = dump(WORLD, &[]);
    late.as_object_mut().expect("a dict").remove("entries");
    late["pg_status"] = json!({"41": {"last_enqueued_collective": "1", "last_completed_collective": "1"}});
    reader.read(late.to_string().as_bytes(), "t_3.json").expect("a dump");
    let expected = "fr-rank-missing: rank 3 did not enter all_reduce #2 of group 0 (g0); ranks 0, 1, 2 wait";
    assert_eq!(messages(&reader.finish()), [expected]);
}

#[test]
fn gloo_is_done_where_its_entry_is_retired() {
    let mut calls = dump(WORLD, &[call("0", 1, "all_reduce")]);
    calls["entries"][0]["profiling_name"] = json!("gloo:all_reduce");
    let mut done = calls.clone();
    done["entries"][0]["retired"] = json!(true);
    let dumps = [(0, done.clone()), (1, calls), (2, done.clone()), (3, done)];
    let expected =
        "fr-not-completed: rank 1: still in all_reduce #1 of group 0 (g0), which ranks 0, 2, 3 completed";
    assert_eq!(messages(&read(&dumps)), [expected]);
}

#[test]
fn numbers_that_restart_are_of_a_second_communicator() {
    let all = [done(call("0", 900, "all_reduce")), A1(), call("0", 2, "all_reduce")];
    let late = [done(call("0", 900, "all_reduce")), A1()];
    let expected = "fr-rank-missing: rank 2 did not enter all_reduce #2 of group 0 (g0); ranks 0, 1, 3 wait";
    assert_eq!(four([&all, &all, &late, &all]), [expected]);
}

#[test]
fn a_pickle_that_names_code_is_refused_and_nothing_runs() {
    let refuse = |bytes: &[u8]| Reader::default().read(bytes, "x_0").expect_err("refused").reason;
    assert_eq!(
        refuse(b"\x80\x02cos\nsystem\n(X\x04\0\0\0trueR."),
        "refused: GLOBAL `os.system` would run code at byte 2"
    );
    for (code, name) in [
        (0x93, "STACK_GLOBAL"),
        (b'R', "REDUCE"),
        (b'b', "BUILD"),
        (b'i', "INST"),
        (b'o', "OBJ"),
        (0x81, "NEWOBJ"),
        (0x92, "NEWOBJ_EX"),
        (0x82, "EXT1"),
        (0x83, "EXT2"),
        (0x84, "EXT4"),
        (b'P', "PERSID"),
        (b'Q', "BINPERSID"),
        (0x97, "NEXT_BUFFER"),
        (0x98, "READONLY_BUFFER"),
    ] {
        assert_eq!(refuse(&[0x80, 4, b'N', code, b'.']), format!("refused: {name} would run code at byte 3"));
    }
    assert_eq!(refuse(b"\x80\x02\x8f."), "opcode 0x8f, which no dump has at byte 2");
}

#[test]
fn broken_and_hostile_files_are_refused_with_the_reason() {
    let refuse = |bytes: &[u8]| Reader::default().read(bytes, "x_0").expect_err("refused").reason;
    let whole = pickle(&dump(WORLD, &[A1()]));
    for end in 3..whole.len() {
        assert!(refuse(&whole[..end]).starts_with("truncated: the pickle ends early"), "{end}");
    }
    assert_eq!(refuse(&[whole.as_slice(), b"x"].concat()), "1 bytes behind the end of the pickle");
    assert_eq!(refuse(b""), "the file is empty: the process was killed before it wrote");
    assert_eq!(refuse(b"prose"), "neither a pickle nor JSON, as PyTorch's flight recorder writes them");
    assert_eq!(refuse(b"{\"version\": "), "truncated JSON");
    assert_eq!(refuse(b"{]"), "broken JSON at line 1, column 2");
    assert_eq!(refuse(b"[]"), "a bare list: a dump of before version 2.0, which is not read");
    assert_eq!(refuse(b"{}"), "no dump of PyTorch's flight recorder: `version` or `pg_config` is absent");
    assert_eq!(refuse(br#"{"version": "3.0", "pg_config": {}}"#), "dump of version 3.0, known: 2.x");
    let older = "dump of version 1.4, known: 2.x, which PyTorch 2.4 and later write";
    for config in ["", ", \"pg_config\": {}"] {
        assert_eq!(refuse(format!("{{\"version\": \"1.4\", \"entries\": []{config}}}").as_bytes()), older);
    }
    assert_eq!(
        refuse(br#"{"version": "2.9", "pg_config": {"0": {"name": "0", "ranks": "__import__('os')"}}}"#),
        "`ranks` of a group is no list of numbers"
    );
    let ranks = format!("[{}]", vec!["7"; 500_000].join(","));
    let groups: Vec<String> = (0..9).map(|at| format!("\"{at}\": {{\"ranks\": \"{ranks}\"}}")).collect();
    let large = format!("{{\"version\": \"2.9\", \"pg_config\": {{{}}}}}", groups.join(","));
    assert_eq!(refuse(large.as_bytes()), "groups of more than 4194304 ranks in all");
    // A text of four gigabytes in a file of seven bytes.
    assert_eq!(refuse(b"\x80\x02X\xff\xff\xff\xff"), "truncated: the pickle ends early at byte 2");
    assert_eq!(refuse(&[&[0x80, 2][..], &[b'('; 300], b"."].concat()), "nested deeper than 256 at byte 258");
    for broken in [
        &b"\x80\x02a."[..],
        b"\x80\x02u.",
        b"\x80\x02h\x05.",
        b"\x80\x02N(KuR",
        b"\x80\x02.",
        b"\x80\x02NNa.",
        b"\x80\x02}(Nu.",
        b"\x80\x02(N1e.",
    ] {
        assert!(!refuse(broken).is_empty());
    }
    // A list that contains itself, and one value in so many places that looking at all of them would take for ever.
    assert!(refuse(b"\x80\x02]q\0h\0a.").starts_with("a bare list"));
    let name_without_rank = Reader::default().read(&whole, "trace").expect_err("no rank").reason;
    assert_eq!(name_without_rank, "no rank at the end of the file's name, such as `nccl_trace_rank_7`");
}

#[test]
fn values_in_many_places_cost_bounded_time() {
    // One entry with a long list of sizes, and an `entries` that names it very often.
    let mut bytes = vec![0x80, 2];
    let text = |text: &str, out: &mut Vec<u8>| put(&Value::String(text.to_owned()), out);
    bytes.extend([b'}', b'(']);
    text("version", &mut bytes);
    text("2.9", &mut bytes);
    text("pg_config", &mut bytes);
    bytes.push(b'}');
    text("entries", &mut bytes);
    let mut entry = dump(WORLD, &[A1()])["entries"][0].clone();
    entry["input_sizes"] = Value::Array(vec![json!([1]); 20_000]);
    bytes.extend([b']', b'(']);
    put(&entry, &mut bytes);
    bytes.extend([b'q', 0]);
    (0..20_000).for_each(|_| bytes.extend([b'h', 0]));
    bytes.extend(b"eu.");
    let why = Reader::default().read(&bytes, "x_0").expect_err("refused").reason;
    assert_eq!(why, "values that stand in more places than any dump has");
}

#[test]
fn entries_that_belong_nowhere_are_counted() {
    let mut odd = dump(WORLD, &[A1(), done(call("elsewhere", 1, "all_reduce")), A1()]);
    odd["entries"][2]["collective_seq_id"] = Value::Null;
    let all = dump(WORLD, &[A1()]);
    assert_eq!(
        messages(&read(&[(0, odd), (1, all.clone()), (2, all.clone()), (3, all)])),
        [
            "fr-garbled: entries without a group or a number, left out: 1",
            "fr-garbled: entries of groups whose ranks the dump does not list, left out: 1",
        ]
    );
}

/// PyTorch 2.15 with gloo: `pg_config` has the ranks under an empty name, and the entries name the group.
#[test]
fn the_only_group_may_have_no_name() {
    let unnamed: &[(&str, &str)] = &[("", "[0, 1, 2, 3]")];
    let waits = dump(unnamed, &[A1(), call("0", 2, "all_reduce")]);
    let late = dump(unnamed, &[A1()]);
    let all = [(0, waits.clone()), (1, waits.clone()), (2, late), (3, waits.clone())];
    let found = messages(&read(&all));
    assert!(found.iter().any(|it| it.contains("rank 2 ")), "{found:?}");
    // Of two groups that share the name, either may be the one that is listed.
    let two = dump(unnamed, &[A1(), call("1", 1, "all_reduce")]);
    let found = messages(&read(&[(0, two.clone()), (1, two.clone()), (2, two.clone()), (3, two)]));
    assert_eq!(found, ["fr-garbled: entries of groups whose ranks the dump does not list, left out: 8"]);
}

#[test]
fn an_unreadable_dump_does_not_hide_the_others() {
    let waits = pickle(&dump(WORLD, &[A1(), call("0", 2, "all_reduce")]));
    let mut reader = Reader::default();
    for rank in 0..3 {
        reader.read(&waits, &format!("trace_{rank}")).expect("a dump");
    }
    reader.read(&waits[..87], "trace_3").expect_err("cut");
    let found = messages(&reader.finish());
    assert_eq!(
        found[0],
        "fr-undecided: ranks 0, 1, 2 entered all_reduce #2 of group 0 (g0); of rank 3 nothing is known"
    );
    assert!(found[1].starts_with("fr-unreadable: rank 3: dump cannot be read: truncated"), "{found:?}");
    assert_eq!(found.len(), 2);
}

#[test]
fn the_rank_stands_at_the_end_of_the_name() {
    let table = [
        ("nccl_trace_rank_7", Some(7)),
        ("/tmp/comm_lib_trace_rank_0", Some(0)),
        ("nccl_trace_rank_container-node02_5", Some(5)),
        ("x/_dump_12.json.gz", Some(12)),
        ("dump7/trace", None),
        ("trace_99999999999999999999999", None),
    ];
    for (file, rank) in table {
        assert_eq!(rank_of_name(file), rank, "{file}");
    }
}
