//! What sbatch and srun refuse, and which key of the inventory helps; and which failure is a controller that is away.

/// Parts of what they print, and the step that follows. What says more stands first: sbatch prints several lines.
const NEXT: &[(&str, &str)] = &[
    ("Invalid generic resource", "this Slurm has no GRES for GPUs: set `gpus = \"none\"` in `[reach]`"),
    (
        "Requested GRES option unsupported",
        "set `gpus = \"gres\"` in `[reach]`: the scheduler has no `--gpus-*`",
    ),
    ("Invalid Trackable RESource", "set `gpus` in `[reach]`; `sinfo --format=%G` lists the GRES of nodes"),
    ("Invalid qos", "set `qos` in `[reach]`; `sacctmgr show assoc user=$USER format=qos` lists yours"),
    (
        "Invalid account",
        "set `account` in `[reach]`; `sacctmgr show assoc user=$USER format=account` lists yours",
    ),
    ("Invalid wckey", "set `sbatch = [\"--wckey=NAME\"]` and `srun` alike in `[reach]`"),
    ("nvalid partition", "set `partition` in `[reach]`; `sinfo` lists them"),
    ("No partition specified", "set `partition` in `[reach]`; `sinfo` lists them"),
    ("not permitted to use this partition", "set `partition` in `[reach]` to one that is open to you"),
    (
        "Required partition not available",
        "the partition is closed: `scontrol show partition` shows its state",
    ),
    ("Partition in DOWN state", "the partition is closed: `scontrol show partition` shows its state"),
    ("Invalid MPI type", "set `mpi` in `[reach]`; `srun --mpi=list` lists the plugins"),
    ("Memory required by task is not available", MEMORY),
    ("Memory specification can not be satisfied", MEMORY),
    ("CPU count per node can not be satisfied", "Slurm lists fewer processors: `sinfo --Node --long`"),
    (
        "Requested nodes not in this partition",
        "set `partition` in `[reach]`; `sinfo --Node` lists that of each node",
    ),
    ("Invalid node name", "Slurm has other nodes than the inventory: `harness inventory discover` writes it"),
    (
        "Node count specification invalid",
        "`scontrol show partition` lists MaxNodes of a job; run on fewer nodes",
    ),
    (
        "Requested node configuration is not available",
        "compare `gpus`, `mem` and `constraint` of `[reach]` with `scontrol show node`",
    ),
    (
        "Requested time limit is invalid",
        "lower `limit_s` of the case; `sinfo` lists the limits of partitions",
    ),
    (SUBMIT_LIMITS[0], MOST_JOBS),
    (SUBMIT_LIMITS[1], MOST_JOBS),
    (
        "Job violates accounting/QOS policy",
        "a limit of your account or QOS: `sacctmgr show qos`; set `qos` or `account` in `[reach]`",
    ),
    ("Invalid feature", "set `constraint` in `[reach]`; `sinfo --format=%f` lists the features of nodes"),
    ("equested reservation", "set `reservation` in `[reach]`; `scontrol show reservation` lists them"),
    ("System submissions disabled", "Slurm takes no jobs until an administrator opens it"),
    ("Munge encode failed", SIGN_IN),
    ("rotocol authentication error", SIGN_IN),
    ("uthentication credential", SIGN_IN),
    ("SLURM_SACK_SOCKET", SIGN_IN),
    (
        "auth/jwt is not supported for use with srun",
        "unset SLURM_JWT where munged or sackd runs; else `--no-probe`, for jobs are submitted by sbatch",
    ),
    (
        "Job credential expired",
        "the controller is slow, or clocks differ: `sdiag`, and `chronyc tracking` there and on the node",
    ),
    (
        "establish a configuration source",
        "no slurm.conf here: set SLURM_CONF, or `login` in `[reach]` to a login node",
    ),
    (
        "Incompatible versions of client and server",
        "these commands are of another release than the controller: set `slurm` in `[paths]`",
    ),
    ("Zero Bytes were transmitted", "the controller closed the connection: `scontrol ping`, then its log"),
];

const MEMORY: &str = "set `mem = \"0\"` in `[reach]`: all memory of a node";
const MOST_JOBS: &str = "set `most_jobs` in `[reach]` to your limit of submitted jobs";
const SIGN_IN: &str = "this machine cannot sign in to Slurm: check munged (or sackd), its key and the clock";

