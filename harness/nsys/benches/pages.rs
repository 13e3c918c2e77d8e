//! What three columns of the kernels of a large SQLite export cost: by the engine, in a bare loop over its rows and as a
//! table of an export, and from the pages, on one core and on all. Best of three after one run that warms the caches;
//! beside them the time of merely reading the bytes, once around. On two free cores the pages are to give the table at
//! least eight times as fast as the engine does.
//!
//!     cargo bench --workspace --bench pages
//!
//! `KERNELS=N` takes another number of kernels than 5 million.

use nsys::export::{Export, Rows};
use nsys::tables::KERNEL;
use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::time::Instant;

#[global_allocator]
static ALLOCATOR: nsys::huge_pages::HugePages = nsys::huge_pages::HugePages;

const COLUMNS: [&str; 3] = ["start", "end", "shortName"];

fn main() {
    // `cargo test --benches` calls it too; a benchmark is not a test.
    if !std::env::args().any(|arg| arg == "--bench") {
        return;
    }
    let kernels = std::env::var("KERNELS").ok().and_then(|text| text.parse().ok()).unwrap_or(5_000_000);
    let folder = tempfile::tempdir().expect("a folder");
    let path = generate(folder.path(), kernels);
    let bytes = fs::metadata(&path).expect("there").len();
    for (column, values) in COLUMNS.iter().zip(by_engine(&path)) {
        assert!(by_export(&path).ints(column) == Ok(values.as_slice()), "both read the same `{column}`");
    }
    let one = rayon::ThreadPoolBuilder::new().num_threads(1).build().expect("a pool");
    let cores = rayon::current_num_threads();
    println!("{kernels} kernels of 28 columns, {} MB, {cores} cores", bytes / 1_000_000);
    println!("{:<28} {:>9} {:>14} {:>9} {:>9}", "three columns", "s", "rows / s", "/ loop", "/ table");
    let bare = best(|| drop(by_engine(&path)));
    // A file of changes beside it, and the engine is asked; it looks at the main file alone.
    let changes = folder.path().join("large.sqlite-wal");
    fs::write(&changes, "none").expect("written");
    let table = best(|| drop(by_export(&path)));
    fs::remove_file(changes).expect("removed");
    let line = |what: &str, seconds: f64| {
        let (loops, tables) = (bare / seconds, table / seconds);
        println!("{what:<28} {seconds:>9.3} {:>14.0} {loops:>9.1} {tables:>9.1}", kernels as f64 / seconds);
    };
    line("engine, a bare loop", bare);
    line("engine, as a table", table);
    line("pages, one core", best(|| one.install(|| drop(by_export(&path)))));
    line("pages, all cores", best(|| drop(by_export(&path))));
    line("merely reading the bytes", best(|| read_all(&path)));
}

#[allow(clippy::disallowed_methods)] // A benchmark asks the clock.
fn best(run: impl Fn()) -> f64 {
    run();
    let times = (0..3).map(|_| {
        let begun = Instant::now();
        run();
        begun.elapsed().as_secs_f64()
    });
    times.fold(f64::INFINITY, f64::min)
}

fn by_engine(path: &Path) -> [Vec<i64>; 3] {
    let flags = rusqlite::OpenFlags::SQLITE_OPEN_READ_ONLY | rusqlite::OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let db = rusqlite::Connection::open_with_flags(path, flags).expect("opens");
    let select = format!("SELECT {} FROM {}", COLUMNS.join(", "), KERNEL.name);
    let mut statement = db.prepare(&select).expect("prepared");
    let mut rows = statement.query([]).expect("asked");
    let mut all: [Vec<i64>; 3] = Default::default();
    while let Some(row) = rows.next().expect("a row") {
        for (at, values) in all.iter_mut().enumerate() {
            values.push(row.get(at).expect("a number"));
        }
    }
    all
}

fn by_export(path: &Path) -> Rows {
    Export::open(path).expect("opens").columns(&KERNEL, &COLUMNS).expect("read").expect("there")
}

fn read_all(path: &Path) {
    let mut file = fs::File::open(path).expect("opens");
    let mut buffer = vec![0; 1 << 20];
    while file.read(&mut buffer).expect("reads") > 0 {}
}

/// One step of a generator of numbers that look drawn: the same everywhere.
fn drawn(state: &mut u64) -> u64 {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    *state
}

fn generate(folder: &Path, kernels: i64) -> PathBuf {
    let path = folder.join("large.sqlite");
    let db = rusqlite::Connection::open(&path).expect("made");
    db.execute_batch(&format!("PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF; {SCHEMA} BEGIN"))
        .expect("begun");
    let mut put = db.prepare(INSERT).expect("prepared");
    let (mut state, mut clock) = (0x9e37_79b9_7f4a_7c15, 10_000_000_i64);
    for at in 0..kernels {
        let (name, spread) = (drawn(&mut state) % 200, drawn(&mut state));
        // Between half a microsecond and a millisecond, short ones more often.
        let duration = 500 + (8000 >> (spread % 5)) * (1 + (spread >> 8) % 120) as i64;
        let (grid, block) = (1 + name as i64 * 7 % 300, 32 << (name % 6));
        let ids = (at % 8, 7 + at % 16, at + 1, (1_i64 << 48) | (4000 << 24));
        let row = (clock, clock + duration, ids.0, ids.1, ids.2, ids.3, name as i64 * 2 + 1, grid, block);
        put.execute(row).expect("put");
        clock += duration / 8;
    }
    drop(put);
    db.execute_batch("COMMIT").expect("written");
    path
}

const SCHEMA: &str = "CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start INTEGER NOT NULL, end INTEGER NOT NULL,
 deviceId INTEGER NOT NULL, contextId INTEGER NOT NULL, greenContextId INTEGER, streamId INTEGER NOT NULL,
 correlationId INTEGER, globalPid INTEGER, demangledName INTEGER NOT NULL, shortName INTEGER NOT NULL,
 mangledName INTEGER, launchType INTEGER, cacheConfig INTEGER, registersPerThread INTEGER NOT NULL,
 gridX INTEGER NOT NULL, gridY INTEGER NOT NULL, gridZ INTEGER NOT NULL, blockX INTEGER NOT NULL,
 blockY INTEGER NOT NULL, blockZ INTEGER NOT NULL, staticSharedMemory INTEGER NOT NULL,
 dynamicSharedMemory INTEGER NOT NULL, localMemoryPerThread INTEGER NOT NULL, localMemoryTotal INTEGER NOT NULL,
 gridId INTEGER NOT NULL, sharedMemoryExecuted INTEGER, graphNodeId INTEGER, sharedMemoryLimitConfig INTEGER);";

const INSERT: &str = "INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES
 (?1, ?2, ?3, 1, NULL, ?4, ?5, ?6, ?7 + 1, ?7, ?7 + 1, 1, 1, 32, ?8, 1, 1, ?9, 1, 1, 0, 0, 0, 98566144, ?5, 32768,
 NULL, 0)";
