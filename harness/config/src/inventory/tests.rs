//! Reading of inventories and profiles, and the errors of wrong ones.

use super::*;
use crate::schema_tests::agreement;
use job::script::GpuRequest;
use model::artefact::Launcher;

const P5: &str = r#"
gpus = 8
gpu = "H100"
nvlink_gb_s = 450
nics = "rdmap[79-82,96-99]s0"
nic_line_rate = "100 Gb/s"
transport = "rdma"
tx_counters = ["rdma_write_bytes"]
rx_counters = ["rdma_write_recv_bytes"]
flow_op = "write"
conservation_shown = false
source = "a test"
"#;

fn instances() -> Instances {
    let file = |name: &str, text: &str| (format!("inventory/instances/{name}.toml"), text.to_owned());
    let files =
        [file("a-p5", "like = \"p5\"\ngpu = \"H200\""), file("p5", P5), file("sim-p5", "like = \"p5\"")];
    let (instances, diagnostics) = Instances::read(&files);
    assert_eq!(diagnostics, []);
    instances
}

fn read(text: &str) -> Result<Inventory, String> {
    let read = Inventory::read(text, "inventory/x.toml", &instances());
    agreement("inventory", text, &read);
    read.map_err(|diagnostics| diagnostics.to_string())
}

#[test]
fn an_instance_whose_figures_differ_is_refused_with_the_reason_and_no_other_is_suggested() {
    for name in ["p6e-gb200", "p6e-gb200.36xlarge", "ml.p6e-gb200.36xlarge"] {
        let text = format!("kind = \"real\"\ninstance = \"{name}\"\nnodes = \"n1\"\n");
        let why = read(&text).expect_err("no profile");
        let line = format!("2:12: unknown instance: `{name}`; no profile of p6e-gb200 ships, because");
        assert!(why.contains(&line) && why.contains("write a table `[instance]`"), "{why}");
        assert!(!why.contains("did you mean `p"), "{why}");
    }
    let files = [("c.toml".to_owned(), "like = \"p6e-gb200\"".to_owned())];
    let (_, diagnostics) = Instances::read(&files);
    let why = diagnostics.iter().map(ToString::to_string).collect::<String>();
    assert!(why.starts_with("c.toml:1:8: unknown like: `p6e-gb200`; no profile of p6e-gb200 ships"), "{why}");
    assert_eq!(instance::why_without_profile("p6-b200"), None);
}

#[test]
fn a_profile_inherits_what_it_does_not_say() {
    let instances = instances();
    let like = instances.get("a-p5").expect("there");
    assert_eq!((like.gpu.as_str(), like.gpus, like.nics.len()), ("H200", 8, 8));
    assert!(like.fits("p5") && like.fits("a-p5") && !like.fits("sim-p5"));
    assert_eq!(like.node_wire_gb_s(), 100.0);
}

#[test]
fn profiles_like_nothing_or_like_each_other_are_errors() {
    let file = |name: &str, text: &str| (format!("{name}.toml"), text.to_owned());
    let files = [
        file("a", "like = \"b\""),
        file("b", "like = \"a\""),
        file("c", "like = \"p55\""),
        file("p5", P5),
        file("d", "gpu = 8\n"),
    ];
    let (_, diagnostics) = Instances::read(&files);
    let errors: Vec<String> = diagnostics.iter().map(ToString::to_string).collect();
    assert!(errors.contains(&"a.toml:1:8: unknown like: `b`; known: `p5`".to_owned()), "{errors:?}");
    assert!(errors.contains(&"c.toml:1:8: unknown like: `p55`; did you mean `p5`?".to_owned()), "{errors:?}");
    assert!(errors.contains(&"d.toml:1:1: missing key: `nics`".to_owned()), "{errors:?}");
}

