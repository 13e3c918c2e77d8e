//! The law of the simulated cluster: a collective runs at the pace of its slowest NIC or GPU, on all nodes; and no byte
//! is lost on the way.

use super::*;
use crate::active_faults::ActiveFaults;
use crate::cluster::Cluster;
use crate::{flows, work};
use logs::flow_log::FlowPath;

const NODES: [&str; 4] = ["p5-001", "p5-002", "p5-003", "p5-004"];

async fn measured(texts: &[&str]) -> (f64, Vec<Capture>) {
    let bench = Bench::new("p5", "p5-[001-004]", 3, texts);
    let step = collective("all_gather_perf", "-b 8G -e 8G");
    assert_eq!(bench.run("c", "all", "p5-[001-004]", step).await, "COMPLETED");
    let mut captures = Vec::new();
    for node in NODES {
        captures.push(bench.capture("c", "all", node).await);
    }
    (last_busbw(&bench.text("c", "all", "stdout").await), captures)
}

#[test]
fn one_slow_nic_lowers_the_rate_of_every_nic_in_the_job_alike_and_moves_no_byte_less() {
    on_paused_clock(async {
        let (healthy, captures) = measured(&[]).await;
        let (slowed, slowed_captures) = measured(&["p5-003:nic-slow=0.4@rdmap113s0"]).await;
        // By the model: a ring's node sends busbw, each NIC a 32nd of it, and the slow one has 0.4 of 0.955 of 12.5.
        let expected = 0.4 * 0.955 * 12.5 * 32.0;
        assert!((slowed / expected - 1.0).abs() < 0.01, "{slowed} GB/s, expected {expected}");
        assert!(healthy > 300.0, "{healthy}");
        let devices = nodeset::expand(P5_NICS).expect("names");
        for (before, after) in captures.iter().zip(&slowed_captures) {
            for device in &devices {
                let rate = |capture| peak_gb_s(capture, device, "rdma_write_bytes");
                let fell = rate(after) / rate(before) / (slowed / healthy);
                assert!((fell - 1.0).abs() < 0.02, "{} {device}: {fell}", before.node);
            }
            assert_eq!(growth(before, "tx_bytes"), growth(after, "tx_bytes"));
        }
    });
}

#[test]
fn a_nic_that_is_only_a_little_slow_is_not_felt_where_it_has_room() {
    on_paused_clock(async {
        let run = async |texts: &[&str]| {
            let bench = Bench::new("p5", "p5-[001-002]", 3, texts);
            bench.run("c", "j", "p5-[001-002]", collective("all_reduce_perf", "-b 8G -e 8G")).await;
            last_busbw(&bench.text("c", "j", "stdout").await)
        };
        // All_reduce on two nodes takes two thirds of a NIC.
        assert_eq!(run(&[]).await, run(&["p5-001:nic-slow=0.9@rdmap79s0"]).await);
        assert!(run(&["p5-001:nic-slow=0.5@rdmap79s0"]).await < 0.8 * run(&[]).await);
    });
}

#[test]
fn a_slow_gpu_slows_the_collectives_that_include_it_and_its_own_run_alone() {
    on_paused_clock(async {
        let run = async |texts: &[&str], nodes: &str| {
            let bench = Bench::new("p5", "p5-[001-002]", 3, texts);
            bench.run("c", "j", nodes, collective("all_reduce_perf", "-b 8G -e 8G")).await;
            last_busbw(&bench.text("c", "j", "stdout").await)
        };
        let fault = ["p5-002:gpu-slow=0.7@3"];
        for nodes in ["p5-[001-002]", "p5-002"] {
            let ratio = run(&fault, nodes).await / run(&[], nodes).await;
            assert!((ratio - 0.7).abs() < 0.01, "{nodes}: {ratio}");
        }
        assert_eq!(run(&fault, "p5-001").await, run(&[], "p5-001").await);
        let bench = Bench::new("p5", "p5-[001-002]", 3, &fault);
        assert_eq!(bench.run("c", "each", "p5-[001-002]", each_gpu()).await, "COMPLETED");
        for (node, gpu, low, high) in
            [("p5-002", 3, 860.0, 960.0), ("p5-002", 4, 1240.0, 1360.0), ("p5-001", 3, 1240.0, 1360.0)]
        {
            let text = bench.text("c", "each", &files::gpu_out(gpu, node)).await;
            let row = rows(&text).pop().expect("a row");
            let algbw: f64 = row[6].parse().expect("a number");
            assert!((low..high).contains(&algbw), "{node} gpu{gpu}: {algbw}");
            assert_eq!(row[7], "0.00");
        }
    });
}

