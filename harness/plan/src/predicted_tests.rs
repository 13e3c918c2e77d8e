//! Which keys a prediction stands for, and that it gives way to numbers.

use super::*;
use crate::baseline;
use config::baseline::Baselines;
use config::inventory::Instances;
use metric::op::Op;
use recipes::catalogue::Catalogue;

const METRIC: &str = "nccl.busbw";

fn instances() -> Instances {
    let shipped = [
        ("p5", include_str!("../../../inventory/instances/p5.toml")),
        ("sim-p5", include_str!("../../../inventory/instances/sim-p5.toml")),
    ];
    let files = shipped.map(|(name, text)| (format!("inventory/instances/{name}.toml"), text.to_owned()));
    let (instances, diagnostics) = Instances::read(&files);
    assert!(diagnostics.is_empty(), "{diagnostics:?}");
    instances
}

fn key(nodes: u32) -> BaselineKey {
    BaselineKey {
        op: Some(Op::AllReduce),
        size_bytes: Some(1 << 30),
        nodes: Some(nodes),
        ranks: Some(nodes * 8),
        placement: Some("all".to_owned()),
        ..BaselineKey::default()
    }
}

fn planned(
    instance: &str,
    metric: &str,
    key: &BaselineKey,
    baselines: Option<&Baselines>,
) -> PlannedBaseline {
    let instances = instances();
    let instance = instances.get(instance).expect("shipped");
    let found = baseline::look_up(baselines, &instance.name, metric, key);
    or_predicted(found, instance, metric, key)
}

fn is_predicted(planned: &PlannedBaseline) -> bool {
    matches!(planned, PlannedBaseline::Provisional(numbers) if numbers.predicted.is_some())
}

#[test]
fn a_key_without_numbers_is_predicted_with_the_end_of_its_interval_as_floor() {
    let PlannedBaseline::Provisional(numbers) = planned("p5", METRIC, &key(3), None) else {
        panic!("not predicted")
    };
    let half_width = numbers.predicted.expect("predicted");
    let lower = numbers.lower.expect("a bound");
    assert_eq!((numbers.floor, numbers.upper), (Some(lower), None));
    assert!(
        lower < numbers.median && numbers.median < 480.0 && half_width < numbers.median / 3.0,
        "{numbers:?}"
    );
    assert_eq!(numbers.source, "predicted; fitted to 65 published figures, figures of 2 and 4 nodes");
}

#[test]
fn what_was_not_measured_on_that_hardware_in_that_way_is_not_predicted() {
    assert!(is_predicted(&planned("p5", METRIC, &key(31), None)));
    let cases = [
        ("sim-p5", METRIC, key(31)),
        ("p5", "nccl.algbw", key(31)),
        ("p5", METRIC, BaselineKey { op: Some(Op::Scatter), ..key(31) }),
        ("p5", METRIC, BaselineKey { ranks: Some(31), ..key(31) }),
        ("p5", METRIC, BaselineKey { algorithm: Some("tree".to_owned()), ..key(31) }),
        ("p5", METRIC, BaselineKey { dtype: Some("half".to_owned()), ..key(31) }),
        ("p5", METRIC, BaselineKey { kernel: Some("x".to_owned()), ..key(31) }),
        ("p5", METRIC, BaselineKey { size_bytes: None, ..key(31) }),
    ];
    for (instance, metric, key) in cases {
        let found = planned(instance, metric, &key, None);
        assert!(matches!(found, PlannedBaseline::None { .. }), "{instance} {metric} {key:?}");
    }
}

#[test]
fn a_baseline_comes_before_a_prediction_and_a_later_one_replaces_it() {
    let text = include_str!("../../../baselines/p5.toml");
    let baselines = Baselines::read(text, "baselines/p5.toml", &Catalogue::built_in())
        .map_err(|diagnostics| diagnostics.to_string())
        .expect("good");
    assert!(!is_predicted(&planned("p5", METRIC, &key(4), Some(&baselines))), "a published figure");
    assert!(is_predicted(&planned("p5", METRIC, &key(7), Some(&baselines))));
}

/// Those operations of `nccl-p5` that figures are published of; the other seven have none.
#[test]
fn all_reduce_all_gather_and_alltoall_are_predicted_on_2_to_64_nodes() {
    let instances = instances();
    let p5 = instances.get("p5").expect("shipped");
    for op in [Op::AllReduce, Op::AllGather, Op::AllToAll] {
        for nodes in 2..=64 {
            for size in [1 << 30, 8 << 30] {
                let key = BaselineKey { op: Some(op), size_bytes: Some(size), ..key(nodes) };
                let none = PlannedBaseline::None { key: String::new() };
                assert!(is_predicted(&or_predicted(none, p5, METRIC, &key)), "{op} {size} {nodes}");
            }
        }
    }
}
