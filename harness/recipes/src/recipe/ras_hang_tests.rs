//! Reports of two nodes with four ranks each, and whom they name.

use super::*;
use crate::recipe::training_log::find_causes;
use crate::recipe::{InputFile, TrainingFacts, Workload};
use serde_json::{Value, json};

const SIZE: u64 = 8;

/// A JSON report: how many `AllReduce` each rank launched; nothing where its process gives no answer.
fn report(second: u32, launched: &[Option<u64>]) -> String {
    let place = |rank: usize| {
        json!({"rank": rank, "host": format!("10.0.0.{}", rank / 4 + 1), "pid": 100 + rank, "cuda_dev": rank % 4,
            "nvml_dev": rank % 4})
    };
    let with = |mut place: Value, more: Value| {
        place.as_object_mut().expect("an object").extend(more.as_object().expect("an object").clone());
        place
    };
    let status = json!({"init_state": 0, "async_error": 0, "finalize_called": false, "destroy_flag": false,
        "abort_flag": false});
    let known = launched.iter().enumerate().filter_map(|(rank, count)| {
        let counts =
            json!({"Broadcast": 0, "Reduce": 0, "AllGather": 3, "ReduceScatter": 0, "AllReduce": (*count)?});
        Some(with(place(rank), json!({"status": status, "collective_counts": counts})))
    });
    let gone = launched.iter().enumerate().filter(|(_, count)| count.is_none()).map(|(rank, _)| {
        with(place(rank), json!({"status": {"unresponsive": true, "considered_dead": false}}))
    });
    let (known, gone): (Vec<Value>, Vec<Value>) = (known.collect(), gone.collect());
    json!({
        "nccl_version": "2.29.2", "cuda_runtime_version": 13000, "cuda_driver_version": 13000,
        "timestamp": format!("2026-01-02 03:04:{second:02}"), "communicators_count": 1,
        "communicators": [{"hash": "0xf3", "secondary_hash": "0x1:0x2", "size": SIZE, "ranks_count": known.len(),
            "missing_ranks_count": gone.len(), "ranks": known, "missing_ranks": gone}],
        "ras": {"collection_time_sec": 0.01, "timeouts_count": 0},
    })
    .to_string()
}

const ONE: &str = "address 10.0.0.1\naddress 172.17.0.1\n";
const TWO: &str = "address 10.0.0.2\naddress 172.17.0.1\n";

fn seen(files: &[(&str, String)]) -> Option<Late> {
    seen_as(Behind::DidNotCome, files)
}

fn seen_as(behind: Behind, files: &[(&str, String)]) -> Option<Late> {
    let folder = tempfile::tempdir().expect("a folder");
    let file = |(node, text): &(&str, String)| {
        let name = format!("ras.{node}.txt");
        let path = folder.path().join(&name);
        std::fs::write(&path, text).expect("written");
        let (shown, node) = (format!("raw/j/{name}"), Some((*node).to_owned()));
        InputFile { role: FileRole::Ras, path, shown, node, part: None, rank: None }
    };
    let files = files.iter().map(file).collect();
    let workload = Workload::Training { facts: TrainingFacts::default(), ranks: SIZE as u32 };
    let blank = crate::recipe::testing::job(workload, &[], |_| "n1".into(), 0);
    let job = JobInput { files, nodes: vec!["n1".into(), "n2".into()], exit_code: None, ..blank };
    read(&job, Some(SIZE as u32), behind, &mut Output::default())
}

fn counts(rank: usize, other: Option<u64>) -> Vec<Option<u64>> {
    let mut all = vec![Some(4711); SIZE as usize];
    all[rank] = other;
    all
}

/// Two reports of the first node, and the addresses of the second.
fn twice(before: &[Option<u64>], after: &[Option<u64>]) -> Option<Late> {
    let text = format!("{ONE}{}\n{}\n", report(5, before), report(8, after));
    seen(&[("n1", text), ("n2", TWO.to_owned())])
}

