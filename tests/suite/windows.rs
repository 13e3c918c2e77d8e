//! Windows of steps from the suite to the verdict on the simulated cluster: each way of opening one, what is reported
//! about one that never opened or is another one, and what `check` reports beforehand.

use crate::project::{Project, Ran};

/// A training of 30 steps on two nodes, with that in its profile.
fn suite(profile: &str) -> String {
    format!(
        "instance = \"p5\"\nabout = \"a window of steps\"\n\n[[case]]\nname = \"train\"\nplacement = 2\n\
         workload = {{ kind = \"command\", program = \"torchrun\", args = [\"--nnodes=2\", \"--nproc_per_node=8\", \
         \"train.py\", \"--steps\", \"30\"] }}\nrecipes = [\"steps\"]\n\n[case.profile]\n{profile}\n\n\
         [[case.assert]]\nmetric = \"window.steps\"\nper = \"node\"\nequals = 5\n\n\
         [[case.assert]]\nmetric = \"window.first\"\nper = \"node\"\nequals = 10\n\n\
         [[case.assert]]\nmetric = \"step.time_cv\"\nper = \"node\"\nat_most = \"20 %\"\n"
    )
}

fn harness(profile: &str, more: &[&str]) -> (Project, Ran) {
    let project = Project::new();
    project.write("suites/window.toml", &suite(profile));
    let words: Vec<&str> = ["--suite", "window", "-q"].iter().chain(more).copied().collect();
    let ran = project.harness(&words);
    (project, ran)
}

const WAYS: [(&str, &str); 3] = [
    ("options", "options = [\"--nsys_start_step={first}\", \"--nsys_end_step={last}\"]"),
    ("hook", ""),
    ("watch", "way = \"watch\"\nstep_line = \"global_step: ([0-9]+)\""),
];

#[test]
fn in_each_way_exactly_the_steps_that_were_asked_for_are_watched_on_every_node() {
    for (way, keys) in WAYS {
        let (project, ran) = harness(&format!("steps = \"10..14\"\n{keys}"), &[]);
        assert_eq!(ran.code, Some(0), "{way}: {}", ran.all());
        let plan = project.json("plan.json");
        let job = &plan["cases"][0]["jobs"][0];
        assert_eq!(job["profile"]["window"]["way"], way, "{}", job["profile"]["window"]);
        assert_eq!(job["profile"]["window"]["steps"], "10..14");
        let script = job["files"][0]["text"].as_str().expect("a script");
        let expected = match way {
            "options" => "train.py --steps 30 --nsys_start_step=10 --nsys_end_step=14 >",
            "hook" => " hook:10..14 --trace=",
            _ => " 'watch:10..14:0:global_step: ([0-9]+)' --trace=",
        };
        assert!(script.contains(expected), "{way}: {script}");
        assert!(job::script::read(script).is_ok(), "{script}");
        assert_eq!(script.contains("--capture-range=cudaProfilerApi"), way != "watch", "{script}");
    }
}

/// What the plan says is passed, what the recipe finds in the trace, and what the log reports are the same steps.
#[test]
fn nemo_2_is_given_the_window_by_the_callback_that_its_recipe_has_and_its_window_is_verified() {
    let project = Project::new();
    let text = |callback: &str| {
        format!(
            "instance = \"p5\"\nabout = \"x\"\n\n[[case]]\nname = \"train\"\nplacement = 2\nrecipes = [\"training_log\", \"window\"]\n\
             [case.workload]\nkind = \"nemo\"\nform = \"nemo2\"\nrecipe = \"nemotron4_15b\"\nsteps = 12\nglobal_batch = 32\n\
             {callback}model = {{ parameters = 15_600_000_000, layers = 32, hidden = 6144, sequence = 4096 }}\n\n[case.profile]\n\
             ranks = \"one-per-node\"\nsteps = \"6..9\"\n\n[[case.assert]]\nmetric = \"window.steps\"\nper = \"node\"\nequals = 4\n\n\
             [[case.assert]]\nmetric = \"window.last\"\nper = \"node\"\nequals = 9\n\n[[case.assert]]\nmetric = \"train.window_mfu\"\n\
             at_least = \"25 %\"\nat_most = \"60 %\"\n\n[[case.assert]]\nmetric = \"window.efa_bytes_per_step\"\nper = \"node\"\n\
             at_least = \"1GiB\"\n"
        )
    };
    for (callback, way, line) in [
        (
            "nsys_callback = 1\n",
            "options",
            "trainer.callbacks[1].start_step=6 trainer.callbacks[1].end_step=10",
        ),
        ("", "hook", "the command line cannot add an `NsysCallback`"),
    ] {
        project.write("suites/window.toml", &text(callback));
        let ran = project.harness(&["--suite", "window", "-q"]);
        assert_eq!(ran.code, Some(0), "{way}: {}", ran.all());
        let window = &project.json("plan.json")["cases"][0]["jobs"][0]["profile"]["window"];
        assert_eq!(window["way"], way, "{window}");
        assert!(window["why"].as_str().is_some_and(|why| why.contains(line)), "{window}");
    }
}

