//! A node that leaves what no honest job leaves, over real sshds and under a real Slurm, by one table of attacks: the
//! run ends as one that could not determine, with its reports, in little memory, and nothing outside of it is read or
//! changed.
//!
//! Not in the table: exports, which `hostile_exports` has, and logs larger than the memory that a run may take, which
//! the unit tests of `collect` have.

use crate::fact::{Fact, trials};
use crate::peak_memory::most_mib;
use crate::planted::assert_found_nowhere;
use crate::project::{Project, ran};
use crate::slurm::bench as slurm;
use crate::slurm_cluster;
use crate::ssh::hosts::{self, Hosts};
use crate::ssh::suites::Bench;
use libtest_mimic::Trial;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::time::{Duration, SystemTime};

pub(crate) fn tests() -> Vec<Trial> {
    let over_ssh: &[Fact] = &[("a_hostile_node_harms_no_other_over_ssh", over_ssh)];
    let under_slurm: &[Fact] = &[("a_hostile_node_harms_no_other_under_slurm", under_slurm)];
    let mut all = trials("hostile", over_ssh, hosts::absent());
    all.extend(trials("hostile", under_slurm, slurm_cluster::absent()));
    all
}

/// What must come of the verdict of the node that attacks.
#[derive(Clone, Copy, PartialEq)]
enum Verdict {
    Error,
    Pass,
    /// Its file grows while it is read: it is refused, or what came is sound.
    PassOrRefused,
}
use Verdict::{Error, Pass, PassOrRefused};

/// What the second node's program does in its job's folder. `$f` is the file of its stdout.
const ATTACKS: &[(&str, &str, Verdict)] = &[
    ("link-to-a-file", "rm -f $f; ln -s CANARY/linked $f", Error),
    ("link-to-dev-zero", "rm -f $f; ln -s /dev/zero $f", Error),
    ("device", "rm -f $f; mknod $f c 1 5", Error),
    ("pipe", "rm -f $f; mkfifo $f", Error),
    ("folder", "rm -f $f; mkdir $f", Error),
    ("hard-link", "rm -f $f; ln CANARY/hard $f", Error),
    ("sparse", "truncate -s 3G $f", Error),
    (
        "endless",
        "setsid bash -c 'for n in $(seq 1000); do echo more >> $0; sleep 0.02; done' $f < /dev/null > /dev/null 2>&1 & sleep 0.2",
        PassOrRefused,
    ),
    ("no-table", "printf 'PAR1%0300dPAR1' 7 > $f", Pass),
    (
        "names",
        "touch $'a\\nb' $'\\e[31mred'; printf '\\e[2J\\e]0;owned\\a\\n::error title=x::y\\n' | tee -a $f >&2",
        Pass,
    ),
    ("process", "cp /bin/sleep $'./a\\nb'; $'./a\\nb' 10 > /dev/null 2>&1 &", Pass),
    ("job-folder-is-a-link", "d=$PWD; cd ..; mv $d $d.real; ln -s CANARY/job $d", Error),
    (
        "case-folder-is-a-link",
        // The other node's job has begun by then: its scheduler opens its files by their path.
        "d=$(dirname $PWD); for n in $(seq 1000); do s=($d/*1/stdout*); [[ -s ${s[0]} ]] && break; sleep 0.02; done; \
         cd /; until [[ -L $d ]]; do mv -T $d $d.$RANDOM; ln -sT CANARY/case $d; done",
        Error,
    ),
];

/// Stands in files of the user that no job is given.
const SECRET: &str = "the operator's own 7Qz4";
pub(crate) const MOST_MIB: u64 = 512;

/// Files of the user, and what was true of them before.
struct Canaries(Vec<(PathBuf, SystemTime, SystemTime)>);

