//! Every kind of case of `nccl-p5` over a real Slurm that knows of no GPUs and a real Open MPI: a healthy cluster passes,
//! wrong data is found, and no node is blamed where `sbatch` refuses or MPI does not start.

use crate::bed::StandIns;
use crate::fact::Fact;
use crate::mpi;
use crate::project::{Project, Ran, ran};
use crate::slurm_cluster::{self, Cluster};
use std::collections::BTreeMap;
use std::path::Path;

/// Twenty-seven cases, some minutes.
pub(super) const NIGHTLY: &[Fact] =
    &[("every_kind_of_case_of_nccl_p5_passes_without_gres_over_open_mpi", healthy)];

pub(super) const FACTS: &[Fact] = &[
    ("wrong_data_of_one_node_fails_and_the_node_is_named", wrong_data),
    ("an_mpi_that_does_not_start_blames_no_node", mpi_does_not_start),
];

/// What needs no MPI.
pub(super) const WITHOUT_MPI: &[Fact] = &[
    ("a_request_for_gpus_that_sbatch_refuses_blames_no_node", sbatch_refuses_gpus),
    ("an_inventory_that_leaves_gpus_open_asks_a_slurm_without_gres_for_none", settled_by_slurm),
];

/// Why programs that MPI wires cannot run behind this Slurm.
pub(super) fn absent() -> Option<&'static str> {
    if slurm_cluster::has_own_root() {
        return Some("Slurm's PMIx plugin has its library's path compiled in, which is not the tree's");
    }
    let folders =
        ["/usr/lib/x86_64-linux-gnu/slurm-wlm", "/usr/lib/aarch64-linux-gnu/slurm-wlm", "/usr/lib64/slurm"];
    let has_pmix = folders.iter().any(|folder| Path::new(folder).join("mpi_pmix.so").is_file());
    mpi::absent().or((!has_pmix).then_some("Slurm has no PMIx plugin here"))
}

/// Nodes of few GPUs, since each rank is a process here, and few NICs.
const INSTANCE: &str = "like = \"p5\"\ngpus = 2\nnics = \"rdmap[79-82]s0\"\nsource = \"for tests\"\n";
const SIMULATED: &str = "like = \"small\"\nsource = \"for tests\"\n";

const SUITE: &str = include_str!("../mpi/suite.toml");

/// One machine is all nodes: they find each other on loopback.
const OPEN_MPI: &str = "OMPI_MCA_pml = \"^cm,ucx\"\nOMPI_MCA_btl = \"tcp,self\"\nOMPI_MCA_btl_tcp_if_include = \"lo\"\n\
    OMPI_MCA_mpi_yield_when_idle = \"1\"\n";

struct World {
    project: Project,
    programs: StandIns,
    cluster: Cluster,
}

/// Two nodes without GRES. `reach` is how they are reached, `environment` more variables of jobs.
fn world(reach: &str, environment: &str) -> World {
    let project = Project::new();
    project.write("inventory/instances/small.toml", INSTANCE);
    project.write("inventory/instances/sim-small.toml", SIMULATED);
    project.write("suites/mpi.toml", SUITE);
    let programs = StandIns::set_up(project.path(), "sim-small", "n[1-2]", "seed = 7\nfloor_s = 0.2\n");
    let cluster = Cluster::start_with(2, &["no-gres"]);
    let (folder, state) = (project.path().display(), programs.state().display());
    let slurm = cluster.first_on_path();
    project.write(
        "inventory/mpi.toml",
        &format!(
            "kind = \"real\"\ninstance = \"small\"\nnodes = \"n[1-2]\"\nnsys_version = \"2025.3.1\"\n\
             [reach]\nvia = \"slurm\"\n{reach}\n\
             [paths]\nshared = \"{folder}/shared\"\nnccl_tests = \"{folder}/mpi\"\n\
             nsys = \"{state}/bin/nsys\"\ncounters = \"{state}/hosts/{{host}}\"\n\
             [environment]\nPATH = \"{state}/bin:{slurm}/usr/local/bin:/usr/bin:/bin\"\n\
             {OPEN_MPI}HARNESS_TEST_COUNTERS = \"{state}/hosts/{{host}}\"\n{environment}"
        ),
    );
    World { project, programs, cluster }
}

impl World {
    fn with_mpi(reach: &str, environment: &str) -> World {
        let world = world(reach, environment);
        mpi::build(&world.project.path().join("mpi"), &world.programs);
        world
    }

    fn run(&self, more: &[&str]) -> Ran {
        let args = [&["--suite", "mpi", "--inventory", "mpi"], more].concat();
        ran(self.project.command(&args).envs(self.cluster.variables()).output().expect("the harness starts"))
    }

