//! Reports on queues and nodes, and on those that give no answer.

use super::*;
use crate::reach::{Answer, Command, ReachError, Wait};
use model::artefact::Launcher;
use std::cell::RefCell;

/// A queue whose jobs go on until they are cancelled; or that gives no answer.
struct Queue {
    answers: bool,
    answers_for_all: bool,
    heeds: bool,
    /// The user's own, and those of others.
    own: Vec<String>,
    others: Vec<String>,
    accounting: Option<&'static str>,
    cancelled: RefCell<Vec<String>>,
}

impl Queue {
    fn listed(&self, lines: &[String]) -> Answer {
        let gone = self.cancelled.borrow();
        let is_there = |line: &&String| !gone.iter().any(|id| line.starts_with(&format!("{id}|")));
        Answer::ok(lines.iter().filter(is_there).map(|line| format!("{line}\n")).collect::<String>())
    }
}

impl Reach for Queue {
    fn exec<'a>(&'a self, _: &'a Host, command: &'a Command) -> Wait<'a, Result<Answer, ReachError>> {
        Box::pin(async move {
            let words: Vec<&str> = command.argv.iter().map(String::as_str).collect();
            let is_own = words.contains(&"--me");
            Ok(match words.as_slice() {
                ["squeue", ..] if !self.answers || (!is_own && !self.answers_for_all) => {
                    Answer::failed(1, "Unable to contact slurm controller")
                }
                ["squeue", ..] if is_own => self.listed(&self.own),
                ["squeue", ..] => self.listed(&self.others),
                ["sacct", ..] => match self.accounting {
                    Some(text) => Answer::ok(text),
                    None => Answer::failed(1, "Slurm accounting storage is disabled"),
                },
                ["scancel", ids @ ..] => {
                    if self.heeds {
                        self.cancelled.borrow_mut().extend(ids.iter().map(|id| (*id).to_owned()));
                    }
                    Answer::ok("")
                }
                ["bash", "-c", ..] => Answer::ok("complete\n"),
                _ => return Err(ReachError::NoProgram { host: "here".into(), program: words.join(" ") }),
            })
        })
    }
    fn put<'a>(&'a self, _: &'a Host, path: &'a str, _: &'a [u8]) -> Wait<'a, Result<(), ReachError>> {
        Box::pin(async move { Err(ReachError::NotFound { path: path.into() }) })
    }
    fn get<'a>(&'a self, _: &'a Host, path: &'a str) -> Wait<'a, Result<Vec<u8>, ReachError>> {
        Box::pin(async move { Err(ReachError::NotFound { path: path.into() }) })
    }
}

/// A run of three jobs in folders `/f1` to `/f3`, whose ids it has written down; the second was renamed by whoever
/// submitted it, and the third was moved too. The last in the queue is somebody's of such a name.
fn queue() -> Queue {
    let own = [
        "7|RUNNING|n1|run.c.a|/elsewhere|(null)",
        "8|PENDING||mine|/f2|/f2/job.sh",
        "9|RUNNING|n2|mine|/elsewhere|/f3/job.sh",
        "10|RUNNING|n2|run.c.aa|/f22|/f22/job.sh",
    ];
    Queue {
        answers: true,
        answers_for_all: true,
        heeds: true,
        own: own.map(str::to_owned).to_vec(),
        others: Vec::new(),
        accounting: None,
        cancelled: RefCell::default(),
    }
}

fn recorded(ids: &[&str]) -> Recorded {
    let mut recorded = Recorded::default();
    recorded.add(Ok(ids.iter().map(|id| ("c/a".to_owned(), (*id).to_owned())).collect()));
    recorded
}

fn cleaned(queue: &Queue, recorded: &Recorded, ends: bool) -> Cleaned {
    let mut plan = fixture::plan();
    plan.launcher = Launcher::Slurm;
    plan.run_id = "run".into();
    plan.cases.truncate(1);
    plan.cases[0].name = "c".into();
    let like = plan.cases[0].jobs[0].clone();
    plan.cases[0].jobs = ["a", "b", "d"]
        .iter()
        .zip(1..)
        .map(|(name, at)| model::artefact::PlannedJob {
            name: (*name).to_owned(),
            folder: format!("/f{at}"),
            ..like.clone()
        })
        .collect();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build();
    runtime.expect("a runtime").block_on(clean(&plan, recorded, queue, ends))
}

