//! `harness history`: numbers over many runs whose truth is known, and the record of parts that were blamed.

use crate::little::pairs;
use crate::project::{Project, Ran, remove_digests};
use metric::Metrics;
use serde_json::{Value, json};
use std::fs;
use std::path::Path;

const ONE: [&str; 5] = ["history", "nccl.busbw", "--where", "size=1GiB", "place=out"];

fn edit(path: &Path, change: impl Fn(&mut Value)) {
    let text = fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let mut value = serde_json::from_str(&text).expect("JSON");
    change(&mut value);
    fs::write(path, value.to_string()).expect("written");
}

/// Copies of one run, as if each had been made on a day of its own: with its numbers by this factor, and on this NCCL.
fn runs(factors: &[f64], nccl: impl Fn(usize) -> &'static str) -> (Project, Vec<String>) {
    let project = Project::new();
    project.write("suites/own.toml", &pairs("pairs", "at_least = \"100 GB/s\""));
    let ran = project.harness(&["-q", "--suite", "own", "--nodes", "p5-[001-004]"]);
    assert_eq!(ran.code, Some(0), "{}", ran.all());
    let first = project.latest().canonicalize().expect("a run");
    let metrics = fs::read(first.join("cases/pairs/metrics.parquet")).expect("read");
    let metrics = recipes::parquet::from_parquet(&metrics).expect("a table");
    let mut ids = Vec::new();
    for (at, factor) in factors.iter().enumerate() {
        let id = format!("202601{:02}T031000Z-own-{at:04}", at + 1);
        let folder = project.path().join("runs").join(&id);
        copy(&first, &folder);
        remove_digests(&folder);
        edit(&folder.join("plan.json"), |plan| plan["run_id"] = id.as_str().into());
        edit(&folder.join("cases/pairs/verdict.json"), |verdict| {
            verdict["versions"]["nccl"] = vec![nccl(at)].into();
        });
        let rows = metrics.rows().iter().cloned().map(|mut row| {
            row.value *= factor;
            row
        });
        let table = recipes::parquet::to_parquet(&Metrics::from_rows(rows.collect())).expect("a table");
        fs::write(folder.join("cases/pairs/metrics.parquet"), table).expect("written");
        ids.push(id);
    }
    fs::remove_dir_all(&first).expect("removed");
    (project, ids)
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).expect("made");
    for entry in fs::read_dir(from).expect("read").flatten() {
        let (path, target) = (entry.path(), to.join(entry.file_name()));
        if path.is_dir() {
            copy(&path, &target);
        } else {
            fs::copy(&path, &target).expect("copied");
        }
    }
}

/// Healthy noise of less than one per cent.
fn noise(at: usize) -> f64 {
    [1.0, 0.996, 1.003, 0.999, 1.005, 0.998, 1.001][at % 7]
}

#[test]
fn a_step_is_reported_with_its_run_and_the_software_that_changed_there() {
    let factors: Vec<f64> = (0..16).map(|at| noise(at) * if at < 8 { 1.0 } else { 0.8 }).collect();
    let (project, ids) = runs(&factors, |at| if at < 8 { "2.18.5" } else { "2.23.4" });
    let output = project.harness(&ONE);
    assert_eq!(output.code, Some(0), "{}", output.all());
    let step = output
        .stdout
        .lines()
        .find(|line| line.starts_with("step: "))
        .unwrap_or_else(|| panic!("{}", output.all()));
    assert!(step.ends_with(&format!("from {} on", ids[8])) && step.contains(", -20."), "{}", output.all());
    assert!(output.stdout.contains("\n  nccl 2.18.5 -> 2.23.4\n"), "{}", output.all());
    assert!(output.stdout.contains("SIMULATED"), "{}", output.all());
    assert!(output.stdout.starts_with("nccl.busbw sim-p5 own::pairs all_gather, 1GiB, "), "{}", output.all());
    let rows = output.stdout.lines().filter(|line| line.contains("  pass  ")).count();
    assert_eq!(rows, 16, "{}", output.all());
    // Both sizes are two things, and each has a line.
    let both = project.harness(&["history", "nccl.busbw"]);
    assert!(both.stdout.contains("series; choose among them with --where"), "{}", both.all());
    assert!(both.stdout.contains(&format!("a step, from {} on", ids[8])), "{}", both.all());
}

