//! Who is blamed: one culprit for one cause, and nobody for what no part of a cluster can be responsible for.

use crate::project::{Project, Ran};

fn culprits(ran: &Ran) -> Vec<&str> {
    ran.stdout.lines().filter(|line| line.starts_with("culprit ") || line.starts_with("suspects ")).collect()
}

fn coded(ran: &Ran) -> Vec<&str> {
    ran.stdout.lines().filter(|line| line.starts_with("HRN-")).collect()
}

/// All parts of a kind on one node are slow by one cause, not by one each.
#[test]
fn a_fault_of_a_whole_node_is_one_culprit_and_one_code() {
    for (inventory, node) in [("default", "p5-002"), ("sim-32", "p5-011")] {
        for (fault, expected, code) in [
            ("port-slow=0.5", "fabric: all 32 NICs at 6.0 GB/s, healthy: 1", "HRN-PORT-SLOW"),
            ("no-gdrdma", "fabric: all 32 NICs at 6.0 GB/s, healthy: 1", "HRN-PORT-SLOW"),
            ("node-slow=0.5", "node: all 8 GPUs at 6", "HRN-NODE-SLOW"),
        ] {
            let project = Project::new();
            let fault = format!("{node}:{fault}");
            let of = ["--suite", "nccl-p5", "--inventory", inventory, "--sim-fault", &fault];
            let filter: &[&str] = if inventory == "default" {
                &["-q"]
            } else if fault.contains("node-slow") {
                continue;
            } else {
                &["-q", "nic-pairs"]
            };
            let ran = project.harness(&[&of[..], filter].concat());
            let named = culprits(&ran);
            assert!(
                named.len() == 1 && named[0].starts_with(&format!("culprit {node} {expected}")),
                "{fault}: {named:#?}"
            );
            assert!(named[0].ends_with(&format!(" ({code})")), "{named:?}");
            let isolated = project.harness(&[&["isolate"], &of[..]].concat());
            let named = coded(&isolated);
            assert!(
                named.len() == 1 && named[0].starts_with(code) && named[0].contains(node),
                "{fault}: {}",
                isolated.all()
            );
        }
    }
}

/// One of its NICs, or two, are parts of their own.
#[test]
fn single_parts_keep_their_own_lines_and_codes() {
    let project = Project::new();
    let two = ["--sim-fault", "p5-002:nic-slow=0.4@rdmap113s0", "--sim-fault", "p5-003:gpu-slow=0.5@2"];
    let ran = project.harness(&[&["--suite", "nccl-p5", "-q"], &two[..]].concat());
    let mut named = culprits(&ran);
    named.sort_unstable();
    assert!(
        named.len() == 2
            && named[0].starts_with("culprit p5-002 rdmap113s0: ")
            && named[0].ends_with("(HRN-NIC-SLOW)")
            && named[1].starts_with("culprit p5-003 gpu2: ")
            && named[1].ends_with("(HRN-GPU-SLOW)"),
        "{named:#?}"
    );
}

const FALSE: &str = "instance = \"sim-p5\"\nabout = \"a program of the user\"\n[[case]]\nname = \"mine\"\n\
    placement = \"PLACED\"\nrecipes = [\"command\"]\nworkload = { kind = \"command\", program = \"false\" }\n\
    [[case.assert]]\nmetric = \"command.exit_code\"\nequals = 0\n";

#[test]
fn a_program_that_fails_on_healthy_nodes_blames_none_of_them() {
    for placed in ["each", "pairs", "all"] {
        let project = Project::new();
        project.write("suites/mine.toml", &FALSE.replace("PLACED", placed));
        let ran = project.harness(&["--suite", "mine", "-q"]);
        assert_eq!(ran.code, Some(1), "{}", ran.all());
        assert!(culprits(&ran).is_empty(), "{placed}: {}", ran.all());
    }
}

#[test]
fn a_red_run_stays_red_where_its_junit_file_cannot_be_written() {
    let project = Project::new();
    let words = ["--suite", "nccl-p5", "-q", "--sim-fault", "p5-002:nic-slow=0.4@rdmap113s0", "nic-pairs"];
    let ran = project.harness(&[&words[..], &["--junit", "/proc/nope/x.xml"]].concat());
    assert_eq!(ran.code, Some(1), "{}", ran.all());
    assert!(ran.stderr.contains("/proc/nope/x.xml"), "{}", ran.all());
    let ran = project.harness(&["--suite", "nccl-p5", "-q", "nic-pairs", "--junit", "/proc/nope/x.xml"]);
    assert_eq!(ran.code, Some(3), "{}", ran.all());
}

#[test]
fn a_rehearsal_whose_fault_nothing_can_see_is_not_begun() {
    let project = Project::new();
    for (fault, why) in [
        ("gpu-missing@3", "add --probe"),
        ("gpu-busy@3", "add --probe"),
        ("driver-differs", "add --probe"),
        ("clock-offset=5", "profiled cases"),
        ("clock-drift=50", "profiled cases"),
        ("window-shut", "profiled cases"),
    ] {
        let fault = format!("p5-004:{fault}");
        let ran = project.harness(&["--suite", "nccl-p5", "-q", "--sim-fault", &fault, "nic-pairs"]);
        assert_eq!(ran.code, Some(3), "{fault}: {}", ran.all());
        let line = ran.stderr.lines().find(|line| line.contains(&fault)).unwrap_or_default();
        assert!(line.contains(why), "{fault}: {}", ran.all());
    }
    assert_eq!(project.runs(), 0);
    let fault = "p5-004:gpu-missing@3";
    let ran = project.harness(&["--suite", "nccl-p5", "-q", "--probe", "--sim-fault", fault, "nic-pairs"]);
    assert!(!ran.stderr.contains("only a probe"), "{}", ran.all());
    assert_eq!(project.runs(), 1);
}
