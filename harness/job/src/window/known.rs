//! The trainings whose own options open a window, by their scripts, and how their logs show that a step has ended. In their
//! options all count from 0, whatever their logs do.

use super::program::{CALLBACKS, last_step, name, of_callback, value};
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

/// The program's options for this window; nothing where it has none. `callback` is the place of NeMo 2's `NsysCallback` among
/// the callbacks of its trainer, where somebody says so.
pub fn own(argv: &[String], steps: Steps, callback: Option<u32>) -> Option<Own> {
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
        Known::Nemo2 => Some(nemo2(callback)),
    }
}

/// Its command line reaches into what a recipe holds, and adds no callback to it: it puts the list as a whole, or one callback in
/// the list's place, and with it goes the one that times the steps.
fn nemo2(callback: Option<u32>) -> Own {
    // It stops behind the step with which so many are done.
    let values = ["start_step={first}", "end_step={end}", "ranks=[{ranks}]", "gen_shape=False"];
    let place = callback.unwrap_or_default();
    let words = values.map(|value| format!("{CALLBACKS}{place}].{value}")).to_vec();
    let unfit = callback.is_none().then(|| {
        "NeMo 2 is told by an `NsysCallback` that its recipe has, and its command line adds none beside the recipe's other \
         callbacks; where it has one, `nsys_callback` says at which place"
            .to_owned()
    });
    Own { words, reaches: Reaches::EachSession, unfit }
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
    let callback = |field: &str| of_callback(argv, field).map(|(number, _)| number);
    let steps = |first: Option<u64>, last: Option<u64>, behind: u64| {
        let (first, last) = (first?, last?.checked_sub(behind)?);
        (first <= last).then_some(Steps { first, last })
    };
    let ends = |first: &str, last: &str, behind: u64| steps(number(first), number(last), behind);
    ends("--nsys_start_step", "--nsys_end_step", 0)
        .or_else(|| ends("--profile-step-start", "--profile-step-end", 1))
        .or_else(|| ends("model.nsys_profile.start_step", "model.nsys_profile.end_step", 0))
        .or_else(|| steps(callback("start_step"), callback("end_step"), 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<String> {
        text.split(' ').map(str::to_owned).collect()
    }

    #[test]
    fn nemo_2_is_told_through_the_callback_that_its_recipe_has_and_through_none_that_nobody_names() {
        let (argv, steps) = (words("nemo llm pretrain --factory llama3_8b"), Steps { first: 70, last: 75 });
        let named = own(&argv, steps, Some(2)).expect("options");
        assert_eq!(
            named.words(steps, &[0, 8]),
            words(
                "trainer.callbacks[2].start_step=70 trainer.callbacks[2].end_step=76 trainer.callbacks[2].ranks=[0,8] \
                 trainer.callbacks[2].gen_shape=False"
            )
        );
        let unfit = own(&argv, steps, None).and_then(|own| own.unfit).expect("a reason");
        assert!(unfit.contains("`nsys_callback` says at which place"), "{unfit}");
    }

    #[test]
    fn what_a_program_is_told_of_a_window_is_the_window() {
        let steps = Steps { first: 70, last: 75 };
        for line in [
            "torchrun train.py --sharding_strategy=full",
            "python /opt/NeMo/megatron_gpt_pretraining.py",
            "torchrun --nproc_per_node=8 pretrain_gpt.py --train-iters 100",
            "nemo llm pretrain --factory mine --yes",
            "torchrun --nproc_per_node=8 --no-python nemo llm pretrain --factory mine",
        ] {
            let mut argv = words(line);
            let own = own(&argv, steps, Some(1)).expect(line);
            assert_eq!(own.unfit, None, "{line}");
            assert_eq!(told(&argv), None, "{line}");
            argv.extend(own.words(steps, &[0, 8]));
            assert_eq!(told(&argv), Some(steps), "{argv:?}");
        }
        assert_eq!(
            own(&words("torchrun train.py"), steps, Some(1)),
            None,
            "any program may have a script of that name"
        );
        let nowhere = "nemo llm pretrain trainer.callbacks[x].start_step=5 trainer.callbacks[x].end_step=7";
        assert_eq!(told(&words(nowhere)), None);
        assert_eq!(told(&words("train.py --nsys_start_step=5 --nsys_end_step=3")), None);
        assert_eq!(line(&words("torchrun pretrain_gpt.py")), Some(("iteration +([0-9]+)/", 1)));
        assert_eq!(line(&words("torchrun train.py")), None);
    }
}
