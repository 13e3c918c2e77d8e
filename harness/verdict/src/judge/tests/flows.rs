//! The ring of flows: one verdict per NIC, or one per node that names its odd NICs, and whom the flows speak against.

use super::*;
use logs::flow_log::GapKind;
use model::artefact::Culprit;

const RATE: f64 = 12.0;

/// Four nodes in a ring, each pair in both directions, all flows of both devices at the same rate.
pub(super) fn ring() -> World {
    let mut world = World::new(at_least(10.0));
    world.case.workload =
        WorkloadFacts::NicPairs { tool: "fi_rma_bw".into(), op: "write".into(), memory: None, path: None };
    let planned = world.case.jobs.remove(0);
    let record = world.jobs.jobs.remove(0);
    world.analysis.jobs.clear();
    for (from, to) in [("n1", "n2"), ("n3", "n4"), ("n2", "n3"), ("n4", "n1")] {
        for (from, to) in [(from, to), (to, from)] {
            let name = format!("{from}-{to}");
            let nodes = vec![from.to_owned(), to.to_owned()];
            world.case.jobs.push(PlannedJob { name: name.clone(), nodes, ..planned.clone() });
            world.jobs.jobs.push(JobRecord { name: name.clone(), ..record.clone() });
            world.analysis.jobs.insert(name.clone(), JobAnalysis::default());
            for nic in ["a", "b"] {
                let mut flow =
                    row("flow.rate", RATE, &[(Dim::Node, from), (Dim::Nic, nic), (Dim::Direction, "tx")]);
                flow.dims.set(Dim::Job, name.as_str());
                world.rows.push(flow);
            }
        }
    }
    let jobs: Vec<String> = world.case.jobs.iter().map(|job| job.name.clone()).collect();
    let asked = &mut world.case.assertions[0];
    asked.metric = "nic.rate".into();
    asked.jobs = jobs;
    asked.node = Some("n1".into());
    asked.parts =
        Arc::from(["a", "b"].map(|nic| Dims::new().with(Dim::Node, "n1").with(Dim::Nic, nic)).to_vec());
    world
}

/// Sets the rate of some flows; of those without one the rows are taken away.
pub(super) fn set(world: &mut World, which: impl Fn(&str, &str) -> bool, rate: Option<f64>) {
    world.rows.retain_mut(|flow| {
        let job = flow.dims.word(Dim::Job).unwrap_or_default();
        if !which(job, flow.dims.word(Dim::Nic).unwrap_or_default()) {
            return true;
        }
        flow.value = rate.unwrap_or_default();
        rate.is_some()
    });
}

fn culprits(world: &World) -> Vec<String> {
    world.judged().verdict.culprits.iter().map(ToString::to_string).collect()
}

#[test]
fn a_sound_node_passes_with_all_its_flows_counted_and_its_slowest_shown() {
    let mut world = ring();
    let verdict = world.one();
    assert_eq!((verdict.status, verdict.observed), (Status::Pass, Some(RATE)));
    assert_eq!((verdict.n, verdict.n_expected), (4, 4), "two devices, two directions");
    assert!(verdict.message.ends_with("12.00 GB/s, expected at least 10.00 GB/s"), "{}", verdict.message);
    assert_eq!((verdict.cause, verdict.next), (None, None));
    assert_eq!(culprits(&world), Vec::<String>::new());
    set(&mut world, |job, nic| nic == "b" && job.starts_with("n1-"), Some(11.0));
    assert_eq!(world.one().observed, Some(11.0));
    set(&mut world, |job, nic| nic == "a" && job.starts_with("n1-"), Some(11.5));
    assert_eq!(world.one().observed, Some(11.0), "the slowest, in whatever order they come");
}

