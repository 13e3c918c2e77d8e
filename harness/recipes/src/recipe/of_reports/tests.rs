//! Recipes over several small reports.

use super::part_tests::both_ways;
use super::*;
use crate::result_table::Values;
use crate::testing::exports::{parquet, sqlite};
use std::path::PathBuf;

pub(super) fn inputs(paths: Vec<PathBuf>) -> Vec<Input> {
    let sides = paths.into_iter().enumerate();
    sides.map(|(side, path)| Input { shown: format!("r{side}"), path, side }).collect()
}

pub(super) fn surveyed(name: &str, words: &[&str], inputs: &[Input]) -> Outcome {
    let recipe = find(name).expect("there");
    let arguments = Arguments::read(recipe.name, recipe.arguments, words).expect("known");
    let asked = [(recipe, arguments)];
    let survey_of = Survey { asked: &asked, inputs, filter: None, jobs: 2, progress: &|_| {} };
    both_ways(&survey_of).remove(0)
}

pub(super) fn table<'a>(outcome: &'a Outcome, name: &str) -> &'a ResultTable {
    let found = outcome.tables.iter().find(|(table, _)| *table == name);
    &found.unwrap_or_else(|| panic!("no {name}: {:?}", outcome.tables.len())).1
}

pub(super) fn integers(result_table: &ResultTable, column: &str) -> Vec<Option<i64>> {
    match result_table.column(column).map(|column| &column.values) {
        Some(Values::Integers(values)) => values.iter().collect(),
        other => panic!("{column}: {other:?}"),
    }
}

pub(super) fn texts(result_table: &ResultTable, column: &str) -> Vec<String> {
    match result_table.column(column).map(|column| &column.values) {
        Some(Values::Texts(values)) => {
            values.iter().map(|text| text.unwrap_or_default().to_owned()).collect()
        }
        other => panic!("{column}: {other:?}"),
    }
}

pub(super) fn decimals(result_table: &ResultTable, column: &str) -> Vec<Option<f64>> {
    match result_table.column(column).map(|column| &column.values) {
        Some(Values::Decimals(values)) => values.clone(),
        other => panic!("{column}: {other:?}"),
    }
}

#[test]
fn every_recipe_says_what_it_is_for_and_how_its_figures_come_about() {
    for (at, recipe) in LIST.iter().enumerate() {
        assert!(LIST[..at].iter().all(|other| other.name != recipe.name), "{}", recipe.name);
        assert!(!recipe.about.is_empty() && !recipe.definition.is_empty(), "{}", recipe.name);
        assert_eq!(find(recipe.name).map(|found| found.title), Some(recipe.title));
    }
}

/// Capital letters in a declared name stand for others.
fn is_declared(recipe: &ReportRecipe<'_>, chart: &str) -> bool {
    recipe.charts().iter().any(|(declared, _)| {
        let begin = declared.split(|letter: char| letter.is_ascii_uppercase()).next().unwrap_or_default();
        *declared == chart || (begin.len() < declared.len() && chart.starts_with(begin))
    })
}

#[test]
fn recipes_give_the_charts_that_they_declare() {
    let made = crate::testing::Made::begin();
    made.string(1, "cudaLaunchKernel_v7000")
        .string(2, "gemm")
        .string(3, "gemm")
        .string(4, "ncclDevKernel_AllReduce(x)");
    made.string(5, "ncclDevKernel_AllReduce");
    for step in 0..4 {
        let at = step * 1000;
        made.range((at, at + 900), 3, "step").call((at, at + 5), 3, at, 1).kernel((at + 30, at + 95), at, 2);
        made.call((at + 6, at + 9), 3, at + 1, 1).kernel((at + 60, at + 190), at + 1, 4);
    }
    let inputs = inputs(vec![made.path()]);
    let mut drawn = 0;
    for recipe in LIST {
        let outcome = surveyed(recipe.name, &[], &inputs);
        for chart in outcome.charts {
            assert!(is_declared(recipe, &chart.name), "`{}` draws undeclared: {}", recipe.name, chart.name);
            drawn += 1;
        }
    }
    assert!(drawn > 20, "{drawn}");
}

