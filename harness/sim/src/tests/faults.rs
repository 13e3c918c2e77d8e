//! What each fault shows in a job over two nodes, and in the other kinds of jobs.

use super::*;
use logs::flow_log::{self, GapKind};

const PAIR: &str = "p5-[001-002]";

/// Runs a job of nccl-tests over two nodes, the second of which has the fault.
async fn pair(fault: &str) -> (Bench, String, String) {
    let bench = Bench::new("p5", PAIR, 2, &[&format!("p5-002:{fault}")]);
    let id = bench.submit("c", "j", PAIR, collective("all_reduce_perf", "-b 64M -e 8G")).await;
    let state = bench.wait(&id).await;
    (bench, id, state)
}

#[test]
fn a_healthy_job_leaves_a_whole_table() {
    on_paused_clock(async {
        let bench = Bench::new("p5", PAIR, 2, &[]);
        assert_eq!(
            bench.run("c", "j", PAIR, collective("all_reduce_perf", "-b 64M -e 8G")).await,
            "COMPLETED"
        );
        let text = bench.text("c", "j", "stdout").await;
        assert_eq!(rows(&text).len(), 8);
        assert_eq!(text.matches("#  Rank ").count(), 16);
        assert!(text.contains("# Out of bounds values : 0 OK\n"));
        assert!((last_busbw(&text) / 479.3 - 1.0).abs() < 0.05, "{}", last_busbw(&text));
        let row = rows(&text).pop().expect("a row");
        let (algbw, busbw): (f64, f64) = (row[6].parse().expect("algbw"), row[7].parse().expect("busbw"));
        assert!((busbw / algbw - 1.875).abs() < 0.001);
        assert_eq!(bench.text("c", "j", "stderr").await, "");
        let capture = bench.capture("c", "j", "p5-002").await;
        assert_eq!(capture.end.map(|end| end.reason), Some(efa_counters::Reason::Stop));
        assert_eq!(capture.devices.len(), 32);
        let grown = growth(&capture, "tx_bytes");
        let (low, high) = (grown.values().min().expect("some"), grown.values().max().expect("some"));
        assert!(*low > 0 && (*high as f64 / *low as f64) < 1.002);
    });
}

#[test]
fn a_dead_nic_is_listed_and_stands_still_and_a_missing_one_is_not_listed() {
    on_paused_clock(async {
        for (fault, devices) in [("nic-dead@rdmap113s0", 32), ("nic-missing@rdmap113s0", 31)] {
            let (bench, _, state) = pair(fault).await;
            assert_eq!(state, "COMPLETED");
            let capture = bench.capture("c", "j", "p5-002").await;
            assert_eq!(capture.devices.len(), devices, "{fault}");
            let grown = growth(&capture, "tx_bytes");
            assert!(grown.get("rdmap113s0").is_none_or(|bytes| *bytes == 0));
            let other = growth(&bench.capture("c", "j", "p5-001").await, "tx_bytes");
            assert!(other["rdmap113s0"] > 0);
            assert_eq!(grown.values().sum::<u64>(), other.values().sum::<u64>());
            assert!((last_busbw(&bench.text("c", "j", "stdout").await) / 479.3 - 1.0).abs() < 0.05);

            bench.run("f", "j", PAIR, bench.flows("p5-001", "p5-002", "write")).await;
            let gap = flow_log::read(&bench.get("f", "j", "rdmap113s0.out").await.expect("output"), "f");
            assert_eq!(gap.err().map(|gap| gap.kind), Some(GapKind::NotConnected), "{fault}");
            assert!(
                flow_log::read(&bench.get("f", "j", "rdmap79s0.out").await.expect("output"), "f").is_ok()
            );
        }
    });
}

#[test]
fn corrupt_data_is_counted_and_fails_the_program() {
    on_paused_clock(async {
        let (bench, id, state) = pair("corrupt@3").await;
        assert_eq!(state, "FAILED");
        let text = bench.text("c", "j", "stdout").await;
        assert!(rows(&text).iter().all(|row| row[8] != "0" && row[12] != "0"));
        assert!(text.contains(" FAILED\n"));
        let shown = bench.exec(&format!("scontrol --all --oneliner show job {id}")).await.stdout_text();
        assert!(shown.contains("ExitCode=1:0"), "{shown}");
        assert_eq!(bench.run("g", "j", PAIR, each_gpu()).await, "FAILED");
        assert!(bench.text("g", "j", "gpu3.p5-002.out").await.contains("FAILED"));
        assert!(bench.text("g", "j", "gpu2.p5-002.out").await.contains("0 OK"));
        assert!(bench.text("g", "j", "gpu3.p5-001.out").await.contains("0 OK"));
    });
}

