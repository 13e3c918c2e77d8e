//! How srun and its daemon report the end of a job's step, in the job's stderr: read line by line as it comes, for the
//! workload may have written there what it wanted.

use crate::reach::sink::Sink;
use logs::slurmstepd;
use std::io;

const GIVEN_UP: &str = "srun: error: Timed out waiting for job step";
/// Of a longer line the rest is not looked at. Slurm's own are short.
const LONGEST: usize = 64 << 10;

#[derive(Default)]
pub(super) struct StepEnd {
    line: Vec<u8>,
    is_aborted: bool,
    cancelled: Option<bool>,
    given_up: Option<String>,
}

impl StepEnd {
    /// Whether somebody ended the step that a job's workload is: its daemon says so, or srun stops waiting for a step
    /// that was aborted; and nothing had failed before, for srun ends the leftovers of a step by the same means.
    pub(super) fn is_cancelled(&self) -> bool {
        self.cancelled == Some(true)
    }

    /// srun's line on a step whose tasks it stopped waiting for: its exit code then says nothing about them.
    pub(super) fn given_up(&self) -> Option<&str> {
        self.given_up.as_deref()
    }

    /// There is no more.
    pub(super) fn finish(&mut self) {
        let mut line = std::mem::take(&mut self.line);
        self.read(&String::from_utf8_lossy(&line));
        line.clear();
        self.line = line;
    }

    fn read(&mut self, line: &str) {
        let gives_up = line.starts_with(GIVEN_UP);
        if gives_up && self.given_up.is_none() {
            self.given_up = Some(line.trim_end().to_owned());
        }
        if self.cancelled.is_some() {
            return;
        }
        if line.contains("error: *** STEP ") && line.contains(" CANCELLED AT ") {
            self.cancelled = Some(!line.contains(" DUE TO "));
            return;
        }
        if self.is_aborted && gives_up {
            self.cancelled = Some(true);
            return;
        }
        self.is_aborted |= line.starts_with("srun: Job step aborted");
        let of_slurm = line.starts_with("srun: ")
            || line.starts_with("slurmstepd")
            || slurmstepd::parse_error(line).is_some();
        let fails = line.contains("error: ") || line.contains("Terminating") || line.contains("forcing");
        if (of_slurm && fails) || line.contains("MPI_ABORT") || line.contains("MPI_Abort") {
            self.cancelled = Some(false);
        }
    }
}

impl Sink for StepEnd {
    fn restart(&mut self) -> io::Result<()> {
        *self = StepEnd::default();
        Ok(())
    }

    fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        for piece in bytes.split_inclusive(|byte| *byte == b'\n') {
            let text = piece.strip_suffix(b"\n").unwrap_or(piece);
            let room = LONGEST.saturating_sub(self.line.len()).min(text.len());
            self.line.extend_from_slice(&text[..room]);
            if text.len() < piece.len() {
                self.finish();
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str, chunk: usize) -> StepEnd {
        let mut end = StepEnd::default();
        for chunk in text.as_bytes().chunks(chunk) {
            end.append(chunk).expect("taken");
        }
        end.finish();
        end
    }

    fn step_cancelled(text: &str) -> bool {
        let whole = read(text, text.len()).is_cancelled();
        assert_eq!(read(text, 7).is_cancelled(), whole);
        whole
    }

    #[test]
    fn a_cancelled_step_is_distinguished_from_one_that_srun_ended_after_a_task() {
        let waiting = "srun: Job step aborted: Waiting up to 32 seconds for job step to finish.\n";
        let cancelled = "slurmstepd-n2: error: *** STEP 4.0 ON n2 CANCELLED AT 2026-01-01T00:00:00 ***\n";
        let killed = "srun: error: n2: task 0: Killed\n";
        let noise =
            "srun: cluster configuration lacks support for cpu binding\nthe workload's own error: none\n";
        assert!(step_cancelled(&[noise, waiting, cancelled, killed].concat()));
        for (first, other) in [
            ("", killed),
            (killed, cancelled),
            ("srun: Terminating StepId=4.0\n", cancelled),
            ("slurmstepd: error: mpi/pmix_v4: abort\n", cancelled),
            ("MPI_ABORT was invoked on rank 3\n", cancelled),
            ("srun: forcing job termination\n", cancelled),
            ("slurmstepd: error: *** JOB 4 ON n2 CANCELLED AT 2026-01-01T00:00:00 ***\n", killed),
        ] {
            assert!(!step_cancelled(&[first, other].concat()), "{first}{other}");
        }
        assert!(!step_cancelled(&cancelled.replace(" ***\n", " DUE TO TIME LIMIT ***\n")));
        // From 25.05 on.
        let stamped = cancelled.replace("slurmstepd-n2:", "[2026-01-01T00:00:00.123]");
        let by_signal = stamped.replace(" ***\n", " DUE to SIGNAL Terminated ***\n");
        assert!(step_cancelled(&by_signal) && step_cancelled(&[waiting, &by_signal, killed].concat()));
        assert!(!step_cancelled(&stamped.replace(" ***\n", " DUE TO TASK FAILURE ***\n")));
        let aborted = "[2026-01-01T00:00:00.123] error: mpi/pmix_v5: abort\n";
        assert!(!step_cancelled(&[aborted, &by_signal].concat()));
    }

    #[test]
    fn a_step_that_srun_gave_up_is_found_at_the_end_of_a_long_text_without_holding_it() {
        let line = "srun: error: Timed out waiting for job step to complete";
        let aborted = "srun: Job step aborted: Waiting up to 32 seconds for job step to finish.\n";
        let long = "x".repeat(3 * LONGEST);
        let text = format!("{long}\n{aborted}{long}\n{line}");
        let end = read(&text, 1 << 10);
        assert_eq!((end.given_up(), end.is_cancelled()), (Some(line), true));
        let mut end = read(&text, 1 << 10);
        end.append(&vec![b'x'; 3 * LONGEST]).expect("taken");
        assert_eq!(end.line.len(), LONGEST);
        end.restart().expect("taken");
        end.finish();
        assert_eq!((end.given_up(), end.is_cancelled()), (None, false));
    }
}
