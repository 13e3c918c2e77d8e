//! One streaming pass over junit-report's document that puts in what that crate cannot express: properties, and the
//! counters and times of suites and of the whole. Names, results and texts are passed on untouched.

use super::{Context, Detail};
use super::{aggregate, culprits};
use crate::report::text::gpu_of;
use crate::report::{Report, unlaunched};
use base::text::show;
use model::artefact::{CaseVerdict, Isolated, Status, Verdict};
use quick_xml::events::{BytesEnd, BytesStart, Event};
use quick_xml::{Reader, Writer};

/// The testsuites and testcases of `built` must be those of the report, in its order.
pub(super) fn complete(built: &str, context: &Context, detail: Detail) -> Result<Vec<u8>, quick_xml::Error> {
    let report = context.report;
    let flavor = context.target.flavor;
    let mut reader = Reader::from_str(built);
    // All text stands in CDATA sections, which are passed on as they are.
    reader.config_mut().trim_text(true);
    let mut writer = Writer::new_with_indent(Vec::with_capacity(built.len() * 2), b' ', 2);
    let mut comes_first = culprits::testcases(report).count() > 0;
    let mut cases = report.cases.iter();
    let mut verdicts = [].iter();
    loop {
        let event = reader.read_event()?;
        let (start, is_empty) = match &event {
            Event::Eof => {
                let mut document = writer.into_inner();
                document.push(b'\n');
                return Ok(document);
            }
            Event::Start(start) => (start, false),
            Event::Empty(start) => (start, true),
            _ => {
                writer.write_event(event)?;
                continue;
            }
        };
        let (start, properties) = match element(start) {
            Element::Testsuites => (run(start, report, flavor.has_all_attributes_of_the_whole()), vec![]),
            Element::Testsuite if comes_first => {
                comes_first = false;
                (suite(start, 0, 0.0), culprits::properties(report))
            }
            Element::Testsuite => match cases.next() {
                Some(case) => {
                    verdicts = case.verdicts.iter();
                    (
                        suite(start, Tally::from_case(case).skipped, case.seconds),
                        suite_properties(report, case, detail),
                    )
                }
                None => (start.borrow(), vec![]),
            },
            Element::Testcase => match verdicts.next() {
                Some(verdict)
                    if flavor.has_properties_of_testcases() && detail.has_properties(verdict.status) =>
                {
                    (start.borrow(), case_properties(context, verdict))
                }
                _ => (start.borrow(), vec![]),
            },
            Element::Other => (start.borrow(), vec![]),
        };
        if is_empty && properties.is_empty() {
            writer.write_event(Event::Empty(start))?;
            continue;
        }
        let end = is_empty.then(|| start.to_end().into_owned());
        writer.write_event(Event::Start(start))?;
        write_properties(&mut writer, &properties)?;
        if let Some(end) = end {
            writer.write_event(Event::End(end))?;
        }
    }
}

enum Element {
    Testsuites,
    Testsuite,
    Testcase,
    Other,
}

fn element(start: &BytesStart) -> Element {
    match start.name().as_ref() {
        "testsuites" => Element::Testsuites,
        "testsuite" => Element::Testsuite,
        "testcase" => Element::Testcase,
        _ => Element::Other,
    }
}

fn write_properties(
    writer: &mut Writer<Vec<u8>>,
    properties: &[(&str, String)],
) -> Result<(), quick_xml::Error> {
    if properties.is_empty() {
        return Ok(());
    }
    writer.write_event(Event::Start(BytesStart::new("properties")))?;
    for (name, value) in properties {
        let property =
            BytesStart::new("property").with_attributes([("name", *name), ("value", value.as_str())]);
        writer.write_event(Event::Empty(property))?;
    }
    writer.write_event(Event::End(BytesEnd::new("properties")))?;
    Ok(())
}

/// The counters of the whole are the sums of those of its suites.
fn run<'a>(start: &BytesStart<'a>, report: &Report, has_all: bool) -> BytesStart<'a> {
    let mut start = start.clone();
    let culprits = culprits::testcases(report).count() as u64;
    let mut sum = Tally { tests: culprits, failures: culprits, ..Tally::default() };
    for case in report.cases {
        sum.add(&Tally::from_case(case));
    }
    start.push_attribute(("name", show(&report.summary.run_id).as_str()));
    start.push_attribute(("tests", sum.tests.to_string().as_str()));
    start.push_attribute(("failures", sum.failures.to_string().as_str()));
    start.push_attribute(("errors", sum.errors.to_string().as_str()));
    start.push_attribute(("time", seconds(report.summary.seconds).as_str()));
    if has_all {
        start.push_attribute(("skipped", sum.skipped.to_string().as_str()));
        start.push_attribute(("timestamp", show(&report.summary.started).as_str()));
    }
    start
}

/// A suite lasts as long as its case did; the times of assertions overlap, so that their sum says nothing.
fn suite<'a>(start: &BytesStart<'a>, skipped: u64, took: f64) -> BytesStart<'a> {
    let mut suite_start = BytesStart::new("testsuite");
    for attribute in start.attributes().flatten() {
        if attribute.key.as_ref() != "time" {
            suite_start.push_attribute(attribute);
        }
    }
    suite_start.push_attribute(("skipped", skipped.to_string().as_str()));
    suite_start.push_attribute(("time", seconds(took).as_str()));
    suite_start
}

