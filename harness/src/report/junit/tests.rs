//! What a CI server finds in the document: names, counters, results, properties and escapes.

use super::read_back::{Document, Element, read};
use super::*;
use crate::report::fixture::Reported as _;
use crate::report::fixture::{self, Made};
use metric::finding::Finding;
use model::artefact::Evidence;

/// Compares the counters of the document with its testcases, at both levels.
fn check_counters(document: &Document) {
    let count = |cases: &[Element], kind: &str| {
        cases.iter().filter(|case| case.result.as_ref().is_some_and(|(name, _)| name == kind)).count()
    };
    let mut sums = [0; 4];
    for (suite, cases) in &document.suites {
        let held = [cases.len(), count(cases, "failure"), count(cases, "error"), count(cases, "skipped")];
        let said = ["tests", "failures", "errors", "skipped"].map(|key| suite.attributes[key].clone());
        assert_eq!(said, held.map(|n| n.to_string()));
        (0..4).for_each(|at| sums[at] += held[at]);
    }
    let said = ["tests", "failures", "errors", "skipped"].map(|key| document.whole.attributes[key].clone());
    assert_eq!(said, sums.map(|n| n.to_string()));
}

fn check_names(document: &Document) {
    let mut names = BTreeSet::new();
    for case in document.suites.iter().flat_map(|(_, cases)| cases) {
        let name = (&case.attributes["classname"], &case.attributes["name"]);
        assert!(names.insert(name), "{name:?}");
    }
}

