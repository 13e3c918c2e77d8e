//! An observation whose process is killed at any write, and started again, reports each finding once; what it reads is
//! as it was before.

use crate::project::{Project, ran};
use sim::inspector::{LongFault, LongJob};
use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;

/// Adds the records of these seconds, and gives the files.
fn write(project: &Project, job: &LongJob, from_s: f64, to_s: f64) -> BTreeMap<PathBuf, String> {
    let mut texts: BTreeMap<PathBuf, String> = BTreeMap::new();
    job.calls(from_s, to_s, &mut |call| {
        let name = format!("{}-pid{}.log", job.host(call.process), job.pid(call.process));
        job.line(call, texts.entry(project.path().join("inspector").join(name)).or_default());
    });
    fs::create_dir_all(project.path().join("inspector")).expect("made");
    for (path, text) in &mut texts {
        let before = fs::read_to_string(path).unwrap_or_default();
        *text = before + text;
        fs::write(path, &*text).expect("written");
    }
    texts
}

#[test]
fn killed_at_any_write_it_reports_each_finding_once() {
    let job = LongJob {
        seed: 5,
        nodes: 16,
        columns: 4,
        gpus: 1,
        step_s: 10.0,
        epoch_s: 1_700_000_000.0,
        faults: vec![
            LongFault::Nic { node: 6, gpu: 0, from_s: 1200.0, factor: 0.8 },
            LongFault::Late { node: 9, gpu: 0, from_s: 1200.0, us: 5000.0 },
        ],
    };
    let arguments =
        ["observe", "--dir", "inspector", "--state", "state", "--events", "events.jsonl", "--once"];
    for kill_at in 1..=4_u64 {
        let project = Project::new();
        write(&project, &job, 0.0, 900.0);
        assert_eq!(project.harness(&arguments).code, Some(0));
        let written = write(&project, &job, 900.0, 1800.0);
        let mut command = project.command(&arguments);
        command.env("HARNESS_TEST_KILL_AT_WRITE", kill_at.to_string());
        let killed = ran(command.output().expect("the harness starts"));
        // The state, then an event for each of two findings.
        let is_killed = killed.code.is_none();
        assert_eq!(is_killed, kill_at <= 3, "{}", killed.all());
        let again = project.harness(&arguments);
        assert_eq!(again.code, Some(1), "{}", again.all());
        let events = fs::read_to_string(project.path().join("events.jsonl")).expect("events");
        let mut found: Vec<(String, String)> = events
            .lines()
            .map(|line| serde_json::from_str::<serde_json::Value>(line).expect("an event"))
            .map(|it| (it["kind"].to_string(), it["hosts"].to_string()))
            .collect();
        found.sort();
        let expected = [("\"sinking\"", "[\"p5-007\"]"), ("\"straggler\"", "[\"p5-010\"]")];
        assert_eq!(
            found,
            expected.map(|(kind, hosts)| (kind.to_owned(), hosts.to_owned())),
            "write {kill_at}"
        );
        for (path, text) in &written {
            assert_eq!(&fs::read_to_string(path).expect("read"), text);
        }
        assert_eq!(fs::read_dir(project.path().join("inspector")).expect("a folder").count(), written.len());
    }
}

#[test]
fn without_once_it_looks_again_until_it_is_ended() {
    let project = Project::new();
    let job = LongJob {
        seed: 5,
        nodes: 16,
        columns: 4,
        gpus: 1,
        step_s: 10.0,
        epoch_s: 1_700_000_000.0,
        faults: Vec::new(),
    };
    write(&project, &job, 0.0, 60.0);
    let arguments = ["observe", "--dir", "inspector", "--state", "state", "--every", "1s"];
    let mut command = project.command(&[&arguments[..], &["--metrics", "harness.prom"]].concat());
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let mut child = command.spawn().expect("the harness starts");
    // The number of records that the last look read: each of these is another look.
    for records in [192, 384, 576] {
        let line = format!("}} {records}\n");
        let has_looked = |text: &str| {
            text.lines()
                .any(|it| it.starts_with("harness_observe_records{") && format!("{it}\n").ends_with(&line))
        };
        while !has_looked(&fs::read_to_string(project.path().join("harness.prom")).unwrap_or_default()) {
            assert_eq!(child.try_wait().expect("waited"), None, "it ended");
            std::thread::sleep(Duration::from_millis(20));
        }
        let from_s = f64::from(records) / 3.2;
        write(&project, &job, from_s, from_s + 60.0);
    }
    let pid = nix::unistd::Pid::from_raw(i32::try_from(child.id()).expect("a pid"));
    nix::sys::signal::kill(pid, nix::sys::signal::Signal::SIGTERM).expect("signalled");
    assert!(!child.wait().expect("ended").success());
}
