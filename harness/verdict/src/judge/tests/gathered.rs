//! What a case's verdict gathers from all of its jobs, and the edges of what parts may differ by.

use super::*;

fn second_job(world: &mut World) {
    let mut job = world.case.jobs[0].clone();
    job.name = "k".into();
    world.case.jobs.push(job);
    let mut record = world.jobs.jobs[0].clone();
    record.name = "k".into();
    world.jobs.jobs.push(record);
    world.analysis.jobs.insert("k".into(), JobAnalysis::default());
}

#[test]
fn versions_are_gathered_over_all_jobs() {
    let mut world = World::new(at_least(1.0)).saw(2.0);
    second_job(&mut world);
    let versions = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<BTreeSet<String>>();
    world.analysis.jobs.get_mut("j").expect("there").versions.insert("nccl".into(), versions(&["2.21"]));
    world.analysis.jobs.get_mut("k").expect("there").versions.insert("nccl".into(), versions(&["2.22"]));
    let expected = BTreeMap::from([("nccl".to_owned(), versions(&["2.21", "2.22"]))]);
    assert_eq!(world.judged().verdict.versions, expected);
}

#[test]
fn findings_are_gathered_over_all_jobs_and_each_names_its_file() {
    let mut world = World::new(at_least(1.0)).saw(2.0);
    second_job(&mut world);
    world.analysis().findings.push(Finding::new("odd", "one").file("raw/j/stdout"));
    world.analysis.jobs.get_mut("k").expect("there").findings.push(Finding::new("odd", "two"));
    let found: Vec<(String, Option<String>)> =
        world.judged().verdict.findings.into_iter().map(|finding| (finding.message, finding.file)).collect();
    let expected = [("one", "raw/j/stdout"), ("two", "raw/k")];
    assert_eq!(found, expected.map(|(text, file)| (text.to_owned(), Some(file.to_owned()))));
}

#[test]
fn each_cause_why_numbers_cannot_be_compared_has_its_own_advice() {
    let mut world = World::new(at_least(1.0)).saw(2.0);
    for (cause, advice) in [
        ("wrong-ranks", "srun --mpi=list"),
        ("raw-edited", "--from collect"),
        ("raw-gone", "--from collect"),
        ("not-analyzed", "--from analyze"),
        ("cut", "free space of the shared folder"),
    ] {
        world.analysis().not_comparable =
            Some(metric::lacks::NotComparable { cause: cause.into(), why: "seen".into() });
        let next = world.one().next.unwrap_or_default();
        assert!(next.contains(advice), "{cause}: {next}");
    }
}

/// A part at `value` among others of its kind.
fn among(value: f64, others: &[f64], tolerance: f64, better: Better) -> World {
    let mut world = World::new(PlannedBound { within_peers: Some(tolerance), ..PlannedBound::default() });
    let asked = &mut world.case.assertions[0];
    asked.better = better;
    asked.dims = Dims::new().with(Dim::Node, "n1").with(Dim::Gpu, 0u64);
    world.rows.push(row("nccl.busbw", value, &[(Dim::Node, "n1"), (Dim::Gpu, "0")]));
    for (at, other) in others.iter().enumerate() {
        world.rows.push(row("nccl.busbw", *other, &[(Dim::Node, "n2"), (Dim::Gpu, &at.to_string())]));
    }
    world
}

#[test]
fn a_part_exactly_at_the_edge_of_what_its_peers_allow_is_within() {
    let verdict = |value, better| among(value, &[64.0, 64.0, 64.0], 0.25, better).one();
    for (better, lower, upper) in [
        (Better::Higher, Some(48.0), None),
        (Better::Lower, None, Some(80.0)),
        (Better::Neither, Some(48.0), Some(80.0)),
    ] {
        for (edge, beyond) in [(lower, -0.5), (upper, 0.5)] {
            let Some(edge) = edge else { continue };
            let within = verdict(edge, better);
            assert_eq!(
                (within.status, within.lower, within.upper),
                (Status::Pass, lower, upper),
                "{better:?}"
            );
            assert_eq!(verdict(edge + beyond, better).status, Status::Fail, "{better:?}");
        }
    }
    let message = verdict(40.0, Better::Higher).message;
    assert!(message.contains("within 25 % of 3 peers, median 64.00 GB/s"), "{message}");
}

