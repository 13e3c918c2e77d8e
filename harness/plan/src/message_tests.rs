//! Why settings of a command line are refused, no plan is made, or a case of it is skipped: every message.

use super::{Placed, Request, apply_settings, flow_path, plan, settle_flows};
use config::baseline::Baselines;
use config::inventory::{Instances, Inventory};
use config::suite::{Placement, Suite};
use job::script::FlowMemory;
use model::artefact::{Plan, Probe, ProbedNode, Value, WorkloadFacts};
use recipes::catalogue::Catalogue;
use std::collections::BTreeMap;
use std::path::Path;

#[test]
fn messages_of_settings() {
    let set = |key: &str, value: &str| {
        let text = "instance = \"p5\"\nabout = \"a test\"\n[[case]]\nname = \"one\"\nrecipes = [\"nic_flows\"]\nlimit_s = 60\n\
                    placement = \"pairs\"\nworkload = { kind = \"nic-pairs\" }\n\
                    assert = [{ metric = \"nic.rate\", per = \"nic\", at_least = \"11 GB/s\" }]\n";
        let suite = Suite::read(text, "suites/x.toml", &Catalogue::built_in())
            .map_err(|why| why.to_string())
            .expect("good");
        let settings = BTreeMap::from([(key.to_owned(), value.to_owned())]);
        apply_settings(&mut [suite], &settings).err().unwrap_or_default().join("; ")
    };
    let lines = [
        set("limit_z", "1"),
        set("quux", "1"),
        set("two.limit_s", "1"),
        set("iterations", "1"),
        set("limit_s", "0"),
        set("interval_s", "0.1"),
    ];
    insta::assert_snapshot!(lines.join("\n"));
}

/// Of the nodes `n1` to `n4`, which are reached so; with these lines beside.
pub(crate) fn inventory(kind: &str, reach: &str, more: &str) -> Inventory {
    let home = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).expect("a root");
    let instances = Instances::load(home).expect("sound instances");
    let instance = if kind == "real" { "p5" } else { "sim-p5" };
    let text = format!(
        "kind = \"{kind}\"\ninstance = \"{instance}\"\nnodes = \"n[1-4]\"\npaths = {{ shared = \"/fsx\" }}\n\
         reach = {{ {reach} }}\n{more}\n"
    );
    Inventory::read(&text, "inventory/x.toml", &instances).map_err(|why| why.to_string()).expect("good")
}

/// A suite of one case.
fn suite(name: &str, case: &str) -> Suite {
    let text = format!("instance = \"p5\"\nabout = \"a test\"\n[[case]]\nname = \"one\"\n{case}\n");
    Suite::read(&text, &format!("suites/{name}.toml"), &Catalogue::built_in())
        .map_err(|why| why.to_string())
        .expect("good")
}

pub(crate) fn request(nodes: usize) -> Request {
    Request {
        run_id: "run".to_owned(),
        seed: 1,
        nodes: (1..=nodes).map(|node| format!("n{node}")).collect(),
        settings: BTreeMap::new(),
        sim_faults: Vec::new(),
        limit_s: None,
        max_fail: None,
        reservation: None,
        sources: Vec::new(),
        catalogue: Catalogue::built_in(),
        sets: BTreeMap::new(),
        evidence: None,
        programs: BTreeMap::new(),
    }
}

fn render(what: &str, planned: Result<Plan, Vec<String>>) -> String {
    let messages = match planned {
        Err(diagnostics) => diagnostics.join("\n  "),
        Ok(plan) => {
            let skipped = |why: &String| format!("skipped: {why}");
            plan.cases.iter().filter_map(|case| case.skip.as_ref()).map(skipped).collect()
        }
    };
    format!("{what}:\n  {messages}")
}

const SLURM: &str = "via = \"slurm\"";
const SSH: &str = "via = \"ssh\"";
const PROCESSES: &str = "via = \"ssh\", start = \"processes\"";
const LOCAL: &str = "via = \"local\"";

const ALL_REDUCE: &str = r#"recipes = ["nccl_tests"]
workload = { kind = "nccl-tests", op = "all_reduce", from = "1GiB", to = "1GiB" }"#;
const PAIRS: &str = r#"recipes = ["nic_flows"]
workload = { kind = "nic-pairs" }"#;
const COMMAND: &str = r#"recipes = []
workload = { kind = "command", program = "hostname", tasks_per_node = 2 }"#;
const MOUNTS: &str = r#"container = { image = "/fsx/x.sqsh", mounts = ["/home:/home"] }"#;
const NSYS: &str = r#"nsys_version = "2025.3.1""#;

fn placed(placement: &str, case: &str) -> String {
    format!("placement = \"{placement}\"\n{case}")
}

