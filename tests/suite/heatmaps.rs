//! Heatmaps of whole runs and of real reports: what a slow NIC looks like, and that the shares of a map are what
//! questions to a report's own tables give.

use crate::project::{Project, Ran, root};
use rusqlite::{Connection, OpenFlags};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// The cells of a table of CSV that has no quoted cell, by heading.
fn rows(csv: &Path) -> Vec<BTreeMap<String, String>> {
    let text = fs::read_to_string(csv).unwrap_or_else(|error| panic!("{}: {error}", csv.display()));
    let mut lines = text.lines();
    let headings: Vec<&str> = lines.next().unwrap_or_default().split(',').collect();
    let row = |line: &str| {
        headings.iter().map(|heading| (*heading).to_owned()).zip(line.split(',').map(str::to_owned)).collect()
    };
    lines.map(row).collect()
}

/// The folder of the recipe's tables.
fn recipe(project: &Project, name: &str, input: &Path) -> (PathBuf, Ran) {
    let input = input.display().to_string();
    let ran = project.harness(&[
        "recipe",
        name,
        "--input",
        &input,
        "--csv",
        "--output",
        "maps",
        "--force-overwrite",
    ]);
    (project.path().join("maps"), ran)
}

#[test]
fn a_slow_nic_is_seen_among_all_nics_of_both_nodes() {
    let project = Project::new();
    let fault = "p5-002:nic-slow=0.4@rdmap113s0";
    project.harness(&["--suite", "nccl-p5", "--sim-fault", fault, "nic-pairs"]);
    let raw = project.latest().join("cases/nic-pairs/raw/p5-001-to-p5-002");
    let (maps, ran) = recipe(&project, "network_map_aws:bins=40", &raw);
    assert_eq!(ran.code, Some(0), "{}", ran.all());
    let mut most: BTreeMap<(String, String), f64> = BTreeMap::new();
    for row in rows(&maps.join("heatmap.csv")) {
        if row["Counter"] == "rx_bytes" && row["Host"] == "p5-002" {
            let mean: f64 = row["Mean"].parse().unwrap_or_default();
            let of_nic = most.entry((row["Host"].clone(), row["Device"].clone())).or_default();
            *of_nic = of_nic.max(mean);
        }
    }
    assert_eq!(most.len(), 32);
    let slow = most[&("p5-002".to_owned(), "rdmap113s0".to_owned())];
    for ((_, device), rate) in &most {
        assert!(device == "rdmap113s0" || slow < 0.6 * rate, "{device}: {rate}, the slow one: {slow}");
    }
    let hosts: Vec<String> =
        rows(&maps.join("totals.csv")).iter().map(|row| format!("{} {}", row["Host"], row["From"])).collect();
    for host in ["p5-001 sampler", "p5-002 sampler"] {
        assert!(hosts.iter().any(|known| known == host), "{host}");
    }
}

#[test]
fn the_reports_of_a_run_give_a_row_for_each_rank_that_was_profiled() {
    let project = Project::new();
    project.harness(&["--suite", "nccl-p5", "kernels-all_reduce"]);
    let raw = project.latest().join("cases/kernels-all_reduce/raw/all");
    let (maps, ran) = recipe(&project, "nccl_gpu_time_util_map:bins=4", &raw);
    assert_eq!(ran.code, Some(0), "{}", ran.all());
    let ranks: Vec<String> = rows(&maps.join("totals.csv")).iter().map(|row| row["Rank"].clone()).collect();
    assert_eq!(ranks, ["0", "1", "2", "3"]);
    assert!(!ran.stderr.contains("not moved to one clock"), "each tells when it began: {}", ran.all());
    assert_eq!(rows(&maps.join("heatmap.csv")).len(), 16);
}

fn corpus(name: &str) -> Option<PathBuf> {
    let path = root().parent()?.join("shared/corpus/nsys").join(format!("{name}.sqlite"));
    if !path.exists() {
        println!("skipped: no corpus beside the project");
        return None;
    }
    Some(path)
}

/// How long each device was busy, by a question to the table: each kernel adds what it has behind all before it.
fn asked(path: &Path) -> Vec<(i64, i64)> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let db = Connection::open_with_flags(path, flags).expect("opens");
    let question = "SELECT deviceId, sum(max(0, end - max(start, coalesce(reached, start)))) FROM \
                    (SELECT deviceId, start, end, max(end) OVER (PARTITION BY deviceId ORDER BY start, end \
                    ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS reached FROM \
                    CUPTI_ACTIVITY_KIND_KERNEL) GROUP BY deviceId ORDER BY deviceId";
    let mut statement = db.prepare(question).expect("a question");
    let rows = statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?))).expect("asked");
    rows.collect::<Result<_, _>>().expect("numbers")
}

#[test]
fn the_busy_time_of_real_reports_is_what_their_tables_give_when_asked() {
    for name in ["gh200-jacobi", "h100-2gpu-mfu-before", "rtx3080-mock", "saxpy-mpi-schema-2.9.1"] {
        let Some(path) = corpus(name) else { return };
        let project = Project::new();
        let (maps, ran) = recipe(&project, "cuda_gpu_time_util_map:bins=97", &path);
        assert_eq!(ran.code, Some(0), "{}", ran.all());
        let totals = rows(&maps.join("totals.csv"));
        let found: Vec<(i64, i64)> = totals
            .iter()
            .map(|row| {
                (
                    row["Device"].parse().expect("a number"),
                    row["Kernels Time (ns)"].parse().expect("a number"),
                )
            })
            .collect();
        assert_eq!(found, asked(&path), "{name}");
    }
}

#[test]
fn every_map_over_every_real_report_gives_a_table_or_says_that_there_is_no_data() {
    const MAPS: [&str; 7] = [
        "cuda_gpu_time_util_map",
        "gpu_metric_util_map",
        "mpi_gpu_time_util_map",
        "nccl_gpu_time_util_map",
        "network_map_aws",
        "network_traffic_map",
        "ucx_gpu_time_util_map",
    ];
    let names = [
        "gh200-jacobi",
        "h100-2gpu-mfu-before",
        "rtx3080-mock",
        "rtx4060-no-kernel-table",
        "saxpy-mpi-schema-2.9.1",
    ];
    let project = Project::new();
    let mut with_data = Vec::new();
    for name in names {
        let Some(path) = corpus(name) else { return };
        for map in MAPS {
            let ran = project.harness(&["recipe", map, &path.display().to_string()]);
            match ran.code {
                Some(0) => with_data.push((name, map)),
                Some(3) => assert!(ran.stderr.contains("the report has no data for it"), "{}", ran.all()),
                _ => panic!("{name}: {map}: {}", ran.all()),
            }
        }
    }
    // MPI of 2022 stands in ranges.
    assert!(with_data.contains(&("saxpy-mpi-schema-2.9.1", "mpi_gpu_time_util_map")), "{with_data:?}");
    assert_eq!(with_data.len(), 9, "{with_data:?}");
}
