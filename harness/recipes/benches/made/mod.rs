//! Reports as large as a benchmark needs them, the same from the same seed; and how much memory a child takes.

use nsys::tables::{KernelRow, write};
use std::fs;
use std::path::Path;

/// Waits for the child, looking at its anonymous memory on the way: MiB.
#[allow(clippy::disallowed_methods)]
pub(crate) fn watch(child: &mut std::process::Child) -> u64 {
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

/// One step of a generator of numbers that look drawn: the same everywhere.
fn drawn(state: &mut u64) -> u64 {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    *state
}

const PROCESS: i64 = (1 << 48) | (4000 << 24);
const NAMES: u64 = 43;

/// The kernels of a report, drawn for each seed.
fn rows(kernels: usize, seed: u64) -> Vec<KernelRow> {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64.wrapping_mul(seed);
    let mut clock = [10_000_000i64; 16];
    let rows = (0..kernels).map(|at| {
        let lane = at % clock.len();
        let (name, spread) = (drawn(&mut state) % NAMES, drawn(&mut state));
        // Between half a microsecond and a millisecond, short ones more often.
        let duration =
            500 + (8000 >> (spread % 5)) * (1 + (spread >> 8) % 120) as i64 + ((spread >> 20) % 7919) as i64;
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
    rows.collect()
}

/// Names of kernels, and the number of the one call.
fn strings() -> (Vec<(i64, String)>, i64) {
    let mut strings: Vec<(i64, String)> = Vec::new();
    for name in 0..NAMES as i64 {
        strings.push((2 * name + 1, format!("kernel_{name}")));
        strings.push((2 * name + 2, format!("void kernel_{name}<float, {name}>(float *, int)")));
    }
    let launch = strings.len() as i64 + 1;
    strings.push((launch, "cudaLaunchKernel_v7000".to_owned()));
    (strings, launch)
}

/// Begin, end, thread and correlation of the call that launched a kernel.
fn call(row: &KernelRow) -> (i64, i64, i64, Option<i64>) {
    (row.start - 9000, row.start - 4000, PROCESS | 4000, row.correlation_id)
}

/// A report as one SQLite file.
#[allow(dead_code)] // Not every benchmark reads it.
pub(crate) fn sqlite(path: &Path, kernels: usize, seed: u64) {
    let (rows, (strings, launch)) = (rows(kernels, seed), strings());
    let db = rusqlite::Connection::open(path).expect("made");
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
}

/// The same report as a folder of Parquet files.
#[allow(dead_code)] // Not every benchmark reads both forms.
pub(crate) fn parquet(parquet: &Path, kernels: usize, seed: u64) {
    let (rows, (strings, launch)) = (rows(kernels, seed), strings());
    fs::create_dir_all(parquet).expect("made");
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

/// A report of a training as one SQLite file: kernels in steps of 32 layers of 4 parts of 6 kernels each, with a range
/// around every step, layer and part, on four threads by turns. Gives the number of ranges.
#[allow(dead_code)] // Not every benchmark has ranges.
pub(crate) fn nested(path: &Path, kernels: usize, seed: u64) -> usize {
    const LAYERS: i64 = 32;
    const PARTS: i64 = 4;
    const KERNELS: i64 = 6;
    let (rows, (strings, launch)) = (rows(kernels, seed), strings());
    let db = rusqlite::Connection::open(path).expect("made");
    db.execute_batch(SCHEMA).expect("made");
    db.execute_batch(NVTX).expect("made");
    db.execute_batch("BEGIN").expect("begun");
    let mut kernel = db.prepare(KERNEL_INSERT).expect("prepared");
    let sql = "INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES (?1, ?2, 0, ?3, ?4, ?5, 0, NULL)";
    let mut call = db.prepare(sql).expect("prepared");
    let sql = "INSERT INTO NVTX_EVENTS VALUES (?1, ?2, 59, ?3, ?4, NULL, 0, NULL)";
    let mut range = db.prepare(sql).expect("prepared");
    let (mut clocks, mut ranges) = ([1_000_000i64; 4], 0);
    let mut rows = rows.iter();
    'steps: for step in 0.. {
        let (thread, tid) = (step % 4, PROCESS | (4000 + step as i64 % 4));
        let clock = &mut clocks[thread as usize];
        let step_start = *clock;
        for layer in 0..LAYERS {
            let layer_start = *clock + 500;
            *clock += 1000;
            for part in 0..PARTS {
                let part_start = *clock + 300;
                *clock += 600;
                for _ in 0..KERNELS {
                    let Some(row) = rows.next() else { break 'steps };
                    let (from, to) = (*clock, *clock + 4000);
                    *clock += 5000;
                    let id = row.correlation_id;
                    call.execute((from, to, tid, id, launch)).expect("put");
                    // It begins when its stream is free, behind its call.
                    let start = from + 9000 + row.start % 50_000;
                    let ids = (row.device_id, row.stream_id, id, row.global_pid);
                    let end = start + (row.end - row.start);
                    let names = (row.demangled_name, row.short_name);
                    kernel.execute((start, end, ids.0, ids.1, ids.2, ids.3, names.0, names.1)).expect("put");
                }
                range.execute((part_start, *clock, format!("part {part}"), tid)).expect("put");
                ranges += 1;
            }
            range.execute((layer_start, *clock, format!("layer {layer}"), tid)).expect("put");
            ranges += 1;
        }
        range.execute((step_start, *clock, "step", tid)).expect("put");
        ranges += 1;
    }
    drop((kernel, call, range));
    let mut put = db.prepare("INSERT INTO StringIds VALUES (?1, ?2)").expect("prepared");
    for (id, text) in &strings {
        put.execute((id, text)).expect("put");
    }
    drop(put);
    db.execute_batch("COMMIT").expect("written");
    ranges
}

#[allow(dead_code)]
const NVTX: &str =
    "CREATE TABLE NVTX_EVENTS (start INTEGER NOT NULL, end INTEGER, eventType INTEGER NOT NULL, text TEXT,
 globalTid INTEGER, endGlobalTid INTEGER, domainId INTEGER, textId INTEGER);";