#[derive(Default)]
struct Tally {
    tests: u64,
    failures: u64,
    errors: u64,
    skipped: u64,
}

impl Tally {
    fn from_case(case: &CaseVerdict) -> Tally {
        use model::artefact::Status::*;
        let mut tally = Tally::default();
        for verdict in &case.verdicts {
            tally.tests += 1;
            match verdict.status {
                _ if unlaunched::by_max_fail(verdict) => tally.skipped += 1,
                Pass => (),
                Fail | UnexpectedPass => tally.failures += 1,
                Inconclusive | Error => tally.errors += 1,
                Skipped | ExpectedFailure | Unjudged => tally.skipped += 1,
            }
        }
        tally
    }

    fn add(&mut self, other: &Tally) {
        self.tests += other.tests;
        self.failures += other.failures;
        self.errors += other.errors;
        self.skipped += other.skipped;
    }
}

fn suite_properties(report: &Report, case: &CaseVerdict, detail: Detail) -> Vec<(&'static str, String)> {
    let summary = report.summary;
    let coverage = &case.coverage;
    let shares = [
        ("coverage.nodes", coverage.nodes),
        ("coverage.ranks", coverage.ranks),
        ("coverage.nics", coverage.nics),
        ("coverage.sizes", coverage.sizes),
    ];
    let facts = [
        ("simulated", summary.simulated.then(|| "SIMULATED".to_owned())),
        ("harness", Some(show(&summary.harness))),
        ("run", Some(show(&summary.run_id))),
        ("parent", summary.parent.as_deref().map(show)),
        ("suite", Some(show(&case.suite))),
        ("case", Some(show(&case.case))),
        ("end", Some(case.end.name().to_owned())),
        ("inventory", Some(show(&summary.inventory))),
        ("instance", Some(show(&summary.instance))),
        ("nodes", Some(show(&summary.nodes))),
        ("seed", Some(summary.seed.to_string())),
        ("interrupted", summary.interrupted.as_deref().map(show)),
        ("isolation.runs", isolated(report, case, |of| of.rounds.join(" "))),
        ("isolation.end", isolated(report, case, |of| of.end.clone())),
        ("isolation.culprits", isolated(report, case, |of| of.culprits.join("; "))),
        ("left-out", detail.left_out().map(str::to_owned)),
        ("aggregated", aggregate::why(report.plan)),
        ("version.nccl", versions(case, "nccl")),
        ("version.nccl-tests", versions(case, "nccl-tests")),
    ];
    let shares = shares.into_iter().filter(|(_, share)| share.expected > 0);
    present(facts).chain(shares.map(|(name, share)| (name, share.to_string()))).collect()
}

/// A field of the isolation that the red suite of a red case started.
fn isolated(report: &Report, case: &CaseVerdict, field: impl Fn(&Isolated) -> String) -> Option<String> {
    let of = report.summary.isolations.iter().find(|of| of.suite == case.suite)?;
    let is_red = case.verdicts.iter().any(|verdict| verdict.status == Status::Fail);
    Some(show(&field(of))).filter(|value| is_red && !value.is_empty())
}

/// Every version of a thing that the case's jobs ran on.
fn versions(case: &CaseVerdict, name: &str) -> Option<String> {
    let seen: Vec<String> = case.versions.get(name)?.iter().map(|version| show(version)).collect();
    (!seen.is_empty()).then(|| seen.join(", "))
}

pub(super) fn case_properties(context: &Context, verdict: &Verdict) -> Vec<(&'static str, String)> {
    let part = verdict.part.as_deref();
    let gpu = part.and_then(gpu_of);
    let number = |value: Option<f64>| value.map(|value| value.to_string());
    present([
        ("status", Some(verdict.status.name().to_owned())),
        ("provisional", verdict.provisional.then(|| "true".to_owned())),
        ("metric", Some(show(&verdict.metric))),
        ("value", number(verdict.observed)),
        ("unit", Some(verdict.unit.name().to_owned())),
        ("lower", number(verdict.lower)),
        ("upper", number(verdict.upper)),
        ("n", Some(verdict.n.to_string())),
        ("n_expected", Some(verdict.n_expected.to_string())),
        ("baseline", verdict.baseline.as_deref().map(show)),
        ("nodes", verdict.node.is_none().then(|| show(&verdict.nodes))),
        ("node", verdict.node.as_deref().map(show)),
        ("nic", part.filter(|_| gpu.is_none()).map(show)),
        ("gpu", gpu.map(str::to_owned)),
        ("cause", verdict.cause.as_deref().map(show)),
        ("culprit", context.explanations.culprit_of(verdict).map(culprits::name)),
    ])
    .collect()
}

/// What is absent is left out: an empty value would be read as one.
fn present<const N: usize>(
    facts: [(&'static str, Option<String>); N],
) -> impl Iterator<Item = (&'static str, String)> {
    facts.into_iter().filter_map(|(name, value)| Some((name, value?)))
}

/// Decimal, without exponent, as Rust writes every number.
fn seconds(seconds: f64) -> String {
    if seconds.is_finite() && seconds >= 0.0 { seconds.to_string() } else { "0".to_owned() }
}
