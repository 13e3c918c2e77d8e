//! The script of `gpu-allocation` under a real shell, with stand-ins for srun and nvidia-smi.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Stdio};
use tempfile::TempDir;

/// It gives devices by their number, refuses more than 8, and shows what it inherits.
const SRUN: &str = r#"#!/bin/bash
printf '%s job=%s tasks=%s visible=%s\n' "$*" "${SLURM_JOB_ID-}" "${SLURM_NTASKS-}" "${CUDA_VISIBLE_DEVICES-}" >> calls
while [[ $1 == --* ]]; do
  case $1 in --gres=gpu:* | --gpus-per-node=*) gpus=${1##*[:=]} ;; esac
  shift
done
if ((gpus > 8)); then
  echo "srun: Job step is not possible" >&2
  echo "srun: error: Unable to create step for job 7: Invalid generic resource (gres) specification" >&2
  echo "srun: error: n1: task 0: Exited with exit code 1" >&2
  exit 1
fi
if ((gpus == 8)); then exec sleep 600; fi
list=$(seq -s , 0 $((gpus - 1)))
CUDA_VISIBLE_DEVICES=$list exec "$@"
"#;

/// As where devices are constrained.
const NVIDIA_SMI: &str = r#"#!/bin/bash
IFS=, read -ra devices <<< "$CUDA_VISIBLE_DEVICES"
for at in "${!devices[@]}"; do echo "GPU $at: NVIDIA H100 80GB HBM3 (UUID: GPU-$at)"; done
"#;

struct Node {
    folder: TempDir,
    tools: TempDir,
}

impl Node {
    fn with(tools: &[(&str, &str)]) -> Self {
        let node = Node { folder: TempDir::new().unwrap(), tools: TempDir::new().unwrap() };
        for name in ["bash", "seq", "sleep", "timeout"] {
            let found = ["/usr/bin", "/bin"].map(|folder| Path::new(folder).join(name));
            let found = found.iter().find(|path| path.exists()).unwrap();
            std::os::unix::fs::symlink(found, node.tools.path().join(name)).unwrap();
        }
        for (name, text) in tools {
            let path = node.tools.path().join(name);
            fs::write(&path, text).unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        }
        node
    }

    /// What it printed, and its exit code.
    fn run(&self, job: &str, arguments: &str) -> (String, Option<i32>) {
        let output = Command::new("bash")
            .args(["-c", job::script::GPU_ALLOCATION_SH, "gpu_allocation.sh"])
            .args(arguments.split(' '))
            .current_dir(self.folder.path())
            .env("PATH", self.tools.path())
            .env("SLURMD_NODENAME", "n1")
            .env("SLURM_JOB_ID", job)
            .env("SLURM_NTASKS", "96")
            .env("CUDA_VISIBLE_DEVICES", "0,1,2,3,4,5,6,7")
            .stdin(Stdio::null())
            .output()
            .unwrap();
        (String::from_utf8_lossy(&output.stdout).into_owned(), output.status.code())
    }
}

#[test]
fn each_step_asks_as_its_job_does_and_inherits_nothing_of_another() {
    for (option, asked) in [("gres", "--gres=gpu:2"), ("gpus-per-node", "--gpus-per-node=2")] {
        let node = Node::with(&[("srun", SRUN), ("nvidia-smi", NVIDIA_SMI)]);
        let (text, code) = node.run("7", &format!("srun {option} 2 1 2 9 8"));
        assert_eq!(code, Some(0), "{text}");
        let steps = logs::node_tools::gpu_allocation::read(&text).expect("read");
        let counts: Vec<_> = steps.iter().map(|step| (step.asked, step.listed, step.visible)).collect();
        assert_eq!(counts, [(1, 1, Some(1)), (2, 2, Some(2)), (9, 0, None), (8, 0, None)], "{text}");
        let refused =
            "srun: error: Unable to create step for job 7: Invalid generic resource (gres) specification";
        assert_eq!(steps[2].failed.as_deref(), Some(refused));
        assert_eq!(steps[3].failed.as_deref(), Some("no step in 2 s"));
        let calls = fs::read_to_string(node.folder.path().join("calls")).unwrap();
        let wanted = format!(
            "--jobid=7 --overlap --mem=0 --nodes=1 --ntasks=1 --nodelist=n1 --mpi=none {asked} bash -c "
        );
        assert!(calls.contains(&wanted), "{calls}");
        // The command of a step has lines of its own.
        let inherited = calls.matches(" job= tasks= visible=\n").count();
        assert_eq!(inherited, 4, "{calls}");
    }
}

#[test]
fn without_srun_or_a_job_it_ends_at_once() {
    assert_eq!(Node::with(&[]).run("7", "srun gres 5 1").1, Some(127));
    let node = Node::with(&[("srun", SRUN), ("nvidia-smi", NVIDIA_SMI)]);
    for (job, arguments) in
        [("", "srun gres 5 1"), ("7", "srun gres 5"), ("7", "srun tres 5 1"), ("7", "srun gres 5 0")]
    {
        assert_eq!(node.run(job, arguments), (String::new(), Some(2)), "{arguments}");
    }
}
