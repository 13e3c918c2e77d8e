//! Nodes that are reached by ssh: the life of a job on each of them, its heartbeat timeout, and connections that fail.

use super::*;

const PAIR: &str = "p5-[001-002]";
const FOLDER: &str = "/fsx/harness/run-1/c/j";

struct Nodes {
    reach: SimulatedReach,
}

impl Nodes {
    fn new(texts: &[&str]) -> Nodes {
        let ssh = SshReach {
            user: None,
            port: None,
            config: None,
            start: SshStart::Mpirun,
            heartbeat_timeout_s: 300,
        };
        let inventory = Inventory { reach: ReachBy::Ssh(ssh), ..inventory("p5", PAIR) };
        let reach = SimulatedReach::new(&inventory, 1, faults(texts), BTreeMap::new()).expect("a cluster");
        Nodes { reach }
    }

    async fn put(&self, job: &str, nodes: &str, step: Step) {
        let sampler = Sampler {
            root: "/sys/class/infiniband".to_owned(),
            interval_s: 2.0,
            limit_s: 2000,
            watched: true,
        };
        let steps = vec![Step::CountersBegin(sampler), step, Step::CountersEnd];
        let nodes = nodeset::expand(nodes).expect("nodes");
        let script = Script { start: Start::Ssh, nodes, steps };
        let text = script::render(&script);
        let hostfile = script::hostfile(&script.nodes, 8);
        for (name, text) in [
            (files::JOB, text.as_str()),
            (files::HOSTFILE, &hostfile),
            (files::SUPERVISOR, script::SUPERVISOR_SH),
            ("counters.sh", script::COUNTERS_SH),
            ("gpus.sh", script::GPUS_SH),
        ] {
            let path = format!("/fsx/harness/run-1/c/{job}/{name}");
            self.reach.put(&node("p5-001"), &path, text.as_bytes()).await.expect("written");
        }
    }

    async fn call(&self, job: &str, name: &str, verb: &str, more: &[&str]) -> Result<String, ReachError> {
        let folder = format!("/fsx/harness/run-1/c/{job}");
        let supervisor = format!("{folder}/supervisor.sh");
        let argv = ["bash", &supervisor, verb, &folder, name].into_iter().chain(more.iter().copied());
        let command = Command::new(argv, Duration::from_secs(60));
        let answer = self.reach.exec(&node(name), &command).await?;
        assert!(answer.succeeded(), "{}", answer.complaint());
        Ok(answer.stdout_text().trim_end().to_owned())
    }

    async fn look(&self, job: &str, name: &str) -> String {
        self.call(job, name, "look", &[]).await.expect("an answer")
    }

    async fn start(&self, job: &str, name: &str) -> String {
        self.call(job, name, "start", &["60"]).await.expect("an answer")
    }

    /// Starts it on both nodes and looks at both until neither runs.
    async fn run(&self, job: &str) -> [String; 2] {
        self.start(job, "p5-001").await;
        self.start(job, "p5-002").await;
        loop {
            tokio::time::sleep(Duration::from_secs(5)).await;
            let states = [self.look(job, "p5-001").await, self.look(job, "p5-002").await];
            if states.iter().all(|state| state != "running") {
                return states;
            }
        }
    }

    async fn get(&self, job: &str, name: &str) -> Option<String> {
        let path = format!("/fsx/harness/run-1/c/{job}/{name}");
        let bytes = self.reach.get(&node("p5-001"), &path).await.ok()?;
        Some(String::from_utf8_lossy(&bytes).into_owned())
    }
}

fn node(name: &str) -> Host {
    Host::Node(name.to_owned())
}

fn by_mpirun() -> Step {
    match collective("all_reduce_perf", "-b 64M -e 8G") {
        Step::Run(run) => Step::Run(Run { mpi: Some(script::MPIRUN.to_owned()), ..run }),
        other => other,
    }
}

fn once(line: &str) -> Step {
    match command(line) {
        Step::Run(run) => Step::Run(Run { tasks_per_node: 1, ..run }),
        other => other,
    }
}

