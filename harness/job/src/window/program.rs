//! What a training's command line says about windows: whether its python imports a hook, its own options, and its last
//! step.

use super::Steps;

/// Options of a program that open and close a window. `{first}` and `{last}` stand for its steps, `{end}` for the one
/// behind the last, `{ranks}` for the ranks that call the profiler, by comma, and `{ranks...}` for these as one
/// argument each.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Own {
    /// With placeholders, such as `--nsys_start_step={first}`.
    pub arguments: Vec<String>,
    /// Ranks on which the options open the window.
    pub reaches: Reaches,
    /// Why these options would not do for this window.
    pub unfit: Option<String>,
}

/// Which ranks call the profiler.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reaches {
    /// Rank 0 alone.
    RankZero,
    /// Those that are named, or one of every session, as the author of the options says.
    EachSession,
}

impl Own {
    /// Fills the placeholders; `lowest` is the lowest rank of each session.
    pub(crate) fn arguments(&self, steps: Steps, lowest: &[u32]) -> Vec<String> {
        let ranks: Vec<String> = lowest.iter().map(u32::to_string).collect();
        let values = [
            ("{first}", steps.first.to_string()),
            ("{last}", steps.last.to_string()),
            ("{end}", (steps.last + 1).to_string()),
            ("{ranks}", ranks.join(",")),
        ];
        let fill =
            |word: &String| values.iter().fold(word.clone(), |word, (name, value)| word.replace(name, value));
        let filled = |word: &String| match word.as_str() {
            "{ranks...}" => ranks.clone(),
            _ => vec![fill(word)],
        };
        self.arguments.iter().flat_map(filled).collect()
    }
}

/// Programs that are python, or start it with their environment.
const PYTHONS: [&str; 7] = ["python", "python3", "torchrun", "accelerate", "deepspeed", "lightning", "nemo"];

pub(super) fn name(word: &str) -> &str {
    word.rsplit('/').next().unwrap_or(word)
}

fn is_python(word: &str) -> bool {
    let name = name(word);
    let version =
        name.strip_prefix("python3.").is_some_and(|rest| rest.bytes().all(|byte| byte.is_ascii_digit()));
    version || PYTHONS.contains(&name)
}

/// The program that would import the hook, or why none does.
pub(super) fn takes_hook(argv: &[String]) -> Result<&str, String> {
    let program = argv.first().map_or("", String::as_str);
    let Some(at) = argv.iter().position(|word| is_python(word)) else {
        return Err(format!("`{}` is not python and imports no hook", name(program)));
    };
    let before_script = argv[at + 1..].iter().take_while(|word| word.starts_with('-'));
    let isolated = before_script.filter(|word| !word.starts_with("--")).find(|word| {
        let plain = word.len() < 6;
        plain && word[1..].contains(['I', 'E', 'S'])
    });
    match isolated {
        Some(word) => Err(format!("`{} {word}` does not import the hook", name(&argv[at]))),
        None => Ok(name(&argv[at])),
    }
}

/// How many processes a task of a job becomes, where its launcher is given a number.
pub fn processes(argv: &[String]) -> u32 {
    let torchrun = argv.first().is_some_and(|program| name(program) == "torchrun");
    let count = value(argv, &["--nproc_per_node", "--nproc-per-node"]).filter(|_| torchrun);
    count.and_then(|(number, _)| u32::try_from(number).ok()).map_or(1, |number| number.max(1))
}

/// Options that set the number of steps.
const COUNTS: [&str; 7] = [
    "--max_steps",
    "--max-steps",
    "--steps",
    "--train-iters",
    "--total-steps",
    "--training.steps",
    "trainer.max_steps",
];

/// And from which step on they call the profiler themselves.
const STARTS: [&str; 3] = ["--nsys_start_step", "--profile-step-start", "model.nsys_profile.start_step"];

/// The number of the last step that a command line allows, with the arguments that set it.
pub fn last_step(argv: &[String]) -> Option<(u64, String)> {
    let (count, arguments) = value(argv, &COUNTS)?;
    Some((count.checked_sub(1)?, arguments))
}

/// The arguments that make a program call the profiler.
pub fn own_start(argv: &[String]) -> Option<(u64, String)> {
    value(argv, &STARTS).or_else(|| callback_field(argv, "start_step"))
}

/// What stands in front of the place of one of NeMo 2's callbacks.
pub(super) const CALLBACKS: &str = "trainer.callbacks[";

/// The number that a command line gives a field of a callback, with the arguments that set it.
pub(super) fn callback_field(argv: &[String], field: &str) -> Option<(u64, String)> {
    let find = |word: &String| {
        let (place, rest) = word.strip_prefix(CALLBACKS)?.split_once(']')?;
        place.parse::<u32>().ok()?;
        let number = rest.strip_prefix('.')?.strip_prefix(field)?.strip_prefix('=')?.parse().ok()?;
        Some((number, word.clone()))
    };
    argv.iter().filter_map(find).next_back()
}

/// A program whose configuration says which ranks call the profiler, and rank 0 alone where it says nothing.
const CONFIGURED: &str = "megatron_gpt_pretraining.py";

