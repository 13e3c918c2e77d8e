//! Profiled jobs of a node whose nsys leaves exports that do harm, over real sshds and under a real Slurm: a dictionary
//! of 20 GB, damaged tables, a folder of tables that is a link, names with escapes. The run ends as inconclusive, with
//! its reports, in little memory; the other node's verdicts stand, and no file outside of the run is read or removed.

use crate::fact::{Fact, trials};
use crate::hostile::{MOST_MIB, started};
use crate::peak_memory::most_mib;
use crate::planted::assert_found_nowhere;
use crate::project::{Project, ran};
use crate::slurm::bench as slurm;
use crate::slurm_cluster;
use crate::ssh::hosts::{self, Hosts};
use crate::ssh::suites::Bench;
use libtest_mimic::Trial;
use nsys::tables::{KernelRow, write};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::Child;

pub(crate) fn tests() -> Vec<Trial> {
    let over_ssh: &[Fact] = &[("exports_that_do_harm_cost_their_node_alone_over_ssh", over_ssh)];
    let under_slurm: &[Fact] = &[("exports_that_do_harm_cost_their_node_alone_under_slurm", under_slurm)];
    let mut all = trials("hostile", over_ssh, hosts::absent());
    all.extend(trials("hostile", under_slurm, slurm_cluster::absent()));
    all
}

/// What the second node's nsys does with the tables that it has exported to the folder `$out`.
const ATTACKS: &[(&str, &str)] = &[
    ("dictionary", "cp BENCH/dictionary $out/StringIds.parquet"),
    ("cut", "truncate -s -200 $out/CUPTI_ACTIVITY_KIND_KERNEL.parquet"),
    (
        "other-bytes",
        "printf '\\377\\025\\377\\025\\377' | dd of=$out/CUPTI_ACTIVITY_KIND_KERNEL.parquet bs=1 conv=notrunc \
         seek=$(($(stat -c %s $out/CUPTI_ACTIVITY_KIND_KERNEL.parquet) - 60)) status=none",
    ),
    ("folder-is-a-link", "rm -r $out; ln -s BENCH/canary $out"),
    ("table-is-a-link", "ln -sf BENCH/canary/StringIds.parquet $out/StringIds.parquet"),
    (
        "names",
        "cp $out/StringIds.parquet $out/$'\\e[31m.parquet'; cp $out/StringIds.parquet $out/$'a\\nb.parquet'",
    ),
];

/// Stands in a table of the user that no job is given.
const SECRET: &str = "the operator's own 7Qz4";

