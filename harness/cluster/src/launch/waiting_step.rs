//! Whether srun still waited to start the step of a job's workload when the job ended: its lines in the job's stderr.

use base::text::shorten;
use logs::stream::Pieces;
use std::io::BufRead;

/// The last line by which srun reports that it waits for its step, where it reports no start after that: no rank of the
/// step ever ran. The same of all releases from 20.11 on, but for the reason in parentheses.
pub fn waiting_step(from: impl BufRead) -> Option<String> {
    let mut pieces = Pieces::new(from);
    let mut waiting = None;
    while let Ok(Some(piece)) = pieces.next_piece() {
        let text = piece.plain();
        let line = text.trim();
        if is_wait(line) {
            waiting = Some(shorten(line, 300));
        } else if line.starts_with("srun: Step created for ") {
            waiting = None;
        }
    }
    waiting
}

/// `srun: Job 2 step creation temporarily disabled, retrying (Requested nodes are busy)`, then `... still disabled ...`.
fn is_wait(line: &str) -> bool {
    let said = line.strip_prefix("srun: Job ").and_then(|rest| rest.split_once(' '));
    said.is_some_and(|(job, said)| {
        !job.is_empty()
            && job.bytes().all(|byte| byte.is_ascii_digit())
            && (said.starts_with("step creation temporarily disabled, retrying")
                || said.starts_with("step creation still disabled, retrying"))
    })
}

#[cfg(test)]
mod tests {
    use super::waiting_step;

    fn read(lines: &[&str]) -> Option<String> {
        waiting_step(lines.join("\n").as_bytes())
    }

    #[test]
    fn a_step_that_srun_waits_for_to_the_end_never_started() {
        let first = "srun: Job 2 step creation temporarily disabled, retrying (Requested nodes are busy)";
        let still = "srun: Job 2 step creation still disabled, retrying (Requested nodes are busy)";
        assert_eq!(read(&[first]).as_deref(), Some(first));
        assert_eq!(read(&[first, still, still]).as_deref(), Some(still));
        // What follows when the job is ended.
        assert_eq!(read(&[first, still, "srun: Cancelled pending step for job 2"]).as_deref(), Some(still));
        let ended =
            "slurmstepd: error: *** JOB 2 ON n1 CANCELLED AT 2026-01-01T00:00:00 DUE TO TIME LIMIT ***";
        assert_eq!(read(&[still, ended]).as_deref(), Some(still));
        // Up to 20.02 without a reason.
        let old = "srun: Job 2 step creation temporarily disabled, retrying";
        assert_eq!(read(&[old]).as_deref(), Some(old));
    }

    #[test]
    fn a_step_that_started_after_a_wait_ran() {
        let first = "srun: Job 2 step creation temporarily disabled, retrying (Requested nodes are busy)";
        for created in ["srun: Step created for job 2", "srun: Step created for StepId=2.1"] {
            assert_eq!(read(&[first, created]), None, "{created}");
            assert_eq!(read(&[first, created, "rank 3 prints"]), None, "{created}");
            assert_eq!(read(&[first, created, first]).as_deref(), Some(first), "{created}");
        }
        for other in [
            "",
            "srun: job 2 queued and waiting for resources",
            "srun: Job  step creation still disabled, retrying",
            "srun: Job x step creation still disabled, retrying",
            "says srun: Job 2 step creation still disabled, retrying",
            "srun: error: Unable to create step for job 2: Job/step already completing or completed",
        ] {
            assert_eq!(read(&[other]), None, "{other}");
        }
    }
}
