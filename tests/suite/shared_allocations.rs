//! Jobs that share an allocation of Slurm, upon the simulated cluster: the same verdicts as without, one submission for
//! many jobs, and each way for an allocation or a job in it to be lost.

use crate::project::{Project, Ran, ran};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;

/// Beside the project's own inventories one whose jobs share allocations.
fn project(more: &str) -> Project {
    let project = Project::new();
    project.write(
        "inventory/shares.toml",
        &format!(
            "kind = \"simulated\"\ninstance = \"sim-p5\"\nnodes = \"p5-[001-004]\"\n[reach]\nvia = \"slurm\"\n\
             share_allocations = true\n{more}\n"
        ),
    );
    project
}

fn shares<'a>(args: &[&'a str]) -> Vec<&'a str> {
    [&["-q", "--inventory", "shares"], args].concat()
}

fn command(name: &str, placement: &str, program: &str, more: &str) -> String {
    format!(
        "[[case]]\nname = \"{name}\"\nplacement = {placement}\nrecipes = [\"command\"]\nlimit_s = 60\n\
         workload = {{ kind = \"command\", program = {program} }}\n{more}\n\
         [[case.assert]]\nmetric = \"command.exit_code\"\nequals = 0\n"
    )
}

fn suite(project: &Project, cases: &[String]) {
    let text = format!("instance = \"p5\"\nabout = \"jobs that share\"\n{}", cases.concat());
    project.write("suites/shared.toml", &text);
}

fn lines(project: &Project, name: &str) -> Vec<Value> {
    let text = fs::read_to_string(project.latest().join(name)).unwrap_or_default();
    text.lines().map(|line| serde_json::from_str(line).expect("whole lines")).collect()
}

fn events(project: &Project, name: &str) -> Vec<Value> {
    lines(project, "events.jsonl").into_iter().filter(|event| event["event"] == name).collect()
}

/// Status and cause by the name of the assertion.
fn verdicts(project: &Project) -> BTreeMap<String, String> {
    let mut verdicts = BTreeMap::new();
    for case in project.json("plan.json")["cases"].as_array().expect("cases") {
        let name = case["name"].as_str().expect("a name");
        for verdict in
            project.json(&format!("cases/{name}/verdict.json"))["verdicts"].as_array().expect("verdicts")
        {
            let word = |key: &str| verdict[key].as_str().unwrap_or_default().to_owned();
            let reported = format!("{} {}", word("status"), word("cause")).trim_end().to_owned();
            let name = word("name").rsplit("::").next().unwrap_or_default().to_owned();
            verdicts.insert(format!("{}/{name}", case["name"].as_str().expect("a name")), reported);
        }
    }
    verdicts
}

/// Folders of what was handed to sbatch, without the run's own.
fn submitted(project: &Project) -> Vec<String> {
    let of = |entry: &Value| {
        let argv: Vec<&str> = entry["argv"].as_array()?.iter().filter_map(Value::as_str).collect();
        let ["sbatch", "--parsable", path] = argv.as_slice() else { return None };
        let parts: Vec<&str> = path.rsplit('/').skip(1).take(2).collect();
        Some(format!("{}/{}", parts[1], parts[0]))
    };
    lines(project, "simulated.jsonl").iter().filter_map(of).collect()
}

/// How often each job was begun: by a submission of its own, or by a turn in an allocation.
fn begun(project: &Project) -> BTreeMap<String, u32> {
    let plan = project.json("plan.json");
    let mut begun = BTreeMap::new();
    for job in submitted(project).into_iter().filter(|job| !job.starts_with("+allocations/")) {
        *begun.entry(job).or_insert(0) += 1;
    }
    for entry in lines(project, "simulated.jsonl") {
        let Some(path) = entry["path"].as_str() else { continue };
        let Some((folder, _)) = path.split_once("/turn.") else { continue };
        let allocation = folder.rsplit('/').next().expect("a name");
        let planned = plan["allocations"].as_array().expect("allocations").iter();
        let planned =
            planned.clone().find(|planned| planned["batch_job"]["name"] == allocation).expect("planned");
        let number: usize =
            entry["content"]["text"].as_str().expect("a text").trim().parse().expect("a number");
        let turn = &planned["jobs"][number - 1];
        let job =
            format!("{}/{}", turn["case"].as_str().expect("a case"), turn["job"].as_str().expect("a job"));
        *begun.entry(job).or_insert(0) += 1;
    }
    begun
}

