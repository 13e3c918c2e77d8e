//! The results of a run for programs: the summary as one document, and events as lines of JSON.
//! The fields of the summary are those of its type (`model::artefact::Summary`).

use super::Report;
use base::text::is_deceptive;
use model::artefact::{CaseVerdict, Culprit, Status, Summary, Verdict};
use serde::Serialize;
use serde_json::{Value, json};
use std::fmt::Write;
use std::iter::once;

/// `summary.json`: every field of `Summary`, in its order. Stable within a `format`: fields are added, and none is
/// changed or removed. NaN and infinity are `null`.
pub(crate) fn summary_json(summary: &Summary) -> String {
    document(summary)
}

/// Any artefact as one document on stdout: nothing in it controls a terminal.
pub(crate) fn document(artefact: &impl Serialize) -> String {
    let text = serde_json::to_string_pretty(artefact).expect("an artefact has words as keys only");
    harmless(text) + "\n"
}

/// The lines of `--format json`, one object each, in this order. Those of a case are printed as soon as it is judged, so that
/// cases come in the order in which they end:
///
/// - `{"type":"suite","event":"started","test_count":N,"run":ID,"simulated":BOOL}`
/// - for each case one per assertion: `{"type":"test","event":"ok|failed|ignored","name":..,"status":..,"suite":..,"case":..,..}`
///   with `status` one of `pass`, `fail`, `inconclusive`, `error`, `skipped`, `expected-failure` and
///   `unexpected-pass`; then `provisional`, `metric`, `unit`, `value`, `lower`, `upper`, `n`, `n_expected`, `baseline`,
///   `nodes`, `node`, `part`, `cause`, `message`, `next` and `evidence` (`[{"file":..,"line":..}]`), null where there is none
/// - then one per finding of the case: `{"type":"finding","suite":..,"case":..,"code":..,"node":..,"part":..,"message":..,"file":..,"line":..}`
/// - in a run that does not exit 0, one per guilty part: `{"type":"culprit","kind":"culprit|suspects|fleet",..,
///   "text":..}` with the fields of that kind, and the line that a person is shown
/// - `{"type":"suite","event":"ok|failed","exit_code":N,"counts":{..},"coverage":{..},"seconds":S,"interrupted":..,
///   "run":ID,"simulated":BOOL}`
pub(crate) fn events<'a>(report: &'a Report<'a>) -> impl Iterator<Item = String> + 'a {
    once(started(report)).chain(report.cases.iter().flat_map(case_events)).chain(ended(report))
}

/// The first line, before any case was judged.
pub(crate) fn started(report: &Report) -> String {
    let Report { plan, summary, .. } = report;
    let all: usize = plan.cases.iter().map(|case| case.assertions.len()).sum();
    line(&json!({
        "type": "suite", "event": "started", "test_count": all.max(summary.counts.total as usize),
        "run": summary.run_id, "simulated": summary.simulated,
    }))
}

/// The lines of a case that is judged.
pub(crate) fn case_events(case: &CaseVerdict) -> impl Iterator<Item = String> + '_ {
    let tests = case.verdicts.iter().map(|verdict| test(&case.suite, &case.case, verdict));
    let findings = case.findings.iter().map(|finding| {
        json!({
            "type": "finding", "suite": case.suite, "case": case.case, "code": finding.code,
            "node": finding.node, "part": finding.part, "message": finding.message,
            "file": finding.file, "line": finding.line,
        })
    });
    tests.chain(findings).map(|event| line(&event))
}

/// The last lines, once the run as a whole is judged.
pub(crate) fn ended<'a>(report: &Report<'a>) -> impl Iterator<Item = String> + 'a {
    let summary = report.summary;
    let ended = json!({
        "type": "suite", "event": if summary.exit_code == 0 { "ok" } else { "failed" },
        "exit_code": summary.exit_code, "counts": summary.counts, "coverage": summary.coverage,
        "seconds": summary.seconds, "interrupted": summary.interrupted,
        "run": summary.run_id, "simulated": summary.simulated,
    });
    let culprits = summary.culprits.iter().filter(|_| summary.exit_code != 0).map(culprit);
    culprits.chain(once(ended)).map(|event| line(&event))
}

/// A document over several lines, with a line end.
pub(super) fn pretty(value: &Value) -> String {
    harmless(format!("{value:#}")) + "\n"
}

/// One object on one line, without a line end.
pub(crate) fn line(value: &Value) -> String {
    harmless(value.to_string())
}

fn test(suite: &str, case: &str, verdict: &Verdict) -> Value {
    let event = match verdict.status {
        Status::Skipped | Status::ExpectedFailure | Status::Unjudged => "ignored",
        status if status.is_red() => "failed",
        _ => "ok",
    };
    json!({
        "type": "test", "event": event, "name": verdict.name, "status": verdict.status,
        "suite": suite, "case": case, "provisional": verdict.provisional,
        "metric": verdict.metric, "unit": verdict.unit, "value": verdict.observed,
        "lower": verdict.lower, "upper": verdict.upper,
        "n": verdict.n, "n_expected": verdict.n_expected, "baseline": verdict.baseline,
        "nodes": verdict.nodes, "node": verdict.node, "part": verdict.part, "cause": verdict.cause,
        "message": verdict.message, "next": verdict.next, "evidence": verdict.evidence,
    })
}

fn culprit(culprit: &Culprit) -> Value {
    let mut event = json!({ "type": "culprit" });
    let fields = serde_json::to_value(culprit).expect("a culprit has words as keys only");
    if let (Some(event), Value::Object(fields)) = (event.as_object_mut(), fields) {
        event.extend(fields);
        event.insert("text".to_owned(), Value::String(culprit.to_string()));
    }
    event
}

