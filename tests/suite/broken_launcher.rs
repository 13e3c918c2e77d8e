//! What fails in the same way everywhere is the launcher's, the image's or the tool's fault: the run stops, names no
//! node, and remembers nothing against any.

use crate::project::Project;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;

/// A run by the documents' inventory of ten lines, where the controller gives no answer.
pub(crate) fn without_controller(project: &Project) -> Command {
    project.write(
        "inventory/prod.toml",
        "kind = \"real\"\ninstance = \"p5\"\nnodes = \"p5-[001-032]\"\n\n[reach]\nvia = \"slurm\"\npartition = \"gpu\"\n\n[paths]\n\
         shared = \"/fsx/harness\"\nnccl_tests = \"/opt/nccl-tests/build\"\n",
    );
    let bin = project.path().join("bin");
    fs::create_dir_all(&bin).expect("a folder");
    for tool in ["sbatch", "squeue", "srun", "sinfo", "scontrol", "scancel"] {
        let path = bin.join(tool);
        let text = "#!/bin/sh\necho \"$(basename $0): error: Unable to contact slurm controller (connect failure)\" >&2\nexit 1\n";
        fs::write(&path, text).expect("a script");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("a program");
    }
    let path = format!("{}:{}", bin.display(), std::env::var("PATH").unwrap_or_default());
    let mut command = project.command(&["--suite", "nccl-p5", "--inventory", "prod"]);
    command.env("PATH", path);
    command
}

#[test]
fn a_controller_that_cannot_be_reached_is_ten_lines_and_no_culprit() {
    let project = Project::new();
    let ran = crate::project::ran(without_controller(&project).output().expect("it runs"));
    assert_eq!(ran.code, Some(3), "{}", ran.all());
    assert!(ran.blamed().is_empty(), "{}", ran.all());
    assert!(ran.stderr.contains("Unable to contact slurm controller (connect failure)"), "{}", ran.all());
    let last = "INCONCLUSIVE: nothing was launched (exit 3)";
    assert_eq!(ran.stderr.lines().last(), Some(last), "{}", ran.all());
    assert!(ran.stdout.lines().count() + ran.stderr.lines().count() <= 10, "{}", ran.all());
    let history = project.harness(&["history", "--suspects"]);
    assert!(!history.all().contains("p5-0"), "{}", history.all());
}
