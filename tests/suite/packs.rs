//! Baselines between two sites: what a pack holds, who may hand one in, and what it is worth to a site with three runs.

#[path = "../fleets/two_sites.rs"]
mod two_sites;

use crate::false_alarms::fleets::draws;
use crate::little::id;
use crate::project::Project;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use two_sites::{TRUTHS, Truth, scores};

/// The example of RFC 8410, section 10.3.
const KEY: &str = "-----BEGIN PRIVATE KEY-----\nMC4CAQAwBQYDK2VwBCIEINTuctv5E1hK1bbY8fdp+K06/nwoy/HU++CXqI9EdVhC\n-----END PRIVATE KEY-----\n";
const DIGITS: &str = "19bf44096984cdfe8541bac167dc3b96c85086aa30b6b6cb0c5c38ad703166e1";

const SUITE: &str = r#"
instance = "p5"
about = "pairs of nodes, seven sizes"
[[case]]
name = "planted-customer"
placement = "pairs"
workload = { kind = "nccl-tests", op = "all_gather", from = "64MiB", to = "4GiB", factor = 2 }
recipes = ["nccl_tests"]
[[case.assert]]
metric = "nccl.busbw"
size = ["64MiB", "128MiB", "256MiB", "512MiB", "1GiB", "2GiB", "4GiB"]
against = "baseline"
"#;

/// A site whose names must not leave it, after so many runs that were proposed and accepted.
fn site(runs: u32, first_seed: u32) -> Project {
    let project = Project::new();
    project.write("suites/planted-suite.toml", SUITE);
    project.write("baselines/sim-p5.toml", "instance = \"sim-p5\"\nsimulated = true\n");
    measure(&project, runs, first_seed);
    project
}

fn measure(project: &Project, runs: u32, first_seed: u32) -> Vec<String> {
    (first_seed..first_seed + runs)
        .map(|seed| {
            let seed = seed.to_string();
            let args = ["-q", "--suite", "planted-suite", "--nodes", "p5-[001-004]", "--seed", &seed];
            project.harness(&args);
            id(project)
        })
        .collect()
}

fn all_runs(project: &Project) -> Vec<String> {
    let runs = fs::read_dir(project.path().join("runs")).expect("runs").flatten();
    let mut names: Vec<String> = runs.map(|run| run.file_name().to_string_lossy().into_owned()).collect();
    names.retain(|name| name.starts_with('2'));
    names.sort();
    names
}

fn propose(project: &Project) -> String {
    let runs = all_runs(project);
    let mut args = vec!["baseline", "propose", "--run"];
    args.extend(runs.iter().map(String::as_str));
    let proposed = project.harness(&args);
    assert_eq!(proposed.code, Some(0), "{}", proposed.all());
    proposed.stdout
}

fn accept(project: &Project) {
    let args = ["baseline", "accept", "all", "--by", "planted-person", "--reason", "planted-reason"];
    let accepted = project.harness(&args);
    assert_eq!(accepted.code, Some(0), "{}", accepted.all());
}

/// The pack of a site with eight runs.
fn pack() -> String {
    let site = site(8, 100);
    propose(&site);
    accept(&site);
    site.write("key.pem", KEY);
    fs::set_permissions(site.path().join("key.pem"), fs::Permissions::from_mode(0o600)).expect("set");
    let args = ["baseline", "export", "sim-p5", "--sanitise", "--sign", "key.pem", "--output", "pack.toml"];
    let exported = site.harness(&args);
    assert_eq!(exported.code, Some(0), "{}", exported.all());
    assert!(exported.stdout.contains(&format!("signed by {DIGITS}")), "{}", exported.all());
    fs::read_to_string(site.path().join("pack.toml")).expect("a pack")
}

