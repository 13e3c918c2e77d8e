//! `junit.xml`: first a testsuite of the culprits, then one testsuite per case and one testcase per assertion, as GitLab
//! and Jenkins read them.
//! junit-report builds the document; what it cannot express is put in by one pass over its output (`junit/pass.rs`).

mod aggregate;
pub(super) mod culprits;
mod flavor;
mod growing;
#[cfg(test)]
mod jenkins_schema;
mod pass;
#[cfg(test)]
mod read_back;
#[cfg(test)]
mod tests;

pub use flavor::{JunitFlavor, JunitTarget};
pub(crate) use growing::GrowingJunit;

use super::explained::Explanations;
use super::{Report, ReportError, unlaunched};
use crate::report::text::{own_name, place};
use base::redact::mask_accounts;
use base::text::SIMULATED;
use base::text::{cap, show, show_lines};
use junit_report::{Duration, OffsetDateTime, TestCase, TestResult, TestSuite};
use model::artefact::{CaseVerdict, Status, Verdict};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use time::format_description::well_known::Rfc3339;

/// GitLab refuses larger documents.
const MOST_BYTES: usize = 30_000_000;
/// Of the text of one testcase; the whole of it lies in the attached files.
const MOST_TEXT_BYTES: usize = 64 * 1024;
/// Of a message, which servers show as one line.
const MOST_MESSAGE_BYTES: usize = 4 * 1024;

/// The document of the run's folder.
pub fn junit(report: &Report) -> Result<Vec<u8>, ReportError> {
    junit_for(report, &JunitTarget::default())
}

/// The document for a reader, with less and less detail of what passed until it is small enough to be read.
pub(crate) fn junit_for(report: &Report, target: &JunitTarget) -> Result<Vec<u8>, ReportError> {
    let document = within(report, target, MOST_BYTES)?;
    Ok(mask_accounts(&String::from_utf8_lossy(&document)).into_bytes())
}

fn within(report: &Report, target: &JunitTarget, most_bytes: usize) -> Result<Vec<u8>, ReportError> {
    let aggregated = aggregate::cases(report);
    let report = &Report { cases: aggregated.as_deref().unwrap_or(report.cases), ..*report };
    let context = Context { report, explanations: Explanations::new(report), target };
    let mut document = Vec::new();
    for detail in Detail::ALL {
        document = render(&context, detail)?;
        if document.len() < most_bytes {
            break;
        }
    }
    Ok(document)
}

/// What every part of the document is made from.
struct Context<'a> {
    report: &'a Report<'a>,
    explanations: Explanations<'a>,
    target: &'a JunitTarget,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Detail {
    Bare,
    NoPropertiesOfPasses,
    NoOutputOfPasses,
    All,
}

impl Detail {
    const ALL: [Detail; 4] =
        [Detail::All, Detail::NoOutputOfPasses, Detail::NoPropertiesOfPasses, Detail::Bare];

    /// What was left out, for the property `left-out`.
    fn left_out(self) -> Option<&'static str> {
        match self {
            Detail::All => None,
            Detail::NoOutputOfPasses => Some("system-out of passes: the document would be over 30 MB"),
            Detail::NoPropertiesOfPasses => {
                Some("system-out and properties of passes: the document would be over 30 MB")
            }
            Detail::Bare => Some("all but names and messages: the document would be over 30 MB"),
        }
    }

    fn has_output(self, status: Status) -> bool {
        self == Detail::All || (status != Status::Pass && self != Detail::Bare)
    }

    fn has_properties(self, status: Status) -> bool {
        self >= Detail::NoOutputOfPasses || (status != Status::Pass && self != Detail::Bare)
    }
}

fn render(context: &Context, detail: Detail) -> Result<Vec<u8>, ReportError> {
    let report = context.report;
    let started = &report.summary.started;
    let timestamp = OffsetDateTime::parse(started, &Rfc3339).map_err(|why| {
        ReportError(format!("`started` of the run is not a time ({why}): `{}`", show(started)))
    })?;
    let mut document = junit_report::Report::new();
    if let Some(culprits) = culprits::testsuite(context, timestamp) {
        document.add_testsuite(culprits);
    }
    for case in report.cases {
        document.add_testsuite(testsuite(context, case, timestamp, detail));
    }
    let mut built = Vec::new();
    document
        .write_xml(&mut built)
        .map_err(|why| ReportError(format!("cannot build the JUnit document: {why}")))?;
    let built = String::from_utf8(built)
        .map_err(|why| ReportError(format!("the JUnit document is not UTF-8: {why}")))?;
    pass::complete(&built, context, detail)
        .map_err(|why| ReportError(format!("cannot re-read the JUnit document: {why}")))
}