/// What holds of any run, however it went.
#[track_caller]
fn assert_all_ended(project: &Project, ran: &Ran) {
    let names = |kind: &str, key: &str| -> BTreeSet<String> {
        events(project, kind).iter().map(|event| event[key].as_str().expect("a name").to_owned()).collect()
    };
    let (asked, ended) =
        (names("allocation-submitted", "allocation"), names("allocation-ended", "allocation"));
    assert_eq!(asked, ended, "{}", ran.all());
    assert_eq!(cluster::run::shared_slots(&lines(project, "events.jsonl")), [] as [String; 0]);
    assert_eq!(events(project, "job-submitted").len(), events(project, "job-ended").len(), "{}", ran.all());
    assert!(!ran.all().contains("simulated cluster:"), "{}", ran.all());
}

#[test]
fn a_suite_ends_alike_whether_its_jobs_share_allocations_or_not() {
    // All of the suite where all is well, and some cases of each kind where it is not.
    const SOME: [&str; 6] = [
        "--skip=alltoall",
        "--skip=scatter",
        "--skip=gather",
        "--skip=broadcast",
        "--skip=-reduce::",
        "--skip=hyper",
    ];
    for fault in [
        None,
        Some("p5-002:nic-slow=0.4@rdmap113s0"),
        Some("p5-003:hang"),
        Some("p5-001:rank-dies"),
        Some("p5-004:queue-stuck"),
    ] {
        let project = project("");
        let faults: Vec<&str> = fault.into_iter().flat_map(|fault| ["--sim-fault", fault]).collect();
        let some = if fault.is_some() { &SOME[..] } else { &[] };
        // Cases are not planned again on fewer nodes where jobs share allocations.
        let args = [&["--suite", "nccl-p5", "--keep-bad-nodes"], faults.as_slice(), some].concat();
        let alone = project.harness(&[&["-q"], args.as_slice()].concat());
        let (expected, of_alone) = (verdicts(&project), submitted(&project).len());
        let shared = project.harness(&shares(&args));
        assert_eq!(verdicts(&project), expected, "{fault:?}");
        assert_eq!(
            (shared.code, shared.blamed()),
            (alone.code, alone.blamed()),
            "{fault:?}: {}",
            shared.all()
        );
        assert_all_ended(&project, &shared);
        assert!(begun(&project).values().all(|times| *times == 1), "{fault:?}");
        if fault.is_none() {
            let of_shared = submitted(&project).len();
            assert!(of_shared * 3 < of_alone, "{of_shared} submissions for {of_alone}");
            println!("{of_alone} jobs of nccl-p5 in {of_shared} submissions");
        }
    }
}

#[test]
fn an_allocation_that_is_lost_takes_those_with_it_that_had_not_ended_and_no_others() {
    for (fault, cause) in [("node-fails", "NODE_FAIL"), ("preempted", "PREEMPTED")] {
        let project = project("");
        let fails = format!("sim_faults = [\"p5-002:{fault}\"]");
        let cases = [
            command("before", "\"each\"", "\"true\"", ""),
            command("lost", "\"each\"", "\"sleep\", args = [\"30\"]", &fails),
            command("after", "\"each\"", "\"true\"", ""),
            command("later", "\"each\"", "\"true\"", "after = [\"before\"]"),
        ];
        suite(&project, &cases);
        let ran = project.harness(&shares(&["--suite", "shared"]));
        assert_eq!(ran.code, Some(3), "{}", ran.all());
        let mut odd = verdicts(&project);
        odd.retain(|_, line| line != "pass");
        let lost = |case: &str| (format!("{case}/command.exit_code@p5-002"), format!("error {cause}"));
        assert_eq!(odd, BTreeMap::from([lost("lost"), lost("after"), lost("later")]), "{}", ran.all());
        assert_eq!(submitted(&project).len(), 4, "one for each node: {:?}", submitted(&project));
        assert_all_ended(&project, &ran);
        if fault == "node-fails" {
            assert_eq!(ran.blamed(), ["culprit p5-002 node"], "{}", ran.all());
        }
    }
}

