//! The ways in which published scripts put nsys round a workload, said in a suite: the words that come out of it, and
//! what each of those scripts got wrong. The wrapper itself is run in `profile_script.rs`, which reports the rest:
//!
//! | what a script got wrong | reported by |
//! |---|---|
//! | a typographic dash before a switch | `a_switch_that_the_release_lacks_is_refused_before_anything_is_launched` |
//! | switches that the release does not have | the same |
//! | two spellings of the EFA sampler, by release; the sampler left out; one on every first rank of a shared node | `efa_is_sampled_by_exactly_one_rank_of_each_node_in_the_spelling_of_the_release`, `the_node_is_sampled_by_one_rank_alone_though_several_would_be_its_first` |
//! | a trace that drops the rows which are then looked for | `a_number_that_the_trace_cannot_feed_is_refused` |
//! | every rank under nsys, and none but rank 0 opens the range | `a_range_that_is_never_opened_is_refused`, `what_went_wrong_with_a_report_stands_in_the_account` |
//! | a local rank taken for a GPU's number | `the_gpus_counters_are_asked_for_all_gpus_and_once_a_node` |
//! | nsys ends the workload when its duration is over | `a_duration_never_ends_the_workload` |
//! | the oldest nsys found instead of the newest | `the_newest_nsys_of_the_vendor_s_folders_is_found_by_number` |
//! | a name made of variables that may be unset; reports that overwrite each other | `names_do_not_collide_and_need_no_variable_that_may_be_unset` |
//! | no rank known, so every process is rank 0 | `a_rank_without_a_number_runs_bare_and_is_not_taken_for_rank_0` |
//! | ranks counted per pod and not over the job | `torchrun_under_srun_numbers_ranks_by_torchrun` |
//! | a script that must be executable; arguments split at blanks; secrets traced to stderr | `arguments_are_not_split_and_nothing_of_the_command_line_is_traced_to_stderr` |
//! | no exit code of its own | `the_exit_code_is_the_commands_whatever_becomes_of_the_profiler` |
//! | unfinished collections left lying | `an_unfinished_collection_is_recovered_by_the_importer_beside_nsys` |

use config::inventory::{Instances, Inventory};
use config::suite::Suite;
use job::script::{Step, read};
use plan::{Request, plan};
use recipes::catalogue::Catalogue;
use std::collections::BTreeMap;

/// A suite of one case with that profile, for two p5 nodes with that nsys; `command` has one task per node.
fn planned(version: &str, workload: &str, profile: &str) -> Result<Vec<String>, String> {
    let suite = format!(
        "instance = \"p5\"\nabout = \"one way to profile\"\n[[case]]\nname = \"c\"\nplacement = 2\n\
         workload = {workload}\nrecipes = [\"cuda_gpu_kern_sum\"]\n[case.profile]\n{profile}\n\
         [[case.assert]]\nmetric = \"kernel.class_share\"\nclass = \"nccl\"\nat_least = \"50 %\"\n"
    );
    let suite = Suite::read(&suite, "suites/way.toml", &Catalogue::built_in())
        .map_err(|diagnostics| diagnostics.to_string())?;
    let inventory = format!(
        "kind = \"real\"\ninstance = \"p5\"\nnodes = \"p5-[1-2]\"\nnsys_version = \"{version}\"\n\
         [reach]\nvia = \"slurm\"\n[paths]\nshared = \"/fsx/harness\"\nnsys = \"/fsx/nsight-efa/target-linux-x64/nsys\"\n"
    );
    let instances =
        Instances::load(&crate::project::root()).map_err(|diagnostics| diagnostics.to_string())?;
    let inventory = Inventory::read(&inventory, "inventory/way.toml", &instances)
        .map_err(|diagnostics| diagnostics.to_string())?;
    let request = Request {
        run_id: "RUN".into(),
        seed: 1,
        nodes: inventory.nodes.clone(),
        settings: BTreeMap::new(),
        sim_faults: Vec::new(),
        limit_s: None,
        max_fail: None,
        reservation: None,
        catalogue: Catalogue::built_in(),
        sources: Vec::new(),
        sets: std::collections::BTreeMap::new(),
        evidence: None,
        programs: std::collections::BTreeMap::new(),
    };
    let plan = plan(&[suite], &inventory, None, request).map_err(|diagnostics| diagnostics.join("\n"))?;
    let text = plan.cases[0].jobs[0].files[0].text.clone().expect("a script");
    let line = text.lines().find(|line| line.contains("profile.sh")).expect("a wrapped run").to_owned();
    let script = read(&text).expect("the script is read back");
    assert!(
        matches!(&script.steps[..], [.., Step::Run(run), _] | [Step::Run(run)] | [_, Step::Run(run)] if run.profile.is_some())
    );
    Ok(line.split(' ').skip_while(|word| *word != "profile.sh").map(str::to_owned).collect())
}

