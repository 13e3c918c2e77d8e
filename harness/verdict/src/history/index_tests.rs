//! Lists by an index say what the runs say: one that is stale, damaged or forged changes no answer about a part.

use super::index::INDEX;
use super::past::{Past, outlines, read};
use super::series::{SeriesRequest, find};
use super::suspects::blamed;
use crate::stored_runs::{Made, NIC, culprit};
use model::artefact::{LeftOut, ProbedNode, Status, Summary};
use recipes::text_rows;
use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::sync::Arc;
use store::{Scratch, write_private_by};

/// With its summary, as a run that has ended leaves it.
fn write(runs: &Path, made: &Made) {
    made.write(runs);
    let mut summary: Summary = fixture::Made::from_cases(vec![made.case.clone()]).summary;
    summary.run_id.clone_from(&made.plan.run_id);
    summary.left_out.clone_from(&made.plan.left_out);
    put_json(&runs.join(&made.plan.run_id).join("summary.json"), &summary);
}

fn put_json(path: &Path, value: &impl serde::Serialize) {
    store::write_whole(path, &serde_json::to_vec(value).expect("JSON")).expect("written");
}

fn red(minute: usize) -> Made {
    Made::at(minute, &[4.1]).ending(Status::Fail).naming(vec![culprit("p5-001", NIC)])
}

fn probed(serial: &str) -> ProbedNode {
    let facts = serde_json::json!({ "node": "p5-001", "facts": { "machine": serial, "gpu_ids": [format!("gpu0 GPU-{serial} 1")] } });
    serde_json::from_value(facts).expect("a node")
}

/// Three that go well, with one red between them, another node left out, and other hardware in the end.
fn several() -> Vec<Made> {
    let left = LeftOut { node: "p5-002".into(), why: "no GPU".into(), by_folder: false, after: None };
    let mut all =
        vec![Made::at(1, &[11.0]), red(2), Made::at(3, &[11.2]).leaving_out(left), Made::at(4, &[11.3])];
    all[0].probed = vec![probed("a")];
    all[3].probed = vec![probed("b")];
    all
}

fn runs(made: &[Made]) -> Scratch {
    let folder = Scratch::new().expect("a folder");
    made.iter().for_each(|one| write(folder.path(), one));
    folder
}

/// All that lists show of runs.
fn answers(past: &Past) -> String {
    let request = SeriesRequest { metric: "nic.rate".into(), ..SeriesRequest::default() };
    let found = find(past, &request);
    let states: Vec<_> = past
        .runs
        .iter()
        .map(|run| {
            (run.id(), &run.made, run.state(), run.kind(), run.red_verdicts(), run.summarised, &run.culprits)
        })
        .collect();
    let series = (&found.series, &found.unread, &found.without);
    format!("{states:#?}\n{:#?}\n{:#?}\n{series:#?}", past.passed, blamed(past))
}

/// By the runs' own files.
fn truth(folder: &Path) -> String {
    answers(&read(folder).expect("runs"))
}

fn listed(folder: &Path) -> (String, Vec<String>) {
    let listed = outlines(folder, None).expect("runs");
    (answers(&listed.past), listed.notes)
}

fn rows(folder: &Path) -> Vec<Vec<String>> {
    let mut rows = Vec::new();
    let bytes = fs::read(folder.join(INDEX)).expect("an index");
    text_rows::from_parquet(&bytes, &["kind", "name", "stamp", "text"], &mut |row| {
        rows.push(row.iter().map(|cell| (*cell).to_owned()).collect());
    })
    .expect("rows");
    rows
}

fn put(folder: &Path, rows: &[Vec<String>]) {
    let rows: Vec<Vec<&str>> = rows.iter().map(|row| row.iter().map(String::as_str).collect()).collect();
    let bytes = text_rows::to_parquet(&["kind", "name", "stamp", "text"], &rows).expect("rows");
    write_private_by(&folder.join(INDEX), &mut |file| std::io::Write::write_all(file, &bytes))
        .expect("written");
}

/// Rewrites the texts of one kind of row, and gives how many differ.
fn forge(folder: &Path, kind: &str, change: &dyn Fn(&str) -> String) -> usize {
    let mut all = rows(folder);
    let mut changed = 0;
    for row in all.iter_mut().filter(|row| row[0] == kind) {
        let text = change(&row[3]);
        changed += usize::from(text != row[3]);
        row[3] = text;
    }
    put(folder, &all);
    changed
}

#[test]
fn lists_say_the_same_without_an_index_with_a_new_one_and_with_one_that_is_used() {
    let folder = runs(&several());
    let truth = truth(folder.path());
    assert!(truth.contains("p5-002") && truth.contains("HRN-NIC-SLOW"), "{truth}");
    for state in ["cold", "warm"] {
        assert_eq!(listed(folder.path()), (truth.clone(), Vec::new()), "{state}");
    }
    let mode = fs::metadata(folder.path().join(INDEX)).expect("there").permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    let past = outlines(folder.path(), None).expect("runs").past;
    assert!(Arc::ptr_eq(&past.runs[0].stored.plan, &past.runs[3].stored.plan), "runs of one plan share it");
    assert!(Arc::ptr_eq(&past.runs[0].cases[0], &past.runs[3].cases[0]), "and so do equal verdicts");
    // It is used: what only it says is shown.
    assert_eq!(forge(folder.path(), "run", &|text| text.replace("03:04:00", "09:04:00")), 1);
    assert!(listed(folder.path()).0.contains("2026-11-21 09:04:00"));
    fs::remove_file(folder.path().join(INDEX)).expect("removed");
    assert_eq!(listed(folder.path()), (truth, Vec::new()));
}

