//! The trainings whose own options open a window, by their scripts, and how their logs show that a step has ended. In
//! their options all count from 0, whatever their logs do.

use super::program::{CALLBACKS, callback_field, last_step, name, value};
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

/// The program's options for this window; nothing where it has none. `callback` is the place of NeMo 2's `NsysCallback`
/// among the callbacks of its trainer, if it is given.
pub fn own(argv: &[String], steps: Steps, callback: Option<u32>) -> Option<Own> {
    let own = |arguments: &[&str], reaches| {
        let arguments = arguments.iter().map(|word| (*word).to_owned()).collect();
        Own { arguments, reaches, unfit: None }
    };
    match known(argv)? {
        Known::Fsdp => {
            let arguments = ["--nsys_start_step={first}", "--nsys_end_step={last}"];
            // It looks at its last step before it looks at the step to stop at.
            let breaks = last_step(argv).filter(|(last, _)| steps.last >= *last);
            let unfit = breaks.map(|(last, _)| {
                format!(
                    "the program ends before it stops the profiler; the window must end before step {last}"
                )
            });
            Some(Own { unfit, ..own(&arguments, Reaches::RankZero) })
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

/// Its command line reaches into what a recipe holds, and adds no callback to it: it puts the list as a whole, or one
/// callback in the list's place, and with it goes the one that times the steps.
fn nemo2(callback: Option<u32>) -> Own {
    // It stops behind the step with which so many are done.
    let values = ["start_step={first}", "end_step={end}", "ranks=[{ranks}]", "gen_shape=False"];
    let place = callback.unwrap_or_default();
    let arguments = values.map(|value| format!("{CALLBACKS}{place}].{value}")).to_vec();
    let unfit = callback.is_none().then(|| {
        "the command line cannot add an `NsysCallback` to NeMo 2; if the recipe has one, set `nsys_callback` to its index"
            .to_owned()
    });
    Own { arguments, reaches: Reaches::EachSession, unfit }
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

/// The steps around which a command line makes its program call the profiler, by any of the known options.
pub fn profiled_steps(argv: &[String]) -> Option<Steps> {
    let number = |name: &str| value(argv, &[name]).map(|(number, _)| number);
    let callback = |field: &str| callback_field(argv, field).map(|(number, _)| number);
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

    fn arguments(text: &str) -> Vec<String> {
        text.split(' ').map(str::to_owned).collect()
    }

    #[test]
    fn nemo_2_takes_its_window_from_the_named_callback_only() {
        let (argv, steps) =
            (arguments("nemo llm pretrain --factory llama3_8b"), Steps { first: 70, last: 75 });
        let named = own(&argv, steps, Some(2)).expect("options");
        assert_eq!(
            named.arguments(steps, &[0, 8]),
            arguments(
                "trainer.callbacks[2].start_step=70 trainer.callbacks[2].end_step=76 trainer.callbacks[2].ranks=[0,8] \
                 trainer.callbacks[2].gen_shape=False"
            )
        );
        let unfit = own(&argv, steps, None).and_then(|own| own.unfit).expect("a reason");
        assert!(unfit.contains("`nsys_callback` to its index"), "{unfit}");
    }

    #[test]
    fn own_options_are_read_back_as_the_same_window() {
        let steps = Steps { first: 70, last: 75 };
        for line in [
            "torchrun train.py --sharding_strategy=full",
            "python /opt/NeMo/megatron_gpt_pretraining.py",
            "torchrun --nproc_per_node=8 pretrain_gpt.py --train-iters 100",
            "nemo llm pretrain --factory mine --yes",
            "torchrun --nproc_per_node=8 --no-python nemo llm pretrain --factory mine",
        ] {
            let mut argv = arguments(line);
            let own = own(&argv, steps, Some(1)).expect(line);
            assert_eq!(own.unfit, None, "{line}");
            assert_eq!(profiled_steps(&argv), None, "{line}");
            argv.extend(own.arguments(steps, &[0, 8]));
            assert_eq!(profiled_steps(&argv), Some(steps), "{argv:?}");
        }
        assert_eq!(
            own(&arguments("torchrun train.py"), steps, Some(1)),
            None,
            "any program may have a script of that name"
        );
        let nowhere = "nemo llm pretrain trainer.callbacks[x].start_step=5 trainer.callbacks[x].end_step=7";
        assert_eq!(profiled_steps(&arguments(nowhere)), None);
        assert_eq!(profiled_steps(&arguments("train.py --nsys_start_step=5 --nsys_end_step=3")), None);
        assert_eq!(line(&arguments("torchrun pretrain_gpt.py")), Some(("iteration +([0-9]+)/", 1)));
        assert_eq!(line(&arguments("torchrun train.py")), None);
    }
}
