//! nccl-tests across pods over a real Open MPI, which calls `agent.sh` in place of ssh. Pods are stood in for: processes of
//! this machine, each with the name of its node for a host's name.

use crate::bed::StandIns;
use crate::fact::{Fact, trials};
use crate::mpi;
use crate::project::{Project, Ran, ran, root};
use crate::ssh::hosts::{processes_with, wait_until};
use libtest_mimic::Trial;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::PathBuf;
use std::process::{Command, Stdio};

const FACTS: &[Fact] = &[
    ("collectives_over_all_pods_and_over_pairs_pass_over_open_mpi", healthy),
    ("wrong_data_of_one_pod_fails_and_its_node_is_named", wrong_data),
];

pub(crate) fn tests() -> Vec<Trial> {
    trials("pods", FACTS, absent())
}

fn absent() -> Option<&'static str> {
    let named = Command::new("unshare").args(["--uts", "true"]).stderr(Stdio::null()).status();
    let can = named.is_ok_and(|status| status.success());
    mpi::absent().or((!can).then_some("hosts cannot have names of their own: `unshare --uts true` fails"))
}

/// Nodes of few GPUs, since each rank is a process here, and few NICs. No name of theirs may be known to this machine, or
/// mpirun would take it for its own.
const INSTANCE: &str = "like = \"p5\"\ngpus = 2\nnics = \"rdmap[79-82]s0\"\nsource = \"for tests\"\n";
const SIMULATED: &str = "like = \"small\"\nsource = \"for tests\"\n";

struct World {
    project: Project,
    programs: StandIns,
}

impl World {
    fn new(environment: &str) -> World {
        let project = Project::new();
        project.write("inventory/instances/small.toml", INSTANCE);
        project.write("inventory/instances/sim-small.toml", SIMULATED);
        project.write("suites/mpi.toml", include_str!("mpi/suite.toml"));
        let programs =
            StandIns::set_up(project.path(), "sim-small", "pod-[1-4]", "seed = 7\nfloor_s = 0.2\n");
        let (folder, state) = (project.path().display(), programs.state().display());
        let mpirun = std::env::var_os("PATH").and_then(|path| {
            std::env::split_paths(&path).map(|folder| folder.join("mpirun")).find(|path| path.is_file())
        });
        let mpirun = mpirun.expect("it was looked for");
        project.write(
            "inventory/mpi.toml",
            &format!(
                "kind = \"real\"\ninstance = \"small\"\nnodes = \"pod-[1-4]\"\n[reach]\nvia = \"kubernetes\"\nimage = \"r/i:1\"\n\
                 shared = \"fsx\"\n[paths]\nshared = \"{folder}/shared\"\nnccl_tests = \"{folder}/mpi\"\nmpirun = \"{}\"\n\
                 counters = \"{state}/hosts/{{host}}\"\n[environment]\nPATH = \"{state}/bin:/usr/local/bin:/usr/bin:/bin\"\n\
                 OMPI_MCA_pml = \"^cm,ucx\"\nOMPI_MCA_btl = \"tcp,self\"\nOMPI_MCA_btl_tcp_if_include = \"lo\"\n\
                 OMPI_MCA_mpi_yield_when_idle = \"1\"\nHARNESS_TEST_COUNTERS = \"{state}/hosts/{{host}}\"\n{environment}",
                mpirun.display()
            ),
        );
        mpi::build(&project.path().join("mpi"), &programs);
        for folder in ["bin", "kube/nodes"] {
            fs::create_dir_all(project.path().join(folder)).expect("made");
        }
        project.write("kube/hostnames", "");
        symlink(root().join("tests/stand_ins/kubectl"), project.path().join("bin/kubectl")).expect("linked");
        World { project, programs }
    }

    fn run(&self, case: &str) -> Ran {
        let mut path = self.project.path().join("bin").into_os_string();
        path.push(":");
        path.push(std::env::var_os("PATH").unwrap_or_default());
        let args = ["--suite", "mpi", "--inventory", "mpi", "--no-probe", "--", case];
        let mut command = self.project.command(&args);
        command.env("PATH", path).env("HARNESS_TEST_KUBE", self.project.path().join("kube"));
        ran(command.output().expect("the harness starts"))
    }

    fn assert_nothing_is_left(&self) {
        let texts = [self.project.path().join("shared"), self.programs.state().to_owned()];
        let left = || {
            let named = |text: &PathBuf| processes_with(&text.display().to_string());
            let mut found = texts.iter().flat_map(named).collect::<Vec<_>>();
            // Those that listen name no folder, and work in one.
            found.extend(processes_with("agent.sh listen").into_iter().filter(|(id, _)| {
                let within = fs::read_link(format!("/proc/{id}/cwd")).unwrap_or_default();
                texts.iter().any(|text| within.starts_with(text))
            }));
            found
        };
        wait_until(20, "nothing is left", || left().is_empty());
        let pods = fs::read_dir(self.project.path().join("kube/pods"));
        assert_eq!(pods.into_iter().flatten().count(), 0);
    }
}

fn healthy() {
    let world = World::new("");
    for case in ["all-alltoall", "pair-all_reduce"] {
        let ran = world.run(case);
        assert_eq!(ran.code, Some(0), "{case}: {}", ran.all());
        assert!(ran.stdout.contains("coverage: nodes 4/4"), "{case}: {}", ran.all());
        world.assert_nothing_is_left();
    }
}

fn wrong_data() {
    let world = World::new("HARNESS_TEST_WRONG_ON = \"pod-2\"\n");
    let ran = world.run("pair-all_reduce");
    assert_eq!(ran.code, Some(1), "{}", ran.all());
    let blamed = ran.blamed();
    assert!(blamed.iter().all(|line| line.contains("pod-2") || line.contains("pod-1")), "{}", ran.all());
    assert!(ran.all().contains("nccl.wrong"), "{}", ran.all());
    world.assert_nothing_is_left();
}
