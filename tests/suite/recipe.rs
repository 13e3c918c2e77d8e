//! What `harness recipe` puts on stdout and into folders, and its exit codes.

use crate::project::Ran;
use crate::small_export::{ExportFolder, PLAIN};

fn place() -> ExportFolder {
    let place = ExportFolder::new();
    std::fs::create_dir_all(place.path("reports")).expect("made");
    place.sqlite("reports/rank2.sqlite", PLAIN);
    place.sqlite("reports/rank10.sqlite", PLAIN);
    place
}

fn recipe(place: &ExportFolder, args: &[&str]) -> Ran {
    place.verb("recipe", args)
}

#[track_caller]
fn assert_reported(ran: &Ran, code: i32, expected: &str) {
    assert_eq!(ran.code, Some(code), "{}", ran.all());
    assert!(ran.stderr.contains(expected), "no `{expected}` in\n{}", ran.all());
}

#[test]
fn many_reports_give_one_table_of_all_their_rows() {
    let place = place();
    let ran = recipe(&place, &["cuda_gpu_kern_sum", "--input", "reports", "--csv"]);
    assert_eq!(ran.code, Some(0), "{}", ran.all());
    assert_eq!(
        ran.stdout,
        "Time (%),Total (ns),Count,Avg (ns),Med (ns),Q1 (ns),Q3 (ns),Min (ns),Max (ns),StdDev (ns),Name\n\
         96.8,30634,4,7658.5,7658.5,7468.0,7849.0,7468,7849,220.0,\"gemm<float, 2>\"\n\
         3.2,1000,2,500.0,500.0,500.0,500.0,500,500,0.0,copy\n"
    );
    assert_eq!(ran.stderr, "");
}

#[test]
fn reports_are_numbered_as_a_person_counts_and_the_mapping_is_shown() {
    let place = place();
    let ran = recipe(&place, &["cuda_gpu_kern_sum", "reports", "--json", "--table", "files"]);
    let line: serde_json::Value = serde_json::from_str(&ran.stdout).expect("one object");
    let files = line["tables"]["files"].as_array().expect("a table");
    let of =
        |at: usize| (files[at]["Rank"].as_i64(), files[at]["File"].as_str().unwrap_or_default().to_owned());
    assert_eq!(of(0), (Some(0), "reports/rank2.sqlite".to_owned()));
    assert_eq!(of(1), (Some(1), "reports/rank10.sqlite".to_owned()));
}

#[test]
fn a_folder_holds_every_table_in_every_form_and_is_not_replaced_unasked() {
    let place = place();
    let args = ["cuda_gpu_kern_sum,cuda_api_sum", "reports", "--output", "out", "--csv", "--parquet"];
    assert_reported(&recipe(&place, &args), 0, "written: out");
    for recipe in ["cuda_gpu_kern_sum", "cuda_api_sum"] {
        for table in ["all_stats", "rank_stats", "files"] {
            for form in ["csv", "parquet"] {
                assert!(
                    place.path(&format!("out/{recipe}/{table}.{form}")).is_file(),
                    "{recipe} {table} {form}"
                );
            }
        }
    }
    std::fs::write(place.path("out/note"), "mine").expect("written");
    assert_reported(&recipe(&place, &args), 2, "`out` already exists; `--force-overwrite`");
    assert!(place.path("out/note").is_file());
    let ran = recipe(&place, &["nvtx_sum", "reports", "--parquet"]);
    assert_eq!(ran.code, Some(if ran.stderr.contains("no data") { 3 } else { 0 }), "{}", ran.all());
}

#[test]
fn pages_stand_beside_their_tables_and_an_index_leads_to_them() {
    let place = place();
    let args = ["cuda_gpu_kern_sum:base,cuda_api_sum,mpi_sum", "reports", "--output", "out", "--html"];
    let ran = recipe(&place, &[&args[..], &["--filter-time", "0s/1s"]].concat());
    assert_reported(&ran, 0, "written: out");
    let read = |name: &str| std::fs::read_to_string(place.path(name)).unwrap_or_else(|_| panic!("no {name}"));
    let page = read("out/cuda_gpu_kern_sum/cuda_gpu_kern_sum.html");
    for expected in
        ["<h1>CUDA GPU Kernel Summary</h1>", "<code>base --filter-time 0s/1s</code>", "reports/rank2.sqlite"]
    {
        assert!(page.contains(expected), "no `{expected}`");
    }
    assert!(!page.contains("id=\"simulated\""), "these are no simulated reports");
    // What is whole lies beside it, unasked.
    assert!(place.path("out/cuda_gpu_kern_sum/all_stats.parquet").is_file());
    let index = read("out/index.html");
    assert!(index.contains("href=\"cuda_api_sum/cuda_api_sum.html\"") && !index.contains("mpi_sum"));
    std::fs::remove_dir_all(place.path("out/cuda_api_sum")).expect("removed");
    assert_reported(&recipe(&place, &["index", "out"]), 0, "written: out/index.html");
    assert!(!read("out/index.html").contains("cuda_api_sum"));
    // One page needs no index, and has its folder's name by itself.
    assert_reported(&recipe(&place, &["cuda_api_sum", "reports", "--html"]), 0, "written: cuda_api_sum-1");
    assert!(place.path("cuda_api_sum-1/cuda_api_sum.html").is_file());
    assert!(!place.path("cuda_api_sum-1/index.html").exists());
}

