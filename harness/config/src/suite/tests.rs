//! Reading of suites, and the errors of wrong ones.

use super::*;
use crate::schema_tests::agreement;
use fixture::schema::Agreement;
use metric::op::Op;
use recipes::catalogue::Catalogue;

const GOOD: &str = r#"
instance = "p5"
about = "acceptance of p5 nodes by NCCL collectives"

[[case]]
name = "{op}-pairs"
tags = ["collective"]
placement = "pairs"
matrix = { op = ["all_reduce", "all_gather"] }
workload = { kind = "nccl-tests", from = "8", to = "16GiB", factor = 2, iterations = 20 }
recipes = ["nccl_tests", "efa_traffic"]
limit_s = 900
[[case.assert]]
metric = "nccl.busbw"
size = ["1GiB", "8GiB"]
against = "baseline"
[[case.assert]]
metric = "nic.present"
per = "nic"
equals = 1

[[case]]
name = "gpu-each"
placement = "each gpu"
after = ["all_reduce-pairs"]
workload = { kind = "nccl-tests", op = "all_reduce", from = "1GiB", to = "1GiB", environment = { NCCL_DEBUG = "INFO" } }
recipes = ["nccl_tests"]
requires = { min_nodes = 2, ranks_power_of_two = true }
counters = { between = 10 }
assert = [
    { metric = "nccl.algbw", per = "gpu", within_peers = "10 %", at_least = "1000 GB/s" },
    { metric = "nccl.wrong", per = "gpu", equals = 0 },
]

[[case]]
name = "nics"
workload = { kind = "nic-pairs" }
recipes = ["nic_flows"]
sim_faults = ["p5-002:nic-slow=0.4@rdmap113s0"]
must_end = "fail"
[[case.assert]]
metric = "nic.rate"
per = "nic"
at_least = "11 GB/s"
"#;

#[test]
fn a_suite_is_read_with_its_matrix_expanded_and_its_defaults_filled() {
    let read = Suite::read(GOOD, "suites/nccl-p5.toml", &Catalogue::built_in());
    assert_eq!(agreement("suite", GOOD, &read), Agreement::Sound);
    let suite = read.map_err(|diagnostics| diagnostics.to_string()).expect("good");
    assert_eq!(suite.name, "nccl-p5");
    let names: Vec<&str> = suite.cases.iter().map(|case| case.name.as_str()).collect();
    assert_eq!(names, ["all_reduce-pairs", "all_gather-pairs", "gpu-each", "nics"]);
    let gathered = &suite.cases[1];
    let Workload::NcclTests(tests) = &gathered.workload else { panic!("nccl-tests") };
    assert_eq!((tests.op, tests.warmup, tests.sizes().len()), (Op::AllGather, 5, 32));
    assert_eq!(gathered.assertions[0].sizes, [1 << 30, 8 << 30]);
    assert!(gathered.assertions[0].bound.baseline);
    assert_eq!((gathered.line, gathered.assertions[1].line), (5, 17));
    let gpu = &suite.cases[2];
    assert_eq!(gpu.counters.between, Some(10));
    assert_eq!(gpu.assertions[1].sizes, [] as [u64; 0], "none where every size of the sweep is meant");
    assert_eq!(gpu.assertions[0].bound.within_peers, Some(0.1));
    assert_eq!(suite.cases[3].placement, Placement::Pairs);
    assert_eq!(suite.cases[3].counters, Counters { enabled: true, interval_s: 1.0, between: None });
}

const BAD: &str = r#"
instanse = "p5"
about = "bad in every way"

[[case]]
name = "one"
placement = "paris"
workload = { kind = "nccl-tests", op = "all_redcue", from = 0, to = "8MB", factor = 1, dtype = "flaot" }
recipes = ["nccl_test"]
limit_s = 0
expected_failure = true
must_end = "failed"
sim_faults = ["p5-002:hnag"]