#[test]
fn a_step_whose_node_was_swapped_names_it_and_the_run() {
    let factors: Vec<f64> = (0..16).map(|at| noise(at) * if at < 8 { 1.0 } else { 0.8 }).collect();
    let (project, ids) = runs(&factors, |_| "2.23.4");
    for (at, id) in ids.iter().enumerate() {
        let machine = if at < 8 { "i-0a" } else { "i-0b" };
        let node = |name: &str, machine: &str| json!({ "node": name, "facts": { "machine": machine } });
        let probe = json!({
            "format": 1, "harness": "0.1.0", "simulated": true, "inventory": "default", "instance": "sim-p5",
            "at": "2026-01-01T03:10:00Z", "nodes": [node("p5-001", "i-1"), node("p5-002", machine)],
        });
        fs::write(project.path().join("runs").join(id).join("probe.json"), probe.to_string())
            .expect("written");
    }
    let output = project.harness(&ONE);
    let line = format!("\n  hardware: p5-002 is another machine since run {}\n", ids[8]);
    assert!(output.stdout.contains(&line), "{}", output.all());
    let json = project.harness(&[&ONE[..], &["--format", "json"]].concat());
    let document: Value = serde_json::from_str(&json.stdout).expect("JSON");
    let hardware = &document["series"][0]["changes"][0]["hardware"];
    assert_eq!(*hardware, json!([{ "nodes": ["p5-002"], "since": ids[8] }]), "{}", json.all());
}

#[test]
fn json_and_csv_hold_the_same_for_programs() {
    let factors: Vec<f64> = (0..12).map(|at| noise(at) * if at < 6 { 1.0 } else { 0.7 }).collect();
    let (project, ids) = runs(&factors, |_| "2.23.4");
    let json = project.harness(&[&ONE[..], &["--format", "json"]].concat());
    let document: Value = serde_json::from_str(&json.stdout).unwrap_or_else(|_| panic!("{}", json.all()));
    let series = &document["series"][0];
    assert_eq!(series["points"].as_array().map(Vec::len), Some(12));
    assert_eq!((series["nodes"].as_u64(), series["unit"].as_str()), (Some(2), Some("GB/s")));
    assert_eq!(series["points"][3]["run"], ids[3].as_str());
    let change = &series["changes"][0];
    assert_eq!((change["kind"].as_str(), change["after"].as_str()), (Some("step"), Some(ids[6].as_str())));
    assert_eq!(change["software"].as_array().map(Vec::len), Some(0));
    let csv = project.harness(&[&ONE[..], &["--format", "csv"]].concat());
    let lines: Vec<&str> = csv.stdout.lines().collect();
    let commas = lines[0].matches(',').count();
    assert_eq!(lines.len(), 13, "{}", csv.all());
    assert!(lines[7].contains(&ids[6]) && lines[7].ends_with(",true"), "{}", csv.all());
    assert!(lines.iter().all(|line| line.matches(',').count() >= commas), "{}", csv.all());
}

#[test]
fn a_level_a_drift_and_a_newest_run_that_lies_off_are_distinguished() {
    let level: Vec<f64> = (0..14).map(noise).collect();
    let output = runs(&level, |_| "2.23.4").0.harness(&ONE);
    assert!(output.stdout.contains("no significant change in 14 runs"), "{}", output.all());
    let drift: Vec<f64> = (0..14).map(|at| noise(at) * (1.0 - 0.02 * at as f64)).collect();
    let output = runs(&drift, |_| "2.23.4").0.harness(&ONE);
    assert!(output.stdout.contains("\ndrift: ") && !output.stdout.contains("\nstep: "), "{}", output.all());
    let mut off = level;
    off[13] = 0.7;
    let output = runs(&off, |_| "2.23.4").0.harness(&ONE);
    assert!(
        output.stdout.contains("no significant change")
            && output.stdout.contains("the newest run is outside the range"),
        "{}",
        output.all()
    );
}

