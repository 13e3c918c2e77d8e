//! What is sent to nodes is text, and is looked at as text; and the simulated cluster reads back exactly that text.

use job::script::{
    Container, Directives, FlowMemory, Flows, GpuRequest, Gpus, Run, Runtime, Sampler, Script, Start, Step,
    Turn, Turns, read, render,
};
use proptest::prelude::*;
use std::collections::BTreeMap;

fn arguments(text: &str) -> Vec<String> {
    text.split(' ').map(str::to_owned).collect()
}

fn sampler() -> Step {
    Step::CountersBegin(Sampler {
        root: "/sys/class/infiniband".into(),
        interval_s: 1.0,
        limit_s: 1020,
        watched: true,
    })
}

fn slurm(nodes: &[&str], tasks_per_node: u32) -> Script {
    Script {
        start: Start::Slurm(Directives {
            job_name: "RUN.pair-all_reduce.p5-001+p5-002".into(),
            folder: "/fsx/harness/RUN/pair-all_reduce/p5-001+p5-002".into(),
            tasks_per_node,
            gpus_per_node: 8,
            minutes: 18,
            exclusive: true,
            stands_alone: true,
            partition: Some("gpu".into()),
            account: None,
            reservation: Some("acceptance".into()),
            constraint: None,
            gpus: GpuRequest::Gres,
            qos: None,
            mem: None,
            sbatch: Vec::new(),
            srun: Vec::new(),
            records_environment: false,
        }),
        nodes: nodes.iter().map(|node| (*node).to_owned()).collect(),
        steps: Vec::new(),
    }
}

fn container() -> Option<Container> {
    Some(Container {
        runtime: None,
        image: "/fsx/nccl.sqsh".into(),
        mounts: vec!["/fsx:/fsx".into(), "/dev/shm:/dev/shm".into()],
        mount_home: true,
        remap_root: false,
        workdir: None,
        env: vec!["NCCL_ALGO".into(), "NCCL_DEBUG".into()],
        name: Some("harness-RUN".into()),
    })
}

#[test]
fn an_allocation_that_jobs_share() {
    let mut script = slurm(&["p5-001", "p5-002"], 8);
    let turn = |folder: &str, limit_s| Turn { folder: folder.to_owned(), limit_s };
    let jobs = vec![turn("/fsx/harness/RUN/a/p5-001+p5-002", 1080), turn("/fsx/it's a folder", 60)];
    script.steps = vec![Step::Turns(Turns { idle_s: 600, jobs })];
    let text = render(&script);
    let line = "bash allocation.sh 600 /fsx/harness/RUN/a/p5-001+p5-002 1080 '/fsx/it'\\''s a folder' 60\nstatus=$?\n";
    assert!(text.contains(line), "{text}");
    assert_eq!(read(&text), Ok(script));
    for (seen, other) in [("600", "six"), (" 1080 ", " "), ("allocation.sh", "allocate.sh")] {
        assert!(read(&text.replacen(seen, other, 1)).is_err(), "{seen}");
    }
}

