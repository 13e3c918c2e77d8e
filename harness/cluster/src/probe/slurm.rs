//! One command on one node under Slurm: the states of nodes that it reports, and one short job on each.

use super::fitness::NO_MACHINE;
use super::on_node::{NodeJob, NodeState, OnNode};
use crate::reach::slurm_gres::gpus;
use crate::reach::slurm_state::{StateSet, refused_instance};
use crate::reach::{Command, Host, Reach, Wait};
use config::inventory::SlurmReach;
use std::collections::BTreeMap;
use std::time::Duration;

const QUERY_LIMIT: Duration = Duration::from_secs(60);
/// A node on which no job starts within this time is in use: it is not waited for.
const IMMEDIATE_S: u32 = 30;
const MINUTES: u32 = 3;

impl OnNode for SlurmReach {
    /// Where Slurm reports none, the nodes are asked themselves.
    fn states<'a>(&'a self, reach: &'a dyn Reach) -> Wait<'a, BTreeMap<String, NodeState>> {
        Box::pin(async { states(reach).await.unwrap_or_default() })
    }

    fn minutes<'a>(&'a self, reach: &'a dyn Reach) -> Wait<'a, u32> {
        Box::pin(minutes(reach, self))
    }

    fn command(&self, node: &str, argv: Vec<String>, job: &NodeJob<'_>) -> (Host, Vec<String>) {
        (Host::Here, srun(self, (job.gpus, job.minutes), job.name, node, &argv))
    }

    fn limit(&self, boots: bool) -> Option<Duration> {
        Some(limit(boots))
    }

    /// By their name, which is theirs alone. Their limit ends them where even this gets no answer.
    fn end<'a>(&'a self, reach: &'a dyn Reach, name: &'a str) -> Wait<'a, ()> {
        Box::pin(async move {
            let argv = ["scancel".to_owned(), format!("--name={name}")];
            let _ = reach.exec(&Host::Here, &Command::new(argv, QUERY_LIMIT)).await;
        })
    }
}

/// By node. A query that fails says nothing about any of them.
async fn states(reach: &dyn Reach) -> Result<BTreeMap<String, NodeState>, String> {
    let argv = ["sinfo", "--noheader", "--Node", "--all", "--format=%N|%T|%G|%E"];
    let answer = reach.exec(&Host::Here, &Command::new(argv, QUERY_LIMIT)).await;
    let answer = answer.map_err(|error| error.to_string())?;
    if !answer.succeeded() {
        return Err(format!("`sinfo` ended with {}: {}", answer.status, answer.complaint()));
    }
    Ok(read_states(&answer.stdout_text()))
}

fn read_states(text: &str) -> BTreeMap<String, NodeState> {
    let mut states: BTreeMap<String, NodeState> = BTreeMap::new();
    for line in text.lines() {
        // A reason may hold anything, the separator too.
        let mut fields = line.splitn(4, '|').map(str::trim);
        let (Some(node), Some(state)) = (fields.next(), fields.next()) else { continue };
        let gres_gpus = fields.next().filter(|gres| !gres.is_empty()).map(|gres| gpus(gres).unwrap_or(0));
        let reason = fields.next().unwrap_or_default();
        let unusable = is_barred(state).then(|| match (reason, refused_instance(reason)) {
            ("" | "none", _) => format!("Slurm reports it as {state}"),
            (_, Some(code)) => {
                format!("{NO_MACHINE}EC2 gave no instance ({code}); Slurm reports it as {state}")
            }
            (reason, None) => format!("Slurm reports it as {state}: {reason}"),
        });
        // A node is listed once for each of its partitions, and is the same in all.
        let boots = StateSet::parse(state).boots();
        let state = NodeState { state: state.to_owned(), unusable, boots, gres_gpus };
        states.entry(node.to_owned()).or_insert(state);
    }
    states
}

/// How many minutes a node's job may ask for: no more than its partition allows, or Slurm never starts it. Where Slurm
/// does not say how many that are, as many as are wanted.
async fn minutes(reach: &dyn Reach, slurm: &SlurmReach) -> u32 {
    let argv = ["sinfo", "--noheader", "--all", "--format=%P|%l"];
    let answer = reach.exec(&Host::Here, &Command::new(argv, QUERY_LIMIT)).await;
    let text = answer.ok().filter(|answer| answer.succeeded()).map(|answer| answer.stdout_text());
    let most = text.and_then(|text| most_minutes(&text, slurm.partition.as_deref()));
    most.map_or(MINUTES, |most| MINUTES.min(most))
}