#[test]
fn one_direction_of_one_device_is_asked_for_alone() {
    let mut world = ring();
    world.case.assertions[0].dims = Dims::new().with(Dim::Nic, "a").with(Dim::Direction, "rx");
    set(&mut world, |job, nic| nic == "a" && job.starts_with("n1-"), Some(4.0));
    let verdict = world.one();
    assert_eq!((verdict.status, verdict.n, verdict.n_expected), (Status::Pass, 1, 1));
    world.case.assertions[0].dims.set(Dim::Direction, "tx");
    let verdict = world.one();
    assert_eq!((verdict.status, verdict.observed), (Status::Fail, Some(4.0)));
    assert!(verdict.message.ends_with("; expected at least 10.00 GB/s"), "{}", verdict.message);
    assert!(!verdict.message.contains("NICs below"), "one device needs no list: {}", verdict.message);
    world.case.assertions[0].node = Some("n1".to_owned());
    world.case.assertions[0].part = Some("a".to_owned());
    let message = world.one().message;
    assert!(message.contains(" on n1 a: 4.0 GB/s") && !message.contains("n1 a: n1 a"), "{message}");
    assert!(verdict.next.is_some() && verdict.cause.is_none());
}

#[test]
fn a_slow_device_is_named_among_those_of_its_node_and_is_the_culprit() {
    let mut world = ring();
    set(&mut world, |job, nic| nic == "b" && job.starts_with("n1-"), Some(4.0));
    let verdict = world.one();
    assert_eq!((verdict.status, verdict.observed), (Status::Fail, Some(4.0)));
    assert!(verdict.message.contains("1 of 2 NICs below 10.00 GB/s: b; "), "{}", verdict.message);
    let culprits = culprits(&world);
    assert_eq!(culprits.len(), 1, "{culprits:?}");
    assert!(culprits[0].starts_with("culprit n1 b: 4.0 GB/s"), "{culprits:?}");
    // Slow in both directions it is still one device.
    set(&mut world, |job, nic| nic == "b" && job.ends_with("-n1"), Some(3.0));
    let verdict = world.one();
    assert!(verdict.message.contains("1 of 2 NICs below 10.00 GB/s: b; "), "{}", verdict.message);
    assert_eq!(verdict.observed, Some(3.0), "the slowest of what fails");
    set(&mut world, |job, nic| nic == "a" && job.starts_with("n1-"), Some(5.0));
    assert!(world.one().message.contains("2 of 2 NICs below 10.00 GB/s: a, b; "), "{}", world.one().message);
    assert_eq!(world.one().observed, Some(3.0));
    // Of devices that are equally slow the first is reported.
    set(&mut world, |job, _| job.starts_with("n1-") || job.ends_with("-n1"), Some(2.0));
    assert!(world.one().message.contains("; n1 a: 2.0 GB/s"), "{}", world.one().message);
}

#[test]
fn what_fails_is_graver_than_what_was_not_measured() {
    let mut world = ring();
    set(&mut world, |job, nic| nic == "a" && job.starts_with("n1-"), None);
    let verdict = world.one();
    assert_eq!((verdict.status, verdict.cause.as_deref()), (Status::Inconclusive, Some("flow-missing")));
    assert_eq!((verdict.n, verdict.n_expected), (3, 4));
    set(&mut world, |job, nic| nic == "b" && job.starts_with("n1-"), Some(4.0));
    let verdict = world.one();
    assert_eq!((verdict.status, verdict.observed, verdict.cause), (Status::Fail, Some(4.0), None));
    assert!(verdict.message.contains("2 of 2 NICs below 10.00 GB/s: a, b; "), "{}", verdict.message);
}

#[test]
fn a_floor_of_the_baseline_counts_where_it_is_higher_than_the_stated_one() {
    let mut world = ring();
    world.case.assertions[0].bound.baseline = Some(PlannedBaseline::Accepted(numbers(Some(12.5), None)));
    let verdict = world.one();
    assert_eq!((verdict.status, verdict.lower), (Status::Fail, Some(12.5)));
    assert_eq!(verdict.baseline.as_deref(), Some("k"));
    world.case.assertions[0].bound.baseline = Some(PlannedBaseline::Accepted(numbers(Some(9.0), None)));
    assert_eq!((world.status(), world.one().lower), (Status::Pass, Some(10.0)));
    world.case.assertions[0].bound.at_least = None;
    assert_eq!((world.status(), world.one().lower), (Status::Pass, Some(9.0)));
}

