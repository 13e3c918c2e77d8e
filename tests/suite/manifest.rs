//! `harness manifest` and `run --attach`: what is rendered passes the linter, its script runs as the pods of an operator
//! would run it, on stand-ins for the programs of a cluster, and what the pods left is judged or refused.

use crate::bed::StandIns;
use crate::project::{Project, Ran, root};
use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::thread;
use std::time::Duration;

const KINDS: [&str; 6] = ["job", "jobset", "mpijob", "pytorchjob", "trainjob", "hyperpod-pytorchjob"];
const MPI: [&str; 6] = ["--suite", "nccl-p5", "--case", "all-all_gather", "--set", "interval_s=0.5"];
const TRAINING: [&str; 4] = ["--suite", "fsdp-p5", "--case", "fsdp-stragglers"];
const TORCH: [&str; 6] = ["--suite", "torch-p5", "--case", "all-all_reduce", "--set", "interval_s=0.5"];

/// A project whose inventory is of Kubernetes, and programs that stand in for those in the image.
struct Cluster {
    project: Project,
    programs: StandIns,
}

impl Cluster {
    fn new(nodes: &str, faults: &[&str]) -> Cluster {
        let project = Project::new();
        let programs = StandIns::new(nodes, &format!("seed = 7\nfloor_s = 0.8\nfaults = {faults:?}"));
        let (shared, state) = (project.path().join("shared"), programs.state().display());
        project.write(
            "inventory/pods.toml",
            &format!(
                "kind = \"real\"\ninstance = \"p5\"\nnodes = \"{nodes}\"\n\
                 nsys_version = \"2025.3.1\"\n[reach]\nvia = \"kubernetes\"\nimage = \"r/i:1\"\n\
                 shared = \"fsx\"\nstart_limit_s = 20\n[paths]\nshared = \"{}\"\n\
                 fsdp = \"{state}/fsdp\"\nnccl_tests = \"{state}/bin\"\n\
                 counters = \"{state}/hosts/{{host}}\"\n[environment]\nPATH = \"{state}/bin:/usr/local/bin:/usr/bin:/bin\"\n",
                shared.display()
            ),
        );
        let program = programs.state().join("fsdp/slurm/env/bin/torchrun");
        fs::create_dir_all(program.parent().expect("a folder")).expect("made");
        symlink(programs.programs().join("torchrun"), program).expect("linked");
        // Of the cluster, so that the linter finds what the pods mount.
        project.write(
            "claim.yaml",
            "apiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {name: fsx}\nspec:\n  accessModes: [ReadWriteMany]\n  \
             storageClassName: fsx\n  resources: {requests: {storage: 1200Gi}}\n",
        );
        // The baselines of the simulated instance stand for those of the real one: its programs have the same model.
        let measured = fs::read_to_string(root().join("baselines/sim-p5.toml")).expect("baselines");
        project.write(
            "baselines/p5.toml",
            &measured.replace("instance = \"sim-p5\"\nsimulated = true\n", "instance = \"p5\"\n"),
        );
        Cluster { project, programs }
    }

    fn manifest(&self, kind: &str, what: &[&str]) -> Ran {
        self.project.harness(&[&["manifest", "--inventory", "pods", "--as", kind], what].concat())
    }

    fn attach(&self, what: &[&str], folder: &Path) -> Ran {
        let folder = folder.display().to_string();
        self.project.harness(&[&["run", "--inventory", "pods", "--attach", &folder], what].concat())
    }

    /// What the pods of a manifest leave, each on its node: the folder of the job, and how each of them ended.
    fn run(&self, manifest: &str, nodes: &[&str]) -> (PathBuf, Vec<Output>) {
        let (folder, pods) = self.start(manifest, nodes);
        (folder, pods.into_iter().map(|pod| pod.wait_with_output().expect("it ends")).collect())
    }

