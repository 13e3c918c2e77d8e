//! A stored run is gone through again from any stage, with no cluster, and gives the same bytes where nothing changed;
//! where something did, it says so, and never passes for it.

use crate::determinism::files;
use crate::little::{ARGS, PAIR, assert_same, ended, id, killed, project, results, verdict, verdicts};
use crate::project::{Project, remove_digests, root};
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

const STAGES: [&str; 4] = ["collect", "analyze", "judge", "report"];

/// A replay of that run, which must end so; the child is the newest run from then on.
#[track_caller]
fn replay(project: &Project, run: &str, from: &str, code: i32) -> crate::project::Ran {
    let ran = project.harness(&["-q", "--run", run, "--from", from]);
    assert_eq!(ran.code, Some(code), "{from}: {}", ran.all());
    ran
}

#[test]
fn from_every_stage_the_same_bytes_come_and_the_parent_is_not_touched() {
    let project = project();
    let parent = ended(&project);
    let folder = project.path().join("runs").join(&parent);
    let (before, expected) = (files(&folder, ""), results(&folder));
    for from in STAGES {
        let ran = replay(&project, &parent, from, 1);
        assert_ne!(id(&project), parent);
        assert_same(&results(&project.latest()), &expected);
        assert_eq!(project.json("plan.json")["parent"], parent.as_str());
        assert_eq!(project.json("summary.json")["parent"], parent.as_str());
        assert!(ran.stdout.contains("SIMULATED"), "{}", ran.all());
        for file in ["junit.xml", "summary.json"] {
            let text = fs::read_to_string(project.latest().join(file)).expect("written");
            assert!(text.contains("SIMULATED"), "{from}: {file}");
        }
    }
    assert_same(&files(&folder, ""), &before);
    // A child is whole by itself: its parent may go, and it has children of its own.
    let child = id(&project);
    fs::remove_dir_all(&folder).expect("removed");
    for from in STAGES {
        replay(&project, &child, from, 1);
        assert_same(&results(&project.latest()), &expected);
    }
}

/// The newest run, which is red, replays to the same bytes from every stage.
#[track_caller]
pub(crate) fn assert_replays_alike(project: &Project) {
    let parent = id(project);
    let expected = results(&project.latest());
    for from in STAGES {
        replay(project, &parent, from, 1);
        assert_same(&results(&project.latest()), &expected);
    }
}

#[test]
fn neither_cluster_nor_inventory_nor_suite_is_needed() {
    let project = project();
    let parent = ended(&project);
    let elsewhere = nowhere();
    let expected = results(&project.latest());
    let run = project.path().join("runs").join(&parent).display().to_string();
    for from in STAGES {
        let mut command = project.command(&["-q", "--run", &run, "--from", from]);
        let ran = crate::project::ran(command.current_dir(elsewhere.path()).output().expect("starts"));
        assert_eq!(ran.code, Some(1), "{}", ran.all());
        assert_same(&results(&elsewhere.path().join("runs/latest")), &expected);
        let reported = ran.stderr.contains("judged by the numbers that the run's plan holds");
        assert_eq!(reported, from == "judge", "{}", ran.all());
    }
}

