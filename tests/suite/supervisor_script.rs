//! `supervisor.sh` under a real bash: a job is started once, ends with all that it started, and ends by itself when no one
//! asks for it any more. What the launcher makes of the answers is tested beside it.

use job::script::{SUPERVISOR_SH, files, shared_text};
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use tempfile::TempDir;

struct Job {
    folder: TempDir,
}

impl Job {
    fn new(script: &str) -> Job {
        let job = Job { folder: TempDir::new().expect("a folder") };
        fs::write(job.path(files::SUPERVISOR), SUPERVISOR_SH).expect("written");
        fs::write(job.path(files::JOB), format!("#!/bin/bash\n{script}\n")).expect("written");
        job
    }

    fn path(&self, name: &str) -> std::path::PathBuf {
        self.folder.path().join(name)
    }

    fn text(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).unwrap_or_default()
    }

    /// What one call prints.
    fn call(&self, verb: &str, more: &[&str]) -> String {
        let output = Command::new("bash")
            .arg(self.path(files::SUPERVISOR))
            .args([verb, &self.folder.path().display().to_string(), "n1"])
            .args(more)
            .stdin(Stdio::null())
            .output()
            .expect("bash starts");
        assert!(output.status.success(), "{verb}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8_lossy(&output.stdout).trim_end().to_owned()
    }

    fn look(&self) -> String {
        self.call("look", &[])
    }

    fn ends(&self) -> String {
        let mut last = String::new();
        until("the job has ended", || {
            last = self.look();
            last != "running"
        });
        last
    }

    /// The process that wrote its number into a file.
    fn pid(&self, name: &str) -> i32 {
        let mut pid = 0;
        until("a process has written its number", || {
            pid = self.text(name).trim().parse().unwrap_or_default();
            pid != 0
        });
        pid
    }
}

fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let begin = Instant::now();
    while !holds() {
        assert!(begin.elapsed() < Duration::from_secs(60), "not in time: {what}");
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// Gone, or a zombie that its parent has yet to reap.
fn is_gone(pid: i32) -> bool {
    match fs::read_to_string(format!("/proc/{pid}/stat")) {
        Err(_) => true,
        Ok(stat) => stat.rsplit(')').next().is_some_and(|rest| rest.trim_start().starts_with('Z')),
    }
}

#[test]
fn a_job_is_started_once_however_often_it_is_asked_for_and_ends_with_all_that_it_started() {
    let job = Job::new(
        "echo \"$HARNESS_NODE\" >> started\nsleep 600 & echo $! > left\nuntil [ -e go ]; do sleep 0.1; done\nexit 7",
    );
    assert_eq!(job.look(), "absent");
    assert_eq!(job.call("end", &["TERM"]), "absent");
    assert_eq!(job.call("start", &["60"]), "running");
    assert_eq!(job.call("start", &["60"]), "running");
    let left = job.pid("left");
    fs::write(job.path("go"), "").expect("written");
    assert_eq!(job.ends(), "ended 7 itself");
    assert_eq!(job.call("start", &["60"]), "ended 7 itself");
    assert_eq!(job.call("end", &["KILL"]), "ended 7 itself");
    assert_eq!(job.text("started"), "n1\n");
    assert!(is_gone(left), "{left} is left");
}

/// Control groups of version 2, of version 1 on a node, and of version 1 in a container, which sees its own at the top.
#[test]
fn a_job_of_which_the_kernel_ended_a_process_for_memory_says_so() {
    let groups = [
        ("0::/user.slice/session-3.scope\n", "/user.slice/session-3.scope/memory.events"),
        ("0::/\n", "/memory.events"),
        (
            "9:cpu,cpuacct:/\n4:memory:/system.slice/a b\n0::/\n",
            "/memory/system.slice/a b/memory.oom_control",
        ),
        ("11:memory:/kubepods/burstable/pod1/c1\n", "/memory/memory.oom_control"),
    ];
    for (own, counter) in groups {
        let there = TempDir::new().expect("a folder");
        let (own_file, counter) =
            (there.path().join("cgroup"), format!("{}{counter}", there.path().display()));
        fs::write(&own_file, own).expect("written");
        fs::create_dir_all(Path::new(&counter).parent().expect("a folder")).expect("made");
        let counted = |count: u32| format!("oom 9\noom_kill {count}\nunder_oom 0\n");
        let ends = |script: &str| {
            fs::write(&counter, counted(3)).expect("written");
            let job = Job::new(&format!("{script}\n").replace("COUNTER", &counter));
            let text = SUPERVISOR_SH
                .replace("/proc/self/cgroup", &own_file.display().to_string())
                .replace("/sys/fs/cgroup", &there.path().display().to_string());
            fs::write(job.path(files::SUPERVISOR), text).expect("written");
            job.call("start", &["60"]);
            job.ends()
        };
        let one_more = "printf 'oom_kill 4\\n' > 'COUNTER'";
        assert_eq!(ends(&format!("{one_more}; exit 137")), "ended 137 memory", "{own}");
        assert_eq!(ends(&format!("{one_more}; exit 1")), "ended 1 memory", "{own}");
        assert_eq!(ends(one_more), "ended 0 itself", "{own}");
        assert_eq!(ends("exit 137"), "ended 137 itself", "{own}");
        assert_eq!(ends("rm 'COUNTER'; exit 137"), "ended 137 itself", "{own}");
        // The process that keeps the job is ended as well: whoever looks next says the same.
        let both = "read -r pid _ < supervisor.n1/supervisor; kill -KILL $pid; exit 1";
        assert_eq!(
            ends(&format!("until [ -e supervisor.n1/supervisor ]; do sleep 0.1; done; {one_more}; {both}")),
            "ended 137 memory",
            "{own}"
        );
        assert_eq!(
            ends(&format!("until [ -e supervisor.n1/supervisor ]; do sleep 0.1; done; {both}")),
            "lost",
            "{own}"
        );
    }
}

#[test]
fn what_leaves_the_jobs_group_ends_with_it_and_what_is_of_another_job_stays() {
    let script = "setsid sleep 600 & setsid -w bash -c 'echo $$ > left; trap \"\" TERM; while :; do sleep 1; done' &\n\
                  until [ -e go ]; do sleep 0.1; done";
    let job = Job::new(script);
    let other = Job::new(script);
    for job in [&job, &other] {
        assert_eq!(job.call("start", &["60"]), "running");
    }
    let (left, others) = (job.pid("left"), other.pid("left"));
    fs::write(job.path("go"), "").expect("written");
    assert_eq!(job.ends(), "ended 0 itself");
    assert!(is_gone(left), "{left} is left");
    assert!(!is_gone(others), "another job's");
    other.call("end", &["KILL"]);
    assert_eq!(other.ends(), "ended 137 asked");
    assert!(is_gone(others), "{others} is left");
}

#[test]
fn two_callers_at_once_start_one_job() {
    let job = Job::new("echo x >> started\nsleep 2");
    let answers: Vec<String> = std::thread::scope(|scope| {
        let callers: Vec<_> = (0..4).map(|_| scope.spawn(|| job.call("start", &["60"]))).collect();
        callers.into_iter().map(|caller| caller.join().expect("an answer")).collect()
    });
    assert_eq!(answers, ["running"; 4]);
    assert_eq!(job.ends(), "ended 0 itself");
    assert_eq!(job.text("started"), "x\n");
}

#[test]
fn a_job_without_heartbeats_ends_and_one_with_them_goes_on() {
    let job = Job::new("sleep 600 & echo $! > child\nwait");
    job.call("start", &["2"]);
    let child = job.pid("child");
    let begin = Instant::now();
    while begin.elapsed() < Duration::from_secs(5) {
        assert_eq!(job.look(), "running");
        std::thread::sleep(Duration::from_millis(400));
    }
    // Looked at from aside, for a look would renew it.
    until("the heartbeat timeout has run out", || job.path("supervisor.n1/status").exists());
    assert_eq!(job.look(), "ended 143 heartbeat");
    assert!(is_gone(child), "{child} is left");
}

#[test]
fn a_job_that_is_asked_to_end_ends_and_one_that_does_not_heed_is_ended_by_force() {
    let job = Job::new("sleep 600 & echo $! > child\nwait");
    job.call("start", &["60"]);
    let child = job.pid("child");
    job.call("end", &["TERM"]);
    assert_eq!(job.ends(), "ended 143 asked");
    assert!(is_gone(child), "{child} is left");

    let job = Job::new("trap '' TERM\necho $$ > child\nwhile :; do sleep 1; done");
    job.call("start", &["60"]);
    let child = job.pid("child");
    assert_eq!(job.call("end", &["TERM"]), "running");
    std::thread::sleep(Duration::from_secs(2));
    assert_eq!(job.look(), "running");
    job.call("end", &["KILL"]);
    assert_eq!(job.ends(), "ended 137 asked");
    assert!(is_gone(child), "{child} is left");
}

#[test]
fn a_job_whose_supervisor_is_gone_is_lost_and_can_still_be_ended() {
    let job = Job::new("echo $$ > child\nexec sleep 600");
    job.call("start", &["60"]);
    let child = job.pid("child");
    let supervisor = job.text("supervisor.n1/supervisor");
    let supervisor: i32 = supervisor.split(' ').next().and_then(|pid| pid.parse().ok()).expect("a number");
    let supervisor = nix::unistd::Pid::from_raw(supervisor);
    nix::sys::signal::kill(supervisor, nix::sys::signal::Signal::SIGKILL).expect("killed");
    until("the supervisor is gone", || is_gone(supervisor.as_raw()));
    assert_eq!(job.look(), "lost");
    assert!(!is_gone(child));
    assert_eq!(job.call("end", &["KILL"]), "lost");
    until("the job is gone", || is_gone(child));
}

#[test]
fn numbers_that_mean_other_processes_by_now_are_left_alone() {
    let mut stranger = Command::new("sleep").arg("600").spawn().expect("starts");
    let job = Job::new("true");
    fs::create_dir(job.path("supervisor.n1")).expect("made");
    let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").expect("a boot id");
    for owner in [format!("{} 1 {boot}", stranger.id()), format!("{} 1 another-boot\n", stranger.id())] {
        for file in ["supervisor", "group"] {
            fs::write(job.path("supervisor.n1").join(file), &owner).expect("written");
        }
        assert_eq!(job.call("end", &["KILL"]), "lost");
        assert_eq!(job.look(), "lost");
        assert!(Path::new(&format!("/proc/{}", stranger.id())).exists() && !is_gone(stranger.id() as i32));
    }
    stranger.kill().expect("killed");
    stranger.wait().expect("ended");
}

/// As in the pod that has the name of one that was deleted: the same machine, and another first process.
#[test]
fn a_container_that_was_replaced_is_reported_and_none_of_its_numbers_is_believed() {
    let mut stranger = Command::new("setsid").args(["sleep", "600"]).spawn().expect("starts");
    let job = Job::new("true");
    fs::create_dir(job.path("supervisor.n1")).expect("made");
    let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").expect("a boot id");
    let stat = fs::read_to_string(format!("/proc/{}/stat", stranger.id())).expect("it runs");
    let began = stat.rsplit(')').next().and_then(|rest| rest.split_whitespace().nth(19)).expect("a moment");
    for file in ["supervisor", "group"] {
        let owner = format!("{} {began} {} 1234567\n", stranger.id(), boot.trim());
        fs::write(job.path("supervisor.n1").join(file), owner).expect("written");
    }
    assert_eq!(job.look(), "replaced");
    assert_eq!(job.call("end", &["KILL"]), "replaced");
    assert_eq!(job.call("start", &["60"]), "replaced");
    assert!(!is_gone(stranger.id() as i32));
    stranger.kill().expect("killed");
    stranger.wait().expect("ended");
}

/// A script whose process name holds a line break, and which takes the place of the one that calls it.
const LINE_BREAK: &str = "printf '#!/bin/bash\\necho $$ > child; sleep 600 & wait\\n' > $'a\\nb'; chmod +x $'a\\nb'; exec ./$'a\\nb'";

/// The kernel does not escape a process name in /proc/PID/stat.
#[test]
fn a_process_name_with_a_line_break_neither_hides_the_job_nor_ends_the_supervisor() {
    let asked = Job::new(LINE_BREAK);
    asked.call("start", &["60"]);
    let child = asked.pid("child");
    asked.call("end", &["TERM"]);
    assert_eq!(asked.ends(), "ended 143 asked");
    assert!(is_gone(child), "{child} is left");
    let unasked = Job::new(LINE_BREAK);
    unasked.call("start", &["2"]);
    let child = unasked.pid("child");
    until("the heartbeat timeout has run out", || unasked.path("supervisor.n1/status").exists());
    assert_eq!(unasked.look(), "ended 143 heartbeat");
    assert!(is_gone(child), "{child} is left");
}

#[test]
fn it_starts_jobs_of_an_older_versions_plan_under_the_name_in_that_plan() {
    let job = Job::new("echo hello");
    fs::remove_file(job.path(files::SUPERVISOR)).expect("removed");
    let script = job.path(files::OLDER_SUPERVISOR);
    fs::write(&script, shared_text(files::OLDER_SUPERVISOR).expect("a script")).expect("written");
    let call = |verb: &str, more: &[&str]| {
        let folder = job.folder.path().display().to_string();
        let mut command = Command::new("bash");
        command.arg(&script).args([verb, &folder, "n1"]).args(more).stdin(Stdio::null());
        String::from_utf8_lossy(&command.output().expect("bash starts").stdout).trim_end().to_owned()
    };
    let mut last = call("start", &["60"]);
    until("the job has ended", || {
        last = call("look", &[]);
        last != "running"
    });
    assert_eq!((last.as_str(), job.text("log.n1").as_str()), ("ended 0 itself", "hello\n"));
}

#[test]
fn what_the_script_says_is_kept_and_wrong_arguments_are_refused() {
    let job = Job::new("echo hello; echo trouble >&2");
    job.call("start", &["60"]);
    assert_eq!(job.ends(), "ended 0 itself");
    assert_eq!(job.text("log.n1"), "hello\ntrouble\n");
    let folder = job.folder.path().display().to_string();
    for words in [
        &["look"][..],
        &["look", "relative", "n1"],
        &["start", &folder, "n2"],
        &["start", &folder, "n2", "soon"],
        &["end", &folder, "n2", "HUP"],
        &["end", &folder, "../n2", "KILL"],
        &["begin", &folder, "n2", "60"],
    ] {
        let output =
            Command::new("bash").arg(job.path(files::SUPERVISOR)).args(words).output().expect("bash");
        assert_eq!(output.status.code(), Some(2), "{words:?}");
        assert!(String::from_utf8_lossy(&output.stderr).starts_with("usage: "), "{words:?}");
    }
    let absent = format!("{folder}/nowhere");
    let output =
        Command::new("bash").arg(job.path(files::SUPERVISOR)).args(["start", &absent, "n1", "60"]).output();
    let output = output.expect("bash");
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&output.stderr).contains("cannot make the folder"));
}
