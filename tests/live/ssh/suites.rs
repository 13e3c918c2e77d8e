//! Whole runs of the harness over ssh: verdicts, culprits, and nothing left running, however a run ends.

use super::hosts::{Hosts, processes_with, wait_until};
use crate::fact::Fact;
use crate::project::{Project, Ran, ran};
use crate::table::{self, Row};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

pub(crate) const FACTS: &[Fact] = &[
    ("a_suite_passes_and_leaves_nothing_behind", a_suite_passes_and_leaves_nothing_behind),
    (
        "a_shared_folder_that_others_can_write_is_refused_before_anything_is_launched",
        a_shared_folder_that_others_can_write_is_refused,
    ),
    ("a_dead_host_costs_its_own_verdicts_only", a_dead_host_costs_its_own_verdicts_only),
    ("a_connection_that_breaks_while_a_job_runs_costs_nothing", a_connection_that_breaks_costs_nothing),
    ("ctrl_c_ends_the_jobs_on_all_nodes_and_the_connections", ctrl_c_ends_the_jobs_on_all_nodes),
    ("a_run_that_was_killed_goes_on_and_no_job_runs_twice", a_run_that_was_killed_goes_on),
    (
        "what_a_killed_run_started_ends_by_its_heartbeat_timeout",
        what_a_killed_run_started_ends_by_its_heartbeat_timeout,
    ),
    ("a_suite_on_sixty_four_hosts_takes_little_memory", a_suite_on_sixty_four_hosts_takes_little_memory),
];

/// A bench of hosts and a project whose one suite runs `program`, a text for bash, on each of them.
pub(crate) struct Bench {
    pub hosts: Hosts,
    pub project: Project,
}

const ARGS: [&str; 4] = ["--suite", "test", "--inventory", "live"];

impl Bench {
    fn new(many: usize, placements: &[&str], program: &str) -> Bench {
        Bench::with_suite(Hosts::start(many), placements, program, "limit_s = 120")
    }

    /// `more` are further lines of each case.
    pub(crate) fn with_suite(hosts: Hosts, placements: &[&str], program: &str, more: &str) -> Bench {
        let bench = Bench { hosts, project: Project::new() };
        bench.project.write("inventory/live.toml", &bench.hosts.inventory("heartbeat_timeout_s = 30"));
        let mut suite = "instance = \"p5\"\nabout = \"over real ssh\"\n".to_owned();
        for placement in placements {
            suite += &format!(
                "[[case]]\nname = \"on-{placement}\"\nplacement = \"{placement}\"\n{more}\n\
                 workload = {{ kind = \"command\", program = \"bash\", args = [\"-c\", '''{program}'''] }}\n\
                 recipes = [\"command\"]\n[[case.assert]]\nmetric = \"command.exit_code\"\nequals = 0\n"
            );
        }
        bench.project.write("suites/test.toml", &suite);
        bench
    }

    pub(crate) fn start(&self) -> Child {
        self.project.command(&ARGS).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("starts")
    }

    /// Writes its process id, and waits to be asked to go on.
    pub(crate) fn program_that_waits(folder: &str) -> String {
        format!(
            "echo $$ >> {folder}/pid.$HARNESS_NODE; until [ -e {folder}/go ]; do sleep 0.1; done; echo went on"
        )
    }

    /// Nothing runs that this bench's run has started: no job, no supervisor, no connection.
    fn is_quiet(&self) -> bool {
        self.left().is_empty()
    }

    /// What runs of it, one process to a line.
    fn left(&self) -> String {
        let texts = ["ssh_config", "shared"].map(|name| self.hosts.path(name).display().to_string());
        let found = texts.iter().flat_map(|text| processes_with(text));
        found.map(|(id, line)| format!("{id} {line}\n")).collect()
    }

    /// Takes down what the newest run has come to after a failure. Nothing may be left of it.
    #[track_caller]
    pub(crate) fn came_to(&self, failure: &'static str, ran: &Ran, [verdict, culprit, others]: [&str; 3]) {
        let began = Instant::now();
        while !self.is_quiet() && began.elapsed() < Duration::from_secs(20) {
            std::thread::sleep(Duration::from_millis(100));
        }
        let seen = Row::seen(&self.project, ran, &self.left());
        table::note(failure, seen, &Row::new(verdict, culprit, others), ran);
    }

    pub(crate) fn reported_quiet(&self, within_s: u64) {
        let shared = self.hosts.path("shared").display().to_string();
        wait_until(within_s, &format!("nothing is left: {:?}", processes_with(&shared)), || self.is_quiet());
    }
}