#[test]
fn parts_out_of_bounds_are_named_and_the_worst_is_reported() {
    let mut world = World::new(PlannedBound { within_peers: Some(0.1), ..PlannedBound::default() });
    let parts = ["0", "1", "2", "3"];
    world.case.assertions[0].parts = Arc::from(
        parts.map(|gpu| Dims::new().with(Dim::Gpu, gpu.parse::<u64>().expect("a number"))).to_vec(),
    );
    for (gpu, value) in parts.iter().zip([100.0, 100.0, 50.0, 100.0]) {
        world.rows.push(row("nccl.busbw", value, &[(Dim::Gpu, gpu)]));
    }
    let verdict = world.one();
    assert_eq!((verdict.status, verdict.observed), (Status::Fail, Some(50.0)));
    assert!(verdict.message.contains("gpu2") && !verdict.message.contains("gpu0"), "{}", verdict.message);
    // Of two that pass the first is reported; of one that fails and others that pass, never one that passes.
    world.rows[2].value = 99.0;
    world.rows[0].value = 101.0;
    let verdict = world.one();
    assert_eq!((verdict.status, verdict.observed), (Status::Pass, Some(101.0)));
}

#[test]
fn a_finding_about_another_nodes_report_is_no_reason_and_one_about_none_is() {
    let reason = |of: Option<&str>| {
        let mut world = World::new(at_least(1.0));
        let asked = &mut world.case.assertions[0];
        asked.metric = "rank.kernel_class_share".into();
        asked.node = Some("n1".into());
        let mut finding = Finding::new("report-missing", "not there");
        finding.node = of.map(str::to_owned);
        world.analysis().findings.push(finding);
        world.one().cause
    };
    assert_eq!(reason(Some("n1")).as_deref(), Some("report-missing"));
    assert_eq!(reason(None).as_deref(), Some("report-missing"));
    assert_ne!(reason(Some("n2")).as_deref(), Some("report-missing"));
}

#[test]
fn a_number_that_failed_its_bound_is_not_taken_for_one_that_is_missing() {
    // The first assertion is judged, the second has no number and a reason: the outcome holds both.
    let mut world = World::new(at_least(10.0)).saw(5.0);
    world
        .case
        .assertions
        .push(PlannedAssertion { name: "other".into(), ..assertion("kernel.share", at_least(1.0)) });
    world.analysis().findings.push(Finding::new("report-missing", "not there"));
    let outcome = world.judged().outcomes.jobs.remove(0);
    assert_eq!(outcome.judged, BTreeMap::from([("nccl.busbw".to_owned(), true)]));
    assert_eq!(outcome.bad.map(|bad| bad.cause).as_deref(), Some("report-missing"));
    // A passing number is no failed one.
    let world = World::new(at_least(1.0)).saw(5.0);
    let outcome = world.judged().outcomes.jobs.remove(0);
    assert_eq!(outcome.judged, BTreeMap::from([("nccl.busbw".to_owned(), false)]));
}

#[test]
fn a_job_behind_a_shut_gate_keeps_the_gates_own_cause() {
    let mut world = World::new(at_least(10.0));
    second_job(&mut world);
    world.case.assertions[0].jobs = vec!["j".into(), "k".into()];
    world.analysis().findings.push(Finding::new("row-cut", "cut"));
    world.analysis().not_comparable =
        Some(metric::lacks::NotComparable { cause: "wrong-ranks".into(), why: "seen".into() });
    let bad: Vec<Option<String>> =
        world.judged().outcomes.jobs.into_iter().map(|job| job.bad.map(|bad| bad.cause)).collect();
    assert_eq!(bad, [Some("wrong-ranks".to_owned()), None]);
}
