//! What a run leaves under Slurm: no secret in its folder, and after `clean` nothing in the queue and on the nodes.

use super::bench::{Bench, RUN, case};
use crate::fact::Fact;
use crate::planted::{CORE, TOKEN, assert_found_nowhere, files};
use crate::project::ran;
use std::fs;

pub(super) const FACTS: &[Fact] = &[
    ("a_planted_token_reaches_every_task_and_is_found_nowhere_in_the_run", planted),
    ("what_a_killed_harness_left_in_the_queue_and_on_nodes_is_ended_by_clean", left),
];

const GIVEN: &str = "environment = { MY_TOKEN = \"env:PLANTED\" }, args = [\"--token\", \"env:PLANTED\"] }";

/// A case whose program is given the token.
fn given(name: &str, placement: &str, program: &str) -> String {
    case(name, placement, program, "").replacen("\" }\nrecipes", &format!("\", {GIVEN}\nrecipes"), 1)
}

fn planted() {
    let bench = Bench::with_cases(2, "", &given("shows", "\"all\"", "shows"));
    bench.program(
        "shows",
        "env; printf '%s|' \"$@\"; echo \"error: not let in: $MY_TOKEN\" >&2\n[[ $2 == \"$MY_TOKEN\" && $1 == --token && -n $2 ]]",
    );
    let ran = ran(bench.command(&RUN).env("PLANTED", TOKEN).output().expect("the harness starts"));
    assert_eq!(ran.code, Some(0), "{}", ran.all());
    assert!(!ran.all().contains(CORE), "{}", ran.all());
    assert_found_nowhere(&bench.project.latest(), CORE);
    let left = files(&bench.project.path().join("shared"));
    assert!(!left.iter().any(|file| file.ends_with("secrets")), "{left:?}");
    let script = left.iter().find(|file| file.ends_with("job.sh")).expect("a script");
    assert!(!fs::read_to_string(script).expect("text").contains(CORE));
    bench.cluster.assert_nothing_is_left();
}

fn left() {
    let cases = [case("runs", "\"each\"", "runs", ""), given("waits", "\"all\"", "runs")];
    let bench = Bench::with_cases(2, "", &cases.concat());
    bench.program("runs", "trap '' TERM\ntouch \"BENCH/$SLURMD_NODENAME\"\nwhile :; do sleep 1; done");
    let mut command = bench.command(&RUN);
    let mut run = command
        .env("PLANTED", TOKEN)
        // It beats the name that the script asks for.
        .env("SBATCH_JOB_NAME", "mine")
        .stdout(std::process::Stdio::null())
        .spawn()
        .expect("the harness starts");
    bench.wait_for(&["n1", "n2"]);
    run.kill().expect("killed");
    run.wait().expect("gone");
    let clean = |more: &[&str]| {
        ran(bench.command(&[&["clean", "--run", "latest"], more].concat()).output().expect("starts"))
    };
    let reported = clean(&["--dry-run"]);
    assert_eq!(reported.code, Some(1), "{}", reported.all());
    assert_eq!(reported.stdout.matches("job in the queue").count(), 2, "{}", reported.all());
    assert!(!bench.cluster.ask(&["squeue", "--noheader"]).is_empty(), "telling ends nothing");
    let cleaned = clean(&[]);
    assert_eq!(cleaned.code, Some(0), "{}", cleaned.all());
    bench.cluster.assert_nothing_is_left();
    let again = clean(&[]);
    assert_eq!(again.code, Some(0), "{}", again.all());
    assert!(again.stdout.contains("nothing is left: 0 found"), "{}", again.all());
    // A controller that gives no answer has said nothing of its queue.
    let mut away = bench.command(&["clean", "--run", "latest"]);
    let away = ran(away.env("SLURM_CONF", "/no/such/slurm.conf").output().expect("starts"));
    assert_eq!(away.code, Some(3), "{}", away.all());
}
