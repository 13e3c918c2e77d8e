//! torch_burn.py: what it prints is read as gpu-burn's, by a stand-in for torch whose GPUs go wrong or die, and by a real PyTorch on
//! CPUs, where products of the types that any release has there are those of the host.

use crate::fact::Fact;
use crate::needs::python_with_torch;
use crate::project::{Project, root};
use job::script::{NO_TORCH, TORCH_BURN_PY, files};
use logs::node_tools::gpu_burn::{self, Burn};
use std::fs;
use std::process::{Command, Output};

pub(crate) const FACTS: &[Fact] = &[
    ("wrong_products_and_dead_processes_are_those_of_their_gpu", wrong_products_and_dead_processes),
    ("gpus_that_become_ready_one_after_the_other_compute_to_the_same_end", unequal_starts),
    ("without_pytorch_it_is_not_there", without_pytorch_it_is_not_there),
];

pub(crate) const WITH_TORCH: &[Fact] =
    &[("a_suite_of_products_in_each_type_of_a_cpu_passes", a_suite_of_products_passes)];

/// Matrices as lists; from its thirtieth product on, GPU 1 is wrong in one element, and GPU 2 ends with its hundredth.
const STAND_IN: &str = r#"import os, random
__version__ = "stand-in"
class version: cuda = None
int8 = float64 = float32 = bfloat16 = float16 = None
products = 0
class Matrix:
    def __init__(self, rows): self.rows = rows
    def float(self): return self
    def to(self, *_): return self
    def cpu(self): return self
class Generator:
    def manual_seed(self, seed):
        self.drawn = random.Random(seed)
        return self
def randint(low, high, size, generator, dtype):
    return Matrix([[generator.drawn.randint(low, high - 1) for _ in range(size[1])] for _ in range(size[0])])
def matmul(one, other):
    global products
    products += 1
    gpu = os.environ["CUDA_VISIBLE_DEVICES"]
    rows = [[sum(a * b for a, b in zip(row, column)) for column in zip(*other.rows)] for row in one.rows]
    if gpu == "1" and products >= 30:
        rows[0][0] += 1
    if gpu == "2" and products >= 100:
        raise SystemExit("RuntimeError: CUDA error: an illegal memory access was encountered")
    return Matrix(rows)
def equal(one, other): return one.rows == other.rows
def set_num_threads(_): pass
"#;

fn run(torch: Option<&str>, arguments: &[&str]) -> Output {
    let folder = tempfile::tempdir().expect("a folder");
    fs::write(folder.path().join(files::TORCH_BURN), TORCH_BURN_PY).expect("written");
    if let Some(torch) = torch {
        fs::write(folder.path().join("torch.py"), torch).expect("written");
    }
    let mut command = Command::new("python3");
    // Without the machine's own packages, and with those of the folder.
    command.arg("-S").arg(files::TORCH_BURN).args(arguments).current_dir(folder.path());
    command.env_remove("CUDA_VISIBLE_DEVICES").env_remove("PYTHONPATH");
    command.output().expect("python3 starts")
}

fn wrong_products_and_dead_processes() {
    let output = run(Some(STAND_IN), &["fp32", "--device=cpu", "--gpus=3", "--size=4", "3"]);
    let (text, errors) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success() && errors.contains("illegal memory access"), "{text}\n{errors}");
    let burn: Burn = gpu_burn::read(text.as_bytes()).expect("in memory").expect("a result");
    let seen: Vec<_> = burn.gpus.iter().map(|gpu| (gpu.ok, gpu.is_wrong(), gpu.died)).collect();
    assert_eq!(seen, [(Some(true), false, false), (Some(false), true, false), (None, false, true)], "{text}");
    assert!(burn.gpus[0].computed() && burn.gpus[0].stopped.is_none(), "{text}");
}

/// On a busy host one process needs seconds longer for its factors.
fn unequal_starts() {
    let slow = "import time\nif os.environ.get(\"CUDA_VISIBLE_DEVICES\") == \"1\": time.sleep(2)\nprint(\"a b c\")\n";
    let torch = format!("{STAND_IN}{slow}");
    let output = run(Some(&torch), &["fp32", "--device=cpu", "--gpus=2", "--size=4", "3"]);
    let text = String::from_utf8_lossy(&output.stdout);
    let burn: Burn = gpu_burn::read(text.as_bytes()).expect("in memory").expect("a result");
    let seen: Vec<_> = burn.gpus.iter().map(|gpu| (gpu.ok.is_some(), gpu.died, gpu.stopped)).collect();
    assert_eq!(seen, [(true, false, None), (true, false, None)], "{text}");
}

fn without_pytorch_it_is_not_there() {
    let output = run(None, &["bf16", "--gpus=8", "10"]);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(127), "{errors}");
    assert!(
        errors.starts_with("torch_burn.py: PyTorch is missing (") && errors.starts_with(NO_TORCH),
        "{errors}"
    );
}

const SUITE: &str = r#"instance = "two"
about = "a suite of the tests"
[[case]]
name = "{dtype}"
placement = "each"
matrix = { dtype = ["fp64", "fp32", "bf16"] }
workload = { kind = "torch-burn", device = "cpu", size = 256, seconds = 10, program = "PROGRAM" }
recipes = ["gpu_burn"]
[[case.assert]]
metric = "burn.ok"
per = "gpu"
equals = 1
[[case.assert]]
metric = "burn.ended"
per = "gpu"
equals = 1
"#;

fn a_suite_of_products_passes() {
    let project = Project::new();
    let folder = project.path().display();
    let p5 = fs::read_to_string(root().join("inventory/instances/p5.toml")).expect("there");
    project.write("inventory/instances/two.toml", &p5.replace("gpus = 8", "gpus = 2"));
    project.write(
        "inventory/here.toml",
        &format!(
            "kind = \"real\"\ninstance = \"two\"\nnodes = \"localhost\"\n[reach]\nvia = \"local\"\n[paths]\nshared = \"{folder}/shared\"\ncounters = \"{folder}/sys\"\n"
        ),
    );
    project.write("suites/test.toml", &SUITE.replace("PROGRAM", &python_with_torch()));
    let ran = project.harness(&["--suite", "test", "--inventory", "here", "--no-probe"]);
    assert_eq!(ran.code, Some(0), "{}", ran.all());
}
