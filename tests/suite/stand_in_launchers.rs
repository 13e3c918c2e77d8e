//! Stand-ins that start or report others, as real processes: mpirun and its ranks on every host, torchrun and what it
//! trains, nvidia-smi and the GPUs that it lists.

use crate::bed::{StandIns, codes};
use logs::nccl_tests;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

const RUN: [&str; 8] = ["-np", "4", "-N", "2", "--hostfile", "hostfile", "--bind-to", "none"];

/// A job's folder on two hosts, and mpirun in it. What stands for ssh hands on no variables, as ssh does not.
fn mpirun(bed: &StandIns, words: &[&str]) -> (PathBuf, Command) {
    let folder = bed.job("together", "all");
    fs::write(folder.join("hostfile"), "n1 slots=2\nn2 slots=2\n").expect("written");
    let agent = bed.state().join("agent");
    let text = "#!/bin/sh\nshift\nexec env -i PATH=/usr/bin:/bin sh -c \"$*\"\n";
    fs::write(&agent, text).expect("written");
    fs::set_permissions(&agent, fs::Permissions::from_mode(0o755)).expect("made executable");
    let mut command = bed.command("mpirun");
    command.args(RUN).args(words).current_dir(&folder).env("HARNESS_NODE", "n1");
    command.env("OMPI_MCA_plm_rsh_agent", &agent).env("GREETING", "hello");
    (folder, command)
}

fn ended(mut command: Command) -> (Option<i32>, String, String) {
    let Output { status, stdout, stderr } = command.output().expect("it starts");
    let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
    (status.code(), text(stdout), text(stderr))
}

#[test]
fn mpirun_reports_every_rank_who_it_is_and_hands_on_what_is_exported() {
    let bed = StandIns::new("n[1-2]", "");
    let prints = "echo \"$OMPI_COMM_WORLD_RANK $OMPI_COMM_WORLD_LOCAL_RANK $HARNESS_NODE $GREETING $PWD\"";
    let (folder, command) = mpirun(&bed, &["-x", "GREETING", "bash", "-c", prints]);
    let (code, stdout, stderr) = ended(command);
    assert_eq!((code, stderr.as_str()), (Some(0), ""));
    let mut lines: Vec<&str> = stdout.lines().collect();
    lines.sort_unstable();
    let here = folder.display();
    let line = |rank: u32| format!("{rank} {} n{} hello {here}", rank % 2, rank / 2 + 1);
    assert_eq!(lines, (0..4).map(line).collect::<Vec<_>>());
    let (_, command) = mpirun(&bed, &["bash", "-c", "echo \"$HARNESS_NODE ${GREETING-}\""]);
    assert!(ended(command).1.contains("n2 \n"), "what is not exported stays where it is");
}

#[test]
fn ranks_of_mpirun_print_what_those_of_srun_print() {
    let bed = StandIns::new("n[1-2]", "seed = 7");
    // Where it lies is reported, since ssh brings no PATH along.
    let program = bed.programs().join("all_gather_perf").display().to_string();
    let argv = [&program, "-b", "1K", "-e", "1M", "-f", "4"];
    let (folder, command) = mpirun(&bed, &argv);
    let (code, stdout, stderr) = ended(command);
    assert_eq!((code, stderr.as_str()), (Some(0), ""));
    assert_eq!(codes(bed.srun(&folder, &["n1", "n2"], 2, &argv)), [0; 4]);
    assert_eq!(stdout, fs::read_to_string(folder.join("out.0")).expect("printed"));
    assert!(stdout.starts_with("# SIMULATED:") && stdout.contains("Rank  3 "), "{stdout}");
}

#[test]
fn a_rank_that_a_signal_ends_is_named_by_mpirun_with_its_host() {
    let bed = StandIns::new("n[1-2]", "");
    let dies = "[ \"$OMPI_COMM_WORLD_RANK\" != 3 ] || kill -9 $$";
    let (code, _, stderr) = ended(mpirun(&bed, &["bash", "-c", dies]).1);
    assert_eq!(code, Some(128 + 9), "{stderr}");
    assert!(stderr.contains("mpirun noticed that process rank 3 with PID "), "{stderr}");
    assert!(stderr.contains(" on node n2 exited on signal 9 (Killed)."), "{stderr}");
    let (code, _, stderr) = ended(mpirun(&bed, &["bash", "-c", "exit \"$OMPI_COMM_WORLD_LOCAL_RANK\""]).1);
    assert_eq!(code, Some(1));
    assert!(stderr.contains("exited with non-zero status"), "{stderr}");
}

/// Not to be found any more, or only waiting for somebody who wants to know how it ended.
fn is_gone(pid: &str) -> bool {
    let stat = fs::read_to_string(Path::new("/proc").join(pid).join("stat")).unwrap_or_default();
    stat.rsplit(')').next().is_none_or(|rest| rest.is_empty() || rest.trim_start().starts_with('Z'))
}

