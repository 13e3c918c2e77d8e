//! What goes wrong while jobs run: somebody cancels them, they hang, a node is lost, is drained or loses its daemon,
//! the controller is away, the harness itself is killed.

use super::bench::{Bench, RUN, Running, case, ended, until};
use crate::fact::Fact;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use std::fs;
use std::time::Duration;

pub(super) const FACTS: &[Fact] = &[
    ("a_job_that_somebody_cancels_is_an_error_of_its_own_alone", cancelled),
    ("a_step_that_somebody_cancels_is_no_failure_of_its_node", step_cancelled),
    ("a_step_that_srun_stops_waiting_for_is_no_success", step_given_up),
    ("a_job_that_is_put_back_into_the_queue_is_not_measured_again", requeued),
    ("a_job_over_its_limit_is_ended_even_if_it_heeds_no_signal", over_the_limit),
    ("a_job_that_slurm_ends_at_its_own_limit_is_reported_as_such", over_slurms_limit),
    ("a_node_that_is_lost_is_the_culprit_and_the_others_go_on", node_lost),
    ("a_node_whose_daemon_dies_and_comes_back_goes_on_with_its_job", daemon_killed),
    ("a_controller_that_is_away_loses_nothing", controller_away),
    ("a_drained_node_is_the_culprit_of_what_never_starts", drained),
    ("a_job_that_can_never_start_is_not_waited_for", never_starts),
    ("a_job_that_somebody_holds_is_not_waited_for", held),
    ("a_harness_that_is_killed_goes_on_with_what_it_had_launched", killed),
    ("an_interruption_ends_all_jobs", interrupted),
];

/// Reports that it runs, and waits for a word of the test.
const WAITS: &str = "touch \"BENCH/$SLURMD_NODENAME\"\nuntil [[ -e BENCH/go ]]; do sleep 0.1; done\necho \"$SLURM_JOB_ID\" >>BENCH/ran";
const SLEEPS_WELL: &str = "trap '' INT TERM\n[[ $(hostname) != n3 ]] || while :; do sleep 1; done";
const ALL: [&str; 4] = ["n1", "n2", "n3", "n4"];

fn go(bench: &Bench) {
    bench.project.write("go", "");
}

#[track_caller]
fn assert_all_pass(bench: &Bench, case: &str) {
    let verdicts = bench.verdicts(case);
    assert!(!verdicts.is_empty() && verdicts.iter().all(|line| line.ends_with(" pass")), "{verdicts:#?}");
}

/// The verdicts that are no pass.
#[track_caller]
fn odd(bench: &Bench, case: &str) -> Vec<String> {
    bench.verdicts(case).into_iter().filter(|line| !line.ends_with(" pass")).collect()
}

fn cancelled() {
    let bench = Bench::new(&case("waits", "\"each\"", "waits", ""));
    bench.program("waits", WAITS);
    let run = bench.start();
    bench.wait_for(&ALL);
    bench.cluster.ask(&["scancel", &bench.id("waits", "n2")]);
    go(&bench);
    let ran = ended(run);
    assert_eq!(ran.code, Some(3), "{}", ran.all());
    assert_eq!(odd(&bench, "waits"), ["command.exit_code@n2 error CANCELLED"], "{}", ran.all());
    assert!(ran.blamed().is_empty(), "somebody's hand is no node's fault: {}", ran.all());
    bench.came_to("a job that somebody else cancels, Slurm", &ran, ["1 error CANCELLED", "none", "3 pass"]);
}

/// The job itself goes on, and ends by itself as far as Slurm can determine.
fn step_cancelled() {
    let bench = Bench::with_cases(2, "", &case("waits", "\"each\"", "waits", ""));
    bench.program("waits", WAITS);
    let run = bench.start();
    bench.wait_for(&ALL[..2]);
    let step = format!("{}.0", bench.id("waits", "n2"));
    bench.cluster.ask(&["scancel", &step]);
    // Slurm signals what it finds by the parents of processes: it misses one that begins just then.
    let steps = || bench.cluster.ask(&["squeue", "--noheader", "--steps", "--format=%i"]);
    until("the end of the step", || (!steps().lines().any(|listed| listed == step)).then_some(()));
    go(&bench);
    let ran = ended(run);
    assert_eq!(ran.code, Some(3), "{}", ran.all());
    assert_eq!(odd(&bench, "waits"), ["command.exit_code@n2 error CANCELLED"], "{}", ran.all());
    assert!(ran.blamed().is_empty(), "somebody's hand is no node's fault: {}", ran.all());
    bench.cluster.assert_nothing_is_left();
}

