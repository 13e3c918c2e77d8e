//! Which culprits are taken out of the queue, how many at most, and under which reason.

use super::{Bound, NodeState, Wanted};
use base::text::count;
use std::collections::{BTreeMap, BTreeSet};
use verdict::isolate::code::Code;
use verdict::isolate::evidence::EvidenceLine;
use verdict::judge::common_failure::HANGS;

/// Drained by the harness at the same time, where no number is given: one node in so many, and never more than `MOST`.
const ONE_IN: usize = 50;
const MOST: usize = 8;

/// How many nodes may be out of the queue for a reason of the harness, and which are never drained.
#[derive(Debug, Clone, Default)]
pub struct Limits {
    /// Most nodes drained for a reason of the harness at the same time, by all its calls.
    pub at_most: usize,
    /// Nodes with one hung job as the only evidence.
    pub hung_once: BTreeSet<String>,
}

impl Limits {
    /// `nodes`: those of the whole inventory. `asked`: the number that `--drain-at-most` names.
    pub fn new(nodes: usize, asked: Option<u32>) -> Limits {
        let at_most = asked.map_or((nodes / ONE_IN).clamp(1, MOST), |asked| asked as usize);
        Limits { at_most, hung_once: BTreeSet::new() }
    }

    /// Why none of these nodes may be drained, where all of them with those that were drained before are too many. `all`
    /// is what the queue shows: it counts drains of other calls, too.
    pub fn refuse(&self, wanted: &[Wanted], all: &[(String, NodeState)]) -> Option<String> {
        let (more, before) = (becoming_ours(wanted, all), ours(all));
        let sum = before + more;
        (more > 0 && sum > self.at_most).then(|| {
            format!(
                "nothing is drained: {more} to drain and {before} drained by the harness before, limit {}; \
                 `--drain-at-most {sum}` allows it",
                self.at_most
            )
        })
    }
}

impl Bound for Limits {
    /// Calls that drain at the same moment have all counted before any of them drained: each counts again before every
    /// node, and behind it.
    fn exceeded(&self, next: Option<&Wanted>, all: &[(String, NodeState)]) -> Option<String> {
        let (more, by_now) = (becoming_ours(next.map_or(&[], std::slice::from_ref), all), ours(all));
        let is_over = by_now + more > self.at_most && (more > 0 || next.is_none());
        is_over.then(|| {
            format!(
                "{} now drained by the harness, limit {}: another harness drains nodes, too",
                count(by_now, "node"),
                self.at_most
            )
        })
    }
}

/// How many are drained for a reason of the harness.
fn ours(all: &[(String, NodeState)]) -> usize {
    all.iter().filter(|(_, shown)| shown.is_draining() && shown.ours().is_some()).count()
}

/// How many more would be. A reason that somebody else gave stands, so the node is not drained and does not count.
fn becoming_ours(wanted: &[Wanted], all: &[(String, NodeState)]) -> usize {
    let shown = |node: &str| all.iter().find(|(name, _)| name == node).map(|(_, shown)| shown);
    let becomes_ours = |wanted: &&Wanted| {
        shown(&wanted.node).is_none_or(|shown| match shown.ours() {
            Some(_) => !shown.is_draining(),
            None => !shown.is_draining() && shown.reason.is_none(),
        })
    };
    wanted.iter().filter(becomes_ours).count()
}

/// Whether it was named because it hung.
pub fn is_hang(line: &EvidenceLine) -> bool {
    HANGS.contains(&line.evidence.split(':').next().unwrap_or_default())
}

