//! `harness baseline` from runs to decisions: proposed by simulated runs, decided in a real terminal, and linted against
//! what others have shipped.

use crate::little::pairs;
use crate::project::{Project, Ran, root};
use config::baseline::{Baselines, State};
use recipes::catalogue::Catalogue;
use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{Read, Write};
use std::process::Stdio;

/// In place of those that ship.
const NO_BASELINES: &str = "instance = \"sim-p5\"\nsimulated = true\n";

/// Nodes of an instance without published baselines.
const H200: &str = r#"
kind = "real"
instance = "p5e"
nodes = "h200-[1-2]"
reach = { via = "slurm" }
paths = { shared = "/fsx", nccl_tests = "/opt" }
"#;

/// A project whose only baselines are those that its own runs will make.
fn project() -> Project {
    let project = Project::new();
    project.write("suites/own.toml", &pairs("pairs", "against = \"baseline\""));
    project.write("baselines/sim-p5.toml", NO_BASELINES);
    project
}

fn run(project: &Project, seed: &str, more: &[&str]) -> Ran {
    let mut args = vec!["-q", "--suite", "own", "--nodes", "p5-[001-004]", "--seed", seed];
    args.extend(more);
    project.harness(&args)
}

fn id(project: &Project) -> String {
    fs::read_link(project.latest()).expect("a link").display().to_string()
}

fn read(project: &Project, file: &str) -> Baselines {
    let text =
        fs::read_to_string(project.path().join(file)).unwrap_or_else(|error| panic!("{file}: {error}"));
    Baselines::read(&text, file, &Catalogue::built_in())
        .map_err(|diagnostics| diagnostics.to_string())
        .expect("good")
}

#[test]
fn baselines_are_proposed_from_runs_accepted_and_then_judge() {
    let project = project();
    let mut ids = Vec::new();
    for seed in ["11", "12", "13", "14", "15"] {
        let ran = run(&project, seed, &[]);
        assert_eq!(ran.code, Some(3), "nothing to hold it against yet: {}", ran.all());
        ids.push(id(&project));
    }
    // The same jobs judged again are no further run, and what ran with a fault is none at all.
    assert_eq!(project.harness(&["-q", "--run", &ids[4], "--from", "judge"]).code, Some(3));
    let again = id(&project);
    run(&project, "16", &["--sim-fault", "p5-002:nic-slow=0.4@rdmap113s0"]);
    let faulty = id(&project);
    let mut args = vec!["baseline", "propose", "--run"];
    args.extend(ids.iter().map(String::as_str));
    args.extend([again.as_str(), faulty.as_str()]);
    let proposed = project.harness(&args);
    assert_eq!(proposed.code, Some(0), "{}", proposed.all());
    assert!(proposed.stderr.contains(&format!("excluded {again}: the same jobs as")), "{}", proposed.all());
    assert!(
        proposed.stderr.contains(&format!("excluded {faulty}: it ran with faults")),
        "{}",
        proposed.all()
    );
    assert!(
        proposed.stdout.contains("2 proposals from 5 runs: baselines/sim-p5.pending.toml"),
        "{}",
        proposed.all()
    );
    let pending = read(&project, "baselines/sim-p5.pending.toml");
    for entry in &pending.entries {
        assert_eq!((entry.samples.len(), entry.state, entry.runs.len()), (5, State::Accepted, 5));
        let median = entry.median();
        let (lower, upper) = (entry.lower.expect("lower"), entry.upper.expect("upper"));
        assert!(lower > 0.85 * median && lower < 0.95 * median && upper > 1.05 * median, "{entry:?}");
        assert!(entry.fingerprint.contains_key("nccl"), "{entry:?}");
    }
    // What is pending judges nothing.
    assert_eq!(run(&project, "17", &[]).code, Some(3));
    let no_reason = project.harness(&["baseline", "review", "--accept", "all", "--by", "ann"]);
    assert_eq!(no_reason.code, Some(2), "{}", no_reason.all());
    let accepted = project.harness(&[
        "baseline",
        "review",
        "--accept",
        "all",
        "--by",
        "ann",
        "--reason",
        "five healthy runs",
    ]);
    assert_eq!(accepted.code, Some(0), "{}", accepted.all());
    assert!(!project.path().join("baselines/sim-p5.pending.toml").exists());
    let in_force = read(&project, "baselines/sim-p5.toml");
    assert_eq!(in_force.entries.len(), 2);
    assert!(in_force.entries.iter().all(|entry| entry.accepted_by.as_deref() == Some("ann")));
    let green = run(&project, "18", &[]);
    assert_eq!(green.code, Some(0), "{}", green.all());
    let red = run(&project, "19", &["--sim-fault", "p5-002:nic-slow=0.4@rdmap113s0"]);
    assert_eq!(red.code, Some(1), "{}", red.all());
    let shown = project.harness(&["baseline", "show", "sim-p5"]);
    assert!(shown.stdout.contains("; ann: five healthy runs"), "{}", shown.all());
    let same = project.harness(&["baseline", "diff", "sim-p5", "sim-p5"]);
    assert_eq!((same.code, same.stdout.as_str()), (Some(0), "0 differences\n"), "{}", same.all());
    let exported = project.harness(&["baseline", "export", "sim-p5", "--format", "json"]);
    let rows: serde_json::Value = serde_json::from_str(&exported.stdout).expect("JSON");
    assert_eq!(rows.as_array().map(Vec::len), Some(2));
    assert_eq!(project.harness(&["baseline", "export", "sim-p5"]).stdout.lines().count(), 3);
}

