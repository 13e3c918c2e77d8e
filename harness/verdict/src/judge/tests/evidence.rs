//! Where a verdict's numbers lie, and how its parts are called.

use super::*;

fn file(name: &str, kind: FileKind, node: Option<&str>, part: Option<&str>) -> CollectedFile {
    CollectedFile {
        job: "j".into(),
        path: format!("raw/j/{name}"),
        kind,
        node: node.map(str::to_owned),
        part: part.map(str::to_owned),
        rank: None,
        bytes: 1,
        sha256: String::new(),
        redacted: 0,
    }
}

fn evidence_paths(world: &World) -> Vec<String> {
    world.one().evidence.iter().map(|evidence| evidence.file.clone()).collect()
}

#[test]
fn evidence_is_of_the_assertions_own_job_node_part_and_kind() {
    let mut world = World::new(at_least(1.0)).saw(2.0);
    let other_job =
        CollectedFile { job: "k".into(), ..file("of-k", FileKind::GpuNcclTests, Some("n1"), Some("gpu3")) };
    world.collected.files = vec![
        other_job,
        file("counters", FileKind::Counters, Some("n1"), None),
        file("gpu3.n1.out", FileKind::GpuNcclTests, Some("n1"), Some("gpu3")),
        file("gpu3.n2.out", FileKind::GpuNcclTests, Some("n2"), Some("gpu3")),
        file("gpu4.n1.out", FileKind::GpuNcclTests, Some("n1"), Some("gpu4")),
        file("stdout", FileKind::NcclTests, None, None),
    ];
    let all =
        ["gpu3.n1.out", "gpu3.n2.out", "gpu4.n1.out", "stdout"].map(|name| format!("cases/c/raw/j/{name}"));
    assert_eq!(evidence_paths(&world), all);
    world.case.assertions[0].node = Some("n1".into());
    assert_eq!(evidence_paths(&world), [all[0].clone(), all[2].clone(), all[3].clone()]);
    world.case.assertions[0].part = Some("gpu3".into());
    assert_eq!(evidence_paths(&world), [all[0].clone(), all[3].clone()]);
    world.collected.files.clear();
    assert_eq!(evidence_paths(&world), ["cases/c/raw/j"], "the job's folder where there is no file");
}

#[test]
fn parts_are_called_as_people_call_them() {
    assert_eq!(part_name(Dim::Gpu, "3"), "gpu3");
    assert_eq!(part_name(Dim::SizeBytes, "1073741824"), "1GiB");
    assert_eq!(part_name(Dim::Nic, "rdmap79s0"), "rdmap79s0");
}
