//! Where the time of GPUs went, against second opinions: the ten numbers of an older script against Python, overlap and
//! exposed communication of a real export against SQL, and an export of eight GPUs of which that script makes one.

use crate::small_export::Place;
use rusqlite::{Connection, OpenFlags, params};
use std::path::{Path, PathBuf};
use std::process::Command;

/// The text of a second implementation, where there is a Python to run it.
fn second_opinion(export: &Path) -> Option<String> {
    let script = crate::project::root().join("tests/suite/breakdown.py");
    let ran = match Command::new("python3").args(["-B", "-I"]).arg(script).arg(export).output() {
        Ok(ran) => ran,
        Err(error) => {
            println!("skipped: no python3: {error}");
            return None;
        }
    };
    assert!(ran.status.success(), "{}: {}", export.display(), String::from_utf8_lossy(&ran.stderr));
    Some(String::from_utf8(ran.stdout).expect("text"))
}

fn corpus() -> Vec<PathBuf> {
    let folder = crate::project::root().parent().map(|above| above.join("shared/corpus/nsys"));
    let Some(entries) = folder.and_then(|folder| std::fs::read_dir(folder).ok()) else {
        println!("skipped: no corpus beside the project");
        return Vec::new();
    };
    let mut exports: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    exports.retain(|path| path.extension().is_some_and(|of| of == "sqlite"));
    exports.sort();
    exports
}

fn has_kernels(export: &Path) -> bool {
    let db = Connection::open_with_flags(export, OpenFlags::SQLITE_OPEN_READ_ONLY).expect("opens");
    db.query_row("SELECT count(*) FROM CUPTI_ACTIVITY_KIND_KERNEL", [], |row| row.get::<_, i64>(0))
        .is_ok_and(|rows| rows > 0)
}

#[test]
fn the_ten_numbers_of_real_exports_are_those_of_a_second_implementation() {
    let place = Place::new();
    let mut compared = 0;
    for export in corpus().into_iter().filter(|export| has_kernels(export)) {
        let Some(expected) = second_opinion(&export) else { return };
        let ran = place.verb("recipe", &["breakdown:compat", &export.display().to_string()]);
        assert_eq!((ran.code, ran.stdout), (Some(0), expected), "{}", export.display());
        compared += 1;
    }
    println!("exports compared: {compared}");
}

/// Numbers that look as if they were drawn, the same at every run.
struct Drawn(u64);

impl Drawn {
    fn below(&mut self, most: u64) -> i64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((self.0 >> 33) % most) as i64
    }
}

const NAMES: [&str; 9] = [
    "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096>)",
    "void at::NCCL_like(int*)",
    "sm90_xmma_gemm_bf16",
    "MemCpy_kernel",
    "memset_nccl",
    "mem-copy<float>",
    "memcopy",
    "x_memset32",
    "\u{c4}NCCL \u{e4}",
];

struct Shape {
    gpus: u64,
    kernels: u64,
    has_copies: bool,
    has_fills: bool,
}

