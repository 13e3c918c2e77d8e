//! Scripts written to show one error each, and such as show none.

use super::{Source, scripts};
use config::diagnostic::Diagnostic;

pub(super) fn diagnostics_of(files: &[(&str, &str)]) -> Vec<String> {
    let source = |(name, text): &(&str, &str)| Source { name: (*name).to_owned(), text: (*text).to_owned() };
    let linted = scripts(&files.iter().map(source).collect::<Vec<_>>());
    let with = |word: &'static str, all: &[Diagnostic]| -> Vec<String> {
        all.iter().map(|it| format!("{word}{it}")).collect()
    };
    [with("", &linted.diagnostics), with("warning: ", &linted.warnings), with("note: ", &linted.notes)]
        .concat()
}

#[track_caller]
fn only(files: &[(&str, &str)], expected: &str) {
    let found = diagnostics_of(files);
    assert!(found.len() == 1 && found[0].starts_with(expected), "{expected}: {found:#?}");
}

/// One task on each node, which starts the others; a window that closes; a report for each task.
pub(super) const CLEAN: &str = r#"#!/bin/bash
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=1
#SBATCH --job-name=fsdp
#SBATCH --output=%x_%j.out
set -euo pipefail
: "${DATA:?}"
export NCCL_DEBUG=INFO
GPUS=8
declare -a TORCHRUN_ARGS=(
    --nproc_per_node=$GPUS
    --nnodes=$SLURM_JOB_NUM_NODES
    --rdzv_id=$SLURM_JOB_ID
    --rdzv_backend=c10d
    --rdzv_endpoint=$(hostname)
)
declare -a TRAINING_ARGS=(
    --max_steps=80       # five more than are profiled
    --nsys_start_step=70
    --nsys_end_step=75
    --nsys_ranks=0,8
    --data="$DATA"
)
for try in 1 2; do
    srun nsys profile -t cuda,nvtx --capture-range=cudaProfilerApi --capture-range-end=stop \
        -o "report_job%q{SLURM_JOB_ID}_rank%q{SLURM_PROCID}" \
        torchrun "${TORCHRUN_ARGS[@]}" train.py "${TRAINING_ARGS[@]}" && break
    echo "try $try failed"
done
"#;

#[test]
fn a_correct_script_has_no_diagnostic() {
    assert_eq!(diagnostics_of(&[("clean.sbatch", CLEAN)]), [] as [&str; 0]);
    let by_mpirun = "#!/bin/sh\nexport NCCL_DEBUG=INFO\nmpirun -np 16 -N 8 --bind-to none -x NCCL_DEBUG=INFO all_reduce_perf -b 8 -e 16G -f 2 -g 1\n";
    let found = diagnostics_of(&[("clean.sh", by_mpirun)]);
    assert!(found.iter().all(|line| line.contains("is already set on line 2")), "{found:#?}");
}

#[test]
fn misspelt_and_repeated_variables_are_reported_at_their_place() {
    let of = |text: &str| diagnostics_of(&[("a.sh", text)]);
    let found = of("mpirun -np 2 -x RDMAV_FORM_SAFE=1 prog\n");
    assert!(found[0].starts_with("warning: a.sh:1:17: `RDMAV_FORM_SAFE` is misspelt"), "{found:#?}");
    assert!(found[0].contains("`RDMAV_FORK_SAFE`"), "{found:#?}");
    let found = of("#!/bin/bash\nexport NCCL_DEBUG=INFO\nNCCL_DEBG=WARN prog\nexport NCCL_DEBUG=WARN\n");
    assert!(
        found.iter().any(|it| it.starts_with("warning: a.sh:3:1: `NCCL_DEBG` is misspelt")),
        "{found:#?}"
    );
    assert!(
        found.iter().any(|it| it.starts_with("note: a.sh:4:8: `NCCL_DEBUG` is already set on line 2")),
        "{found:#?}"
    );
    let found = of("srun --export=ALL,NCCL_DEBG=INFO prog\n");
    assert!(found[0].starts_with("warning: a.sh:1:6: `NCCL_DEBG` is misspelt"), "{found:#?}");
    assert_eq!(of("prog NCCL_DEBG=1\n"), [] as [&str; 0], "an argument is no environment");
}

