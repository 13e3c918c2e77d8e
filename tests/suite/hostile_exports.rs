//! Exports that a node left damaged or made to do harm, and panics wherever they happen: exit 3, all reports written, the
//! job named. A run of many nodes must not end by the files of one.

use crate::little::id;
use crate::peak_memory::most_mib;
use crate::project::{HARNESS, Project, Ran};
use std::fs;
use std::io::Write;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::process::{Command, Stdio};

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

/// Another table in the place of one, with the digest that a hostile node reports it.
fn forge(project: &Project, name: &str, bytes: &[u8]) {
    let path = table(project, name);
    let was = fs::read(&path).expect("there");
    let account =
        path.parent().and_then(|export| export.parent()).expect("a folder").join("profile.rank0.txt");
    let text = fs::read_to_string(&account).expect("there");
    let of = |bytes: &[u8]| (base::digest::sha256(bytes), bytes.len().to_string());
    let ((old, old_length), (new, length)) = (of(&was), of(bytes));
    let forged = |line: &str| match line.contains(&old) {
        true => format!("{}\n", line.replace(&old, &new).replace(&old_length, &length)),
        false => format!("{line}\n"),
    };
    assert!(text.contains(&old), "{text}");
    fs::write(account, text.lines().map(forged).collect::<String>()).expect("written");
    fs::write(path, bytes).expect("written");
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
        forge(&project, "CUPTI_ACTIVITY_KIND_KERNEL.parquet", &bytes);
        let ran = project.harness(&["-q", "--run", &parent, "--from", "collect"]);
        assert_reported(&project, &ran);
        assert!(!ran.stderr.contains("panicked"), "{}", ran.all());
    }
}

/// The same table with one byte of its footer spoilt, so that the library that decodes it panics.
fn panicking(whole: &[u8]) -> Vec<u8> {
    let length = u32::from_le_bytes(whole[whole.len() - 8..whole.len() - 4].try_into().expect("4 bytes"));
    let footer = whole.len() - 8 - length as usize..whole.len() - 8;
    let mut spoilt = footer.flat_map(|at| {
        [0x15, 0xff].map(|byte| {
            let mut bytes = whole.to_vec();
            bytes[at] = byte;
            bytes
        })
    });
    let is_panic = |bytes: &Vec<u8>| {
        let mut file = tempfile::tempfile().expect("a file");
        file.write_all(bytes).expect("written");
        let look = || nsys::export::cleaned(&file, &|_| None);
        // Where the panic is not caught, it comes through to here.
        match catch_unwind(AssertUnwindSafe(look)) {
            Ok(read) => read.is_err_and(|refused| refused.why.contains("damaged Parquet")),
            Err(_) => true,
        }
    };
    spoilt.find(is_panic).expect("no such table has the library panic any more: guard and test may go")
}