[[case]]
name = "two"
placement = 2
workload = { kind = "nccl-tests", op = ["all_reduce", "alltoall"], from = "2GiB", to = "1GiB", iteratons = 3 }
recipes = ["nccl_tests"]
counters = { interval_s = 0.1, between = 3 }

[[case]]
name = "three"
placement = "groups of 1"
matrix = { op = ["all_reduce"], size = ["1GiB"] }
workload = { kind = "nccl-tests", from = "8", to = "128MiB" }
recipes = ["nccl_tests"]
after = ["fuor"]

[[case]]
name = "four"
placement = "each"
workload = { kind = "nccl-tests", op = "all_reduce", from = "8", to = "128MiB", factor = 4 }
recipes = ["nccl_tests", "efa_traffic"]
requires = { min_nodes = 4, max_nodes = 2 }
after = ["five"]
assert = [
    { metric = "nccl.busbw", size = "1GiB", at_least = "300 Gb/s" },
    { metric = "nccl.busbw", size = "12MiB", at_least = 300 },
    { metric = "nccl.avg_busbw", at_least = "50 GB/s" },
    { metric = "nic.rate", at_least = "11 GB/s" },
    { metric = "nccl.buswb", at_least = "11 GB/s" },
    { metric = "nccl.busbw", size = "128MiB", per = "node", equals = "11 GB/s", at_most = "12 GB/s" },
    { metric = "nccl.wrong", equals = 0 },
    { metric = "nccl.wrong", size = "8", equals = nan },
    { metric = "nccl.wrong", size = "8", equals = 0 },
    { metric = "nic.share", size = "8", place = "in", within_peers = 3 },
    { metric = "nic.present", per = "gpu", at_lest = 1 },
    { metric = "nccl.time", size = "99999999999999999999", at_most = "75 ms" },
]

[[case]]
name = "Four"
placement = "all"
workload = { kind = "command", program = "" }
recipes = []
after = ["four"]

[[case]]
name = "five"
placement = "each gpu"
workload = { kind = "command", program = "true", args = "x" }
recipes = ["command"]
after = ["four"]
"#;

#[test]
fn every_error_of_a_suite_is_reported_in_one_go() {
    let read = Suite::read(BAD, "suites/bad.toml", &Catalogue::built_in());
    assert_eq!(agreement("suite", BAD, &read), Agreement::WrongInForm);
    let diagnostics = read.expect_err("bad");
    insta::assert_snapshot!(diagnostics.to_string());
}

/// What a suite is refused for with such a case of PyTorch.
fn refusal_of_torch(placement: &str, workload: &str, rest: &str) -> String {
    let text = format!(
        "instance = \"p5\"\nabout = \"x\"\n[[case]]\nname = \"c\"\nplacement = \"{placement}\"\nworkload = {{ kind = \
         \"torch-collective\", from = \"8\", to = \"1MiB\", {workload} }}\nrecipes = [\"nccl_tests\"]\n{rest}\n"
    );
    let read = Suite::read(&text, "x.toml", &Catalogue::built_in());
    read.err().map(|diagnostics| diagnostics.to_string()).unwrap_or_default()
}

#[test]
fn what_pytorch_does_not_have_is_refused_before_anything_is_launched() {
    let of_place =
        |place: &str| format!("[[case.assert]]\nmetric = \"nccl.wrong\"\nplace = \"{place}\"\nequals = 0");
    let reduce = "op = \"all_reduce\"";
    for (placement, workload, rest, expected) in [
        ("all", "op = \"hypercube\"", "", "hypercube"),
        ("all", "op = \"all_reduce\", dtype = \"f8e4m3\"", "", "f8e4m3"),
        ("all", "op = \"all_reduce\", redop = \"mulsum\"", "", "mulsum"),
        (
            "all",
            "op = \"all_reduce\", redop = \"avg\", dtype = \"int32\"",
            "",
            "needs a type of floating point",
        ),
        ("all", "op = \"all_reduce\", split_mask = \"0x7\"", "", "split_mask"),
        ("each gpu", reduce, "", "uses all GPUs of its nodes"),
        ("all", reduce, &of_place("out"), "PyTorch's all_reduce has no placement `out`"),
        ("all", "op = \"alltoall\"", &of_place("in"), "PyTorch's alltoall has no placement `in`"),
        ("all", reduce, "profile = { ranks = \"first\" }", "is not profiled"),
    ] {
        let why = refusal_of_torch(placement, workload, rest);
        assert!(why.contains(expected), "{workload} {rest}: {why}");
    }
    for place in ["in", "both"] {
        assert_eq!(refusal_of_torch("all", reduce, &of_place(place)), "");
    }
}