#[test]
fn jobs_within_jobs_are_reported_across_files() {
    let torchrun = CLEAN.replace("--ntasks-per-node=1", "--ntasks-per-node=8");
    only(
        &[("a.sbatch", &torchrun)],
        "a.sbatch:27:9: `srun` starts 8 tasks on each node, and each starts 8 processes with `torchrun`: separate jobs on the \
         same GPUs, not one; start one task on each node (`--ntasks-per-node=1`)",
    );
    let manifest = "command:\n  - mpirun\n  - -np\n  - \"16\"\n  - /profile.sh\n";
    let profile = "#!/bin/sh\nnsys profile -o /wd/report-%h-%p /train.sh\n";
    let train = "#!/bin/bash\nCUDA_VISIBLE_DEVICES=0,1 python -m torch.distributed.launch --nproc_per_node 2 clm.py\n";
    let found = diagnostics_of(&[("m.yaml", manifest), ("profile.sh", profile), ("train.sh", train)]);
    let expected = [
        "m.yaml:2:5: `CUDA_VISIBLE_DEVICES=0,1` in train.sh:2 is the same for 16 tasks: they share 2 GPUs",
        "m.yaml:2:5: `mpirun` starts 16 tasks, and each starts 2 processes with `torch.distributed.launch` in train.sh:2: separate",
    ];
    assert_eq!(found.len(), 2, "{found:#?}");
    assert!(found.iter().zip(expected).all(|(found, expected)| found.starts_with(expected)), "{found:#?}");
}

#[test]
fn options_of_the_program_are_not_options_of_the_launcher() {
    let sbatch = "#!/bin/bash\n#SBATCH --nodes=2\n#SBATCH --ntasks-per-node=1\n";
    for line in [
        "srun --mpi=pmix --container-image a.sqsh torchrun --nnodes=2 --nproc_per_node=8 bench.py -n 100\n",
        "mpirun -N 1 --mca btl tcp torchrun --nnodes=2 --nproc_per_node=8 bench.py -n 100\n",
    ] {
        assert_eq!(diagnostics_of(&[("a.sbatch", &format!("{sbatch}{line}"))]), [] as [&str; 0], "{line}");
    }
    let within = "mpirun -np 16 bash -c \"cd /opt; nsys profile -o report python train.py\"\n";
    only(&[("a.sh", within)], "a.sh:1:23: 16 tasks write the same report, `report`");
    let ranked = within.replace("-o report", "-o report_\\$OMPI_COMM_WORLD_RANK");
    assert_eq!(diagnostics_of(&[("a.sh", &ranked)]), [] as [&str; 0]);
}

#[test]
fn torchrun_without_nnodes_on_many_nodes_is_reported() {
    let alone = CLEAN.replace("    --nnodes=$SLURM_JOB_NUM_NODES\n", "");
    only(
        &[("a.sbatch", &alone)],
        "a.sbatch:26:9: `srun` starts `torchrun` on 2 nodes, but it is set to 1 node: each node",
    );
}

#[test]
fn tasks_that_write_the_same_report_are_reported() {
    let one = CLEAN.replace("report_job%q{SLURM_JOB_ID}_rank%q{SLURM_PROCID}", "report_$SLURM_JOB_ID");
    only(
        &[("a.sbatch", &one)],
        "a.sbatch:25:10: one task on each node write the same report, `report_$SLURM_JOB_ID`: the last",
    );
    let of_node = CLEAN.replace("_rank%q{SLURM_PROCID}", "_%h");
    assert_eq!(diagnostics_of(&[("a.sbatch", &of_node)]), [] as [&str; 0]);
}

#[test]
fn sessions_that_are_never_started_are_reported() {
    let alone = CLEAN.replace("    --nsys_ranks=0,8\n", "");
    only(
        &[("a.sbatch", &alone)],
        "warning: a.sbatch:24:10: one task on each node wait under `nsys` for the profiler API, but with `--nsys_start_step=70` \
         only rank 0 calls it",
    );
    let one_node = alone.replace("--nodes=2", "--nodes=1");
    assert_eq!(diagnostics_of(&[("a.sbatch", &one_node)]), [] as [&str; 0]);
    let whole = alone.replace(" --capture-range=cudaProfilerApi --capture-range-end=stop", "");
    assert_eq!(
        diagnostics_of(&[("a.sbatch", &whole)]),
        [] as [&str; 0],
        "a session without a capture range starts by itself"
    );
    // The one of NeMo's launcher: all sixteen under nsys, and the ranks in a configuration file that is not given.
    let nemo = "#!/bin/bash\nsrun -N 2 --ntasks-per-node=8 nsys profile -o r_%q{SLURM_PROCID} -c cudaProfilerApi python -u \
                megatron_gpt_pretraining.py --config-name=x";
    only(&[("a.sh", nemo)], "warning: a.sh:2:31: 8 tasks on each node wait under `nsys`");
    assert_eq!(
        diagnostics_of(&[("a.sh", &format!("{nemo} ++model.nsys_profile.ranks=[0,8]"))]),
        [] as [&str; 0]
    );
    // A wrapper that profiles one rank and starts the others bare.
    let wrapped = "#!/bin/bash\nif [ \"$SLURM_PROCID\" = 0 ]; then\n  nsys profile -o r_%q{SLURM_PROCID} -c cudaProfilerApi python \
                   megatron_gpt_pretraining.py\nelse\n  python megatron_gpt_pretraining.py\nfi\n";
    let by = "#!/bin/bash\nsrun -N 2 --ntasks-per-node=8 ./wrapped.sh\n";
    assert_eq!(diagnostics_of(&[("a.sh", by), ("wrapped.sh", wrapped)]), [] as [&str; 0]);
}

