//! The report in the Common Test Report Format (<https://ctrf.io>): first a failed test for each culprit, then one test per
//! assertion. What was not measured counts as failed there, but for what `--max-fail` left: as in JUnit. `rawStatus` has our
//! own word.

#[cfg(test)]
mod schema_tests;

use super::explained::Explanations;
use super::junit::culprits;
use super::text::own_name;
use super::{Report, ReportError, explained, json, unlaunched};
use base::redact::mask_accounts;
use base::text::{SIMULATED, cap, show, show_lines};
use model::artefact::{CaseVerdict, Status, Verdict};
use serde_json::{Value, json};
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

/// How each begins.
pub(super) const BEGINS: &str =
    "{\n  \"reportFormat\": \"CTRF\",\n  \"specVersion\": \"0.0.0\",\n  \"generatedBy\": \"harness ";
/// Of one text, in bytes.
const MOST_BYTES: usize = 64 * 1024;

/// The document.
pub(super) fn ctrf(report: &Report) -> Result<Vec<u8>, ReportError> {
    let summary = report.summary;
    let (start, stop) = (milliseconds(&summary.started)?, milliseconds(&summary.ended)?);
    let explanations = Explanations::new(report);
    let counted = explained::counts(report, &explanations);
    let culprits = culprits::testcases(report).zip(&counted).map(|(culprit, explained)| {
        json!({
            "name": culprits::name(culprit), "status": "failed", "duration": 0, "suite": [culprits::NAME],
            "message": text(&culprits::body(report, culprit, explained)), "rawStatus": "culprit",
            "extra": { "culprit": culprit },
        })
    });
    let of_case = |case: &CaseVerdict| {
        case.verdicts.iter().map(|one| test(report, &explanations, case, one)).collect::<Vec<_>>()
    };
    let tests: Vec<Value> = culprits.chain(report.cases.iter().flat_map(of_case)).collect();
    let count = |status: &str| tests.iter().filter(|test| test["status"] == status).count();
    let document = json!({
        "reportFormat": "CTRF",
        "specVersion": "0.0.0",
        "generatedBy": format!("harness {}", summary.harness),
        "runId": summary.run_id,
        "timestamp": summary.ended,
        "results": {
            "tool": { "name": "harness", "version": summary.harness },
            "summary": {
                "tests": tests.len(), "passed": count("passed"), "failed": count("failed"),
                "skipped": count("skipped"), "pending": 0, "other": 0,
                "suites": report.cases.len() + usize::from(culprits::testcases(report).next().is_some()),
                "start": start, "stop": stop,
                "duration": (summary.seconds.max(0.0) * 1000.0).round() as u64,
                "extra": {
                    "exitCode": summary.exit_code, "counts": summary.counts, "coverage": summary.coverage,
                    "interrupted": summary.interrupted,
                },
            },
            "tests": tests,
            "environment": {
                "testEnvironment": summary.inventory,
                "extra": {
                    "simulated": summary.simulated, "note": summary.simulated.then_some(SIMULATED),
                    "instance": summary.instance, "nodes": summary.nodes, "suites": summary.suites,
                },
            },
        },
    });
    Ok(mask_accounts(&json::pretty(&document)).into_bytes())
}

fn test(report: &Report, explanations: &Explanations, case: &CaseVerdict, verdict: &Verdict) -> Value {
    let status = match verdict.status {
        _ if unlaunched::by_max_fail(verdict) => "skipped",
        Status::Pass => "passed",
        Status::Fail | Status::UnexpectedPass | Status::Inconclusive | Status::Error => "failed",
        Status::Skipped | Status::ExpectedFailure | Status::Unjudged => "skipped",
    };
    let mut message = verdict.message.clone();
    if let Some(culprit) = explanations.culprit_of(verdict) {
        message = format!("{message}\nexplained by {}", culprits::name(culprit));
    }
    if let Some(next) = &verdict.next {
        message = format!("{message}\nnext: {next}");
    }
    if report.summary.simulated && status == "failed" {
        message = format!("{message}\n{SIMULATED}");
    }
    json!({
        "testId": show(&verdict.name), "name": show(own_name(&verdict.name, &case.suite, &case.case)),
        "status": status, "duration": (verdict.seconds.max(0.0) * 1000.0).round() as u64,
        "suite": [show(&case.suite), show(&case.case)], "message": text(&message),
        "rawStatus": verdict.status.name(),
        "extra": {
            "metric": verdict.metric, "unit": verdict.unit, "value": verdict.observed, "lower": verdict.lower,
            "upper": verdict.upper, "baseline": verdict.baseline, "provisional": verdict.provisional,
            "nodes": verdict.nodes, "node": verdict.node, "part": verdict.part, "cause": verdict.cause,
            "evidence": verdict.evidence,
        },
    })
}

