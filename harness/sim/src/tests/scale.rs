//! The largest cluster of the suites, measured: not part of the usual tests, since a debug build takes its time.

use super::*;

async fn scale(nodes: usize) {
    let set = format!("p5-[001-{nodes:03}]");
    let names = nodeset::expand(&set).expect("nodes");
    let bench = Bench::new("p5", &set, 1, &[]);
    let mut bytes = 0;
    let mut fetch = async |case: &str, job: &str, files: Vec<String>| {
        for name in files {
            bytes += bench.get(case, job, &name).await.map_or(0, |file| file.len());
        }
        bench.reach.release(&format!("{}/{case}/{job}", bench.run));
    };
    let devices = nodeset::expand(P5_NICS).expect("names");
    for op in ["all_reduce_perf", "all_gather_perf"] {
        assert_eq!(bench.run(op, "all", &set, collective(op, "-b 512M -e 2G")).await, "COMPLETED");
        let mut names: Vec<String> = names.iter().map(|node| files::counters(node)).collect();
        names.push("stdout".to_owned());
        fetch(op, "all", names).await;
    }
    for (round, shift) in [(1, 0), (2, 1)] {
        for back in [false, true] {
            let mut ids = Vec::new();
            for pair in 0..nodes / 2 {
                let (a, b) = (&names[2 * pair + shift], &names[(2 * pair + 1 + shift) % nodes]);
                let (a, b) = if back { (b, a) } else { (a, b) };
                let job = format!("r{round}-{a}-{b}");
                let set = nodeset::fold(&[a, b]);
                ids.push((bench.submit("nics", &job, &set, bench.flows(a, b, "write")).await, job, a, b));
            }
            for (id, job, a, b) in ids {
                assert_eq!(bench.wait(&id).await, "COMPLETED");
                let mut wanted: Vec<String> = devices.iter().map(|device| files::flow_out(device)).collect();
                wanted.extend([files::counters(a), files::counters(b)]);
                fetch("nics", &job, wanted).await;
            }
        }
    }
    assert_eq!(bench.reach.violations(), [] as [String; 0]);
    println!("{nodes} nodes: {} MB", bytes / 1_000_000);
}

#[test]
fn a_small_cluster_runs_the_suite_of_scale() {
    on_paused_clock(scale(8));
}

#[test]
#[ignore = "takes seconds in release and a minute without"]
fn five_hundred_nodes_run_the_suite_of_scale() {
    on_paused_clock(scale(512));
}