#[test]
fn a_small_training_by_pytorch_is_refused_what_its_script_does_not_have() {
    let refusal = |workload: &str, rest: &str| {
        let text = format!(
            "instance = \"p5\"\nabout = \"x\"\n[[case]]\nname = \"c\"\nplacement = \"all\"\nworkload = {{ kind = \
             \"torch-ddp\"{workload} }}\nrecipes = [\"training_log\"]\n{rest}\n"
        );
        let read = Suite::read(&text, "x.toml", &Catalogue::built_in());
        read.err().map(|diagnostics| diagnostics.to_string()).unwrap_or_default()
    };
    assert_eq!(refusal("", ""), "", "every key has a default");
    assert_eq!(refusal(", steps = 9, batch = 1, hidden = 8, layers = 1, backend = \"gloo\"", ""), "");
    for (workload, rest, expected) in [
        (
            "",
            "profile = { ranks = \"first\" }",
            "`torch-ddp` is not profiled; NCCL's Inspector shows its calls: `inspector = true`",
        ),
        (", backend = \"mpi\"", "", "mpi"),
        (", script = \"own.py\"", "", "script"),
        (", hidden = 0", "", "hidden"),
    ] {
        let why = refusal(workload, rest);
        assert!(why.contains(expected), "{workload} {rest}: {why}");
    }
}

#[test]
fn a_split_mask_says_how_many_communicators_there_are() {
    let text = GOOD.replace("factor = 2,", "split_mask = \"0x7\",");
    let suite = Suite::read(&text, "x.toml", &Catalogue::built_in())
        .map_err(|diagnostics| diagnostics.to_string())
        .expect("good");
    let Workload::NcclTests(tests) = &suite.cases[0].workload else { panic!("nccl-tests") };
    assert_eq!(tests.communicators(), 8);
}

proptest::proptest! {
    #[test]
    fn no_damage_to_a_suite_makes_the_reader_panic(at in 0..GOOD.len(), cut in 0usize..40, put in "[\\PC\n\"]{0,6}") {
        let mut text: Vec<u8> = GOOD.bytes().collect();
        let end = (at + cut).min(text.len());
        text.splice(at..end, put.bytes());
        let _ = Suite::read(&String::from_utf8_lossy(&text), "x.toml", &Catalogue::built_in());
    }
}

/// One case of nccl-tests with these lines, and the errors of it.
fn errors_of(lines: &str) -> Vec<String> {
    let text = format!(
        "instance = \"p5\"\nabout = \"x\"\n[[case]]\nname = \"one\"\nplacement = \"all\"\n\
         workload = {{ kind = \"nccl-tests\", op = \"all_reduce\", from = \"1MiB\", to = \"1MiB\" }}\n\
         recipes = [\"nccl_tests\"]\n{lines}\n"
    );
    match Suite::read(&text, "suites/x.toml", &Catalogue::built_in()) {
        Ok(_) => Vec::new(),
        Err(diagnostics) => diagnostics.to_string().lines().map(str::to_owned).collect(),
    }
}