#[test]
fn a_run_that_changed_came_or_went_is_read_again() {
    let made = several();
    let folder = runs(&made);
    listed(folder.path());
    let check = |what: &str| assert_eq!(listed(folder.path()), (truth(folder.path()), Vec::new()), "{what}");
    write(folder.path(), &Made::at(9, &[11.0]));
    check("another run");
    let first = folder.path().join(&made[0].plan.run_id);
    let case = Made::at(1, &[]).ending(Status::Fail).naming(vec![culprit("p5-003", NIC)]).case;
    put_json(&first.join("cases/nics/verdict.json"), &case);
    check("another verdict");
    assert!(truth(folder.path()).contains("p5-003"));
    fs::remove_file(first.join("cases/nics/verdict.json")).expect("removed");
    check("no verdict");
    fs::write(first.join("summary.json"), "{").expect("written");
    check("a damaged summary");
    fs::remove_dir_all(folder.path().join(&made[1].plan.run_id)).expect("removed");
    check("a run less");
    // Written in place, with its old time and as long as before.
    let plan = folder.path().join(&made[3].plan.run_id).join("plan.json");
    let (time, text) = (
        fs::metadata(&plan).and_then(|data| data.modified()).expect("a time"),
        fs::read_to_string(&plan).expect("read"),
    );
    let other = text.replace("\"inventory\": \"default\"", "\"inventory\": \"DEFAULT\"");
    assert!(other != text);
    fs::write(&plan, other).expect("written");
    fs::File::options().write(true).open(&plan).and_then(|file| file.set_modified(time)).expect("set");
    check("another plan");
    assert!(
        outlines(folder.path(), None)
            .expect("runs")
            .past
            .runs
            .iter()
            .any(|run| run.plan().inventory == "DEFAULT")
    );
}

#[test]
fn a_run_that_goes_on_is_not_in_the_index_and_neither_is_one_that_cannot_be_read() {
    let mut open = Made::at(2, &[11.0]);
    open.record.as_mut().expect("a record").ended = None;
    let folder = runs(&[Made::at(1, &[11.0]), open.clone(), Made::at(3, &[11.0])]);
    let broken = folder.path().join(Made::at(3, &[]).plan.run_id);
    fs::write(broken.join("cases/nics/verdict.json"), "{").expect("written");
    listed(folder.path());
    let indexed: Vec<String> =
        rows(folder.path()).into_iter().filter(|row| row[0] == "run").map(|row| row[1].clone()).collect();
    assert_eq!(indexed, [Made::at(1, &[]).plan.run_id]);
    // It ends between two lists.
    fs::remove_dir_all(folder.path().join(&open.plan.run_id)).expect("removed");
    write(folder.path(), &Made::at(2, &[11.0]));
    let (said, _) = listed(folder.path());
    assert_eq!(said, truth(folder.path()));
}

#[test]
fn an_index_that_is_no_index_is_not_used_and_the_runs_answer() {
    let folder = runs(&several());
    let (truth, path) = (truth(folder.path()), folder.path().join(INDEX));
    listed(folder.path());
    let good = fs::read(&path).expect("an index");
    let cut = |bytes: &[u8]| fs::write(&path, bytes).expect("written");
    let (half, mut flipped) = (good[..good.len() / 2].to_vec(), good.clone());
    flipped[good.len() / 2] ^= 0x40;
    for (what, bytes) in
        [("empty", Vec::new()), ("text", b"{}".to_vec()), ("cut", half), ("flipped", flipped)]
    {
        cut(&bytes);
        let (said, notes) = listed(folder.path());
        assert_eq!(said, truth, "{what}");
        // A flipped bit may lie where nothing reads it.
        let is_noted = notes.len() == 1 && notes[0].contains("; every run is read");
        assert!(is_noted || what == "flipped", "{what}: {notes:?}");
        assert_eq!(listed(folder.path()), (truth.clone(), Vec::new()), "{what}: it was written again");
    }
    let bad: [(&str, &dyn Fn()); 4] = [
        ("a link", &|| symlink("/dev/zero", &path).expect("linked")),
        ("a pipe", &|| {
            let status = std::process::Command::new("mkfifo").arg(&path).status();
            assert!(status.is_ok_and(|status| status.success()));
        }),
        ("another table", &|| put(folder.path(), &[])),
        ("what others can write", &|| {
            cut(&good);
            fs::set_permissions(&path, fs::Permissions::from_mode(0o666)).expect("set");
        }),
    ];
    for (what, make) in bad {
        fs::remove_file(&path).expect("removed");
        make();
        let (said, notes) = listed(folder.path());
        assert_eq!((said, notes.len()), (truth.clone(), 1), "{what}: {notes:?}");
        assert_eq!(listed(folder.path()), (truth.clone(), Vec::new()), "{what}: it was written again");
    }
    // In its place lies what cannot be replaced.
    fs::remove_file(&path).expect("removed");
    fs::create_dir(&path).expect("made");
    let (said, notes) = listed(folder.path());
    assert_eq!((said, notes.len()), (truth.clone(), 2), "{notes:?}");
    assert!(notes[1].starts_with("index not written: "), "{notes:?}");
    fs::remove_dir(&path).expect("removed");
    // Of another version of the harness: its own is made without a word.
    listed(folder.path());
    assert_eq!(forge(folder.path(), "format", &|_| "0 0.0.1".to_owned()), 1);
    forge(folder.path(), "run", &|text| text.replace("03:04:00", "09:04:00"));
    assert_eq!(listed(folder.path()), (truth, Vec::new()));
}

