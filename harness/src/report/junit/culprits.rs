//! The first testsuite of a red run: a failing testcase for each part that is blamed, with its evidence, code and next
//! command. A reader who opens the report sees them before what they explain.

use super::{Context, MOST_MESSAGE_BYTES, MOST_TEXT_BYTES, cdata, unique};
use crate::report::Report;
use crate::report::culprit_line::{culprit_line, evidence, next_command, subject};
use crate::report::explained::{self, ExplainedCount};
use base::text::{SIMULATED, cap, count, show};
use junit_report::{Duration, OffsetDateTime, TestCase, TestResult, TestSuite};
use model::artefact::Culprit;
use std::collections::BTreeMap;
use std::fmt::Write;
use verdict::isolate::code::Code;

/// Name of the testsuite.
pub(in crate::report) const NAME: &str = "culprits";

/// Those that have a testcase each; none of a run that exits 0.
pub(in crate::report) fn testcases<'a>(report: &Report<'a>) -> impl Iterator<Item = &'a Culprit> {
    let is_red = report.summary.exit_code != 0;
    report.summary.culprits.iter().filter(move |_| is_red)
}

/// The testsuite, where anything is blamed.
pub(super) fn testsuite(context: &Context, timestamp: OffsetDateTime) -> Option<TestSuite> {
    let report = context.report;
    let explained = explained::counts(report, &context.explanations);
    let mut taken = BTreeMap::new();
    let testcases: Vec<TestCase> = testcases(report)
        .zip(explained)
        .map(|(culprit, explained)| testcase(report, culprit, &explained, &mut taken))
        .collect();
    (!testcases.is_empty()).then(|| TestSuite {
        name: NAME.to_owned(),
        package: NAME.to_owned(),
        timestamp,
        hostname: show(&report.summary.nodes),
        testcases,
        system_out: Some(cdata(&output(report))),
        system_err: None,
    })
}

/// Some readers show it above properties and testcases: a line for each culprit.
fn output(report: &Report) -> String {
    let run = &report.summary.run_id;
    let line = |culprit: &Culprit| {
        let line = culprit_line(culprit, report.plan, run, usize::MAX);
        // Readers do not wrap it, and the command must be seen.
        let line = match line.rsplit_once("; next: ") {
            Some((line, next)) => format!("{line}\n  next: {next}"),
            None => line,
        };
        cap(&line, MOST_MESSAGE_BYTES).into_owned()
    };
    let mut lines: Vec<String> = testcases(report).map(line).collect();
    lines.extend(report.summary.simulated.then(|| SIMULATED.to_owned()));
    cap(&lines.join("\n"), MOST_TEXT_BYTES).into_owned()
}

fn testcase(
    report: &Report,
    culprit: &Culprit,
    explained: &ExplainedCount,
    taken: &mut BTreeMap<String, u32>,
) -> TestCase {
    let message = format!("{}: {}", name(culprit), show(evidence(culprit)));
    TestCase {
        name: unique(name(culprit), taken),
        time: Duration::ZERO,
        result: TestResult::Failure {
            type_: type_of(culprit),
            message: cap(&message, MOST_MESSAGE_BYTES).into_owned(),
            cause: Some(cdata(&cap(&body(report, culprit, explained), MOST_TEXT_BYTES))),
        },
        classname: Some(class(culprit)),
        filepath: None,
        system_out: None,
        system_err: None,
    }
}

fn type_of(culprit: &Culprit) -> String {
    Code::for_culprit(culprit).map_or_else(|| "suspects".to_owned(), |code| code.name.to_owned())
}

/// The node, which is how servers group testcases.
fn class(culprit: &Culprit) -> String {
    match culprit {
        Culprit::Culprit { node, .. } => show(node),
        Culprit::Suspects { .. } => "suspects".to_owned(),
        Culprit::Fleet { .. } => "fleet".to_owned(),
    }
}

/// The part and its code, the same in every run: a server follows a testcase by its name.
pub(in crate::report) fn name(culprit: &Culprit) -> String {
    let subject = show(&subject(culprit));
    match Code::for_culprit(culprit) {
        Some(code) => format!("{subject} ({})", code.name),
        None => subject,
    }
}

/// What a person reads who opens it.
pub(in crate::report) fn body(report: &Report, culprit: &Culprit, explained: &ExplainedCount) -> String {
    let run = &report.summary.run_id;
    let mut lines = vec![format!("{}: {}", name(culprit), show(evidence(culprit)))];
    if explained.results > 0 {
        let results = count(explained.results, "red assertion");
        lines.push(format!("explains {results} in {}", count(explained.cases, "case")));
    }
    if let Some(code) = Code::for_culprit(culprit) {
        lines.push(format!("what: {}", code.what));
        lines.push(format!("usual cause: {}", code.cause));
        lines.push(format!("to do: {}", code.next));
    }
    if let Some(next) = next_command(culprit, report.plan, run) {
        lines.push(format!("next: {next}"));
    }
    if let Culprit::Culprit { node, part, .. } = culprit
        && let Some(code) = Code::for_culprit(culprit)
        && let Some(drain) = code.drain(report.plan.launcher, report.cluster, node, part)
    {
        lines.push(format!("to drain the node (not run): {}", show(&drain)));
    }
    if report.summary.simulated {
        lines.push(SIMULATED.to_owned());
    }
    lines.join("\n")
}

/// Of the testsuite.
pub(super) fn properties(report: &Report) -> Vec<(&'static str, String)> {
    let mut properties = vec![("run", show(&report.summary.run_id))];
    if report.summary.simulated {
        properties.push(("simulated", "SIMULATED".to_owned()));
    }
    let mut names = String::new();
    for culprit in testcases(report).take(20) {
        // Infallible: writing to a string.
        let _ = write!(names, "{}{}", if names.is_empty() { "" } else { "; " }, name(culprit));
    }
    properties.push(("culprits", names));
    properties
}