#[test]
fn a_plan_that_judges_more_numbers_at_once_widens_the_bounds() {
    let project = project();
    let entry = |size: &str| {
        format!(
            "[[baseline]]\nmetric = \"nccl.busbw\"\nop = \"all_gather\"\nsize = \"{size}\"\nnodes = 2\nranks = 16\nunit = \"GB/s\"\n\
             state = \"accepted\"\nlower = 300.0\nupper = 380.0\nspread = 0.02\nfreedom = 40.0\njudged = 2\n\
             samples = [340, 340, 340, 340, 340]\nsource = \"x\"\n"
        )
    };
    let text = format!("instance = \"sim-p5\"\nsimulated = true\n{}{}", entry("1GiB"), entry("2GiB"));
    project.write("baselines/sim-p5.toml", &text);
    run(&project, "1", &[]);
    let plan: model::artefact::Plan = serde_json::from_value(project.json("plan.json")).expect("a plan");
    for assertion in &plan.cases[0].assertions {
        let Some(model::artefact::PlannedBaseline::Accepted(numbers)) = &assertion.bound.baseline else {
            panic!("{assertion:?}")
        };
        assert_eq!(numbers.widened_for, Some(plan.cases[0].assertions.len() as u32));
        assert!(numbers.lower < Some(300.0) && numbers.upper > Some(380.0), "{numbers:?}");
    }
}

const THREE: &str = r#"
instance = "p5"
[[baseline]]
metric = "nccl.busbw"
op = "all_reduce"
size = "1GiB"
nodes = 2
ranks = 16
unit = "GB/s"
state = "accepted"
lower = 400.0
upper = 480.0
spread = 0.02
freedom = 40.0
judged = 100
samples = [437, 436, 438, 437, 437]
source = "runs of this fleet"
[[baseline]]
metric = "nccl.busbw"
op = "all_reduce"
size = "2GiB"
nodes = 2
ranks = 16
unit = "GB/s"
state = "accepted"
lower = 400.0
upper = 490.0
spread = 0.02
freedom = 40.0
judged = 100
samples = [443, 444, 443, 442, 443]
source = "runs of this fleet"
[[baseline]]
metric = "nccl.busbw"
op = "all_reduce"
size = "4GiB"
nodes = 2
ranks = 16
unit = "GB/s"
state = "accepted"
lower = 420.0
upper = 510.0
spread = 0.02
freedom = 40.0
judged = 100
samples = [466, 466, 465, 467, 466]
source = "runs of this fleet"
"#;