#[test]
fn flows_that_say_they_did_not_connect_speak_against_a_device_and_absent_ones_do_not() {
    let mut world = ring();
    let of_n1 = |job: &str| job.starts_with("n1-") || job.ends_with("-n1");
    set(&mut world, |job, nic| nic == "b" && of_n1(job), None);
    assert_eq!(world.status(), Status::Inconclusive);
    assert_eq!(culprits(&world), Vec::<String>::new(), "missing files blame no node");
    for (_, analysis) in world.analysis.jobs.iter_mut().filter(|(job, _)| of_n1(job)) {
        let code = format!("flow-{}", GapKind::NotConnected);
        analysis.findings.push(Finding::new(&code, "no answer").part("b"));
    }
    let culprits = culprits(&world);
    assert!(
        !culprits.is_empty() && culprits.iter().all(|line| line.starts_with("culprit n1 b: ")),
        "{culprits:?}"
    );
}

#[test]
fn a_whole_fleet_below_the_floor_blames_no_node() {
    let mut world = ring();
    set(&mut world, |_, _| true, Some(4.0));
    assert_eq!(world.status(), Status::Fail);
    let culprits = world.judged().verdict.culprits;
    assert!(matches!(culprits.as_slice(), [Culprit::Fleet { .. }]), "{culprits:?}");
}

#[test]
fn a_fleet_on_which_no_flow_connects_blames_no_node_and_says_what_to_check() {
    let mut world = ring();
    set(&mut world, |_, _| true, None);
    for analysis in world.analysis.jobs.values_mut() {
        let code = format!("flow-{}", GapKind::NotConnected);
        analysis.findings.extend(["a", "b"].map(|nic| Finding::new(&code, "no answer").part(nic)));
    }
    let verdict = world.one();
    assert_eq!((verdict.status, verdict.cause.as_deref()), (Status::Inconclusive, Some("flow-missing")));
    assert!(verdict.next.is_some_and(|next| next.starts_with("check that the EFA security group ")));
    assert_eq!(
        culprits(&world),
        ["no culprit: no NIC of 4 nodes connected: check security group and `nics`"]
    );
    let code = crate::isolate::code::Code::for_culprit(&world.judged().verdict.culprits[0]);
    assert_eq!(code.map(|code| code.name), Some("HRN-FLEET-UNCONNECTED"));
}

#[test]
fn a_job_that_did_not_run_to_its_end_has_no_flows() {
    let mut world = ring();
    // Its numbers stand there, of a job that was ended by its limit: they are not counted.
    set(&mut world, |job, _| job.starts_with("n1-") && job != "n1-n2", None);
    let index = world.jobs.jobs.iter().position(|job| job.name == "n1-n2").expect("planned");
    assert_eq!(world.one().n, 4);
    world.jobs.jobs[index].end = Ended::TimeLimit { limit_s: 60 };
    assert_eq!((world.status(), world.one().n), (Status::Inconclusive, 2));
}

#[test]
fn suspects_are_both_ends_in_order_and_once() {
    let mut world = ring();
    // Between n1 and n2 alone, both ways, with no other partner that shows either end.
    world.case.jobs.retain(|job| job.name == "n1-n2" || job.name == "n2-n1");
    world.case.assertions[0].jobs = vec!["n1-n2".into(), "n2-n1".into()];
    set(&mut world, |_, nic| nic == "b", Some(4.0));
    let culprits = world.judged().verdict.culprits;
    assert!(!culprits.is_empty());
    for culprit in culprits {
        let Culprit::Suspects { nodes, .. } = culprit else { panic!("{culprit}") };
        assert_eq!(nodes, ["n1", "n2"]);
    }
}