const NCCL: &str =
    r#"{ kind = "nccl-tests", op = "scatter", from = "8", to = "2GiB", factor = 2, iterations = 100 }"#;
/// One launcher per node that starts the node's ranks itself.
const TORCHRUN: &str =
    r#"{ kind = "command", program = "torchrun", args = ["--nproc_per_node=8", "train.py"] }"#;
/// One process per GPU.
const PER_GPU: &str =
    r#"{ kind = "command", program = "python", args = ["megatron_gpt_pretraining.py"], tasks_per_node = 8 }"#;

/// The published ways: what they are called here, the nsys that they were written for, the workload, the profile.
const WAYS: &[(&str, &str, &str, &str)] = &[
    (
        "every task, from a delay on, EFA on the first of each node",
        "2024.4.1",
        NCCL,
        "ranks = \"all\"\ntrace = [\"cuda\", \"nvtx\", \"osrt\"]\ndelay_s = 30",
    ),
    (
        "every task, between two calls of the profiler's API, EFA in its older spelling",
        "2024.3",
        TORCHRUN,
        "ranks = \"all\"\ncapture = \"cudaProfilerApi\"",
    ),
    (
        "rank 0 alone, fifty seconds of a training run",
        "2024.4.1",
        PER_GPU,
        "ranks = \"rank0\"\ndelay_s = 330\nduration_s = 50",
    ),
    ("rank 0 alone, the whole of it", "2024.4.1", NCCL, "ranks = \"rank0\""),
    ("rank 0 alone, some steps", "2024.4.1", PER_GPU, "ranks = \"rank0\"\ncapture = \"cudaProfilerApi\""),
    (
        "a training launcher's own table: chosen ranks, graphs by node, the GPUs' counters",
        "2024.4.1",
        PER_GPU,
        "ranks = [0]\ntrace = [\"nvtx\", \"cuda\"]\ncapture = \"cudaProfilerApi\"\ngpu_metrics = true\n\
         extra = [\"--cuda-graph-trace=node\"]",
    ),
    (
        "fully sharded training: one launcher per node, every node collects",
        "2024.4.1",
        TORCHRUN,
        "ranks = \"one-per-node\"\ncapture = \"cudaProfilerApi\"",
    ),
    (
        "a wrapper with everything on: python, memory, chosen ranks",
        "2025.1.1",
        PER_GPU,
        "ranks = [0, 1]\ntrace = [\"cuda\", \"nvtx\", \"osrt\"]\ndelay_s = 30\nduration_s = 90\n\
         extra = [\"--stop-on-exit=true\", \"--pytorch=autograd-shapes-nvtx\", \"--python-sampling=true\", \
         \"--python-sampling-frequency=1000\", \"--cuda-memory-usage=true\"]",
    ),
    (
        "functions of python by name, as a note for beginners has it",
        "2024.4.1",
        PER_GPU,
        "ranks = \"every 8\"\npython_functions = \"/fsx/functions.json\"\nextra = [\"--cudabacktrace=true\"]",
    ),
    (
        "while a range of NVTX is open",
        "2024.4.1",
        PER_GPU,
        "ranks = \"rank0\"\ncapture = \"nvtx:step@train\"",
    ),
];