/// The program at a terminal of its own, with these lines typed. Gives what the terminal showed, and the exit code.
fn typed(project: &Project, args: &[&str], lines: &str) -> (String, Option<i32>) {
    let pty = nix::pty::openpty(None, None).expect("a terminal");
    let slave = || Stdio::from(pty.slave.try_clone().expect("cloned"));
    let mut child =
        project.command(args).stdin(slave()).stdout(slave()).stderr(slave()).spawn().expect("it starts");
    drop(pty.slave);
    let mut terminal = File::from(pty.master);
    terminal.write_all(lines.as_bytes()).expect("typed");
    let mut shown = Vec::new();
    let mut some = [0; 4096];
    // The terminal ends with an error once no process holds its other end.
    while let Ok(n @ 1..) = terminal.read(&mut some) {
        shown.extend(some.iter().take(n));
    }
    let code = child.wait().expect("it ends").code();
    (String::from_utf8_lossy(&shown).into_owned(), code)
}

#[test]
fn at_a_terminal_one_is_accepted_one_rejected_and_one_skipped() {
    let project = Project::new();
    project.write("baselines/p5.pending.toml", THREE);
    let before = fs::read_to_string(project.path().join("baselines/p5.toml")).expect("read");
    // An answer that is none is asked for again, and so is a reason that says nothing.
    let lines = "x\na\n\nfive runs of our own fleet\nr\none switch was being replaced\ns\n";
    let (shown, code) = typed(&project, &["baseline", "review", "p5", "--by", "ann"], lines);
    assert_eq!(code, Some(0), "{shown}");
    assert!(shown.contains("1 of 3: p5 nccl.busbw all_reduce, 1GiB, 2 nodes, 16 ranks"), "{shown}");
    assert!(shown.contains("change"), "{shown}");
    assert!(shown.contains("1 accepted, 1 rejected, 1 left"), "{shown}");
    let accepted = read(&project, "baselines/p5.toml");
    let ours: Vec<_> = accepted.entries.iter().filter(|entry| entry.accepted_by.is_some()).collect();
    assert_eq!(ours.len(), 1);
    assert_eq!(ours[0].key.size_bytes, Some(1 << 30));
    assert_eq!(ours[0].accepted_by.as_deref(), Some("ann"));
    assert_eq!(ours[0].reason.as_deref(), Some("five runs of our own fleet"));
    assert!(ours[0].date.as_deref().is_some_and(|date| date.len() == 10));
    let after = fs::read_to_string(project.path().join("baselines/p5.toml")).expect("read");
    assert_eq!(before.lines().next(), after.lines().next(), "the words at the top of the file stay");
    let old = Baselines::read(&before, "baselines/p5.toml", &Catalogue::built_in()).expect("good");
    assert_eq!(old.entries.len(), accepted.entries.len(), "it took the place of the published one");
    let pending = read(&project, "baselines/p5.pending.toml");
    let left: Vec<_> = pending
        .entries
        .iter()
        .map(|entry| (entry.key.size_bytes, entry.rejected_by.as_deref(), entry.reason.as_deref()))
        .collect();
    assert_eq!(
        left,
        [(Some(2 << 30), Some("ann"), Some("one switch was being replaced")), (Some(4 << 30), None, None)]
    );
    // Only the skipped one is asked for again; a closed terminal decides nothing.
    let (shown, _) = typed(&project, &["baseline", "review", "p5", "--by", "ann"], "a\n\u{4}");
    assert!(shown.contains("1 of 1: ") && shown.contains("0 accepted, 0 rejected, 1 left"), "{shown}");
    let unattended = project.harness(&["baseline", "review", "p5", "--by", "ann"]);
    assert!(unattended.stderr.contains("interactive review needs a terminal"), "{}", unattended.all());
}

