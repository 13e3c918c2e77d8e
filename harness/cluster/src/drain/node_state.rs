//! A node as its queue shows it, Slurm by `scontrol --all --oneliner show node`: its state, and the reason that was given.

use super::Drained;
use crate::reach::slurm_state::{CLOUD_REASONS, StateSet};
use std::fmt;
use verdict::isolate::code::REASON;

/// State and reason of one node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodeState {
    /// Such as `IDLE+DRAIN`, or `Ready,SchedulingDisabled` of Kubernetes.
    pub state: String,
    /// Without its signature; None where Slurm shows no reason.
    pub reason: Option<String>,
    /// Who gave it, and when, as Slurm writes it.
    pub by: Option<String>,
}

impl NodeState {
    /// Reads the line of one node; an error where it has no `State=`.
    pub fn read(text: &str) -> Result<NodeState, String> {
        let state = text.split_whitespace().find_map(|word| word.strip_prefix("State="));
        let state = state.filter(|state| !state.is_empty()).ok_or("has no `State`")?;
        // A reason has blanks in it, and may hold anything; Slurm ends it with who gave it.
        let (reason, by) = match text.split_once(" Reason=") {
            None => (None, None),
            Some((_, rest)) => match signature(rest) {
                Some((at, by)) => (Some(&rest[..at]), Some(by)),
                None => (Some(rest.trim_end()), None),
            },
        };
        let is_clouds = |reason: &str| CLOUD_REASONS.iter().any(|begin| reason.starts_with(begin));
        let is_leftover = |reason: &str| is_clouds(reason) && StateSet::parse(state).takes_jobs();
        let reason = reason.map(str::trim).filter(|reason| !reason.is_empty() && !is_leftover(reason));
        Ok(NodeState {
            state: state.to_owned(),
            reason: reason.map(str::to_owned),
            by: by.filter(|_| reason.is_some()).map(str::to_owned),
        })
    }

    fn states(&self) -> impl Iterator<Item = &str> {
        self.state.split(['+', ',']).map(|state| state.trim_end_matches(|c: char| !c.is_ascii_alphanumeric()))
    }

    /// Nothing new starts on it, for somebody wanted it so.
    pub fn is_draining(&self) -> bool {
        self.states().any(|state| matches!(state, "DRAIN" | "DRAINED" | "DRAINING" | "SchedulingDisabled"))
    }

    /// What becomes of a request to drain it, where that leaves it as it is. A reason of ours on a node that is in the
    /// queue is a leftover of a drain that somebody ended.
    pub(super) fn settled(&self) -> Option<Drained> {
        match (self.ours(), self.is_draining()) {
            (Some(reason), true) => Some(Drained::Already { reason: reason.to_owned() }),
            (None, draining) if draining || self.reason.is_some() => {
                Some(Drained::Others { state: self.to_string() })
            }
            _ => None,
        }
    }

    /// A job can start on it at once, or would if no other job were in the way. Kubernetes does not show whether one is.
    pub fn is_idle(&self) -> bool {
        self.state == "Ready" || StateSet::parse(&self.state).is_idle()
    }

    /// It has been put back, and its daemon has registered since.
    pub(crate) fn answers(&self) -> bool {
        let bad = [
            "DOWN",
            "DRAIN",
            "DRAINED",
            "DRAINING",
            "ERROR",
            "FAIL",
            "INVALID_REG",
            "NOT_RESPONDING",
            "UNKNOWN",
        ];
        !self.state.contains('*') && !self.states().any(|state| bad.contains(&state))
    }

    /// The reason, where it is one of ours.
    pub fn ours(&self) -> Option<&str> {
        self.reason.as_deref().filter(|reason| reason.strip_prefix(REASON).is_some_and(ends_word))
    }
}

fn ends_word(rest: &str) -> bool {
    rest.is_empty() || rest.starts_with(' ')
}

/// Where ` [user@time]` begins, and what stands in it.
fn signature(text: &str) -> Option<(usize, &str)> {
    text.match_indices(" [").find_map(|(at, _)| {
        let inner = text[at + 2..].split_once(']')?.0;
        // A user of a directory service has a domain: `jo@corp.example.com@2026-11-22T03:55:51`.
        let (user, time) = inner.rsplit_once('@')?;
        let is_time = time.starts_with(|c: char| c.is_ascii_digit()) || time == "Unknown";
        (!user.contains(' ') && !user.is_empty() && is_time).then_some((at, inner))
    })
}

