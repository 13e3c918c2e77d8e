//! Dumps of two nodes with four ranks each, and whom they name.

use super::*;
use crate::recipe::{InputFile, TrainingFacts, Workload};
use serde_json::{Value, json};

const RANKS: u64 = 8;

/// The collectives that a rank entered in the world, and how many of them completed.
#[derive(Clone, Copy)]
struct Calls<'a> {
    entered: &'a [&'a str],
    completed: usize,
}

fn dump(calls: Calls<'_>) -> Vec<u8> {
    let entry = |(at, name): (usize, &&str)| {
        let is_done = at < calls.completed;
        let (operation, elements) = name.split_once(' ').unwrap_or((name, "64"));
        let size: Value = elements.parse::<u64>().map_or(Value::Null, |elements| json!([[elements]]));
        json!({
            "record_id": at, "pg_id": 0, "process_group": ["0", "world"], "collective_seq_id": at + 1, "op_id": at + 1,
            "profiling_name": format!("nccl:{operation}"), "is_p2p": false, "retired": is_done,
            "state": if is_done { "completed" } else { "scheduled" },
            "input_sizes": size, "input_dtypes": ["Float"], "output_sizes": size, "output_dtypes": ["Float"],
        })
    };
    let entries: Vec<Value> = calls.entered.iter().enumerate().map(entry).collect();
    let ranks: Vec<u64> = (0..RANKS).collect();
    let groups = json!({"0": {"name": "0", "desc": "world", "ranks": format!("{ranks:?}")}});
    json!({"version": "2.10", "pg_config": groups, "entries": entries}).to_string().into_bytes()
}

/// What the recipe makes of a dump for each rank, and of what the nodes report of the request.
fn seen(dumps: &[Option<Vec<u8>>], requests: &[(&str, &str)]) -> (Option<Hang>, Vec<Finding>) {
    let folder = tempfile::tempdir().expect("a folder");
    let file = |role, name: String, bytes: &[u8], node: Option<&str>| {
        let path = folder.path().join(&name);
        std::fs::write(&path, bytes).expect("written");
        let node = node.map(str::to_owned);
        InputFile { role, path, shown: format!("raw/j/{name}"), node, part: None, rank: None }
    };
    let mut files = Vec::new();
    for (rank, bytes) in dumps.iter().enumerate() {
        files.extend(
            bytes.as_ref().map(|bytes| file(FileRole::FlightDump, format!("fr_trace.{rank}"), bytes, None)),
        );
    }
    for (node, text) in requests {
        let name = format!("fr_request.{node}.txt");
        files.push(file(FileRole::FlightRequest, name, text.as_bytes(), Some(node)));
    }
    let workload = Workload::Training { facts: TrainingFacts::default(), ranks: RANKS as u32 };
    let blank = crate::recipe::testing::job(workload, &[], |_| "n1".into(), 0);
    let job = JobInput { files, nodes: vec!["n1".into(), "n2".into()], exit_code: None, ..blank };
    let mut output = Output::default();
    let hang = read(&job, Some(RANKS as u32), &mut output);
    (hang, output.findings)
}

fn by_rank(calls: impl Fn(u64) -> Calls<'static>) -> Vec<Option<Vec<u8>>> {
    (0..RANKS).map(|rank| Some(dump(calls(rank)))).collect()
}

const WAITS: Calls<'_> = Calls { entered: &["all_gather", "all_gather"], completed: 1 };
const LATE: Calls<'_> = Calls { entered: &["all_gather"], completed: 1 };
const BOTH: [(&str, &str); 2] = [
    ("n1", "node n1\nrank 0 9\nrank 1 9\nrank 2 9\nrank 3 9\n"),
    ("n2", "node n2\nrank 4 9\nrank 5 9\nrank 6 9\nrank 7 9\n"),
];

/// The cause, the node and the evidence.
fn result((hang, _): (Option<Hang>, Vec<Finding>)) -> (String, Option<String>, String) {
    let Failure { cause, node, evidence } = hang.expect("dumps").failure;
    (cause, node, evidence)
}

fn expect(cause: &str, node: Option<&str>, evidence: &str) -> (String, Option<String>, String) {
    (cause.to_owned(), node.map(str::to_owned), evidence.to_owned())
}

#[test]
fn a_rank_that_all_others_wait_for_is_named_with_its_node_and_gpu() {
    let dumps = by_rank(|rank| if rank == 6 { LATE } else { WAITS });
    let line = "rank 6 (n2 GPU 2) did not enter all_gather #2 of communicator world; 7 ranks wait";
    assert_eq!(result(seen(&dumps, &BOTH)), expect("desync", Some("n2"), line));
    // Ranks that gave up by themselves were not asked.
    assert_eq!(result(seen(&dumps, &[])), expect("desync", Some("n2"), line));
}

#[test]
fn a_rank_is_where_it_took_the_request_and_not_where_its_number_says() {
    let dumps = by_rank(|rank| if rank == 6 { LATE } else { WAITS });
    let swapped = [
        ("n1", "rank 4 9\nrank 5 9\nrank 6 9\nrank 7 9\n"),
        ("n2", "rank 0 9\nrank 1 9\nrank 2 9\nrank 3 9\n"),
    ];
    let line = "rank 6 (n1 GPU 2) did not enter all_gather #2 of communicator world; 7 ranks wait";
    assert_eq!(result(seen(&dumps, &swapped)), expect("desync", Some("n1"), line));
    let line = "rank 6 did not enter all_gather #2 of communicator world; 7 ranks wait";
    // Its node did not answer, or two claim it.
    assert_eq!(result(seen(&dumps, &BOTH[..1])), expect("hang-undecided", None, line));
    let claimed = [BOTH[0], BOTH[1], ("n1", "rank 6 9\n")];
    assert_eq!(result(seen(&dumps, &claimed)), expect("hang-undecided", None, line));
}