fn until(what: &str, holds: impl Fn() -> bool) {
    let since = Instant::now();
    while !holds() {
        assert!(since.elapsed() < Duration::from_secs(30), "{what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn ranks_end_with_their_mpirun_even_where_it_is_killed() {
    let bed = StandIns::new("n[1-2]", "");
    let waits = "echo $$ > \"pid.$OMPI_COMM_WORLD_RANK\"; sleep 600; true";
    let (folder, mut command) = mpirun(&bed, &["bash", "-c", waits]);
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("it starts");
    let pid = |rank: u32| fs::read_to_string(folder.join(format!("pid.{rank}"))).unwrap_or_default();
    until("all ranks begin", || (0..4).all(|rank| pid(rank).ends_with('\n')));
    child.kill().expect("killed");
    child.wait().expect("gone");
    until("all ranks end", || (0..4).all(|rank| is_gone(pid(rank).trim())));
}

#[test]
fn the_json_of_nccl_tests_has_what_is_printed_and_takes_no_name_twice() {
    let bed = StandIns::new("n[1-2]", "");
    let folder = bed.job("together", "all");
    let argv = ["all_reduce_perf", "-b", "1M", "-e", "64M", "-f", "2", "-J", "printed.json"];
    for _ in 0..2 {
        assert_eq!(codes(bed.srun(&folder, &["n1", "n2"], 2, &argv)), [0; 4]);
    }
    let read = |name: &str| {
        let bytes = fs::read(folder.join(name)).unwrap_or_else(|error| panic!("{name}: {error}"));
        let read = nccl_tests::read(&bytes, name).unwrap_or_else(|why| panic!("{name}: {why:?}"));
        assert_eq!(read.runs.len(), 1, "{name}");
        read.runs.into_iter().next().expect("one")
    };
    let (printed, line) = (read("out.0"), read("printed.json"));
    let sizes = |run: &nccl_tests::NcclRun| run.rows.iter().map(|row| row.size_bytes).collect::<Vec<_>>();
    assert_eq!(sizes(&line), sizes(&printed));
    assert_eq!((line.ranks.len(), line.concluded, line.rows.len()), (4, true, 7));
    assert_eq!(sizes(&read("printed.json.0")), sizes(&line));
    assert!(!folder.join("printed.json.1").exists());
}

#[test]
fn torchrun_prints_the_steps_of_its_training_on_the_first_node() {
    let bed = StandIns::new("n[1-2]", "");
    let folder = bed.job("trains", "all");
    let argv = ["torchrun", "--nproc_per_node=4", "train.py", "--steps", "5"];
    assert_eq!(codes(bed.srun(&folder, &["n1", "n2"], 1, &argv)), [0, 0]);
    let printed = fs::read_to_string(folder.join("out.0")).expect("printed");
    let steps = printed.lines().filter(|line| line.starts_with("Training epoch 0, iteration ")).count();
    assert!(printed.starts_with("# SIMULATED:") && steps == 5, "{printed}");
    let unknown = ["torchrun", "--nproc_per_node=4", "other.py"];
    assert!(codes(bed.srun(&folder, &["n1"], 1, &unknown)).iter().all(|code| *code != 0));
    assert!(fs::read_to_string(folder.join("err.0")).expect("said").contains("train.py"));
}

#[test]
fn nvidia_smi_lists_the_gpus_of_its_node_and_refuses_fields_that_there_are_not() {
    let bed = StandIns::new("n[1-2]", "");
    let ask = |node: &str, words: &[&str]| {
        let mut command = bed.command("nvidia-smi");
        command.args(words).env("HARNESS_NODE", node);
        ended(command)
    };
    let (code, list, _) = ask("n1", &["-L"]);
    assert_eq!((code, list.lines().count()), (Some(0), 8));
    assert!(list.lines().all(|line| line.contains("H100") && line.contains("GPU-SIMULATED-")), "{list}");
    assert_ne!(list, ask("n2", &["-L"]).1, "each node has GPUs of its own");
    let fields = ["--query-gpu=index,name,memory.total", "--format=csv,noheader,nounits", "-i", "3"];
    assert_eq!(ask("n1", &fields).1, "3, NVIDIA H100 80GB HBM3, 81559\n");
    let (code, said, _) = ask("n1", &["--query-gpu=index,colour", "--format=csv"]);
    assert_eq!((code, said.as_str()), (Some(2), "Field \"colour\" is not a valid field to query.\n"));
    assert_eq!(
        ask("n1", &["--query-compute-apps=pid", "--format=csv,noheader"]).1,
        "",
        "no process computes"
    );
}
