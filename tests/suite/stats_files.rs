//! Where `harness stats` puts its tables: reports, formats and outputs side by side, the names of files, and that none is
//! written over another.

use crate::small_export::{ExportFolder, PLAIN};

fn place() -> ExportFolder {
    let place = ExportFolder::new();
    place.sqlite("a.sqlite", PLAIN);
    place
}

#[test]
fn the_first_report_takes_the_first_format_and_the_first_output() {
    let place = place();
    let ran = place.stats(&[
        "-r",
        "cuda_api_sum,cuda_gpu_kern_sum:base",
        "-r",
        "nvtx_sum",
        "-f",
        "csv:nohdr,json",
        "-o",
        "-,x",
        "a.sqlite",
    ]);
    assert_eq!(ran.code, Some(0), "{}", ran.all());
    assert_eq!(ran.stdout.lines().count(), 2, "{}", ran.stdout);
    assert!(ran.stdout.ends_with("cudaFree\n"), "{}", ran.stdout);
    assert_eq!(place.names(), ["a.sqlite", "x_cuda_gpu_kern_sum_base.json", "x_nvtx_sum.json"]);
    assert!(place.read("x_nvtx_sum.json").contains("\":second/half\""));
    assert!(ran.stderr.contains("written: x_nvtx_sum.json"), "{}", ran.stderr);
}

#[test]
fn one_report_in_several_formats_is_one_file_each() {
    let place = place();
    let formats = "csv,tsv,json,htable,column";
    let ran = place.stats(&["-r", "cuda_api_sum", "-f", formats, "-o", "out/", "a.sqlite"]);
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), ""), "{}", ran.all());
    for (ending, begins) in [
        ("csv", "Time (%),"),
        ("tsv", "Time (%)\t"),
        ("json", "[{"),
        ("html", "<table>"),
        ("txt", " Time (%)  "),
    ] {
        let text = place.read(&format!("out/a_cuda_api_sum.{ending}"));
        assert!(text.starts_with(begins), "{ending}: {text}");
    }
    // Two formats may end alike.
    let ran = place.stats(&["-r", "cuda_api_sum", "-f", "column,table", "-o", "y", "a.sqlite"]);
    assert_eq!(ran.code, Some(2));
    assert!(ran.stderr.contains("two tables would be written to `"), "{}", ran.stderr);
    assert_eq!(place.names(), ["a.sqlite", "out"]);
}

#[test]
fn a_dot_names_files_after_their_inputs_and_a_slash_in_a_range_is_a_dash() {
    let place = place();
    place.sqlite("sub/b.sqlite", PLAIN);
    let ran = place.stats(&["-r", "cuda_api_sum", "-o", ".", "a.sqlite", "sub/b.sqlite"]);
    assert_eq!(ran.code, Some(0), "{}", ran.all());
    assert_eq!(place.read("a_cuda_api_sum.csv"), place.read("sub/b_cuda_api_sum.csv"));
    let ran = place.stats(&["-r", "cuda_api_sum", "-o", "x", "--filter-nvtx", "first/0", "a.sqlite"]);
    assert_eq!(ran.code, Some(0), "{}", ran.all());
    assert!(place.read("x_cuda_api_sum_nvtx=first-0.csv").contains("cudaLaunchKernel"));
    assert!(!place.read("x_cuda_api_sum_nvtx=first-0.csv").contains("cudaFree"));
}

#[test]
fn a_file_that_is_there_is_not_replaced_unless_asked_for() {
    let place = place();
    place.write("x_cuda_api_sum.csv", "mine");
    let run = |more: &[&str]| {
        place.stats(&[&["-r", "cuda_api_sum,nvtx_sum", "-o", "x"], more, &["a.sqlite"]].concat())
    };
    let ran = run(&[]);
    assert_eq!(ran.code, Some(2), "{}", ran.all());
    assert!(ran.stderr.contains("error: x_cuda_api_sum.csv: already exists; `--force-overwrite`"));
    assert_eq!(place.read("x_cuda_api_sum.csv"), "mine");
    assert!(place.read("x_nvtx_sum.csv").contains(":first"), "the other is written");
    assert_eq!(run(&["--force-overwrite=false"]).code, Some(2));
    assert_eq!(run(&["--force-overwrite"]).code, Some(0));
    assert!(place.read("x_cuda_api_sum.csv").starts_with("Time (%)"));
    assert_eq!(run(&["--force-overwrite=true"]).code, Some(0));
}

#[test]
fn two_inputs_are_never_written_to_one_file() {
    let place = place();
    place.sqlite("b.sqlite", PLAIN);
    let ran = place.stats(&["-r", "cuda_api_sum", "-o", "x", "--force-overwrite", "a.sqlite", "b.sqlite"]);
    assert_eq!(ran.code, Some(2));
    assert!(ran.stderr.contains("would be written to `x_cuda_api_sum.csv`; `.` names"), "{}", ran.stderr);
    assert_eq!(place.names(), ["a.sqlite", "b.sqlite"]);
}

#[test]
fn what_is_skipped_leaves_no_file_and_what_cannot_be_written_is_an_error() {
    let place = place();
    let ran = place.stats(&["-r", "osrt_sum", "-o", "x", "a.sqlite"]);
    assert_eq!(ran.code, Some(3), "{}", ran.all());
    assert_eq!(place.names(), ["a.sqlite"]);
    let ran = place.stats(&["-r", "cuda_api_sum,nvtx_sum", "-o", "a.sqlite/x,-", "a.sqlite"]);
    assert_eq!(ran.code, Some(2), "{}", ran.all());
    assert!(ran.stderr.contains("error: ") && ran.stdout.contains(":first"), "{}", ran.all());
}
