//! The trainings whose own options open a window, by their scripts, and how their logs show that a step has ended. In their
//! options all count from 0, whatever their logs do.

use super::program::{last_step, name, value};
use super::{Own, Reaches, Steps};

#[derive(Clone, Copy)]
enum Known {
    /// `train.py` of the FSDP samples, as it was published with nsys.
    Fsdp,
    Nemo1,
    Nemo2,
    Megatron,
}

fn known(argv: &[String]) -> Option<Known> {
    let has = |script: &str| argv.iter().any(|word| name(word) == script);
    let option = |option: &str| argv.iter().any(|word| word.starts_with(option));
    if has("megatron_gpt_pretraining.py") {
        Some(Known::Nemo1)
    } else if has("pretrain_gpt.py") {
        Some(Known::Megatron)
    } else if argv.windows(2).any(|pair| name(&pair[0]) == "nemo" && pair[1] == "llm") {
        Some(Known::Nemo2)
    } else {
        (has("train.py") && option("--sharding_strategy")).then_some(Known::Fsdp)
    }
}

/// The program's options for this window; nothing where it has none, or none that its command line could say.
pub fn own(argv: &[String], steps: Steps) -> Option<Own> {
    let own = |words: &[&str], reaches| {
        let words = words.iter().map(|word| (*word).to_owned()).collect();
        Own { words, reaches, unfit: None }
    };
    match known(argv)? {
        Known::Fsdp => {
            let words = ["--nsys_start_step={first}", "--nsys_end_step={last}"];
            // It looks at its last step before it looks at the step to stop at.
            let breaks = last_step(argv).filter(|(last, _)| steps.last >= *last);
            let unfit = breaks.map(|(last, _)| {
                format!(
                    "its stop lies behind the break of its last step, and a window must end before: {last}"
                )
            });
            Some(Own { unfit, ..own(&words, Reaches::RankZero) })
        }
        Known::Nemo1 => Some(own(
            &[
                "++model.nsys_profile.enabled=True",
                "++model.nsys_profile.start_step={first}",
                "++model.nsys_profile.end_step={last}",
                "++model.nsys_profile.ranks=[{ranks}]",
                "++model.nsys_profile.gen_shape=False",
            ],
            Reaches::EachSession,
        )),
        // It stops when so many steps are done, which is before the step of that number.
        Known::Megatron => Some(own(
            &[
                "--profile",
                "--profile-step-start={first}",
                "--profile-step-end={end}",
                "--profile-ranks",
                "{ranks...}",
            ],
            Reaches::EachSession,
        )),
        // Its counterpart is a plugin that python code puts onto an executor.
        Known::Nemo2 => None,
    }
}

/// How a line of the log shows a step, and the number of the first.
pub fn line(argv: &[String]) -> Option<(&'static str, u32)> {
    Some(match known(argv)? {
        Known::Fsdp => ("Batch ([0-9]+) ", 0),
        Known::Nemo1 => ("global_step[=:] ?([0-9]+)", 0),
        Known::Nemo2 => ("iteration +([0-9]+)/", 0),
        Known::Megatron => ("iteration +([0-9]+)/", 1),
    })
}

/// The steps around which a command line tells its program to call the profiler, in whichever of these words.
pub fn told(argv: &[String]) -> Option<Steps> {
    let number = |name: &str| value(argv, &[name]).map(|(number, _)| number);
    let ends = |first: &str, last: &str, behind: u64| {
        let (first, last) = (number(first)?, number(last)?.checked_sub(behind)?);
        (first <= last).then_some(Steps { first, last })
    };
    ends("--nsys_start_step", "--nsys_end_step", 0)
        .or_else(|| ends("--profile-step-start", "--profile-step-end", 1))
        .or_else(|| ends("model.nsys_profile.start_step", "model.nsys_profile.end_step", 0))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<String> {
        text.split(' ').map(str::to_owned).collect()
    }

    #[test]
    fn what_a_program_is_told_of_a_window_is_the_window() {
        let steps = Steps { first: 70, last: 75 };
        for line in [
            "torchrun train.py --sharding_strategy=full",
            "python /opt/NeMo/megatron_gpt_pretraining.py",
            "torchrun --nproc_per_node=8 pretrain_gpt.py --train-iters 100",
        ] {
            let mut argv = words(line);
            let own = own(&argv, steps).expect(line);
            assert_eq!(own.unfit, None, "{line}");
            assert_eq!(told(&argv), None, "{line}");
            argv.extend(own.words(steps, &[0, 8]));
            assert_eq!(told(&argv), Some(steps), "{argv:?}");
        }
        assert_eq!(
            own(&words("torchrun train.py"), steps),
            None,
            "any program may have a script of that name"
        );
        assert_eq!(own(&words("nemo llm pretrain --factory llama3_8b"), steps), None);
        assert_eq!(told(&words("train.py --nsys_start_step=5 --nsys_end_step=3")), None);
        assert_eq!(line(&words("torchrun pretrain_gpt.py")), Some(("iteration +([0-9]+)/", 1)));
        assert_eq!(line(&words("torchrun train.py")), None);
    }
}