/// In the names of all limits on the number of submitted jobs: QOSMaxSubmitJobPerUserLimit, AssocMaxSubmitJobLimit,
/// MaxSubmitJobsPerAccount, AssocGrpSubmitJobsLimit and others.
const SUBMIT_LIMITS: [&str; 2] = ["MaxSubmitJob", "GrpSubmitJob"];

/// To be put behind the complaint; empty where nothing is known.
pub(crate) fn next_step(complaint: &str) -> String {
    if let Some(option) = refused_option(complaint) {
        return match option {
            // Every step of a job has it, whatever the inventory.
            "--overlap" => "; jobs need Slurm 20.11 or newer: `sinfo --version`".to_owned(),
            _ if option.starts_with("--container") => {
                format!("; `{option}` is of Pyxis, which this Slurm lacks: install it, or set no image")
            }
            _ => {
                format!("; this release lacks `{option}`: take it out of `sbatch` and `srun` in `[reach]`")
            }
        };
    }
    let known = NEXT.iter().find(|(part, _)| complaint.contains(part));
    known.map(|(_, next)| format!("; {next}")).unwrap_or_default()
}

/// How getopt refuses what a release or its plugins do not know: `srun: unrecognized option '--overlap'`.
pub(crate) fn refused_option(complaint: &str) -> Option<&str> {
    let at = ["unrecognized option '", "unrecognised option '"]
        .iter()
        .find_map(|begin| Some(complaint.find(begin)? + begin.len()))?;
    let option = complaint[at..].split(['\'', '=']).next()?;
    let is_name = |c: char| c.is_ascii_alphanumeric() || "-_".contains(c);
    (option.starts_with("--") && option.len() <= 60 && option.chars().all(is_name)).then_some(option)
}

/// Whether a job was refused because too many others are submitted: it is taken once some of them have ended.
pub(crate) fn is_submit_limit(complaint: &str) -> bool {
    SUBMIT_LIMITS.iter().any(|limit| complaint.contains(limit))
}

/// Whether the controller gave no answer, as while it restarts: what it was asked may or may not have been done.
pub(crate) fn is_away(complaint: &str) -> bool {
    AWAY.iter().any(|sign| complaint.contains(sign))
}