/// A node's own nsys, as far as the harness calls it.
const NSYS: &str = r#"#!/bin/bash
case $1 in
  --version) echo 'NVIDIA Nsight Systems version 2025.3.1.90-253135822126v0' ;;
  profile)
    shift
    while [[ $1 == -* ]]; do
      [[ $1 == --output=* ]] && out=${1#--output=}
      shift
    done
    "$@"
    status=$?
    echo report > "$out.nsys-rep"
    exit "$status"
    ;;
  export)
    for word; do [[ $word == --output=* ]] && out=${word#--output=}; done
    mkdir "$out"
    cp BENCH/tables/*.parquet "$out"
    [[ ${HARNESS_NODE:-$(hostname)} == *2 ]] || exit 0
    case $PWD in
ATTACKS    esac
    ;;
esac
exit 0
"#;

fn export(project: &Project) {
    let kernel = |at: i64| KernelRow {
        start: at * 10_000,
        end: at * 10_000 + 9_000,
        device_id: 0,
        context_id: 1,
        stream_id: 7,
        correlation_id: Some(at),
        global_pid: Some(1 << 24),
        short_name: 1,
        demangled_name: 1,
    };
    let kernels = write::kernels(&(1..100).map(kernel).collect::<Vec<_>>()).expect("made");
    let strings = |text: &str| write::strings(&[(1, text.to_owned())]).expect("made");
    let path = |name: &str| project.path().join(name);
    for folder in ["tables", "canary"] {
        fs::create_dir_all(path(folder)).expect("made");
        fs::write(path(folder).join("CUPTI_ACTIVITY_KIND_KERNEL.parquet"), &kernels).expect("written");
    }
    fs::write(path("tables/StringIds.parquet"), strings("ncclDevKernel_AllReduce_Sum_f32_RING_LL"))
        .expect("written");
    fs::write(path("canary/StringIds.parquet"), strings(SECRET)).expect("written");
    fs::write(path("dictionary"), include_bytes!("../planted/dictionary-of-20-gb.parquet")).expect("written");
}

/// A suite with a case for each attack, the tables and the nsys.
fn plant(project: &Project) {
    let bench = project.path().display().to_string();
    export(project);
    let arms: String =
        ATTACKS.iter().map(|(name, attack)| format!("      */{name}/*) {attack} ;;\n")).collect();
    project.write("bin/nsys", &NSYS.replace("ATTACKS", &arms).replace("BENCH", &bench));
    let program = project.path().join("bin/nsys");
    fs::set_permissions(program, fs::Permissions::from_mode(0o755)).expect("made executable");
    let mut suite = "instance = \"p5\"\nabout = \"hostile exports\"\n".to_owned();
    for (name, _) in ATTACKS {
        suite += &format!(
            "[[case]]\nname = \"{name}\"\nplacement = \"each\"\nlimit_s = 60\ncounters = false\n\
             workload = {{ kind = \"command\", program = \"true\" }}\nrecipes = [\"cuda_gpu_kern_sum\"]\n\
             [case.profile]\nkeep = \"always\"\n\
             [[case.assert]]\nmetric = \"kernel.class_share\"\nclass = \"nccl\"\nat_least = \"90 %\"\n"
        );
    }
    project.write("suites/live.toml", &suite);
    let inventory = fs::read_to_string(project.path().join("inventory/live.toml")).expect("there");
    let inventory = inventory.replacen("[reach]", "nsys_version = \"2025.3.1\"\n[reach]", 1);
    project.write("inventory/live.toml", &format!("{inventory}nsys = \"{bench}/bin/nsys\"\n"));
}

const RUN: [&str; 6] = ["--suite", "live", "--inventory", "live", "--no-probe", "--keep-bad-nodes"];

fn judge(child: Child, project: &Project, nodes: [&str; 2]) {
    let id = child.id();
    let watch = std::thread::spawn(move || most_mib(id));
    let ran = ran(child.wait_with_output().expect("ends"));
    let most = watch.join().expect("watched");
    assert_eq!(ran.code, Some(3), "{}", ran.all());
    eprintln!("hostile exports: at most {most} MiB");
    assert!(most > 0 && most < MOST_MIB, "{most} MiB");
    let is_raw = |c: char| c.is_control() && !matches!(c, '\n' | '\t');
    assert!(!ran.stdout.contains(is_raw) && !ran.stderr.contains(is_raw), "{:?}", ran.all());
    assert!(!ran.stdout.contains(&format!("culprit {}", nodes[0])), "{}", ran.all());
    for report in ["summary.json", "junit.xml"] {
        let text = fs::read_to_string(project.latest().join(report)).expect("a report");
        assert!(!text.contains('\u{1b}'), "{report}");
    }
    let mut odd = Vec::new();
    for (name, _) in ATTACKS {
        let file = project.json(&format!("cases/{name}/verdict.json"));
        let verdicts = file["verdicts"].as_array().expect("verdicts");
        assert_eq!(verdicts.len(), 2, "{name}: {file}");
        for verdict in verdicts {
            let text = verdict.to_string();
            let is_bad = verdict["nodes"] == nodes[1];
            assert!(is_bad || verdict["nodes"] == nodes[0], "no node is named: {text}");
            let wanted = if is_bad { "inconclusive" } else { "pass" };
            if verdict["status"] != wanted {
                odd.push(format!("{name}: {wanted} wanted: {text}"));
            }
        }
    }
    assert!(odd.is_empty(), "{}\n{}", odd.join("\n"), ran.all());
    assert_found_nowhere(&project.latest(), SECRET);
    let canary = fs::read_dir(project.path().join("canary")).expect("there").count();
    assert_eq!(canary, 2, "tables of the user were removed");
}

fn over_ssh() {
    let bench = Bench::with_suite(Hosts::start(2), &[], "", "");
    plant(&bench.project);
    judge(started(&mut bench.project.command(&RUN)), &bench.project, ["h1", "h2"]);
    bench.reported_quiet(90);
}

fn under_slurm() {
    let bench = slurm::Bench::with_cases(2, "", "");
    plant(&bench.project);
    let child = started(&mut bench.command(&RUN));
    bench.cluster.script("own", &[&child.id().to_string()]);
    judge(child, &bench.project, ["n1", "n2"]);
    bench.cluster.assert_nothing_is_left();
}
