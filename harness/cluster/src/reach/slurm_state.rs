//! The names that Slurm uses for the states of jobs and nodes, and for why jobs wait. Compound states are sets, not
//! strings to compare.

use std::collections::BTreeSet;

/// The state of a job, long or compact form, with whatever trails it (`CANCELLED by 1000`, `CANCELLED+`).
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum JobState {
    /// In the queue, for the first time or again, or held.
    Pending,
    /// Its nodes are its own, and boot or run a prolog: nothing of it runs yet.
    Configuring,
    /// On its nodes.
    Running,
    /// Its script has ended, and its last processes or an epilog hold its nodes.
    Completing,
    /// On its nodes, with all of its processes stopped: by preemption, time slices or an administrator.
    Suspended,
    /// Withdrawn here, for another cluster of the federation runs it.
    Revoked,
    /// Ended with exit code 0.
    Completed,
    /// Ended with another exit code, or failed otherwise.
    Failed,
    /// Ended at its time limit.
    Timeout,
    /// Ended since it could not meet its deadline.
    Deadline,
    /// Ended by a user or an administrator.
    Cancelled,
    /// Ended in favour of another job.
    Preempted,
    /// Ended since a node failed.
    NodeFail,
    /// Ended since nodes did not boot, or its launch failed.
    BootFail,
    /// Ended since it used too much memory.
    OutOfMemory,
    /// A word that this version does not know: treated as no answer, never as an end.
    Unknown(String),
}

impl JobState {
    /// Reads what squeue, scontrol or sacct prints.
    pub fn parse(text: &str) -> JobState {
        let text = text.trim();
        let word = text.split([' ', '+', ',']).next().unwrap_or_default();
        match word.to_ascii_uppercase().as_str() {
            "PENDING" | "PD" | "REQUEUED" | "RQ" | "REQUEUE_HOLD" | "RH" | "REQUEUE_FED" | "RF"
            | "SPECIAL_EXIT" | "SE" | "RESV_DEL_HOLD" | "RD" => JobState::Pending,
            "REVOKED" | "RV" => JobState::Revoked,
            "CONFIGURING" | "CF" | "POWER_UP_NODE" => JobState::Configuring,
            "COMPLETING" | "CG" => JobState::Completing,
            "RUNNING" | "R" | "SIGNALING" | "SI" | "STAGE_OUT" | "SO" | "RESIZING" | "RS" | "EXPEDITING" => {
                JobState::Running
            }
            "SUSPENDED" | "S" | "STOPPED" | "ST" => JobState::Suspended,
            "COMPLETED" | "CD" => JobState::Completed,
            "FAILED" | "F" => JobState::Failed,
            "TIMEOUT" | "TO" => JobState::Timeout,
            "DEADLINE" | "DL" => JobState::Deadline,
            "CANCELLED" | "CA" => JobState::Cancelled,
            "PREEMPTED" | "PR" => JobState::Preempted,
            "NODE_FAIL" | "NF" => JobState::NodeFail,
            "BOOT_FAIL" | "BF" | "LAUNCH_FAILED" | "RECONFIG_FAIL" => JobState::BootFail,
            "OUT_OF_MEMORY" | "OOM" => JobState::OutOfMemory,
            _ => JobState::Unknown(text.to_owned()),
        }
    }

    /// False also for a state that is not known.
    pub(crate) fn has_ended(&self) -> bool {
        use JobState::{Completing, Configuring, Pending, Revoked, Running, Suspended, Unknown};
        !matches!(self, Pending | Configuring | Running | Completing | Suspended | Revoked | Unknown(_))
    }
}

/// Reasons that no waiting clears: the request itself cannot be met, or somebody holds the job.
pub(crate) fn never_clears(reason: &str) -> bool {
    let word = reason.trim_start_matches('(').split([',', ')', ' ']).next().unwrap_or_default();
    // Limits for each job stand whatever else runs; those for all jobs of somebody clear when others of them end.
    let is_limit_of_job = word.starts_with("QOSMin")
        || (["Assoc", "QOS"].iter().any(|of| word.starts_with(of))
            && ["PerJob", "PerJobLimit", "PerNode"].iter().any(|end| word.ends_with(end)));
    // `launch failed requeued held`, and others of the kind.
    let is_held = reason.replace('_', " ").contains("requeued held");
    is_limit_of_job || is_held || NEVER.contains(&word)
}

