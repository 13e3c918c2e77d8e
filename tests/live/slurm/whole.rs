//! Undisturbed runs: from the suite to the verdicts, on the words of users and of strangers.

use super::bench::{Bench, case, ended};
use crate::fact::Fact;
use crate::project::root;
use proptest::strategy::{Strategy, ValueTree};
use std::fs;
use std::time::Duration;

pub(super) const FACTS: &[Fact] = &[
    (
        "a_suite_ends_with_its_verdicts_and_names_the_node_that_failed",
        a_suite_ends_with_its_verdicts_and_names_the_node_that_failed,
    ),
    (
        "any_word_arrives_unchanged_as_argument_value_and_path",
        any_word_arrives_unchanged_as_argument_value_and_path,
    ),
    (
        "sixty_four_nodes_are_one_job_and_sixty_four_jobs_in_little_memory",
        sixty_four_nodes_are_one_job_and_sixty_four_jobs_in_little_memory,
    ),
];

/// What rank 0 of nccl-tests prints; the others print nothing.
pub(super) const ALL_REDUCE: &str = r##"
[[ $SLURM_PROCID == 0 ]] || exit 0
echo "# nThread 1 nGpus 1 minBytes 1073741824 maxBytes 1073741824 step: 2(factor) warmup iters: 5 iters: 20 agg iters: 1 validation: 1 graph: 0"
echo "#"
echo "# Using devices"
rank=0
for node in $(scontrol show hostnames "$SLURM_JOB_NODELIST"); do
  for ((gpu = 0; gpu < SLURM_NTASKS / SLURM_NNODES; gpu++)); do
    printf '#  Rank %2d Group  0 Pid %6d on %10s device %2d [0x%02x] NVIDIA H100 80GB HBM3\n' "$rank" $((4000 + rank)) "$node" "$gpu" "$gpu"
    rank=$((rank + 1))
  done
done
cat <<'TABLE'
#
#                                                              out-of-place                       in-place
#       size         count      type   redop    root     time   algbw   busbw #wrong     time   algbw   busbw #wrong
#        (B)    (elements)                               (us)  (GB/s)  (GB/s)            (us)  (GB/s)  (GB/s)
  1073741824     268435456     float     sum      -1   5000.0  214.75  416.08      0   5000.0  214.75  416.08      0
# Out of bounds values : 0 OK
# Avg bus bandwidth    : 416.08
#
TABLE
"##;

fn a_suite_ends_with_its_verdicts_and_names_the_node_that_failed() {
    let collective = "[[case]]\nname = \"all\"\nplacement = \"all\"\nrecipes = [\"nccl_tests\", \"efa_traffic\"]\n\
        workload = { kind = \"nccl-tests\", op = \"all_reduce\", from = \"1GiB\", to = \"1GiB\", factor = 2 }\n\
        counters = { interval_s = 0.5 }\n\
        [[case.assert]]\nmetric = \"nccl.busbw\"\nsize = \"1GiB\"\nat_least = \"400 GB/s\"\n\
        [[case.assert]]\nmetric = \"nic.present\"\nper = \"node\"\nequals = 1\n";
    let cases = [
        collective,
        &case("ends-well", "\"each\"", "well", ""),
        &case("fails-somewhere", "\"each\"", "fails-on-n3", ""),
        &case("is-not-there", "1", "nothing", ""),
    ];
    let bench = Bench::new(&cases.concat());
    bench.program("all_reduce_perf", ALL_REDUCE);
    bench.program("well", "[[ $(hostname) == \"$SLURMD_NODENAME\" ]]");
    bench.program("fails-on-n3", "[[ $(hostname) != n3 ]] || exit 9");
    for node in ["n1", "n2", "n3", "n4"] {
        for device in devices() {
            let folder = format!("sys/{node}/{device}/ports/1/hw_counters");
            for counter in ["tx_bytes", "rx_bytes", "rdma_write_bytes", "rdma_write_recv_bytes"] {
                bench.project.write(&format!("{folder}/{counter}"), "5\n");
            }
        }
    }
    let ran = bench.run();
    assert_eq!(ran.code, Some(1), "{}", ran.all());
    let all = bench.verdicts("all");
    let all_pass = all.iter().all(|verdict| verdict.ends_with(" pass")) && all.len() == 5;
    assert!(all_pass, "{all:#?}\n{}", ran.all());
    let well = bench.verdicts("ends-well");
    assert!(well.iter().all(|verdict| verdict.ends_with(" pass")) && well.len() == 4, "{well:#?}");
    let somewhere = bench.verdicts("fails-somewhere");
    let failed: Vec<&String> = somewhere.iter().filter(|verdict| !verdict.ends_with(" pass")).collect();
    assert_eq!(failed, ["command.exit_code@n3 fail"], "{}", ran.all());
    assert_eq!(bench.verdicts("is-not-there").len(), 1);
    assert!(!bench.verdicts("is-not-there")[0].ends_with(" pass"));
    // It does well in another case, and nothing runs on it beside others.
    assert!(ran.blamed().contains(&"suspects n3".to_owned()), "{}", ran.all());
    assert!(!ran.stdout.contains("SIMULATED"), "{}", ran.stdout);
    bench.cluster.assert_nothing_is_left();
}