#[test]
fn compat_stops_where_the_last_step_begins() {
    let (project, ran) = harness("steps = \"10..15\"\ncompat = true", &[]);
    assert_eq!(ran.code, Some(0), "{}", ran.all());
    let plan = project.json("plan.json");
    assert_eq!(plan["cases"][0]["jobs"][0]["profile"]["window"]["steps"], "10..14");
}

#[test]
fn a_window_by_seconds_is_compared_with_the_steps_in_it() {
    let (_, ran) = harness("steps = \"10..14\"\nway = \"delay\"\ndelay_s = 6\nduration_s = 1", &[]);
    assert_eq!(ran.code, Some(3), "{}", ran.all());
    assert!(ran.all().contains("requested steps 10..14 (5)"), "{}", ran.all());
}

#[test]
fn a_window_that_never_opens_on_a_node_is_inconclusive_with_its_cause_and_names_the_node() {
    for (way, keys) in WAYS {
        let (project, ran) =
            harness(&format!("steps = \"10..14\"\n{keys}"), &["--sim-fault", "p5-002:window-shut"]);
        let all = ran.all();
        let reported_in_full = project.reported();
        assert_eq!(ran.code, Some(3), "{way}: {all}");
        assert_eq!(ran.blamed(), ["culprit p5-002 node"], "{way}: {all}");
        let reported = match way {
            "options" => "nothing called the profiler",
            "hook" => "could not be started: RuntimeError: cudaProfilerStart: error 36 of CUDA",
            _ => "could not be started: nsys start failed",
        };
        assert!(
            all.contains("window-never-opened") && reported_in_full.contains(reported),
            "{way}: {reported_in_full}"
        );
    }
}

#[test]
fn a_window_beyond_the_last_step_or_cut_by_it_is_named_with_its_cause() {
    for (steps, expected) in [
        ("50..55", "the last step was 29; the window must begin before it"),
        ("27..33", "the program ended before the window was closed"),
    ] {
        let (project, ran) = harness(&format!("steps = \"{steps}\""), &[]);
        assert_eq!(ran.code, Some(3), "{steps}: {}", ran.all());
        assert!(project.reported().contains(expected), "{steps}: {}", project.reported());
        // A suite that asks for what the program does not do is no node's fault.
        assert!(!ran.blamed().iter().any(|line| line.starts_with("culprit")), "{steps}: {}", ran.all());
    }
    let (project, ran) = harness(&format!("steps = \"50..55\"\n{}", WAYS[0].1), &[]);
    let reported = project.reported();
    assert!(reported.contains("command line ends the program after step 29"), "{}", ran.all());
}

#[test]
fn the_plan_shows_the_capture_method_and_why_no_other() {
    let (_, ran) = harness("steps = \"10..14\"", &["--dry-run"]);
    let line =
        ran.stdout.lines().find(|line| line.contains("window: ")).unwrap_or_else(|| panic!("{}", ran.all()));
    assert_eq!(
        line.trim(),
        "window: steps 10..14, by `hook`: a python module counts the steps of optimizers in `torchrun`; `options` \
         is not possible: the program has no known options that open a window"
    );
    assert!(ran.stdout.contains("file sitecustomize.py, shared, sha256: "), "{}", ran.stdout);
    let (_, refused) = harness("steps = \"10..14\"\nway = \"watch\"", &["--dry-run"]);
    assert_eq!(refused.code, Some(2), "{}", refused.all());
    assert!(
        refused.all().contains("steps 10..14 cannot be captured: `watch` is not possible"),
        "{}",
        refused.all()
    );
}

