//! The ssh launcher with real scripts under a real bash: every node is this machine, reached without ssh, so that all
//! but the connection is what a cluster would run.

use cluster::launch::ssh::Ssh;
use cluster::launch::{Launch, Poll};
use cluster::reach::process::ProcessReach;
use cluster::reach::{Answer, Command, Host, Reach, ReachError, Wait};
use job::script::start;
use job::script::{self, FlowMemory, Flows, Gpus, MPIRUN, Run, Sampler, Script, Start, Step, files};
use logs::efa_counters;
use model::artefact::{Ended, PlannedFile, PlannedJob};
use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;
use tempfile::TempDir;

/// What is sent to a node happens here, with the tools of the test first on the path.
struct Nodes {
    tools: PathBuf,
}

impl Reach for Nodes {
    fn exec<'a>(&'a self, host: &'a Host, command: &'a Command) -> Wait<'a, Result<Answer, ReachError>> {
        Box::pin(async move {
            assert!(matches!(host, Host::Node(_)), "only nodes are reached");
            let path = format!("PATH={}:/usr/bin:/bin", self.tools.display());
            let argv = ["env".to_owned(), path].into_iter().chain(command.argv.iter().cloned());
            ProcessReach.exec(&Host::Here, &Command::new(argv, command.limit)).await
        })
    }
    fn put<'a>(&'a self, _: &'a Host, path: &'a str, bytes: &'a [u8]) -> Wait<'a, Result<(), ReachError>> {
        Box::pin(async move { ProcessReach.put(&Host::Here, path, bytes).await })
    }
    fn get<'a>(&'a self, _: &'a Host, path: &'a str) -> Wait<'a, Result<Vec<u8>, ReachError>> {
        Box::pin(async move { ProcessReach.get(&Host::Here, path).await })
    }
}

struct Bench {
    folder: TempDir,
}