#[test]
fn a_real_inventory_takes_ten_lines() {
    let text = r#"
kind = "real"
instance = "p5"
nodes = "p5-[001-032,040]"
[groups]
rack1 = "p5-[001-016]"
[reach]
via = "slurm"
partition = "gpu"
[paths]
shared = "/fsx/harness"
"#;
    let inventory = read(text).expect("good");
    assert_eq!(inventory.nodes.len(), 33);
    let ReachBy::Slurm(slurm) = &inventory.reach else { panic!("slurm") };
    assert_eq!(
        (slurm.partition.as_deref(), slurm.mpi.as_str(), slurm.exclusive),
        (Some("gpu"), "pmix", true)
    );
    assert_eq!(inventory.paths.counters, "/sys/class/infiniband");
    let select = |nodes, exclude| inventory.select(nodes, exclude).map(|nodes| base::nodeset::fold(&nodes));
    assert_eq!(select(None, Some("@rack1")).as_deref(), Ok("p5-[017-032,040]"));
    assert_eq!(select(Some("p5-040,@rack1"), Some("p5-[002-016]")).as_deref(), Ok("p5-[001,040]"));
    let error = select(Some("p5-041"), None).expect_err("unknown");
    assert!(!error.contains("did you mean") && error.contains("--inventory NAME"), "another node: {error}");
    let error = select(Some("@rakc1"), None).expect_err("unknown");
    assert!(error.contains("did you mean `@rack1`"), "{error}");
    assert!(select(Some("p5-001"), Some("p5-001")).is_err_and(|error| error.contains("no node")));
}

#[test]
fn jobs_share_allocations_only_where_the_inventory_says_so() {
    let text = |more: &str| {
        format!(
            "kind = \"real\"\ninstance = \"p5\"\nnodes = \"a\"\npaths = {{ shared = \"/tmp\" }}\n[reach]\nvia = \"slurm\"\n{more}"
        )
    };
    let share = |more: &str| match read(&text(more)).expect("good").reach {
        ReachBy::Slurm(slurm) => slurm.share,
        other => panic!("{other:?}"),
    };
    assert_eq!((share(""), share("share_allocations = false\n")), (None, None));
    assert_eq!(share("share_allocations = true\n"), Some(14_400));
    assert_eq!(share("share_allocations = true\nlongest_allocation_s = 7200\n"), Some(7200));
    for (more, part) in [
        ("longest_allocation_s = 7200\n", "add `share_allocations = true`"),
        ("share_allocations = true\nlongest_allocation_s = 10\n", "x.toml:8:24: "),
        ("share_allocations = 1\n", "x.toml:7:21: "),
    ] {
        let message = read(&text(more)).expect_err(more);
        assert!(message.contains(part), "{more}: {message}");
    }
}

#[test]
fn nodes_reached_by_ssh_say_how_ranks_start_and_how_long_they_live_unseen() {
    let text = |more: &str| {
        format!(
            "kind = \"real\"\ninstance = \"p5\"\nnodes = \"a\"\npaths = {{ shared = \"/tmp\" }}\n[reach]\nvia = \"ssh\"\n{more}"
        )
    };
    let reach = |more: &str| match read(&text(more)).expect("good").reach {
        ReachBy::Ssh(ssh) => ssh,
        other => panic!("{other:?}"),
    };
    let plain = reach("");
    assert_eq!((plain.start, plain.heartbeat_timeout_s, plain.user), (SshStart::Mpirun, 300, None));
    let full = reach("user = \"ubuntu\"\nport = 2222\nstart = \"processes\"\nheartbeat_timeout_s = 60\n");
    assert_eq!((full.start, full.heartbeat_timeout_s, full.port), (SshStart::Processes, 60, Some(2222)));
    for (more, part) in [
        ("start = \"mpirum\"\n", "x.toml:7:9: unknown start: `mpirum`; did you mean `mpirun`?"),
        ("heartbeat_timeout_s = 20\n", "x.toml:7:23: "),
        ("heartbeat_timeout_s = 541\n", "x.toml:7:23: "),
        ("partition = \"gpu\"\n", "x.toml:7:1: unknown key"),
    ] {
        let message = read(&text(more)).expect_err(more);
        assert!(message.contains(part), "{more}: {message}");
    }
}

