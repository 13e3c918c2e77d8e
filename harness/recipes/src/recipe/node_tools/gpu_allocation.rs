//! GPUs that Slurm gives to steps of a job: as many as each asked for, and no others.

use super::{ToolFinding, about, read_text};
use crate::recipe::shared_findings::FileFinding;
use crate::recipe::{JobInput, Output, RecipeSpec};
use logs::node_tools::gpu_allocation as source;
use metric::finding_kinds;
use metric::unit::{Better, Unit};
use metric::{Blames, Covers, Dim, Files, MetricSpec};

/// Where most nodes are alike, that is a setting of the cluster (`ConstrainDevices` of cgroup.conf), and blames none.
const WRONG: MetricSpec = MetricSpec::new(
    "allocation.wrong",
    "steps of a job that can use other GPUs than they asked for, by `nvidia-smi -L` or by CUDA_VISIBLE_DEVICES",
    Unit::Count,
    Better::Lower,
    Files::Output,
)
.per(&[Dim::Node])
.blaming(Blames::OddNode)
.covering(Covers::NoNics)
.explained_by(&[AllocationFinding::Wrong.code()])
.next("look whether cgroup.conf of {nodes} has `ConstrainDevices=yes`, and gres.conf all GPUs; then restart slurmd");

pub(crate) const SPEC: RecipeSpec<'static> = RecipeSpec {
    name: "gpu_allocation",
    about: "whether steps of a job can use as many GPUs as they ask Slurm for",
    metrics: &[WRONG],
    tables: &[],
    findings: &[AllocationFinding::ALL, ToolFinding::ALL, FileFinding::ALL],
    reads_nccl_log: false,
    compares_clocks: false,
    reads_inspector: false,
    run: &run,
};

finding_kinds! {
    /// Of GPUs that steps are given.
    pub(crate) enum AllocationFinding {
        Wrong = "allocation-wrong": Note,
    }
}

fn run(job: &JobInput) -> Output {
    let mut output = Output::default();
    let Some((file, dims, steps)) = read_text(job, &mut output, source::read) else { return output };
    let mut is_complete = true;
    for step in &steps {
        let asked = format!("a step that asked for {}", gpus(step.asked));
        let (code, message) = match &step.failed {
            Some(why) => {
                is_complete = false;
                (ToolFinding::NotMeasured.code(), format!("{asked} did not run: {why}"))
            }
            None if step.is_wrong() => {
                let visible = step.visible.map_or("is unset".to_owned(), |count| format!("has {count}"));
                let listed = gpus(step.listed);
                let found = format!("nvidia-smi lists {listed}, CUDA_VISIBLE_DEVICES {visible}");
                (AllocationFinding::Wrong.code(), format!("{asked}: {found}"))
            }
            None => continue,
        };
        output.findings.push(about(job, file, code, None, message));
    }
    let wrong = steps.iter().filter(|step| step.is_wrong()).count();
    // Without all steps there is no zero.
    if is_complete || wrong > 0 {
        output.metrics.push(WRONG.of(dims, wrong as f64));
    }
    output
}

fn gpus(count: u32) -> String {
    if count == 1 { "1 GPU".to_owned() } else { format!("{count} GPUs") }
}