#[test]
fn jobs_of_the_run_are_found_by_name_folder_or_script_and_ended_by_id_and_no_others() {
    let queue = queue();
    let cleaned = cleaned(&queue, &recorded(&["7", "8", "9"]), true);
    let found: Vec<_> = cleaned.found.iter().map(|left| (left.which.as_str(), left.job.as_str())).collect();
    assert_eq!(found, [("8", "c/b"), ("7", "c/a"), ("9", "c/d")]);
    assert_eq!((cleaned.left.len(), cleaned.unknown(), cleaned.not_ours.len()), (0, 0, 0), "{cleaned:?}");
    assert_eq!(queue.cancelled.into_inner(), ["8", "7", "9"]);
}

#[test]
fn stubborn_jobs_are_leftovers_and_a_look_ends_nothing() {
    let heedless = Queue { heeds: false, ..queue() };
    assert_eq!(cleaned(&heedless, &Recorded::default(), true).left.len(), 3);
    let queue = queue();
    assert_eq!(cleaned(&queue, &Recorded::default(), false).left.len(), 3);
    assert!(queue.cancelled.into_inner().is_empty());
}

#[test]
fn a_queue_that_cannot_be_asked_is_not_an_empty_one() {
    let cleaned_by = |queue: Queue| cleaned(&queue, &recorded(&["7", "5"]), true);
    let away = cleaned_by(Queue { answers: false, ..queue() });
    assert!(away.left.is_empty());
    assert!(away.unasked["queue"].contains("Unable to contact"), "{away:?}");
    // What can be asked is ended all the same.
    let half = cleaned_by(Queue { answers_for_all: false, ..queue() });
    assert_eq!((half.found.len(), half.left.len()), (3, 0));
    assert!(half.unasked["queue for the recorded jobs 5"].contains("Unable to contact"), "{half:?}");
    let odd = cleaned_by(Queue { own: vec!["7|RUNNING".to_owned()], ..queue() });
    assert!(odd.unasked["queue"].contains("printed an unexpected line: `7|RUNNING`"), "{odd:?}");
}

/// Slurm restarts its ids where its state was lost.
#[test]
fn an_id_that_was_given_again_ends_no_job_of_others() {
    let mut queue = queue();
    queue.own.clear();
    queue.others.push("7|alice|2026-01-01T00:00:00|train|/home/alice|(null)".to_owned());
    // Whatever else is in the queue is none of the run's business, and may be called anything.
    queue.others.push("x\nodd|line".to_owned());
    let of_alice = cleaned(&queue, &recorded(&["7"]), true);
    assert_eq!((of_alice.found.len(), of_alice.unknown()), (0, 0), "{of_alice:?}");
    let line = of_alice.not_ours.first().expect("a line");
    assert!(line.starts_with("job 7 belongs to alice, submitted "), "{line}");
    assert!(queue.cancelled.borrow().is_empty());
    // The user's own may be a job of the run that somebody has changed.
    queue.others.clear();
    queue.own.push("7|RUNNING|n1|train|/home/me|(null)".to_owned());
    let own = cleaned(&queue, &recorded(&["7"]), true);
    assert_eq!((own.found.len(), own.not_ours.len(), own.unknown()), (0, 0, 1), "{own:?}");
    assert!(own.unclear.first().is_some_and(|line| line.contains("`scancel 7`")), "{own:?}");
    assert!(queue.cancelled.borrow().is_empty());
}

#[test]
fn a_job_that_another_user_launched_for_the_run_is_left_over() {
    let mut queue = Queue { heeds: false, ..queue() };
    queue.own.clear();
    queue.others.push("8|alice|2026-01-01T00:00:00|mine|/f2|/f2/job.sh".to_owned());
    let cleaned = cleaned(&queue, &recorded(&["8/3"]), true);
    let left: Vec<_> = cleaned.left.iter().map(|left| (left.at.as_str(), left.which.as_str())).collect();
    assert_eq!(left, [("queue, of alice", "8")]);
    assert!(queue.cancelled.borrow().is_empty(), "only alice, or root by hand, may end it");
}