fn arguments(version: &str, workload: &str, profile: &str) -> Vec<String> {
    planned(version, workload, profile).unwrap_or_else(|why| panic!("{profile}: {why}"))
}

fn refused(version: &str, workload: &str, profile: &str) -> String {
    planned(version, workload, profile).expect_err(profile)
}

#[test]
fn every_published_way_of_profiling_can_be_said_and_gives_these_words() {
    let mut text = String::new();
    for (name, version, workload, profile) in WAYS {
        text.push_str(&format!(
            "# {name} (nsys {version})\n{}\n\n",
            arguments(version, workload, profile).join("\n  ")
        ));
    }
    insta::assert_snapshot!(text);
}

/// The switches for every rank, those for one rank of each node, and which ranks those are.
fn parts(words: &[String]) -> (Vec<&str>, Vec<&str>, &str) {
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let ends: Vec<usize> = (0..words.len()).filter(|at| words[*at] == "--").collect();
    (words[9..ends[0]].to_vec(), words[ends[0] + 1..ends[1]].to_vec(), words[5])
}

#[test]
fn efa_is_sampled_by_exactly_one_rank_of_each_node_in_the_spelling_of_the_release() {
    for (profile, node_ranks) in [
        ("ranks = \"all\"", "local:0"),
        ("ranks = \"one-per-node\"", "local:0"),
        ("ranks = \"rank0\"", "0"),
        ("ranks = [3, 5, 12]", "3,12"),
        ("ranks = \"every 3\"", "0,9"),
    ] {
        let new = arguments("2024.4.1", NCCL, profile);
        assert_eq!(parts(&new).1, ["--enable=efa_metrics"], "{profile}");
        assert_eq!(parts(&new).2, node_ranks, "{profile}");
        let old = arguments("2024.3.1", NCCL, profile);
        assert_eq!(
            parts(&old).1,
            ["--enable=nic_sampler,-mode:counters,-struct:true,-efa:true"],
            "{profile}"
        );
    }
    let why = refused("2024.1", NCCL, "ranks = \"all\"");
    assert!(why.contains("EFA sampling needs nsys 2024.2 or newer, the nodes have 2024.1"), "{why}");
    let none = arguments("2024.1", NCCL, "ranks = \"all\"\nefa = false");
    assert_eq!(parts(&none).2, "none");
}

#[test]
fn a_duration_never_ends_the_workload() {
    let words = arguments("2024.4.1", NCCL, "duration_s = 50");
    let (every, ..) = parts(&words);
    assert!(every.contains(&"--duration=50") && every.contains(&"--kill=none"), "{every:?}");
}

#[test]
fn the_gpus_counters_are_asked_for_all_gpus_and_once_a_node() {
    for (version, switch) in
        [("2024.4.1", "--gpu-metrics-devices=all"), ("2024.2", "--gpu-metrics-device=all")]
    {
        let words = arguments(version, NCCL, "ranks = \"all\"\ngpu_metrics = true");
        let (every, once, _) = parts(&words);
        assert!(
            once.contains(&switch) && !every.iter().any(|word| word.contains("gpu-metrics")),
            "{words:?}"
        );
    }
}

#[test]
fn a_switch_that_the_release_lacks_is_refused_before_anything_is_launched() {
    let profile = "extra = [\"--pytorch=autograd-shapes-nvtx\"]";
    let why = refused("2024.4.1", PER_GPU, profile);
    assert!(
        why.contains("case `c`: `--pytorch` needs nsys 2024.5 or newer, the nodes have 2024.4.1"),
        "{why}"
    );
    let why = refused("2024.4.1", PER_GPU, "extra = [\"\u{2013}stats=true\"]");
    assert!(why.contains("typographic dash"), "{why}");
    let why = refused("2024.4.1", PER_GPU, "extra = [\"--trace=cuda\"]");
    assert!(why.contains("the key `trace` sets it"), "{why}");
    assert!(
        arguments("2024.4.1", PER_GPU, "unchecked = [\"--quite-new=1\"]")
            .contains(&"--quite-new=1".to_owned())
    );
}