    /// The same while they run.
    fn start(&self, manifest: &str, nodes: &[&str]) -> (PathBuf, Vec<Child>) {
        let files = self.project.path().join("files");
        write_files(manifest, &files);
        let words = command(manifest);
        let index = words.last().expect("an index").clone();
        let start = |(at, node): (usize, &&str)| {
            let mut pod = self.programs.command(&words[0]);
            pod.arg(files.join("pod.sh")).args(&words[2..]).stdout(Stdio::piped()).stderr(Stdio::piped());
            pod.env("HARNESS_POD_NODE", node).env("HARNESS_POD_NAME", format!("pod-{at}"));
            pod.env("HARNESS_POD_IP", format!("10.0.0.{at}")).env("HARNESS_POD_GRACE_S", "2");
            pod.env("HARNESS_POD_HOSTS", self.project.path().join(format!("hosts.{at}")));
            // What operators set, and what has no say in the plan.
            pod.env("WORLD_SIZE", "16").env("PET_NNODES", "7").env("MASTER_ADDR", "nowhere");
            if index != "any" {
                pod.env(&index, at.to_string());
            }
            pod.spawn().expect("it starts")
        };
        let pods = nodes.iter().enumerate().map(start).collect();
        (Path::new(&words[2]).parent().expect("the folder of the job").to_owned(), pods)
    }

    /// Two pods of a shell's line, which is given its node; the first is asked to end once there is such a file. The folder
    /// of the job, how it was judged, and what is recorded of it.
    fn ask_first_to_end(&self, line: &str, file: &str) -> (PathBuf, Ran, serde_json::Value) {
        self.project.write(
            "suites/own.toml",
            &format!(
                "instance = \"p5\"\nabout = \"own\"\n[[case]]\nname = \"own\"\nplacement = \"all\"\nlimit_s = 60\n\
                 workload = {{ kind = \"command\", program = \"bash\", args = [\"-c\", '{line}'] }}\n\
                 recipes = [\"command\"]\n[[case.assert]]\nmetric = \"command.exit_code\"\nequals = 0\n",
            ),
        );
        let what = ["--suite", "own", "--case", "own"];
        let manifest = self.manifest("job", &what);
        let (folder, pods) = self.start(&manifest.stdout, &["n1", "n2"]);
        let awaited = folder.join("own").join(file);
        for _ in 0..300 {
            if awaited.exists() {
                break;
            }
            thread::sleep(Duration::from_millis(100));
        }
        assert!(awaited.exists(), "{file}");
        let asked = Command::new("kill").args(["-TERM", &pods[0].id().to_string()]).status().expect("kill");
        assert!(asked.success());
        let ended: Vec<Output> =
            pods.into_iter().map(|pod| pod.wait_with_output().expect("it ends")).collect();
        assert!(ended.iter().all(|pod| !pod.status.success()), "{}", logs(&ended));
        let ran = self.attach(&what, &folder);
        let job = self.project.json("cases/own/job.json")["jobs"][0].clone();
        (folder, ran, job)
    }

    fn text(&self, name: &str) -> String {
        fs::read_to_string(self.project.path().join(name)).unwrap_or_default()
    }
}

/// The command of the first container.
fn command(manifest: &str) -> Vec<String> {
    let lines = manifest.lines().skip_while(|line| line.trim() != "command:").skip(1);
    let words = lines.map_while(|line| line.trim().strip_prefix("- "));
    words.map(|word| word.trim_matches('"').to_owned()).collect()
}

/// The files of the ConfigMap as the kubelet would put them.
fn write_files(manifest: &str, folder: &Path) {
    let data = manifest.split_once("\ndata:\n").expect("a ConfigMap").1;
    let mut files: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    let mut key = "";
    for line in data.lines() {
        match line.strip_prefix("    ") {
            Some(text) => files.entry(key).or_default().push(text),
            None if line.is_empty() => files.entry(key).or_default().push(""),
            None => {
                let (name, value) = line.trim().split_once(": ").expect("a key");
                key = name;
                let texts = files.entry(key).or_default();
                if !value.starts_with('|') {
                    let text: String = serde_json::from_str(value).expect("JSON");
                    texts.push(text.leak());
                }
            }
        }
    }
    fs::create_dir_all(folder).expect("made");
    for (name, lines) in files {
        fs::write(folder.join(name), lines.join("\n") + "\n").expect("written");
    }
}

fn all(ran: &Ran) -> String {
    format!("{:?}\n{}{}", ran.code, ran.stdout, ran.stderr)
}

fn logs(ended: &[Output]) -> String {
    ended.iter().map(|pod| format!("{}: {}\n", pod.status, String::from_utf8_lossy(&pod.stderr))).collect()
}

