//! What the ssh launcher makes of the answers of a job's nodes, and of nodes that give none.

use super::*;
use crate::reach::{Answer, Command};
use model::artefact::PlannedFile;
use std::collections::{BTreeSet, VecDeque};

/// One that is started by supervisor.sh below `/f`.
pub(crate) fn job(nodes: &[&str]) -> PlannedJob {
    PlannedJob {
        name: "j".into(),
        nodes: nodes.iter().map(|node| (*node).to_owned()).collect(),
        round: 1,
        ranks: 16,
        folder: "/f".into(),
        files: Vec::new(),
        launch: job::script::start::over_ssh("/f", 300),
        expected: Vec::new(),
        estimate_s: 1,
        limit_s: 60,
        secrets: Vec::new(),
        profile: None,
        control_run: None,
        again_of: None,
        evidence: None,
    }
}

/// What each node answers to each look or start, in this order; the last of them for ever. `-` is no answer.
#[derive(Default)]
struct Scripted {
    answers: RefCell<BTreeMap<&'static str, VecDeque<&'static str>>>,
    /// Every call but looks, as `NODE VERB WORD`.
    calls: RefCell<Vec<String>>,
    /// Every script that was called.
    scripts: RefCell<BTreeSet<String>>,
    files: RefCell<BTreeMap<String, Vec<u8>>>,
}

impl Scripted {
    fn with_answers(nodes: &[(&'static str, &[&'static str])]) -> Scripted {
        let answers = nodes.iter().map(|(node, answers)| (*node, answers.iter().copied().collect()));
        Scripted { answers: RefCell::new(answers.collect()), ..Scripted::default() }
    }

    fn calls(&self) -> Vec<String> {
        std::mem::take(&mut *self.calls.borrow_mut())
    }
}

impl Reach for Scripted {
    fn exec<'a>(&'a self, host: &'a Host, command: &'a Command) -> Wait<'a, Result<Answer, ReachError>> {
        Box::pin(async move {
            let node = host.to_string();
            let verb = command.argv[2].clone();
            self.scripts.borrow_mut().insert(command.argv[1].clone());
            assert_eq!(command.argv[4], node, "the node gets its own name");
            let mut answers = self.answers.borrow_mut();
            let left = answers.get_mut(node.as_str()).expect("a node of the test");
            let answer = if left.len() > 1 { left.pop_front() } else { left.front().copied() };
            if verb != "look" {
                let word = command.argv.get(5).cloned().unwrap_or_default();
                self.calls.borrow_mut().push(format!("{node} {verb} {word}"));
            }
            match answer.unwrap_or("-") {
                "-" => Err(ReachError::Unreachable { host: node, why: "no route".into() }),
                "server away" => {
                    Err(ReachError::Unreachable { host: "the API server".into(), why: "refused".into() })
                }
                "pod evicted" => Err(ReachError::PodOver { host: node, why: "Evicted: memory".into() }),
                "broken" => Ok(Answer::failed(127, "bash: no such file")),
                line => Ok(Answer::ok(format!("welcome to {node}\n{line}\n"))),
            }
        })
    }
    fn put<'a>(&'a self, host: &'a Host, path: &'a str, bytes: &'a [u8]) -> Wait<'a, Result<(), ReachError>> {
        Box::pin(async move {
            if self.answers.borrow().get(host.to_string().as_str()).is_some_and(|left| left == &["-"]) {
                return Err(ReachError::Unreachable { host: host.to_string(), why: "no route".into() });
            }
            self.files.borrow_mut().insert(path.to_owned(), bytes.to_vec());
            Ok(())
        })
    }
    fn get<'a>(&'a self, host: &'a Host, path: &'a str) -> Wait<'a, Result<Vec<u8>, ReachError>> {
        Box::pin(async move {
            if self.answers.borrow().get(host.to_string().as_str()).is_some_and(|left| left == &["-"]) {
                return Err(ReachError::Unreachable { host: host.to_string(), why: "no route".into() });
            }
            let found = self.files.borrow().get(path).cloned();
            found.ok_or_else(|| ReachError::NotFound { path: path.to_owned() })
        })
    }
}

