//! Further arguments that an inventory gives to sbatch and srun. Options that the harness sets itself are refused:
//! given twice, Slurm would use the last one, which is not that of the plan.

use crate::toml_reader::Value;

/// Options that the harness gives to sbatch, or that change what its answer means; with the key that sets them, if one
/// does.
const OF_SBATCH: [(&str, &str); 29] = [
    ("account", "account"),
    ("array", ""),
    ("chdir", ""),
    ("clusters", ""),
    ("constraint", "constraint"),
    ("error", ""),
    ("exclude", ""),
    ("exclusive", "exclusive"),
    ("gpus", "gpus"),
    ("gpus-per-node", "gpus"),
    ("gres", "gpus"),
    ("hold", ""),
    ("job-name", ""),
    ("mem", "mem"),
    ("no-requeue", ""),
    ("nodelist", ""),
    ("nodes", ""),
    ("ntasks", ""),
    ("ntasks-per-node", ""),
    ("output", ""),
    ("parsable", ""),
    ("partition", "partition"),
    ("qos", "qos"),
    ("requeue", ""),
    ("reservation", "reservation"),
    ("test-only", ""),
    ("time", ""),
    ("wait", ""),
    ("wrap", ""),
];
/// The same for srun.
const OF_SRUN: [(&str, &str); 40] = [
    ("account", "account"),
    ("chdir", ""),
    ("clusters", ""),
    ("constraint", "constraint"),
    ("container-env", ""),
    ("container-image", "image"),
    ("container-mount-home", "mount_home"),
    ("container-mounts", "mounts"),
    ("container-name", ""),
    ("container-remap-root", "remap_root"),
    ("container-workdir", ""),
    ("cpu-bind", ""),
    ("error", ""),
    ("exclude", ""),
    ("exclusive", "exclusive"),
    ("gpus", "gpus"),
    ("gpus-per-node", "gpus"),
    ("gres", "gpus"),
    ("immediate", ""),
    ("input", ""),
    ("job-name", ""),
    ("jobid", ""),
    ("label", ""),
    ("mem", "mem"),
    ("mem-per-cpu", "mem"),
    ("mem-per-gpu", "mem"),
    ("mpi", "mpi"),
    ("multi-prog", ""),
    ("nodelist", ""),
    ("nodes", ""),
    ("ntasks", ""),
    ("ntasks-per-node", ""),
    ("output", ""),
    ("overlap", ""),
    ("partition", "partition"),
    ("pty", ""),
    ("qos", "qos"),
    ("reservation", "reservation"),
    ("test-only", ""),
    ("time", ""),
];

/// Options of either that would change what is measured: what each would do, and what to write instead.
const OF_NEITHER: [(&str, &str, &str); 3] = [
    (
        "auto-resume",
        "would have HyperPod run a job again under the same name",
        "write `retry_infrastructure = 1` in the suite",
    ),
    ("distribution", "would number ranks in another order", "order nodes by `[topology]`"),
    ("relative", "would start steps on other nodes", "choose nodes by `--nodes` of the harness"),
];

pub(super) fn read_sbatch(value: &Value<'_>) -> Vec<String> {
    arguments(value, &OF_SBATCH)
}

pub(super) fn read_srun(value: &Value<'_>) -> Vec<String> {
    arguments(value, &OF_SRUN)
}

fn arguments(value: &Value<'_>, own: &[(&str, &str)]) -> Vec<String> {
    let arguments = value.texts();
    for argument in &arguments {
        let shown = argument.escape_debug();
        let name = argument.strip_prefix("--").map(|rest| rest.split('=').next().unwrap_or_default());
        let is_name = |name: &str| {
            !name.is_empty() && name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-')
        };
        let Some(name) = name.filter(|name| is_name(name)) else {
            value.diagnostic_with(
                format!("not an option in `{}`: `{shown}`", value.key()),
                "write each option as one text, `--option` or `--option=value`",
            );
            continue;
        };
        if argument.chars().any(char::is_control) {
            value.diagnostic(format!("control characters in an argument of `{}`: `{shown}`", value.key()));
            continue;
        }
        // Slurm takes the beginning of an option's name for the whole.
        let exact = own.iter().find(|(own, _)| *own == name);
        let set = exact.or_else(|| own.iter().find(|(own, _)| own.starts_with(name)));
        if let Some((option, key)) = set {
            let message = format!("`--{option}` is set by the harness: `{shown}`");
            match *key {
                "" => value.diagnostic(message),
                key => value.diagnostic_with(message, format!("write `{key} = ` instead")),
            }
        } else if let Some((option, what, instead)) =
            OF_NEITHER.iter().find(|(own, ..)| own.starts_with(name))
        {
            value.diagnostic_with(format!("`--{option}` {what}: `{shown}`"), *instead);
        }
    }
    arguments
}
