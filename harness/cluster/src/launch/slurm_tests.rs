//! What the Slurm launcher makes of the answers of Slurm's programs, and of answers that say nothing.

use super::*;
use model::artefact::{Blamed, Ended, PlannedFile};
use std::cell::RefCell;

pub(super) type Outcome = Result<Answer, ReachError>;

/// Answers each program with what was written down for it: the first of those left, the last for ever.
pub(super) struct Scripted(RefCell<Vec<(&'static str, Outcome)>>, Option<&'static str>);

impl Scripted {
    pub(super) fn new(answers: Vec<(&'static str, Outcome)>) -> Scripted {
        Scripted(RefCell::new(answers), None)
    }
}

impl Reach for Scripted {
    fn exec<'a>(&'a self, _: &'a Host, command: &'a Command) -> Wait<'a, Result<Answer, ReachError>> {
        let program = command.argv[0].as_str();
        let mut answers = self.0.borrow_mut();
        let named: Vec<usize> = (0..answers.len()).filter(|at| answers[*at].0 == program).collect();
        let found = match named.as_slice() {
            [] => None,
            [last] => Some(answers[*last].1.clone()),
            [first, ..] => Some(answers.remove(*first).1),
        };
        let missing = ReachError::NoProgram { host: "here".into(), program: program.into() };
        Box::pin(async move { found.unwrap_or(Err(missing)) })
    }
    fn put<'a>(&'a self, _: &'a Host, _: &'a str, _: &'a [u8]) -> Wait<'a, Result<(), ReachError>> {
        Box::pin(async { Ok(()) })
    }
    fn get<'a>(&'a self, _: &'a Host, path: &'a str) -> Wait<'a, Result<Vec<u8>, ReachError>> {
        let left = self.1.filter(|_| path == "/f/exit_code").map(|text| text.as_bytes().to_vec());
        Box::pin(async move { left.ok_or_else(|| ReachError::NotFound { path: path.into() }) })
    }
}

