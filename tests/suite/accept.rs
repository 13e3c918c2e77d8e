//! `harness accept` on simulated clusters: who is accepted, who is rejected at which stage, and what the certificate holds.
//! The rules by themselves are tested beside them (`harness/verdict/src/accept/tests.rs`).

use crate::project::{Project, Ran, ran};
use serde_json::Value;
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

/// Thirty-two new nodes, and eight that are known to be good.
const DELIVERY: [&str; 4] = ["--nodes", "p5-[033-064]", "--partners", "p5-[001-008]"];
/// Four of each.
const FEW: [&str; 4] = ["--nodes", "p5-[033-036]", "--partners", "p5-[001-004]"];
/// A GPU that the driver does not list, NVLink that is slow, a NIC that is slow.
const THREE: [&str; 6] = [
    "--sim-fault",
    "p5-040:gpu-missing@3",
    "--sim-fault",
    "p5-047:nvlink-slow=0.6",
    "--sim-fault",
    "p5-059:nic-slow=0.4@rdmap113s0",
];

fn accept(project: &Project, out: &str, more: &[&[&str]]) -> Ran {
    let args = ["accept", "--inventory", "sim-64", "--out", out, "--soak", "0"];
    project.harness(&[&args[..], &more.concat()].concat())
}

fn certificate(project: &Project, out: &str) -> Value {
    let path = project.path().join(out).join("acceptance.json");
    let text = fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    serde_json::from_str(&text).expect("JSON")
}

/// The same without what each delivery is called.
fn nameless(project: &Project, out: &str) -> String {
    let certificate = certificate(project, out);
    let id = certificate["delivery"].as_str().expect("an id");
    serde_json::to_string_pretty(&certificate).expect("JSON").replace(id, "ID")
}

fn listed(certificate: &Value, list: &str) -> Vec<(String, String)> {
    let word = |one: &Value, key: &str| one[key].as_str().unwrap_or_default().to_owned();
    let all = certificate[list].as_array().expect("a list").iter();
    all.map(|one| (word(one, "node"), word(one, "stage"))).collect()
}

fn last(ran: &Ran) -> &str {
    ran.stdout.lines().last().unwrap_or_default()
}

/// Of each run of a delivery, in their order: its name, and the nodes that its jobs are on.
fn runs(folder: &Path) -> Vec<(String, BTreeSet<String>)> {
    let entries = fs::read_dir(folder.join("runs")).expect("runs").flatten();
    let mut folders: Vec<PathBuf> =
        entries.map(|entry| entry.path()).filter(|path| !path.is_symlink()).collect();
    folders.sort();
    let of = |path: PathBuf| {
        let text = fs::read_to_string(path.join("plan.json")).expect("a plan");
        let plan: model::artefact::Plan = serde_json::from_str(&text).expect("a plan");
        let nodes = plan.cases.iter().flat_map(|case| &case.jobs).flat_map(|job| job.nodes.clone()).collect();
        (path.file_name().expect("a name").to_string_lossy().into_owned(), nodes)
    };
    folders.into_iter().map(of).collect()
}

fn checked(folder: &Path) -> Ran {
    let sums = ["--check", "--strict", "--quiet", "SHA256SUMS"];
    ran(Command::new("sha256sum").args(sums).current_dir(folder).output().expect("coreutils"))
}

