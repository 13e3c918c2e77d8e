//! A whole job's script under a real bash: with a stand-in for srun that runs each node's part in this machine, the
//! sampler reads real files while the workload runs, and what comes home is what the recipes read.

use job::script::{Directives, GpuRequest, Run, Sampler, Script, Start, Step, files, render};
use logs::efa_counters;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// Runs what follows its options once per node, all side by side, as srun with one task per node does.
const SRUN: &str = r#"#!/bin/bash
while [[ $1 == --* ]]; do shift; done
for node in $NODES; do
  SLURMD_NODENAME=$node "$@" &
done
worst=0
for pid in $(jobs -p); do
  wait "$pid" || worst=$?
done
exit "$worst"
"#;

fn executable(path: &Path, text: &str) {
    fs::write(path, text).expect("written");
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).expect("made executable");
}

fn counters(root: &Path, node: &str, device: &str, tx: u64) {
    let folder = root.join(node).join(device).join("ports/1/hw_counters");
    fs::create_dir_all(&folder).expect("made");
    for (name, value) in
        [("tx_bytes", tx), ("rx_bytes", 5), ("rdma_write_bytes", tx), ("rdma_write_recv_bytes", 5)]
    {
        fs::write(folder.join(name), format!("{value}\n")).expect("written");
    }
}

#[test]
fn the_sampler_frames_the_workload_on_every_node_and_its_exit_code_is_the_jobs() {
    let folder = tempfile::tempdir().expect("a folder");
    let root = folder.path().join("sys");
    for node in ["n1", "n2"] {
        counters(&root, node, "rdmap79s0", 1000);
    }
    let tools = folder.path().join("tools");
    fs::create_dir(&tools).expect("made");
    executable(&tools.join("srun"), SRUN);
    // The workload moves bytes: it writes the counter that the sampler reads.
    let workload = format!(
        "#!/bin/bash\necho \"hello from $SLURMD_NODENAME\"\necho 9000 > {}/$SLURMD_NODENAME/rdmap79s0/ports/1/hw_counters/tx_bytes\nexit 7\n",
        root.display()
    );
    executable(&tools.join("workload"), &workload);
    let job = folder.path().join("job");
    fs::create_dir(&job).expect("made");
    let script = Script {
        start: Start::Slurm(Directives {
            job_name: "j".into(),
            folder: job.display().to_string(),
            tasks_per_node: 1,
            gpus_per_node: 8,
            minutes: 1,
            exclusive: true,
            stands_alone: true,
            partition: None,
            account: None,
            reservation: None,
            constraint: None,
            gpus: GpuRequest::Gres,
            qos: None,
            mem: None,
            sbatch: Vec::new(),
            srun: Vec::new(),
            records_environment: true,
        }),
        nodes: vec!["n1".into(), "n2".into()],
        steps: vec![
            Step::CountersBegin(Sampler {
                root: format!("{}/{{host}}", root.display()),
                interval_s: 0.2,
                limit_s: 120,
                watched: true,
            }),
            Step::Run(Run {
                argv: vec!["workload".into()],
                tasks_per_node: 1,
                mpi: None,
                container: None,
                profile: None,
            }),
            Step::CountersEnd,
        ],
    };
    fs::write(job.join(files::JOB), render(&script)).expect("written");
    fs::write(job.join("counters.sh"), job::script::COUNTERS_SH).expect("written");
    let path = format!("{}:/usr/bin:/bin", tools.display());
    let status = Command::new("bash")
        .arg(files::JOB)
        .current_dir(&job)
        .env("PATH", path)
        .env("NODES", "n1 n2")
        .env("NCCL_ALGO", "Ring or Tree")
        .env("NO_MATTER", "x")
        .stdin(Stdio::null())
        .status()
        .expect("bash starts");
    assert_eq!(
        status.code(),
        Some(7),
        "{}",
        fs::read_to_string(job.join(files::SAMPLER_LOG)).unwrap_or_default()
    );
    let mut hello: Vec<String> =
        fs::read_to_string(job.join(files::STDOUT)).expect("stdout").lines().map(str::to_owned).collect();
    hello.sort();
    assert_eq!(hello, ["hello from n1", "hello from n2"]);
    let inherited = fs::read_to_string(job.join(files::ENVIRONMENT)).expect("what it inherited");
    assert!(
        inherited.contains("NCCL_ALGO=Ring\\ or\\ Tree\n") && !inherited.contains("NO_MATTER"),
        "{inherited}"
    );
    for node in ["n1", "n2"] {
        let name = files::counters(node);
        let text = fs::read(job.join(&name)).expect("a capture");
        let capture = efa_counters::read(&text, &name)
            .unwrap_or_else(|error| panic!("{error}\n{}", String::from_utf8_lossy(&text)));
        assert_eq!(capture.node, node);
        assert!(capture.end.is_some(), "the capture is whole");
    }
}