#[test]
fn a_job_runs_on_its_nodes_once_and_leaves_what_it_would_under_slurm() {
    on_paused_clock(async {
        let nodes = Nodes::new(&[]);
        nodes.put("j", PAIR, by_mpirun()).await;
        assert_eq!(nodes.look("j", "p5-001").await, "absent");
        assert_eq!(nodes.start("j", "p5-001").await, "running");
        assert_eq!(nodes.run("j").await, ["ended 0 itself", "ended 0 itself"]);
        assert_eq!(nodes.start("j", "p5-001").await, "ended 0 itself");
        let bench = Bench::new("p5", PAIR, 1, &[]);
        assert_eq!(
            bench.run("c", "j", PAIR, collective("all_reduce_perf", "-b 64M -e 8G")).await,
            "COMPLETED"
        );
        assert_eq!(nodes.get("j", "stdout").await, Some(bench.text("c", "j", "stdout").await));
        assert!(nodes.get("j", "counters.p5-002.txt").await.is_some());
        assert_eq!(nodes.get("j", "log.p5-002").await.as_deref(), Some(""));
        for other in ["batch.err", "sampler.log", "stdout.p5-001"] {
            assert_eq!(nodes.get("j", other).await, None, "{other}");
        }
        assert_eq!(nodes.reach.violations(), [] as [String; 0]);
    });
}

#[test]
fn every_node_has_files_of_its_own_where_each_runs_its_own_process() {
    on_paused_clock(async {
        let nodes = Nodes::new(&[]);
        nodes.put("j", PAIR, once("hostname")).await;
        assert_eq!(nodes.run("j").await, ["ended 0 itself", "ended 0 itself"]);
        assert_eq!(nodes.get("j", "stdout.p5-001").await.as_deref(), Some("p5-001\n"));
        assert_eq!(nodes.get("j", "stdout.p5-002").await.as_deref(), Some("p5-002\n"));
        assert_eq!(nodes.get("j", "stdout").await, None);
        nodes.put("k", PAIR, once("false")).await;
        assert_eq!(nodes.run("k").await, ["ended 1 itself", "ended 1 itself"]);
        nodes.put("l", PAIR, once("sleep x")).await;
        nodes.run("l").await;
        assert_eq!(
            nodes.get("l", "stderr.p5-001").await.as_deref(),
            Some("sleep: invalid time interval 'x'\n")
        );
    });
}

#[test]
fn unwatched_jobs_end_on_each_node_without_a_heartbeat() {
    on_paused_clock(async {
        let nodes = Nodes::new(&[]);
        nodes.put("j", PAIR, once("sleep 1000")).await;
        nodes.start("j", "p5-001").await;
        nodes.start("j", "p5-002").await;
        for _ in 0..10 {
            tokio::time::sleep(Duration::from_secs(10)).await;
            assert_eq!(nodes.look("j", "p5-001").await, "running");
        }
        assert_eq!(nodes.look("j", "p5-002").await, "ended 143 heartbeat");
        assert_eq!(nodes.reach.violations().len(), 1, "one node's is left");
        tokio::time::sleep(Duration::from_secs(70)).await;
        assert_eq!(nodes.look("j", "p5-001").await, "ended 143 heartbeat");
        assert_eq!(nodes.reach.violations(), [] as [String; 0]);
    });
}

#[test]
fn a_job_ends_when_it_is_asked_to_unless_it_hangs_and_by_force_in_any_case() {
    on_paused_clock(async {
        let nodes = Nodes::new(&[]);
        nodes.put("j", PAIR, once("sleep 1000")).await;
        nodes.start("j", "p5-001").await;
        nodes.start("j", "p5-002").await;
        assert_eq!(nodes.call("j", "p5-001", "end", &["TERM"]).await, Ok("running".to_owned()));
        tokio::time::sleep(Duration::from_secs(2)).await;
        assert_eq!(nodes.look("j", "p5-001").await, "ended 143 asked");
        assert_eq!(nodes.call("j", "p5-002", "end", &["KILL"]).await, Ok("ended 137 asked".to_owned()));

        let nodes = Nodes::new(&["p5-002:hang"]);
        nodes.put("j", PAIR, by_mpirun()).await;
        nodes.start("j", "p5-001").await;
        nodes.start("j", "p5-002").await;
        nodes.call("j", "p5-001", "end", &["TERM"]).await.expect("an answer");
        tokio::time::sleep(Duration::from_secs(20)).await;
        assert_eq!(nodes.look("j", "p5-001").await, "running");
        assert_eq!(nodes.call("j", "p5-001", "end", &["KILL"]).await, Ok("ended 137 asked".to_owned()));
    });
}