#[test]
fn other_baselines_give_another_verdict_and_the_plan_of_the_child_holds_them() {
    let project = project();
    let parent = ended(&project);
    assert_eq!(verdict(&project, "pair", "busbw")["status"], "pass");
    let file = "baselines/sim-p5.toml";
    let text = fs::read_to_string(project.path().join(file)).expect("baselines");
    let higher = raised(&text);
    project.write("other/sim-p5.toml", &higher);
    // The run's own judgement is repeated, unless other baselines are asked for.
    project.write(file, &higher);
    replay(&project, &parent, "analyze", 1);
    assert_eq!(verdict(&project, "pair", "busbw")["status"], "pass");
    let ran = replay(&project, &parent, "judge", 1);
    assert!(ran.stderr.contains("baselines changed since the run was planned"), "{}", ran.all());
    assert_eq!(verdict(&project, "pair", "busbw")["status"], "fail");
    let bound = project.json("plan.json")["cases"][0]["assertions"][0]["bound"]["baseline"].clone();
    assert_eq!(
        (bound["state"].as_str(), bound["lower"].as_f64()),
        (Some("accepted"), Some(9000.0)),
        "{bound}"
    );
    project.write(file, &text);
    replay(&project, &parent, "judge", 1);
    assert_eq!(verdict(&project, "pair", "busbw")["status"], "pass");
    for from in ["analyze", "judge"] {
        let ran = project.harness(&["-q", "--run", &parent, "--from", from, "--baselines", "other"]);
        assert_eq!(ran.code, Some(1), "{}", ran.all());
        assert_eq!(verdict(&project, "pair", "busbw")["status"], "fail");
    }
    // A baseline that is gone leaves the number without one.
    project.write("none/sim-p5.toml", "instance = \"sim-p5\"\nsimulated = true\n");
    project.harness(&["-q", "--run", &parent, "--from", "judge", "--baselines", "none"]);
    assert_eq!(verdict(&project, "pair", "busbw")["status"], "unjudged");
    let real = "instance = \"p5\"\n";
    project.write("real/sim-p5.toml", real);
    let ran = project.harness(&["-q", "--run", &parent, "--from", "judge", "--baselines", "nowhere"]);
    assert_eq!(ran.code, Some(2), "{}", ran.all());
    assert!(ran.stderr.contains("nowhere/sim-p5.toml"), "{}", ran.stderr);
}

/// The bound that the run met, out of reach; lower bounds are the third kind of line after the key.
fn raised(text: &str) -> String {
    let mut of_key = false;
    let mut raised = String::new();
    let blocks = text.split("[[baseline]]");
    for (at, block) in blocks.enumerate() {
        if at > 0 {
            raised.push_str("[[baseline]]");
        }
        let is_it =
            ["nccl.busbw", "\"all_reduce\"", "\"1GiB\"", "nodes = 2"].iter().all(|word| block.contains(word));
        of_key |= is_it;
        for line in block.split_inclusive('\n') {
            match (is_it, line.split(' ').next()) {
                (true, Some("lower")) => raised.push_str("lower = 9000\n"),
                (true, Some("upper")) => raised.push_str("upper = 9999\n"),
                (true, Some("samples")) => raised.push_str("samples = [9500, 9500, 9500, 9500, 9500]\n"),
                _ => raised.push_str(line),
            }
        }
    }
    assert!(of_key);
    raised
}

#[test]
fn a_file_that_was_edited_is_no_pass_until_it_is_accepted_and_is_reported_about_ever_after() {
    let project = project();
    let parent = ended(&project);
    assert_eq!(verdict(&project, "fails", "exit_code")["status"], "fail");
    let raw = project.path().join("runs").join(&parent).join("cases/pair/raw").join(PAIR);
    let stdout = raw.join("stdout");
    let text = fs::read_to_string(&stdout).expect("stdout");
    fs::write(&stdout, format!("{text}\n")).expect("edited");
    replay(&project, &parent, "analyze", 1);
    let share = verdict(&project, "pair", "nic.share@p5-001");
    assert_eq!(
        (share["status"].as_str(), share["cause"].as_str()),
        (Some("inconclusive"), Some("raw-edited"))
    );
    assert!(share["message"].as_str().is_some_and(|line| line.contains("stdout: ")), "{share}");
    assert!(share["next"].as_str().is_some_and(|next| next.contains("--from collect")), "{share}");
    assert_eq!(verdict(&project, "pair", "busbw")["status"], "inconclusive");
    assert_eq!(verdict(&project, "kernels", "share")["status"], "pass", "other jobs are as they were");
    // The child is as fit for a replay as its parent.
    replay(&project, "latest", "analyze", 1);
    assert_eq!(verdict(&project, "pair", "busbw")["status"], "inconclusive");
    let ran = replay(&project, &parent, "collect", 1);
    assert_eq!(verdict(&project, "pair", "nic.share@p5-001")["status"], "pass", "{}", ran.all());
    assert!(ran.stdout.contains("finding raw-changed"), "{}", ran.all());
    for from in STAGES {
        let ran = replay(&project, "latest", from, 1);
        assert!(ran.stdout.contains("finding raw-changed"), "{from}: {}", ran.all());
        let collected = project.json("cases/pair/collected.json");
        assert_eq!(collected["changed"][0]["how"], "edited", "{from}");
    }
}