const NEVER: [&str; 18] = [
    // Until somebody brings it up again, which may be days.
    "PartitionDown",
    "PartitionInactive",
    "PartitionNodeLimit",
    "PartitionTimeLimit",
    "MaxMemPerLimit",
    "BadConstraints",
    "InvalidAccount",
    "InvalidQOS",
    "AccountNotAllowed",
    "QOSNotAllowed",
    "QOSTimeLimit",
    "DependencyNeverSatisfied",
    "ReservationDeleted",
    "ReservationInvalid",
    "JobHeldAdmin",
    "JobHeldUser",
    "JobHoldMaxRequeue",
    "JobLaunchFailure",
];

/// The state of a node: a base state and flags, as `IDLE+MAINTENANCE+RESERVED`, `drain*`, `mixed#-`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StateSet {
    /// State and flags in Slurm's long names and lower case: `idle`, `maint`.
    pub words: BTreeSet<String>,
    /// Words that this version does not know.
    pub unknown: BTreeSet<String>,
}

impl StateSet {
    /// Reads what sinfo or scontrol prints for a node.
    pub fn parse(text: &str) -> StateSet {
        let mut words = BTreeSet::new();
        let mut unknown = BTreeSet::new();
        for part in text.trim().split(['+', ',']).map(str::trim).filter(|part| !part.is_empty()) {
            // Trailing marks are flags of their own; more than one may follow a state.
            let name = part.trim_end_matches(|c: char| MARKS.iter().any(|(mark, _)| *mark == c));
            for mark in part[name.len()..].chars() {
                words.extend(
                    MARKS.iter().filter(|(known, _)| *known == mark).map(|(_, flag)| (*flag).to_owned()),
                );
            }
            let name = name.to_ascii_lowercase();
            match NAMES.iter().find(|names| names.contains(&name.as_str())) {
                Some(names) => words.insert(names[0].to_owned()),
                None if name.is_empty() => false,
                None => unknown.insert(name),
            };
        }
        // A node that boots has not answered yet.
        if words.contains("powering_up") {
            words.remove("not_responding");
        }
        StateSet { words, unknown }
    }

    /// `word` as in `words`: `not_responding`.
    pub(crate) fn has(&self, word: &str) -> bool {
        self.words.contains(word)
    }

    /// Slurm itself has given the node up, or cannot reach it.
    pub(crate) fn is_lost(&self) -> bool {
        ["down", "not_responding", "fail", "error"].iter().any(|word| self.has(word))
    }

    /// Up, and nothing runs on it or is planned for it.
    pub(crate) fn is_idle(&self) -> bool {
        let is_harmless = |word: &String| IDLE.contains(&word.as_str());
        self.has("idle") && self.unknown.is_empty() && self.words.iter().all(is_harmless)
    }

    /// Power saving has put it down, or will: Slurm boots it for a job.
    pub(crate) fn boots(&self) -> bool {
        ["power_down", "powered_down", "powering_down", "powering_up"].iter().any(|word| self.has(word))
    }

    /// A job would be let onto it: up, or booted for it, and neither drained nor set aside.
    pub(crate) fn takes_jobs(&self) -> bool {
        !self.words.is_empty()
            && self.unknown.is_empty()
            && !self.is_lost()
            && !BARRED.iter().any(|word| self.has(word))
    }
}

/// Reasons that the daemons of ParallelCluster and AWS PCS give with a node's power state, which newer Slurm goes on
/// showing at healthy nodes in service.
pub(crate) const CLOUD_REASONS: [&str; 4] =
    ["Maintain Minimum Number Of Instances", "Node start up", "Scheduler health check failed", NO_INSTANCE];

/// As in `(Code:InsufficientInstanceCapacity)Failure when resuming nodes`.
const NO_INSTANCE: &str = "(Code:";

/// Why EC2 gave no instance for a node, where that is the node's reason: no machine is behind its name.
pub(crate) fn refused_instance(reason: &str) -> Option<String> {
    let code = reason.strip_prefix(NO_INSTANCE)?.split(')').next().unwrap_or_default();
    Some(code.chars().filter(char::is_ascii_alphanumeric).take(60).collect())
}

