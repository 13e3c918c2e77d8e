//! What the tables of statistics cost on a large report: 5 million kernels, 5 million calls, 100,000 copies, as SQLite and
//! as Parquet, each in a process of its own, so that the memory is that table's alone. Best of three after one run that
//! warms the caches. Beside them the time of merely reading the bytes and, where a second implementation is given by
//! `REFSTATS` (and a Python for it by `PYTHON`), its times on the same file, taken in the same way.
//!
//!     REFSTATS=path/to/refstats.py cargo bench --workspace --bench reports
//!
//! `KERNELS=N` takes another number of kernels and of calls.

use recipes::report::{self, Arguments};
use recipes::tables::{KernelRow, write};
use recipes::trace::Trace;
use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

const REPORTS: [&str; 3] = ["cuda_gpu_kern_sum", "cuda_api_sum", "cuda_kern_exec_sum"];

#[allow(clippy::disallowed_methods)] // A benchmark asks the clock.
fn main() {
    let args: Vec<String> = std::env::args().collect();
    if let [_, flag, path, name, ..] = args.as_slice()
        && flag == "--measure"
    {
        return measure(Path::new(path), name);
    }
    // `cargo test --benches` calls it too; a benchmark is not a test.
    if !args.iter().any(|arg| arg == "--bench") {
        return;
    }
    let kernels = std::env::var("KERNELS").ok().and_then(|text| text.parse().ok()).unwrap_or(5_000_000);
    let folder = tempfile::tempdir().expect("a folder");
    let (sqlite, parquet) = generate(folder.path(), kernels);
    println!(
        "{kernels} kernels and calls; SQLite {} MB, Parquet {} MB",
        megabytes(&sqlite),
        megabytes(&parquet)
    );
    println!("reading the bytes: SQLite {:.3} s", best(|| read_all(&sqlite)));
    println!(
        "{:<20} {:>9} {:>9} {:>14} {:>13} {:>12} {:>8}",
        "table", "form", "s", "rows / s", "peak MiB", "reference s", "ratio"
    );
    for name in REPORTS {
        if report::find(name).is_none() {
            continue;
        }
        let reference = reference(&sqlite, name);
        for (form, path) in [("SQLite", &sqlite), ("Parquet", &parquet)] {
            let (seconds, peak) = child(path, name);
            let (shown, ratio) = match reference {
                Some(other) => (format!("{other:.2}"), format!("{:.1}", other / seconds)),
                None => ("-".to_owned(), "-".to_owned()),
            };
            println!(
                "{name:<20} {form:>9} {seconds:>9.3} {:>14.0} {peak:>13} {shown:>12} {ratio:>8}",
                kernels as f64 / seconds
            );
        }
    }
}

#[allow(clippy::disallowed_methods)]
fn best(run: impl Fn()) -> f64 {
    run();
    let times = (0..3).map(|_| {
        let begun = Instant::now();
        run();
        begun.elapsed().as_secs_f64()
    });
    times.fold(f64::INFINITY, f64::min)
}

/// In the child: the best time on the first line.
fn measure(path: &Path, name: &str) {
    let report = report::find(name).expect("a report");
    let seconds = best(|| {
        let trace = Trace::open(path).expect("opens");
        let sheet = (report.run)(&trace, &Arguments::default()).expect("reads");
        assert!(sheet.is_some_and(|sheet| sheet.height() > 0));
    });
    println!("{seconds}");
}

fn child(path: &Path, name: &str) -> (f64, u64) {
    let mut child = Command::new(std::env::current_exe().expect("its own path"))
        .args(["--measure", &path.display().to_string(), name])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .expect("starts");
    let peak = watch(&mut child);
    let mut text = String::new();
    child.stdout.take().expect("piped").read_to_string(&mut text).expect("read");
    (text.trim().parse().expect("seconds"), peak)
}