#[test]
fn simulated_numbers_are_never_accepted_for_a_real_instance() {
    let project = Project::new();
    let simulated = THREE.replace("instance = \"p5\"", "instance = \"p5\"\nsimulated = true");
    project.write("baselines/p5.pending.toml", &simulated);
    let args = ["baseline", "review", "p5", "--accept", "all", "--by", "ann", "--reason", "x"];
    let ran = project.harness(&args);
    assert_eq!(ran.code, Some(2), "{}", ran.all());
    assert!(ran.stderr.contains("simulated baselines are for a `sim-` instance only"), "{}", ran.all());
    // Nor under another name than the file's.
    project.write("baselines/p5.pending.toml", &simulated.replace("\"p5\"", "\"sim-p5\""));
    let ran = project.harness(&args);
    assert_eq!(ran.code, Some(2), "{}", ran.all());
}

/// What others shipped, each row in the words of this project's files.
#[test]
fn the_lint_flags_every_diagnostic_that_others_have_shipped() {
    let project = Project::new();
    let clean = project.harness(&["baseline", "lint"]);
    assert_eq!(clean.code, Some(0), "every sound published row passes: {}", clean.all());
    let entry = |more: &str| {
        format!(
            "[[baseline]]\nmetric = \"nccl.busbw\"\nunit = \"GB/s\"\nsource = \"x\"\nop = \"all_reduce\"\n{more}\n"
        )
    };
    let rows = [
        // 800 GB/s of two nodes, on a sweep that ends at 128 MiB.
        (
            "size = \"128MiB\"\nnodes = 2\nranks = 16\nstate = \"provisional\"\nlower = 800\nsamples = [800]",
            "is above the hardware limit of",
        ),
        // A latency size gated on bandwidth.
        (
            "size = \"1MiB\"\nnodes = 2\nranks = 16\nstate = \"provisional\"\nlower = 14\nsamples = [15.95]",
            "latency-bound",
        ),
        // A factor of 0.9 that stands nowhere.
        (
            "size = \"1GiB\"\nnodes = 2\nranks = 16\nstate = \"accepted\"\nlower = 393.3\nsamples = [437, 437, 437, 437, 437]",
            "accepted bound at 0.900 of the median",
        ),
        // A tolerance narrower than what was measured.
        (
            "size = \"8GiB\"\nnodes = 2\nranks = 16\nstate = \"provisional\"\nlower = 425\nsamples = [400, 415, 430, 445, 460]",
            "bound within the noise of its own samples",
        ),
    ];
    let mut text = "instance = \"p5\"\n".to_owned();
    text.extend(rows.iter().map(|(row, _)| entry(row)));
    project.write("baselines/p5.toml", &text);
    let output = project.harness(&["baseline", "lint"]);
    assert_eq!(output.code, Some(2), "{}", output.all());
    for (_, diagnostic) in rows {
        assert!(output.stdout.contains(diagnostic), "{diagnostic}\n{}", output.all());
    }
    // The gate on the average of a sweep: a bandwidth without its size.
    project.write(
        "baselines/p5.toml",
        &format!(
            "instance = \"p5\"\n{}",
            entry("nodes = 2\nranks = 16\nstate = \"provisional\"\nsamples = [84.06]")
        ),
    );
    let output = project.harness(&["baseline", "lint"]);
    assert!(output.stdout.contains("missing key: `size`, `nccl.busbw` depends on it"), "{}", output.all());
    // An instance in the inventory that no baseline knows, though suites ask for one.
    project.write("inventory/h200.toml", H200);
    let output = project.harness(&["baseline", "lint"]);
    assert!(
        output.stdout.contains("suites compare `p5e` with baselines, but it has none"),
        "{}",
        output.all()
    );
    // The same limit in a suite, whose sweep ends at 128 MiB.
    project.write(
        "suites/gate.toml",
        "instance = \"p5\"\nabout = \"x\"\n[[case]]\nname = \"gate\"\nplacement = 2\nrecipes = [\"nccl_tests\"]\n\
         workload = { kind = \"nccl-tests\", op = \"all_reduce\", from = \"8\", to = \"128MiB\" }\n\
         [[case.assert]]\nmetric = \"nccl.busbw\"\nsize = \"128MiB\"\nat_least = \"800 GB/s\"\n",
    );
    let output = project.harness(&["baseline", "lint"]);
    assert!(output.stdout.contains("is above the hardware limit of all_reduce"), "{}", output.all());
}

