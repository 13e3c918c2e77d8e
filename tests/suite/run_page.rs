//! The page of a run: written with every run, the guilty part first, small, and made again of stored runs.

use crate::determinism::files;
use crate::little;
use crate::project::Project;
use std::fs;
use std::path::Path;

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// What a reader sees of a page, with one blank between words.
fn visible(page: &str) -> String {
    let body = page.split_once("<body>").expect("a body").1;
    let body = body.rsplit_once("<script>").map_or(body, |(before, _)| before);
    let mut text = String::new();
    for part in body.split('<') {
        text.push_str(part.split_once('>').map_or(part, |(_, behind)| behind));
        text.push(' ');
    }
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// A fault, the case that shows it, and what the page must say of it at once.
const FAULTS: [(&str, &str, &str, &str, &str); 10] = [
    (
        "p5-002:nic-slow=0.4@rdmap113s0",
        "nic-pairs",
        "p5-002 rdmap113s0",
        "HRN-NIC-SLOW",
        "harness isolate --run ",
    ),
    (
        "p5-003:nic-dead@rdmap79s0",
        "all-all_gather",
        "p5-003 rdmap79s0",
        "HRN-NIC-DEAD",
        "harness explain HRN-NIC-DEAD",
    ),
    (
        "p5-002:nic-missing@rdmap130s0",
        "all-all_gather",
        "p5-002 rdmap130s0",
        "HRN-NIC-MISSING",
        "harness explain HRN-NIC-MISSING",
    ),
    ("p5-001:gpu-slow=0.5@3", "gpu-each", "p5-001 gpu3", "HRN-GPU-SLOW", "harness explain HRN-GPU-SLOW"),
    ("p5-004:corrupt@5", "gpu-each", "p5-004 gpu5", "HRN-GPU-WRONG", "harness explain HRN-GPU-WRONG"),
    ("p5-002:port-slow=0.5", "nic-pairs", "p5-002 fabric", "HRN-PORT-SLOW", "harness isolate --run "),
    ("p5-003:node-slow=0.5", "gpu-each", "p5-003 node", "HRN-NODE-SLOW", "harness isolate --run "),
    (
        "p5-003:nvlink-slow=0.5",
        "node-all_reduce",
        "p5-003 node",
        "HRN-NODE-UNCLEAR",
        "harness isolate --run ",
    ),
    ("p5-002:hang", "gpu-each", "p5-002 node", "HRN-NODE-BROKEN", "harness explain HRN-NODE-BROKEN"),
    ("p5-002:node-fails", "pair-all_reduce", "p5-002 node", "HRN-NODE-LOST", "harness explain HRN-NODE-LOST"),
];

#[test]
fn ten_faults_of_ten_are_in_the_first_thousand_characters_with_code_and_next_command() {
    let project = Project::new();
    for (fault, case, part, code, next) in FAULTS {
        let ran = project.harness(&["--suite", "nccl-p5", "-q", case, "--sim-fault", fault]);
        assert!(matches!(ran.code, Some(1 | 3)), "{fault}: {}", ran.all());
        let page = read(&project.latest().join("index.html"));
        let seen: String = visible(&page).chars().take(1_000).collect();
        let part = format!("culprit {part} {code}");
        let next = format!("next: {next}");
        for words in
            [part.as_str(), &next, "SIMULATED: ", &format!("(exit {})", ran.code.unwrap_or_default())]
        {
            assert!(seen.contains(words), "{fault}: no `{words}` in: {seen}");
        }
    }
}

#[test]
fn a_stored_run_has_the_same_page_again_with_links_that_lead_to_it() {
    let project = little::project();
    let id = little::ended(&project);
    let before = files(&project.latest(), "");
    let written = read(&project.latest().join("index.html"));
    let ran = project.harness(&["page", &id, "--output", "runs/latest"]);
    assert_eq!(ran.code, Some(0), "{}", ran.all());
    let again = project.latest().join(format!("{id}.html"));
    assert_eq!(ran.stdout, format!("page of {id}: runs/latest/{id}.html\n"));
    assert!(read(&again) == written, "made again in the same folder it is the same");
    fs::remove_file(&again).expect("removed");
    assert_eq!(files(&project.latest(), ""), before, "a stored run is written once");
    // Elsewhere its links lead back to the run, and to files that are there.
    let ran = project.harness(&["page", "--output", "out/deep/it.html"]);
    assert_eq!(ran.code, Some(0), "{}", ran.all());
    let page = read(&project.path().join("out/deep/it.html"));
    let links: Vec<&str> = page.split("href=\"").skip(1).filter_map(|rest| rest.split('"').next()).collect();
    let (files, other): (Vec<&str>, Vec<&str>) = links
        .into_iter()
        .filter(|link| !link.starts_with('#'))
        .partition(|link| link.starts_with("../../runs/"));
    assert_eq!(other, ["data:,"]);
    assert!(files.len() > 20, "{files:?}");
    for link in files {
        let path = project.path().join("out/deep").join(link);
        assert!(path.exists() || link.contains("/raw/"), "a link to nothing: {link}");
    }
}

#[test]
fn pages_of_several_runs_go_into_a_folder_and_a_bundle_has_one_too() {
    let project = little::project();
    let one = little::ended(&project);
    let two = little::ended(&project);
    let ran = project.harness(&["page", &one, &two, "--output", "pages"]);
    assert_eq!(ran.code, Some(0), "{}", ran.all());
    for id in [&one, &two] {
        assert!(read(&project.path().join(format!("pages/{id}.html"))).contains(id.as_str()));
    }
    let ran = project.harness(&["page", &one, &two, "--output", "one.html"]);
    assert_eq!(ran.code, Some(2), "{}", ran.all());
    assert!(
        ran.stderr.contains("--output one.html: one file cannot hold the pages of 2 runs; name a folder"),
        "{}",
        ran.all()
    );
    // What came in a bundle is made of its artefacts, and not taken from the page that it brings.
    let ran = project.harness(&["bundle", "--run", &one, "--output", "run.tar.gz"]);
    assert_eq!(ran.code, Some(0), "{}", ran.all());
    let other = Project::new();
    fs::copy(project.path().join("run.tar.gz"), other.path().join("run.tar.gz")).expect("copied");
    let ran = other.harness(&["page", "run.tar.gz"]);
    assert_eq!(ran.code, Some(0), "{}", ran.all());
    let page = read(&other.path().join(format!("{one}.html")));
    assert!(page.contains(&format!("href=\"runs/{one}/summary.json\"")) && page.contains("id=\"culprits\""));
}

#[test]
fn a_run_that_has_not_ended_has_no_page() {
    let project = little::project();
    let id = little::killed(&project, 12);
    let ran = project.harness(&["page"]);
    assert_eq!(ran.code, Some(2), "{}", ran.all());
    let why =
        format!("run `{id}` has not ended: watch it with `harness watch`, or go on with `harness resume`");
    assert!(ran.stderr.contains(&why), "{}", ran.all());
}

#[test]
fn a_broken_launcher_has_a_page_that_blames_no_node() {
    let project = Project::new();
    let faults = ["--sim-fault", "p5-001:hang", "--sim-fault", "p5-002:hang", "--sim-fault", "p5-003:hang"];
    let args =
        [&["--suite", "nccl-p5", "-q", "gpu-each", "--sim-fault", "p5-004:hang"], &faults[..]].concat();
    let ran = project.harness(&args);
    assert_eq!(ran.code, Some(3), "{}", ran.all());
    let seen: String = visible(&read(&project.latest().join("index.html"))).chars().take(1_000).collect();
    assert!(seen.contains("no node is blamed") && !seen.contains("culprit "), "{seen}");
}

#[test]
fn the_page_of_64_nodes_is_small_and_has_every_node() {
    let project = Project::new();
    let ran = project.harness(&[
        "--suite",
        "scale",
        "--inventory",
        "sim-64",
        "-q",
        "--sim-fault",
        "p5-017:port-slow=0.5",
    ]);
    assert_eq!(ran.code, Some(1), "{}", ran.all());
    let page = read(&project.latest().join("index.html"));
    println!("64 nodes: {} bytes", page.len());
    // 512 nodes have eight times as many: what grows with nodes must stay below 3 MB.
    assert!(page.len() * 8 < 3_000_000, "{}", page.len());
    // The node is red by its own NICs, and each of its peers has every NIC on the map.
    let rows = |node: &str| {
        let begin = format!("<tr><th scope=\"row\">{node}</th>");
        page.lines().filter(|line| line.starts_with(&begin)).map(str::to_owned).collect::<Vec<String>>()
    };
    assert!(rows("p5-017").iter().any(|row| row.contains("<td class=\"f\">F")), "{:?}", rows("p5-017"));
    assert!(
        rows("p5-017").iter().any(|row| row.matches("<td class=f title=").count() == 32),
        "{:?}",
        rows("p5-017")
    );
    assert!(
        rows("p5-001").iter().any(|row| row.matches("<td class=h").count() == 32),
        "{:?}",
        rows("p5-001")
    );
    for node in 1..=64 {
        assert!(page.contains(&format!("<th scope=\"row\">p5-{node:03}</th>")), "p5-{node:03}");
    }
}

#[test]
fn a_run_shows_the_comparable_runs_before_it_and_what_differs_since() {
    let project = little::project();
    little::ended(&project);
    let first = read(&project.latest().join("index.html"));
    assert!(
        !first.contains("History: ") && first.contains("No earlier run of the same suites and inventory")
    );
    let one = little::id(&project);
    // Only what has the same jobs is shown, whatever else lies there.
    let other = project.harness(&["--suite", "canary", "all-is-well", "-q"]);
    assert_eq!(other.code, Some(0), "{}", other.all());
    let ran = project
        .harness(&[&little::ARGS[..], &["-q", "--sim-fault", "p5-001:nic-slow=0.5@rdmap79s0"]].concat());
    assert_eq!(ran.code, Some(1), "{}", ran.all());
    let second = read(&project.latest().join("index.html"));
    for words in [
        "History: 1 simulated run of the same suites and inventory",
        "<svg class=\"past\"",
        "(n = 1)</span>",
        &format!("Compared with <code>{one}</code>"),
        "<td>simulated faults<td><td>p5-002:nic-dead@rdmap113s0<td>p5-001:nic-slow=0.5@rdmap79s0, p5-002:nic-dead@rdmap113s0",
    ] {
        assert!(second.contains(words), "no `{words}`");
    }
    let places = ["id=\"culprits\"", "id=\"grid\""];
    let places = places.map(|words| second.find(words).unwrap_or_else(|| panic!("no `{words}`")));
    assert!(places.is_sorted(), "{places:?}");
    // A benchmark of communication has no work that could be arranged otherwise.
    assert!(!second.contains("id=\"diagnosis\"") && !second.contains("<h3>kernels</h3>"), "{second}");
    assert!(project.latest().join("cases/kernels/diagnosis.json").is_file());
    assert!(!project.latest().join("cases/pair/diagnosis.json").exists());
    // A replay judges the same jobs, and has the same past.
    let ran = project.harness(&["replay", "-q", "--from", "judge"]);
    assert_eq!(ran.code, Some(1), "{}", ran.all());
    let replayed = read(&project.latest().join("index.html"));
    assert!(replayed.contains(&format!("Compared with <code>{one}</code>")));
    // The page of the first run has no past, though newer runs are there now.
    let ran = project.harness(&["page", &one, "--output", "one.html"]);
    assert_eq!(ran.code, Some(0), "{}", ran.all());
    assert!(!read(&project.path().join("one.html")).contains("History: "));
}