pub(super) fn job() -> PlannedJob {
    PlannedJob {
        name: "j".into(),
        nodes: vec!["n1".into(), "n2".into()],
        round: 1,
        ranks: 16,
        folder: "/f".into(),
        files: vec![PlannedFile {
            name: files::JOB.into(),
            text: Some("#!/bin/bash\n#SBATCH --job-name=run.case.j\n".into()),
            sha256: None,
        }],
        launch: vec!["sbatch".into(), "--parsable".into(), "/f/job.sh".into()],
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

/// A launcher that submitted job 7.
pub(super) fn slurm() -> Slurm {
    Slurm { own: RefCell::new(["7".to_owned()].into()), ..Slurm::default() }
}

pub(super) fn wait<T>(future: Wait<'_, T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build();
    runtime.expect("a runtime").block_on(future)
}

pub(super) fn poll(answers: Vec<(&'static str, Outcome)>) -> Poll {
    let (job, reach) = (job(), Begun(Scripted::new(answers), said("")));
    wait(slurm().poll(&reach, &[(&job, "7")])).remove(0)
}

pub(super) fn said(text: &str) -> Result<Answer, ReachError> {
    Ok(Answer::ok(text))
}

#[test]
fn a_failed_query_is_unknown_and_never_the_end_of_a_job() {
    let down = || Ok(Answer::failed(1, "slurm_load_jobs error: Unable to contact slurm controller"));
    let late = || Err(ReachError::TimedOut { what: "`squeue`".into(), limit_s: 60 });
    for answers in [
        vec![("squeue", down())],
        vec![("squeue", late())],
        vec![],
        vec![("squeue", said("")), ("scontrol", down())],
        vec![("squeue", said("")), ("scontrol", late())],
        vec![("squeue", said("7|COMPLETED|None|n1\n")), ("scontrol", down())],
        vec![("squeue", said("7|BLORP|None|n1\n"))],
        vec![("squeue", said("")), ("scontrol", said("JobId=7"))],
        vec![("squeue", Ok(Answer::failed(1, "Invalid job id specified"))), ("scontrol", down())],
    ] {
        let shown = format!("{answers:?}");
        assert!(matches!(poll(answers), Poll::Unknown(_)), "{shown}");
    }
}

#[test]
fn a_waiting_job_reports_its_reason_and_whether_it_ever_clears() {
    for (reason, never) in [
        ("Resources", false),
        ("ReqNodeNotAvail, UnavailableNodes:n2", false),
        ("PartitionNodeLimit", true),
        ("(BadConstraints)", true),
        ("launch failed requeued held", true),
    ] {
        let line = format!("7|PENDING|{reason}|\n");
        assert_eq!(poll(vec![("squeue", said(&line))]), Poll::Waiting { reason: reason.into(), never });
    }
    assert_eq!(poll(vec![("squeue", said("7|RUNNING|None|n[1-2]\n"))]), Poll::Running);
    assert_eq!(poll(vec![("squeue", said("7|COMPLETING|None|n[1-2]\n"))]), Poll::Running);
    assert_eq!(poll(vec![("squeue", said("7|SUSPENDED|None|n[1-2]\n"))]), Poll::Suspended);
    // Between two looks at it.
    let shown = |end: &str, time: &str| said(&format!("JobState={end} SuspendTime={time} ExitCode=0:0"));
    let poll_of = |end, time| {
        poll(vec![("squeue", said("")), ("scontrol", shown(end, time)), ("sinfo", said("n1|down|x\n"))])
    };
    for end in ["COMPLETED", "TIMEOUT", "NODE_FAIL"] {
        let polled = poll_of(end, "2026-01-01T00:00:00");
        assert_eq!(polled, Poll::ended(slurm_end::suspended(), None), "{end}");
    }
    assert_eq!(poll_of("COMPLETED", "None"), Poll::ended(Ended::Exited { code: 0 }, None));
    let again = Ended::Requeued { reason: "it has run again meanwhile (Restarts=1)".to_owned() };
    assert_eq!(poll_of("COMPLETED", "None Restarts=1"), Poll::ended(again, None));
}

#[test]
fn a_job_whose_nodes_boot_or_whose_prolog_runs_has_not_started() {
    let boots = Poll::Starting { reason: CONFIGURING.to_owned() };
    assert_eq!(poll(vec![("squeue", said("7|CONFIGURING|None|n[1-2]\n"))]), boots);
    let shown = said("JobId=7 JobState=CONFIGURING Reason=None ExitCode=0:0");
    assert_eq!(poll(vec![("squeue", said("")), ("scontrol", shown)]), boots);
    let slurm = slurm();
    let runs = || Scripted::new(vec![("squeue", said("7|RUNNING|None|n[1-2]\n"))]);
    let job = job();
    let of = |reach: &dyn Reach| wait(slurm.poll(reach, &[(&job, "7")])).remove(0);
    assert!(matches!(of(&runs()), Poll::Starting { reason } if reason.contains("prolog")));
    assert_eq!(of(&Begun(runs(), said(""))), Poll::Running);
    assert_eq!(of(&runs()), Poll::Running, "a file that was seen once is not looked for again");
}

/// A job whose script has begun; the client of NFS shows its files once something was written beside them.
struct ShowsLate(Begun, std::cell::Cell<bool>);

impl Reach for ShowsLate {
    fn exec<'a>(&'a self, host: &'a Host, command: &'a Command) -> Wait<'a, Result<Answer, ReachError>> {
        self.0.exec(host, command)
    }
    fn put<'a>(&'a self, _: &'a Host, _: &'a str, _: &'a [u8]) -> Wait<'a, Result<(), ReachError>> {
        self.1.set(true);
        Box::pin(async { Ok(()) })
    }
    fn get<'a>(&'a self, host: &'a Host, path: &'a str) -> Wait<'a, Result<Vec<u8>, ReachError>> {
        match self.1.get() {
            true => self.0.get(host, path),
            false => Box::pin(async { Err(ReachError::NotFound { path: path.into() }) }),
        }
    }
}

#[test]
fn a_job_whose_files_nfs_remembers_as_absent_is_seen_to_run() {
    let runs = Scripted::new(vec![("squeue", said("7|RUNNING|None|n[1-2]\n"))]);
    let reach = ShowsLate(Begun(runs, said("")), std::cell::Cell::new(false));
    assert_eq!(wait(slurm().poll(&reach, &[(&job(), "7")])), [Poll::Running]);
}

/// The same answers, of a job whose script has begun, and what its workload wrote to stderr.
pub(super) struct Begun(pub(super) Scripted, pub(super) Outcome);

impl Reach for Begun {
    fn exec<'a>(&'a self, host: &'a Host, command: &'a Command) -> Wait<'a, Result<Answer, ReachError>> {
        self.0.exec(host, command)
    }
    fn put<'a>(&'a self, host: &'a Host, path: &'a str, bytes: &'a [u8]) -> Wait<'a, Result<(), ReachError>> {
        self.0.put(host, path, bytes)
    }
    fn get<'a>(&'a self, host: &'a Host, path: &'a str) -> Wait<'a, Result<Vec<u8>, ReachError>> {
        match path.rsplit('/').next() {
            Some(files::BATCH_ERR) => Box::pin(async { Ok(Vec::new()) }),
            Some(files::STDERR) => Box::pin(async { self.1.clone().map(|result| result.stdout) }),
            _ => self.0.get(host, path),
        }
    }
}