#[test]
fn runs_that_are_broken_partial_or_judged_again_are_reported_and_not_left_out_in_silence() {
    let (project, ids) = runs(&[1.0; 7], |_| "2.23.4");
    let path = |at: usize, file: &str| project.path().join("runs").join(&ids[at]).join(file);
    fs::write(path(0, "plan.json"), "{\"format\": 1, ").expect("written");
    edit(&path(1, "run.json"), |record| record["ended"] = Value::Null);
    fs::remove_file(path(2, "cases/pairs/metrics.parquet")).expect("removed");
    fs::write(path(3, "cases/pairs/metrics.parquet"), "no table").expect("written");
    edit(&path(4, "plan.json"), |plan| {
        plan["replayed_from"] = "judge".into();
        plan["parent"] = ids[5].as_str().into();
    });
    fs::create_dir_all(project.path().join("runs/notes")).expect("made");
    let output = project.harness(&ONE);
    assert_eq!(output.code, Some(0), "{}", output.all());
    let line = |word: &str| {
        let mut lines = output.stdout.lines().filter(|line| line.contains(word));
        lines.next().unwrap_or_else(|| panic!("{word}: {}", output.all())).to_owned()
    };
    assert!(
        line(&ids[0]).starts_with("not counted: ") && line(&ids[0]).contains("plan.json"),
        "{}",
        output.all()
    );
    assert!(line(&ids[1]).contains("partial: the run did not finish"), "{}", output.all());
    assert!(line(&ids[2]).contains("not counted: not measured"), "{}", output.all());
    assert!(output.stdout.contains(&format!("not counted: {}: ", ids[3])), "{}", output.all());
    assert!(line(&ids[4]).contains("same jobs as "), "{}", output.all());
    assert!(line("notes").contains("no `plan.json`: not a run"), "{}", output.all());
    let json = project.harness(&[&ONE[..], &["--format", "json"]].concat());
    let document: Value = serde_json::from_str(&json.stdout).expect("JSON");
    assert_eq!(document["not_counted"].as_array().map(Vec::len), Some(4), "{}", json.all());
}

#[test]
fn no_run_a_slip_of_the_pen_and_what_was_not_measured_are_no_history() {
    let project = Project::new();
    fs::create_dir_all(project.path().join("runs")).expect("made");
    let none = project.harness(&ONE);
    assert_eq!(none.code, Some(2), "{}", none.all());
    assert!(none.stderr.contains("no runs in `"), "{}", none.all());
    let (project, ids) = runs(&[1.0, 1.0], |_| "2.23.4");
    for (args, code, word) in [
        (&["history", "nccl.buswb"][..], 2, "did you mean `nccl.busbw`?"),
        (&["history", "nccl.busbw", "--where", "opp=x"], 2, "did you mean `op`?"),
        (&["history", "nccl.busbw", "--where", "op=all_reduce"], 2, "no number of `nccl.busbw` has it"),
        (&["history", "train.step_time"], 3, "measured in none of 2 runs"),
        (&["history"], 2, "METRIC"),
        (&["history", "nccl.busbw", "--runs", "nowhere"], 2, "nowhere"),
        (&["history", "--suspects", "--where", "nodes=2"], 2, "did you mean `node`?"),
    ] {
        let output = project.harness(args);
        assert_eq!(output.code, Some(code), "{args:?} {}", output.all());
        assert!(output.all().contains(word), "{args:?} {}", output.all());
    }
    let one = project.harness(&["history", "nccl.busbw", "--runs", &format!("runs/{}", ids[0])]);
    assert!(one.code == Some(2) && one.stderr.contains("is a single run; give the folder"), "{}", one.all());
}

