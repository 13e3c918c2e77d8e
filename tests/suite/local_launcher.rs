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
fn a_program_that_is_not_there_is_no_pass_and_blames_no_node() {
    let project = Project::new();
    let workload = "{ kind = \"command\", program = \"no-such-program-anywhere\" }";
    let ran = run(&project, &suite(workload, "command", COMMAND, ""));
    assert_eq!(ran.code, Some(3), "{}", ran.all());
    assert!(ran.blamed().is_empty() && ran.all().contains("no-such-program-anywhere"), "{}", ran.all());
}

#[test]
fn a_test_of_a_node_that_is_not_installed_is_no_pass_and_blames_no_node() {
    for program in ["no-such-burn-anywhere", "/no/such/folder/gpu_burn"] {
        let project = Project::new();
        let workload = format!("{{ kind = \"gpu-burn\", seconds = 10, program = \"{program}\" }}");
        let asserted = "metric = \"burn.ok\"\nper = \"gpu\"\nequals = 1";
        let ran = run(&project, &suite(&workload, "gpu_burn", asserted, ""));
        assert_eq!(ran.code, Some(3), "{}", ran.all());
        assert!(ran.blamed().is_empty() && ran.all().contains("tool-missing"), "{}", ran.all());
        assert!(ran.all().contains(program), "{}", ran.all());
    }
}

#[test]
fn a_program_that_every_user_can_replace_is_a_warning_with_the_command_that_mends_it() {
    let project = Project::new();
    let folder = project.path().join("nccl-tests");
    fs::create_dir(&folder).expect("made");
    for (mode, is_open) in [(0o777, true), (0o755, false)] {
        fs::set_permissions(&folder, fs::Permissions::from_mode(mode)).expect("set");
        let workload = "{ kind = \"command\", program = \"true\" }";
        let ran = run(&project, &suite(workload, "command", COMMAND, ""));
        assert_eq!(ran.code, Some(0), "{}", ran.all());
        let mend = format!("chmod o-w {}\n", folder.display());
        let note = format!("note: here-1: every user can change programs of `[paths]`: {mend}");
        assert_eq!(ran.all().contains(&note), is_open, "{note}: {}", ran.all());
    }
}

/// Its rank and its own words are what a person and CI read, and no node is blamed.
#[test]
fn the_exception_of_a_training_is_what_the_reports_show() {
    let project = Project::new();
    let raised = "rank 9: RuntimeError: CUDA error: an illegal memory access was encountered";
    project.write("train.py", "pass\n");
    project.write(
        "torchrun",
        "#!/bin/bash\ncat >&2 <<'END'\n[rank9]: Traceback (most recent call last):\n\
         [rank9]:   File \"/job/train.py\", line 3, in <module>\n[rank9]:     main()\n\
         [rank9]: RuntimeError: CUDA error: an illegal memory access was encountered\nEND\nexit 1\n",
    );
    let torchrun = project.path().join("torchrun");
    fs::set_permissions(&torchrun, fs::Permissions::from_mode(0o755)).expect("made executable");
    let script = project.path().join("train.py");
    let workload =
        format!("{{ kind = \"torchrun\", script = \"{}\", processes_per_node = 8 }}", script.display());
    let missing = "metric = \"train.steps_missing\"\nequals = 0";
    let suite = suite(&workload, "training_log", missing, "limit_s = 60\ncounters = false");
    project.write("suites/test.toml", &suite);
    let inventory = format!("{}torchrun = \"{}\"\n", inventory(&project), torchrun.display());
    project.write("inventory/here.toml", &inventory);
    let ran = project.harness(&["--suite", "test", "--inventory", "here"]);
    assert_eq!((ran.code, ran.blamed()), (Some(3), Vec::new()), "{}", ran.all());
    assert!(ran.stdout.contains(&format!("error `one`: {raised}\n")), "{}", ran.all());
    let verdict = &project.json("cases/one/verdict.json")["verdicts"][0];
    assert_eq!(verdict["cause"], "exception", "{verdict}");
    let junit = fs::read_to_string(project.latest().join("junit.xml")).expect("a report");
    for report in [verdict["message"].to_string(), junit] {
        let place = format!("the job ended with exit code 1: raw/here-1/stderr:4: {raised}");
        assert!(report.contains(&place), "no `{place}`: {report}");
    }
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
    // Without a baseline nothing can be determined.
    let unknown = "metric = \"nccl.algbw\"\nsize = \"1GiB\"\nagainst = \"baseline\"";
    let ran = run(&project, &suite(workload, "nccl_tests", unknown, off));
    assert_eq!(ran.code, Some(3), "{}", ran.all());
    assert!(ran.stdout.contains("1 of 1 number has nothing to compare with"), "{}", ran.all());
    // Right data is no rate.
    let right = format!("{unknown}\n[[case.assert]]\nmetric = \"nccl.wrong\"\nequals = 0");
    let ran = run(&project, &suite(workload, "nccl_tests", &right, off));
    assert_eq!(ran.code, Some(3), "{}", ran.all());
    assert!(ran.stdout.contains("1 of 2 numbers has nothing to compare with"), "{}", ran.all());
}