#[test]
fn an_order_of_evidence_has_known_sources_each_once() {
    assert_eq!(errors_of("evidence = [\"nsys\", \"inspector\", \"log\"]"), [] as [String; 0]);
    for (lines, expected) in [
        ("evidence = [\"nsys\", \"inspectr\"]", "did you mean `inspector`?"),
        ("evidence = [\"nsys\", \"log\", \"nsys\"]", "`evidence` lists `nsys` twice"),
        ("evidence = []", "`evidence` is empty"),
        ("profile = {}\nevidence = [\"log\"]", "`evidence` does not list `nsys`"),
    ] {
        let errors = errors_of(lines).join("\n");
        assert!(errors.contains(expected) && errors.contains("suites/x.toml:8:"), "{lines}: {errors}");
    }
}

#[test]
fn an_order_of_evidence_brings_a_profile_and_the_recipes_that_read_it() {
    let read = |lines: &str| {
        let text = format!(
            "instance = \"p5\"\nabout = \"x\"\n[[case]]\nname = \"one\"\nplacement = \"all\"\nworkload = {{ kind = \
             \"nccl-tests\", op = \"all_reduce\", from = \"1MiB\", to = \"1MiB\" }}\n{lines}\n"
        );
        let suite = Suite::read(&text, "suites/x.toml", &Catalogue::built_in());
        suite.map_err(|why| why.to_string()).expect("good").cases.remove(0)
    };
    let case = read("recipes = [\"nccl_tests\"]\nevidence = [\"inspector\", \"nsys\", \"log\"]");
    let order = case.evidence.order.iter().map(|source| source.name()).collect::<Vec<_>>();
    assert_eq!(order, ["inspector", "nsys", "log"]);
    assert_eq!(case.recipes, ["nccl_tests", "inspector", "nccl_log"]);
    let table = read("recipes = [\"nccl_tests\"]\nprofile = {}").profile;
    assert!(case.profile.is_some() && case.profile == table && case.evidence.adds_log);
    let overhead = "assert = [{ metric = \"inspector.overhead\", size = \"1MiB\", at_most = \"3 %\" }]\nrecipes = [\"nccl_tests\"]";
    let profile = "profile = { unprofiled_control_run = true }";
    let with = read(&format!("{overhead}\nevidence = [\"nsys\", \"inspector\"]\n{profile}"));
    assert_eq!(with.assertions.len(), 1);
    let errors = errors_of(
        "evidence = [\"nsys\", \"inspector\"]\nassert = [{ metric = \"inspector.overhead\", at_most = 1 }]",
    );
    assert!(errors.join("\n").contains("add `unprofiled_control_run = true` to `profile`"), "{errors:?}");
    let own = read("recipes = [\"nccl_log\"]\nevidence = [\"log\"]");
    assert!(own.recipes == ["nccl_log"] && !own.evidence.adds_log && own.profile.is_none());
}

#[test]
fn only_a_program_that_the_probe_looks_for_can_be_left_out_where_it_is_absent() {
    let read = |workload: &str, recipe: &str| {
        let text = format!(
            "instance = \"p5\"\nabout = \"a test\"\n[[case]]\nname = \"one\"\nplacement = \"each\"\n\
             where_installed = true\nworkload = {workload}\nrecipes = [\"{recipe}\"]\n"
        );
        Suite::read(&text, "suites/s.toml", &Catalogue::built_in()).map_err(|why| why.to_string())
    };
    let fio = read("{ kind = \"fio\", directory = \"/opt/dlami/nvme\" }", "fio").expect("good");
    assert!(fio.cases[0].where_installed);
    assert_eq!(fio.cases[0].workload.probed_programs(), ["fio", LOCAL_DISKS]);
    for (workload, recipe) in [
        ("{ kind = \"stream\", program = \"/opt/stream\" }", "stream"),
        ("{ kind = \"torch-burn\", dtype = \"bf16\", program = \"/opt/python3\" }", "gpu_burn"),
        ("{ kind = \"command\", program = \"fio\" }", "command"),
    ] {
        let why = read(workload, recipe).expect_err("no probe looks for it");
        assert!(why.contains("`where_installed` needs a program that the probe looks for: dcgmi, "), "{why}");
    }
}