#[test]
fn a_job_that_hangs_is_ended_at_its_limit_and_leaves_the_allocation_to_the_others() {
    let project = project("");
    let cases = [
        command("hangs", "\"each\"", "\"sleep\", args = [\"10\"]", "sim_faults = [\"p5-002:hang\"]"),
        command("after", "\"each\"", "\"true\"", ""),
    ];
    suite(&project, &cases);
    let ran = project.harness(&shares(&["--suite", "shared", "--keep-bad-nodes"]));
    let mut odd = verdicts(&project);
    odd.retain(|_, line| line != "pass");
    let hangs = ("hangs/command.exit_code@p5-002".to_owned(), "error hang".to_owned());
    assert_eq!(odd, BTreeMap::from([hangs]), "{}", ran.all());
    assert_eq!(submitted(&project).len(), 4);
    assert_all_ended(&project, &ran);
}

#[test]
fn an_allocation_that_never_starts_costs_each_job_what_it_would_cost_alone() {
    let project = project("");
    let cases = [
        command("one", "\"each\"", "\"true\"", "sim_faults = [\"p5-002:queue-stuck\"]"),
        command("two", "\"each\"", "\"true\"", ""),
        command("three", "\"each\"", "\"true\"", ""),
    ];
    suite(&project, &cases);
    let alone = project.harness(&["-q", "--suite", "shared"]);
    let expected = verdicts(&project);
    assert_eq!(expected["one/command.exit_code@p5-002"], "error queue-stuck", "{}", alone.all());
    let shared = project.harness(&shares(&["--suite", "shared"]));
    assert_eq!(verdicts(&project), expected, "{}", shared.all());
    assert_eq!((shared.code, shared.blamed()), (alone.code, alone.blamed()));
    // What was planned for the allocation runs by itself.
    assert_eq!(submitted(&project).len(), 4 + 2, "{:?}", submitted(&project));
    assert_all_ended(&project, &shared);
}

/// A job overtakes one that waits for another case; what is to run after that one must not wait for it in an allocation
/// that keeps its nodes from it.
#[test]
fn an_allocation_whose_next_job_waits_for_what_waits_for_its_nodes_is_given_up() {
    let project = project("");
    let cases = [
        command("slow", "1", "\"sleep\", args = [\"50\"]", ""),
        command("wide", "\"all\"", "\"true\"", "after = [\"slow\"]"),
        command("narrow", "\"each\"", "\"true\"", ""),
        command("last", "\"each\"", "\"true\"", "after = [\"wide\"]"),
    ];
    suite(&project, &cases);
    let ran = project.harness(&shares(&["--suite", "shared", "--nodes", "p5-[001-002]"]));
    assert_eq!(ran.code, Some(0), "{}", ran.all());
    let closed = events(&project, "allocation-closed");
    assert!(closed.iter().any(|event| event["why"] == "its next job waits for other cases"), "{closed:?}");
    assert_all_ended(&project, &ran);
}

#[test]
fn a_run_that_is_stopped_ends_its_allocations() {
    let project = project("");
    let cases = [
        command("one", "\"each\"", "\"sleep\", args = [\"50\"]", ""),
        command("two", "\"each\"", "\"sleep\", args = [\"50\"]", ""),
        command("three", "\"each\"", "\"true\"", ""),
    ];
    suite(&project, &cases);
    for limit_s in ["2", "20", "57", "75", "200"] {
        let ran = project.harness(&shares(&["--suite", "shared", "--timeout", limit_s]));
        assert_eq!(ran.code, Some(if limit_s == "200" { 0 } else { 3 }), "{limit_s}: {}", ran.all());
        assert_all_ended(&project, &ran);
        assert!(begun(&project).values().all(|times| *times == 1), "{limit_s}");
    }
}

