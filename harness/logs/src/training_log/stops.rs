//! Signs in the log of a training that it failed: exceptions, calls of NCCL that timed out, results of Megatron that came
//! out wrong. Which node is to blame is not said here.

use crate::nccl_tests::slurm_failure;
use crate::torch_failure::{self, RootCause};
use crate::watchdog::{TimedOut, parse as timed_out};
use metric::finding::Finding;

/// Code of all findings that are made here.
pub(super) const CODE: &str = "training-failure";
/// Of a line that is quoted.
const LONGEST: usize = 160;
/// Of ranks that failed at the same time.
const MOST_FIRST: usize = 3;
/// Exceptions that steps follow were caught; the ranks of a job are not all at the same line.
const STEPS_BEHIND: usize = 2;

/// Parts of lines that only a training prints that failed.
const SIGNS: [&str; 8] = [
    "CUDA out of memory",
    "errors.ChildFailedError",
    "rerun_state_machine:Unexpected result",
    ": found NaN in ",
    "Fatal Python error: ",
    "Terminating the process after attempting to dump debug info",
    // Of the launchers of DeepSpeed and torchrun.
    "exits with return code = -",
    "failed (exitcode: ",
];

#[derive(Debug, Default)]
pub(super) struct Stops {
    torch: torch_failure::Reader,
    timed_out: Option<TimedOut>,
    more_timed_out: u64,
    /// The first line of each sign.
    signs: [Option<(u64, String)>; SIGNS.len()],
    /// How Slurm ended the job: the first line that says why, else the first one; and whether it does.
    slurm: Option<(bool, u64, String)>,
    /// The last lines of steps, from the latest on.
    last_steps: [u64; STEPS_BEHIND],
}

impl Stops {
    /// A line of a step.
    pub(super) fn step(&mut self, line: u64) {
        self.last_steps.rotate_right(1);
        self.last_steps[0] = line;
    }

    /// Any line, with whatever stands around it.
    pub(super) fn line(&mut self, text: &str, line: u64, is_step: bool) {
        // Also on the line of a bar, which ends in no line break.
        if text.contains("Watchdog caught")
            && let Some(read) = timed_out(text, line)
        {
            self.more_timed_out += u64::from(self.timed_out.is_some());
            self.timed_out.get_or_insert(read);
        }
        if is_step || text.contains("NCCL INFO ") {
            return;
        }
        for (sign, place) in SIGNS.iter().zip(&mut self.signs) {
            if place.is_none()
                && let Some(at) = text.find(sign)
            {
                // What leads up to the sign says where.
                let from = text.floor_char_boundary(at.saturating_sub(80));
                let quoted: String = text[from..].trim().chars().take(LONGEST).collect();
                *place = Some((line, quoted));
            }
        }
        if let Some(says_why) = slurm_failure(text)
            && self.slurm.as_ref().is_none_or(|(known, ..)| says_why && !known)
        {
            self.slurm = Some((says_why, line, text.trim().chars().take(LONGEST).collect()));
        }
        self.torch.line(text, line);
    }

    pub(super) fn findings(self) -> Vec<Finding> {
        let finding = |line: u64, why: String| Finding::new(CODE, why).line(line);
        let mut findings = Vec::new();
        // So many steps ended behind it that it did not stop the training.
        let went_on = |line: u64| self.last_steps.last().is_some_and(|step| *step > line);
        let account = self.torch.finish();
        if let Some(cause) = &account.root_cause {
            // Of several within seconds none is known to be the first.
            let ranks: Vec<String> =
                std::iter::once(cause).chain(&account.rivals).take(MOST_FIRST).map(rank_on_host).collect();
            let rank = ranks.join(" or ");
            let code = cause.exit_code.filter(|_| account.rivals.is_empty());
            let code = code.map_or(String::new(), |code| format!(", exit code {code}"));
            findings.push(finding(cause.line, format!("torchrun: {rank} failed first{code}")));
        }
        if let Some((rank, said)) = account.first_exception().filter(|(_, said)| !went_on(said.line)) {
            let rank = rank.map_or(String::new(), |rank| format!("rank {rank}: "));
            let text: String = said.text.chars().take(LONGEST).collect();
            findings.push(finding(said.line, format!("{rank}{text}")));
        }
        if let Some(call) = &self.timed_out {
            let number = call.sequence.map_or(String::new(), |number| format!(" {number}"));
            let more = match self.more_timed_out {
                0 => String::new(),
                more => format!(", and {more} more"),
            };
            let rank = call.rank.map_or("a rank".to_owned(), |rank| format!("rank {rank}"));
            let why = format!("{rank} waited in {}{number} until it timed out{more}", call.operation);
            findings.push(finding(call.line, why));
        }
        let slurm = self.slurm.map(|(_, line, text)| (line, text));
        for (line, text) in self.signs.into_iter().flatten().chain(slurm) {
            let is_known = findings.iter().any(|finding| finding.line == Some(line));
            if !is_known && !went_on(line) {
                findings.push(finding(line, text));
            }
        }
        findings.sort_by_key(|finding| finding.line);
        findings
    }
}

/// The host is that of the rank: the log is often of another one.
fn rank_on_host(cause: &RootCause) -> String {
    let rank = cause.rank.map_or("a rank".to_owned(), |rank| format!("rank {rank}"));
    match &cause.host {
        Some(host) => format!("{rank} on {host}"),
        None => rank,
    }
}
