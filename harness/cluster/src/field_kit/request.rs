//! What is asked: the commands on the machine where Slurm's are, and the script on a node with its arguments.

use base::nodeset;
use base::redact::{Reference, reference};
use config::inventory::{Inventory, SlurmReach};
use job::script::{self, AWS_MPIRUN, GpuRequest};
use plan::fsdp_script;
use std::collections::BTreeMap;

/// By name; none of them changes anything.
pub(super) const CLUSTER_COMMANDS: [(&str, &[&str]); 6] = [
    ("nodes", &["sinfo", "--noheader", "--Node", "--all", "--format=%N|%t|%P|%f"]),
    ("partitions", &["sinfo", "--noheader", "--all", "--format=%P|%G|%f|%t|%D"]),
    ("version", &["sbatch", "--version"]),
    ("config", &["scontrol", "show", "config"]),
    ("mpi", &["srun", "--mpi=list"]),
    ("srun_help", &["srun", "--help"]),
];

/// Options of srun by which the steps of jobs share what these have, in containers or not; `--cpu-bind` is in no help where
/// no plugin binds tasks.
pub(super) fn srun_options(gpus: GpuRequest) -> Vec<&'static str> {
    let beside = script::options_beside(gpus).into_iter();
    let names = beside.map(|option| option.split('=').next().unwrap_or_default());
    ["--nodes", "--ntasks-per-node", "--distribution", "--mpi"].into_iter().chain(names).collect()
}

/// Has Slurm say whether it would take a job on these nodes with all that the inventory asks for; none is submitted.
pub(super) fn test_only(slurm: &SlurmReach, gpus: u32, nodes: &[String]) -> Vec<String> {
    let mut words: Vec<String> = [
        "sbatch",
        "--test-only",
        "--parsable",
        "--chdir=/",
        "--output=/dev/null",
        "--time=15",
        "--no-requeue",
    ]
    .map(str::to_owned)
    .into();
    words.push(format!("--nodes={}", nodes.len()));
    words.push(format!("--nodelist={}", nodeset::fold(nodes)));
    words.push(format!("--ntasks-per-node={gpus}"));
    words.extend(slurm.options(gpus));
    words.extend(slurm.sbatch.iter().cloned());
    words.push("--wrap=true".to_owned());
    words
}

/// What of `scontrol show config` matters; the rest may name people and hosts.
pub(super) const CONFIG_KEYS: [&str; 26] = [
    "AccountingStorageEnforce",
    "AccountingStorageType",
    "BatchStartTimeout",
    "CliFilterPlugins",
    "EnforcePartLimits",
    "Epilog",
    "GresTypes",
    "JobSubmitPlugins",
    "KillWait",
    "LaunchParameters",
    "MaxArraySize",
    "MaxJobCount",
    "MessageTimeout",
    "MinJobAge",
    "MpiDefault",
    "PreemptMode",
    "Prolog",
    "PrologFlags",
    "PrologSlurmctld",
    "ProctrackType",
    "ResumeTimeout",
    "SelectType",
    "SelectTypeParameters",
    "SLURM_VERSION",
    "SuspendTime",
    "TaskPlugin",
];

/// The script's arguments on one node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodeRequest {
    /// By its name in the inventory.
    pub node: String,
    /// `paths.counters`: the folder of the NICs, with `{host}` for the node.
    pub counters: String,
    /// `paths.nccl_tests`: the folder of their programs.
    pub nccl_tests: String,
    /// `paths.mpirun`, or else where AWS's installer puts it.
    pub mpirun: String,
    /// A node to reach from there by ssh.
    pub peer: Option<String>,
    /// Path of the FSDP sample's script.
    pub fsdp: String,
    /// What the inventory sets for jobs, without secrets.
    pub environment: BTreeMap<String, String>,
}

const SCRIPT: &str = include_str!("node.sh");
const NAME: &str = "field-kit.sh";
const NO_PEER: &str = "-";

impl NodeRequest {
    /// `peer` is reached from `node` by ssh, if given.
    pub(crate) fn new(inventory: &Inventory, node: &str, peer: Option<&str>) -> NodeRequest {
        let paths = &inventory.paths;
        NodeRequest {
            node: node.to_owned(),
            counters: paths.counters.clone(),
            nccl_tests: paths.nccl_tests.clone(),
            mpirun: paths.mpirun.clone().unwrap_or_else(|| AWS_MPIRUN.to_owned()),
            peer: peer.map(str::to_owned),
            fsdp: fsdp_script(inventory),
            // A command line is no place for secrets.
            environment: inventory
                .environment
                .iter()
                .filter(|(_, value)| matches!(reference(value), Reference::None))
                .map(|(name, value)| (name.clone(), value.clone()))
                .collect(),
        }
    }