impl fmt::Display for NodeState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.state)?;
        if let Some(reason) = &self.reason {
            write!(f, ": {reason}")?;
        }
        match &self.by {
            Some(by) => write!(f, " [{by}]"),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> NodeState {
        NodeState::read(&format!("NodeName=n2 Arch=x86_64 {text}")).expect("a node")
    }

    #[test]
    fn state_reason_and_author_are_separated() {
        let node = read(
            "State=IDLE+DRAIN ThreadsPerCore=1 ExtSensorsTemp=n/s Reason=[harness] HRN-NIC-SLOW rdmap79s0: 50 % \
             of its peers, run 7 [root@2026-11-22T03:55:51]\n",
        );
        assert!(node.is_draining() && !node.is_idle() && !node.answers());
        assert_eq!(node.ours(), Some("[harness] HRN-NIC-SLOW rdmap79s0: 50 % of its peers, run 7"));
        assert_eq!(node.by.as_deref(), Some("root@2026-11-22T03:55:51"));
        let loud =
            read("State=IDLE+DRAIN Reason=a fan is loud, mail a@b [x] [ops@2026-11-22T03:55:51] Comment=c");
        assert_eq!(loud.reason.as_deref(), Some("a fan is loud, mail a@b [x]"));
        assert_eq!(loud.ours(), None);
        assert_eq!(loud.to_string(), "IDLE+DRAIN: a fan is loud, mail a@b [x] [ops@2026-11-22T03:55:51]");
    }

    #[test]
    fn an_author_with_a_domain_is_no_part_of_the_reason() {
        let by = "jo@corp.example.com@2026-11-22T03:55:51";
        let node = read(&format!("State=IDLE+DRAIN Reason=[harness] HRN-NODE-LOST node: x [{by}] Comment=c"));
        assert_eq!(node.ours(), Some("[harness] HRN-NODE-LOST node: x"));
        assert_eq!(node.by.as_deref(), Some(by));
        assert!(matches!(node.settled(), Some(Drained::Already { .. })));
    }

    #[test]
    fn a_reason_that_only_looks_like_ours_is_somebody_elses() {
        assert_eq!(read("State=IDLE+DRAIN Reason=[harnessed] x").ours(), None);
        assert_eq!(read("State=IDLE+DRAIN Reason=see [harness] x").ours(), None);
        assert_eq!(read("State=IDLE+DRAIN Reason=[harness]").ours(), Some("[harness]"));
        assert_eq!(read("State=IDLE Reason=").reason, None);
    }

    /// As `scontrol` of Slurm 24.11 and 25.05 shows healthy nodes of ParallelCluster and AWS PCS.
    #[test]
    fn what_the_cloud_left_at_a_node_in_service_is_no_reason() {
        for (reason, state) in [
            ("Maintain Minimum Number Of Instances [root@2024-07-02T18:59:00] InstanceId=i-1", "IDLE+CLOUD"),
            ("Node start up [root@2026-03-11T11:05:51] InstanceId=i-1", "IDLE+CLOUD"),
            ("Node start up [root@2026-03-11T11:05:51]", "MIXED+CLOUD"),
            ("Scheduler health check failed [root@2026-03-11T11:05:51]", "IDLE+CLOUD+POWERED_DOWN"),
        ] {
            let node = read(&format!("State={state} Reason={reason}"));
            assert_eq!((&node.reason, &node.by, node.settled()), (&None, &None, None), "{state} {reason}");
        }
        for (reason, state) in [
            ("Node start up", "IDLE+CLOUD+DRAIN"),
            ("Scheduler health check failed", "DOWN+CLOUD"),
            ("odd", "IDLE+CLOUD"),
        ] {
            let node = read(&format!("State={state} Reason={reason} [root@2026-03-11T11:05:51]"));
            assert_eq!(node.reason.as_deref(), Some(reason));
            assert!(matches!(node.settled(), Some(Drained::Others { .. })), "{state} {reason}");
        }
    }

    #[test]
    fn states_are_read_with_their_marks() {
        for (state, draining, idle, answers) in [
            ("IDLE", false, true, true),
            ("IDLE+CLOUD", false, true, true),
            // Nodes that register themselves, as in Kubernetes.
            ("IDLE+DYNAMIC_NORM", false, true, true),
            ("IDLE+DYNAMIC_NORM+DRAIN", true, false, false),
            ("IDLE+DYNAMIC_NORM+PLANNED", false, false, true),
            ("IDLE+CLOUD+POWERED_DOWN", false, false, true),
            ("IDLE~", false, false, true),
            ("IDLE+BLORP", false, false, true),
            ("Ready", false, true, true),
            ("Ready,SchedulingDisabled", true, false, true),
            ("IDLE*", false, false, false),
            ("MIXED+DRAIN", true, false, false),
            ("DOWN*+DRAIN", true, false, false),
            ("DOWN", false, false, false),
            ("IDLE+NOT_RESPONDING", false, false, false),
            ("IDLE+INVALID_REG", false, false, false),
            ("IDLE*+CLOUD+POWER", false, false, false),
            ("IDLE+CLOUD+POWER", false, false, true),
            ("IDLE+RESERVED", false, false, true),
            ("ALLOCATED", false, false, true),
        ] {
            let node = read(&format!("State={state} Weight=1"));
            assert_eq!(
                (node.is_draining(), node.is_idle(), node.answers()),
                (draining, idle, answers),
                "{state}"
            );
        }
        assert!(NodeState::read("Node n9 not found").is_err());
    }
}