/// The rule of floors, on the figures that `floor_source` names: the lowest of three published systems, else 60 % of the
/// lowest figure. Floors are rounded down to a tenth.
#[test]
fn floors_of_published_baselines_follow_from_the_figures_that_they_name() {
    let project = Project::new();
    let real = |folder: &str| -> BTreeSet<String> {
        let files = fs::read_dir(root().join(folder)).expect(folder).flatten();
        let names = files.map(|file| file.file_name().to_string_lossy().into_owned());
        let names = names.filter_map(|name| name.strip_suffix(".toml").map(str::to_owned));
        names.filter(|name| !name.starts_with("sim-")).collect()
    };
    let published = real("baselines");
    let without: Vec<String> = real("inventory/instances").difference(&published).cloned().collect();
    assert_eq!(without, ["p5e"], "docs/src/how-to/review-baselines.md names them");
    for instance in &published {
        for entry in read(&project, &format!("baselines/{instance}.toml")).entries {
            let (Some(floor), Some(source)) = (entry.floor, &entry.floor_source) else {
                panic!("{instance}: a published key without a floor: {:?}", entry.key)
            };
            let case = format!("{instance}: {floor}, {:?}, {source}", entry.samples);
            let lowest = |figures: &[f64]| figures.iter().copied().fold(f64::INFINITY, f64::min);
            if let Some(named) = source.strip_prefix("the lowest of three published systems: ") {
                let before = named.split(" (").filter_map(|part| part.rsplit(' ').next());
                let figures: Vec<f64> = before.filter_map(|word| word.parse().ok()).collect();
                assert!(figures.len() >= 3 && floor == lowest(&figures), "{case}");
                assert!(entry.samples.iter().all(|sample| figures.contains(sample)), "{case}");
            } else {
                let named = source.strip_prefix("60 % of the lowest published figure").expect(&case);
                let named = named.strip_prefix(" of a sound system").unwrap_or(named);
                let named = named.strip_prefix(", ").expect(&case);
                let (figure, rest) = named.split_once(' ').unwrap_or((named, ""));
                let figure: f64 = figure.parse().expect(&case);
                // A figure that is none of the samples comes with its own source.
                let is_sample = figure == lowest(&entry.samples);
                assert!(is_sample || (figure < lowest(&entry.samples) && rest.starts_with('(')), "{case}");
                let rounded = 0.6 * figure - floor;
                assert!((-1e-9..0.1).contains(&rounded), "{case}");
            }
        }
    }
}