impl Canaries {
    fn plant(folder: &Path, nodes: [&str; 2]) -> Canaries {
        let mut files = vec!["linked".to_owned(), "hard".to_owned()];
        for name in [
            "stdout",
            "stderr",
            "exit_code",
            "batch.err",
            "batch.out",
            "status",
            "group",
            "job.sh",
            "secrets",
            "secrets.yaml",
            "movie.part",
        ] {
            for file in [name.to_owned(), format!("{name}.{}", nodes[1])] {
                files.push(format!("job/{file}"));
                files.extend(nodes.map(|node| format!("case/{node}/{file}")));
            }
        }
        // A reader changes the time of the last access only where that is older than the last change.
        let accessed = SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000_000);
        let changed = accessed + Duration::from_secs(1000);
        let plant = |name: String| {
            let path = folder.join(name);
            fs::create_dir_all(path.parent().expect("a folder")).expect("made");
            fs::write(&path, format!("{SECRET}\n")).expect("written");
            let times = fs::FileTimes::new().set_accessed(accessed).set_modified(changed);
            fs::File::options().write(true).open(&path).expect("there").set_times(times).expect("set");
            (path, accessed, changed)
        };
        Canaries(files.into_iter().map(plant).collect())
    }

    fn assert_untouched(&self) {
        for (path, accessed, changed) in &self.0 {
            let facts = fs::metadata(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
            assert_eq!(facts.modified().expect("a time"), *changed, "{} was changed", path.display());
            // It is read before its other name is seen, and what came is dropped.
            if !path.ends_with("hard") {
                assert_eq!(facts.accessed().expect("a time"), *accessed, "{} was read", path.display());
            }
            assert_eq!(facts.len(), SECRET.len() as u64 + 1, "{}", path.display());
        }
    }
}

/// A suite with a case for each attack; each runs on both nodes.
fn suite(project: &Project, canary: &Path) -> String {
    let bin = project.path().join("bin");
    let mut text = "instance = \"p5\"\nabout = \"hostile\"\n".to_owned();
    for (name, attack, _) in ATTACKS {
        let attack = attack.replace("CANARY", &canary.display().to_string());
        let program = format!(
            "#!/bin/bash\necho here\n[[ ${{HARNESS_NODE:-$(hostname)}} == *2 ]] || {{ sleep 1; exit 0; }}\n\
             f=$(ls -d stdout* | head -1)\n{attack}\nexit 0\n"
        );
        project.write(&format!("bin/{name}"), &program);
        fs::set_permissions(bin.join(name), fs::Permissions::from_mode(0o755)).expect("made executable");
        text += &format!(
            "[[case]]\nname = \"{name}\"\nplacement = \"each\"\nlimit_s = 60\ncounters = false\n\
             workload = {{ kind = \"command\", program = \"{}\" }}\nrecipes = [\"command\"]\n\
             [[case.assert]]\nmetric = \"command.exit_code\"\nequals = 0\n",
            bin.join(name).display()
        );
    }
    text
}

const RUN: [&str; 6] = ["--suite", "live", "--inventory", "live", "--no-probe", "--keep-bad-nodes"];

