//! Lines that say why a run came to nothing, each with its class and with how near to the root it stands.
//! Which of a run's complaints is its cause is decided in `text`, by `first`.

use super::nccl_log::LogLine;
use super::{Failure, FailureClass};
use crate::slurmstepd;

/// How near to the root a complaint stands: of several, the nearest is the cause, and among equals the first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Depth {
    /// Says it all: a node failed, a limit was reached, data was wrong.
    Root,
    /// Names a reason.
    Reason,
    /// Names only who noticed.
    Symptom,
    /// Names only that a process elsewhere was gone: whatever that one says is nearer to the root.
    Peer,
    /// What launchers say of a process that ended badly.
    Aftermath,
}

/// How NCCL calls its `ncclRemoteError`.
const PEER_GONE: &str = "remote process exited or there was a network";

#[derive(Debug, Clone, PartialEq)]
pub(super) struct Complaint {
    pub failure: Failure,
    pub depth: Depth,
    /// Whether the run cannot have ended well. A warning alone may be harmless.
    pub hard: bool,
    /// Whether it kept a run from starting: launchers try again, and a run that began and ended well got over it.
    pub before_start: bool,
}

/// The cause among a run's complaints. Warnings count only where the run broke off or something hard was said too.
pub(super) fn first<'a>(
    complaints: impl Iterator<Item = &'a Complaint> + Clone,
    concluded: bool,
) -> Option<Failure> {
    if concluded && !complaints.clone().any(|complaint| complaint.hard) {
        return None;
    }
    let cause = complaints.clone().min_by_key(|c| (c.depth, c.failure.line))?;
    let Failure { class, node, .. } = &cause.failure;
    // Slurm names each node that failed; what programs of several nodes report alike is of none of them.
    let is_alike = |c: &&Complaint| (c.depth, c.failure.class) == (cause.depth, *class);
    let is_shared = *class != FailureClass::NodeFailure
        && complaints.filter(is_alike).any(|c| c.failure.node.is_some() && c.failure.node != *node);
    let node = node.clone().filter(|_| !is_shared);
    Some(Failure { node, ..cause.failure.clone() })
}

/// Reads a warning of NCCL; nothing where it gives no known reason.
pub(super) fn parse_warning(log: &LogLine, line: u64) -> Option<Complaint> {
    let class = reason(log.text)?;
    let node = (!log.host.is_empty()).then(|| log.host.to_owned());
    // A generic error in a warning only repeats what another line gives the reason of.
    let depth = if class == FailureClass::NcclError { Depth::Symptom } else { Depth::Reason };
    Some(complaint(class, depth, false, &format!("NCCL WARN {}", log.text), node, line))
}

/// Reads any other line; nothing where it is no known failure.
pub(super) fn parse_line(text: &str, line: u64) -> Option<Complaint> {
    let text = text.trim();
    parse_nccl_tests(text, line)
        .or_else(|| parse_slurm(text, line))
        .or_else(|| parse_other(text, line))
        .or_else(|| parse_start(text, line))
}

pub(super) fn complaint(
    class: FailureClass,
    depth: Depth,
    hard: bool,
    cause: &str,
    node: Option<String>,
    line: u64,
) -> Complaint {
    // What keeps a program from starting is in how it was started or built.
    let node = node.filter(|_| class != FailureClass::NotStarted);
    // A line may be as long as a file; the beginning is enough.
    let cause = cause.chars().take(400).collect::<String>().trim().to_owned();
    Complaint { failure: Failure { class, cause, line, node }, depth, hard, before_start: false }
}

