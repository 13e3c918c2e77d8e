//! Recipes over reports that tasks of a real Slurm read on their nodes: what comes of it is what one machine makes of
//! them, also where tasks are killed; what no task could read is named.

use super::bench::{Bench, until};
use crate::fact::Fact;
use crate::project::{HARNESS, Ran, ran};
use crate::small_export::{self, Report};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use rusqlite::Connection;
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::{Child, Stdio};

pub(super) const FACTS: &[Fact] = &[
    ("what_tasks_read_of_sixty_four_reports_gives_the_bytes_of_one_machine", the_same_bytes),
    ("a_task_that_is_killed_or_cancelled_is_started_again", killed),
    ("a_task_that_is_lost_every_time_is_named_and_nothing_of_its_reports_is_reported", lost),
    ("a_case_whose_reports_tasks_read_has_the_numbers_of_one_machine", numbers_of_one_machine),
    ("a_case_of_which_a_task_is_lost_every_time_passes_nothing_that_its_reports_show", lost_task),
    ("an_interruption_ends_all_tasks_of_an_analysis", interrupted),
];

const HOSTS: usize = 8;
const RANKS: usize = 8;

/// A cluster whose nodes see this program, and 64 reports of eight hosts.
fn bench() -> Bench {
    let bench = Bench::new("");
    reads(&bench);
    for rank in 0..HOSTS * RANKS {
        report(&bench.project.path().join(format!("reports/rank{rank}.sqlite")), rank);
    }
    bench
}

/// Its nodes see this program, by which they read.
pub(super) fn reads(bench: &Bench) {
    let file = bench.project.path().join("inventory/live.toml");
    let text = fs::read_to_string(&file).expect("an inventory");
    fs::write(&file, format!("{text}harness = \"{HARNESS}\"\n")).expect("written");
    fs::create_dir_all(bench.project.path().join("shared")).expect("made");
}

/// Steps of computing and communicating kernels, which differ from rank to rank, and the name of the host.
pub(crate) fn report(path: &Path, rank: usize) {
    let (mut kernels, mut calls, mut ranges) = (Vec::new(), Vec::new(), Vec::new());
    for step in 0..12 {
        let at = step * 100_000;
        let slower = (rank as i64 * 37 + step * 11) % 900;
        ranges.push((at, at + 90_000, "step"));
        for (kernel, name) in
            ["gemm<float, 2>", "ncclDevKernel_AllReduce_Sum_f32_RING_LL(x)", "norm"].iter().enumerate()
        {
            let begin = at + 1_000 + kernel as i64 * 20_000;
            calls.push((begin, begin + 400, "cudaLaunchKernel_v7000"));
            kernels.push((begin + 700, begin + 15_000 + slower, *name));
        }
    }
    small_export::sqlite(path, Report { kernels: &kernels, calls: &calls, ranges: &ranges });
    let host = format!("node{}", rank / RANKS);
    let db = Connection::open(path).expect("opens");
    db.execute_batch(&format!(
        "CREATE TABLE TARGET_INFO_SYSTEM_ENV (globalVid INTEGER, devStateName TEXT, name TEXT, nameEnum INTEGER, value TEXT);
         INSERT INTO TARGET_INFO_SYSTEM_ENV VALUES (1, 'x', 'Hostname', 1, '{host}');"
    ))
    .expect("put");
}

/// Every recipe over all reports, into this folder. The shells of tasks read `hook` first.
fn start(bench: &Bench, output: &str, on: &[&str]) -> Child {
    // Pages report the name of their folder.
    fs::create_dir_all(bench.project.path().join(output)).expect("made");
    let output = format!("{output}/out");
    let forms = ["--json", "--csv", "--parquet", "--html"];
    let all = [&["recipe", "all", "--input", "reports", "--output", &output][..], &forms].concat();
    let mut command = bench.command(&[&all[..], on].concat());
    command.env("BASH_ENV", bench.project.path().join("hook")).stdout(Stdio::piped()).stderr(Stdio::piped());
    let child = command.spawn().expect("the harness starts");
    bench.cluster.script("own", &[&child.id().to_string()]);
    child
}

pub(super) const ON_NODES: [&str; 4] = ["--analyze-on", "slurm", "--inventory", "live"];

fn ended(child: Child) -> Ran {
    ran(child.wait_with_output().expect("the harness ends"))
}

/// Every file below a folder.
pub(crate) fn files(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    let (mut files, mut open) = (BTreeMap::new(), vec![folder.to_owned()]);
    while let Some(next) = open.pop() {
        for entry in
            fs::read_dir(&next).unwrap_or_else(|error| panic!("{}: {error}", next.display())).flatten()
        {
            let path = entry.path();
            if path.is_dir() {
                open.push(path);
            } else {
                let name = path.strip_prefix(folder).expect("inside").display().to_string();
                files.insert(name, fs::read(&path).expect("read"));
            }
        }
    }
    files
}

