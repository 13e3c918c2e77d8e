//! `harness rma` end to end: faults on simulated clusters, replaced and moved hardware, planted secrets and hostile
//! folders of runs. What leaves names no other node, and nothing is written over.

use crate::project::{Project, Ran, remove_digests};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};

const SUITE: [&str; 7] = ["run", "--suite", "nccl-p5", "-q", "--probe", "nic-pairs", "--inventory"];
const SLOW_NIC: [&str; 2] = ["--sim-fault", "gpu-11:nic-slow=0.4@rdmap113s0"];
/// Of another length than the own name, one of them its beginning.
const NODES: &str = "gpu-[1,11,110,3]";

fn inventory(project: &Project, name: &str, world: &str) {
    project.write(
        &format!("inventory/{name}.toml"),
        &format!(
            "kind = \"simulated\"\ninstance = \"sim-p5\"\nnodes = \"{NODES}\"\n[reach]\nvia = \"slurm\"\n[world]\n{world}\n"
        ),
    );
}

fn project() -> Project {
    let project = Project::new();
    inventory(&project, "acme", "");
    project
}

fn measure(project: &Project, faults: &[&str]) -> PathBuf {
    project.harness(&[&SUITE[..], &["acme"], faults].concat());
    project.latest().canonicalize().expect("a run")
}

fn rma(project: &Project, word: &str, more: &[&str]) -> Ran {
    project.harness(&[&["rma", word, "--output", "out"], more].concat())
}

/// Every file of the folder by its path there.
fn files(folder: &Path) -> BTreeMap<String, String> {
    let found = store::files(folder).expect("a folder");
    let text = |file: &PathBuf| fs::read_to_string(folder.join(file)).expect("text");
    found.iter().map(|file| (file.to_string_lossy().into_owned(), text(file))).collect()
}

fn written(project: &Project, ran: &Ran) -> BTreeMap<String, String> {
    assert_eq!(ran.code, Some(0), "{}", ran.all());
    files(&project.path().join("out"))
}

fn edit(path: &Path, change: impl Fn(&mut Value)) {
    let mut value = serde_json::from_str(&fs::read_to_string(path).expect("read")).expect("JSON");
    change(&mut value);
    fs::write(path, value.to_string()).expect("written");
}

/// What a probe read of a node.
fn facts(run: &Path, node: &str) -> Value {
    let probe: Value =
        serde_json::from_str(&fs::read_to_string(run.join("probe.json")).expect("read")).expect("JSON");
    let nodes = probe["nodes"].as_array().expect("nodes");
    nodes.iter().find(|one| one["node"] == node).expect("the node")["facts"].clone()
}

fn row_of(facts: &Value, fact: &str, row: usize) -> Vec<String> {
    facts[fact][row].as_str().expect("a row").split(' ').map(str::to_owned).collect()
}

/// A file of a run with other bytes, as if it had been collected so.
fn replace_raw(run: &Path, end: &str, bytes: &[u8]) -> String {
    let path = run.join("cases/nic-pairs/collected.json");
    remove_digests(run);
    let mut changed = String::new();
    let mut collected: Value = serde_json::from_str(&fs::read_to_string(&path).expect("read")).expect("JSON");
    for file in collected["files"].as_array_mut().expect("files") {
        let name = file["path"].as_str().expect("a path").to_owned();
        if name.ends_with(end) {
            fs::write(run.join("cases/nic-pairs").join(&name), bytes).expect("written");
            file["bytes"] = bytes.len().into();
            file["sha256"] = base::digest::sha256(bytes).into();
            changed = name;
        }
    }
    fs::write(&path, collected.to_string()).expect("written");
    assert!(!changed.is_empty(), "no file ends with {end}");
    changed
}

