//! What sbatch and srun refuse, and which key of the inventory helps.

/// Parts of what they print, and the step that follows.
const NEXT: [(&str, &str); 7] = [
    ("Invalid generic resource", "this Slurm has no GRES for GPUs: set `gpus = \"none\"` in `[reach]`"),
    ("Invalid qos", "set `qos` in `[reach]`; `sacctmgr show assoc user=$USER format=qos` lists yours"),
    (
        "Invalid account",
        "set `account` in `[reach]`; `sacctmgr show assoc user=$USER format=account` lists yours",
    ),
    ("nvalid partition", "set `partition` in `[reach]`; `sinfo` lists them"),
    ("Invalid MPI type", "set `mpi` in `[reach]`; `srun --mpi=list` lists the plugins"),
    ("Memory required by task is not available", "set `mem = \"0\"` in `[reach]`: all memory of a node"),
    (SUBMIT_LIMIT, "set `most_jobs` in `[reach]` to your limit of submitted jobs"),
];

/// In the names of all limits on the number of submitted jobs: QOSMaxSubmitJobPerUserLimit, AssocMaxSubmitJobLimit and
/// others.
const SUBMIT_LIMIT: &str = "MaxSubmitJob";

/// To be put behind the complaint; empty where nothing is known.
pub(crate) fn next_step(complaint: &str) -> String {
    let known = NEXT.iter().find(|(part, _)| complaint.contains(part));
    known.map(|(_, next)| format!("; {next}")).unwrap_or_default()
}

/// Whether a job was refused because too many others are submitted: it is taken once some of them have ended.
pub(crate) fn is_submit_limit(complaint: &str) -> bool {
    complaint.contains(SUBMIT_LIMIT)
}

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
            ("sbatch: error: QOSMaxSubmitJobPerUserLimit", "`most_jobs`"),
            ("sbatch: error: AssocMaxSubmitJobLimit", "`most_jobs`"),
            ("sbatch: error: invalid partition specified: gpu", "`partition`"),
        ] {
            assert!(next_step(complaint).contains(key), "{complaint}: {}", next_step(complaint));
        }
        assert_eq!(next_step("sbatch: error: anything else"), "");
    }

    #[test]
    fn messages() {
        let lines: Vec<String> = NEXT.iter().map(|(part, _)| format!("{part}{}", next_step(part))).collect();
        insta::assert_snapshot!(lines.join("\n"));
    }
}