/// A copy of what pods left, for a test to damage.
fn copy_of(folder: &Path, name: &str) -> PathBuf {
    let copy = folder.parent().expect("above").join(name);
    let copied = Command::new("cp").arg("-a").arg(folder).arg(&copy).status().expect("cp");
    assert!(copied.success());
    copy
}

#[test]
fn every_kind_passes_the_linter_without_a_finding() {
    let cluster = Cluster::new("n[1-3]", &[]);
    for kind in KINDS {
        let what = if kind == "mpijob" { MPI } else { TORCH };
        let ran = cluster.manifest(kind, &[&what[..], &["--output", "job.yaml"]].concat());
        assert_eq!(ran.code, Some(0), "{kind}: {}", all(&ran));
        let linted = cluster.project.harness(&["lint", "manifest", "job.yaml", "claim.yaml"]);
        assert_eq!(
            (linted.code, linted.stdout.as_str()),
            (Some(0), "2 files: 0 errors, 0 warnings, 0 notes\n"),
            "{kind}"
        );
        let objects = cluster.text("job.yaml");
        let objects = objects.split("---\napiVersion: v1\n").next().expect("objects");
        let shared = cluster.project.path().join("shared").display().to_string();
        insta::assert_snapshot!(format!("manifest_{kind}"), objects.replace(&shared, "/fsx/harness"));
    }
}

#[test]
fn pods_of_an_mpijob_and_of_an_indexed_job_are_judged_as_the_run_that_they_are() {
    let cluster = Cluster::new("n[1-3]", &[]);
    for kind in ["mpijob", "job"] {
        let manifest = cluster.manifest(kind, &[&MPI[..], &["--nodes", "2", "--name", kind]].concat());
        assert_eq!(manifest.code, Some(0), "{}", all(&manifest));
        // The first container of an MPIJob is its launcher, which waits; its workers are numbered by a label.
        let text = manifest.stdout.replacen("- wait\n", "- HARNESS_POD_INDEX\n", 1);
        // Kubernetes chose two of three nodes, in another order than that of their names.
        let (folder, ended) = cluster.run(&text, &["n3", "n1"]);
        assert!(ended.iter().all(|pod| pod.status.success()), "{kind}: {}", logs(&ended));
        let ran = cluster.attach(&MPI, &folder);
        assert_eq!(ran.code, Some(0), "{kind}: {}", all(&ran));
        assert!(ran.stdout.contains("coverage: nodes 2/2"), "{kind}: {}", all(&ran));
        assert_eq!(cluster.text("hosts.0"), "10.0.0.1 n1\n10.0.0.0 n3\n");
        let plan = cluster.project.json("plan.json");
        assert_eq!(plan["cases"][0]["jobs"][0]["nodes"], serde_json::json!(["n1", "n3"]));
        // An attempt that was ended on its way is made again; a run that was judged is none.
        fs::remove_file(cluster.project.latest().join("summary.json")).expect("removed");
        assert_eq!(cluster.attach(&MPI, &folder).code, Some(0));
        // Whoever attaches it again gets no second set of numbers.
        let again = cluster.attach(&MPI, &folder);
        assert!(
            again.code == Some(3) && again.stderr.contains("it was judged already, as run "),
            "{}",
            all(&again)
        );
    }
    assert_eq!(cluster.project.harness(&["clean", "--all"]).code, Some(0));
}

#[test]
fn pods_run_the_script_of_the_plan() {
    // Every line that the pods ran is one of the plan, but for the folder and the order of the nodes.
    let cluster = Cluster::new("n[1-2]", &[]);
    let manifest = cluster.manifest("job", &MPI);
    let (folder, ended) = cluster.run(&manifest.stdout, &["n1", "n2"]);
    assert!(ended.iter().all(|pod| pod.status.success()), "{}", logs(&ended));
    let ran = cluster.project.harness(&[&["plan", "--inventory", "pods", "-v"], &MPI[..]].concat());
    let script = fs::read_to_string(folder.join("all-all_gather/all/job.sh")).expect("a script");
    let name = folder.file_name().and_then(|name| name.to_str()).expect("a name");
    let is_of_plan = |line: &&str| !line.contains(name) && !line.starts_with("# nodes ");
    for line in script.lines().filter(is_of_plan) {
        assert!(ran.stdout.contains(line), "{line}\n{}", ran.stdout);
    }
}

