//! `harness logs nccl --compat` against gawk, which runs scripts that were written from the description of those they stand
//! for. Other awks print numbers beyond 2^31 their own way.

use crate::fact::Fact;
use crate::project::Project;
use std::fmt::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};

pub(crate) const MADE: &[Fact] =
    &[("the_lines_of_the_five_scripts_are_those_of_gawk", the_lines_of_the_five_scripts_are_those_of_gawk)];
pub(crate) const COLLECTED: &[Fact] = &[(
    "on_real_logs_the_lines_of_the_five_scripts_are_those_of_gawk",
    on_real_logs_the_lines_of_the_five_scripts_are_those_of_gawk,
)];

/// Not the scripts that people use, whose text is not ours.
const STEPS: &str = r#"
/Training epoch/ && /iteration/ {
    for (i = 1; i < NF; i++) if ($i == "iteration") { split($(i + 1), at, "/"); iter = at[1] + 0 }
}
iter > 44 && iter <= 50
"#;

const COMM: &str = r#"
BEGIN {
    n = split("0 1 10 11 int8 uint8 fp8_e4m3 fp8_e5m2", one, " "); for (i = 1; i <= n; i++) size[one[i]] = 1
    n = split("6 9 fp16 bf16", two, " "); for (i = 1; i <= n; i++) size[two[i]] = 2
    n = split("2 3 7 int32 uint32 fp32", four, " "); for (i = 1; i <= n; i++) size[four[i]] = 4
    n = split("4 5 8 int64 uint64 fp64", eight, " "); for (i = 1; i <= n; i++) size[eight[i]] = 8
}
/NCCL INFO/ && /opCount/ {
    op = ""; count = ""; type = ""
    for (i = 1; i <= NF; i++) {
        if (op == "" && $i ~ /.:$/) { op = $i; sub(/:$/, "", op) }
        if ($i == "count") { count = $(i + 1); gsub(/,/, "", count) }
        if ($i == "datatype") { type = $(i + 1); gsub(/,/, "", type) }
    }
    if (op != "" && count + 0 > 0 && size[type] > 0) print op, count, type, count * size[type]
}
"#;

const PER_OP: &str = r#"
{
    calls[$1]++; total[$1] += $4
    if (!($1 in min) || $4 + 0 < min[$1]) min[$1] = $4 + 0
    if ($4 + 0 > max[$1]) max[$1] = $4 + 0
}
END {
    for (op in calls)
        print op " calls=" calls[op] " min=" min[op] " avg=" total[op] / calls[op] " max=" max[op] " total=" total[op]
}
"#;

const HISTOGRAM: &str = r#"
{ n[$1 ":" ($4 < 65536 ? "<64KB" : $4 < 1048576 ? "64KB-1MB" : $4 < 16777216 ? "1MB-16MB" : ">16MB")]++ }
END { for (bucket in n) print bucket, n[bucket] }
"#;

const AGGREGATE: &str = r#"
{ n[$0]++ }
END {
    printf "%-10s %-15s %-12s %-10s %-12s\n", "calls", "op", "count", "dtype", "bytes_per_call"
    for (line in n) { split(line, at, " "); printf "%-10s %-15s %-12s %-10s %-12s\n", n[line], at[1], at[2], at[3], at[4] }
}
"#;

