//! A run as one file: the same bytes for the same run, nothing of this machine in it, opened and gone through elsewhere;
//! and what is cut, changed or made by somebody else is refused.

use crate::little::{PAIR, assert_same, ended, id, killed, project, results};
use crate::project::{HARNESS, Project, Ran, ran};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Makes a bundle of that run; its path.
#[track_caller]
fn bundle(project: &Project, run: &str) -> PathBuf {
    let ran = project.harness(&["bundle", "--run", run, "--out", "out/run.tar.gz"]);
    assert_eq!(ran.code, Some(0), "{}", ran.all());
    project.path().join("out/run.tar.gz")
}

fn tar(folder: &Path, args: &[&str]) {
    let status = Command::new("tar").args(args).current_dir(folder).status().expect("tar");
    assert!(status.success(), "tar {args:?}");
}

fn analyze(project: &Project, run: &Path) -> Ran {
    project.harness(&["-q", "--run", &run.display().to_string(), "--from", "analyze"])
}

#[test]
fn a_bundle_opens_elsewhere_and_replays_to_the_same_bytes() {
    let project = project();
    let run = ended(&project);
    let expected = results(&project.latest());
    let file = bundle(&project, "latest");
    for direct in [true, false] {
        let other = Project::new();
        let there = match direct {
            true => file.clone(),
            false => {
                tar(other.path(), &["xzf", &file.display().to_string()]);
                other.path().join(&run)
            }
        };
        let ran = analyze(&other, &there);
        assert_eq!(ran.code, Some(1), "{}", ran.all());
        assert_eq!(other.json("plan.json")["parent"], run.as_str());
        assert_same(&results(&other.latest()), &expected);
        assert_eq!(other.path().join("runs").join(&run).join("plan.json").is_file(), direct);
    }
}

/// 40 MB of them in 40 kB: as values they took 16 times as much, and no such field is read.
#[test]
fn a_plan_of_small_numbers_takes_little_more_memory_than_its_bytes() {
    let project = Project::new();
    let id = "20260101T000000Z-x-0001";
    let plan = format!("{{\"format\": 1, \"x\": [{}0]}}", "0,".repeat(20 << 20));
    project.write(&format!("{id}/plan.json"), &plan);
    tar(project.path(), &["czf", "bomb.tar.gz", id]);
    let limited = "ulimit -d 400000; exec \"$@\"";
    let mut command = Command::new("bash");
    command.args(["-c", limited, "bash", HARNESS, "--run", "bomb.tar.gz", "--from", "report"]);
    command.env("POLARS_MAX_THREADS", "2").env("RAYON_NUM_THREADS", "2");
    let ran = ran(command.current_dir(project.path()).output().expect("starts"));
    assert_eq!(ran.code, Some(2), "{}", ran.all());
    assert!(ran.stderr.contains("plan.json: "), "{}", ran.all());
    let left = fs::read_dir(project.path().join("runs")).expect("read").count();
    assert_eq!(left, 0, "{}", ran.all());
}

#[test]
fn the_same_run_gives_the_same_bytes_and_its_own_name_with_nothing_of_this_machine_in_it() {
    let project = project();
    let run = ended(&project);
    let first = fs::read(bundle(&project, "latest")).expect("read");
    let plain = project.harness(&["bundle", "--run", &run]);
    assert_eq!(plain.code, Some(0), "{}", plain.all());
    assert_eq!(fs::read(project.path().join(format!("{run}.tar.gz"))).expect("by its id"), first);
    tar(project.path(), &["xzf", &format!("{run}.tar.gz")]);
    let here = project.path().canonicalize().expect("a path").display().to_string();
    for (name, bytes) in crate::determinism::files(&project.path().join(&run), "") {
        assert!(!String::from_utf8_lossy(&bytes).contains(&here), "{name} holds {here}");
    }
    let mut listing = Command::new("tar");
    listing.args(["tvzf", &format!("{run}.tar.gz"), "--full-time", "--numeric-owner"]);
    let listed = listing.env("TZ", "UTC").current_dir(project.path()).output().expect("tar");
    let listed = String::from_utf8(listed.stdout).expect("text");
    let names: Vec<&str> = listed.lines().filter_map(|line| line.split_whitespace().last()).collect();
    assert!(names.len() > 20 && names.is_sorted(), "{names:?}");
    for line in listed.lines() {
        let is_plain = line.starts_with("-rw------- 0/0") && line.contains("1970-01-01 00:00:00");
        assert!(is_plain && line.contains(&format!(" {run}/")), "{line}");
    }
}