#[test]
fn training_pods_find_their_number_where_each_operator_has_it() {
    let cluster = Cluster::new("n[1-2]", &[]);
    for kind in ["pytorchjob", "trainjob", "jobset", "hyperpod-pytorchjob"] {
        let manifest = cluster.manifest(kind, &[&TRAINING[..], &["--name", kind]].concat());
        let (folder, ended) = cluster.run(&manifest.stdout, &["n2", "n1"]);
        assert!(ended.iter().all(|pod| pod.status.success()), "{kind}: {}", logs(&ended));
        let ran = cluster.attach(&TRAINING, &folder);
        assert_eq!(ran.code, Some(0), "{kind}: {}", all(&ran));
        assert!(ran.stdout.contains("coverage: nodes 2/2"), "{kind}: {}", all(&ran));
    }
}

#[test]
fn a_slow_gpu_fails_a_training_and_names_the_node_that_kubernetes_chose() {
    let cluster = Cluster::new("n[1-3]", &["n3:gpu-slow=0.5@3"]);
    let manifest = cluster.manifest("pytorchjob", &[&TRAINING[..], &["--nodes", "2"]].concat());
    let (folder, ended) = cluster.run(&manifest.stdout, &["n3", "n2"]);
    assert!(ended.iter().all(|pod| pod.status.success()), "{}", logs(&ended));
    let ran = cluster.attach(&TRAINING, &folder);
    assert_eq!(ran.code, Some(1), "{}", all(&ran));
    assert!(ran.stdout.contains("culprit n3 gpu3: rank 11: "), "{}", all(&ran));
}

#[test]
fn a_dead_nic_fails_a_collective_and_names_the_node_that_kubernetes_chose() {
    let cluster = Cluster::new("n[1-3]", &["n3:nic-dead@rdmap113s0"]);
    let manifest = cluster.manifest("job", &MPI);
    let (folder, ended) = cluster.run(&manifest.stdout, &["n2", "n3", "n1"]);
    assert!(ended.iter().all(|pod| pod.status.success()), "{}", logs(&ended));
    let ran = cluster.attach(&MPI, &folder);
    assert_eq!(ran.code, Some(1), "{}", all(&ran));
    let culprits = cluster.project.json("summary.json")["culprits"].to_string();
    assert!(culprits.contains("\"n3\"") && culprits.contains("rdmap113s0"), "{culprits}");
    assert!(!culprits.contains("\"n1\"") && !culprits.contains("\"n2\""), "{culprits}");
}

#[test]
fn a_pod_whose_script_fails_alone_ends_the_others_and_is_blamed() {
    let cluster = Cluster::new("n[1-2]", &[]);
    cluster.project.write(
        "suites/own.toml",
        "instance = \"p5\"\nabout = \"own\"\n[[case]]\nname = \"own\"\nplacement = \"all\"\nlimit_s = 60\n\
         workload = { kind = \"command\", program = \"bash\", args = [\"-c\", \"[ $HARNESS_NODE = n1 ] && exit 3; sleep 50\"] }\n\
         recipes = [\"command\"]\n[[case.assert]]\nmetric = \"command.exit_code\"\nequals = 0\n",
    );
    let what = ["--suite", "own", "--case", "own"];
    let manifest = cluster.manifest("jobset", &what);
    let (folder, ended) = cluster.run(&manifest.stdout, &["n1", "n2"]);
    assert_eq!(ended[0].status.code(), Some(3), "{}", logs(&ended));
    assert!(!ended[1].status.success(), "{}", logs(&ended));
    let end = fs::read_to_string(folder.join("own/_pods/ended.all.1")).expect("an end");
    assert!(end.contains(" peer "), "{end}");
    let ran = cluster.attach(&what, &folder);
    assert!(ran.code == Some(1) || ran.code == Some(3), "{}", all(&ran));
    let jobs = cluster.project.json("cases/own/job.json")["jobs"][0].to_string();
    assert!(jobs.contains("\"node\":\"n1\"") && !jobs.contains("\"node\":\"n2\""), "{jobs}");
}