#[test]
fn a_file_that_is_gone_is_no_pass_and_one_that_was_put_there_is_taken_with_a_word() {
    let project = project();
    let parent = ended(&project);
    let raw = project.path().join("runs").join(&parent).join("cases/pair/raw").join(PAIR);
    let counters = raw.join("counters.p5-001.txt");
    let text = fs::read(&counters).expect("counters");
    fs::remove_file(&counters).expect("removed");
    replay(&project, &parent, "analyze", 1);
    let share = verdict(&project, "pair", "nic.share@p5-001");
    assert_eq!((share["status"].as_str(), share["cause"].as_str()), (Some("inconclusive"), Some("raw-gone")));
    replay(&project, &parent, "collect", 1);
    let share = verdict(&project, "pair", "nic.share@p5-001");
    assert_eq!(
        (share["status"].as_str(), share["cause"].as_str()),
        (Some("inconclusive"), Some("output-missing"))
    );
    assert!(
        share["message"].as_str().is_some_and(|line| line.contains("it was collected, and is missing now")),
        "{share}"
    );
    assert_eq!(verdict(&project, "pair", "busbw")["status"], "pass", "what does not need it is judged");
    assert_eq!(project.json("cases/pair/collected.json")["changed"][0]["how"], "gone");
    // The child has accounted for its absence; there it is put back by hand.
    let child = id(&project);
    let there = project.latest().join("cases/pair/raw").join(PAIR).join("counters.p5-001.txt");
    fs::write(there, text).expect("put there");
    let ran = replay(&project, &child, "collect", 1);
    assert_eq!(verdict(&project, "pair", "nic.share@p5-001")["status"], "pass", "{}", ran.all());
    assert_eq!(project.json("cases/pair/collected.json")["changed"][0]["how"], "added");
    assert!(ran.stdout.contains("finding raw-changed"), "{}", ran.all());
}

#[test]
fn a_run_that_was_killed_is_judged_by_what_is_there_and_the_rest_is_never_a_pass() {
    let whole = project();
    ended(&whole);
    let expected = verdicts(&whole);
    let writes = ["events.jsonl", "simulated.jsonl"]
        .map(|name| fs::read_to_string(whole.latest().join(name)).expect("lines").lines().count() as u64);
    let writes: u64 = writes.iter().sum();
    let mut incomplete = 0;
    for point in 1..=6 {
        let project = project();
        let parent = killed(&project, 1 + point * (writes - 2) / 6);
        let folder = project.path().join("runs").join(&parent);
        let before = files(&folder, "");
        for from in STAGES {
            let ran = project.harness(&["-q", "--run", &parent, "--from", from]);
            let line = verdicts(&project);
            for ((name, status), (_, whole)) in line.iter().zip(&expected) {
                let case = name.split("::").nth(1).expect("a case");
                let lies_there = |file: &str| folder.join("cases").join(case).join(file).is_file();
                let has_results = lies_there("verdict.json");
                if has_results {
                    assert_eq!(status, whole, "{from} {name}");
                } else if !lies_there("job.json") || matches!(from, "judge" | "report") {
                    assert!(matches!(status.as_str(), "error" | "inconclusive"), "{from} {name}: {status}");
                }
                incomplete += usize::from(!has_results);
            }
            assert!(matches!(ran.code, Some(1 | 3)), "{}", ran.all());
            let summary = project.json("summary.json");
            let why = summary["interrupted"].as_str().unwrap_or_default();
            assert!(why.contains("the run did not finish"), "{summary}");
            assert!(summary["seconds"].as_f64().is_some_and(|seconds| seconds >= 0.0));
        }
        assert_same(&files(&folder, ""), &before);
    }
    assert!(incomplete > 20, "{incomplete}");
}

