//! What must hold among the tables of the profiled ranks of a job of nccl-tests, and between them and what it printed:
//! a kernel is launched before it runs, all ranks of a collective end together, and what is timed is what was shown.

use super::observed::{Kernel, Observed, PAIR, TABLES, profiled};
use super::*;

/// A program of nccl-tests under nsys, on every rank.
fn nccl_tests(line: &str, tasks_per_node: u32, words: &[&str]) -> Step {
    profiled(&format!("/opt/nccl-tests/build/{line}"), Some("pmix"), tasks_per_node, words)
}

/// Runs the program on two nodes; the reports of all ranks, and what was printed.
async fn ran(bench: &Bench, line: &str, tasks: u32, words: &[&str]) -> (Vec<Observed>, Vec<Vec<String>>) {
    assert_eq!(bench.run("c", "j", PAIR, nccl_tests(line, tasks, words)).await, "COMPLETED");
    let mut seen = Vec::new();
    for rank in 0..2 * tasks {
        seen.push(Observed::read(bench, rank, ["p5-001", "p5-002"][(rank / tasks) as usize]).await);
    }
    let printed = rows(&bench.text("c", "j", "stdout").await);
    (seen, printed)
}

/// How many kernels of NCCL each round has: warm-up, and for each half of a row those of the call by which ranks meet,
/// those that are timed, and those of the call that is checked.
struct Plan {
    warmup: usize,
    met: usize,
    timed: usize,
    checked: usize,
}

/// For each row and half the kernels that were timed.
fn timed<'a>(kernels: &[&'a Kernel], plan: &Plan, rows: usize) -> Vec<Vec<&'a Kernel>> {
    let half = plan.met + plan.timed + plan.checked;
    assert_eq!(kernels.len(), plan.warmup + rows * 2 * half, "kernels");
    let halves = kernels[plan.warmup..].chunks(half);
    halves.map(|kernels| kernels[plan.met..plan.met + plan.timed].to_vec()).collect()
}

/// From the start of the first call that launched any of them to the end of the last, for each of so many calls.
fn time_us(seen: &Observed, kernels: &[&Kernel], calls: f64) -> f64 {
    let from = kernels.iter().map(|kernel| seen.launch(kernel).start).min().expect("a kernel");
    let to = kernels.iter().map(|kernel| kernel.end).max().expect("a kernel");
    (to - from) as f64 / 1e3 / calls
}

/// Those that need no group.
const SINGLE: [&str; 5] =
    ["ncclAllReduce", "ncclAllGather", "ncclReduceScatter", "ncclBroadcast", "ncclReduce"];

fn sound(seen: &Observed) {
    let mut free: BTreeMap<(i64, i64), i64> = BTreeMap::new();
    for kernel in &seen.kernels {
        let launch = seen.launch(kernel);
        assert!(launch.start < kernel.start && kernel.start < kernel.end, "{}", kernel.name);
        let before = free.insert((kernel.device, kernel.stream), kernel.end);
        assert!(before.is_none_or(|before| before < kernel.start), "two kernels at once: {}", kernel.name);
        if kernel.name.starts_with("nccl") && kernel.node.is_none() {
            let around =
                seen.ranges.iter().filter(|range| range.start <= launch.start && launch.end <= range.end);
            let outer = around.min_by_key(|range| range.start).expect("a range round the launch");
            assert!(outer.name == "ncclGroupEnd" || SINGLE.contains(&outer.name.as_str()), "{}", outer.name);
        }
    }
}

/// The ends of all ranks' kernels differ by a line over time, for their clocks, and by little else.
fn end_together(seen: &[Observed]) {
    let ends = |seen: &Observed| -> Vec<f64> {
        // Of several GPUs the last one; each step ends on all of them at once.
        let device = seen.collectives()[0].device;
        let of_one = seen.collectives().into_iter().filter(|kernel| kernel.device == device);
        of_one.map(|kernel| (seen.utc_ns + kernel.end) as f64).collect()
    };
    let first = ends(&seen[0]);
    for other in &seen[1..] {
        let apart: Vec<f64> = ends(other).iter().zip(&first).map(|(a, b)| a - b).collect();
        let at: Vec<f64> = first.iter().map(|end| end - first[0]).collect();
        let (slope, offset) = line(&at, &apart);
        let worst = at.iter().zip(&apart).map(|(at, apart)| (apart - offset - slope * at).abs());
        let worst = worst.fold(0.0, f64::max);
        assert!(worst < 2_000.0, "{}: {worst} ns off the line", other.host);
        if other.host == seen[0].host {
            assert!(offset.abs() < 2_000.0, "one host, one clock: {offset}");
        }
    }
}