#[test]
fn every_error_of_an_inventory_is_reported_in_one_go() {
    let text = r#"
kind = "real"
instance = "sim-p5"
nodes = "p5-[001-004"
nic_tol = "fi_rma_bw"
[groups]
rack1 = "p5-[1-x]"
[reach]
via = "slurm"
partition = "--gpu; rm"
user = "x"
[paths]
nccl_tests = "relative"
[container]
mounts = ["fsx"]
[environment]
"1X" = "y"
Y = 3
"#;
    insta::assert_snapshot!(read(text).expect_err("bad"));
}

#[test]
fn more_variables_than_any_job_has_are_one_error() {
    let variables: String = (0..1001).map(|at| format!("V{at} = \"x\"\n")).collect();
    let text = format!(
        "kind = \"real\"\ninstance = \"p5\"\nnodes = \"a\"\n[reach]\nvia = \"local\"\n[environment]\n{variables}"
    );
    let error = read(&text).expect_err("too many");
    let lines: Vec<&str> = error.lines().filter(|line| line.contains("variable")).collect();
    assert_eq!(lines, ["inventory/x.toml:7:1: 1001 environment variables, limit 1000"]);
}

#[test]
fn no_variable_renumbers_ranks() {
    let text = "kind = \"real\"\ninstance = \"p5\"\nnodes = \"a\"\n[reach]\nvia = \"local\"\n[environment]\n\
                SLURM_DISTRIBUTION = \"cyclic\"\n";
    let error = read(text).expect_err("refused");
    let line = "inventory/x.toml:7:1: `SLURM_DISTRIBUTION` would number ranks in another order; order nodes by `[topology]`";
    assert!(error.contains(line), "{error}");
}

#[test]
fn simulated_and_real_are_never_mixed() {
    let mixed = "kind = \"simulated\"\ninstance = \"p5\"\nnodes = \"a\"";
    let error = read(mixed).expect_err("mixed");
    assert_eq!(
        error,
        "inventory/x.toml:2:12: a simulated inventory needs a `sim-` instance: `p5`; did you mean `sim-p5`?"
    );
    let error = read("kind = \"real\"\ninstance = \"sim-p5\"\nnodes = \"a\"").expect_err("mixed");
    assert!(error.contains("a real inventory cannot have a `sim-` instance: `sim-p5`"), "{error}");
}

#[test]
fn an_inventory_may_hold_a_profile_of_its_own() {
    let text = "kind = \"real\"\nnodes = \"a\"\nreach = { via = \"local\" }\npaths = { shared = \"/tmp\" }\n\
        [instance]\nname = \"mine\"\nlike = \"p5\"\nnics = \"efa_[0-3]\"\n";
    let inventory = read(text).expect("good");
    assert_eq!((inventory.instance.name.as_str(), inventory.instance.nics.len()), ("mine", 4));
    assert_eq!(inventory.reach, ReachBy::Local);
}