/// Calls of all kinds with and without labels, steps of a training, and much that is neither.
fn log(seed: u64) -> String {
    let mut state = seed.wrapping_mul(2).wrapping_add(1);
    let mut draw = |below: u64| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % below
    };
    let operations = ["AllReduce", "AllGather", "ReduceScatter", "Broadcast", "Send", "Recv", "AlltoAll"];
    let counts = [0, 1, 4096, 16_383, 16_384, 262_144, 4_194_303, 4_194_304, 3_000_000_000u64];
    let labels = ["", "", "0: ", "[1,0]<stdout>:", "node-1: "];
    let mut text = String::new();
    for _ in 0..draw(150) {
        let label = labels[draw(labels.len() as u64) as usize];
        let (rank, at) = (draw(8), 40 + draw(15));
        let operation = operations[draw(operations.len() as u64) as usize];
        let (count, datatype) = (counts[draw(counts.len() as u64) as usize], draw(14));
        let line = match draw(8) {
            0 => {
                format!("{label}Training epoch 0, iteration {at}/99 | lr: 0.1 | train_step_timing in s: 2.5")
            }
            1 => format!("{label}a:1{rank}:2 [{rank}] NCCL INFO Channel 00/0 : 0[0] -> 1[1] via P2P/CUMEM"),
            2 => "loss is fine".to_owned(),
            _ => format!(
                "{label}a:1{rank}:2 [{rank}] NCCL INFO {operation}: opCount {at:x} sendbuff 0x7 recvbuff 0x8 count {count} \
                 datatype {datatype} op 0 root 0 comm 0x5{rank} [nranks=8] stream 0x9"
            ),
        };
        writeln!(text, "{line}").expect("a text takes all");
    }
    text
}

fn sorted(text: &str) -> Vec<&str> {
    let mut lines: Vec<&str> = text.lines().collect();
    lines.sort_unstable();
    lines
}

fn awk(script: &str, input: &Path) -> String {
    let out = Command::new("gawk").arg(script).arg(input).stderr(Stdio::null()).output().expect("gawk");
    assert!(out.status.success(), "{script}");
    String::from_utf8_lossy(&out.stdout).into_owned()
}

fn the_lines_of_the_five_scripts_are_those_of_gawk() {
    let project = Project::new();
    let mut compared = 0;
    for seed in 0..12 {
        let file = project.path().join(format!("{seed}.log"));
        std::fs::write(&file, log(seed)).expect("a file");
        let comm = awk(COMM, &file);
        let calls = project.path().join("calls");
        std::fs::write(&calls, &comm).expect("a file");
        let mut expected = vec![
            ("separate-steps", awk(STEPS, &file)),
            ("comm", comm),
            ("per-op", awk(PER_OP, &calls)),
            ("histogram", awk(HISTOGRAM, &calls)),
        ];
        let aggregate = awk(AGGREGATE, &calls);
        if aggregate.lines().count() > 1 {
            expected.push(("aggregate", aggregate));
        }
        for (script, expected) in expected {
            compared += usize::from(!expected.is_empty());
            let ran = project.harness(&["logs", "nccl", "--compat", script, &file.display().to_string()]);
            assert_eq!(sorted(&ran.stdout), sorted(&expected), "seed {seed}, {script}");
        }
    }
    assert!(compared > 30, "only {compared} outputs were compared");
}

/// Logs of real programs, with labels, tables and prose among their lines.
fn on_real_logs_the_lines_of_the_five_scripts_are_those_of_gawk() {
    let project = Project::new();
    let folders = ["nccl-debug", "nccl-tests", "training"].into_iter();
    let files: Vec<_> = folders.flat_map(crate::corpus::files).collect();
    let mut compared = 0;
    for file in &files {
        let comm = awk(COMM, file);
        let calls = project.path().join("calls");
        std::fs::write(&calls, &comm).expect("a file");
        let mut expected = vec![
            ("separate-steps", awk(STEPS, file)),
            ("per-op", awk(PER_OP, &calls)),
            ("histogram", awk(HISTOGRAM, &calls)),
        ];
        if !comm.is_empty() {
            expected.push(("aggregate", awk(AGGREGATE, &calls)));
        }
        expected.push(("comm", comm));
        for (script, expected) in expected {
            compared += usize::from(!expected.is_empty());
            let shown = file.display().to_string();
            let ran = project.harness(&["logs", "nccl", "--compat", script, &shown]);
            // Letters that are none show as such in both, each in its own way.
            let plain = |text: &str| text.replace(|c: char| !c.is_ascii(), "?");
            assert_eq!(sorted(&plain(&ran.stdout)), sorted(&plain(&expected)), "{shown}, {script}");
        }
    }
    assert!(compared >= 4, "only {compared} outputs were compared");
}
