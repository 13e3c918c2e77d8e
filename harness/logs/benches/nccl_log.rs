//! What a log of NCCL of gigabytes costs, beside gawk that makes the same tables of the same log in one pass: calls,
//! least, most and all bytes of each operation, the histogram and the kinds of calls. The reader is to take less than a
//! tenth of gawk's time, and less than 200 MiB.
//!
//!     cargo bench --workspace --bench nccl_log
//!
//! `MIB=N` takes another size than 2048. `COMMUNICATORS=N` reads a log that begins so many communicators and ends none instead, such
//! as 10000000: what memory that takes, and what is reported of those beyond the limits.

use logs::nccl_debug::{EDGES, NcclLog, Operation, Reader};
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufReader, BufWriter, Cursor, Read, Write};
use std::path::Path;
use std::process::Command;
use std::time::Instant;

fn main() {
    // `cargo test --benches` calls it too; a benchmark is not a test.
    if !std::env::args().any(|arg| arg == "--bench") {
        return;
    }
    if let Some(many) = std::env::var("COMMUNICATORS").ok().and_then(|text| text.parse().ok()) {
        return communicators(many);
    }
    let mib = std::env::var("MIB").ok().and_then(|text| text.parse().ok()).unwrap_or(2048_u64);
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("nccl.log");
    generate(&path, mib << 20);
    // What was touched so far is no matter: the peak is reset.
    let _ = std::fs::write("/proc/self/clear_refs", "5");
    let mut log = None;
    let own = timed(|| log = Some(read(&path)));
    let log = log.expect("read");
    println!(
        "{mib} MiB, {} lines, {} cores: {own:.2} s, {}",
        log.lines,
        rayon::current_num_threads(),
        memory()
    );
    let script = folder.path().join("tables.awk");
    std::fs::write(&script, TABLES).expect("a script");
    let mut out = None;
    let awk = timed(|| out = Command::new("gawk").arg("-f").arg(&script).arg(&path).output().ok());
    let Some(out) = out else {
        println!("gawk is not on this machine: nothing to compare with");
        return;
    };
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    println!("gawk: {awk:.2} s, {:.1} times as long", awk / own);
    let theirs: BTreeMap<String, u64> = String::from_utf8_lossy(&out.stdout)
        .lines()
        .filter_map(|line| {
            line.rsplit_once(' ').map(|(key, value)| (key.to_owned(), value.parse().expect("a number")))
        })
        .collect();
    assert_eq!(ours(&log), theirs, "both make the same tables");
    println!("{} numbers are the same", theirs.len());
}

/// A log of a program that never lets go of a communicator, made while it is read.
struct Endless {
    begun: u64,
    many: u64,
    buffer: Cursor<Vec<u8>>,
}

impl Read for Endless {
    fn read(&mut self, into: &mut [u8]) -> std::io::Result<usize> {
        loop {
            let bytes = self.buffer.read(into)?;
            if bytes > 0 || self.begun == self.many {
                return Ok(bytes);
            }
            let mut text = String::new();
            for id in self.begun..self.many.min(self.begun + 4096) {
                text += &format!(
                    "a:1:2 [0] NCCL INFO ncclCommInitRank comm 0x5{id:x} rank 0 nranks 1 cudaDev 0 nvmlDev 0 busId 1 commId 0x{id:x} - Init \
                     COMPLETE\na:1:2 [0] NCCL INFO AllReduce: opCount 0 sendbuff 0x1 recvbuff 0x2 count 4 datatype 7 op 0 root 0 comm \
                     0x5{id:x} [nranks=1] stream 0x5\n"
                );
            }
            self.begun = self.many.min(self.begun + 4096);
            self.buffer = Cursor::new(text.into_bytes());
        }
    }
}

fn communicators(many: u64) {
    let _ = std::fs::write("/proc/self/clear_refs", "5");
    let mut reader = Reader::new(&EDGES);
    let endless = Endless { begun: 0, many, buffer: Cursor::new(Vec::new()) };
    let took = timed(|| reader.read(BufReader::with_capacity(256 << 10, endless), "nccl.log").expect("read"));
    println!("{many} communicators: {took:.2} s, {}", memory());
    let log = reader.finish();
    let kept = log.communicators.len() as u64;
    println!(
        "{kept} in the table, {} beyond it, {} calls",
        log.communicators_beyond, log.operations[0].calls
    );
    assert_eq!((kept + log.communicators_beyond, log.operations[0].calls), (many, many), "none is lost");
    log.findings.iter().for_each(|finding| println!("{}: {}", finding.code, finding.message));
}