#[test]
fn a_pod_that_is_evicted_leaves_a_cancelled_job_and_its_peer_is_not_blamed() {
    let cluster = Cluster::new("n[1-2]", &[]);
    // The peer fails since the first is gone.
    let line = "if [ $HARNESS_NODE = n1 ]; then setsid sleep 600 & echo $! > stray; : > up; exec sleep 50; fi; \
                until [ -e ../_pods/ended.all.0 ]; do sleep 0.2; done; exit 1";
    let (folder, ran, job) = cluster.ask_first_to_end(line, "all/up");
    let end = |at: u32| fs::read_to_string(folder.join(format!("own/_pods/ended.all.{at}"))).expect("an end");
    assert!(end(0).contains(" asked ") && end(1).starts_with("1 itself "), "{}{}", end(0), end(1));
    // What left the session of the script is ended with it.
    let stray = fs::read_to_string(folder.join("own/all/stray")).expect("a number");
    let state = fs::read_to_string(format!("/proc/{}/stat", stray.trim())).unwrap_or_default();
    assert!(state.is_empty() || state.contains(") Z "), "{state}");
    assert_eq!(ran.code, Some(3), "{}", all(&ran));
    assert!(job["end"].to_string().contains("cancelled"), "{job}");
    assert!(job.get("blamed").is_none_or(serde_json::Value::is_null), "{job}");
    assert!(!ran.stdout.contains("culprit") && !ran.stdout.contains("suspect"), "{}", all(&ran));
}

#[test]
fn a_failure_that_a_pod_saw_before_it_was_to_end_stays_that_of_its_peer() {
    let cluster = Cluster::new("n[1-2]", &[]);
    let line = "if [ $HARNESS_NODE = n1 ]; then : > up; exec sleep 50; fi; \
                until [ -e up ]; do sleep 0.2; done; exit 3";
    let (folder, ran, job) = cluster.ask_first_to_end(line, "_pods/ended.all.1");
    let end = fs::read_to_string(folder.join("own/_pods/ended.all.0")).expect("an end");
    assert!(end.contains(" peer "), "{end}");
    assert!(ran.code == Some(1) || ran.code == Some(3), "{}", all(&ran));
    assert_eq!(job["blamed"]["node"], "n2", "{job}");
}

#[test]
fn jobs_of_one_moment_are_runs_of_their_own() {
    let cluster = Cluster::new("n[1-2]", &[]);
    let what = ["--suite", "own", "--case", "own"];
    cluster.project.write(
        "suites/own.toml",
        "instance = \"p5\"\nabout = \"own\"\n[[case]]\nname = \"own\"\nplacement = \"all\"\nlimit_s = 60\n\
         workload = { kind = \"command\", program = \"true\" }\n\
         recipes = [\"command\"]\n[[case.assert]]\nmetric = \"command.exit_code\"\nequals = 0\n",
    );
    let mut folders = Vec::new();
    for name in ["one", "two"] {
        let manifest = cluster.manifest("job", &[&what[..], &["--name", name]].concat());
        let (folder, ended) = cluster.run(&manifest.stdout, &["n1", "n2"]);
        assert!(ended.iter().all(|pod| pod.status.success()), "{}", logs(&ended));
        for at in 0..2 {
            put(&folder.join(format!("own/_pods/ended.all.{at}")), "0 itself 1790000000 1790000009\n");
        }
        folders.push(folder);
    }
    for folder in &folders {
        let ran = cluster.attach(&what, folder);
        assert_eq!(ran.code, Some(0), "{}", all(&ran));
    }
    // What another has under the id of a run is neither taken for it nor removed.
    let latest = cluster.project.latest();
    fs::remove_file(latest.join("summary.json")).expect("removed");
    let plan = fs::read_to_string(latest.join("plan.json")).expect("a plan");
    put(&latest.join("plan.json"), &plan.replace("/two/", "/three/"));
    let ran = cluster.attach(&what, &folders[1]);
    assert!(ran.code == Some(3) && ran.stderr.contains("is there and of another"), "{}", all(&ran));
    assert!(latest.join("plan.json").exists());
    // Nothing ends in days to come.
    put(&folders[0].join("own/_pods/ended.all.0"), "0 itself 1790000000 4090000000\n");
    let ran = cluster.attach(&what, &folders[0]);
    assert!(ran.code == Some(3) && ran.stderr.contains("is no end of a job"), "{}", all(&ran));
    let ran = cluster.manifest("job", &[&what[..], &["--output", "nowhere/job.yaml"]].concat());
    assert!(ran.code == Some(3) && ran.stderr.contains("no such folder"), "{}", all(&ran));
    assert!(!cluster.project.path().join("nowhere").exists());
}