#[test]
fn no_more_allocations_are_in_the_queue_and_none_is_longer_than_the_inventory_says() {
    let project = project("most_jobs = 2\nlongest_allocation_s = 5400");
    let ran = project.harness(&shares(&["--suite", "nccl-p5"]));
    assert_eq!(ran.code, Some(0), "{}", ran.all());
    let shared: BTreeSet<String> = begun_in_allocations(&project);
    let (mut live, mut most) = (0_i32, 0);
    for event in lines(&project, "events.jsonl") {
        let job = format!("{}/{}", event["case"].as_str().unwrap_or(""), event["job"].as_str().unwrap_or(""));
        live += match event["event"].as_str() {
            Some("allocation-submitted") => 1,
            Some("allocation-ended") => -1,
            Some("job-submitted") if !shared.contains(&job) => 1,
            Some("job-ended") if !shared.contains(&job) => -1,
            _ => 0,
        };
        most = most.max(live);
    }
    assert_eq!((live, most), (0, 2));
    let plan = project.json("plan.json");
    let allocations = plan["allocations"].as_array().expect("allocations").clone();
    assert!(!allocations.is_empty());
    let mut seen = BTreeSet::new();
    for allocation in &allocations {
        assert!(
            allocation["batch_job"]["limit_s"].as_u64().is_some_and(|limit_s| limit_s <= 5400),
            "{allocation}"
        );
        let jobs = allocation["jobs"].as_array().expect("jobs");
        assert!(jobs.len() > 1, "a job that does not share has its own");
        for job in jobs {
            assert!(seen.insert(job.to_string()), "in two allocations: {job}");
        }
    }
}

fn begun_in_allocations(project: &Project) -> BTreeSet<String> {
    let submitted: BTreeSet<String> = submitted(project).into_iter().collect();
    begun(project).into_keys().filter(|job| !submitted.contains(job)).collect()
}

#[test]
fn a_dry_run_reports_who_shares() {
    let project = project("longest_allocation_s = 5400");
    let ran = project.harness(&["--suite", "nccl-p5", "--inventory", "shares", "--dry-run"]);
    for part in
        ["allocation a1 on p5-001 (1 node), shared by ", "  1: gpu-each/p5-001", "shared file allocation.sh:"]
    {
        assert!(ran.stdout.contains(part), "{part}: {}", ran.stdout);
    }
    let alone = project.harness(&["--suite", "nccl-p5", "--dry-run"]);
    assert!(!alone.stdout.contains("allocation a1"), "{}", alone.stdout);
}

#[test]
fn a_run_killed_at_any_write_goes_on_in_its_allocations_and_runs_nothing_twice() {
    killed_and_resumed(12);
}

#[test]
#[ignore = "takes minutes; 12 of the 60 writes are always run"]
fn a_run_killed_at_any_write_goes_on_in_its_allocations_and_runs_nothing_twice_full_set() {
    killed_and_resumed(60);
}

/// A run ended at so many of its writes, from the first to the last; each goes on and comes to the same.
fn killed_and_resumed(points: u64) {
    let start = |at: Option<u64>| {
        let project = project("");
        let cases = [
            command("one", "\"each\"", "\"sleep\", args = [\"5\"]", ""),
            command("two", "\"each\"", "\"true\"", "after = [\"one\"]"),
            command("three", "\"all\"", "\"true\"", ""),
            command("four", "\"each\"", "\"false\"", ""),
            command("five", "\"each\"", "\"true\"", ""),
        ];
        suite(&project, &cases);
        let mut command = project.command(&shares(&["--suite", "shared", "--nodes", "p5-[001-002]"]));
        if let Some(at) = at {
            command.env("HARNESS_TEST_KILL_AT_WRITE", at.to_string());
        }
        let ran = ran(command.output().expect("the harness starts"));
        (project, ran)
    };
    let (whole, ended) = start(None);
    assert_eq!(ended.code, Some(1), "{}", ended.all());
    let (expected, once) = (verdicts(&whole), begun(&whole));
    assert!(once.len() == 9 && once.values().all(|times| *times == 1), "{once:?}");
    let writes = (lines(&whole, "events.jsonl").len() + lines(&whole, "simulated.jsonl").len()) as u64;
    for point in 0..points {
        let at = 1 + point * (writes - 1) / (points - 1);
        let (project, first) = start(Some(at));
        assert_eq!(first.code, None, "ended by a signal at write {at}: {}", first.all());
        // Every fourth is ended a second time, while it goes on.
        if point % 4 == 0 {
            let mut command = project.command(&["--run", "latest", "--resume", "-q"]);
            command.env("HARNESS_TEST_KILL_AT_WRITE", "5");
            command.output().expect("the harness starts");
        }
        if project.latest().join("summary.json").exists() {
            continue;
        }
        let last = project.harness(&["--run", "latest", "--resume", "-q"]);
        assert_eq!(last.code, Some(1), "killed at write {at} of {writes}: {}", last.all());
        assert_eq!(verdicts(&project), expected, "killed at write {at} of {writes}");
        assert_eq!(begun(&project), once, "killed at write {at} of {writes}");
        assert_all_ended(&project, &last);
    }
}