/// What nccl-tests itself prints: `HOST: Test NCCL failure FILE:LINE 'WHY'`, and `.. HOST pid 1: Test failure ...`.
fn parse_nccl_tests(text: &str, line: u64) -> Option<Complaint> {
    let host = |before: &str| before.strip_suffix(": ").and_then(word);
    // nccl-tests 1: `NCCL failure FILE:LINE 'WHY'`.
    // NCCL's own examples: `Failed: Cuda error FILE:LINE 'WHY'`.
    let starts = ["NCCL failure ", "Cuda failure ", "Failed: Cuda error ", "Failed, NCCL error "];
    let old = starts.iter().find_map(|start| text.strip_prefix(start));
    if let Some(why) = old.filter(|rest| rest.contains(".cu:") && rest.contains('\'')) {
        let class = reason(why).unwrap_or(match text.contains("NCCL ") {
            true => FailureClass::NcclError,
            false => FailureClass::CudaError,
        });
        let is_symptom = class == FailureClass::NcclError || why.contains("'unhandled ");
        let depth = if is_symptom { Depth::Symptom } else { Depth::Reason };
        return Some(complaint(class, depth, true, text, None, line));
    }
    if let Some((before, why)) = text.split_once("Test NCCL failure ") {
        let class = reason(why).unwrap_or(FailureClass::NcclError);
        // `unhandled cuda error` says that CUDA gave the reason elsewhere.
        let depth = match class {
            _ if why.contains(PEER_GONE) => Depth::Peer,
            _ if why.contains("'unhandled ") => Depth::Symptom,
            FailureClass::NcclError => Depth::Symptom,
            _ => Depth::Reason,
        };
        return Some(complaint(class, depth, true, text, host(before), line));
    }
    if let Some((before, why)) = text.split_once("Test CUDA failure ") {
        let class = match reason(why) {
            Some(class @ (FailureClass::OutOfMemory | FailureClass::NotStarted)) => class,
            _ => FailureClass::CudaError,
        };
        return Some(complaint(class, Depth::Reason, true, text, host(before), line));
    }
    if let Some((before, _)) = text.split_once("Test timeout (") {
        return Some(complaint(FailureClass::TimedOut, Depth::Reason, true, text, host(before), line));
    }
    if text.starts_with("..") && text.contains("Test failure ") {
        let node = text.trim_start_matches('.').split_whitespace().next().map(str::to_owned);
        return Some(complaint(FailureClass::NcclError, Depth::Aftermath, true, text, node, line));
    }
    let usage = ["Invalid number of GPUs:", "invalid size specified for", "Invalid value for"];
    if usage.iter().any(|start| text.starts_with(start)) {
        return Some(complaint(FailureClass::NotStarted, Depth::Reason, true, text, None, line));
    }
    None
}

fn parse_slurm(text: &str, line: u64) -> Option<Complaint> {
    let of_stepd = || slurmstepd::parse_error(text).filter(|error| text.len() - error.said.len() <= 80);
    let said = ["srun: error: ", "srun: ", "sbatch: error: "]
        .iter()
        .find_map(|start| text.split_once(start).filter(|(before, _)| before.len() <= 40))
        .map(|(_, said)| said)
        .or_else(|| of_stepd().map(|error| error.said))?;
    let make = |class, depth, node| Some(complaint(class, depth, true, text, node, line));
    if let Some((_, node)) = said.split_once("Node failure on ") {
        return make(
            FailureClass::NodeFailure,
            Depth::Root,
            node.split_whitespace().next().map(str::to_owned),
        );
    }
    let step_host =
        said.split_once(" ON ").and_then(|(_, rest)| rest.split_whitespace().next()).map(str::to_owned);
    if said.contains("DUE TO NODE FAILURE") {
        return make(FailureClass::NodeFailure, Depth::Root, None);
    }
    if said.contains("DUE TO TIME LIMIT") {
        return make(FailureClass::TimeLimit, Depth::Root, None);
    }
    let lower = said.to_ascii_lowercase();
    if lower.contains("oom_kill") || lower.contains("oom-kill") || lower.contains("out of memory") {
        return make(FailureClass::OutOfMemory, Depth::Reason, step_host);
    }
    if said.contains("CANCELLED AT") {
        return make(FailureClass::Cancelled, Depth::Aftermath, None);
    }
    // `NODE: task 3: Segmentation fault`, `NODE: tasks 0-7: Exited with exit code 1`, `*** STEP ... ***`
    let task = said.split_once(": task");
    let node = task.and_then(|(node, _)| word(node));
    if let Some((_, end)) = task.and_then(|(_, rest)| rest.split_once(": ")) {
        if end.starts_with("Exited with exit code") {
            return make(FailureClass::Exited, Depth::Aftermath, node);
        }
        if let Some((class, depth)) = signal(end) {
            return make(class, depth, node);
        }
    }
    if said.contains("Timed out waiting for job step to complete") {
        return make(FailureClass::TimedOut, Depth::Aftermath, None);
    }
    if ["Job step aborted", "Force Terminated", "Terminating StepId"].iter().any(|start| said.contains(start))
    {
        return make(FailureClass::Aborted, Depth::Aftermath, None);
    }
    let refused = [
        "Unable to create step",
        "execve():",
        "Unable to allocate",
        " launch failed",
        "Task launch for",
        "Application launch failed",
        "Batch job submission failed",
        "Unable to confirm allocation",
        "Requested node configuration is not available",
        "Couldn't find the specified plugin",
        "Invalid MPI type",
        "pyxis: container start failed",
        "pyxis: child",
        "pyxis: [ERROR]",
        "Unable to init step",
        "unrecognized option '",
        "fatal: ",
    ];
    if refused.iter().any(|start| said.contains(start)) {
        return make(FailureClass::NotStarted, Depth::Reason, None);
    }
    None
}