/// What is wrong, how it comes about, and what is reported.
type Damage<'a> = (&'a str, &'a dyn Fn(&Path), &'a str);

#[test]
fn a_folder_that_is_incomplete_foreign_or_damaged_is_refused_with_the_reason() {
    let cluster = Cluster::new("n[1-2]", &[]);
    let manifest = cluster.manifest("job", &MPI);
    let (folder, ended) = cluster.run(&manifest.stdout, &["n1", "n2"]);
    assert!(ended.iter().all(|pod| pod.status.success()), "{}", logs(&ended));
    let state = "all-all_gather/_pods";
    let name = folder.file_name().and_then(|name| name.to_str()).expect("a name").to_owned();
    let damages: [Damage<'_>; 12] = [
        (
            "a pod never ran",
            &|at| remove(&at.join(state).join("place.1")),
            "pod 1 of 2 left no `_pods/place.1`",
        ),
        (
            "a pod runs still",
            &|at| remove(&at.join(state).join("ended.all.1")),
            "not ended: no `_pods/ended.all.1`",
        ),
        (
            "no pod came",
            &|at| remove(&at.join(state).join("record")),
            "it has no `all-all_gather/_pods/record`",
        ),
        (
            "an end that is none",
            &|at| put(&at.join(state).join("ended.all.0"), "0 itself\n"),
            "is no end of a job",
        ),
        (
            "a node of others",
            &|at| put(&at.join(state).join("place.0"), "node n9\n"),
            "pod 0 was on n9, which is no node",
        ),
        ("one node twice", &|at| put(&at.join(state).join("place.0"), "node n2\n"), "two pods were on n2"),
        ("a node that is none", &|at| put(&at.join(state).join("place.0"), "node ../n1\n"), "names no node"),
        (
            "another plan",
            &|at| edit(&at.join(state).join("record"), "\"digest\":\"", "\"digest\":\"0"),
            "was rendered from another plan",
        ),
        (
            "more pods",
            &|at| edit(&at.join(state).join("record"), "\"pods\":2", "\"pods\":3"),
            "3 pods, and 2 nodes for them",
        ),
        (
            "another version",
            &|at| edit(&at.join(state).join("record"), "\"harness\":\"", "\"harness\":\"9."),
            "rendered by harness 9.",
        ),
        (
            "another script",
            &|at| edit(&at.join("all-all_gather/all/job.sh"), "all_gather_perf", "all_reduce_perf"),
            "`job.sh` of all is not the one of the plan",
        ),
        (
            "a record that is a link",
            &|at| {
                fs::rename(at.join(state).join("place.0"), at.join("elsewhere")).expect("moved");
                symlink(at.join("elsewhere"), at.join(state).join("place.0")).expect("linked");
            },
            "it is a symbolic link",
        ),
    ];
    for (at, (what, damage, why)) in damages.into_iter().enumerate() {
        let copy = copy_of(&folder, &format!("copy-{at}"));
        damage(&copy);
        let ran = cluster.attach(&MPI, &copy);
        assert!(ran.code == Some(3) && ran.stderr.contains(why), "{what}: {}", all(&ran));
        assert!(!cluster.project.path().join("runs/latest").exists(), "{what}");
    }
    let other = cluster.attach(&["--suite", "nccl-p5", "--case", "all-hypercube"], &folder);
    assert!(other.code == Some(3) && other.stderr.contains("or of another case"), "{}", all(&other));
    let other = cluster.attach(&[&MPI[..4], &["--set", "interval_s=0.4"]].concat(), &folder);
    assert!(other.code == Some(3) && other.stderr.contains("from another plan"), "{}", all(&other));
    let other = cluster.attach(&[&MPI[..], &["--nodes", "n1"]].concat(), &folder);
    assert!(other.code == Some(3) && other.stderr.contains("2 pods, and 1 node for them"), "{}", all(&other));
    // A result that is a link is not followed: it counts as missing.
    let copy = copy_of(&folder, "linked");
    let output = copy.join("all-all_gather/all/stdout");
    fs::rename(&output, copy.join("elsewhere")).expect("moved");
    symlink(copy.join("elsewhere"), &output).expect("linked");
    let ran = cluster.attach(&MPI, &copy);
    assert!(ran.code == Some(3) && cluster.project.reported().contains("symbolic link"), "{}", all(&ran));
    assert!(!cluster.project.json("summary.json")["culprits"].to_string().contains("\"n1\""));
    // The folder itself may be reached by a link of its user, and what it holds by none.
    symlink(&folder, cluster.project.path().join("shortcut")).expect("linked");
    let ran = cluster.attach(&MPI, &cluster.project.path().join("shortcut"));
    assert!(ran.code == Some(3) && ran.stderr.contains("is a link or not a folder"), "{}", all(&ran));
    // What pods leave is not measured over.
    let (_, ended) = cluster.run(&manifest.stdout, &["n1", "n2"]);
    let log = logs(&ended);
    assert!(ended.iter().all(|pod| pod.status.code() == Some(1)), "{log}");
    assert!(log.contains("number 1 is taken: an earlier job was here") && log.contains(&name), "{log}");
}

