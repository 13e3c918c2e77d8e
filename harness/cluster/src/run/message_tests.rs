//! Why jobs and cases of a run did not start, were ended or were given up: every message.

use super::*;
use crate::launch::Poll;
use crate::reach::{Answer, Command, Host, ReachError, Wait, progress};
use model::artefact::{Blamed, JobProperties, PlannedAllocation, PlannedFile, PlannedSecret, PlannedTurn};
use std::cell::RefCell;
use std::collections::BTreeMap;

/// Takes a job by its name, or refuses it.
type Submit = fn(&str) -> Result<(), &'static str>;
/// What is reported of a job: by its name, the seconds since it was taken, and whether it was cancelled.
type Report = fn(&str, u64, bool) -> Poll;

struct Scripted {
    submit: Submit,
    report: Report,
    submitted: RefCell<BTreeMap<String, Instant>>,
    cancelled: RefCell<BTreeSet<String>>,
}

impl Launch for Scripted {
    fn submit<'a>(&'a self, _: &'a dyn Reach, job: &'a PlannedJob) -> Wait<'a, Result<String, NotLaunched>> {
        Box::pin(async move {
            (self.submit)(&job.name).map_err(|why| NotLaunched::from(why.to_owned()))?;
            self.submitted.borrow_mut().insert(job.name.clone(), Instant::now());
            Ok("7".to_owned())
        })
    }

    fn find_started<'a>(
        &'a self,
        _: &'a dyn Reach,
        _: &'a PlannedJob,
    ) -> Wait<'a, Result<Option<String>, NotLaunched>> {
        Box::pin(async { Ok(None) })
    }

    fn poll<'a>(&'a self, _: &'a dyn Reach, jobs: &'a [(&'a PlannedJob, &'a str)]) -> Wait<'a, Vec<Poll>> {
        Box::pin(async move {
            let mut polls = Vec::new();
            for (job, _) in jobs {
                let since = self.submitted.borrow().get(&job.name).copied().unwrap_or_else(Instant::now);
                let is_cancelled = self.cancelled.borrow().contains(&job.name);
                polls.push((self.report)(&job.name, since.elapsed().as_secs(), is_cancelled));
            }
            polls
        })
    }

    fn interrupt<'a>(&'a self, _: &'a dyn Reach, _: &'a PlannedJob, _: &'a str) -> Wait<'a, ()> {
        Box::pin(async {})
    }

    fn cancel<'a>(&'a self, _: &'a dyn Reach, job: &'a PlannedJob, _: &'a str) -> Wait<'a, ()> {
        Box::pin(async move {
            self.cancelled.borrow_mut().insert(job.name.clone());
        })
    }
}

/// A folder with these files, on a cluster whose nodes `sinfo` lists so.
#[derive(Default)]
struct Shared {
    files: BTreeMap<&'static str, &'static str>,
    sinfo: &'static str,
    /// How the path of a file ends that cannot be written.
    unwritable: Option<&'static str>,
}

impl Reach for Shared {
    fn exec<'a>(&'a self, _: &'a Host, command: &'a Command) -> Wait<'a, Result<Answer, ReachError>> {
        Box::pin(async move {
            if let Some(folders) = progress::asked(&command.argv) {
                let (counters, last) = ("1".to_owned(), "# nccl-tests".to_owned());
                let line = progress::render(&progress::Progress { bytes: 10, counters, last });
                return Ok(Answer::ok(line.repeat(folders.len())));
            }
            let is_sinfo = command.argv.first().is_some_and(|program| program == "sinfo");
            Ok(Answer::ok(if is_sinfo { self.sinfo } else { "" }))
        })
    }

    fn put<'a>(&'a self, _: &'a Host, path: &'a str, _: &'a [u8]) -> Wait<'a, Result<(), ReachError>> {
        Box::pin(async move {
            match self.unwritable {
                Some(end) if path.ends_with(end) => {
                    let (what, why) =
                        (format!("cannot write `{path}`"), "no space left on device".to_owned());
                    Err(ReachError::Failed { what, why })
                }
                _ => Ok(()),
            }
        })
    }

    fn get<'a>(&'a self, _: &'a Host, path: &'a str) -> Wait<'a, Result<Vec<u8>, ReachError>> {
        Box::pin(async move {
            let found = self.files.get(path).map(|text| text.as_bytes().to_vec());
            found.ok_or_else(|| ReachError::NotFound { path: path.to_owned() })
        })
    }
}

