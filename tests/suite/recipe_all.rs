//! `harness recipe all`: many recipes over many reports in one go, and what is reported about each.

use crate::ended::assert_ended;
use crate::project::{Project, Ran};
use crate::small_export::{ExportFolder, PLAIN, Report};
use serde_json::Value;
use std::path::PathBuf;

fn place() -> ExportFolder {
    let place = ExportFolder::new();
    place.sqlite("reports/rank0.sqlite", PLAIN);
    place.sqlite("reports/rank1.sqlite", PLAIN);
    place
}

fn all(place: &ExportFolder, args: &[&str]) -> Ran {
    place.verb("recipe", &[&["all", "--input", "reports", "--output", "out"], args].concat())
}

/// The line of one recipe.
fn summary_line(place: &ExportFolder, recipe: &str) -> Value {
    let summary: Value = serde_json::from_str(&place.read("out/summary.json")).expect("JSON");
    let recipes = summary["recipes"].as_array().expect("a list").clone();
    let found = recipes.into_iter().find(|line| line["recipe"] == recipe);
    found.unwrap_or_else(|| panic!("no line of {recipe}"))
}

#[test]
fn every_recipe_that_has_data_lies_in_its_folder_in_every_form() {
    let place = place();
    let ran = all(&place, &[]);
    assert_eq!(ran.code, Some(0), "{}", ran.all());
    for (recipe, table) in
        [("cuda_gpu_kern_sum", "all_stats"), ("cuda_api_sum", "rank_stats"), ("breakdown", "files")]
    {
        assert!(place.path(&format!("out/{recipe}/{recipe}.html")).is_file(), "{recipe}");
        for form in ["csv", "parquet"] {
            assert!(place.path(&format!("out/{recipe}/{table}.{form}")).is_file(), "{recipe}/{table}.{form}");
        }
        assert_eq!(summary_line(&place, recipe)["outcome"], "ok");
    }
    let line = summary_line(&place, "mpi_sum");
    assert_eq!((&line["outcome"], &line["folder"]), (&"no data".into(), &Value::Null));
    assert!(
        line["absent"].as_array().is_some_and(|absent| absent.contains(&"MPI_P2P_EVENTS".into())),
        "{line}"
    );
    assert!(!place.path("out/mpi_sum").exists() && place.path("out/index.html").is_file());
    let (index, found) = (place.read("out/index.html"), place.read("out/diagnosis.json"));
    let card = index.find("<h2>What limits the work</h2>").expect("the card");
    assert!(card < index.find("<ul class=\"pages\">").expect("the pages"), "it is the first");
    assert!(found.starts_with("{\"format\":1,\"input\":\"reports\","), "{found}");
    let csv = place.read("out/summary.csv");
    assert!(csv.contains("\ndiff,left out,") && csv.contains("\nCUDA_GPU,left out,"), "{csv}");
    assert!(
        ran.stdout.contains("cuda_gpu_kern_sum") && ran.stdout.contains("absent or empty: "),
        "{}",
        ran.stdout
    );
}

#[test]
fn a_report_that_cannot_be_read_stops_no_recipe_and_no_other_report() {
    let place = place();
    place.write("reports/rank2.sqlite", "SQLite format 3\0 and no more");
    let ran = all(&place, &["--csv"]);
    assert_eq!(ran.code, Some(2), "{}", ran.all());
    let line = summary_line(&place, "cuda_gpu_kern_sum");
    assert_eq!((&line["outcome"], &line["reports"], &line["rows"]), (&"ok".into(), &2.into(), &6.into()));
    assert_eq!(line["unreadable"][0]["report"], "reports/rank2.sqlite");
    assert!(place.read("out/cuda_gpu_kern_sum/all_stats.csv").contains("30634"));
    assert!(!place.path("out/cuda_gpu_kern_sum/all_stats.parquet").exists(), "one form was asked for");
}

#[test]
fn a_recipe_that_one_report_has_no_sound_table_for_stops_no_other_recipe() {
    let place = place();
    let db = rusqlite::Connection::open(place.path("reports/rank1.sqlite")).expect("opens");
    db.execute_batch("ALTER TABLE CUPTI_ACTIVITY_KIND_RUNTIME DROP COLUMN nameId").expect("dropped");
    drop(db);
    let ran = all(&place, &[]);
    assert_eq!(ran.code, Some(2), "{}", ran.all());
    assert!(ran.stderr.contains("has no column `nameId`"), "{}", ran.stderr);
    assert_eq!(summary_line(&place, "cuda_gpu_kern_sum")["reports"], 2);
    let line = summary_line(&place, "cuda_api_sum");
    assert_eq!((&line["outcome"], &line["reports"]), (&"ok".into(), &1.into()), "{line}");
    assert!(line["unreadable"][0]["why"].as_str().is_some_and(|why| why.contains("nameId")), "{line}");
}