#[test]
fn a_rank_that_dies_is_named_and_the_table_is_cut() {
    on_paused_clock(async {
        let (bench, id, state) = pair("rank-dies").await;
        assert_eq!(state, "FAILED");
        let text = bench.text("c", "j", "stdout").await;
        assert!(!text.contains("Out of bounds") && !text.ends_with('\n'), "{text}");
        assert!((1..8).contains(&rows(&text).len()));
        let stderr = bench.text("c", "j", "stderr").await;
        assert!(stderr.starts_with("srun: error: p5-002: task 12: Killed\n"), "{stderr}");
        let shown = bench.exec(&format!("scontrol --all --oneliner show job {id}")).await.stdout_text();
        assert!(shown.contains("ExitCode=137:0"), "{shown}");
        // The batch script goes on to its end, so the sampler's last readings are there.
        let capture = bench.capture("c", "j", "p5-002").await;
        assert_eq!(capture.end.map(|end| end.reason), Some(efa_counters::Reason::Stop));
    });
}

#[test]
fn a_hanging_job_stops_writing_ignores_an_interruption_and_ends_by_force_or_limit() {
    on_paused_clock(async {
        let bench = Bench::new("p5", PAIR, 2, &["p5-002:hang"]);
        let id = bench.submit("c", "j", PAIR, collective("all_reduce_perf", "-b 64M -e 8G")).await;
        tokio::time::sleep(Duration::from_secs(300)).await;
        assert_eq!(bench.state(&id).await.0, "RUNNING");
        bench.exec(&format!("scancel --signal=INT --full {id}")).await;
        tokio::time::sleep(Duration::from_secs(30)).await;
        assert_eq!(bench.state(&id).await.0, "RUNNING");
        bench.exec(&format!("scancel {id}")).await;
        assert_eq!(bench.wait(&id).await, "CANCELLED");
        let text = bench.text("c", "j", "stdout").await;
        assert!(!text.contains("Out of bounds") && text.ends_with('\n'), "{text}");
        let capture = bench.capture("c", "j", "p5-001").await;
        let (last, before) = (capture.readings.last(), capture.readings.iter().rev().nth(32 * 20));
        assert_eq!(last.map(|reading| &reading.values[0]), before.map(|reading| &reading.values[0]));
        assert_eq!(bench.reach.violations(), [] as [String; 0]);
        let (_, _, state) = pair("hang").await;
        assert_eq!(state, "TIMEOUT");
    });
}

#[test]
fn a_node_that_fails_is_down_for_a_while_and_fails_again() {
    on_paused_clock(async {
        let (bench, _, state) = pair("node-fails").await;
        assert_eq!(state, "NODE_FAIL");
        let sinfo = bench.exec("sinfo --noheader --Node --all --format=%N|%T|%E").await.stdout_text();
        assert!(sinfo.contains("p5-002|down*|Not responding\n"), "{sinfo}");
        let stderr = bench.text("c", "j", "stderr").await;
        assert!(stderr.contains("srun: error: Node failure on p5-002\n"), "{stderr}");
        assert_eq!(bench.capture("c", "j", "p5-002").await.end, None);
        assert!(bench.capture("c", "j", "p5-001").await.end.is_some());
        let id = bench.submit("c", "again", "p5-002", command("true")).await;
        tokio::time::sleep(Duration::from_secs(10)).await;
        let waits = ("PENDING".to_owned(), "ReqNodeNotAvail, UnavailableNodes:p5-002".to_owned());
        assert_eq!(bench.state(&id).await, waits);
        assert_eq!(bench.wait(&id).await, "NODE_FAIL");
        assert_eq!(bench.run("c", "other", "p5-001", command("true")).await, "COMPLETED");
    });
}

#[test]
fn a_job_may_be_stuck_in_the_queue_or_preempted() {
    on_paused_clock(async {
        let (bench, id, state) = pair("queue-stuck").await;
        assert_eq!(state, "PENDING");
        assert_eq!(bench.state(&id).await.1, "ReqNodeNotAvail, UnavailableNodes:p5-002");
        bench.exec(&format!("scancel {id}")).await;
        assert_eq!(bench.wait(&id).await, "CANCELLED");
        let (_, _, state) = pair("preempted").await;
        assert_eq!(state, "PREEMPTED");
    });
}

#[test]
fn outputs_may_be_missing_garbled_or_cut_by_a_full_disk() {
    on_paused_clock(async {
        let (bench, _, state) = pair("output-missing").await;
        assert_eq!(state, "COMPLETED");
        assert!(bench.get("c", "j", "stdout").await.is_none());
        assert!(bench.get("c", "j", "counters.p5-002.txt").await.is_none());
        assert!(bench.get("c", "j", "counters.p5-001.txt").await.is_some());
        bench.run("g", "j", PAIR, each_gpu()).await;
        assert!(bench.get("g", "j", "gpu0.p5-002.out").await.is_none());
        assert!(bench.get("g", "j", "gpu0.p5-001.out").await.is_some());

        let (bench, _, state) = pair("garbled").await;
        assert_eq!(state, "COMPLETED");
        assert_eq!(rows(&bench.text("c", "j", "stdout").await), [] as [Vec<String>; 0]);
        let capture = bench.get("c", "j", "counters.p5-002.txt").await.expect("a file");
        assert!(efa_counters::read(&capture, "x").is_err());
        bench.run("f", "j", PAIR, bench.flows("p5-001", "p5-002", "write")).await;
        assert!(flow_log::read(&bench.get("f", "j", "rdmap79s0.out").await.expect("a file"), "f").is_err());

        let (bench, _, state) = pair("disk-full").await;
        assert_eq!(state, "FAILED");
        let stderr = bench.text("c", "j", "stderr").await;
        assert!(stderr.contains("[p5-002] write error: No space left on device"), "{stderr}");
        assert!(stderr.contains("srun: error: p5-002: task 8: Exited with exit code 1"), "{stderr}");
        assert!(!bench.text("c", "j", "stdout").await.contains("Out of bounds"));
        assert_eq!(bench.capture("c", "j", "p5-002").await.end, None);
    });
}

