//! The ways of reaching nodes, each with a copy of the project, and the same suite run over all of them. The programs
//! of the real ones are stand-ins of the model that the simulated ones have.

use crate::bed::{StandIns, executable};
use crate::kubernetes::bench::Bench;
use crate::project::{Project, Ran, copy, ran, root};
use crate::slurm_cluster::Cluster;
use crate::ssh::hosts::{self, Hosts, processes_with, wait_until};
use std::fs;
use std::path::Path;
use std::thread;

pub(super) struct Way {
    pub name: &'static str,
    pub project: Project,
    pub ran: Ran,
}

/// What is run: a suite by name, with its text where it does not ship.
pub(super) struct SuiteRequest<'a> {
    pub suite: &'a str,
    pub faults: &'a [&'a str],
    pub text: &'a str,
    /// So many seconds of each job are lived through at least, as far as it has so many.
    pub floor_s: f64,
}

/// Most of a job is not lived through.
pub(super) const SHORT_S: f64 = 0.8;

const SEED: &str = "7";
const NODES: &str = "n[1-4]";
/// As the stand-ins report it.
const NSYS: &str = "nsys_version = \"2025.3.1\"\n";

/// Simulated Slurm, simulated ssh, real Slurm, real ssh. The real ones run side by side.
pub(super) fn all(asked: &SuiteRequest<'_>) -> [Way; 4] {
    thread::scope(|scope| {
        let slurm = scope.spawn(|| by_slurm(asked));
        let ssh = scope.spawn(|| by_ssh(asked));
        let simulated = ["slurm", "ssh"].map(|via| pretended(asked, via));
        let [one, two] = simulated;
        let [three, four] =
            [slurm, ssh].map(|way| way.join().unwrap_or_else(|why| std::panic::resume_unwind(why)));
        [one, two, three, four]
    })
}

pub(super) fn simulated_ssh(asked: &SuiteRequest<'_>) -> Way {
    pretended(asked, "ssh")
}

/// Simulated ssh, real ssh where there is an sshd, and pods, which run side by side.
pub(super) fn beside_pods(asked: &SuiteRequest<'_>) -> Vec<Way> {
    thread::scope(|scope| {
        let real = hosts::absent().is_none().then(|| scope.spawn(|| by_ssh(asked)));
        let pods = scope.spawn(|| by_pods(asked));
        let simulated = simulated_ssh(asked);
        let real = real.into_iter().chain([pods]);
        let joined = real.map(|way| way.join().unwrap_or_else(|why| std::panic::resume_unwind(why)));
        [simulated].into_iter().chain(joined).collect()
    })
}

/// Pods of a real Kubernetes.
pub(super) fn by_pods(asked: &SuiteRequest<'_>) -> Way {
    let (bench, _programs) = pods(asked);
    let ran = bench.harness(&arguments(asked));
    bench.assert_nothing_is_left();
    Way { name: "pods", project: bench.into_project(), ran }
}

/// What pods run lies in the folder that they share.
pub(super) fn pods(asked: &SuiteRequest<'_>) -> (Bench, StandIns) {
    let bench = Bench::with_project(project(asked), NODES);
    let shared = bench.project.path().join("shared");
    for name in ["suites", "inventory", "baselines"] {
        copy(&root().join(name), &shared.join("home").join(name));
    }
    let programs = programs_below(&shared, asked);
    let reach = format!(
        "via = \"kubernetes\"\nimage = \"localhost/node:1\"\nnamespace = \"{}\"\nshared = \"shared\"\nhugepages = false\n",
        bench.namespace
    );
    bench.project.write("inventory/way.toml", &inventory(&bench.project, &programs, (&reach, ""), ""));
    (bench, programs)
}

fn pretended(asked: &SuiteRequest<'_>, via: &'static str) -> Way {
    let project = project(asked);
    let start = if via == "ssh" { "start = \"mpirun\"\n" } else { "" };
    let inventory = format!(
        "kind = \"simulated\"\ninstance = \"sim-p5\"\nnodes = \"{NODES}\"\n{NSYS}[reach]\nvia = \"{via}\"\n{start}"
    );
    project.write("inventory/way.toml", &inventory);
    let faults = asked.faults.iter().flat_map(|fault| ["--sim-fault", fault]);
    let args: Vec<&str> = arguments(asked).into_iter().chain(["--seed", SEED]).chain(faults).collect();
    let ran = project.harness(&args);
    Way { name: if via == "ssh" { "simulated ssh" } else { "simulated Slurm" }, project, ran }
}

pub(super) fn by_slurm(asked: &SuiteRequest<'_>) -> Way {
    let project = project(asked);
    let programs = programs(asked);
    let cluster = Cluster::start(4);
    let reach = "via = \"slurm\"\nmpi = \"pmi2\"\n";
    project
        .write("inventory/way.toml", &inventory(&project, &programs, (reach, &cluster.first_on_path()), ""));
    let mut command = project.command(&arguments(asked));
    command.envs(cluster.variables());
    let ran = ran(command.output().expect("the harness starts"));
    cluster.assert_nothing_is_left();
    Way { name: "real Slurm", project, ran }
}