/// On a node too busy for the daemon of the step: srun stops waiting for it, and exits 0.
fn step_given_up() {
    let bench = Bench::on(2, &["KillWait=1"], "", &case("waits", "\"each\"", "waits", ""));
    bench.program("waits", &format!("{WAITS}\n[[ $(hostname) != n2 ]] || sleep 600"));
    let run = bench.start();
    bench.wait_for(&ALL[..2]);
    let step = format!("{}.0", bench.id("waits", "n2"));
    let daemon = bench.daemon_of_step("n2", &step);
    kill(daemon, Signal::SIGSTOP).expect("the daemon of the step stops");
    bench.cluster.ask(&["scancel", &step]);
    go(&bench);
    until("srun's last words", || bench.stderr_of("waits", "n2").filter(|text| text.contains("Timed out")));
    kill(daemon, Signal::SIGCONT).expect("the daemon of the step goes on");
    let ran = ended(run);
    assert_eq!(ran.code, Some(3), "{}", ran.all());
    assert_eq!(odd(&bench, "waits"), ["command.exit_code@n2 error CANCELLED"], "{}", ran.all());
    assert!(ran.blamed().is_empty(), "{}", ran.all());
    bench.cluster.assert_nothing_is_left();
}

fn requeued() {
    let bench = Bench::with_cases(2, "", &case("waits", "\"all\"", "waits", ""));
    bench.program("waits", WAITS);
    let run = bench.start();
    until("the start of the job", || bench.events("job-started").into_iter().next());
    let listed = bench.cluster.ask(&["squeue", "--noheader", "--format=%i"]);
    bench.cluster.ask(&["scontrol", "update", &format!("JobId={listed}"), "Requeue=1"]);
    bench.cluster.ask(&["scontrol", "requeue", &listed]);
    let ran = ended(run);
    assert_eq!(ran.code, Some(3), "{}", ran.all());
    let verdicts = bench.verdicts("waits");
    assert!(verdicts.len() == 1 && verdicts[0].ends_with("error REQUEUED"), "{verdicts:?}: {}", ran.all());
    assert!(ran.blamed().is_empty(), "{}", ran.all());
    bench.came_to(
        "a job that is put back into the queue, Slurm",
        &ran,
        ["1 error REQUEUED", "none", "0 pass"],
    );
}

fn over_the_limit() {
    let cases = [case("hangs", "\"each\"", "hangs", "limit_s = 2"), case("after", "\"each\"", "well", "")];
    let bench = Bench::new(&cases.concat());
    bench.program("hangs", SLEEPS_WELL);
    bench.program("well", "exit 0");
    let ran = ended(bench.start_with(&[&RUN[..], &["--keep-bad-nodes"]].concat()));
    assert_eq!(ran.code, Some(3), "{}", ran.all());
    assert_eq!(odd(&bench, "hangs"), ["command.exit_code@n3 error hang"], "{}", ran.all());
    assert_all_pass(&bench, "after");
    // It passes afterwards: one hang does not prove that it is to blame.
    assert_eq!(ran.blamed(), ["suspects n3"], "{}", ran.all());
    bench.came_to(
        "a job over its time limit that heeds no signal, Slurm",
        &ran,
        ["1 error hang", "suspects n3", "7 pass"],
    );
}

fn over_slurms_limit() {
    let bench = Bench::new(&case("waits", "\"each\"", "waits", ""));
    bench.program("waits", &format!("{WAITS}\n[[ $(hostname) != n2 ]] || sleep 600"));
    let run = bench.start();
    bench.wait_for(&ALL);
    bench.cluster.ask(&["scontrol", "update", &format!("JobId={}", bench.id("waits", "n2")), "TimeLimit=1"]);
    go(&bench);
    let ran = ended(run);
    assert_eq!(ran.code, Some(3), "{}", ran.all());
    assert_eq!(odd(&bench, "waits"), ["command.exit_code@n2 error hang"], "{}", ran.all());
    assert_eq!(ran.blamed(), ["culprit n2 node"], "{}", ran.all());
    bench.came_to("a job over Slurm's own limit", &ran, ["1 error hang", "culprit n2 node", "3 pass"]);
}