fn paused<T>(work: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build();
    runtime.expect("a runtime").block_on(work)
}

/// Polls every five seconds until the job has ended or so many looks were taken; every poll, as it came.
fn polls(reach: &Scripted, job: &PlannedJob, most: usize) -> Vec<Poll> {
    paused(async {
        let ssh = Ssh::default();
        let mut seen = Vec::new();
        for _ in 0..most {
            seen.extend(ssh.poll(reach, &[(job, "/f")]).await);
            if matches!(seen.last(), Some(Poll::Ended { .. })) {
                break;
            }
            tokio::time::sleep(Duration::from_secs(5)).await;
        }
        seen
    })
}

fn end(polls: &[Poll]) -> (Ended, Option<String>, Vec<String>) {
    match polls.last() {
        Some(Poll::Ended { end, blamed, findings }) => {
            let node = blamed.as_ref().map(|blamed| blamed.node.clone());
            (end.clone(), node, findings.iter().map(|finding| finding.code.clone()).collect())
        }
        other => panic!("it has not ended: {other:?}"),
    }
}

#[test]
fn a_job_has_ended_when_all_its_nodes_have() {
    let reach = Scripted::with_answers(&[
        ("n1", &["running", "ended 0 itself"]),
        ("n2", &["running", "running", "running", "ended 0 itself"]),
    ]);
    let seen = polls(&reach, &job(&["n1", "n2"]), 9);
    assert_eq!(seen[..3], [Poll::Running, Poll::Running, Poll::Running]);
    assert_eq!(end(&seen), (Ended::Exited { code: 0 }, None, Vec::new()));
    assert_eq!(reach.calls(), [] as [String; 0]);
}

#[test]
fn the_node_that_failed_first_is_to_blame_and_the_rest_is_ended_after_a_grace() {
    let reach = Scripted::with_answers(&[("n1", &["running"]), ("n2", &["running", "ended 7 itself"])]);
    let seen = polls(&reach, &job(&["n1", "n2"]), 20);
    assert!(!seen.iter().any(|poll| matches!(poll, Poll::Ended { .. })));
    let calls = reach.calls();
    // Asked once, then ended by force until it has ended.
    assert_eq!(calls[..3], ["n1 end TERM", "n1 end KILL", "n1 end KILL"]);
    let reach = Scripted::with_answers(&[
        ("n1", &["running", "running", "ended 0 itself"]),
        ("n2", &["ended 7 itself"]),
    ]);
    let seen = polls(&reach, &job(&["n1", "n2"]), 9);
    assert_eq!(end(&seen), (Ended::Exited { code: 7 }, Some("n2".into()), Vec::new()));
    assert_eq!(reach.calls(), [] as [String; 0]);
}

#[test]
fn joint_failures_and_the_shared_mpirun_are_not_attributable() {
    let reach = Scripted::with_answers(&[("n1", &["ended 3 itself"]), ("n2", &["ended 7 itself"])]);
    let seen = polls(&reach, &job(&["n1", "n2"]), 9);
    assert_eq!(end(&seen), (Ended::Exited { code: 7 }, None, Vec::new()));
    let mut by_mpirun = job(&["n1", "n2"]);
    by_mpirun.files.push(PlannedFile {
        name: files::HOSTFILE.into(),
        text: Some("n1 slots=8\n".into()),
        sha256: None,
    });
    let reach = Scripted::with_answers(&[("n1", &["ended 137 itself"]), ("n2", &["ended 0 itself"])]);
    assert_eq!(end(&polls(&reach, &by_mpirun, 9)), (Ended::Exited { code: 137 }, None, Vec::new()));
}

