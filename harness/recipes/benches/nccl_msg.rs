//! What calls of NCCL with payloads cost: a million of them in one SQLite export, from opening it to the tables of
//! `nccl_msg`. Beside them what SQLite takes for the join of calls, launches and kernels: with indexes that are made first
//! the join alone, of which nothing is kept, and the same with each call numbered and kept and quantiles of each operation,
//! communicator and size, which is what the recipe gives; and, of fewer calls, the join on the export as it is, which has no
//! index. The recipe is to be ten times as fast as that last one. Then as many reports as a job has ranks, up to 256, to see
//! that the time is in proportion.
//!
//!     cargo bench --workspace --bench nccl_msg
//!
//! `CALLS=N` takes another number of calls than a million.

use nsys::nccl::NcclCalls;
use nsys::trace::Trace;
use recipes::recipe::of_reports::{Input, Survey, find, survey};
use recipes::report::Arguments;
use rusqlite::Connection;
use std::path::{Path, PathBuf};
use std::time::Instant;

#[global_allocator]
static ALLOCATOR: nsys::huge_pages::HugePages = nsys::huge_pages::HugePages;

const PROCESS: i64 = (1 << 48) | (4000 << 24);
const DOMAIN: i64 = 1;
const OF_RANK: i64 = 20_000;

fn main() {
    // `cargo test --benches` calls it too; a benchmark is not a test.
    if !std::env::args().any(|arg| arg == "--bench") {
        return;
    }
    let calls = std::env::var("CALLS").ok().and_then(|text| text.parse().ok()).unwrap_or(1_000_000);
    let folder = tempfile::tempdir().expect("a folder");
    let path = generate(&folder.path().join("large.sqlite"), calls, 0);
    let read = || NcclCalls::read(&Trace::open(&path).expect("opens")).expect("read").expect("calls");
    assert_eq!(read().calls.iter().filter(|call| call.kernels.len() == 1).count() as i64, calls);
    let question = timed(|| assert_eq!(summed_up(&path), calls));
    println!("{calls} calls, {} cores", rayon::current_num_threads());
    println!("{:<38} {:>9} {:>14} {:>12}", "", "s", "calls / s", "/ question");
    let line = |what: &str, seconds: f64| {
        println!("{what:<38} {seconds:>9.3} {:>14.0} {:>12.1}", calls as f64 / seconds, question / seconds);
    };
    line("SQL: calls and sizes, as the recipe", question);
    line("SQL: the join alone, nothing kept", timed(|| assert_eq!(joined(&path), calls)));
    line("calls with payloads and kernels", best(|| drop(read())));
    line("the tables of nccl_msg", best(|| assert!(surveyed(std::slice::from_ref(&path)) > 0)));
    let few = generate(&folder.path().join("few.sqlite"), OF_RANK, 99);
    let (plain, own) = (
        timed(|| assert_eq!(plain(&few), OF_RANK)),
        best(|| assert!(surveyed(std::slice::from_ref(&few)) > 0)),
    );
    println!(
        "\n{OF_RANK} calls: SQL on the export as it is {plain:.3} s, the tables of nccl_msg {own:.3} s: {:.0} times",
        plain / own
    );
    println!("\n{:>8} {:>9} {:>14} {:>10}", "ranks", "s", "calls / s", "s / rank");
    let different: Vec<PathBuf> =
        (0..8).map(|rank| generate(&folder.path().join(format!("r{rank}.sqlite")), OF_RANK, rank)).collect();
    for ranks in [16, 64, 256] {
        let paths: Vec<PathBuf> = different.iter().cycle().take(ranks).cloned().collect();
        let seconds = best(|| assert!(surveyed(&paths) > 0));
        let all = OF_RANK as f64 * ranks as f64;
        println!("{ranks:>8} {seconds:>9.3} {:>14.0} {:>10.4}", all / seconds, seconds / ranks as f64);
    }
}

#[allow(clippy::disallowed_methods)] // A benchmark asks the clock.
fn timed(run: impl FnOnce()) -> f64 {
    let begun = Instant::now();
    run();
    begun.elapsed().as_secs_f64()
}

fn best(run: impl Fn()) -> f64 {
    run();
    (0..3).map(|_| timed(&run)).fold(f64::INFINITY, f64::min)
}