/// Whether a line of Slurm reports that a job failed: true where it says why, false where it only says that it ended.
pub(crate) fn slurm_failure(text: &str) -> Option<bool> {
    parse_slurm(text.trim(), 0).map(|complaint| complaint.depth < Depth::Aftermath)
}

/// What shells, mpirun, watchdogs and libraries print.
fn parse_other(text: &str, line: u64) -> Option<Complaint> {
    let make = |class, depth, node| Some(complaint(class, depth, true, text, node, line));
    if text.contains("No space left on device") {
        return make(FailureClass::NoSpace, Depth::Reason, None);
    }
    if text.starts_with("terminate called after")
        || text.contains("Watchdog caught collective operation timeout")
    {
        let watchdog = text.contains("Watchdog");
        let class = if watchdog { FailureClass::TimedOut } else { FailureClass::Aborted };
        return make(class, Depth::Reason, None);
    }
    let is_absent =
        [": command not found", ": No such file or directory", ": Permission denied", ": not found"];
    let programs = ["_perf", "mpirun", "mpiexec", "srun", "torchrun"];
    let names_program = |before: &str| {
        let word = before.rsplit([' ', '/']).next().unwrap_or(before);
        let word = word.trim_matches(|c: char| !c.is_ascii_alphanumeric() && c != '_');
        programs.iter().any(|program| word.ends_with(program))
    };
    let cannot_start = is_absent.iter().filter_map(|end| text.strip_suffix(end)).any(names_program);
    if text.contains("error while loading shared libraries") || cannot_start {
        return make(FailureClass::NotStarted, Depth::Reason, None);
    }
    if text.starts_with("There are not enough slots available") {
        return make(FailureClass::NotStarted, Depth::Reason, None);
    }
    if text.contains("Connection reset by peer") {
        return make(FailureClass::ConnectionLost, Depth::Reason, None);
    }
    if text.contains(PEER_GONE) {
        return make(FailureClass::ConnectionLost, Depth::Peer, None);
    }
    // `mpirun noticed that process rank 3 with PID 1 on node NODE exited on signal 11 (Segmentation fault).`
    if text.contains(" noticed that process rank ") && text.contains(" exited on signal ") {
        let node = text.split_once(" on node ").and_then(|(_, rest)| rest.split_whitespace().next());
        return make(FailureClass::Signal, Depth::Aftermath, node.map(str::to_owned));
    }
    if text.starts_with("MPI_ABORT was invoked") || text.contains("Primary job  terminated normally, but") {
        return make(FailureClass::Aborted, Depth::Aftermath, None);
    }
    if text.contains("detected that one or more processes exited with non-zero status") {
        return make(FailureClass::Exited, Depth::Aftermath, None);
    }
    // `[NODE:123] *** Process received signal ***` and `[NODE:123] Signal: Segmentation fault (11)` of Open MPI.
    if let Some((before, _)) = text.split_once("*** Process received signal ***") {
        let node = before.trim().strip_prefix('[').and_then(|inner| inner.split(':').next()).and_then(word);
        return make(FailureClass::Signal, Depth::Reason, node);
    }
    if let Some((before, signal)) = text.split_once("] Signal: ")
        && signal.contains(" (")
    {
        let node = before.strip_prefix('[').and_then(|inner| inner.split(':').next()).and_then(word);
        return make(FailureClass::Signal, Depth::Reason, node);
    }
    if text.starts_with("Caught signal ") || text.contains("]: Caught signal ") {
        return make(FailureClass::Signal, Depth::Reason, None);
    }
    // A shell says it alone, with the number of its job, or behind the script and its line.
    let end = text.rsplit_once(": ").map_or(text, |(_, end)| end);
    let from_shell = end.len() == text.len() || text.contains(": line ");
    let end = end.trim_start_matches(|c: char| c.is_ascii_digit() || c == ' ');
    if from_shell && let Some((class, depth)) = signal(end) {
        return make(class, depth, None);
    }
    None
}