#[test]
fn what_a_probe_reported_is_part_of_the_fingerprint_and_a_run_that_does_not_report_it_is_not_comparable() {
    let project = project();
    run(&project, "11", &["--probe"]);
    let first = id(&project);
    let proposed = project.harness(&["baseline", "propose", "--run", &first]);
    assert_eq!(proposed.code, Some(0), "{}", proposed.all());
    let pending = read(&project, "baselines/sim-p5.pending.toml");
    for part in ["nccl", "driver", "libfabric", "efa_installer", "ofi_nccl", "kernel"] {
        assert!(pending.entries.iter().all(|entry| entry.fingerprint.contains_key(part)), "{part}");
    }
    assert!(pending.entries.iter().all(|entry| entry.key.placement.as_deref() == Some("pairs")));
    // One run gives no bounds; those of the simulated cluster's own are as good.
    for mut entry in pending.entries {
        let median = entry.median();
        entry.samples = vec![median; 5];
        (entry.lower, entry.upper) = (Some(median * 0.8), Some(median * 1.2));
        entry.state = State::Accepted;
        let mut all = Baselines::none("sim-p5", true, "baselines/sim-p5.toml");
        if project.path().join(&all.file).exists() {
            all = read(&project, "baselines/sim-p5.toml");
        }
        all.entries.push(entry);
        project.write("baselines/sim-p5.toml", &all.render());
    }
    let probed = run(&project, "12", &["--probe"]);
    assert_eq!(probed.code, Some(0), "{}", probed.all());
    // Gone through again, from the files alone, it reports the same.
    for stage in ["collect", "analyze", "judge"] {
        let again = project.harness(&["-q", "--run", "latest", "--from", stage]);
        assert_eq!(again.code, Some(0), "{stage} {}", again.all());
    }
    let not_reported = run(&project, "13", &[]);
    assert_eq!(not_reported.code, Some(3), "{}", not_reported.all());
    assert!(project.reported().contains(" is unknown in this run, "), "{}", not_reported.all());
    let other = run(&project, "14", &["--probe", "--sim-fault", "p5-001:driver-differs"]);
    assert_eq!(other.code, Some(3), "{}", other.all());
    let set = pairs("pairs", "against = \"baseline\"")
        .replace("factor = 2 }", "factor = 2, environment = { NCCL_BUFFSIZE = \"8388608\" } }");
    project.write("suites/own.toml", &set);
    let set = run(&project, "15", &["--probe"]);
    assert_eq!(set.code, Some(3), "{}", set.all());
    assert!(
        project.reported().contains("variables is NCCL_BUFFSIZE=8388608 in this run, none in the baseline"),
        "{}",
        set.all()
    );
}

#[test]
fn an_expired_baseline_neither_passes_nor_fails() {
    let project = project();
    let expired = THREE.replace("\"accepted\"", "\"expired\"").replace("\"provisional\"", "\"expired\"");
    let text = expired.replace("instance = \"p5\"", "instance = \"sim-p5\"\nsimulated = true");
    let text = text.replace("all_reduce", "all_gather");
    project.write("baselines/sim-p5.toml", &text);
    for more in [&[][..], &["--sim-fault", "p5-002:nic-slow=0.4@rdmap113s0"]] {
        let ran = run(&project, "1", more);
        assert_eq!(ran.code, Some(3), "{}", ran.all());
        assert!(project.reported().contains("has expired"), "{}", ran.all());
    }
}

#[test]
fn a_run_whose_cross_checks_disagree_is_no_baseline() {
    let project = project();
    let suite = pairs("pairs", "against = \"baseline\"").replace(
        "\"all_gather\", from = \"1GiB\", to = \"2GiB\", factor = 2 }",
        "\"all_reduce\", from = \"64MiB\", to = \"256MiB\", factor = 2, iterations = 5 }",
    );
    let suite = suite
        .replace("[\"1GiB\", \"2GiB\"]", "\"64MiB\"")
        .replace("[\"nccl_tests\"]", "[\"nccl_tests\", \"cross_checks\"]");
    project.write("suites/own.toml", &format!(
        "{suite}[[case.assert]]\nmetric = \"crosscheck.kernels_without_calls\"\nequals = 0\n[case.profile]\nranks = \"all\"\n"
    ));
    let ran = run(&project, "1", &["--sim-fault", "p5-002:graph-launch"]);
    assert!(ran.code != Some(0) && ran.code != Some(2), "{}", ran.all());
    // As if unattended knew why.
    let path = project.latest().canonicalize().expect("a run").join("plan.json");
    let mut plan: serde_json::Value =
        serde_json::from_str(&fs::read_to_string(&path).expect("read")).expect("JSON");
    plan["sim_faults"] = serde_json::json!([]);
    fs::write(&path, plan.to_string()).expect("written");
    let proposed = project.harness(&["baseline", "propose", "--run", "latest"]);
    assert_eq!(proposed.code, Some(3), "{}", proposed.all());
    assert!(proposed.stderr.contains("its cross-checks disagree: "), "{}", proposed.all());
}