#[test]
fn what_is_none_of_a_runs_own_files_is_in_no_bundle_and_not_published() {
    let project = project();
    ended(&project);
    let run = project.latest();
    project.write("elsewhere/private", "a key");
    let refused = |why: &str| {
        for args in [
            &["bundle", "--run", "latest", "--output", "out.tar.gz"][..],
            &["publish", "latest", "file:///tmp/never"],
        ] {
            let ran = project.harness(args);
            assert_ne!(ran.code, Some(0), "{args:?}: {}", ran.all());
            assert!(ran.stderr.contains(why), "{args:?}: {}", ran.all());
        }
        assert!(!project.path().join("out.tar.gz").exists());
    };
    let hard = run.join("hard.txt");
    fs::hard_link(project.path().join("elsewhere/private"), &hard).expect("linked");
    refused("hard.txt: has another name elsewhere");
    fs::remove_file(&hard).expect("removed");
    let soft = run.join("soft.txt");
    std::os::unix::fs::symlink(project.path().join("elsewhere/private"), &soft).expect("linked");
    refused("soft.txt: a link or special file");
    fs::remove_file(&soft).expect("removed");
    fs::rename(run.join("cases"), project.path().join("elsewhere/cases")).expect("moved");
    std::os::unix::fs::symlink(project.path().join("elsewhere/cases"), run.join("cases")).expect("linked");
    refused("cases: a link or ");
}

#[test]
fn a_bundle_of_a_run_that_is_here_is_that_run_unless_it_is_another() {
    let project = project();
    let run = ended(&project);
    let file = bundle(&project, "latest");
    let ran = analyze(&project, &file);
    assert_eq!(ran.code, Some(1), "{}", ran.all());
    assert_eq!(project.runs(), 2);
    let path = project.path().join("runs").join(&run).join("summary.json");
    fs::write(&path, "{}").expect("changed");
    let ran = analyze(&project, &file);
    assert_eq!(ran.code, Some(2), "{}", ran.all());
    assert!(ran.stderr.contains("they differ in summary.json"), "{}", ran.stderr);
    assert_eq!(project.runs(), 2);
}

#[test]
fn a_run_that_came_in_a_bundle_is_read_and_never_obeyed() {
    let project = project();
    let run = ended(&project);
    let file = bundle(&project, "latest");
    let other = crate::little::project();
    assert_eq!(analyze(&other, &file).code, Some(1));
    let replayed = id(&other);
    let refused = |args: &[&str]| {
        let ran = other.harness(args);
        assert_eq!(ran.code, Some(2), "{args:?}: {}", ran.all());
        assert!(ran.stderr.contains("came in a bundle"), "{args:?}: {}", ran.stderr);
    };
    for word in [run.as_str(), replayed.as_str()] {
        refused(&["--rerun", word]);
        refused(&["clean", "--run", word]);
        refused(&["isolate", "--run", word]);
        refused(&["baseline", "propose", "--run", word]);
    }
    refused(&["--run", &run, "--resume"]);
    let ran = other.harness(&["clean", "--all"]);
    assert!(!ran.all().contains(&run) && !ran.all().contains(&replayed), "{}", ran.all());
    let ran = other.harness(&["history", "nccl.busbw"]);
    assert!(ran.all().contains("imported from a bundle"), "{}", ran.all());
    // It is still the same run: packed again it has the same bytes.
    let again = other.harness(&["bundle", "--run", &run, "--out", "again.tar.gz"]);
    assert_eq!(again.code, Some(0), "{}", again.all());
    assert_eq!(fs::read(other.path().join("again.tar.gz")).expect("read"), fs::read(&file).expect("read"));
}

#[test]
fn a_rerun_takes_no_source_from_outside_of_the_project() {
    let project = project();
    let run = ended(&project);
    let elsewhere = Project::new();
    let plan = project.latest().join("plan.json");
    let text = fs::read_to_string(&plan).expect("there");
    let outside = elsewhere.path().join("suites/little.toml").display().to_string();
    fs::copy(project.path().join("suites/little.toml"), &outside).expect("copied");
    for odd in [outside.as_str(), "suites/../suites/little.toml"] {
        fs::write(&plan, text.replace("\"suites/little.toml\"", &format!("\"{odd}\""))).expect("changed");
        let ran = project.harness(&["--rerun", &run]);
        assert_eq!(ran.code, Some(2), "{odd}: {}", ran.all());
        assert!(ran.stderr.contains("leads out of the project"), "{odd}: {}", ran.stderr);
    }
}