#[track_caller]
fn assert_same(bench: &Bench, one: &str, other: &str) {
    let of = |output: &str| files(&bench.project.path().join(output).join("out"));
    let (one, other) = (of(one), of(other));
    assert!(one.keys().eq(other.keys()), "{:?}\n{:?}", one.keys(), other.keys());
    assert!(one.len() > 60, "{}", one.len());
    for (name, bytes) in &one {
        assert!(other[name] == *bytes, "{name}: {} and {} bytes", bytes.len(), other[name].len());
    }
}

fn left_of_analyses(bench: &Bench) -> Vec<String> {
    files(&bench.project.path().join("shared")).into_keys().collect()
}

fn the_same_bytes() {
    let bench = bench();
    bench.project.write(
        "hook",
        "touch \"started-$SLURM_ARRAY_TASK_ID\"\n"
            .replace("started", &format!("{}/started", bench.folder()))
            .as_str(),
    );
    let here = ended(start(&bench, "here", &[]));
    assert_eq!(here.code, Some(0), "{}", here.all());
    let there = ended(start(&bench, "there", &ON_NODES));
    assert_eq!(there.code, Some(0), "{}", there.all());
    assert_eq!(there.stdout, here.stdout);
    assert_eq!(there.stderr.replace("there", "here"), here.stderr);
    assert_same(&bench, "here", "there");
    assert!((1..=HOSTS).all(|task| bench.has(&format!("started-{task}"))), "a task of each host read");
    assert!(!bench.has(&format!("started-{}", HOSTS + 1)));
    assert!(left_of_analyses(&bench).is_empty(), "{:?}", left_of_analyses(&bench));
    bench.cluster.assert_nothing_is_left();
}

/// The first tries of tasks 3 and 5 report their process and wait.
const WAITS: &str = "task=$SLURM_ARRAY_TASK_ID\necho \"$SLURMD_NODENAME\" >>\"BENCH/nodes-$task\"\n\
    if [[ $task == 3 || $task == 5 ]] && mkdir \"BENCH/first-$task\" 2>/dev/null; then\n\
    echo \"$SLURM_ARRAY_JOB_ID $$\" >\"BENCH/reported-$task.new\"\nmv \"BENCH/reported-$task.new\" \"BENCH/reported-$task\"\n\
    exec sleep 600\nfi\n";

fn started_task(bench: &Bench, task: usize) -> (String, i32) {
    let file = format!("reported-{task}");
    bench.wait_for(&[&file]);
    let text = fs::read_to_string(bench.project.path().join(file)).expect("reported");
    let (array, process) = text.trim().split_once(' ').expect("two words");
    (array.to_owned(), process.parse().expect("a process"))
}

fn killed() {
    let bench = bench();
    let here = ended(start(&bench, "here", &[]));
    assert_eq!(here.code, Some(0), "{}", here.all());
    bench.project.write("hook", &WAITS.replace("BENCH", &bench.folder()));
    let there = start(&bench, "there", &ON_NODES);
    let (array, _) = started_task(&bench, 3);
    let (_, process) = started_task(&bench, 5);
    bench.cluster.ask(&["scancel", &format!("{array}_3")]);
    kill(Pid::from_raw(process), Signal::SIGKILL).expect("killed");
    let there = ended(there);
    assert_eq!(there.code, Some(0), "{}", there.all());
    for task in [3, 5] {
        let again = format!("task {task} was lost and is restarted: ");
        assert!(there.stderr.contains(&again), "{}", there.all());
        let nodes = fs::read_to_string(bench.project.path().join(format!("nodes-{task}"))).expect("reported");
        let nodes: Vec<&str> = nodes.lines().collect();
        assert!(nodes.len() == 2 && nodes[0] != nodes[1], "started again on another node: {nodes:?}");
    }
    assert_same(&bench, "here", "there");
    assert!(left_of_analyses(&bench).is_empty(), "{:?}", left_of_analyses(&bench));
    bench.cluster.assert_nothing_is_left();
}

