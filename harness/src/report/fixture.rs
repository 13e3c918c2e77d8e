//! Small made-up runs that the tests of all reports share.

use super::Report;
use crate::artefact::*;
use metric::Dims;
use metric::finding::Finding;
use metric::unit::{Better, Unit};
use std::collections::BTreeMap;

pub struct Made {
    pub plan: Plan,
    pub cases: Vec<CaseVerdict>,
    pub summary: Summary,
}

impl Made {
    pub fn report(&self) -> Report<'_> {
        Report { plan: &self.plan, cases: &self.cases, summary: &self.summary }
    }

    /// A run of these cases, with counts and exit code that follow from them.
    pub fn of(cases: Vec<CaseVerdict>) -> Made {
        let plan = plan();
        let mut summary = summary(&plan);
        for case in &cases {
            let mut counts = Counts::default();
            case.verdicts.iter().for_each(|verdict| add(&mut counts, verdict));
            case.verdicts.iter().for_each(|verdict| add(&mut summary.counts, verdict));
            summary.culprits.extend(case.culprits.iter().cloned());
            summary.cases.push(CaseSummary {
                suite: case.suite.clone(),
                name: case.case.clone(),
                end: case.end,
                must_end: None,
                seconds: case.seconds,
                counts,
                coverage: case.coverage,
                findings: case.findings.clone(),
            });
            summary.seconds += case.seconds;
            let add = |sum: &mut Share, share: Share| {
                sum.measured += share.measured;
                sum.expected += share.expected;
            };
            add(&mut summary.coverage.nodes, case.coverage.nodes);
            add(&mut summary.coverage.nics, case.coverage.nics);
        }
        summary.exit_code = crate::exit_code::of(&summary.counts);
        Made { plan, cases, summary }
    }
}

fn add(counts: &mut Counts, verdict: &Verdict) {
    counts.total += 1;
    counts.provisional += u32::from(verdict.provisional);
    *match verdict.status {
        Status::Pass => &mut counts.pass,
        Status::Fail => &mut counts.fail,
        Status::Inconclusive => &mut counts.inconclusive,
        Status::Error => &mut counts.error,
        Status::Skipped => &mut counts.skipped,
        Status::ExpectedFailure => &mut counts.expected_failure,
        Status::UnexpectedPass => &mut counts.unexpected_pass,
        Status::Unjudged => &mut counts.unjudged,
    } += 1;
}

/// A run with every kind of verdict in it.
pub fn red() -> Made {
    let mut nics = case("nics");
    nics.end = CaseEnd::Fail;
    nics.verdicts = vec![
        verdict("nics", "rate", "p5-001", "rdmap79s0", Status::Pass),
        verdict("nics", "rate", "p5-003", "rdmap113s0", Status::Fail),
        verdict("nics", "rate", "p5-003", "rdmap114s0", Status::Fail),
        verdict("nics", "drops", "p5-003", "rdmap113s0", Status::UnexpectedPass),
    ];
    nics.verdicts[0].provisional = true;
    nics.findings = vec![
        Finding::new("clock-jump", "wall clock went back: 30 s").node("p5-002"),
        Finding::new("counter-reset", "counter fell\x1b[2J").node("p5-001").part("rdmap79s0"),
        Finding::new("counter-reset", "counter fell").node("p5-001").part("rdmap80s0"),
    ];
    nics.culprits = vec![
        Culprit::Culprit {
            node: "p5-003".into(),
            part: "rdmap113s0".into(),
            evidence: "4.1 GB/s with p5-002 and with p5-004, the other 31 at 11.9".into(),
            code: Some("HRN-NIC-SLOW".into()),
        },
        Culprit::Suspects { nodes: vec!["p5-001".into(), "p5-002".into()], evidence: "hang\x1b[0m".into() },
    ];
    let mut hung = case("all-reduce");
    hung.end = CaseEnd::Error;
    hung.verdicts = (0..40)
        .map(|nic| verdict("all-reduce", "share", "p5-001", &format!("rdmap{nic}s0"), Status::Error))
        .collect();
    hung.verdicts.push(verdict("all-reduce", "busbw", "p5-001", "gpu3", Status::Inconclusive));
    let mut rest = case("rest");
    rest.end = CaseEnd::Skipped;
    rest.verdicts = vec![
        verdict("rest", "share", "p5-001", "gpu3", Status::Skipped),
        verdict("rest", "share", "p5-002", "gpu3", Status::ExpectedFailure),
    ];
    let mut made = Made::of(vec![nics, hung, rest]);
    made.summary.cases[2].must_end = Some(CaseEnd::Fail);
    made
}