/// A number that the kernel has given to another process since is neither polled nor signalled.
#[test]
fn a_recorded_number_that_means_a_stranger_by_now_is_left_alone() {
    use cluster::launch::local::Local;
    use cluster::launch::{Launch, Poll};
    use cluster::reach::process::ProcessReach;
    use job::script::start;
    use model::artefact::{Ended, PlannedJob};
    use std::os::unix::process::CommandExt;
    use std::process::{Command, Stdio};

    let folder = tempfile::tempdir().expect("a folder");
    let shown = folder.path().display().to_string();
    fs::write(folder.path().join("job.sh"), "sleep 600 & wait\n").expect("written");
    let job = PlannedJob {
        name: "j".into(),
        nodes: vec!["here-1".into()],
        round: 1,
        ranks: 1,
        launch: start::on_this_machine(&shown),
        folder: shown,
        files: Vec::new(),
        expected: Vec::new(),
        estimate_s: 1,
        limit_s: 60,
        secrets: Vec::new(),
        profile: None,
        control_run: None,
        again_of: None,
        evidence: None,
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let poll = |handle: &str| runtime.block_on(Local.poll(&ProcessReach, &[(&job, handle)])).remove(0);
    let handle = runtime.block_on(Local.submit(&ProcessReach, &job)).expect("started");
    assert_eq!(poll(&handle), Poll::Running);
    let mut stranger =
        Command::new("sleep").arg("600").stdin(Stdio::null()).process_group(0).spawn().expect("sleep starts");
    let number = stranger.id().to_string();
    let record = fs::read_to_string(folder.path().join("group")).expect("a record");
    let gone = Poll::ended(Ended::Killed { signal: 9 }, None);
    let end = |handle: &str| {
        runtime.block_on(Local.interrupt(&ProcessReach, &job, handle));
        runtime.block_on(Local.cancel(&ProcessReach, &job, handle));
    };
    // The number was given again; the record is of another start of the machine; there is no record.
    for text in [
        record.replacen(&handle, &number, 1),
        format!("{number} 1 another-boot\n"),
        record.clone(),
        String::new(),
    ] {
        fs::write(folder.path().join("group"), &text).expect("written");
        assert_eq!(poll(&number), gone, "{text:?}");
        end(&number);
        assert!(stranger.try_wait().expect("a child").is_none(), "a stranger was ended: {text:?}");
    }
    fs::write(folder.path().join("group"), &record).expect("written");
    for handle in ["1", "0", "-1", "", "x", "+7"] {
        assert_eq!(poll(handle), gone, "{handle:?}");
        end(handle);
        fs::write(folder.path().join("pid"), handle).expect("written");
        let found = runtime.block_on(Local.find_started(&ProcessReach, &job));
        assert!(found.is_err(), "{handle:?}: {found:?}");
    }
    // What has the mark of the job ended with the first request, whatever the record said.
    assert_eq!(poll(&handle), gone);
    stranger.kill().expect("killed");
    stranger.wait().expect("ended");
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
        for file in store::files(&project.latest()).expect("a run") {
            let text = fs::read(project.latest().join(&file)).unwrap_or_default();
            let text = String::from_utf8_lossy(&text);
            assert!(!text.contains("the operator's own"), "{how}: copied into {file:?}: {}", ran.all());
        }
        let victim = fs::read_to_string(project.path().join("victim")).expect("there");
        assert_eq!(victim, "the operator's own\n");
        assert!(ran.all().contains("stdout"), "{}", ran.all());
    }
}

/// Whoever can replace a job's script runs as the user.
#[test]
fn a_run_is_refused_in_a_shared_folder_that_others_can_write_to() {
    let project = Project::new();
    let shared = project.path().join("shared");
    fs::create_dir(&shared).expect("made");
    fs::set_permissions(&shared, fs::Permissions::from_mode(0o777)).expect("opened");
    let ran_marker = project.path().join("ran");
    let workload =
        format!("{{ kind = \"command\", program = \"touch\", args = [\"{}\"] }}", ran_marker.display());
    let refused = run(&project, &suite(&workload, "command", COMMAND, ""));
    assert_eq!(refused.code, Some(3), "{}", refused.all());
    assert!(refused.stderr.contains("`paths.shared` is not safe"), "{}", refused.all());
    assert!(refused.stderr.contains("chmod go-w"), "{}", refused.all());
    assert!(!ran_marker.exists() && refused.blamed().is_empty(), "{}", refused.all());
    fs::set_permissions(&shared, fs::Permissions::from_mode(0o755)).expect("closed");
    let ran = run(&project, &suite(&workload, "command", COMMAND, ""));
    assert_eq!(ran.code, Some(0), "{}", ran.all());
}

#[test]
fn nics_without_names_were_not_tested_and_the_run_is_no_pass() {
    let project = Project::new();
    let one = suite("{ kind = \"command\", program = \"true\" }", "command", COMMAND, "");
    let collective = "[[case]]\nname = \"nics\"\nplacement = \"each\"\n\
                      workload = { kind = \"nccl-tests\", op = \"all_reduce\", from = \"8\", to = \"16MiB\" }\n\
                      recipes = [\"nccl_tests\", \"efa_traffic\"]\n\
                      assert = [{ metric = \"nic.present\", per = \"node\", equals = 1 }]\n";
    project.write("suites/test.toml", &(one + collective).replace("\"p5\"", "\"p6-b200\""));
    project.write("inventory/here.toml", &inventory(&project).replace("\"p5\"", "\"p6-b200\""));
    let ran = project.harness(&["--suite", "test", "--inventory", "here", "--no-probe"]);
    assert_eq!(ran.code, Some(3), "{}", ran.all());
    let last =
        "INCONCLUSIVE: 1 of 2 assertions passed, 1 skipped; NICs without names were not tested (exit 3)";
    assert_eq!(ran.stdout.trim_end().lines().last(), Some(last), "{}", ran.all());
    let again = project.harness(&["replay", "--run", "latest", "--from", "judge"]);
    assert_eq!(again.code, Some(3), "{}", again.all());
}