#[test]
fn a_node_that_gives_no_answer_is_unknown_and_its_coming_back_is_a_finding() {
    for silence in ["-", "broken", "what?"] {
        let reach = Scripted::with_answers(&[
            ("n1", &["running", "running", "running", "running", "ended 0 itself"]),
            ("n2", &["running", silence, silence, "running", "ended 0 itself"]),
        ]);
        let seen = polls(&reach, &job(&["n1", "n2"]), 9);
        assert!(matches!(&seen[1..3], [Poll::Unknown(_), Poll::Unknown(_)]), "{silence}: {seen:?}");
        assert_eq!(seen[3], Poll::Running);
        assert_eq!(end(&seen), (Ended::Exited { code: 0 }, None, vec!["connection-drops".to_owned()]));
        let Some(Poll::Ended { findings, .. }) = seen.last() else { panic!("ended") };
        assert_eq!(findings[0].node.as_deref(), Some("n2"));
        assert!(findings[0].message.contains("no answer for 10 s"), "{}", findings[0].message);
    }
}

#[test]
fn a_node_that_is_silent_beyond_its_heartbeat_timeout_is_to_blame_and_the_others_are_ended() {
    let reach = Scripted::with_answers(&[
        ("n1", &[&["running"; 70][..], &["ended 143 asked"]].concat()),
        ("n2", &["running", "-"]),
    ]);
    let seen = polls(&reach, &job(&["n1", "n2"]), 90);
    let (end, blamed, _) = end(&seen);
    let Ended::HostUnreachable { why } = end else { panic!("{end:?}") };
    assert!(why.contains("n2 cannot be reached: no route"), "{why}");
    assert_eq!(blamed.as_deref(), Some("n2"));
    let unknown = seen.iter().filter(|poll| matches!(poll, Poll::Unknown(_))).count();
    assert!((60..70).contains(&unknown), "a heartbeat timeout of 300 s is waited for: {unknown}");
    assert!(reach.calls().iter().any(|calls| calls == "n1 end TERM"));
}

#[test]
fn nodes_that_fall_silent_together_are_not_to_blame() {
    let ended = ["ended 143 asked"];
    let silent = |nodes: &[(&'static str, &[&'static str])]| {
        let names: Vec<&str> = nodes.iter().map(|(node, _)| *node).collect();
        let (end, blamed, _) = end(&polls(&Scripted::with_answers(nodes), &job(&names), 400));
        let Ended::HostUnreachable { why } = end else { panic!("{end:?}") };
        (why, blamed)
    };
    let answers = [&["running"; 70][..], &ended].concat();
    let all: &[(&str, &[&str])] = &[("n1", &["running", "-"]), ("n2", &["running", "-"])];
    let (why, blamed) = silent(all);
    assert!(why.ends_with("; silent too: n2"), "{why}");
    assert_eq!(blamed, None);
    let two: &[(&str, &[&str])] = &[
        ("n1", &answers),
        ("n2", &["running", "-"]),
        ("n3", &answers),
        ("n4", &["running", "running", "running", "-"]),
    ];
    assert_eq!(silent(two).1, None);
    let one: &[(&str, &[&str])] = &[("n1", &answers), ("n2", &answers), ("n3", &["running", "-"])];
    assert_eq!(silent(one).1.as_deref(), Some("n3"));
    // Neither are nodes on which a job could not be started.
    let reach = Scripted::with_answers(&[("n1", &["-"]), ("n2", &["running"]), ("n3", &["-"])]);
    let not = paused(Ssh::default().submit(&reach, &job(&["n1", "n2", "n3"]))).expect_err("unreachable");
    assert!(not.why().ends_with("; failed too: n3"), "{not:?}");
    assert_eq!(not.blamed, None);
}