#[test]
fn what_is_sent_is_received_to_the_byte_in_every_operation_and_on_every_device() {
    on_paused_clock(async {
        for (instance, op) in
            [("p5", "all_reduce"), ("p5", "broadcast"), ("p4de", "alltoall"), ("p4de", "scatter")]
        {
            let bench = Bench::new(
                instance,
                "n[1-3]",
                5,
                &["n2:nic-dead@rdmap144s27"][usize::from(instance == "p5")..],
            );
            let step = collective(&format!("{op}_perf"), "-b 1M -e 1G");
            assert_eq!(bench.run("c", "j", "n[1-3]", step).await, "COMPLETED");
            let mut sums: BTreeMap<&str, u64> = BTreeMap::new();
            for node in ["n1", "n2", "n3"] {
                let capture = bench.capture("c", "j", node).await;
                for counter in [
                    "tx_bytes",
                    "rx_bytes",
                    "send_bytes",
                    "recv_bytes",
                    "rdma_read_bytes",
                    "rdma_read_resp_bytes",
                    "rdma_write_bytes",
                    "rdma_write_recv_bytes",
                ] {
                    *sums.entry(counter).or_default() += growth(&capture, counter).values().sum::<u64>();
                }
                for counter in ["retrans_pkts", "rx_drops", "retrans_timeout_events"] {
                    assert!(growth(&capture, counter).values().all(|grown| *grown == 0));
                }
                identities_hold(&capture);
            }
            assert!(sums["tx_bytes"] > 0, "{op}");
            for (sent, received) in [
                ("tx_bytes", "rx_bytes"),
                ("send_bytes", "recv_bytes"),
                ("rdma_read_resp_bytes", "rdma_read_bytes"),
                ("rdma_write_bytes", "rdma_write_recv_bytes"),
            ] {
                assert_eq!(sums[sent], sums[received], "{instance} {op}: {sent}");
            }
            let (moves, still) = match instance {
                "p5" => ("rdma_write_bytes", "rdma_read_bytes"),
                _ => ("rdma_read_bytes", "rdma_write_bytes"),
            };
            assert!(sums[moves] > 100 * sums["send_bytes"] && sums[still] == 0, "{instance} {op}: {sums:?}");
        }
    });
}

/// Of every device in every reading.
fn identities_hold(capture: &Capture) {
    let column = |name: &str| capture.columns.iter().position(|column| column == name).expect("a column");
    for reading in &capture.readings {
        let of = |name: &str| reading.values[column(name)].expect("a value");
        assert_eq!(of("tx_bytes"), of("send_bytes") + of("rdma_read_resp_bytes") + of("rdma_write_bytes"));
        assert_eq!(of("rx_bytes"), of("recv_bytes") + of("rdma_read_bytes") + of("rdma_write_recv_bytes"));
    }
}

#[test]
fn one_node_moves_nothing_between_nodes_and_a_lifetime_total_never_falls() {
    on_paused_clock(async {
        let bench = Bench::new("p5", "p5-[001-002]", 5, &[]);
        bench.run("c", "one", "p5-001", collective("all_reduce_perf", "-b 1G -e 1G")).await;
        let one = bench.capture("c", "one", "p5-001").await;
        assert!(growth(&one, "tx_bytes").values().all(|grown| *grown == 0));
        bench.run("c", "two", "p5-[001-002]", collective("all_reduce_perf", "-b 1G -e 8G")).await;
        bench.run("c", "three", "p5-001", command("true")).await;
        let totals = async |job: &str, last: bool| {
            let capture = bench.capture("c", job, "p5-001").await;
            let reading = if last { capture.readings.last() } else { capture.readings.first() };
            reading.and_then(|reading| reading.values[0]).expect("a total")
        };
        let (a, b) = (totals("one", true).await, totals("two", false).await);
        let (c, d) = (totals("two", true).await, totals("three", false).await);
        // First and last readings are of the first and the last device; each alone never falls.
        let two = bench.capture("c", "two", "p5-001").await;
        let three = bench.capture("c", "three", "p5-001").await;
        for device in 0..two.devices.len() {
            let last =
                two.readings.iter().rfind(|reading| reading.device == device).and_then(|r| r.values[0]);
            let next =
                three.readings.iter().find(|reading| reading.device == device).and_then(|r| r.values[0]);
            assert!(last <= next, "{device}");
        }
        assert!(a > 0 && b > 0 && c > 0 && d > 0);
    });
}