#[test]
fn a_slow_nic_is_returned_with_both_sides_and_without_a_name_of_another_node() {
    let project = project();
    measure(&project, &SLOW_NIC);
    measure(&project, &[]);
    let run = measure(&project, &SLOW_NIC);
    let own = facts(&run, "gpu-11");
    let ran = rma(&project, "gpu-11", &[]);
    let files = written(&project, &ran);
    assert!(ran.stdout.contains("node gpu-11: blamed in 2 of 3 runs, passed in 1\n"), "{}", ran.all());
    assert!(ran.stdout.contains("\nSIMULATED: "), "{}", ran.all());
    let summary = &files["summary.md"];
    for piece in [
        "# Return case: node gpu-11\n\n**SIMULATED: nothing in this run was measured on real hardware**\n",
        "| rdmap113s0 | HRN-NIC-SLOW | 2 | 0 | 3 | ",
        "| nccl-p5, nic-pairs | nic.rate rdmap113s0 | 2 | 1 | 0 | 4.",
        " | at least 11.00 GB/s |",
        "Passed all of a case that blames it elsewhere: 1 run",
        "It has not passed since it was blamed last.",
        " and with peer-",
        "| rdmap113s0: GUID, PCI address | ",
        "| NIC firmware | 0.0.0.0 |",
        "- board serial: a probe does not read it\n",
    ] {
        assert!(summary.contains(piece), "{piece}\n{summary}");
    }
    assert!(summary.lines().count() < 90, "{summary}");
    let machine = own["machine"].as_str().expect("an id");
    assert!(summary.contains(machine) && summary.contains(&row_of(&own, "gpu_ids", 3)[1]));

    let history: Vec<&str> = files["history.csv"].lines().collect();
    assert_eq!(history.len(), 1 + 3 * 32, "a row for each NIC and run");
    assert_eq!(history.iter().filter(|row| row.contains(",fail,true,true,true")).count(), 2);
    let of_kind = |piece: &str| files.keys().filter(|name| name.contains(piece)).count();
    // Each way with each of two partners, in the two runs that blame it.
    assert_eq!(of_kind("/commands/nic-pairs/"), 2 * 4 * 2, "{:?}", files.keys());
    assert_eq!((of_kind("/scripts/flows.sh"), of_kind("/run.json")), (2, 2));
    assert_eq!(of_kind("/counters.gpu-11.txt"), 2 * 4);
    assert_eq!(of_kind("/counters.peer-"), 0, "counters of other nodes are none of it");
    assert!(of_kind("/rdmap113s0.out") > 0);

    let other: Vec<Value> = ["gpu-1", "gpu-110", "gpu-3"].map(|node| facts(&run, node)).to_vec();
    for (name, text) in &files {
        for (place, text) in [("name", name), ("text", text)] {
            for glued in
                ["gpu-110", "gpu-3", "gpu-1 ", "gpu-1:", "gpu-1-", "gpu-1\"", "gpu-[", "acme", "/fsx"]
            {
                assert!(!text.contains(glued), "{glued} in the {place} of {name}");
            }
        }
        for facts in &other {
            assert!(!text.contains(facts["machine"].as_str().expect("an id")), "{name}");
            assert!(!text.contains(&row_of(facts, "gpu_ids", 0)[2]), "{name}");
            assert!(!text.contains(&row_of(facts, "nic_ids", 0)[1]), "{name}");
        }
    }
    let manifest: Value = serde_json::from_str(&files["manifest.json"]).expect("JSON");
    let listed = manifest["files"].as_array().expect("files");
    assert_eq!(listed.len() + 2, files.len());
    for file in listed {
        let text = &files[file["path"].as_str().expect("a path")];
        assert_eq!(file["sha256"], base::digest::sha256(text.as_bytes()));
        assert_eq!(file["bytes"], text.len());
    }
    assert_eq!(
        (&manifest["simulated"], files["SHA256SUMS"].lines().count()),
        (&Value::Bool(true), files.len() - 1)
    );
    let mode = |path: &Path| fs::metadata(path).expect("there").permissions().mode() & 0o777;
    let out = project.path().join("out");
    assert_eq!((mode(&out), mode(&out.join("summary.md"))), (0o700, 0o600));

    // A second time nothing is written over, and nothing is left beside it.
    let again = rma(&project, "gpu-11", &[]);
    assert_eq!(again.code, Some(2), "{}", again.all());
    assert!(again.stderr.contains("`out` already exists"), "{}", again.all());
    assert!(self::files(&out) == files);
    let hidden = fs::read_dir(project.path()).expect("read").flatten();
    assert!(!hidden.map(|entry| entry.file_name()).any(|name| name.to_string_lossy().starts_with(".rma")));
}