/// A switch goes away behind which one node of each pair lies.
#[test]
fn one_silent_node_in_each_of_several_jobs_is_not_to_blame() {
    let others = [&["running"; 80][..], &["ended 143 asked"]].concat();
    let blamed = |third: &'static [&'static str]| {
        let reach = Scripted::with_answers(&[
            ("n1", &["running", "-"]),
            ("n2", &others),
            ("n3", third),
            ("n4", &others),
        ]);
        let jobs = [["n1", "n2"], ["n3", "n4"]]
            .map(|nodes| PlannedJob { folder: format!("/{}", nodes[0]), ..job(&nodes) });
        paused(async {
            let ssh = Ssh::default();
            let mut open: Vec<&PlannedJob> = jobs.iter().collect();
            let mut blamed = Vec::new();
            for _ in 0..400 {
                let asked: Vec<(&PlannedJob, &str)> =
                    open.iter().map(|job| (*job, job.folder.as_str())).collect();
                let polls = ssh.poll(&reach, &asked).await;
                let ended = |poll: &Poll| matches!(poll, Poll::Ended { .. });
                for poll in polls.iter().filter(|poll| ended(poll)) {
                    let Poll::Ended { blamed: node, .. } = poll else { continue };
                    blamed.push(node.as_ref().map(|node| node.node.clone()));
                }
                let mut polls = polls.iter();
                open.retain(|_| !polls.next().is_some_and(ended));
                tokio::time::sleep(Duration::from_secs(5)).await;
            }
            blamed
        })
    };
    assert_eq!(blamed(&["running", "-"]), [None, None]);
    // Nor where one of them is given up before the other.
    assert_eq!(blamed(&["running", "running", "running", "running", "-"]), [None, None]);
    assert_eq!(blamed(&["running"]), [Some("n1".to_owned())]);
}

/// The kernel ends one rank, and the ranks elsewhere fail with it.
#[test]
fn a_job_that_the_kernel_ended_for_memory_blames_no_node() {
    let later = [&["running"; 20][..], &["ended 143 asked"]].concat();
    let others: [&[&str]; 3] = [&["running", "ended 1 itself"], &["running", "ended 0 itself"], &later];
    for other in others {
        let reach = Scripted::with_answers(&[("n1", other), ("n2", &["running", "ended 137 memory"])]);
        let seen = polls(&reach, &job(&["n1", "n2"]), 60);
        assert_eq!(end(&seen), (Ended::OutOfMemory, None, vec!["out-of-memory".to_owned()]), "{other:?}");
    }
}

#[test]
fn a_pod_that_is_over_ends_its_job_at_once_and_its_node_is_not_to_blame() {
    let reach = Scripted::with_answers(&[
        ("n1", &["running", "running", "ended 143 asked"]),
        ("n2", &["running", "pod evicted"]),
    ]);
    let (end, blamed, _) = end(&polls(&reach, &job(&["n1", "n2"]), 9));
    assert!(matches!(&end, Ended::Lost { why } if why == "pod of n2: Evicted: memory"), "{end:?}");
    assert_eq!(blamed, None);
    assert!(reach.calls().contains(&"n1 end TERM".to_owned()), "what runs on the other is of no use");
}

#[test]
fn silence_of_what_lies_between_is_no_fault_of_the_node() {
    let reach = Scripted::with_answers(&[("n1", &["running", "server away"])]);
    let seen = polls(&reach, &job(&["n1"]), 90);
    let (end, blamed, _) = end(&seen);
    assert!(matches!(end, Ended::HostUnreachable { .. }) && blamed.is_none(), "{end:?} {blamed:?}");
    let not = paused(Ssh::default().submit(&reach, &job(&["n1"]))).expect_err("unreachable");
    assert!(not.blamed.is_none(), "{not:?}");
}

#[test]
fn what_is_gone_was_never_there_or_ran_out_of_its_heartbeat_timeout_is_no_success() {
    type Row = (&'static str, fn(&Ended) -> bool, Option<&'static str>);
    let table: [Row; 6] = [
        ("lost", |end| *end == Ended::NodeFail, Some("n2")),
        (
            "replaced",
            |end| matches!(end, Ended::Lost { why } if why == "the pod of n2 is another than the one in which it was started"),
            None,
        ),
        ("absent", |end| matches!(end, Ended::LaunchFailed { .. }), None),
        ("ended 143 heartbeat", |end| matches!(end, Ended::Lost { .. }), None),
        ("ended 0 heartbeat", |end| matches!(end, Ended::Lost { .. }), None),
        ("ended 143 asked", |end| *end == Ended::Cancelled, None),
    ];
    for (answer, is_expected, node) in table {
        let reach = Scripted::with_answers(&[("n1", &["ended 0 itself"]), ("n2", &["running", answer])]);
        let (end, blamed, _) = end(&polls(&reach, &job(&["n1", "n2"]), 9));
        assert!(is_expected(&end), "{answer}: {end:?}");
        assert_eq!(blamed.as_deref(), node, "{answer}");
    }
}