#[test]
fn three_runs_and_the_pack_of_another_site_make_a_baseline_that_judges() {
    let pack = pack();
    for name in ["planted", "p5-0", "nccl-p5", "runs/"] {
        assert!(!pack.contains(name), "{name}: {pack}");
    }
    let site = site(3, 200);
    assert!(!propose(&site).contains("accepted"), "three runs alone are too few");
    site.write("theirs.toml", &pack);
    let import = |args: &[&str]| site.harness(&[&["baseline", "import", "theirs.toml"], args].concat());
    let asked = import(&[]);
    assert_eq!(asked.code, Some(2), "{}", asked.all());
    assert!(asked.stderr.contains(&format!("--trust {DIGITS}")), "{}", asked.all());
    assert_eq!(import(&["--trust", &"0".repeat(64)]).code, Some(2));
    assert!(!site.path().join("baselines/packs").exists(), "nothing is kept of a pack without trust");
    let taken = import(&["--trust", DIGITS]);
    assert_eq!(taken.code, Some(0), "{}", taken.all());
    assert_eq!(import(&[]).code, Some(0), "a known key need not be named again");
    let proposed = propose(&site);
    assert!(proposed.contains("pack 19bf4409: nccl.busbw: predicts the medians of 7 keys to "), "{proposed}");
    assert!(proposed.contains("n = 3, accepted"), "{proposed}");
    accept(&site);
    let args = ["--suite", "planted-suite", "--nodes", "p5-[001-004]", "-v"];
    let healthy = site.harness(&args);
    assert_eq!(healthy.code, Some(0), "{}", healthy.all());
    let slow = site.harness(&[&args[..], &["--sim-fault", "p5-002:node-slow=0.5"]].concat());
    assert_eq!(slow.code, Some(1), "{}", slow.all());
    let verdicts = fs::read_to_string(site.latest().join("junit.xml")).expect("JUnit");
    assert!(verdicts.contains("with pack 19bf4409 as good as n = "), "{verdicts}");
}

#[test]
fn a_pack_that_was_edited_or_is_of_our_own_runs_is_refused() {
    let pack = pack();
    let site = site(1, 300);
    let import = |text: &str| {
        site.write("theirs.toml", text);
        site.harness(&["baseline", "import", "theirs.toml", "--trust", DIGITS])
    };
    let unsigned =
        pack.lines().filter(|line| !line.starts_with("# signature")).fold(String::new(), |a, b| a + b + "\n");
    for (text, why) in [
        (pack.replacen("samples = [", "samples = [1.0, ", 1), "the file was edited"),
        (unsigned, "it is not signed"),
        (format!("{pack}\n"), "cut or was edited"),
        (String::new(), "it is not signed"),
    ] {
        let refused = import(&text);
        assert_eq!(refused.code, Some(2), "{}", refused.all());
        assert!(refused.stderr.contains(why), "{why}: {}", refused.all());
    }
    site.write(
        "baselines/sim-p5.toml",
        pack.lines().filter(|line| !line.starts_with('#')).fold(String::new(), |a, b| a + b + "\n").as_str(),
    );
    let own = import(&pack);
    assert_eq!(own.code, Some(2), "{}", own.all());
    assert!(own.stderr.contains("it is of the runs of your own baselines"), "{}", own.all());
    // Neither a key nor baselines in force are written over.
    site.write("key.pem", KEY);
    fs::set_permissions(site.path().join("key.pem"), fs::Permissions::from_mode(0o600)).expect("set");
    for taken in ["key.pem", "baselines/sim-p5.toml"] {
        let args = ["baseline", "export", "sim-p5", "--sanitise", "--sign", "key.pem", "--output", taken];
        let refused = site.harness(&args);
        assert_eq!(refused.code, Some(2), "{taken}: {}", refused.all());
        assert!(refused.stderr.contains("and not a pack"), "{taken}: {}", refused.all());
    }
    // Edited after it was taken.
    site.write("baselines/sim-p5.toml", "instance = \"sim-p5\"\nsimulated = true\n");
    assert_eq!(import(&pack).code, Some(0));
    let kept = "baselines/packs/sim-p5.19bf44096984cdfe.toml";
    site.write(kept, &pack.replacen("samples = [", "samples = [1.0, ", 1));
    let proposed = site.harness(&["baseline", "propose", "--run", "latest"]);
    assert_eq!(proposed.code, Some(2), "{}", proposed.all());
    assert!(proposed.stderr.contains(kept) && proposed.stderr.contains("remove it"), "{}", proposed.all());
    assert_eq!(import(&pack).code, Some(0), "a damaged one is replaced");
}

#[test]
fn a_pack_narrows_the_bounds_of_three_runs_and_turns_no_healthy_site_red() {
    let (mut suites, mut red) = (0, 0);
    for truth in TRUTHS {
        let [alone, helped, many] = scores(truth, 100, 0..60);
        (suites, red) = (suites + helped.suites, red + helped.red_suites);
        assert!(helped.missed <= alone.missed, "{truth:?}: {helped:?} {alone:?}");
        if truth == Truth::Level {
            assert!(helped.missed * 2 < alone.missed, "{helped:?} {alone:?}");
            assert!(helped.width < 1.2 * many.width, "{helped:?} {many:?}");
        }
    }
    assert!(red * 50 <= suites, "{red} of {suites}");
}