#[test]
fn a_page_of_a_simulated_cluster_says_so_and_so_does_its_index() {
    let project = crate::little::project();
    crate::little::ended(&project);
    let out = project.path().join("out");
    let ran = project.harness(&[
        "recipe",
        "cuda_gpu_kern_sum,cuda_gpu_time_util_map",
        "runs/latest/cases/kernels/raw/p5-001+p5-002",
        "--html",
        "--output",
        "out",
    ]);
    assert_reported(&ran, 0, "note: SIMULATED: nothing in this run was measured on real hardware");
    for page in ["cuda_gpu_kern_sum/cuda_gpu_kern_sum.html", "index.html"] {
        let text = std::fs::read_to_string(out.join(page)).unwrap_or_else(|_| panic!("no {page}"));
        assert!(text.contains("id=\"simulated\">SIMULATED: nothing in"), "{page}");
    }
}

#[test]
fn an_index_of_no_page_is_none() {
    let place = place();
    assert_reported(&recipe(&place, &["index", "reports"]), 3, "no page of a recipe in it");
    assert_reported(&recipe(&place, &["index"]), 2, "no folder given");
    assert_reported(&recipe(&place, &["index", "nowhere"]), 2, "nowhere: ");
    assert!(!place.path("reports/index.html").exists());
}

#[test]
fn without_data_there_is_no_table_and_the_exit_code_says_so() {
    let place = place();
    let ran = recipe(&place, &["mpi_sum", "reports"]);
    assert_reported(&ran, 3, "mpi_sum: 2 reports have no data for it");
    assert_eq!(ran.stdout, "");
}

#[test]
fn rows_that_were_looked_at_and_nothing_found_are_an_answer() {
    let place = place();
    for (name, heading) in
        [("cuda_gpu_kern_sum", "Time (%),Total (ns),"), ("CUDA_KERNEL", "Rank,correlationId,")]
    {
        let ran = recipe(&place, &[name, "reports", "--csv", "--filter-time", "900s/901s"]);
        assert_reported(&ran, 0, &format!("{name}: looked at 6 rows, found none"));
        assert!(ran.stdout.starts_with(heading) && ran.stdout.lines().count() == 1, "{}", ran.stdout);
    }
}

#[test]
fn a_report_that_cannot_be_read_is_named_and_stops_no_other() {
    let place = place();
    place.write("reports/rank3.sqlite", "SQLite format 3\0 and no more");
    let ran = recipe(&place, &["cuda_gpu_kern_sum", "reports", "--csv"]);
    assert_reported(&ran, 2, "error: reports/rank3.sqlite: ");
    assert!(ran.stdout.contains("30634"), "{}", ran.stdout);
}

#[test]
fn wrong_usage_is_reported_at_once_with_what_is_right() {
    let place = place();
    for (args, expected) in [
        (vec!["cuda_gpu_kern_smu", "reports"], "did you mean `cuda_gpu_kern_sum`?"),
        (vec!["cuda_gpu_kern_sum:bse", "reports"], "it has: base, mangled"),
        (vec!["cuda_gpu_kern_sum"], "no input"),
        (vec![], "harness recipe list"),
        (vec!["cuda_gpu_kern_sum", "reports", "--csv", "--json"], "stdout holds one format"),
        (vec!["cuda_gpu_kern_sum", "reports", "--filter-time", "x"], "--filter-time: "),
        (vec!["cuda_gpu_kern_sum", "nowhere"], "nowhere"),
        (
            vec!["cuda_gpu_kern_sum", "reports", "--table", "all"],
            "no table `all`; its tables are `all_stats`, `rank_stats`, `files`",
        ),
        (vec!["diff", "reports"], "compares two inputs"),
        (vec!["cuda_gpu_kern_sum", "reports", "--output", "%q{NOT_SET_ANYWHERE}"], "the variable is not set"),
    ] {
        assert_reported(&recipe(&place, &args), 2, expected);
    }
}

#[test]
fn two_sides_are_compared_with_each_other() {
    let place = place();
    let ran = recipe(&place, &["diff:cuda_api_sum", "--input", "reports/rank2.sqlite", "reports", "--csv"]);
    assert_eq!(ran.code, Some(0), "{}", ran.all());
    assert!(ran.stdout.lines().nth(1).is_some_and(|line| line.contains(",200.0,")), "{}", ran.stdout);
}

#[test]
fn every_recipe_can_be_looked_up() {
    let place = place();
    let list = recipe(&place, &["list"]);
    assert!(list.code == Some(0) && list.stdout.contains("  nvlink_sum  "), "{}", list.all());
    let manual = recipe(&place, &["nvlink_sum", "--help"]);
    assert!(manual.code == Some(0) && manual.stdout.contains("Definition"), "{}", manual.all());
    assert!(recipe(&place, &["--help"]).stdout.contains("--force-overwrite"));
}