/// What keeps a program from starting, and what launchers and libraries print of one that ended badly.
fn parse_start(text: &str, line: u64) -> Option<Complaint> {
    let begins = |starts: &[&str]| starts.iter().any(|start| text.starts_with(start));
    let has = |words: &[&str]| words.iter().any(|word| text.contains(word));
    let at_start = |class| {
        Some(Complaint { before_start: true, ..complaint(class, Depth::Reason, true, text, None, line) })
    };
    let lost = [
        "has lost communication with a remote daemon",
        "A process or daemon was unable to complete a TCP connection",
    ];
    if has(&lost) {
        return Some(complaint(FailureClass::ConnectionLost, Depth::Reason, true, text, None, line));
    }
    if text.starts_with("ssh: ") && has(&["Connection refused", "Connection timed out", "No route to host"]) {
        return at_start(FailureClass::ConnectionLost);
    }
    let refused_by_ssh = begins(&["Permission denied (publickey", "Host key verification failed"])
        || text.contains(": Permission denied (publickey")
        || text.starts_with("ssh: Could not resolve hostname");
    let refused = [
        "was unable to reliably start one or more daemons",
        "was unable to launch the specified application",
        ": symbol lookup error: ",
        "*** An error occurred in MPI_Init",
        "could not select device driver",
        "was unable to find the specified executable file",
        "could not access or execute an executable",
        "The application appears to have been direct launched using",
        "PMI2_Init failed to intialize",
        "It looks like MPI_INIT failed for some reason",
        "nvidia-container-cli: ",
        "Error response from daemon: ",
        "error while creating the container",
        ": version `GLIBC_",
        "Error from server (",
    ];
    let no_driver = begins(&["Failed to initialize NVML", "NVIDIA-SMI has failed because"])
        || has(&[
            "no CUDA-capable device is detected",
            "CUDA driver version is insufficient",
            "Driver/library version mismatch",
        ]);
    let of_mpi = begins(&["Fatal error in ", "Abort("]) && has(&["MPI_Init", "PMPI_Init"]);
    if refused_by_ssh || no_driver || of_mpi || has(&refused) {
        return at_start(FailureClass::NotStarted);
    }
    if text == "OOMKilled" {
        return Some(complaint(FailureClass::OutOfMemory, Depth::Reason, true, text, None, line));
    }
    let heap = [
        "*** glibc detected ***",
        "double free or corruption",
        "free(): invalid ",
        "malloc(): ",
        "*** stack smashing detected",
    ];
    if begins(&heap) || begins(&["Fatal error in "]) && text.contains("MPI_") {
        return Some(complaint(FailureClass::Aborted, Depth::Reason, true, text, None, line));
    }
    let exhausted = [
        "fork: retry: Resource temporarily unavailable",
        "fork: Cannot allocate memory",
        "Too many open files",
    ];
    if has(&exhausted) {
        return Some(complaint(FailureClass::OutOfMemory, Depth::Reason, true, text, None, line));
    }
    let ended =
        has(&["BAD TERMINATION OF ONE OF YOUR APPLICATION PROCESSES", "HYDT_bscu_wait_for_completion"])
            || begins(&["Abort("]) && text.contains(" on node ");
    if ended {
        return Some(complaint(FailureClass::Aborted, Depth::Aftermath, true, text, None, line));
    }
    // Of kubectl; a shell's code above 128 is a signal.
    let code = text.strip_prefix("command terminated with exit code ")?.parse::<u32>().ok()?;
    let class = if code > 128 { FailureClass::Signal } else { FailureClass::Exited };
    Some(complaint(class, Depth::Aftermath, true, text, None, line))
}