/// A run in which all is well.
pub fn green() -> Made {
    let mut case = case("nics");
    case.verdicts =
        ["rdmap79s0", "rdmap80s0"].map(|nic| verdict("nics", "rate", "p5-001", nic, Status::Pass)).to_vec();
    Made::of(vec![case])
}

pub fn case(name: &str) -> CaseVerdict {
    CaseVerdict {
        format: FORMAT,
        suite: "nccl-p5".into(),
        case: name.into(),
        end: CaseEnd::Pass,
        seconds: 61.5,
        simulated: false,
        coverage: Coverage {
            nodes: Share { measured: 3, expected: 4 },
            nics: Share { measured: 96, expected: 128 },
            ..Coverage::default()
        },
        versions: [("nccl".to_owned(), ["2.28.9".to_owned()].into())].into(),
        verdicts: vec![],
        findings: vec![],
        culprits: vec![],
        common_failure: None,
    }
}

pub fn verdict(case: &str, label: &str, node: &str, part: &str, status: Status) -> Verdict {
    let measured = !matches!(status, Status::Inconclusive | Status::Error | Status::Skipped);
    let observed = measured.then_some(if status == Status::Fail { 4.1 } else { 11.9 });
    let message = match observed {
        Some(seen) => format!("{label} of {part} on {node} must be at least 11 GB/s, measured: {seen} GB/s"),
        None => format!("{label} of {part} on {node} was not measured: hang"),
    };
    let is_bad = !matches!(status, Status::Pass);
    Verdict {
        name: format!("nccl-p5::{case}::{label}@{node}/{part}"),
        status,
        provisional: false,
        metric: format!("nic.{label}"),
        unit: Unit::GigabytesPerSecond,
        observed,
        runs: Vec::new(),
        lower: Some(11.0),
        upper: None,
        n: u32::from(measured),
        n_expected: 1,
        baseline: None,
        message,
        next: is_bad.then(|| "swap the cable and run `--exact` again".to_owned()),
        evidence: vec![Evidence { file: format!("cases/{case}/raw/{part}.out"), line: Some(12) }],
        nodes: node.into(),
        node: Some(node.into()),
        part: Some(part.into()),
        cause: (!measured).then(|| "hang".to_owned()),
        judged_by: None,
        seconds: 10.25,
    }
}

fn summary(plan: &Plan) -> Summary {
    Summary {
        format: FORMAT,
        run_id: plan.run_id.clone(),
        parent: None,
        harness: plan.harness.clone(),
        simulated: true,
        note: Some(crate::report::SIMULATED.into()),
        suites: plan.suites.clone(),
        inventory: plan.inventory.clone(),
        instance: plan.instance.name.clone(),
        nodes: "p5-[001-004]".into(),
        left_out: Vec::new(),
        seed: 1,
        started: "2026-03-01T08:00:00Z".into(),
        ended: "2026-03-01T08:02:00Z".into(),
        seconds: 0.0,
        interrupted: None,
        exit_code: 0,
        owed: Vec::new(),
        counts: Counts::default(),
        coverage: Coverage::default(),
        culprits: vec![],
        common_failure: None,
        isolations: vec![],
        cases: vec![],
    }
}