#[test]
fn jobs_are_polled_side_by_side_and_answered_in_the_order_asked() {
    let reach = Scripted::with_answers(&[
        ("n1", &["running"]),
        ("n2", &["ended 0 itself"]),
        ("n3", &["-"]),
        ("n4", &["ended 5 itself"]),
    ]);
    let jobs = ["n1", "n2", "n3", "n4"].map(|node| PlannedJob { folder: format!("/{node}"), ..job(&[node]) });
    let asked: Vec<(&PlannedJob, &str)> = jobs.iter().map(|job| (job, job.folder.as_str())).collect();
    let polls = paused(Ssh::default().poll(&reach, &asked));
    assert_eq!(polls[0], Poll::Running);
    assert_eq!(polls[1], Poll::ended(Ended::Exited { code: 0 }, None));
    assert!(matches!(polls[2], Poll::Unknown(_)));
    assert!(matches!(&polls[3], Poll::Ended { end: Ended::Exited { code: 5 }, blamed: Some(_), .. }));
}

#[test]
fn a_lost_answer_to_the_start_is_asked_for_again_with_a_limit() {
    let reach = Scripted::with_answers(&[("n1", &["running"]), ("n2", &["-", "-", "running"])]);
    let job = job(&["n1", "n2"]);
    assert_eq!(paused(Ssh::default().submit(&reach, &job)), Ok("/f".into()));
    let calls = reach.calls();
    assert_eq!(calls.iter().filter(|calls| *calls == "n2 start 300").count(), 3, "{calls:?}");
    assert_eq!(calls.iter().filter(|calls| *calls == "n1 start 300").count(), 1, "{calls:?}");
    assert_eq!(paused(Ssh::default().find_started(&reach, &job)), Ok(Some("/f".into())));
}

#[test]
fn a_host_that_never_answers_is_to_blame_and_what_was_started_is_ended() {
    let reach = Scripted::with_answers(&[("n1", &["running"]), ("n2", &["-"])]);
    let not = paused(Ssh::default().submit(&reach, &job(&["n1", "n2"]))).expect_err("unreachable");
    assert!(matches!(&not.end, Ended::HostUnreachable { why } if why.contains("no route")), "{not:?}");
    assert_eq!(not.blamed.map(|blamed| blamed.node).as_deref(), Some("n2"));
    assert!(reach.calls().contains(&"n1 end KILL".to_owned()));
    // A script that cannot be started is no question of reaching the host.
    let reach = Scripted::with_answers(&[("n1", &["broken"])]);
    let not = paused(Ssh::default().submit(&reach, &job(&["n1"]))).expect_err("not started");
    assert!(matches!(&not.end, Ended::LaunchFailed { why } if why.contains("no such file")), "{not:?}");
    assert_eq!(not.blamed.map(|blamed| blamed.node).as_deref(), Some("n1"));
    let reach = Scripted::with_answers(&[("n1", &["lost"])]);
    let not = paused(Ssh::default().submit(&reach, &job(&["n1"]))).expect_err("not started");
    assert!(matches!(&not.end, Ended::LaunchFailed { .. }), "{not:?}");
    // Not even its folder can be reached.
    let reach = Scripted::with_answers(&[("n1", &["-"])]);
    let not = paused(Ssh::default().submit(&reach, &job(&["n1"]))).expect_err("unreachable");
    assert_eq!(not.blamed.map(|blamed| blamed.node).as_deref(), Some("n1"));
}

