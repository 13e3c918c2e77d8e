//! Runs in pods by seed, each with a fault of Kubernetes, a harness that is killed, or both: whatever came of the run, no pod,
//! process or secret of it is left once it was cleaned, and nothing of other tenants was touched.
//!
//! `HARNESS_TEST_POD_SEEDS` asks for another number of seeds than a few, `HARNESS_TEST_POD_FROM` for another first one;
//! `tests/nightly` runs 1,000.

use super::{Bench, SUITE, all};
use crate::project::{Ran, ran};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use sim::noise;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

const SEEDS: u64 = 6;
const FULL_SET: u64 = 1000;
const AT_ONCE: usize = 3;
/// Calls of kubectl of a run that nothing happens to, and a few more: then it ends first.
const CALLS: u64 = 30;
const LONGEST: Duration = Duration::from_secs(300);
const SECRET: &str = "planted 4nd unquoted";
const UID: &str = "uid-others-1";

const EVICTED: &str =
    r#"{"phase":"Failed","reason":"Evicted","message":"The node was low on resource: memory."}"#;
const OUT_OF_MEMORY: &str = r#"{"phase":"Failed","containerStatuses":[{"name":"work","state":{"terminated":{"reason":"OOMKilled","exitCode":137}}}]}"#;
const NO_IMAGE: &str = r#"{"phase":"Pending","containerStatuses":[{"name":"work","state":{"waiting":{"reason":"ImagePullBackOff"}}}]}"#;
const UNSCHEDULABLE: &str = r#"{"phase":"Pending","conditions":[{"type":"PodScheduled","status":"False","reason":"Unschedulable","message":"0/2 nodes are available."}]}"#;
/// What goes wrong: a file of the stand-in for kubectl, and what it holds.
const FAULTS: [(&str, &str); 9] = [
    ("nodes/n2", EVICTED),
    ("nodes/n1", OUT_OF_MEMORY),
    ("nodes/n2", NO_IMAGE),
    ("nodes/n1", UNSCHEDULABLE),
    ("away-create", "1\n"),
    ("away-delete", "1\n2\n"),
    ("away-get", "1\n2\n"),
    ("cut", "1\n2\n"),
    ("quota", ""),
];

/// What happens to the run of a seed.
#[derive(Debug)]
struct Drawn {
    /// At which call of kubectl it begins.
    fault: Option<(usize, u64)>,
    /// By which signal the harness ends, and at which call.
    kill: Option<(Signal, u64)>,
    /// Somebody goes on with a run that was killed, before it is cleaned.
    resumes: bool,
}

impl Drawn {
    fn new(seed: u64) -> Drawn {
        let mut draws = noise::stream(seed, &["pods", "leftovers"]);
        let mut below = |limit: u64| draws.whole() % limit;
        let at = below(CALLS);
        let fault = (below(4) > 0).then(|| (below(FAULTS.len() as u64) as usize, at));
        // Each third harness is killed while it has pods, which are made by its fifth call.
        let kill = match seed % 3 {
            0 => None,
            1 => Some((Signal::SIGKILL, 6 + below(CALLS - 12))),
            _ if below(2) == 0 => Some((Signal::SIGTERM, 1 + below(CALLS))),
            _ => Some((Signal::SIGKILL, 1 + below(CALLS))),
        };
        Drawn { fault, kill, resumes: below(2) == 0 }
    }
}

/// What other tenants have: pods with names and labels like ours, a process in one, a secret, a cordoned node, data.
struct Others {
    files: BTreeMap<PathBuf, Vec<u8>>,
    process: Child,
}

