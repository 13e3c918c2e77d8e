//! Where the time of GPUs went, against second opinions: the ten numbers of an older script against Python, overlap and
//! exposed communication of a real export against SQL.

use crate::corpus;
use crate::drawn::{Shape, draw};
use crate::fact::Fact;
use crate::small_export::ExportFolder;
use rusqlite::{Connection, OpenFlags, params};
use std::path::Path;
use std::process::Command;

pub(crate) const MADE: &[Fact] = &[(
    "the_ten_numbers_of_drawn_exports_are_those_of_a_second_implementation",
    the_ten_numbers_of_drawn_exports_are_those_of_a_second_implementation,
)];
pub(crate) const COLLECTED_AND_PYTHON: &[Fact] = &[(
    "the_ten_numbers_of_real_exports_are_those_of_a_second_implementation",
    the_ten_numbers_of_real_exports_are_those_of_a_second_implementation,
)];
pub(crate) const COLLECTED: &[Fact] = &[(
    "overlap_and_exposed_communication_of_a_real_export_are_those_of_sql",
    overlap_and_exposed_communication_of_a_real_export_are_those_of_sql,
)];

fn second_opinion(export: &Path) -> String {
    let script = crate::project::root().join("tests/oracle/breakdown.py");
    let ran = Command::new("python3").args(["-B", "-I"]).arg(script).arg(export).output().expect("python3");
    assert!(ran.status.success(), "{}: {}", export.display(), String::from_utf8_lossy(&ran.stderr));
    String::from_utf8(ran.stdout).expect("text")
}

fn has_kernels(export: &Path) -> bool {
    let db = Connection::open_with_flags(export, OpenFlags::SQLITE_OPEN_READ_ONLY).expect("opens");
    db.query_row("SELECT count(*) FROM CUPTI_ACTIVITY_KIND_KERNEL", [], |row| row.get::<_, i64>(0))
        .is_ok_and(|rows| rows > 0)
}

fn the_ten_numbers_of_real_exports_are_those_of_a_second_implementation() {
    let place = ExportFolder::new();
    let mut compared = 0;
    for export in corpus::exports().into_iter().filter(|export| has_kernels(export)) {
        let expected = second_opinion(&export);
        let ran = place.verb("recipe", &["breakdown:compat", &export.display().to_string()]);
        assert_eq!((ran.code, ran.stdout), (Some(0), expected), "{}", export.display());
        compared += 1;
    }
    assert!(compared > 0, "no export has kernels");
}

fn the_ten_numbers_of_drawn_exports_are_those_of_a_second_implementation() {
    let place = ExportFolder::new();
    for seed in 0..24u64 {
        let shape = Shape {
            gpus: [1, 2, 8][seed as usize % 3],
            kernels: [1, 40, 400][seed as usize / 3 % 3],
            has_copies: seed % 2 == 0,
            has_fills: seed % 5 != 0,
        };
        let name = format!("{seed}.sqlite");
        draw(&place.path(&name), seed, &shape);
        let expected = second_opinion(&place.path(&name));
        let ran = place.verb("recipe", &["breakdown:compat", &name]);
        assert_eq!((ran.code, ran.stdout), (Some(0), expected), "seed {seed}");
    }
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

fn overlap_and_exposed_communication_of_a_real_export_are_those_of_sql() {
    let export = corpus::export("h100-2gpu-mfu-before");
    let db = Connection::open_with_flags(&export, OpenFlags::SQLITE_OPEN_READ_ONLY).expect("opens");
    let place = ExportFolder::new();
    let tables = |recipe: &str, table: &str| -> Vec<serde_json::Value> {
        let export = export.display().to_string();
        let ran = place.verb("recipe", &[recipe, &export, "--json", "--table", table]);
        let line: serde_json::Value = serde_json::from_str(&ran.stdout).expect("one object");
        line["tables"][table].as_array().expect("a table").clone()
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
        // Communication kernels of one GPU do not cross each other here, so that theirs add up to the overlap of the
        // union.
        assert_eq!(of_device.iter().sum::<i64>(), overlap, "{device}");
    }
    assert_eq!(kernels, 66);
}