fn surveyed(paths: &[PathBuf]) -> usize {
    let recipe = find("nccl_msg").expect("there");
    let inputs = paths.iter().enumerate();
    let inputs: Vec<Input> =
        inputs.map(|(side, path)| Input { path: path.clone(), shown: side.to_string(), side }).collect();
    let asked = [(recipe, Arguments::default())];
    let of = Survey { asked: &asked, inputs: &inputs, filter: None, jobs: 2, progress: &|_| {} };
    survey(&of).expect("threads")[0].tables[0].1.height()
}

/// Each call with its bytes and its kernel, as a person would ask for them.
const JOIN: &str =
    "SELECT s.value AS operation, json_extract(e.jsonText, '$.\"NCCL communicator ID\"') AS communicator,
         json_extract(e.jsonText, '$.\"Message size [bytes]\"') AS bytes,
         json_extract(e.jsonText, '$.\"Reduction operation\"') AS reduction, e.start AS start, e.end AS end,
         e.globalTid AS tid, k.start AS kernel_start, k.end AS kernel_end, k.deviceId AS device,
         k.streamId AS stream, r.start AS launch
     FROM report.NVTX_EVENTS e JOIN report.StringIds s ON s.id = e.textId
     JOIN launches r ON r.globalTid = e.globalTid AND r.start BETWEEN e.start AND e.end AND r.end <= e.end
     JOIN kernels k ON k.correlationId = r.correlationId AND k.globalPid = r.pid
     WHERE e.eventType = 59";

fn attached(path: &Path) -> Connection {
    let db = Connection::open_in_memory().expect("opens");
    db.execute("ATTACH ?1 AS report", [path.to_str().expect("a name")]).expect("attached");
    db.execute_batch(
        "CREATE TABLE launches AS SELECT globalTid, start, end, correlationId, globalTid & ~16777215 AS pid
             FROM report.CUPTI_ACTIVITY_KIND_RUNTIME;
         CREATE INDEX by_time ON launches (globalTid, start, end, correlationId, pid);
         CREATE TABLE kernels AS SELECT globalPid, correlationId, start, end, deviceId, streamId
             FROM report.CUPTI_ACTIVITY_KIND_KERNEL;
         CREATE INDEX by_correlation ON kernels (correlationId, globalPid, start, end, deviceId, streamId);",
    )
    .expect("made");
    db
}

/// The join alone, row by row: nothing is kept.
fn joined(path: &Path) -> i64 {
    let db = attached(path);
    let mut statement = db.prepare(JOIN).expect("a question");
    let mut rows = statement.query([]).expect("asked");
    let mut count = 0;
    while let Some(row) = rows.next().expect("a row") {
        count += i64::from(row.get::<_, i64>(7).expect("a start") > row.get::<_, i64>(4).expect("a start"));
    }
    count
}

/// The join on the export as it is.
fn plain(path: &Path) -> i64 {
    let db = Connection::open(path).expect("opens");
    let question = "SELECT sum(k.end > k.start) FROM NVTX_EVENTS e JOIN StringIds s ON s.id = e.textId
         JOIN CUPTI_ACTIVITY_KIND_RUNTIME r ON r.globalTid = e.globalTid AND r.start >= e.start AND r.end <= e.end
         JOIN CUPTI_ACTIVITY_KIND_KERNEL k ON k.correlationId = r.correlationId
             AND k.globalPid = (r.globalTid & ~16777215)
         WHERE e.eventType = 59 AND json_extract(e.jsonText, '$.\"Message size [bytes]\"') > 0";
    db.query_row(question, [], |row| row.get(0)).expect("a number")
}

/// What the recipe makes of it, as far as it can be asked for: each call with how manieth of its kind it is, and of each
/// operation, communicator and size the number, the quantiles and the mean.
fn summed_up(path: &Path) -> i64 {
    let db = attached(path);
    db.execute_batch(&format!(
        "CREATE TABLE calls AS SELECT *, kernel_end - kernel_start AS ns,
             row_number() OVER (PARTITION BY operation, communicator, bytes ORDER BY start) - 1 AS instance
             FROM ({JOIN});
         CREATE TABLE sizes AS SELECT operation, communicator, bytes, max(n) AS n, avg(ns) AS mean, min(ns) AS least,
             max(ns) AS most, max(ns) FILTER (WHERE place = n / 100) AS p1, max(ns) FILTER (WHERE place = n / 20) AS p5,
             max(ns) FILTER (WHERE place = n / 2) AS p50, max(ns) FILTER (WHERE place = n * 19 / 20) AS p95,
             max(ns) FILTER (WHERE place = n * 99 / 100) AS p99
             FROM (SELECT *, row_number() OVER (PARTITION BY operation, communicator, bytes ORDER BY ns) - 1 AS place,
                 count(*) OVER (PARTITION BY operation, communicator, bytes) AS n FROM calls)
             GROUP BY operation, communicator, bytes;"
    ))
    .expect("made");
    db.query_row("SELECT sum(n) FROM sizes", [], |row| row.get(0)).expect("a number")
}

