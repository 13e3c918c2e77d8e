//! Heatmaps of real reports: the shares of a map are what questions to a report's own tables give.

use crate::corpus::export;
use crate::fact::Fact;
use crate::project::{Project, rows};
use rusqlite::{Connection, OpenFlags};
use std::path::Path;

pub(crate) const FACTS: &[Fact] = &[
    (
        "the_busy_time_of_real_reports_is_what_their_tables_give_when_asked",
        the_busy_time_of_real_reports_is_what_their_tables_give_when_asked,
    ),
    (
        "every_map_over_every_real_report_gives_a_table_or_says_that_there_is_no_data",
        every_map_over_every_real_report_gives_a_table_or_says_that_there_is_no_data,
    ),
];

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

fn the_busy_time_of_real_reports_is_what_their_tables_give_when_asked() {
    for name in ["gh200-jacobi", "h100-2gpu-mfu-before", "rtx3080-mock", "saxpy-mpi-schema-2.9.1"] {
        let path = export(name);
        let project = Project::new();
        let (maps, ran) = project.tables("cuda_gpu_time_util_map:bins=97", &path);
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
        let path = export(name);
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
