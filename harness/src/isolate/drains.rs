//! Which culprits are taken out of the queue, and under which reason. How that is done is left to `crate::drain`.

use super::code::Code;
use super::evidence::Line;
use crate::drain::Wanted;
use std::collections::BTreeMap;

/// The nodes to be drained, each once, for the gravest that is said of it; and of the other culprits why they are not.
pub fn of_lines(lines: &[Line], run: &str) -> (Vec<Wanted>, Vec<String>) {
    let mut gravest: BTreeMap<&str, (&Line, &Code)> = BTreeMap::new();
    let mut left: Vec<(&Line, String)> = Vec::new();
    for line in lines {
        match Code::find(line.code) {
            Some(code) if !code.drains => left.push((line, "no node is at fault".to_owned())),
            Some(code) if code.severity.asks_for_drain() => {
                let best = gravest.entry(&line.node).or_insert((line, code));
                if code.severity < best.1.severity {
                    *best = (line, code);
                }
            }
            Some(code) => left.push((line, format!("its severity asks for none: {}", code.severity.name()))),
            None => left.push((line, "its code is not known".to_owned())),
        }
    }
    let why = |(line, why): (&Line, String)| format!("not drained {}: {}: {why}", line.node, line.code);
    let left =
        left.into_iter().filter(|(line, _)| !gravest.contains_key(line.node.as_str())).map(why).collect();
    let wanted = gravest.into_values().map(|(line, code)| Wanted {
        node: line.node.clone(),
        reason: code.reason(&line.part, &line.evidence, run),
    });
    (wanted.collect(), left)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(code: &'static str, node: &str, part: &str) -> Line {
        Line { code, node: node.into(), part: part.into(), evidence: "50 % of\nits like".into() }
    }

    #[test]
    fn nodes_are_drained_once_for_the_gravest_and_only_where_severity_asks_for_it() {
        let lines = [
            line("HRN-GPU-SLOW", "n1", "gpu3"),
            line("HRN-NIC-SLOW", "n1", "rdmap79s0"),
            line("HRN-NODE-SLOW", "n2", "node"),
            line("HRN-NODE-UNFIT", "n3", "node"),
            line("HRN-RANK-LATE", "n4", "gpu1"),
            line("HRN-LINK-SLOW", "a-c", "link"),
            line("HRN-NODE-UNCLEAR", "n2", "node"),
        ];
        let (wanted, left) = of_lines(&lines, "20261122-x");
        let reasons: Vec<(&str, &str)> =
            wanted.iter().map(|wanted| (wanted.node.as_str(), wanted.reason.as_str())).collect();
        assert_eq!(
            reasons,
            [
                ("n1", "[harness] HRN-NIC-SLOW rdmap79s0: 50 % of its like, run 20261122-x"),
                ("n2", "[harness] HRN-NODE-SLOW node: 50 % of its like, run 20261122-x"),
            ]
        );
        assert_eq!(
            left,
            [
                "not drained n3: HRN-NODE-UNFIT: its severity asks for none: configure",
                "not drained n4: HRN-RANK-LATE: its severity asks for none: watch",
                "not drained a-c: HRN-LINK-SLOW: no node is at fault",
            ]
        );
    }

    #[test]
    fn a_reason_is_one_short_line() {
        let code = Code::find("HRN-NIC-SLOW").expect("known");
        let reason = code.reason("rdmap79s0", &"a\tü".repeat(200), "r");
        assert!(reason.chars().count() < 180 && !reason.contains(char::is_control), "{reason}");
        assert!(reason.ends_with("..., run r"), "{reason}");
    }
}