#[test]
fn exactly_the_three_faulty_of_thirty_two_nodes_are_rejected() {
    let project = Project::new();
    let first = accept(&project, "one", &[&DELIVERY, &THREE]);
    assert_eq!(first.code, Some(1), "{}", first.all());
    let reported = certificate(&project, "one");
    let wanted = [("p5-040", "preflight"), ("p5-047", "single node"), ("p5-059", "pairs")];
    let wanted: Vec<(String, String)> = wanted.map(|(a, b)| (a.to_owned(), b.to_owned())).to_vec();
    assert_eq!(listed(&reported, "rejected"), wanted, "{}", first.all());
    assert_eq!(
        (reported["accepted"].as_array().map(Vec::len), listed(&reported, "undecided").len()),
        (Some(29), 0)
    );
    for line in [
        "rejected at preflight: HRN-NODE-PART-MISSING reboot p5-040 node: nvidia-smi lists 7 GPUs",
        "rejected at single node: HRN-NVLINK-SLOW reset p5-047 nvlink: ",
        "rejected at pairs: HRN-NIC-SLOW replace p5-059 rdmap113s0: 4.8 GB/s with p5-00",
        "SIMULATED: ",
        "expected: runs 4 to ",
    ] {
        assert!(first.stdout.contains(line), "{line} {}", first.all());
    }
    let hours = reported["node_hours"].as_f64().expect("node-hours");
    assert!(
        hours > 1.0 && last(&first).ends_with(&format!("node-hours {hours:.2} (exit 1)")),
        "{}",
        last(&first)
    );
    // Whoever has failed costs nothing any more.
    let of_runs = runs(&project.path().join("one"));
    assert_eq!(of_runs.len(), 4, "{of_runs:?}");
    for (node, after) in [("p5-040", "-00-"), ("p5-047", "-01-single"), ("p5-059", "-02-pairs")] {
        for (name, nodes) in &of_runs {
            let is_after = name.rsplit("-p5-").next().map(|rest| &rest[4..]) > Some(after);
            assert!(!(is_after && nodes.contains(node)), "{node} after {after}: {name}");
        }
    }
    // What is sealed stays as it is, or that is seen.
    let folder = project.path().join("one");
    assert_eq!(checked(&folder).code, Some(0));
    let verdict = folder.join("runs").join(&of_runs[1].0).join("cases/nic-pairs/verdict.json");
    let mut bytes = fs::read(&verdict).expect("read");
    bytes[100] ^= 1;
    fs::write(&verdict, bytes).expect("written");
    let changed = checked(&folder);
    assert!(
        changed.code == Some(1) && changed.stdout.contains("cases/nic-pairs/verdict.json"),
        "{}",
        changed.all()
    );
}

#[test]
fn the_same_seed_gives_the_same_certificate() {
    let project = Project::new();
    for out in ["one", "two"] {
        let ran = accept(&project, out, &[&FEW, &["--sim-fault", "p5-035:nvlink-slow=0.6"]]);
        assert_eq!(ran.code, Some(1), "{}", ran.all());
    }
    assert_eq!(nameless(&project, "one"), nameless(&project, "two"));
}

#[test]
fn thirty_two_healthy_nodes_are_accepted_and_the_certificate_says_by_which_limits() {
    let project = Project::new();
    let healthy = accept(&project, "out", &[&DELIVERY]);
    assert_eq!(healthy.code, Some(0), "{}", healthy.all());
    assert!(
        last(&healthy).starts_with("accepted 32, rejected 0, not decided 0, runs 4, "),
        "{}",
        last(&healthy)
    );
    let reported = certificate(&project, "out");
    let limits = reported["limits"].as_array().expect("limits");
    let stages: BTreeSet<&str> = limits.iter().filter_map(|limit| limit["stage"].as_str()).collect();
    assert_eq!(stages, BTreeSet::from(["single node", "pairs", "groups", "all"]));
    for limit in limits {
        let state = limit["state"].as_str().expect("a state");
        assert!(
            ["accepted", "stated", "peers"].contains(&state) && limit["failed"] == 0 && limit["open"] == 0,
            "{limit}"
        );
        assert!(
            limit["passed"].as_u64() > Some(0) && !limit["source"].as_str().expect("a source").is_empty(),
            "{limit}"
        );
    }
    let markdown = fs::read_to_string(project.path().join("out/acceptance.md")).expect("read");
    for part in [
        "**SIMULATED: ",
        "| accepted | 32: p5-[033-064] |",
        "| compared with | p5-[001-008], which were named as known to be good |",
        "| all | all-all_gather | busbw/8GiB | ",
        "sim-p5 nccl.busbw all_gather, 8GiB, 32 nodes, 256 ranks",
        "| driver | 570.133.20-SIMULATED | p5-[033-064] |",
        "## What was not measured",
    ] {
        assert!(markdown.contains(part), "{part}: {markdown}");
    }
    // Each is an ordinary run.
    let run = fs::read_link(project.path().join("out/runs/latest")).expect("a link");
    let run = project.path().join("out/runs").join(run).display().to_string();
    let judged = project.harness(&["--run", &run, "--from", "judge", "-q"]);
    assert_eq!(judged.code, Some(0), "{}", judged.all());
}

