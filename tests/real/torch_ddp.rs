//! torch_ddp.py by a real PyTorch on CPUs, with gloo: its steps are read, one bit of one weight is found and its rank named
//! where it alone differs, and a suite of it runs and is judged.

use crate::fact::Fact;
use crate::project::{Project, root};
use crate::torch_collective::torchrun;
use job::script::{TORCH_DDP_PY, files};
use logs::training_log::{self, Dialect, WEIGHTS};
use std::fs;
use std::process::{Command, Output};

pub(crate) const WITH_TORCH: &[Fact] = &[
    (
        "one_bit_of_one_weight_is_found_and_its_rank_named_where_it_alone_differs",
        one_bit_of_one_weight_is_found,
    ),
    ("a_rank_whose_loss_is_not_a_number_ends_with_its_name", a_rank_with_nan_ends_with_its_name),
    ("a_training_runs_under_torchrun_and_is_judged", a_training_runs_under_torchrun_and_is_judged),
];

/// So many ranks for eight steps, where a weight of some ranks goes wrong, or the data of one is no number.
fn train(ranks: u32, wrong: &str, nan: &str) -> Output {
    let folder = tempfile::tempdir().expect("a folder");
    let script = folder.path().join("ranks.py");
    fs::copy(root().join("tests/real/torch_ddp.py"), &script).expect("copied");
    fs::write(folder.path().join(files::TORCH_DDP), TORCH_DDP_PY).expect("written");
    let mut command = Command::new(torchrun());
    command.args(["--standalone".to_owned(), format!("--nproc_per_node={ranks}")]);
    command.arg(&script).arg(folder.path());
    command.args(["--steps=8", "--batch=4", "--hidden=16", "--layers=2", "--backend=gloo"]);
    command.env("WRONG", wrong).env("NAN", nan).output().expect("torchrun starts")
}

fn one_bit_of_one_weight_is_found() {
    for (ranks, wrong, expected) in [
        (3, "", "equal on 3 ranks, sha256 "),
        (3, "2", "2 versions on 3 ranks, rank 2 alone differs, Device: 2, node: "),
        (3, "0", "2 versions on 3 ranks, rank 0 alone differs, Device: 0, node: "),
        (3, "1,2", "3 versions on 3 ranks"),
        (2, "1", "2 versions on 2 ranks"),
    ] {
        let output = train(ranks, wrong, "");
        let (text, errors) =
            (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        assert!(output.status.success(), "{text}\n{errors}");
        let last = text.lines().last().unwrap_or_default();
        assert!(last.starts_with(&format!("{WEIGHTS}8: {expected}")), "{wrong}: {text}");
        let log = training_log::read(text.as_bytes()).expect("in memory");
        assert_eq!((log.garbled, log.series.len()), (0, 1), "{text}");
        let series = &log.series[0];
        assert_eq!((series.dialect, series.steps.len()), (Dialect::Nemo2, 8), "{text}");
        let is_read = |value: Option<f64>| value.is_some_and(f64::is_finite);
        assert!(series.steps.iter().all(|step| is_read(step.loss) && is_read(step.seconds)), "{text}");
        assert_eq!(series.steps[0].global_batch, Some(4 * u64::from(ranks)), "{text}");
    }
}

fn a_rank_with_nan_ends_with_its_name() {
    let output = train(3, "", "1");
    let (text, errors) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(!output.status.success() && !text.contains(WEIGHTS), "{text}\n{errors}");
    let named = "Rank 1: found NaN in local forward loss calculation. Device: 1, node: ";
    assert!(errors.contains(named), "{text}\n{errors}");
}

const SUITE: &str = r#"instance = "two"
about = "a suite of the tests"
[[case]]
name = "ddp"
placement = "each"
workload = { kind = "torch-ddp", backend = "gloo", steps = 30, batch = 16, hidden = 32, layers = 2, port = 29732 }
recipes = ["training_log"]
counters = false
[[case.assert]]
metric = "train.weights_equal"
equals = 1
[[case.assert]]
metric = "train.steps_missing"
equals = 0
[[case.assert]]
metric = "train.loss_finite"
equals = 1
[[case.assert]]
metric = "train.loss_falling"
equals = 1
[[case.assert]]
metric = "train.step_time"
BOUND
"#;

fn a_training_runs_under_torchrun_and_is_judged() {
    let project = Project::new();
    let folder = project.path().display();
    let p5 = fs::read_to_string(root().join("inventory/instances/p5.toml")).expect("there");
    let two = p5.replace("gpus = 8", "gpus = 2");
    assert_ne!(two, p5);
    project.write("inventory/instances/two.toml", &two);
    project.write(
        "inventory/here.toml",
        &format!(
            "kind = \"real\"\ninstance = \"two\"\nnodes = \"localhost\"\n[reach]\nvia = \"local\"\n[paths]\nshared = \"{folder}/shared\"\ncounters = \"{folder}/sys\"\ntorchrun = \"{}\"\n",
            torchrun()
        ),
    );
    for (bound, code) in [("at_most = \"900 s\"", 0), ("at_most = \"1 us\"", 1)] {
        project.write("suites/test.toml", &SUITE.replace("BOUND", bound));
        let ran = project.harness(&["--suite", "test", "--inventory", "here", "--no-probe"]);
        assert_eq!(ran.code, Some(code), "{bound}: {}", ran.all());
    }
}