#[test]
fn ranks_that_do_not_find_each_other_make_smaller_worlds() {
    on_paused_clock(async {
        let (bench, _, state) = pair("wrong-ranks").await;
        assert_eq!(state, "COMPLETED");
        let ratio = |text: &str| {
            let row = rows(text).pop().expect("a row");
            row[7].parse::<f64>().expect("busbw") / row[6].parse::<f64>().expect("algbw")
        };
        let text = bench.text("c", "j", "stdout").await;
        assert_eq!(text.matches("# Collective test concluded").count(), 2);
        assert!((ratio(&text) - 1.75).abs() < 0.01);
        assert!(
            growth(&bench.capture("c", "j", "p5-001").await, "tx_bytes").values().all(|bytes| *bytes == 0)
        );
        bench.run("c", "one", "p5-002", collective("all_reduce_perf", "-b 1G -e 1G")).await;
        assert!((ratio(&bench.text("c", "one", "stdout").await) - 1.5).abs() < 0.01);
        bench.run("g", "j", "p5-002", each_gpu()).await;
        assert!((ratio(&bench.text("g", "j", "gpu5.p5-002.out").await) - 1.0).abs() < 0.01);
        bench.run("f", "there", PAIR, bench.flows("p5-001", "p5-002", "write")).await;
        let gap = flow_log::read(&bench.get("f", "there", "rdmap79s0.out").await.expect("output"), "f");
        assert_eq!(gap.err().map(|gap| gap.kind), Some(GapKind::NoOutput));
        bench.run("f", "back", PAIR, bench.flows("p5-002", "p5-001", "write")).await;
        assert!(bench.get("f", "back", "rdmap79s0.out").await.is_none());
    });
}

#[test]
fn a_clock_that_jumps_is_seen_in_the_capture_and_nowhere_else() {
    on_paused_clock(async {
        let (bench, _, state) = pair("clock-jump").await;
        assert_eq!(state, "COMPLETED");
        for (node, ahead) in [("p5-001", 0.0), ("p5-002", 3600.0)] {
            let capture = bench.capture("c", "j", node).await;
            let end = capture.end.expect("an end").clock;
            let wall = (end.wall_us - capture.begin.wall_us) as f64 / 1e6;
            let uptime = (end.uptime_cs - capture.begin.uptime_cs) as f64 / 100.0;
            assert!((wall - uptime - ahead).abs() < 0.05, "{node}: {wall} {uptime}");
        }
        let healthy = Bench::new("p5", PAIR, 2, &[]);
        healthy.run("c", "j", PAIR, collective("all_reduce_perf", "-b 64M -e 8G")).await;
        assert_eq!(healthy.text("c", "j", "stdout").await, bench.text("c", "j", "stdout").await);
    });
}

#[test]
fn a_fault_of_a_case_holds_in_that_case_alone() {
    on_paused_clock(async {
        let mut bench = Bench::new("p5", PAIR, 2, &[]);
        let of_case = BTreeMap::from([("bad".to_owned(), faults(&["p5-002:preempted"]))]);
        bench.reach = SimulatedReach::new(&inventory("p5", PAIR), 2, Vec::new(), of_case).expect("a cluster");
        assert_eq!(bench.run("bad", "j", PAIR, command("true")).await, "PREEMPTED");
        assert_eq!(bench.run("bad", "k", "p5-001", command("true")).await, "COMPLETED");
        assert_eq!(bench.run("good", "j", PAIR, command("true")).await, "COMPLETED");
    });
}

#[test]
fn every_fault_that_ends_a_job_ends_every_kind_of_job() {
    on_paused_clock(async {
        for (fault, state) in [
            ("rank-dies", "FAILED"),
            ("hang", "TIMEOUT"),
            ("node-fails", "NODE_FAIL"),
            ("preempted", "PREEMPTED"),
            ("disk-full", "FAILED"),
        ] {
            let mut bench = Bench::new("p5", PAIR, 2, &[&format!("p5-002:{fault}")]);
            bench.minutes = 5;
            for (case, step) in [
                ("g", each_gpu()),
                ("f", bench.flows("p5-001", "p5-002", "write")),
                ("c", command("sleep 10")),
            ] {
                assert_eq!(bench.run(case, "j", PAIR, step).await, state, "{fault} {case}");
                if state == "FAILED" {
                    assert!(
                        bench.text(case, "j", "stderr").await.contains("srun: error: p5-002:"),
                        "{fault} {case}"
                    );
                }
            }
        }
    });
}