#[test]
fn exit_code_0_is_no_success_where_srun_gave_up_on_its_step() {
    let end_of = |stderr| {
        let done = said("JobId=7 JobState=COMPLETED Reason=None ExitCode=0:0");
        let reach = Begun(Scripted::new(vec![("squeue", said("")), ("scontrol", done)]), stderr);
        match wait(slurm().poll(&reach, &[(&job(), "7")])).remove(0) {
            Poll::Ended { end, .. } => end,
            other => panic!("{other:?}"),
        }
    };
    let wrote = |text: &str| end_of(said(text));
    let cancelled = "srun: Job step aborted: Waiting up to 32 seconds for job step to finish.\n\
                     srun: error: Timed out waiting for job step to complete\n";
    assert_eq!(wrote(cancelled), Ended::Cancelled);
    let given_up = "srun: error: Timed out waiting for job step to complete\n";
    assert!(matches!(wrote(given_up), Ended::Lost { why } if why.contains("Timed out waiting")));
    assert_eq!(wrote("warning: slow\n"), Ended::Exited { code: 0 });
    // Too large, a link, or no longer to be reached: it may say so, or not.
    let unreadable =
        ReachError::Failed { what: "cannot read `stderr`".into(), why: "it is a symbolic link".into() };
    let lost = "exit code 0, and stderr cannot be read: cannot read `stderr`: it is a symbolic link";
    assert_eq!(end_of(Err(unreadable)), Ended::Lost { why: lost.to_owned() });
}

#[test]
fn the_end_of_a_job_is_what_scontrol_says() {
    let table = [
        ("COMPLETED", "0:0", Ended::Exited { code: 0 }),
        ("FAILED", "7:0", Ended::Exited { code: 7 }),
        ("FAILED", "0:11", Ended::Killed { signal: 11 }),
        ("TIMEOUT", "0:15", Ended::TimeLimit { limit_s: 60 }),
        ("NODE_FAIL", "0:1", Ended::NodeFail),
        ("BOOT_FAIL", "0:0", Ended::BootFail),
        ("PREEMPTED", "0:15", Ended::Preempted),
        ("CANCELLED", "0:15", Ended::Cancelled),
        ("OUT_OF_MEMORY", "0:125", Ended::OutOfMemory),
        ("DEADLINE", "0:0", Ended::Deadline),
    ];
    for (state, code, expected) in table {
        let shown =
            format!("JobId=7 JobName=x JobState={state} Reason=None ExitCode={code} NodeList=n[1-2]\n");
        let answers = vec![("squeue", said("")), ("scontrol", said(&shown))];
        match poll(answers) {
            Poll::Ended { end, .. } => assert_eq!(end, expected, "{state} {code}"),
            other => panic!("{state} {code}: {other:?}"),
        }
    }
    // An exit code that is not there, or that contradicts the state, is no success.
    for shown in ["JobState=COMPLETED", "JobState=COMPLETED ExitCode=x:y", "JobState=FAILED ExitCode=0:0"] {
        let answers = vec![("squeue", said("")), ("scontrol", said(shown))];
        assert!(matches!(poll(answers), Poll::Ended { end: Ended::Lost { .. }, .. }), "{shown}");
    }
}

