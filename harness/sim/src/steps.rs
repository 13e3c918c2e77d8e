//! Which steps of a job srun starts, and which it starts beside each other: by the options that the job's script gives it.

use config::inventory::WorldSettings;
use job::script::{self, Script, Start};

/// What a srun prints that does not know the option.
pub(crate) const NO_OVERLAP: &str =
    "srun: unrecognized option '--overlap'\nTry \"srun --help\" for more information\n";
/// What it prints where the controller is too busy to make the sampler's step.
const NO_SAMPLER: &str =
    "srun: error: Unable to create step for job 1: Socket timed out on send/recv operation\n";

/// What one line of srun claims of its job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct StepClaims {
    /// The script goes on while the step runs.
    in_background: bool,
    /// Its processors are for no other step: no `--overlap`.
    processors: bool,
    /// It holds the job's memory: no `--mem=0`.
    memory: bool,
    /// It holds the job's GPUs.
    gpus: bool,
}

impl StepClaims {
    fn read(line: &str, job_has_gpus: bool) -> StepClaims {
        let words = shlex::Shlex::new(line).skip(1).take_while(|word| word.starts_with("--"));
        let options: Vec<String> = words.collect();
        let has = |wanted: &str| options.iter().any(|option| option == wanted);
        let gpus: Vec<bool> = options.iter().filter_map(|option| claims_gpus(option)).collect();
        StepClaims {
            in_background: line.ends_with(" &"),
            processors: !has("--overlap"),
            memory: !has("--mem=0"),
            // A step that says nothing of GPUs has all of its job.
            gpus: if gpus.is_empty() { job_has_gpus } else { gpus.contains(&true) },
        }
    }

    /// Whether both have room in one job.
    fn fits_beside(self, other: StepClaims, world: &WorldSettings) -> bool {
        if self.processors || other.processors {
            return false;
        }
        world.steps_overlap || !(self.memory || other.memory || (self.gpus && other.gpus))
    }
}

/// Whether an option asks for GPUs; nothing where it is another.
fn claims_gpus(option: &str) -> Option<bool> {
    let (name, value) = option.strip_prefix("--")?.split_once('=')?;
    let is_request = name == "gres" || name == "gpus" || name.starts_with("gpus-per-");
    is_request.then(|| value != "none" && value != "0")
}

/// The steps of a job in Slurm; none anywhere else.
pub(crate) struct Steps(Vec<StepClaims>);

impl Steps {
    pub(crate) fn read(script: &Script) -> Steps {
        let Start::Slurm(directives) = &script.start else { return Steps(Vec::new()) };
        let has_gpus = directives.gpus.option(directives.gpus_per_node).is_some();
        let text = script::render(script);
        let lines = text.lines().filter(|line| line.starts_with("srun "));
        Steps(lines.map(|line| StepClaims::read(line, has_gpus)).collect())
    }

    fn some_refused(&self, world: &WorldSettings, in_background: bool) -> bool {
        let mut of_kind = self.0.iter().filter(|step| step.in_background == in_background);
        !world.overlap && of_kind.any(|step| !step.processors)
    }

    /// What srun prints where it does not start the sampler.
    pub(crate) fn sampler_refusal(&self, world: &WorldSettings) -> Option<&'static str> {
        if self.some_refused(world, true) {
            return Some(NO_OVERLAP);
        }
        (!world.sampler_starts && !self.0.is_empty()).then_some(NO_SAMPLER)
    }

    /// The same of the workload.
    pub(crate) fn workload_refusal(&self, world: &WorldSettings) -> Option<&'static str> {
        self.some_refused(world, false).then_some(NO_OVERLAP)
    }

    /// Whether srun keeps the workload waiting for what a step in the background holds.
    pub(crate) fn workload_waits(&self, world: &WorldSettings) -> bool {
        let (background, workload): (Vec<StepClaims>, Vec<StepClaims>) =
            self.0.iter().copied().partition(|step| step.in_background);
        background.iter().any(|held| workload.iter().any(|step| !step.fits_beside(*held, world)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::{Bench, collective, each_gpu};
    use job::script::GpuRequest;

    #[test]
    fn the_steps_of_a_job_run_beside_each_other_on_each_slurm_that_knows_overlap() {
        let bench = Bench::new("p5", "p5-[001-002]", 1, &[]);
        let older = WorldSettings { steps_overlap: false, ..WorldSettings::default() };
        let steps = [
            collective("all_reduce_perf", "-b 1K -e 1G"),
            each_gpu(),
            bench.flows("p5-001", "p5-002", "write"),
        ];
        for step in steps {
            for gpus in [GpuRequest::Gres, GpuRequest::GpusPerNode, GpuRequest::None] {
                let mut script = bench.script("case", "job", "p5-[001-002]", step.clone());
                if let Start::Slurm(directives) = &mut script.start {
                    directives.gpus = gpus;
                }
                let steps = Steps::read(&script);
                assert_eq!(steps.0.len(), 2, "{:?}", steps.0);
                assert!(steps.0[0].in_background && !steps.0[1].in_background, "{:?}", steps.0);
                for world in [&older, &WorldSettings::default()] {
                    assert!(!steps.workload_waits(world), "{gpus:?}: {:?}", steps.0);
                    assert_eq!(steps.sampler_refusal(world), None);
                    assert_eq!(steps.workload_refusal(world), None);
                }
            }
        }
    }

    #[test]
    fn a_step_that_claims_what_another_holds_waits_for_it() {
        let newer = WorldSettings::default();
        let older = WorldSettings { steps_overlap: false, ..WorldSettings::default() };
        let all = "--overlap --mem=0";
        for (sampler, workload, waits_on_older, waits_on_newer) in [
            ("--overlap --mem=0 --gres=none", all, false, false),
            ("--overlap --mem=0 --gpus-per-node=0", all, false, false),
            (all, all, true, false),
            ("--overlap --gres=none", all, true, false),
            ("--overlap --mem=0 --gres=none", "--overlap", true, false),
            ("--mem=0 --gres=none", all, true, true),
            ("--overlap --mem=0 --gres=none", "--mem=0", true, true),
            ("--gpus-per-task=8 --overlap --mem=0 --gres=none", all, true, false),
        ] {
            let background = format!("srun --nodes=2 {sampler} bash counters.sh > sampler.log 2>&1 &");
            let lines = [background, format!("srun --nodes=2 {workload} true --mem=0 > out 2> err")];
            let steps = Steps(lines.iter().map(|line| StepClaims::read(line, true)).collect());
            assert_eq!(steps.workload_waits(&older), waits_on_older, "{sampler} | {workload}");
            assert_eq!(steps.workload_waits(&newer), waits_on_newer, "{sampler} | {workload}");
        }
    }

    #[test]
    fn a_slurm_before_20_11_refuses_each_step_that_has_the_option() {
        let bench = Bench::new("p5", "p5-[001-002]", 1, &[]);
        let script =
            bench.script("case", "job", "p5-[001-002]", collective("all_reduce_perf", "-b 1K -e 1G"));
        let world = WorldSettings { overlap: false, ..WorldSettings::default() };
        let steps = Steps::read(&script);
        assert_eq!(steps.sampler_refusal(&world), Some(NO_OVERLAP));
        assert_eq!(steps.workload_refusal(&world), Some(NO_OVERLAP));
    }
}
