//! Jobs that have nodes and have not begun, since a prolog still runs or the nodes still boot: they wait, and their time
//! limit counts from their script's first line.

use super::bench::{Bench, RUN, case, ended};
use crate::fact::Fact;
use std::fs;
use std::os::unix::fs::PermissionsExt;

pub(super) const FACTS: &[Fact] =
    &[("a_prolog_longer_than_the_time_limit_is_no_hang_of_a_node", slow_prolog)];

fn slow_prolog() {
    // The limit is long beside what the script does also on a busy machine.
    let folder = tempfile::tempdir().expect("a folder");
    let prolog = folder.path().join("prolog");
    fs::write(&prolog, "#!/bin/sh\nexec sleep 25\n").expect("written");
    fs::set_permissions(&prolog, fs::Permissions::from_mode(0o755)).expect("made executable");
    let line = format!("PrologSlurmctld={}", prolog.display());
    let cases =
        case("each", "\"each\"", "well", "limit_s = 20").replace("queue_limit_s = 20", "queue_limit_s = 120");
    let bench = Bench::on(2, &[&line], "", &cases);
    bench.program("well", "exit 0");
    // The probe is a job, too, and has a prolog of its own.
    let ran = ended(bench.start_with(&[RUN.as_slice(), &["--no-probe"]].concat()));
    assert_eq!(ran.code, Some(0), "{}", ran.all());
    assert!(ran.blamed().is_empty(), "{}", ran.all());
    bench.came_to("a prolog longer than a job's time limit, Slurm", &ran, ["pass", "none", "2 pass"]);
}