#[test]
fn a_lost_node_is_named_by_sinfo_if_it_is_the_jobs() {
    let ended = |sinfo: &str| {
        let shown = "JobState=NODE_FAIL ExitCode=0:1";
        let answers = vec![("squeue", said("")), ("scontrol", said(shown)), ("sinfo", said(sinfo))];
        match poll(answers) {
            Poll::Ended { blamed, .. } => blamed.map(|blamed| blamed.node),
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(ended("n1|idle|none\nn2|down*|Not responding\n"), Some("n2".into()));
    assert_eq!(ended("n1|allocated+|none\nn9|down*|Not responding\n"), None);
    assert_eq!(ended(""), None);
}

/// As ParallelCluster leaves nodes for which EC2 has no capacity, then and ten minutes later.
#[test]
fn a_node_for_which_ec2_gave_no_instance_is_not_at_fault() {
    let ended = |sinfo: &str, begun: bool| {
        let shown = "JobState=NODE_FAIL ExitCode=0:1";
        let answers = vec![("squeue", said("")), ("scontrol", said(shown)), ("sinfo", said(sinfo))];
        let (job, plain) = (job(), Scripted::new(answers));
        let polls = match begun {
            true => wait(slurm().poll(&Begun(plain, said("")), &[(&job, "7")])),
            false => wait(slurm().poll(&plain, &[(&job, "7")])),
        };
        match polls.into_iter().next() {
            Some(Poll::Ended { end, blamed, .. }) => (end, blamed.map(|blamed| blamed.node)),
            other => panic!("{other:?}"),
        }
    };
    let code = "(Code:InsufficientInstanceCapacity)";
    let why = "EC2 gave no instance for n2 (InsufficientInstanceCapacity): no machine was there".to_owned();
    let stuck = (Ended::QueueStuck { reason: why.clone() }, None);
    let down = format!("n1|idle|none\nn2|down#|{code}Failure when resuming nodes\n");
    assert_eq!(ended(&down, false), stuck);
    assert_eq!(ended(&down, true), (Ended::Lost { why }, None));
    let later = format!("n1|idle|none\nn2|idle~|{code}Failure when resuming nodes\n");
    assert_eq!(ended(&later, false), stuck);
    // What an earlier refusal left at a node in service excuses no other one.
    let left = format!("n1|down*|Not responding\nn2|idle|{code}Failure when resuming nodes\n");
    assert_eq!(ended(&left, true), (Ended::NodeFail, Some("n1".to_owned())));
}

#[test]
fn a_submission_without_a_number_is_no_submission() {
    let submit = |answer| wait(Slurm::default().submit(&Scripted::new(vec![("sbatch", answer)]), &job()));
    assert_eq!(submit(said("1234\n")), Ok("1234".into()));
    for answer in [said(""), said("Submitted batch job 7\n"), Ok(Answer::failed(1, "sbatch: error: no"))] {
        assert!(submit(answer.clone()).is_err(), "{answer:?}");
    }
    assert!(wait(Slurm::default().submit(&Scripted::new(Vec::new()), &job())).is_err());
}

#[test]
fn what_the_request_itself_forbids_never_clears_and_what_others_forbid_does() {
    for reason in [
        "PartitionTimeLimit",
        "PartitionDown",
        "(PartitionInactive)",
        "(BadConstraints)",
        "JobHeldUser",
        "QOSMaxGRESPerJob",
        "AssocMaxWallDurationPerJobLimit",
        "QOSMaxNodePerJobLimit",
        "launch failed requeued held",
        "user_env_retrieval_failed_requeued_held",
        "QOSMinMemory",
        "QOSMinCpuNotSatisfied",
        "MaxMemPerLimit",
    ] {
        assert!(never_clears(reason), "{reason}");
    }
    for reason in [
        "",
        "None",
        "Resources",
        "Priority",
        "AssocGrpGRES",
        "QOSMaxJobsPerUserLimit",
        "BeginTime",
        "Licenses",
    ] {
        assert!(!never_clears(reason), "{reason}");
    }
}

fn away() -> Outcome {
    let why =
        "sbatch: error: Batch job submission failed: Unable to contact slurm controller (connect failure)";
    Ok(Answer::failed(1, why))
}

#[test]
fn a_submission_waits_for_a_controller_that_is_away_and_is_not_made_twice() {
    let submit = |answers| {
        let (reach, job) = (Scripted::new(answers), job());
        let result = wait(Slurm::default().submit(&reach, &job));
        let left = reach.0.borrow().iter().filter(|(name, _)| *name == "sbatch").count();
        (result.map_err(|not| not.why().to_owned()), left)
    };
    // It was away, and had taken nothing.
    let answers = vec![("sbatch", away()), ("squeue", away()), ("squeue", said("")), ("sbatch", said("8\n"))];
    assert_eq!(submit(answers), (Ok("8".into()), 1));
    // The answer alone was lost.
    let late = || Err(ReachError::TimedOut { what: "`sbatch`".into(), limit_s: 60 });
    let answers =
        vec![("sbatch", late()), ("squeue", said("9|run.case.j|/f/job.sh|/f\n")), ("sbatch", said("10\n"))];
    assert_eq!(submit(answers), (Ok("9".into()), 1));
    // It does not come back.
    let (result, _) = submit(vec![("sbatch", away()), ("squeue", away())]);
    assert!(result.expect_err("away").contains("Unable to contact slurm controller"));
    // What Slurm refuses is refused at once.
    let refused = Ok(Answer::failed(1, "sbatch: error: invalid partition specified: gpu"));
    let (result, left) = submit(vec![("sbatch", refused), ("sbatch", said("8\n"))]);
    assert!(result.is_err_and(|why| why.contains("invalid partition")));
    assert_eq!(left, 1, "the second answer was not asked for");
}

/// As login nodes print it on stdout where a wrapper of the site's stands before `sbatch`.
const BANNER: &str = "-----------------------------------------------------------------\n          Welcome to the Supercomputer\n\
    -----------------------------------------------------------------\n\nNo reservation for this job\n\
    --> Verifying valid submit host (login1)...OK\n";

#[test]
fn a_job_whose_id_stands_below_a_banner_is_the_runs() {
    let (job, slurm) = (job(), Slurm::default());
    let submit =
        |answers| wait(slurm.submit(&Scripted::new(answers), &job)).map_err(|not| not.why().to_owned());
    assert_eq!(submit(vec![("sbatch", said(&format!("{BANNER}718911\n")))]), Ok("718911".into()));
    // Any number may stand there: the job is ended only where the queue has it as the run's.
    for (queue, ended) in [("718911|x|/g/job.sh|/g\n", 0), ("718911|run.case.j|/f/job.sh|/f\n", 1)] {
        let reach = Queue(said(queue), RefCell::default(), "7\n");
        wait(slurm.cancel(&reach, &job, "718911"));
        assert_eq!(reach.1.into_inner().len(), ended, "{queue}");
    }
    // Without a number the queue is asked, and nothing is submitted twice.
    let answers = vec![
        ("sbatch", said(BANNER)),
        ("squeue", said("9|run.case.j|/f/job.sh|/f\n")),
        ("sbatch", said("10\n")),
    ];
    assert_eq!(submit(answers), Ok("9".into()));
    let answers = vec![("sbatch", said(BANNER)), ("squeue", said("")), ("sbatch", said("10\n"))];
    let why = submit(answers).expect_err("no job");
    assert_eq!(why, "`sbatch` printed no job id: `--> Verifying valid submit host (login1)...OK`");
    // What it refuses stands there, too.
    let mut refused = Answer::failed(1, "");
    refused.stdout = b"--> Submission error: please define total node count\n".to_vec();
    let why = submit(vec![("sbatch", Ok(refused))]).expect_err("refused");
    assert!(why.contains("please define total node count"), "{why}");
}

/// Names of jobs are public: whoever sees one in the queue can give it to a job of his own.
#[test]
fn a_job_of_another_user_or_folder_is_not_adopted_by_its_name() {
    struct RecordedCalls(Scripted, RefCell<Vec<Vec<String>>>);
    impl Reach for RecordedCalls {
        fn exec<'a>(&'a self, host: &'a Host, command: &'a Command) -> Wait<'a, Result<Answer, ReachError>> {
            self.1.borrow_mut().push(command.argv.clone());
            self.0.exec(host, command)
        }
        fn put<'a>(
            &'a self,
            host: &'a Host,
            path: &'a str,
            bytes: &'a [u8],
        ) -> Wait<'a, Result<(), ReachError>> {
            self.0.put(host, path, bytes)
        }
        fn get<'a>(&'a self, host: &'a Host, path: &'a str) -> Wait<'a, Result<Vec<u8>, ReachError>> {
            self.0.get(host, path)
        }
    }
    let find = |text: &str| {
        let reach = RecordedCalls(Scripted::new(vec![("squeue", said(text))]), RefCell::default());
        let result = wait(Slurm::default().find_started(&reach, &job()));
        let asked = reach.1.into_inner();
        assert!(asked[0].contains(&"--me".to_owned()), "{asked:?}");
        result.map_err(|not| not.why().to_owned())
    };
    assert_eq!(find("9|run.case.j|/f/job.sh|/f\n"), Ok(Some("9".into())));
    assert_eq!(find("9|run.case.j|(null)|/f/\n"), Ok(Some("9".into())));
    assert_eq!(find(""), Ok(None));
    // A submit plugin gave it another name, or another folder too; somebody else's jobs have others.
    assert_eq!(find("7|mine|/x/job.sh|/home/user\n9|mine|(null)|/f\n"), Ok(Some("9".into())));
    assert_eq!(find("7|mine|(null)|/home/user\n9|mine|/f/job.sh|/home/user\n"), Ok(Some("9".into())));
    assert_eq!(find("7|mine|/x/f/job.sh|/home/user/f\n"), Ok(None));
    let why = find("666|run.case.j|/m/job.sh|/home/mallory\n").expect_err("another folder");
    assert!(why.contains("666") && why.contains("/home/mallory"), "{why}");
    let both = "666|run.case.j|/m/job.sh|/home/mallory\n9|run.case.j|/f/job.sh|/f\n";
    assert_eq!(find(both), Ok(Some("9".into())));
}