impl Others {
    fn new(bench: &Bench) -> Others {
        for (file, text) in [
            ("kube/pods/train-1", format!("n1 20260101T000001Z-other-0001 {UID}\n")),
            (
                "kube/pods/harness-0123456789ab-0123456789ab",
                "n2 20260101T000001Z-other-0001 uid-2\n".to_owned(),
            ),
            ("kube/made/harness-0123456789ab-0123456789ab", "another\n0123456789abcdef 1 1\n".to_owned()),
            ("kube/objects/secrets/team.registry", r#"{"metadata":{"name":"registry"}}"#.to_owned()),
            (
                "kube/node-objects/ip-n1",
                "7\nn1\n\ntrue\n[{\"key\":\"team/repair\",\"effect\":\"NoSchedule\"}]\n".to_owned(),
            ),
            ("shared/team/weights", "theirs".to_owned()),
            ("shared/20260101T000001Z-other-0001/each/n1/secrets", "theirs".to_owned()),
        ] {
            bench.0.write(file, &text);
        }
        let folder = bench.0.path();
        let files = ["kube", "shared"].into_iter().flat_map(|name| files(&folder.join(name)));
        let files = files.map(|file| (file.clone(), fs::read(file).expect("read"))).collect();
        let pod = folder.join("kube").join(UID);
        let process = Command::new("sleep").arg("3600").env("STAND_IN_POD", pod).spawn();
        Others { files, process: process.expect("it starts") }
    }

    fn touched(&mut self) -> Vec<String> {
        let is_same = |(file, bytes): &(&PathBuf, &Vec<u8>)| fs::read(file).is_ok_and(|now| now == **bytes);
        let changed = self.files.iter().filter(|one| !is_same(one));
        let mut touched: Vec<String> =
            changed.map(|(file, _)| format!("changed: {}", file.display())).collect();
        if !matches!(self.process.try_wait(), Ok(None)) {
            touched.push("a process in a pod of others has ended".to_owned());
        }
        touched
    }
}

impl Drop for Others {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        match entry.path() {
            path if path.is_symlink() => {}
            path if path.is_dir() => found.extend(files(&path)),
            path => found.push(path),
        }
    }
    found
}

/// Those of a test's pods but for that of others, or the others that it started: a harness and its kubectl.
fn processes(folder: &Path, in_pods: bool) -> Vec<String> {
    let kube = folder.join("kube").display().to_string();
    let (own, pod) = (format!("HARNESS_TEST_KUBE={kube}"), format!("STAND_IN_POD={kube}/"));
    let (others, shared) = (format!("{pod}{UID}"), folder.join("shared").display().to_string());
    let text = |path: PathBuf| String::from_utf8_lossy(&fs::read(path).unwrap_or_default()).into_owned();
    let mut found = Vec::new();
    for entry in fs::read_dir("/proc").expect("/proc").flatten() {
        let environment = text(entry.path().join("environ"));
        let words = text(entry.path().join("cmdline")).replace('\0', " ");
        let mut variables = environment.split('\0');
        let is_found = match variables.clone().find(|one| one.starts_with(&pod)) {
            Some(pod) => in_pods && pod != others,
            None if in_pods => words.contains(&shared),
            None => variables.any(|one| one == own),
        };
        if is_found {
            found.push(format!("process {}: {words}", entry.path().display()));
        }
    }
    found
}

fn command(bench: &Bench, arguments: &[&str]) -> Command {
    let mut command = bench.command(arguments);
    command.env("PLANTED", SECRET);
    command
}

fn calls(bench: &Bench) -> u64 {
    let calls = fs::read_to_string(bench.0.path().join("kube/calls")).unwrap_or_default();
    calls.lines().count() as u64
}

