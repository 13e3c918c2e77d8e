//! nccl-tests across pods, by stand-ins for mpirun and its programs: mpirun calls `agent.sh` as it would call ssh. The
//! same over a real Open MPI is in `tests/live`.

use super::{Bench, all};
use crate::bed::StandIns;
use crate::project::{Ran, ran, root};
use job::script::{Run, Script, Start, Step, render};
use model::artefact::{Launcher, Probe, ProbedNode, Value};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use std::fs;
use std::path::PathBuf;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

pub(super) struct Mpi {
    pub(super) bench: Bench,
    programs: StandIns,
}

/// What a test leaves running is ended, whatever becomes of it.
impl Drop for Mpi {
    fn drop(&mut self) {
        for (id, _) in self.left() {
            let _ = kill(Pid::from_raw(id), Signal::SIGKILL);
        }
    }
}

impl Mpi {
    /// So many seconds of each job are lived through.
    fn new(nodes: &str, floor_s: f64, paths: &str) -> Mpi {
        Mpi::with(nodes, &format!("floor_s = {floor_s:.1}"), paths)
    }

    /// With faults of the nodes' programs.
    pub(super) fn faulty(nodes: &str, faults: &[&str]) -> Mpi {
        Mpi::with(nodes, &format!("floor_s = 0.8\nfaults = {faults:?}"), "")
    }

    fn with(nodes: &str, world: &str, paths: &str) -> Mpi {
        let bench = Bench::new();
        let programs = StandIns::new(nodes, &format!("seed = 7\n{world}"));
        let project = &bench.0;
        let (shared, state) = (project.path().join("shared"), programs.state());
        let (shared, state) = (shared.display(), state.display());
        project.write(
            "inventory/pods.toml",
            &format!(
                "kind = \"real\"\ninstance = \"p5\"\nnodes = \"{nodes}\"\n[reach]\nvia = \"kubernetes\"\nimage = \"r/i:1\"\n\
                 shared = \"fsx\"\nstart_limit_s = 5\nheartbeat_timeout_s = 30\n[paths]\nshared = \"{shared}\"\n\
                 nccl_tests = \"{state}/bin\"\ncounters = \"{state}/hosts/{{host}}\"\n{paths}[environment]\n\
                 PATH = \"{state}/bin:/usr/local/bin:/usr/bin:/bin\"\nHARNESS_AGENT_SILENCE_LIMIT_S = \"15\"\n"
            ),
        );
        // The baselines of the simulated instance stand for those of the real one: its programs have the same model.
        let measured = fs::read_to_string(root().join("baselines/sim-p5.toml")).expect("baselines");
        let marked = "instance = \"sim-p5\"\nsimulated = true\n";
        assert!(measured.contains(marked), "the head of the baselines");
        project.write("baselines/p5.toml", &measured.replace(marked, "instance = \"p5\"\n"));
        Mpi { bench, programs }
    }

