//! `harness init` on a login node: which partition Slurm is asked about, and what is written where it gives no answer.

use crate::project::{Project, Ran, ran, root};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

/// Nodes of both partitions, as `sinfo` of 22.05 prints them.
const NODES: &str = "n1|idle|efa|gpu:h100:8(S:0-1)|Unknown|Unknown|none\nn2|idle|efa|gpu:h100:8(S:0-1)|Unknown|Unknown|none\n";

/// A `sinfo` that lists these partitions, writes down what it was asked, and knows nothing else.
fn slurm(folder: &Path, partitions: &str) {
    let sinfo = format!(
        "#!/bin/sh\necho \"$*\" >> '{folder}/asked'\ncase \"$*\" in\n*--version*) echo 'slurm-wlm 22.05.8' ;;\n\
         *--partition=gpu\\ *|*--partition=p5.48xlarge\\ *) printf '{NODES}' ;;\n*--format=%P*) printf '{partitions}' ;;\n*) exit 1 ;;\nesac\n",
        folder = folder.display()
    );
    for (program, text) in [
        ("sinfo", sinfo.as_str()),
        ("scontrol", "#!/bin/sh\nexit 1\n"),
        ("srun", "#!/bin/sh\nexit 1\n"),
        ("sacctmgr", "#!/bin/sh\nexit 1\n"),
    ] {
        let path = folder.join(program);
        fs::write(&path, text).expect("written");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("made executable");
    }
}

fn init(project: &Project, partitions: &str, more: &[&str]) -> (Ran, String) {
    let tools = tempfile::tempdir().expect("a folder");
    slurm(tools.path(), partitions);
    let mut command = project.command(&[&["init", "--cluster", "slurm"], more].concat());
    command.env("PATH", format!("{}:/usr/bin:/bin", tools.path().display()));
    let ran = ran(command.output().expect("it starts"));
    (ran, fs::read_to_string(tools.path().join("asked")).unwrap_or_default())
}

fn inventory(project: &Project) -> String {
    fs::read_to_string(project.path().join("inventory/cluster.toml")).expect("an inventory")
}

fn example() -> String {
    let text = fs::read_to_string(root().join("inventory/slurm-example.toml")).expect("it ships");
    config::schema::without_directive(&text).to_owned()
}

#[test]
fn the_default_partition_of_slurm_is_taken_and_named() {
    let project = Project::bare();
    let (ran, asked) = init(&project, "debug\\np5.48xlarge*\\n", &[]);
    assert!(asked.contains("--partition=p5.48xlarge "), "{asked}{}", ran.all());
    assert!(ran.stdout.contains("partition `p5.48xlarge`, the default of Slurm"), "{}", ran.all());
    assert_eq!(ran.code, Some(0), "{}", ran.all());
    let inventory = inventory(&project);
    assert!(inventory.contains("n[1-2]") && !inventory.contains("CHANGE"), "{inventory}");
    assert!(!ran.stdout.contains("CHANGE"), "{}", ran.all());
}

#[test]
fn where_the_default_partition_says_too_little_an_example_is_written() {
    let project = Project::bare();
    let (ran, _) = init(&project, "gpu*\\n", &[]);
    assert_eq!(ran.code, Some(0), "{}", ran.all());
    assert!(ran.stderr.contains("Slurm does not report the type of the nodes"), "{}", ran.all());
    assert!(ran.stdout.contains("note: the inventory is an example") && ran.stdout.contains("marked CHANGE"));
    assert_eq!(inventory(&project), example());
    let (named, _) = init(&Project::bare(), "gpu*\\n", &["--partition", "gpu"]);
    assert_eq!(named.code, Some(3), "{}", named.all());
}

#[test]
fn a_named_partition_is_asked_for_and_the_default_is_not() {
    let project = Project::bare();
    let (ran, asked) = init(&project, "debug*\\n", &["--partition", "gpu"]);
    assert!(asked.contains("--partition=gpu ") && !asked.contains("--format=%P\n"), "{asked}{}", ran.all());
    assert!(!ran.stdout.contains("default"), "{}", ran.all());
}

#[test]
fn without_a_default_partition_or_an_answer_an_example_is_written_and_the_reason_printed() {
    for (partitions, why) in
        [("debug\\ngpu\\n", "no default partition"), ("' ; exit 1 ; '", "Slurm gives no answer here")]
    {
        let project = Project::bare();
        let (ran, _) = init(&project, partitions, &[]);
        assert_eq!(ran.code, Some(0), "{}", ran.all());
        assert!(ran.stdout.contains(why) && ran.stdout.contains("marked CHANGE"), "{}", ran.all());
        assert_eq!(inventory(&project), example());
    }
}