#[test]
fn what_a_case_lost_is_inconclusive_and_the_stage_that_remakes_it_is_named() {
    let project = project();
    let parent = ended(&project);
    let case = project.path().join("runs").join(&parent).join("cases/pair");
    for (file, from, cause) in [
        ("metrics.parquet", "judge", "not-analyzed"),
        ("analysis.json", "judge", "not-analyzed"),
        ("collected.json", "analyze", "output-missing"),
        ("job.json", "analyze", "not-run"),
        ("collected.json", "judge", "not-analyzed"),
        ("job.json", "judge", "not-run"),
        ("verdict.json", "report", "not-analyzed"),
        ("metrics.parquet", "report", "not-analyzed"),
        ("analysis.json", "report", "not-analyzed"),
        ("collected.json", "report", "not-analyzed"),
        ("job.json", "report", "not-run"),
    ] {
        let bytes = fs::read(case.join(file)).expect("there");
        fs::remove_file(case.join(file)).expect("removed");
        replay(&project, &parent, from, 1);
        verdicts(&project);
        let reported = verdict(&project, "pair", "busbw");
        assert!(matches!(reported["status"].as_str(), Some("inconclusive" | "error")), "{file}: {reported}");
        assert_eq!(reported["cause"], cause, "{file}: {reported}");
        fs::write(case.join(file), bytes).expect("put back");
    }
    fs::remove_file(case.join("collected.json")).expect("removed");
    replay(&project, &parent, "collect", 1);
    assert_eq!(verdict(&project, "pair", "busbw")["status"], "pass");
}

#[test]
fn what_is_broken_of_a_newer_format_or_no_run_is_refused_by_name_and_makes_no_run() {
    let project = project();
    let parent = ended(&project);
    let folder = project.path().join("runs").join(&parent);
    let runs = project.runs();
    let edit = |file: &str, from: &str, change: &dyn Fn(Vec<u8>) -> Vec<u8>, line: &[&str]| {
        let path = folder.join(file);
        let bytes = fs::read(&path).expect("there");
        fs::write(&path, change(bytes.clone())).expect("edited");
        let ran = project.harness(&["-q", "--run", &parent, "--from", from]);
        assert_eq!(ran.code, Some(2), "{file}: {}", ran.all());
        for word in line.iter().chain([&file]) {
            assert!(ran.stderr.contains(word), "{file}: no `{word}` in {}", ran.stderr);
        }
        fs::write(&path, bytes).expect("put back");
    };
    let newer = |bytes: Vec<u8>| {
        String::from_utf8(bytes).expect("text").replacen("\"format\": 1", "\"format\": 2", 1).into_bytes()
    };
    let half = |bytes: Vec<u8>| bytes[..bytes.len() / 2].to_vec();
    let less = |bytes: Vec<u8>| {
        let mut value: serde_json::Value = serde_json::from_slice(&bytes).expect("JSON");
        value["verdicts"].as_array_mut().expect("verdicts").pop();
        serde_json::to_vec(&value).expect("JSON")
    };
    let away = |bytes: Vec<u8>| {
        String::from_utf8(bytes).expect("text").replacen("\"raw/", "\"../../raw/", 1).into_bytes()
    };
    let out = |bytes: Vec<u8>| {
        String::from_utf8(bytes)
            .expect("text")
            .replacen("\"name\": \"pair\"", "\"name\": \"../pair\"", 1)
            .into_bytes()
    };
    for from in STAGES {
        edit("plan.json", from, &newer, &["format 2", "use a newer harness"]);
        edit("plan.json", from, &half, &["EOF"]);
        edit("plan.json", from, &out, &["is not a file name inside a run"]);
        edit("cases/pair/job.json", from, &newer, &["format 2"]);
        edit("run.json", from, &half, &["EOF"]);
    }
    // What contradicts its neighbours is refused without the digests, too, which older runs do not have.
    remove_digests(&folder);
    edit("cases/pair/collected.json", "analyze", &newer, &["format 2"]);
    edit("cases/pair/collected.json", "analyze", &away, &["is not a file inside the case"]);
    edit("cases/pair/metrics.parquet", "judge", &half, &["--from analyze"]);
    edit("cases/pair/analysis.json", "judge", &newer, &["format 2"]);
    edit("cases/pair/verdict.json", "report", &less, &["--from judge"]);
    // Of whatever a file says, its neighbours say the same, or it is no result.
    let passes = |bytes: Vec<u8>| {
        let text = String::from_utf8(bytes).expect("text");
        let at = text.find("\"status\": \"").expect("a status");
        let status = text[at..].split('"').nth(3).expect("a word").to_owned();
        let other = if status == "pass" { "fail" } else { "pass" };
        text.replacen(&format!("\"status\": \"{status}\""), &format!("\"status\": \"{other}\""), 1)
            .into_bytes()
    };
    let twice = |bytes: Vec<u8>| {
        String::from_utf8(bytes)
            .expect("text")
            .replacen("\"status\":", "\"status\": \"pass\", \"status\":", 1)
            .into_bytes()
    };
    let fails = |bytes: Vec<u8>| {
        let text = String::from_utf8(bytes).expect("text");
        assert!(text.contains("\"code\": 0"), "{text}");
        text.replace("\"code\": 0", "\"code\": 1").into_bytes()
    };
    edit("cases/pair/verdict.json", "report", &passes, &["does not follow", "--from judge"]);
    edit("cases/pair/verdict.json", "report", &twice, &["key `status` stands twice"]);
    let verdict_file = folder.join("cases/pair/verdict.json");
    let job_file = folder.join("cases/pair/job.json");
    let job = fs::read(&job_file).expect("there");
    fs::write(&job_file, fails(job.clone())).expect("edited");
    let ran = project.harness(&["-q", "--run", &parent, "--from", "report"]);
    assert_eq!(ran.code, Some(2), "{}", ran.all());
    assert!(
        ran.stderr
            .contains(&verdict_file.display().to_string().split("runs/").last().expect("a path").to_owned()),
        "{}",
        ran.stderr
    );
    fs::write(&job_file, job).expect("put back");
    edit("cases/pair/outcomes.json", "report", &newer, &["format 2"]);
    let outcomes = folder.join("cases/pair/outcomes.json");
    let bytes = fs::read(&outcomes).expect("there");
    fs::remove_file(&outcomes).expect("removed");
    let ran = project.harness(&["-q", "--run", &parent, "--from", "report"]);
    assert_eq!(ran.code, Some(2), "{}", ran.all());
    assert!(ran.stderr.contains("--from judge"), "{}", ran.stderr);
    fs::write(&outcomes, bytes).expect("put back");
    for (run, line) in [
        ("suites", "no `plan.json`"),
        ("./suites", "no `plan.json`"),
        ("/nowhere/at/all", "no run at `/nowhere/at/all`"),
        ("1999", "no run `1999` in `runs`"),
        ("suites/little.toml", "not a bundle"),
    ] {
        let ran = project.harness(&["-q", "--run", run, "--from", "analyze"]);
        assert_eq!(ran.code, Some(2), "{run}: {}", ran.all());
        assert!(ran.stderr.contains(line), "{run}: no `{line}` in {}", ran.stderr);
    }
    fs::write(folder.join("plan.json"), "{}").expect("emptied");
    let ran = project.harness(&["-q", "--run", &parent, "--from", "analyze"]);
    assert_eq!(ran.code, Some(2), "{}", ran.all());
    assert_eq!(project.runs(), runs);
}

