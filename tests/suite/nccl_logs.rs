//! Network cards in NCCL logs, compared with those of the instance that is named.

use crate::project::Project;

#[test]
fn cards_are_compared_with_the_instance_that_is_named() {
    let project = Project::new();
    let file = project.path().join("nccl.log");
    let line = "a:1:2 [0] NCCL INFO NET/OFI Selected provider is efa, fabric is efa (found 31 nics)\n";
    std::fs::write(&file, line).expect("a file");
    let ask = |instance: &str| {
        let file = file.display().to_string();
        project.harness(&["logs", "nccl", &file, "--fail-on-findings", "--instance", instance])
    };
    let fewer = ask("p5");
    assert_eq!(fewer.code, Some(1), "{}", fewer.all());
    assert!(
        fewer.stdout.contains("a process found 31 network cards of `efa`, the instance type has 32"),
        "{}",
        fewer.stdout
    );
    assert_eq!(ask("p4de").code, Some(0), "it has four");
    let unknown = ask("p9");
    assert_eq!(
        (unknown.code, unknown.stderr.contains("known: `p4d`")),
        (Some(2), true),
        "{}",
        unknown.stderr
    );
}