#[test]
fn what_slurm_is_asked_for_stands_in_the_text_and_is_read_back() {
    for (gpus, directive) in [
        (GpuRequest::Gres, "#SBATCH --gres=gpu:8\n"),
        (GpuRequest::GpusPerNode, "#SBATCH --gpus-per-node=8\n"),
        (GpuRequest::None, ""),
    ] {
        let mut script = slurm(&["p5-001", "p5-002"], 8);
        let Start::Slurm(asked) = &mut script.start else { panic!("Slurm's") };
        (asked.gpus, asked.gpus_per_node) = (gpus, gpus.count(8));
        (asked.qos, asked.mem) = (Some("high".into()), Some("0".into()));
        asked.sbatch = ["--comment=it's a \"test\"", "--spread-job", "--wckey="].map(str::to_owned).to_vec();
        asked.srun = ["--network=no_vni", "--comment=a b"].map(str::to_owned).to_vec();
        asked.records_environment = true;
        let run =
            Run { argv: arguments("hostname"), tasks_per_node: 8, mpi: None, container: None, profile: None };
        script.steps = vec![sampler(), Step::Run(run), Step::CountersEnd];
        let text = render(&script);
        assert_eq!(read(&text), Ok(script), "{text}");
        assert!(text.contains(directive) && text.contains("#SBATCH --mem=0\n"), "{text}");
        assert!(text.contains("#SBATCH --spread-job\n#SBATCH --wckey=\n"), "{text}");
        assert_eq!(text.contains("--gres=none"), gpus == GpuRequest::Gres, "{text}");
        assert_eq!(text.contains("--gpus-per-node=0"), gpus == GpuRequest::GpusPerNode, "{text}");
        // Of the sampler and of the workload: by them Slurm before 22.05 runs both at the same time.
        assert_eq!(text.matches("--overlap --mem=0").count(), 2, "{text}");
        // As versions before wrote it: their runs are still read.
        let unordered = text.replace(" --distribution=block", "");
        let unshared =
            unordered.replacen(" --overlap --mem=0", " --overlap", 1).replacen(" --overlap --mem=0", "", 1);
        for older in [unordered, unshared] {
            assert_eq!(read(&older), read(&text), "{older}");
        }
        // From 26.05 on srun would number ranks along its topology.
        assert_eq!(text.matches("--distribution=block").count(), 1, "{text}");
        assert_eq!(text.matches("--cpu-bind=none --network=no_vni '--comment=a b'").count(), 2, "{text}");
    }
}

#[test]
fn a_collective_under_slurm() {
    let mut script = slurm(&["p5-001", "p5-002"], 8);
    script.steps = vec![
        Step::Environment { variables: BTreeMap::from([("NCCL_DEBUG".into(), "it's \"WARN\"".into())]) },
        sampler(),
        Step::Run(Run {
            argv: arguments("/opt/nccl-tests/build/all_reduce_perf -b 8 -e 17179869184 -f 2 -g 1"),
            tasks_per_node: 8,
            mpi: Some("pmix".into()),
            container: container(),
            profile: None,
        }),
        Step::CountersEnd,
    ];
    insta::assert_snapshot!(render(&script));
    assert_eq!(read(&render(&script)), Ok(script));
}

#[test]
fn every_gpu_by_itself_under_slurm() {
    let mut script = slurm(&["p5-001"], 1);
    script.steps = vec![Step::Gpus(Gpus {
        argv: arguments("/opt/nccl-tests/build/all_reduce_perf -b 1024 -e 4096 -f 2 -g 1"),
        gpus: 8,
        container: None,
    })];
    insta::assert_snapshot!(render(&script));
    assert_eq!(read(&render(&script)), Ok(script));
}

#[test]
fn flows_between_two_nodes_under_slurm() {
    let mut script = slurm(&["p5-001", "p5-002"], 1);
    script.steps = vec![
        sampler(),
        Step::Flows(Flows {
            tool: "fi_rma_bw".into(),
            op: "write".into(),
            server: "p5-002".into(),
            client: "p5-001".into(),
            base_port: 18515,
            message_bytes: 1 << 20,
            iterations: 59605,
            limit_s: 110,
            memory: FlowMemory::Auto,
            devices: arguments("rdmap79s0 rdmap96s0"),
            gpus: vec![0, 1],
        }),
        Step::CountersEnd,
    ];
    insta::assert_snapshot!(render(&script));
    assert_eq!(read(&render(&script)), Ok(script));
}

#[test]
fn a_command_on_this_machine() {
    let script = Script {
        start: Start::Bash,
        nodes: vec!["node-1".into()],
        steps: vec![
            sampler(),
            Step::Run(Run {
                argv: arguments("python3 check.py --quick"),
                tasks_per_node: 1,
                mpi: None,
                container: None,
                profile: None,
            }),
            Step::CountersEnd,
        ],
    };
    insta::assert_snapshot!(render(&script));
    assert_eq!(read(&render(&script)), Ok(script));
}