#[test]
fn a_run_that_had_not_begun_or_was_stopped_says_so_again() {
    let project = project();
    project.harness(&[&ARGS[..], &["-q", "--max-fail", "1"]].concat());
    let parent = id(&project);
    let expected = results(&project.latest());
    for from in STAGES {
        let ran = project.harness(&["-q", "--run", &parent, "--from", from]);
        assert_eq!(ran.code, Some(1), "{}", ran.all());
        assert_same(&results(&project.latest()), &expected);
    }
    // A signal's exit code is a part of what the run came to.
    let record = project.path().join("runs").join(&parent).join("run.json");
    let text = fs::read_to_string(&record).expect("there");
    fs::write(&record, text.replace("\"signal_exit_code\": null", "\"signal_exit_code\": 130"))
        .expect("edited");
    replay(&project, &parent, "report", 130);
    let folder = project.path().join("runs").join(&parent);
    for file in ["run.json", "events.jsonl", "simulated.jsonl"] {
        fs::remove_file(folder.join(file)).expect("removed");
    }
    let ran = replay(&project, &parent, "judge", 2);
    assert!(ran.stderr.contains("had not begun"), "{}", ran.stderr);
}

#[test]
fn a_replay_that_did_not_come_to_its_end_is_not_resumed_as_if_its_jobs_were_its_own() {
    let project = project();
    let parent = killed(&project, 12);
    project.harness(&["-q", "--run", &parent, "--from", "analyze"]);
    fs::remove_file(project.latest().join("summary.json")).expect("removed");
    let ran = project.harness(&["-q", "--run", "latest", "--resume"]);
    assert_eq!(ran.code, Some(2), "{}", ran.all());
    assert!(ran.stderr.contains(&format!("--run {parent} --from analyze")), "{}", ran.stderr);
    // The parent itself goes on, found by the beginning of its id.
    let ran = project.harness(&["-q", "--run", &parent[..parent.len() - 2], "--resume"]);
    assert_eq!(ran.code, Some(1), "{}", ran.all());
}

