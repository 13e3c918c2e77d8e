//! Exports that are drawn from a seed: kernels of many names on several GPUs.

use rusqlite::{Connection, params};
use std::path::Path;

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

pub(crate) struct Shape {
    pub gpus: u64,
    pub kernels: u64,
    pub has_copies: bool,
    pub has_fills: bool,
}

/// Kernels of many names that cross each other on several GPUs, some backwards, some without an end or a name.
pub(crate) fn draw(path: &Path, seed: u64, shape: &Shape) {
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
