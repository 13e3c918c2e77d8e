//! Recipes that users write, from the command line and in suites: what they give, how they are listed, what holds them to
//! their limits, and that a run goes through them again without their files.

use crate::project::{Project, Ran, root};
use crate::small_export::{ExportFolder, PLAIN, Report};
use rusqlite::{Connection, params};
use serde_json::Value;

fn shipped(name: &str) -> String {
    root().join("suites/recipes").join(format!("{name}.toml")).display().to_string()
}

#[track_caller]
fn assert_reported(ran: &Ran, code: i32, expected: &str) {
    assert_eq!(ran.code, Some(code), "{}", ran.all());
    assert!(ran.stderr.contains(expected), "no `{expected}` in\n{}", ran.all());
}

/// Two ranks: the second's device takes twice as long for what it computes, and as long for what it sends.
fn two_ranks() -> ExportFolder {
    let place = ExportFolder::new();
    let of = |long: i64| {
        [
            (0, 1_000 * long, "gemm"),
            (5_000, 5_000 + 1_000 * long, "gemm"),
            (9_000, 9_700, "ncclDevKernel_AllReduce"),
        ]
    };
    for (rank, long) in [(0, 1), (1, 1), (2, 2)] {
        place.sqlite(
            &format!("reports/rank{rank}.sqlite"),
            Report { kernels: &of(long), ..Report::default() },
        );
    }
    place
}

#[test]
fn kernel_times_by_name_on_each_device_are_exact_and_the_slow_device_is_first() {
    let place = two_ranks();
    let path = shipped("kernel_times");
    let args = ["kernel_times", "reports", "--csv", "--recipe-path", &path];
    let ran = place.verb("recipe", &args);
    assert_eq!(ran.code, Some(0), "{}", ran.all());
    assert_eq!(
        ran.stdout,
        "Rank,device,total (ns),slowdown\n2,0,4000,2.0\n0,0,2000,1.0\n1,0,2000,1.0\n",
        "{}",
        ran.all()
    );
    let ran = place.verb("recipe", &[&args[..], &["--table", "rows"]].concat());
    let lines: Vec<&str> = ran.stdout.lines().collect();
    assert_eq!(
        lines[0],
        "Rank,Host,kernel,device,runs,total (ns),mean (ns),median (ns),least (ns),most (ns)",
        "{}",
        ran.all()
    );
    assert_eq!(lines[1], "0,,gemm,0,2,2000,1000.0,1000.0,1000,1000");
    assert_eq!(lines[2], "0,,ncclDevKernel_AllReduce,0,1,700,700.0,700.0,700,700");
    assert_eq!(lines.len(), 7);
}

/// Requests of the plugin as its domains name them: two rails of one device, one of which carries three times as much.
fn with_plugin() -> ExportFolder {
    let place = ExportFolder::new();
    place.sqlite("rank0.sqlite", PLAIN);
    let db = Connection::open(place.path("rank0.sqlite")).expect("opens");
    let tid = (7i64 << 24) | 7;
    for (domain, name) in [(5, "aws-ofi-nccl dev 2_0"), (6, "aws-ofi-nccl dev 2_1")] {
        db.execute(
            "INSERT INTO NVTX_EVENTS VALUES (0, NULL, 75, NULL, ?1, ?2, NULL, NULL, ?3, NULL)",
            params![name, tid, domain],
        )
        .expect("put");
    }
    for (start, end, domain) in [(10, Some(20), 5), (30, Some(50), 5), (60, None, 5), (70, Some(80), 6)] {
        db.execute(
            "INSERT INTO NVTX_EVENTS VALUES (?1, ?2, 60, NULL, 'Send_write_seg', ?3, ?3, NULL, ?4, NULL)",
            params![start, end, tid, domain],
        )
        .expect("put");
    }
    place
}

#[test]
fn requests_of_the_plugin_are_reported_by_kind_device_and_rail() {
    let place = with_plugin();
    let ran = place.verb(
        "recipe",
        &["aws_ofi_nccl", "rank0.sqlite", "--csv", "--recipe-path", &shipped("aws_ofi_nccl")],
    );
    assert_eq!(
        ran.stdout,
        "Rank,Host,kind,dev,rail,event,requests,without_end,mean (ns),median (ns),most (ns)\n\
         0,,dev,2,0,Send_write_seg,3,1,15.0,15.0,20\n\
         0,,dev,2,1,Send_write_seg,1,0,10.0,10.0,10\n",
        "{}",
        ran.all()
    );
}