/// What shells, sbatch and srun could take for theirs.
const WORDS: &[&str] = &[
    "",
    " ",
    "two words",
    "tab\tand\nline\r",
    "'",
    "\"",
    "'\\''",
    "\\",
    "$HOME",
    "$(touch BENCH/broken-out)",
    "`touch BENCH/broken-out`",
    "; touch BENCH/broken-out",
    "--help",
    "-n99",
    "--",
    "*",
    "~",
    "#",
    "!!",
    "%j %N %t",
    "{host}",
    "a=b",
    "\u{e9}\u{1f980}\u{202e}",
    "\u{1}\u{1b}[31m",
];

fn any_word_arrives_unchanged_as_argument_value_and_path() {
    let any = proptest::string::string_regex("[^\\x00]{1,30}").expect("a pattern");
    let mut runner = proptest::test_runner::TestRunner::deterministic();
    let mut words: Vec<String> = WORDS.iter().map(|word| (*word).to_owned()).collect();
    for _ in 0..200 {
        let word = any.new_tree(&mut runner).expect("a word").current();
        // sbatch refuses scripts with the line breaks of another system, and says so.
        words.extend(Some(word).filter(|word| !word.contains("\r\n")));
    }
    let bench = Bench::with_cases(2, "", "");
    let shared = "a 'shared' \"folder\" # $(id) \u{e9}";
    let folder = bench.folder();
    let words: Vec<String> = words.iter().map(|word| word.replace("BENCH", &folder)).collect();
    let literal = |word: &String| toml::Value::String(word.clone()).to_string();
    let arguments: Vec<String> = words.iter().map(literal).collect();
    // Suites refuse values of several lines.
    let lines: Vec<String> = words.iter().filter(|word| !word.contains('\n')).cloned().collect();
    let values: Vec<String> =
        lines.iter().enumerate().map(|(at, word)| format!("WORD{at:03} = {}", literal(word))).collect();
    bench.project.write(
        "suites/live.toml",
        &format!(
            "instance = \"p5\"\nabout = \"words\"\n[[case]]\nname = \"words\"\nplacement = \"all\"\nrecipes = [\"command\"]\n\
             [case.workload]\nkind = \"command\"\nprogram = {}\nargs = [{}]\nenvironment = {{ {} }}\n\
             [[case.assert]]\nmetric = \"command.exit_code\"\nequals = 0\n",
            literal(&format!("{folder}/bin/keeps what it's $given")),
            arguments.join(", "),
            values.join(", ")
        ),
    );
    let inventory = bench.project.path().join("inventory/live.toml");
    let text = fs::read_to_string(&inventory).expect("an inventory");
    let line = literal(&format!("{folder}/{shared}"));
    fs::write(&inventory, text.replace(&format!("\"{folder}/shared\""), &line)).expect("written");
    bench.program(
        "keeps what it's $given",
        "printf '%s\\0' \"$@\" >\"BENCH/arguments.$SLURMD_NODENAME\"\n\
         for name in \"${!WORD@}\"; do printf '%s\\0' \"${!name}\"; done >\"BENCH/values.$SLURMD_NODENAME\"",
    );
    let ran = bench.run();
    assert_eq!(ran.code, Some(0), "{}", ran.all());
    for node in ["n1", "n2"] {
        for (kind, words) in [("arguments", &words), ("values", &lines)] {
            let kept = fs::read(bench.project.path().join(format!("{kind}.{node}"))).expect("kept");
            let kept: Vec<String> = kept
                .split(|byte| *byte == 0)
                .map(|word| String::from_utf8_lossy(word).into_owned())
                .collect();
            assert_eq!(kept[..kept.len() - 1], words[..], "{kind} on {node}");
        }
    }
    assert!(!bench.has("broken-out"));
    bench.cluster.assert_nothing_is_left();
}

fn sixty_four_nodes_are_one_job_and_sixty_four_jobs_in_little_memory() {
    let cases = [
        case("all", "\"all\"", "well", "")
            .replace("BENCH/bin/well\"", "BENCH/bin/well\", tasks_per_node = 8"),
        case("each", "\"each\"", "well", ""),
    ];
    let bench = Bench::with_cases(64, "", &cases.concat());
    bench.program("well", "[[ $(hostname) == \"$SLURMD_NODENAME\" ]]");
    let mut run = bench.start();
    let status = format!("/proc/{}/status", run.id());
    let mut most = 0;
    while !run.is_over() {
        let text = fs::read_to_string(&status).unwrap_or_default();
        let peak = text.lines().find_map(|line| line.strip_prefix("VmHWM:")?.trim().strip_suffix(" kB"));
        most = peak.and_then(|kib| kib.trim().parse::<u64>().ok()).unwrap_or(0).max(most);
        std::thread::sleep(Duration::from_millis(50));
    }
    let ran = ended(run);
    assert_eq!(ran.code, Some(0), "{}", ran.all());
    assert_eq!(bench.verdicts("each").len(), 64);
    println!("64 nodes: the harness took at most {} MiB", most / 1024);
    assert!((1..300 * 1024).contains(&most), "{most} KiB");
    bench.cluster.assert_nothing_is_left();
}

/// The NICs of a p5.
fn devices() -> Vec<String> {
    let instances = config::inventory::Instances::load(&root()).unwrap_or_else(|wrong| panic!("{wrong}"));
    instances.get("p5").expect("a profile").nics.clone()
}