#[test]
fn what_is_cut_changed_or_newer_is_refused_and_leaves_nothing() {
    let project = project();
    let run = ended(&project);
    let file = bundle(&project, "latest");
    let whole = fs::read(&file).expect("read");
    let other = Project::new();
    let refused = |line: &str| {
        let ran = analyze(&other, &other.path().join("x.tar.gz"));
        assert_eq!(ran.code, Some(2), "{line}: {}", ran.all());
        assert!(ran.stderr.contains(line), "no `{line}` in {}", ran.stderr);
        let left: Vec<_> = fs::read_dir(other.path().join("runs")).into_iter().flatten().flatten().collect();
        assert!(left.is_empty(), "{line}: {left:?}");
    };
    for at in [whole.len() / 3, whole.len() - 4] {
        other.write("x.tar.gz", "");
        fs::write(other.path().join("x.tar.gz"), &whole[..at]).expect("cut");
        refused("truncated or damaged");
    }
    other.write("x.tar.gz", "not an archive");
    refused("not a bundle");
    let repacked = |file: &str, change: &dyn Fn(String) -> String, line: &str| {
        tar(other.path(), &["xzf", &project.path().join("out/run.tar.gz").display().to_string()]);
        let path = other.path().join(&run).join(file);
        let text = fs::read_to_string(&path).expect("there");
        fs::write(&path, change(text)).expect("changed");
        tar(other.path(), &["czf", "x.tar.gz", &run]);
        refused(line);
    };
    let stdout = format!("cases/pair/raw/{PAIR}/stdout");
    repacked(&stdout, &|text| text + "#\n", "its digest differs from `collected.json`");
    repacked("plan.json", &|text| text.replacen("\"format\": 1", "\"format\": 7", 1), "format 7");
    repacked("plan.json", &|text| text.replace(&run, "another"), "`another`");
    tar(other.path(), &["xzf", &file.display().to_string()]);
    fs::remove_file(other.path().join(&run).join(&stdout)).expect("removed");
    tar(other.path(), &["czf", "x.tar.gz", &run]);
    refused("cannot be read");
    std::os::unix::fs::symlink("/etc/passwd", other.path().join(&run).join(&stdout)).expect("linked");
    tar(other.path(), &["czf", "x.tar.gz", &run]);
    refused("neither file nor folder");
}

#[test]
fn nothing_is_bundled_that_was_edited_or_looks_like_a_secret() {
    let project = project();
    let run = ended(&project);
    let stdout = project.latest().join(format!("cases/pair/raw/{PAIR}/stdout"));
    let text = fs::read_to_string(&stdout).expect("there");
    fs::write(&stdout, format!("# AWS_SECRET_ACCESS_KEY=hunter2\n{text}")).expect("edited");
    let refused = |run: &str, line: &str| {
        let ran = project.harness(&["bundle", "--run", run, "--out", "x.tar.gz"]);
        assert_eq!(ran.code, Some(2), "{}", ran.all());
        assert!(ran.stderr.contains(line) && !ran.stderr.contains("hunter2"), "{}", ran.stderr);
        assert!(!project.path().join("x.tar.gz").exists());
    };
    refused(&run, "--from collect");
    project.harness(&["-q", "--run", &run, "--from", "collect"]);
    // What is accepted is accepted without it.
    let accepted = fs::read_to_string(project.latest().join(format!("cases/pair/raw/{PAIR}/stdout")));
    assert!(accepted.expect("there").starts_with("# AWS_SECRET_ACCESS_KEY=[redacted]\n"));
    bundle(&project, "latest");
    fs::remove_file(project.path().join("out/run.tar.gz")).expect("there");
    project.write("runs/latest/cases/pair/notes.txt", "a note\nAWS_SECRET_ACCESS_KEY=hunter2\n");
    refused(&id(&project), "line 2 looks like a secret, `AWS_SECRET_ACCESS_KEY`");
    refused("nowhere", "no run `nowhere`");
}

#[test]
fn a_run_that_was_killed_is_bundled_as_it_is() {
    let project = project();
    killed(&project, 12);
    let file = bundle(&project, "latest");
    let other = Project::new();
    let ran = analyze(&other, &file);
    assert!(matches!(ran.code, Some(1 | 3)), "{}", ran.all());
    assert!(ran.stdout.contains("the run did not finish"), "{}", ran.all());
}