#[test]
fn what_a_suite_says_wrongly_of_a_window_is_reported() {
    for (profile, expected) in [
        ("steps = \"75\"", "invalid window `75`; write `FIRST..LAST`"),
        ("steps = \"14..10\"", "window `14..10` ends before it begins"),
        ("steps = \"10..10\"\ncompat = true", "this one is empty"),
        ("steps = \"10..14\"\ncapture = \"cudaProfilerApi\"", "`steps` and `capture` exclude each other"),
        ("way = \"hook\"", "`way` needs `steps`"),
        ("steps = \"10..14\"\nway = \"hok\"", "did you mean `hook`"),
        ("steps = \"10..14\"\nstep_line = \"iteration\"", "whose first group is the step number"),
    ] {
        let (_, ran) = harness(profile, &[]);
        assert_eq!(ran.code, Some(2), "{profile}: {}", ran.all());
        assert!(ran.all().contains(expected), "{profile}: {}", ran.all());
    }
    let nccl = "{ kind = \"nccl-tests\", op = \"all_reduce\", from = \"8\", to = \"8\" }";
    let project = Project::new();
    let text = suite("steps = \"10..14\"");
    let (from, to) = (text.find("{ kind").expect("a workload"), text.find(" }\n").expect("its end") + 2);
    project.write("suites/window.toml", &text.replace(&text[from..to], nccl));
    let ran = project.harness(&["--suite", "window", "-q"]);
    assert!(ran.all().contains("nccl-tests have no steps"), "{}", ran.all());
}

#[test]
fn check_reports_windows_that_cannot_come_about() {
    let project = Project::new();
    for (name, text, expected) in [
        (
            "beyond",
            suite("steps = \"50..55\""),
            "`steps` begin after the last step 29 (`--steps 30`): 50..55",
        ),
        (
            "break",
            suite("steps = \"25..30\""),
            "`steps` end after the last step 29 (`--steps 30`): 25..30",
        ),
        (
            "training",
            suite("steps = \"50..55\"").replace(
                "{ kind = \"command\", program = \"torchrun\", args = [\"--nnodes=2\", \"--nproc_per_node=8\", \"train.py\", \"--steps\", \"30\"] }",
                "{ kind = \"torchrun\", script = \"train.py\", steps = 30 }",
            ),
            "`steps` begin after the last step 29 (`steps = 30`): 50..55",
        ),
        (
            "unwatched",
            suite("capture = \"cudaProfilerApi\"")
                .replace("\"--steps\", \"30\"", "\"--nsys_start_step=3\"")
                .replace("[case.profile]\ncapture = \"cudaProfilerApi\"\n", "")
                .split("[[case.assert]]")
                .next()
                .map(|text| format!("{text}assert = [{{ metric = \"step.count\", at_least = 1 }}]\n"))
                .unwrap_or_default()
                .replace("[\"steps\"]", "[\"command\"]")
                .replace("step.count", "command.seconds")
                .replace("at_least = 1", "at_least = \"1 s\""),
            "the program calls the profiler (`--nsys_start_step=3`), but the case has no `profile`",
        ),
        (
            "silent",
            suite("capture = \"cudaProfilerApi\"")
                .replace("\"--steps\", \"30\"", "\"--nsys_start_step=3\"")
                .split("[[case.assert]]")
                .next()
                .map(|text| format!("{text}[[case.assert]]\nmetric = \"step.count\"\nat_least = 1\n"))
                .unwrap_or_default(),
            "several nsys sessions wait for the profiler, but `--nsys_start_step=3` calls it on rank 0 only",
        ),
        (
            "both",
            suite("steps = \"10..14\"").replace("\"30\"", "\"30\", \"--nsys_start_step=3\""),
            "the program opens a capture range itself",
        ),
        (
            "jobs",
            suite("steps = \"10..14\"").replace("\"30\"] }", "\"30\"], tasks_per_node = 8 }"),
            "each of 8 tasks per node starts its own `torchrun` job",
        ),
        (
            "alone",
            suite("steps = \"10..14\"").replace("--nnodes=2", "--standalone"),
            "`torchrun --standalone` makes each node a separate job",
        ),
    ] {
        project.write("suites/window.toml", &text);
        let ran = project.harness(&["check"]);
        assert!(ran.all().contains(expected), "{name}: {}", ran.all());
    }
    project.write("suites/window.toml", &suite("steps = \"25..29\""));
    let ran = project.harness(&["check"]);
    assert!(!ran.all().contains("window.toml:"), "{}", ran.all());
}