fn is_gone(pid: i32) -> bool {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit(')').next().is_none_or(|rest| rest.is_empty() || rest.trim_start().starts_with('Z'))
}

fn sockets_of(pid: u32) -> bool {
    let home = |name: &str, below: &str| std::env::var_os(name).map(|home| Path::new(&home).join(below));
    let parents = [home("XDG_RUNTIME_DIR", "harness"), home("HOME", ".cache/harness")];
    let parents = parents.into_iter().flatten().chain([std::env::temp_dir()]);
    parents
        .flat_map(|parent| fs::read_dir(parent).into_iter().flatten().flatten())
        .map(|entry| entry.file_name())
        .any(|name| name.to_string_lossy().starts_with(&format!("harness-ssh-{pid}-")))
}

fn a_suite_passes_and_leaves_nothing_behind() {
    let bench = Bench::new(4, &["each", "all"], "echo \"$HARNESS_NODE of $NNODES\"");
    let child = bench.start();
    let pid = child.id();
    let ran = ran(child.wait_with_output().expect("ends"));
    assert_eq!(ran.code, Some(0), "{}", ran.all());
    let mut reported = Vec::new();
    for case in ["on-each", "on-all"] {
        let raw = bench.project.latest().join("cases").join(case).join("raw");
        for job in fs::read_dir(&raw).expect("raw").flatten() {
            for file in fs::read_dir(job.path()).expect("a job").flatten() {
                if file.file_name().to_string_lossy().starts_with("stdout") {
                    reported.push(fs::read_to_string(file.path()).expect("text"));
                }
            }
        }
    }
    reported.sort();
    let wanted = (1..=4).flat_map(|nth| [format!("h{nth} of 1\n"), format!("h{nth} of 4\n")]);
    assert_eq!(reported, wanted.collect::<Vec<_>>());
    bench.reported_quiet(5);
    assert!(!sockets_of(pid), "a folder of sockets is left");
    for nth in 1..=4 {
        let connections = bench.hosts.text(&format!("h{nth}.log")).matches("Accepted publickey").count();
        assert_eq!(connections, 1, "h{nth} was connected to {connections} times");
    }
}

fn a_shared_folder_that_others_can_write_is_refused() {
    let bench = Bench::new(2, &["each"], "echo here");
    let shared = bench.hosts.path("shared");
    fs::create_dir(&shared).expect("made");
    let allow = |mode: u32| fs::set_permissions(&shared, fs::Permissions::from_mode(mode)).expect("set");
    allow(0o777);
    for more in [&["--no-probe"][..], &[]] {
        let ran = bench.project.harness(&[&ARGS[..], more].concat());
        assert_eq!(ran.code, Some(3), "{}", ran.all());
        let shown = format!("`{}` has mode 0777", shared.display());
        let lines: Vec<&str> = ran.stderr.lines().filter(|line| line.contains(&shown)).collect();
        assert_eq!(lines.len(), 1, "{}", ran.all());
        assert!(lines[0].contains("chmod go-w") && lines[0].contains("nothing was launched"), "{}", lines[0]);
        assert_eq!(fs::read_dir(&shared).expect("there").count(), 0, "{}", ran.all());
    }
    allow(0o1777);
    let ran = bench.project.harness(&ARGS);
    assert_eq!(ran.code, Some(0), "{}", ran.all());
    let run = fs::read_dir(&shared).expect("there").flatten().next().expect("a run's folder").path();
    assert_eq!(fs::metadata(run).expect("there").permissions().mode() & 0o7777, 0o700);
}

fn a_dead_host_costs_its_own_verdicts_only() {
    let bench = Bench::new(4, &["each"], "echo here");
    bench.hosts.down(3);
    let ran = bench.project.harness(&ARGS);
    assert_eq!(ran.code, Some(3), "{}", ran.all());
    let summary = bench.project.json("summary.json");
    assert_eq!(
        (&summary["counts"]["pass"], &summary["counts"]["error"]),
        (&3.into(), &1.into()),
        "{}",
        ran.all()
    );
    assert!(ran.stdout.contains("culprit h3"), "{}", ran.all());
    let evidence = summary["culprits"][0]["evidence"].as_str().unwrap_or_default();
    assert!(evidence.contains("Connection refused"), "{evidence}");
    bench.came_to(
        "a host that refuses connections, ssh",
        &ran,
        ["1 error host-unreachable", "culprit h3 node", "3 pass"],
    );
}

