//! The local launcher on this machine: real processes, real files, and stand-ins for nccl-tests.

use crate::project::Project;
use std::fs;
use std::os::unix::fs::PermissionsExt;

/// One node, whose counters are files of the test.
fn inventory(project: &Project) -> String {
    let folder = project.path().display();
    format!(
        "kind = \"real\"\ninstance = \"p5\"\nnodes = \"here-1\"\n[reach]\nvia = \"local\"\n[paths]\nshared = \"{folder}/shared\"\nnccl_tests = \"{folder}/nccl-tests\"\ncounters = \"{folder}/sys/{{host}}\"\n"
    )
}

fn suite(workload: &str, recipe: &str, assertion: &str, more: &str) -> String {
    format!(
        "instance = \"p5\"\nabout = \"a suite of the tests\"\n[[case]]\nname = \"one\"\nplacement = \"each\"\nworkload = {workload}\nrecipes = [\"{recipe}\"]\n{more}\n[[case.assert]]\n{assertion}\n"
    )
}

fn run(project: &Project, suite: &str) -> crate::project::Ran {
    project.write("suites/test.toml", suite);
    project.write("inventory/here.toml", &inventory(project));
    project.harness(&["--suite", "test", "--inventory", "here"])
}

const COMMAND: &str = "metric = \"command.exit_code\"\nequals = 0";

#[test]
fn a_program_that_succeeds_passes_and_one_that_fails_fails() {
    for (program, code) in [("true", 0), ("false", 1)] {
        let project = Project::new();
        let workload = format!("{{ kind = \"command\", program = \"{program}\" }}");
        let ran = run(&project, &suite(&workload, "command", COMMAND, ""));
        assert_eq!(ran.code, Some(code), "{program}: {}", ran.all());
        assert!(!ran.stdout.contains("SIMULATED"), "{}", ran.stdout);
    }
}

#[test]
fn a_program_that_is_not_there_is_no_pass() {
    let project = Project::new();
    let workload = "{ kind = \"command\", program = \"no-such-program-anywhere\" }";
    let ran = run(&project, &suite(workload, "command", COMMAND, ""));
    assert_eq!(ran.code, Some(1), "{}", ran.all());
}

#[test]
fn a_program_over_its_limit_is_ended_with_all_that_it_started() {
    let project = Project::new();
    let pid = project.path().join("pid");
    let script = project.path().join("long.sh");
    fs::write(&script, format!("#!/bin/bash\nsleep 600 &\necho $! > {}\nwait\n", pid.display()))
        .expect("written");
    fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).expect("made executable");
    let workload = format!("{{ kind = \"command\", program = \"{}\" }}", script.display());
    let ran = run(&project, &suite(&workload, "command", COMMAND, "limit_s = 1"));
    assert_eq!(ran.code, Some(3), "{}", ran.all());
    assert_eq!(ran.blamed(), ["culprit here-1 node"], "{}", ran.all());
    let child: i32 = fs::read_to_string(&pid).expect("it ran").trim().parse().expect("a number");
    let stat = fs::read_to_string(format!("/proc/{child}/stat")).unwrap_or_default();
    let state = stat.rsplit(')').next().unwrap_or_default().trim().chars().next();
    assert!(matches!(state, None | Some('Z')), "{child} is left: {stat}");
}

#[test]
fn a_collective_is_read_from_what_the_program_printed() {
    let project = Project::new();
    let table = "\
# nThread 1 nGpus 8 minBytes 1073741824 maxBytes 1073741824 step: 2(factor) warmup iters: 5 iters: 20 agg iters: 1 validation: 1 graph: 0
#
# Using devices
RANKS#
#                                                              out-of-place                       in-place
#       size         count      type   redop    root     time   algbw   busbw #wrong     time   algbw   busbw #wrong
#        (B)    (elements)                               (us)  (GB/s)  (GB/s)            (us)  (GB/s)  (GB/s)
  1073741824     268435456     float     sum      -1   5000.0  214.75  375.81      0   5000.0  214.75  375.81      0
# Out of bounds values : 0 OK
# Avg bus bandwidth    : 375.81
#
";
    let ranks: String = (0..8)
        .map(|rank| format!("#  Rank {rank:2} Group  0 Pid   4242 on     here-1 device {rank:2} [0x5{rank}] NVIDIA H100 80GB HBM3\n"))
        .collect();
    let program = format!("#!/bin/bash\ncat <<'TABLE'\n{}TABLE\n", table.replace("RANKS", &ranks));
    let path = project.path().join("nccl-tests/all_reduce_perf");
    project.write("nccl-tests/all_reduce_perf", &program);
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("made executable");
    let workload =
        "{ kind = \"nccl-tests\", op = \"all_reduce\", from = \"1GiB\", to = \"1GiB\", factor = 2 }";
    let off = "counters = false";
    let ok = "metric = \"nccl.algbw\"\nsize = \"1GiB\"\nat_least = \"200 GB/s\"";
    let ran = run(&project, &suite(workload, "nccl_tests", ok, off));
    assert_eq!(ran.code, Some(0), "{}", ran.all());
    let slow = "metric = \"nccl.algbw\"\nsize = \"1GiB\"\nat_least = \"220 GB/s\"";
    let ran = run(&project, &suite(workload, "nccl_tests", slow, off));
    assert_eq!(ran.code, Some(1), "{}", ran.all());
    // Without a baseline nothing can be told.
    let unknown = "metric = \"nccl.algbw\"\nsize = \"1GiB\"\nagainst = \"baseline\"";
    let ran = run(&project, &suite(workload, "nccl_tests", unknown, off));
    assert_eq!(ran.code, Some(3), "{}", ran.all());
}

/// What lies in a job's folder is the job's own, or it is not read and not removed.
#[test]
fn files_that_are_links_to_the_users_own_are_not_collected() {
    for how in ["ln -s", "ln"] {
        let project = Project::new();
        project.write("victim", "the operator's own\n");
        let program = format!(
            "{{ kind = \"command\", program = \"bash\", args = [\"-c\", \"rm -f stdout; {how} {} stdout\"] }}",
            project.path().join("victim").display()
        );
        let ran = run(&project, &suite(&program, "command", COMMAND, "limit_s = 60"));
        for file in harness::store::files(&project.latest()).expect("a run") {
            let text = fs::read(project.latest().join(&file)).unwrap_or_default();
            let text = String::from_utf8_lossy(&text);
            assert!(!text.contains("the operator's own"), "{how}: copied into {file:?}: {}", ran.all());
        }
        let victim = fs::read_to_string(project.path().join("victim")).expect("there");
        assert_eq!(victim, "the operator's own\n");
        assert!(ran.all().contains("stdout"), "{}", ran.all());
    }
}
