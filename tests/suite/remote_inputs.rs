//! Reports and runs that are read where they lie in an object store: the same tables as here, few bytes of large exports,
//! and nothing left behind.

use crate::little::{ended, project};
use crate::object_server::{Fault, ObjectServer, SECRETS};
use crate::project::{Project, Ran, ran};
use crate::small_export::{PLAIN, Row, parquet, sqlite};
use std::fs;
use std::path::Path;

/// A folder for temporary files of its own beside what it reads, which must be empty afterwards.
struct Reader {
    project: Project,
}

impl Reader {
    fn new() -> Reader {
        let project = Project::bare();
        fs::create_dir(project.path().join("tmp")).expect("made");
        Reader { project }
    }

    fn path(&self, name: &str) -> std::path::PathBuf {
        self.project.path().join(name)
    }

    #[track_caller]
    fn run(&self, server: &ObjectServer, args: &[&str]) -> Ran {
        let mut command = self.project.command(args);
        server.configure(&mut command);
        command.env("TMPDIR", self.path("tmp"));
        let ran = ran(command.output().expect("the harness starts"));
        for (name, secret) in SECRETS {
            assert!(!ran.all().contains(secret), "{name} is shown: {}", ran.all());
        }
        let left: Vec<_> = fs::read_dir(self.path("tmp")).expect("read").flatten().collect();
        assert!(left.is_empty(), "left behind: {left:?} by {args:?}");
        ran
    }
}

/// So many kernels that each of its columns of numbers is longer than what is read for the sake of fewer requests.
fn large_parquet(folder: &Path) {
    let names: Vec<String> = (0..50).map(|n| format!("kernel_{n:02}")).collect();
    let kernels: Vec<Row> = (0..200_000)
        .map(|at: i64| {
            (at * 1_000 + at * at % 997, (at + 1) * 1_000 + at % 13, names[at as usize % 50].as_str())
        })
        .collect();
    parquet(folder, &kernels);
}

/// Puts every file of a folder into the bucket.
fn upload(server: &ObjectServer, folder: &Path, prefix: &str) {
    for (name, bytes) in crate::determinism::files(folder, "") {
        server.state().objects.insert(format!("{prefix}/{name}"), bytes);
    }
}

#[track_caller]
fn assert_ended(ran: &Ran, code: i32, line: &str) {
    assert_eq!(ran.code, Some(code), "{}", ran.all());
    assert!(ran.all().contains(line), "no `{line}` in {}", ran.all());
}

#[test]
fn recipes_and_statistics_of_parquet_in_a_store_are_the_same_and_read_only_columns() {
    let server = ObjectServer::start();
    let reader = Reader::new();
    large_parquet(&reader.path("r0_pqtdir"));
    large_parquet(&reader.path("batch-17/r1_pqtdir"));
    parquet(&reader.path("batch-17/r2_pqtdir"), PLAIN.kernels);
    upload(&server, &reader.path("r0_pqtdir"), "exports/r0_pqtdir");
    upload(&server, &reader.path("batch-17"), "exports/batch-17");
    for (verb, name) in [
        (&["stats", "-q", "-r", "cuda_gpu_kern_sum"][..], "r0_pqtdir"),
        (&["stats", "-r", "cuda_gpu_kern_sum", "--format", "json"], "batch-17"),
        (&["recipe", "cuda_gpu_kern_sum", "--csv", "--input"], "batch-17"),
        (&["diagnose"], "batch-17"),
    ] {
        let here = reader.run(&server, &[verb, &[name]].concat());
        let url = format!("s3://bucket/exports/{name}");
        let there = reader.run(&server, &[verb, &[url.as_str()]].concat());
        assert!(here.code == there.code && here.code != Some(2), "{}{}", here.all(), there.all());
        assert_eq!(here.stdout.replace(name, "X"), there.stdout.replace(&url, "X"), "{verb:?}");
        let note = there.stderr.lines().find(|line| line.contains(" read, in ")).expect("bytes are counted");
        assert!(note.starts_with(&format!("note: {url}: ")) && note.ends_with(" requests"), "{note}");
        assert!(!there.all().contains(".harness-inputs"), "a temporary path is shown: {}", there.all());
    }
    // Columns alone were asked for: no request had a whole table of kernels.
    let objects = server.state().objects["exports/r0_pqtdir/CUPTI_ACTIVITY_KIND_KERNEL.parquet"].len() as u64;
    server.state().sent.clear();
    let ran =
        reader.run(&server, &["stats", "-q", "-r", "cuda_gpu_kern_sum", "s3://bucket/exports/r0_pqtdir"]);
    assert_eq!(ran.code, Some(0), "{}", ran.all());
    let of_kernels = |(target, _): &&(String, u64)| target.contains("KIND_KERNEL");
    let sent: u64 = server.state().sent.iter().filter(of_kernels).map(|(_, bytes)| bytes).sum();
    assert!(sent > 0 && sent < objects * 19 / 20, "{sent} of {objects} bytes were read");
}

#[test]
fn sqlite_is_fetched_whole_and_says_so_and_a_publication_is_checked_by_its_manifest() {
    let server = ObjectServer::start();
    let reader = Reader::new();
    sqlite(&reader.path("job/a.sqlite"), PLAIN);
    parquet(&reader.path("job/b_pqtdir"), PLAIN.kernels);
    let url = "s3://bucket/published/job";
    assert_ended(&reader.run(&server, &["publish", "job", url]), 0, "4 files of job");
    let here = reader.run(&server, &["recipe", "cuda_gpu_kern_sum", "--csv", "--input", "job"]);
    let there = reader.run(&server, &["recipe", "cuda_gpu_kern_sum", "--csv", "--input", url]);
    assert_ended(&there, 0, "SQLite and Arrow are fetched whole");
    assert_eq!(here.stdout.replace("job/", ""), there.stdout.replace(&format!("{url}/"), ""));
    // One byte of the object is another.
    if let Some(bytes) = server.state().objects.get_mut("published/job/files/a.sqlite") {
        bytes[100] ^= 1;
    }
    let ran = reader.run(&server, &["stats", url]);
    assert_ended(&ran, 2, "its digest differs from the manifest");
}

