//! The life of a job, from its submission until Slurm forgets it, and what commands answer meanwhile.

use super::*;

#[test]
fn a_job_waits_runs_completes_and_is_forgotten() {
    on_paused_clock(async {
        let bench = Bench::new("p5", "p5-[001-002]", 1, &[]);
        let id = bench.submit("c", "j", "p5-[001-002]", command("hostname")).await;
        let mut seen = vec![bench.state(&id).await];
        for _ in 0..200 {
            tokio::time::sleep(Duration::from_millis(200)).await;
            let state = bench.state(&id).await;
            if seen.last().map(|(last, _)| last) != Some(&state.0) {
                seen.push(state);
            }
        }
        let states: Vec<&str> = seen.iter().map(|(state, _)| state.as_str()).collect();
        assert_eq!(states, ["PENDING", "RUNNING", "COMPLETING", "COMPLETED"]);
        let shown = bench.exec(&format!("scontrol --all --oneliner show job {id}")).await.stdout_text();
        for part in [
            "JobState=COMPLETED",
            "Reason=None",
            "ExitCode=0:0",
            "NodeList=p5-[001-002]",
            &format!("JobId={id}"),
        ] {
            assert!(shown.contains(part), "{part}: {shown}");
        }
        assert_eq!(shown.lines().count(), 1);
        assert_eq!(bench.text("c", "j", "stdout").await, "p5-001\np5-001\np5-002\np5-002\n");
        tokio::time::sleep(Duration::from_secs(310)).await;
        let gone = bench.exec(&format!("scontrol --all --oneliner show job {id}")).await;
        assert!(gone.complaint().contains("Invalid job id specified"));
        let gone = bench
            .exec(&format!("squeue --noheader --all --states=all --format=%i|%T|%r|%N --jobs={id}"))
            .await;
        assert_eq!(gone.complaint(), "slurm_load_jobs error: Invalid job id specified");
        // What it left stays until it is collected.
        assert!(bench.get("c", "j", "stdout").await.is_some());
        bench.reach.release(&format!("{}/c/j", bench.run));
        assert!(bench.get("c", "j", "stdout").await.is_none());
        assert!(bench.get("c", "j", "job.sh").await.is_none());
        assert_eq!(bench.reach.violations(), [] as [String; 0]);
    });
}

#[test]
fn a_node_belongs_to_one_job_at_a_time_and_asking_for_two_is_noticed() {
    on_paused_clock(async {
        let bench = Bench::new("p5", "p5-[001-003]", 1, &[]);
        let first = bench.submit("c", "a", "p5-[001-002]", command("sleep 20")).await;
        let second = bench.submit("c", "b", "p5-[002-003]", command("sleep 20")).await;
        tokio::time::sleep(Duration::from_secs(10)).await;
        assert_eq!(bench.state(&first).await.0, "RUNNING");
        assert_eq!(bench.state(&second).await, ("PENDING".to_owned(), "Resources".to_owned()));
        let sinfo = bench.exec("sinfo --noheader --Node --all --format=%N|%T|%E").await.stdout_text();
        assert_eq!(sinfo, "p5-001|allocated|none\np5-002|allocated|none\np5-003|idle|none\n");
        let broken = bench.reach.violations();
        assert_eq!(broken.len(), 3, "{broken:?}");
        assert!(broken[0].starts_with("p5-002: two jobs in one node slot"), "{broken:?}");
        assert!(broken[1].starts_with("job neither ended nor cancelled"), "{broken:?}");
        assert_eq!(bench.wait(&second).await, "COMPLETED");
        assert_eq!(bench.reach.violations().len(), 1);
    });
}

#[test]
fn jobs_end_when_they_are_cancelled_interrupted_or_out_of_time() {
    on_paused_clock(async {
        let mut bench = Bench::new("p5", "p5-[001-003]", 1, &[]);
        let id = bench.submit("c", "waiting", "p5-001", command("sleep 100")).await;
        assert!(bench.exec(&format!("scancel {id}")).await.succeeded());
        assert_eq!(bench.state(&id).await.0, "CANCELLED");
        assert!(bench.get("c", "waiting", "stdout").await.is_none());

        let id = bench.submit("c", "running", "p5-001", command("sleep 100")).await;
        tokio::time::sleep(Duration::from_secs(20)).await;
        assert!(bench.exec(&format!("scancel {id}")).await.succeeded());
        assert_eq!(bench.wait(&id).await, "CANCELLED");
        assert!(bench.exec(&format!("scancel {id}")).await.succeeded());
        let capture = bench.capture("c", "running", "p5-001").await;
        assert_eq!(capture.end.map(|end| end.reason), Some(efa_counters::Reason::Signal));

        let id = bench.submit("c", "asked", "p5-001", command("sleep 100")).await;
        tokio::time::sleep(Duration::from_secs(20)).await;
        assert!(bench.exec(&format!("scancel --signal=INT --full {id}")).await.succeeded());
        assert_eq!(bench.wait(&id).await, "FAILED");
        let shown = bench.exec(&format!("scontrol --all --oneliner show job {id}")).await.stdout_text();
        assert!(shown.contains("ExitCode=0:2"), "{shown}");

        bench.minutes = 1;
        let id = bench.submit("c", "slow", "p5-002", command("sleep 100")).await;
        assert_eq!(bench.wait(&id).await, "TIMEOUT");
        assert!(bench.text("c", "slow", "batch.err").await.contains("DUE TO TIME LIMIT"));
        assert!(!bench.exec("scancel 1").await.succeeded());
        assert_eq!(bench.reach.violations(), [] as [String; 0]);
    });
}