fn over_ssh(nodes: &[&str], steps: Vec<Step>) -> Script {
    Script { start: Start::Ssh, nodes: nodes.iter().map(|node| (*node).to_owned()).collect(), steps }
}

#[test]
fn a_collective_in_pods_by_mpirun_and_its_agent() {
    for mpirun in ["find-mpirun", "/opt/my mpi/bin/mpirun"] {
        let script = Script {
            start: Start::Pods,
            ..over_ssh(
                &["p5-001", "p5-002"],
                vec![
                    Step::Environment { variables: BTreeMap::from([("B".into(), "b c".into())]) },
                    sampler(),
                    Step::Run(Run {
                        argv: arguments("/opt/nccl-tests/build/all_reduce_perf -b 8 -g 1"),
                        tasks_per_node: 8,
                        mpi: Some(mpirun.into()),
                        container: None,
                        profile: None,
                    }),
                    Step::CountersEnd,
                ],
            )
        };
        let text = render(&script);
        let quoted = if mpirun.contains(' ') { format!("'{mpirun}'") } else { mpirun.to_owned() };
        let run = format!(
            "# run: mpirun on the first node, which starts the ranks of all by agent.sh\n\
             if [ \"$HARNESS_NODE\" = p5-001 ]; then\n  bash agent.sh mpirun {quoted} -np 16 -N 8 --hostfile hostfile \
             --bind-to none -x B /opt/nccl-tests/build/all_reduce_perf -b 8 -g 1 > stdout 2> stderr\n\
             else\n  bash agent.sh listen\nfi\nstatus=$?\n"
        );
        assert!(text.contains(&run) && text.contains("# in pods: "), "{text}");
        assert_eq!(read(&text), Ok(script), "{text}");
        for (seen, other) in
            [("agent.sh listen", "agent.sh wait"), ("# in pods", "# over ssh"), ("-N 8", "-N 7")]
        {
            assert!(read(&text.replacen(seen, other, 1)).is_err(), "{seen}");
        }
    }
}

#[test]
fn a_collective_over_ssh_by_mpirun() {
    let variables = BTreeMap::from([("NCCL_DEBUG".into(), "it's \"WARN\"".into()), ("B".into(), "".into())]);
    let script = over_ssh(
        &["p5-001", "p5-002"],
        vec![
            Step::Environment { variables },
            sampler(),
            Step::Run(Run {
                argv: arguments("/opt/nccl-tests/build/all_reduce_perf -b 8 -e 17179869184 -f 2 -g 1"),
                tasks_per_node: 8,
                mpi: Some("mpirun".into()),
                container: None,
                profile: None,
            }),
            Step::CountersEnd,
        ],
    );
    insta::assert_snapshot!(render(&script));
    assert_eq!(read(&render(&script)), Ok(script));
}

#[test]
fn a_command_over_ssh_as_one_process_on_every_node() {
    let run = Run {
        argv: arguments("python3 train.py -x 3"),
        tasks_per_node: 1,
        mpi: None,
        container: None,
        profile: None,
    };
    let script = over_ssh(&["p5-001", "p5-002"], vec![sampler(), Step::Run(run), Step::CountersEnd]);
    insta::assert_snapshot!(render(&script));
    assert_eq!(read(&render(&script)), Ok(script));
}

#[test]
fn every_gpu_by_itself_over_ssh() {
    let gpus =
        Gpus { argv: arguments("/opt/nccl-tests/build/all_reduce_perf -b 8 -g 1"), gpus: 8, container: None };
    let script = over_ssh(&["p5-001"], vec![Step::Gpus(gpus)]);
    insta::assert_snapshot!(render(&script));
    assert_eq!(read(&render(&script)), Ok(script));
}