#[test]
fn a_part_is_found_by_each_of_its_numbers_and_holds_files_of_that_part_alone() {
    let project = project();
    let run = measure(&project, &SLOW_NIC);
    let nic =
        (0..32).map(|row| row_of(&facts(&run, "gpu-11"), "nic_ids", row)).find(|row| row[0] == "rdmap113s0");
    let guid = nic.expect("the NIC")[1].clone();
    for word in [guid.as_str(), "gpu-11:rdmap113s0", &guid.to_uppercase()] {
        let files = written(&project, &rma(&project, word, &[]));
        assert!(files["summary.md"].starts_with("# Return case: rdmap113s0 of gpu-11\n"), "{word}");
        assert_eq!(files["history.csv"].lines().count(), 2);
        assert!(files.keys().any(|name| name.ends_with("/rdmap113s0.out")), "{:?}", files.keys());
        assert!(!files.keys().any(|name| name.ends_with("/rdmap79s0.out")), "{:?}", files.keys());
        fs::remove_dir_all(project.path().join("out")).expect("removed");
    }
    let sibling = rma(&project, "gpu-11:rdmap79s0", &[]);
    assert_eq!(sibling.code, Some(3), "{}", sibling.all());
    assert!(
        sibling.stderr.contains("no return case: rdmap79s0 of gpu-11: blamed in 0 of 1 run, passed in 1"),
        "{}",
        sibling.all()
    );
    assert!(!project.path().join("out").exists());
    let written_anyway = written(&project, &rma(&project, "gpu-11:rdmap79s0", &["--all"]));
    assert!(written_anyway["summary.md"].contains("No run names it. This is no evidence of a fault."));
}

#[test]
fn hardware_that_came_under_an_old_name_has_none_of_the_old_evidence() {
    let project = project();
    let run = measure(&project, &SLOW_NIC);
    let (old, at) = (facts(&run, "gpu-11"), run.file_name().expect("an id").to_string_lossy().into_owned());
    inventory(&project, "acme", "replaced = [\"gpu-11\"]");
    measure(&project, &[]);
    let now = rma(&project, "gpu-11", &[]);
    assert_eq!(now.code, Some(3), "{}", now.all());
    assert!(now.stderr.contains("left out: 1 run of other hardware under this name"), "{}", now.all());
    let files = written(&project, &rma(&project, "gpu-11", &["--all"]));
    assert!(
        files["summary.md"]
            .contains("## Runs left out\n\n- 1 run: its probe shows other hardware under this name")
    );
    for (name, text) in &files {
        assert!(!text.contains(&at) && !name.contains(&at), "{name}");
        assert!(!text.contains(old["machine"].as_str().expect("an id")), "{name}");
    }
    fs::remove_dir_all(project.path().join("out")).expect("removed");
    // What is gone is found by its number.
    let gone = rma(&project, old["machine"].as_str().expect("an id"), &[]);
    let files = written(&project, &gone);
    assert!(gone.stdout.contains("blamed in 1 of 1 run, passed in 0"), "{}", gone.all());
    assert!(files.keys().any(|name| name.contains(&at)));
}

#[test]
fn a_part_that_moved_is_followed_to_its_new_node() {
    let project = project();
    let first = measure(&project, &SLOW_NIC);
    let id = row_of(&facts(&first, "gpu-11"), "nic_ids", 8);
    assert_eq!(id[0], "rdmap113s0");
    let second = measure(&project, &["--sim-fault", "gpu-3:nic-slow=0.4@rdmap79s0"]);
    // As if the card had been put into another node, and its place been filled.
    remove_digests(&second);
    edit(&second.join("probe.json"), |probe| {
        for node in probe["nodes"].as_array_mut().expect("nodes") {
            let rows = node["facts"]["nic_ids"].as_array().expect("NICs").clone();
            let moved = rows.iter().map(|row| {
                let row = row.as_str().expect("a row");
                let is_new_place = node["node"] == "gpu-3" && row.starts_with("rdmap79s0 ");
                let is_old_place = node["node"] == "gpu-11" && row.starts_with("rdmap113s0 ");
                match (is_new_place, is_old_place) {
                    (true, _) => format!("rdmap79s0 {} 0000:4f:00.0", id[1]),
                    (_, true) => "rdmap113s0 00000000feedbeef 0000:57:00.0".to_owned(),
                    _ => row.to_owned(),
                }
            });
            node["facts"]["nic_ids"] = moved.collect::<Vec<_>>().into();
        }
    });
    let ran = rma(&project, &id[1], &[]);
    let files = written(&project, &ran);
    assert!(ran.stdout.contains("rdmap79s0 of gpu-3: blamed in 2 of 2 runs, passed in 0"), "{}", ran.all());
    let summary = &files["summary.md"];
    assert!(
        summary.contains("| was in | gpu-11 rdmap113s0: 1 run")
            && summary.contains("| was in | gpu-3 rdmap79s0: 1 run")
    );
    assert!(files.values().all(|text| !text.contains("00000000feedbeef")));
}