/// The least of what these partitions allow, or of what the default one does. A job asks for a minute at least.
fn most_minutes(text: &str, named: Option<&str>) -> Option<u32> {
    let lines = text.lines().filter_map(|line| line.trim().rsplit_once('|'));
    let meant = lines.filter(|(partition, _)| match named {
        Some(names) => names.split(',').any(|name| name.trim() == partition.trim_end_matches('*')),
        None => partition.ends_with('*'),
    });
    meant.filter_map(|(_, limit)| whole_minutes(limit)).min()
}

/// `1-00:00:00`, `2:00:00` or `1:00`; nothing for `infinite`, and for what is no span.
fn whole_minutes(limit: &str) -> Option<u32> {
    let (days, clock) = match limit.split_once('-') {
        Some((days, clock)) => (days.parse::<u64>().ok()?, clock),
        None => (0, limit),
    };
    let parts: Option<Vec<u64>> = clock.split(':').map(|part| part.parse().ok()).collect();
    let seconds = match *parts? {
        [minutes, seconds] => minutes.checked_mul(60)?.checked_add(seconds)?,
        [hours, minutes, seconds] => {
            hours.checked_mul(3600)?.checked_add(minutes.checked_mul(60)?)?.checked_add(seconds)?
        }
        _ => return None,
    };
    let minutes = days.checked_mul(1440)?.checked_add(seconds / 60)?;
    Some(u32::try_from(minutes).unwrap_or(u32::MAX).max(1))
}

/// The argument list that runs another on one node, as a job of its own.
fn srun(
    slurm: &SlurmReach,
    (gpus, minutes): (u32, u32),
    job: &str,
    node: &str,
    argv: &[String],
) -> Vec<String> {
    let mut words = vec![
        "srun".to_owned(),
        "--quiet".to_owned(),
        "--nodes=1".to_owned(),
        "--ntasks=1".to_owned(),
        format!("--nodelist={node}"),
        format!("--job-name={job}"),
        format!("--time={minutes}"),
        format!("--immediate={IMMEDIATE_S}"),
        "--cpu-bind=none".to_owned(),
        "--mpi=none".to_owned(),
        "--input=none".to_owned(),
        // Whether the folder of the harness is there on the node is no part of the question.
        "--chdir=/".to_owned(),
    ];
    // A job sees no GPU that it does not ask for, where Slurm knows of GPUs.
    words.extend(slurm.options(gpus));
    words.extend(slurm.srun.iter().cloned());
    words.extend(argv.iter().cloned());
    words
}

/// The node and what runs there, where a list is one of `srun`'s.
pub fn read_srun<'a>(argv: &'a [&'a str]) -> Option<(&'a str, &'a [&'a str])> {
    let (first, rest) = argv.split_first()?;
    let at = rest.iter().position(|word| !word.starts_with("--"))?;
    let (options, inner) = rest.split_at(at);
    let node = options.iter().find_map(|word| word.strip_prefix("--nodelist="))?;
    (*first == "srun").then_some((node, inner))
}

/// How long one node's job is waited for: its time in the queue, its limit, and Slurm's own; and the boot of a node
/// that is powered down, which ParallelCluster gives half an hour.
fn limit(boots: bool) -> Duration {
    let boot_s = if boots { 1800 } else { 0 };
    Duration::from_secs(u64::from(IMMEDIATE_S) + u64::from(MINUTES) * 60 + 60 + boot_s)
}

/// Whether Slurm starts nothing on a node in that state, in its long or its short words, until somebody mends it.
pub(super) fn is_barred(state: &str) -> bool {
    const WORDS: [&str; 8] =
        ["drain", "drained", "draining", "failing", "unknown", "invalid_reg", "external", "future"];
    let set = StateSet::parse(state);
    set.is_lost() || WORDS.iter().any(|word| set.has(word))
}

#[cfg(test)]
mod tests {
    use super::*;
    use job::script::GpuRequest;