pub(super) fn by_ssh(asked: &SuiteRequest<'_>) -> Way {
    let project = project(asked);
    let programs = programs(asked);
    let named = (1..=4).map(|nth| format!("Host n{nth}\n    HostName 127.0.11.{nth}\n"));
    let hosts = Hosts::start_with(4, &[], &named.collect::<String>());
    let config = hosts.path("ssh_config").display().to_string();
    let reach = format!("via = \"ssh\"\nstart = \"mpirun\"\nconfig = \"{config}\"\n");
    // As a user's own ssh_config would report mpirun how to reach the others.
    let agent = format!("OMPI_MCA_plm_rsh_agent = \"ssh -F {config}\"\n");
    project.write("inventory/way.toml", &inventory(&project, &programs, (&reach, ""), &agent));
    let ran = project.harness(&arguments(asked));
    let state = programs.state().display().to_string();
    wait_until(20, "nothing is left", || {
        processes_with(&config).is_empty() && processes_with(&state).is_empty()
    });
    Way { name: "real ssh", project, ran }
}

fn arguments<'a>(asked: &SuiteRequest<'a>) -> Vec<&'a str> {
    // What is lived through is short, and has to be met by a reading.
    vec!["--suite", asked.suite, "--inventory", "way", "--quiet", "--set", "interval_s=0.5"]
}

/// The baselines of the simulated instance stand for those of the real one, since its programs have the same model.
fn project(asked: &SuiteRequest<'_>) -> Project {
    let project = Project::new();
    let measured = fs::read_to_string(root().join("baselines/sim-p5.toml")).expect("baselines");
    let reported = "instance = \"sim-p5\"\nsimulated = true\n";
    assert!(measured.contains(reported), "the head of the baselines");
    // Whose clock is shared with other tests gives no rate to six parts in a hundred.
    let clocked = widened(&measured);
    project.write("baselines/sim-p5.toml", &clocked);
    project.write("baselines/p5.toml", &clocked.replace(reported, "instance = \"p5\"\n"));
    if !asked.text.is_empty() {
        project.write(&format!("suites/{}.toml", asked.suite), asked.text);
    }
    project
}

/// The one baseline that is compared with a rate by the machine's clock, with wider bounds.
fn widened(baselines: &str) -> String {
    let mut of_clock = false;
    let line = |line: &str| {
        if let Some(metric) = line.strip_prefix("metric = ") {
            of_clock = metric == "\"node.efa_tx\"";
        }
        match line.split_once(" = ") {
            Some(("lower", _)) if of_clock => "lower = 150.0\n".to_owned(),
            Some(("upper", _)) if of_clock => "upper = 700.0\n".to_owned(),
            _ => format!("{line}\n"),
        }
    };
    baselines.lines().map(line).collect()
}

/// The one case that asserts a rate of counters has some windows of a second.
fn settings(asked: &SuiteRequest<'_>) -> String {
    let faults: Vec<String> = asked.faults.iter().map(|fault| format!("{fault:?}")).collect();
    format!(
        "seed = {SEED}\nfaults = [{}]\nfloor_s = {:.1}\n[case_floor_s]\nall-all_gather = 4.0\n",
        faults.join(", "),
        asked.floor_s
    )
}

/// All that they are made of below one folder, which is all that their nodes have of this machine.
fn programs_below(folder: &Path, asked: &SuiteRequest<'_>) -> StandIns {
    let own = folder.join("standin");
    if fs::hard_link(executable(), &own).is_err() {
        fs::copy(executable(), &own).expect("copied");
    }
    let state = tempfile::Builder::new().prefix("state-").tempdir_in(folder).expect("a folder");
    StandIns::in_folder(state, &own, &folder.join("home"), "sim-p5", NODES, &settings(asked))
}

fn programs(asked: &SuiteRequest<'_>) -> StandIns {
    StandIns::new(NODES, &settings(asked))
}

fn inventory(
    project: &Project,
    programs: &StandIns,
    (reach, slurm): (&str, &str),
    environment: &str,
) -> String {
    let (shared, state) = (project.path().join("shared"), programs.state());
    let (shared, state) = (shared.display(), state.display());
    format!(
        "kind = \"real\"\ninstance = \"p5\"\nnodes = \"{NODES}\"\n{NSYS}[reach]\n{reach}[paths]\nshared = \"{shared}\"\n\
         nccl_tests = \"{state}/bin\"\nnsys = \"{state}/bin/nsys\"\ntorchrun = \"{state}/bin/torchrun\"\ncounters = \"{state}/hosts/{{host}}\"\n\
         [environment]\nPATH = \"{state}/bin:{slurm}/usr/local/bin:/usr/bin:/bin\"\n{environment}"
    )
}

impl Way {
    /// Everything that is left says that nothing real made it.
    #[track_caller]
    pub(super) fn assert_marked(&self) {
        let name = self.name;
        let text = |path: &std::path::Path| fs::read_to_string(path).unwrap_or_default();
        assert!(self.ran.stdout.contains("SIMULATED"), "{name}: {}", self.ran.stdout);
        assert_eq!(self.project.json("summary.json")["simulated"], true, "{name}");
        let run = self.project.latest();
        assert!(text(&run.join("junit.xml")).contains("SIMULATED"), "{name}");
        let of_plan = self.project.json("plan.json")["simulated"] == true;
        for case in fs::read_dir(run.join("cases")).expect("cases").flatten() {
            let case = case.file_name().to_string_lossy().into_owned();
            let says = |file: &str| {
                let line = &self.project.json(&format!("cases/{case}/{file}"))["simulated"];
                *line == true || line.as_array().is_some_and(|files| !files.is_empty())
            };
            assert!(of_plan || says("verdict.json") && says("collected.json"), "{name}: {case}");
        }
    }
}