/// What a training's plan says of its window, and the words of its command.
fn window_and_command(workload: &str, profile: &str) -> (String, String) {
    let project = Project::new();
    let text = format!(
        "instance = \"p5\"\nabout = \"a window of steps\"\n\n[[case]]\nname = \"train\"\nplacement = 2\nworkload = {workload}\n\
         recipes = [\"steps\"]\n\n[case.profile]\nsteps = \"70..75\"\n{profile}\n\n[[case.assert]]\nmetric = \"window.steps\"\n\
         per = \"node\"\nequals = 6\n"
    );
    project.write("suites/window.toml", &text);
    let ran = project.harness(&["--suite", "window", "-q", "--dry-run"]);
    assert_eq!(ran.code, Some(0), "{}", ran.all());
    let line = |part: &str| {
        let line =
            ran.stdout.lines().find(|line| line.contains(part)).unwrap_or_else(|| panic!("{}", ran.all()));
        line.trim().to_owned()
    };
    (line("window: "), line("bash profile.sh "))
}

#[test]
fn trainings_that_have_options_of_their_own_are_given_the_window_by_these() {
    let fsdp = "{ kind = \"command\", program = \"torchrun\", args = [\"--nproc_per_node=8\", \"train.py\", \"--max_steps=80\", \"--sharding_strategy=hybrid\"] }";
    let (window, command) = window_and_command(fsdp, "ranks = \"rank0\"");
    assert!(window.starts_with("window: steps 70..75, by `options`"), "{window}");
    assert!(command.contains(" --nsys_start_step=70 --nsys_end_step=75 >"), "{command}");
    let nemo = "{ kind = \"command\", program = \"python3\", args = [\"-u\", \"/opt/NeMo/megatron_gpt_pretraining.py\"], tasks_per_node = 8 }";
    let (window, command) = window_and_command(nemo, "ranks = \"one-per-node\"");
    assert!(window.contains("by `options`"), "{window}");
    for word in ["enabled=True", "start_step=70", "end_step=75", "ranks=[0,8]", "gen_shape=False"] {
        assert!(command.contains(&format!("++model.nsys_profile.{word}")), "{command}");
    }
    let nemo2 = "{ kind = \"nemo\", form = \"nemo2\", recipe = \"mine\", steps = 100, global_batch = 32, nsys_callback = 1 }";
    for (profile, ranks) in
        [("ranks = \"one-per-node\"", "0,8"), ("ranks = \"all\"", "0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15")]
    {
        let (window, command) = window_and_command(nemo2, profile);
        assert!(window.contains("by `options`"), "{window}");
        for word in ["start_step=70", "end_step=76", &format!("ranks=[{ranks}]"), "gen_shape=False"] {
            assert!(command.contains(&format!("trainer.callbacks[1].{word}")), "{command}");
        }
    }
    let megatron = "{ kind = \"command\", program = \"torchrun\", args = [\"--nproc_per_node=8\", \"pretrain_gpt.py\", \"--train-iters\", \"100\"] }";
    let (window, command) = window_and_command(megatron, "ranks = \"one-per-node\"");
    assert!(window.contains("by `options`"), "{window}");
    let words = " --profile --profile-step-start=70 --profile-step-end=76 --profile-ranks 0 8 >";
    assert!(command.contains(words), "{command}");
}

#[test]
fn trainings_without_fitting_options_use_the_hook() {
    for (workload, profile, why) in [
        (
            "{ kind = \"command\", program = \"torchrun\", args = [\"train.py\", \"--max_steps=80\", \"--sharding_strategy=full\"] }",
            "ranks = \"one-per-node\"",
            "call the profiler on rank 0 alone",
        ),
        (
            "{ kind = \"command\", program = \"torchrun\", args = [\"train.py\", \"--max_steps=76\", \"--sharding_strategy=full\"] }",
            "ranks = \"rank0\"",
            "the program ends before it stops the profiler",
        ),
        (
            "{ kind = \"command\", program = \"nemo\", args = [\"llm\", \"pretrain\", \"--factory\", \"llama3_8b\"] }",
            "",
            "the command line cannot add an `NsysCallback`",
        ),
        (
            "{ kind = \"nemo\", form = \"nemo2\", recipe = \"llama3_8b\", steps = 100, global_batch = 32 }",
            "",
            "set `nsys_callback` to its index",
        ),
        (
            "{ kind = \"command\", program = \"torchrun\", args = [\"run_clm.py\"] }",
            "",
            "the program has no known options",
        ),
    ] {
        let (window, command) = window_and_command(workload, profile);
        assert!(window.contains("by `hook`") && window.contains(why), "{window}");
        assert!(command.contains(" hook:70..75 "), "{command}");
    }
}
