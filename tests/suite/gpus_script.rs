//! `gpus.sh` under a real bash: one process per GPU, each with its own output, and nothing left when it is asked to end.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Stdio};

fn program(folder: &Path, text: &str) -> String {
    let path = folder.join("program");
    fs::write(&path, format!("#!/bin/bash\n{text}\n")).expect("written");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("made executable");
    path.display().to_string()
}

fn gpus(folder: &Path, program: &str) -> Command {
    fs::write(folder.join("gpus.sh"), job::script::GPUS_SH).expect("written");
    let mut command = Command::new("bash");
    command.args(["gpus.sh", "3", program, "-b", "8"]).current_dir(folder).env("SLURMD_NODENAME", "n1");
    command.stdin(Stdio::null());
    command
}

#[test]
fn each_gpu_has_its_own_process_and_output_and_the_worst_exit_code_counts() {
    let folder = tempfile::tempdir().expect("a folder");
    let program = program(
        folder.path(),
        "echo \"gpu $CUDA_VISIBLE_DEVICES: $*\"; exit $((CUDA_VISIBLE_DEVICES == 1 ? 6 : 0))",
    );
    let status = gpus(folder.path(), &program).status().expect("runs");
    assert_eq!(status.code(), Some(6));
    for gpu in 0..3 {
        let out = fs::read_to_string(folder.path().join(format!("gpu{gpu}.n1.out"))).expect("an output");
        assert_eq!(out, format!("gpu {gpu}: -b 8\n"));
    }
}

#[test]
fn what_it_started_ends_with_it() {
    let folder = tempfile::tempdir().expect("a folder");
    let program = program(folder.path(), "echo $$ > \"pid.$CUDA_VISIBLE_DEVICES\"; exec sleep 600");
    let mut child = gpus(folder.path(), &program).spawn().expect("starts");
    let pids: Vec<i32> = (0..3).map(|gpu| pid_in(&folder.path().join(format!("pid.{gpu}")))).collect();
    let own = nix::unistd::Pid::from_raw(child.id() as i32);
    nix::sys::signal::kill(own, nix::sys::signal::Signal::SIGTERM).expect("signalled");
    assert_eq!(child.wait().expect("ends").code(), Some(143));
    for pid in pids {
        assert!(is_gone(pid), "{pid} is left");
    }
}

/// Waits for a process to have written its number.
fn pid_in(path: &Path) -> i32 {
    loop {
        if let Some(pid) = fs::read_to_string(path).ok().and_then(|text| text.trim().parse().ok()) {
            return pid;
        }
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
}

/// Gone, or a zombie that its parent has yet to reap.
fn is_gone(pid: i32) -> bool {
    match fs::read_to_string(format!("/proc/{pid}/stat")) {
        Err(_) => true,
        Ok(stat) => stat.rsplit(')').next().is_some_and(|rest| rest.trim_start().starts_with('Z')),
    }
}

#[test]
fn its_processes_see_no_variable_of_slurm_pmi_or_another_mpirun() {
    let folder = tempfile::tempdir().expect("a folder");
    let program = program(folder.path(), "env");
    let mut command = gpus(folder.path(), &program);
    let launched = [
        "SLURM_NODELIST",
        "SLURM_STEP_ID",
        "SLURM_PROCID",
        "SLURMD_NODENAME",
        "PMI_RANK",
        "PMI2_FD",
        "PMIX_RANK",
        "PMIX_NAMESPACE",
        "OMPI_COMM_WORLD_RANK",
        "OMPI_UNIVERSE_SIZE",
        "OMPI_MCA_ess_base_jobid",
        "OMPI_MCA_orte_hnp_uri",
        "PRTE_LAUNCHED",
    ];
    let kept = ["NCCL_DEBUG", "OMPI_MCA_btl_tcp_if_exclude", "LD_LIBRARY_PATH", "FI_PROVIDER"];
    command.envs(launched.iter().chain(&kept).map(|name| (*name, "n1")));
    assert!(command.status().expect("runs").success());
    for gpu in 0..3 {
        let out = fs::read_to_string(folder.path().join(format!("gpu{gpu}.n1.out"))).expect("an output");
        let names: Vec<&str> = out.lines().filter_map(|line| line.split('=').next()).collect();
        let seen: Vec<&&str> = launched.iter().filter(|name| names.contains(name)).collect();
        assert!(seen.is_empty(), "gpu {gpu} sees {seen:?}");
        assert!(kept.iter().all(|name| names.contains(name)), "{names:?}");
    }
}