#[test]
fn planted_secrets_users_and_stores_do_not_leave() {
    let project = project();
    let run = measure(&project, &SLOW_NIC);
    let planted = "HF_TOKEN=hf_abcdefghijklmnopqrstuvwxyz01234567\nhome /home/jdoe/run by jdoe of jdoe@acme.com\n\
                   aws s3 cp s3://acme-runs/x .\nssh GPU-110 10.1.2.3 ip-10-0-12-7.ec2.internal\nkept line\n";
    replace_raw(&run, "gpu-11-to-gpu-110/stderr", planted.as_bytes());
    edit(&run.join("plan.json"), |plan| plan["folder"] = "/home/jdoe/harness".into());
    let files = written(&project, &rma(&project, "gpu-11", &[]));
    let stderr = files.iter().find(|(name, text)| name.ends_with("/stderr") && text.contains("kept line"));
    let (_, stderr) = stderr.unwrap_or_else(|| panic!("{:?}", files.keys()));
    assert!(
        stderr.ends_with("\nkept line\n") && stderr.contains("[redacted]") && stderr.contains("store-"),
        "{stderr}"
    );
    for (name, text) in &files {
        for planted in ["klmnopqrstuv", "jdoe", "acme", "GPU-110", "10.1.2.3", "10-0-12-7"] {
            assert!(!text.contains(planted), "{planted} in {name}");
        }
    }
    let manifest: Value = serde_json::from_str(&files["manifest.json"]).expect("JSON");
    let secrets =
        manifest["files"].as_array().expect("files").iter().filter_map(|file| file["secrets"].as_u64());
    assert_eq!(secrets.sum::<u64>(), 1);
    fs::remove_dir_all(project.path().join("out")).expect("removed");
    let named = written(&project, &rma(&project, "gpu-11", &["--keep-names"]));
    assert!(named["summary.md"].contains("with gpu-"));
    assert!(named.values().all(|text| !text.contains("jdoe") && !text.contains("klmnopqrstuv")));
}

#[test]
fn names_and_numbers_in_any_writing_do_not_leave() {
    let project = project();
    let run = measure(&project, &SLOW_NIC);
    let other = facts(&run, "gpu-1");
    let machine = other["machine"].as_str().expect("an id");
    let guid = row_of(&other, "nic_ids", 0)[1].clone();
    let fours: Vec<&str> = (0..4).filter_map(|at| guid.get(at * 4..at * 4 + 4)).collect();
    let fours = fours.join(":");
    let serial = row_of(&other, "gpu_ids", 0)[2].clone();
    let planted = format!(
        "{{\"m\": \"x\\t{machine}\\n{serial}\"}} {machine}-eth0 host-{machine} NIC{guid} {fours}\n\
         \u{1b}[1m{machine} \u{1b}[32mGPU-110 GPU-[1-60000] gpu-{{1..3}} IP-10-0-12-7 \u{1b}[0m10.9.8.7\n\
         https://hiddenlab.s3.amazonaws.com/hiddenlab/x -I/home/hiddenlab/x file:///home/hiddenlab/y login.hiddenlab.ai\n\
         torch.distributed kept line\n"
    );
    replace_raw(&run, "gpu-11-to-gpu-110/stderr", planted.as_bytes());
    let ran = project.harness(&["rma", "gpu-11", "--output", "out/"]);
    assert!(ran.stdout.contains("written: out/ ("), "{}", ran.all());
    let files = written(&project, &ran);
    assert!(files.values().any(|text| text.contains("torch.distributed kept line")));
    for (name, text) in &files {
        for left in [
            machine,
            &guid,
            &fours,
            &serial,
            "hiddenlab.",
            "/hiddenlab",
            "GPU-110",
            "[1-60000",
            "{1..",
            "10.9.8.7",
            "10-0-12-7",
        ] {
            assert!(!text.contains(left), "{left} in {name}");
        }
    }
}