#[test]
fn unreadable_records_and_a_disagreeing_accounting_are_reported() {
    let mut unread = recorded(&["7"]);
    unread.add(Err("events.jsonl: line 2: odd".to_owned()));
    let cleaned_up = cleaned(&queue(), &unread, true);
    assert_eq!(
        (cleaned_up.found.len(), cleaned_up.left.len(), cleaned_up.unknown()),
        (3, 0, 1),
        "{cleaned_up:?}"
    );
    for (text, unknown) in [
        ("5|RUNNING|mine|/f1\n", 1),
        ("5|CANCELLED by 1000|mine|/f1\n", 0),
        ("5|RUNNING|train|/home/alice\n", 0),
        ("", 0),
    ] {
        let mut queue = Queue { accounting: Some(text), ..queue() };
        queue.own.clear();
        let cleaned_up = cleaned(&queue, &recorded(&["5"]), true);
        assert_eq!((cleaned_up.found.len(), cleaned_up.unknown()), (0, unknown), "{text} {cleaned_up:?}");
    }
}

/// Nodes that answer so; all others have no leftovers.
struct Nodes(Vec<(&'static str, Result<Answer, ReachError>)>);

impl Reach for Nodes {
    fn exec<'a>(&'a self, host: &'a Host, _: &'a Command) -> Wait<'a, Result<Answer, ReachError>> {
        Box::pin(async move {
            let name = host.to_string();
            let answer = self.0.iter().find(|(node, _)| *node == name);
            answer.map_or_else(|| Ok(Answer::ok("complete\n")), |(_, answer)| answer.clone())
        })
    }
    fn put<'a>(&'a self, _: &'a Host, path: &'a str, _: &'a [u8]) -> Wait<'a, Result<(), ReachError>> {
        Box::pin(async move { Err(ReachError::NotFound { path: path.into() }) })
    }
    fn get<'a>(&'a self, _: &'a Host, path: &'a str) -> Wait<'a, Result<Vec<u8>, ReachError>> {
        Box::pin(async move { Err(ReachError::NotFound { path: path.into() }) })
    }
}

fn lines_of(cleaned: Cleaned) -> Vec<String> {
    let left = cleaned.left.into_iter();
    let left =
        left.map(|left| format!("  {}: {}: {} of {}", left.at, left.what.name(), left.which, left.job));
    let unasked = cleaned.unasked.into_iter().map(|(host, why)| format!("  not asked: {host}: {why}"));
    let unclear = cleaned.unclear.into_iter().map(|line| format!("  unclear: {line}"));
    let not_ours = cleaned.not_ours.into_iter().map(|line| format!("  not ours: {line}"));
    left.chain(unasked).chain(unclear).chain(not_ours).collect()
}

/// The nodes of a job, whose folder has a secret: one does not answer, and another may have a process that stays.
struct Stubborn {
    process: bool,
    removed: RefCell<Vec<String>>,
}

impl Reach for Stubborn {
    fn exec<'a>(&'a self, host: &'a Host, _: &'a Command) -> Wait<'a, Result<Answer, ReachError>> {
        Box::pin(async move {
            match host.to_string().as_str() {
                "p5-001" => Err(ReachError::Unreachable { host: "p5-001".into(), why: "gone".into() }),
                "p5-003" if self.process => Ok(Answer::ok("0\tprocess\t7\n0\tsecret\tsecrets\ncomplete\n")),
                _ => Ok(Answer::ok("0\tsecret\tsecrets\ncomplete\n")),
            }
        })
    }
    fn put<'a>(&'a self, _: &'a Host, path: &'a str, _: &'a [u8]) -> Wait<'a, Result<(), ReachError>> {
        Box::pin(async move { Err(ReachError::NotFound { path: path.into() }) })
    }
    fn get<'a>(&'a self, _: &'a Host, path: &'a str) -> Wait<'a, Result<Vec<u8>, ReachError>> {
        Box::pin(async move { Err(ReachError::NotFound { path: path.into() }) })
    }
    fn remove<'a>(
        &'a self,
        host: &'a Host,
        _: &'a str,
        names: &'a [String],
    ) -> Wait<'a, Result<(), ReachError>> {
        Box::pin(async move {
            self.removed.borrow_mut().push(format!("{host} {}", names.join(" ")));
            match host.to_string().as_str() {
                "p5-001" => Err(ReachError::Unreachable { host: "p5-001".into(), why: "gone".into() }),
                _ => Ok(()),
            }
        })
    }
}