/// Kernels of many names that cross each other on several GPUs, some backwards, some without an end or a name.
fn draw(path: &Path, seed: u64, shape: &Shape) {
    let mut db = Connection::open(path).expect("made");
    db.execute_batch(
        "CREATE TABLE StringIds (id INTEGER, value TEXT);
         CREATE TABLE META_DATA_EXPORT (name TEXT, value TEXT);
         INSERT INTO META_DATA_EXPORT VALUES ('EXPORT_SCHEMA_VERSION', '3.20.0');
         CREATE TABLE ANALYSIS_DETAILS (globalVid INTEGER, duration INTEGER, startTime INTEGER, stopTime INTEGER);
         CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start INTEGER, end INTEGER, deviceId INTEGER, streamId INTEGER,
             correlationId INTEGER, globalPid INTEGER, demangledName INTEGER, shortName INTEGER);",
    )
    .expect("tables");
    let mut drawn = Drawn(seed);
    let most = 40 * shape.kernels;
    let rows = db.transaction().expect("begun");
    for (name, id) in NAMES.iter().zip(1..) {
        rows.execute("INSERT INTO StringIds VALUES (?1, ?2)", params![id, name]).expect("put");
    }
    let begin = drawn.below(1000);
    let length = drawn.below(2 * most);
    rows.execute("INSERT INTO ANALYSIS_DETAILS VALUES (0, 1, ?1, ?2), (0, 1, 0, 7)", [begin, begin + length])
        .expect("put");
    for id in 0..shape.kernels {
        let start = drawn.below(most) - 50;
        let end = start + drawn.below(60) - 4;
        let gpu = drawn.below(shape.gpus);
        // One name more than there are.
        let name = drawn.below(NAMES.len() as u64 + 1) + 1;
        rows.execute(
            "INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (?1, ?2, ?3, 7, ?4, ?5, ?6, ?6)",
            params![start, end.max(start), gpu, id as i64, (gpu / 4 + 5) << 24, name],
        )
        .expect("put");
    }
    for (table, is_there) in [("MEMCPY", shape.has_copies), ("MEMSET", shape.has_fills)] {
        if !is_there {
            continue;
        }
        let table = format!("CUPTI_ACTIVITY_KIND_{table}");
        let create = format!(
            "CREATE TABLE {table} (start INTEGER, end INTEGER, bytes INTEGER, copyKind INTEGER, deviceId INTEGER, \
             globalPid INTEGER)"
        );
        rows.execute_batch(&create).expect("made");
        for _ in 0..shape.kernels / 4 {
            let start = drawn.below(most);
            let put = format!("INSERT INTO {table} VALUES (?1, ?2, 64, 1, ?3, ?4)");
            rows.execute(&put, params![start, start + drawn.below(90), drawn.below(shape.gpus), 5i64 << 24])
                .expect("put");
        }
    }
    rows.commit().expect("kept");
}

#[test]
fn the_ten_numbers_of_drawn_exports_are_those_of_a_second_implementation() {
    let place = Place::new();
    for seed in 0..24u64 {
        let shape = Shape {
            gpus: [1, 2, 8][seed as usize % 3],
            kernels: [1, 40, 400][seed as usize / 3 % 3],
            has_copies: seed % 2 == 0,
            has_fills: seed % 5 != 0,
        };
        let name = format!("{seed}.sqlite");
        draw(&place.path(&name), seed, &shape);
        let Some(expected) = second_opinion(&place.path(&name)) else { return };
        let ran = place.verb("recipe", &["breakdown:compat", &name]);
        assert_eq!((ran.code, ran.stdout), (Some(0), expected), "seed {seed}");
    }
}

/// A second in which GPU after GPU communicates alone for an eighth while the other seven compute.
#[test]
fn eight_gpus_taken_for_one_hide_all_communication_that_each_of_them_exposes() {
    let place = Place::new();
    draw(&place.path("eight.sqlite"), 1, &Shape { gpus: 8, kernels: 1, has_copies: false, has_fills: false });
    let db = Connection::open(place.path("eight.sqlite")).expect("opens");
    db.execute_batch(
        "DELETE FROM CUPTI_ACTIVITY_KIND_KERNEL; DELETE FROM ANALYSIS_DETAILS;
         INSERT INTO ANALYSIS_DETAILS VALUES (0, 1, 0, 1000000000);",
    )
    .expect("emptied");
    let part = 125_000_000;
    for turn in 0..8i64 {
        for gpu in 0..8i64 {
            let name = if gpu == turn { 1 } else { 3 };
            db.execute(
                "INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (?1, ?2, ?3, 7, ?4, ?5, ?6, ?6)",
                params![turn * part, (turn + 1) * part, gpu, turn * 8 + gpu, 5i64 << 24, name],
            )
            .expect("put");
        }
    }
    drop(db);
    let ran = place.verb("recipe", &["breakdown:compat", "eight.sqlite"]);
    for line in [
        "GPU Idle Time                       |        0.000000",
        "Communication (NCCL kernels)        |        1.000000",
        "Compute ∩ Comm overlap              |        1.000000",
        "Overall GPU Utilization: 100.00%",
    ] {
        assert!(ran.stdout.lines().any(|told| told == line), "{line} in\n{}", ran.stdout);
    }
    let ran = place.verb("recipe", &["breakdown:compat", "eight.sqlite", "--table", "gpus", "--json"]);
    let told: serde_json::Value = serde_json::from_str(&ran.stdout).expect("one object");
    let gpus = told["tables"]["gpus"].as_array().expect("a table");
    assert_eq!(gpus.len(), 8);
    for gpu in gpus {
        let of = |column: &str| gpu[column].as_i64();
        assert_eq!(of("Communication (ns)"), Some(part));
        assert_eq!(of("Exposed Communication (ns)"), Some(part), "each GPU computes nothing beside it");
        assert_eq!(of("Compute and Communication (ns)"), Some(0));
        assert_eq!(of("Session (ns)"), Some(1_000_000_000));
    }
}