#[test]
fn a_fault_of_a_node_ends_the_script_of_that_node_or_the_mpirun_of_all() {
    on_paused_clock(async {
        for (fault, by_process, by_mpi) in [
            ("rank-dies", "ended 137 itself", "ended 137 itself"),
            ("disk-full", "ended 1 itself", "ended 1 itself"),
        ] {
            let nodes = Nodes::new(&[&format!("p5-002:{fault}")]);
            nodes.put("j", PAIR, once("sleep 10")).await;
            assert_eq!(nodes.run("j").await, ["ended 0 itself", by_process], "{fault}");
            nodes.put("k", PAIR, by_mpirun()).await;
            assert_eq!(nodes.run("k").await, [by_mpi, "ended 0 itself"], "{fault}");
            let stderr = nodes.get("k", "stderr").await.expect("stderr");
            assert!(stderr.contains("p5-002") && !stderr.contains("p5-001"), "{stderr}");
        }
    });
}

#[test]
fn a_node_that_fails_is_silent_for_a_while_and_has_lost_its_job() {
    on_paused_clock(async {
        let nodes = Nodes::new(&["p5-002:node-fails"]);
        nodes.put("j", PAIR, by_mpirun()).await;
        nodes.start("j", "p5-001").await;
        nodes.start("j", "p5-002").await;
        let mut silent = 0;
        let last = loop {
            tokio::time::sleep(Duration::from_secs(5)).await;
            match nodes.call("j", "p5-002", "look", &[]).await {
                Ok(state) if state == "running" => {}
                Ok(state) => break state,
                Err(ReachError::Unreachable { host, .. }) => {
                    assert_eq!(host, "p5-002");
                    silent += 1;
                }
                Err(error) => panic!("{error}"),
            }
        };
        assert_eq!(last, "lost");
        assert!(silent > 5, "{silent}");
        let stderr = nodes.get("j", "stderr").await.expect("stderr");
        assert!(stderr.contains("Remote daemon: [[30211,0],1] on node p5-002"), "{stderr}");
    });
}

#[test]
fn a_connection_drops_at_the_start_and_in_the_middle_and_changes_nothing() {
    on_paused_clock(async {
        let nodes = Nodes::new(&["p5-002:connection-drops"]);
        nodes.put("j", PAIR, by_mpirun()).await;
        nodes.start("j", "p5-001").await;
        let lost = nodes.call("j", "p5-002", "start", &["60"]).await;
        assert!(matches!(lost, Err(ReachError::Unreachable { .. })), "{lost:?}");
        assert_eq!(nodes.start("j", "p5-002").await, "running");
        let mut silent = 0;
        loop {
            tokio::time::sleep(Duration::from_secs(1)).await;
            nodes.look("j", "p5-001").await;
            match nodes.call("j", "p5-002", "look", &[]).await {
                Ok(state) if state == "running" => {}
                Ok(state) => break assert_eq!(state, "ended 0 itself"),
                Err(_) => silent += 1,
            }
        }
        assert!((20..30).contains(&silent), "{silent}");
        let healthy = Nodes::new(&[]);
        healthy.put("j", PAIR, by_mpirun()).await;
        healthy.run("j").await;
        assert_eq!(nodes.get("j", "stdout").await, healthy.get("j", "stdout").await);
    });
}

#[test]
fn a_host_that_is_unreachable_takes_time_to_say_so_and_takes_nothing() {
    on_paused_clock(async {
        let nodes = Nodes::new(&["p5-002:host-unreachable"]);
        nodes.put("j", PAIR, by_mpirun()).await;
        let begun = tokio::time::Instant::now();
        let error = nodes.call("j", "p5-002", "start", &["60"]).await.expect_err("no answer");
        assert_eq!(error.to_string(), "p5-002 cannot be reached: connection timed out");
        assert!(begun.elapsed() >= Duration::from_secs(10));
        assert!(nodes.reach.put(&node("p5-002"), "/fsx/harness/run-1/c/j/x", b"x").await.is_err());
        assert!(nodes.reach.get(&node("p5-002"), "/fsx/harness/run-1/c/j/job.sh").await.is_err());
    });
}

