//! A copy of the project beside a Slurm cluster of its own: suites of commands run on its nodes, and what came of them
//! is asked for. What must come of them stands in the tests.

use crate::bed::StandIns;
use crate::project::{Project, Ran, ran};
use crate::slurm_cluster::Cluster;
use crate::table::{self, Row};
use nix::unistd::Pid;
use serde_json::Value;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

pub(crate) struct Bench {
    pub cluster: Cluster,
    pub project: Project,
}

impl Bench {
    /// Four nodes, and the suite `live` of these cases.
    pub(crate) fn new(cases: &str) -> Bench {
        Bench::with_cases(4, "", cases)
    }

    /// `reach`: more lines on how the nodes are reached.
    pub(crate) fn with_cases(nodes: u16, reach: &str, cases: &str) -> Bench {
        Bench::on(nodes, &[], reach, cases)
    }

    /// `lines`: more of them for slurm.conf.
    pub(crate) fn on(nodes: u16, lines: &[&str], reach: &str, cases: &str) -> Bench {
        let bench = Bench { cluster: Cluster::start_with(nodes, lines), project: Project::new() };
        let folder = bench.folder();
        bench.project.write(
            "inventory/live.toml",
            &format!(
                "kind = \"real\"\ninstance = \"p5\"\nnodes = \"n[1-{nodes}]\"\n\
                 [reach]\nvia = \"slurm\"\nmpi = \"none\"\n{reach}\n\
                 [paths]\nshared = \"{folder}/shared\"\nnccl_tests = \"{folder}/bin\"\n\
                 counters = \"{folder}/sys/{{host}}\"\n"
            ),
        );
        let cases = cases.replace("BENCH", &folder);
        bench.project.write("suites/live.toml", &format!("instance = \"p5\"\nabout = \"live\"\n{cases}"));
        bench
    }

    /// The same with stand-ins for the programs of its nodes, `n1` and so on.
    pub(crate) fn with(programs: &StandIns, nodes: u16, cases: &str) -> Bench {
        let bench = Bench::with_cases(nodes, "", cases);
        let (folder, state) = (bench.folder(), programs.state().display());
        let slurm = bench.cluster.first_on_path();
        bench.project.write(
            "inventory/live.toml",
            &format!(
                "kind = \"real\"\ninstance = \"p5\"\nnodes = \"n[1-{nodes}]\"\nnsys_version = \"2025.3.1\"\n\
                 [reach]\nvia = \"slurm\"\nmpi = \"pmi2\"\n\
                 [environment]\nPATH = \"{state}/bin:{slurm}/usr/local/bin:/usr/bin:/bin\"\n\
                 [paths]\nshared = \"{folder}/shared\"\nnccl_tests = \"{state}/bin\"\n\
                 nsys = \"{state}/bin/nsys\"\ncounters = \"{state}/hosts/{{host}}\"\n"
            ),
        );
        bench
    }

    pub(crate) fn folder(&self) -> String {
        self.project.path().display().to_string()
    }

    /// A program that suites call as `BENCH/bin/NAME`.
    pub(crate) fn program(&self, name: &str, text: &str) {
        let name = format!("bin/{name}");
        self.project.write(&name, &format!("#!/bin/bash\n{text}").replace("BENCH", &self.folder()));
        let path = self.project.path().join(name);
        fs::set_permissions(path, fs::Permissions::from_mode(0o755)).expect("made executable");
    }

    pub(crate) fn command(&self, args: &[&str]) -> Command {
        let mut command = self.project.command(args);
        command.envs(self.cluster.variables());
        command
    }

    pub(crate) fn run(&self) -> Ran {
        ended(self.start())
    }

    /// A run that goes on while the test does something to it.
    pub(crate) fn start(&self) -> Running {
        self.start_with(&RUN)
    }

    pub(crate) fn start_with(&self, args: &[&str]) -> Running {
        let mut command = self.command(args);
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        self.running(command)
    }

    /// A harness of one's own words.
    pub(crate) fn running(&self, mut command: Command) -> Running {
        let run = Running(Some(command.spawn().expect("the harness starts")));
        self.cluster.script("own", &[&run.id().to_string()]);
        run
    }

    /// The file by which workloads report that they run, or are asked to go on.
    pub(crate) fn has(&self, file: &str) -> bool {
        self.project.path().join(file).exists()
    }

    #[track_caller]
    pub(crate) fn wait_for(&self, files: &[&str]) {
        until(&format!("{files:?}"), || files.iter().all(|file| self.has(file)).then_some(()));
    }