/// A run to its end, or to that which was drawn for it. Whether the harness was ended by a signal.
fn run(bench: &Bench, drawn: &Drawn) -> Result<bool, String> {
    let mut command = command(bench, &SUITE);
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("it starts");
    let id = Pid::from_raw(i32::try_from(child.id()).expect("an id"));
    let (mut fault, mut signal) = (drawn.fault, drawn.kill);
    let was_ended = signal.is_some();
    let from = Instant::now();
    while child.try_wait().expect("a child").is_none() {
        let calls = calls(bench);
        if let Some((which, _)) = fault.take_if(|(_, at)| *at <= calls) {
            let (file, text) = FAULTS[which];
            bench.0.write(&format!("kube/{file}"), text);
        }
        if let Some((which, _)) = signal.take_if(|(_, at)| *at <= calls) {
            kill(id, which).map_err(|error| error.to_string())?;
        }
        if from.elapsed() > LONGEST {
            let _ = child.kill().and_then(|()| child.wait());
            return Err(format!("the run did not end within {} s", LONGEST.as_secs()));
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    // A call that was on its way goes on without the harness.
    until_none(|| processes(bench.0.path(), false))?;
    Ok(was_ended && signal.is_none())
}

fn until_none(find: impl Fn() -> Vec<String>) -> Result<(), String> {
    let from = Instant::now();
    loop {
        let found = find();
        if found.is_empty() {
            return Ok(());
        }
        if from.elapsed() > Duration::from_secs(60) {
            return Err(format!("left: {}", found.join("\n")));
        }
        std::thread::sleep(Duration::from_millis(50));
    }
}

fn harness(bench: &Bench, arguments: &[&str]) -> Ran {
    ran(command(bench, arguments).output().expect("it starts"))
}

/// How many pods the run had left before it was cleaned, or what is wrong.
fn one(seed: u64, drawn: &Drawn) -> Result<usize, String> {
    let bench = Bench::new();
    let suite = fs::read_to_string(bench.0.path().join("suites/pods.toml")).expect("a suite");
    let job = "\"sleep 0.5; echo on $HARNESS_NODE\"], environment = { MY_TOKEN = \"env:PLANTED\" } }";
    let planted = suite.replace("\"echo on $HARNESS_NODE\"] }", job);
    assert!(planted.contains("env:PLANTED"), "{planted}");
    bench.0.write("suites/pods.toml", &planted);
    let mut others = Others::new(&bench);
    let own_pods = || {
        let known = |pod: &PathBuf| others.files.contains_key(pod);
        bench.pods().into_iter().filter(|pod| !known(pod)).count()
    };
    let was_ended = run(&bench, drawn)?;
    // Kubernetes has got over it.
    for (file, _) in FAULTS {
        let _ = fs::remove_file(bench.0.path().join("kube").join(file));
    }
    let before = own_pods();
    if was_ended && drawn.resumes {
        harness(&bench, &["resume"]);
    }
    for arguments in [&["clean", "--all"][..], &["clean", "--kubernetes", "--inventory", "pods", "--remove"]]
    {
        let ran = harness(&bench, arguments);
        if ran.code != Some(0) {
            return Err(format!("seed {seed}: {arguments:?}: {}", all(&ran)));
        }
    }
    let mut left: Vec<String> = Vec::new();
    if own_pods() > 0 {
        left.push(format!("pods: {:?}", bench.pods()));
    }
    left.extend(until_none(|| processes(bench.0.path(), true)).err());
    for file in files(bench.0.path()) {
        let bytes = fs::read(&file).unwrap_or_default();
        if bytes.windows(SECRET.len()).any(|window| window == SECRET.as_bytes()) {
            left.push(format!("the secret: {}", file.display()));
        }
    }
    left.extend(others.touched());
    if left.is_empty() { Ok(before) } else { Err(format!("seed {seed}: {}", left.join("\n"))) }
}

#[test]
fn nothing_of_a_run_in_pods_is_left_by_faults_and_kills_and_nothing_of_others_is_touched() {
    let number = |name: &str| std::env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
    let first = number("HARNESS_TEST_POD_FROM").unwrap_or(1);
    nothing_is_left(first, number("HARNESS_TEST_POD_SEEDS").unwrap_or(SEEDS));
}

#[test]
#[ignore = "takes an hour; 6 of the 1,000 seeds are always run"]
fn nothing_of_a_run_in_pods_is_left_by_faults_and_kills_and_nothing_of_others_is_touched_full_set() {
    nothing_is_left(1 + SEEDS, FULL_SET - SEEDS);
}

fn nothing_is_left(first: u64, seeds: u64) {
    let next = AtomicU64::new(first);
    let work = || {
        let mut ended = Vec::new();
        loop {
            let seed = next.fetch_add(1, Ordering::Relaxed);
            if seed >= first + seeds {
                return ended;
            }
            let drawn = Drawn::new(seed);
            ended.push(one(seed, &drawn).map_err(|why| format!("{drawn:?}: {why}")));
        }
    };
    let ended: Vec<Result<usize, String>> = std::thread::scope(|scope| {
        let workers: Vec<_> = (0..AT_ONCE).map(|_| scope.spawn(work)).collect();
        workers.into_iter().flat_map(|worker| worker.join().expect("no panic")).collect()
    });
    let wrong: Vec<&String> = ended.iter().filter_map(|one| one.as_ref().err()).collect();
    assert!(wrong.is_empty(), "{} of {seeds} seeds: {wrong:#?}", wrong.len());
    let left: usize = ended.iter().flatten().sum();
    assert!(left > 0 || seeds < SEEDS, "no harness was killed while it had pods: nothing was cleaned");
    println!("{seeds} seeds from {first}; pods left before they were cleaned: {left}");
}