#[test]
fn the_end_of_a_forgotten_job_is_read_from_accounting_and_exit_code() {
    let none = || Ok(Answer::failed(1, "Slurm accounting storage is disabled"));
    let lost = |end: &Ended| matches!(end, Ended::Lost { .. });
    type Row = (Outcome, Option<&'static str>, fn(&Ended) -> bool);
    let table: [Row; 9] = [
        (none(), Some("0\n"), |end| *end == Ended::Exited { code: 0 }),
        (none(), Some("7\n"), |end| *end == Ended::Exited { code: 7 }),
        (none(), None, lost),
        (none(), Some("x"), lost),
        (said("COMPLETED|0:0\n"), Some("0\n"), |end| *end == Ended::Exited { code: 0 }),
        // Its steps were cancelled, or its disk was full.
        (said("COMPLETED|0:0\n"), None, lost),
        (said("COMPLETED|0:0\n"), Some("143\n"), |end| *end == Ended::Exited { code: 143 }),
        (said("CANCELLED by 1000|0:15\n"), None, |end| *end == Ended::Cancelled),
        (said("NODE_FAIL|1:0\nOUT_OF_MEMORY|0:125\n"), None, |end| *end == Ended::OutOfMemory),
    ];
    for (record, own, is_expected) in table {
        let unknown = || Ok(Answer::failed(1, "slurm_load_jobs error: Invalid job id specified"));
        let shown = format!("{record:?} {own:?}");
        let answers = vec![("squeue", unknown()), ("scontrol", unknown()), ("sacct", record)];
        let (job, reach) = (job(), Scripted(RefCell::new(answers), own));
        let Poll::Ended { end, .. } = wait(slurm().poll(&reach, &[(&job, "7")])).remove(0) else {
            panic!("it has ended: {shown}");
        };
        assert!(is_expected(&end), "{shown}: {end:?}");
    }
}

#[test]
fn an_id_that_was_given_to_another_job_says_nothing_of_the_recorded_one() {
    let poll = |queue: &str, record: &str, own: Option<&'static str>| {
        // First by the job's id, then among the user's own.
        let answers = vec![
            ("squeue", said("7|RUNNING|None|n9\n")),
            ("squeue", said(queue)),
            ("scontrol", said("JobState=NODE_FAIL ExitCode=0:0")),
            ("sacct", said(record)),
        ];
        let (job, reach) = (job(), Begun(Scripted(RefCell::new(answers), own), said("")));
        wait(Slurm::default().poll(&reach, &[(&job, "7")])).remove(0)
    };
    let end = |poll: Poll| match poll {
        Poll::Ended { end, .. } => end,
        poll => panic!("it has ended: {poll:?}"),
    };
    assert_eq!(poll("7|run.case.j|/f/job.sh|/f\n", "", None), Poll::Running);
    let theirs = "7|train|/home/user/train.sh|/home/user\n";
    let lost = end(poll(theirs, "NODE_FAIL|0:0|train\n", None));
    assert!(matches!(lost, Ended::Lost { .. }), "{lost:?}");
    assert_eq!(end(poll(theirs, "NODE_FAIL|0:0|train\n", Some("0\n"))), Ended::Exited { code: 0 });
    let ours = "TIMEOUT|0:0|run.case.j\nNODE_FAIL|0:0|train\n";
    assert!(matches!(end(poll("", ours, None)), Ended::TimeLimit { .. }));
}