#[test]
fn a_part_that_was_blamed_is_remembered_cleared_and_reported_about_when_it_is_blamed_again() {
    let project = Project::new();
    let args = |fault: bool| {
        let mut args = vec!["-q", "--suite", "nccl-p5", "nic-pairs", "--nodes", "p5-[001-004]"];
        if fault {
            args.extend(["--sim-fault", "p5-002:nic-slow=0.4@rdmap113s0"]);
        }
        args
    };
    let first = project.harness(&args(true));
    assert_eq!(first.blamed(), ["culprit p5-002 rdmap113s0"], "{}", first.all());
    assert!(!first.stdout.contains("\nbefore: "), "{}", first.all());
    let green = project.harness(&args(false));
    assert_eq!(green.code, Some(0), "{}", green.all());
    let suspects = |format: &str| project.harness(&["history", "--suspects", "--format", format]);
    let cleared: Value = serde_json::from_str(&suspects("json").stdout).expect("JSON");
    let one = &cleared["suspects"][0];
    assert_eq!(
        (one["node"].as_str(), one["part"].as_str()),
        (Some("p5-002"), Some("rdmap113s0")),
        "{cleared}"
    );
    assert_eq!((one["open"].as_bool(), one["cleared_in"].as_array().map(Vec::len)), (Some(false), Some(1)));
    assert_eq!((&one["codes"][0], &one["simulated"]), (&Value::from("HRN-NIC-SLOW"), &Value::from(true)));
    let again = project.harness(&args(true));
    let before = again.stdout.lines().find(|line| line.starts_with("before: "));
    let reported = "before: p5-002 rdmap113s0: named in 1 of the last 2 runs on this node, last ";
    assert!(before.is_some_and(|line| line.starts_with(reported)), "{}", again.all());
    let text = suspects("text");
    let line = text.stdout.lines().nth(1).unwrap_or_default();
    assert!(
        line.starts_with("p5-002  rdmap113s0") && line.contains("2 of 3") && line.contains("open"),
        "{}",
        text.all()
    );
    assert!(text.stdout.contains("SIMULATED"), "{}", text.all());
    assert_eq!(suspects("csv").stdout.lines().count(), 2);
    let other = project.harness(&["history", "--suspects", "--where", "node=p5-001"]);
    assert!(other.stdout.contains("no part was blamed in 3 runs"), "{}", other.all());
}

/// The simulated cluster of four nodes, with this hardware replaced.
fn replaced(what: &str) -> String {
    format!(
        "kind = \"simulated\"\ninstance = \"sim-p5\"\nnodes = \"p5-[001-004]\"\n[reach]\nvia = \"slurm\"\n\
         [world]\nreplaced = [{what}]\n"
    )
}

#[test]
fn hardware_that_came_under_an_old_name_is_not_suspected_for_the_old() {
    let project = Project::new();
    let run = |faults: &[&str]| {
        let base = ["-q", "--probe", "--suite", "nccl-p5", "nic-pairs", "--inventory", "mine"];
        project.harness(&[&base[..], faults].concat())
    };
    let slow = ["--sim-fault", "p5-002:nic-slow=0.4@rdmap113s0"];
    project.write("inventory/mine.toml", &replaced(""));
    assert_eq!(run(&slow).blamed(), ["culprit p5-002 rdmap113s0"]);
    // A GPU of it is another: the node is the same.
    project.write("inventory/mine.toml", &replaced("\"p5-002:gpu1\""));
    let ran = run(&slow);
    let before = |ran: &Ran| -> Vec<String> {
        ran.stdout.lines().filter(|line| line.starts_with("before: ")).map(str::to_owned).collect()
    };
    assert!(
        before(&ran)[0].starts_with("before: p5-002 rdmap113s0: named in the last run on this node, "),
        "{}",
        ran.all()
    );
    project.write("inventory/mine.toml", &replaced("\"p5-002\""));
    let green = run(&[]);
    assert_eq!(green.code, Some(0), "{}", green.all());
    let ran = run(&slow);
    let expected =
        "before: p5-002 rdmap113s0: other hardware has this name now; not counted: blamed in 2 runs";
    assert_eq!(before(&ran), [expected], "{}", ran.all());
    let suspects = project.harness(&["history", "--suspects", "--format", "json"]);
    let suspects: Value = serde_json::from_str(&suspects.stdout).expect("JSON");
    let (one, gone) = (&suspects["suspects"][0], &suspects["replaced"][0]);
    assert_eq!((one["named_in"].as_array().map(Vec::len), one["lately"]["of"].as_u64()), (Some(1), Some(2)));
    assert_eq!((&gone["node"], gone["blamed_in"].as_array().map(Vec::len)), (&"p5-002".into(), Some(2)));
    let text = project.harness(&["history", "--suspects"]);
    assert!(text.stdout.contains("replaced: p5-002 rdmap113s0: other hardware"), "{}", text.all());
    // The device alone is another.
    let slow = ["--sim-fault", "p5-002:nic-slow=0.4@rdmap79s0"];
    assert_eq!(run(&slow).blamed(), ["culprit p5-002 rdmap79s0"]);
    project.write("inventory/mine.toml", &replaced("\"p5-002\", \"p5-002:rdmap79s0\""));
    assert_eq!(run(&[]).code, Some(0));
    let ran = run(&slow);
    let expected =
        "before: p5-002 rdmap79s0: the device has another GUID; not counted: blamed in 1 run".to_owned();
    assert!(before(&ran).contains(&expected), "{}", ran.all());
}