#[test]
fn a_number_that_the_trace_cannot_feed_is_refused() {
    let why = refused("2024.4.1", NCCL, "trace = [\"nvtx\"]");
    assert!(why.contains("needs trace `cuda`, which the profile does not have"), "{why}");
}

#[test]
fn a_range_that_is_never_opened_is_refused() {
    let why = refused("2024.4.1", NCCL, "ranks = \"all\"\ncapture = \"cudaProfilerApi\"");
    assert!(why.contains("nccl-tests never call the profiler API"), "{why}");
}

#[test]
fn ranks_that_the_job_does_not_have_are_refused() {
    let why = refused("2024.4.1", NCCL, "ranks = [0, 16]");
    assert!(why.contains("cannot profile rank 16: the job on 2 nodes has 16 ranks"), "{why}");
}

#[test]
fn diagnostics_in_a_profile_are_reported_with_their_place_and_what_is_right() {
    for (profile, expected) in [
        ("ranks = \"al\"", "did you mean `all`"),
        ("ranks = []", "no rank is profiled"),
        ("ranks = \"every 0\"", "a number of at least 1"),
        ("trace = [\"cudda\"]", "did you mean `cuda`"),
        ("capture = \"cudaprofilerapi\"", "did you mean `cudaProfilerApi`"),
        ("capture = \"nvtx:step\"\ndelay_s = 3", "exclude each other"),
        ("keep = \"allways\"", "did you mean `always`"),
        ("delays = 3", "did you mean `delay_s`"),
    ] {
        let why = refused("2024.4.1", NCCL, profile);
        assert!(why.contains(expected) && why.contains("suites/way.toml:"), "{profile}: {why}");
    }
}

#[test]
fn the_nodes_nsys_must_be_known() {
    let why = planned("2024", NCCL, "ranks = \"all\"").expect_err("no version");
    assert!(why.contains("not a version of nsys: `2024`"), "{why}");
}

#[test]
fn without_a_known_nsys_a_profiled_case_is_skipped_with_the_reason() {
    let project = crate::project::Project::new();
    project.write(
        "inventory/mine.toml",
        "kind = \"real\"\ninstance = \"p5\"\nnodes = \"p5-[1-2]\"\nreach = { via = \"slurm\" }\npaths = { shared = \"/fsx\" }\n",
    );
    let ran = project.harness(&["--suite", "nccl-p5", "--inventory", "mine", "--dry-run", "kernels-scatter"]);
    assert_eq!(ran.code, Some(0), "{}", ran.all());
    assert!(ran.stdout.contains("the inventory has no `nsys_version`"), "{}", ran.all());
}

#[test]
fn in_a_container_the_wrapper_runs_in_the_jobs_folder_or_the_case_is_refused() {
    let project = crate::project::Project::new();
    let inventory = |mounts: &str| {
        format!(
            "kind = \"real\"\ninstance = \"p5\"\nnodes = \"p5-[1-2]\"\nnsys_version = \"2025.3\"\nreach = {{ via = \"slurm\" }}\n\
             paths = {{ shared = \"/fsx/harness\" }}\ncontainer = {{ image = \"/fsx/nccl.sqsh\", mounts = [{mounts}] }}\n"
        )
    };
    let args = ["--suite", "nccl-p5", "--inventory", "mine", "--dry-run", "-v", "kernels-scatter"];
    project.write("inventory/mine.toml", &inventory("\"/fsx:/data\""));
    let ran = project.harness(&args);
    assert_eq!(ran.code, Some(0), "{}", ran.all());
    assert!(ran.stdout.contains("--container-workdir=/data/harness/"), "{}", ran.all());
    project.write("inventory/mine.toml", &inventory("\"/fsx2:/fsx2\""));
    let ran = project.harness(&args);
    assert_eq!(ran.code, Some(2), "{}", ran.all());
    assert!(ran.stderr.contains("add a mount of `paths.shared`"), "{}", ran.all());
}