const AWAY: [&str; 17] = [
    "Unable to contact slurm controller",
    "Unable to establish controller",
    "Socket timed out",
    "Connection refused",
    "Connection reset by peer",
    "Zero Bytes were transmitted",
    "Transport endpoint is not connected",
    "temporarily unable to accept job",
    "Resource temporarily unavailable",
    "MaxJobCount limit reached",
    "in standby mode",
    // From 23.02 on, where SlurmctldParameters has rl_enable.
    "Rate limit exceeded",
    "Communication connection failure",
    "Message receive failure",
    "Header lengths are longer than data received",
    // From 25.05 on: establishing, writing and reading.
    "Connection timed out",
    "Process is shutting down",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_names_the_key_that_helps() {
        for (complaint, key) in [
            ("sbatch: error: Invalid generic resource (gres) specification", "gpus = \"none\""),
            (
                "srun: error: Unable to create step for job 16: Invalid generic resource (gres) specification",
                "`gpus = ",
            ),
            ("sbatch: error: Batch job submission failed: Invalid qos specification", "`qos`"),
            (
                "Batch job submission failed: Requested GRES option unsupported by configured SelectType plugin",
                "gpus = \"gres\"",
            ),
            ("Batch job submission failed: Invalid Trackable RESource (TRES) specification", "`gpus`"),
            ("sbatch: error: QOSMaxSubmitJobPerUserLimit", "`most_jobs`"),
            ("sbatch: error: AssocMaxSubmitJobLimit", "`most_jobs`"),
            (
                "sbatch: error: AssocGrpSubmitJobsLimit\nsbatch: error: Batch job submission failed: Job violates \
              accounting/QOS policy (job submit limit, user's size and/or time limits)",
                "`most_jobs`",
            ),
            (
                "sbatch: error: QOSMaxNodePerJobLimit\nsbatch: error: Batch job submission failed: Job violates \
              accounting/QOS policy (job submit limit, user's size and/or time limits)",
                "`qos`",
            ),
            ("sbatch: error: invalid partition specified: gpu", "`partition`"),
            (
                "Batch job submission failed: Invalid account or account/partition combination specified",
                "`account`",
            ),
            (
                "Batch job submission failed: No partition specified or system default partition",
                "`partition`",
            ),
            ("Batch job submission failed: User's group not permitted to use this partition", "`partition`"),
            ("Batch job submission failed: Requested nodes not in this partition", "`partition`"),
            (
                "sbatch: error: CPU count per node can not be satisfied\nsbatch: error: Batch job submission failed: \
              Requested node configuration is not available",
                "processors",
            ),
            (
                "sbatch: error: Memory specification can not be satisfied\nsbatch: error: Batch job submission failed: \
              Requested node configuration is not available",
                "`mem = ",
            ),
            ("Batch job submission failed: Requested node configuration is not available", "`constraint`"),
            ("Batch job submission failed: Invalid node name specified", "inventory discover"),
            ("Batch job submission failed: Node count specification invalid", "MaxNodes"),
            ("Requested time limit is invalid (missing or exceeds some limit)", "`limit_s`"),
            ("Batch job submission failed: Invalid feature specification", "`constraint`"),
            ("Batch job submission failed: Access denied to requested reservation", "`reservation`"),
            ("Batch job submission failed: Requested reservation is invalid", "`reservation`"),
            (
                "sbatch: error: Munge encode failed: Failed to access \"/run/munge/munge.socket.2\": No such file or \
              directory\nsbatch: error: Batch job submission failed: Protocol authentication error",
                "munged",
            ),
            ("sbatch: fatal: Could not establish a configuration source", "SLURM_CONF"),
            ("sinfo: error: failed to connect to 'SLURM_SACK_SOCKET=/run/slurm-a/sack.socket'", "sackd"),
            // From 26.05 on.
            ("srun: fatal: auth/jwt is not supported for use with srun.", "unset SLURM_JWT"),
            (
                "srun: error: Task launch for StepId=9.0 failed on node n1: Job credential expired",
                "`chronyc tracking`",
            ),
            (
                "slurm_load_jobs error: Incompatible versions of client and server code",
                "`slurm` in `[paths]`",
            ),
            (
                "sbatch: unrecognized option '--container-image=/path/to/image'\nTry \"sbatch --help\" for more \
              information",
                "`--container-image` is of Pyxis",
            ),
            ("srun: unrecognized option '--overlap'", "20.11 or newer"),
            ("srun: unrecognized option '--gpu-bind=none'", "take it out of `sbatch` and `srun`"),
        ] {
            assert!(next_step(complaint).contains(key), "{complaint}: {}", next_step(complaint));
        }
        assert_eq!(next_step("sbatch: error: anything else"), "");
    }

    #[test]
    fn an_option_is_named_only_where_getopt_refuses_it() {
        for complaint in
            ["", "unrecognized option '", "unrecognized option '-x'", "unrecognized option '--a b'"]
        {
            assert_eq!(refused_option(complaint), None, "{complaint}");
        }
        assert_eq!(refused_option("srun: unrecognized option '--gpu-bind=x'\n"), Some("--gpu-bind"));
    }

    #[test]
    fn a_controller_that_is_away_or_busy_is_no_refusal() {
        for complaint in [
            "Batch job submission failed: Unable to contact slurm controller (connect failure)",
            "slurm_load_jobs error: Socket timed out on send/recv operation",
            "Batch job submission failed: Zero Bytes were transmitted or received",
            "slurm_load_jobs error: Slurm backup controller in standby mode",
            "Controller is in standby mode, try a different controller",
            "Batch job submission failed: Rate limit exceeded, please retry later",
            "Connection timed out reading",
            "sbatch: error: Slurm temporarily unable to accept job, sleeping and retrying",
            "sbatch: error: Batch job submission failed: Resource temporarily unavailable",
            "sbatch: error: Batch job submission failed: Header lengths are longer than data received",
        ] {
            assert!(is_away(complaint), "{complaint}");
        }
        for complaint in
            ["Protocol authentication error", "Invalid qos specification", "Invalid job id specified"]
        {
            assert!(!is_away(complaint), "{complaint}");
        }
    }

    #[test]
    fn messages() {
        let options = ["--container-env", "--overlap", "--gpu-bind"];
        let options = options.map(|option| format!("unrecognized option '{option}'"));
        let lines = NEXT.iter().map(|(part, _)| *part).chain(options.iter().map(String::as_str));
        let lines: Vec<String> = lines.map(|part| format!("{part}{}", next_step(part))).collect();
        insta::assert_snapshot!(lines.join("\n"));
    }
}