fn worded(event: &Event) -> Option<String> {
    let line = match event {
        Event::RunStopped { why, .. } => format!("run stopped: {why}"),
        Event::CaseNotRun { case, why, .. } => format!("{case} is not run: {why}"),
        Event::JobAgain { job, first, cause, .. } => format!("{job} in place of {first}: {cause}"),
        Event::SubmitLimit { most_jobs, why, .. } => format!("submit limit {most_jobs}: {why}"),
        Event::AllocationClosed { allocation, why, .. } => format!("{allocation} closed: {why}"),
        Event::AllocationEnded { allocation, end, .. } => format!("{allocation} ended: {end:?}"),
        _ => return None,
    };
    Some(format!("  {line}"))
}

/// Runs the plan; what is reported of the run and recorded of each job.
fn run(plan: &Plan, submit: Submit, report: Report, shared: &Shared) -> Vec<String> {
    let lines: RefCell<Vec<String>> = RefCell::default();
    let secrets = Secrets::default();
    let mut on_event = |event: Option<&Event>, _: Duration| lines.borrow_mut().extend(event.and_then(worded));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build();
    runtime.expect("a runtime").block_on(async {
        let (submitted, cancelled) = (RefCell::default(), RefCell::default());
        let launcher: Rc<dyn Launch> = Rc::new(Scripted { submit, report, submitted, cancelled });
        let mut runner = Runner::new(plan, shared, Clock::starting_at(0.0), &mut on_event, &secrets);
        let launching =
            Launching { plan, reach: shared, launcher: launcher.clone(), secrets: &secrets, resumed: false };
        runner.launching = Rc::new(launching);
        runner.launcher = launcher;
        while let Some(finished) = runner.next().await {
            let case = &plan.cases[finished.case].name;
            for job in &finished.jobs.jobs {
                let mut line = format!("  {case}/{}: {:?}", job.name, job.end);
                if let Some(blamed) = &job.blamed {
                    line.push_str(&format!("; blamed {}: {}", blamed.node, blamed.evidence));
                }
                for finding in &job.findings {
                    line.push_str(&format!("; {}: {}", finding.code, finding.message));
                }
                lines.borrow_mut().push(line);
            }
            let all_good = finished.jobs.jobs.iter().all(|job| job.end == Ended::Exited { code: 0 });
            runner.settle(finished.case, if all_good { CaseEnd::Pass } else { CaseEnd::Error });
        }
    });
    lines.into_inner()
}

