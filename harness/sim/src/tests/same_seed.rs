//! One seed, one world: what a job leaves depends on the seed, its case and its name, and on nothing else.

use super::*;

async fn everything(seed: u64, run: &str, sleeps: bool) -> Vec<(String, Vec<u8>)> {
    let mut bench = Bench::new("p5", "p5-[001-002]", seed, &[]);
    bench.run = run.to_owned();
    if sleeps {
        bench.run("other", "job", "p5-001", command("sleep 33")).await;
    }
    bench.run("c", "j", "p5-[001-002]", collective("all_reduce_perf", "-b 8 -e 1G")).await;
    bench.run("f", "j", "p5-[001-002]", bench.flows("p5-001", "p5-002", "write")).await;
    bench.run("g", "j", "p5-002", each_gpu()).await;
    let mut all = Vec::new();
    for (case, name) in [
        ("c", "stdout"),
        ("c", "counters.p5-002.txt"),
        ("f", "rdmap79s0.out"),
        ("f", "counters.p5-001.txt"),
        ("g", "gpu3.p5-002.out"),
    ] {
        all.push((format!("{case}/{name}"), bench.get(case, "j", name).await.expect(name)));
    }
    all
}

#[test]
fn the_same_seed_gives_the_same_bytes_whatever_the_run_is_called() {
    on_paused_clock(async {
        let first = everything(4, "/fsx/harness/run-1", false).await;
        assert_eq!(first, everything(4, "/fsx/harness/run-2-longer", false).await);
        for ((name, one), (_, other)) in first.iter().zip(everything(5, "/fsx/harness/run-1", false).await) {
            assert_ne!(*one, other, "{name}");
        }
    });
}

#[test]
fn other_jobs_before_it_change_no_measurement_of_a_job() {
    on_paused_clock(async {
        let (first, later) =
            (everything(4, "/fsx/harness/r", false).await, everything(4, "/fsx/harness/r", true).await);
        for ((name, one), (_, other)) in first.iter().zip(later) {
            // Captures carry the time of day, and totals since the node's start.
            if !name.contains("counters") {
                assert_eq!(*one, other, "{name}");
            }
        }
    });
}

#[test]
fn simulated_time_is_the_seeds_date_and_the_clock_of_the_run() {
    on_paused_clock(async {
        let bench = Bench::new("p5", "p5-001", 9, &[]);
        tokio::time::sleep(Duration::from_secs(7200)).await;
        let elapsed = bench.reach.unix_now() - SimulatedReach::epoch_unix_s(9) as f64;
        assert!((elapsed - 7200.0).abs() < 0.01, "{elapsed}");
    });
}