/// A script that samples and runs a command, in a folder where the sampler ends at once.
fn without_sampler(start: Start, folder: &Path, nodes: &[&str]) {
    let script = Script {
        start,
        nodes: nodes.iter().map(|node| (*node).to_owned()).collect(),
        steps: vec![
            Step::CountersBegin(Sampler {
                root: "/nonexistent".into(),
                interval_s: 0.2,
                limit_s: 60,
                watched: true,
            }),
            Step::Run(Run {
                argv: vec!["echo".into(), "ran".into()],
                tasks_per_node: 1,
                mpi: None,
                container: None,
                profile: None,
            }),
            Step::CountersEnd,
        ],
    };
    fs::write(folder.join(files::JOB), render(&script)).expect("written");
    fs::write(folder.join("counters.sh"), "echo 'counters.sh: No space left on device' >&2\nexit 3\n")
        .expect("written");
}

#[test]
fn a_sampler_that_ends_at_once_holds_nothing_up_and_is_reported() {
    let folder = tempfile::tempdir().expect("a folder");
    without_sampler(Start::Bash, folder.path(), &["n1"]);
    let began = Instant::now();
    let status = Command::new("bash").arg(files::JOB).current_dir(folder.path()).status().expect("starts");
    assert!(status.success());
    assert!(began.elapsed() < Duration::from_secs(10), "{:?}", began.elapsed());
    let log = fs::read_to_string(folder.path().join(files::SAMPLER_LOG)).expect("a log");
    let ended = format!("{} 3\n", job::script::SAMPLER_ENDED);
    assert!(log.contains("No space left on device") && log.ends_with(&ended), "{log}");
    assert_eq!(fs::read_to_string(folder.path().join(files::STDOUT)).expect("stdout"), "ran\n");
}

#[test]
fn over_ssh_no_node_waits_for_the_sampler_of_another_that_has_ended() {
    let folder = tempfile::tempdir().expect("a folder");
    without_sampler(Start::Ssh, folder.path(), &["n1", "n2"]);
    let began = Instant::now();
    let node = |node: &str| {
        let log = fs::File::create(folder.path().join(format!("log.{node}"))).expect("a log");
        let mut command = Command::new("bash");
        command.arg(files::JOB).current_dir(folder.path()).env("HARNESS_NODE", node);
        command.stdin(Stdio::null()).stdout(log.try_clone().expect("a log")).stderr(log);
        command.spawn().expect("starts")
    };
    for mut child in [node("n1"), node("n2")] {
        assert!(child.wait().expect("ends").success());
    }
    assert!(began.elapsed() < Duration::from_secs(20), "{:?}", began.elapsed());
    for node in ["n1", "n2"] {
        let log = fs::read_to_string(folder.path().join(format!("log.{node}"))).expect("a log");
        assert!(log.contains(&format!("{} 3", job::script::SAMPLER_ENDED)), "{log}");
    }
}
