//! torch_collective.py by a real PyTorch on CPUs, with gloo: each operation and type is right, each wrong element is found,
//! and a suite of such cases runs, is judged and compared.

use crate::fact::Fact;
use crate::needs::python_with_torch;
use crate::project::{Project, root};
use job::script::{TORCH_COLLECTIVE_PY, files};
use std::fs;
use std::process::Command;

pub(crate) const WITH_TORCH: &[Fact] = &[
    (
        "every_operation_and_type_is_checked_as_numpy_computes_it_and_a_wrong_element_is_found",
        every_operation_and_type_is_checked,
    ),
    ("a_suite_runs_under_torchrun_and_is_judged", a_suite_runs_under_torchrun_and_is_judged),
];

/// The torchrun beside that Python.
pub(crate) fn torchrun() -> String {
    let code = "import sysconfig; print(sysconfig.get_path('scripts'))";
    let output = Command::new(python_with_torch()).args(["-c", code]).output().expect("python starts");
    format!("{}/torchrun", String::from_utf8_lossy(&output.stdout).trim())
}

fn every_operation_and_type_is_checked() {
    let folder = tempfile::tempdir().expect("a folder");
    let checks = folder.path().join("checks.py");
    fs::copy(root().join("tests/real/torch_collective.py"), &checks).expect("copied");
    fs::write(folder.path().join(files::TORCH_COLLECTIVE), TORCH_COLLECTIVE_PY).expect("written");
    let mut command = Command::new(torchrun());
    command.args(["--standalone", "--nproc_per_node=3"]).arg(&checks).arg(folder.path());
    let output = command.output().expect("torchrun starts");
    let (stdout, stderr) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{stdout}\n{stderr}");
    // Nine operations; eight types; five reductions, of which one needs a type of floating point; two placements of two.
    let reduced = 4 * 5 + 4 * 4;
    assert_eq!(stdout.lines().count(), reduced * (2 + 2) + 8 * (1 + 2 + 4), "{stdout}");
}

const SUITE: &str = r#"instance = "two"
about = "a suite of the tests"
[[case]]
name = "{op}"
placement = "each"
matrix = { op = ["all_reduce", "all_gather", "reduce_scatter", "alltoall", "broadcast", "sendrecv"] }
workload = { kind = "torch-collective", backend = "gloo", from = "4KiB", to = "64KiB", factor = 4, iterations = 2, port = 29731 }
recipes = ["nccl_tests"]
counters = false
[[case.assert]]
metric = "nccl.wrong"
place = "both"
equals = 0
[[case.assert]]
metric = "nccl.time"
size = "64KiB"
BOUND
"#;

fn a_suite_runs_under_torchrun_and_is_judged() {
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
    for (bound, code) in [("at_most = \"9000000 us\"", 0), ("at_most = \"1 us\"", 1)] {
        project.write("suites/test.toml", &SUITE.replace("BOUND", bound));
        let ran = project.harness(&["--suite", "test", "--inventory", "here", "--no-probe"]);
        assert_eq!(ran.code, Some(code), "{bound}: {}", ran.all());
    }
}