fn line(x: &[f64], y: &[f64]) -> (f64, f64) {
    let n = x.len() as f64;
    let (mx, my) = (x.iter().sum::<f64>() / n, y.iter().sum::<f64>() / n);
    let cross: f64 = x.iter().zip(y).map(|(x, y)| (x - mx) * (y - my)).sum();
    let slope = cross / x.iter().map(|x| (x - mx) * (x - mx)).sum::<f64>();
    (slope, my - slope * mx)
}

fn agrees(seen: &[Observed], printed: &[Vec<String>], plan: &Plan, calls: f64) {
    let of_rank: Vec<Vec<Vec<&Kernel>>> =
        seen.iter().map(|seen| timed(&seen.collectives(), plan, printed.len())).collect();
    for (half, shown) in printed.iter().flat_map(|row| [&row[5], &row[9]]).enumerate() {
        let shown: f64 = shown.parse().expect("a time");
        let all = seen.iter().zip(&of_rank).map(|(seen, timed)| time_us(seen, &timed[half], calls));
        let mean = all.sum::<f64>() / seen.len() as f64;
        assert!((mean / shown - 1.0).abs() < 0.01, "half {half}: {mean} us, printed {shown}");
    }
}

#[test]
fn every_operation_leaves_its_calls_and_kernels_and_they_take_what_is_printed() {
    on_paused_clock(async {
        for (op, function, steps) in [
            ("all_reduce", "ncclAllReduce", 1),
            ("all_gather", "ncclAllGather", 1),
            ("reduce_scatter", "ncclReduceScatter", 1),
            ("broadcast", "ncclBroadcast", 1),
            ("reduce", "ncclReduce", 1),
            ("alltoall", "ncclSend", 1),
            ("gather", "ncclSend", 1),
            ("scatter", "ncclRecv", 1),
            ("sendrecv", "ncclSend", 1),
            ("hypercube", "ncclSend", 2),
        ] {
            let bench = Bench::new("p5", PAIR, 11, &[]);
            let (seen, printed) =
                ran(&bench, &format!("{op}_perf -b 1K -e 4M -f 16 -n 5 -w 2"), 2, &[]).await;
            assert_eq!(printed.len(), 4);
            seen.iter().for_each(sound);
            end_together(&seen);
            // From 1 KiB to 4 MiB by doubling: 13 sizes.
            let plan = Plan { warmup: 2 * 13 * steps, met: steps, timed: 5 * steps, checked: steps };
            agrees(&seen, &printed, &plan, 5.0);
            for seen in &seen {
                let calls = seen.ranges.iter().filter(|range| range.name == function).count();
                let of_each = match op {
                    "alltoall" => 4,
                    _ => steps,
                };
                assert_eq!(calls, (2 * 13 + 4 * 2 * (1 + 5 + 1)) * of_each, "{op}");
            }
        }
    });
}

const SHORT: &str = "all_reduce_perf -b 1M -e 4M -f 2 -n 10 -w 1";
/// Three sizes of warm-up.
const SHORT_PLAN: Plan = Plan { warmup: 3, met: 1, timed: 10, checked: 1 };

