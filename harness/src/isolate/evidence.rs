//! What a stored run names by itself, as coded culprits: then nothing has to be run to know it. A node that was only left
//! over by elimination is no evidence.

use super::code::Code;
use crate::artefact::{Culprit, LeftOut};

/// One line about a culprit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Line {
    pub code: &'static str,
    /// A node, or two groups with a hyphen between them.
    pub node: String,
    pub part: String,
    pub evidence: String,
}

impl std::fmt::Display for Line {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let severity = Code::find(self.code).map_or("watch", |code| code.severity.name());
        write!(f, "{} {severity} {} {}: {}", self.code, self.node, self.part, self.evidence)
    }
}

/// What is told, and whether that is all that went badly.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Evidence {
    pub lines: Vec<Line>,
    pub explains_all: bool,
}

pub fn of_run(culprits: &[Culprit], left_out: &[LeftOut]) -> Evidence {
    let mut evidence = Evidence::default();
    let mut unexplained = false;
    for left in left_out {
        evidence.lines.push(Line {
            code: "HRN-NODE-UNFIT",
            node: left.node.clone(),
            part: "node".to_owned(),
            evidence: left.why.clone(),
        });
    }
    for culprit in culprits {
        let Culprit::Culprit { node, part, evidence: told } = culprit else {
            unexplained = true;
            continue;
        };
        match code(part, told) {
            Some(code) => {
                let known = evidence.lines.iter().any(|line| line.node == *node);
                if !(known && part == "node") {
                    let (node, part, told) = (node.clone(), part.clone(), told.clone());
                    evidence.lines.push(Line { code, node, part, evidence: told });
                }
            }
            None => unexplained = true,
        }
    }
    evidence.explains_all = !unexplained && !evidence.lines.is_empty();
    evidence
}

fn code(part: &str, told: &str) -> Option<&'static str> {
    let cause = told.split(':').next().unwrap_or_default();
    let code = match part {
        "node" => match cause {
            "NODE_FAIL" | "BOOT_FAIL" | "host-unreachable" => "HRN-NODE-LOST",
            "hang" => "HRN-NODE-BROKEN",
            _ if cause.starts_with("exit ") || cause.starts_with("signal ") => "HRN-NODE-BROKEN",
            // Slow by elimination: which part of it is to be found out.
            _ => return None,
        },
        _ if told.contains("keeps the others waiting") || part.starts_with("rank") => "HRN-RANK-LATE",
        _ if part.starts_with("gpu") && told.contains("wrong") => "HRN-GPU-WRONG",
        _ if part.starts_with("gpu") => "HRN-GPU-SLOW",
        _ if told.contains("not listed") => "HRN-NIC-MISSING",
        _ if told.contains("moved no byte") => "HRN-NIC-DEAD",
        _ => "HRN-NIC-SLOW",
    };
    Some(code)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn culprit(node: &str, part: &str, evidence: &str) -> Culprit {
        Culprit::Culprit { node: node.into(), part: part.into(), evidence: evidence.into() }
    }

    #[test]
    fn what_names_a_part_is_evidence_and_has_a_code_with_a_page() {
        let culprits = [
            culprit("n1", "rdmap79s0", "not listed, though the profile of p5 has it"),
            culprit("n2", "rdmap79s0", "listed, but moved no byte in `all` while its namesakes did"),
            culprit("n3", "rdmap79s0", "4.8 GB/s with n4 and n5"),
            culprit("n4", "gpu3", "`nccl.wrong` is 12"),
            culprit("n5", "gpu3", "`nccl.algbw` is 640 GB/s"),
            culprit("n6", "node", "NODE_FAIL: job 3 of `all`: n6"),
            culprit("n7", "node", "hang: job 3 of `all`: n7"),
        ];
        let left = [LeftOut { node: "n8".into(), why: "7 GPUs of 8".into(), by_folder: false }];
        let evidence = of_run(&culprits, &left);
        let codes: Vec<&str> = evidence.lines.iter().map(|line| line.code).collect();
        let wanted = [
            "HRN-NODE-UNFIT",
            "HRN-NIC-MISSING",
            "HRN-NIC-DEAD",
            "HRN-NIC-SLOW",
            "HRN-GPU-WRONG",
            "HRN-GPU-SLOW",
            "HRN-NODE-LOST",
            "HRN-NODE-BROKEN",
        ];
        assert_eq!(codes, wanted);
        assert!(evidence.explains_all);
        for line in &evidence.lines {
            let page = Code::find(line.code).expect("a page").page();
            assert!(
                page.contains("cause") && page.contains("scontrol update nodename=NODE state=drain"),
                "{page}"
            );
        }
    }

    #[test]
    fn a_node_that_was_left_over_and_suspects_explain_nothing() {
        let slow = culprit("n2", "node", "nccl.busbw: `nccl.busbw` is out of bounds in job all of `all`");
        assert_eq!(of_run(&[slow], &[]), Evidence::default());
        let suspects =
            Culprit::Suspects { nodes: vec!["n1".into(), "n2".into()], evidence: "hang: x".into() };
        let both = of_run(&[suspects, culprit("n3", "gpu1", "`nccl.algbw` is low")], &[]);
        assert_eq!((both.lines.len(), both.explains_all), (1, false));
        assert!(!of_run(&[], &[]).explains_all);
    }

    #[test]
    fn a_line_is_code_severity_node_part_and_evidence() {
        let evidence = of_run(&[culprit("n3", "rdmap79s0", "4.8 GB/s")], &[]);
        let lines: Vec<String> = evidence.lines.iter().map(ToString::to_string).collect();
        assert_eq!(lines, ["HRN-NIC-SLOW replace n3 rdmap79s0: 4.8 GB/s"]);
    }
}
