//! NICs and GPUs that are named as culprits by their own numbers.

use super::*;

#[test]
fn a_device_that_is_not_there_or_moved_nothing_is_named_and_a_smaller_share_is_not() {
    let named = |metric: &str, value: f64| {
        let mut world = World::new(at_least(0.9));
        let asked = &mut world.case.assertions[0];
        asked.metric = metric.into();
        asked.node = Some("n1".into());
        asked.part = Some("a".into());
        asked.dims = Dims::new().with(Dim::Node, "n1").with(Dim::Nic, "a");
        world.rows.push(row(metric, value, &[(Dim::Node, "n1"), (Dim::Nic, "a")]));
        let verdict = world.judged().verdict;
        assert_eq!(verdict.end, CaseEnd::Fail, "{metric} {value}");
        verdict.culprits.iter().map(|culprit| culprit.to_string()).collect::<Vec<_>>()
    };
    assert!(named("nic.present", 0.0)[0].starts_with("culprit n1 a: "));
    assert!(named("nic.share", 0.0)[0].starts_with("culprit n1 a: "));
    assert!(named("nic.share", 0.5).is_empty());
    assert!(named("nic.present", 0.5).is_empty());
    // A NIC is not named by a bandwidth.
    assert!(named("nccl.busbw", 0.0).is_empty());
    assert!(named("nic.tx_bytes", 0.0).is_empty());
}

#[test]
fn an_assertion_over_a_whole_node_names_the_parts_at_zero() {
    let mut world = World::new(PlannedBound { equals: Some(1.0), ..PlannedBound::default() });
    let asked = &mut world.case.assertions[0];
    asked.metric = "nic.present".into();
    asked.node = Some("n1".into());
    asked.dims = Dims::new().with(Dim::Node, "n1");
    asked.parts = ["a", "b"].map(|nic| Dims::new().with(Dim::Nic, nic)).into();
    for (nic, value) in [("a", 1.0), ("b", 0.0)] {
        world.rows.push(row("nic.present", value, &[(Dim::Node, "n1"), (Dim::Nic, nic)]));
    }
    let culprits = world.judged().verdict.culprits;
    assert_eq!(culprits.len(), 1, "{culprits:?}");
    assert!(culprits[0].to_string().starts_with("culprit n1 b: not listed"), "{culprits:?}");
}

#[test]
fn a_gpu_that_ran_alone_is_named_by_its_own_numbers() {
    let mut world = World::new(at_least(10.0));
    let asked = &mut world.case.assertions[0];
    asked.node = Some("n1".into());
    asked.part = Some("gpu3".into());
    asked.dims = Dims::new().with(Dim::Node, "n1").with(Dim::Gpu, 3u64);
    world.rows.push(row("nccl.busbw", 5.0, &[(Dim::Node, "n1"), (Dim::Gpu, "3")]));
    let culprits = world.judged().verdict.culprits;
    assert!(culprits[0].to_string().starts_with("culprit n1 gpu3: "), "{culprits:?}");
}

#[test]
fn gpus_that_are_all_slow_are_shown_beside_the_middle_of_their_baseline() {
    let baseline = Some(PlannedBaseline::Accepted(numbers(Some(90.0), Some(110.0))));
    let mut world = World::new(PlannedBound { baseline, ..PlannedBound::default() });
    let asked = world.case.assertions.remove(0);
    for gpu in 0..8u64 {
        let (name, part) = (format!("{}{gpu}", asked.name), Some(format!("gpu{gpu}")));
        let dims = Dims::new().with(Dim::Node, "n1").with(Dim::Gpu, gpu);
        let asked = PlannedAssertion { name, node: Some("n1".into()), part, dims, ..asked.clone() };
        world.case.assertions.push(asked);
        world.rows.push(row("nccl.busbw", 50.0, &[(Dim::Node, "n1"), (Dim::Gpu, &gpu.to_string())]));
    }
    let culprits = world.judged().verdict.culprits;
    assert_eq!(culprits.len(), 1, "{culprits:?}");
    let shown = culprits[0].to_string();
    assert!(shown.contains("all 8 GPUs at 50.0 GB/s, healthy: 100 ("), "{shown}");
}