/// Words of a node on which no job starts before they are gone, beside those of one that is lost.
const BARRED: [&str; 16] = [
    "drain",
    "drained",
    "draining",
    "power_drain",
    "failing",
    "maint",
    "reserved",
    "planned",
    "blocked",
    "reboot_requested",
    "reboot_issued",
    "invalid_reg",
    // Its jobs run outside Slurm.
    "external",
    "future",
    "perfctrs",
    "unknown",
];

/// Words of a node that a job can start on at once: beside its state, how it came to be one.
const IDLE: [&str; 7] =
    ["idle", "cloud", "dynamic_norm", "dynamic_future", "resume", "undrain", "reboot_canceled"];

const MARKS: [(char, &str); 9] = [
    ('*', "not_responding"),
    ('~', "powered_down"),
    ('#', "powering_up"),
    ('!', "powering_down"),
    ('%', "powering_down"),
    ('$', "maint"),
    ('@', "reboot_requested"),
    ('^', "reboot_issued"),
    ('-', "planned"),
];

/// The long name first, then the other ways to write it: in short, in JSON, and by releases before 21.08.
const NAMES: &[&[&str]] = &[
    &["idle"],
    &["allocated", "alloc"],
    &["mixed", "mix"],
    &["completing", "comp"],
    &["down"],
    &["drain"],
    &["drained"],
    &["draining", "drng"],
    &["fail"],
    &["failing", "failg"],
    &["error"],
    &["future", "futr"],
    &["maint", "maintenance"],
    &["reserved", "resv"],
    &["planned", "plnd"],
    &["perfctrs", "npc"],
    &["reboot_requested", "reboot", "boot"],
    &["reboot_issued"],
    &["reboot_canceled", "cancel_reboot", "canc_r"],
    &["power_down", "pow_dn"],
    &["power_drain"],
    &["powered_down", "powered_dn", "power", "power_save"],
    &["powering_down", "powring_dn"],
    &["powering_up", "pow_up", "power_up"],
    &["not_responding", "no_respond"],
    &["cloud"],
    &["dynamic_norm"],
    &["dynamic_future"],
    &["invalid_reg", "inval"],
    &["blocked", "block"],
    &["external", "ext"],
    &["resume", "resm"],
    &["undrain"],
    &["unknown", "unk", "invalid"],
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn job_states_are_read_in_long_and_short_form_and_with_what_trails_them() {
        let table = [
            ("PENDING", JobState::Pending),
            ("PD", JobState::Pending),
            ("CONFIGURING", JobState::Configuring),
            ("CF", JobState::Configuring),
            ("COMPLETING", JobState::Completing),
            ("SUSPENDED", JobState::Suspended),
            ("ST", JobState::Suspended),
            ("COMPLETED", JobState::Completed),
            ("CANCELLED by 1000", JobState::Cancelled),
            ("CANCELLED+", JobState::Cancelled),
            ("NODE_FAIL", JobState::NodeFail),
            ("OUT_OF_MEMORY", JobState::OutOfMemory),
            ("STAGE_OUT", JobState::Running),
            ("SIGNALING", JobState::Running),
            ("EXPEDITING", JobState::Running),
            ("REQUEUE_FED", JobState::Pending),
            ("RESV_DEL_HOLD", JobState::Pending),
            ("REVOKED", JobState::Revoked),
            ("DEADLINE", JobState::Deadline),
            ("PENDING,REQUEUED", JobState::Pending),
        ];
        for (text, state) in table {
            assert_eq!(JobState::parse(text), state, "{text}");
        }
    }

    #[test]
    fn an_unknown_state_is_not_an_end() {
        for text in ["", "BLORP", "  ", "N/A", "(null)", "None assigned", "None", "Unknown", "?"] {
            assert!(!JobState::parse(text).has_ended(), "{text}");
            assert!(matches!(JobState::parse(text), JobState::Unknown(_)), "{text}");
        }
    }

    #[test]
    fn a_compound_node_state_is_a_set() {
        let set = StateSet::parse("IDLE+MAINTENANCE+RESERVED");
        assert!(set.has("idle") && set.has("maint") && set.has("reserved") && set.unknown.is_empty());
        assert!(!set.takes_jobs());
        let set = StateSet::parse("drain*");
        assert!(set.has("drain") && set.is_lost() && !set.takes_jobs());
        assert!(StateSet::parse("idle").takes_jobs());
        // Power saving: Slurm boots them.
        assert!(
            StateSet::parse("idle~").takes_jobs() && StateSet::parse("IDLE+CLOUD+POWERING_DOWN").takes_jobs()
        );
        assert!(!StateSet::parse("down~").takes_jobs());
        // As the text has them, and as the JSON of the same nodes does: marked to be put down, and booting.
        for state in
            ["idle~", "IDLE+CLOUD+POWER_DOWN+POWERED_DOWN", "idle#", "IDLE+CLOUD+NOT_RESPONDING+POWERING_UP"]
        {
            let set = StateSet::parse(state);
            assert!(set.takes_jobs() && set.boots() && !set.is_idle(), "{state}: {set:?}");
        }
        let set = StateSet::parse("IDLE+CLOUD+POWERED_DOWN+NOT_RESPONDING");
        assert!(!set.takes_jobs() && set.is_lost());
        assert!(StateSet::parse("mix-").has("planned"));
        assert!(!StateSet::parse("reboot^").takes_jobs() && !StateSet::parse("idle@").takes_jobs());
        assert!(!StateSet::parse("").takes_jobs());
        assert!(!StateSet::parse("idle+blorp").takes_jobs());
    }

    /// As `scontrol` of 20.11 prints them, which has marks and flags side by side, and that of 21.08 and later.
    #[test]
    fn states_of_all_releases_are_known() {
        for (old, new) in [
            ("IDLE+CLOUD+POWER", "IDLE+CLOUD+POWERED_DOWN"),
            ("MIXED#+CLOUD", "MIXED+CLOUD+NOT_RESPONDING+POWERING_UP"),
            ("DOWN*+CLOUD+POWER", "DOWN+CLOUD+POWERED_DOWN+NOT_RESPONDING"),
            ("IDLE%+CLOUD", "IDLE+CLOUD+POWERING_DOWN"),
            ("IDLE*+DRAIN", "IDLE+DRAIN+NOT_RESPONDING"),
            ("REBOOT*", "REBOOT_REQUESTED+NOT_RESPONDING"),
        ] {
            assert_eq!(StateSet::parse(old), StateSet::parse(new), "{old}");
        }
        let flags = "BLOCKED CLOUD COMPLETING DRAIN DYNAMIC_FUTURE DYNAMIC_NORM EXTERNAL INVALID_REG FAIL MAINTENANCE                      POWER_DOWN POWER_UP POWER_DRAIN POWERED_DOWN REBOOT_REQUESTED REBOOT_ISSUED REBOOT_CANCELED RESERVED                      RESUME NOT_RESPONDING PLANNED POWERING_UP POWERING_DOWN UNDRAIN";
        let short = "INVAL MAINT* BOOT^ BOOT DRNG@ DRAIN! FAILG* CANC_R EXT POW_DN POW_UP POWRING_DN POWERED_DN DOWN$                      ALLOC+ COMP# IDLE% RESV BLOCK PLND MIX- FUTR~ RESM UNK*";
        for word in flags.split_whitespace().chain(short.split_whitespace()) {
            let set = StateSet::parse(word);
            assert!(set.unknown.is_empty() && !set.words.is_empty(), "{word}: {set:?}");
        }
    }

    #[test]
    fn flags_on_which_no_job_starts_are_distinguished_from_those_of_a_node_in_service() {
        for state in [
            "IDLE+BLOCKED",
            "IDLE+INVALID_REG",
            "IDLE+EXTERNAL",
            "MIXED+POWER_DRAIN",
            "IDLE+REBOOT_ISSUED",
            "ALLOCATED+REBOOT_REQUESTED",
            "IDLE+?",
            "INVALID",
        ] {
            assert!(!StateSet::parse(state).takes_jobs(), "{state}");
        }
        for state in ["IDLE+DYNAMIC_NORM", "IDLE+CLOUD+REBOOT_CANCELED", "IDLE+RESUME"] {
            let set = StateSet::parse(state);
            assert!(set.takes_jobs() && set.is_idle(), "{state}");
        }
    }
}