#[test]
fn a_document_has_properties_attachments_and_results_of_three_kinds() {
    let mut made = fixture::red();
    made.cases[0].verdicts.truncate(2);
    made.cases[1].verdicts.truncate(1);
    made.cases[2].verdicts.truncate(1);
    let document = String::from_utf8(junit(&made.report()).unwrap()).unwrap();
    insta::assert_snapshot!(document, @r#"
    <?xml version="1.0" encoding="utf-8"?>
    <testsuites name="20261121T031000Z-nccl-p5-3f9c" tests="6" failures="3" errors="1" time="184.5" skipped="1" timestamp="2026-03-01T08:00:00Z">
      <testsuite id="0" name="culprits" package="culprits" tests="2" errors="0" failures="2" hostname="p5-[001-004]" timestamp="2026-03-01T08:00:00Z" skipped="0" time="0">
        <properties>
          <property name="run" value="20261121T031000Z-nccl-p5-3f9c"/>
          <property name="simulated" value="SIMULATED"/>
          <property name="culprits" value="culprit p5-003 rdmap113s0 (HRN-NIC-SLOW); suspects p5-001 p5-002"/>
        </properties>
        <testcase name="culprit p5-003 rdmap113s0 (HRN-NIC-SLOW)" time="0" classname="p5-003">
          <failure type="HRN-NIC-SLOW" message="culprit p5-003 rdmap113s0 (HRN-NIC-SLOW): 4.1 GB/s with p5-002 and with p5-004, the other 31 at 11.9"><![CDATA[culprit p5-003 rdmap113s0 (HRN-NIC-SLOW): 4.1 GB/s with p5-002 and with p5-004, the other 31 at 11.9
    explains 1 red assertion in 1 case
    what: one NIC that is slower than its peers with several good partners
    usual cause: the NIC, its PCIe link or its cable: compare retransmits and link speed
    to do: check its retransmits and its PCIe width and speed, reboot the node once; replace it if the fault returns
    next: harness isolate --run 20261121T031000Z-nccl-p5-3f9c
    to drain the node (not run): scontrol update nodename=p5-003 state=drain reason="[harness] HRN-NIC-SLOW rdmap113s0"
    SIMULATED: nothing in this run was measured on real hardware]]></failure>
        </testcase>
        <testcase name="suspects p5-001 p5-002" time="0" classname="suspects">
          <failure type="suspects" message="suspects p5-001 p5-002: hang\x1b[0m"><![CDATA[suspects p5-001 p5-002: hang\x1b[0m
    explains 1 red assertion in 1 case
    next: harness isolate --run 20261121T031000Z-nccl-p5-3f9c
    SIMULATED: nothing in this run was measured on real hardware]]></failure>
        </testcase>
        <system-out><![CDATA[culprit p5-003 rdmap113s0: 4.1 GB/s with p5-002 and with p5-004, the other 31 at 11.9 (HRN-NIC-SLOW)
      next: harness isolate --run 20261121T031000Z-nccl-p5-3f9c
    suspects p5-001 p5-002: hang\x1b[0m
      next: harness isolate --run 20261121T031000Z-nccl-p5-3f9c
    SIMULATED: nothing in this run was measured on real hardware]]></system-out>
      </testsuite>
      <testsuite id="1" name="nccl-p5.nics" package="nccl-p5" tests="2" errors="0" failures="1" hostname="p5-[001-004]" timestamp="2026-03-01T08:00:00Z" skipped="0" time="61.5">
        <properties>
          <property name="simulated" value="SIMULATED"/>
          <property name="harness" value="0.1.0"/>
          <property name="run" value="20261121T031000Z-nccl-p5-3f9c"/>
          <property name="suite" value="nccl-p5"/>
          <property name="case" value="nics"/>
          <property name="end" value="fail"/>
          <property name="inventory" value="default"/>
          <property name="instance" value="sim-p5"/>
          <property name="nodes" value="p5-[001-004]"/>
          <property name="seed" value="1"/>
          <property name="version.nccl" value="2.28.9"/>
          <property name="coverage.nodes" value="3/4"/>
          <property name="coverage.nics" value="96/128"/>
        </properties>
        <testcase name="rate@p5-001/rdmap79s0" time="10.25" classname="nccl-p5.nics">
          <properties>
            <property name="status" value="pass"/>
            <property name="provisional" value="true"/>
            <property name="metric" value="nic.rate"/>
            <property name="value" value="11.9"/>
            <property name="unit" value="GB/s"/>
            <property name="lower" value="11"/>
            <property name="n" value="1"/>
            <property name="n_expected" value="1"/>
            <property name="node" value="p5-001"/>
            <property name="nic" value="rdmap79s0"/>
          </properties>
          <system-out><![CDATA[evidence: cases/nics/raw/rdmap79s0.out:12
    [[ATTACHMENT|cases/nics/raw/rdmap79s0.out]]
    ]]></system-out>
        </testcase>
        <testcase name="rate@p5-003/rdmap113s0" time="10.25" classname="nccl-p5.nics">
          <properties>
            <property name="status" value="fail"/>
            <property name="metric" value="nic.rate"/>
            <property name="value" value="4.1"/>
            <property name="unit" value="GB/s"/>
            <property name="lower" value="11"/>
            <property name="n" value="1"/>
            <property name="n_expected" value="1"/>
            <property name="node" value="p5-003"/>
            <property name="nic" value="rdmap113s0"/>
            <property name="culprit" value="culprit p5-003 rdmap113s0 (HRN-NIC-SLOW)"/>
          </properties>
          <failure type="fail" message="rate of rdmap113s0 on p5-003 must be at least 11 GB/s, measured: 4.1 GB/s"><![CDATA[rate of rdmap113s0 on p5-003 must be at least 11 GB/s, measured: 4.1 GB/s
    explained by culprit p5-003 rdmap113s0 (HRN-NIC-SLOW)
    next: swap the cable and run `--exact` again
    SIMULATED: nothing in this run was measured on real hardware]]></failure>
          <system-out><![CDATA[evidence: cases/nics/raw/rdmap113s0.out:12
    [[ATTACHMENT|cases/nics/raw/rdmap113s0.out]]
    ]]></system-out>
        </testcase>
        <system-out><![CDATA[SIMULATED: nothing in this run was measured on real hardware
    finding clock-jump: p5-002 wall clock went back: 30 s
    finding counter-reset: p5-001 rdmap79s0 counter fell\x1b[2J
    finding counter-reset: p5-001 rdmap80s0 counter fell
    ]]></system-out>
      </testsuite>
      <testsuite id="2" name="nccl-p5.all-reduce" package="nccl-p5" tests="1" errors="1" failures="0" hostname="p5-[001-004]" timestamp="2026-03-01T08:00:00Z" skipped="0" time="61.5">
        <properties>
          <property name="simulated" value="SIMULATED"/>
          <property name="harness" value="0.1.0"/>
          <property name="run" value="20261121T031000Z-nccl-p5-3f9c"/>
          <property name="suite" value="nccl-p5"/>
          <property name="case" value="all-reduce"/>
          <property name="end" value="error"/>
          <property name="inventory" value="default"/>
          <property name="instance" value="sim-p5"/>
          <property name="nodes" value="p5-[001-004]"/>
          <property name="seed" value="1"/>
          <property name="version.nccl" value="2.28.9"/>
          <property name="coverage.nodes" value="3/4"/>
          <property name="coverage.nics" value="96/128"/>
        </properties>
        <testcase name="share@p5-001/rdmap0s0" time="10.25" classname="nccl-p5.all-reduce">
          <properties>
            <property name="status" value="error"/>
            <property name="metric" value="nic.share"/>
            <property name="unit" value="GB/s"/>
            <property name="lower" value="11"/>
            <property name="n" value="0"/>
            <property name="n_expected" value="1"/>
            <property name="node" value="p5-001"/>
            <property name="nic" value="rdmap0s0"/>
            <property name="cause" value="hang"/>
            <property name="culprit" value="suspects p5-001 p5-002"/>
          </properties>
          <error type="error" message="share of rdmap0s0 on p5-001 was not measured: hang"><![CDATA[share of rdmap0s0 on p5-001 was not measured: hang
    explained by suspects p5-001 p5-002
    next: swap the cable and run `--exact` again
    SIMULATED: nothing in this run was measured on real hardware]]></error>
          <system-out><![CDATA[evidence: cases/all-reduce/raw/rdmap0s0.out:12
    [[ATTACHMENT|cases/all-reduce/raw/rdmap0s0.out]]
    ]]></system-out>
        </testcase>
        <system-out><![CDATA[SIMULATED: nothing in this run was measured on real hardware
    ]]></system-out>
      </testsuite>
      <testsuite id="3" name="nccl-p5.rest" package="nccl-p5" tests="1" errors="0" failures="0" hostname="p5-[001-004]" timestamp="2026-03-01T08:00:00Z" skipped="1" time="61.5">
        <properties>
          <property name="simulated" value="SIMULATED"/>
          <property name="harness" value="0.1.0"/>
          <property name="run" value="20261121T031000Z-nccl-p5-3f9c"/>
          <property name="suite" value="nccl-p5"/>
          <property name="case" value="rest"/>
          <property name="end" value="skipped"/>
          <property name="inventory" value="default"/>
          <property name="instance" value="sim-p5"/>
          <property name="nodes" value="p5-[001-004]"/>
          <property name="seed" value="1"/>
          <property name="version.nccl" value="2.28.9"/>
          <property name="coverage.nodes" value="3/4"/>
          <property name="coverage.nics" value="96/128"/>
        </properties>
        <testcase name="share@p5-001/gpu3" time="10.25" classname="nccl-p5.rest">
          <properties>
            <property name="status" value="skipped"/>
            <property name="metric" value="nic.share"/>
            <property name="unit" value="GB/s"/>
            <property name="lower" value="11"/>
            <property name="n" value="0"/>
            <property name="n_expected" value="1"/>
            <property name="node" value="p5-001"/>
            <property name="gpu" value="3"/>
            <property name="cause" value="hang"/>
          </properties>
          <skipped type="skipped" message="share of gpu3 on p5-001 was not measured: hang"><![CDATA[share of gpu3 on p5-001 was not measured: hang
    next: swap the cable and run `--exact` again
    SIMULATED: nothing in this run was measured on real hardware]]></skipped>
          <system-out><![CDATA[evidence: cases/rest/raw/gpu3.out:12
    [[ATTACHMENT|cases/rest/raw/gpu3.out]]
    ]]></system-out>
        </testcase>
        <system-out><![CDATA[SIMULATED: nothing in this run was measured on real hardware
    ]]></system-out>
      </testsuite>
    </testsuites>
    "#);
}

#[test]
fn counters_add_up_and_every_name_is_there_once() {
    let document = read(&junit(&fixture::red().report()).unwrap());
    check_counters(&document);
    check_names(&document);
    assert_eq!(document.suites.len(), 4);
    // One for each assertion, and one for each culprit.
    assert_eq!(document.whole.attributes["tests"], "49");
    assert_eq!(document.whole.attributes["timestamp"], "2026-03-01T08:00:00Z");
    for (suite, _) in &document.suites {
        assert_eq!(suite.attributes["timestamp"], "2026-03-01T08:00:00Z");
        assert_eq!(suite.properties["simulated"], "SIMULATED");
        assert!(suite.text.contains(SIMULATED));
    }
}

#[test]
fn the_culprits_come_first_with_code_evidence_and_next_command() {
    let document = read(&junit(&fixture::red().report()).unwrap());
    let (suite, cases) = &document.suites[0];
    assert_eq!(suite.attributes["name"], "culprits");
    let names: Vec<(&str, &str)> = cases
        .iter()
        .map(|case| (case.attributes["classname"].as_str(), case.attributes["name"].as_str()))
        .collect();
    let nic = "culprit p5-003 rdmap113s0 (HRN-NIC-SLOW)";
    assert_eq!(names, [("p5-003", nic), ("suspects", "suspects p5-001 p5-002")]);
    let (kind, result) = cases[0].result.as_ref().unwrap();
    assert_eq!((kind.as_str(), result["type"].as_str()), ("failure", "HRN-NIC-SLOW"));
    for piece in [
        "4.1 GB/s with p5-002 and with p5-004",
        "next: harness isolate --run 20261121T031000Z-nccl-p5-3f9c",
        "explains 2 red assertions in 1 case",
        "scontrol update nodename=p5-003 state=drain reason=\"[harness] HRN-NIC-SLOW rdmap113s0\"",
    ] {
        assert!(cases[0].text.contains(piece), "{piece}: {}", cases[0].text);
    }
    // A reader that shows the suite's output first shows who it is and what to run.
    assert!(suite.text.starts_with("culprit p5-003 rdmap113s0: 4.1 GB/s"), "{}", suite.text);
    assert!(
        suite.text.contains("\n  next: harness isolate --run 20261121T031000Z-nccl-p5-3f9c\n"),
        "{}",
        suite.text
    );
    // What it explains names it, and what it does not explain does not.
    let failed = &document.suites[1].1;
    assert_eq!(failed[1].properties["culprit"], nic);
    assert!(failed[1].text.contains(&format!("explained by {nic}")), "{}", failed[1].text);
    assert!(!failed[2].properties.contains_key("culprit"), "rdmap114s0 is another NIC");
    let green = read(&junit(&fixture::green().report()).unwrap());
    assert_eq!(green.suites[0].0.attributes["name"], "nccl-p5.nics");
}

#[test]
fn what_max_fail_left_is_skipped_with_the_reason_and_explained_by_no_culprit() {
    let document = read(&junit(&fixture::stopped_by_max_fail().report()).unwrap());
    check_counters(&document);
    // The suspects and what failed; what ended before the run was stopped is an error.
    let counted = ["failures", "errors", "skipped"].map(|key| document.whole.attributes[key].as_str());
    assert_eq!(counted, ["2", "1", "2"]);
    let cases = &document.suites[1].1;
    for left in &cases[1..3] {
        let (kind, result) = left.result.as_ref().unwrap();
        assert_eq!(kind, "skipped");
        assert!(result["message"].ends_with("--max-fail 1: 1 assertion failed"), "{result:?}");
        assert!(
            left.text.contains("--max-fail 1: 1 assertion failed"),
            "GitLab shows the text: {}",
            left.text
        );
        assert_eq!(left.properties["status"], "error", "as in the summary");
        assert!(!left.properties.contains_key("culprit"), "{:?}", left.properties);
    }
    assert_eq!(cases[3].properties["culprit"], "suspects n1 n2 n3 n4");
    let explained = &document.suites[0].1[0].text;
    assert!(explained.contains("explains 2 red assertions in 1 case"), "{explained}");
}

#[test]
fn attachments_are_found_from_where_the_document_is_written() {
    let target = JunitTarget { folder: "../runs/r/".into(), ..JunitTarget::default() };
    let document = String::from_utf8(junit_for(&fixture::green().report(), &target).unwrap()).unwrap();
    assert!(document.contains("[[ATTACHMENT|../runs/r/cases/nics/raw/rdmap79s0.out]]"), "{document}");
}

#[test]
fn the_flavor_of_jenkins_is_valid_by_its_schema_and_loses_no_property() {
    let made = fixture::red();
    let target = JunitTarget { flavor: JunitFlavor::Jenkins, folder: "/abs/".into() };
    let jenkins = junit_for(&made.report(), &target).unwrap();
    assert_eq!(jenkins_schema::violations(&jenkins), Vec::<String>::new());
    let first = &read(&jenkins).suites[1].1[0];
    for line in ["status: pass\n", "metric: nic.rate\n", "value: 11.9\n", "lower: 11\n", "nic: rdmap79s0\n"] {
        assert!(first.text.contains(line), "{line}: {}", first.text);
    }
    let other = junit(&made.report()).unwrap();
    let found = jenkins_schema::violations(&other);
    assert!(found.iter().any(|what| what == "<properties> in <testcase>"), "the checker checks: {found:?}");
    assert!(found.iter().any(|what| what == "attribute skipped of <testsuites>"), "{found:?}");
}

#[test]
fn a_real_run_is_not_called_simulated_anywhere() {
    let mut made = fixture::red();
    made.summary.simulated = false;
    let document = String::from_utf8(junit(&made.report()).unwrap()).unwrap();
    assert!(!document.to_lowercase().contains("simulated"), "{document}");
}

#[test]
fn a_run_of_nothing_is_a_document_too() {
    let document = read(&junit(&Made::from_cases(vec![]).report()).unwrap());
    check_counters(&document);
    let document = read(&junit(&Made::from_cases(vec![fixture::case("empty")]).report()).unwrap());
    check_counters(&document);
    assert_eq!(document.suites[0].0.properties["run"], "20261121T031000Z-nccl-p5-3f9c");
}

#[test]
fn hostile_text_is_escaped_and_nothing_of_it_is_lost() {
    let hostile = "]]><![CDATA[ <x>&amp;'\"\x1b[31m\0\u{ffff}\u{202e} ]]]]>>\nnext";
    let shown = "]]><![CDATA[ <x>&amp;'\"\\x1b[31m\\x00\\u{ffff}\\u{202e} ]]]]>>\\nnext";
    for status in Status::ALL {
        let mut case = fixture::case(hostile);
        let mut verdict = fixture::verdict("c", "l", hostile, hostile, status);
        verdict.name = hostile.to_owned();
        verdict.message = hostile.to_owned();
        verdict.cause = Some(hostile.to_owned());
        verdict.next = Some(hostile.to_owned());
        verdict.evidence = vec![Evidence { file: hostile.to_owned(), line: None }];
        case.verdicts = vec![verdict];
        case.findings = vec![Finding::new(hostile, hostile).node(hostile)];
        let document = read(&junit(&Made::from_cases(vec![case]).report()).unwrap());
        let (suite, cases) = &document.suites[0];
        assert!(suite.text.contains(&format!("finding {shown}: {shown} {shown}")), "{}", suite.text);
        assert_eq!(cases[0].attributes["name"], shown);
        assert_eq!(cases[0].attributes["classname"], format!("nccl-p5.{shown}"));
        assert_eq!(cases[0].properties["node"], shown);
        assert_eq!(cases[0].properties["nic"], shown);
        assert!(cases[0].text.contains(&format!("[[ATTACHMENT|{shown}]]")), "{}", cases[0].text);
        if let Some((_, result)) = &cases[0].result {
            assert_eq!(result["message"], shown);
            assert_eq!(result["type"], status.name());
        }
    }
}

#[test]
fn names_that_are_equal_once_escaped_get_numbers() {
    let mut case = fixture::case("c");
    case.verdicts = ["a\x1b", "a\\x1b", "a\\x1b #2"]
        .map(|name| {
            let verdict = fixture::verdict("c", "l", "n", "p", Status::Pass);
            Verdict { name: format!("nccl-p5::c::{name}"), ..verdict }
        })
        .to_vec();
    let document = read(&junit(&Made::from_cases(vec![case]).report()).unwrap());
    check_names(&document);
}

#[test]
fn numbers_have_no_exponent_and_what_is_no_number_is_no_time() {
    let mut case = fixture::case("c");
    case.seconds = f64::NAN;
    case.verdicts = [1e-7, 1e12, f64::NAN, -1.0, f64::INFINITY]
        .map(|seconds| Verdict { seconds, ..fixture::verdict("c", "l", "n", "p", Status::Pass) })
        .to_vec();
    let document = read(&junit(&Made::from_cases(vec![case]).report()).unwrap());
    let (suite, cases) = &document.suites[0];
    assert_eq!(suite.attributes["time"], "0");
    let times: Vec<&str> = cases.iter().map(|case| case.attributes["time"].as_str()).collect();
    assert_eq!(times, ["0.0000001", "1000000000000", "0", "0", "0"]);
}

#[test]
fn a_start_that_is_not_a_time_is_refused_with_its_text() {
    let mut made = fixture::green();
    made.summary.started = "yesterday".into();
    let why = junit(&made.report()).unwrap_err().to_string();
    assert!(why.starts_with("`started` of the run is not a time") && why.ends_with("`yesterday`"), "{why}");
}

#[test]
fn long_text_keeps_its_beginning_and_its_end() {
    let mut made = fixture::red();
    made.cases[0].verdicts[1].message = format!("begin {} end", "x".repeat(1 << 20));
    let bytes = junit(&made.report()).unwrap();
    assert!(bytes.len() < 200_000, "{}", bytes.len());
    let document = read(&bytes);
    let (_, result) = document.suites[1].1[1].result.as_ref().unwrap();
    assert!(result["message"].starts_with("begin") && result["message"].ends_with("end"));
}

#[test]
fn a_document_that_would_be_too_large_loses_what_passed_first_and_says_so() {
    let mut case = fixture::case("c");
    case.verdicts = (0..200)
        .map(|n| {
            let status = if n % 2 == 0 { Status::Pass } else { Status::Fail };
            fixture::verdict("c", "rate", "p5-001", &format!("rdmap{n}s0"), status)
        })
        .collect();
    let made = Made::from_cases(vec![case]);
    let whole = junit(&made.report()).unwrap().len();
    let at = |most| {
        let document = read(&within(&made.report(), &JunitTarget::default(), most).unwrap());
        check_counters(&document);
        let (suite, cases) = &document.suites[0];
        let has = |at: usize| (!cases[at].text.is_empty(), !cases[at].properties.is_empty());
        (suite.properties.get("left-out").cloned().unwrap_or_default(), has(0), has(1))
    };
    let all = (true, true);
    assert_eq!(at(whole + 1), (String::new(), all, all));
    let (said, pass, fail) = at(whole);
    assert!(said.starts_with("system-out of passes"), "{said}");
    assert_eq!((pass, fail), ((false, true), all));
    let (said, pass, fail) = at(whole * 3 / 4);
    assert!(said.starts_with("system-out and properties of passes"), "{said}");
    assert_eq!((pass, fail), ((false, false), all));
    let (said, pass, fail) = at(0);
    assert!(said.starts_with("all but names and messages"), "{said}");
    assert_eq!((pass, fail), ((false, false), (false, false)));
}

/// Run in release: `cargo test --release -- --ignored forty_thousand`.
#[test]
#[ignore = "a measurement"]
fn forty_thousand_testcases_fit_into_a_document() {
    let cases = (0..10).map(|c| {
        let name = format!("case-{c}");
        let mut case = fixture::case(&name);
        case.verdicts = (0..4000)
            .map(|n| {
                let status = if n % 50 == 0 { Status::Fail } else { Status::Pass };
                fixture::verdict(
                    &name,
                    "rate",
                    &format!("p5-{:03}", n / 32),
                    &format!("rdmap{}s0", n % 32),
                    status,
                )
            })
            .collect();
        case
    });
    let made = Made::from_cases(cases.collect());
    let bytes = junit(&made.report()).unwrap();
    println!("{} bytes", bytes.len());
    assert!(bytes.len() < MOST_BYTES);
}
