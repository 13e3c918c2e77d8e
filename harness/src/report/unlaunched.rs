//! What a run did not measure because it was stopped: no culprit explains that, and JUnit has what `--max-fail` left as
//! skipped. The exit code and the counts of the summary know it as errors.

use model::artefact::{Status, Verdict};

/// How the reason of a run begins that was stopped for its failures.
const MAX_FAIL: &str = "--max-fail ";

/// Whether a result is missing for `--max-fail`. The failures that it counted are in the same report, which stays red.
pub(super) fn by_max_fail(verdict: &Verdict) -> bool {
    why(verdict).is_some_and(|why| why.starts_with(MAX_FAIL))
}

/// Whether a result is missing because the run was stopped, for the reason in its summary.
pub(super) fn by_stop(verdict: &Verdict, stopped: Option<&str>) -> bool {
    why(verdict).is_some_and(|why| why.starts_with(MAX_FAIL) || Some(why) == stopped)
}

/// Why the job of a result was not launched, or was ended by the harness.
fn why(verdict: &Verdict) -> Option<&str> {
    let begins = match verdict.cause.as_deref() {
        Some("not-run") => "not run: ",
        Some("interrupted") => "the run was stopped: ",
        _ => return None,
    };
    let (_, why) = verdict.message.split_once(begins)?;
    Some(why).filter(|_| verdict.status == Status::Error)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::fixture;

    #[test]
    fn only_what_the_stop_left_is_missing_because_of_it() {
        let reason = "--max-fail 1: 2 assertions failed";
        // Cause and end of the message, why the run was stopped, and whether `--max-fail` or any stop left it.
        let table = [
            ("not-run", format!("not run: {reason}"), Some(reason), (true, true)),
            ("interrupted", format!("the run was stopped: {reason}"), Some(reason), (true, true)),
            // While the run goes on its summary has no reason.
            ("not-run", format!("not run: {reason}"), None, (true, true)),
            ("not-run", "not run: terminated".to_owned(), Some("terminated"), (false, true)),
            ("not-run", "not run: all hung on the same nodes".to_owned(), Some(reason), (false, false)),
            ("not-run", "none of its jobs was run".to_owned(), Some(reason), (false, false)),
            ("hang", format!("not run: {reason}"), Some(reason), (false, false)),
        ];
        for (cause, message, stopped, expected) in table {
            let mut verdict = fixture::verdict("c", "rate", "n1", "p", Status::Error);
            verdict.cause = Some(cause.to_owned());
            verdict.message = format!("nic.rate on n1: job n1+n2: {message}");
            assert_eq!((by_max_fail(&verdict), by_stop(&verdict, stopped)), expected, "{cause}: {message}");
            verdict.status = Status::Inconclusive;
            assert!(!by_stop(&verdict, stopped), "{message}");
        }
    }
}