/// A training of Megatron with these keys.
fn megatron(keys: &str) -> String {
    let workload = format!(r#"workload = {{ kind = "nemo", form = "megatron", steps = 10, {keys} }}"#);
    placed("all", &format!("recipes = []\n{workload}"))
}

#[test]
fn messages_of_clusters_that_do_not_fit() {
    let all = |case: &str| placed("all", case);
    let lines = [
        ("a simulated login host", "simulated", "via = \"slurm\", login = \"head\"", "", 2, all(ALL_REDUCE)),
        ("a simulated machine", "simulated", LOCAL, "", 1, all(ALL_REDUCE)),
        ("no nodes", "real", SLURM, "", 0, placed("each", ALL_REDUCE)),
        ("local, 2 nodes", "real", LOCAL, "", 2, all(ALL_REDUCE)),
        ("a container on this machine", "real", LOCAL, MOUNTS, 1, all(ALL_REDUCE)),
        ("tasks on this machine", "real", LOCAL, "", 1, all(COMMAND)),
        ("a container over ssh", "real", SSH, MOUNTS, 2, all(ALL_REDUCE)),
        ("no mount of the job's folder", "real", SLURM, MOUNTS, 2, placed("each gpu", ALL_REDUCE)),
        ("processes on 2 nodes", "real", PROCESSES, "", 2, all(ALL_REDUCE)),
        ("tasks over ssh", "real", SSH, "", 2, all(COMMAND)),
        ("rank 99 of 4", "real", SLURM, NSYS, 2, all(&format!("{COMMAND}\nprofile = {{ ranks = [0, 99] }}"))),
        ("no nsys", "real", SLURM, "", 2, all(&format!("{ALL_REDUCE}\nprofile = {{}}"))),
        (
            "too few nodes",
            "real",
            SLURM,
            "",
            2,
            all(&format!("{ALL_REDUCE}\nrequires = {{ min_nodes = 8 }}")),
        ),
        (
            "too many nodes",
            "real",
            SLURM,
            "",
            2,
            all(&format!("{ALL_REDUCE}\nrequires = {{ max_nodes = 1 }}")),
        ),
        ("24 ranks", "real", SLURM, "", 3, {
            all(&format!("{ALL_REDUCE}\nrequires = {{ ranks_power_of_two = true }}"))
        }),
        ("4 of 2 nodes", "real", SLURM, "", 2, format!("placement = 4\n{ALL_REDUCE}")),
        ("a pair of 1 node", "real", SLURM, "", 1, PAIRS.to_owned()),
        ("simulated faults", "real", SLURM, "", 2, all(&format!("{ALL_REDUCE}\nsim_faults = [\"n1:hang\"]"))),
    ];
    let lines = lines.map(|(what, kind, reach, more, nodes, case)| {
        render(what, plan(&[suite("x", &case)], &inventory(kind, reach, more), None, request(nodes)))
    });
    insta::assert_snapshot!(lines.join("\n"));
}

#[test]
fn messages_of_cases_that_cannot_be_planned() {
    let log =
        |workload: &str| placed("all", &format!("recipes = [\"nccl_log\"]\nworkload = {{ {workload} }}"));
    let with = |environment: &str| {
        let sweep = r#"kind = "nccl-tests", op = "all_reduce", from = "1GiB", to = "1GiB""#;
        log(&format!("{sweep}, environment = {{ {environment} }}"))
    };
    let training = |workload: &str| placed("all", &format!("recipes = []\nworkload = {{ {workload} }}"));
    let twice = "assert = [{ metric = \"nccl.busbw\", at_least = \"1 GB/s\" }, \
                 { metric = \"nccl.busbw\", place = \"in\", at_least = \"1 GB/s\" }]";
    let lines = [
        (
            "NCCL's log of flows",
            SLURM,
            "recipes = [\"nccl_log\"]\nworkload = { kind = \"nic-pairs\" }".to_owned(),
        ),
        ("NCCL's log in a file", SLURM, with("NCCL_DEBUG_FILE = \"/fsx/log\"")),
        ("NCCL's warnings alone", SLURM, with("NCCL_DEBUG = \"WARN\"")),
        ("more processes than GPUs", SLURM, {
            training("kind = \"torchrun\", script = \"/fsx/train.py\", processes_per_node = 16")
        }),
        ("MPI without mpirun", PROCESSES, training("kind = \"mpi\", program = \"/fsx/train\"")),
        ("an image over ssh", SSH, {
            training("kind = \"torchrun\", script = \"/fsx/train.py\", container = \"/fsx/x.sqsh\"")
        }),
        ("ranks that do not divide", SLURM, megatron("global_batch = 16, tensor_parallel = 3")),
        ("a product that is not the ranks", SLURM, {
            megatron("global_batch = 16, tensor_parallel = 2, data_parallel = 4")
        }),
        ("a batch that does not divide", SLURM, megatron("global_batch = 12, tensor_parallel = 2")),
        ("one name twice", SLURM, placed("all", &format!("{ALL_REDUCE}\n{twice}"))),
    ];
    let mut lines = lines
        .map(|(what, reach, case)| {
            render(what, plan(&[suite("x", &case)], &inventory("real", reach, ""), None, request(2)))
        })
        .to_vec();
    let slurm = || inventory("real", SLURM, "");
    let all_reduce = || suite("x", &placed("all", ALL_REDUCE));
    let faults = Request { sim_faults: vec!["n1:hang".to_owned()], ..request(2) };
    lines.push(render("faults of the run", plan(&[all_reduce()], &slurm(), None, faults)));
    let baselines = Baselines::none("p5", true, "baselines/p5.toml");
    lines.push(render("simulated baselines", plan(&[all_reduce()], &slurm(), Some(&baselines), request(2))));
    let two = [all_reduce(), suite("y", &placed("all", ALL_REDUCE))];
    lines.push(render("one case in two suites", plan(&two, &slurm(), None, request(2))));

    // What the readers of suites and inventories refuse by themselves.
    for (what, name, value) in [("a bad name", "1X", "y"), ("a bad value", "X", "a\0b")] {
        let mut inventory = slurm();
        inventory.environment.insert(name.to_owned(), value.to_owned());
        lines.push(render(what, plan(&[all_reduce()], &inventory, None, request(2))));
    }
    let mut flows = suite("x", PAIRS);
    let alone = Placed { name: "n1".to_owned(), nodes: vec!["n1".to_owned()], round: 1 };
    let sets = Request { sets: [("one".to_owned(), vec![alone])].into(), ..request(2) };
    lines.push(render("a flow on one node", plan(std::slice::from_ref(&flows), &slurm(), None, sets)));
    flows.cases[0].placement = Placement::All;
    lines.push(render("flows on all nodes", plan(&[flows], &slurm(), None, request(2))));
    let mut unknown = suite("x", &placed("all", &format!("{ALL_REDUCE}\n{twice}")));
    unknown.cases[0].assertions[0].metric = "nccl.speed".to_owned();
    lines.push(render("an unknown metric", plan(&[unknown], &slurm(), None, request(2))));
    insta::assert_snapshot!(lines.join("\n"));
}

#[test]
fn messages_of_flow_paths() {
    let inventory = inventory("real", SLURM, "");
    let planned = FlowMemory::ALL.map(|memory| {
        format!("{}: {}", memory.name(), flow_path::planned(&inventory.instance, "fi_rma_bw", memory))
    });
    let mut lines = planned.to_vec();
    for tools in [["fi_rma_bw:cuda", "fi_rma_bw:cuda"], ["fi_rma_bw:cuda", "fi_rma_bw"]] {
        let mut made = plan(&[suite("x", PAIRS)], &inventory, None, request(2)).expect("a plan");
        let probed = |(node, tool): (&String, &str)| {
            let facts = BTreeMap::from([("flow_tools".to_owned(), Value::Names(vec![tool.to_owned()]))]);
            ProbedNode { node: node.clone(), facts, ..ProbedNode::default() }
        };
        let probe = Probe {
            format: model::artefact::Format,
            harness: String::new(),
            simulated: false,
            inventory: String::new(),
            instance: String::new(),
            at: String::new(),
            nodes: made.nodes.iter().zip(tools).map(probed).collect(),
        };
        settle_flows(&mut made, &probe);
        match &made.cases[0].workload {
            WorkloadFacts::NicPairs { path: Some(path), .. } => lines.push(format!("{tools:?}: {path}")),
            other => panic!("{other:?}"),
        }
    }
    insta::assert_snapshot!(lines.join("\n"));
}

#[test]
fn each_kind_that_runs_a_program_runs_it_in_the_container_of_the_inventory() {
    let training = "recipes = []\nworkload = { kind = \"torchrun\", script = \"/x.py\" }";
    for case in [ALL_REDUCE, COMMAND, training] {
        let suites = [suite("x", &placed("all", case))];
        let made = plan(&suites, &inventory("real", SLURM, MOUNTS), None, request(2)).expect("a plan");
        let files = &made.cases[0].jobs[0].files;
        let script = files.iter().find_map(|file| file.text.as_deref()).unwrap_or_default();
        assert!(script.contains("--container-image=/fsx/x.sqsh"), "{case}\n{script}");
    }
}

#[test]
fn fio_of_the_shared_file_system_works_in_the_folder_of_the_run() {
    let case = "recipes = [\"fio\"]\nplacement = \"each\"\n\
                workload = { kind = \"fio\", directory = \"shared\", access = \"read\" }\n\
                assert = [{ metric = \"fio.errors\", per = \"node\", equals = 0 }]";
    let suites = [suite("x", case)];
    let mut inventory = inventory("real", SLURM, "");
    let made = plan(&suites, &inventory, None, request(2)).expect("a plan");
    let files = made.cases.iter().flat_map(|case| &case.jobs).flat_map(|job| &job.files);
    let scripts: Vec<&str> = files.filter_map(|file| file.text.as_deref()).collect();
    assert!(scripts.concat().contains("--directory=/fsx/run"), "{scripts:#?}");
    inventory.paths.shared = "/fs:x".to_owned();
    let refused = plan(&suites, &inventory, None, request(2)).expect_err("a colon").join("; ");
    assert!(refused.contains("change `paths.shared`: `/fs:x/run`"), "{refused}");
}
