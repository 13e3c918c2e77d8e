//! The simulated training program: what it prints and what its reports show, healthy and with the faults that concern it.

use super::observed::{Kernel, Observed, PAIR, profiled};
use super::*;

/// Two nodes of four ranks each, a report of each rank.
async fn trained(faults: &[&str]) -> (Vec<Observed>, Vec<f64>) {
    let bench = Bench::new("p5", PAIR, 3, faults);
    let step = profiled("python3 train.py --steps 6 --layers 3", None, 4, &[]);
    assert_eq!(bench.run("c", "j", PAIR, step).await, "COMPLETED");
    let mut seen = Vec::new();
    for rank in 0..8 {
        seen.push(Observed::read(&bench, rank, ["p5-001", "p5-002"][(rank / 4) as usize]).await);
    }
    let text = bench.text("c", "j", "stdout").await;
    let steps = text.lines().filter(|line| line.starts_with("Training epoch 0, iteration "));
    let seconds = |line: &str| {
        let rest = line.split("train_step_timing in s: ").nth(1).expect("a time");
        rest.split(' ').next().and_then(|word| word.parse().ok()).expect("a number")
    };
    (seen, steps.map(seconds).collect())
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

/// How long a rank communicates, and for how much of it nothing else runs.
fn communication(seen: &Observed) -> (i64, i64) {
    let is_nccl = |kernel: &&Kernel| kernel.name.starts_with("nccl");
    let other: Vec<&Kernel> = seen.kernels.iter().filter(|kernel| !is_nccl(kernel)).collect();
    let hidden = |kernel: &Kernel| -> i64 {
        other.iter().map(|other| (kernel.end.min(other.end) - kernel.start.max(other.start)).max(0)).sum()
    };
    let all: Vec<&Kernel> = seen.kernels.iter().filter(is_nccl).collect();
    let time: i64 = all.iter().map(|kernel| kernel.end - kernel.start).sum();
    (time, time - all.iter().map(|kernel| hidden(kernel)).sum::<i64>())
}

fn sound(seen: &Observed) {
    for kernel in &seen.kernels {
        let launch = seen.launch(kernel);
        assert!(launch.start < kernel.start && kernel.start < kernel.end, "{}", kernel.name);
    }
}

#[test]
fn steps_are_printed_as_long_as_their_ranges_and_communication_hides_behind_computation() {
    on_paused_clock(async {
        let (seen, printed) = trained(&[]).await;
        seen.iter().for_each(sound);
        assert_eq!(printed.len(), 6);
        let steps: Vec<_> = seen[0].ranges.iter().filter(|range| range.name.starts_with("step ")).collect();
        assert_eq!(steps.len(), 6);
        for (range, printed) in steps.iter().zip(&printed) {
            let seconds = (range.end - range.start) as f64 * 1e-9;
            assert!((seconds - printed).abs() < 1e-4, "{seconds} {printed}");
        }
        for seen in &seen {
            let (time, exposed) = communication(seen);
            assert!(exposed * 3 < time, "{exposed} of {time} ns are exposed");
            let mut ids = seen.payload("ncclCommInitRankConfig", "NCCL communicator ID");
            ids.dedup();
            assert_eq!(ids.len(), 3, "all ranks, those of the node, those of its place on all nodes");
        }
        let ids = |rank: usize| seen[rank].payload("ncclCommInitRankConfig", "NCCL communicator ID");
        let shared = |a: usize, b: usize| ids(a).iter().zip(&ids(b)).map(|(a, b)| a == b).collect::<Vec<_>>();
        assert_eq!(shared(0, 1), [true, true, false]);
        assert_eq!(shared(0, 4), [true, false, true]);
        assert_eq!(shared(0, 5), [true, false, false]);
    });
}

#[test]
fn exposed_communication_makes_each_step_longer_by_what_was_hidden() {
    on_paused_clock(async {
        let (healthy, before) = trained(&[]).await;
        let (exposed, after) = trained(&["p5-002:comm-exposed"]).await;
        exposed.iter().for_each(sound);
        for seen in &exposed {
            let (time, alone) = communication(seen);
            assert_eq!(time, alone, "nothing runs beside it");
        }
        let longer = mean(&after) - mean(&before);
        let (time, alone) = communication(&healthy[0]);
        let hidden = (time - alone) as f64 * 1e-9 / 6.0;
        assert!(longer > 0.5 * hidden && longer < 2.0 * hidden, "{longer} s longer, {hidden} s were hidden");
        let kernels = |seen: &[Observed]| seen.iter().map(|seen| seen.kernels.len()).collect::<Vec<_>>();
        assert_eq!(kernels(&healthy), kernels(&exposed));
    });
}

#[test]
fn a_straggler_computes_longer_and_every_step_waits_for_it() {
    on_paused_clock(async {
        let (_, before) = trained(&[]).await;
        let (seen, after) = trained(&["p5-002:straggler=5@2"]).await;
        let longer = mean(&after) - mean(&before);
        assert!((longer - 0.005).abs() < 0.001, "{longer}");
        let computes = |seen: &Observed| -> i64 {
            let own = seen.kernels.iter().filter(|kernel| !kernel.name.starts_with("nccl"));
            own.map(|kernel| kernel.end - kernel.start).sum()
        };
        let slowest = (0..8).max_by_key(|rank| computes(&seen[*rank]));
        let waits_least = (0..8).min_by_key(|rank| communication(&seen[*rank]).0);
        assert_eq!((slowest, waits_least), (Some(6), Some(6)));
    });
}

#[test]
fn graphs_launch_what_a_rank_computes() {
    on_paused_clock(async {
        let (_, before) = trained(&[]).await;
        let (seen, after) = trained(&["p5-002:graph-launch"]).await;
        assert_eq!(before, after);
        seen.iter().for_each(sound);
        let nodes = |seen: &Observed| seen.kernels.iter().filter(|kernel| kernel.node.is_some()).count();
        assert_eq!((nodes(&seen[0]), nodes(&seen[4])), (0, 6 * (3 * 4 * 2 + 1)));
    });
}

#[test]
fn torchrun_has_the_processes_of_a_node_in_one_report_and_refuses_what_it_cannot_do() {
    on_paused_clock(async {
        let bench = Bench::new("p5", PAIR, 3, &[]);
        let line = "torchrun --nnodes=2 --nproc_per_node=8 train.py --steps 2";
        assert_eq!(bench.run("c", "j", PAIR, profiled(line, None, 1, &[])).await, "COMPLETED");
        let seen = Observed::read(&bench, 1, "p5-002").await;
        sound(&seen);
        let devices: std::collections::BTreeSet<i64> =
            seen.kernels.iter().map(|kernel| kernel.device).collect();
        assert_eq!(devices.len(), 8);
        assert_eq!(seen.payload("ncclCommInitRankConfig", "Rank").iter().max(), Some(&15));
        for (line, expected) in [
            ("torchrun --nproc_per_node=9 train.py", "invalid device ordinal"),
            ("torchrun --nproc_per_node=8 train.py --steps none", "argument --steps"),
        ] {
            let bench = Bench::new("p5", PAIR, 3, &[]);
            assert_eq!(bench.run("c", "j", PAIR, profiled(line, None, 1, &[])).await, "FAILED");
            let stderr = bench.text("c", "j", "stderr").await;
            assert!(stderr.contains(expected), "{stderr}");
        }
    });
}

#[test]
fn what_crosses_between_nodes_shows_in_the_counters() {
    on_paused_clock(async {
        let bench = Bench::new("p5", PAIR, 3, &[]);
        let line = "torchrun --nproc_per_node=8 train.py --steps 50";
        bench.run("c", "j", PAIR, profiled(line, None, 1, &[])).await;
        let moved =
            async |node| growth(&bench.capture("c", "j", node).await, "tx_bytes").values().sum::<u64>();
        let (one, other) = (moved("p5-001").await, moved("p5-002").await);
        // A layer's shards of eight ranks, four layers, fifty steps.
        assert_eq!((one, other), (50 * 4 * 8 * (16 << 20), one));
    });
}
