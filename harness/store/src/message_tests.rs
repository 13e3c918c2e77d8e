//! Why a run is not found, and what is said of a file of it that cannot be read or written: every message.

use super::{Home, Named, Store, Stored, checksums, files, read_json, write_whole};
use model::artefact::{Collected, CollectedFile, FileKind, Format, Plan, RunRecord};
use std::collections::BTreeMap;
use std::fmt::Display;
use std::fs;
use std::path::Path;

/// The message, with `HOME` for the folder of the test.
fn render<T, E: Display>(what: &str, result: Result<T, E>, home: &Path) -> String {
    let message = match result {
        Ok(_) => "no error".to_owned(),
        Err(error) => error.to_string(),
    };
    format!("{what}: {}", message.replace(&home.display().to_string(), "HOME"))
}

#[test]
fn messages_of_runs() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path();
    let home = Home::bare(path);
    let named = |word: &str| render(&format!("`{word}`"), home.find_run(word), path);
    let mut lines = vec![named("latest"), named("2026")];
    for id in ["20260101T000000Z-a-0001", "20260101T000000Z-a-0002", "20260202T000000Z-b-0003"] {
        let plan = path.join("runs").join(id).join("plan.json");
        write_whole(&plan, b"{}").expect("written");
    }
    fs::create_dir_all(path.join("elsewhere")).expect("made");
    std::os::unix::fs::symlink("gone", path.join("runs/latest")).expect("linked");
    lines.extend(["latest", "20260101", "20260202T000000Z-b-0004", "nccl-p5", ""].map(named));
    for name in ["elsewhere", "nowhere"] {
        lines.push(render(name, home.find_run(&path.join(name).display().to_string()), path));
    }
    assert!(matches!(home.find_run("202602"), Ok(Named::Folder(_))));
    insta::assert_snapshot!(lines.join("\n"));
}

#[test]
fn messages_of_files() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path();
    let home = Home::bare(path);
    let write = |name: &str, text: &str| {
        write_whole(&path.join(name), text.as_bytes()).expect("written");
        path.join(name)
    };
    let store = Store::create(&home, "run").expect("made");
    let mut lines = vec![
        render("an id that is taken", Store::create(&home, "run"), path),
        render("a run that is held", Store::open(&home, "run"), path),
        render("a run that is gone", Store::open(&home, "gone"), path),
        render("a file that is gone", read_json::<RunRecord>(&path.join("gone.json")), path),
    ];
    for (what, text) in [
        ("cut off", "{"),
        ("no format", "{}"),
        ("a newer format", "{\"format\": 99}"),
        ("other contents", "{\"format\": 1}"),
    ] {
        lines.push(render(what, read_json::<RunRecord>(&write("run.json", text)), path));
    }
    write("runs/run/events.jsonl", "1\nx\n3\n");
    lines.push(render("a broken line", store.lines::<u64>("events.jsonl"), path));
    let pairs = BTreeMap::from([((1, 2), 3)]);
    lines.push(render("not an artefact", store.write_json(&store.folder().join("x.json"), &pairs), path));
    let file = write("file", "");
    lines.push(render("a folder that is a file", write_whole(&file.join("x.json"), b""), path));
    lines.push(render("a date", store.date_no_later(&path.join("gone"), std::slice::from_ref(&file)), path));
    lines.push(render("files of no folder", files(&path.join("gone")), path));
    lines.push(render("checksums of no folder", checksums(&path.join("gone"), &[]), path));
    lines.push(render("a run to carry that is gone", store.carry(&path.join("gone"), &|_| true), path));
    insta::assert_snapshot!(lines.join("\n"));
}

#[test]
fn messages_of_artefacts_that_contradict_the_plan() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path();
    let write = |name: &str, text: &[u8]| write_whole(&path.join(name), text).expect("written");
    let plans = |plan: &Plan| {
        write("plan.json", &serde_json::to_vec(plan).expect("JSON"));
        Stored::open(path)
    };
    let mut plan = fixture::plan();
    let stored = plans(&plan).expect("sound");
    plan.run_id = "../x".to_owned();
    let mut lines = vec![render("a run's id", plans(&plan), path)];
    plan.run_id = "run".to_owned();
    plan.cases[0].jobs[0].expected[0].name = "../../x".to_owned();
    lines.push(render("a file of a job", plans(&plan), path));

    let file = CollectedFile {
        job: "j".to_owned(),
        path: "raw/../../x".to_owned(),
        kind: FileKind::Stdout,
        node: None,
        part: None,
        rank: None,
        bytes: 0,
        sha256: String::new(),
        redacted: 0,
    };
    let collected = Collected {
        format: Format,
        files: vec![file],
        missing: Vec::new(),
        changed: Vec::new(),
        simulated: Vec::new(),
    };
    write("cases/nics/collected.json", &serde_json::to_vec(&collected).expect("JSON"));
    lines.push(render("a collected file", stored.collected("nics"), path));
    write("cases/nics/metrics.parquet", b"no Parquet");
    lines.push(render("metrics", stored.metrics("nics"), path));
    write("cases/nics/verdict.json", &serde_json::to_vec(&fixture::case("nics")).expect("JSON"));
    lines.push(render("a verdict for another plan", stored.verdict("nics"), path));
    write("cases/nics/job.json", b"{\"format\": 1}");
    lines.push(render("jobs", stored.jobs("nics"), path));
    insta::assert_snapshot!(lines.join("\n"));
}