fn lost() {
    let bench = bench();
    let fails = "if [[ $SLURM_ARRAY_TASK_ID == 2 ]]; then echo x >>BENCH/tries; echo 'no memory for it' >&2; exit 9; fi\n";
    bench.project.write("hook", &fails.replace("BENCH", &bench.folder()));
    let there = ended(start(&bench, "there", &ON_NODES));
    assert_eq!(there.code, Some(3), "{}", there.all());
    let tries = fs::read_to_string(bench.project.path().join("tries")).expect("tried");
    assert_eq!(tries.lines().count(), 3);
    // Its host's reports, and no others.
    for rank in 0..HOSTS * RANKS {
        let named =
            format!("rank{rank}.sqlite: not analysed: its task was started 3 times and lost: FAILED on ");
        assert_eq!(there.stderr.contains(&named), (8..16).contains(&rank), "{rank}: {}", there.stderr);
    }
    assert!(there.stderr.contains("no memory for it"), "{}", there.stderr);
    let files = fs::read_to_string(bench.project.path().join("there/out/cuda_gpu_kern_sum/files.csv"))
        .expect("a table");
    assert_eq!(files.lines().filter(|line| line.contains("not analysed")).count(), RANKS, "{files}");
    let ranks = fs::read_to_string(bench.project.path().join("there/out/cuda_gpu_kern_sum/rank_stats.csv"))
        .expect("a table");
    let ranks: std::collections::BTreeSet<&str> =
        ranks.lines().skip(1).filter_map(|line| line.split(',').next()).collect();
    assert_eq!(ranks.len(), (HOSTS - 1) * RANKS);
    let left = left_of_analyses(&bench);
    assert!(left.iter().any(|file| file.ends_with("/task-2.log")), "{left:?}");
    assert!(
        left.iter().all(|file| there.stderr.contains(file.split('/').next().unwrap_or_default())),
        "{left:?}"
    );
    bench.cluster.assert_nothing_is_left();
}

fn interrupted() {
    let bench = bench();
    bench.project.write("hook", &WAITS.replace("BENCH", &bench.folder()));
    let there = start(&bench, "there", &ON_NODES);
    started_task(&bench, 3);
    kill(Pid::from_raw(there.id() as i32), Signal::SIGINT).expect("signalled");
    let there = ended(there);
    assert_eq!(there.code, Some(130), "{}", there.all());
    assert!(!bench.has("there/out") && left_of_analyses(&bench).is_empty(), "{:?}", left_of_analyses(&bench));
    until("nothing in the queue", || bench.cluster.ask(&["squeue", "--noheader"]).is_empty().then_some(()));
    bench.cluster.assert_nothing_is_left();
}

/// A finished run of profiled cases, and its id.
pub(super) fn finished(bench: &Bench) -> String {
    let ran = bench.project.harness(&["--suite", "evidence-p5"]);
    assert_eq!(ran.code, Some(0), "{}", ran.all());
    bench
        .project
        .latest()
        .canonicalize()
        .expect("a run")
        .file_name()
        .expect("a name")
        .to_string_lossy()
        .into_owned()
}

/// Its cases, reanalysed: of each file of numbers, findings and verdicts what is in it.
fn again(bench: &Bench, id: &str, on: &[&str]) -> (Ran, BTreeMap<String, Vec<u8>>) {
    let mut command = bench.command(&[&["--run", id, "--from", "analyze"], on].concat());
    let output =
        command.env("BASH_ENV", bench.project.path().join("hook")).output().expect("the harness starts");
    let mut files = files(&bench.project.latest().join("cases"));
    files.retain(|name, _| {
        ["metrics.parquet", "analysis.json", "verdict.json"].iter().any(|file| name.ends_with(file))
    });
    (ran(output), files)
}

fn numbers_of_one_machine() {
    let bench = bench();
    bench.project.write("hook", &format!("touch {}/started-$SLURM_ARRAY_TASK_ID\n", bench.folder()));
    let id = finished(&bench);
    let (ran, here) = again(&bench, &id, &[]);
    assert_eq!((ran.code, here.len() % 3), (Some(0), 0), "{}", ran.all());
    let (ran, there) = again(&bench, &id, &ON_NODES);
    assert_eq!(ran.code, Some(0), "{}", ran.all());
    assert!(here.keys().eq(there.keys()) && here.len() >= 6, "{:?}", here.keys());
    for (name, bytes) in &here {
        assert!(there[name] == *bytes, "{name}");
    }
    assert!((1..=4).all(|task| bench.has(&format!("started-{task}"))), "a task of each node read");
    assert!(left_of_analyses(&bench).is_empty(), "{:?}", left_of_analyses(&bench));
    bench.cluster.assert_nothing_is_left();
}

fn lost_task() {
    let bench = bench();
    let id = finished(&bench);
    bench.project.write("hook", "[[ $SLURM_ARRAY_TASK_ID != 2 ]] || exit 9\n");
    let (ran, there) = again(&bench, &id, &ON_NODES);
    assert_eq!(ran.code, Some(3), "{}", ran.all());
    let mut reported = 0;
    for (name, bytes) in there.iter().filter(|(name, _)| name.ends_with("analysis.json")) {
        let text = String::from_utf8_lossy(bytes);
        reported += text.matches("not analysed: its task was started 3 times and lost: FAILED").count();
        assert!(!text.contains("panicked"), "{name}");
    }
    assert!(reported > 8, "{reported}");
    let (ran, _) = again(&bench, &id, &[]);
    assert_eq!(ran.code, Some(0), "what was lost is read again: {}", ran.all());
    bench.cluster.assert_nothing_is_left();
}
