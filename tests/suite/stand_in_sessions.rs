//! Sessions of the stand-in for nsys as real processes: they collect from their start to their stop, by the machine's
//! clock, and what is said to one that is not there, or twice, is refused.

use crate::bed::StandIns;
use nsys::trace::Trace;
use nsys::trace::nvtx::Ranges;
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Output, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// A training of steps of half a second, all of which is lived through.
const TRAINING: [&str; 6] = [
    "torchrun",
    "--nproc_per_node=8",
    "train.py",
    "--max_steps=12",
    "--train_batch_size=2",
    "--num_layers=32",
];

struct Bench {
    bed: StandIns,
    folder: PathBuf,
}

impl Bench {
    fn new(more: &str) -> Bench {
        let bed = StandIns::new("n1", &format!("floor_s = 60.0\n{more}"));
        let folder = bed.job("trains", "all");
        Bench { bed, folder }
    }

    fn nsys(&self, words: &[&str]) -> std::process::Command {
        let mut command = self.bed.command("nsys");
        command.args(words).current_dir(&self.folder).env("HARNESS_NODE", "n1");
        command
    }

    #[track_caller]
    fn says(&self, words: &[&str]) -> (Option<i32>, String) {
        let Output { status, stderr, .. } = self.nsys(words).output().expect("it starts");
        (status.code(), String::from_utf8_lossy(&stderr).into_owned())
    }

    /// The program in a session, once it prints steps.
    fn launch(&self, session: &str) -> Child {
        let output = fs::File::create(self.folder.join("out")).expect("made");
        let session = format!("--session-new={session}");
        let words = [&["launch", &session, "--trace=cuda,nvtx"][..], &TRAINING].concat();
        let child = self.nsys(&words).stdout(output).stderr(Stdio::null()).spawn().expect("it starts");
        until("a step", || self.steps() >= 2);
        child
    }

    /// How many steps it has reported.
    fn steps(&self) -> usize {
        fs::read_to_string(self.folder.join("out")).unwrap_or_default().matches(" Batch ").count()
    }

    /// The numbers of the steps that begin in a report.
    fn reported(&self, report: &str) -> BTreeSet<u64> {
        let words =
            ["export", "--type=parquetdir", "--tables=NVTX_EVENTS,StringIds", &format!("{report}.nsys-rep")];
        assert_eq!(self.says(&words).0, Some(0), "{report}");
        numbers(&self.folder.join(format!("{report}_pqtdir")))
    }
}

/// By the ranges that the program puts around its steps.
fn numbers(folder: &Path) -> BTreeSet<u64> {
    let trace = Trace::open(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let ranges = Ranges::read(&trace).expect("read").expect("ranges");
    let number = |row| ranges.name(row).strip_prefix("step ")?.parse().ok();
    (0..ranges.len()).filter_map(number).collect()
}

fn until(what: &str, holds: impl Fn() -> bool) {
    let since = Instant::now();
    while !holds() {
        assert!(since.elapsed() < Duration::from_secs(60), "{what}");
        sleep(Duration::from_millis(20));
    }
}

#[test]
fn a_session_collects_from_its_start_to_its_stop_and_its_program_goes_on() {
    let bench = Bench::new("");
    let mut child = bench.launch("one");
    let start = ["start", "--session=one", "--output=watched", "--sample=none", "--force-overwrite=false"];
    let (code, said) = bench.says(&start);
    assert_eq!(code, Some(0), "{said}");
    let from = bench.steps() as u64;
    until("more steps", || bench.steps() as u64 >= from + 3);
    let (code, said) = bench.says(&["stop", "--session=one"]);
    assert_eq!(code, Some(0), "{said}");
    let to = bench.steps() as u64;
    assert!(bench.folder.join("watched.nsys-rep").exists(), "the report is there when it has stopped");
    assert!(to < 12 && child.try_wait().expect("a child").is_none(), "it goes on: {to}");
    // A second time it collects nothing, and another session there is not.
    for words in [&["stop", "--session=one"][..], &start, &["start", "--session=two", "--output=other"]] {
        let (code, said) = bench.says(words);
        assert_eq!(code, Some(1), "{words:?}: {said}");
    }
    assert!(child.wait().expect("it ends").success());
    assert_eq!(bench.steps(), 12);
    // By the clock: which steps had begun and ended when it was asked to.
    let shown = bench.reported("watched");
    let (first, last) = (shown.first().copied().unwrap_or(99), shown.last().copied().unwrap_or(99));
    assert!(
        (from - 1..=from + 1).contains(&first) && (to - 1..=to + 1).contains(&last),
        "{from}..{to}: {shown:?}"
    );
    assert_eq!(shown.len() as u64, last - first + 1, "{shown:?}");
    // Nothing of the session is left.
    assert!(!bench.bed.state().join("sessions/n1/one").exists());
    assert_eq!(bench.says(&["start", "--session=one", "--output=late"]).0, Some(1));
}

#[test]
fn what_still_collects_ends_with_its_program_and_what_never_began_leaves_no_report() {
    let bench = Bench::new("");
    let mut child = bench.launch("one");
    assert_eq!(bench.says(&["start", "--session=one", "--output=rest"]).0, Some(0));
    assert!(child.wait().expect("it ends").success());
    assert_eq!(bench.reported("rest").last(), Some(&11));
    let bench = Bench::new("");
    let mut child = bench.launch("one");
    assert!(child.wait().expect("it ends").success());
    let left: Vec<_> =
        fs::read_dir(&bench.folder).expect("read").flatten().map(|entry| entry.file_name()).collect();
    assert_eq!(left, ["out"]);
}

#[test]
fn a_session_that_is_shut_down_takes_its_program_with_it() {
    let bench = Bench::new("");
    let mut child = bench.launch("one");
    assert_eq!(bench.says(&["shutdown", "--session=one", "--kill=none"]).0, Some(0));
    assert!(child.try_wait().expect("a child").is_none(), "it was to stay");
    let (code, said) = bench.says(&["shutdown", "--session=one"]);
    assert_eq!(code, Some(0), "{said}");
    assert!(!child.wait().expect("it ends").success());
    assert_eq!(bench.says(&["shutdown", "--session=one"]).0, Some(1), "it is gone");
}

#[test]
fn a_node_whose_windows_stay_shut_starts_no_collection() {
    let bench = Bench::new("faults = [\"n1:window-shut\"]");
    let mut child = bench.launch("one");
    assert_eq!(bench.says(&["start", "--session=one", "--output=none"]).0, Some(1));
    assert!(child.wait().expect("it ends").success(), "the training is none the worse");
    assert!(!bench.folder.join("none.nsys-rep").exists());
}
