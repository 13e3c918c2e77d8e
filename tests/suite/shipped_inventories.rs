//! The inventories for real clusters that ship: they pass the check, their plans are what AWS's scripts do, and leaving a
//! variable out of one is warned of.

use crate::project::{Project, root};
use std::fs;

const SHIPPED: [&str; 4] = ["parallelcluster", "hyperpod-slurm", "ec2-ssh", "pyxis"];

const VARIABLES: [&str; 5] =
    ["OMPI_MCA_btl_tcp_if_exclude", "OMPI_MCA_pml", "OMPI_MCA_btl", "NCCL_SOCKET_IFNAME", "LD_LIBRARY_PATH"];

fn text(name: &str) -> String {
    fs::read_to_string(root().join(format!("inventory/{name}.toml"))).expect("an inventory")
}

#[test]
fn shipped_inventories_pass_the_check_without_a_warning() {
    let ran = Project::new().harness(&["check"]);
    assert_eq!(ran.code, Some(0), "{}", ran.all());
    let about = |name: &str| ran.stdout.lines().any(|line| line.contains(&format!("inventory/{name}.toml")));
    for name in SHIPPED.into_iter().chain(["slurm-example", "ssh-example", "local-example", "eks"]) {
        assert!(!about(name), "{name}: {}", ran.all());
    }
}

#[test]
fn shipped_inventories_plan_a_run_that_sets_what_aws_sets() {
    let project = Project::new();
    for name in SHIPPED {
        let args = ["plan", "--suite", "nccl-p5", "--inventory", name, "pair-all_reduce"];
        let ran = project.harness(&args);
        assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), ""), "{name}: {}", ran.all());
        for variable in VARIABLES {
            let is_set = ran.stdout.contains(&format!("{variable}="));
            assert_eq!(is_set, name != "pyxis" || variable != "LD_LIBRARY_PATH", "{name} {variable}");
        }
        assert!(ran.stdout.contains("lo,docker0,veth_def_agent"), "{name}");
    }
}

#[test]
fn each_line_that_has_to_be_changed_says_so() {
    // What a site has of its own, beside instance, nodes and shared folder.
    let own: [(&str, &[&str]); 5] = [
        ("parallelcluster", &["partition"]),
        ("hyperpod-slurm", &["partition"]),
        ("ec2-ssh", &["user"]),
        ("pyxis", &["partition", "image"]),
        ("eks", &["namespace", "image"]),
    ];
    assert!(SHIPPED.iter().all(|name| own.iter().any(|(known, _)| known == name)));
    for (name, keys) in own {
        let text = text(name);
        for key in ["instance", "nodes", "shared"].iter().chain(keys) {
            let key = format!("{key} = ");
            let lines: Vec<&str> = text.lines().filter(|line| line.starts_with(&key)).collect();
            assert!(!lines.is_empty(), "{name}: {key}");
            assert!(lines.iter().all(|line| line.contains("# CHANGE")), "{name}: {lines:?}");
        }
        // No instance of a user's own needs more than the lines so marked.
        assert!(text.lines().filter(|line| line.contains("CHANGE")).count() >= 5, "{name}");
    }
}

#[test]
fn no_inventory_names_a_folder_in_which_any_user_can_take_a_name() {
    for entry in fs::read_dir(root().join("inventory")).expect("a folder").flatten() {
        let text = fs::read_to_string(entry.path()).unwrap_or_default();
        for open in ["\"/tmp", "\"/var/tmp", "\"/dev/shm"] {
            assert!(!text.contains(open), "{}: {open}", entry.path().display());
        }
    }
}

#[test]
fn an_unset_variable_is_warned_of_with_the_line_to_add() {
    let project = Project::new();
    let whole = text("parallelcluster");
    for variable in VARIABLES {
        let starts = |line: &&str| line.split(' ').next() == Some(variable);
        let rest: String =
            whole.lines().filter(|line| !starts(line)).map(|line| format!("{line}\n")).collect();
        assert_ne!(rest, whole);
        project.write("inventory/mine.toml", &rest);
        let ran = project.harness(&["check"]);
        assert_eq!(ran.code, Some(0), "{}", ran.all());
        let warned = |line: &str| {
            line.starts_with("warning: inventory/mine.toml:")
                && line.contains(&format!("`{variable}` is not set"))
                && line.contains(&format!("`{variable} = \""))
        };
        assert_eq!(ran.stdout.lines().filter(|line| warned(line)).count(), 1, "{variable}: {}", ran.all());
        let shown =
            project.harness(&["--suite", "nccl-p5", "--inventory", "mine", "--dry-run", "--", "gpu-each"]);
        assert!(shown.stderr.contains(&format!("warning: `{variable}` is not set")), "{}", shown.all());
    }
}

#[test]
fn files_with_older_spellings_are_used_with_a_warning() {
    let project = Project::new();
    let new = text("default");
    // As they were, and as they are written now.
    let renamed = [
        ("kind = \"pretend\"", "kind = \"simulated\""),
        ("lease_s", "heartbeat_timeout_s"),
        ("bare_twin", "unprofiled_control_run"),
    ];
    let [(kind, _), (timeout, _), (control, _)] = renamed;
    let older = new.replace("kind = \"simulated\"", kind);
    let older = older.replace("via = \"slurm\"", &format!("via = \"ssh\"\n{timeout} = 300"));
    project.write("inventory/older.toml", &older);
    let suite = fs::read_to_string(root().join("suites/nccl-p5.toml")).expect("a suite");
    let older = suite.replacen("[case.profile]", &format!("[case.profile]\n{control} = true"), 1);
    project.write("suites/older.toml", &older);
    let warnings = renamed.map(|(old, new)| format!("`{old}` is an older spelling; write `{new}`"));
    let run = project.harness(&["--suite", "older", "--inventory", "older", "--dry-run"]);
    assert_eq!(run.code, Some(0), "{}", run.all());
    for warning in &warnings {
        assert_eq!(run.stderr.matches(warning.as_str()).count(), 1, "{warning}: {}", run.all());
    }
    let check = project.harness(&["check"]);
    assert_eq!(check.code, Some(0), "{}", check.all());
    for warning in &warnings {
        assert!(check.stdout.contains(warning.as_str()), "{warning}: {}", check.all());
    }
}