#[test]
fn nodes_that_a_job_waits_for_are_reported_with_their_state() {
    let sinfo = "n1|idle|none\nn2|drained|a fan | is loud\nn2|drained|a fan | is loud\n";
    let poll = poll(vec![
        ("squeue", said("7|PENDING|ReqNodeNotAvail, UnavailableNodes:n2|\n")),
        ("sinfo", said(sinfo)),
    ]);
    let reason = "ReqNodeNotAvail, UnavailableNodes:n2 (n2 is drained: a fan | is loud)".to_owned();
    assert_eq!(poll, Poll::Waiting { reason, never: false });
}

#[test]
fn where_newer_slurm_names_no_node_the_barred_nodes_of_the_job_are_named() {
    let words = [
        "ReqNodeNotAvail, May be reserved for other job",
        "Nodes required for job are DOWN, DRAINED or reserved",
    ];
    for (at, sinfo, named) in [
        (0, "n1|idle|none\nn2|drained|a fan is loud\n", Some("n2 is drained: a fan is loud")),
        (1, "n1|idle|none\nn2|down*|power\n", Some("n2 is down*: power")),
        // Set aside, of another job, or healthy: no node is named.
        (0, "n1|idle|none\nn2|reserved|none\n", None),
        (0, "n2|idle|none\nn9|drained|a fan is loud\n", None),
    ] {
        let answers = vec![("squeue", said(&format!("7|PENDING|{}|\n", words[at]))), ("sinfo", said(sinfo))];
        let reason = match named {
            Some(why) => format!("ReqNodeNotAvail, UnavailableNodes:n2 ({why})"),
            None => words[at].to_owned(),
        };
        assert_eq!(poll(answers), Poll::Waiting { reason, never: false }, "{sinfo}");
    }
}

