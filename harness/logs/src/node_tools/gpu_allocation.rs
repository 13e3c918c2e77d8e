//! Reads what `gpu_allocation.sh` prints: for each step that asked Slurm for GPUs, those that it could use, or why
//! there was no step.

use super::{NoResult, cut, last_line};
use std::collections::BTreeSet;

/// One step of a job.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct GpuStep {
    /// GPUs.
    pub asked: u32,
    /// GPUs that `nvidia-smi -L` lists in the step.
    pub listed: u32,
    /// Those in its CUDA_VISIBLE_DEVICES; absent where Slurm did not set it.
    pub visible: Option<u32>,
    /// Why it has no result.
    pub failed: Option<String>,
}

impl GpuStep {
    /// It got other GPUs than it asked for. A cluster may leave CUDA_VISIBLE_DEVICES unset.
    pub fn is_wrong(&self) -> bool {
        let differs = |count: u32| count != self.asked;
        self.failed.is_none() && (differs(self.listed) || self.visible.is_some_and(differs))
    }
}

/// All steps, in their order; an error where the output is cut off or contradicts itself.
pub fn read(text: &str) -> Result<Vec<GpuStep>, NoResult> {
    let (mut steps, mut has_ended) = (Vec::new(), false);
    let mut open: Option<(GpuStep, bool)> = None;
    let mut uuids: BTreeSet<&str> = BTreeSet::new();
    for line in text.lines() {
        let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
        match (word, &mut open) {
            ("step", None) if !has_ended => {
                let Ok(asked) = rest.trim().parse() else { return Err(unclear(line)) };
                open = Some((GpuStep { asked, ..GpuStep::default() }, false));
                uuids.clear();
            }
            ("step" | "end", Some((step, _))) => {
                return Err(format!("the step for {} GPUs has no status", step.asked));
            }
            ("visible", Some((step, has_variable))) if !*has_variable => {
                step.visible = Some(devices(rest));
                *has_variable = true;
            }
            ("visible-unset", Some((_, has_variable))) if !*has_variable => *has_variable = true,
            // Instances of a GPU stand below it, indented.
            ("GPU", Some((step, _))) if line.contains("(UUID: ") => {
                let uuid = line.split("(UUID: ").nth(1).unwrap_or_default();
                if !uuids.insert(uuid) {
                    return Err(format!("nvidia-smi lists a GPU twice: {}", cut(line)));
                }
                step.listed = step.listed.saturating_add(1);
            }
            ("status", Some(_)) => {
                let Some((mut step, has_variable)) = open.take() else { return Err(unclear(line)) };
                let (code, why) = rest.split_once(' ').unwrap_or((rest, ""));
                let Ok(code) = code.parse::<u8>() else { return Err(unclear(line)) };
                step.failed = match why.trim() {
                    _ if code == 0 && has_variable => None,
                    _ if code == 0 => Some("the step printed nothing".to_owned()),
                    "" => Some(format!("exit code {code}")),
                    why => Some(why.chars().take(300).collect()),
                };
                steps.push(step);
            }
            ("step", None) => return Err(unclear(line)),
            ("end", None) => {
                // Scripts before the first release gave no number.
                let tried: usize = match rest.trim() {
                    "" => steps.len(),
                    number => number.parse().map_err(|_| unclear(line))?,
                };
                if has_ended || tried != steps.len() {
                    return Err(format!("{} of {tried} steps are in the output", steps.len()));
                }
                has_ended = true;
            }
            // Prologues and libraries print remarks of their own.
            _ => {}
        }
    }
    if has_ended && !steps.is_empty() {
        return Ok(steps);
    }
    Err(match last_line(text) {
        Some(line) => format!("gpu_allocation.sh did not come to its end; the last line: {line}"),
        None => "gpu_allocation.sh printed nothing".to_owned(),
    })
}

fn unclear(line: &str) -> NoResult {
    format!("gpu_allocation.sh printed a line that it never prints: {}", cut(line))
}