#[test]
fn the_rank_that_launched_less_is_named_with_its_node_by_the_addresses_of_the_nodes() {
    let behind = counts(6, Some(4710));
    let late = twice(&behind, &behind).expect("a rank");
    assert_eq!((late.node.as_deref(), late.ranks), (Some("n2"), BTreeSet::from([6])));
    assert_eq!(late.evidence, "rank 6 (n2 GPU 2) launched 4710 AllReduce, 7 others 4711; NCCL RAS, twice");
    let gone = counts(1, None);
    let late = twice(&gone, &gone).expect("a rank");
    assert_eq!(late.evidence, "rank 1 (n1 GPU 1) gave no answer; NCCL RAS, twice");
}

#[test]
fn what_moves_or_is_seen_once_names_no_rank() {
    let (behind, level) = (counts(6, Some(4710)), vec![Some(4711); SIZE as usize]);
    // Late in one report alone, or as late as before of a count that went on.
    assert_eq!(twice(&behind, &level), None);
    assert_eq!(twice(&level, &behind), None);
    let later: Vec<Option<u64>> = behind.iter().map(|count| count.map(|count| count + 1)).collect();
    assert_eq!(twice(&behind, &later), None);
    assert_eq!(twice(&level, &level), None);
    let once = format!("{ONE}{}\n", report(5, &behind));
    assert_eq!(seen(&[("n1", once), ("n2", TWO.to_owned())]), None);
    assert_eq!(seen(&[("n1", ONE.to_owned()), ("n2", TWO.to_owned())]), None);
    assert_eq!(seen(&[("n1", format!("{ONE}prose\n"))]), None);
}

#[test]
fn ranks_that_are_ahead_half_of_all_and_nodes_that_disagree_name_no_rank() {
    let ahead = counts(6, Some(4712));
    assert_eq!(twice(&ahead, &ahead), None);
    let half: Vec<Option<u64>> = (0..8).map(|rank| Some(if rank < 4 { 4710 } else { 4711 })).collect();
    assert_eq!(twice(&half, &half), None);
    let of = |head: &str, rank| {
        let behind = counts(rank, Some(4710));
        format!("{head}{}\n{}\n", report(5, &behind), report(8, &behind))
    };
    assert_eq!(seen(&[("n1", of(ONE, 6)), ("n2", of(TWO, 5))]), None);
    assert!(seen(&[("n1", of(ONE, 6)), ("n2", of(TWO, 6))]).is_some());
}

#[test]
fn no_node_is_named_by_an_address_that_is_not_one_nodes_alone() {
    let behind = counts(6, Some(4710));
    let reports = format!("{}\n{}\n", report(5, &behind), report(8, &behind));
    for second in ["address 172.17.0.1\n", ""] {
        let late = seen(&[("n1", format!("{ONE}{reports}")), ("n2", second.to_owned())]).expect("a rank");
        assert_eq!(late.node, None);
        let expected = "rank 6 (at 10.0.0.2) launched 4710 AllReduce, 7 others 4711; NCCL RAS, twice";
        assert_eq!(late.evidence, expected);
    }
    let both = format!("{ONE}address 10.0.0.2\n{reports}");
    assert_eq!(seen(&[("n1", both), ("n2", TWO.to_owned())]).expect("a rank").node, None);
    // Late ranks of two nodes.
    let mut two = counts(6, Some(4710));
    two[1] = Some(4710);
    let late = twice(&two, &two).expect("ranks");
    assert_eq!((late.node, late.ranks), (None, BTreeSet::from([1, 6])));
}

#[test]
fn communicators_of_other_sizes_and_jobs_that_ended_well_are_left_alone() {
    let behind = counts(6, Some(4710));
    let reports = format!("{ONE}{}\n{}\n", report(5, &behind), report(8, &behind));
    let smaller = reports.replace("\"size\":8", "\"size\":16");
    assert_ne!(smaller, reports);
    assert_eq!(seen(&[("n1", smaller), ("n2", TWO.to_owned())]), None);
}

