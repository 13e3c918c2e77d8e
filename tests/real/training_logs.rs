//! `harness logs steps --compat` against awk, which runs a script that was written from the description of the one it stands for.

use crate::fact::Fact;
use crate::project::Project;
use std::fmt::Write as _;
use std::process::Command;

pub(crate) const FACTS: &[Fact] =
    &[("the_means_of_steps_are_those_of_awk", the_means_of_steps_are_those_of_awk)];

/// Not the script that people use, whose text is not ours.
const MEANS: &str = r#"
/Training epoch/ {
    n = 0
    for (i = 1; i <= NF; i++) if ($i == "iteration") { split($(i + 1), at, "/"); n = at[1] + 0 }
    if (n < 45 || n > 49) next
    t = ""; f = ""
    for (i = 1; i <= NF; i++) {
        if ($i == "train_step_timing" && $(i + 1) == "in" && $(i + 2) == "s:") { t = $(i + 3); gsub(/\|/, "", t) }
        if ($i == "TFLOPS_per_GPU:") { f = $(i + 1); gsub(/\|/, "", f) }
    }
    if (t != "" && f != "") { count++; seconds += t; tflops += f }
}
END {
    if (count == 0) { print "No matching iterations found in range 45-49"; exit }
    printf "Steps: %d (iterations 45-49)\n", count
    printf "Average train_step_timing (s): %.6f\n", seconds / count
    printf "Average TFLOPS_per_GPU:        %.6f\n", tflops / count
}
"#;

/// Lines of several ranks, restarts, lines without one of the values, and much that is none.
fn log(seed: u64) -> String {
    let mut state = seed.wrapping_mul(2).wrapping_add(1);
    let mut draw = |below: u64| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % below
    };
    let mut text = String::new();
    for _ in 0..draw(200) {
        let (rank, at, time) = (draw(16), 40 + draw(15), draw(1_000_000) as f64 / 1e4);
        let tflops = draw(1_000_000) as f64 / 1e3;
        let line = match draw(6) {
            0 => format!("{rank}: ip-10-0-0-1:7:9 [0] NCCL INFO AllReduce: opCount {at:x} iteration {at}/99"),
            1 => format!(
                "{rank}: Training epoch 0, iteration {at}/99 | lr: 0.1 | train_step_timing in s: {time}"
            ),
            2 => format!(
                "Training epoch 0, iteration {at}/99 | TFLOPS_per_GPU: {tflops} | train_step_timing in s: {time} |"
            ),
            _ => format!(
                "{rank}: Training epoch 0, iteration {at}/99 | lr: 0.1 | train_step_timing in s: {time} | TFLOPS_per_GPU: {tflops}"
            ),
        };
        writeln!(text, "{line}").expect("a text takes all");
    }
    text
}

fn the_means_of_steps_are_those_of_awk() {
    let project = Project::new();
    let script = project.path().join("means.awk");
    std::fs::write(&script, MEANS).expect("a file");
    for seed in 0..25 {
        let file = project.path().join(format!("{seed}.log"));
        std::fs::write(&file, log(seed)).expect("a file");
        let awk = Command::new("gawk").arg("-f").arg(&script).arg(&file).output().expect("gawk");
        let ran = project.harness(&["logs", "steps", "--compat", &file.display().to_string()]);
        assert_eq!(ran.stdout, String::from_utf8_lossy(&awk.stdout), "seed {seed}");
    }
}