/// `0,1`, or names; `NoDevFiles` where Slurm gives none.
fn devices(list: &str) -> u32 {
    let names = list.split(',').map(str::trim).filter(|name| !name.is_empty() && *name != "NoDevFiles");
    u32::try_from(names.count()).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    const GPU: &str = "GPU 0: NVIDIA H100 80GB HBM3 (UUID: GPU-0)\n  MIG 1g.10gb Device 0: (UUID: MIG-0)\n";

    /// All of a node.
    fn eight() -> String {
        (0..8)
            .map(|gpu| GPU.replace("GPU 0", &format!("GPU {gpu}")).replace("GPU-0", &format!("GPU-{gpu}")))
            .collect()
    }

    #[test]
    fn gpus_of_each_step_are_counted_by_both_signs() {
        let text = format!(
            "a remark\nstep 1\nvisible 0\n{GPU}status 0 \nstep 2\nvisible 0,1\n{}status 0 \n\
             step 1\nvisible-unset\n{GPU}status 0 \nstep 1\nvisible NoDevFiles\n{GPU}status 0 \nend 4\n",
            eight()
        );
        let steps = read(&text).expect("read");
        let counts: Vec<_> = steps.iter().map(|step| (step.asked, step.listed, step.visible)).collect();
        assert_eq!(counts, [(1, 1, Some(1)), (2, 8, Some(2)), (1, 1, None), (1, 1, Some(0))]);
        let wrong: Vec<bool> = steps.iter().map(GpuStep::is_wrong).collect();
        assert_eq!(wrong, [false, true, false, true]);
    }

    #[test]
    fn a_step_that_slurm_refused_has_a_reason_and_is_not_wrong() {
        let why =
            "srun: error: Unable to create step for job 1: Invalid generic resource (gres) specification";
        let steps = read(&format!("step 9\nstatus 1 {why}\nstep 1\nstatus 0 \nend\n")).expect("read");
        assert_eq!(steps[0].failed.as_deref(), Some(why));
        assert_eq!(steps[1].failed.as_deref(), Some("the step printed nothing"));
        assert!(!steps[0].is_wrong() && !steps[1].is_wrong());
    }

    #[test]
    fn an_output_that_lost_a_step_or_has_one_twice_is_no_result() {
        let step = |asked: u32, gpus: &str| format!("step {asked}\nvisible 0\n{gpus}status 0 \n");
        let (one, all) = (step(1, GPU), step(2, &eight()));
        let read = |text: String| read(&text).map(|steps| steps.len());
        assert_eq!(read(format!("{one}{all}end 2\n")), Ok(2));
        // As scripts before the first release ended.
        assert_eq!(read(format!("{one}{all}end\n")), Ok(2));
        // What can use all GPUs was lost with its step.
        assert_eq!(read(format!("{one}end 2\n")), Err("1 of 2 steps are in the output".to_owned()));
        assert_eq!(read(format!("{one}{one}{all}end 2\n")), Err("3 of 2 steps are in the output".to_owned()));
        let twice = format!("{}end 1\n", step(1, &GPU.repeat(2)));
        let why = "nvidia-smi lists a GPU twice: GPU 0: NVIDIA H100 80GB HBM3 (UUID: GPU-0)";
        assert_eq!(read(twice), Err(why.to_owned()));
    }

    #[test]
    fn what_is_cut_off_is_no_result() {
        for (text, why) in [
            (String::new(), "printed nothing"),
            ("end\n".to_owned(), "did not come to its end"),
            (format!("step 1\nvisible 0\n{GPU}"), "did not come to its end"),
            (
                format!("step 1\nvisible 0\n{GPU}status 0 \n"),
                "did not come to its end; the last line: status 0",
            ),
            ("step 1\nstep 2\n".to_owned(), "the step for 1 GPUs has no status"),
            ("step x\n".to_owned(), "never prints: step x"),
            ("step 1\nstatus x\n".to_owned(), "never prints: status x"),
        ] {
            let error = read(&text).expect_err(why);
            assert!(error.contains(why), "{error}");
        }
    }
}