fn testsuite(context: &Context, case: &CaseVerdict, timestamp: OffsetDateTime, detail: Detail) -> TestSuite {
    let report = context.report;
    let name = show(&format!("{}.{}", case.suite, case.case));
    let simulated = report.summary.simulated;
    let mut taken = BTreeMap::new();
    let testcases = case
        .verdicts
        .iter()
        .map(|verdict| {
            let own = show(own_name(&verdict.name, &case.suite, &case.case));
            testcase(context, verdict, unique(own, &mut taken), &name, detail)
        })
        .collect();
    TestSuite {
        package: show(&case.suite),
        timestamp,
        hostname: show(&report.summary.nodes),
        testcases,
        system_out: suite_output(case, simulated),
        system_err: None,
        name,
    }
}

/// GitLab keeps the first of two equal names only; two names are equal here at most for what was escaped in them.
fn unique(name: String, taken: &mut BTreeMap<String, u32>) -> String {
    let times = taken.entry(name.clone()).or_insert(0);
    *times += 1;
    match *times {
        1 => name,
        n => unique(format!("{name} #{n}"), taken),
    }
}

fn testcase(context: &Context, verdict: &Verdict, name: String, class: &str, detail: Detail) -> TestCase {
    let type_ = verdict.status.name().to_owned();
    let message = show(&cap(&verdict.message, MOST_MESSAGE_BYTES));
    let cause = (detail != Detail::Bare).then(|| cdata(&body(context, verdict)));
    let result = match verdict.status {
        // `error` of each of hundreds hides the failure that ended the run.
        _ if unlaunched::by_max_fail(verdict) => TestResult::SkippedWithCause { type_, message, cause },
        Status::Pass => TestResult::Success,
        Status::Fail | Status::UnexpectedPass => TestResult::Failure { type_, message, cause },
        Status::Inconclusive | Status::Error => TestResult::Error { type_, message, cause },
        Status::Skipped | Status::ExpectedFailure | Status::Unjudged => {
            // GitLab shows the text, and attributes of an element without one as they lie in its memory.
            TestResult::SkippedWithCause { type_, message, cause }
        }
    };
    TestCase {
        name,
        time: length(verdict.seconds),
        result,
        classname: Some(class.to_owned()),
        filepath: None,
        system_out: if detail.has_output(verdict.status) { output(context, verdict, detail) } else { None },
        system_err: None,
    }
}

/// The text of what did not pass: what a person reads who opens it.
fn body(context: &Context, verdict: &Verdict) -> String {
    let mut text = show_lines(&verdict.message);
    if let Some(culprit) = context.explanations.culprit_of(verdict) {
        write!(text, "\nexplained by {}", culprits::name(culprit)).unwrap_or_default();
    }
    if let Some(next) = &verdict.next {
        write!(text, "\nnext: {}", show_lines(next)).unwrap_or_default();
    }
    if context.report.summary.simulated {
        write!(text, "\n{SIMULATED}").unwrap_or_default();
    }
    cap(&text, MOST_TEXT_BYTES).into_owned()
}

/// Where to look, and the files themselves as attachments, each once.
fn output(context: &Context, verdict: &Verdict, detail: Detail) -> Option<String> {
    let mut text = String::new();
    if !context.target.flavor.has_properties_of_testcases() && detail.has_properties(verdict.status) {
        for (name, value) in pass::case_properties(context, verdict) {
            writeln!(text, "{name}: {value}").unwrap_or_default();
        }
    }
    for evidence in &verdict.evidence {
        let file = show(&evidence.file);
        match evidence.line {
            Some(line) => writeln!(text, "evidence: {file}:{line}").unwrap_or_default(),
            None => writeln!(text, "evidence: {file}").unwrap_or_default(),
        }
    }
    let mut attached = BTreeSet::new();
    for evidence in &verdict.evidence {
        if attached.insert(&evidence.file) {
            writeln!(text, "[[ATTACHMENT|{}{}]]", context.target.folder, show(&evidence.file))
                .unwrap_or_default();
        }
    }
    (!text.is_empty()).then(|| cdata(&cap(&text, MOST_TEXT_BYTES)))
}

/// What was found in the case beside its verdicts.
fn suite_output(case: &CaseVerdict, simulated: bool) -> Option<String> {
    let mut text = String::new();
    if simulated {
        writeln!(text, "{SIMULATED}").unwrap_or_default();
    }
    for finding in &case.findings {
        let (code, message) = (show(&finding.code), show(&finding.message));
        writeln!(text, "finding {code}: {}{message}", place(finding)).unwrap_or_default();
    }
    (!text.is_empty()).then(|| cdata(&cap(&text, MOST_TEXT_BYTES)))
}

/// junit-report writes text as one CDATA section, which text with `]]>` in it would end: that goes into two.
fn cdata(text: &str) -> String {
    text.replace("]]>", "]]]]><![CDATA[>")
}

fn length(seconds: f64) -> Duration {
    Duration::checked_seconds_f64(seconds).filter(|length| !length.is_negative()).unwrap_or(Duration::ZERO)
}
