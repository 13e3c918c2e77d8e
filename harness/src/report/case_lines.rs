//! The results of a run by case: one line each, or one for each assertion where more detail is asked for.

use super::Report;
use super::culprit_line::MOST_LETTERS;
use super::paint::Paint;
use super::text::own_name;
use base::text::{count, duration, shorten, show};
use model::artefact::{CaseVerdict, Status};
use std::fmt::Write;

/// Cases with a line each; of more, only those that did not pass have one.
const MOST: usize = 50;

/// The lines of all cases, in the order of the plan.
pub(crate) fn case_lines(report: &Report, verbose: bool, color: bool) -> String {
    let paint = Paint { color };
    let mut text = String::new();
    if verbose {
        for case in report.cases {
            assertions(&mut text, case, paint);
        }
        return text;
    }
    let is_many = report.cases.len() > MOST;
    let shown: Vec<&CaseVerdict> = report.cases.iter().filter(|case| !is_many || !is_passed(case)).collect();
    let widest = shown.iter().map(|case| case.case.chars().count()).max().unwrap_or_default().min(32);
    for case in shown.iter().take(MOST) {
        // Infallible: writing to a string.
        let _ = writeln!(text, "{}", line(case, widest, paint));
    }
    let passed = report.cases.iter().filter(|case| is_passed(case)).count();
    if shown.len() > MOST {
        let _ = writeln!(text, "{}: -v shows them", count(shown.len() - MOST, "more case"));
    }
    if is_many && passed > 0 {
        let _ = writeln!(text, "pass  {}: -v shows them", count(passed, "case"));
    }
    text
}

fn is_passed(case: &CaseVerdict) -> bool {
    !case.verdicts.is_empty() && case.verdicts.iter().all(|verdict| verdict.status == Status::Pass)
}

/// A case: how it ended, its name, how many assertions ended in which way, and how long it took.
pub(crate) fn line(case: &CaseVerdict, width: usize, paint: Paint) -> String {
    let worst = worst(case);
    let word = format!("{:<5}", word(worst));
    let name = format!("{:<width$}", show(&case.case));
    let counts = counts(case);
    let took = if case.seconds > 0.0 { format!(", {}", duration(case.seconds)) } else { String::new() };
    let rest = shorten(&format!("{name}  {counts}{took}"), MOST_LETTERS - 6);
    match worst {
        Status::Pass => format!("{} {rest}", paint.green(&word)),
        other => format!("{} {rest}", paint.status(other, &word)),
    }
}

pub(super) fn word(status: Status) -> &'static str {
    match status {
        Status::Pass => "pass",
        Status::Fail | Status::UnexpectedPass => "FAIL",
        Status::Error => "ERR",
        Status::Inconclusive => "INC",
        Status::Skipped => "skip",
        Status::ExpectedFailure => "xfail",
        Status::Unjudged => "open",
    }
}

/// From the worst to the best; a case in which anything passed is no skipped one.
const ORDER: [Status; 8] = [
    Status::Fail,
    Status::UnexpectedPass,
    Status::Error,
    Status::Inconclusive,
    Status::ExpectedFailure,
    Status::Pass,
    Status::Unjudged,
    Status::Skipped,
];

pub(super) fn worst(case: &CaseVerdict) -> Status {
    let has = |status: &Status| case.verdicts.iter().any(|verdict| verdict.status == *status);
    // A case without any verdict has shown nothing.
    ORDER.into_iter().find(|status| has(status)).unwrap_or(Status::Inconclusive)
}

fn counts(case: &CaseVerdict) -> String {
    let total = case.verdicts.len();
    let of = |status: Status| case.verdicts.iter().filter(|verdict| verdict.status == status).count();
    let parts: Vec<String> = ORDER
        .into_iter()
        .map(|status| (of(status), status.name()))
        .filter(|(n, _)| *n > 0)
        .map(|(n, name)| if n == total { format!("{n} {name}") } else { format!("{n} of {total} {name}") })
        .collect();
    if parts.is_empty() { "no assertion".to_owned() } else { parts.join(", ") }
}

/// A line for each assertion, whose message is shown whole where it is not a pass.
fn assertions(text: &mut String, case: &CaseVerdict, paint: Paint) {
    let _ = writeln!(text, "{}::{}", show(&case.suite), show(&case.case));
    for verdict in &case.verdicts {
        let name = show(own_name(&verdict.name, &case.suite, &case.case));
        let status = paint.status(verdict.status, verdict.status.name());
        let value =
            verdict.observed.map(|value| format!(": {}", verdict.unit.show(value))).unwrap_or_default();
        if verdict.status == Status::Pass {
            let _ = writeln!(text, "  {status} {name}{value}");
            continue;
        }
        let _ = writeln!(text, "  {status} {name}: {}", show(&verdict.message));
        if !verdict.status.is_red() {
            continue;
        }
        for evidence in &verdict.evidence {
            let at = evidence.line.map(|line| format!(":{line}")).unwrap_or_default();
            let _ = writeln!(text, "    evidence: {}{at}", show(&evidence.file));
        }
        if let Some(next) = &verdict.next {
            let _ = writeln!(text, "    next: {}", show(next));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::fixture;
    use crate::report::fixture::{Made, Reported as _};

    #[test]
    fn each_case_is_one_line_and_each_assertion_one_where_asked_for() {
        let made = fixture::red();
        insta::assert_snapshot!(case_lines(&made.report(), false, false), @r#"
        FAIL  nics        2 of 4 fail, 1 of 4 unexpected pass, 1 of 4 pass, 62 s
        ERR   all-reduce  40 of 41 error, 1 of 41 inconclusive, 62 s
        xfail rest        1 of 2 expected failure, 1 of 2 skipped, 62 s
        "#);
        let verbose = case_lines(&made.report(), true, false);
        insta::assert_snapshot!(verbose.lines().take(8).collect::<Vec<_>>().join("\n"), @r#"
        nccl-p5::nics
          pass rate@p5-001/rdmap79s0: 11.90 GB/s
          fail rate@p5-003/rdmap113s0: rate of rdmap113s0 on p5-003 must be at least 11 GB/s, measured: 4.1 GB/s
            evidence: cases/nics/raw/rdmap113s0.out:12
            next: swap the cable and run `--exact` again
          fail rate@p5-003/rdmap114s0: rate of rdmap114s0 on p5-003 must be at least 11 GB/s, measured: 4.1 GB/s
            evidence: cases/nics/raw/rdmap114s0.out:12
            next: swap the cable and run `--exact` again
        "#);
        assert!(made.cases.iter().flat_map(|case| &case.verdicts).all(|verdict| {
            verbose.contains(own_name(&verdict.name, "nccl-p5", &verdict.name))
                || verbose.contains(&verdict.name["nccl-p5::".len()..].split_once("::").unwrap().1.to_owned())
        }));
    }

    #[test]
    fn cases_that_passed_have_no_line_where_there_are_many() {
        let mut cases: Vec<CaseVerdict> = (0..200).map(|n| fixture::case(&format!("case-{n}"))).collect();
        for (at, case) in cases.iter_mut().enumerate() {
            let status = if at == 7 { Status::Fail } else { Status::Pass };
            case.verdicts = vec![fixture::verdict("c", "rate", "p5-001", "gpu3", status)];
        }
        let text = case_lines(&Made::from_cases(cases).report(), false, false);
        insta::assert_snapshot!(text, @r#"
        FAIL  case-7  1 fail, 62 s
        pass  199 cases: -v shows them
        "#);
    }
}