#[test]
fn the_balance_of_rails_is_against_the_mean_and_parameters_are_given_behind_the_name() {
    let place = with_plugin();
    let path = shipped("rail_balance");
    let ran = place.verb("recipe", &["rail_balance", "rank0.sqlite", "--csv", "--recipe-path", &path]);
    assert_eq!(
        ran.stdout,
        "Rank,dev,rail,requests,busy (ns),balance\n0,2,0,3,30,1.5\n0,2,1,1,10,0.5\n",
        "{}",
        ran.all()
    );
    let ran =
        place.verb("recipe", &["rail_balance:event=Recv", "rank0.sqlite", "--csv", "--recipe-path", &path]);
    assert_eq!(ran.stdout, "Rank,dev,rail,requests,busy (ns),balance\n", "{}", ran.all());
    let ran = place.verb("recipe", &["rail_balance:evnt=Recv", "rank0.sqlite", "--recipe-path", &path]);
    assert_reported(&ran, 2, "it has: event");
}

#[test]
fn own_recipes_are_listed_have_a_manual_and_are_looked_for_in_the_project() {
    let project = Project::new();
    let list = project.harness(&["recipe", "list"]);
    assert!(list.stdout.contains("at `--recipe-path`:\n  aws_ofi_nccl "), "{}", list.all());
    let manual = project.harness(&["recipe", "rail_balance", "--help"]);
    for expected in
        ["Declared in `suites/recipes/rail_balance.toml`", "event=TEXT (default: Send_write_seg)", "60 s"]
    {
        assert!(manual.stdout.contains(expected), "no `{expected}` in {}", manual.all());
    }
    project.write(
        "suites/recipes/broken.toml",
        "about = \"x\"\ntables = [\"CUDA_KERNEL\"]\nsql = \"SELECT x FROM CUDA_KERNEL\"\n",
    );
    let expected = "suites/recipes/broken.toml:3:15: unknown column `x`";
    assert_reported(&project.harness(&["recipe", "list"]), 2, expected);
    assert_reported(&project.harness(&["--suite", "canary", "--dry-run"]), 2, expected);
    let checked = project.harness(&["check"]);
    assert!(checked.code == Some(2) && checked.stdout.contains(expected), "{}", checked.all());
    let gone = ExportFolder::new().verb("recipe", &["list", "--recipe-path", "nowhere.toml"]);
    assert_reported(&gone, 2, "nowhere.toml: --recipe-path: cannot read it");
}

/// One recipe of a join that meets its equality for every pair of rows.
fn runaway(place: &ExportFolder, limits: &str, sql: &str) -> Ran {
    let kernels: Vec<(i64, i64, &str)> = (0..20_000).map(|at| (at * 10, at * 10 + 5, "gemm")).collect();
    place.sqlite("rank0.sqlite", Report { kernels: &kernels, ..Report::default() });
    let text = format!("about = \"x\"\ntables = [\"CUDA_KERNEL\"]\nsql = '''{sql}'''\n[limits]\n{limits}\n");
    place.write("runaway.toml", &text);
    place.verb("recipe", &["runaway", "rank0.sqlite", "--recipe-path", "runaway.toml"])
}

#[test]
fn a_query_that_would_fill_the_memory_is_ended_with_one_error() {
    let place = ExportFolder::new();
    let sql = "SELECT a.start, b.\"end\", a.shortName AS x, b.shortName AS y \
               FROM CUDA_KERNEL a JOIN CUDA_KERNEL b ON a.deviceId = b.deviceId";
    let ran = runaway(&place, "memory = \"512MiB\"", sql);
    assert_reported(&ran, 2, "error: rank0.sqlite: `runaway`: the query exceeded `limits.memory`: 512 MiB\n");
    assert_eq!(ran.stderr.lines().filter(|line| line.starts_with("error")).count(), 1, "{}", ran.all());
    assert_eq!(ran.stdout, "");
}

#[test]
fn a_query_that_does_not_end_is_ended_with_one_error() {
    let place = ExportFolder::new();
    let join = "SELECT a.start FROM CUDA_KERNEL a JOIN CUDA_KERNEL b ON a.deviceId = b.deviceId";
    let sql = format!("SELECT COUNT(*) AS n FROM ({join} WHERE SQRT(a.start * b.start) > 1) AS c");
    let ran = runaway(&place, "memory = \"64GiB\"\nseconds = 1", &sql);
    assert_reported(&ran, 2, "error: rank0.sqlite: `runaway`: the query exceeded `limits.seconds`: 1 s\n");
    assert_eq!(ran.stdout, "");
}

#[test]
fn more_rows_than_allowed_are_reported_with_both_numbers() {
    let place = ExportFolder::new();
    let ran = runaway(&place, "rows_out = 10", "SELECT start FROM CUDA_KERNEL");
    assert_reported(&ran, 2, "the result has more rows than `limits.rows_out` allows: 20000 > 10");
    let ran = runaway(&place, "rows_in = 10", "SELECT COUNT(*) AS n FROM CUDA_KERNEL");
    assert_reported(&ran, 2, "the tables have more rows than `limits.rows_in` allows: 20000 > 10");
}