#[test]
fn any_seed_and_shape_of_program_holds_together() {
    on_paused_clock(async {
        for seed in 1..=12 {
            let bench = Bench::new("p5", PAIR, seed, &[]);
            let (seen, printed) = ran(&bench, SHORT, 4, &[]).await;
            seen.iter().for_each(sound);
            end_together(&seen);
            agrees(&seen, &printed, &SHORT_PLAN, 10.0);
        }
        for (more, tasks, kernels, plan, calls) in [
            ("-c 0", 2, 1, Plan { checked: 0, ..SHORT_PLAN }, 10.0),
            ("-g 4", 2, 4, Plan { warmup: 12, met: 4, timed: 40, checked: 4 }, 10.0),
            ("-m 3", 2, 1, SHORT_PLAN, 30.0),
            ("-G 2", 2, 1, Plan { timed: 20, ..SHORT_PLAN }, 20.0),
        ] {
            let bench = Bench::new("p5", PAIR, 3, &[]);
            let (seen, printed) = ran(&bench, &format!("{SHORT} {more}"), tasks, &[]).await;
            seen.iter().for_each(sound);
            end_together(&seen);
            agrees(&seen, &printed, &plan, calls);
            let devices: std::collections::BTreeSet<i64> =
                seen[0].collectives().iter().map(|kernel| kernel.device).collect();
            assert_eq!(devices.len(), kernels, "{more}");
        }
    });
}

#[test]
fn ranks_of_one_world_share_a_communicator_and_jobs_do_not() {
    on_paused_clock(async {
        let id = "NCCL communicator ID";
        let of = async |seed| {
            let bench = Bench::new("p5", PAIR, seed, &[]);
            let (seen, _) = ran(&bench, SHORT, 2, &[]).await;
            for (rank, seen) in seen.iter().enumerate() {
                assert_eq!(seen.payload("ncclCommInitRank", "Rank"), [rank as u64]);
                assert_eq!(seen.payload("ncclCommInitRank", "No. of ranks"), [4]);
                assert_eq!(seen.payload("ncclCommInitRank", id), seen.payload("ncclCommDestroy", id));
            }
            let mut ids: Vec<u64> = seen.iter().flat_map(|seen| seen.payload("ncclAllReduce", id)).collect();
            ids.dedup();
            assert_eq!(ids.len(), 1);
            ids[0]
        };
        // Of clusters whose exports have payloads as JSON.
        assert_ne!(of(3).await, of(4).await);
    });
}

#[test]
fn sizes_are_those_of_one_call() {
    on_paused_clock(async {
        for (op, function, bytes) in [
            ("all_reduce", "ncclAllReduce", 4 << 20),
            ("all_gather", "ncclAllGather", 1 << 20),
            ("reduce_scatter", "ncclReduceScatter", 1 << 20),
            ("alltoall", "ncclRecv", 1 << 20),
            ("sendrecv", "ncclSend", 4 << 20),
        ] {
            let bench = Bench::new("p5", PAIR, 3, &[]);
            let (seen, _) = ran(&bench, &format!("{op}_perf -b 4M -e 4M -n 2 -w 0"), 2, &[]).await;
            let sizes = seen[1].payload(function, "Message size [bytes]");
            assert!(!sizes.is_empty() && sizes.iter().all(|size| *size == bytes), "{op}: {sizes:?}");
        }
    });
}

#[test]
fn graphs_launch_the_kernels_that_are_timed_and_ranges_stand_where_they_were_recorded() {
    on_paused_clock(async {
        let bench = Bench::new("p5", PAIR, 3, &["p5-002:graph-launch"]);
        let (seen, printed) = ran(&bench, SHORT, 2, &[]).await;
        let healthy = Bench::new("p5", PAIR, 3, &[]);
        let (_, as_ever) = ran(&healthy, SHORT, 2, &[]).await;
        assert_eq!(printed, as_ever, "it changes no time");
        seen.iter().for_each(sound);
        end_together(&seen);
        agrees(&seen, &printed, &SHORT_PLAN, 10.0);
        for (seen, by_graphs) in seen.iter().zip([false, false, true, true]) {
            let launches = seen.calls.iter().filter(|call| call.name.starts_with("cudaGraphLaunch"));
            // Of each half of three rows: what is timed, and what is checked.
            assert_eq!(launches.count(), if by_graphs { 12 } else { 0 });
            let nodes = seen.kernels.iter().filter(|kernel| kernel.node.is_some());
            assert_eq!(nodes.count(), if by_graphs { 6 * 11 } else { 0 });
            assert_eq!(seen.ranges.iter().filter(|range| range.name == "ncclAllReduce").count(), 3 + 6 * 12);
        }
        let (seen, _) = ran(&bench, SHORT, 2, &["--cuda-graph-trace=graph"]).await;
        assert_eq!((seen[2].graphs, seen[2].collectives().len()), (12, 3 + 6));
        assert_eq!((seen[1].graphs, seen[1].collectives().len()), (0, 3 + 6 * 12));
    });
}