fn text(text: &str) -> String {
    show_lines(&cap(text, MOST_BYTES))
}

/// Since 1970.
fn milliseconds(time: &str) -> Result<i64, ReportError> {
    let parsed = OffsetDateTime::parse(time, &Rfc3339)
        .map_err(|why| ReportError(format!("not a time ({why}): `{}`", show(time))))?;
    Ok((parsed.unix_timestamp_nanos() / 1_000_000) as i64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::fixture::{self, Reported as _};

    fn document(made: &fixture::Made) -> Value {
        serde_json::from_slice(&ctrf(&made.report()).unwrap()).unwrap()
    }

    #[test]
    fn documents_are_valid_by_the_published_schema() {
        let mut hostile = fixture::red();
        for case in &mut hostile.cases {
            for verdict in &mut case.verdicts {
                (verdict.seconds, verdict.observed) = (f64::NAN, Some(f64::INFINITY));
                (verdict.message, verdict.name) = (String::new(), "\u{202e}\x1b".into());
            }
        }
        for made in [fixture::red(), fixture::green(), fixture::Made::from_cases(Vec::new()), hostile] {
            assert_eq!(schema_tests::violations(&document(&made)), Vec::<String>::new());
        }
    }

    #[test]
    fn the_schema_is_one_that_refuses() {
        let good = document(&fixture::red());
        let wrongs: [(&str, Value); 7] = [
            ("/results/tests/0/status", json!("green")),
            ("/results/tests/0/duration", json!(1.5)),
            ("/results/tests/0/suite", json!([])),
            ("/results/tests/0/name", json!("")),
            ("/results/summary", json!({ "tests": 1 })),
            ("/specVersion", json!("1")),
            ("/results/tool/own", json!(1)),
        ];
        for (place, value) in wrongs {
            let mut document = good.clone();
            let (parent, key) = place.rsplit_once('/').unwrap();
            document.pointer_mut(parent).unwrap()[key] = value;
            assert_ne!(schema_tests::violations(&document), Vec::<String>::new(), "{place}");
        }
    }

    #[test]
    fn culprits_come_first_and_what_was_not_measured_failed() {
        let red = document(&fixture::red());
        let tests = red["results"]["tests"].as_array().unwrap();
        assert_eq!(tests[0]["name"], "culprit p5-003 rdmap113s0 (HRN-NIC-SLOW)");
        assert!(tests[0]["message"].as_str().unwrap().contains("next: harness isolate --run "));
        let of = |raw: &str| tests.iter().find(|test| test["rawStatus"] == raw).unwrap();
        let statuses =
            ["pass", "fail", "unexpected pass", "error", "inconclusive", "skipped", "expected failure"];
        let statuses = statuses.map(|raw| format!("{raw}: {}", of(raw)["status"])).join("\n");
        insta::assert_snapshot!(format!("{statuses}\n{:#}", red["results"]["summary"]));
        assert!(of("fail")["message"].as_str().unwrap().contains("explained by culprit p5-003 rdmap113s0"));
        let green = document(&fixture::green());
        assert_eq!(green["results"]["summary"]["failed"], 0);
        assert_eq!(green["results"]["summary"]["passed"], green["results"]["summary"]["tests"]);
    }

    #[test]
    fn a_start_that_is_not_a_time_is_refused_with_its_text() {
        let mut made = fixture::green();
        made.summary.started = "yesterday\x1b".into();
        let error = ctrf(&made.report()).unwrap_err().to_string();
        assert!(error.starts_with("not a time (") && error.ends_with("`yesterday\\x1b`"), "{error}");
    }
}