#[test]
fn what_these_nodes_do_not_have_is_a_loud_error() {
    on_paused_clock(async {
        let nodes = Nodes::new(&[]);
        for (host, line) in [
            (Host::Here, "sbatch --parsable /x/job.sh"),
            (node("p5-001"), "sbatch --parsable /x/job.sh"),
            (node("p5-009"), "bash /x/supervisor.sh look /x p5-009"),
            // Each node is given its own name, and by the script of that very folder.
            (node("p5-001"), "bash /x/supervisor.sh look /x p5-002"),
            (node("p5-001"), "bash /y/supervisor.sh look /x p5-001"),
        ] {
            let command = Command::new(line.split(' '), Duration::from_secs(60));
            let answer = nodes.reach.exec(&host, &command).await.expect("an answer");
            assert!(answer.complaint().contains("unknown program"), "{line}: {}", answer.complaint());
        }
        assert_eq!(nodes.reach.violations().len(), 5);
        let bench = Bench::new("p5", PAIR, 1, &[]);
        let command =
            Command::new(["bash", "/x/supervisor.sh", "look", "/x", "p5-001"], Duration::from_secs(60));
        let answer = bench.reach.exec(&node("p5-001"), &command).await.expect("an answer");
        assert!(answer.complaint().contains("unknown program"), "Slurm's nodes are not reached by ssh");
    });
}

#[test]
fn a_start_refuses_what_it_does_not_understand_and_notices_two_jobs_on_one_node() {
    on_paused_clock(async {
        let nodes = Nodes::new(&[]);
        let refused = async |expected: &str| {
            let argv = ["bash", "/fsx/harness/run-1/c/j/supervisor.sh", "start", FOLDER, "p5-001", "60"];
            let command = Command::new(argv, Duration::from_secs(60));
            let answer = nodes.reach.exec(&node("p5-001"), &command).await.expect("an answer");
            assert!(
                !answer.succeeded() && answer.complaint().contains(expected),
                "{expected}: {}",
                answer.complaint()
            );
        };
        refused("No such file or directory").await;
        let put = async |name: &str, text: &str| {
            let path = format!("{FOLDER}/{name}");
            nodes.reach.put(&node("p5-001"), &path, text.as_bytes()).await.expect("written");
        };
        put("supervisor.sh", script::SUPERVISOR_SH).await;
        refused("no such file").await;
        put("job.sh", "#!/bin/bash\necho hello\n").await;
        refused("is not a job script").await;
        let bench = Bench::new("p5", PAIR, 1, &[]);
        put("job.sh", &script::render(&bench.script("c", "j", PAIR, once("true")))).await;
        refused("is not a script for nodes reached by ssh").await;
        nodes.put("j", "p5-002", by_mpirun()).await;
        refused("is a script for other nodes than p5-001").await;
        nodes.put("j", PAIR, by_mpirun()).await;
        put("hostfile", "p5-001 slots=8\n").await;
        refused("mpirun has no host list").await;
        put("counters.sh", "echo hello").await;
        refused("differs from the harness").await;

        nodes.put("j", PAIR, once("sleep 100")).await;
        nodes.put("k", "p5-001", once("nvidia-smi -L")).await;
        nodes.start("j", "p5-001").await;
        nodes.start("k", "p5-001").await;
        let broken = nodes.reach.violations();
        assert_eq!(broken[0], "p5-001: two jobs in one node slot, j of `c` and k of `c`");
        assert_eq!(broken[1], "unknown program `nvidia-smi` in job k of `c`");
        assert!(broken[2].starts_with("neither ended nor killed on p5-001"), "{broken:?}");
    });
}

#[test]
fn a_fault_that_needs_slurm_or_ssh_is_refused_on_the_other() {
    for (text, by_ssh) in [
        ("p5-001:preempted", true),
        ("p5-001:queue-stuck", true),
        ("p5-001:connection-drops", false),
        ("p5-001:host-unreachable", false),
    ] {
        let mut inventory = inventory("p5", PAIR);
        if by_ssh {
            let start = SshStart::Processes;
            inventory.reach = ReachBy::Ssh(SshReach {
                user: None,
                port: None,
                config: None,
                start,
                heartbeat_timeout_s: 300,
            });
        }
        let made = SimulatedReach::new(&inventory, 1, faults(&[text]), BTreeMap::new());
        let message = made.err().expect(text);
        let via = if by_ssh { "ssh" } else { "slurm" };
        assert!(message.contains(&format!("does not exist on nodes reached by {via}")), "{message}");
    }
}