#[test]
fn flows_of_host_memory_take_turns_at_their_switchs_link_to_the_cpu() {
    on_paused_clock(async {
        let mut bench = Bench::new("p5", "p5-[001-002]", 5, &["p5-002:nic-dead@rdmap79s0"]);
        let mut step = bench.flows("p5-001", "p5-002", "write");
        if let Step::Flows(flows) = &mut step {
            flows.memory = FlowMemory::Host;
        }
        bench.minutes = 60;
        assert_eq!(bench.run("c", "j", "p5-[001-002]", step).await, "COMPLETED");
        for (at, device) in nodeset::expand(P5_NICS).expect("names").iter().enumerate() {
            let text = bench.get("c", "j", &files::flow_out(device)).await.expect("output");
            if at == 0 {
                assert!(text.starts_with(b"not-connected "));
                continue;
            }
            let turn = format!("path host {}/4 the case asks for it\n", at % 4 + 1);
            assert!(text.starts_with(turn.as_bytes()), "{device}: {}", String::from_utf8_lossy(&text));
            // Alone on a link of 14.2 GB/s a NIC of 12.5 reaches its own rate.
            let flow = logs::flow_log::read(&text, device).expect("a rate");
            assert!((flow.rate_gb_s / (12.5 * 0.955) - 1.0).abs() < 0.006, "{device}: {flow:?}");
        }
        let sent = growth(&bench.capture("c", "j", "p5-001").await, "rdma_write_bytes");
        assert!(
            sent.iter().all(|(device, bytes)| *bytes == 60_000 << 20 || device == "rdmap79s0"),
            "{sent:?}"
        );
    });
}

#[test]
fn flows_are_independent_and_a_slow_nic_slows_its_own_alone_both_ways() {
    on_paused_clock(async {
        let bench = Bench::new("p5", "p5-[001-002]", 5, &["p5-002:nic-slow=0.35@rdmap113s0"]);
        for (job, client, server) in [("there", "p5-001", "p5-002"), ("back", "p5-002", "p5-001")] {
            let nodes = "p5-[001-002]";
            assert_eq!(bench.run("c", job, nodes, bench.flows(client, server, "write")).await, "COMPLETED");
            for device in nodeset::expand(P5_NICS).expect("names") {
                let text = bench.get("c", job, &files::flow_out(&device)).await.expect("output");
                let flow = logs::flow_log::read(&text, &device).expect("a rate");
                let left = if device == "rdmap113s0" { 0.35 } else { 1.0 };
                assert!((flow.rate_gb_s / (12.5 * 0.955 * left) - 1.0).abs() < 0.006, "{device}: {flow:?}");
            }
            let sent = growth(&bench.capture("c", job, client).await, "rdma_write_bytes");
            let received = growth(&bench.capture("c", job, server).await, "rdma_write_recv_bytes");
            assert_eq!(sent, received);
            assert!(sent.values().all(|bytes| *bytes == 60_000 << 20));
        }
    });
}

#[test]
fn flows_of_host_memory_that_run_at_once_share_their_switchs_link_to_the_cpu() {
    let inventory = inventory("p5", "p5-[001-002]");
    let cluster = Cluster::new(&inventory, 5, Vec::new(), BTreeMap::new()).expect("a cluster");
    let nodes = ["p5-001", "p5-002"].map(str::to_owned);
    let healthy = ActiveFaults::new(&cluster, "c", "j", &nodes);
    let step = on_paused_clock(async {
        Bench::new("p5", "p5-[001-002]", 5, &[]).flows("p5-001", "p5-002", "write")
    });
    let Step::Flows(flows) = step else { panic!("no flows") };
    let rates = |turns: u32| -> Vec<f64> {
        let path = |nic: u32| FlowPath::Host { turn: nic % turns + 1, turns, why: String::new() };
        let paths: Vec<FlowPath> = (0..32).map(path).collect();
        let mut noise = work::noise_of(&cluster, "c", "j", "work");
        let flows = work::flows_along(&cluster, &healthy, &flows, &paths, &nodes, &mut noise);
        flows.iter().map(|flow| flow.rate_gb_s.expect("a rate")).collect()
    };
    for (turns, expected) in [(1, 14.2 / 4.0), (2, 14.2 / 2.0), (4, 12.5 * 0.955)] {
        let all = rates(turns);
        assert!(all.iter().all(|rate| (rate / expected - 1.0).abs() < 0.006), "{turns} turns: {all:?}");
    }
    let at_once = script::FLOWS_SH.replace("if ((turn_of[$device] == turn)); then", "if true; then");
    assert!(flows::takes_turns(script::FLOWS_SH) && !flows::takes_turns(&at_once));
}
