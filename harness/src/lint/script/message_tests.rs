//! What the rules report of scripts and manifests: every message, as a person reads it.

use super::tests::{CLEAN, diagnostics_of};

fn lines(name: &str, texts: &[(&str, &str)]) -> String {
    let of =
        |(what, text): &(&str, &str)| format!("{what}: {}", diagnostics_of(&[(name, *text)]).join("\n  "));
    texts.iter().map(of).collect::<Vec<_>>().join("\n")
}

#[test]
fn messages_of_launchers() {
    let two_nodes = "#!/bin/bash\n#SBATCH --nodes=2\n#SBATCH --ntasks-per-node=1\n";
    let texts = [
        ("jobs within jobs of mpirun", "mpirun -np 16 torchrun --nproc_per_node 2 train.py\n"),
        ("jobs within jobs", &CLEAN.replace("--ntasks-per-node=1", "--ntasks-per-node=8")),
        ("deepspeed in each task", "srun -N 2 --ntasks-per-node=8 deepspeed train.py\n"),
        ("one node in each job", &CLEAN.replace("    --nnodes=$SLURM_JOB_NUM_NODES\n", "")),
        ("a wrapper", &format!("{two_nodes}srun bash -c \"torchrun --nproc_per_node=8 train.py\"\n")),
        ("shared GPUs", "srun -N 1 --ntasks-per-node=8 env CUDA_VISIBLE_DEVICES=0,1 python train.py\n"),
        ("one report", &CLEAN.replace("_job%q{SLURM_JOB_ID}_rank%q{SLURM_PROCID}", "")),
        ("one report of mpirun", "mpirun -np 16 nsys profile -o report python train.py\n"),
        ("sessions that never start", &CLEAN.replace("    --nsys_ranks=0,8\n", "")),
    ];
    let found = lines("a.sbatch", &texts);
    let manifest = "command:\n  - mpirun\n  - -np\n  - \"16\"\n  - /train.sh\n";
    let train = "#!/bin/bash\nCUDA_VISIBLE_DEVICES=0,1 python -m torch.distributed.launch --nproc_per_node 2 clm.py\n";
    let across = diagnostics_of(&[("m.yaml", manifest), ("train.sh", train)]).join("\n  ");
    insta::assert_snapshot!(format!("{found}\nacross files: {across}"));
}

#[test]
fn messages_of_variables() {
    let texts = [
        ("misspelt", "srun --export=ALL,NCCL_DEBG=INFO prog\n"),
        ("wrong value", "export FI_EFA_IFACE=\n"),
        ("set twice", "export NCCL_DEBUG=INFO\nNCCL_DEBUG=WARN prog\n"),
        ("in a directive", "#!/bin/bash\n#SBATCH --output=${LOGS}/%j.out\nhostname\n"),
        ("within ''", "#!/bin/bash\nprog --data '$HOME/data'\n"),
        ("default by chance", "kubectl get pods -n ${example-ns}\n"),
        ("not set", "prog --data $DATA\n"),
    ];
    let manifest = lines("m.yml", &[("in a manifest", "image: ${REGISTRY}app:1\n")]);
    insta::assert_snapshot!(format!("{}\n{manifest}", lines("a.sbatch", &texts)));
}

#[test]
fn messages_of_windows() {
    let with = |first: u64, last: u64| {
        format!("python train.py --max_steps=80 --nsys_start_step={first} --nsys_end_step={last}\n")
    };
    let texts = [
        ("no last step", "python pretrain.py --profile-step-start 5\n"),
        ("no first step", "python pretrain.py --profile-step-end 5\n"),
        ("never opens", &with(80, 90)),
        ("never closes", &with(70, 79)),
        ("ends before it begins", &with(75, 70)),
        ("Megatron", "python pretrain.py --train-iters 10 --profile-step-start 5 --profile-step-end 11\n"),
    ];
    insta::assert_snapshot!(lines("a.sh", &texts));
}

#[test]
fn messages_of_characters() {
    let texts = [
        ("dash", "QdstrmImporter \u{2013}i a.qdstrm\n"),
        ("quotation marks", "prog \u{201c}a\u{201d}\n"),
        ("brace", "mkdir -p /fsx/profiles}\n"),
        ("comment behind a backslash", "prog a \\ # why\n  b\n"),
        ("blanks behind a backslash", "prog a \\  \n  b\n"),
        ("array in sh", "#!/bin/sh\nARGS=(a b)\n"),
        ("command of bash in sh", "#!/bin/sh\npushd /tmp\n"),
        ("comparison of bash in sh", "#!/bin/sh\nif [ \"$1\" == a ]; then b; fi\n"),
        ("labels", "srun -l prog\n"),
    ];
    insta::assert_snapshot!(lines("a.sh", &texts));
}