fn remove(path: &Path) {
    fs::remove_file(path).expect("removed");
}

fn put(path: &Path, text: &str) {
    fs::write(path, text).expect("written");
}

fn edit(path: &Path, from: &str, to: &str) {
    let text = fs::read_to_string(path).expect("text");
    assert!(text.contains(from), "{text}");
    put(path, &text.replacen(from, to, 1));
}

#[test]
fn pods_that_cannot_meet_end_with_the_reason() {
    let cluster = Cluster::new("n[1-2]", &[]);
    let manifest = cluster.manifest("job", &[&MPI[..], &["--name", "one"]].concat()).stdout;
    let (_, ended) = cluster.run(&manifest, &["n1", "n1"]);
    assert!(logs(&ended).contains("pods 0 and 1 are on one node: n1"), "{}", logs(&ended));
    let manifest = cluster.manifest("job", &[&MPI[..], &["--name", "two"]].concat()).stdout;
    let (folder, ended) = cluster.run(&manifest.replace("\"20\"", "\"1\""), &["n1"]);
    let log = logs(&ended);
    assert!(log.contains("after 1 s there is not yet: pod 1 of 2"), "{log}");
    let ran = cluster.attach(&MPI, &folder);
    assert!(
        ran.code == Some(3) && ran.stderr.contains("it has no `all-all_gather/_pods/record`"),
        "{}",
        all(&ran)
    );
}

#[test]
fn a_job_over_its_limit_ends_everywhere_and_names_no_culprit() {
    let cluster = Cluster::new("n[1-2]", &["n2:hang"]);
    let what = [&MPI[..], &["--set", "limit_s=4"]].concat();
    let manifest = cluster.manifest("job", &what);
    let (folder, ended) = cluster.run(&manifest.stdout, &["n1", "n2"]);
    assert!(ended.iter().all(|pod| !pod.status.success()), "{}", logs(&ended));
    let ran = cluster.attach(&what, &folder);
    assert_eq!(ran.code, Some(3), "{}", all(&ran));
    let end = cluster.project.json("cases/all-all_gather/job.json")["jobs"][0]["end"].to_string();
    assert!(end.contains("time-limit") && end.contains("4"), "{end}");
    assert!(!ran.stdout.contains("culprit"), "{}", all(&ran));
}