/// How a shell or launcher calls the signal that ended a process.
fn signal(text: &str) -> Option<(FailureClass, Depth)> {
    let is = |name: &str| {
        text.strip_prefix(name).is_some_and(|rest| rest.is_empty() || rest.starts_with([' ', '.', ',']))
            // A sentence that begins so is prose; a shell goes on with blanks or with what was dumped.
            && (text.len() <= name.len() + 1 || text.contains("(core dumped)") || text.contains("  "))
    };
    let names: [(&str, FailureClass, Depth); 7] = [
        ("Segmentation fault", FailureClass::Signal, Depth::Reason),
        ("Bus error", FailureClass::Signal, Depth::Reason),
        ("Illegal instruction", FailureClass::Signal, Depth::Reason),
        ("Floating point exception", FailureClass::Signal, Depth::Reason),
        ("Aborted", FailureClass::Aborted, Depth::Symptom),
        ("Killed", FailureClass::Signal, Depth::Aftermath),
        ("Terminated", FailureClass::Signal, Depth::Aftermath),
    ];
    names.iter().find(|(name, ..)| is(name)).map(|(_, class, depth)| (*class, *depth))
}

/// The reason that the text of an error gives.
fn reason(text: &str) -> Option<FailureClass> {
    let lower = text.to_ascii_lowercase();
    let has = |words: &[&str]| words.iter().any(|word| lower.contains(word));
    if has(&["no space left on device"]) {
        return Some(FailureClass::NoSpace);
    }
    if has(&["out of memory", "cannot allocate memory", "failed to cuda calloc", "cuda failure 2 "]) {
        return Some(FailureClass::OutOfMemory);
    }
    // More ranks than GPUs, or a build for other GPUs or another driver.
    if has(&["invalid device ordinal", "no kernel image", "driver version is insufficient"]) {
        return Some(FailureClass::NotStarted);
    }
    if lower.contains("network") && lower.contains("not found") || has(&["failed to load net plugin"]) {
        return Some(FailureClass::NetworkNotFound);
    }
    let lost = [
        "connection reset",
        "connection refused",
        "connection closed",
        "connection timed out",
        "broken pipe",
        "no route to host",
        "remote process exited",
        "unreachable",
    ];
    if has(&lost) || (lower.contains("socket") && lower.contains("closed")) {
        return Some(FailureClass::ConnectionLost);
    }
    if has(&["watchdog", "timed out", "timeout"]) {
        return Some(FailureClass::TimedOut);
    }
    if has(&["cuda failure", "unhandled cuda error", "cuda error"]) {
        return Some(FailureClass::CudaError);
    }
    has(&[
        "unhandled system error",
        "internal error",
        "remote error",
        "invalid usage",
        "completion with error",
    ])
    .then_some(FailureClass::NcclError)
}