#[test]
fn a_text_for_ssh_that_the_harness_would_not_have_written_is_refused() {
    let run = |mpi: Option<&str>| Run {
        argv: arguments("x -b 8"),
        tasks_per_node: 1,
        mpi: mpi.map(str::to_owned),
        container: None,
        profile: None,
    };
    for mpi in [Some("mpirun"), None] {
        let text = render(&over_ssh(&["a", "b"], vec![sampler(), Step::Run(run(mpi)), Step::CountersEnd]));
        for (from, to) in [
            ("# over ssh", "# over the air"),
            ("\"$HARNESS_NODE\" = a", "\"$HARNESS_NODE\" = b"),
            ("-np 2", "-np 3"),
            ("--bind-to none", "--bind-to core"),
            ("WORLD_SIZE=2", "WORLD_SIZE=1"),
            ("nodes=(a b)", "nodes=(b a)"),
            (": > \"done.$HARNESS_NODE\"\n", ""),
            ("x -b 8 >", "x -b 8 >>"),
        ] {
            let changed = text.replacen(from, to, 1);
            assert!(changed == text || read(&changed).is_err(), "{from} -> {to}");
        }
    }
}

#[test]
fn what_sbatch_is_asked_for_is_one_word_whatever_stands_in_it() {
    for folder in ["/fsx/two words", "/fsx/it's", "/fsx/\"$(id)\" # `id`", "/fsx/%j\\", "/fsx/\u{e9}"] {
        let mut script = slurm(&["p5-001"], 8);
        let Start::Slurm(directives) = &mut script.start else { panic!("under Slurm") };
        directives.folder = folder.to_owned();
        let text = render(&script);
        let line = text.lines().find(|line| line.starts_with("#SBATCH --chdir=")).expect("a line");
        let words = shlex::split(line.trim_start_matches("#SBATCH ")).expect("as a shell reads it");
        assert_eq!(words, [format!("--chdir={folder}")]);
        assert_eq!(read(&text), Ok(script), "{text}");
    }
}

#[test]
fn a_wait_of_older_plans_for_their_sampler_is_read_as_it_is() {
    let old =
        Step::CountersBegin(Sampler { root: "/sys".into(), interval_s: 1.0, limit_s: 60, watched: false });
    let mut script = slurm(&["p5-001", "p5-002"], 8);
    script.steps = vec![old.clone()];
    let text = render(&script);
    assert!(text.contains("tries < 150") && !text.contains("deadline"), "{text}");
    assert_eq!(read(&text), Ok(script));
    let script = over_ssh(&["a", "b"], vec![old]);
    assert_eq!(read(&render(&script)), Ok(script));
}

#[test]
fn mpirun_is_found_by_the_script_or_called_as_the_inventory_says() {
    for (mpi, line) in [
        ("mpirun", "\n  mpirun -np 16 "),
        (
            "find-mpirun",
            "\n  mpirun=$(command -v mpirun || echo /opt/amazon/openmpi/bin/mpirun)\n  \"$mpirun\" -np 16 ",
        ),
        ("/opt/ompi/bin/mpirun", "\n  /opt/ompi/bin/mpirun -np 16 "),
    ] {
        let run = Run {
            argv: arguments("x -b 8"),
            tasks_per_node: 8,
            mpi: Some(mpi.to_owned()),
            container: None,
            profile: None,
        };
        let script = over_ssh(&["a", "b"], vec![Step::Run(run)]);
        let text = render(&script);
        assert!(text.contains(line), "{text}");
        assert_eq!(read(&text), Ok(script));
    }
}

#[test]
fn scripts_of_older_plans_are_read_as_they_are() {
    let mut script = slurm(&["p5-001"], 8);
    let Start::Slurm(directives) = &mut script.start else { panic!("under Slurm") };
    directives.stands_alone = false;
    let text = render(&script);
    assert!(!text.contains("exit_code") && !text.contains("unset"), "{text}");
    assert_eq!(read(&text), Ok(script));
    let script = slurm(&["p5-001"], 8);
    let text = render(&script).replace("unset SLURM_JWT\n", "");
    assert_eq!(read(&text), Ok(script));
}