#[test]
fn figures_of_several_reports_are_of_all_their_rows_together() {
    let folder = tempfile::tempdir().expect("a folder");
    let (one, two) = (folder.path().join("1"), folder.path().join("2"));
    std::fs::create_dir_all(&one).expect("made");
    std::fs::create_dir_all(&two).expect("made");
    let inputs = inputs(vec![
        parquet(&one, &[(0, 10, "a"), (20, 50, "a"), (60, 61, "b")], &[]),
        sqlite(&two, &[(0, 20, "a")], &[], false),
    ]);
    let outcome = surveyed("cuda_gpu_kern_sum", &[], &inputs);
    assert_eq!((outcome.unreadable.len(), outcome.notes.len()), (0, 0));
    let all = table(&outcome, "all_stats");
    assert_eq!(texts(all, "Name"), ["a", "b"]);
    assert_eq!(integers(all, "Total"), [Some(60), Some(1)]);
    assert_eq!(integers(all, "Count"), [Some(3), Some(1)]);
    assert_eq!(decimals(all, "Med"), [Some(20.0), Some(1.0)], "not a mean of the reports' medians");
    let ranks = table(&outcome, "rank_stats");
    assert_eq!(integers(ranks, "Rank"), [Some(0), Some(0), Some(1)]);
    assert_eq!(integers(ranks, "Total"), [Some(40), Some(1), Some(20)]);
    let files = table(&outcome, "files");
    assert_eq!(texts(files, "Status"), ["ok", "ok"]);
    assert_eq!(texts(files, "Rank from"), ["order of names"; 2]);
}

#[test]
fn a_report_that_cannot_be_read_is_named_and_the_others_are_read() {
    let folder = tempfile::tempdir().expect("a folder");
    let good = sqlite(folder.path(), &[(0, 10, "a")], &[], false);
    let bad = folder.path().join("bad.sqlite");
    std::fs::write(&bad, "SQLite format 3\0 and nothing more").expect("written");
    let outcome = surveyed("cuda_gpu_kern_sum", &[], &inputs(vec![bad, good]));
    assert_eq!(outcome.unreadable.len(), 1);
    assert_eq!(outcome.unreadable[0].0, "r0");
    assert_eq!(integers(table(&outcome, "all_stats"), "Count"), [Some(1)]);
    assert!(texts(table(&outcome, "files"), "Status")[0].starts_with("unreadable: "));
}

#[test]
fn a_report_without_data_gives_no_rows_and_says_so_and_all_without_give_no_table() {
    let folder = tempfile::tempdir().expect("a folder");
    let other = folder.path().join("other");
    std::fs::create_dir_all(&other).expect("made");
    let empty = parquet(&other, &[], &[]);
    let full = sqlite(folder.path(), &[(0, 10, "a")], &[], false);
    let outcome = surveyed("cuda_gpu_kern_sum", &[], &inputs(vec![empty.clone(), full]));
    assert_eq!(texts(table(&outcome, "files"), "Status"), ["no data", "ok"]);
    let outcome = surveyed("cuda_gpu_kern_sum", &[], &inputs(vec![empty]));
    assert!(outcome.tables.is_empty() && outcome.unreadable.is_empty());
}

#[test]
fn two_inputs_are_held_side_by_side() {
    let folder = tempfile::tempdir().expect("a folder");
    let later = folder.path().join("later");
    std::fs::create_dir_all(&later).expect("made");
    let before = sqlite(folder.path(), &[(0, 10, "a"), (10, 15, "gone")], &[], false);
    let after = sqlite(&later, &[(0, 40, "a"), (50, 51, "new")], &[], false);
    let outcome = surveyed("diff", &["cuda_gpu_kern_sum"], &inputs(vec![before, after]));
    let diff = table(&outcome, "diff");
    assert_eq!(texts(diff, "Name"), ["a", "gone", "new"]);
    assert_eq!(integers(diff, "Difference"), [Some(30), Some(-5), Some(1)]);
    assert_eq!(decimals(diff, "Second of First"), [Some(400.0), None, None]);
    assert_eq!(integers(diff, "First Total"), [Some(10), Some(5), None]);
    assert_eq!(integers(diff, "Second Total"), [Some(40), None, Some(1)]);
}

#[test]
fn what_a_report_lost_comes_first_and_is_marked() {
    let folder = tempfile::tempdir().expect("a folder");
    let texts_of = [
        (1, "Number of CUDA events collected: 3."),
        (3, "Something failed"),
        (2, "4096 events were dropped"),
    ];
    let report = parquet(folder.path(), &[(0, 1, "a")], &texts_of);
    let outcome = surveyed("diagnostics", &[], &inputs(vec![report]));
    let rows = table(&outcome, "rows");
    assert_eq!(texts(rows, "Loss"), ["yes", "no", "no"]);
    assert_eq!(texts(rows, "Text")[..2], ["4096 events were dropped", "Something failed"]);
}