#[test]
fn links_binary_files_and_damaged_runs_are_listed_and_not_followed() {
    let project = project();
    let run = measure(&project, &SLOW_NIC);
    let damaged = measure(&project, &[]);
    fs::write(damaged.join("plan.json"), "{\"format\": 1, ").expect("written");
    let outside = project.path().join("outside");
    fs::write(&outside, "not for a vendor\n").expect("written");
    let linked = measure(&project, &[]);
    fs::remove_file(linked.join("summary.json")).expect("removed");
    symlink(&outside, linked.join("summary.json")).expect("linked");
    let job = run.join("cases/nic-pairs/raw/gpu-11-to-gpu-110");
    fs::remove_file(job.join("rdmap113s0.out")).expect("removed");
    symlink(&outside, job.join("rdmap113s0.out")).expect("linked");
    replace_raw(&run, "gpu-11-to-gpu-110/batch.out", b"SQLite format 3\0gpu-3");
    replace_raw(&run, "gpu-11-to-gpu-110/batch.err", &b"a line of gpu-3\n".repeat(500_000));
    let other = run.join("cases/nic-pairs/raw/gpu-110-to-gpu-11");
    fs::rename(&other, project.path().join("moved")).expect("moved");
    symlink(project.path().join("moved"), &other).expect("linked");
    let ran = rma(&project, "gpu-11", &[]);
    let files = written(&project, &ran);
    assert!(files.values().all(|text| !text.contains("not for a vendor")));
    let manifest: Value = serde_json::from_str(&files["manifest.json"]).expect("JSON");
    let left_out = manifest["left_out"].as_array().expect("a list");
    let why = |end: &str| {
        let found = left_out.iter().find(|one| one["path"].as_str().is_some_and(|path| path.contains(end)));
        found.and_then(|one| one["why"].as_str()).unwrap_or_default().to_owned()
    };
    assert!(why("/batch.out").contains("no text"), "{left_out:?}");
    assert!(why("/rdmap113s0.out").contains("a link, which is not followed"), "{left_out:?}");
    assert!(why("-to-gpu-11/counters").contains("its folder is a link"), "{left_out:?}");
    let cut = manifest["files"].as_array().expect("files").iter().find(|file| file["cut"].as_u64().is_some());
    let cut = cut.expect("a long file")["path"].as_str().expect("a path");
    assert!(
        cut.ends_with("/batch.err") && files[cut].len() < 5 << 20 && files[cut].contains("bytes left out]")
    );
    let id = |run: &Path| run.file_name().expect("an id").to_string_lossy().into_owned();
    let summary = &files["summary.md"];
    assert!(summary.contains(&format!("- not counted: {}: plan.json", id(&damaged))), "{summary}");
    let linked = format!("- not counted: {}: summary.json: a link or no regular file", id(&linked));
    assert!(summary.contains(&linked), "{summary}");
}

#[test]
fn names_with_odd_characters_never_become_paths() {
    let project = project();
    let run = measure(&project, &SLOW_NIC);
    let odd = "../../evil\u{202e}x";
    remove_digests(&run);
    for file in [
        "plan.json",
        "probe.json",
        "summary.json",
        "cases/nic-pairs/verdict.json",
        "cases/nic-pairs/collected.json",
    ] {
        let path = run.join(file);
        let text = fs::read_to_string(&path).expect("read");
        let escaped = serde_json::to_string(odd).expect("text");
        fs::write(&path, text.replace("\"gpu-11\"", &escaped)).expect("written");
    }
    let ran = project.harness(&["rma", odd]);
    assert_eq!(ran.code, Some(0), "{}", ran.all());
    assert!(!ran.all().contains('\u{202e}'), "{}", ran.all());
    let entries = fs::read_dir(project.path()).expect("read").flatten();
    let names: Vec<String> = entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    assert!(names.iter().any(|name| name.starts_with("rma-.._.._evil_x-")), "{names:?}");
    assert!(!project.path().parent().expect("a folder").join("evil").exists());
}

#[test]
fn what_cannot_be_meant_or_written_is_refused_before_anything_is() {
    let project = project();
    let run = measure(&project, &SLOW_NIC);
    for (arguments, why) in [
        (&["rma", "gpu-12"][..], "no run has a node, GPU, NIC or machine `gpu-12`; near: `gpu-1"),
        (&["rma", "gpu-11:gpu9"], "no run has measured a part `gpu9` of gpu-11"),
        (&["rma", "gpu-11", "--runs", "nowhere"], "nowhere: "),
        (&["rma", "gpu-11", "--runs", "suites"], "no runs in `suites`"),
        (&["rma", "gpu-11", "--kind", "real"], "no real runs in "),
        (&["rma", "gpu-11", "--inventory", "other"], "no run has a node"),
        (&["rma", "gpu-11", "--output", "runs/out"], "lies among the runs"),
        (&["rma", "gpu-11", "--output", "suites"], "`suites` already exists"),
        (&["rma", "gpu-11", "--output", "no/such/out"], "--output: `no/such`"),
    ] {
        let ran = project.harness(arguments);
        assert_eq!((ran.code, ran.stderr.contains(why)), (Some(2), true), "{arguments:?}: {}", ran.all());
    }
    assert!(!run.join("out").exists() && !project.path().join("runs/out").exists());
}

