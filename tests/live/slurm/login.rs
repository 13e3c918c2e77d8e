//! Slurm's commands on a login host, which is reached by ssh: the harness's own machine has no cluster.

use super::bench::{Bench, case, ended};
use crate::fact::Fact;
use crate::ssh::hosts::Hosts;
use std::process::Stdio;

pub(super) const FACTS: &[Fact] = &[
    ("a_login_host_asks_slurm_where_this_machine_cannot", a_login_host_asks_slurm_where_this_machine_cannot),
    (
        "a_login_host_that_is_away_is_reported_and_blames_no_node",
        a_login_host_that_is_away_is_reported_and_blames_no_node,
    ),
];

/// A cluster and its login host, with a suite whose one case fails on n3.
fn bench(cases: &str) -> (Hosts, Bench) {
    let bench = Bench::with_cases(4, "login = \"h1\"\nlogin_config = \"BENCH/ssh_config\"", cases);
    let conf = bench.cluster.configuration();
    let first = bench.cluster.first_on_path();
    let path = if first.is_empty() { first } else { format!(" PATH={first}/usr/local/bin:/usr/bin:/bin") };
    let slurm = format!("SetEnv SHLVL=1 SLURM_CONF={conf}{path}");
    let hosts = Hosts::start_login(&slurm);
    let inventory = bench.project.path().join("inventory/live.toml");
    let text = std::fs::read_to_string(&inventory).expect("an inventory");
    let config = hosts.path("ssh_config").display().to_string();
    bench.project.write("inventory/live.toml", &text.replace("BENCH/ssh_config", &config));
    bench.program("well", "[[ $(hostname) == \"$SLURMD_NODENAME\" ]] && echo \"$1\"");
    bench.program("fails-on-n3", "[[ $(hostname) != n3 ]] || exit 9");
    (hosts, bench)
}

/// Without what would report clients of Slurm on this machine where a controller is.
fn run(bench: &Bench) -> crate::project::Ran {
    let mut command = bench.project.command(&["--suite", "live", "--inventory", "live"]);
    command.env("SLURM_CONF", "/no/such/slurm.conf").stdout(Stdio::piped()).stderr(Stdio::piped());
    ended(bench.running(command))
}

fn a_login_host_asks_slurm_where_this_machine_cannot() {
    let cases =
        [case("ends-well", "\"each\"", "well", ""), case("fails-somewhere", "\"each\"", "fails-on-n3", "")];
    let (_hosts, bench) = bench(&cases.concat());
    let ran = run(&bench);
    assert_eq!(ran.code, Some(1), "{}", ran.all());
    let well = bench.verdicts("ends-well");
    let all_pass = well.iter().all(|verdict| verdict.ends_with(" pass")) && well.len() == 4;
    assert!(all_pass, "{well:#?}\n{}", ran.all());
    let somewhere = bench.verdicts("fails-somewhere");
    let failed: Vec<&String> = somewhere.iter().filter(|verdict| !verdict.ends_with(" pass")).collect();
    assert_eq!(failed, ["command.exit_code@n3 fail"], "{}", ran.all());
    bench.cluster.assert_nothing_is_left();
}

fn a_login_host_that_is_away_is_reported_and_blames_no_node() {
    let (hosts, bench) = bench(&case("ends-well", "\"each\"", "well", ""));
    hosts.down(1);
    let ran = run(&bench);
    assert_eq!(ran.code, Some(3), "{}", ran.all());
    assert!(!bench.project.latest().exists(), "nothing was launched: {}", ran.all());
    assert!(ran.all().contains("no answer from any node"), "{}", ran.all());
    assert!(ran.all().contains("h1"), "{}", ran.all());
    assert!(ran.blamed().is_empty(), "{:?}", ran.blamed());
}