#[test]
fn unexpanded_and_unset_variables_are_reported() {
    let table = [
        (
            "#!/bin/bash\n#SBATCH --output=${LOGS}/%j.out\nhostname\n",
            "a.sbatch:2:18: `LOGS` in `#SBATCH` is not expanded",
        ),
        (
            "#!/bin/bash\nprog --data '$HOME/data'\n",
            "warning: a.sbatch:2:14: `$HOME` inside '' is not expanded; use \"\"",
        ),
        (
            "#!/bin/bash\nkubectl get pods -n ${example-ns}\n",
            "warning: a.sbatch:2:21: `${example-ns}` expands to `ns`: a name has no `-`",
        ),
        ("#!/bin/bash\nprog --data $DATA\n", "note: a.sbatch:2:13: `DATA` is not set in this file"),
    ];
    for (text, expected) in table {
        only(&[("a.sbatch", text)], expected);
    }
    let fine = [
        "DATA=1\nprog $DATA ${X:-1} $1 $@ $SLURM_JOB_ID $HOME\n",
        "source settings.sh\nprog $DATA\n",
        "for node in a b; do echo $node; done\nwhile read line; do echo $line; done\n",
        "awk '{ print $NF }' f\nbash -c 'echo $RANK'\n",
    ];
    for text in fine {
        assert_eq!(diagnostics_of(&[("a.sh", text)]), [] as [&str; 0], "{text}");
    }
    only(&[("m.yml", "image: ${REGISTRY}app:1\n")], "m.yml:1:8: `${REGISTRY}` in `image` is not expanded");
}

#[test]
fn windows_that_never_open_or_close_are_reported() {
    let with = |first: u64, last: u64| {
        CLEAN
            .replace("start_step=70", &format!("start_step={first}"))
            .replace("end_step=75", &format!("end_step={last}"))
    };
    let never = |text: &str, expected: &str| only(&[("a.sbatch", text)], expected);
    never(
        &with(70, 79),
        "a.sbatch:20:5: the window ends at step 79 of 80: the program leaves its loop at the last step",
    );
    never(
        &with(80, 90),
        "a.sbatch:19:5: the window begins at step 80, but the last of 80 steps is 79: it never opens",
    );
    never(&with(75, 70), "a.sbatch:20:5: the window ends at step 70, before it begins at step 75");
    assert_eq!(diagnostics_of(&[("a.sbatch", &with(70, 78))]), [] as [&str; 0]);
    let nemo =
        "python train.py trainer.max_steps=10 model.nsys_profile.start_step=5 model.nsys_profile.end_step";
    never(
        &format!("{nemo}=10\n"),
        "a.sbatch:1:70: the window ends at step 10 of 10: the training ends earlier",
    );
    assert_eq!(diagnostics_of(&[("a.sh", &format!("{nemo}=9\n"))]), [] as [&str; 0]);
    let megatron = "python pretrain.py --train-iters 10 --profile-step-start 5 --profile-step-end";
    never(&format!("{megatron} 11\n"), "a.sbatch:1:60: the window ends at step 11 of 10");
    assert_eq!(diagnostics_of(&[("a.sh", &format!("{megatron} 10\n"))]), [] as [&str; 0]);
    never(
        "python pretrain.py --profile-step-start 5\n",
        "warning: a.sbatch:1:20: the window has no last step",
    );
}

#[test]
fn typographic_characters_and_bash_only_words_are_reported() {
    let table = [
        ("QdstrmImporter \u{2013}i a.qdstrm\n", "a.sh:1:16: option with a typographic dash"),
        ("prog \u{201c}a\u{201d}\n", "a.sh:1:6: typographic quotation marks"),
        ("mkdir -p /fsx/profiles}\n", "a.sh:1:10: unmatched `}`"),
        (
            "#!/bin/sh\nif [ \"$1\" == a ]; then b; fi\n",
            "a.sh:2:11: `==` works only in bash, but the first line asks for `sh`",
        ),
        ("#!/bin/sh\npushd /tmp\n", "a.sh:2:1: `pushd` works only in bash"),
        ("prog a \\ # why\n  b\n", "a.sh:1:8: a backslash followed by a comment passes a single blank"),
        ("srun -l prog\n", "note: a.sh:1:6: `-l` puts `N: ` before each line"),
    ];
    for (text, expected) in table {
        only(&[("a.sh", text)], expected);
    }
    assert_eq!(
        diagnostics_of(&[("a.sh", "#!/bin/bash\nif [[ $1 == a ]]; then pushd b; fi\nf() { c; }\n")]),
        [] as [&str; 0]
    );
}
