//! Jobs that share allocations of a real Slurm: one submission for many jobs, and what becomes of the others when one of
//! them hangs or is ended, when the allocation is lost, or when the harness is.

use super::bench::{Bench, RUN, Running, case, ended, until};
use crate::fact::Fact;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use std::collections::BTreeMap;
use std::fs;
use std::time::Duration;

pub(super) const FACTS: &[Fact] = &[
    ("jobs_that_share_allocations_end_as_they_do_alone", alike),
    ("a_job_that_hangs_in_an_allocation_leaves_it_to_the_others", hangs),
    ("an_allocation_that_somebody_cancels_takes_those_with_it_that_had_not_ended", cancelled),
    ("an_allocation_whose_node_is_lost_takes_those_with_it_that_had_not_ended", node_lost),
    ("a_node_that_is_drained_between_jobs_is_the_culprit_of_what_never_starts", drained),
    ("a_harness_that_is_killed_goes_on_in_its_allocations", killed),
    ("an_interruption_ends_all_allocations", interrupted),
];

const SHARES: &str = "share_allocations = true";
/// Notes where it ran, reports that it runs, and waits for a word of the test.
const NOTES: &str = "echo \"$SLURM_JOB_ID $PWD $SLURMD_NODENAME\" >>BENCH/ran";
const WAITS: &str = "touch \"BENCH/$SLURMD_NODENAME\"\nuntil [[ -e BENCH/go ]]; do sleep 0.1; done";

fn bench(nodes: u16, reach: &str, cases: &[String]) -> Bench {
    let bench = Bench::with_cases(nodes, reach, &cases.concat());
    bench.program("notes", NOTES);
    bench.program("waits", &format!("{NOTES}\n{WAITS}"));
    bench.program("fails-on-n2", &format!("{NOTES}\n[[ $(hostname) != n2 ]] || exit 9"));
    bench.program("dies-on-n1", &format!("{NOTES}\n[[ $(hostname) != n1 ]] || kill -9 $$"));
    bench.program(
        "hangs-on-n2",
        &format!("{NOTES}\ntrap '' INT TERM\n[[ $(hostname) != n2 ]] || while :; do sleep 1; done"),
    );
    bench
}

fn verdicts(bench: &Bench, cases: &[&str]) -> BTreeMap<String, Vec<String>> {
    cases.iter().map(|case| ((*case).to_owned(), bench.verdicts(case))).collect()
}

/// Slurm's numbers of the jobs that ran, and how often each job ran on each node.
fn ran(bench: &Bench) -> (Vec<String>, BTreeMap<String, usize>) {
    let text = fs::read_to_string(bench.project.path().join("ran")).expect("jobs have run");
    let (mut ids, mut times) = (Vec::new(), BTreeMap::new());
    for line in text.lines() {
        let (id, job) = line.split_once(' ').expect("a number");
        ids.push(id.to_owned());
        *times.entry(job.to_owned()).or_default() += 1;
    }
    ids.sort();
    ids.dedup();
    (ids, times)
}

fn odd(bench: &Bench, case: &str) -> Vec<String> {
    bench.verdicts(case).into_iter().filter(|line| !line.ends_with(" pass")).collect()
}

fn alike() {
    let cases = [
        case("one", "\"each\"", "notes", ""),
        case("two", "\"each\"", "fails-on-n2", ""),
        case("three", "\"each\"", "dies-on-n1", ""),
        case("four", "\"each\"", "notes", "after = [\"one\"]"),
        case("all", "\"all\"", "notes", ""),
        case("wide", "\"all\"", "fails-on-n2", ""),
    ];
    let names = ["one", "two", "three", "four", "all", "wide"];
    let mut seen = Vec::new();
    for (reach, allocations) in [("", 10), (SHARES, 3)] {
        let bench = bench(2, reach, &cases);
        let output = bench.run();
        assert_eq!(output.code, Some(1), "{}", output.all());
        let (ids, times) = ran(&bench);
        assert_eq!((ids.len(), times.len()), (allocations, 12), "{}", output.all());
        assert!(times.values().all(|times| *times == 1), "{times:?}");
        bench.cluster.assert_nothing_is_left();
        seen.push((verdicts(&bench, &names), output.blamed()));
    }
    assert_eq!(seen[0], seen[1]);
}

fn hangs() {
    let cases =
        [case("hangs", "\"each\"", "hangs-on-n2", "limit_s = 2"), case("after", "\"each\"", "notes", "")];
    let bench = bench(2, SHARES, &cases);
    let output = ended(bench.start_with(&[&RUN[..], &["--keep-bad-nodes"]].concat()));
    assert_eq!(output.code, Some(3), "{}", output.all());
    assert_eq!(odd(&bench, "hangs"), ["command.exit_code@n2 error hang"], "{}", output.all());
    assert!(odd(&bench, "after").is_empty(), "{}", output.all());
    assert_eq!(ran(&bench).0.len(), 2, "one allocation for each node: {}", output.all());
    bench.came_to(
        "a job that heeds no signal in an allocation that others share, Slurm",
        &output,
        ["1 error hang", "suspects n2", "3 pass"],
    );
}