/// The arguments that make a program call the profiler on rank 0 alone: they set a window, and no further rank.
pub fn calls_on_rank_zero(argv: &[String]) -> Option<String> {
    let configured = || argv.iter().find(|word| name(word) == CONFIGURED).map(|_| CONFIGURED.to_owned());
    let arguments = own_start(argv).map(|(_, arguments)| arguments).or_else(configured)?;
    (!argv.iter().enumerate().any(|(at, word)| names_further_ranks(word, &argv[at + 1..])))
        .then_some(arguments)
}

/// `--profile-ranks 0 8`, `model.nsys_profile.ranks=[0,8]`, and the like.
fn names_further_ranks(word: &str, behind: &[String]) -> bool {
    let (key, glued) = word.split_once('=').map_or((word, None), |(key, value)| (key, Some(value)));
    if !key.ends_with("ranks") {
        return false;
    }
    let apart = behind.iter().map(String::as_str).take_while(|word| !word.starts_with('-'));
    let lists: Vec<&str> = glued.map_or_else(|| apart.collect(), |value| vec![value]);
    let numbers = lists.iter().flat_map(|list| list.split(|c: char| !c.is_ascii_digit()));
    numbers.into_iter().any(|number| number.parse::<u64>().is_ok_and(|rank| rank > 0))
}

pub(super) fn value(argv: &[String], names: &[&str]) -> Option<(u64, String)> {
    let find = |(at, word): (usize, &String)| {
        let plain = word.trim_start_matches('+');
        names.iter().find_map(|name| match plain.strip_prefix(name)? {
            "" => {
                let value = argv.get(at + 1)?;
                Some((value.parse().ok()?, format!("{word} {value}")))
            }
            glued => Some((glued.strip_prefix('=')?.parse().ok()?, word.clone())),
        })
    };
    argv.iter().enumerate().filter_map(find).next_back()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn arguments(text: &str) -> Vec<String> {
        text.split(' ').map(str::to_owned).collect()
    }

    #[test]
    fn python_takes_the_hook_unless_its_options_prevent_imports() {
        for (line, program) in [
            ("python3 -u train.py", Some("python3")),
            ("/opt/conda/bin/python3.11 train.py", Some("python3.11")),
            ("torchrun --nproc_per_node=8 train.py -S", Some("torchrun")),
            ("env A=1 python train.py", Some("python")),
            ("python -S train.py", None),
            ("python3 -uE train.py", None),
            ("python3 -I -m train", None),
            ("./train python.conf", None),
        ] {
            assert_eq!(takes_hook(&arguments(line)).ok(), program, "{line}");
        }
        assert!(takes_hook(&[]).is_err());
    }

    #[test]
    fn without_further_ranks_the_profiler_is_called_on_rank_0_alone() {
        for (line, alone) in [
            ("torchrun train.py --nsys_start_step=70 --nsys_end_step=75", Some("--nsys_start_step=70")),
            ("torchrun train.py --nsys_start_step=70 --nsys_ranks=0,8", None),
            ("torchrun pretrain_gpt.py --profile --profile-step-start 5", Some("--profile-step-start 5")),
            (
                "torchrun pretrain_gpt.py --profile-step-start 5 --profile-ranks 0 --lr 1",
                Some("--profile-step-start 5"),
            ),
            ("torchrun pretrain_gpt.py --profile-step-start 5 --profile-ranks 0 8 --lr 1", None),
            (
                "python -u /opt/megatron_gpt_pretraining.py --config-name x",
                Some("megatron_gpt_pretraining.py"),
            ),
            (
                "python megatron_gpt_pretraining.py ++model.nsys_profile.ranks=[0]",
                Some("megatron_gpt_pretraining.py"),
            ),
            ("python megatron_gpt_pretraining.py ++model.nsys_profile.ranks=[0,8]", None),
            (
                "nemo llm pretrain trainer.callbacks[1].start_step=5",
                Some("trainer.callbacks[1].start_step=5"),
            ),
            ("nemo llm pretrain trainer.callbacks[1].start_step=5 trainer.callbacks[1].ranks=[0,8]", None),
            ("python train.py --max_steps=5", None),
        ] {
            assert_eq!(calls_on_rank_zero(&arguments(line)).as_deref(), alone, "{line}");
        }
    }

    #[test]
    fn the_last_step_is_one_below_the_number_of_steps() {
        for (line, last) in [
            ("torchrun train.py --max_steps 80", Some(79)),
            ("torchrun train.py --steps=30", Some(29)),
            ("torchrun pretrain.py --train-iters 50 --lr 1", Some(49)),
            ("python main.py trainer.max_steps=100", Some(99)),
            ("python main.py +trainer.max_steps=100", Some(99)),
            ("python train.py --steps 5 --steps 7", Some(6)),
            ("python train.py --max_steps", None),
            ("python train.py --steps -1", None),
            ("python train.py --steps 0", None),
            ("python train.py --steps_per_epoch 5", None),
        ] {
            assert_eq!(last_step(&arguments(line)).map(|(last, _)| last), last, "{line}");
        }
        let (start, said) = own_start(&arguments("torchrun train.py --nsys_start_step=70")).expect("a start");
        assert_eq!((start, said.as_str()), (70, "--nsys_start_step=70"));
    }
}