#[test]
fn flags_that_say_nothing_together_are_refused_with_what_to_do() {
    let project = project();
    ended(&project);
    let runs = project.runs();
    for (args, expected) in [
        (&["--run", "latest"][..], "`harness runs show --run ID`"),
        (&["--suite", "little", "--from", "judge"], "--suite"),
        (&["--run", "latest", "--from", "judgement"], "judge"),
        (&["--run", "latest", "--from", "judge", "--suite", "little"], "`harness rerun`"),
        (&["--run", "latest", "--from", "judge", "--inventory", "default"], "--inventory"),
        (&["--run", "latest", "--from", "judge", "--nodes", "p5-001"], "--nodes"),
        (&["--run", "latest", "--from", "judge", "--seed", "1"], "--seed"),
        (&["--run", "latest", "--from", "judge", "--set", "limit_s=1"], "--set"),
        (&["--run", "latest", "--from", "judge", "--dry-run"], "--dry-run"),
        (&["--run", "latest", "--from", "judge", "--list"], "--list"),
        (&["--run", "latest", "--from", "judge", "--exact", "x"], "--exact"),
        (&["--run", "latest", "--from", "judge", "pair"], "a filter"),
        (&["--run", "latest", "--from", "judge", "--skip", "pair"], "--skip"),
        (&["--run", "latest", "--from", "judge", "--resume"], "--from"),
        (&["--run", "latest", "--from", "judge", "--fetch"], "--from collect"),
        (&["--run", "latest", "--from", "collect", "--fetch"], "simulated"),
        (&["--run", "latest", "--from", "report", "--baselines", "baselines"], "--from judge"),
        (&["--run", "latest", "--resume", "--suite", "little"], "--suite"),
        (&["--suite", "little", "--fetch"], "--fetch"),
        (&["--run", "latest", "--rerun", "latest"], "--rerun"),
        (&["--rerun", "latest", "--suite", "little"], "--suite"),
        (&["--rerun", "latest", "--seed", "3"], "--seed"),
    ] {
        let ran = project.harness(args);
        assert_eq!(ran.code, Some(2), "{args:?}: {}", ran.all());
        assert!(ran.stderr.contains(expected), "{args:?}: no `{expected}` in {}", ran.stderr);
        assert_eq!(ran.stdout, "", "{args:?}");
    }
    assert_eq!(project.runs(), runs);
    // What the shell always says is no part of the command; how results are shown goes with all.
    let mut command =
        project.command(&["--run", "latest", "--from", "report", "-q", "--junit", "j.xml", "--color=never"]);
    let ran = crate::project::ran(command.env("HARNESS_INVENTORY", "sim-512").output().expect("starts"));
    assert_eq!(ran.code, Some(1), "{}", ran.all());
    assert!(project.path().join("j.xml").is_file());
}

#[test]
fn what_is_missing_of_a_real_run_is_fetched_from_its_nodes() {
    let project = Project::new();
    let folder = project.path().display();
    project.write(
        "inventory/here.toml",
        &format!("kind = \"real\"\ninstance = \"p5\"\nnodes = \"here-1\"\n[reach]\nvia = \"local\"\n[paths]\nshared = \"{folder}/shared\"\nnccl_tests = \"/opt\"\n"),
    );
    project.write(
        "suites/test.toml",
        "instance = \"p5\"\nabout = \"says a word\"\n[[case]]\nname = \"says\"\nplacement = \"each\"\nworkload = { kind = \"command\", program = \"echo\", args = [\"word\"] }\nrecipes = [\"command\"]\n[[case.assert]]\nmetric = \"command.exit_code\"\nequals = 0\n",
    );
    let ran = project.harness(&["-q", "--suite", "test", "--inventory", "here"]);
    assert_eq!(ran.code, Some(0), "{}", ran.all());
    let parent = id(&project);
    let expected = results(&project.latest());
    let at_home = project.latest().join("cases/says/raw/here-1/stdout");
    assert!(at_home.is_file());
    fs::remove_file(&at_home).expect("removed");
    replay(&project, &parent, "collect", 0);
    assert_eq!(project.json("cases/says/collected.json")["changed"][0]["how"], "gone");
    let ran = project.harness(&["-q", "--run", &parent, "--from", "collect", "--fetch"]);
    assert_eq!(ran.code, Some(0), "{}", ran.all());
    assert_same(&results(&project.latest()), &expected);
    fs::remove_dir_all(project.path().join("shared")).expect("removed");
    let ran = project.harness(&["-q", "--run", &parent, "--from", "collect", "--fetch"]);
    assert_eq!(ran.code, Some(0), "{}", ran.all());
    assert_eq!(project.json("cases/says/collected.json")["changed"][0]["how"], "gone");
}