fn lost(happens: impl Fn(&Bench), cause: &str, failure: &'static str, culprit: &str) {
    let cases = [
        case("before", "\"all\"", "notes", ""),
        case("waits", "\"all\"", "waits", ""),
        case("after", "\"all\"", "notes", ""),
    ];
    let bench = bench(2, SHARES, &cases);
    let run = bench.start();
    bench.wait_for(&["n1", "n2"]);
    happens(&bench);
    let output = ended(run);
    assert_eq!(output.code, Some(3), "{}", output.all());
    assert!(odd(&bench, "before").is_empty(), "{}", output.all());
    for case in ["waits", "after"] {
        let odd = odd(&bench, case);
        assert!(odd.len() == 1 && odd[0].ends_with(&format!("error {cause}")), "{odd:?}: {}", output.all());
    }
    bench.came_to(failure, &output, [&format!("2 error {cause}"), culprit, "1 pass"]);
}

fn cancelled() {
    let cancel = |bench: &Bench| {
        let id = bench.id("+allocations", "a1");
        bench.cluster.ask(&["scancel", &id]);
    };
    lost(cancel, "CANCELLED", "an allocation that jobs share and somebody cancels, Slurm", "none");
}

fn node_lost() {
    let crash = |bench: &Bench| {
        bench.cluster.script("crash", &["n2"]);
    };
    lost(crash, "NODE_FAIL", "a node of an allocation that jobs share is lost, Slurm", "culprit n2 node");
}

fn drained() {
    let cases = [case("waits", "\"each\"", "waits", ""), case("after", "\"each\"", "notes", "")];
    let bench = bench(2, SHARES, &cases);
    let run = bench.start();
    bench.wait_for(&["n1", "n2"]);
    bench.cluster.ask(&["scontrol", "update", "NodeName=n2", "State=DRAIN", "Reason=a fan is loud"]);
    bench.project.write("go", "");
    let output = ended(run);
    assert_eq!(output.code, Some(3), "{}", output.all());
    assert!(odd(&bench, "waits").is_empty(), "{}", output.all());
    assert_eq!(odd(&bench, "after"), ["command.exit_code@n2 error queue-stuck"], "{}", output.all());
    assert!(bench.project.reported().contains("a fan is loud"), "{}", output.all());
    bench.came_to(
        "a node drained between jobs of an allocation, Slurm",
        &output,
        ["1 error queue-stuck", "culprit n2 node", "3 pass"],
    );
}

fn killed() {
    let cases = [
        case("one", "\"each\"", "notes", ""),
        case("waits", "\"each\"", "waits", ""),
        case("two", "\"each\"", "notes", "after = [\"waits\"]"),
        case("all", "\"all\"", "notes", ""),
    ];
    let bench =
        bench(2, SHARES, &cases.map(|case| case.replace("queue_limit_s = 20", "queue_limit_s = 300")));
    let mut run = bench.start();
    bench.wait_for(&["n1", "n2"]);
    run.kill();
    bench.project.write("go", "");
    std::thread::sleep(Duration::from_secs(3));
    // Killed while it resumes, too: it may have given a job its turn and not have recorded it.
    for after_ms in [300, 900, 2500] {
        let mut run = bench.start_with(&["--run", "latest", "--resume"]);
        std::thread::sleep(Duration::from_millis(after_ms));
        run.kill();
    }
    let output = ended(bench.start_with(&["--run", "latest", "--resume"]));
    assert_eq!(output.code, Some(0), "{}", output.all());
    let (ids, times) = ran(&bench);
    assert_eq!((times.len(), ids.len()), (8, 3), "{times:?}");
    assert!(times.values().all(|times| *times == 1), "{times:?}");
    bench.came_to(
        "the harness killed by force while jobs share allocations, and resumed, Slurm",
        &output,
        ["pass", "none", "7 pass"],
    );
}

fn interrupted() {
    let cases = [case("waits", "\"each\"", "waits", ""), case("after", "\"each\"", "notes", "")];
    let bench = bench(2, SHARES, &cases);
    let run = bench.start();
    bench.wait_for(&["n1", "n2"]);
    interrupt(&run);
    let output = ended(run);
    assert_eq!(output.code, Some(130), "{}", output.all());
    assert!(
        bench.verdicts("waits").iter().all(|output| output.ends_with("error interrupted")),
        "{}",
        output.all()
    );
    assert!(output.blamed().is_empty(), "{}", output.all());
    until("an empty queue", || bench.cluster.ask(&["squeue", "--noheader"]).is_empty().then_some(()));
    bench.cluster.assert_nothing_is_left();
}

fn interrupt(run: &Running) {
    kill(Pid::from_raw(run.id()), Signal::SIGINT).expect("signalled");
}