#[test]
fn exit_codes_and_outputs_of_commands_are_real() {
    on_paused_clock(async {
        let bench = Bench::new("p5", "p5-[001-002]", 1, &[]);
        for (line, state, code, stdout) in [
            ("true", "COMPLETED", "0:0", ""),
            ("/bin/false", "FAILED", "1:0", ""),
            ("echo a b", "COMPLETED", "0:0", "a b\na b\n"),
            ("sleep x", "FAILED", "1:0", ""),
        ] {
            let id = bench.submit("c", "j", "p5-002", command(line)).await;
            assert_eq!(bench.wait(&id).await, state, "{line}");
            let shown = bench.exec(&format!("scontrol --all --oneliner show job {id}")).await.stdout_text();
            assert!(shown.contains(&format!("ExitCode={code}")), "{line}: {shown}");
            assert_eq!(bench.text("c", "j", "stdout").await, stdout, "{line}");
        }
        assert_eq!(bench.reach.violations(), [] as [String; 0]);
    });
}

#[test]
fn what_this_world_does_not_have_is_a_loud_error() {
    on_paused_clock(async {
        let bench = Bench::new("p5", "p5-[001-002]", 1, &[]);
        let answer = bench.exec("sacct -j 7").await;
        assert_eq!(answer.status, cluster::reach::Status::Code(127));
        assert_eq!(answer.complaint(), "simulated cluster: unknown program: `sacct -j 7`");
        assert_eq!(bench.run("c", "j", "p5-001", command("nvidia-smi -L")).await, "FAILED");
        let broken = bench.reach.violations();
        assert_eq!(broken, ["unknown program: `sacct -j 7`", "unknown program `nvidia-smi` in job j of `c`"]);
    });
}

#[test]
fn sbatch_refuses_what_it_does_not_understand() {
    on_paused_clock(async {
        let bench = Bench::new("p5", "p5-[001-002]", 1, &[]);
        let folder = format!("{}/c/j", bench.run);
        let sbatch = format!("sbatch --parsable {folder}/job.sh");
        assert!(bench.exec(&sbatch).await.complaint().contains("Unable to open file"));
        let good = script::render(&bench.script("c", "j", "p5-001", command("true")));
        for (text, expected) in [
            (good.replace("status=$?", "status=0"), "line"),
            (good.replace("p5-001", "p5-009"), "Invalid node name specified: p5-009"),
            (good.clone(), "counters.sh"),
        ] {
            bench.put(&format!("{folder}/job.sh"), &text).await;
            let answer = bench.exec(&sbatch).await;
            assert!(
                !answer.succeeded() && answer.complaint().contains(expected),
                "{expected}: {}",
                answer.complaint()
            );
        }
        bench.put(&format!("{folder}/counters.sh"), "echo hello").await;
        assert!(bench.exec(&sbatch).await.complaint().contains("differs from the harness"));
    });
}

/// Faults that do not exist on this cluster, with a part of their messages.
const REFUSED: [(&str, &str); 6] = [
    ("p5-0O1:hang", "`p5-0O1`; did you mean `p5-001`?"),
    ("zz:hang", "`zz`; known: p5-[001-002]"),
    ("p5-001:nic-dead@rdmap79", "`rdmap79`; did you mean `rdmap79s0`?"),
    ("p5-001:corrupt@8", "`8`; the last is `7`"),
    ("p5-001:host-unreachable", "on nodes reached by slurm"),
    ("p5-001:link-slow=0.5@p5-002", "link-slow needs two nodes of different `[groups]`"),
];

fn refusal(text: &str) -> String {
    let made = SimulatedReach::new(&inventory("p5", "p5-[001-002]"), 1, faults(&[text]), BTreeMap::new());
    made.err().expect(text).to_string()
}

#[test]
fn messages() {
    let lines: Vec<String> = REFUSED.iter().map(|(text, _)| refusal(text)).collect();
    insta::assert_snapshot!(lines.join("\n"));
}

#[test]
fn a_fault_of_what_is_not_there_names_the_nearest() {
    for (text, expected) in REFUSED {
        let message = refusal(text);
        assert!(message.contains(expected), "{text}: {message}");
    }
}
