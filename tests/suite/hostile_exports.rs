//! Exports that a node left damaged or made to do harm, and panics wherever they happen: exit 3, all reports written, the
//! job named. A run of many nodes must not end by the files of one.

use crate::little::id;
use crate::project::{Project, Ran};
use std::fs;
use std::path::PathBuf;

const SUITE: &str = r#"
instance = "p5"
about = "one profiled case"
[[case]]
name = "kernels"
placement = "pairs"
workload = { kind = "nccl-tests", op = "all_reduce", from = "64MiB", to = "256MiB", factor = 2 }
recipes = ["nccl_tests", "cuda_gpu_kern_sum"]
counters = false
[case.profile]
keep = "always"
[[case.assert]]
metric = "kernel.class_share"
class = "nccl"
at_least = "95 %"
"#;

fn project() -> Project {
    let project = Project::new();
    project.write("suites/kernels.toml", SUITE);
    let ran = project.harness(&["--suite", "kernels", "--nodes", "p5-[001-004]", "-q"]);
    assert_eq!(ran.code, Some(0), "{}", ran.all());
    project
}

/// A table of the newest run's first job.
fn table(project: &Project, name: &str) -> PathBuf {
    let raw = project.latest().join("cases/kernels/raw");
    let mut found: Vec<PathBuf> = Vec::new();
    let mut open = vec![fs::canonicalize(raw).expect("there")];
    while let Some(next) = open.pop() {
        for entry in fs::read_dir(next).expect("read").flatten() {
            let path = entry.path();
            if path.is_dir() {
                open.push(path);
            } else if path.ends_with(name) {
                found.push(path);
            }
        }
    }
    found.sort();
    found.swap_remove(0)
}

#[track_caller]
fn assert_reported(project: &Project, ran: &Ran) {
    assert_eq!(ran.code, Some(3), "{}", ran.all());
    for file in ["junit.xml", "summary.json", "cases/kernels/verdict.json"] {
        assert!(project.latest().join(file).is_file(), "{file} is not there: {}", ran.all());
    }
    let verdict = fs::read_to_string(project.latest().join("cases/kernels/verdict.json")).expect("there");
    assert!(verdict.contains("inconclusive") && verdict.contains("p5-001"), "{verdict}");
    assert!(verdict.contains("\"pass\""), "the other pair stands: {verdict}");
}

/// A footer whose list of row groups is said to have 2^31 - 1 elements.
fn boundless() -> Vec<u8> {
    let footer = [0x49, 0xfc, 0xff, 0xff, 0xff, 0xff, 0x07, 0x00];
    [b"PAR1", &footer[..], &(footer.len() as u32).to_le_bytes(), b"PAR1"].concat()
}

#[test]
fn a_table_that_one_node_left_damaged_or_boundless_is_inconclusive_for_its_job_alone() {
    let project = project();
    let parent = id(&project);
    let kernels = table(&project, "CUPTI_ACTIVITY_KIND_KERNEL.parquet");
    let whole = fs::read(&kernels).expect("there");
    let mut cut = whole.clone();
    cut.truncate(whole.len() / 2);
    let mut other = whole.clone();
    let footer = whole.len() - 200;
    other[footer..footer + 100].fill(0x15);
    for bytes in [cut, other, boundless()] {
        fs::write(&kernels, bytes).expect("written");
        let ran = project.harness(&["-q", "--run", &parent, "--from", "collect"]);
        assert_reported(&project, &ran);
        assert!(!ran.stderr.contains("panicked"), "{}", ran.all());
    }
}

#[test]
fn a_panic_while_a_job_s_files_are_read_is_inconclusive_and_never_exit_101() {
    let project = project();
    let parent = id(&project);
    let mut command = project.command(&["-q", "--run", &parent, "--from", "analyze"]);
    let ran = crate::project::ran(command.env("HARNESS_TEST_PANIC_AT", "analyze").output().expect("starts"));
    assert_eq!(ran.code, Some(3), "{}", ran.all());
    assert!(project.latest().join("junit.xml").is_file());
    let verdict = fs::read_to_string(project.latest().join("cases/kernels/verdict.json")).expect("there");
    assert!(verdict.contains("internal error while the job's files were read: provoked"), "{verdict}");
    assert!(ran.stderr.contains("error: internal error at "), "{}", ran.all());
}

#[test]
fn a_report_that_cannot_be_made_keeps_no_other_from_being_written() {
    let project = project();
    let parent = id(&project);
    let mut command = project.command(&["-q", "--run", &parent, "--from", "report"]);
    let ran =
        crate::project::ran(command.env("HARNESS_TEST_PANIC_AT", "junit.xml").output().expect("starts"));
    assert_eq!(ran.code, Some(3), "{}", ran.all());
    assert!(project.latest().join("summary.json").is_file(), "{}", ran.all());
}

#[test]
fn a_panic_that_nobody_met_is_exit_3_with_how_to_report_it() {
    let project = Project::new();
    let mut command = project.command(&["check"]);
    let ran = crate::project::ran(command.env("HARNESS_TEST_PANIC_AT", "main").output().expect("starts"));
    assert_eq!(ran.code, Some(3), "{}", ran.all());
    assert_eq!(ran.stderr.lines().count(), 2, "{}", ran.all());
    assert!(ran.stderr.starts_with("error: internal error at harness/src/panics.rs:"), "{}", ran.all());
    assert!(ran.stderr.contains("this is a bug in harness 0.1.0"), "{}", ran.all());
}