#[test]
fn what_is_not_there_changes_or_cannot_be_written_beside_is_one_clear_error() {
    let server = ObjectServer::start();
    let reader = Reader::new();
    parquet(&reader.path("r_pqtdir"), PLAIN.kernels);
    upload(&server, &reader.path("r_pqtdir"), "e/r_pqtdir");
    server.state().objects.insert("reports/a.nsys-rep".into(), b"x".to_vec());
    let url = "s3://bucket/e/r_pqtdir";
    for (args, line) in [
        (&["stats", "s3://bucket/nowhere/at-all"][..], "nothing lies there"),
        (&["recipe", "cuda_gpu_kern_sum", "--input", "s3://bucket/reports"], "1 report without an export"),
        (&["stats", "s3://bucket"], "expected s3://BUCKET/PREFIX"),
        (&["stats", "-o", ".", url], "lies in an object store; give `-` or a folder"),
        (
            &["recipe", "cuda_gpu_kern_sum", "--analyze-on", "slurm", "--input", url],
            "the nodes read no object store",
        ),
    ] {
        assert_ended(&reader.run(&server, args), 2, line);
    }
    // A store that is busy for a moment is asked again.
    server.plant("GET", "KIND_KERNEL", Fault::Status(503, "SlowDown"), 1);
    let args = ["stats", "-q", "-r", "cuda_gpu_kern_sum", url];
    assert_ended(&reader.run(&server, &args), 0, "gemm<float, 2>");
    // Another object comes in its place while it is read.
    let damaged = server.state().objects["e/r_pqtdir/StringIds.parquet"].clone();
    server.state().objects.insert("e/r_pqtdir/CUPTI_ACTIVITY_KIND_KERNEL.parquet".into(), damaged);
    let ran = reader.run(&server, &args);
    assert!(matches!(ran.code, Some(2 | 3)) && ran.stdout.is_empty(), "{}", ran.all());
    server.state().objects.insert("e/r_pqtdir/CUPTI_ACTIVITY_KIND_KERNEL.parquet".into(), b"PAR1".to_vec());
    assert_ended(&reader.run(&server, &args), 2, "too short for Parquet");
}

#[test]
fn a_published_run_is_compared_shown_and_replayed_where_it_lies_and_is_foreign() {
    let server = ObjectServer::start();
    let reader = Reader { project: project() };
    fs::create_dir(reader.path("tmp")).expect("made");
    let id = ended(&reader.project);
    let url = "s3://bucket/runs/one";
    assert_ended(&reader.run(&server, &["publish", &id, url]), 0, "harness fetch");
    let runs = || fs::read_dir(reader.path("runs")).expect("read").count();
    // A history keeps an index beside the runs.
    let here = reader.run(&server, &["history", "nccl.busbw"]);
    let before = runs();
    let compared = reader.run(&server, &["compare", &id, url]);
    assert_ended(&compared, 3, "both are the same run");
    assert_ended(&compared, 3, "fetched for this command");
    let raw = |(target, _): &&(String, u64)| target.contains("/raw/");
    // The same of the runs below a URL, of which one was begun and never ended.
    server.state().objects.insert("runs/begun/claim.json".into(), b"{}".to_vec());
    let there = reader.run(&server, &["history", "nccl.busbw", "--runs", "s3://bucket/runs"]);
    assert_ended(&there, 0, "not counted: s3://bucket/runs/begun: nothing is published there");
    assert_ended(&there, 0, "note: s3://bucket/runs: 1 run, ");
    assert_eq!((here.code, here.stdout), (there.code, there.stdout), "{}", there.stderr);
    assert_eq!(server.state().sent.iter().filter(raw).count(), 0, "no raw file is needed to compare");
    assert_ended(&reader.run(&server, &["page", url, "--output", "out.html"]), 0, "out.html");
    let page = fs::read_to_string(reader.path("out.html")).expect("a page");
    assert!(!page.contains(".harness-run-") && page.contains("id=\"culprits\""));
    assert_eq!(runs(), before, "nothing of it stays");
    // Its plan is never executed.
    assert_ended(&reader.run(&server, &["rerun", "--run", url]), 2, "came in a bundle");
    let other = Reader { project: project() };
    fs::create_dir(other.path("tmp")).expect("made");
    let replay = other.run(&server, &["replay", "-q", "--run", url, "--from", "analyze"]);
    assert_eq!(replay.code, Some(1), "{}", replay.all());
    assert_ended(
        &other.run(&server, &["compare", "latest", "s3://bucket/runs/none"]),
        2,
        "nothing is published there",
    );
    // What differs from the manifest is refused.
    let key = "runs/one/files/summary.json";
    server.state().objects.insert(key.into(), b"{}".to_vec());
    let ran = other.run(&server, &["compare", "latest", url]);
    assert!(ran.code == Some(2) && ran.stderr.contains("summary.json"), "{}", ran.all());
    let ran = other.run(&server, &["history", "nccl.busbw", "--runs", "s3://bucket/runs"]);
    assert_ended(&ran, 2, "no runs in `s3://bucket/runs`");
    assert!(ran.stderr.contains("not counted: s3://bucket/runs/one/") && ran.stderr.contains("summary.json"));
}
