//! Numbers that another source of the same fact contradicts.

use super::*;

#[test]
fn numbers_that_another_source_contradicts_are_inconclusive() {
    let contradiction = |metrics: &str, size: u64| metric::lacks::Contradiction {
        metrics: vec![metrics.into()],
        dims: Dims::new().with(Dim::SizeBytes, size),
        cause: "profile-disagrees".into(),
        why: "printed 10 us, profiled 20 us".into(),
    };
    for value in [1.0, 100.0] {
        let mut world = World::new(at_least(10.0)).saw(value);
        world.case.assertions[0].dims.set(Dim::SizeBytes, 8u64);
        world.analysis().doubts.push(contradiction("nccl.busbw", 8));
        let verdict = world.one();
        assert_eq!(
            (verdict.status, verdict.cause.as_deref()),
            (Status::Inconclusive, Some("profile-disagrees"))
        );
        assert!(verdict.message.contains("printed 10 us, profiled 20 us"), "{}", verdict.message);
        // Of another size, or of something else: it is judged as ever.
        for other in [contradiction("nccl.busbw", 16), contradiction("nccl.wrong", 8)] {
            let mut world = World::new(at_least(10.0));
            world.case.assertions[0].dims.set(Dim::SizeBytes, 8u64);
            world.rows.push(row("nccl.busbw", value, &[(Dim::SizeBytes, "8")]));
            world.analysis().doubts.push(other);
            let status = world.status();
            assert_eq!(status, if value > 10.0 { Status::Pass } else { Status::Fail });
        }
    }
    // Asked for in parts, one of which is contradicted.
    let mut world = World::new(at_least(10.0)).saw(100.0);
    world.case.assertions[0].parts = Arc::from([8u64, 16].map(|size| Dims::new().with(Dim::SizeBytes, size)));
    world.analysis().doubts.push(contradiction("nccl.busbw", 16));
    assert_eq!(world.status(), Status::Inconclusive);
}
