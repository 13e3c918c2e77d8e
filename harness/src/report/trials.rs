//! The results of a run in a format of libtest, where `--format` asks for one: verdicts that are known already, as trials
//! of libtest-mimic. Without `--format` they are printed by case (`case_lines`); the end is always that of `terminal`.

use super::Report;
use base::text::show;
use libtest_mimic::{Arguments, Completion, Conclusion, Failed, Trial};
use model::artefact::{Status, Verdict};
use std::panic::{AssertUnwindSafe, catch_unwind, set_hook, take_hook};

/// Prints the verdicts on stdout, on the caller's own thread. Of `args` only filter, format, quietness and colour
/// are obeyed: nothing is left to be chosen once the verdicts are there.
pub(crate) fn face(report: &Report, args: Arguments) -> Result<Conclusion, Unprinted> {
    let args = Arguments {
        quiet: false,
        test_threads: Some(1),
        // A name that was run with `--ignored` has its verdict like any other.
        ignored: false,
        include_ignored: true,
        list: false,
        bench: false,
        test: false,
        logfile: None,
        unstable_flags: None,
        ..args
    };
    let trials = trials(report);
    quietly(|| libtest_mimic::run(&args, trials))
}

/// One trial per verdict, in the order of the cases. Trials that are ignored decide that when they are run: only so is
/// their reason printed.
pub fn trials(report: &Report) -> Vec<Trial> {
    let verdicts = report.cases.iter().flat_map(|case| &case.verdicts);
    verdicts.map(trial).collect()
}

/// Why not all of the results were printed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Unprinted {
    /// The reader of stdout has gone away: no message, and the exit code stays.
    #[error("stdout is closed")]
    Closed,
    /// Stdout cannot be written: a full disk, say.
    #[error("cannot print the results: {0}")]
    Broken(String),
}

fn trial(verdict: &Verdict) -> Trial {
    let name = show(&verdict.name);
    let status = verdict.status;
    match status {
        Status::Pass => Trial::test(name, || Ok(())),
        Status::Skipped | Status::ExpectedFailure => {
            let reason = format!("{status}: {}", show(&verdict.message));
            Trial::ignorable_test(name, move || Ok(Completion::ignored_with(reason)))
        }
        // Why is the same for all of them, and is reported once, at the end.
        Status::Unjudged => Trial::ignorable_test(name, || Ok(Completion::ignored_with("unjudged"))),
        Status::Fail | Status::UnexpectedPass | Status::Inconclusive | Status::Error => {
            let message = failure_text(verdict);
            Trial::test(name, move || Err(Failed::from(message)))
        }
    }
}

/// The status comes first: only it separates a failure from an inconclusive result.
fn failure_text(verdict: &Verdict) -> String {
    let mut lines = vec![format!("{}: {}", verdict.status, show(&verdict.message))];
    for evidence in &verdict.evidence {
        let line = evidence.line.map(|line| format!(":{line}")).unwrap_or_default();
        lines.push(format!("  evidence: {}{line}", show(&evidence.file)));
    }
    if let Some(next) = &verdict.next {
        lines.push(format!("  next: {}", show(next)));
    }
    lines.join("\n")
}

/// libtest-mimic unwraps every write, so that a reader who leaves (`| head`) ends it with a panic. That panic is kept
/// from stderr and from the exit code; the trials themselves cannot panic.
fn quietly<T>(print: impl FnOnce() -> T) -> Result<T, Unprinted> {
    let hook = take_hook();
    set_hook(Box::new(|_| ()));
    let printed = catch_unwind(AssertUnwindSafe(print));
    set_hook(hook);
    printed.map_err(|panic| {
        let why = panic
            .downcast_ref::<String>()
            .map(String::as_str)
            .or_else(|| panic.downcast_ref::<&str>().copied())
            .unwrap_or("unknown");
        let why = why.split_once("`Err` value: ").map_or(why, |(_, why)| why);
        if why.contains("BrokenPipe") { Unprinted::Closed } else { Unprinted::Broken(show(why)) }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::fixture;
    use crate::report::fixture::Reported as _;

    #[test]
    fn a_failure_has_status_then_evidence_then_next_step() {
        let made = fixture::red();
        insta::assert_snapshot!(failure_text(&made.cases[0].verdicts[1]), @r#"
        fail: rate of rdmap113s0 on p5-003 must be at least 11 GB/s, measured: 4.1 GB/s
          evidence: cases/nics/raw/rdmap113s0.out:12
          next: swap the cable and run `--exact` again
        "#);
        for case in &made.cases {
            for verdict in &case.verdicts {
                assert!(failure_text(verdict).starts_with(verdict.status.name()));
            }
        }
    }

    #[test]
    fn every_verdict_is_a_trial_that_returns_it() {
        let made = fixture::red();
        let trials = trials(&made.report());
        assert_eq!(trials.len(), 47);
        assert!(trials.iter().all(|trial| trial.is_test() && !trial.has_ignored_flag()));
        assert_eq!(trials[0].name(), "nccl-p5::nics::rate@p5-001/rdmap79s0");
    }

    #[test]
    fn a_closed_stdout_is_distinguished_from_a_full_disk() {
        let broken =
            |kind: std::io::ErrorKind| quietly(|| panic!("{:?}", std::io::Error::from(kind))).unwrap_err();
        assert_eq!(broken(std::io::ErrorKind::BrokenPipe), Unprinted::Closed);
        assert!(matches!(broken(std::io::ErrorKind::StorageFull), Unprinted::Broken(_)));
        assert_eq!(quietly(|| 7), Ok(7));
    }
}