#[test]
fn a_node_that_did_not_boot_is_named_as_a_lost_one_is() {
    let shown = "JobState=BOOT_FAIL ExitCode=0:1";
    let answers = vec![
        ("squeue", said("")),
        ("scontrol", said(shown)),
        ("sinfo", said("n2|down~|Boot failed by the site's script\n")),
    ];
    let Poll::Ended { blamed: Some(Blamed { node, evidence }), .. } = poll(answers) else { panic!("blamed") };
    assert_eq!(
        (node.as_str(), evidence.as_str()),
        ("n2", "`sinfo` reports down~: Boot failed by the site's script")
    );
}

#[test]
fn a_node_that_did_not_start_in_time_is_not_blamed() {
    let answers = vec![
        ("squeue", said("")),
        ("scontrol", said("JobState=NODE_FAIL ExitCode=0:0")),
        ("sinfo", said("n2|down~|ResumeTimeout reached\n")),
    ];
    let ended = poll(answers);
    assert!(matches!(&ended, Poll::Ended { blamed: None, .. }), "{ended:?}");
    let text = format!("{ended:?}");
    assert!(text.contains("n2 did not start within Slurm's ResumeTimeout"), "{text}");
}

#[test]
fn where_the_text_of_scontrol_cannot_be_read_its_json_is_asked() {
    let json = r#"{"jobs": [{"job_id": 7, "job_state": ["FAILED"], "exit_code": {"return_code":
        {"set": true, "infinite": false, "number": 7}, "signal": {"id": {"set": false, "number": 0}}}}]}"#;
    let ended = |text: &str, second: Outcome| {
        poll(vec![("squeue", said("")), ("scontrol", said(text)), ("scontrol", second)])
    };
    let by_json = Poll::ended(Ended::Exited { code: 7 }, None);
    for garbled in [
        "",
        "JobId=7 JobName=a",
        "JobState=BLORP ExitCode=0:0",
        "JobState=FAILED ExitCode=",
        "JobState=COMPLETED",
    ] {
        assert_eq!(ended(garbled, said(json)), by_json, "{garbled}");
        let refused = Ok(Answer::failed(1, "scontrol: unrecognized option '--json'"));
        let without = ended(garbled, refused);
        let is_success = matches!(&without, Poll::Ended { end: Ended::Exited { .. }, .. });
        assert!(!is_success, "an older release does not show it: {garbled}: {without:?}");
    }
    let clear = ended("JobState=COMPLETED ExitCode=0:0", said(json));
    assert_eq!(clear, Poll::ended(Ended::Exited { code: 0 }, None), "what is clear is not asked twice");
}

#[test]
fn messages() {
    let down = || Ok(Answer::failed(1, "slurm_load_jobs error: Unable to contact slurm controller"));
    let mut lines: Vec<String> = [
        vec![],
        vec![("squeue", down())],
        vec![("squeue", said("7|BLORP|None|n1\n"))],
        vec![("squeue", said("")), ("scontrol", down())],
        vec![("squeue", said("")), ("scontrol", said("JobId=7"))],
        vec![("squeue", said("")), ("scontrol", said("JobId=7 JobState=FAILED ExitCode=0:0"))],
        vec![("squeue", said("")), ("scontrol", said("JobId=7 JobState=FAILED ExitCode=x"))],
    ]
    .into_iter()
    .map(|answers| format!("poll: {:?}", poll(answers)))
    .collect();
    let started = [
        vec![],
        vec![("squeue", down())],
        vec![("squeue", said("8|run.case.j|/g/job.sh|/g\n"))],
        vec![("squeue", said("8|run.case.j|/f/job.sh|/f\n"))],
    ];
    lines.extend(started.map(|answers| {
        let (reach, launcher) = (Scripted::new(answers), Slurm::default());
        format!("find: {:?}", wait(launcher.find_started(&reach, &job())).map_err(|error| error.end))
    }));
    lines.extend(
        ["", "Submitted batch job 7", "7;cluster"]
            .map(|text| format!("submit: {:?}", id(&Answer::ok(text)).map_err(|error| error.end))),
    );
    insta::assert_snapshot!(lines.join("\n"));
}

/// A queue of the user's own jobs, and what is ended in it.
struct Queue(Outcome, RefCell<Vec<String>>, &'static str);

impl Reach for Queue {
    fn exec<'a>(&'a self, _: &'a Host, command: &'a Command) -> Wait<'a, Result<Answer, ReachError>> {
        Box::pin(async move {
            match command.argv[0].as_str() {
                "sbatch" => said(self.2),
                "squeue" => {
                    assert!(command.argv.iter().any(|word| word == "--me"), "{:?}", command.argv);
                    self.0.clone()
                }
                _ => {
                    self.1.borrow_mut().push(command.argv.join(" "));
                    said("")
                }
            }
        })
    }
    fn put<'a>(&'a self, _: &'a Host, _: &'a str, _: &'a [u8]) -> Wait<'a, Result<(), ReachError>> {
        Box::pin(async { Ok(()) })
    }
    fn get<'a>(&'a self, _: &'a Host, path: &'a str) -> Wait<'a, Result<Vec<u8>, ReachError>> {
        Box::pin(async move { Err(ReachError::NotFound { path: path.into() }) })
    }
}