#[test]
fn a_stored_run_of_each_format_replays_to_the_bytes_that_it_came_to() {
    let runs = root().join("tests/runs");
    let (mut formats, mut written) = (0, 0);
    for entry in fs::read_dir(&runs).expect("stored runs").flatten().filter(|entry| entry.path().is_dir()) {
        formats += 1;
        let stored = entry.path();
        let expected = as_of_this_version(&stored);
        let before = files(&stored, "");
        let elsewhere = nowhere();
        for from in STAGES {
            let project = Project::new();
            let mut command =
                project.command(&["-q", "--run", &stored.display().to_string(), "--from", from]);
            let ran = crate::project::ran(command.current_dir(elsewhere.path()).output().expect("starts"));
            assert_eq!(ran.code, Some(1), "{from}: {}", ran.all());
            let child = elsewhere.path().join("runs/latest");
            written = written.max(format_of(&child));
            assert_same(&reworded(comparable(results(&child))), &expected);
        }
        assert_same(&files(&stored, ""), &before);
    }
    assert!(formats >= written, "one of each format: {formats} of {written}");
}

/// The format of a run's plan, by which stored runs are named.
fn format_of(run: &Path) -> u64 {
    let plan = fs::read(run.join("plan.json")).expect("a plan");
    let plan: serde_json::Value = serde_json::from_slice(&plan).expect("JSON");
    plan["format"].as_u64().expect("a number")
}

/// A folder that lies in no project.
fn nowhere() -> tempfile::TempDir {
    tempfile::tempdir_in("/var/tmp").expect("a folder")
}

/// What the run came to. Records of how it came to that are read with what they have, and written with what a later
/// version knows of it; so are metrics, of which a later version knows more dimensions.
/// By what a number was judged, and the code of a culprit, older versions did not write down; advice is this version's.
fn without_what_is_new(bytes: &[u8]) -> Vec<u8> {
    let mut value: serde_json::Value = serde_json::from_slice(bytes).expect("JSON");
    for (list, keys) in [("verdicts", &["judged_by", "next", "nics"][..]), ("culprits", &["code"])] {
        for one in value[list].as_array_mut().into_iter().flatten().filter_map(|one| one.as_object_mut()) {
            keys.iter().for_each(|key| drop(one.shift_remove(*key)));
        }
    }
    serde_json::to_vec_pretty(&value).expect("JSON")
}

/// Without the codes of culprits, and the commas around them. It is text: what differs by run is cut out of it.
fn without_codes(summary: &[u8]) -> Vec<u8> {
    let text = String::from_utf8_lossy(summary);
    let lines = text.lines().filter(|line| !line.contains("\"code\": \"HRN-"));
    lines.map(|line| line.trim_end_matches(',')).collect::<Vec<_>>().join("\n").into_bytes()
}