/// A text that is one word.
fn word(text: &str) -> Option<String> {
    let text = text.trim();
    (!text.is_empty() && !text.contains(char::is_whitespace)).then(|| text.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failures_are_known_by_their_lines() {
        use FailureClass::*;
        let table: [(&str, FailureClass, Depth, Option<&str>); 26] = [
            ("[n3:77] Signal: Bus error (7)", Signal, Depth::Reason, Some("n3")),
            ("n1: Test NCCL failure common.cu:958 'invalid usage (x)", NcclError, Depth::Symptom, Some("n1")),
            (
                "n1: Test NCCL failure common.cu:39 'unhandled cuda error / '",
                CudaError,
                Depth::Symptom,
                Some("n1"),
            ),
            ("n1: Test CUDA failure common.cu:39 'out of memory'", OutOfMemory, Depth::Reason, Some("n1")),
            ("n1: Test CUDA failure common.cu:39 'invalid device'", CudaError, Depth::Reason, Some("n1")),
            (
                "n1: Test CUDA failure common.cu:1030 'invalid device ordinal'",
                NotStarted,
                Depth::Reason,
                None,
            ),
            ("n1: Test timeout (30s) common.cu:1", TimedOut, Depth::Reason, Some("n1")),
            (" .. n1 pid 5: Test failure all_reduce.cu:90", NcclError, Depth::Aftermath, Some("n1")),
            ("srun: error: Node failure on n7", NodeFailure, Depth::Root, Some("n7")),
            ("srun: error: n7: task 3: Segmentation fault (core dumped)", Signal, Depth::Reason, Some("n7")),
            ("srun: error: n7: tasks 0-7: Exited with exit code 1", Exited, Depth::Aftermath, Some("n7")),
            ("srun: error: n7: task 1: Killed", Signal, Depth::Aftermath, Some("n7")),
            (
                "slurmstepd: error: *** STEP 1.0 ON n1 CANCELLED AT 2025-01-31T12:00:00 DUE TO TIME LIMIT ***",
                TimeLimit,
                Depth::Root,
                None,
            ),
            ("run.sh: line 3: 77 Killed                  ./all_reduce_perf", Signal, Depth::Aftermath, None),
            ("Segmentation fault (core dumped)", Signal, Depth::Reason, None),
            ("write error: No space left on device", NoSpace, Depth::Reason, None),
            ("[n3:77] *** Process received signal ***", Signal, Depth::Reason, Some("n3")),
            ("read socket: Connection reset by peer", ConnectionLost, Depth::Reason, None),
            ("slurmstepd: error: Detected 1 oom_kill event in StepId=1.0.", OutOfMemory, Depth::Reason, None),
            (
                "slurmstepd-n1: error: *** STEP 1.0 ON n1 CANCELLED AT 2025-01-31T12:00:00 DUE TO TIME LIMIT ***",
                TimeLimit,
                Depth::Root,
                None,
            ),
            (
                "[2025-12-08T15:44:50.841] error: *** STEP 1.0 ON n1 CANCELLED AT 2025-12-08T15:44:50 DUE TO TIME LIMIT ***",
                TimeLimit,
                Depth::Root,
                None,
            ),
            // Its time was taken off before.
            ("error: Detected 1 oom_kill event in StepId=1.0.", OutOfMemory, Depth::Reason, None),
            (
                "[2025-11-26T23:41:09.626] error: execve(): bash: No such file or directory",
                NotStarted,
                Depth::Reason,
                None,
            ),
            ("srun: unrecognized option '--container-image=x'", NotStarted, Depth::Reason, None),
            ("srun: fatal: Can not execute /opt/conda/bin/python", NotStarted, Depth::Reason, None),
            (
                "0: slurmstepd-n1: error: Detected 1 oom_kill event in StepId=1.0.",
                OutOfMemory,
                Depth::Reason,
                None,
            ),
        ];
        for (text, class, depth, node) in table {
            let read = parse_line(text, 1).unwrap_or_else(|| panic!("{text}"));
            assert_eq!(
                (read.failure.class, read.depth, read.failure.node.as_deref()),
                (class, depth, node),
                "{text}"
            );
        }
    }

    #[test]
    fn what_keeps_a_program_from_starting_is_a_failure() {
        use FailureClass::*;
        let table: [(&str, FailureClass); 40] = [
            ("srun: error: task 0 launch failed: Invalid MPI plugin name", NotStarted),
            ("slurmstepd: error: pyxis: [ERROR] Command not found: nvidia-container-cli", NotStarted),
            ("Failed: Cuda error common.cu:892 'out of memory'", OutOfMemory),
            ("Failed, NCCL error common.cu:958 'unhandled system error'", NcclError),
            ("./all_reduce_perf: libc.so.6: version `GLIBC_2.34' not found (required by x)", NotStarted),
            ("OOMKilled", OutOfMemory),
            ("sbatch: error: Batch job submission failed: Invalid account", NotStarted),
            ("srun: error: Unable to confirm allocation for job 7: Invalid job id specified", NotStarted),
            ("srun: error: Task launch for StepId=7.0 failed on node n-1: Communication error", NotStarted),
            ("srun: error: Timed out waiting for job step to complete", TimedOut),
            ("srun: Job step aborted: Waiting up to 32 seconds for job step to finish.", Aborted),
            ("slurmstepd: error: pyxis: container start failed with error code: 1", NotStarted),
            ("bash: mpirun: command not found", NotStarted),
            ("bash: ./build/all_reduce_perf: No such file or directory", NotStarted),
            ("/usr/bin/env: \u{2018}mpirun\u{2019}: No such file or directory", NotStarted),
            ("run.sh: line 7: ./all_reduce_perf: Permission denied", NotStarted),
            ("mpirun was unable to find the specified executable file, and therefore", NotStarted),
            ("The application appears to have been direct launched using \"srun\",", NotStarted),
            ("docker: Error response from daemon: pull access denied", NotStarted),
            ("nvidia-container-cli: initialization error: driver error", NotStarted),
            ("bash: fork: retry: Resource temporarily unavailable", OutOfMemory),
            ("NCCL failure all_gather.cu:77 'unhandled cuda error'", CudaError),
            ("NCCL failure common.cu:77 'internal error'", NcclError),
            ("Cuda failure common.cu:77 'out of memory'", OutOfMemory),
            ("ORTE was unable to reliably start one or more daemons.", NotStarted),
            ("PRTE has lost communication with a remote daemon.", ConnectionLost),
            ("ssh: Could not resolve hostname n-2: Name or service not known", NotStarted),
            ("ssh: connect to host n-2 port 22: Connection refused", ConnectionLost),
            ("u@n-2: Permission denied (publickey).", NotStarted),
            ("Host key verification failed.", NotStarted),
            ("all_gather_perf: symbol lookup error: libx.so: undefined symbol: y", NotStarted),
            ("=   BAD TERMINATION OF ONE OF YOUR APPLICATION PROCESSES", Aborted),
            ("Fatal error in PMPI_Init_thread: Other MPI error", NotStarted),
            ("Fatal error in PMPI_Allreduce: Other MPI error", Aborted),
            ("Abort(7) on node 3 (rank 3 in comm 0): application called", Aborted),
            ("command terminated with exit code 137", Signal),
            ("command terminated with exit code 2", Exited),
            ("[n-1:77] *** An error occurred in MPI_Init", NotStarted),
            ("double free or corruption (!prev)", Aborted),
            ("NVIDIA-SMI has failed because it couldn't communicate with the driver.", NotStarted),
        ];
        for (text, class) in table {
            let read = parse_line(text, 1).unwrap_or_else(|| panic!("{text}"));
            assert_eq!((read.failure.class, read.failure.node), (class, None), "{text}");
        }
    }

    #[test]
    fn prose_is_no_failure() {
        for text in [
            "Killed processes leave no trace",
            "# Using devices",
            "Test it first",
            "Aborted runs are kept",
            "NCCL failure modes are listed elsewhere",
            "ssh: warnings",
            "Abort(",
            "cat: perf.txt: No such file or directory",
            "cp: mpirun notes: No such file or directory",
            "command terminated with exit code x",
        ] {
            assert_eq!(parse_line(text, 1), None, "{text}");
        }
    }

    #[test]
    fn json_and_text_call_a_class_the_same() {
        for class in [FailureClass::OutOfBounds, FailureClass::NetworkNotFound, FailureClass::NotStarted] {
            assert_eq!(serde_json::to_value(class).ok(), Some(class.name().into()));
        }
    }
}
