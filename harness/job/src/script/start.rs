//! The argument lists that start a job's script, and those that query it over ssh.

use super::files::{self, EXIT_CODE, GROUP, PID};

/// Starts the script in its own session and prints the session's id, which is its process group's too. The exit
/// code outlives the process as a file, and so does when and since which start of the machine the group is there: its
/// number alone may later be another's. What leaves the group is known by `HARNESS_JOB`. `$1` is the job's folder.
pub fn on_this_machine(folder: &str) -> Vec<String> {
    let start = format!(
        "cd \"$1\" && {{ HARNESS_JOB=\":$1\" setsid bash -c 'bash {job}; echo $? > {EXIT_CODE}.part && mv {EXIT_CODE}.part {EXIT_CODE}' \
         > {out} 2> {err} < /dev/null & }} && owner=$! && echo $owner > {PID} && \
         {{ IFS= read -r -d '' stat < /proc/$owner/stat; read -r boot < /proc/sys/kernel/random/boot_id; set -- ${{stat##*) }}; \
         echo \"$owner ${{20-}} $boot\" > {GROUP}.part && mv {GROUP}.part {GROUP}; }} 2> /dev/null; cat {PID}",
        job = files::JOB,
        out = files::BATCH_OUT,
        err = files::BATCH_ERR,
    );
    ["bash", "-c", &start, "launch", folder].map(str::to_owned).to_vec()
}

/// The node, in the argument list that starts a job over ssh.
pub const HOST: &str = "{host}";

/// Starts a job over ssh on the node that `HOST` in it stands for.
pub fn over_ssh(folder: &str, heartbeat_timeout_s: u64) -> Vec<String> {
    let supervisor = format!("{folder}/{}", files::SUPERVISOR);
    ["bash", &supervisor, "start", folder, HOST, &heartbeat_timeout_s.to_string()].map(str::to_owned).to_vec()
}

/// Another call of the script that such a list starts. A run of an older version has it under another name.
pub fn call(launch: &[String], verb: &str, node: &str, more: &[&str]) -> Option<Vec<String>> {
    let [shell, script, _, folder, ..] = launch else { return None };
    let argv = [shell, script, verb, folder, node].into_iter().chain(more.iter().copied());
    Some(argv.map(str::to_owned).collect())
}