#[test]
fn the_verb_that_answers_queries_is_not_typed() {
    assert_reported(&ExportFolder::new().verb("answer-query", &[]), 2, "is internal to the harness");
}

fn own_suite(assertion: &str) -> String {
    format!(
        r#"
instance = "p5"
about = "own"
[[case]]
name = "training"
placement = "all"
workload = {{ kind = "command", program = "torchrun", args = ["--nproc_per_node=8", "train.py", "--steps", "5"] }}
recipes = ["command", "longest"]
[case.profile]
ranks = "all"
[[case.assert]]
{assertion}
"#
    )
}

const LONGEST: &str = r#"
about = "the longest kernel"
tables = ["CUDA_KERNEL"]
sql = "SELECT MAX(\"end\" - start) AS longest FROM CUDA_KERNEL WHERE deviceId >= 0"
[[metric]]
name = "longest.time"
about = "the longest kernel of a rank"
value = "longest"
unit = "ns"
better = "lower"
"#;

#[test]
fn a_recipe_of_ones_own_is_asserted_in_a_suite_and_replayed_without_its_file() {
    let project = Project::new();
    project.write("mine/longest.toml", LONGEST);
    project.write(
        "suites/own.toml",
        &own_suite("metric = \"longest.time\"\nper = \"node\"\nat_most = \"1000000000 ns\""),
    );
    let ran = project.harness(&["--suite", "own", "-q"]);
    assert_reported(&ran, 2, "unknown recipes: `longest`");
    let ran = project.harness(&["--suite", "own", "-q", "--recipe-path", "mine"]);
    assert_eq!(ran.code, Some(0), "{}", ran.all());
    let plan = project.json("plan.json");
    assert_eq!(plan["recipes"][0]["text"], Value::from(LONGEST));
    assert_eq!(plan["recipes"][0]["sha256"].as_str().map(str::len), Some(64));
    let first = project.json("cases/training/verdict.json");
    let observed = first["verdicts"][0]["observed"].as_f64().expect("a number");
    assert!(observed > 0.0, "{first}");
    // Neither the file nor another of its name counts any more.
    std::fs::remove_file(project.path().join("mine/longest.toml")).expect("gone");
    project.write("suites/recipes/longest.toml", "about = 7");
    let ran = project.harness(&["--run", "latest", "--from", "analyze", "-q"]);
    assert_eq!(ran.code, Some(0), "{}", ran.all());
    let again = project.json("cases/training/verdict.json");
    assert_eq!(again["verdicts"][0]["observed"].as_f64(), Some(observed));
}

#[test]
fn what_a_suite_asks_of_an_own_recipe_is_checked_before_anything_runs() {
    let project = Project::new();
    project.write("suites/recipes/longest.toml", LONGEST);
    for (assertion, expected) in [
        ("metric = \"longest.tim\"\nat_most = \"1000000000 ns\"", "did you mean `longest.time`?"),
        ("metric = \"longest.time\"\nat_most = 5", "needs its unit: `5`"),
        ("metric = \"longest.time\"\nper = \"gpu\"\nat_most = \"1000000000 ns\"", "is not measured per gpu"),
    ] {
        project.write("suites/own.toml", &own_suite(assertion));
        assert_reported(&project.harness(&["--suite", "own", "--dry-run"]), 2, expected);
    }
    let without = own_suite("metric = \"longest.time\"\nat_most = \"1000000000 ns\"")
        .replace("[case.profile]\nranks = \"all\"\n", "");
    project.write("suites/own.toml", &without);
    assert_reported(&project.harness(&["--suite", "own", "--dry-run"]), 2, "the case has no `profile`");
}

#[test]
fn an_own_recipe_without_rows_is_inconclusive_and_says_why() {
    let project = Project::new();
    project.write("suites/recipes/longest.toml", &LONGEST.replace("deviceId >= 0", "deviceId > 100"));
    project.write(
        "suites/own.toml",
        &own_suite("metric = \"longest.time\"\nper = \"node\"\nat_most = \"1000000000 ns\""),
    );
    let ran = project.harness(&["--suite", "own", "-q"]);
    assert_eq!(ran.code, Some(3), "{}", ran.all());
    let verdict = &project.json("cases/training/verdict.json")["verdicts"][0];
    assert_eq!(verdict["cause"], "recipe-no-value", "{verdict}");
    assert!(
        verdict["message"].as_str().is_some_and(|text| text.contains("has no value in `longest`")),
        "{verdict}"
    );
}