#[test]
fn an_acceptance_that_lists_the_hardware_is_in_the_folder_with_its_own_rows_alone() {
    let project = project();
    let accept = [
        "accept",
        "--nodes",
        "gpu-[11,3]",
        "--partners",
        "gpu-[1,110]",
        "--inventory",
        "acme",
        "--soak",
        "0",
        "--output",
        "deliveries/one",
    ];
    let accepted = project.harness(&[&accept[..], &SLOW_NIC].concat());
    assert_eq!(accepted.code, Some(1), "{}", accepted.all());
    fs::create_dir_all(project.path().join("deliveries/two")).expect("made");
    fs::write(project.path().join("deliveries/two/acceptance.json"), "{").expect("written");
    measure(&project, &SLOW_NIC);
    let files = written(&project, &rma(&project, "gpu-11", &[]));
    let certificate: Value = serde_json::from_str(&files["certificates/one.json"]).expect("JSON");
    assert_eq!(
        (&certificate["result"], &certificate["identified_by"]),
        (&"rejected".into(), &"hardware".into())
    );
    assert_eq!(certificate["hardware"].as_array().expect("a list").len(), 1);
    assert!(
        files["summary.md"].contains("## Acceptance\n")
            && files["summary.md"].contains("- not read: two: acceptance.json")
    );
    assert!(files.values().all(|text| !text.contains("gpu-110") && !text.contains("gpu-3")));
}

#[test]
fn an_isolation_counts_once_with_what_its_rounds_measured_of_the_node_and_clears_its_partner() {
    let project = Project::new();
    let pairs = ["run", "-q", "--suite", "nccl-p5", "--inventory", "sim-32", "--probe"];
    let fault = ["--sim-fault", "p5-011:nvlink-slow=0.6", "pair-all_reduce"];
    project.harness(&[&pairs[..], &fault].concat());
    let isolated = project.harness(&["isolate", "--run", "latest"]);
    assert!(isolated.stdout.contains("HRN-NVLINK-SLOW reset p5-011 nvlink"), "{}", isolated.all());
    let ran = rma(&project, "p5-011", &[]);
    let files = written(&project, &ran);
    assert!(
        ran.stdout.contains("node p5-011: blamed in 2 of 2 runs, passed in 0; not counted: "),
        "{}",
        ran.all()
    );
    let summary = &files["summary.md"];
    assert!(
        summary.contains("| nvlink | HRN-NVLINK-SLOW | 1 | 0 | 2 |")
            && summary.contains("| node | - | 0 | 1 | 2 |"),
        "{summary}"
    );
    let runs = |piece: &str| files.keys().filter(|name| name.contains(piece)).count();
    assert!(runs("-isolate-") > 0 && runs("/run.json") > 2, "{:?}", files.keys());
    let printed = |run: &str| {
        files.keys().any(|name| name.contains(run) && name.contains("/raw/") && name.ends_with("/stdout"))
    };
    assert!(printed("-isolate-") && printed("Z-nccl-p5-"), "{:?}", files.keys());
    // Names of ranges of nodes become lists; each row has as many cells all the same.
    let cells = |row: &str| row.split('"').step_by(2).map(|part| part.matches(',').count()).sum::<usize>();
    assert!(files["history.csv"].contains("p5-011,peer-"), "{}", files["history.csv"]);
    assert!(files["history.csv"].lines().all(|row| cells(row) == 19), "{}", files["history.csv"]);
    // The id of a run may go on as the name of a node does.
    let is_other =
        |text: &str, at: usize| !text[at..].starts_with("p5-011") && !text[..at].ends_with("nccl-");
    let other = |text: &str| text.match_indices("p5-0").any(|(at, _)| is_other(text, at));
    assert!(files.iter().all(|(name, text)| !other(name) && !other(text)));
    let partner = project.harness(&["rma", "p5-012", "--output", "partner"]);
    assert!(partner.stdout.contains("node p5-012: blamed in 1 of 2 runs, passed in 1"), "{}", partner.all());
    let summary = fs::read_to_string(project.path().join("partner/summary.md")).expect("there");
    assert!(
        summary.contains("No run names it alone") && summary.contains("it may have been repaired"),
        "{summary}"
    );
}