/// The testsuites and testcases of a JUnit document, a line for each element and each line of text. Its layout is this
/// version's, and so are advice, the culprits (their testsuite, and which results they explain), and the text of a skipped
/// test, which repeats its message.
fn without_advice(junit: &[u8]) -> Vec<u8> {
    use quick_xml::events::Event;
    let text = String::from_utf8_lossy(junit);
    let mut reader = quick_xml::Reader::from_str(&text);
    let (mut lines, mut in_culprits, mut in_skipped) = (Vec::new(), false, false);
    loop {
        match reader.read_event().expect("XML") {
            Event::Eof => return lines.join("\n").into_bytes(),
            Event::End(_) => in_skipped = false,
            Event::Start(start) | Event::Empty(start) => {
                let element = start.name().as_ref().to_owned();
                let mut attributes: Vec<String> = start
                    .attributes()
                    .map(|attribute| attribute.expect("an attribute"))
                    .map(|attribute| format!("{}=\"{}\"", attribute.key.as_ref(), &*attribute.value))
                    .collect();
                attributes.sort();
                in_skipped = element == "skipped";
                if element == "testsuite" {
                    in_culprits = attributes.iter().any(|one| one == "name=\"culprits\"");
                }
                // The culprits are counted and numbered among the others.
                let is_of_culprits = |one: &String| match element.as_str() {
                    "testsuites" => one.starts_with("tests=") || one.starts_with("failures="),
                    "testsuite" => one.starts_with("id="),
                    _ => false,
                };
                attributes.retain(|one| !is_of_culprits(one));
                let names_culprit = attributes.iter().any(|one| one == "name=\"culprit\"");
                if !(in_culprits || element == "property" && names_culprit) {
                    lines.push(format!("{element} {}", attributes.join(" ")));
                }
            }
            Event::CData(data) if !(in_culprits || in_skipped) => {
                let data = data.xml10_content();
                let own = data
                    .lines()
                    .filter(|line| !line.starts_with("next: ") && !line.starts_with("explained by "));
                lines.extend(own.map(str::to_owned));
            }
            _ => {}
        }
    }
}

fn comparable(mut files: BTreeMap<String, Vec<u8>>) -> BTreeMap<String, Vec<u8>> {
    let reported = ["verdict.json", "analysis.json", "metrics.parquet", "junit.xml", "summary.json"];
    files.retain(|name, _| reported.iter().any(|file| name.ends_with(file)));
    for (name, bytes) in &mut files {
        if name.ends_with("metrics.parquet") {
            let rows = recipes::parquet::from_parquet(bytes).expect("metrics");
            *bytes = recipes::parquet::to_parquet(&rows).expect("metrics");
        } else if name.ends_with("junit.xml") {
            *bytes = without_advice(bytes);
        } else if name.ends_with("summary.json") {
            *bytes = without_codes(bytes);
        } else if name.ends_with("verdict.json") {
            *bytes = without_what_is_new(bytes);
        }
    }
    files
}

/// What an earlier version wrote, and how this one words it. A replay words what it judges, and keeps the rest as it was.
const REWORDED: [(&str, &str); 2] = [
    ("while its namesakes did", "while its peers did"),
    ("; the pretend cluster,", "; the simulated cluster,"),
];

fn reworded(mut files: BTreeMap<String, Vec<u8>>) -> BTreeMap<String, Vec<u8>> {
    for (name, bytes) in files.iter_mut().filter(|(name, _)| !name.ends_with(".parquet")) {
        let text = String::from_utf8(bytes.clone()).unwrap_or_else(|error| panic!("{name}: {error}"));
        *bytes = REWORDED.iter().fold(text, |text, (was, now)| text.replace(was, now)).into_bytes();
    }
    files
}

/// A report says by which version it was written, and a replay writes it.
fn as_of_this_version(stored: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut files = comparable(results(stored));
    let plan = fs::read(stored.join("plan.json")).expect("a plan");
    let plan: serde_json::Value = serde_json::from_slice(&plan).expect("JSON");
    let (was, now) = (plan["harness"].as_str().expect("a version"), env!("CARGO_PKG_VERSION"));
    for (name, form) in
        [("summary.json", "\"harness\": \"V\""), ("junit.xml", "name=\"harness\" value=\"V\"")]
    {
        let text = String::from_utf8(files[name].clone()).expect("text");
        let (was, now) = (form.replace('V', was), form.replace('V', now));
        assert!(text.contains(&was), "{name}: no {was}");
        files.insert(name.to_owned(), text.replace(&was, &now).into_bytes());
    }
    reworded(files)
}

/// Remakes `tests/runs/format-N`, where the format has risen: `cargo test -- --ignored make_a_stored_run`.
#[test]
#[ignore = "writes into the repository"]
fn make_a_stored_run_of_this_format() {
    let project = project();
    let parent = ended(&project);
    let run = project.path().join("runs").join(parent);
    let target = root().join(format!("tests/runs/format-{}", format_of(&run)));
    assert!(!Path::new(&target).exists(), "there is one: {}", target.display());
    for (name, bytes) in files(&run, "") {
        let path = target.join(name);
        fs::create_dir_all(path.parent().expect("a folder")).expect("made");
        fs::write(path, bytes).expect("written");
    }
}