    #[test]
    fn nodes_that_slurm_bars_are_reported_with_its_reason() {
        let text = "n1|idle|gpu:8|none\nn2|drained|gpu:8|bad|NIC\nn2|drained|gpu:8|bad|NIC\n\
                    n3|down*|gpu:8|Not responding\nn4|mixed|gpu:8|none\nn5|idle*|gpu:8|none\n\
                    n6|reserved|gpu:8|maintenance\nn7|IDLE+DRAIN|gpu:8|x\nn8|draining@|gpu:8|y\n\nodd\n";
        let states = read_states(text);
        let why = |node: &str| states[node].unusable.as_deref();
        assert_eq!(why("n1"), None);
        assert_eq!(why("n2"), Some("Slurm reports it as drained: bad|NIC"));
        assert_eq!(why("n3"), Some("Slurm reports it as down*: Not responding"));
        assert_eq!((why("n4"), why("n6")), (None, None));
        assert_eq!(why("n5"), Some("Slurm reports it as idle*"));
        assert!(why("n7").is_some() && why("n8").is_some());
        for state in ["inval", "IDLE+INVALID_REG", "external", "unk*", "failg", "futr", "error"] {
            assert!(is_barred(state), "{state}");
        }
        for state in ["idle~", "mixed#", "reboot^", "blocked", "plnd", "allocated+", "blorp"] {
            assert!(!is_barred(state), "{state}");
        }
        let text = "n1|down~|(null)|(Code:InsufficientInstanceCapacity)Temporarily disabling node due to insufficient capacity.\n\
                    n2|idle|(null)|(Code:InsufficientInstanceCapacity)Failure when resuming nodes\n";
        let states = read_states(text);
        let absent =
            "no machine: EC2 gave no instance (InsufficientInstanceCapacity); Slurm reports it as down~";
        assert_eq!(states["n1"].unusable.as_deref(), Some(absent));
        assert_eq!(states["n2"].unusable, None);
    }

    #[test]
    fn a_gres_that_names_no_gpu_is_0_and_one_that_is_not_reported_is_unknown() {
        let text = "n1|idle|gpu:h100:8(S:0-1)|none\nn2|idle|(null)|none\nn3|idle|nvme:2|none\nn4|idle||none\nn5|idle\n";
        let states = read_states(text);
        let gpus = ["n1", "n2", "n3", "n4", "n5"].map(|node| states[node].gres_gpus);
        assert_eq!(gpus, [Some(8), Some(0), Some(0), None, None]);
    }

    #[test]
    fn a_probe_asks_for_no_more_time_than_its_partition_allows() {
        let text = "short|1:00\ngpu*|2:00:00\nlong|infinite\nodd|n/a\ndays|1-00:00:00\nbrief|0:30\n";
        for (named, most) in [
            (None, Some(120)),
            (Some("short"), Some(1)),
            (Some("gpu,short"), Some(1)),
            (Some("long"), None),
            (Some("days"), Some(1440)),
            (Some("brief"), Some(1)),
            (Some("odd"), None),
            (Some("gone"), None),
        ] {
            assert_eq!(most_minutes(text, named), most, "{named:?}");
        }
        assert_eq!(most_minutes("gpu*|99999999999999999999:00\n", None), None);
    }

    #[test]
    fn srun_arguments_can_be_read_back() {
        let slurm = SlurmReach {
            partition: Some("gpu".into()),
            qos: Some("high".into()),
            mem: Some("0".into()),
            srun: vec!["--comment=a b".into()],
            exclusive: true,
            ..SlurmReach::default()
        };
        let argv = srun(&slurm, (8, 1), "j", "n1", &["bash".into(), "-c".into(), "--x".into()]);
        let words: Vec<&str> = argv.iter().map(String::as_str).collect();
        for word in [
            "--time=1",
            "--partition=gpu",
            "--qos=high",
            "--mem=0",
            "--gres=gpu:8",
            "--exclusive",
            "--comment=a b",
        ] {
            assert!(words.contains(&word), "{word}: {words:?}");
        }
        assert_eq!(read_srun(&words), Some(("n1", ["bash", "-c", "--x"].as_slice())));
        assert_eq!(read_srun(&["sbatch", "x"]), None);
        for (gpus, asked) in [
            (Some(GpuRequest::GpusPerNode), vec!["--gpus-per-node=8".to_owned()]),
            (Some(GpuRequest::None), vec![]),
        ] {
            let argv = srun(&SlurmReach { gpus, ..slurm.clone() }, (8, 3), "j", "n1", &[]);
            let of_gpus = argv.into_iter().filter(|word| word.contains("gpu") && !word.contains("partition"));
            assert_eq!(of_gpus.collect::<Vec<_>>(), asked);
        }
    }
}