#[test]
fn what_nodes_must_be_is_read_with_its_bounds() {
    use crate::facts::Bound;
    use model::artefact::Value;
    let text = |probe: &str| {
        format!(
            "kind = \"real\"\ninstance = \"p5\"\nnodes = \"a\"\npaths = {{ shared = \"/tmp\" }}\n\
             reach = {{ via = \"local\" }}\n[probe]\n{probe}\n"
        )
    };
    let asked = read(&text(
        "driver = { at_least = \"570.86\" }\nmemlock = { equals = \"unlimited\" }\nshared_free = { at_least = \"1TiB\" }\n\
         xid = { at_most = 0 }\nnccl_tests = { holds = [\"all_reduce_perf\"] }\nclock_offset_ms = { at_most = 50 }",
    ))
    .expect("good")
    .probe;
    let bounds: Vec<(&str, &Bound)> = asked.iter().map(|one| (one.fact.as_str(), &one.bound)).collect();
    assert_eq!(
        bounds,
        [
            ("driver", &Bound::AtLeast(Value::Text("570.86".into()))),
            ("memlock", &Bound::Equals(Value::Text("unlimited".into()))),
            ("shared_free", &Bound::AtLeast(Value::Number(1 << 40))),
            ("xid", &Bound::AtMost(Value::Number(0))),
            ("nccl_tests", &Bound::Holds(vec!["all_reduce_perf".into()])),
            ("clock_offset_ms", &Bound::AtMost(Value::Number(50))),
        ]
    );
    for (probe, part) in [
        ("drivr = { at_least = \"1\" }", "x.toml:7:1: unknown fact: `drivr`; did you mean `driver`?"),
        ("driver = { at_last = \"1\" }", "x.toml:7:12: unknown key: `at_last`; did you mean `at_least`?"),
        ("driver = { at_least = \"new\" }", "x.toml:7:23: not a version: `new`"),
        ("driver = { at_least = 570 }", "x.toml:7:23: "),
        ("gdrdrv = { at_least = \"loaded\" }", "x.toml:7:12: unknown key: `at_least`"),
        ("clock_offset_ms = { equals = 3 }", "x.toml:7:21: unknown key: `equals`"),
        ("gpus = {}", "x.toml:7:8: `gpus` has no bound"),
        ("gpus = 8", "x.toml:7:8: "),
        ("nics = { holds = \"x\" }", "x.toml:7:18: "),
    ] {
        let message = read(&text(probe)).expect_err(probe);
        assert!(message.contains(part), "{probe}: {message}");
    }
}

fn slurm(keys: &str) -> Result<SlurmReach, String> {
    let text = format!(
        "kind = \"real\"\ninstance = \"p5\"\nnodes = \"n1\"\npaths = {{ shared = \"/f\" }}\n[reach]\nvia = \"slurm\"\n{keys}\n"
    );
    match read(&text)?.reach {
        ReachBy::Slurm(slurm) => Ok(slurm),
        other => Err(format!("{other:?}")),
    }
}

#[test]
fn what_slurm_is_asked_for_is_read_and_what_the_harness_sets_itself_is_refused() {
    let all = "gpus = \"none\"\nqos = \"high\"\nmem = \"0\"\nmpi = \"pmi2\"\nsbatch = [\"--comment=a b\", \"--spread-job\"]\n\
               srun = [\"--network=no_vni\"]";
    let read = slurm(all).expect("read");
    assert_eq!(
        (read.gpus, read.qos.as_deref(), read.mem.as_deref()),
        (Some(GpuRequest::None), Some("high"), Some("0"))
    );
    assert_eq!((read.sbatch.len(), read.srun.len(), read.mpi.as_str()), (2, 1, "pmi2"));
    assert_eq!(slurm("gpus = \"auto\"").expect("read").gpu_request(), GpuRequest::Gres);
    for (keys, part) in [
        (
            "sbatch = [\"--gres=gpu:4\"]",
            "`--gres` is set by the harness: `--gres=gpu:4`; write `gpus = ` instead",
        ),
        // Slurm takes the beginning of a name for the whole.
        ("sbatch = [\"--job=mine\"]", "`--job-name` is set by the harness"),
        ("sbatch = [\"--array=1-2\"]", "`--array` is set by the harness"),
        ("srun = [\"--mpi=none\"]", "write `mpi = ` instead"),
        ("srun = [\"--overlap\"]", "`--overlap` is set by the harness"),
        ("srun = [\"--distribution=cyclic\"]", "`--distribution` would number ranks in another order"),
        // Of sbatch, every srun of the job obeys it.
        ("sbatch = [\"--dist=plane=2\"]", "order nodes by `[topology]`"),
        ("srun = [\"--relative=1\"]", "`--relative` would start steps on other nodes"),
        ("srun = [\"--auto-resume=1\"]", "write `retry_infrastructure = 1` in the suite"),
        ("srun = [\"-N\", \"2\"]", "write each option as one text"),
        ("srun = [\"bash\"]", "not an option in `srun`"),
        ("sbatch = [\"--comment=a\\nb\"]", "control characters"),
        ("sbatch = [\"--\"]", "not an option in `sbatch`"),
        ("gpus = \"all\"", "gpus-per-node"),
    ] {
        let why = slurm(keys).expect_err(keys);
        assert!(why.contains(part), "{keys}: {why}");
    }
}