const TABLES: &str = r#"
BEGIN { split("1 1 4 4 8 8 2 4 8 2 1 1", s, " "); for (t = 0; t < 12; t++) size[t ""] = s[t + 1] }
/NCCL INFO/ && /opCount/ {
    op = ""; count = ""; type = ""
    for (i = 1; i <= NF; i++) {
        if (op == "" && $i ~ /.:$/) { op = $i; sub(/:$/, "", op) }
        if ($i == "count") { count = $(i + 1); gsub(/,/, "", count) }
        if ($i == "datatype") { type = $(i + 1); gsub(/,/, "", type) }
    }
    if (op != "" && count + 0 > 0 && size[type] > 0) {
        b = count * size[type]; n[op]++; all[op] += b
        if (!(op in least) || b < least[op]) least[op] = b
        if (b > most[op]) most[op] = b
        buckets[op " " (b < 65536 ? 0 : b < 1048576 ? 65536 : b < 16777216 ? 1048576 : 16777216)]++
        kinds[op " " count " " type]++
    }
}
END {
    for (op in n) { print op, "calls", n[op]; print op, "least", least[op]; print op, "most", most[op]; print op, "all", all[op] }
    for (key in buckets) print "from", key, buckets[key]
    for (key in kinds) print "kind", key, kinds[key]
}
"#;

fn ours(log: &NcclLog) -> BTreeMap<String, u64> {
    let mut all = BTreeMap::new();
    let name = |operation: Operation| operation.name();
    for it in &log.operations {
        let figures = [
            ("calls", Some(it.calls)),
            ("least", it.min_bytes),
            ("most", it.max_bytes),
            ("all", it.total_bytes),
        ];
        all.extend(
            figures.map(|(what, value)| (format!("{} {what}", name(it.operation)), value.expect("a number"))),
        );
    }
    all.extend(
        log.histogram.iter().map(|it| (format!("from {} {}", name(it.operation), it.from_bytes), it.calls)),
    );
    let kinds = log.calls.iter();
    all.extend(
        kinds.map(|it| (format!("kind {} {} {}", name(it.operation), it.count, it.datatype), it.calls)),
    );
    all
}

fn read(path: &Path) -> NcclLog {
    let mut reader = Reader::new(&EDGES);
    let from = BufReader::with_capacity(256 << 10, File::open(path).expect("the log"));
    reader.read(from, "nccl.log").expect("read");
    reader.finish()
}

/// Steps of sixteen ranks on two hosts, as a training with shards calls.
fn generate(path: &Path, bytes: u64) {
    let mut out = BufWriter::with_capacity(1 << 20, File::create(path).expect("a file"));
    let begins: Vec<String> = (0..16_u64)
        .map(|rank| {
            format!("p5-dy-gpu-{}:{}:{} [{}] NCCL INFO ", 1 + rank / 8, 4000 + rank, 5000 + rank, rank % 8)
        })
        .collect();
    let mut written = 0;
    let mut line = |text: String| {
        out.write_all(text.as_bytes()).expect("room");
        written += text.len() as u64;
        written
    };
    for (rank, begin) in begins.iter().enumerate() {
        line(format!(
            "{begin}ncclCommInitRank comm 0x55d0c0de{rank:04x} rank {rank} nranks 16 cudaDev {0} nvmlDev {0} busId {rank:x}000 commId \
             0xabcdef0123456789 - Init COMPLETE\n",
            rank % 8
        ));
    }
    let calls = [
        ("AllGather", 202_383_360_u64, 9),
        ("AllGather", 33_554_432, 9),
        ("ReduceScatter", 202_383_360, 7),
        ("AllReduce", 1, 7),
        ("AllReduce", 3_000_000_000, 9),
        ("Broadcast", 4096, 4),
    ];
    for call in 0_u64.. {
        let (operation, count, datatype) = calls[(call % 6) as usize];
        let mut so_far = 0;
        for (rank, begin) in begins.iter().enumerate() {
            so_far = line(format!(
                "{begin}{operation}: opCount {call:x} sendbuff 0x7f{:010x} recvbuff 0x7f{:010x} count {count} datatype {datatype} op 0 root 0 \
                 comm 0x55d0c0de{rank:04x} [nranks=16] stream 0x55d0aa{rank:06x}\n",
                call * 4096 % (1 << 40),
                call * 8192 % (1 << 40)
            ));
        }
        if call % 600 == 0 {
            line(format!(
                "Training epoch 0, iteration {}/99999 | lr: 0.001 | train_step_timing in s: 2.5\n",
                call / 600
            ));
        }
        if so_far >= bytes {
            break;
        }
    }
    out.flush().expect("room");
}

/// The most memory held at once, and what of it is not pages of files.
fn memory() -> String {
    let text = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let lines = text.lines().filter(|line| line.starts_with("VmHWM") || line.starts_with("RssAnon"));
    lines.map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")).collect::<Vec<_>>().join(", ")
}

#[allow(clippy::disallowed_methods)] // A benchmark asks the clock.
fn timed(run: impl FnOnce()) -> f64 {
    let begun = Instant::now();
    run();
    begun.elapsed().as_secs_f64()
}