/// One case of two jobs, and one that is skipped.
pub fn plan() -> Plan {
    let nodes: Vec<String> = (1..=4).map(|n| format!("p5-{n:03}")).collect();
    let job = |name: &str, nodes: &[String], round| PlannedJob {
        name: name.into(),
        nodes: nodes.to_vec(),
        round,
        ranks: 64,
        folder: format!("/fsx/runs/r/{name}"),
        files: vec![
            PlannedFile {
                name: "job.sh".into(),
                text: Some("#!/bin/bash\nexport NCCL_DEBUG=WARN\n\tsrun x \x1b\n".into()),
                sha256: None,
            },
            PlannedFile { name: "counters.sh".into(), text: None, sha256: Some("ab".repeat(32)) },
        ],
        launch: ["sbatch", "--parsable", "job.sh", "a b"].map(String::from).to_vec(),
        expected: (0..40)
            .map(|n| ExpectedFile {
                name: format!("rdmap{n}s0.out"),
                kind: FileKind::Flow,
                node: None,
                part: None,
                rank: None,
            })
            .chain([ExpectedFile {
                name: "stdout".into(),
                kind: FileKind::Stdout,
                node: None,
                part: None,
                rank: None,
            }])
            .collect(),
        estimate_s: 90,
        limit_s: 300,
        secrets: Vec::new(),
        profile: None,
        kin: None,
        again_of: None,
    };
    let assertion = |name: &str| PlannedAssertion {
        name: format!("nccl-p5::nics::rate@p5-001/{name}"),
        metric: "nic.rate".into(),
        unit: Unit::GigabytesPerSecond,
        better: Better::Higher,
        dims: Dims::new(),
        parts: vec![].into(),
        jobs: vec!["p5-001-p5-002".into()],
        nodes: "p5-001".into(),
        node: Some("p5-001".into()),
        part: Some(name.into()),
        bound: PlannedBound { at_least: Some(11.0), ..PlannedBound::default() },
    };
    let case = PlannedCase {
        suite: "nccl-p5".into(),
        name: "nics".into(),
        about: "each NIC at its rate".into(),
        tags: vec!["nic".into()],
        workload: WorkloadFacts::NicPairs {
            tool: "fi_rma_bw".into(),
            op: "write".into(),
            memory: None,
            path: None,
        },
        recipes: vec!["nic-flows".into()],
        after: vec![],
        skip: None,
        expected_failure: None,
        must_end: None,
        sim_faults: vec![],
        limit_s: 600,
        stall_s: None,
        queue_limit_s: 3600,
        jobs: vec![job("p5-001-p5-002", &nodes[..2], 0), job("p5-003-p5-004", &nodes[2..], 0)],
        assertions: vec![assertion("rdmap79s0"), assertion("rdmap80s0")],
    };
    let skipped = PlannedCase {
        name: "broken-link".into(),
        skip: Some("faults of the pretend cluster hold on a pretend inventory only".into()),
        jobs: vec![],
        assertions: vec![],
        ..case.clone()
    };
    Plan {
        format: FORMAT,
        harness: "0.1.0".into(),
        run_id: "20261121T031000Z-nccl-p5-3f9c".into(),
        parent: None,
        replayed_from: None,
        owed: Vec::new(),
        simulated: true,
        seed: 1,
        sources: vec![Source { file: "suites/nccl-p5.toml".into(), sha256: "cd".repeat(32) }],
        inventory: "default".into(),
        suites: vec!["nccl-p5".into()],
        instance: InstanceFacts {
            name: "sim-p5".into(),
            gpus: 8,
            nics: vec!["rdmap79s0".into()],
            nic_line_rate_gb_s: 12.5,
            tx_counters: vec![],
            rx_counters: vec![],
            conservation_shown: true,
        },
        launcher: Launcher::Slurm,
        folder: "/fsx/runs/r".into(),
        nodes,
        left_out: Vec::new(),
        settings: BTreeMap::from([("iterations".to_owned(), "5".to_owned())]),
        sim_faults: vec!["p5-003:nic-slow=0.4@rdmap113s0".into()],
        limit_s: None,
        max_fail: None,
        strict: false,
        max_fail_errors: false,
        keep_bad_nodes: false,
        most_jobs: None,
        reservation: None,
        allocations: Vec::new(),
        recipes: Vec::new(),
        isolations: Vec::new(),
        cases: vec![case, skipped],
    }
}