    /// By case, the verdicts that are no pass, and how many are.
    fn verdicts(&self) -> BTreeMap<String, (Vec<String>, usize)> {
        let plan = self.project.json("plan.json");
        let cases = plan["cases"].as_array().expect("cases").iter();
        cases
            .map(|case| {
                let name = case["name"].as_str().expect("a name").to_owned();
                let file = self.project.json(&format!("cases/{name}/verdict.json"));
                let verdicts = file["verdicts"].as_array().expect("verdicts").clone();
                assert_eq!(
                    verdicts.len(),
                    case["assertions"].as_array().expect("assertions").len(),
                    "{name}"
                );
                let (passed, others): (Vec<_>, Vec<_>) =
                    verdicts.iter().partition(|verdict| verdict["status"] == "pass");
                (name, (others.iter().map(|other| other.to_string()).collect(), passed.len()))
            })
            .collect()
    }
}

/// How GPUs are asked for is left to what Slurm reports.
const WIRED: &str = "mpi = \"pmix\"";

fn healthy() {
    let world = World::with_mpi(WIRED, "");
    let ran = world.run(&[]);
    let verdicts = world.verdicts();
    for (case, (others, passed)) in &verdicts {
        assert!(others.is_empty() && *passed > 0, "{case}: {others:#?}\n{}", ran.all());
    }
    assert_eq!(ran.code, Some(0), "{}", ran.all());
    assert!(ran.blamed().is_empty(), "{}", ran.all());
    // Each GPU, ten operations on each node and on pairs, four on all, NICs, and kernels.
    assert_eq!(verdicts.len(), 27, "{:?}", verdicts.keys());
    // What stands in for NICs and profilers says so.
    assert!(ran.stdout.contains("SIMULATED"), "{}", ran.stdout);
    world.cluster.assert_nothing_is_left();
}

fn wrong_data() {
    let world = World::with_mpi(WIRED, "HARNESS_TEST_WRONG_ON = \"n2\"\n");
    let ran = world.run(&["node-all_reduce"]);
    assert_eq!(ran.code, Some(1), "{}", ran.all());
    let (others, _) = &world.verdicts()["node-all_reduce"];
    assert!(!others.is_empty() && others.iter().all(|other| other.contains("nccl.wrong")), "{others:#?}");
    let blamed = ran.blamed();
    assert!(!blamed.is_empty() && blamed.iter().all(|line| line.contains("n2") && !line.contains("n1")));
    world.cluster.assert_nothing_is_left();
}

/// Each rank aborts: nothing wires them, and Open MPI refuses to run so under srun.
fn mpi_does_not_start() {
    let world = World::with_mpi("mpi = \"none\"\ngpus = \"none\"", "");
    let ran = world.run(&["all_reduce"]);
    assert_eq!(ran.code, Some(3), "{}", ran.all());
    assert!(ran.blamed().is_empty(), "{}", ran.all());
    world.cluster.assert_nothing_is_left();
}

fn sbatch_refuses_gpus() {
    let world = world("mpi = \"none\"\ngpus = \"gres\"", "");
    let ran = world.run(&["--no-probe"]);
    assert_eq!(ran.code, Some(3), "{}", ran.all());
    assert!(ran.all().contains("Invalid generic resource"), "{}", ran.all());
    assert!(ran.blamed().is_empty(), "{}", ran.all());
    world.cluster.assert_nothing_is_left();
}

const PLAIN: &str = "instance = \"small\"\nabout = \"a command on each node\"\n[[case]]\nname = \"each\"\nplacement = \"each\"\n\
    recipes = [\"command\"]\nlimit_s = 60\nworkload = { kind = \"command\", program = \"hostname\" }\n\
    assert = [{ metric = \"command.exit_code\", equals = 0 }]\n";

fn settled_by_slurm() {
    let world = world("mpi = \"none\"", "");
    world.project.write("suites/plain.toml", PLAIN);
    for more in [&[][..], &["--no-probe"]] {
        let args = [&["--suite", "plain", "--inventory", "mpi"], more].concat();
        let mut command = world.project.command(&args);
        let ran = ran(command.envs(world.cluster.variables()).output().expect("the harness starts"));
        assert_eq!(ran.code, Some(0), "{more:?}: {}", ran.all());
        assert!(ran.stderr.contains("note: Slurm has no GRES for GPUs"), "{more:?}: {}", ran.all());
        let plan = world.project.json("plan.json").to_string();
        assert!(plan.contains("#SBATCH --nodelist=") && !plan.contains("--gres"), "{more:?}: {plan}");
    }
    world.cluster.assert_nothing_is_left();
}
