//! Where the time of GPUs went: eight GPUs of which an older script makes one, and the text of its numbers as a file.

use crate::drawn::{Shape, draw};
use crate::small_export::ExportFolder;
use rusqlite::{Connection, params};

/// A second in which GPU after GPU communicates alone for an eighth while the other seven compute.
#[test]
fn eight_gpus_taken_for_one_hide_all_communication_that_each_of_them_exposes() {
    let place = ExportFolder::new();
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
        assert!(ran.stdout.lines().any(|json| json == line), "{line} in\n{}", ran.stdout);
    }
    let ran = place.verb("recipe", &["breakdown:compat", "eight.sqlite", "--table", "gpus", "--json"]);
    let json: serde_json::Value = serde_json::from_str(&ran.stdout).expect("one object");
    let gpus = json["tables"]["gpus"].as_array().expect("a table");
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
    let place = ExportFolder::new();
    draw(&place.path("r.sqlite"), 3, &Shape { gpus: 2, kernels: 9, has_copies: true, has_fills: true });
    let printed = place.verb("recipe", &["breakdown:compat", "r.sqlite"]).stdout;
    let ran = place.verb("recipe", &["breakdown:compat", "r.sqlite", "--output", "out", "--csv"]);
    assert_eq!(ran.code, Some(0), "{}", ran.all());
    assert_eq!(place.read("out/compat.txt"), printed);
    assert!(place.read("out/gpus.csv").starts_with("Rank,PID,Device,"));
    assert!(!place.path("out/compat.csv").exists());
}