#[test]
fn without_any_data_there_is_no_folder_and_the_exit_code_says_so() {
    let place = ExportFolder::new();
    place.sqlite("reports/empty.sqlite", Report::default());
    let ran = all(&place, &[]);
    assert_eq!(ran.code, Some(3), "{}", ran.all());
    assert!(ran.stdout.contains("no data") && !place.path("out").exists(), "{}", ran.stdout);
}

#[test]
fn the_folder_is_numbered_where_it_is_not_named() {
    let place = place();
    let ran = place.verb("recipe", &["all", "reports", "--csv", "--quiet"]);
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), ""), "{}", ran.all());
    assert!(place.path("all-1/summary.csv").is_file());
}

#[test]
fn the_same_reports_give_the_same_bytes() {
    let place = place();
    let bytes = || {
        let ran = all(&place, &["--force-overwrite"]);
        assert_eq!(ran.code, Some(0), "{}", ran.all());
        let mut files: Vec<PathBuf> = Vec::new();
        let mut open = vec![place.path("out")];
        while let Some(folder) = open.pop() {
            for entry in std::fs::read_dir(folder).expect("a folder").flatten() {
                if entry.path().is_dir() { open.push(entry.path()) } else { files.push(entry.path()) }
            }
        }
        files.sort();
        files.into_iter().map(|file| (std::fs::read(&file).expect("read"), file)).collect::<Vec<_>>()
    };
    assert!(bytes() == bytes());
}

/// The names that a public list of 2024 with 33 recipes has.
const FIELD: &[&str] = &[
    "cuda_api_sum",
    "cuda_api_sync",
    "cuda_gpu_kern_hist",
    "cuda_gpu_kern_pace",
    "cuda_gpu_kern_sum",
    "cuda_gpu_mem_size_sum",
    "cuda_gpu_mem_time_sum",
    "cuda_gpu_time_util_map",
    "cuda_memcpy_async",
    "cuda_memcpy_sync",
    "cuda_memset_sync",
    "diff",
    "dx12_mem_ops",
    "gpu_gaps",
    "gpu_metric_util_map",
    "gpu_time_util",
    "mpi_gpu_time_util_map",
    "mpi_sum",
    "my_custom_recipe",
    "nccl_gpu_overlap_trace",
    "nccl_gpu_proj_sum",
    "nccl_gpu_time_util_map",
    "nccl_sum",
    "network_sum",
    "network_traffic_map",
    "nvlink_sum",
    "nvtx_gpu_proj_pace",
    "nvtx_gpu_proj_sum",
    "nvtx_gpu_proj_trace",
    "nvtx_pace",
    "nvtx_sum",
    "osrt_sum",
    "ucx_gpu_time_util_map",
];

#[test]
fn every_name_of_the_field_and_of_this_project_answers_the_list() {
    assert_eq!(FIELD.len(), 33);
    let list = ExportFolder::new().verb("recipe", &["list"]);
    let own = recipes::recipe::of_reports::LIST.iter().map(|recipe| recipe.name);
    let names: Vec<&str> = FIELD.iter().copied().chain(own).collect();
    let answers = |name: &str| list.stdout.lines().any(|line| line.split_whitespace().next() == Some(name));
    let silent: Vec<&&str> = names.iter().filter(|name| !answers(name)).collect();
    assert!(silent.is_empty(), "not in the list: {silent:?}");
}

fn run_all(project: &Project, args: &[&str]) -> (Value, Ran) {
    let raw = project.latest().join("cases/kernels-all_reduce/raw/all").display().to_string();
    let ran = project.harness(
        &[&["recipe", "all", "--input", &raw, "--output", "out", "--force-overwrite"], args].concat(),
    );
    assert_eq!(ran.code, Some(0), "{}", ran.all());
    let text = std::fs::read_to_string(project.path().join("out/summary.json")).expect("written");
    (serde_json::from_str(&text).expect("JSON"), ran)
}

#[test]
fn the_reports_of_a_simulated_run_are_gone_through_by_all_recipes_and_those_of_users() {
    let project = Project::new();
    project.harness(&["--suite", "nccl-p5", "kernels-all_reduce"]);
    let (summary, _) = run_all(&project, &[]);
    assert_ended(&summary);
    let ended = |name: &str| {
        let lines = summary["recipes"].as_array().expect("a list");
        lines.iter().find(|line| line["recipe"] == name).map(|line| line["outcome"].clone())
    };
    for name in ["cuda_gpu_kern_sum", "nccl_sum", "stragglers", "nccl_gpu_time_util_map", "kernel_times"] {
        assert_eq!(ended(name), Some("ok".into()), "{name}");
    }
    // A set is those recipes alone; the kernel whose pace it shows is found and named.
    let (summary, ran) = run_all(&project, &["--set", "seed-2024"]);
    assert_ended(&summary);
    assert_eq!(summary["recipes"].as_array().map(Vec::len), Some(10));
    let note = "no kernel name contains `ReduceScatter`; existing kernels: `ncclDevKernel_AllReduce";
    assert!(ran.stderr.contains(note), "{}", ran.all());
}