/// One step of a generator of numbers that look drawn: the same everywhere.
fn drawn(state: &mut u64) -> u64 {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    *state
}

const FUNCTIONS: [&str; 3] = ["ncclAllReduce", "ncclAllGather", "ncclReduceScatter"];

fn generate(path: &Path, calls: i64, rank: u64) -> PathBuf {
    let db = Connection::open(path).expect("made");
    db.execute_batch(&format!("PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF; {SCHEMA} BEGIN"))
        .expect("begun");
    for (id, text) in
        ["cudaLaunchKernelExC_v11060", "ncclDevKernel_RING_LL"].iter().chain(&FUNCTIONS).enumerate()
    {
        db.execute("INSERT INTO StringIds VALUES (?1, ?2)", (id as i64, text)).expect("put");
    }
    let insert =
        "INSERT INTO NVTX_EVENTS (start, end, eventType, textId, text, globalTid, domainId, jsonText)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)";
    let mut range = db.prepare(insert).expect("prepared");
    let tid = PROCESS | 4000;
    let named = (0, None::<i64>, 75, None::<i64>, Some("NCCL"), tid, DOMAIN, None::<String>);
    range.execute(named).expect("put");
    let mut call = db
        .prepare("INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES (?1, ?2, 0, ?3, ?4, 0)")
        .expect("prepared");
    let mut kernel = db
        .prepare("INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (?1, ?2, 0, 1, 20, ?3, ?4, 1, 1, 1, 1, 1, 128, 1, 1)")
        .expect("prepared");
    let (mut state, mut clock) = (0x9e37_79b9_7f4a_7c15 + rank, 10_000_000_i64);
    for at in 0..calls {
        let number = drawn(&mut state);
        let (communicator, bytes) = (0xabc0 + number % 4, 1u64 << (10 + (number >> 8) % 20));
        let json = format!(
            "{{\"NCCL communicator ID\":{communicator},\"Message size [bytes]\":{bytes},\"Reduction operation\":\"Sum\"}}"
        );
        let function = 2 + (number >> 16) as i64 % FUNCTIONS.len() as i64;
        let of_range = (clock, Some(clock + 9000), 59, Some(function), None::<&str>, tid, DOMAIN, Some(json));
        range.execute(of_range).expect("put");
        call.execute((clock + 3000, clock + 7000, tid, at + 1)).expect("put");
        let ns = 20_000 + (number >> 24) as i64 % 4000;
        kernel.execute((clock + 12_000, clock + 12_000 + ns, at + 1, PROCESS)).expect("put");
        clock += 40_000;
    }
    drop((range, call, kernel));
    db.execute_batch("COMMIT").expect("written");
    path.to_owned()
}

const SCHEMA: &str = "CREATE TABLE StringIds (id INTEGER NOT NULL PRIMARY KEY, value TEXT NOT NULL);
 CREATE TABLE NVTX_EVENTS (start INTEGER NOT NULL, end INTEGER, eventType INTEGER NOT NULL, rangeId INTEGER,
 category INTEGER, color INTEGER, text TEXT, globalTid INTEGER, endGlobalTid INTEGER, textId INTEGER,
 domainId INTEGER, uint64Value INTEGER, int64Value INTEGER, doubleValue REAL, uint32Value INTEGER,
 int32Value INTEGER, floatValue REAL, jsonTextId INTEGER, jsonText TEXT, binaryData TEXT);
 CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME (start INTEGER NOT NULL, end INTEGER NOT NULL, eventClass INTEGER NOT NULL,
 globalTid INTEGER, correlationId INTEGER, nameId INTEGER NOT NULL);
 CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start INTEGER NOT NULL, end INTEGER NOT NULL, deviceId INTEGER NOT NULL,
 contextId INTEGER NOT NULL, streamId INTEGER NOT NULL, correlationId INTEGER, globalPid INTEGER,
 demangledName INTEGER NOT NULL, shortName INTEGER NOT NULL, gridX INTEGER NOT NULL, gridY INTEGER NOT NULL,
 gridZ INTEGER NOT NULL, blockX INTEGER NOT NULL, blockY INTEGER NOT NULL, blockZ INTEGER NOT NULL);";