/// sbatch needs it, and hands on to the job what it has itself.
#[test]
fn no_program_of_a_job_sees_the_token_that_sbatch_signs_in_with() {
    let folder = tempfile::tempdir().expect("a folder");
    let text = render(&slurm(&["p5-001"], 8));
    let (head, rest) = text.split_once("set -u\n").expect("a line of every script");
    let script = format!("{head}env > seen\n{rest}");
    let mut bash = std::process::Command::new("bash");
    bash.args(["-c", &script]).current_dir(folder.path());
    let status = bash.envs([("SLURM_JWT", "a.b.c"), ("NCCL_DEBUG", "INFO")]).status().expect("bash starts");
    assert!(status.success(), "{status}");
    let seen = std::fs::read_to_string(folder.path().join("seen")).expect("written by the script");
    assert!(seen.contains("NCCL_DEBUG=INFO") && !seen.contains("SLURM_JWT"), "{seen}");
}

#[test]
fn a_text_that_the_harness_would_not_have_written_is_refused() {
    let mut script = slurm(&["p5-001"], 8);
    script.steps = vec![Step::Run(Run {
        argv: arguments("all_reduce_perf -b 8"),
        tasks_per_node: 8,
        mpi: None,
        container: None,
        profile: None,
    })];
    let text = render(&script);
    for (from, to) in [
        ("--cpu-bind=none", "--cpu-bind=cores"),
        ("status=$?", "status=0"),
        ("exit \"$status\"", "exit 0"),
        ("#SBATCH --no-requeue\n", ""),
        ("unset SLURM_NTASKS SLURM_NPROCS SLURM_NTASKS_PER_NODE\n", ""),
        ("echo \"$status\" > exit_code.part && mv exit_code.part exit_code\n", ""),
        ("set -u", "set -eu"),
        ("# run\n", "# run\nrm -rf scratch\n"),
    ] {
        let changed = text.replacen(from, to, 1);
        assert_ne!(changed, text, "{from}");
        assert!(read(&changed).is_err(), "{from} -> {to}");
    }
    assert!(read("").is_err());
    assert!(read("#!/bin/bash\nset -u\nstatus=0\n").is_err());
}

proptest! {
    #[test]
    fn any_argument_and_any_environment_value_survives_rendering(
        argument in "[^\0]{0,40}",
        value in "[^\0]{0,40}",
        image in "[a-z/#:+.-]{1,20}",
    ) {
        for mpi in [Some("mpirun".to_owned()), None] {
            let variables = BTreeMap::from([("NAME".to_owned(), value.clone())]);
            let argv = vec!["program".into(), argument.clone()];
            let tasks_per_node = if mpi.is_some() { 8 } else { 1 };
            let container = Some(Container {
                runtime: Some(Runtime::Podman), image: image.clone(), mounts: vec!["/a b:/b:ro".into()], mount_home: true,
                remap_root: false, workdir: Some("/b/j".into()), env: vec!["NAME".into(), "OTHER".into()], name: None,
            });
            for container in [None, container] {
            let (argv, mpi, variables) = (argv.clone(), mpi.clone(), variables.clone());
            let run = Step::Run(Run { argv, tasks_per_node, mpi, container, profile: None });
            let script = over_ssh(&["p5-001", "p5-002"], vec![Step::Environment { variables }, run]);
            let text = render(&script);
            match read(&text) {
                Ok(back) => prop_assert_eq!(back, script),
                Err(_) => prop_assert!(text.lines().filter(|line| line.starts_with("# ")).count() > 4),
            }
            }
        }
        let mut script = slurm(&["p5-001", "p5-002"], 8);
        script.steps = vec![
            Step::Environment { variables: BTreeMap::from([("NAME".to_owned(), value)]) },
            Step::Run(Run {
                argv: vec!["program".into(), argument],
                tasks_per_node: 8,
                mpi: None,
                container: Some(Container { runtime: None, image, mounts: Vec::new(), mount_home: false, remap_root: true, workdir: None, env: Vec::new(), name: None }),
                profile: None,
            }),
        ];
        let text = render(&script);
        // A line of a value that looks like a step's title is refused, never misread.
        if let Ok(back) = read(&text) {
            prop_assert_eq!(back, script);
        } else {
            prop_assert!(text.lines().filter(|line| line.starts_with("# ")).count() > 2);
        }
    }
}
