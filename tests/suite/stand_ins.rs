//! Stand-ins as real processes, without a server: what they print is what the simulated cluster prints, what they count
//! is conserved, what they leave is read, and what is cut off is not taken for whole.

use crate::bed::{StandIns, codes};
use crate::project::Project;
use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

const SUITE: &str = "instance = \"sim-p5\"\nabout = \"a suite of the tests\"\n[[case]]\nname = \"together\"\nplacement = \"all\"\n\
    workload = { kind = \"nccl-tests\", op = \"all_gather\", from = \"1KiB\", to = \"1GiB\", factor = 4 }\n\
    recipes = [\"nccl_tests\"]\n[[case.assert]]\nmetric = \"nccl.wrong\"\nequals = 0\n";

fn text(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Without the line that says what it is.
fn unmarked(text: &str) -> &str {
    let (mark, rest) = text.split_once('\n').unwrap_or_default();
    assert!(mark.starts_with("# SIMULATED:"), "{text}");
    rest
}

#[test]
fn ranks_print_what_the_simulated_cluster_prints_and_their_hosts_count_what_crossed() {
    let project = Project::new();
    project.write("suites/test.toml", SUITE);
    project.write("inventory/two.toml", "kind = \"simulated\"\ninstance = \"sim-p5\"\nnodes = \"n[1-2]\"\n");
    let ran = project.harness(&["--suite", "test", "--inventory", "two", "--seed", "7"]);
    assert_eq!(ran.code, Some(0), "{}", ran.all());
    let plan = project.json("plan.json");
    let job = plan["cases"][0]["jobs"][0]["name"].as_str().expect("a job");
    let simulated = text(&project.latest().join(format!("cases/together/raw/{job}/stdout")));
    let script = plan["cases"][0]["jobs"][0]["files"].to_string();
    let line =
        script.split("all_gather_perf ").nth(1).and_then(|rest| rest.split(" > ").next()).expect("a line");

    let bed = StandIns::new("n[1-2]", "seed = 7");
    let folder = bed.job("together", job);
    let sum = |counter: &str| bed.counted("n1", counter) + bed.counted("n2", counter);
    let before = (sum("tx_bytes"), sum("rx_bytes"));
    let argv: Vec<&str> = std::iter::once("all_gather_perf").chain(line.split(' ')).collect();
    assert_eq!(codes(bed.srun(&folder, &["n1", "n2"], 8, &argv)), [0; 16]);
    assert_eq!(unmarked(&text(&folder.join("out.0"))), simulated);
    for rank in 1..16 {
        assert_eq!(text(&folder.join(format!("out.{rank}"))), "", "{rank}");
    }
    let moved = (sum("tx_bytes") - before.0, sum("rx_bytes") - before.1);
    assert!(moved.0 > 0 && moved.0 == moved.1, "what is sent arrives: {moved:?}");
    // The same start again is another start.
    assert_eq!(codes(bed.srun(&folder, &["n1", "n2"], 8, &argv)), [0; 16]);
    assert_eq!(unmarked(&text(&folder.join("out.0"))), simulated);
}

#[test]
fn a_rank_that_dies_breaks_the_table_off_and_the_others_notice() {
    let bed = StandIns::new("n[1-2]", "faults = [\"n2:rank-dies\"]");
    let folder = bed.job("case", "job");
    let argv = ["all_reduce_perf", "-b", "1M", "-e", "64M", "-f", "2"];
    assert_eq!(codes(bed.srun(&folder, &["n1", "n2"], 2, &argv)), [1, 1, 1, 128 + 9]);
    let printed = text(&folder.join("out.0"));
    assert!(!unmarked(&printed).contains("Out of bounds"), "{printed}");
    assert!(text(&folder.join("err.0")).contains("n2"), "the lost host is named");
}

fn scripts(folder: &Path) {
    use job::script::{FLOWS_SH, GPUS_SH, PROFILE_SH};
    for (name, text) in [("profile.sh", PROFILE_SH), ("flows.sh", FLOWS_SH), ("gpus.sh", GPUS_SH)] {
        fs::write(folder.join(name), text).expect("written");
    }
}

const PROFILED: [&str; 13] = [
    "bash",
    "profile.sh",
    "find",
    "2025.3.1",
    "2",
    "all",
    "none",
    "prof",
    "parquetdir",
    "all",
    "--trace=cuda,nvtx",
    "--",
    "--",
];

#[test]
fn a_profiled_rank_leaves_a_report_and_its_tables() {
    let bed = StandIns::new("n[1-2]", "");
    let folder = bed.job("case", "job");
    scripts(&folder);
    let argv = [&PROFILED[..], &["all_reduce_perf", "-b", "1M", "-e", "8M", "-f", "2"]].concat();
    let codes = codes(bed.srun(&folder, &["n1", "n2"], 1, &argv));
    assert_eq!(codes, [0, 0], "{}", text(&folder.join("err.0")));
    for (rank, node) in [(0, "n1"), (1, "n2")] {
        let report = format!("prof.step0.try0.rank{rank}.{node}");
        let account = text(&folder.join(format!("profile.rank{rank}.txt")));
        for line in [&format!("report {report}"), "exit 0", "export parquetdir 0", "end"] {
            assert!(account.lines().any(|reported| reported == line), "{line}: {account}");
        }
        let kernels = folder.join(format!("{report}_pqtdir/CUPTI_ACTIVITY_KIND_KERNEL.parquet"));
        assert!(kernels.is_file(), "{account}");
        assert!(text(&folder.join(format!("{report}.nsys-rep"))).starts_with("# SIMULATED:"));
        assert!(!folder.join(format!("{report}.qdstrm")).exists());
    }
}

#[test]
fn a_profiler_that_is_killed_leaves_no_whole_report_and_no_process() {
    let bed = StandIns::new("n1", "floor_s = 30.0\ntime_factor = 1.0");
    let folder = bed.job("case", "job");
    let argv = [
        "nsys",
        "profile",
        "--output=cut",
        "all_reduce_perf",
        "-b",
        "8",
        "-e",
        "16G",
        "-f",
        "2",
        "-n",
        "2000",
    ];
    let mut children = bed.srun(&folder, &["n1"], 1, &argv);
    let record = folder.join("cut.qdstrm");
    let since = Instant::now();
    while !record.exists() || text(&folder.join("out.0")).is_empty() {
        assert!(since.elapsed() < Duration::from_secs(60), "it never began");
        std::thread::sleep(Duration::from_millis(20));
    }
    let tasks = format!("/proc/{0}/task/{0}/children", children[0].id());
    let inner = text(Path::new(&tasks)).trim().to_owned();
    assert!(!inner.is_empty(), "a program runs under it");
    children[0].kill().expect("killed");
    assert_eq!(codes(children), [128 + 9]);
    let since = Instant::now();
    while fs::read_to_string(format!("/proc/{inner}/stat")).is_ok_and(|stat| !stat.contains(") Z ")) {
        assert!(since.elapsed() < Duration::from_secs(30), "left running: {inner}");
        std::thread::sleep(Duration::from_millis(20));
    }
    assert!(!folder.join("cut.nsys-rep").exists());
    fs::rename(&record, folder.join("cut.nsys-rep")).expect("renamed");
    let export = |report: &str| {
        let mut command = bed.command("nsys");
        command.args(["export", "--type=parquetdir", "--output=tables", report]);
        command.env("HARNESS_NODE", "n1").current_dir(&folder).output().expect("it starts")
    };
    let refused = export("cut.nsys-rep");
    assert!(!refused.status.success());
    let said = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(said.contains("cut.nsys-rep is incomplete"), "{said}");
    assert!(!folder.join("tables").exists());
}

#[test]
fn flows_have_the_rates_of_the_model_and_a_dead_device_has_none() {
    let bed = StandIns::new("n[1-2]", "faults = [\"n2:nic-dead@rdmap80s0\"]");
    let folder = bed.job("case", "job");
    scripts(&folder);
    let end = |node: &str| {
        let mut command = bed.command("bash");
        command.args(["flows.sh", "fi_rma_bw", "read", "n1", "n2", "41000", "1048576", "2000", "8"]);
        command.args(["auto", "rdmap79s0=0", "rdmap80s0=0"]).env("HARNESS_NODE", node).current_dir(&folder);
        command.stdout(std::process::Stdio::null()).stderr(std::process::Stdio::null());
        command.spawn().expect("it starts")
    };
    let before = bed.counted("n1", "tx_bytes");
    assert_eq!(codes(vec![end("n1"), end("n2")]), [0, 0]);
    let good = text(&folder.join("rdmap79s0.out"));
    // The set has an nvidia-smi, and its tool was built with CUDA.
    assert!(good.starts_with("path gpu 0 profile\n# SIMULATED:") && good.contains("MB/sec"), "{good}");
    let dead = text(&folder.join("rdmap80s0.out"));
    assert!(dead.contains("not-connected"), "{dead}");
    assert!(bed.counted("n1", "tx_bytes") > before, "the good one is counted");
}

#[test]
fn without_cuda_the_flows_of_stand_ins_take_turns_and_an_old_perftest_refuses() {
    let bed = StandIns::new("n[1-2]", "[world]\nflow_tools_cuda = false\nflow_tools_srd = false");
    for (tool, codes_of_both, first) in [
        ("fi_rma_bw", [0, 0], "path host 2/2 fi_rma_bw on n2 cannot use CUDA\n"),
        ("ib_write_bw", [5, 5], "tool-refused ib_write_bw on n"),
    ] {
        let folder = bed.job("case", tool);
        scripts(&folder);
        let end = |node: &str| {
            let mut command = bed.command("bash");
            command.args(["flows.sh", tool, "write", "n1", "n2", "42000", "1048576", "2000", "20"]);
            command.args(["auto", "rdmap79s0=0", "rdmap80s0=0"]);
            command.env("HARNESS_NODE", node).current_dir(&folder);
            command.stdout(std::process::Stdio::null()).stderr(std::process::Stdio::null());
            command.spawn().expect("it starts")
        };
        assert_eq!(codes(vec![end("n1"), end("n2")]), codes_of_both, "{tool}");
        let last = text(&folder.join("rdmap80s0.out"));
        assert!(last.starts_with(first), "{last}");
    }
}

#[test]
fn a_run_upon_stand_ins_says_so_everywhere_though_its_inventory_is_real() {
    let bed = StandIns::new("here-1", "floor_s = 0.5");
    let project = Project::new();
    let state = bed.state().display();
    let suite = SUITE.replace("sim-p5", "p5").replace("\"all\"", "\"each\"").replace(
        "recipes = [\"nccl_tests\"]",
        "recipes = [\"nccl_tests\", \"efa_traffic\"]\n[[case.assert]]\nmetric = \"nic.present\"\nper = \"node\"\nequals = 1",
    );
    project.write("suites/test.toml", &suite);
    let inventory = format!(
        "kind = \"real\"\ninstance = \"p5\"\nnodes = \"here-1\"\nnsys_version = \"2025.3.1\"\n[reach]\nvia = \"local\"\n[paths]\n\
         shared = \"{state}/shared\"\nnccl_tests = \"{state}/bin\"\nnsys = \"{state}/bin/nsys\"\ncounters = \"{state}/hosts/{{host}}\"\n\
         [environment]\nHARNESS_NODE = \"here-1\"\n"
    );
    project.write("inventory/here.toml", &inventory);
    let ran = project.harness(&["--suite", "test", "--inventory", "here"]);
    assert_eq!(ran.code, Some(0), "{}", ran.all());
    assert!(ran.stdout.contains("SIMULATED") && !ran.stdout.contains("simulated time"), "{}", ran.stdout);
    assert_eq!(project.json("plan.json")["simulated"], false);
    assert_eq!(project.json("summary.json")["simulated"], true);
    assert_eq!(project.json("cases/together/verdict.json")["simulated"], true);
    let said = project.json("cases/together/collected.json")["simulated"].clone();
    assert!(said.as_array().is_some_and(|files| files.len() == 1), "{said}");
    assert!(text(&project.latest().join("junit.xml")).contains("SIMULATED"));
}

#[test]
fn profiled_cases_take_the_version_of_nsys_from_the_probe_where_the_inventory_has_none() {
    let bed = StandIns::new("here-1", "floor_s = 0.5");
    let project = Project::new();
    let state = bed.state().display();
    let suite = SUITE.replace("sim-p5", "p5").replace("\"all\"", "\"each\"").replace(
        "recipes = [\"nccl_tests\"]",
        "recipes = [\"nccl_tests\", \"cuda_gpu_kern_sum\"]\n[case.profile]\n[[case.assert]]\nmetric = \"kernel.class_share\"\n\
         class = \"nccl\"\nat_least = \"0 %\"",
    );
    project.write("suites/test.toml", &suite);
    let inventory = format!(
        "kind = \"real\"\ninstance = \"p5\"\nnodes = \"here-1\"\n[reach]\nvia = \"local\"\n[paths]\n\
         shared = \"{state}/shared\"\nnccl_tests = \"{state}/bin\"\nnsys = \"{state}/bin/nsys\"\ncounters = \"{state}/hosts/{{host}}\"\n\
         [environment]\nHARNESS_NODE = \"here-1\"\n"
    );
    project.write("inventory/here.toml", &inventory);
    let ran = project.harness(&["--suite", "test", "--inventory", "here"]);
    assert!(
        ran.stderr.contains("note: profiled with nsys 2025.3.1, which the nodes report"),
        "{}",
        ran.all()
    );
    let plan = project.json("plan.json");
    assert!(
        plan["cases"][0]["skip"].is_null() && !plan["cases"][0]["jobs"][0]["profile"].is_null(),
        "{plan}"
    );
    assert_eq!(project.json("summary.json")["counts"]["skipped"], 0, "{}", ran.all());
    // Without a probe nothing is known of it, and the skip is said before the launch and at the end.
    let blind = project.harness(&["--suite", "test", "--inventory", "here", "--no-probe"]);
    let why = "profiled, but the inventory has no ";
    assert!(blind.stderr.contains(why) && blind.stdout.contains(why), "{}", blind.all());
    assert_eq!(blind.code, Some(4), "{}", blind.all());
}