fn a_connection_that_breaks_costs_nothing() {
    let folder = tempfile::tempdir().expect("a folder");
    let go = folder.path().join("go");
    let program = format!("until [ -e {} ]; do sleep 0.1; done", go.display());
    let bench = Bench::new(2, &["all"], &program);
    let child = bench.start();
    wait_until(30, "the jobs run", || processes_with(&go.display().to_string()).len() >= 2);
    for _ in 0..3 {
        std::thread::sleep(Duration::from_secs(2));
        bench.hosts.cut(1);
    }
    fs::write(&go, "").expect("written");
    let ran = ran(child.wait_with_output().expect("ends"));
    assert_eq!(ran.code, Some(0), "{}", ran.all());
    bench.came_to("a connection cut while a job runs, ssh", &ran, ["pass", "none", "1 pass"]);
}

fn waiting(many: usize) -> (Bench, String) {
    let folder = tempfile::tempdir().expect("a folder").keep().display().to_string();
    let bench = Bench::new(many, &["all"], &Bench::program_that_waits(&folder));
    (bench, folder)
}

/// The folder in which jobs report that they run, which goes with the test.
pub(crate) struct Folder(pub String);

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

pub(crate) fn pids_in(folder: &str, many: usize) -> Vec<i32> {
    let mut pids = Vec::new();
    wait_until(60, "the jobs run", || {
        let text = |nth: usize| fs::read_to_string(format!("{folder}/pid.h{nth}")).unwrap_or_default();
        pids = (1..=many).filter_map(|nth| text(nth).lines().next()?.parse().ok()).collect();
        pids.len() == many
    });
    pids
}

fn ctrl_c_ends_the_jobs_on_all_nodes() {
    let (bench, folder) = waiting(3);
    let folder = Folder(folder);
    let child = bench.start();
    let id = child.id();
    let pids = pids_in(&folder.0, 3);
    kill(Pid::from_raw(id as i32), Signal::SIGINT).expect("signalled");
    let ran = ran(child.wait_with_output().expect("ends"));
    assert_eq!(ran.code, Some(130), "{}", ran.all());
    assert!(pids.iter().all(|pid| is_gone(*pid)), "{pids:?}");
    bench.reported_quiet(5);
    assert!(!sockets_of(id), "a folder of sockets is left");
}

fn killed(bench: &Bench, folder: &Folder, many: usize) -> Vec<i32> {
    let mut child = bench.start();
    let pids = pids_in(&folder.0, many);
    child.kill().expect("killed");
    child.wait().expect("gone");
    pids
}

fn a_run_that_was_killed_goes_on() {
    let (bench, folder) = waiting(3);
    let folder = Folder(folder);
    let pids = killed(&bench, &folder, 3);
    assert!(pids.iter().all(|pid| !is_gone(*pid)), "the jobs go on meanwhile");
    fs::write(format!("{}/go", folder.0), "").expect("written");
    let ran: Ran = bench.project.harness(&["--run", "latest", "--resume"]);
    assert_eq!(ran.code, Some(0), "{}", ran.all());
    for nth in 1..=3 {
        let begun = fs::read_to_string(format!("{}/pid.h{nth}", folder.0)).expect("text").lines().count();
        assert_eq!(begun, 1, "the job ran {begun} times on h{nth}");
    }
    bench.reported_quiet(30);
    bench.came_to("the harness killed by force and resumed, ssh", &ran, ["pass", "none", "1 pass"]);
}

fn what_a_killed_run_started_ends_by_its_heartbeat_timeout() {
    let (bench, folder) = waiting(2);
    let folder = Folder(folder);
    let began = Instant::now();
    let pids = killed(&bench, &folder, 2);
    wait_until(90, "the heartbeat timeout ends the jobs", || pids.iter().all(|pid| is_gone(*pid)));
    assert!(began.elapsed() > Duration::from_secs(20), "something else has ended them");
    bench.reported_quiet(30);
}

/// The most memory that a process has had.
pub(crate) fn peak_kib(status: &str) -> Option<u64> {
    let text = fs::read_to_string(status).ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    line.trim().strip_suffix(" kB")?.trim().parse().ok()
}

fn a_suite_on_sixty_four_hosts_takes_little_memory() {
    let bench = Bench::new(64, &["all"], "echo here");
    let began = Instant::now();
    let child = bench.start();
    let status = format!("/proc/{}/status", child.id());
    let mut most = 0;
    // A process that has ended has no such line any more.
    while let Some(kib) = peak_kib(&status) {
        most = kib / 1024;
        std::thread::sleep(Duration::from_millis(20));
    }
    let ran = ran(child.wait_with_output().expect("ends"));
    assert_eq!(ran.code, Some(0), "{}", ran.all());
    eprintln!("a suite on 64 hosts: {:.1?}, at most {most} MiB", began.elapsed());
    assert!(most > 0 && most < 300, "{most} MiB");
    bench.reported_quiet(5);
}