/// The nodes to be drained, each once, for its gravest finding; and for the other culprits why they are not.
pub fn choose_nodes(lines: &[EvidenceLine], run: &str, limits: &Limits) -> (Vec<Wanted>, Vec<String>) {
    let mut gravest: BTreeMap<&str, (&EvidenceLine, &Code)> = BTreeMap::new();
    let mut left: Vec<(&EvidenceLine, String)> = Vec::new();
    for line in lines {
        match Code::find(line.code) {
            Some(_) if is_hang(line) && limits.hung_once.contains(&line.node) => {
                left.push((line, "one job that hit its time limit is no proof; rerun it".to_owned()));
            }
            Some(code) if code.severity.asks_for_drain() => {
                let best = gravest.entry(&line.node).or_insert((line, code));
                if code.severity < best.1.severity {
                    *best = (line, code);
                }
            }
            Some(code) => {
                left.push((line, format!("its severity asks for no drain: {}", code.severity.name())))
            }
            None => left.push((line, "unknown code".to_owned())),
        }
    }
    let why =
        |(line, why): (&EvidenceLine, String)| format!("not drained {}: {}: {why}", line.node, line.code);
    let left: Vec<String> =
        left.into_iter().filter(|(line, _)| !gravest.contains_key(line.node.as_str())).map(why).collect();
    let mut gravest: Vec<(&EvidenceLine, &Code)> = gravest.into_values().collect();
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

    fn line(code: &'static str, node: &str, part: &str) -> EvidenceLine {
        EvidenceLine { code, node: node.into(), part: part.into(), evidence: "50 % of\nits peers".into() }
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
        let (wanted, left) = choose_nodes(&lines, "20261122-x", &Limits::new(30, None));
        let reasons: Vec<(&str, &str)> =
            wanted.iter().map(|wanted| (wanted.node.as_str(), wanted.reason.as_str())).collect();
        assert_eq!(
            reasons,
            [
                ("n1", "[harness] HRN-NIC-SLOW rdmap79s0: 50 % of its peers, run 20261122-x"),
                ("n2", "[harness] HRN-NODE-SLOW node: 50 % of its peers, run 20261122-x"),
            ]
        );
        assert_eq!(
            left,
            [
                "not drained n3: HRN-NODE-UNFIT: its severity asks for no drain: configure",
                "not drained n4: HRN-RANK-LATE: its severity asks for no drain: watch",
                "not drained a-c: HRN-LINK-SLOW: its severity asks for no drain: watch",
            ]
        );
    }

    fn wanted(nodes: &[&str]) -> Vec<Wanted> {
        nodes.iter().map(|node| Wanted { node: (*node).to_owned(), reason: "[harness] x".into() }).collect()
    }

    fn node_states(nodes: &[(&str, &str)]) -> Vec<(String, NodeState)> {
        let read = |text: &str| NodeState::read(text).expect("a node");
        nodes.iter().map(|(name, text)| ((*name).to_owned(), read(text))).collect()
    }

    #[test]
    fn no_more_than_two_percent_and_never_more_than_eight_are_drained_unless_a_number_is_given() {
        for (nodes, asked, at_most) in [
            (4, None, 1),
            (32, None, 1),
            (99, None, 1),
            (100, None, 2),
            (256, None, 5),
            (10_000, None, 8),
            (4, Some(3), 3),
            (10_000, Some(1), 1),
        ] {
            assert_eq!(Limits::new(nodes, asked).at_most, at_most, "{nodes} {asked:?}");
        }
    }

    #[test]
    fn too_many_nodes_are_drained_all_or_none_and_drains_of_other_calls_count() {
        let idle = [("n1", "State=IDLE"), ("n2", "State=IDLE"), ("n3", "State=IDLE")];
        let limits = |asked| Limits::new(4, asked);
        assert_eq!(limits(None).refuse(&wanted(&["n1"]), &node_states(&idle)), None);
        let why = limits(None).refuse(&wanted(&["n1", "n2", "n3"]), &node_states(&idle)).expect("too many");
        assert_eq!(
            why,
            "nothing is drained: 3 to drain and 0 drained by the harness before, limit 1; `--drain-at-most 3` allows it"
        );
        assert_eq!(limits(Some(3)).refuse(&wanted(&["n1", "n2", "n3"]), &node_states(&idle)), None);
        let before = [("n1", "State=IDLE"), ("n2", "State=IDLE+DRAIN Reason=[harness] HRN-NIC-DEAD x")];
        let why = limits(None).refuse(&wanted(&["n1"]), &node_states(&before)).expect("too many");
        assert!(why.contains("1 to drain and 1 drained by the harness before, limit 1"), "{why}");
        // A drain that changes nothing is no further one, nor is a node with somebody else's reason.
        let same = [("n1", "State=IDLE+DRAIN Reason=a fan"), before[1]];
        assert_eq!(limits(None).refuse(&wanted(&["n1", "n2"]), &node_states(&same)), None);
        // A reason of ours on a node in the queue is a leftover of a drain that was ended.
        let left = [("n1", "State=IDLE Reason=[harness] x"), before[1]];
        assert!(limits(None).refuse(&wanted(&["n1"]), &node_states(&left)).is_some());
    }

    #[test]
    fn one_hung_job_drains_no_node() {
        let mut hung = line("HRN-NODE-BROKEN", "n1", "node");
        hung.evidence = "hang: job n1 of `each`: the job did not end within 10 s".into();
        let mut limits = Limits::new(4, None);
        assert_eq!(choose_nodes(&[hung.clone()], "r", &limits).0.len(), 1);
        limits.hung_once.insert("n1".into());
        let (wanted, left) = choose_nodes(&[hung], "r", &limits);
        assert!(wanted.is_empty() && left[0].contains("is no proof"), "{left:?}");
    }

    #[test]
    fn a_reason_is_one_short_line() {
        let code = Code::find("HRN-NIC-SLOW").expect("known");
        let reason = code.reason("rdmap79s0", &"a\tü".repeat(200), "r");
        assert!(reason.chars().count() < 180 && !reason.contains(char::is_control), "{reason}");
        assert!(reason.contains("...") && reason.ends_with(", run r"), "{reason}");
    }

    #[test]
    fn messages() {
        let idle = [("n1", "State=IDLE"), ("n2", "State=IDLE+DRAIN Reason=[harness] HRN-NIC-DEAD x")];
        let mut hung = line("HRN-NODE-BROKEN", "n1", "node");
        hung.evidence = "hang: the job did not end within 10 s".into();
        let mut limits = Limits::new(4, None);
        limits.hung_once.insert("n1".into());
        let culprits = [
            hung,
            line("HRN-LINK-SLOW", "a-c", "link"),
            line("HRN-RANK-LATE", "n4", "gpu1"),
            line("X", "n5", "gpu1"),
        ];
        let mut lines = choose_nodes(&culprits, "r", &limits).1;
        lines.extend(limits.refuse(&wanted(&["n1", "n3"]), &node_states(&idle)));
        lines.extend(limits.exceeded(wanted(&["n1"]).first(), &node_states(&idle)));
        insta::assert_snapshot!(lines.join("\n"));
    }
}
