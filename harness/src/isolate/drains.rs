//! Which culprits are taken out of the queue, and under which reason. How that is done is left to `crate::drain`.

use super::code::Code;
use super::evidence::Line;
use crate::drain::Wanted;
use crate::judge::common_failure::HANGS;
use std::collections::{BTreeMap, BTreeSet};

/// What is drained in one call at most, and what never is.
#[derive(Debug, Clone, Default)]
pub struct Limits {
    pub at_most: usize,
    /// Nodes against which nothing but one job speaks that came to its time limit.
    pub hung_once: BTreeSet<String>,
}

impl Limits {
    /// One node, or a tenth of them; another number only where somebody asks for it.
    pub fn of(nodes: usize, asked: Option<u32>) -> Limits {
        let at_most = asked.map_or((nodes / 10).max(1), |asked| asked as usize);
        Limits { at_most, hung_once: BTreeSet::new() }
    }
}

/// Whether it was named for having come to no end.
pub fn is_hang(line: &Line) -> bool {
    HANGS.contains(&line.evidence.split(':').next().unwrap_or_default())
}

/// The nodes to be drained, each once, for the gravest that is said of it; and of the other culprits why they are not.
pub fn of_lines(lines: &[Line], run: &str, limits: &Limits) -> (Vec<Wanted>, Vec<String>) {
    let mut gravest: BTreeMap<&str, (&Line, &Code)> = BTreeMap::new();
    let mut left: Vec<(&Line, String)> = Vec::new();
    for line in lines {
        match Code::find(line.code) {
            Some(_) if is_hang(line) && limits.hung_once.contains(&line.node) => {
                left.push((line, "one job that came to its time limit is no proof, run it again".to_owned()));
            }
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
    let mut left: Vec<String> =
        left.into_iter().filter(|(line, _)| !gravest.contains_key(line.node.as_str())).map(why).collect();
    let mut gravest: Vec<(&Line, &Code)> = gravest.into_values().collect();
    gravest.sort_by_key(|(_, code)| code.severity);
    let (all, at_most) = (gravest.len(), limits.at_most);
    let beyond = gravest.split_off(at_most.min(all));
    left.extend(beyond.iter().map(|(line, _)| {
        format!(
            "not drained {}: {}: {all} nodes would be drained, {at_most} in one call: --drain-at-most {all}",
            line.node, line.code
        )
    }));
    gravest.sort_by_key(|(line, _)| &line.node);
    let wanted = gravest.into_iter().map(|(line, code)| Wanted {
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
        let (wanted, left) = of_lines(&lines, "20261122-x", &Limits::of(30, None));
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
    fn more_nodes_than_a_tenth_are_drained_only_where_somebody_asks_for_so_many() {
        let lines = ["n1", "n2", "n3"].map(|node| line("HRN-NODE-SLOW", node, "node"));
        let drained = |nodes, asked| {
            let (wanted, left) = of_lines(&lines, "r", &Limits::of(nodes, asked));
            (wanted.len(), left.len())
        };
        assert_eq!(drained(4, None), (1, 2));
        assert_eq!(drained(20, None), (2, 1));
        assert_eq!(drained(4, Some(3)), (3, 0));
        let (_, left) = of_lines(&lines, "r", &Limits::of(4, None));
        assert_eq!(
            left[0],
            "not drained n2: HRN-NODE-SLOW: 3 nodes would be drained, 1 in one call: --drain-at-most 3"
        );
    }

    #[test]
    fn one_job_that_came_to_its_time_limit_drains_no_node() {
        let mut hung = line("HRN-NODE-BROKEN", "n1", "node");
        hung.evidence = "hang: job n1 of `each`: the job did not end within 10 s".into();
        let mut limits = Limits::of(4, None);
        assert_eq!(of_lines(&[hung.clone()], "r", &limits).0.len(), 1);
        limits.hung_once.insert("n1".into());
        let (wanted, left) = of_lines(&[hung], "r", &limits);
        assert!(wanted.is_empty() && left[0].contains("is no proof"), "{left:?}");
    }

    #[test]
    fn a_reason_is_one_short_line() {
        let code = Code::find("HRN-NIC-SLOW").expect("known");
        let reason = code.reason("rdmap79s0", &"a\tü".repeat(200), "r");
        assert!(reason.chars().count() < 180 && !reason.contains(char::is_control), "{reason}");
        assert!(reason.ends_with("..., run r"), "{reason}");
    }
}