/// Jobs with their nodes, by case.
type Cases<'a> = &'a [(&'a str, &'a [(&'a str, &'a [&'a str])])];

fn plan(cases: Cases<'_>) -> Plan {
    let made = fixture::plan();
    let (of_case, of_job) = (made.cases[0].clone(), made.cases[0].jobs[0].clone());
    let job = |case: &str, name: &str, nodes: &[&str]| PlannedJob {
        name: name.to_owned(),
        nodes: nodes.iter().map(|node| (*node).to_owned()).collect(),
        folder: format!("/fsx/{case}/{name}"),
        ..of_job.clone()
    };
    let case = |(name, jobs): &(&str, &[(&str, &[&str])])| PlannedCase {
        name: (*name).to_owned(),
        properties: JobProperties { queue_limit_s: 60, ..of_case.properties },
        jobs: jobs.iter().map(|(of, nodes)| job(name, of, nodes)).collect(),
        ..of_case.clone()
    };
    Plan { cases: cases.iter().map(case).collect(), ..made }
}

const N1: &[&str] = &["p5-001"];
const N2: &[&str] = &["p5-002"];
const N3: &[&str] = &["p5-003"];
const N12: &[&str] = &["p5-001", "p5-002"];

fn one() -> Plan {
    plan(&[("one", &[("a", N12)])])
}

fn takes(_: &str) -> Result<(), &'static str> {
    Ok(())
}

fn ends(_: &str, _: u64, _: bool) -> Poll {
    Poll::ended(Ended::Exited { code: 0 }, None)
}

fn until_cancelled(poll: Poll, is_cancelled: bool) -> Poll {
    if is_cancelled { Poll::ended(Ended::Killed { signal: 15 }, None) } else { poll }
}

fn runs(_: &str, _: u64, is_cancelled: bool) -> Poll {
    until_cancelled(Poll::Running, is_cancelled)
}

fn waiting(reason: &str, never: bool) -> Poll {
    Poll::Waiting { reason: reason.to_owned(), never }
}

fn lost_node(node: &str) -> Poll {
    let evidence = format!("`sinfo` reports {node} down");
    Poll::ended(Ended::NodeFail, Some(Blamed { node: node.to_owned(), evidence }))
}

#[test]
fn messages_of_jobs() {
    let mut lines = Vec::new();
    let shared = Shared::default();
    let mut add = |what: &str, plan: &Plan, submit: Submit, report: Report| {
        lines.push(format!("{what}:"));
        lines.extend(run(plan, submit, report, &shared));
    };
    let mut after = plan(&[("one", &[("a", N1)]), ("two", &[("b", N1)])]);
    after.cases[1].after = vec!["one".into()];
    add("a dependency failed", &after, takes, |_, _, _| Poll::ended(Ended::Exited { code: 3 }, None));
    let mut limited = plan(&[("one", &[("a", N1)]), ("two", &[("b", N1)])]);
    limited.limit_s = Some(60);
    add("time limit of the run", &limited, takes, runs);
    add("time limit of a job", &one(), takes, runs);
    add("a job that cannot be ended", &one(), takes, |_, _, _| Poll::Running);
    let mut stalls = one();
    stalls.cases[0].properties.stall_s = Some(60);
    add("no progress", &stalls, takes, runs);

    let mut asks = one();
    let script = "#!/bin/bash\n#SBATCH --partition=short\n#SBATCH --time=00:20:00\n";
    asks.cases[0].jobs[0].files =
        vec![PlannedFile { name: "job.sh".into(), text: Some(script.into()), sha256: None }];
    add("a limit of the partition", &asks, takes, |_, _, is_cancelled| {
        until_cancelled(waiting("PartitionTimeLimit", true), is_cancelled)
    });
    add("a drained node", &one(), takes, |_, _, is_cancelled| {
        let reason = "ReqNodeNotAvail, UnavailableNodes:p5-002 (p5-002 is drained: bad NIC)";
        until_cancelled(waiting(reason, false), is_cancelled)
    });
    add("queued again", &one(), takes, |_, since, is_cancelled| {
        until_cancelled(if since < 20 { Poll::Running } else { waiting("BeginTime", false) }, is_cancelled)
    });
    add("no answer, then the end", &one(), takes, |_, _, is_cancelled| {
        until_cancelled(Poll::Unknown("`squeue` ended with exit code 1: timed out".into()), is_cancelled)
    });
    add("no answer at all", &one(), takes, |_, _, _| {
        Poll::Unknown("`squeue` ended with exit code 1: timed out".into())
    });

    let several = plan(&[("one", &[("a", N1), ("b", N2)]), ("two", &[("c", N1)])]);
    add("refused", &several, |_| Err("sbatch: error: Invalid account"), ends);
    add("no controller", &several, |_| Err("sbatch: error: Unable to contact slurm controller"), ends);
    add("too many jobs", &one(), |_| Err("sbatch: error: QOSMaxSubmitJobPerUserLimit"), ends);
    let mut unknown = one();
    unknown.cases[0].jobs[0].files.push(PlannedFile { name: "x.sh".into(), text: None, sha256: None });
    add("a script of another version", &unknown, takes, ends);
    let mut secret = one();
    secret.cases[0].jobs[0].secrets = vec![PlannedSecret { variable: "KEY".into(), from: "KEY".into() }];
    add("a secret without a value", &secret, takes, ends);

    let left = |by_folder: bool, after: Option<&str>| {
        let mut plan = one();
        let (node, why, after) = ("p5-002".to_owned(), "it is bad".to_owned(), after.map(str::to_owned));
        plan.left_out = vec![LeftOut { node, why, by_folder, after }];
        plan
    };
    add("left out", &left(false, None), takes, ends);
    add("left out for the folder", &left(true, None), takes, ends);
    add("quarantined", &left(false, Some("gpu-each")), takes, ends);

    let again = plan(&[("one", &[("a", N12), ("b", N12)])]);
    add("a hang, and the same nodes again", &again, takes, runs);
    let (p1, p2): (&[&str], &[&str]) = (&["p5-001", "p5-003"], &["p5-001", "p5-004"]);
    let stage = plan(&[("one", &[("a", N12)]), ("two", &[("b", p1)]), ("three", &[("c", p2)])]);
    add("two hangs in a row", &stage, takes, runs);

    let retried = |jobs: &[(&str, &[&str])]| {
        let mut plan = plan(&[("one", jobs)]);
        let mut second = plan.cases[0].jobs.clone();
        for job in &mut second {
            job.again_of = Some(job.name.clone());
            job.name.push_str(".again");
        }
        plan.cases[0].jobs.extend(second);
        plan
    };
    let of_three = retried(&[("a", N1), ("b", N2), ("c", N3)]);
    add("one of three lost", &of_three, takes, |name, since, is_cancelled| match name {
        "a" => lost_node("p5-001"),
        _ => ends(name, since, is_cancelled),
    });
    add("two of three lost", &of_three, takes, |name, since, is_cancelled| match name {
        "a" => lost_node("p5-001"),
        "b" => lost_node("p5-002"),
        _ => ends(name, since, is_cancelled),
    });
    add("one of one lost", &retried(&[("a", N1)]), takes, |_, _, _| lost_node("p5-001"));

    let full = Shared { unwritable: Some("job.sh"), ..Shared::default() };
    lines.push("a full folder:".to_owned());
    lines.extend(run(&one(), takes, ends, &full));
    insta::assert_snapshot!(lines.join("\n"));
}

/// Its limits stand still, its numbers do not count, and it does not wait for ever.
#[test]
fn a_job_that_slurm_suspends_neither_hangs_nor_counts() {
    let mut plan = one();
    plan.cases[0].properties.stall_s = Some(60);
    plan.cases[0].properties.queue_limit_s = 1000;
    plan.cases[0].jobs[0].limit_s = 120;
    let lost = [format!("  one/a: {:?}", crate::launch::slurm_end::suspended())];
    let resumed: Report = |_, since, is_cancelled| {
        assert!(!is_cancelled, "{since} s");
        match since {
            40..300 => Poll::Suspended,
            330.. => Poll::ended(Ended::Exited { code: 0 }, None),
            _ => Poll::Running,
        }
    };
    assert_eq!(run(&plan, takes, resumed, &Shared::default()), lost);
    let forever: Report = |_, since, is_cancelled| {
        assert!(since < 1200, "it is not ended");
        until_cancelled(Poll::Suspended, is_cancelled)
    };
    assert_eq!(run(&plan, takes, forever, &Shared::default()), lost);
    let fails: Report = |_, since, _| if since < 40 { Poll::Suspended } else { lost_node("p5-001") };
    assert_eq!(run(&plan, takes, fails, &Shared::default()), lost);
}

/// Two jobs on one node, which share the allocation `a1`; and one on another.
fn allocated() -> Plan {
    let mut plan = plan(&[("one", &[("a", N1)]), ("other", &[("s", N3)]), ("two", &[("b", N1)])]);
    let batch_job = PlannedJob {
        name: "a1".into(),
        folder: "/fsx/a1".into(),
        limit_s: 1800,
        ..plan.cases[0].jobs[0].clone()
    };
    let turn =
        |case: &str, job: &str| PlannedTurn { case: case.to_owned(), job: job.to_owned(), limit_s: 480 };
    plan.allocations = vec![PlannedAllocation { batch_job, jobs: vec![turn("one", "a"), turn("two", "b")] }];
    plan
}

/// The allocation runs until it is cancelled; what runs by itself ends well.
fn allocation_runs(name: &str, since: u64, is_cancelled: bool) -> Poll {
    match name {
        "a1" => until_cancelled(Poll::Running, is_cancelled),
        "s" if since < 200 => Poll::Running,
        _ => Poll::ended(Ended::Exited { code: 0 }, None),
    }
}

#[test]
fn messages_of_allocations() {
    let mut lines = Vec::new();
    let mut add = |what: &str, plan: &Plan, report: Report, shared: Shared| {
        lines.push(format!("{what}:"));
        lines.extend(run(plan, takes, report, &shared));
    };
    let ended = || Shared {
        files: [("/fsx/one/a/ended", "exited 0\n"), ("/fsx/two/b/ended", "exited 0\n")].into(),
        ..Shared::default()
    };
    let began = || Shared { files: [("/fsx/one/a/began", "")].into(), ..Shared::default() };
    add("all jobs ended", &allocated(), allocation_runs, ended());
    add("it does not end", &allocated(), |name, since, _| allocation_runs(name, since, false), ended());
    let mut long = allocated();
    long.allocations[0].jobs[1].limit_s = 10_000;
    add("too little time is left", &long, allocation_runs, ended());
    let drained = Shared { sinfo: "p5-001|drained|bad NIC\n", ..ended() };
    add("its node was drained", &allocated(), allocation_runs, drained);
    let mut waits = allocated();
    waits.cases[2].after = vec!["other".into()];
    add("its next job waits", &waits, allocation_runs, ended());

    let queued: Report = |name, since, is_cancelled| match name {
        "a1" => until_cancelled(waiting("Resources", false), is_cancelled),
        _ => allocation_runs(name, since, is_cancelled),
    };
    add("it waits in the queue", &allocated(), queued, Shared::default());
    add("it begins nothing", &allocated(), allocation_runs, Shared::default());
    add("a job in it does not end", &allocated(), allocation_runs, began());
    let killed: Report = |name, since, is_cancelled| match name {
        "a1" if since >= 10 => Poll::ended(Ended::Killed { signal: 9 }, None),
        _ => allocation_runs(name, since, is_cancelled),
    };
    add("it was killed", &allocated(), killed, began());
    let over: Report = |name, since, is_cancelled| match name {
        "a1" if since >= 10 => Poll::ended(Ended::TimeLimit { limit_s: 1800 }, None),
        _ => allocation_runs(name, since, is_cancelled),
    };
    add("its time is over", &allocated(), over, began());
    let full = Shared { unwritable: Some("turn.1"), ..Shared::default() };
    add("a turn that cannot be given", &allocated(), allocation_runs, full);
    insta::assert_snapshot!(lines.join("\n"));
}

#[test]
fn messages_of_records() {
    let refused = |line: &str| {
        let event = serde_json::from_str(line).expect("JSON");
        History::read(&[event]).expect_err("refused")
    };
    let mut lines = vec![
        refused(r#"{"at":"2026-01-01T00:00:00.000Z"}"#),
        refused(r#"{"event":"run-started","at":"yesterday"}"#),
        refused(r#"{"event":"job-ended","at":"2026-01-01T00:00:00.000Z","case":"c","job":"a"}"#),
    ];
    let submitted = |job: &str| {
        let line = format!(r#"{{"event":"job-submitted","case":"c","job":"{job}","nodes":["p5-001"]}}"#);
        serde_json::from_str(&line).expect("JSON")
    };
    lines.extend(shared_slots(&[submitted("a"), submitted("b")]));
    insta::assert_snapshot!(lines.join("\n"));
}
