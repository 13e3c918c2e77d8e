//! The last lines of output of a failed job: of a GPU's own program, of the ranks, of the batch script. Lines of
//! launchers about exit codes and signals name no cause, and are left out.

use base::text::shorten;
use logs::slurmstepd;
use model::artefact::{Collected, CollectedFile, Ended, FileKind, PlannedJob};
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::Path;

/// The number of lines that are kept of a job.
const MOST: usize = 5;
/// The middle of a longer line adds nothing.
const LONGEST: usize = 400;
/// Of a longer file only the end is read.
const TAIL: u64 = 64 << 10;
/// The number of files of a job that are read: if the first are empty, the others will be, too.
const FILES: usize = 16;

/// Empty for a job that ended well, or that was not started on purpose.
pub(super) fn collect(
    planned: &PlannedJob,
    end: &Ended,
    collected: &Collected,
    folder: &Path,
) -> Vec<String> {
    match end {
        Ended::Exited { code: 0 } => return Vec::new(),
        Ended::LaunchFailed { why } | Ended::FolderFailed { why } | Ended::HostUnreachable { why } => {
            return last_of(why);
        }
        Ended::QueueStuck { reason } => return last_of(reason),
        _ => {}
    }
    let mut files: Vec<&CollectedFile> =
        collected.files.iter().filter(|file| file.job == planned.name && rank(file).is_some()).collect();
    files.sort_by_key(|file| (rank(file), file.path.clone()));
    files
        .iter()
        .take(FILES)
        .map(|file| last_of(&tail(&folder.join(&file.path)).unwrap_or_default()))
        .find(|words| !words.is_empty())
        .unwrap_or_default()
}

/// The nearer to the program, the earlier.
fn rank(file: &CollectedFile) -> Option<u8> {
    let name = file.path.rsplit('/').next().unwrap_or_default();
    match file.kind {
        FileKind::Stderr | FileKind::Log if name.starts_with("gpu") && name.ends_with(".err") => Some(0),
        FileKind::Stderr => Some(1),
        FileKind::Log if !super::is_of_sampler(file) => Some(2),
        _ => None,
    }
}

fn tail(path: &Path) -> io::Result<String> {
    let mut file = File::open(path)?;
    let length = file.metadata()?.len();
    file.seek(SeekFrom::Start(length.saturating_sub(TAIL)))?;
    let mut bytes = Vec::new();
    file.take(TAIL).read_to_end(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

fn last_of(text: &str) -> Vec<String> {
    let lines = text.lines().map(str::trim).filter(|line| !line.is_empty() && !is_of_launcher(line));
    let mut last: Vec<String> = Vec::new();
    for line in lines.rev() {
        let line = shorten(line, LONGEST);
        if !last.contains(&line) {
            last.push(line);
        }
        if last.len() == MOST {
            break;
        }
    }
    last.reverse();
    last
}

/// Whether a line reports only that something ended, and not why.
pub(super) fn is_of_launcher(line: &str) -> bool {
    let of_srun = line.starts_with("srun: ");
    let of_slurm = of_srun || line.starts_with("slurmstepd") || slurmstepd::parse_error(line).is_some();
    let ends = [
        "Exited with exit code",
        ": Terminated",
        ": Killed",
        "Terminating StepId",
        "Terminating job step",
        "Job step aborted",
        "error: *** STEP",
        "error: *** JOB",
        "queued and waiting for resources",
        "has been allocated resources",
        "forcing job termination",
        "required plugin spank_",
        "Failed to invoke spank plugin stack",
    ];
    let of_mpirun = [
        "mpirun detected that one or more processes exited",
        "mpirun noticed that",
        "prterun noticed that",
        "Primary job  terminated normally",
        "Process name: [[",
        "Exit code: ",
    ];
    (of_slurm && ends.iter().any(|end| line.contains(end)))
        || of_mpirun.iter().any(|sign| line.contains(sign))
        || line.chars().all(|c| matches!(c, '-' | '=' | '*' | ' '))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_lines_are_the_tools_own_and_few() {
        let text = "first\n\n  --------\nimporting\nMPI_Init failed\nMPI_Init failed\n\
                    srun: error: n1: task 0: Exited with exit code 1\nsrun: Terminating StepId=4.0\n\
                    slurmstepd: error: *** STEP 4.0 ON n1 CANCELLED AT 2026-01-01T00:00:00 ***\n\
                    [2026-01-01T00:00:00.123] error: *** JOB 4 ON n1 CANCELLED AT 2026-01-01T00:00:00 DUE to SIGNAL Terminated ***\n";
        assert_eq!(last_of(text), ["first", "importing", "MPI_Init failed"]);
        let many: String = (0..99).map(|n| format!("line {n}\n")).collect();
        assert_eq!(last_of(&many), ["line 94", "line 95", "line 96", "line 97", "line 98"]);
        assert_eq!(last_of(&"x".repeat(5000))[0].len(), LONGEST);
        assert!(last_of("srun: error: Unable to contact slurm controller (connect failure)").len() == 1);
    }
}
