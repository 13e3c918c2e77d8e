//! A harness that is killed by force while tasks of a real Slurm read its reports: what they leave is known by the run,
//! `clean` and `--resume` end it, and what belongs to others stays.

use super::analysis::{ON_NODES, finished, reads};
use super::bench::{Bench, RUN};
use crate::bed::StandIns;
use crate::fact::Fact;
use crate::project::{Ran, ran};
use serde_json::Value;
use std::fs;

pub(super) const FACTS: &[Fact] = &[
    ("what_a_killed_replay_left_of_its_analysis_is_ended_by_clean_and_nothing_of_others", killed_replay),
    ("a_run_that_is_killed_while_tasks_read_its_reports_goes_on_to_the_verdicts_of_one_machine", killed_run),
];

/// The first task that begins reports so, and waits.
const WAITS: &str = "if [[ -n ${SLURM_ARRAY_TASK_ID-} ]] && mkdir \"BENCH/first\" 2>/dev/null; then\n\
    touch \"BENCH/reads\"\nexec sleep 600\nfi\n";

fn hold(bench: &Bench) {
    for name in ["first", "reads"] {
        let path = bench.project.path().join(name);
        let _ = fs::remove_dir(&path).or_else(|_| fs::remove_file(&path));
    }
    bench.project.write("hook", &WAITS.replace("BENCH", &bench.folder()));
}

/// A harness that is killed while a task of its waits.
fn killed(bench: &Bench, args: &[&str]) {
    hold(bench);
    let mut command = bench.command(args);
    command.env("BASH_ENV", bench.project.path().join("hook"));
    let mut run = bench.running(command);
    bench.wait_for(&["reads"]);
    run.kill();
    assert!(!bench.cluster.ask(&["squeue", "--noheader"]).is_empty(), "tasks outlive their harness");
}

fn clean(bench: &Bench, more: &[&str]) -> Ran {
    let args = [&["clean", "--run", "latest"], more].concat();
    ran(bench.command(&args).output().expect("the harness starts"))
}

/// The folders of analyses that are there.
fn folders(bench: &Bench) -> Vec<String> {
    let there = fs::read_dir(bench.project.path().join("shared")).expect("a folder").flatten();
    let names = there.map(|entry| entry.file_name().to_string_lossy().into_owned());
    let mut names: Vec<String> = names.filter(|name| name.starts_with("analysis-")).collect();
    names.sort();
    names
}

fn killed_replay() {
    let bench = Bench::new("");
    reads(&bench);
    let parent = finished(&bench);
    let replay = [&["--run", &parent, "--from", "analyze"][..], &ON_NODES].concat();
    killed(&bench, &replay);
    let run = fs::read_link(bench.project.latest()).expect("a run").display().to_string();
    assert_ne!(run, parent);
    let own = folders(&bench);
    assert!(own.len() == 1 && own[0].starts_with(&format!("analysis-{run}.")), "{own:?}");
    // Those of the run before, of no run, and one of somebody else that has such a name.
    let others = [format!("analysis-{parent}.aaaaAAAA"), "analysis-aaaaAAAA".to_owned()];
    let foreign = format!("analysis-{run}.aaaaAAAA");
    let of_others: Vec<&String> = others.iter().chain([&foreign]).collect();
    for name in &of_others {
        bench.project.write(&format!("shared/{name}/order.json"), "{}");
    }
    let path = bench.project.path().join("shared").join(&foreign);
    std::os::unix::fs::chown(path, Some(12_345), None).expect("given away");
    let job = format!("--job-name={}.1", others[0]);
    let held = bench.cluster.ask(&["sbatch", "--parsable", "--hold", &job, "--wrap=true"]);
    let reported = clean(&bench, &["--dry-run"]);
    assert_eq!(reported.code, Some(1), "{}", reported.all());
    assert!(
        reported.stdout.contains("job in the queue") && reported.stdout.contains(&own[0]),
        "{}",
        reported.all()
    );
    assert!(reported.stdout.ends_with("left: 2\n"), "{}", reported.all());
    assert_eq!(folders(&bench).len(), 4, "telling ends nothing");
    let cleaned = clean(&bench, &[]);
    assert_eq!(cleaned.code, Some(0), "{}", cleaned.all());
    assert!(cleaned.stdout.contains("nothing is left: 2 found, all ended"), "{}", cleaned.all());
    assert_eq!(bench.cluster.ask(&["squeue", "--noheader", "--format=%i"]), held);
    let mut kept: Vec<&String> = of_others;
    kept.sort();
    assert!(folders(&bench).iter().eq(kept), "{:?}", folders(&bench));
    let again = clean(&bench, &[]);
    assert_eq!(again.code, Some(0), "{}", again.all());
    assert!(again.stdout.contains("nothing is left: 0 found"), "{}", again.all());
    // A controller that gives no answer has said nothing of its queue.
    let mut away = bench.command(&["clean", "--run", "latest"]);
    let away = ran(away.env("SLURM_CONF", "/no/such/slurm.conf").output().expect("starts"));
    assert_eq!(away.code, Some(3), "{}", away.all());
    bench.cluster.ask(&["scancel", &held]);
    let replayed = ran(bench.command(&replay).output().expect("the harness starts"));
    assert_eq!(replayed.code, Some(0), "{}", replayed.all());
    bench.cluster.assert_nothing_is_left();
}