#[test]
fn what_pods_of_a_manifest_cannot_run_is_refused_by_name() {
    let cluster = Cluster::new("n[1-4]", &[]);
    cluster.project.write(
        "suites/own.toml",
        "instance = \"p5\"\nabout = \"own\"\n[[case]]\nname = \"own\"\nplacement = \"all\"\nlimit_s = 60\n\
         workload = { kind = \"command\", program = \"true\", environment = { WORD = \"env:SECRET_WORD\" } }\n\
         recipes = [\"command\"]\n[[case.assert]]\nmetric = \"command.exit_code\"\nequals = 0\n\
         [[case]]\nname = \"each\"\nplacement = \"each\"\nlimit_s = 60\n\
         workload = { kind = \"command\", program = \"true\" }\n\
         recipes = [\"command\"]\n[[case.assert]]\nmetric = \"command.exit_code\"\nequals = 0\n\
         [[case]]\nname = \"two\"\nplacement = 2\nlimit_s = 60\n\
         workload = { kind = \"command\", program = \"true\" }\n\
         recipes = [\"command\"]\n[[case.assert]]\nmetric = \"command.exit_code\"\nequals = 0\n",
    );
    let mpi = &MPI[..];
    let torch = &TORCH[..];
    let cases: [(&str, Vec<&str>, &str); 17] = [
        (
            "pytorchjob",
            mpi.to_vec(),
            "case `all-all_gather` cannot be a pytorchjob: it is for ranks that torchrun starts; write `--as mpijob`",
        ),
        ("trainjob", mpi.to_vec(), "cannot be a trainjob"),
        ("hyperpod-pytorchjob", mpi.to_vec(), "cannot be a hyperpod-pytorchjob"),
        (
            "mpijob",
            torch.to_vec(),
            "case `all-all_reduce` cannot be an mpijob: an MPIJob is for ranks that mpirun starts",
        ),
        ("job", vec!["--suite", "nccl-p5", "--case", "pair-all_reduce"], "names its jobs by their nodes"),
        (
            "job",
            vec!["--suite", "nccl-p5", "--case", "pair-all_reduce", "--nodes", "2"],
            "names its jobs by their nodes",
        ),
        ("job", vec!["--suite", "own", "--case", "each", "--nodes", "1"], "names its jobs by their nodes"),
        ("job", vec!["--suite", "own", "--case", "two"], "has a job on 2 of 4 nodes"),
        ("job", vec!["--suite", "own", "--case", "own"], "is given a secret, `env:SECRET_WORD`"),
        ("job", vec!["--suite", "nccl-p5", "--case", "all-all_gathr"], "no case to render"),
        ("job", [mpi, &["--nodes", "5"]].concat(), "5 pods, and 4 nodes for them"),
        ("job", [mpi, &["--among", "n9"]].concat(), "n9"),
        ("job", [mpi, &["--claim", "A/../b"]].concat(), "--claim: not a name of a claim: `A/../b`"),
        ("job", [mpi, &["--name", "A/b"]].concat(), "--name: not a name of a job: `A/b`"),
        ("job", [mpi, &["--inventory", "default"]].concat(), "a manifest needs `[reach]`"),
        ("injector-values", torch.to_vec(), "case `all-all_reduce` has no profiler"),
        ("daemonset", mpi.to_vec(), "invalid value"),
    ];
    for (kind, what, why) in cases {
        let twice = what.contains(&"--inventory");
        let ran = match twice {
            true => cluster.project.harness(&[&["manifest", "--as", kind], &what[..]].concat()),
            false => cluster.manifest(kind, &what),
        };
        assert!(ran.code == Some(2) && ran.stderr.contains(why), "{kind} {what:?}: {}", all(&ran));
    }
}

#[test]
fn values_have_the_switches_of_the_case_and_no_finding_of_the_linter() {
    let cluster = Cluster::new("n[1-2]", &[]);
    cluster.project.write(
        "suites/own.toml",
        "instance = \"p5\"\nabout = \"own\"\n[[case]]\nname = \"own\"\nplacement = \"all\"\nlimit_s = 600\n\
         workload = { kind = \"torchrun\", script = \"/opt/train.py\" }\nprofile = { delay_s = 30, duration_s = 60 }\n\
         recipes = [\"cuda_gpu_kern_sum\"]\n[[case.assert]]\nmetric = \"kernel.class_share\"\nclass = \"nccl\"\nat_most = \"50 %\"\n",
    );
    for kind in ["nsight-operator-values", "injector-values"] {
        let ran = cluster.manifest(kind, &["--suite", "own", "--case", "own", "--output", "values.yaml"]);
        assert_eq!(ran.code, Some(0), "{}", all(&ran));
        let linted = cluster.project.harness(&["lint", "manifest", "values.yaml", "claim.yaml"]);
        assert_eq!(
            (linted.code, linted.stdout.as_str()),
            (Some(0), "2 files: 0 errors, 0 warnings, 0 notes\n"),
            "{kind}"
        );
        let shared = cluster.project.path().join("shared").display().to_string();
        insta::assert_snapshot!(
            format!("manifest_{kind}"),
            cluster.text("values.yaml").replace(&shared, "/fsx/harness")
        );
    }
}
