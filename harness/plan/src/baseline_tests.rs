//! Which numbers a plan takes from a file of baselines, and how it widens them.

use super::*;
use metric::op::Op;
use recipes::catalogue::Catalogue;

const TWO_SIZES: &str = r#"
instance = "p5"
between_sizes = true
[[baseline]]
metric = "nccl.busbw"
op = "all_reduce"
size = "1GiB"
nodes = 2
ranks = 16
unit = "GB/s"
state = "accepted"
lower = 390
upper = 410
spread = 0.01
freedom = 20
judged = 10
samples = [400, 400, 400, 400, 400]
source = "x"
[[baseline]]
metric = "nccl.busbw"
op = "all_reduce"
size = "4GiB"
nodes = 2
ranks = 16
unit = "GB/s"
state = "accepted"
lower = 430
upper = 450
samples = [440, 440, 440, 440, 440]
source = "y"
"#;

fn read(text: &str) -> Baselines {
    Baselines::read(text, "baselines/p5.toml", &Catalogue::built_in())
        .map_err(|diagnostics| diagnostics.to_string())
        .expect("good")
}

fn key(size: u64, nodes: u32) -> BaselineKey {
    BaselineKey {
        op: Some(Op::AllReduce),
        size_bytes: Some(size),
        nodes: Some(nodes),
        ranks: Some(nodes * 8),
        ..BaselineKey::default()
    }
}

fn found(baselines: &Baselines, key: &BaselineKey) -> PlannedBaseline {
    look_up(Some(baselines), "p5", "nccl.busbw", key)
}

#[test]
fn a_size_between_two_is_drawn_only_where_that_is_declared_and_never_between_nodes() {
    let declared = read(TWO_SIZES);
    let PlannedBaseline::Provisional(drawn) = found(&declared, &key(2 << 30, 2)) else { panic!("not drawn") };
    for (drawn, is) in [(Some(drawn.median), 420.0), (drawn.lower, 406.0), (drawn.upper, 434.0)] {
        assert!(drawn.is_some_and(|drawn| (drawn - is).abs() < 1e-9), "{drawn:?} {is}");
    }
    assert_eq!(drawn.between.as_deref(), Some("1GiB and 4GiB"));
    let none = |found: PlannedBaseline| matches!(found, PlannedBaseline::None { .. });
    assert!(none(found(&declared, &key(2 << 30, 3))), "never between or beyond numbers of nodes");
    assert!(none(found(&declared, &key(8 << 30, 2))), "never beyond the sizes");
    assert!(none(found(&read(&TWO_SIZES.replace("between_sizes = true", "")), &key(2 << 30, 2))));
    let other = TWO_SIZES.replace("samples = [440", "fingerprint = { nccl = \"2.18\" }\nsamples = [440");
    assert!(none(found(&read(&other), &key(2 << 30, 2))), "never between two kinds of software");
    assert!(
        matches!(found(&declared, &key(1 << 30, 2)), PlannedBaseline::Accepted(_)),
        "the exact key first"
    );
}

#[test]
fn what_distinguishes_keys_is_looked_up_exactly() {
    let baselines = read(TWO_SIZES);
    for other in [
        BaselineKey { dtype: Some("bfloat16".into()), ..key(1 << 30, 2) },
        BaselineKey { algorithm: Some("Ring".into()), ..key(1 << 30, 2) },
        BaselineKey { protocol: Some("LL128".into()), ..key(1 << 30, 2) },
        BaselineKey { runner: Some("torch".into()), ..key(1 << 30, 2) },
        BaselineKey { kernel: Some("gemm".into()), ..key(1 << 30, 2) },
    ] {
        let PlannedBaseline::None { key } = found(&baselines, &other) else { panic!("found: {other:?}") };
        assert!(key.starts_with("p5 nccl.busbw all_reduce, 1GiB, 2 nodes, 16 ranks, "), "{key}");
    }
}

#[test]
fn a_baseline_without_a_placement_stands_for_any_and_one_with_it_for_no_other() {
    let placed = |placement: &str| BaselineKey { placement: Some(placement.into()), ..key(1 << 30, 2) };
    let any = read(TWO_SIZES);
    assert!(matches!(found(&any, &placed("pairs")), PlannedBaseline::Accepted(_)));
    let drawn = found(&any, &BaselineKey { size_bytes: Some(2 << 30), ..placed("pairs") });
    assert!(matches!(drawn, PlannedBaseline::Provisional(_)), "{drawn:?}");
    let pairs = read(&TWO_SIZES.replacen("ranks = 16", "ranks = 16\nplacement = \"pairs\"", 1));
    assert!(matches!(found(&pairs, &placed("pairs")), PlannedBaseline::Accepted(_)));
    for other in [placed("all"), key(1 << 30, 2)] {
        assert!(matches!(found(&pairs, &other), PlannedBaseline::None { .. }), "{other:?}");
    }
    let mixed = found(&pairs, &BaselineKey { size_bytes: Some(2 << 30), ..placed("pairs") });
    assert!(matches!(mixed, PlannedBaseline::None { .. }), "never between two placements: {mixed:?}");
}

#[test]
fn a_shown_key_is_read_back_the_same() {
    let whole = BaselineKey {
        dtype: Some("half".into()),
        placement: Some("each gpu".into()),
        training: Some("fsdp-llama2-7b".into()),
        algorithm: Some("NVLSTree".into()),
        protocol: Some("Simple".into()),
        runner: Some("torch gloo".into()),
        kernel: Some("void gemm<a, b>(int, float)".into()),
        ..key(1 << 30, 2)
    };
    for key in [whole, key(1 << 30, 2), BaselineKey { kernel: Some("nccl".into()), ..BaselineKey::default() }]
    {
        let text = render_key("p5", "kernel.share", &key);
        assert_eq!(read_shown(&text), Some(("kernel.share".to_owned(), key)), "{text}");
    }
    assert_eq!(read_shown("p5"), None);
    assert_eq!(read_shown("p5 nic.rate two nodes"), None);
}

#[test]
fn a_stored_key_is_drawn_between_sizes_as_it_was_when_it_was_planned() {
    let baselines = read(TWO_SIZES);
    let shown = render_key("p5", "nccl.busbw", &key(2 << 30, 2));
    assert_eq!(between_shown(&baselines, "nccl.busbw", shown.clone()), found(&baselines, &key(2 << 30, 2)));
    let other = shown.replace("16 ranks", "8 ranks");
    assert_eq!(between_shown(&baselines, "nccl.busbw", other.clone()), PlannedBaseline::None { key: other });
}
