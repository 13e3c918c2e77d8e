//! What NCCL and PyTorch recorded themselves of real jobs: reports of RAS, dumps of the flight recorder with injected faults.

use crate::corpus;
use crate::fact::Fact;
use logs::ras;
use metric::finding::Finding;
use std::fs;

pub(crate) const FACTS: &[Fact] = &[
    (
        "reports_of_ras_name_who_is_late_and_none_that_waits",
        reports_of_ras_name_who_is_late_and_none_that_waits,
    ),
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
                  node 10.0.109.86 GPU 0 pid 6247; in one report";
    assert_eq!(ras_lines("ray-ncclras-2.28.9-a10g-mismatch.json"), [behind]);
    // The two that are listed are ahead of the other thirty.
    let ahead = "ras-counts-differ: AllGather of 0xfa93daea854b060b: ranks 12, 13 at 641, 30 others at 640: \
                 the few wait, no culprit";
    assert_eq!(ras_lines("excerpt-ras-2.26.2-mismatch-32ranks.txt"), [ahead]);
    let missing =
        "ras-rank-missing: rank 1 of 0xae94423cfbb2ef4a: no answer; node 172.16.64.245 GPU 1 pid 1524345";
    assert_eq!(ras_lines("ras-doc-2.29.1-missing-rank.json"), [missing]);
    // All have launched the last operation, in which they hang: RAS cannot show it.
    assert_eq!(ras_lines("excerpt-ras-2.26.2-ok-while-watchdog-fires.txt"), Vec::<String>::new());
    for name in ["ras-doc-dead.txt", "ras-doc-incomplete-timeout.txt"] {
        let found = ras_lines(name);
        assert!(found.iter().any(|it| it.contains("rank 21 of 0xcf264af53edbe986")), "{found:?}");
    }
    for name in ["ras-doc-monitor-peer-dead.json", "ras-doc-monitor-peer-dead.txt"] {
        let found = ras_lines(name);
        assert!(found.len() == 1 && found[0].ends_with("node 172.16.64.245 GPU 1 pid 1524345"), "{found:?}");
    }
}
