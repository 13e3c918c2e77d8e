//! What NCCL and PyTorch recorded themselves of real jobs: reports of RAS, dumps of the flight recorder with injected faults,
//! records of Inspector.

use crate::corpus;
use crate::fact::Fact;
use logs::{flight_recorder, inspector, ras};
use metric::finding::Finding;
use std::fs;

pub(crate) const FACTS: &[Fact] = &[
    (
        "reports_of_ras_name_who_is_late_and_none_that_waits",
        reports_of_ras_name_who_is_late_and_none_that_waits,
    ),
    ("ranks_that_held_the_interpreter_lock_never_came", ranks_that_held_the_interpreter_lock_never_came),
    ("ranks_with_a_gpu_error_are_found_in_their_dumps", ranks_with_a_gpu_error_are_found_in_their_dumps),
    ("every_record_of_inspector_is_read", every_record_of_inspector_is_read),
];

fn lines(findings: &[Finding]) -> Vec<String> {
    findings.iter().map(|it| format!("{}: {}", it.code, it.message)).collect()
}

fn ras_lines(name: &str) -> Vec<String> {
    let mut reader = ras::Reader::default();
    reader.read(&fs::read(corpus::file(&format!("nccl-runtime/{name}"))).expect("a file"), "x").expect(name);
    lines(&reader.finish().findings)
}

fn reports_of_ras_name_who_is_late_and_none_that_waits() {
    let behind = "ras-rank-behind: rank 1 of 0xf31e5874c3f25459: 100 AllReduce, 3 others 101; \
                  10.0.109.86 GPU 0 pid 6247; in one report";
    assert_eq!(ras_lines("ray-ncclras-2.28.9-a10g-mismatch.json"), [behind]);
    // The two that are listed are ahead of the other thirty.
    let ahead = "ras-counts-differ: AllGather of 0xfa93daea854b060b: ranks 12, 13 at 641, 30 others at 640: \
                 the few wait, no culprit";
    assert_eq!(ras_lines("excerpt-ras-2.26.2-mismatch-32ranks.txt"), [ahead]);
    let missing =
        "ras-rank-missing: rank 1 of 0xae94423cfbb2ef4a: no answer; 172.16.64.245 GPU 1 pid 1524345";
    assert_eq!(ras_lines("ras-doc-2.29.1-missing-rank.json"), [missing]);
    // All have launched the last operation, in which they hang: RAS cannot show it.
    assert_eq!(ras_lines("excerpt-ras-2.26.2-ok-while-watchdog-fires.txt"), Vec::<String>::new());
    for name in ["ras-doc-dead.txt", "ras-doc-incomplete-timeout.txt"] {
        let found = ras_lines(name);
        assert!(found.iter().any(|it| it.contains("rank 21 of 0xcf264af53edbe986")), "{found:?}");
    }
    for name in ["ras-doc-monitor-peer-dead.json", "ras-doc-monitor-peer-dead.txt"] {
        let found = ras_lines(name);
        assert!(found.len() == 1 && found[0].ends_with(": 172.16.64.245 GPU 1 pid 1524345"), "{found:?}");
    }
}

/// All dumps of a scenario. `fault_injection.log` has the truth, `reference.txt` what its authors' analysis says.
fn dumps(scenario: &str) -> Vec<String> {
    let mut reader = flight_recorder::Reader::default();
    for rank in 0..16 {
        let file = corpus::file(&format!("nccl-runtime/nvrx-fr-{scenario}/_dump_{rank}"));
        reader.read(&fs::read(&file).expect("a dump"), &file.display().to_string()).expect("read");
    }
    lines(&reader.finish().findings)
}

/// As the truth and the reference have it: 9 and 14.
fn ranks_that_held_the_interpreter_lock_never_came() {
    let expected = "fr-rank-missing: ranks 9, 14 did not enter all_to_all #45265 of group 72 \
                    (EXPERT_MODEL_PARALLEL_GROUP); 6 ranks wait";
    assert_eq!(dumps("lock_gil_1st"), [expected]);
}

/// The truth is 12 and 14, the reference has 12 alone: rank 14 entered all that its peers entered, and is seen where it has
/// not completed what they completed.
fn ranks_with_a_gpu_error_are_found_in_their_dumps() {
    let expected = [
        "fr-rank-missing: rank 12 did not enter all_to_all #20537 of group 74 (EXPERT_MODEL_PARALLEL_GROUP); \
         ranks 13, 14, 15 wait",
        "fr-not-completed: ranks 12, 14: still in all_to_all #20530 of group 74 (EXPERT_MODEL_PARALLEL_GROUP), \
         which ranks 13, 15 completed",
    ];
    assert_eq!(dumps("gpu_error_1st"), expected);
}

fn every_record_of_inspector_is_read() {
    let table = [
        ("cvs-inspector_v5_sample.jsonl", 4),
        ("excerpt-inspector-v4.0-k8s-worker.jsonl", 1),
        ("inspector-doc-exporter-v4.0.json", 1),
        ("inspector-doc-v4.0-coll.json", 1),
        ("inspector-doc-v4.0-verbose.json", 1),
        ("inspector-doc-v4.2-coll.json", 1),
    ];
    let read = |name: &str| {
        let mut reader = inspector::Reader::default();
        let bytes = fs::read(corpus::file(&format!("nccl-runtime/{name}"))).expect("a file");
        reader.read(bytes.as_slice(), name).expect("read");
        reader.finish()
    };
    for (name, records) in table {
        let log = read(name);
        assert_eq!((log.records, log.other_lines), (records, 0), "{name}");
        let damaged =
            log.findings.iter().any(|it| it.code == "inspector-garbled" || it.code == "inspector-cut");
        assert!(!damaged, "{name}: {:?}", log.findings);
        // The sample of CVS is made up: its bandwidths are 38 times what its bytes and times give.
        let disagrees = log.findings.iter().any(|it| it.code == "inspector-disagrees");
        assert_eq!(disagrees, name.starts_with("cvs-"), "{name}: {:?}", log.findings);
    }
    assert_eq!(read("inspector-doc-prom-v5.1.prom").gauges.len(), 4);
    for name in ["excerpt-inspector-v4.1-dump_stats.json", "excerpt-inspector-v4.3-dump_stats.json"] {
        let found = lines(&read(name).findings);
        assert!(
            found.iter().any(|it| it.contains("rank 2 of 0x7f8c496ae9f661: 4096 calls dropped")),
            "{found:?}"
        );
        // The records that these two announce are not in them.
        assert!(found.iter().any(|it| it.starts_with("inspector-short: ")), "{found:?}");
    }
}