#[test]
fn where_ranks_launch_ahead_only_a_silent_one_blames_its_node() {
    for (other, node) in [(Some(4710), None), (None, Some("n2"))] {
        let odd = counts(6, other);
        let text = format!("{ONE}{}\n{}\n", report(5, &odd), report(8, &odd));
        let late = seen_as(Behind::MayWait, &[("n1", text), ("n2", TWO.to_owned())]).expect("a rank");
        assert_eq!(late.node.as_deref(), node);
        // The line shows where it is all the same.
        assert!(late.evidence.starts_with("rank 6 (n2 GPU 2) "), "{}", late.evidence);
    }
}

#[test]
fn ranks_that_may_wait_in_another_communicator_and_reports_that_contradict_themselves_show_nothing() {
    let behind = counts(6, Some(4710));
    let two = |change: fn(&mut Value)| {
        let one = |second| {
            let mut report: Value = serde_json::from_str(&report(second, &behind)).expect("JSON");
            change(&mut report);
            report
        };
        let text = format!("{ONE}{}\n{}\n", one(5), one(8));
        seen(&[("n1", text), ("n2", TWO.to_owned())])
    };
    assert!(two(|_| {}).is_some());
    let changes: [fn(&mut Value); 4] = [
        |report| {
            let mut other = report["communicators"][0].clone();
            (other["size"], other["hash"]) = (json!(4), json!("0xaa"));
            other["ranks_count"] = json!(4);
            other["ranks"].as_array_mut().expect("a list").truncate(4);
            report["communicators"].as_array_mut().expect("a list").push(other);
            report["communicators_count"] = json!(2);
        },
        // One more that is not listed.
        |report| report["communicators_count"] = json!(2),
        // A rank that is neither there nor missing.
        |report| {
            report["communicators"][0]["ranks"].as_array_mut().expect("a list").remove(0);
            report["communicators"][0]["ranks_count"] = json!(7);
        },
        // One rank twice.
        |report| report["communicators"][0]["ranks"][0]["rank"] = json!(1),
    ];
    for (at, change) in changes.into_iter().enumerate() {
        assert_eq!(two(change), None, "{at}");
    }
}

#[test]
fn a_rank_that_ended_with_an_exception_is_not_named_for_its_silence() {
    let gone = counts(5, None);
    let text = format!("{ONE}{}\n{}\n", report(5, &gone), report(8, &gone));
    let blamed = |stderr: &str| {
        let folder = tempfile::tempdir().expect("a folder");
        let file = |role, name: &str, text: &str, node: Option<&str>| {
            let path = folder.path().join(name);
            std::fs::write(&path, text).expect("written");
            let node = node.map(str::to_owned);
            InputFile { role, path, shown: format!("raw/j/{name}"), node, part: None, rank: None }
        };
        let files = vec![
            file(FileRole::Ras, "ras.n1.txt", &text, Some("n1")),
            file(FileRole::Ras, "ras.n2.txt", TWO, Some("n2")),
            file(FileRole::Stderr, "stderr", stderr, None),
        ];
        let workload = Workload::Training { facts: TrainingFacts::default(), ranks: SIZE as u32 };
        let blank = crate::recipe::testing::job(workload, &[], |_| "n1".into(), 0);
        let job = JobInput { files, nodes: vec!["n1".into(), "n2".into()], exit_code: None, ..blank };
        let mut output = Output::default();
        find_causes(&job, Some(SIZE as u32), Behind::DidNotCome, &mut output);
        let failure = output.failure.expect("a failure");
        (failure.cause, failure.node)
    };
    assert_eq!(blamed(""), (DESYNC.to_owned(), Some("n2".to_owned())));
    assert_eq!(blamed("[rank5]: KeyError: 'input_ids'\n"), ("exception".to_owned(), None));
}
