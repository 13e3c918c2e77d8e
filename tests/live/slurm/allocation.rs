//! GPUs that a real Slurm gives to steps of a job, and a batch file of the user within a job.

use super::bench::{Bench, RUN, ended};
use crate::fact::Fact;
use std::fs;

pub(super) const FACTS: &[Fact] = &[
    ("steps_get_gpus_as_asked_and_a_slurm_that_shows_all_of_them_blames_no_node", allocation),
    ("a_batch_file_runs_in_a_job_with_its_gpus", batch_file),
];

/// It lists what the step was given, as where devices are constrained, or all where `open` lies.
const NVIDIA_SMI: &str = r#"[[ $1 == -L ]] || exit 9
IFS=, read -ra devices <<< "$CUDA_VISIBLE_DEVICES"
if [[ -e BENCH/open ]]; then devices=(0 1 2 3 4 5 6 7); fi
for at in "${!devices[@]}"; do echo "GPU $at: NVIDIA H100 80GB HBM3 (UUID: GPU-$at)"; done
"#;

const ALLOCATION: &str = "[[case]]\nname = \"gpus\"\nplacement = \"each\"\nqueue_limit_s = 20\nlimit_s = 100\n\
     workload = { kind = \"gpu-allocation\", gpus = [1, 2] }\nrecipes = [\"gpu_allocation\"]\n\
     [[case.assert]]\nmetric = \"allocation.wrong\"\nper = \"node\"\nequals = 0\n";

fn allocation() {
    for reach in ["", "gpus = \"gpus-per-node\""] {
        let bench = Bench::with_cases(2, reach, ALLOCATION);
        bench.program("nvidia-smi", NVIDIA_SMI);
        let inventory = bench.project.path().join("inventory/live.toml");
        let text = fs::read_to_string(&inventory).expect("an inventory");
        let path =
            format!("{}/bin:{}/usr/local/bin:/usr/bin:/bin", bench.folder(), bench.cluster.first_on_path());
        fs::write(&inventory, format!("{text}[environment]\nPATH = \"{path}\"\n")).expect("written");
        // The probe would ask the stand-in for what it does not know.
        let run = || ended(bench.start_with(&[RUN.as_slice(), &["--no-probe"]].concat()));
        let good = run();
        assert_eq!(good.code, Some(0), "{}", good.all());
        bench.project.write("open", "");
        let bad = run();
        assert_eq!(bad.code, Some(1), "{}", bad.all());
        assert!(!bad.all().contains("culprit n"), "{}", bad.all());
        bench.cluster.assert_nothing_is_left();
    }
}

/// Its nodes and its partition are those of no cluster.
const BATCH: &str = r#"#SBATCH --nodes=64 --partition=nowhere
set -e
gpus=$(srun --ntasks=1 --gres=gpu:1 bash -c 'echo "$CUDA_VISIBLE_DEVICES"')
[[ $gpus == 0 && $CUDA_VISIBLE_DEVICES == 0,1,2,3,4,5,6,7 ]]
"#;

fn batch_file() {
    let case = |name: &str, args: &str| {
        format!(
            "[[case]]\nname = \"{name}\"\nplacement = \"each\"\nqueue_limit_s = 20\nlimit_s = 100\n\
             workload = {{ kind = \"command\", program = \"bash\", args = {args}, \
             environment = {{ SLURM_OVERLAP = \"1\" }} }}\n\
             recipes = [\"command\"]\n[[case.assert]]\nmetric = \"command.exit_code\"\nequals = 0\n"
        )
    };
    let file = case("file", "[\"BENCH/bin/check.sbatch\"]");
    let text = "[[ $(srun --ntasks=1 --gres=gpu:2 bash -c 'echo $CUDA_VISIBLE_DEVICES') == 0,1 ]]";
    let text = case("text", &format!("[\"-c\", \"{text}\"]"));
    let bench = Bench::with_cases(2, "", &format!("{file}{text}"));
    bench.program("check.sbatch", BATCH);
    let ran = bench.run();
    assert_eq!(ran.code, Some(0), "{}", ran.all());
    bench.cluster.assert_nothing_is_left();
}