impl Bench {
    fn new(tools: &[(&str, &str)]) -> Bench {
        let bench = Bench { folder: TempDir::new().expect("a folder") };
        fs::create_dir(bench.path("tools")).expect("made");
        for (name, text) in tools {
            let path = bench.path("tools").join(name);
            fs::write(&path, text).expect("written");
            fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("made executable");
        }
        bench
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn job(&self, nodes: &[&str], steps: Vec<Step>) -> PlannedJob {
        let nodes: Vec<String> = nodes.iter().map(|node| (*node).to_owned()).collect();
        let folder = self.path("job").display().to_string();
        let script = Script { start: Start::Ssh, nodes: nodes.clone(), steps };
        let own =
            |name: &str, text: String| PlannedFile { name: name.into(), text: Some(text), sha256: None };
        let mut put =
            vec![own(files::JOB, script::render(&script)), own(files::HOSTFILE, script::hostfile(&nodes, 2))];
        put.extend(script::SHARED.map(|(name, text)| own(name, text.to_owned())));
        for file in &put {
            let path = self.path("job").join(&file.name);
            fs::create_dir_all(path.parent().expect("a folder")).expect("made");
            fs::write(path, file.text.as_deref().unwrap_or_default()).expect("written");
        }
        let by_mpirun = script.steps.iter().any(|step| matches!(step, Step::Run(run) if run.mpi.is_some()));
        put.retain(|file| by_mpirun || file.name != files::HOSTFILE);
        PlannedJob {
            name: "job".into(),
            nodes,
            round: 1,
            ranks: 2,
            launch: start::over_ssh(&folder, 60),
            folder,
            files: put,
            expected: Vec::new(),
            estimate_s: 1,
            limit_s: 60,
            secrets: Vec::new(),
            profile: None,
            control_run: None,
            again_of: None,
            evidence: None,
        }
    }

    /// Launches the job and polls it to its end; `meanwhile` sees every poll and may end the job.
    fn run(&self, job: &PlannedJob, meanwhile: &mut dyn FnMut(&Poll) -> Option<&'static str>) -> Poll {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        let reach = Nodes { tools: self.path("tools") };
        runtime.block_on(async {
            let ssh = Ssh::default();
            let handle = ssh.submit(&reach, job).await.expect("launched");
            assert_eq!(ssh.find_started(&reach, job).await, Ok(Some(handle.clone())));
            for _ in 0..600 {
                let poll = ssh.poll(&reach, &[(job, &handle)]).await.remove(0);
                if matches!(poll, Poll::Ended { .. }) {
                    return poll;
                }
                match meanwhile(&poll) {
                    Some("interrupt") => ssh.interrupt(&reach, job, &handle).await,
                    Some(_) => ssh.cancel(&reach, job, &handle).await,
                    None => {}
                }
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
            panic!("it has not ended: {}", self.text("log.n1"));
        })
    }

    fn text(&self, name: &str) -> String {
        fs::read_to_string(self.path("job").join(name)).unwrap_or_default()
    }

    fn sampler(&self) -> Step {
        for node in ["n1", "n2"] {
            let folder = self.path("sys").join(node).join("rdmap79s0/ports/1/hw_counters");
            fs::create_dir_all(&folder).expect("made");
            fs::write(folder.join("tx_bytes"), "1000\n").expect("written");
        }
        let root = format!("{}/{{host}}", self.path("sys").display());
        Step::CountersBegin(Sampler { root, interval_s: 0.2, limit_s: 60, watched: true })
    }

    fn captures_are_whole(&self) {
        for node in ["n1", "n2"] {
            let name = files::counters(node);
            let text = self.text(&name);
            let capture =
                efa_counters::read(text.as_bytes(), &name).unwrap_or_else(|why| panic!("{why}\n{text}"));
            assert_eq!(capture.node, node);
            let reason = capture.end.map(|end| end.reason);
            assert_eq!(reason, Some(efa_counters::Reason::Stop), "{text}");
        }
    }
}

fn exited(poll: &Poll) -> (i32, Option<String>) {
    match poll {
        Poll::Ended { end: Ended::Exited { code }, blamed, .. } => {
            (*code, blamed.as_ref().map(|blamed| blamed.node.clone()))
        }
        other => panic!("{other:?}"),
    }
}

fn run(argv: &[&str], mpi: Option<&str>) -> Step {
    Step::Run(Run {
        argv: argv.iter().map(|word| (*word).to_owned()).collect(),
        tasks_per_node: if mpi.is_some() { 2 } else { 1 },
        mpi: mpi.map(str::to_owned),
        container: None,
        profile: None,
    })
}

#[test]
fn a_process_on_every_node_gets_its_rank_and_counters_frame_them_all() {
    let bench = Bench::new(&[(
        "workload",
        "#!/bin/bash\nsleep $RANK\necho \"$HARNESS_NODE $RANK/$WORLD_SIZE $NODE_RANK/$NNODES $LOCAL_RANK/$LOCAL_WORLD_SIZE \
         $MASTER_ADDR:$MASTER_PORT $NAME\"\n[[ -e stop ]] && echo early\nexit $((RANK * 7))\n",
    )]);
    let environment = Step::Environment { variables: BTreeMap::from([("NAME".into(), "it's".into())]) };
    let job = bench
        .job(&["n1", "n2"], vec![environment, bench.sampler(), run(&["workload"], None), Step::CountersEnd]);
    let ended = bench.run(&job, &mut |_| None);
    assert_eq!(
        exited(&ended),
        (7, Some("n2".to_owned())),
        "{}{}",
        bench.text("log.n1"),
        bench.text("log.n2")
    );
    assert_eq!(bench.text("stdout.n1"), "n1 0/2 0/2 0/1 n1:29500 it's\n");
    assert_eq!(bench.text("stdout.n2"), "n2 1/2 1/2 0/1 n1:29500 it's\n");
    bench.captures_are_whole();
}

/// Runs so many processes for each host of its file, as mpirun does, and exits with the worst code.
const MPIRUN_SH: &str = r#"#!/bin/bash
echo "$*" > mpirun.called
[[ $1 == -np && $3 == -N && $5 == --hostfile && $7 == --bind-to && $8 == none ]] || exit 99
per_node=$4 file=$6
shift 8
while [[ $1 == -x ]]; do shift 2; done
rank=0 worst=0
while read -r host _; do
  for ((local = 0; local < per_node; local++)); do
    OMPI_COMM_WORLD_RANK=$rank HOST=$host "$@" || worst=$?
    rank=$((rank + 1))
  done
done < "$file"
exit "$worst"
"#;

#[test]
fn one_mpirun_on_the_first_node_starts_the_ranks_of_all() {
    let bench = Bench::new(&[
        ("mpirun", MPIRUN_SH),
        (
            "ranks",
            "#!/bin/bash\necho \"rank $OMPI_COMM_WORLD_RANK on $HOST: $*\"\nexit $((OMPI_COMM_WORLD_RANK == 3 ? 5 : 0))\n",
        ),
    ]);
    let environment = Step::Environment { variables: BTreeMap::from([("B".into(), "1".into())]) };
    let step = run(&["ranks", "-b", "8"], Some(MPIRUN));
    let job = bench.job(&["n1", "n2"], vec![environment, bench.sampler(), step, Step::CountersEnd]);
    let ended = bench.run(&job, &mut |_| None);
    assert_eq!(exited(&ended), (5, None), "mpirun speaks for all nodes: {}", bench.text("log.n1"));
    let line: Vec<String> = (0..4).map(|rank| format!("rank {rank} on n{}: -b 8", rank / 2 + 1)).collect();
    assert_eq!(bench.text(files::STDOUT).lines().collect::<Vec<_>>(), line);
    assert_eq!(
        bench.text("mpirun.called"),
        "-np 4 -N 2 --hostfile hostfile --bind-to none -x B ranks -b 8\n"
    );
    bench.captures_are_whole();
}

#[test]
fn gpus_and_flows_find_their_node_by_the_name_that_the_harness_knows() {
    let bench = Bench::new(&[("program", "#!/bin/bash\necho \"gpu $CUDA_VISIBLE_DEVICES\"\n")]);
    let gpus = Step::Gpus(Gpus { argv: vec!["program".into()], gpus: 2, container: None });
    let ended = bench.run(&bench.job(&["n1", "n2"], vec![gpus]), &mut |_| None);
    assert_eq!(exited(&ended), (0, None));
    for (node, gpu) in [("n1", 0), ("n1", 1), ("n2", 0), ("n2", 1)] {
        assert_eq!(bench.text(&files::gpu_out(gpu, node)), format!("gpu {gpu}\n"));
    }
    // Neither of this machine's names: flows.sh would exit with 4.
    let bench =
        Bench::new(&[("ib_write_bw", "#!/bin/bash\n[[ ${!#} == n1 ]] && echo 'rate of the flow'\nexit 0\n")]);
    let flows = Step::Flows(Flows {
        tool: "ib_write_bw".into(),
        op: "write".into(),
        server: "n1".into(),
        client: "n2".into(),
        base_port: 18515,
        message_bytes: 8,
        iterations: 2,
        limit_s: 60,
        memory: FlowMemory::Auto,
        devices: vec!["mlx5_0".into()],
        gpus: vec![0],
    });
    let ended = bench.run(&bench.job(&["n1", "n2"], vec![flows]), &mut |_| None);
    assert_eq!(exited(&ended), (0, None), "{}{}", bench.text("stderr.n1"), bench.text("stderr.n2"));
    assert!(bench.text("mlx5_0.out").ends_with("rate of the flow\n"), "{}", bench.text("mlx5_0.out"));
}

#[test]
fn a_job_that_is_interrupted_or_ended_leaves_nothing_on_any_node() {
    for how in ["interrupt", "cancel"] {
        let trap = if how == "cancel" { "trap '' TERM\n" } else { "" };
        let sleeps =
            format!("#!/bin/bash\n{trap}echo $$ > \"pid.$HARNESS_NODE\"\nwhile :; do sleep 1; done\n");
        let bench = Bench::new(&[("sleeps", sleeps.as_str())]);
        let job = bench.job(&["n1", "n2"], vec![bench.sampler(), run(&["sleeps"], None), Step::CountersEnd]);
        let mut pids = Vec::new();
        let ended = bench.run(&job, &mut |_| {
            let line: Vec<String> = ["pid.n1", "pid.n2"].map(|name| bench.text(name)).to_vec();
            if !pids.is_empty() || line.iter().any(String::is_empty) {
                return None;
            }
            pids = line;
            Some(how)
        });
        assert!(matches!(ended, Poll::Ended { end: Ended::Cancelled, blamed: None, .. }), "{how}: {ended:?}");
        for pid in pids {
            assert!(is_gone(pid.trim()), "{how}: {pid} is left");
        }
    }
}

/// Gone, or a zombie that its parent has yet to reap.
fn is_gone(pid: &str) -> bool {
    match fs::read_to_string(Path::new("/proc").join(pid).join("stat")) {
        Err(_) => true,
        Ok(stat) => stat.rsplit(')').next().is_some_and(|rest| rest.trim_start().starts_with('Z')),
    }
}