#[test]
fn each_launcher_is_read_by_its_name() {
    for launcher in Launcher::ALL {
        let more = match launcher {
            Launcher::Kubernetes => ", image = \"r/i:1\", shared = \"fsx\"",
            _ => "",
        };
        let text = format!(
            "kind = \"real\"\ninstance = \"p5\"\nnodes = \"n1\"\npaths = {{ shared = \"/f\" }}\nreach = {{ via = \"{launcher}\"{more} }}\n"
        );
        assert_eq!(read(&text).expect("read").reach.launcher(), launcher);
    }
}

#[test]
fn pods_are_described_by_what_kubernetes_can_have_and_by_nothing_else() {
    let text = |more: &str| {
        format!(
            "kind = \"real\"\ninstance = \"p5\"\nnodes = \"a\"\npaths = {{ shared = \"/fsx\" }}\n[reach]\nvia = \"kubernetes\"\n{more}"
        )
    };
    let needed = "image = \"registry/nccl:1\"\nshared = \"fsx\"\n";
    let reach = |more: &str| match read(&text(&format!("{needed}{more}"))).expect("good").reach {
        ReachBy::Kubernetes(pods) => pods,
        other => panic!("{other:?}"),
    };
    let plain = reach("");
    assert_eq!((plain.namespace.as_str(), plain.efa, plain.hugepages), ("default", None, 5 << 30));
    assert!(!plain.gang && reach("queue = \"gpus\"\ngang = true\n").gang);
    let why = read(&text(&format!("{needed}gang = true\n"))).expect_err("no queue").to_string();
    assert!(why.contains("`gang` needs a queue of Kueue"), "{why}");
    let full = reach(
        "namespace = \"bench\"\nqueue = \"gpus\"\nefa = 0\nhugepages = false\nnode_selector = { \"a/b\" = \"c\" }\n\
         tolerations = [{ key = \"nvidia.com/gpu\", effect = \"NoSchedule\" }]\n",
    );
    assert_eq!((full.queue.as_deref(), full.efa, full.hugepages), (Some("gpus"), Some(0), 0));
    assert_eq!(full.tolerations[0].effect, Some("NoSchedule"));
    assert_eq!((plain.cpu, plain.memory), (None, None));
    let limited = reach("cpu = 96\nmemory = \"1000GiB\"\n");
    assert_eq!((limited.cpu, limited.memory), (Some(96), Some(1000 << 30)));
    let own = reach("labels = { team = \"gpu\" }\nservice_account = \"bench\"\n");
    assert_eq!(own.labels.get("team").map(String::as_str), Some("gpu"));
    assert_eq!((own.service_account.as_deref(), plain.service_account.as_deref()), (Some("bench"), None));
    let image = reach("runtime_class = \"nvidia\"\npull_with = \"ngc\"\n");
    assert_eq!((image.runtime_class.as_deref(), image.pull_with.as_deref()), (Some("nvidia"), Some("ngc")));
    assert!(image.site_names().contains(&"ngc") && !image.site_names().contains(&"nvidia"));
    assert!(plain.runtime_class.is_none() && plain.pull_with.is_none());
    assert_eq!(plain.device_namespaces, [""; 0]);
    let plugins = reach("device_namespaces = [\"gpu-resources\", \"efa\"]\n");
    assert_eq!(plugins.device_namespaces, ["gpu-resources", "efa"]);
    assert!(plugins.site_names().contains(&"gpu-resources"));
    assert_eq!(plain.cluster, None);
    let named = reach("cluster = \"https://A.example:443/\"\n");
    assert_eq!(named.cluster.as_deref(), Some("https://a.example"));
    let unsupported = |image, tasks_per_node| {
        plain.unsupported(&JobNeeds {
            nodes: &[],
            container: false,
            runtime: None,
            image,
            mpi: true,
            tasks_per_node,
        })
    };
    assert_eq!(unsupported(None, 1), None);
    let own_image = unsupported(Some("a/b"), 1).expect("refused");
    assert_eq!(own_image, "its container `a/b` needs Slurm with Pyxis; pods run `image` of `[reach]`");
    assert!(unsupported(None, 2).is_some());
    for (more, part) in [
        ("namespace = \"Bench\"\n", "x.toml:9:13: `namespace` must be a name of Kubernetes: \"Bench\""),
        ("queue = \"a; rm\"\n", "x.toml:9:9: `queue` must be a name of Kubernetes"),
        ("node_selector = { \"a b\" = \"c\" }\n", "not a label of Kubernetes: \"a b\""),
        ("tolerations = [{ value = \"x\" }]\n", "missing key: `key`"),
        ("tolerations = [{ key = \"x\", effect = \"NoScedule\" }]\n", "did you mean `NoSchedule`?"),
        ("device_namespaces = [\"a\", \"B\"]\n", "`device_namespaces` must be a name of Kubernetes: \"B\""),
        ("device_namespaces = [\"a\", \"a\"]\n", "`device_namespaces` lists `a` twice"),
        ("device_namespaces = [\"default\"]\n", "lists `default`, in which runs make their pods"),
        ("device_namespaces = \"a\"\n", "`device_namespaces` needs a list, not a text"),
        ("hugepages = \"1MiB\"\n", "must be a multiple of 2 MiB"),
        ("cpu = 0\n", "`cpu` must lie between 1 and 4096, not: 0"),
        ("memory = \"512MiB\"\n", "`memory` must be 1GiB or more, in whole MiB: 536870912 bytes"),
        ("partition = \"gpu\"\n", "x.toml:9:1: unknown key"),
        ("labels = { \"harness/run\" = \"x\" }\n", "the label \"harness/run\" of pods is set by the harness"),
        ("service_account = \"A b\"\n", "`service_account` must be a name of Kubernetes: \"A b\""),
        (
            "cluster = \"prod\"\n",
            "x.toml:9:11: `cluster` must be the URL of an API server, without a password",
        ),
        ("cluster = \"https://u:p@a\"\n", "`kubectl config view --minify --output=jsonpath="),
    ] {
        let message = read(&text(&format!("{needed}{more}"))).expect_err(more);
        assert!(message.contains(part), "{more}: {message}");
    }
    let message = read(&text("")).expect_err("needs both");
    assert!(
        message.contains("write `shared = \"CLAIM\"`") && message.contains("missing key: `image`"),
        "{message}"
    );
}

#[test]
fn a_place_for_every_run_is_a_url_without_credentials() {
    let with = |to: &str| {
        read(&format!(
            "kind = \"real\"\ninstance = \"p5\"\nnodes = \"p5-001\"\nreach = {{ via = \"slurm\" }}\n\
             paths = {{ shared = \"/fsx/harness\" }}\npublish = {{ to = \"{to}\" }}\n"
        ))
    };
    for to in ["s3://bucket/team/runs", "az://container/runs", "file:///srv/runs"] {
        assert_eq!(with(to).map(|inventory| inventory.publish), Ok(Some(to.to_owned())));
    }
    for to in [
        "bucket/runs",
        "s3://bucket",
        "s3://bucket/",
        "ftp://b/p",
        "s3://key:hunter2@bucket/p",
        "file://x",
        "s3://b/p?x=hunter2",
    ] {
        let why = with(to).expect_err(to);
        assert!(why.contains("`to` is no place for runs") && !why.contains("hunter2"), "{to}: {why}");
    }
}