#[test]
fn ranks_of_two_nodes_blame_neither() {
    let dumps = by_rank(|rank| if [2, 6].contains(&rank) { LATE } else { WAITS });
    let line = "ranks 2, 6 did not enter all_gather #2 of communicator world; 6 ranks wait";
    assert_eq!(result(seen(&dumps, &BOTH)), expect("hang-undecided", None, line));
    let dumps = by_rank(|rank| if [5, 6].contains(&rank) { LATE } else { WAITS });
    let line = "ranks 5-6 (n2) did not enter all_gather #2 of communicator world; 6 ranks wait";
    assert_eq!(result(seen(&dumps, &BOTH)), expect("desync", Some("n2"), line));
    // Half of all ranks is no majority.
    let dumps = by_rank(|rank| if rank >= 4 { LATE } else { WAITS });
    let (cause, node, evidence) = result(seen(&dumps, &BOTH));
    assert_eq!((cause.as_str(), node), ("hang-undecided", None), "{evidence}");
}

#[test]
fn a_missing_or_damaged_dump_is_reported_and_blames_no_node() {
    let mut dumps = by_rank(|rank| if rank == 6 { LATE } else { WAITS });
    dumps[6] = None;
    let (hang, findings) = seen(&dumps, &BOTH);
    let (cause, node, evidence) = result((hang, Vec::new()));
    assert_eq!((cause.as_str(), node), ("collective-timeout", None), "{evidence}");
    assert!(evidence.ends_with("; no dump of rank 6, which took the request"), "{evidence}");
    assert!(findings.is_empty(), "{findings:?}");
    let mut dumps = by_rank(|rank| if rank == 6 { LATE } else { WAITS });
    dumps[1] = None;
    dumps[2] = Some(b"\x80\x02cos\nsystem\n.".to_vec());
    let (_, node, evidence) = result(seen(&dumps, &BOTH[1..]));
    assert_eq!(node, None, "{evidence}");
    assert!(
        evidence
            .ends_with("; no dump of rank 1, which the request did not reach; dump of rank 2 cannot be read"),
        "{evidence}"
    );
}

#[test]
fn without_any_dump_the_reason_is_a_finding_alone() {
    let none = vec![None; 8];
    let (hang, findings) = seen(&none, &[("n1", "node n1\n")]);
    assert!(hang.is_none());
    assert_eq!(findings[0].message, "no rank took the request for a dump");
    let (hang, findings) = seen(&none, &[]);
    assert!(hang.is_none() && findings.is_empty(), "{findings:?}");
}

#[test]
fn ranks_that_call_something_else_are_named_with_their_node_and_no_node_is_blamed() {
    let other = Calls { entered: &["all_gather", "all_reduce"], completed: 1 };
    let dumps = by_rank(|rank| if rank == 3 { other } else { WAITS });
    let line = "rank 3 (n1 GPU 3) called all_reduce, others all_gather: all_gather #2 of communicator world";
    assert_eq!(result(seen(&dumps, &BOTH)), expect("collective-mismatch", None, line));
    let other = Calls { entered: &["all_gather", "all_gather 65"], completed: 1 };
    let dumps = by_rank(|rank| if rank == 3 { other } else { WAITS });
    let line = "rank 3 (n1 GPU 3) called with 65 Float, others 64 Float: all_gather #2 of communicator world";
    assert_eq!(result(seen(&dumps, &BOTH)), expect("collective-mismatch", None, line));
    // Two nodes claim the rank.
    let claimed = [BOTH[0], BOTH[1], ("n2", "rank 3 9\n")];
    let line = "rank 3 called with 65 Float, others 64 Float: all_gather #2 of communicator world";
    assert_eq!(result(seen(&dumps, &claimed)), expect("collective-mismatch", None, line));
    // Half of all ranks is no majority.
    let dumps = by_rank(|rank| if rank >= 4 { other } else { WAITS });
    let (cause, node, evidence) = result(seen(&dumps, &BOTH));
    assert_eq!((cause.as_str(), node), ("hang-undecided", None), "{evidence}");
    assert!(evidence.contains("no majority, no culprit") && !evidence.contains("n2"), "{evidence}");
    // Ranks that all wait within one collective: as before, nothing separates their nodes.
    let dumps = by_rank(|_| WAITS);
    let (cause, node, evidence) = result(seen(&dumps, &BOTH));
    assert_eq!((cause.as_str(), node), ("collective-timeout", None), "{evidence}");
}

#[test]
fn a_job_that_ended_well_is_not_read() {
    let workload = Workload::Training { facts: TrainingFacts::default(), ranks: 8 };
    let blank = crate::recipe::testing::job(workload, &[], |_| "n1".into(), 0);
    let job = JobInput { exit_code: Some(0), ..blank };
    assert!(read(&job, Some(8), &mut Output::default()).is_none());
}
