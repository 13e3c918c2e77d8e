//! An inventory that names a place for its runs: each is published there when it has ended, and its exit code stays
//! whatever becomes of that.

use crate::little::{id, pairs};
use crate::object_server::{Fault, ObjectServer, SECRETS};
use crate::project::{Project, Ran, ran};
use std::fs;

const INVENTORY: &str =
    "kind = \"simulated\"\ninstance = \"sim-p5\"\nnodes = \"p5-[001-002]\"\n[reach]\nvia = \"slurm\"\n";

fn project(to: &str) -> Project {
    let project = Project::new();
    project.write("suites/own.toml", &pairs("pairs", "at_least = \"100 GB/s\""));
    project.write("inventory/shared.toml", &format!("{INVENTORY}[publish]\nto = \"{to}\"\n"));
    project
}

fn run(project: &Project, server: Option<&ObjectServer>, more: &[&str]) -> Ran {
    let args = ["run", "--suite", "own", "--inventory", "shared"];
    let quiet: &[&str] = if more.contains(&"--format") { &[] } else { &["-q"] };
    let mut command = project.command(&[&args[..], quiet, more].concat());
    if let Some(server) = server {
        server.configure(&mut command);
    }
    let ran = ran(command.output().expect("the harness starts"));
    for (name, secret) in SECRETS {
        assert!(!ran.all().contains(secret), "{name} is shown: {}", ran.all());
    }
    ran
}

#[test]
fn each_run_goes_below_its_id_and_can_be_fetched() {
    let share = tempfile::tempdir().expect("a folder");
    let to = format!("file://{}/runs/", share.path().display());
    let project = project(&to);
    for _ in 0..2 {
        let ran = run(&project, None, &[]);
        assert_eq!(ran.code, Some(0), "{}", ran.all());
        let id = id(&project);
        let line = ran.stdout.lines().last().unwrap_or_default();
        assert!(line.starts_with("published: ") && line.ends_with(&format!("/runs/{id}")), "{}", ran.all());
        assert!(share.path().join("runs").join(&id).join("manifest.json").is_file());
    }
    // A run that fails is published, too, and one that is only planned is not.
    let ran = run(&project, None, &["--sim-fault", "p5-002:hang"]);
    assert!(matches!(ran.code, Some(1 | 3)) && ran.stdout.contains("published: "), "{}", ran.all());
    let ran = run(&project, None, &["--dry-run"]);
    assert!(
        ran.stdout.contains("published when it has ended: ") && ran.stdout.contains("/runs/ID"),
        "{}",
        ran.all()
    );
    assert_eq!(fs::read_dir(share.path().join("runs")).expect("read").count(), 3);
    // Programs read stdout.
    let ran = run(&project, None, &["--format", "json"]);
    assert!(!ran.stdout.contains("published: ") && ran.stderr.contains("published: "), "{}", ran.all());
    let url = format!("{to}{}", id(&project));
    let other = Project::bare();
    let fetched = other.harness(&["fetch", &url]);
    assert_eq!(fetched.code, Some(0), "{}", fetched.all());
}

#[test]
fn a_publication_that_fails_is_one_line_and_the_exit_code_stays() {
    let server = ObjectServer::start();
    server.plant("PUT", "/files/", Fault::Status(403, "AccessDenied"), 1_000);
    let project = project("s3://bucket/team");
    let ran = run(&project, Some(&server), &[]);
    assert_eq!(ran.code, Some(0), "{}", ran.all());
    let id = id(&project);
    let lines: Vec<&str> = ran.stderr.lines().filter(|line| line.starts_with("error: ")).collect();
    assert_eq!(lines.len(), 1, "{}", ran.all());
    assert!(lines[0].starts_with("error: not published: s3://bucket/team/"), "{}", lines[0]);
    let command = format!("the exit code stays 0; publish it: harness publish {id} s3://bucket/team/{id}");
    assert!(lines[0].ends_with(&command), "{}", lines[0]);
    assert!(!server.state().objects.keys().any(|key| key.ends_with("manifest.json")));
    // The command that the line names goes on.
    server.heal();
    let mut command = project.command(&["publish", &id, &format!("s3://bucket/team/{id}")]);
    server.configure(&mut command);
    let published = crate::project::ran(command.output().expect("the harness starts"));
    assert_eq!(published.code, Some(0), "{}", published.all());
    assert!(server.state().objects.contains_key(&format!("team/{id}/manifest.json")));
}

#[test]
fn a_place_that_cannot_be_one_is_refused_before_anything_is_launched() {
    let long = format!("s3://bucket/{}", "p".repeat(250));
    let project = project(&long);
    let ran = run(&project, Some(&ObjectServer::start()), &[]);
    assert_eq!(ran.code, Some(2), "{}", ran.all());
    assert!(
        ran.stderr.contains("inventory `shared`, [publish]: ") && ran.stderr.contains("limit 256"),
        "{}",
        ran.all()
    );
    assert!(!project.path().join("runs").exists(), "nothing was launched");
    project.write("inventory/shared.toml", &format!("{INVENTORY}[publish]\nto = \"bucket/runs\"\n"));
    let ran = run(&project, None, &[]);
    assert!(ran.code == Some(2) && ran.stderr.contains("`to` is no place for runs"), "{}", ran.all());
}