fn node_lost() {
    let cases = [case("all", "\"all\"", "waits", ""), case("after", "\"each\"", "well", "")];
    let bench = Bench::new(&cases.concat());
    bench.program("waits", WAITS);
    bench.program("well", "exit 0");
    let run = bench.start();
    bench.wait_for(&ALL);
    bench.cluster.script("crash", &["n2"]);
    let ran = ended(run);
    assert_eq!(ran.code, Some(3), "{}", ran.all());
    assert!(odd(&bench, "all").iter().all(|line| line.ends_with("error NODE_FAIL")), "{}", ran.all());
    // It is quarantined, so that nothing waits for it.
    assert_eq!(odd(&bench, "after"), ["command.exit_code@n2 error left-out"], "{}", ran.all());
    assert_eq!(ran.blamed(), ["culprit n2 node"], "{}", ran.all());
    bench.came_to(
        "a node that is lost, Slurm",
        &ran,
        ["1 error NODE_FAIL, 1 error left-out", "culprit n2 node", "3 pass"],
    );
}

fn daemon_killed() {
    let bench = Bench::new(&case("all", "\"all\"", "waits", ""));
    bench.program("waits", WAITS);
    let run = bench.start();
    bench.wait_for(&ALL);
    bench.cluster.script("kill", &["n2"]);
    std::thread::sleep(Duration::from_secs(2));
    bench.cluster.script("start", &["n2"]);
    go(&bench);
    let ran = ended(run);
    assert_eq!(ran.code, Some(0), "{}", ran.all());
    bench.came_to("slurmd killed while its job runs, and started again", &ran, ["pass", "none", "1 pass"]);
}

/// Away while jobs are watched, while they end, and while the next is to be submitted.
fn controller_away() {
    let cases =
        [case("waits", "\"each\"", "waits", ""), case("after", "\"all\"", "well", "after = [\"waits\"]")];
    let bench = Bench::new(&cases.concat());
    bench.program("waits", WAITS);
    bench.program("well", "exit 0");
    let run = bench.start();
    bench.wait_for(&ALL);
    bench.cluster.script("stop", &["slurmctld"]);
    go(&bench);
    std::thread::sleep(Duration::from_secs(30));
    bench.cluster.script("start", &["slurmctld"]);
    let ran = ended(run);
    assert_eq!(ran.code, Some(0), "{}", ran.all());
    assert_eq!(lines(&bench, "ran").len(), 4, "each job ran once");
    bench.came_to("slurmctld away for 30 s while jobs are watched", &ran, ["pass", "none", "5 pass"]);
}

fn drained() {
    let cases = [case("all", "\"all\"", "waits", ""), case("each", "\"each\"", "well", "")];
    let bench = Bench::new(&cases.concat());
    bench.program("waits", WAITS);
    bench.program("well", "exit 0");
    let run = bench.start();
    bench.wait_for(&ALL);
    // The plan is made, and the node is still to be used by it.
    bench.cluster.ask(&["scontrol", "update", "NodeName=n3", "State=DRAIN", "Reason=a fan is loud"]);
    go(&bench);
    let ran = ended(run);
    assert_eq!(ran.code, Some(3), "{}", ran.all());
    assert_eq!(odd(&bench, "each"), ["command.exit_code@n3 error queue-stuck"], "{}", ran.all());
    assert_all_pass(&bench, "all");
    assert!(bench.project.reported().contains("a fan is loud"), "{}", ran.all());
    bench.came_to(
        "a node drained between plan and run, Slurm",
        &ran,
        ["1 error queue-stuck", "culprit n3 node", "4 pass"],
    );
}

fn never_starts() {
    let bench =
        Bench::with_cases(2, "partition = \"short\"", &case("each", "\"each\"", "well", "limit_s = 600"));
    bench.program("well", "exit 0");
    let ran = bench.run();
    assert_eq!(ran.code, Some(3), "{}", ran.all());
    let odd = odd(&bench, "each");
    assert!(odd.len() == 2 && odd.iter().all(|line| line.ends_with("error queue-stuck")), "{}", ran.all());
    assert!(bench.project.reported().contains("PartitionTimeLimit"), "{}", ran.all());
    assert!(ran.blamed().is_empty(), "{}", ran.all());
    bench.cluster.assert_nothing_is_left();
}