#[test]
fn a_table_at_which_the_library_panics_is_inconclusive_for_its_job_alone() {
    let project = project();
    let parent = id(&project);
    let kernels = table(&project, "CUPTI_ACTIVITY_KIND_KERNEL.parquet");
    let bytes = panicking(&fs::read(kernels).expect("there"));
    forge(&project, "CUPTI_ACTIVITY_KIND_KERNEL.parquet", &bytes);
    // Where it comes home, and where it is read by itself.
    for (run, from) in [(parent.as_str(), "collect"), ("latest", "analyze")] {
        let ran = project.harness(&["-q", "--run", run, "--from", from]);
        assert_reported(&project, &ran);
        let verdict = fs::read_to_string(project.latest().join("cases/kernels/verdict.json")).expect("there");
        assert!(verdict.contains("damaged Parquet"), "{from}: {verdict}");
        assert!(!ran.stderr.contains("internal error"), "{from}: {}", ran.all());
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

/// 20,000 rows with the same text of 1 MiB each.
const DICTIONARY: &[u8] = include_bytes!("../planted/dictionary-of-20-gb.parquet");

#[test]
fn a_dictionary_of_20_gb_is_refused_and_never_unpacked() {
    let project = project();
    let parent = id(&project);
    forge(&project, "StringIds.parquet", DICTIONARY);
    let mut command = project.command(&["-q", "--run", &parent, "--from", "collect"]);
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("starts");
    let watched = std::thread::spawn({
        let id = child.id();
        move || most_mib(id)
    });
    let ran = crate::project::ran(child.wait_with_output().expect("ends"));
    assert_reported(&project, &ran);
    let reported = project.reported();
    assert!(reported.contains("unpacks to more than 256 MiB"), "{reported}");
    let most = watched.join().expect("watched");
    assert!(most > 0 && most < 512, "{most} MiB");
}

/// What a person names is read by the verb's own process.
#[test]
fn a_table_that_needs_more_memory_than_there_is_ends_the_verbs_with_one_error_and_exit_3() {
    let project = project();
    let export = table(&project, "StringIds.parquet").parent().expect("a folder").to_owned();
    let text = "a kernel of no use ".repeat(2 << 10);
    let rows: Vec<(i64, String)> = (0..6_000).map(|id| (id, format!("{id}{text}"))).collect();
    fs::write(export.join("StringIds.parquet"), nsys::tables::write::strings(&rows).expect("made"))
        .expect("written");
    let export = export.display().to_string();
    for verb in [["recipe", "cuda_gpu_kern_sum", "--input"], ["stats", "--report", "cuda_gpu_kern_sum"]] {
        // In KiB: what the program itself takes, and far less than the texts.
        let limited = "ulimit -d 250000; exec \"$@\"";
        let mut command = Command::new("bash");
        command.args(["-c", limited, "bash", HARNESS]).args(verb).arg(&export).stdin(Stdio::null());
        command.current_dir(project.path()).env("POLARS_MAX_THREADS", "2").env("RAYON_NUM_THREADS", "2");
        let ran = crate::project::ran(command.output().expect("starts"));
        assert_eq!(ran.code, Some(3), "{verb:?}: {}", ran.all());
        let errors: Vec<&str> = ran.stderr.lines().filter(|line| !line.starts_with("Processing ")).collect();
        assert_eq!(errors.len(), 1, "{}", ran.all());
        assert!(
            errors[0].starts_with("error: not enough memory: what is read needs more than 244 MiB"),
            "{}",
            ran.all()
        );
    }
}

/// Each process that reads a node's reports panics; the one that judges goes on.
#[test]
fn a_panic_in_the_process_that_reads_reports_is_inconclusive_with_its_reason() {
    let project = project();
    let parent = id(&project);
    let mut command = project.command(&["-q", "--run", &parent, "--from", "analyze"]);
    let ran =
        crate::project::ran(command.env("HARNESS_TEST_PANIC_AT", "read-reports").output().expect("starts"));
    assert_eq!(ran.code, Some(3), "{}", ran.all());
    let verdict = fs::read_to_string(project.latest().join("cases/kernels/verdict.json")).expect("there");
    assert!(verdict.contains("not analysed: internal error while it was read: provoked"), "{verdict}");
    assert!(verdict.contains("report-not-read"), "{verdict}");
    assert!(!ran.stderr.contains("internal error"), "{}", ran.all());
    assert!(!ran.stdout.contains("culprit"), "{}", ran.all());
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

/// Such as by `| head -1`.
#[test]
fn a_reader_that_has_gone_away_ends_the_program_without_a_message() {
    let project = Project::new();
    for arguments in [&["--version"][..], &["list"], &["check"], &["recipe", "list"], &["runs", "list"]] {
        let (reader, writer) = std::io::pipe().expect("a pipe");
        drop(reader);
        let ran = project.command(arguments).stdout(writer).output().expect("starts");
        assert_eq!(String::from_utf8_lossy(&ran.stderr), "", "{arguments:?}");
    }
}

/// Such as where it is redirected to a file.
#[test]
fn a_full_disk_beneath_stdout_or_stderr_is_no_pass_and_no_bug_of_the_program() {
    let project = Project::new();
    let full = || fs::File::options().write(true).open("/dev/full").expect("opened");
    for arguments in [&["--version"][..], &["list"], &["recipe", "list"], &["man"], &["runs", "--help"]] {
        let ran = crate::project::ran(project.command(arguments).stdout(full()).output().expect("starts"));
        assert_eq!(ran.code, Some(3), "{arguments:?}: {}", ran.all());
        assert!(
            ran.stderr.starts_with("error: stdout: No space left on device"),
            "{arguments:?}: {}",
            ran.all()
        );
        assert_eq!(ran.stderr.lines().count(), 1, "{arguments:?}: {}", ran.all());
    }
    let mut command = project.command(&["runs", "show", "absent"]);
    let ran = crate::project::ran(command.stderr(full()).output().expect("starts"));
    assert_eq!(ran.code, Some(3), "{}", ran.all());
}

/// The disk of this machine; a limit on the size of files stands for it.
#[test]
fn a_run_that_cannot_write_names_the_next_command_and_goes_on_when_there_is_room() {
    let project = Project::new();
    let limited = |blocks: &str, arguments: &[&str]| {
        let mut command = Command::new("bash");
        command.args(["-c", "ulimit -f \"$1\"; shift; exec \"$@\"", "bash", blocks, HARNESS]).args(arguments);
        crate::project::ran(
            command.current_dir(project.path()).stdin(Stdio::null()).output().expect("starts"),
        )
    };
    let run = ["--suite", "nccl-p5", "-q", "kernels-all_reduce"];
    let ran = limited("1", &run);
    assert_eq!(ran.code, Some(3), "{}", ran.all());
    assert!(ran.stderr.contains("plan.json: File too large"), "{}", ran.all());
    assert_eq!(project.runs(), 0, "a folder without a plan is no run");

    // More than the plan has, and less than the counters of a node.
    let ran = limited("60", &run);
    assert_eq!(ran.code, Some(3), "{}", ran.all());
    assert!(ran.stderr.contains("File too large"), "{}", ran.all());
    assert!(ran.stderr.contains(&format!("`harness resume --run {}`", id(&project))), "{}", ran.all());
    assert!(!project.latest().join("summary.json").exists());
    let resumed = project.harness(&["resume", "-q"]);
    assert_eq!(resumed.code, Some(0), "{}", resumed.all());
}

#[test]
fn an_uncaught_panic_is_exit_3_with_how_to_report_it() {
    let project = Project::new();
    let mut command = project.command(&["check"]);
    let ran = crate::project::ran(command.env("HARNESS_TEST_PANIC_AT", "main").output().expect("starts"));
    assert_eq!(ran.code, Some(3), "{}", ran.all());
    assert_eq!(ran.stderr.lines().count(), 2, "{}", ran.all());
    assert!(ran.stderr.starts_with("error: internal error at harness/src/panics.rs:"), "{}", ran.all());
    assert!(ran.stderr.contains("this is a bug in harness 0.1.0"), "{}", ran.all());
}

#[test]
fn reports_are_read_also_when_the_programs_file_was_removed_during_the_run() {
    let project = project();
    let copy = project.path().join("copy");
    fs::copy(HARNESS, &copy).expect("copied");
    // Started from an open file whose name is gone, as after an upgrade in the middle of a run.
    let started = "exec 9< \"$1\"; rm \"$1\"; exec /proc/self/fd/9 --suite kernels --nodes 'p5-[001-004]' -q";
    let mut command = Command::new("bash");
    command.args(["-c", started, "bash"]).arg(&copy).current_dir(project.path()).stdin(Stdio::null());
    let ran = crate::project::ran(command.output().expect("starts"));
    assert_eq!(ran.code, Some(0), "{}", ran.all());
}