/// Waits for the run's end, and looks at all that it left.
fn judge(child: Child, project: &Project, canaries: &Canaries, nodes: [&str; 2]) {
    let id = child.id();
    let watch = std::thread::spawn(move || most_mib(id));
    let ran = ran(child.wait_with_output().expect("ends"));
    let most = watch.join().expect("watched");
    assert_eq!(ran.code, Some(3), "{}", ran.all());
    eprintln!("a hostile node: at most {most} MiB");
    assert!(most > 0 && most < MOST_MIB, "{most} MiB");
    let is_raw = |c: char| c.is_control() && !matches!(c, '\n' | '\t');
    assert!(!ran.stdout.contains(is_raw) && !ran.stderr.contains(is_raw), "{:?}", ran.all());
    let report = |name: &str| fs::read_to_string(project.latest().join(name)).expect("a report");
    for name in ["summary.json", "junit.xml"] {
        assert!(!report(name).contains('\u{1b}'), "{name}");
    }
    // A person and CI read which node it was.
    let shown = format!(" ERR  device {} output-refused", nodes[1]);
    assert!(ran.stderr.lines().any(|line| line.ends_with(&shown)), "no `{shown}`: {}", ran.all());
    let junit = report("junit.xml");
    let named = format!("message=\"command.exit_code on {0}: job {0}: stdout", nodes[1]);
    assert!(junit.contains("value=\"output-refused\"") && junit.contains(&named), "no `{named}`: {junit}");
    let mut odd = Vec::new();
    for (name, _, wanted) in ATTACKS {
        let file = project.json(&format!("cases/{name}/verdict.json"));
        let verdicts = file["verdicts"].as_array().expect("verdicts");
        let mut on: Vec<&str> =
            verdicts.iter().map(|verdict| verdict["nodes"].as_str().unwrap_or_default()).collect();
        on.sort_unstable();
        assert_eq!(on, nodes, "{name}: {file}");
        for verdict in verdicts {
            let text = verdict.to_string();
            let is_bad = verdict["nodes"] == nodes[1];
            let is_fit = match (is_bad, verdict["status"].as_str(), wanted) {
                // Both nodes' jobs lie in the folder of the case.
                (false, _, _) if *name == "case-folder-is-a-link" => true,
                (false, status, _) | (true, status, Pass) => status == Some("pass"),
                (true, status, Error) => status == Some("error"),
                (true, Some("error"), PassOrRefused) => verdict["cause"] == "output-refused",
                (true, status, PassOrRefused) => status == Some("pass"),
            };
            if !is_fit {
                let raw = project.latest().join(format!("cases/{name}/raw/{}", nodes[1]));
                let stderr = fs::read_to_string(raw.join("stderr")).unwrap_or_default();
                odd.push(format!("{name}: {text}\n{stderr}"));
            }
        }
    }
    assert!(odd.is_empty(), "{}\n{}", odd.join("\n"), ran.all());
    assert_found_nowhere(&project.latest(), SECRET);
    canaries.assert_untouched();
}

fn over_ssh() {
    let bench = Bench::with_suite(Hosts::start(2), &[], "", "");
    let canary = bench.project.path().join("canary");
    let canaries = Canaries::plant(&canary, ["h1", "h2"]);
    bench.project.write("suites/live.toml", &suite(&bench.project, &canary));
    let mut command = bench.project.command(&RUN);
    judge(started(&mut command), &bench.project, &canaries, ["h1", "h2"]);
    // Those whose folder was moved away end without a heartbeat.
    bench.reported_quiet(90);
    judge_clean(started(&mut bench.project.command(&CLEAN)), &canaries);
}

fn under_slurm() {
    let bench = slurm::Bench::with_cases(2, "", "");
    let canary = bench.project.path().join("canary");
    let canaries = Canaries::plant(&canary, ["n1", "n2"]);
    bench.project.write("suites/live.toml", &suite(&bench.project, &canary));
    let mut command = bench.command(&RUN);
    let child = started(&mut command);
    bench.cluster.script("own", &[&child.id().to_string()]);
    judge(child, &bench.project, &canaries, ["n1", "n2"]);
    bench.cluster.assert_nothing_is_left();
    let child = started(&mut bench.command(&CLEAN));
    bench.cluster.script("own", &[&child.id().to_string()]);
    judge_clean(child, &canaries);
}

const CLEAN: [&str; 5] = ["clean", "--run", "latest", "--inventory", "live"];

/// Folders that are behind links by now are reported, and nothing of them is touched.
fn judge_clean(child: Child, canaries: &Canaries) {
    let ran = ran(child.wait_with_output().expect("ends"));
    assert_eq!(ran.code, Some(3), "{}", ran.all());
    for case in ["job-folder-is-a-link", "case-folder-is-a-link"] {
        let line = format!("the folder of {case}/");
        let is_reported = |text: &str| text.contains(&line) && text.contains("is a symbolic link");
        assert!(ran.stdout.lines().any(is_reported), "{case}: {}", ran.all());
    }
    canaries.assert_untouched();
}

pub(crate) fn started(command: &mut Command) -> Child {
    use std::process::Stdio;
    command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("the harness starts")
}