#[test]
fn a_forged_index_blames_no_part_and_leads_to_no_file_outside() {
    let folder = runs(&several());
    let truth = truth(folder.path());
    type Change<'a> = &'a dyn Fn(&str) -> String;
    let replace = |from: &'static str, to: &'static str| move |text: &str| text.replace(from, to);
    let blame =
        "\"culprits\":[{\"kind\":\"culprit\",\"node\":\"p5-003\",\"part\":\"gpu0\",\"evidence\":\"e\"}]";
    let forged: [(&str, &str, Change); 9] = [
        ("another part", "run", &replace("\"node\":\"p5-001\"", "\"node\":\"p5-003\"")),
        ("other evidence", "run", &replace("4.1 GB/s", "0.1 GB/s")),
        ("a green run", "run", &move |text| text.replace("\"culprits\":[]", blame)),
        ("a node left out", "plan", &|text| {
            let left = "\"left_out\":[{\"node\":\"p5-003\",\"why\":\"w\"}],\"settings\"";
            if text.contains("left_out") { text.to_owned() } else { text.replace("\"settings\"", left) }
        }),
        ("a case outside", "plan", &replace("\"name\":\"nics\"", "\"name\":\"../nics\"")),
        ("no plan", "plan", &|_| "{".to_owned()),
        ("no verdicts", "case", &|_| "[]".to_owned()),
        ("no number", "run", &replace("\"plan\":", "\"plan\":9")),
        ("a run elsewhere", "run", &replace("\"id\":\"2026", "\"id\":\"../2026")),
    ];
    for (what, kind, change) in forged {
        drop(fs::remove_file(folder.path().join(INDEX)));
        listed(folder.path());
        assert!(forge(folder.path(), kind, change) > 0, "{what}");
        assert_eq!(listed(folder.path()).0, truth, "{what}");
    }
    // The numbers of another run's files are no proof that this one has not changed.
    drop(fs::remove_file(folder.path().join(INDEX)));
    listed(folder.path());
    let mut all = rows(folder.path());
    let stamps: BTreeMap<String, String> =
        all.iter().filter(|row| row[0] == "run").map(|row| (row[1].clone(), row[2].clone())).collect();
    let other = stamps.values().next().cloned().expect("a stamp");
    all.iter_mut().filter(|row| row[0] == "run").for_each(|row| row[2].clone_from(&other));
    put(folder.path(), &all);
    assert_eq!(listed(folder.path()).0, truth);
}

#[test]
fn lists_at_the_same_time_do_not_disturb_each_other() {
    let folder = runs(&several());
    let truth = truth(folder.path());
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for round in 0..10 {
                    if round % 3 == 0 {
                        drop(fs::remove_file(folder.path().join(INDEX)));
                    }
                    assert_eq!(listed(folder.path()), (truth.clone(), Vec::new()));
                }
            });
        }
    });
    let parts = fs::read_dir(folder.path()).expect("read").flatten();
    let left = parts.filter(|entry| entry.file_name().to_string_lossy().starts_with(".part-")).count();
    assert_eq!(left, 0);
}

#[test]
fn a_run_with_a_pipe_or_a_link_in_the_place_of_an_artefact_is_named_and_not_opened() {
    let made = several();
    let folder = runs(&made);
    listed(folder.path());
    let of = |at: usize, name: &str| folder.path().join(&made[at].plan.run_id).join(name);
    fs::remove_file(of(0, "cases/nics/verdict.json")).expect("removed");
    let status = std::process::Command::new("mkfifo").arg(of(0, "cases/nics/verdict.json")).status();
    assert!(status.is_ok_and(|status| status.success()));
    fs::remove_file(of(3, "probe.json")).expect("removed");
    symlink("/dev/zero", of(3, "probe.json")).expect("linked");
    let listed = outlines(folder.path(), None).expect("runs");
    let why: Vec<&str> = listed.past.passed.iter().map(|skipped| skipped.why.as_str()).collect();
    assert_eq!(
        why,
        ["cases/nics/verdict.json: a link or no regular file", "probe.json: a link or no regular file"]
    );
    assert_eq!(answers(&listed.past), truth(folder.path()));
}