/// A run that is resumed has it written down; Slurm may have given it again since.
#[test]
fn a_recorded_id_is_cancelled_only_where_the_queue_has_it_as_the_jobs_own() {
    let ended = ["scancel --signal=INT --full 7".to_owned(), "scancel 7".to_owned()];
    for (queue, is_own) in [
        (said("6|x|/f/job.sh|/f\n7|run.case.j|/f/job.sh|/f\n"), true),
        (said("7|renamed|/f/job.sh|/elsewhere\n"), true),
        (said("7|renamed|(null)|/f\n"), true),
        (said("6|run.case.j|/f/job.sh|/f\n7|run.case.j|/g/job.sh|/g\n"), false),
        (said("77|run.case.j|/f/job.sh|/f\n"), false),
        (said(""), false),
        (Ok(Answer::failed(1, "Socket timed out")), false),
        (Err(ReachError::TimedOut { what: "`squeue`".into(), limit_s: 60 }), false),
    ] {
        let (job, reach, slurm) = (job(), Queue(queue.clone(), RefCell::default(), ""), Slurm::default());
        wait(slurm.interrupt(&reach, &job, "7"));
        wait(slurm.cancel(&reach, &job, "7"));
        let wanted: &[String] = if is_own { &ended } else { &[] };
        assert_eq!(reach.1.into_inner(), wanted, "{queue:?}");
    }
    // What this process has submitted it need not ask about.
    let (job, reach, slurm) = (job(), Queue(said(""), RefCell::default(), "7\n"), Slurm::default());
    assert_eq!(wait(slurm.submit(&reach, &job)).as_deref().ok(), Some("7"));
    wait(slurm.interrupt(&reach, &job, "7"));
    wait(slurm.cancel(&reach, &job, "7"));
    assert_eq!(reach.1.into_inner(), ended);
}

/// A filter or wrapper of the site's sends jobs to another cluster, which has its own numbers.
#[test]
fn a_job_on_a_cluster_that_is_not_asked_here_is_ended_there_and_refused() {
    let others = || said("7|my-training|/home/jo/train.sh|/home/jo\n");
    let of_run = || said("7|run.case.j|/f/job.sh|/f\n");
    let there = "scancel --clusters=gpu --name=run.case.j 7";
    let down = || Ok(Answer::failed(1, "Socket timed out"));
    for (answer, queue, ended, advice) in [
        ("7;gpu\n", others(), vec![there], "it was cancelled there; set SLURM_CONF"),
        ("Welcome\n7;gpu\n", said(""), vec![there], "it was cancelled there; set SLURM_CONF"),
        ("7;gpu\n", down(), vec![there], "it was cancelled there; set SLURM_CONF"),
        ("7;all\n", others(), vec![], "cluster `all`, and `squeue` does not list it here: cancel it there"),
        ("7;a,b\n", others(), vec![], "cancel it there"),
        ("7;\u{1b}[2J\n", others(), vec![], "cluster `\\u{1b}[2J`"),
    ] {
        let (job, reach, slurm) = (job(), Queue(queue, RefCell::default(), answer), Slurm::default());
        let refused = wait(slurm.submit(&reach, &job)).expect_err("refused");
        assert!(refused.why().starts_with("`sbatch` put job 7 on cluster `"), "{}", refused.why());
        assert!(refused.why().contains(advice), "{}", refused.why());
        // The number of somebody else's job on this cluster is left alone.
        wait(slurm.interrupt(&reach, &job, "7"));
        wait(slurm.cancel(&reach, &job, "7"));
        assert_eq!(reach.1.into_inner(), ended, "{answer}");
    }
    // The cluster of this queue.
    let (job, reach, slurm) = (job(), Queue(of_run(), RefCell::default(), "7;live\n"), Slurm::default());
    assert_eq!(wait(slurm.submit(&reach, &job)).as_deref().ok(), Some("7"));
    // A number that is already that of another job of the run.
    let (reach, slurm) = (Queue(of_run(), RefCell::default(), "7;gpu\n"), self::slurm());
    assert!(wait(slurm.submit(&reach, &job)).is_err());
    assert_eq!(reach.1.into_inner(), [there]);
}