#[test]
fn files_are_removed_by_a_node_that_answers_once_the_jobs_processes_are_gone() {
    let mut plan = fixture::plan();
    plan.launcher = Launcher::Ssh;
    plan.cases.truncate(1);
    plan.cases[0].jobs.truncate(1);
    plan.cases[0].jobs[0].nodes = ["p5-001", "p5-002", "p5-003"].map(str::to_owned).to_vec();
    plan.nodes = plan.cases[0].jobs[0].nodes.clone();
    for (process, wanted) in [(false, &["p5-001 secrets", "p5-002 secrets"][..]), (true, &[][..])] {
        let nodes = Stubborn { process, removed: RefCell::default() };
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build();
        let cleaned = runtime.expect("a runtime").block_on(clean(&plan, &Recorded::default(), &nodes, true));
        assert_eq!(nodes.removed.into_inner(), wanted);
        assert!(cleaned.unasked.contains_key("p5-001"), "{cleaned:?}");
        assert!(!cleaned.left.is_empty(), "it is looked for again");
    }
}

#[test]
fn messages() {
    let mut lines = Vec::new();
    let mut add = |what: &str, queue: Queue, recorded: Recorded| {
        lines.push(format!("{what}:"));
        lines.extend(lines_of(cleaned(&queue, &recorded, false)));
    };
    let of_alice = |name: &str| Queue {
        own: Vec::new(),
        others: vec![format!("7|alice|2026-01-01T00:00:00|{name}")],
        ..queue()
    };
    let gone = |accounting| Queue { own: Vec::new(), accounting: Some(accounting), ..queue() };
    let mut unread = recorded(&["7"]);
    unread.add(Err("events.jsonl: line 2: no end".to_owned()));
    add("jobs in the queue", queue(), recorded(&["7"]));
    add("no controller", Queue { answers: false, ..queue() }, recorded(&["7"]));
    add("only the own jobs are listed", Queue { answers_for_all: false, ..queue() }, recorded(&["5"]));
    add("a broken line", Queue { own: vec!["7|RUNNING".to_owned()], ..queue() }, recorded(&["7"]));
    add("broken records", queue(), unread);
    let renamed = vec!["7|RUNNING|n1|train|/home/me|(null)".to_owned()];
    add("an id of an unknown job", Queue { own: renamed, ..queue() }, recorded(&["7"]));
    add("an id that was given again", of_alice("train|/home/alice|(null)"), recorded(&["7"]));
    add("a job of another user", of_alice("mine|/f2|/f2/job.sh"), recorded(&["7"]));
    add("another state in the accounting", gone("5|RUNNING|mine|/f1\n"), recorded(&["5"]));

    let mut plan = fixture::plan();
    plan.launcher = Launcher::Ssh;
    plan.cases.truncate(1);
    let left = "0\tprocess\t4711\n0\tsupervisor\tsupervisor.p5-001\n0\tsecret\tsecrets.p5-001\n\
                0\tpart\tstdout.part\n0\tfile\tcd job.sh\ncomplete\n";
    let away = ReachError::Unreachable { host: "p5-004".into(), why: "connection timed out".into() };
    let ones = Nodes(vec![
        ("p5-001", Ok(Answer::ok(left))),
        ("p5-002", Ok(Answer::failed(127, "bash: cannot fork"))),
        ("p5-003", Ok(Answer::ok("0\tprocess\t7\n"))),
        ("p5-004", Err(away)),
    ]);
    let others = Nodes(vec![("p5-001", Ok(Answer::ok("0\tthing\t7\ncomplete\n")))]);
    let linked = "0\trefused\t`/fsx/run/c/j` is a symbolic link\ncomplete\n";
    let linked = Nodes(vec![("p5-001", Ok(Answer::ok(linked))), ("p5-002", Ok(Answer::ok(linked)))]);
    for nodes in [ones, others, linked] {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build();
        let cleaned = runtime.expect("a runtime").block_on(clean(&plan, &Recorded::default(), &nodes, false));
        lines.push("nodes over ssh:".to_owned());
        lines.extend(lines_of(cleaned));
    }
    insta::assert_snapshot!(lines.join("\n"));
}
