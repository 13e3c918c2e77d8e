//! Ctrl-C once: what runs is ended, reports are written, exit 130. Twice: at once.

use crate::project::{Project, ran};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use std::fs;
use std::process::Stdio;

/// A run whose one job sleeps until it is asked to end, and the process id of that job's program.
fn sleeping(project: &Project) -> (std::process::Child, i32) {
    let folder = project.path().display();
    project.write(
        "inventory/here.toml",
        &format!("kind = \"real\"\ninstance = \"p5\"\nnodes = \"here-1\"\n[reach]\nvia = \"local\"\n[paths]\nshared = \"{folder}/shared\"\nnccl_tests = \"/opt\"\n"),
    );
    let program =
        "{ kind = \"command\", program = \"bash\", args = [\"-c\", \"echo $$ > PIDFILE; exec sleep 600\"] }";
    let program = program.replace("PIDFILE", &format!("{folder}/pid"));
    project.write(
        "suites/test.toml",
        &format!("instance = \"p5\"\nabout = \"sleeps\"\n[[case]]\nname = \"sleeps\"\nplacement = \"each\"\nworkload = {program}\nrecipes = [\"command\"]\n[[case.assert]]\nmetric = \"command.exit_code\"\nequals = 0\n"),
    );
    let child = project
        .command(&["--suite", "test", "--inventory", "here", "--junit", "junit.xml"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("starts");
    let pid = loop {
        if let Some(pid) =
            fs::read_to_string(project.path().join("pid")).ok().and_then(|text| text.trim().parse().ok())
        {
            break pid;
        }
        std::thread::sleep(std::time::Duration::from_millis(20));
    };
    (child, pid)
}

fn state(pid: i32) -> Option<char> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    stat.rsplit(')').next()?.trim().chars().next()
}

#[test]
fn once_ends_what_runs_and_writes_the_reports() {
    for (signal, code) in [(Signal::SIGINT, 130), (Signal::SIGTERM, 143)] {
        let project = Project::new();
        let (child, pid) = sleeping(&project);
        kill(Pid::from_raw(child.id() as i32), signal).expect("signalled");
        let ran = ran(child.wait_with_output().expect("ends"));
        assert_eq!(ran.code, Some(code), "{}", ran.all());
        assert!(matches!(state(pid), None | Some('Z')), "{pid} is left");
        assert!(project.path().join("junit.xml").is_file(), "{}", ran.all());
        let summary = project.json("summary.json");
        assert_eq!(summary["counts"]["error"], 1);
        assert_eq!(summary["exit_code"], code);
        assert!(ran.blamed().is_empty(), "an interruption has no culprit: {}", ran.all());
    }
}

#[test]
fn twice_is_immediate() {
    let project = Project::new();
    let (child, pid) = sleeping(&project);
    let own = Pid::from_raw(child.id() as i32);
    kill(own, Signal::SIGINT).expect("signalled");
    // The first must have been taken before the second is sent, or the two are one.
    std::thread::sleep(std::time::Duration::from_millis(100));
    let _ = kill(own, Signal::SIGINT);
    let ran = ran(child.wait_with_output().expect("ends"));
    assert_eq!(ran.code, Some(130), "{}", ran.all());
    let _ = kill(Pid::from_raw(pid), Signal::SIGKILL);
}