/// Of every assertion what was judged and seen.
fn verdicts(bench: &Bench) -> Vec<Value> {
    let file = bench.project.json("cases/profiled/verdict.json");
    let of = |verdict: &Value| {
        Value::from(["name", "status", "observed", "n"].map(|key| verdict[key].clone()).to_vec())
    };
    file["verdicts"].as_array().expect("verdicts").iter().map(of).collect()
}

fn killed_run() {
    let profiled = "[[case]]\nname = \"profiled\"\nplacement = \"all\"\nrecipes = [\"nccl_tests\", \"cuda_gpu_kern_sum\"]\n\
        workload = { kind = \"nccl-tests\", op = \"scatter\", from = \"64MiB\", to = \"256MiB\", factor = 2 }\n\
        profile = { ranks = \"one-per-node\" }\n\
        [[case.assert]]\nmetric = \"kernel.class_share\"\nclass = \"nccl\"\nat_least = \"95 %\"\n\
        [[case.assert]]\nmetric = \"nccl.wrong\"\nequals = 0\n";
    let programs = StandIns::new("n[1-2]", "seed = 7\nfloor_s = 0.5\n");
    let bench = Bench::with(&programs, 2, profiled);
    reads(&bench);
    let all = |args: &[&str]| {
        let ran = ran(bench.command(args).output().expect("the harness starts"));
        assert_eq!(ran.code, Some(0), "{}", ran.all());
        verdicts(&bench)
    };
    let here = all(&RUN);
    assert!(here.len() >= 2, "{here:?}");
    let on_nodes = ["--suite", "live", "--analyze-on", "slurm", "--inventory", "live"];
    assert_eq!(all(&on_nodes), here);
    assert!(bench.project.latest().join("analyses.json").exists(), "where they read is recorded");
    // It goes on by itself, and leaves nothing of what was before.
    let resume = ["--run", "latest", "--resume", "--analyze-on", "slurm"];
    killed(&bench, &on_nodes);
    assert_eq!(all(&resume), here);
    assert_eq!(folders(&bench), [] as [String; 0]);
    bench.cluster.assert_nothing_is_left();
    // Or after it was cleaned up behind.
    killed(&bench, &on_nodes);
    assert_eq!(folders(&bench).len(), 1);
    let cleaned = clean(&bench, &[]);
    assert_eq!(cleaned.code, Some(0), "{}", cleaned.all());
    assert_eq!(folders(&bench), [] as [String; 0]);
    bench.cluster.assert_nothing_is_left();
    assert!(clean(&bench, &[]).stdout.contains("nothing is left: 0 found"));
    assert_eq!(all(&resume), here);
    bench.cluster.assert_nothing_is_left();
}