#[test]
fn what_could_not_be_determined_is_never_accepted() {
    let project = Project::new();
    let garbled = accept(&project, "garbled", &[&FEW, &["--sim-fault", "p5-034:garbled"]]);
    assert_eq!(garbled.code, Some(3), "{}", garbled.all());
    let reported = certificate(&project, "garbled");
    assert_eq!(
        listed(&reported, "undecided"),
        [("p5-034".to_owned(), "single node".to_owned())],
        "{}",
        garbled.all()
    );
    assert_eq!(reported["accepted"].as_array().map(Vec::len), Some(3), "{}", garbled.all());
    // Without any baseline peers decide, up to the one group of four: nothing judges its NICs.
    project.write("baselines/sim-p5.toml", "instance = \"sim-p5\"\nsimulated = true\n");
    let bare = accept(&project, "bare", &[&FEW]);
    assert_eq!(bare.code, Some(3), "{}", bare.all());
    assert!(last(&bare).starts_with("accepted 0, rejected 0, not decided 4, runs 3, "), "{}", bare.all());
}

/// Its one case needs no GPU and passes; whether the node has any was not read, nor their ECC errors.
#[test]
fn a_node_whose_gpus_could_not_be_read_is_not_accepted_by_a_suite_that_needs_none() {
    let project = Project::new();
    let folder = project.path().display();
    project.write(
        "inventory/here.toml",
        &format!(
            "kind = \"real\"\ninstance = \"p5\"\nnodes = \"here\"\nreach = {{ via = \"local\" }}\n\
             paths = {{ shared = \"{folder}/shared\", counters = \"{folder}/none\" }}\n"
        ),
    );
    project.write(
        "suites/new.toml",
        "instance = \"p5\"\nabout = \"new nodes\"\n[[case]]\nname = \"starts\"\nplacement = \"each\"\n\
         workload = { kind = \"command\", program = \"true\" }\nrecipes = [\"command\"]\n\
         [[case.assert]]\nmetric = \"command.exit_code\"\nequals = 0\n",
    );
    let words = ["accept", "--suite", "new", "--inventory", "here", "--nodes", "here", "--partners", "none"];
    let mut command = project.command(&[&words[..], &["--out", "out"]].concat());
    let ran = ran(command.env("PATH", project.programs_but("nvidia-smi")).output().expect("starts"));
    assert_eq!(ran.code, Some(3), "{}", ran.all());
    assert!(last(&ran).starts_with("accepted 0, rejected 0, not decided 1, runs 0, "), "{}", ran.all());
    let reported = certificate(&project, "out");
    assert_eq!(
        listed(&reported, "undecided"),
        [("here".to_owned(), "preflight".to_owned())],
        "{}",
        ran.all()
    );
    let why = "not decided at preflight: here: its GPUs could not be read: no nvidia-smi on PATH";
    assert!(ran.stdout.contains(why), "{}", ran.all());
}

#[test]
fn a_budget_is_kept_and_a_delivery_goes_on_with_a_larger_one() {
    let project = Project::new();
    let poor = accept(&project, "out", &[&FEW, &["--budget", "1.2"]]);
    assert_eq!(poor.code, Some(3), "{}", poor.all());
    assert!(
        poor.stdout.contains("not decided at pairs: p5-[033-036]: the next run needs about "),
        "{}",
        poor.all()
    );
    assert!(certificate(&project, "out")["node_hours"].as_f64() <= Some(1.2));
    let rich = project.harness(&["accept", "--resume", "out", "--budget", "9"]);
    assert_eq!(rich.code, Some(0), "{}", rich.all());
    assert!(last(&rich).starts_with("accepted 4, rejected 0, not decided 0, runs 4, "), "{}", last(&rich));
    assert_eq!(checked(&project.path().join("out")).code, Some(0));
}

fn ended_run(runs: &Path, name: &str) -> PathBuf {
    let mut entries = fs::read_dir(runs).expect("runs").map(|entry| entry.expect("an entry").path());
    entries.find(|path| path.to_string_lossy().ends_with(name)).expect("the run that was ended")
}