#[test]
fn an_interrupted_launch_is_completed_and_not_restarted() {
    let reach = Scripted::with_answers(&[("n1", &["running"]), ("n2", &["ended 0 itself"])]);
    let job = job(&["n1", "n2"]);
    reach.files.borrow_mut().insert("/f/started".into(), Vec::new());
    assert_eq!(paused(Ssh::default().find_started(&reach, &job)), Ok(Some("/f".into())));
    assert_eq!(reach.calls(), ["n1 start 300", "n2 start 300"]);
    let reach = Scripted::with_answers(&[("n1", &["running"]), ("n2", &["-"])]);
    reach.files.borrow_mut().insert("/f/started".into(), Vec::new());
    let not = paused(Ssh::default().find_started(&reach, &job)).expect_err("n2 is silent");
    assert!(not.why().contains("n2 cannot be reached"), "{not:?}");
    assert!(reach.calls().contains(&"n1 end KILL".to_owned()));
}

#[test]
fn a_resumed_run_of_an_older_version_blames_no_node_for_its_other_script() {
    let reach =
        Scripted::with_answers(&[("n1", &["running", "ended 0 itself"]), ("n2", &["ended 143 heartbeat"])]);
    let script = format!("/f/{}", job::script::files::OLDER_SUPERVISOR);
    let launch = ["bash", &script, "start", "/f", "{host}", "300"].map(str::to_owned).to_vec();
    let job = PlannedJob { launch, ..job(&["n1", "n2"]) };
    let polls = polls(&reach, &job, 4);
    assert!(matches!(end(&polls), (Ended::Lost { .. }, None, _)), "{polls:?}");
    paused(Ssh::default().cancel(&reach, &job, "/f"));
    assert_eq!(*reach.scripts.borrow(), BTreeSet::from([script]));
}

#[test]
fn the_folder_shows_whether_a_job_was_started() {
    let reach = Scripted::with_answers(&[("n1", &["running"]), ("n2", &["-"])]);
    let job = job(&["n1", "n2"]);
    assert_eq!(paused(Ssh::default().find_started(&reach, &job)), Ok(None));
    let silent = Scripted::with_answers(&[("n1", &["-"]), ("n2", &["-"])]);
    assert!(
        paused(Ssh::default().find_started(&silent, &job))
            .is_err_and(|why| why.why().contains("unknown whether"))
    );
}

#[test]
fn every_node_is_asked_to_end_and_then_ended() {
    let reach = Scripted::with_answers(&[("n1", &["running"]), ("n2", &["-"])]);
    let job = job(&["n1", "n2"]);
    paused(async {
        Ssh::default().interrupt(&reach, &job, "/f").await;
        Ssh::default().cancel(&reach, &job, "/f").await;
    });
    assert_eq!(reach.calls(), ["n1 end TERM", "n2 end TERM", "n1 end KILL", "n2 end KILL"]);
}

#[test]
fn messages() {
    type Answers = &'static [(&'static str, &'static [&'static str])];
    let cases: [Answers; 7] = [
        &[("n1", &["lost"])],
        &[("n1", &["absent"]), ("n2", &["ended 0 itself"])],
        &[("n1", &["running", "-"])],
        &[("n1", &["ended 143 heartbeat"])],
        &[("n1", &["ended 3 itself"]), ("n2", &["ended 0 itself"])],
        &[("n1", &["ended 143 asked"])],
        &[("n1", &["running", "-", "-", "ended 0 itself"])],
    ];
    let lines = cases.map(|answers| {
        let reach = Scripted::with_answers(answers);
        let nodes: Vec<&str> = answers.iter().map(|(node, _)| *node).collect();
        match polls(&reach, &job(&nodes), 400).pop() {
            Some(Poll::Ended { end, blamed, findings }) => {
                let blamed = blamed.map(|blamed| format!("; blamed {}: {}", blamed.node, blamed.evidence));
                let findings: String = findings
                    .iter()
                    .map(|finding| format!("; {}: {}", finding.code, finding.message))
                    .collect();
                format!("{answers:?}\n  {end:?}{}{findings}", blamed.unwrap_or_default())
            }
            other => format!("{answers:?}\n  {other:?}"),
        }
    });
    insta::assert_snapshot!(lines.join("\n"));
}