    /// `bash -c` with the script's text and its arguments.
    pub(crate) fn argv(&self) -> Vec<String> {
        let peer = self.peer.as_deref().unwrap_or(NO_PEER);
        let words = ["bash", "-c", SCRIPT, NAME, &self.node, &self.counters, &self.nccl_tests, &self.mpirun];
        let words = words.into_iter().chain([peer, &self.fsdp]).map(str::to_owned);
        words.chain(self.environment.iter().map(|(name, value)| format!("{name}={value}"))).collect()
    }

    /// The request that an argument list makes, by the very script; nothing where it is any other.
    pub fn read<S: AsRef<str>>(argv: &[S]) -> Option<NodeRequest> {
        let words: Vec<&str> = argv.iter().map(AsRef::as_ref).collect();
        let ["bash", "-c", SCRIPT, NAME, node, counters, nccl_tests, mpirun, peer, fsdp, set @ ..] =
            words.as_slice()
        else {
            return None;
        };
        let word = |word: &str| word.to_owned();
        Some(NodeRequest {
            node: word(node),
            counters: word(counters),
            nccl_tests: word(nccl_tests),
            mpirun: word(mpirun),
            peer: (*peer != NO_PEER).then(|| word(peer)),
            fsdp: word(fsdp),
            environment: set
                .iter()
                .map(|pair| pair.split_once('=').map(|(name, value)| (word(name), word(value))))
                .collect::<Option<_>>()?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use job::script::{Directives, Run, Sampler, Script, Start, Step};
    use std::collections::BTreeSet;

    #[test]
    fn srun_is_asked_for_each_option_that_the_steps_of_a_job_are_given() {
        let sampler = Sampler { root: "/sys".into(), interval_s: 2.0, limit_s: 60, watched: true };
        let (mpi, argv) = (Some("pmix".to_owned()), vec!["true".to_owned()]);
        let program = Run { argv, tasks_per_node: 8, mpi, container: None, profile: None };
        for gpus in [GpuRequest::Gres, GpuRequest::GpusPerNode, GpuRequest::None] {
            let directives = Directives {
                job_name: "j".into(),
                folder: "/f".into(),
                tasks_per_node: 8,
                gpus_per_node: gpus.count(8),
                minutes: 5,
                exclusive: true,
                stands_alone: true,
                partition: None,
                account: None,
                reservation: None,
                constraint: None,
                gpus,
                qos: None,
                mem: None,
                sbatch: Vec::new(),
                srun: Vec::new(),
                records_environment: true,
            };
            let steps =
                vec![Step::CountersBegin(sampler.clone()), Step::Run(program.clone()), Step::CountersEnd];
            let script =
                Script { start: Start::Slurm(directives), nodes: vec!["n1".into(), "n2".into()], steps };
            let text = script::render(&script);
            let words = text.lines().filter(|line| line.starts_with("srun ")).flat_map(str::split_whitespace);
            let options = words.filter(|word| word.starts_with("--") && !word.starts_with("--cpu-bind="));
            let names: BTreeSet<&str> = options.filter_map(|option| option.split('=').next()).collect();
            assert_eq!(srun_options(gpus).into_iter().collect::<BTreeSet<_>>(), names, "{text}");
        }
    }

    #[test]
    fn an_argument_list_is_read_back_and_any_other_is_not() {
        let mut request = NodeRequest {
            node: "p5-001".into(),
            counters: "/sys/{host}".into(),
            nccl_tests: "/opt/two words".into(),
            mpirun: AWS_MPIRUN.into(),
            peer: Some("p5-002".into()),
            fsdp: "/fsdp/train.py".into(),
            environment: BTreeMap::from([("NCCL_SOCKET_IFNAME".into(), "^docker,lo".into())]),
        };
        assert_eq!(NodeRequest::read(&request.argv()).as_ref(), Some(&request));
        request.peer = None;
        let mut argv = request.argv();
        assert_eq!(NodeRequest::read(&argv), Some(request));
        argv[2].push_str("rm -rf /\n");
        assert_eq!(NodeRequest::read(&argv), None);
    }
}