    fn arguments<'a>(case: &'a str, more: &[&'a str]) -> Vec<&'a str> {
        let own = ["--suite", "nccl-p5", "--inventory", "pods", "--no-probe", "--set", "interval_s=0.5"];
        own.into_iter().chain(more.iter().copied()).chain(["--", case]).collect()
    }

    pub(super) fn run(&self, case: &str) -> Ran {
        self.bench.run(&Mpi::arguments(case, &[]))
    }

    fn start(&self, case: &str) -> Child {
        let mut command = self.bench.command(&Mpi::arguments(case, &[]));
        command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it starts")
    }

    /// Processes of the run's jobs, with their command lines: by the folders that only this test has, which a process
    /// names or works in.
    fn left(&self) -> Vec<(i32, String)> {
        let texts = [self.bench.0.path().join("shared"), self.programs.state().to_owned()];
        let mut found = Vec::new();
        for entry in fs::read_dir("/proc").expect("/proc").flatten() {
            let Some(id) = entry.file_name().to_str().and_then(|name| name.parse::<i32>().ok()) else {
                continue;
            };
            let words = fs::read(entry.path().join("cmdline")).unwrap_or_default();
            let line = String::from_utf8_lossy(&words).replace('\0', " ");
            let within = fs::read_link(entry.path().join("cwd")).unwrap_or_default();
            if texts.iter().any(|text| line.contains(&text.display().to_string()) || within.starts_with(text))
            {
                found.push((id, line));
            }
        }
        found
    }

    /// The folder of the only job, once a command was taken on this node.
    fn taken_on(&self, node: &str) -> PathBuf {
        let mut found = None;
        until("mpirun has reached the node", || {
            let runs = fs::read_dir(self.bench.0.path().join("shared")).into_iter().flatten().flatten();
            let jobs = runs.flat_map(|run| below(&run.path())).flat_map(|case| below(&case));
            found = jobs.into_iter().find(|job| {
                let names = below(&job.join("agent").join(node));
                names.iter().any(|path| path.display().to_string().contains("/running."))
            });
            found.is_some()
        });
        found.expect("found")
    }

    /// Ends those of a node's processes whose command line is meant. What one started, or became, while the others were
    /// looked at is found by the next look: two in a row must find none.
    fn kill_on(&self, node: &str, is_meant: impl Fn(&str) -> bool) {
        let own = format!("HARNESS_NODE={node}").into_bytes();
        let mut quiet = 0;
        while quiet < 2 {
            quiet += 1;
            for (id, line) in self.left() {
                let environment = fs::read(format!("/proc/{id}/environ")).unwrap_or_default();
                if is_meant(&line) && environment.split(|byte| *byte == 0).any(|variable| variable == own) {
                    let _ = kill(Pid::from_raw(id), Signal::SIGKILL);
                    quiet = 0;
                }
            }
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    fn wait_until_nothing_is_left(&self) {
        // A rank that its daemon started while that was killed may outlive the job, and ends with its pod.
        let begin = Instant::now();
        while !self.left().is_empty() && begin.elapsed() < Duration::from_secs(30) {
            std::thread::sleep(Duration::from_millis(50));
        }
        assert_eq!(self.left(), Vec::new());
        assert_eq!(self.bench.pods(), Vec::<PathBuf>::new());
    }
}

fn below(folder: &std::path::Path) -> Vec<PathBuf> {
    fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path()).collect()
}

fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let begin = Instant::now();
    while !holds() {
        assert!(begin.elapsed() < Duration::from_secs(60), "not in time: {what}");
        std::thread::sleep(Duration::from_millis(50));
    }
}

fn ended(child: Child) -> Ran {
    ran(child.wait_with_output().expect("it ends"))
}

#[test]
fn collectives_over_all_pods_and_over_pairs_of_them_pass_and_leave_nothing() {
    for (nodes, case, verdicts) in [
        ("n[1-3]", "all-all_gather", "coverage: nodes 3/3"),
        ("n[1-4]", "pair-all_reduce", "coverage: nodes 4/4"),
    ] {
        let mpi = Mpi::new(nodes, 0.8, "");
        let ran = mpi.run(case);
        assert_eq!(ran.code, Some(0), "{case}: {}", all(&ran));
        assert!(ran.stdout.contains(verdicts), "{case}: {}", all(&ran));
        mpi.wait_until_nothing_is_left();
    }
}

#[test]
fn tags_of_mpirun_in_the_middle_of_lines_change_no_verdict() {
    let judged = |variables: &str| {
        let mpi = Mpi::new("n[1-2]", 0.8, "");
        let project = &mpi.bench.0;
        let inventory = fs::read_to_string(project.path().join("inventory/pods.toml")).expect("an inventory");
        project.write("inventory/pods.toml", &(inventory + variables));
        let ran = mpi.run("all-all_gather");
        assert_eq!(ran.code, Some(0), "{variables}: {}", all(&ran));
        let verdict = project.json("cases/all-all_gather/verdict.json");
        let verdicts = verdict["verdicts"].as_array().expect("verdicts").iter();
        let verdicts: Vec<String> =
            verdicts.map(|one| format!("{} {} {}", one["name"], one["status"], one["n"])).collect();
        let runs = below(&project.path().join("shared"));
        let jobs = runs.iter().flat_map(|run| below(run)).flat_map(|case| below(&case));
        let text: String =
            jobs.map(|job| fs::read_to_string(job.join("stdout")).unwrap_or_default()).collect();
        mpi.wait_until_nothing_is_left();
        (verdicts, text)
    };
    let tag = "[1,0]<stdout>:";
    let (plain, untagged) = judged("");
    let (tagged, text) = judged("OMPI_MCA_orte_tag_output = \"1\"\n");
    assert!(!untagged.is_empty() && !untagged.contains("<stdout>"), "{untagged}");
    let row = text.lines().find(|line| line.replace(tag, "").contains("float")).unwrap_or_default();
    assert!(row.matches(tag).count() > 2, "{text}");
    assert_eq!(tagged, plain);
}

#[test]
fn a_pod_that_dies_under_mpirun_is_named_and_the_job_ends_everywhere() {
    let mpi = Mpi::new("n[1-2]", 60.0, "");
    let child = mpi.start("all-all_gather");
    mpi.taken_on("n2");
    // All that runs in the pod ends with it.
    mpi.kill_on("n2", |_| true);
    for pod in mpi.bench.pods() {
        if fs::read_to_string(&pod).unwrap_or_default().starts_with("n2 ") {
            fs::remove_file(pod).expect("removed");
        }
    }
    let ran = ended(child);
    let text = all(&ran);
    assert!(ran.code == Some(3) && text.contains("pod of n2"), "{text}");
    mpi.wait_until_nothing_is_left();
}

#[test]
fn a_listener_that_dies_ends_the_job_with_a_line_that_names_its_node_and_blames_none() {
    let mpi = Mpi::new("n[1-2]", 60.0, "");
    let child = mpi.start("all-all_gather");
    let job = mpi.taken_on("n2");
    mpi.kill_on("n2", |line| !line.contains("supervisor.sh"));
    let ran = ended(child);
    let text = all(&ran);
    let stderr = fs::read_to_string(job.join("stderr")).unwrap_or_default();
    let line = "agent.sh: n2: no sign of life for 15 s, its pod is gone or does not answer\n";
    assert!(stderr.contains(line), "{stderr}\n{text}");
    assert!(ran.code == Some(3) && !text.contains("culprit") && !text.contains("suspect"), "{text}");
    assert!(text.contains("n2: no sign of life for 15 s, its pod is gone or does not answer"), "{text}");
    mpi.wait_until_nothing_is_left();
}

#[test]
fn an_image_without_mpirun_leaves_the_case_undecided_for_that_reason() {
    let mpi = Mpi::new("n[1-2]", 0.8, "mpirun = \"/nonexistent/mpirun\"\n");
    let ran = mpi.run("all-all_gather");
    let text = all(&ran);
    assert!(ran.code != Some(0) && !text.contains("culprit"), "{text}");
    assert!(text.contains("tool-missing mpirun: it is not at /nonexistent/mpirun"), "{text}");
    mpi.wait_until_nothing_is_left();
}

#[test]
fn a_run_that_is_cancelled_leaves_no_listener() {
    let mpi = Mpi::new("n[1-2]", 60.0, "");
    let child = mpi.start("all-all_gather");
    mpi.taken_on("n2");
    let id = Pid::from_raw(i32::try_from(child.id()).expect("a process id"));
    kill(id, Signal::SIGINT).expect("sent");
    let ran = ended(child);
    assert_eq!(ran.code, Some(130), "{}", all(&ran));
    mpi.wait_until_nothing_is_left();
}

#[test]
fn a_run_that_was_killed_goes_on_and_mpirun_with_it() {
    let mpi = Mpi::new("n[1-2]", 8.0, "");
    let mut child = mpi.start("all-all_gather");
    let job = mpi.taken_on("n2");
    child.kill().expect("killed");
    child.wait().expect("gone");
    let ran = mpi.bench.run(&["resume"]);
    assert_eq!(ran.code, Some(0), "{}", all(&ran));
    let asked = below(&job.join("agent/n2"));
    let asked = asked.iter().filter(|path| path.display().to_string().contains("/running.")).count();
    assert!(asked <= 1, "mpirun was started once");
    mpi.wait_until_nothing_is_left();
}

/// A plan of one case whose jobs look for mpirun, and what nodes reported of their launchers.
fn skipped(launcher: Launcher, mpirun: &str, reported: &[Option<&[&str]>]) -> Option<String> {
    let mut plan = fixture::plan();
    plan.launcher = launcher;
    plan.cases.truncate(1);
    plan.nodes.truncate(reported.len());
    let run = Run {
        argv: vec!["all_reduce_perf".into()],
        tasks_per_node: 8,
        mpi: Some(mpirun.into()),
        container: None,
        profile: None,
    };
    for job in &mut plan.cases[0].jobs {
        let script =
            Script { start: Start::Pods, nodes: job.nodes.clone(), steps: vec![Step::Run(run.clone())] };
        job.files[0].text = Some(render(&script));
    }
    let nodes = plan.nodes.iter().zip(reported).map(|(node, reported)| {
        let names = reported.map(|names| Value::Names(names.iter().map(|name| (*name).to_owned()).collect()));
        let facts = names.map(|names| ("launchers".to_owned(), names)).into_iter().collect();
        ProbedNode { node: node.clone(), facts, ..ProbedNode::default() }
    });
    let probe = Probe {
        format: model::artefact::Format,
        harness: String::new(),
        simulated: false,
        inventory: String::new(),
        instance: String::new(),
        at: String::new(),
        nodes: nodes.collect(),
    };
    plan::skip_without_mpirun(&mut plan, &probe);
    let case = &plan.cases[0];
    assert_eq!(case.skip.is_some(), case.jobs.is_empty());
    assert_eq!(case.assertions.len(), 2, "each has its verdict");
    case.skip.clone()
}

#[test]
fn a_case_is_unsupported_where_every_pod_reports_that_there_is_no_mpirun() {
    let none: Option<&[&str]> = Some(&["torchrun /usr/bin/torchrun"]);
    let some: Option<&[&str]> = Some(&["mpirun /usr/bin/mpirun"]);
    let why = skipped(Launcher::Kubernetes, "find-mpirun", &[none, none]).expect("skipped");
    assert!(
        why.starts_with("unsupported: the image has no mpirun, neither on PATH nor at /opt/amazon/"),
        "{why}"
    );
    for (launcher, mpirun, reported) in [
        // One that did not report any leaves it to the job.
        (Launcher::Kubernetes, "find-mpirun", [none, None]),
        (Launcher::Kubernetes, "find-mpirun", [none, some]),
        (Launcher::Kubernetes, "/my/mpirun", [none, none]),
        (Launcher::Ssh, "find-mpirun", [none, none]),
    ] {
        assert_eq!(skipped(launcher, mpirun, &reported), None);
    }
}

#[test]
fn a_case_that_cannot_run_in_pods_is_skipped_with_the_reason_and_others_run() {
    let bench = Bench::new();
    let suite = fs::read_to_string(bench.0.path().join("suites/pods.toml")).expect("there");
    let more = suite.split_once("[[case]]").expect("a case").1.replace("\"each\"", "\"twice\"");
    let more = more.replace("placement = \"twice\"", "placement = \"each\"");
    let more = more.replace("program =", "tasks_per_node = 2, program =");
    bench.0.write("suites/pods.toml", &format!("{suite}[[case]]{more}"));
    let ran = bench.suite();
    assert_eq!(ran.code, Some(0), "{}", all(&ran));
    let reason = "its `tasks_per_node = 2` needs Slurm: in pods a command runs once on each node";
    assert!(all(&ran).contains(reason), "{}", all(&ran));
    let alone = bench.run(&["--suite", "pods", "--inventory", "pods", "--no-probe", "--", "twice"]);
    assert_eq!(alone.code, Some(4), "{}", all(&alone));
}