    /// Slurm's id of a job.
    #[track_caller]
    pub(crate) fn id(&self, case: &str, job: &str) -> String {
        let listed = self.cluster.ask(&["squeue", "--noheader", "--states=all", "--format=%i %j"]);
        let name = format!(".{case}.{job}");
        let line = listed.lines().find(|line| line.trim_end().ends_with(&name));
        let id = line.and_then(|line| line.split(' ').next());
        id.unwrap_or_else(|| panic!("no job of that name: {name}: {listed}")).to_owned()
    }

    /// The process that supervises a step on a node.
    #[track_caller]
    pub(crate) fn daemon_of_step(&self, node: &str, step: &str) -> Pid {
        let name = format!("slurmstepd: [{step}]");
        until(&name, || {
            let listed = self.cluster.script("left", &[]);
            let line = listed.lines().find(|line| line.contains(&name))?;
            let mut words = line.split_whitespace();
            let pid = (words.next() == Some(node)).then(|| words.next())?;
            pid?.parse().ok().map(Pid::from_raw)
        })
    }

    /// What the workload of a job of the only run has written to stderr so far.
    pub(crate) fn stderr_of(&self, case: &str, job: &str) -> Option<String> {
        let run = fs::read_dir(self.project.path().join("shared")).ok()?.next()?.ok()?;
        fs::read_to_string(run.path().join(case).join(job).join("stderr")).ok()
    }

    /// Name, status and cause of every verdict on a case. Every assertion must have one.
    #[track_caller]
    pub(crate) fn verdicts(&self, case: &str) -> Vec<String> {
        let plan = self.project.json("plan.json");
        let cases = plan["cases"].as_array().expect("cases");
        let planned = cases.iter().find(|planned| planned["name"] == case).expect("the case was planned");
        let file = self.project.json(&format!("cases/{case}/verdict.json"));
        let judged = file["verdicts"].as_array().expect("verdicts");
        assert_eq!(judged.len(), planned["assertions"].as_array().expect("assertions").len(), "{case}");
        let word = |verdict: &Value, key: &str| verdict[key].as_str().unwrap_or_default().to_owned();
        let line = |verdict: &Value| {
            let name = word(verdict, "name").rsplit("::").next().unwrap_or_default().to_owned();
            format!("{name} {} {}", word(verdict, "status"), word(verdict, "cause")).trim_end().to_owned()
        };
        judged.iter().map(line).collect()
    }

    /// Takes down what the newest run has come to after a failure: its verdicts that are no pass, who is blamed, how many
    /// pass. Nothing may be left of it.
    #[track_caller]
    pub(crate) fn came_to(&self, failure: &'static str, ran: &Ran, [verdict, culprit, others]: [&str; 3]) {
        let seen = Row::seen(&self.project, ran, &self.cluster.what_is_left());
        table::note(failure, seen, &Row::new(verdict, culprit, others), ran);
    }

    /// The events of the newest run.
    pub(crate) fn events(&self, name: &str) -> Vec<Value> {
        let text = fs::read_to_string(self.project.latest().join("events.jsonl")).unwrap_or_default();
        // The last may be on its way.
        let events = text.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
        events.filter(|event| event["event"] == name).collect()
    }
}

pub(crate) const RUN: [&str; 4] = ["--suite", "live", "--inventory", "live"];

/// A harness that runs. It ends with the test, should that fail before.
pub(crate) struct Running(Option<Child>);

impl Running {
    pub(crate) fn id(&self) -> i32 {
        let child = self.0.as_ref().expect("a child");
        i32::try_from(child.id()).expect("a process id")
    }

    pub(crate) fn is_over(&mut self) -> bool {
        self.0.as_mut().expect("a child").try_wait().expect("a child").is_some()
    }

    /// By force, as a machine that is switched off does.
    pub(crate) fn kill(&mut self) {
        if let Some(mut child) = self.0.take() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.kill();
    }
}

/// What a run that was started has come to.
pub(crate) fn ended(mut run: Running) -> Ran {
    let child = run.0.take().expect("a child");
    ran(child.wait_with_output().expect("the harness ends"))
}

/// Asks until it is there; a minute at most.
#[track_caller]
pub(crate) fn until<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let from = Instant::now();
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(from.elapsed() < Duration::from_secs(60), "it does not come: {what}");
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// A case of commands, which asserts that each ends with 0.
pub(crate) fn case(name: &str, placement: &str, program: &str, more: &str) -> String {
    format!(
        "[[case]]\nname = \"{name}\"\nplacement = {placement}\nqueue_limit_s = 20\n\
         workload = {{ kind = \"command\", program = \"BENCH/bin/{program}\" }}\nrecipes = [\"command\"]\n{more}\n\
         [[case.assert]]\nmetric = \"command.exit_code\"\nequals = 0\n"
    )
}