/// Waits for the child, looking at its anonymous memory on the way: MiB.
#[allow(clippy::disallowed_methods)]
fn watch(child: &mut std::process::Child) -> u64 {
    let mut peak = 0;
    loop {
        let status = fs::read_to_string(format!("/proc/{}/status", child.id())).unwrap_or_default();
        let anon = status.lines().find_map(|line| {
            line.strip_prefix("RssAnon:")?.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()
        });
        peak = peak.max(anon.unwrap_or(0) / 1024);
        if child.try_wait().expect("waits").is_some() {
            return peak;
        }
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
}

#[allow(clippy::disallowed_methods)]
fn reference(sqlite: &Path, name: &str) -> Option<f64> {
    let script = std::env::var("REFSTATS").ok()?;
    let python = std::env::var("PYTHON").unwrap_or_else(|_| "python3".to_owned());
    let run = || {
        let begun = Instant::now();
        let ended = Command::new(&python).args([&script, &sqlite.display().to_string(), name]).output();
        let ended = ended.expect("the reference starts");
        assert!(ended.status.success(), "{}", String::from_utf8_lossy(&ended.stderr));
        begun.elapsed().as_secs_f64()
    };
    run();
    Some((0..3).map(|_| run()).fold(f64::INFINITY, f64::min))
}

fn read_all(path: &Path) {
    let mut file = fs::File::open(path).expect("opens");
    let mut buffer = vec![0; 1 << 20];
    while file.read(&mut buffer).expect("reads") > 0 {}
}

fn megabytes(path: &Path) -> u64 {
    let files: Vec<PathBuf> = if path.is_dir() {
        fs::read_dir(path).expect("a folder").flatten().map(|entry| entry.path()).collect()
    } else {
        vec![path.to_owned()]
    };
    files.iter().map(|file| fs::metadata(file).expect("there").len()).sum::<u64>() / 1_000_000
}

/// One step of a generator of numbers that look drawn: the same everywhere.
fn drawn(state: &mut u64) -> u64 {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    *state
}

const PROCESS: i64 = (1 << 48) | (4000 << 24);
const NAMES: u64 = 43;

fn generate(folder: &Path, kernels: usize) -> (PathBuf, PathBuf) {
    let (sqlite, parquet) = (folder.join("large.sqlite"), folder.join("large_pqtdir"));
    fs::create_dir_all(&parquet).expect("made");
    let mut state = 0x9e37_79b9_7f4a_7c15;
    let mut clock = [10_000_000i64; 16];
    let rows = (0..kernels).map(|at| {
        let lane = at % clock.len();
        let (name, spread) = (drawn(&mut state) % NAMES, drawn(&mut state));
        // Between half a microsecond and a millisecond, short ones more often.
        let duration = 500 + (8000 >> (spread % 5)) * (1 + (spread >> 8) % 120) as i64;
        let start = clock[lane];
        clock[lane] = start + duration + (drawn(&mut state) % 6000) as i64;
        KernelRow {
            start,
            end: start + duration,
            device_id: (lane % 8) as i64,
            context_id: 1,
            stream_id: 7 + (lane / 8) as i64,
            correlation_id: Some(at as i64 + 1),
            global_pid: Some(PROCESS),
            short_name: 2 * name as i64 + 1,
            demangled_name: 2 * name as i64 + 2,
        }
    });
    let rows: Vec<KernelRow> = rows.collect();
    let mut strings: Vec<(i64, String)> = Vec::new();
    for name in 0..NAMES as i64 {
        strings.push((2 * name + 1, format!("kernel_{name}")));
        strings.push((2 * name + 2, format!("void kernel_{name}<float, {name}>(float *, int)")));
    }
    let launch = strings.len() as i64 + 1;
    strings.push((launch, "cudaLaunchKernel_v7000".to_owned()));
    let call = |row: &KernelRow| (row.start - 9000, row.start - 4000, PROCESS | 4000, row.correlation_id);

    let db = rusqlite::Connection::open(&sqlite).expect("made");
    db.execute_batch(SCHEMA).expect("made");
    db.execute_batch("BEGIN").expect("begun");
    let mut put = db.prepare(KERNEL_INSERT).expect("prepared");
    for row in &rows {
        let ids = (row.device_id, row.stream_id, row.correlation_id, row.global_pid);
        put.execute((row.start, row.end, ids.0, ids.1, ids.2, ids.3, row.demangled_name, row.short_name))
            .expect("put");
    }
    drop(put);
    let sql = "INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES (?1, ?2, 0, ?3, ?4, ?5, 0, NULL)";
    let mut put = db.prepare(sql).expect("prepared");
    for row in &rows {
        let (start, end, tid, id) = call(row);
        put.execute((start, end, tid, id, launch)).expect("put");
    }
    drop(put);
    let sql = "INSERT INTO CUPTI_ACTIVITY_KIND_MEMCPY VALUES (?1, ?2, 0, 1, 7, ?3, ?4, ?5, ?6)";
    let mut put = db.prepare(sql).expect("prepared");
    for at in 0..100_000i64.min(kernels as i64) {
        put.execute((at * 1000, at * 1000 + 700, kernels as i64 + at, PROCESS, 4096 * (at % 64), 1 + at % 2))
            .expect("put");
    }
    drop(put);
    let mut put = db.prepare("INSERT INTO StringIds VALUES (?1, ?2)").expect("prepared");
    for (id, text) in &strings {
        put.execute((id, text)).expect("put");
    }
    drop(put);
    db.execute_batch("COMMIT").expect("written");

    let file = |name: &str, bytes: Result<Vec<u8>, String>| {
        fs::write(parquet.join(format!("{name}.parquet")), bytes.expect("encoded")).expect("written");
    };
    file("CUPTI_ACTIVITY_KIND_KERNEL", write::kernels(&rows));
    file("StringIds", write::strings(&strings));
    let calls: Vec<write::CallRow> = rows
        .iter()
        .map(|row| {
            let (start, end, global_tid, correlation_id) = call(row);
            write::CallRow { start, end, global_tid, correlation_id, name: launch }
        })
        .collect();
    file("CUPTI_ACTIVITY_KIND_RUNTIME", write::calls(&calls));
    (sqlite, parquet)
}

const SCHEMA: &str = "PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF;
CREATE TABLE StringIds (id INTEGER NOT NULL PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME (start INTEGER NOT NULL, end INTEGER NOT NULL, eventClass INTEGER NOT NULL,
 globalTid INTEGER, correlationId INTEGER, nameId INTEGER NOT NULL, returnValue INTEGER NOT NULL, callchainId INTEGER);
CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start INTEGER NOT NULL, end INTEGER NOT NULL, deviceId INTEGER NOT NULL,
 contextId INTEGER NOT NULL, greenContextId INTEGER, streamId INTEGER NOT NULL, correlationId INTEGER,
 globalPid INTEGER, demangledName INTEGER NOT NULL, shortName INTEGER NOT NULL, mangledName INTEGER,
 launchType INTEGER, cacheConfig INTEGER, registersPerThread INTEGER NOT NULL, gridX INTEGER NOT NULL,
 gridY INTEGER NOT NULL, gridZ INTEGER NOT NULL, blockX INTEGER NOT NULL, blockY INTEGER NOT NULL,
 blockZ INTEGER NOT NULL, staticSharedMemory INTEGER NOT NULL, dynamicSharedMemory INTEGER NOT NULL,
 localMemoryPerThread INTEGER NOT NULL, localMemoryTotal INTEGER NOT NULL, gridId INTEGER NOT NULL,
 sharedMemoryExecuted INTEGER, graphNodeId INTEGER, sharedMemoryLimitConfig INTEGER);
CREATE TABLE CUPTI_ACTIVITY_KIND_MEMCPY (start INTEGER NOT NULL, end INTEGER NOT NULL, deviceId INTEGER NOT NULL,
 contextId INTEGER NOT NULL, streamId INTEGER NOT NULL, correlationId INTEGER, globalPid INTEGER,
 bytes INTEGER NOT NULL, copyKind INTEGER NOT NULL);";

const KERNEL_INSERT: &str = "INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES
 (?1, ?2, ?3, 1, NULL, ?4, ?5, ?6, ?7, ?8, NULL, 1, 1, 32, 128, 1, 1, 256, 1, 1, 0, 0, 0, 0, ?5, 32768, NULL, 0)";
