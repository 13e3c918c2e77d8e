//! How times of collectives are spread beside the mean that nccl-tests printed of them, from the folder of a run on the
//! simulated cluster.

use crate::project::Project;

/// The rows of a table as `harness recipe` prints it, by the names of its columns.
fn rows(project: &Project, recipe: &str, table: &str) -> Vec<std::collections::BTreeMap<String, String>> {
    let folder = project.latest().join("cases/arrivals/raw/all").display().to_string();
    let ran = project.harness(&["recipe", recipe, "--input", &folder, "--csv", "--table", table]);
    assert_eq!(ran.code, Some(0), "{}", ran.all());
    assert!(!ran.stderr.contains("nccl-tests"), "{}", ran.stderr);
    let mut lines = ran.stdout.lines().map(|line| line.split(',').map(str::to_owned).collect::<Vec<_>>());
    let head = lines.next().unwrap_or_default();
    lines.map(|cells| head.iter().cloned().zip(cells).collect()).collect()
}

#[test]
fn the_times_of_a_run_are_spread_by_size_and_placement_beside_what_it_printed() {
    let project = Project::new();
    let ran = project.harness(&["--suite", "evidence-p5", "arrivals", "-q"]);
    assert_eq!(ran.code, Some(0), "{}", ran.all());
    let spread = rows(&project, "nccl_msg:bins=20", "spread");
    for size in [16 << 20, 64 << 20] {
        for placement in ["out of place", "in place"] {
            let of_one =
                spread.iter().filter(|row| row["Size"] == size.to_string() && row["Placement"] == placement);
            let count: u64 = of_one.map(|row| row["Count"].parse::<u64>().expect("a count")).sum();
            // All 32 ranks with 20 iterations each: neither warm-up nor checks.
            assert_eq!(count, 640, "{size} {placement}");
        }
    }
    assert_eq!(
        spread.iter().filter(|row| row["Size"] == (1 << 20).to_string()).count(),
        0,
        "the largest two"
    );
    let sizes = rows(&project, "nccl_msg", "sizes");
    let timed: Vec<_> = sizes.iter().filter(|row| row["Count"] != "0").collect();
    assert_eq!(timed.len(), 8, "four sizes in two placements");
    for row in timed {
        let number = |name: &str| row[name].parse::<f64>().unwrap_or_else(|_| panic!("{name}: {row:?}"));
        // The printed mean holds the launches too, and no kernel is far from it on a simulated cluster that is well.
        assert!((0.5..=1.1).contains(&(number("P50 of Printed (%)") / 100.0)), "{row:?}");
        for name in
            ["Min (ns)", "P1 (ns)", "P5 (ns)", "P50 (ns)", "P95 (ns)", "P99 (ns)", "Max (ns)", "CV (%)"]
        {
            assert!(number(name) >= 0.0, "{name}");
        }
    }
}
