//! How soon `observe` reports a NIC that sinks by 10 % in a job of 64 nodes, and how many alarms healthy hours raise.
//!
//!     cargo bench -p harness --bench observe [-- HOURS [GPUS]]
//!
//! Without numbers 1,000 hours of 64 nodes with one GPU each.

use logs::inspector::lines::CallRecord;
use metric::op::Op;
use observe::{Event, Finding, Observer};
use sim::inspector::{LongCall, LongFault, LongJob};
use std::fs;
use std::process::Command;

const EPOCH_S: f64 = 1_700_000_000.0;
const HOUR_S: f64 = 3600.0;
/// Hours of one job.
const JOB_HOURS: u64 = 25;
const NODES: usize = 64;

fn main() {
    // `cargo test --benches` calls it too; a benchmark is not a test.
    if !std::env::args().any(|argument| argument == "--bench") {
        return;
    }
    let mut numbers = std::env::args().skip(1).filter_map(|argument| argument.parse::<u64>().ok());
    let hours = numbers.next().unwrap_or(1000);
    let gpus = numbers.next().unwrap_or(1) as usize;
    let node = 36;
    for factor in [0.9, 0.85, 0.8] {
        let fault = LongFault::Nic { node, gpu: 0, from_s: HOUR_S / 2.0, factor };
        let mut delays = Vec::new();
        let mut blamed = 0;
        for seed in 0..20 {
            let found = found(&job(seed, gpus, vec![fault]), HOUR_S);
            let of_node =
                |(finding, _): &&(Finding, f64)| finding.hosts == ["p5-037"] && finding.processes_in_all == 1;
            blamed += usize::from(found.len() == 1 && found.iter().all(|it| of_node(&it)));
            delays.extend(found.iter().find(of_node).map(|(_, at_s)| at_s - HOUR_S / 2.0));
        }
        delays.sort_by(f64::total_cmp);
        let shown = |delay: Option<&f64>| delay.map_or_else(|| "-".to_owned(), f64::to_string);
        println!(
            "a NIC of {NODES} nodes sinks to {factor} after 30 minutes: {blamed} of 20 jobs blame its process alone; \
             reported after {} s (median), {} s (last)",
            shown(delays.get(delays.len() / 2)),
            shown(delays.last()),
        );
    }
    by_files(&job(7, gpus, vec![LongFault::Nic { node, gpu: 0, from_s: HOUR_S / 2.0, factor: 0.9 }]));
    let (mut alarms, mut done) = (0, 0);
    for seed in 0.. {
        if done >= hours {
            break;
        }
        let of_job = JOB_HOURS.min(hours - done);
        let found = found(&job(1000 + seed, gpus, Vec::new()), of_job as f64 * HOUR_S);
        for (finding, _) in &found {
            println!("  false alarm, job {seed}: {finding:?}");
        }
        alarms += found.len();
        done += of_job;
    }
    println!("{done} healthy hours of {NODES} nodes x {gpus} GPUs: {alarms} false alarms");
}

/// The hour as files of the plugin, and what the program prints of them in one look.
fn by_files(job: &LongJob) {
    let folder = tempfile::tempdir().expect("a folder");
    let records = folder.path().join("inspector");
    fs::create_dir(&records).expect("made");
    let mut texts = vec![String::new(); job.processes()];
    job.calls(0.0, HOUR_S, &mut |call| job.line(call, &mut texts[call.process]));
    for (process, text) in texts.iter().enumerate() {
        let name = format!("{}-pid{}.log", job.host(process), job.pid(process));
        fs::write(records.join(name), text).expect("written");
    }
    let mut command = Command::new(env!("CARGO_BIN_EXE_harness"));
    command.args(["observe", "--once", "--dir", "inspector", "--state", "state"]).current_dir(folder.path());
    let output = command.output().expect("the program starts");
    print!("by files: {:?}\n{}", output.status.code(), String::from_utf8_lossy(&output.stdout));
}

fn job(seed: u64, gpus: usize, faults: Vec<LongFault>) -> LongJob {
    LongJob { seed, nodes: NODES, columns: 8, gpus, step_s: 10.0, epoch_s: EPOCH_S, faults }
}

/// Each finding with the second of the look that reported it: one a minute.
fn found(job: &LongJob, length_s: f64) -> Vec<(Finding, f64)> {
    let mut observer = Observer::new(10);
    let mut found = Vec::new();
    let mut minutes = 0;
    while f64::from(minutes) * 60.0 < length_s {
        let from_s = f64::from(minutes) * 60.0;
        job.calls(from_s, from_s + 60.0, &mut |call| observer.take(&record(job, call)));
        found.extend(observer.advance().into_iter().filter_map(|event| match event {
            Event::Found(finding) => Some((finding, from_s + 60.0)),
            Event::Over { .. } => None,
        }));
        minutes += 1;
    }
    found
}

/// The same record that its line holds.
fn record(job: &LongJob, call: &LongCall) -> CallRecord {
    CallRecord {
        communicator: format!("0x{:x}", call.communicator),
        rank: call.rank as u64,
        ranks: call.ranks as u64,
        host: job.host(call.process),
        pid: job.pid(call.process),
        operation: if call.op == Op::AllReduce { "AllReduce" } else { "AllGather" }.to_owned(),
        is_p2p: false,
        number: call.number,
        bytes: call.bytes,
        time_us: Some(call.us as f64),
        busbw: Some(call.bytes as f64 / 1e3 / call.us.max(1) as f64),
        at_us: Some(call.at_us),
    }
}