#[test]
fn a_straggler_begins_late_and_the_others_wait_for_it_within_their_kernels() {
    on_paused_clock(async {
        let bench = Bench::new("p5", PAIR, 3, &["p5-002:straggler=2@1"]);
        let (seen, printed) = ran(&bench, SHORT, 2, &[]).await;
        seen.iter().for_each(sound);
        end_together(&seen);
        agrees(&seen, &printed, &SHORT_PLAN, 10.0);
        let (_, healthy) = ran(&Bench::new("p5", PAIR, 3, &[]), SHORT, 2, &[]).await;
        for (late, healthy) in printed.iter().zip(&healthy) {
            let (late, healthy): (f64, f64) = (late[5].parse().expect("us"), healthy[5].parse().expect("us"));
            assert!((late - healthy - 2000.0).abs() < 1.0, "{late} {healthy}");
        }
        let median = |seen: &Observed| {
            let mut ns: Vec<i64> =
                seen.collectives().iter().map(|kernel| kernel.end - kernel.start).collect();
            ns.sort_unstable();
            ns[ns.len() / 2]
        };
        for waiting in &seen[..3] {
            let more = median(waiting) - median(&seen[3]);
            assert!((more - 2_000_000).abs() < 20_000, "{more}");
        }
        // Alone it keeps no other rank waiting.
        let bench = Bench::new("p5", PAIR, 3, &["p5-002:straggler=2@1"]);
        bench.run("c", "each", PAIR, each_gpu()).await;
        let healthy = Bench::new("p5", PAIR, 3, &[]);
        healthy.run("c", "each", PAIR, each_gpu()).await;
        let name = files::gpu_out(1, "p5-002");
        assert_eq!(bench.text("c", "each", &name).await, healthy.text("c", "each", &name).await);
    });
}

#[test]
fn clocks_of_hosts_are_apart_and_a_fault_sets_one_further_off() {
    on_paused_clock(async {
        let apart = async |fault: &[&str]| {
            let bench = Bench::new("p5", PAIR, 3, fault);
            let (seen, printed) = ran(&bench, "all_reduce_perf -b 1G -e 8G -f 2 -n 20", 1, &[]).await;
            end_together(&seen);
            let ends: Vec<Vec<f64>> = (seen.iter())
                .map(|seen| {
                    seen.collectives().iter().map(|kernel| (seen.utc_ns + kernel.end) as f64).collect()
                })
                .collect();
            let at: Vec<f64> = ends[0].iter().map(|end| end - ends[0][0]).collect();
            let apart: Vec<f64> = ends[1].iter().zip(&ends[0]).map(|(a, b)| a - b).collect();
            let (drift, offset) = line(&at, &apart);
            (offset / 1e6, drift * 1e6, printed)
        };
        let (offset, drift, printed) = apart(&[]).await;
        assert!(offset.abs() < 4.1 && drift.abs() < 6.0, "{offset} ms, {drift} ppm");
        let (further, same, as_ever) = apart(&["p5-002:clock-offset=-30"]).await;
        assert!(
            (further - offset + 30.0).abs() < 0.01 && (same - drift).abs() < 0.1,
            "{further} ms, {same} ppm"
        );
        let (_, faster, _) = apart(&["p5-002:clock-drift=40"]).await;
        assert!((faster - drift - 40.0).abs() < 0.1, "{faster} ppm");
        assert_eq!(printed, as_ever, "clocks change no time");
    });
}

#[test]
fn the_same_seed_leaves_the_same_tables() {
    on_paused_clock(async {
        let tables = async |seed| {
            let bench = Bench::new("p5", PAIR, seed, &[]);
            bench.run("c", "j", PAIR, nccl_tests(SHORT, 2, &[])).await;
            let mut all = Vec::new();
            for table in TABLES {
                let name = format!("c.j.step0.try0.rank3.p5-002_pqtdir/{table}.parquet");
                all.push(bench.get("c", "j", &name).await);
            }
            all
        };
        assert_eq!(tables(5).await, tables(5).await);
        assert_ne!(tables(5).await, tables(6).await);
    });
}