/// Gives each job of a stored plan an estimate that no new plan has; the event of a submitted job repeats it.
fn mark_estimates(path: &Path) {
    let mut plan: Value = serde_json::from_slice(&fs::read(path).expect("a plan")).expect("JSON");
    for case in plan["cases"].as_array_mut().expect("cases") {
        for job in case["jobs"].as_array_mut().expect("jobs") {
            job["estimate_s"] = 4711.into();
        }
    }
    fs::write(path, plan.to_string()).expect("written");
}

#[test]
fn a_delivery_whose_process_is_killed_goes_on_and_comes_to_the_same() {
    let project = Project::new();
    let fault = ["--sim-fault", "p5-034:nic-slow=0.4@rdmap113s0"];
    let whole = accept(&project, "whole", &[&FEW, &fault]);
    assert_eq!(whole.code, Some(1), "{}", whole.all());
    let args =
        [&["accept", "--inventory", "sim-64", "--out", "killed", "--soak", "0"][..], &FEW, &fault].concat();
    let mut child = project.command(&args).stdout(std::process::Stdio::null()).spawn().expect("started");
    let is_there = |name: &str| {
        let entries = fs::read_dir(project.path().join("killed/runs")).into_iter().flatten().flatten();
        entries
            .map(|entry| entry.path())
            .any(|path| path.to_string_lossy().ends_with(name) && path.join("events.jsonl").exists())
    };
    while !is_there("-02-pairs") && child.try_wait().expect("waited").is_none() {
        std::thread::sleep(Duration::from_millis(5));
    }
    child.kill().expect("killed");
    child.wait().expect("gone");
    assert!(!project.path().join("killed/acceptance.json").exists(), "it had ended before");
    let pairs = ended_run(&project.path().join("killed/runs"), "-02-pairs");
    mark_estimates(&pairs.join("plan.json"));
    let resumed = project.harness(&["accept", "--resume", "killed"]);
    assert_eq!(resumed.code, Some(1), "{}", resumed.all());
    let events = fs::read_to_string(pairs.join("events.jsonl")).expect("events");
    assert!(events.contains("\"estimate_s\":4711"), "jobs are started by the stored plan: {events}");
    // But for how long the run took that was gone on with.
    let but_for_time = |out: &str| {
        let text = nameless(&project, out);
        let is_time = |line: &&str| {
            ["node_hours", "seconds", "ended", "planned_s"].iter().any(|word| line.contains(word))
        };
        text.lines().filter(|line| !is_time(line)).map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(but_for_time("killed"), but_for_time("whole"));
    assert_eq!(checked(&project.path().join("killed")).code, Some(0));
    // Where files were changed meanwhile nothing of it fits together.
    project.write(
        "inventory/sim-64.toml",
        "kind = \"simulated\"\ninstance = \"sim-p5\"\nnodes = \"p5-[001-064]\"\n\n[reach]\nvia = \"slurm\"\n",
    );
    let changed = project.harness(&["accept", "--resume", "killed"]);
    assert!(changed.code == Some(3) && changed.stderr.contains("were changed since"), "{}", changed.all());
}

#[test]
fn a_partner_that_is_bad_itself_is_withdrawn_and_costs_no_new_node_its_place() {
    let project = Project::new();
    let ran = accept(
        &project,
        "out",
        &[&DELIVERY[..2], &["--partners", "p5-[001-004]", "--sim-fault", "p5-003:port-slow=0.5"]],
    );
    let reported = certificate(&project, "out");
    let withdrawn: Vec<&str> = reported["withdrawn"]
        .as_array()
        .expect("a list")
        .iter()
        .filter_map(|one| one["node"].as_str())
        .collect();
    assert_eq!(withdrawn, ["p5-003"], "{}", ran.all());
    assert_eq!(
        (ran.code, reported["accepted"].as_array().map(Vec::len)),
        (Some(0), Some(32)),
        "{}",
        ran.all()
    );
}

#[test]
fn new_nodes_without_partners_are_compared_with_each_other_and_the_bad_one_is_distinguished() {
    let project = Project::new();
    let args = ["--nodes", "p5-[033-040]", "--partners", "none", "--sim-fault", "p5-036:port-slow=0.5"];
    let ran = accept(&project, "out", &[&args]);
    assert_eq!(ran.code, Some(1), "{}", ran.all());
    let reported = certificate(&project, "out");
    assert_eq!(listed(&reported, "rejected"), [("p5-036".to_owned(), "pairs".to_owned())], "{}", ran.all());
    assert!(
        ran.stdout.contains("HRN-PORT-SLOW reboot p5-036 fabric: all 32 NICs at 6.0 GB/s"),
        "{}",
        ran.all()
    );
    // There are numbers for eight and for four at once, and none for seven.
    assert_eq!(reported["accepted"].as_array().map(Vec::len), Some(7), "{}", ran.all());
    assert!(
        ran.stdout.contains("not measured: all 7 at once: `all-all_gather` was run on 4 at a time"),
        "{}",
        ran.all()
    );
}

#[test]
fn a_slow_way_between_nodes_rejects_none_of_them_and_accepts_none() {
    let project = Project::new();
    let args = ["--nodes", "p5-[033-036,057-060]", "--partners", "p5-[001-008]"];
    let ran = accept(&project, "out", &[&args, &["--sim-fault", "p5-033:link-slow=0.5@p5-057"]]);
    assert_eq!(ran.code, Some(3), "{}", ran.all());
    let line = "not decided at all: p5-[033-036,057-060]: no node is named, but HRN-LINK-SLOW watch ";
    assert!(ran.stdout.contains(line), "{}", ran.all());
    assert!(last(&ran).starts_with("accepted 0, rejected 0, not decided 8, "), "{}", last(&ran));
}

#[test]
fn a_copy_for_the_vendor_names_no_node_or_person() {
    let project = Project::new();
    let inventory = "kind = \"simulated\"\ninstance = \"sim-p5\"\nnodes = \"ACME-east-h[001-012]\"\n\n[groups]\n\
                     hall-seven = \"ACME-east-h[001-006]\"\nhall-eight = \"ACME-east-h[007-012]\"\n\n[reach]\nvia = \"slurm\"\n\
                     partition = \"secret-queue\"\naccount = \"project-blue\"\n\n[paths]\nshared = \"/fsx/jdoe/harness\"\n";
    project.write("inventory/acme-prod.toml", inventory);
    let args = [
        "accept",
        "--inventory",
        "acme-prod",
        "--out",
        "out",
        "--nodes",
        "ACME-east-h[009-012]",
        "--soak",
        "0",
        "--partners",
        "ACME-east-h[001-004]",
        "--sanitise",
        "--sim-fault",
        "ACME-east-h010:nic-slow=0.4@rdmap113s0",
    ];
    let mut command = project.command(&args);
    command.env("USER", "jdoe").env("HOME", "/home/jdoe");
    let ran = ran(command.output().expect("started"));
    assert_eq!(ran.code, Some(1), "{}", ran.all());
    let vendor = project.path().join("out/vendor");
    let markdown = fs::read_to_string(vendor.join("acceptance.md")).expect("read");
    assert!(markdown.contains("| rejected | 1: node-010 |") && markdown.contains("rdmap113s0"), "{markdown}");
    let planted =
        ["acme", "jdoe", "hall-seven", "hall-eight", "secret-queue", "project-blue", "/fsx", "10.0.0.1"];
    let own = project.path().display().to_string();
    // The numbers of the hardware are in the certificate, and not in the copy.
    let hardware = certificate(&project, "out")["hardware"].clone();
    let one = &hardware[0];
    assert_eq!((hardware.as_array().map(Vec::len), one["node"].as_str()), (Some(4), Some("ACME-east-h009")));
    assert_eq!(
        (one["gpus"].as_array().map(Vec::len), one["nics"].as_array().map(Vec::len)),
        (Some(8), Some(32))
    );
    let gpu = one["gpus"][3].as_str().and_then(|row| row.strip_prefix("gpu3 ")).expect("a GPU").to_owned();
    let (uuid, serial) = gpu.split_once(' ').expect("two numbers");
    let guid = one["nics"][0].as_str().and_then(|row| row.split(' ').nth(1)).expect("a GUID");
    let numbers = [one["machine"].as_str().expect("an id"), uuid, serial, guid];
    let planted: Vec<&str> = planted.into_iter().chain(numbers).collect();
    let mut texts = 0;
    for file in store::files(&vendor).expect("read") {
        let text = fs::read_to_string(vendor.join(&file)).expect("a text");
        let all = format!("{}\n{text}", file.display()).to_lowercase();
        for word in planted.iter().copied().chain([own.as_str()]) {
            assert!(!all.contains(&word.to_lowercase()), "{word} in {}", file.display());
        }
        texts += 1;
    }
    assert!(texts > 100, "only {texts} files");
    assert_eq!(checked(&vendor).code, Some(0));
    // The delivery itself keeps its names.
    assert!(
        fs::read_to_string(project.path().join("out/acceptance.md"))
            .expect("read")
            .contains("ACME-east-h010")
    );
}

#[test]
fn good_nodes_are_those_that_are_named_or_that_the_last_passing_run_was_on() {
    let project = Project::new();
    let nodes = ["--nodes", "p5-[033-036]"];
    let no_partners = accept(&project, "out", &[&nodes, &["--dry-run"]]);
    assert!(
        no_partners.code == Some(2) && no_partners.stderr.contains("`--partners RANGE`"),
        "{}",
        no_partners.all()
    );
    let passing = [
        "--suite",
        "acceptance-p5",
        "--inventory",
        "sim-64",
        "--nodes",
        "p5-[001-004]",
        "-q",
        "pair-all_gather",
    ];
    assert_eq!(project.harness(&passing).code, Some(0));
    let vouched = accept(&project, "out", &[&nodes, &["--dry-run"]]);
    assert!(vouched.stdout.contains("compared with p5-[001-004], which passed run "), "{}", vouched.all());
    assert!(vouched.code == Some(0) && !project.path().join("out").exists(), "{}", vouched.all());
}

#[test]
fn a_passing_run_that_came_in_a_bundle_vouches_for_no_node() {
    let project = Project::new();
    let passing = ["--suite", "acceptance-p5", "--inventory", "sim-64", "--nodes", "p5-[001-004]", "-q"];
    assert_eq!(project.harness(&[&passing[..], &["pair-all_gather"]].concat()).code, Some(0));
    let bundled = project.harness(&["bundle", "--run", "latest", "--out", "run.tar.gz"]);
    assert_eq!(bundled.code, Some(0), "{}", bundled.all());
    let other = Project::new();
    let file = project.path().join("run.tar.gz").display().to_string();
    let opened = other.harness(&["-q", "--run", &file, "--from", "analyze"]);
    assert_eq!(opened.code, Some(0), "{}", opened.all());
    let accepted = || accept(&other, "out", &[&["--nodes", "p5-[033-036]", "--dry-run"]]);
    let foreign = accepted();
    assert_eq!(foreign.code, Some(2), "{}", foreign.all());
    assert!(foreign.stderr.contains("`--partners RANGE`"), "{}", foreign.all());
    // By that alone: it is a run of these nodes otherwise.
    let run = other.path().join("runs").join(crate::little::id(&project));
    fs::remove_file(run.join("origin")).expect("it is marked");
    let own = accepted();
    assert!(own.stdout.contains("compared with p5-[001-004], which passed run "), "{}", own.all());
}

/// An image with a power limit, or a wrong mount, on most of a delivery.
#[test]
fn disks_that_are_slow_on_most_of_a_delivery_are_not_accepted_by_their_peers() {
    let project = Project::new();
    let mut args: Vec<String> =
        ["accept", "--suite", "deep-p5", "--inventory", "sim-64", "--out", "out", "--partners", "none"]
            .map(str::to_owned)
            .to_vec();
    args.extend(["--nodes", "p5-[033-038]"].map(str::to_owned));
    for node in 33..37 {
        args.extend(["--sim-fault".to_owned(), format!("p5-0{node}:disk-slow=0.5")]);
    }
    let ran = project.harness(&args.iter().map(String::as_str).collect::<Vec<_>>());
    assert_eq!(ran.code, Some(3), "{}", ran.all());
    assert!(last(&ran).starts_with("accepted 2, rejected 0, not decided 4, "), "{}", ran.all());
}

/// One case that needs no fabric, and a simulated cluster of the same name: neither says anything of real nodes.
#[test]
fn runs_that_measured_nothing_between_these_nodes_vouch_for_none() {
    let project = Project::new();
    let nodes = ["--nodes", "p5-[033-036]"];
    project.write(
        "suites/starts.toml",
        "instance = \"p5\"\nabout = \"starts\"\n[[case]]\nname = \"starts\"\nplacement = \"each\"\n\
         workload = { kind = \"command\", program = \"true\" }\nrecipes = [\"command\"]\n\
         [[case.assert]]\nmetric = \"command.exit_code\"\nequals = 0\n",
    );
    let starts = ["--suite", "starts", "--inventory", "sim-64", "--nodes", "p5-[001-004]", "-q"];
    let ran = project.harness(&starts);
    assert_eq!(ran.code, Some(0), "{}", ran.all());
    let refused = |project: &Project| {
        let ran = accept(project, "out", &[&nodes, &["--dry-run"]]);
        assert!(ran.code == Some(2) && ran.stderr.contains("`--partners RANGE`"), "{}", ran.all());
    };
    refused(&project);
    let pairs = ["--suite", "acceptance-p5", "--inventory", "sim-64", "--nodes", "p5-[001-004]", "-q"];
    assert_eq!(project.harness(&[&pairs[..], &["pair-all_gather"]].concat()).code, Some(0));
    let vouched = accept(&project, "out", &[&nodes, &["--dry-run"]]);
    assert!(vouched.stdout.contains("compared with p5-[001-004], which passed run "), "{}", vouched.all());
    project.write(
        "inventory/sim-64.toml",
        "kind = \"real\"\ninstance = \"p5\"\nnodes = \"p5-[001-064]\"\n\n[reach]\nvia = \"slurm\"\n\n\
         [paths]\nshared = \"/fsx/harness\"\n",
    );
    refused(&project);
}

/// By a driver or a kernel that only old nodes have.
#[test]
fn partners_that_went_bad_since_reject_no_good_node() {
    let project = Project::new();
    project.write(
        "inventory/eight.toml",
        "kind = \"simulated\"\ninstance = \"sim-p5\"\nnodes = \"p5-[001-008]\"\n\n[reach]\nvia = \"slurm\"\n",
    );
    let asked = |out: &str, nodes: &str, more: &[&str]| {
        let args = ["accept", "--inventory", "eight", "--out", out, "--soak", "0", "--nodes", nodes];
        project.harness(&[&args[..], more].concat())
    };
    let slow = |nodes: &[&str]| -> Vec<String> {
        nodes.iter().flat_map(|node| ["--sim-fault".to_owned(), format!("{node}:node-slow=0.5")]).collect()
    };
    let (three, two) = (slow(&["p5-001", "p5-002", "p5-003"]), slow(&["p5-001", "p5-003"]));
    for (out, nodes, faults) in [("a", "p5-[004-008]", &three), ("b", "p5-004", &two)] {
        let mut more = vec!["--partners", "p5-[001-003]"];
        more.extend(faults.iter().map(String::as_str));
        let ran = asked(out, nodes, &more);
        assert_eq!(ran.code, Some(3), "{}", ran.all());
        assert!(last(&ran).contains("rejected 0"), "{}", ran.all());
    }
    // A run that blames them counts, though an earlier one passed.
    let run = ["--suite", "nccl-p5", "-q", "--inventory", "eight", "nic-pairs"];
    assert_eq!(project.harness(&run).code, Some(0));
    let red = project.harness(&[&run[..], &three.iter().map(String::as_str).collect::<Vec<_>>()].concat());
    assert_eq!(red.code, Some(1), "{}", red.all());
    let dry = asked("c", "p5-[006-008]", &["--dry-run"]);
    assert!(dry.stdout.contains("compared with p5-[004-005], which passed run "), "{}", dry.all());
    assert!(dry.stdout.contains("; not with p5-[001-003], which a run blames"), "{}", dry.all());
    let none = asked("d", "p5-[004-008]", &["--dry-run"]);
    assert!(none.code == Some(2) && none.stderr.contains("`--partners RANGE`"), "{}", none.all());
}

/// A node that was replaced under its old name has not passed what the old one passed.
#[test]
fn hardware_that_came_under_an_old_name_vouches_for_no_node() {
    let project = Project::new();
    let cluster = |replaced: &str| {
        let text = format!(
            "kind = \"simulated\"\ninstance = \"sim-p5\"\nnodes = \"p5-[001-008]\"\n[reach]\nvia = \"slurm\"\n\
             [world]\nreplaced = [{replaced}]\n"
        );
        project.write("inventory/mine.toml", &text);
    };
    let asked = |out: &str, more: &[&str]| {
        let args =
            ["accept", "--inventory", "mine", "--output", out, "--soak", "0", "--nodes", "p5-[005-008]"];
        project.harness(&[&args[..], more].concat())
    };
    let passing = |more: &[&str]| {
        let args = ["--suite", "acceptance-p5", "--inventory", "mine", "--nodes", "p5-[001-004]", "-q"];
        let ran = project.harness(&[&args[..], more].concat());
        assert_eq!(ran.code, Some(0), "{}", ran.all());
    };
    cluster("");
    passing(&["pair-all_gather"]);
    let unread = asked("out", &["--dry-run"]);
    let line = "; hardware then or now unknown, taken as the same: p5-[001-004]";
    assert!(unread.code == Some(0) && unread.stdout.contains(line), "{}", unread.all());
    passing(&["pair-all_gather", "--probe"]);
    let same = asked("out", &["--dry-run"]);
    assert!(same.stdout.contains("compared with p5-[001-004], which passed run "), "{}", same.all());
    assert!(!same.stdout.contains("unknown") && !same.stdout.contains("not with"), "{}", same.all());
    // Nothing that is stored has seen the new one: the preflight of the delivery does.
    cluster("\"p5-002\"");
    let ran = asked("out", &[]);
    assert_eq!(ran.code, Some(0), "{}", ran.all());
    let line = "  p5-002 is no longer a partner: its hardware is not what passed run ";
    assert!(ran.stdout.contains(line), "{}", ran.all());
    let withdrawn = listed(&certificate(&project, "out"), "withdrawn");
    assert_eq!(withdrawn, [("p5-002".to_owned(), "preflight".to_owned())]);
    // A later run has, which measured nothing between nodes.
    cluster("\"p5-002\", \"p5-003:gpu1\"");
    passing(&["node-all_reduce", "--probe"]);
    let dry = asked("later", &["--dry-run"]);
    assert!(dry.stdout.contains("compared with p5-[001,004], which passed run "), "{}", dry.all());
    assert!(dry.stdout.contains("; not with p5-[002-003]: other hardware has the name now"), "{}", dry.all());
}

#[test]
fn what_cannot_be_asked_is_refused_before_anything_is_launched() {
    let project = Project::new();
    project.write("full/file", "x");
    for (more, expected) in [
        (
            &["--nodes", "p5-[033-034]", "--partners", "p5-[034-036]"][..],
            "a node cannot be new and known to be good: `p5-034`",
        ),
        (
            &["--nodes", "p5-[033-034]", "--partners", "none", "--suite", "canary"],
            "cannot be used to accept nodes",
        ),
        (&["--nodes", "p5-[033-034]", "--partners", "none", "--suite", "nccl-p4de"], "is for `p4de`"),
        (&["--nodes", "p5-[033-099]"], "has no node `"),
        (&["--nodes", "p5-033", "--partners", "none", "--sim-fault", "p5-033:nothing"], "--sim-fault: "),
        (&["--nodes", "p5-033", "--partners", "none", "--budget=-1"], "above 0"),
    ] {
        let ran = accept(&project, "out", &[more]);
        assert!(ran.code == Some(2) && ran.stderr.contains(expected), "{expected}: {}", ran.all());
    }
    let full = accept(&project, "full", &[&["--nodes", "p5-033", "--partners", "none"]]);
    assert!(full.code == Some(2) && full.stderr.contains("it is not empty"), "{}", full.all());
    let none = project.harness(&["accept", "--resume", "full"]);
    assert!(none.code == Some(2) && none.stderr.contains("no folder of a delivery"), "{}", none.all());
    assert!(!project.path().join("out").exists() && project.runs() == 0);
}