fn held() {
    let cases = [case("waits", "\"all\"", "waits", ""), case("each", "\"each\"", "well", "")];
    let bench =
        Bench::with_cases(2, "", &cases.concat().replace("queue_limit_s = 20", "queue_limit_s = 600"));
    bench.program("waits", WAITS);
    bench.program("well", "exit 0");
    // A node that is busy with another's job: what is to run on it waits, and somebody holds it.
    let other = "until [ -e BENCH/go ]; do sleep 0.1; done".replace("BENCH", &bench.folder());
    bench.cluster.ask(&["sbatch", "--exclusive", "--nodelist=n1", "--output=/dev/null", "--wrap", &other]);
    let run = bench.start();
    let id = until("a job that waits", || {
        let waiting = bench.cluster.ask(&["squeue", "--noheader", "--states=PENDING", "--format=%i %j"]);
        let line = waiting.lines().find(|line| line.contains(".waits."))?;
        line.split(' ').next().map(str::to_owned)
    });
    bench.cluster.ask(&["scontrol", "hold", &id]);
    until("the end of it", || bench.events("job-ended").into_iter().find(|event| event["case"] == "waits"));
    go(&bench);
    let ran = ended(run);
    assert_eq!(ran.code, Some(3), "{}", ran.all());
    let waits = bench.verdicts("waits");
    assert!(waits.len() == 1 && waits[0].ends_with("error queue-stuck"), "{waits:?}: {}", ran.all());
    assert!(bench.project.reported().contains("JobHeld"), "{}", ran.all());
    assert_all_pass(&bench, "each");
    assert!(ran.blamed().is_empty(), "{}", ran.all());
    bench.cluster.assert_nothing_is_left();
}

fn killed() {
    let cases = [case("waits", "\"each\"", "waits", ""), case("after", "\"all\"", "waits", "")];
    let bench = Bench::new(&cases.concat());
    bench.program("waits", WAITS);
    let mut run = bench.start();
    bench.wait_for(&ALL);
    run.kill();
    go(&bench);
    // What it had launched ends unwatched.
    until("the end of the jobs", || bench.cluster.ask(&["squeue", "--noheader"]).is_empty().then_some(()));
    let resumed = bench.command(&["--run", "latest", "--resume"]).output().expect("the harness starts");
    let ran = crate::project::ran(resumed);
    assert_eq!(ran.code, Some(0), "{}", ran.all());
    assert_all_pass(&bench, "waits");
    assert_all_pass(&bench, "after");
    let mut ids = lines(&bench, "ran");
    ids.sort();
    ids.dedup();
    assert_eq!(ids.len(), 5, "five jobs, each run once");
    assert_eq!(lines(&bench, "ran").len(), 8, "one task on each of their nodes");
    bench.came_to("the harness killed by force and resumed, Slurm", &ran, ["pass", "none", "5 pass"]);
}

fn interrupted() {
    for (signal, code) in [(Signal::SIGINT, 130), (Signal::SIGTERM, 143)] {
        let bench = Bench::with_cases(2, "", &case("waits", "\"each\"", "waits", ""));
        bench.program("waits", WAITS);
        let run = bench.start();
        bench.wait_for(&ALL[..2]);
        send(&run, signal);
        let ran = ended(run);
        assert_eq!(ran.code, Some(code), "{}", ran.all());
        assert!(
            bench.verdicts("waits").iter().all(|line| line.ends_with("error interrupted")),
            "{}",
            ran.all()
        );
        assert!(ran.blamed().is_empty(), "{}", ran.all());
        bench.cluster.assert_nothing_is_left();
    }
}

fn send(run: &Running, signal: Signal) {
    kill(Pid::from_raw(run.id()), signal).expect("signalled");
}

fn lines(bench: &Bench, file: &str) -> Vec<String> {
    let text = fs::read_to_string(bench.project.path().join(file)).unwrap_or_default();
    text.lines().map(str::to_owned).collect()
}