#[test]
fn calls_stand_beside_what_they_launched() {
    use crate::testing::{Made, PROCESS};
    let made = Made::begin();
    made.string(1, "cudaLaunchKernel_v7000").string(2, "gemm").string(3, "cudaMemset_v3020");
    made.call((0, 10), 7, 100, 1).call((20, 30), 7, 101, 3).call((40, 50), 7, 102, 1);
    made.put(
        &nsys::tables::KERNEL,
        &[
            ("start", 12.into()),
            ("end", 18.into()),
            ("deviceId", 3.into()),
            ("streamId", 9.into()),
            ("demangledName", 2.into()),
            ("shortName", 2.into()),
            ("correlationId", 100.into()),
            ("globalPid", PROCESS.into()),
        ],
    );
    made.put(
        &nsys::tables::MEMSET,
        &[
            ("start", 32.into()),
            ("end", 33.into()),
            ("bytes", 64.into()),
            ("deviceId", 3.into()),
            ("correlationId", 101.into()),
            ("globalPid", PROCESS.into()),
        ],
    );
    let inputs = inputs(vec![made.path()]);
    let outcome = surveyed("CUDA_COMBINED", &[], &inputs);
    let rows = table(&outcome, "rows");
    assert_eq!(integers(rows, "start"), [Some(0), Some(20)], "the third call launched nothing");
    assert_eq!(integers(rows, "gpu_start"), [Some(12), Some(32)]);
    assert_eq!(integers(rows, "streamId"), [Some(9), None]);
    assert_eq!(texts(rows, "name"), ["cudaLaunchKernel_v7000", "cudaMemset_v3020"]);
    let outcome = surveyed("CUDA_COMBINED_KERNEL", &[], &inputs);
    let rows = table(&outcome, "rows");
    assert_eq!((texts(rows, "shortName"), integers(rows, "tid")), (vec!["gemm".to_owned()], vec![Some(7)]));
}

#[test]
fn metrics_of_gpus_as_older_reports_have_them_are_read_from_their_json() {
    use crate::testing::Made;
    let made = Made::begin();
    for (at, text) in [
        (0i64, r#"{"NVLink RX Throughput [%]": "10", "SM Active": "50"}"#),
        (1, r#"{"NVLink RX Throughput [%]": "30", "SM Active": "nan"}"#),
        (2, "no json"),
    ] {
        let row = [("timestamp", at.into()), ("typeId", 0x0102i64.into()), ("data", text.to_owned().into())];
        made.put(&nsys::tables::GENERIC_EVENTS, &row);
    }
    let outcome = surveyed("nvlink_sum", &[], &inputs(vec![made.path()]));
    let rows = table(&outcome, "rows");
    assert_eq!((integers(rows, "GPU"), integers(rows, "Samples")), (vec![Some(2)], vec![Some(2)]));
    assert_eq!(decimals(rows, "Med"), [Some(20.0)]);
    assert!(outcome.notes.iter().any(|note| note.ends_with("not JSON objects: 1")), "{:?}", outcome.notes);
    let outcome = surveyed("GPU_METRICS", &[], &inputs(vec![made.path()]));
    assert_eq!(decimals(table(&outcome, "rows"), "SM Active"), [Some(50.0), None]);
}

#[test]
fn gpus_that_were_sampled_without_nvlink_are_an_answer() {
    use crate::testing::Made;
    let made = Made::begin();
    let row = [("timestamp", 0.into()), ("typeId", 1.into()), ("metricId", 5.into()), ("value", 7.into())];
    made.put(&nsys::tables::GPU_METRICS, &row);
    let outcome = surveyed("nvlink_sum", &[], &inputs(vec![made.path()]));
    assert_eq!(table(&outcome, "rows").height(), 0);
    assert!(
        surveyed("nvlink_sum", &[], &inputs(vec![Made::begin().string(1, "a").path()])).tables.is_empty()
    );
}

#[test]
fn mpi_as_a_domain_of_ranges_is_read_where_there_are_no_tables_of_it() {
    use crate::testing::Made;
    use nsys::trace::nvtx::DOMAIN;
    let made = Made::begin();
    made.event(DOMAIN, 7, &[("domainId", 4.into()), ("text", "MPI".to_owned().into())]);
    made.range((0, 9), 7, "step");
    made.event(
        nsys::trace::nvtx::PUSH_POP,
        7,
        &[
            ("start", 1.into()),
            ("end", 4.into()),
            ("domainId", 4.into()),
            ("text", "MPI_Send".to_owned().into()),
        ],
    );
    let outcome = surveyed("mpi_sum", &[], &inputs(vec![made.path()]));
    let all = table(&outcome, "all_stats");
    assert_eq!(
        (texts(all, "Source"), texts(all, "Name")),
        (vec!["nvtx".to_owned()], vec!["MPI_Send".to_owned()])
    );
    assert_eq!(integers(all, "Total"), [Some(3)]);
}