/// JSON escapes the control characters of ASCII only; a terminal may obey others. They stand in strings alone.
fn harmless(json: String) -> String {
    let is_harmful = |c: char| matches!(c, '\u{7f}'..='\u{9f}') || is_deceptive(c);
    if !json.contains(is_harmful) {
        return json;
    }
    let mut text = String::with_capacity(json.len() + 64);
    for c in json.chars() {
        if is_harmful(c) {
            for unit in c.encode_utf16(&mut [0; 2]) {
                write!(text, "\\u{unit:04x}").unwrap_or_default();
            }
        } else {
            text.push(c);
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::fixture::Reported as _;
    use crate::report::fixture::{self, Made};

    #[test]
    fn events_come_in_order_and_end_with_the_exit_code() {
        let made = fixture::red();
        let report = made.report();
        let lines: Vec<String> = events(&report).collect();
        insta::assert_snapshot!([0, 1, 2, 5, 51, 52, lines.len() - 1].map(|at| lines[at].as_str()).join("\n"), @r#"
        {"type":"suite","event":"started","test_count":47,"run":"20261121T031000Z-nccl-p5-3f9c","simulated":true}
        {"type":"test","event":"ok","name":"nccl-p5::nics::rate@p5-001/rdmap79s0","status":"pass","suite":"nccl-p5","case":"nics","provisional":true,"metric":"nic.rate","unit":"GB/s","value":11.9,"lower":11.0,"upper":null,"n":1,"n_expected":1,"baseline":null,"nodes":"p5-001","node":"p5-001","part":"rdmap79s0","cause":null,"message":"rate of rdmap79s0 on p5-001 must be at least 11 GB/s, measured: 11.9 GB/s","next":null,"evidence":[{"file":"cases/nics/raw/rdmap79s0.out","line":12}]}
        {"type":"test","event":"failed","name":"nccl-p5::nics::rate@p5-003/rdmap113s0","status":"fail","suite":"nccl-p5","case":"nics","provisional":false,"metric":"nic.rate","unit":"GB/s","value":4.1,"lower":11.0,"upper":null,"n":1,"n_expected":1,"baseline":null,"nodes":"p5-003","node":"p5-003","part":"rdmap113s0","cause":null,"message":"rate of rdmap113s0 on p5-003 must be at least 11 GB/s, measured: 4.1 GB/s","next":"swap the cable and run `--exact` again","evidence":[{"file":"cases/nics/raw/rdmap113s0.out","line":12}]}
        {"type":"finding","suite":"nccl-p5","case":"nics","code":"clock-jump","node":"p5-002","part":null,"message":"wall clock went back: 30 s","file":null,"line":null}
        {"type":"culprit","kind":"culprit","node":"p5-003","part":"rdmap113s0","evidence":"4.1 GB/s with p5-002 and with p5-004, the other 31 at 11.9","code":"HRN-NIC-SLOW","text":"culprit p5-003 rdmap113s0: 4.1 GB/s with p5-002 and with p5-004, the other 31 at 11.9 (HRN-NIC-SLOW)"}
        {"type":"culprit","kind":"suspects","nodes":["p5-001","p5-002"],"evidence":"hang\u001b[0m","text":"suspects p5-001 p5-002: hang\u001b[0m; needs another partner"}
        {"type":"suite","event":"failed","exit_code":1,"counts":{"total":47,"pass":1,"provisional":1,"fail":2,"inconclusive":1,"error":40,"skipped":1,"expected_failure":1,"unexpected_pass":1},"coverage":{"nodes":{"measured":9,"expected":12},"ranks":{"measured":0,"expected":0},"nics":{"measured":288,"expected":384},"sizes":{"measured":0,"expected":0}},"seconds":184.5,"interrupted":null,"run":"20261121T031000Z-nccl-p5-3f9c","simulated":true}
        "#);
        let kinds: Vec<Value> = lines.iter().map(|line| serde_json::from_str(line).unwrap()).collect();
        let of = |kind: &str| kinds.iter().filter(|event| event["type"] == kind).count();
        assert_eq!((of("test"), of("finding"), of("culprit"), of("suite")), (47, 3, 2, 2));
    }

    #[test]
    fn a_green_run_has_no_culprit() {
        let mut made = fixture::green();
        made.summary.culprits.push(Culprit::Fleet { evidence: "all alike".into() });
        assert!(!events(&made.report()).any(|line| line.contains("culprit")));
    }

    #[test]
    fn the_summary_is_read_back_as_it_was() {
        let made = fixture::red();
        let text = summary_json(&made.summary);
        assert_eq!(serde_json::from_str::<Summary>(&text).unwrap(), made.summary);
        assert!(text.contains("\"simulated\": true"), "{text}");
    }

    #[test]
    fn hostile_names_stay_data() {
        let name = "s::c::\x1b[31m\"\u{9b}\u{202e}\u{e0041}\n";
        let mut case = fixture::case("c");
        case.verdicts =
            vec![Verdict { name: name.into(), ..fixture::verdict("c", "l", "n", "p", Status::Pass) }];
        let made = Made::from_cases(vec![case]);
        let report = made.report();
        let lines: Vec<String> = events(&report).collect();
        assert!(!lines.iter().any(|line| line.chars().any(char::is_control) || line.contains(is_deceptive)));
        assert_eq!(serde_json::from_str::<Value>(&lines[1]).unwrap()["name"], name);
    }
}
