//! Flows of NICs beyond their rate: through whose memory they went, and what a tool refused.

use super::flows::{ring, set};
use super::*;

fn find(world: &mut World, jobs: &str, code: &str, part: Option<&str>) {
    for (job, analysis) in &mut world.analysis.jobs {
        if job.contains(jobs) {
            let mut finding = Finding::new(code, "unknown option --gpu");
            finding.part = part.map(str::to_owned);
            analysis.findings.push(finding);
        }
    }
}

#[test]
fn a_rate_says_whether_it_went_through_gpu_or_host_memory() {
    let mut world = ring();
    assert!(!world.one().message.contains("memory"));
    world.rows.iter_mut().for_each(|flow| flow.dims.set(Dim::Gpu, 0u64));
    assert!(world.one().message.ends_with("through GPU memory"), "{}", world.one().message);
    find(&mut world, "n1-n2", "host-memory", None);
    assert!(world.one().message.contains("through host memory"), "{}", world.one().message);
}

#[test]
fn a_tool_that_refused_every_flow_of_a_nic_is_to_be_installed_and_one_that_refused_some_is_not() {
    let refused = |change: &dyn Fn(&mut World)| {
        let mut world = ring();
        set(&mut world, |job, nic| nic == "a" && job.contains("n1"), None);
        change(&mut world);
        let verdict = world.one();
        assert_eq!(verdict.status, Status::Inconclusive, "{}", verdict.message);
        (verdict.cause.expect("a cause"), verdict.next.expect("a step").starts_with("install "))
    };
    let yes = ("tool-refused".to_owned(), true);
    let no = ("flow-missing".to_owned(), false);
    assert_eq!(refused(&|world| find(world, "n1", "flow-tool-refused", Some("a"))), yes);
    assert_eq!(refused(&|_| {}), no);
    // Another NIC of it, or a finding about something else, says nothing of these flows.
    assert_eq!(refused(&|world| find(world, "n1", "flow-tool-refused", Some("c"))), no);
    assert_eq!(refused(&|world| find(world, "n1", "clock-jump", Some("a"))), no);
    let mixed = |world: &mut World| {
        find(world, "n1-n2", "flow-tool-refused", Some("a"));
        find(world, "n4-n1", "flow-no-output", Some("a"));
    };
    assert_eq!(refused(&mixed), no);
    let other_findings = |world: &mut World| {
        find(world, "n1", "flow-tool-refused", Some("a"));
        find(world, "n1", "clock-jump", Some("a"));
        find(world, "n1", "flow-no-output", Some("c"));
    };
    assert_eq!(refused(&other_findings), yes);
}

#[test]
fn the_culprit_of_a_ring_is_shown_beside_the_median_of_the_good_nics() {
    let mut world = ring();
    set(&mut world, |job, _| job.contains("n2"), Some(4.0));
    set(&mut world, |job, nic| nic == "b" && job == "n4-n1", Some(11.0));
    let culprits: Vec<String> = world.judged().verdict.culprits.iter().map(ToString::to_string).collect();
    assert!(
        culprits.len() == 1 && culprits[0].contains("n2") && culprits[0].contains("healthy: 12.0"),
        "{culprits:?}"
    );
}
