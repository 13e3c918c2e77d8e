//! `--analyze-on`: what is refused before anything is launched, and what a task refuses on its node. How tasks read is shown
//! on a real Slurm.

use crate::project::{HARNESS, Project, ran};
use crate::small_export::{PLAIN, sqlite};

fn project() -> Project {
    let project = Project::new();
    sqlite(&project.path().join("reports/rank0.sqlite"), PLAIN);
    project
}

fn on(project: &Project, inventory: &str) -> crate::project::Ran {
    project.harness(&["recipe", "breakdown", "reports", "--analyze-on", "slurm", "--inventory", inventory])
}

fn inventory(via: &str, paths: &str) -> String {
    format!("kind = \"real\"\ninstance = \"p5\"\nnodes = \"n[1-2]\"\n[reach]\n{via}\n[paths]\n{paths}\n")
}

#[test]
fn a_cluster_that_cannot_run_tasks_is_refused_with_what_to_do() {
    let project = project();
    let slurm = "via = \"slurm\"";
    for (name, text, why) in [
        ("ssh", inventory("via = \"ssh\"", "shared = \"/fsx\""), "not reached through Slurm"),
        (
            "login",
            inventory(&format!("{slurm}\nlogin = \"head\""), "shared = \"/fsx\""),
            "run it on the login node",
        ),
        ("outside", inventory(slurm, "shared = \"/fsx\""), "paths.harness = \"/fsx/harness\""),
        (
            "other",
            inventory(slurm, "shared = \"/fsx\"\nharness = \"/bin/true\""),
            "is another program, not this one: /bin/true; copy this program: `cp ",
        ),
        ("gone", inventory(slurm, "shared = \"/fsx\"\nharness = \"/nowhere/harness\""), "/nowhere/harness"),
    ] {
        project.write(&format!("inventory/{name}.toml"), &text);
        let ran = on(&project, name);
        assert_eq!(ran.code, Some(2), "{name}: {}", ran.all());
        assert!(ran.stderr.contains(why) && ran.stdout.is_empty(), "{name}: {}", ran.all());
    }
    let ran = on(&project, "default");
    assert_eq!(ran.code, Some(2), "{}", ran.all());
    assert!(ran.stderr.contains("is a simulated cluster, whose nodes run no programs"), "{}", ran.all());
    let ran = project.harness(&["recipe", "breakdown", "reports", "--analyze-on", "clouds"]);
    assert_eq!(ran.code, Some(2), "{}", ran.all());
    let ran = project.harness(&["--suite", "evidence-p5", "--analyze-on", "slurm"]);
    assert_eq!((ran.code, project.runs()), (Some(2), 0), "{}", ran.all());
    assert!(ran.stderr.contains("is a simulated cluster"), "{}", ran.all());
}

#[test]
fn a_cluster_without_slurm_on_this_machine_leaves_nothing_behind() {
    let project = project();
    let shared = project.path().join("shared");
    std::fs::create_dir_all(&shared).expect("made");
    let paths = format!("shared = \"{}\"\nharness = \"{HARNESS}\"", shared.display());
    project.write("inventory/live.toml", &inventory("via = \"slurm\"", &paths));
    let args = ["recipe", "breakdown", "reports", "--analyze-on", "slurm", "--inventory", "live"];
    let mut command = project.command(&args);
    let bin = project.path().join("bin");
    std::fs::create_dir_all(&bin).expect("made");
    for program in ["mktemp", "rm"] {
        std::os::unix::fs::symlink(format!("/usr/bin/{program}"), bin.join(program)).expect("linked");
    }
    let ran = ran(command.env("PATH", &bin).output().expect("the harness starts"));
    assert_eq!(ran.code, Some(3), "{}", ran.all());
    assert!(ran.stderr.contains("sbatch"), "{}", ran.all());
    assert_eq!(std::fs::read_dir(&shared).expect("a folder").count(), 0);
}

#[test]
fn a_task_refuses_what_is_no_order_for_this_program() {
    let project = project();
    let order = |program: &str| {
        format!(
            "{{\"format\":1,\"program\":{program},\"own\":[],\"folder\":null,\"work\":{{\"reports\":{{\"recipes\":[],\
             \"filter\":null,\"inputs\":[]}}}},\"shares\":[[]],\"jobs\":null}}"
        )
    };
    project.write("other.json", &order("{\"version\":\"99.0.0\",\"sha256\":\"00\"}"));
    project.write(
        "newer.json",
        &order("{\"version\":\"0\",\"sha256\":\"\"}").replace("\"format\":1", "\"format\":2"),
    );
    for (order, why) in [
        ("other.json", "expected version 99.0.0, sha256 00"),
        ("newer.json", "written in format 2"),
        ("gone.json", "gone.json"),
    ] {
        let ran = project.harness(&["analyze-part", order, "1"]);
        assert_eq!(ran.code, Some(2), "{}", ran.all());
        assert!(ran.stderr.contains(why), "{}", ran.all());
    }
    let ran = project.harness(&["analyze-part"]);
    assert!(ran.code == Some(2) && ran.stderr.contains("is internal to the harness"), "{}", ran.all());
}