#[test]
fn the_text_is_a_file_of_a_folder_too() {
    let place = Place::new();
    draw(&place.path("r.sqlite"), 3, &Shape { gpus: 2, kernels: 9, has_copies: true, has_fills: true });
    let printed = place.verb("recipe", &["breakdown:compat", "r.sqlite"]).stdout;
    let ran = place.verb("recipe", &["breakdown:compat", "r.sqlite", "--output", "out", "--csv"]);
    assert_eq!(ran.code, Some(0), "{}", ran.all());
    assert_eq!(place.read("out/compat.txt"), printed);
    assert!(place.read("out/gpus.csv").starts_with("Rank,PID,Device,"));
    assert!(!place.path("out/compat.csv").exists());
}

/// The length of a union, by a running maximum.
const UNION: &str = "WITH kernels AS (
        SELECT k.start AS start, k.end AS end FROM CUPTI_ACTIVITY_KIND_KERNEL k
        JOIN StringIds s ON s.id = k.shortName WHERE k.deviceId = ?1 AND s.value GLOB ?2 AND NOT s.value GLOB ?3),
    before AS (
        SELECT start, end, max(end) OVER (ORDER BY start, end ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS last
        FROM kernels)
    SELECT sum(CASE WHEN last IS NULL OR start > last THEN end - start WHEN end > last THEN end - last ELSE 0 END)
    FROM before";

#[test]
fn overlap_and_exposed_communication_of_a_real_export_are_those_of_sql() {
    let exports = corpus();
    let Some(export) = exports.iter().find(|path| path.ends_with("h100-2gpu-mfu-before.sqlite")) else {
        return;
    };
    let db = Connection::open_with_flags(export, OpenFlags::SQLITE_OPEN_READ_ONLY).expect("opens");
    let place = Place::new();
    let tables = |recipe: &str, table: &str| -> Vec<serde_json::Value> {
        let export = export.display().to_string();
        let ran = place.verb("recipe", &[recipe, &export, "--json", "--table", table]);
        let told: serde_json::Value = serde_json::from_str(&ran.stdout).expect("one object");
        told["tables"][table].as_array().expect("a table").clone()
    };
    let totals = tables("nccl_gpu_overlap_trace", "totals");
    let gpus = tables("breakdown", "gpus");
    let trace = tables("nccl_gpu_overlap_trace", "trace");
    assert_eq!((totals.len(), gpus.len()), (2, 2));
    let mut kernels = 0;
    for device in 0..2i64 {
        let union = |like: &str, unlike: &str| -> i64 {
            db.query_row(UNION, params![device, like, unlike], |row| row.get(0)).expect("a number")
        };
        let (communication, compute, both) = (union("nccl*", ""), union("*", "nccl*"), union("*", ""));
        let overlap = communication + compute - both;
        for (row, column, expected) in [
            (&totals, "Communication (ns)", communication),
            (&totals, "Compute (ns)", compute),
            (&totals, "Overlap (ns)", overlap),
            (&totals, "Exposed Communication (ns)", communication - overlap),
            (&gpus, "Communication (ns)", communication),
            (&gpus, "Compute (ns)", compute),
            (&gpus, "Exposed Communication (ns)", communication - overlap),
        ] {
            let row = row.iter().find(|row| row["Device"].as_i64() == Some(device)).expect("the GPU");
            assert_eq!(row[column].as_i64(), Some(expected), "{device}: {column}");
        }
        // Nothing overlaps on either GPU, though the older script finds 10.650 ms of overlap in the same file.
        let counted = [(17_172_652, 253_690_832, 0), (8_229_100, 256_095_624, 0)][device as usize];
        assert_eq!((communication, compute, overlap), counted, "{device}");
        let of_device = trace.iter().filter(|row| {
            row["Device"].as_i64() == Some(device) && row["Kind"].as_str() == Some("communication")
        });
        let of_device: Vec<i64> = of_device.filter_map(|row| row["Overlap (ns)"].as_i64()).collect();
        kernels += of_device.len();
        // Communication kernels of one GPU do not cross each other here, so that theirs add up to the overlap of the union.
        assert_eq!(of_device.iter().sum::<i64>(), overlap, "{device}");
    }
    assert_eq!(kernels, 66);
}
